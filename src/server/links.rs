//! The connections to masters, replicas and peers: the core's [`ConnId`]s on one side, sockets on the other.
//!
//! Bytes that the core sends before the connection stands wait here, and so do those that the kernel does
//! not take; [`Links::flush`] gives each connection one write a turn. Nothing here decides when to dial, to
//! hang up or what a reply means: all that is the core's.
//!
//! A turn begins [`limits::DIALS_PER_TURN`] connections at most (with TLS [`limits::TLS_DIALS_PER_TURN`]), at its end. With a
//! thousand masters in the file, four thousand are asked for in the first turn, and nobody would be answered until the last of
//! them was begun. Those over the limit wait their turn in order, command connections before those of Pub/Sub: a failover
//! needs only the former.

use super::slots::Slots;
use crate::base::{Millis, Sorted, SortedSet, limits};
use crate::core::{ConnId, ConnKind, Gone, Input, Sentinel};
use crate::net::tls::Connector;
use crate::net::{CloseReason, Reactor, Read, Token, Write};
use crate::resp::ReplyDecoder;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Peers whose TLS failed and of whom the log has spoken, at most.
const COMPLAINTS: usize = 1024;
/// Of the connections begun in one turn, this part is Pub/Sub's when both kinds wait: those are not to wait for ever.
const PUBSUB_SHARE: usize = 4;
/// How an alert begins, with which a TLS port answers plain text.
const TLS_ALERT: [u8; 2] = [21, 3];

#[derive(Debug)]
pub struct Links {
    by_conn: BTreeMap<ConnId, Box<Line>>,
    by_stream: Slots<ConnId>,
    /// Those with something to write, and since when.
    dirty: VecDeque<(ConnId, Millis)>,
    /// Connections to be begun, of commands and of Pub/Sub. One that was closed before its turn came is still in line.
    waiting: [VecDeque<ConnId>; 2],
    /// `bind-source-addr`.
    source: Option<IpAddr>,
    /// New links use TLS.
    pub tls: Option<Connector>,
    /// What was said of whom, so that a link that fails every second is not written of every second.
    complaints: Sorted<SocketAddr, String>,
    /// Nodes that have answered in the way that we speak; when they hang up, they have gone.
    understood: SortedSet<SocketAddr>,
    /// What the core has to hear and could not be told in the middle of an effect.
    untold: VecDeque<Input>,
    /// Where bytes land: lent to the decoder of the line they came on, and empty in between.
    incoming: Vec<u8>,
}

/// One connection.
#[derive(Debug)]
struct Line {
    /// `None`: it waits to be begun.
    stream: Option<Token>,
    to: SocketAddr,
    kind: ConnKind,
    up: bool,
    /// Something came from there.
    heard: bool,
    /// On the dirty list.
    queued: bool,
    decoder: ReplyDecoder,
    out: Vec<u8>,
}

impl Links {
    #[must_use]
    pub fn new(source: Option<IpAddr>, tls: Option<Connector>) -> Links {
        Links {
            by_conn: BTreeMap::new(),
            by_stream: Slots::new(),
            dirty: VecDeque::new(),
            waiting: [VecDeque::new(), VecDeque::new()],
            source,
            tls,
            complaints: Sorted::new(),
            understood: SortedSet::new(),
            untold: VecDeque::new(),
            incoming: Vec::new(),
        }
    }

    /// Connects, at the end of this turn or when those asked for before have had theirs.
    pub fn connect(&mut self, conn: ConnId, to: SocketAddr, kind: ConnKind) {
        let decoder = ReplyDecoder::new();
        let line = Line { stream: None, to, kind, up: false, heard: false, queued: false, decoder, out: Vec::new() };
        self.by_conn.insert(conn, Box::new(line));
        self.waiting[usize::from(kind == ConnKind::PubSub)].push_back(conn);
    }

