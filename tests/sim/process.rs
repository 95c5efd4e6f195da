//! One Sentinel process: what the real shell does around the core, in the order in which it must.
//!
//! A turn: hand in what arrived, tick when it is time, drain the effects one by one, then answer peers.
//! A save that takes time stops the process until it is over. A crash may fall between any two effects.

use super::check_cause::Ear;
use super::check_others::{self, Others};
use super::disk::Disk;
use super::facts::{self, Fact};
use super::groups::{self, Group};
use super::meddling::{Order, obey};
use super::net::{Direction, Packet, Request, Wire};
use super::node::{Node, sentinel_id};
use super::options::{Planted, between};
use super::trace::Weight;
use super::world::{Event, Heard, Outcomes, Pair, Words, World};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use watchfire::base::Millis;
use watchfire::core::{Answer, ConnId, ConnKind, Effect, Gone, Identity, Input, Plant, RunId, Sentinel, Snapshot};
use watchfire::resp::{Argv, Reply, RequestDecoder};

/// Mistakes of a shell, to show that the checkers see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellPlant {
    /// Messages and answers leave before the save they rest on is durable.
    AnswerBeforeSaving,
    /// Whatever ends an attempt to connect is reported as a refusal.
    CallEverythingRefused,
    /// A process that starts does not read the epochs in its file.
    ForgetEpochsOnRestart,
}

/// How fast a process is that has more to do than it can: so many connections are read in a turn, which takes so many ms.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub conns: usize,
    pub turn_ms: u64,
}

/// What waits to be read.
#[derive(Debug)]
pub enum Item {
    Begun(ConnId),
    Connected(ConnId),
    Closed(ConnId, Gone),
    Reply(ConnId, ConnKind, Reply),
    /// From a peer that is connected to us.
    Requests(Wire, Vec<Request>),
    /// What an operator wants of one master.
    Order(&'static str, Order),
}

/// An answer to a peer, held until the effects were drained.
#[derive(Debug)]
enum Held {
    Ready(Reply),
    /// With the master that was asked about, if it is one of this world.
    Vote(Option<&'static str>, Answer),
}

/// kill -9 after this many more effects, counted from the next save when `at_save`.
#[derive(Clone, Copy, Debug)]
pub struct CrashPlan {
    pub at_save: bool,
    pub effects: u64,
}

#[derive(Debug)]
enum Saving {
    /// The process waits for its disk.
    UnderWay(Box<Snapshot>),
    /// The disk is done; the process, frozen, has not noticed.
    Done(bool),
}

#[derive(Debug)]
pub struct Process {
    pub who: usize,
    pub life: u64,
    pub sentinel: Option<Box<Sentinel>>,
    pub disk: Disk,
    /// How long a dial waits before it begins, ms: lowest and highest.
    pub line_ms: (u64, u64),
    /// `None`: everything is read in no time.
    pub pace: Option<Pace>,
    busy_until: Millis,
    pub frozen: bool,
    /// The masters that an operator has removed here, to come back to them.
    pub removed: BTreeSet<&'static str>,
    /// A new Sentinel in the place of one that is lost, with the newest epoch of that moment.
    pub replaced: Option<u64>,
    pub plan: Option<CrashPlan>,
    /// With the moment at which it came.
    inbox: VecDeque<(Millis, Item)>,
    wires: BTreeMap<ConnId, Wire>,
    held: Vec<(Wire, Held)>,
    pub(super) ear: Ear,
    saving: Option<Saving>,
    turn_queued: bool,
    wake: Option<Millis>,
    /// Turns without progress of the clock.
    spins: (Millis, u32),
}

/// So many turns within one millisecond, without anything to read, are a core that spins.
const SPINS: u32 = 100;

impl Process {
    pub fn new(who: usize, disk: Disk) -> Process {
        Process {
            who,
            life: 0,
            sentinel: None,
            disk,
            line_ms: (0, 0),
            pace: None,
            busy_until: Millis(0),
            frozen: false,
            removed: BTreeSet::new(),
            replaced: None,
            plan: None,
            inbox: VecDeque::new(),
            wires: BTreeMap::new(),
            held: Vec::new(),
            ear: Ear::default(),
            saving: None,
            turn_queued: false,
            wake: None,
            spins: (Millis(0), 0),
        }
    }

    pub fn is_idle(&self) -> bool {
        self.sentinel.is_some() && !self.frozen && self.saving.is_none()
    }

