//! TCP as far as it matters: connections between nodes, each direction in order, with latency, and cuts.
//!
//! A cut direction loses nothing for good: what was sent waits, as in a kernel that retransmits, and arrives
//! some time after the cut is mended, unless the connection was closed meanwhile. A dial into a cut is
//! repeated with growing pauses, as a kernel does. A process that dies resets its connections, but the
//! reset is a packet like any other; a machine that is lost sends none.
//!
//! Two things befall a connection alone. It can become a void in one direction or both, for good: a router has forgotten it,
//! and neither data nor an end comes through, though each end believes that it stands. And what a Sentinel says and hears
//! can arrive in pieces, cut anywhere within a message, and break off in the middle of one.

use super::node::Node;
use super::options::between;
use super::queue::Queue;
use super::world::Event;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use watchfire::base::{Millis, Random};
use watchfire::core::{ConnId, ConnKind};
use watchfire::resp::{self, Argv, Proto, Reply, ReplyDecoder, RequestDecoder, Writer};

/// One request, argument by argument.
pub type Request = Vec<Vec<u8>>;

/// A connection of the simulated network; unlike [`ConnId`] it is unique in the whole world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wire(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the one who dialled.
    There,
    Back,
}

#[derive(Clone, Debug)]
pub enum Packet {
    Established,
    Refused,
    Requests(Vec<Request>),
    Replies(Vec<Reply>),
    /// Some bytes out of requests or replies.
    Piece(Vec<u8>),
    /// The end of a connection, in good order or by a reset.
    End,
}

#[derive(Debug)]
pub struct Connection {
    /// Who dialled, always a Sentinel, and what its core calls the connection. A crash closes this end, so a later
    /// life of the process never hears of it.
    pub from: usize,
    pub conn: ConnId,
    pub kind: ConnKind,
    pub to: Node,
    pub from_open: bool,
    pub to_open: bool,
    pub established: bool,
    /// Sent before the connection stood.
    unsent: Vec<Request>,
    there: Pipe,
    back: Pipe,
}

#[derive(Debug, Default)]
struct Pipe {
    /// What a cut holds back, oldest first.
    held: VecDeque<Packet>,
    /// Nothing arrives before this: a stream does not overtake itself.
    last: Millis,
    /// Whatever is sent from now on is lost.
    void: bool,
    /// What has arrived of a message in pieces.
    requests: RequestDecoder,
    replies: ReplyDecoder,
}

#[derive(Debug)]
struct Cut {
    count: u32,
    since: Millis,
    /// Dials into it fail at once, because a router or our own kernel knows that there is no way.
    known: bool,
}

#[derive(Debug)]
pub struct Net {
    /// One way, ms: lowest and highest.
    pub latency: (u64, u64),
    /// Extra ms of one direction.
    pub slow: BTreeMap<(Node, Node), u64>,
    cuts: BTreeMap<(Node, Node), Cut>,
    /// Connections with a void, to be passed over when they are closed.
    voids: Vec<Wire>,
    /// Sentinels whose messages go in pieces; one of so many breaks off.
    torn: BTreeMap<usize, u64>,
    wires: BTreeMap<Wire, Connection>,
    last_wire: u64,
    random: Random,
}

/// A kernel dials again after 1, 2, 4 … seconds, this many times.
const DIALS: u32 = 7;
/// Retransmissions after a cut come at most this late, ms.
const RETRANSMIT_MS: u64 = 5_000;

impl Net {
    pub fn new(latency: (u64, u64), seed: u64) -> Net {
        Net {
            latency,
            slow: BTreeMap::new(),
            cuts: BTreeMap::new(),
            voids: Vec::new(),
            torn: BTreeMap::new(),
            wires: BTreeMap::new(),
            last_wire: 0,
            random: Random::seeded(seed),
        }
    }