    /// How many there are, those that wait to be begun included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.by_conn.len() as u64
    }

    /// Whether there is more to begin, to write or to tell than one turn may, so that the next must come at once.
    #[must_use]
    pub fn has_more(&self) -> bool {
        !self.dirty.is_empty() || !self.untold.is_empty() || self.has_waiting()
    }

    fn has_waiting(&self) -> bool {
        self.waiting.iter().any(|line| !line.is_empty())
    }

    /// Begins those that come next; the core has to hear of each of them, at once.
    pub fn begin_waiting(&mut self, reactor: &mut Reactor, mut begun: impl FnMut(ConnId)) {
        let mut left = if self.tls.is_some() { limits::TLS_DIALS_PER_TURN } else { limits::DIALS_PER_TURN };
        while left > 0 {
            let [commands, pubsub] = &mut self.waiting;
            let next = if left.is_multiple_of(PUBSUB_SHARE) {
                pubsub.pop_front().or_else(|| commands.pop_front())
            } else {
                commands.pop_front().or_else(|| pubsub.pop_front())
            };
            let Some(conn) = next else { return };
            if self.by_conn.contains_key(&conn) {
                left -= 1;
                begun(conn);
                self.begin(reactor, conn);
            }
        }
    }

    /// Starts to connect. When there is not even a socket, the core hears of it through [`Links::untold`].
    fn begin(&mut self, reactor: &mut Reactor, conn: ConnId) {
        let Some(line) = self.by_conn.get_mut(&conn) else { return };
        // The source address is for nodes of its family; the others are reached from wherever the route goes.
        let source = self.source.filter(|source| source.is_ipv4() == line.to.is_ipv4());
        let begun = match &self.tls {
            Some(connector) => reactor.connect_tls(line.to, source, connector),
            None => reactor.connect(line.to, source),
        };
        match begun {
            Ok(stream) => {
                line.stream = Some(stream);
                self.by_stream.insert(stream, conn);
            }
            Err(why) => {
                self.by_conn.remove(&conn);
                self.untold.push_back(Input::Closed { conn, why: Gone::Other(why.to_string()) });
            }
        }
    }

    /// Queues bytes; for a connection that is gone they are dropped.
    pub fn send(&mut self, now: Millis, conn: ConnId, bytes: Vec<u8>) {
        if let Some(line) = self.by_conn.get_mut(&conn) {
            if line.out.is_empty() {
                line.out = bytes;
            } else {
                line.out.extend_from_slice(&bytes);
            }
            if line.up && !line.queued {
                line.queued = true;
                self.dirty.push_back((conn, now));
            }
        }
    }

    /// Drops the connection without a word to the core.
    pub fn close(&mut self, reactor: &mut Reactor, conn: ConnId) {
        let Some(line) = self.by_conn.remove(&conn) else { return };
        let Some(stream) = line.stream else { return };
        self.by_stream.remove(stream);
        if reactor.is_shaking(stream) {
            self.complain(
                line.to,
                "TLS handshake failed: no answer; the node hangs, or speaks plain text on that port",
            );
        }
        reactor.close(stream);
    }

    /// The next input that could not be handed in where it arose.
    #[must_use]
    pub fn untold(&mut self) -> Option<Input> {
        self.untold.pop_front()
    }

    /// The connection stands; what waited for it goes out with the next flush.
    #[must_use]
    pub fn connected(&mut self, now: Millis, stream: Token, local: SocketAddr) -> Option<Input> {
        let &conn = self.by_stream.get(stream)?;
        let line = self.by_conn.get_mut(&conn)?;
        line.up = true;
        if !line.out.is_empty() && !line.queued {
            line.queued = true;
            self.dirty.push_back((conn, now));
        }
        Some(Input::Connected { conn, local: local.ip() })
    }

    /// The connection ended, or never came to be.
    #[must_use]
    pub fn closed(&mut self, stream: Token, why: &CloseReason) -> Option<Input> {
        let conn = self.by_stream.remove(stream)?;
        if let Some(line) = self.by_conn.remove(&conn) {
            match why {
                CloseReason::Tls(text) => self.complain(line.to, text),
                CloseReason::Eof | CloseReason::Reset if self.tls.is_none() && line.up && !line.heard => {
                    self.suspect(line.to);
                }
                _ => {}
            }
        }
        let why = match why {
            CloseReason::Refused => Gone::Refused,
            other => Gone::Other(other.to_string()),
        };
        Some(Input::Closed { conn, why })
    }

    /// Reads what is there and hands whole replies to the core.
    pub fn readable(&mut self, reactor: &mut Reactor, stream: Token, sentinel: &mut Sentinel, now: Millis) {
        let Some(&conn) = self.by_stream.get(stream) else { return };
        let Some(line) = self.by_conn.get_mut(&conn) else { return };
        loop {
            match reactor.read(stream, &mut self.incoming) {
                Read::Data(_) => {}
                // An end is reported by `closed`.
                Read::Blocked | Read::Eof | Read::Failed(_) => return,
            }
            let first = !std::mem::replace(&mut line.heard, true);
            let alert = self.incoming.starts_with(&TLS_ALERT);
            if first && !alert {
                // It has come about after all; the next failure is news again.
                self.complaints.remove(&line.to);
                if self.understood.len() >= COMPLAINTS {
                    self.understood.clear();
                }
                self.understood.insert(line.to);
            }
            line.decoder.lend(&mut self.incoming);
            loop {
                match line.decoder.next() {
                    Ok(Some(reply)) => sentinel.handle(now, Input::Reply { conn, kind: line.kind, reply }),
                    Ok(None) => break,
                    Err(error) => {
                        let to = line.to;
                        line.decoder.reclaim(&mut self.incoming);
                        if alert && self.tls.is_none() {
                            self.complain(
                                to,
                                "it answers with what looks like a TLS alert: perhaps tls-replication is to be yes here, \
                                 or the server's plain port to be used",
                            );
                        }
                        // Whoever answers like this is no server; dialling it again is the core's to decide.
                        self.close(reactor, conn);
                        sentinel.handle(now, Input::Closed { conn, why: Gone::Other(error.to_string()) });
                        return;
                    }
                }
            }
            line.decoder.reclaim(&mut self.incoming);
        }
    }

    /// Says in the log what is wrong between us and a node, once.
    fn complain(&mut self, to: SocketAddr, text: &str) {
        if self.complaints.get(&to).is_none_or(|said| said != text) {
            log::warn!("The link to {to} fails: {text}");
            self.remember(to, text);
        }
    }

    /// A node took the connection and hung up without a word. That is how OpenSSL treats plain text, but also how a server
    /// ends that was just started; so the second time in a row counts, and only of a node that never said a word.
    fn suspect(&mut self, to: SocketAddr) {
        if self.understood.contains(&to) {
            return;
        }
        match self.complaints.get(&to) {
            None => self.remember(to, ""),
            Some(_) => self.complain(
                to,
                "it hangs up before it has answered anything; perhaps that is a TLS port, and with tls-replication yes links \
                 use TLS",
            ),
        }
    }

    fn remember(&mut self, to: SocketAddr, text: &str) {
        if self.complaints.len() >= COMPLAINTS {
            self.complaints.clear();
        }
        self.complaints.insert(to, text.to_owned());
    }

    /// A write asked for can go on.
    pub fn writable(&mut self, reactor: &mut Reactor, stream: Token) {
        if let Some(line) = self.by_stream.get(stream).and_then(|conn| self.by_conn.get_mut(conn)) {
            line.write(reactor);
        }
    }

    /// One write for each connection that has something to say, for [`limits::LINK_WRITES_PER_TURN`] of them. The core has to
    /// hear of each that comes only now though its bytes have waited since an earlier moment.
    pub fn flush(&mut self, reactor: &mut Reactor, now: Millis, mut late: impl FnMut(ConnId, Millis)) {
        for _ in 0..limits::LINK_WRITES_PER_TURN {
            let Some((conn, since)) = self.dirty.pop_front() else { return };
            if let Some(line) = self.by_conn.get_mut(&conn) {
                line.queued = false;
                line.write(reactor);
                if since < now {
                    late(conn, since);
                }
            }
        }
    }

    /// Since when the first of those waits that have something to say.
    #[must_use]
    pub fn unsent_since(&self) -> Option<Millis> {
        self.dirty.front().map(|&(_, since)| since)
    }
}