    /// What this turn reads: everything that others want of us, and of the connections that we made as many as its pace allows,
    /// those first on which something has waited longest.
    fn read(&mut self) -> Vec<Item> {
        let most = self.pace.map_or(usize::MAX, |pace| pace.conns);
        let mut served = BTreeSet::new();
        let (read, left): (Vec<_>, Vec<_>) = self.inbox.drain(..).partition(|(_, item)| match item {
            Item::Connected(conn) | Item::Closed(conn, _) | Item::Reply(conn, ..) => {
                served.contains(conn) || (served.len() < most && served.insert(*conn))
            }
            Item::Begun(_) | Item::Requests(..) | Item::Order(..) => true,
        });
        self.inbox = left.into();
        read.into_iter().map(|(_, item)| item).collect()
    }
}

impl World<'_> {
    /// A process begins from what its disk holds.
    pub(super) fn start(&mut self, who: usize) -> Outcomes {
        let seed = self.random.next_u64();
        let process = &mut self.processes[who];
        if process.sentinel.is_some() {
            return Ok(());
        }
        let mut snapshot = process.disk.load_after_crash().clone();
        let replaced = process.replaced.take();
        if self.options.planted == Some(Planted::Shell(ShellPlant::ForgetEpochsOnRestart)) {
            snapshot.current_epoch = 0;
            for master in &mut snapshot.masters {
                (master.config_epoch, master.leader_epoch) = (0, 0);
            }
        }
        let myid = snapshot.myid.unwrap_or_else(|| sentinel_id(who, 0));
        let identity = Identity { myid, port: Node::Sentinel(who).port(), own_password: Vec::new() };
        let mut sentinel = Sentinel::new(identity, &snapshot, seed, self.now);
        let tunables =
            watchfire::core::Tunables { tilt_period: self.options.tilt_period, ..sentinel.tunables().clone() };
        sentinel.set_tunables(self.now, tunables);
        sentinel.set_looks_per_turn(self.options.looks_per_turn);
        match self.options.planted {
            Some(Planted::Core(plant)) => sentinel.plant(plant),
            _ if who + self.options.own_timers >= self.options.sentinels => sentinel.plant(Plant::OwnTimers),
            _ => {}
        }
        process.sentinel = Some(Box::new(sentinel));
        process.ear = Ear::default();
        process.life += 1;
        process.frozen = false;
        process.plan = None;
        let (life, epoch) = (process.life, snapshot.current_epoch);
        self.line(Weight::Story, Node::Sentinel(who), "start", format_args!("life {life}, epoch {epoch}"));
        if let Some(epoch) = replaced {
            self.observe(who, Fact::Replaced { epoch })?;
        }
        self.observe(who, Fact::Started)?;
        self.turn(who)
    }

    /// kill -9: memory is gone, the kernel ends the connections, the disk keeps what was synced.
    pub(super) fn crash(&mut self, who: usize) {
        let coin = self.random.below(2) == 0;
        let process = &mut self.processes[who];
        if process.sentinel.take().is_none() {
            return;
        }
        let half_done = match process.saving.take() {
            // The rename was on its way: it happened, or it did not.
            Some(Saving::UnderWay(snapshot)) if coin && !process.disk.failing => {
                // A file that cannot be read again shows when a save that is reported writes the same.
                let _ = process.disk.replace(&snapshot);
                ", its save done"
            }
            Some(Saving::UnderWay(_)) => ", its save undone",
            _ => "",
        };
        process.inbox.clear();
        process.wires.clear();
        process.held.clear();
        process.turn_queued = false;
        process.busy_until = Millis(0);
        process.wake = None;
        process.plan = None;
        self.line(Weight::Story, Node::Sentinel(who), "crash", format_args!("kill -9{half_done}"));
        for wire in self.net.dialled_by(who) {
            self.net.close_from(&mut self.queue, self.now, wire);
        }
        for wire in self.net.accepted_by(Node::Sentinel(who)) {
            self.net.close_to(&mut self.queue, self.now, wire, false);
        }
    }

    /// Puts something where the shell will read it.
    pub(super) fn post(&mut self, who: usize, item: Item) {
        let process = &mut self.processes[who];
        if process.sentinel.is_none() {
            return;
        }
        process.inbox.push_back((self.now, item));
        self.queue_turn(who);
    }