    pub fn dial(
        &mut self,
        queue: &mut Queue<Event>,
        now: Millis,
        from: usize,
        to: Node,
        conn: ConnId,
        kind: ConnKind,
    ) -> Wire {
        self.last_wire += 1;
        let wire = Wire(self.last_wire);
        let connection = Connection {
            from,
            conn,
            kind,
            to,
            from_open: true,
            to_open: false,
            established: false,
            unsent: Vec::new(),
            there: Pipe::default(),
            back: Pipe::default(),
        };
        self.wires.insert(wire, connection);
        let at = now + self.flight(Node::Sentinel(from), to);
        queue.push(at, Event::Dial { wire, attempt: 0 });
        wire
    }

    /// A dial arrives, or should. `None`: it was lost or nobody waits for it any more. Otherwise the target,
    /// who says through [`Net::accept`] whether it listens.
    pub fn dialled(&mut self, queue: &mut Queue<Event>, now: Millis, wire: Wire, attempt: u32) -> Option<Node> {
        let connection = self.wires.get(&wire)?;
        if !connection.from_open {
            self.wires.remove(&wire);
            return None;
        }
        let (from, to) = (Node::Sentinel(connection.from), connection.to);
        if !self.is_cut(from, to) && !self.is_cut(to, from) {
            return Some(to);
        }
        let known = [(from, to), (to, from)].iter().any(|way| self.cuts.get(way).is_some_and(|cut| cut.known));
        if attempt < DIALS && !known {
            queue.push(now + (1_000 << attempt), Event::Dial { wire, attempt: attempt + 1 });
        } else {
            queue.push(now, Event::NoWay { wire });
        }
        None
    }

    pub fn accept(&mut self, queue: &mut Queue<Event>, now: Millis, wire: Wire, listening: bool) {
        let Some(connection) = self.wires.get_mut(&wire) else { return };
        connection.to_open = listening;
        let answer = if listening { Packet::Established } else { Packet::Refused };
        self.transmit(queue, now, wire, Direction::Back, answer);
    }

    /// Requests on the way there; before the connection stands they wait in the buffer of the one who dialled.
    pub fn request(&mut self, queue: &mut Queue<Event>, now: Millis, wire: Wire, mut requests: Vec<Request>) {
        let Some(connection) = self.wires.get_mut(&wire) else { return };
        if connection.established {
            self.transmit(queue, now, wire, Direction::There, Packet::Requests(requests));
        } else {
            connection.unsent.append(&mut requests);
        }
    }

    pub fn established(&mut self, queue: &mut Queue<Event>, now: Millis, wire: Wire) {
        let Some(connection) = self.wires.get_mut(&wire) else { return };
        connection.established = true;
        let unsent = std::mem::take(&mut connection.unsent);
        if !unsent.is_empty() {
            self.transmit(queue, now, wire, Direction::There, Packet::Requests(unsent));
        }
    }

    pub fn transmit(
        &mut self,
        queue: &mut Queue<Event>,
        now: Millis,
        wire: Wire,
        direction: Direction,
        packet: Packet,
    ) {
        let Some(connection) = self.wires.get(&wire) else { return };
        match (self.torn.get(&connection.from), bytes_of(&packet)) {
            (Some(&breaks), Some(bytes)) => self.tear(queue, now, wire, direction, &bytes, breaks),
            _ => self.fly(queue, now, wire, direction, packet),
        }
    }

    fn fly(&mut self, queue: &mut Queue<Event>, now: Millis, wire: Wire, direction: Direction, packet: Packet) {
        let Some((from, to)) = self.path(wire, direction) else { return };
        let at = now + self.flight(from, to);
        let pipe = self.pipe(wire, direction).expect("it has a path");
        if pipe.void {
            return;
        }
        pipe.last = pipe.last.max(at);
        queue.push(pipe.last, Event::Packet { wire, direction, packet });
    }