impl Line {
    fn write(&mut self, reactor: &mut Reactor) {
        let Some(stream) = self.stream else { return };
        let wrote = match reactor.write(stream, &self.out) {
            Write::Wrote(n) => n,
            Write::Blocked => 0,
            // The reactor reports the end by `closed`.
            Write::Failed(_) => return,
        };
        // The core bounds what may be pending on a link, so there is never much to move to the front.
        self.out.drain(..wrote);
        if self.out.is_empty() {
            self.out = Vec::new();
        } else {
            reactor.arm_write(stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::sys;
    use std::net::TcpListener;

    const TURN: usize = limits::DIALS_PER_TURN;

    #[test]
    fn a_turn_begins_so_many_connections_and_the_others_come_in_order_those_for_commands_first() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let mut reactor = Reactor::new(sys::clock).unwrap();
        let mut links = Links::new(None, None);
        let is_begun =
            |links: &Links, conn: u64| links.by_conn.get(&ConnId(conn)).is_some_and(|line| line.stream.is_some());
        // As a node asks for them: its command connection and the other one.
        for conn in 0..10 * TURN as u64 {
            let kind = if conn.is_multiple_of(2) { ConnKind::Command } else { ConnKind::PubSub };
            links.connect(ConnId(conn), to, kind);
            links.send(Millis(1), ConnId(conn), vec![b'x']);
        }
        let begun = |links: &Links| (0..10 * TURN as u64).filter(|&conn| is_begun(links, conn)).collect::<Vec<_>>();
        assert_eq!(begun(&links), [], "nothing before the end of the turn");
        links.flush(&mut reactor, Millis(1), |_, _| unreachable!("nobody has anything to say"));
        let (mut commands, mut told) = (Vec::new(), Vec::new());
        for turn in 1..=2 {
            assert!(links.has_waiting());
            links.begin_waiting(&mut reactor, |conn| told.push(conn.0));
            assert_eq!(begun(&links).len(), turn * TURN);
            told.sort_unstable();
            assert_eq!(told, begun(&links), "the core hears of each as it begins");
            let of_pubsub;
            (commands, of_pubsub) = begun(&links).into_iter().partition::<Vec<_>, _>(|conn| conn.is_multiple_of(2));
            assert_eq!(of_pubsub.len(), turn * TURN / PUBSUB_SHARE, "these do not wait for ever");
            assert!(commands.iter().zip((0..).step_by(2)).all(|(&conn, next)| conn == next), "{commands:?}");
            assert!(of_pubsub.iter().zip((1..).step_by(2)).all(|(&conn, next)| conn == next), "{of_pubsub:?}");
        }

        // What is closed before its turn is never begun, and takes nobody's place.
        let next = commands.last().unwrap() + 2;
        links.close(&mut reactor, ConnId(next));
        links.begin_waiting(&mut reactor, |_| ());
        assert!(!links.by_conn.contains_key(&ConnId(next)));
        assert_eq!(begun(&links).len(), 3 * TURN);
        for turn in 4..=10 {
            assert!(links.has_waiting());
            links.begin_waiting(&mut reactor, |_| ());
            assert_eq!(begun(&links).len(), (turn * TURN).min(10 * TURN - 1));
        }
        assert!(!links.has_waiting());
        // What had to wait for its connection leaves, so many connections a turn.
        let lines: Vec<Token> = links.by_conn.values().filter_map(|line| line.stream).collect();
        let local = SocketAddr::from(([127, 0, 0, 1], 1));
        assert!(lines.into_iter().all(|stream| links.connected(Millis(2), stream, local).is_some()));
        let all = links.dirty.len();
        assert_eq!(all, 10 * TURN - 1);
        let (mut left, mut now) = (all, Millis(2));
        while left > 0 {
            assert!(links.has_more());
            assert_eq!(links.unsent_since(), Some(Millis(2)));
            let mut late = 0;
            links.flush(&mut reactor, now, |_, since| late += usize::from(since == Millis(2)));
            let sent = left.min(limits::LINK_WRITES_PER_TURN);
            assert_eq!(late, if left == all { 0 } else { sent }, "the first left in their turn");
            left -= sent;
            now = now + 5;
            assert_eq!(links.dirty.len(), left);
        }
        assert!(!links.has_more());
        assert_eq!(links.unsent_since(), None);
        // With nobody before it, it comes with this turn.
        links.connect(ConnId(next), to, ConnKind::Command);
        links.begin_waiting(&mut reactor, |_| ());
        assert!(is_begun(&links, next));
    }
}