    pub(super) fn queue_turn(&mut self, who: usize) {
        let process = &mut self.processes[who];
        if !process.turn_queued {
            process.turn_queued = true;
            self.queue.push(self.now.max(process.busy_until), Event::Turn { who, life: process.life });
        }
    }

    pub(super) fn turn_due(&mut self, who: usize, life: u64) -> Outcomes {
        if self.processes[who].life != life {
            return Ok(());
        }
        self.processes[who].turn_queued = false;
        self.turn(who)
    }

    pub(super) fn wake_due(&mut self, who: usize, life: u64, at: Millis) -> Outcomes {
        let process = &mut self.processes[who];
        if process.life != life || process.wake != Some(at) {
            return Ok(());
        }
        process.wake = None;
        self.turn(who)
    }

    /// One turn of the loop.
    pub(super) fn turn(&mut self, who: usize) -> Outcomes {
        let now = self.now;
        let process = &mut self.processes[who];
        if process.frozen || process.sentinel.is_none() {
            return Ok(());
        }
        if now < process.busy_until {
            self.queue_turn(who);
            return Ok(());
        }
        self.turns += 1;
        match process.saving {
            Some(Saving::UnderWay(_)) => return Ok(()),
            Some(Saving::Done(ok)) => {
                process.saving = None;
                if let Some(sentinel) = &mut process.sentinel {
                    sentinel.saved(now, ok);
                }
                return self.drain(who);
            }
            None => {}
        }
        process.ear.turn_begins();
        let removed: Vec<&'static str> = process
            .inbox
            .iter()
            .filter_map(|(_, item)| if let Item::Order(name, Order::Remove) = item { Some(*name) } else { None })
            .collect();
        let items = process.read();
        let Some(sentinel) = &mut process.sentinel else { return Ok(()) };
        let mut verdict = Ok(());
        for item in items {
            let others = check_others::concerned(&item, &self.options.groups, |conn| {
                process.wires.get(&conn).and_then(|&wire| self.net.get(wire)).map(|connection| connection.to)
            });
            let others = others.and_then(|(about, reach)| Others::of(sentinel, about, reach));
            match item {
                Item::Requests(wire, requests) => {
                    for request in &requests {
                        process.held.push((wire, answer(sentinel, now, request, &self.options.groups)));
                    }
                }
                Item::Order(name, order) => {
                    if let Some(group) = self.options.named(name) {
                        obey(sentinel, now, group, order, &self.options);
                    }
                }
                // Nothing is reported about a connection that the core closed meanwhile.
                Item::Begun(conn) | Item::Connected(conn) | Item::Closed(conn, _) | Item::Reply(conn, ..)
                    if !process.wires.contains_key(&conn) => {}
                Item::Begun(conn) => {
                    process.ear.begins(conn, now);
                    sentinel.handle(now, Input::Begun { conn });
                }
                Item::Connected(conn) => {
                    process.ear.connected(conn);
                    sentinel.handle(now, Input::Connected { conn, local: Node::Sentinel(who).ip() });
                }
                Item::Closed(conn, why) => {
                    process.wires.remove(&conn);
                    process.ear.closed(now, conn, &why, self.options.down_after_refused);
                    let blind = self.options.planted == Some(Planted::Shell(ShellPlant::CallEverythingRefused));
                    let why = if blind { Gone::Refused } else { why };
                    sentinel.handle(now, Input::Closed { conn, why });
                }
                Item::Reply(conn, kind, reply) => {
                    process.ear.replied(now, conn, &reply);
                    sentinel.handle(now, Input::Reply { conn, kind, reply });
                }
            }
            if let Some(others) = others {
                verdict = verdict.and(others.untouched(sentinel));
            }
        }
        // What is left is in the order in which it came.
        let heard = process.inbox.front().map_or(now, |(came, _)| *came);
        sentinel.heard_up_to(heard);
        if sentinel.next_wakeup() <= now {
            sentinel.tick(now);
        }
        let unread = process.inbox.iter().filter_map(|(came, item)| match item {
            Item::Reply(conn, _, reply) => Some((*came, *conn, reply)),
            _ => None,
        });
        process.ear.turn_judged(unread);
        process.busy_until = now + process.pace.map_or(0, |pace| pace.turn_ms);
        self.judged("others-untouched", verdict.map_err(|what| format!("s{}: {what}", who + 1)))?;
        for name in removed {
            self.observe(who, Fact::Removed { name })?;
        }
        self.drain(who)
    }