    /// A message goes in pieces, or only a beginning of it and then the end of the connection for both sides.
    fn tear(
        &mut self,
        queue: &mut Queue<Event>,
        now: Millis,
        wire: Wire,
        direction: Direction,
        mut bytes: &[u8],
        breaks: u64,
    ) {
        let breaks_off = self.random.below(breaks) == 0;
        for _ in 0..1 + self.random.below(3) {
            let (piece, rest) =
                bytes.split_at(usize::try_from(self.random.below(bytes.len() as u64 + 1)).expect("an index"));
            self.fly(queue, now, wire, direction, Packet::Piece(piece.to_vec()));
            bytes = rest;
        }
        if !breaks_off {
            return self.fly(queue, now, wire, direction, Packet::Piece(bytes.to_vec()));
        }
        for direction in [Direction::There, Direction::Back] {
            self.fly(queue, now, wire, direction, Packet::End);
            if let Some(pipe) = self.pipe(wire, direction) {
                pipe.void = true;
            }
        }
    }

    /// Puts a piece behind those before it. What is whole now; nothing, when no message is.
    pub fn piece_together(&mut self, wire: Wire, direction: Direction, bytes: &[u8]) -> Option<Packet> {
        let pipe = self.pipe(wire, direction)?;
        match direction {
            Direction::There => {
                pipe.requests.extend(bytes);
                let (mut requests, mut argv) = (Vec::new(), Argv::default());
                while pipe.requests.next(&mut argv).expect("a Sentinel writes requests") {
                    requests.push(argv.iter().map(<[u8]>::to_vec).collect());
                }
                (!requests.is_empty()).then_some(Packet::Requests(requests))
            }
            Direction::Back => {
                pipe.replies.extend(bytes);
                let mut replies = Vec::new();
                while let Some(reply) = pipe.replies.next().expect("a server writes replies") {
                    replies.push(reply);
                }
                (!replies.is_empty()).then_some(Packet::Replies(replies))
            }
        }
    }

    /// From now on nothing that is sent this way on this connection arrives, and no end of it either.
    pub fn swallow(&mut self, wire: Wire, direction: Direction) {
        if let Some(pipe) = self.pipe(wire, direction) {
            pipe.void = true;
            self.voids.push(wire);
        }
    }

    /// Which Sentinels have connections to whom that stand for them and swallow what is sent.
    pub fn half_open(&mut self) -> BTreeSet<(usize, Node)> {
        let wires = &self.wires;
        self.voids.retain(|wire| wires.get(wire).is_some_and(|connection| connection.from_open));
        self.voids.iter().map(|wire| (wires[wire].from, wires[wire].to)).collect()
    }

    /// What this Sentinel says and hears goes in pieces, and one message of `breaks` breaks off; `None`: no more.
    pub fn tear_messages(&mut self, sentinel: usize, breaks: Option<u64>) {
        match breaks {
            Some(breaks) => self.torn.insert(sentinel, breaks),
            None => self.torn.remove(&sentinel),
        };
    }

    pub fn is_torn(&self, sentinel: usize) -> bool {
        self.torn.contains_key(&sentinel)
    }

    /// A packet reaches the end of its flight, where a cut holds it back, and all that come behind it. Only here: what
    /// was sent into a cut must not come before what was in flight when it began.
    pub fn arrive(&mut self, wire: Wire, direction: Direction, packet: Packet) -> Option<Packet> {
        let (from, to) = self.path(wire, direction)?;
        let cut = self.is_cut(from, to);
        let pipe = self.pipe(wire, direction)?;
        if cut || !pipe.held.is_empty() {
            pipe.held.push_back(packet);
            return None;
        }
        Some(packet)
    }

    /// What waited behind a cut comes through, unless the direction is cut again.
    pub fn release(&mut self, wire: Wire, direction: Direction) -> Vec<Packet> {
        let Some((from, to)) = self.path(wire, direction) else { return Vec::new() };
        if self.is_cut(from, to) {
            return Vec::new();
        }
        self.pipe(wire, direction).map(|pipe| pipe.held.drain(..).collect()).unwrap_or_default()
    }

    /// The end that dialled is closed: by its owner, or because its process died.
    pub fn close_from(&mut self, queue: &mut Queue<Event>, now: Millis, wire: Wire) {
        let Some(connection) = self.wires.get_mut(&wire) else { return };
        connection.from_open = false;
        if connection.to_open {
            self.transmit(queue, now, wire, Direction::There, Packet::End);
        }
    }

