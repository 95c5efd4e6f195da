//! The world: one clock, one queue, everything in it. Here events are taken from the queue and handed to whom
//! they concern; what a Sentinel's shell does with them is in `process`, what breaks in `nemesis`.

use super::disk::Disk;
use super::facts::{self, Checker, Fact, Seen, Violation};
use super::forgotten::Forgotten;
use super::groups::Group;
use super::nemesis::Nemesis;
use super::net::{Direction, Net, Packet, Request, Wire};
use super::node::{Node, sentinel_id};
use super::options::{FaultKind, Options, Planted};
use super::process::{Item, Process};
use super::queue::Queue;
use super::replication::{self, Rules};
use super::server::{Link, Outcome, Role, Server, State};
use super::trace::{Trace, Weight};
use super::witness::Witness;
use std::fmt;
use watchfire::base::random::mix;
use watchfire::base::{Millis, Random};
use watchfire::core::{ConnId, Gone, RunId, Sentinel, Snapshot};
use watchfire::resp::Reply;

pub type Outcomes = Result<(), Violation>;

#[derive(Debug)]
pub enum Event {
    /// A dial reaches its target, for the first time or again.
    Dial {
        wire: Wire,
        attempt: u32,
    },
    /// The kernel of the one who dials gives up: its own verdict, which needs no packet from the other side.
    NoWay {
        wire: Wire,
    },
    Packet {
        wire: Wire,
        direction: Direction,
        packet: Packet,
    },
    /// What a mended cut held back comes through.
    Release {
        wire: Wire,
        direction: Direction,
    },
    /// A shell has something to read.
    Turn {
        who: usize,
        life: u64,
    },
    /// A shell wants to be woken.
    Wake {
        who: usize,
        life: u64,
        at: Millis,
    },
    /// A dial has waited in the line of the one who dials.
    Begun {
        who: usize,
        life: u64,
        conn: ConnId,
    },
    /// A save that took time is over.
    Saved {
        who: usize,
        life: u64,
        snapshot: Box<Snapshot>,
        ok: bool,
    },
    /// Planted: a save that should have come before the messages.
    LateSave {
        who: usize,
        life: u64,
        snapshot: Box<Snapshot>,
    },
    /// A first start.
    Start {
        who: usize,
    },
    Replicate,
    /// An operator who is a little later than another.
    Force {
        who: usize,
        group: usize,
    },
    NextFault,
    /// An operator monitors a master again where it was removed.
    MonitorAgain {
        who: usize,
        group: usize,
    },
    /// A fault has lasted long enough.
    Undo {
        fault: u64,
    },
}

pub struct World<'t> {
    pub now: Millis,
    pub step: u64,
    pub options: Options,
    pub queue: Queue<Event>,
    pub net: Net,
    pub servers: Vec<Server>,
    pub processes: Vec<Process>,
    pub nemesis: Nemesis,
    pub witness: Witness,
    pub(super) forgotten: Forgotten,
    pub trace: &'t mut Trace,
    /// Events of the Sentinels, for tests that read them.
    pub events: Vec<Heard>,
    /// Whoever says this next dies with it.
    pub trap: Option<&'static str>,
    /// Requests that the Sentinels sent.
    pub requests: u64,
    /// Turns of their loops.
    pub turns: u64,
    /// How long each master that died alone in its fate was without a successor, beyond its down-after, ms.
    pub waits: Vec<u64>,
    pub(super) random: Random,
    checkers: Vec<Box<dyn Checker>>,
}

/// An event as a subscriber would hear it.
#[derive(Clone, Debug)]
pub struct Heard {
    pub at: Millis,
    pub who: usize,
    pub channel: &'static str,
    pub payload: String,
}