    /// Executes effects until none is left, the disk makes us wait, or the process dies.
    pub(super) fn drain(&mut self, who: usize) -> Outcomes {
        loop {
            if self.crash_is_due(who) {
                self.crash(who);
                return Ok(());
            }
            let Some(sentinel) = &mut self.processes[who].sentinel else { return Ok(()) };
            let Some(effect) = sentinel.poll_effect() else { break };
            match effect {
                Effect::Save => {
                    if !self.save(who)? {
                        return Ok(());
                    }
                }
                Effect::Crash { code } => {
                    self.line(Weight::Story, Node::Sentinel(who), "exit", format_args!("code {code}"));
                    self.crash(who);
                    self.queue.push(self.now + 1_000, Event::Start { who });
                    return Ok(());
                }
                effect => self.execute(who, effect)?,
            }
        }
        self.answer_all(who)?;
        self.turn_ends(who)
    }

    fn crash_is_due(&mut self, who: usize) -> bool {
        let Some(plan) = &mut self.processes[who].plan else { return false };
        if plan.at_save {
            return false;
        }
        if plan.effects == 0 {
            return true;
        }
        plan.effects -= 1;
        false
    }

    /// Starts a save; true when it is over already.
    fn save(&mut self, who: usize) -> Result<bool, super::facts::Violation> {
        let took = between(&mut self.random, self.processes[who].disk.save_ms);
        let late = 20 + self.random.below(2_000);
        let process = &mut self.processes[who];
        if let Some(plan) = &mut process.plan {
            plan.at_save = false;
        }
        let Some(sentinel) = &mut process.sentinel else { return Ok(true) };
        let snapshot = sentinel.snapshot();
        let (life, epoch, ok) = (process.life, snapshot.current_epoch, !process.disk.failing);
        let vote = snapshot.masters.iter().map(|master| master.leader_epoch).max().unwrap_or(0);
        if self.options.planted == Some(Planted::Shell(ShellPlant::AnswerBeforeSaving)) {
            sentinel.saved(self.now, true);
            let event = Event::LateSave { who, life, snapshot: Box::new(snapshot) };
            self.queue.push(self.now + late, event);
            return Ok(true);
        }
        let outcome = if ok { "done" } else { "FAILED" };
        let details = format_args!("epoch {epoch}, vote in {vote}, {took} ms, {outcome}");
        self.trace.line(self.now, Weight::Story, "", Node::Sentinel(who), "save", details);
        if took == 0 {
            self.finish_save(who, &snapshot, ok)?;
            if let Some(sentinel) = &mut self.processes[who].sentinel {
                sentinel.saved(self.now, ok);
            }
            return Ok(true);
        }
        let snapshot = Box::new(snapshot);
        process.saving = Some(Saving::UnderWay(snapshot.clone()));
        self.queue.push(self.now + took, Event::Saved { who, life, snapshot, ok });
        Ok(false)
    }

    fn finish_save(&mut self, who: usize, snapshot: &Snapshot, ok: bool) -> Outcomes {
        // A save can fail at its last step: the new file is there, but nobody may rely on it.
        if !ok && self.random.below(3) != 0 {
            return Ok(());
        }
        if let Err(what) = self.processes[who].disk.replace(snapshot) {
            return Err(self.violation("loads-again", format!("the file of s{} cannot be read: {what}", who + 1)));
        }
        if ok { self.observe(who, Fact::Durable { written: snapshot }) } else { Ok(()) }
    }

    pub(super) fn save_done(&mut self, who: usize, life: u64, snapshot: Snapshot, ok: bool) -> Outcomes {
        if self.processes[who].life != life || self.processes[who].sentinel.is_none() {
            return Ok(());
        }
        self.processes[who].saving = Some(Saving::Done(ok));
        self.finish_save(who, &snapshot, ok)?;
        self.turn(who)
    }

    pub(super) fn late_save(&mut self, who: usize, life: u64, snapshot: Snapshot) {
        if self.processes[who].life == life && self.processes[who].sentinel.is_some() {
            let _ = self.processes[who].disk.replace(&snapshot);
        }
    }