    /// The end that accepted is closed. `quiet`: its machine is gone and cannot say so.
    pub fn close_to(&mut self, queue: &mut Queue<Event>, now: Millis, wire: Wire, quiet: bool) {
        let Some(connection) = self.wires.get_mut(&wire) else { return };
        connection.to_open = false;
        if connection.from_open && !quiet {
            self.transmit(queue, now, wire, Direction::Back, Packet::End);
        }
    }

    /// Marks one end as ended because the other said so, and forgets a connection that both ends left.
    pub fn ended(&mut self, wire: Wire, direction: Direction) {
        let Some(connection) = self.wires.get_mut(&wire) else { return };
        match direction {
            Direction::There => connection.to_open = false,
            Direction::Back => connection.from_open = false,
        }
        if !connection.from_open && !connection.to_open {
            self.wires.remove(&wire);
        }
    }

    pub fn get(&self, wire: Wire) -> Option<&Connection> {
        self.wires.get(&wire)
    }

    /// Connections that `node` accepted and did not close.
    pub fn accepted_by(&self, node: Node) -> Vec<Wire> {
        let mine = self.wires.iter().filter(|(_, connection)| connection.to == node && connection.to_open);
        mine.map(|(&wire, _)| wire).collect()
    }

    /// Connections that a Sentinel dialled and did not close.
    pub fn dialled_by(&self, sentinel: usize) -> Vec<Wire> {
        let mine = self.wires.iter().filter(|(_, connection)| connection.from == sentinel && connection.from_open);
        mine.map(|(&wire, _)| wire).collect()
    }

    /// Connections that stand, seen from both ends.
    pub fn standing(&self) -> Vec<Wire> {
        let standing = self.wires.iter().filter(|(_, c)| c.from_open && c.to_open && c.established);
        standing.map(|(&wire, _)| wire).collect()
    }

    pub fn is_cut(&self, from: Node, to: Node) -> bool {
        self.cuts.contains_key(&(from, to))
    }

    pub fn cut(&mut self, now: Millis, from: Node, to: Node) {
        let known = self.random.below(3) == 0;
        self.cuts.entry((from, to)).or_insert(Cut { count: 0, since: now, known }).count += 1;
    }

    /// Takes one cut of a direction away; when it was the last, what waited arrives soon.
    pub fn mend(&mut self, queue: &mut Queue<Event>, now: Millis, from: Node, to: Node) {
        let Some(cut) = self.cuts.get_mut(&(from, to)) else { return };
        cut.count -= 1;
        if cut.count > 0 {
            return;
        }
        // Retransmissions are spaced like the silence so far: the longer the cut, the later the next one.
        let latest = (now.since(cut.since) / 2).min(RETRANSMIT_MS);
        self.cuts.remove(&(from, to));
        let (there, back): (Vec<Wire>, Vec<Wire>) = (self.holding(Direction::There), self.holding(Direction::Back));
        for (direction, wires) in [(Direction::There, there), (Direction::Back, back)] {
            for wire in wires {
                if self.path(wire, direction) == Some((from, to)) {
                    let at = now + self.random.below(latest + 1);
                    queue.push(at, Event::Release { wire, direction });
                }
            }
        }
    }

    pub fn mend_all(&mut self, queue: &mut Queue<Event>, now: Millis) {
        let pairs: Vec<(Node, Node)> = self.cuts.keys().copied().collect();
        for (from, to) in pairs {
            if let Some(cut) = self.cuts.get_mut(&(from, to)) {
                cut.count = 1;
            }
            self.mend(queue, now, from, to);
        }
    }

    fn holding(&self, direction: Direction) -> Vec<Wire> {
        let pipe = |connection: &Connection| match direction {
            Direction::There => !connection.there.held.is_empty(),
            Direction::Back => !connection.back.held.is_empty(),
        };
        self.wires.iter().filter(|(_, connection)| pipe(connection)).map(|(&wire, _)| wire).collect()
    }

    fn flight(&mut self, from: Node, to: Node) -> u64 {
        let extra = self.slow.get(&(from, to)).copied().unwrap_or(0);
        between(&mut self.random, self.latency) + extra
    }