impl<'t> World<'t> {
    pub fn new(options: Options, trace: &'t mut Trace) -> World<'t> {
        let stream = |n: u64| mix(options.seed.wrapping_mul(31).wrapping_add(n));
        let mut random = Random::seeded(stream(1));
        let now = Millis(0);
        trace.several_masters = options.groups.len() > 1;
        let stubborn = options.planted == Some(Planted::StubbornServers);
        let servers = (0..options.servers())
            .map(|index| {
                let group = options.group_of(index);
                let master = group.master_at_first();
                let role = if Node::Server(index) == master {
                    Role::Master
                } else {
                    Role::Replica(master.ip().to_string(), master.port())
                };
                let mut server = Server::new(index, role, now, options.refuse_stale, stubborn);
                server.link = Link::Up { heard: now };
                if options.priority_zero && index + 1 == group.servers.end {
                    server.priority = 0;
                }
                server
            })
            .collect();
        let plant = match options.planted {
            Some(Planted::Disk(plant)) => Some(plant),
            _ => None,
        };
        let mut queue = Queue::new();
        let processes = (0..options.sentinels)
            .map(|who| {
                queue.push(now + random.below(500), Event::Start { who });
                let at_first = |group: &Group| {
                    let master = group.master_at_first();
                    format!("{} {}", master.ip(), master.port())
                };
                let text = first_file(&options, who, sentinel_id(who, stream(2)), at_first);
                Process::new(who, Disk::new(text, options.save_ms, plant, stream(100 + who as u64)))
            })
            .collect();
        queue.push(now, Event::Replicate);
        let mut checkers = facts::all_checkers(&options);
        checkers.retain(|checker| !options.muted.iter().any(|name| name == checker.name()));
        World {
            now,
            step: 0,
            net: Net::new(options.latency, stream(3)),
            nemesis: Nemesis::new(stream(4)),
            witness: Witness::new(options.servers(), options.sentinels),
            forgotten: Forgotten::new(options.sentinels),
            servers,
            processes,
            queue,
            trace,
            events: Vec::new(),
            trap: None,
            requests: 0,
            turns: 0,
            waits: Vec::new(),
            random,
            checkers,
            options,
        }
    }

    /// Lets the world go on until `until`.
    pub fn run_until(&mut self, until: Millis) -> Outcomes {
        while let Some((at, event)) = self.queue.pop(until) {
            assert!(at >= self.now, "the queue is ordered");
            self.now = at;
            self.step += 1;
            self.happen(event)?;
        }
        self.now = until;
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Outcomes {
        match event {
            Event::Dial { wire, attempt } => self.dialled(wire, attempt),
            Event::NoWay { wire } => {
                if let Some((from, conn)) = self.net.get(wire).filter(|c| c.from_open).map(|c| (c.from, c.conn)) {
                    self.net.ended(wire, Direction::Back);
                    self.post(from, Item::Closed(conn, Gone::Other("No route to host".into())));
                }
            }
            Event::Packet { wire, direction, packet } => match self.net.arrive(wire, direction, packet) {
                Some(packet) => return self.hand_over(wire, direction, packet),
                None => self.noise(format_args!("wire {} holds", wire.0)),
            },
            Event::Release { wire, direction } => {
                for packet in self.net.release(wire, direction) {
                    self.hand_over(wire, direction, packet)?;
                }
            }
            Event::Turn { who, life } => return self.turn_due(who, life),
            Event::Wake { who, life, at } => return self.wake_due(who, life, at),
            Event::Begun { who, life, conn } => {
                if self.processes[who].life == life {
                    self.post(who, Item::Begun(conn));
                }
            }
            Event::Saved { who, life, snapshot, ok } => return self.save_done(who, life, *snapshot, ok),
            Event::LateSave { who, life, snapshot } => self.late_save(who, life, *snapshot),
            Event::Start { who } => return self.start(who),
            Event::Replicate => {
                let rules = Rules { sync_ms: self.options.sync_ms, timeout: self.options.repl_timeout };
                let handed = replication::step(self.now, &mut self.servers, &self.net, &rules, &mut self.random);
                self.look_around();
                for (from, to) in handed {
                    let (from, to) = (Node::Server(from), Node::Server(to));
                    self.line(Weight::Story, from, "role", format_args!("has handed over to {to}"));
                }
                for index in 0..self.servers.len() {
                    for (wire, request) in self.servers[index].resumed(self.now) {
                        self.serve(index, wire, vec![request])?;
                    }
                }
                self.queue.push(self.now + replication::STEP_MS, Event::Replicate);
            }
            Event::Force { who, group } => return self.force(who, group, false),
            Event::MonitorAgain { who, group } => self.monitor_again(who, group),
            Event::NextFault => return self.next_fault(),
            Event::Undo { fault } => return self.undo(fault),
        }
        Ok(())
    }

    fn dialled(&mut self, wire: Wire, attempt: u32) {
        let Some(to) = self.net.dialled(&mut self.queue, self.now, wire, attempt) else { return };
        let listening = match to {
            Node::Sentinel(index) => self.processes.get(index).is_some_and(|process| process.sentinel.is_some()),
            Node::Server(index) => self.servers.get(index).is_some_and(|server| server.state != State::Down),
            Node::Nobody(_) => false,
        };
        if let (Node::Server(index), true) = (to, listening) {
            self.servers[index].accepted(wire);
        }
        self.net.accept(&mut self.queue, self.now, wire, listening);
    }

    fn hand_over(&mut self, wire: Wire, direction: Direction, packet: Packet) -> Outcomes {
        let packet = match packet {
            Packet::Piece(bytes) => match self.net.piece_together(wire, direction, &bytes) {
                Some(packet) => packet,
                None => return Ok(()),
            },
            packet => packet,
        };
        let Some(connection) = self.net.get(wire) else { return Ok(()) };
        let (from, to, conn, kind) = (connection.from, connection.to, connection.conn, connection.kind);
        let (from_open, to_open) = (connection.from_open, connection.to_open);
        match (direction, packet) {
            (Direction::There, Packet::End) => {
                self.net.ended(wire, Direction::There);
                match to {
                    Node::Server(index) => self.servers[index].left(wire),
                    Node::Sentinel(_) | Node::Nobody(_) => {}
                }
            }
            // A kernel answers data for a connection it does not know with a reset.
            (Direction::There, _) if !to_open => {
                self.net.transmit(&mut self.queue, self.now, wire, Direction::Back, Packet::End);
            }
            (Direction::There, Packet::Requests(requests)) => match to {
                Node::Server(index) => return self.serve(index, wire, requests),
                Node::Sentinel(index) => self.post(index, Item::Requests(wire, requests)),
                Node::Nobody(_) => {}
            },
            (Direction::There, _) => {}
            (Direction::Back, packet) if !from_open => {
                if matches!(packet, Packet::End | Packet::Refused) {
                    self.net.ended(wire, Direction::Back);
                }
            }
            (Direction::Back, Packet::Established) => {
                self.net.established(&mut self.queue, self.now, wire);
                self.post(from, Item::Connected(conn));
            }
            (Direction::Back, Packet::Refused) => {
                self.net.ended(wire, Direction::Back);
                self.post(from, Item::Closed(conn, Gone::Refused));
            }
            (Direction::Back, Packet::End) => {
                self.net.ended(wire, Direction::Back);
                self.post(from, Item::Closed(conn, Gone::Other("Connection reset by peer".into())));
            }
            (Direction::Back, Packet::Replies(replies)) => {
                for reply in replies {
                    self.line(
                        Weight::Noise,
                        Pair(to, Node::Sentinel(from)),
                        "reply",
                        format_args!("{}", Brief(&reply)),
                    );
                    self.post(from, Item::Reply(conn, kind, reply));
                }
            }
            (Direction::Back, Packet::Requests(_) | Packet::Piece(_)) => {
                unreachable!("only who dialled asks, and in one piece")
            }
        }
        Ok(())
    }

    /// Requests have reached a server.
    pub(super) fn serve(&mut self, index: usize, wire: Wire, requests: Vec<Request>) -> Outcomes {
        if self.servers[index].state == State::Hung {
            self.servers[index].keep(wire, requests);
            return Ok(());
        }
        let mut outcomes = Vec::new();
        for request in &requests {
            let replicas = replication::replicas_of(&self.servers, index);
            if let Err((checker, what)) = facts::order_is_sane(&self.servers[index], request) {
                self.judged(checker, Err(what))?;
            }
            self.servers[index].run(self.now, wire, request, &replicas, &mut outcomes);
        }
        for outcome in outcomes {
            match outcome {
                Outcome::Reply(to, reply) => {
                    let packet = Packet::Replies(vec![reply]);
                    self.net.transmit(&mut self.queue, self.now, to, Direction::Back, packet);
                }
                Outcome::Drop(other) => self.net.close_to(&mut self.queue, self.now, other, false),
                Outcome::Role(by) => {
                    let by = self.net.get(by).map_or(0, |connection| connection.from);
                    let role = match &self.servers[index].role {
                        Role::Master => "master".into(),
                        Role::Replica(host, port) => format!("replica of {host}:{port}"),
                    };
                    let offset = self.servers[index].offset;
                    let details = format_args!("{role} by order of {}, offset {offset}", Node::Sentinel(by));
                    let about = self.options.group_of(index).name;
                    self.trace.line(self.now, Weight::Story, about, Node::Server(index), "role", details);
                }
            }
        }
        Ok(())
    }

    /// The Sentinels that are up.
    pub fn living(&self) -> Vec<(usize, &Sentinel)> {
        let up = self.processes.iter().filter_map(|process| Some((process.who, process.sentinel.as_deref()?)));
        up.collect()
    }

    /// Whether everybody agrees; otherwise what is missing.
    pub fn at_rest(&self) -> Result<(), String> {
        let living = self.living();
        if living.len() < self.processes.len() {
            return Err("not all Sentinels are up".into());
        }
        let forgotten = self.forgotten_everywhere();
        self.options.groups.iter().try_for_each(|group| {
            let watching: Vec<_> = living.iter().filter(|(who, _)| group.is_watched_by(*who)).copied().collect();
            facts::group_at_rest(group.name, &watching, &self.servers[group.servers.clone()], &forgotten)?;
            // A connection that swallows everything has to be given up by whoever keeps it.
            let kept = self.options.faults.iter().any(|(kind, _)| *kind == FaultKind::HalfOpen);
            if kept { facts::all_are_heard(group.name, &watching) } else { Ok(()) }
        })
    }

    /// Whether everybody has found everybody.
    pub fn all_met(&self) -> Result<(), String> {
        for (who, sentinel) in self.living() {
            for group in self.options.groups.iter().filter(|group| group.is_watched_by(who)) {
                let (who, name) = (who + 1, group.name);
                let Some(master) = sentinel.master_by_name(name.as_bytes()) else {
                    return Err(format!("s{who} knows no {name}"));
                };
                let (peers, replicas) = (master.peers.len(), master.replicas.len());
                if peers + 1 != group.watchers.len() || replicas + 1 != group.servers.len() {
                    return Err(format!("s{who} knows {peers} peers and {replicas} replicas of {name}"));
                }
            }
        }
        Ok(())
    }

    pub fn excused(&self) -> u64 {
        self.checkers.iter().map(|checker| checker.excused()).sum::<u64>() + self.forgotten_everywhere().len() as u64
    }

    /// Shows a fact to every checker.
    pub(super) fn observe(&mut self, who: usize, fact: Fact) -> Outcomes {
        let process = &self.processes[who];
        let Some(sentinel) = process.sentinel.as_deref() else { return Ok(()) };
        let seen = Seen { now: self.now, who, life: process.life, fact, sentinel, disk: process.disk.load() };
        for checker in &mut self.checkers {
            if let Err(what) = checker.see(&seen) {
                return Err(Violation { checker: checker.name(), at: self.now, step: self.step, what });
            }
        }
        Ok(())
    }

    /// The verdict of a property that no checker of `facts` holds, unless it is to look away.
    pub fn judged(&self, checker: &'static str, verdict: Result<(), String>) -> Outcomes {
        match verdict {
            Err(what) if !self.options.muted.iter().any(|name| name == checker) => Err(self.violation(checker, what)),
            _ => Ok(()),
        }
    }

    pub fn violation(&self, checker: &'static str, what: String) -> Violation {
        Violation { checker, at: self.now, step: self.step, what }
    }

    pub fn line(&mut self, weight: Weight, who: impl fmt::Display, what: &str, details: fmt::Arguments) {
        self.trace.line(self.now, weight, "", who, what, details);
    }

    /// The same about one master.
    pub fn line_about(&mut self, about: &str, who: impl fmt::Display, what: &str, details: fmt::Arguments) {
        self.trace.line(self.now, Weight::Story, about, who, what, details);
    }

    fn noise(&mut self, details: fmt::Arguments) {
        self.trace.line(self.now, Weight::Noise, "", "net", "packet", details);
    }
}

/// What the operator wrote before the first start, comments included. `address`: where each master is, as host and port.
pub fn first_file(options: &Options, who: usize, myid: RunId, address: impl Fn(&Group) -> String) -> String {
    let part = |group: &Group| {
        let (name, master, quorum) = (group.name, address(group), group.quorum);
        let (down_after, timeout) = (options.down_after_of(group), options.failover_timeout);
        let ours: String = [("down-after-refused", options.down_after_refused), ("ping-period", options.ping_period)]
            .iter()
            .filter(|(_, ms)| *ms > 0)
            .map(|(setting, ms)| format!("sentinel {setting} {name} {ms}\n"))
            .collect();
        format!(
            "# The group.\n\
             sentinel monitor {name} {master} {quorum}\nsentinel down-after-milliseconds {name} {down_after}\n\
             sentinel failover-timeout {name} {timeout}\nsentinel parallel-syncs {name} {}\n{ours}",
            options.parallel_syncs
        )
    };
    let parts: String = options.groups.iter().filter(|group| group.is_watched_by(who)).map(part).collect();
    format!("# One of {} Sentinels.\nport 26379\nsentinel myid {myid}\n\n{parts}# The end.\n", options.sentinels)
}

/// `s1>r2` in the story.
pub struct Pair(pub Node, pub Node);

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}>{}", self.0, self.1)
    }
}

/// A reply in a few words.
struct Brief<'a>(&'a Reply);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Reply::Simple(text) | Reply::Error(text) => f.write_str(&String::from_utf8_lossy(text)),
            Reply::Integer(number) => write!(f, "{number}"),
            Reply::Bulk(text) if text.len() > 200 => write!(f, "({} bytes)", text.len()),
            Reply::Bulk(text) => f.write_str(&String::from_utf8_lossy(text)),
            Reply::Array(parts) => parts.iter().try_for_each(|part| write!(f, "[{}]", Brief(part))),
            other => write!(f, "{other:?}"),
        }
    }
}

/// A request on one line.
pub struct Words<'a>(pub &'a Request);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, word) in self.0.iter().enumerate() {
            let space = if n == 0 { "" } else { " " };
            write!(f, "{space}{}", String::from_utf8_lossy(word))?;
        }
        Ok(())
    }
}