    fn execute(&mut self, who: usize, effect: Effect) -> Outcomes {
        let me = Node::Sentinel(who);
        match effect {
            Effect::Connect { conn, to, kind } => {
                let Some(to) = Node::at(to) else {
                    return Err(self.violation("dials-known-nodes", format!("{me} dials {to}, where nobody can be")));
                };
                self.line(Weight::Noise, Pair(me, to), "dial", format_args!("{kind:?} {}", conn.0));
                let doubled = self.processes[who].wires.values().any(|&wire| {
                    self.net.get(wire).is_some_and(|open| open.from_open && open.to == to && open.kind == kind)
                });
                self.observe(who, Fact::Dials { to, doubled })?;
                let line = self.processes[who].line_ms;
                let waits = if line.1 > 0 { between(&mut self.random, line) } else { 0 };
                let wire = self.net.dial(&mut self.queue, self.now + waits, who, to, conn, kind);
                let process = &mut self.processes[who];
                process.wires.insert(conn, wire);
                process.ear.dials(conn, to, kind, self.now);
                if waits > 0 {
                    self.queue.push(self.now + waits, Event::Begun { who, life: process.life, conn });
                } else if let Some(sentinel) = &mut process.sentinel {
                    process.ear.begins(conn, self.now);
                    sentinel.handle(self.now, Input::Begun { conn });
                }
            }
            Effect::Send { conn, bytes } => return self.send(who, conn, &bytes),
            Effect::Close { conn } => {
                self.processes[who].ear.hangs_up(self.now, conn);
                if let Some(wire) = self.processes[who].wires.remove(&conn) {
                    self.line(Weight::Noise, me, "close", format_args!("{}", conn.0));
                    self.net.close_from(&mut self.queue, self.now, wire);
                }
            }
            Effect::Event { level, channel, payload } => {
                let weight = if level == watchfire::core::Level::Debug { Weight::Noise } else { Weight::Story };
                let about = groups::told(&payload).unwrap_or("");
                self.trace.line(self.now, weight, about, me, "event", format_args!("{channel} {payload}"));
                self.observe(who, Fact::Event { channel, payload: &payload })?;
                match channel {
                    "+sdown" => self.has_cause(who, &payload)?,
                    "+try-failover" => self.has_need(who, about)?,
                    _ => {}
                }
                if self.trap == Some(channel) {
                    // Before its next effect.
                    self.trap = None;
                    self.processes[who].plan = Some(CrashPlan { at_save: false, effects: 0 });
                }
                self.events.push(Heard { at: self.now, who, channel, payload });
            }
            Effect::Log { text, .. } => self.line(Weight::Story, me, "log", format_args!("{text}")),
            Effect::RunScript { .. } | Effect::KillScript { .. } | Effect::Resolve { .. } => {
                return Err(
                    self.violation("no-surprises", format!("{me} wants {effect:?}, which nothing here calls for"))
                );
            }
            Effect::Save | Effect::Crash { .. } => unreachable!("drained above"),
        }
        Ok(())
    }

    /// The master that a question points at, by its address.
    fn asked_about(&self, host: &[u8], port: &[u8]) -> Option<&'static str> {
        let port = std::str::from_utf8(port).ok()?.parse().ok()?;
        groups::at(&self.options.groups, std::str::from_utf8(host).ok()?, port).map(|group| group.name)
    }

    fn send(&mut self, who: usize, conn: ConnId, bytes: &[u8]) -> Outcomes {
        let me = Node::Sentinel(who);
        let Some(&wire) = self.processes[who].wires.get(&conn) else { return Ok(()) };
        let Some(to) = self.net.get(wire).map(|connection| connection.to) else { return Ok(()) };
        let Some(requests) = split(bytes) else {
            return Err(self.violation("sends-whole-requests", format!("{me} sends {}", bytes.escape_ascii())));
        };
        self.observe(who, Fact::Sends { to, requests: requests.len() })?;
        for request in &requests {
            self.requests += 1;
            let telling = [&b"SLAVEOF"[..], b"EXEC"].contains(&&*request[0]);
            let weight = if telling { Weight::Story } else { Weight::Noise };
            self.line(weight, Pair(me, to), "send", format_args!("{}", Words(request)));
            if let Some(fact) = facts::revealed(request) {
                if let Fact::Asks { epoch, seeks: true } = fact {
                    let about = self.asked_about(&request[2], &request[3]).unwrap_or("");
                    self.line_about(about, Pair(me, to), "seeks", format_args!("a vote in epoch {epoch}"));
                }
                self.observe(who, fact)?;
            }
        }
        self.net.request(&mut self.queue, self.now, wire, requests);
        Ok(())
    }