    fn path(&self, wire: Wire, direction: Direction) -> Option<(Node, Node)> {
        let connection = self.wires.get(&wire)?;
        let (from, to) = (Node::Sentinel(connection.from), connection.to);
        Some(match direction {
            Direction::There => (from, to),
            Direction::Back => (to, from),
        })
    }

    fn pipe(&mut self, wire: Wire, direction: Direction) -> Option<&mut Pipe> {
        let connection = self.wires.get_mut(&wire)?;
        Some(match direction {
            Direction::There => &mut connection.there,
            Direction::Back => &mut connection.back,
        })
    }
}

/// What stands on the wire, of packets that can be cut.
fn bytes_of(packet: &Packet) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match packet {
        Packet::Requests(requests) => {
            for request in requests {
                resp::request(&mut bytes, &request.iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
        }
        Packet::Replies(replies) => {
            let mut writer = Writer::new(&mut bytes, Proto::Resp2);
            replies.iter().for_each(|reply| writer.reply(reply));
        }
        Packet::Established | Packet::Refused | Packet::Piece(_) | Packet::End => return None,
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What arrives of one request on a connection that stands, and how many ends and pieces.
    fn arrives(request: &Request, prepare: impl Fn(&mut Net, Wire)) -> (Vec<Request>, usize, usize) {
        let (mut net, mut queue, now) = (Net::new((1, 9), 3), Queue::new(), Millis(0));
        let wire = net.dial(&mut queue, now, 0, Node::Server(0), ConnId(1), ConnKind::Command);
        net.accept(&mut queue, now, wire, true);
        net.established(&mut queue, now, wire);
        while queue.pop(Millis(100)).is_some() {}
        prepare(&mut net, wire);
        net.request(&mut queue, now, wire, vec![request.clone()]);
        let (mut whole, mut ends, mut pieces) = (Vec::new(), 0, 0);
        while let Some((_, event)) = queue.pop(Millis(100)) {
            let Event::Packet { wire, direction, packet } = event else { panic!("{event:?}") };
            let packet = match packet {
                Packet::Piece(bytes) => {
                    pieces += 1;
                    net.piece_together(wire, direction, &bytes)
                }
                packet => Some(packet),
            };
            match packet {
                Some(Packet::Requests(mut requests)) => whole.append(&mut requests),
                Some(Packet::End) => ends += 1,
                other => assert!(other.is_none(), "{other:?}"),
            }
        }
        (whole, ends, pieces)
    }

    #[test]
    fn a_message_in_pieces_is_the_message_unless_it_breaks_off() {
        let request: Request = vec![b"PUBLISH".into(), b"channel".into(), vec![b'x'; 300]];
        let (whole, ends, pieces) = arrives(&request, |net, _| net.tear_messages(0, Some(u64::MAX)));
        assert_eq!((whole, ends), (vec![request.clone()], 0));
        assert!(pieces > 1);
        let (whole, ends, _) = arrives(&request, |net, _| net.tear_messages(0, Some(1)));
        assert_eq!((whole, ends), (vec![], 2), "both sides are told");
    }

    #[test]
    fn what_goes_into_a_void_does_not_arrive_nor_the_end_of_it() {
        let request: Request = vec![b"PING".into()];
        assert_eq!(arrives(&request, |_, _| {}), (vec![request.clone()], 0, 0));
        let (whole, ends, _) = arrives(&request, |net, wire| net.swallow(wire, Direction::There));
        assert_eq!((whole, ends), (vec![], 0));
        let mut net = Net::new((1, 1), 3);
        let mut queue = Queue::new();
        let wire = net.dial(&mut queue, Millis(0), 0, Node::Server(0), ConnId(1), ConnKind::Command);
        net.swallow(wire, Direction::Back);
        assert_eq!(net.half_open(), BTreeSet::from([(0, Node::Server(0))]));
        net.close_from(&mut queue, Millis(0), wire);
        assert_eq!(net.half_open(), BTreeSet::new(), "nobody is misled any more");
    }
}