    /// The effects were drained: now peers may be told what the methods returned.
    fn answer_all(&mut self, who: usize) -> Outcomes {
        let Some(sentinel) = &self.processes[who].sentinel else { return Ok(()) };
        let saved = !sentinel.save_failing();
        for (wire, held) in std::mem::take(&mut self.processes[who].held) {
            if self.crash_is_due(who) {
                self.crash(who);
                return Ok(());
            }
            let reply = match held {
                Held::Ready(reply) => reply,
                Held::Vote(about, answer) => {
                    let vote = facts::told(&answer, saved);
                    if let (Some(leader), Some(connection)) = (vote.leader, self.net.get(wire)) {
                        let pair = Pair(Node::Sentinel(who), Node::Sentinel(connection.from));
                        let details = format_args!("{leader:?} in epoch {}", vote.epoch);
                        self.trace.line(self.now, Weight::Story, about.unwrap_or(""), pair, "votes", details);
                    }
                    let to = self.net.get(wire).map(|connection| connection.from);
                    self.observe(who, Fact::Answers { about, vote, down: answer.down, to })?;
                    let leader = vote.leader.map_or(b"*".to_vec(), |leader| leader.as_str().into());
                    Reply::Array(vec![
                        Reply::Integer(i64::from(answer.down)),
                        Reply::Bulk(leader),
                        Reply::Integer(i64::try_from(vote.epoch).unwrap_or(i64::MAX)),
                    ])
                }
            };
            let open = self.net.get(wire).is_some_and(|connection| connection.to_open);
            if open {
                self.net.transmit(&mut self.queue, self.now, wire, Direction::Back, Packet::Replies(vec![reply]));
            }
        }
        Ok(())
    }

    fn turn_ends(&mut self, who: usize) -> Outcomes {
        let now = self.now;
        let process = &mut self.processes[who];
        let Some(sentinel) = &process.sentinel else { return Ok(()) };
        let at = sentinel.next_wakeup().max(now);
        if process.spins.0 != now {
            process.spins = (now, 0);
        }
        if at == now {
            process.spins.1 += 1;
            if process.spins.1 > SPINS {
                return Err(self.violation("does-not-spin", format!("s{} wants to be woken for ever", who + 1)));
            }
        }
        let (life, more) = (process.life, !process.inbox.is_empty());
        if process.wake != Some(at) {
            process.wake = Some(at);
            self.queue.push(at, Event::Wake { who, life, at });
        }
        if more {
            self.queue_turn(who);
        }
        self.observe(who, Fact::TurnEnds)
    }
}

/// What a Sentinel's command port says to a peer.
fn answer(sentinel: &mut Sentinel, now: Millis, request: &Request, groups: &[Group]) -> Held {
    let word = |n: usize| request.get(n).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let simple = |text: &str| Held::Ready(Reply::Simple(text.into()));
    let error = |text: &str| Held::Ready(Reply::Error(text.into()));
    match (word(0).as_slice(), word(1).as_slice()) {
        (b"PING", _) => simple("PONG"),
        (b"CLIENT", b"SETNAME") => simple("OK"),
        (b"AUTH", _) => error("ERR AUTH <password> called without any password configured for the default user."),
        (b"PUBLISH", b"__SENTINEL__:HELLO") if request.len() == 3 => {
            sentinel.hello(now, &request[2]);
            Held::Ready(Reply::Integer(1))
        }
        (b"SENTINEL", b"IS-MASTER-DOWN-BY-ADDR") => {
            let [_, _, host, port, epoch, candidate] = &request[..] else { return error("ERR wrong number") };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (host, port, epoch) = (text(host), text(port).parse(), text(epoch).parse());
            let (Ok(port), Ok(epoch)) = (port, epoch) else { return error("ERR Invalid port") };
            let about = groups::at(groups, &host, port).map(|group| group.name);
            Held::Vote(about, sentinel.question(now, &host, port, epoch, RunId::parse(candidate)))
        }
        _ => error("ERR unknown command"),
    }
}

/// The requests in what the core sent; `None` unless they are whole and nothing else.
fn split(bytes: &[u8]) -> Option<Vec<Request>> {
    let mut decoder = RequestDecoder::new();
    decoder.extend(bytes);
    let mut requests = Vec::new();
    let mut argv = Argv::default();
    while decoder.next(&mut argv).ok()? {
        requests.push(argv.iter().map(<[u8]>::to_vec).collect());
    }
    (decoder.buffered() == 0).then_some(requests)
}
