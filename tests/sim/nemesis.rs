//! What breaks, when, and for how long. Every fault ends by itself after a while; at the end of the safety
//! phase everything is healed at once.

use super::disk::Disk;
use super::groups::{self, Group};
use super::net::{Direction, Wire};
use super::node::{Node, sentinel_id};
use super::options::{FaultKind, between, pick};
use super::process::{CrashPlan, Pace, Process};
use super::server::{Lie, Role, State};
use super::trace::Weight;
use super::world::{Event, Outcomes, World, first_file};
use std::collections::BTreeMap;
use std::fmt;
use watchfire::base::Random;
use watchfire::base::random::mix;
use watchfire::core::Sentinel;

#[derive(Debug)]
pub struct Nemesis {
    seed: u64,
    /// Of the fault that is being thought of.
    random: Random,
    on: bool,
    /// Faults thought of so far: the number of the last one.
    thought_of: u64,
    last_fault: u64,
    active: Vec<(u64, Undo)>,
    /// Faults begun so far.
    pub begun: u64,
}

/// How a fault ends.
#[derive(Debug)]
pub(super) enum Undo {
    Restart(usize),
    Replace(usize),
    NotBusy(usize),
    Willing(usize),
    Honest(usize),
    StrangerComes(usize),
    /// At this Sentinel, this master.
    MonitorAgain(usize, usize),
    Thaw(usize),
    ServerBack(usize),
    Mend(Vec<(Node, Node)>),
    /// The machine returns: its network first, then the process.
    MachineBack(usize, Vec<(Node, Node)>),
    FastAgain(Node, Node),
    Calm,
    DiskWorks(usize),
    DiskFast(usize),
    WholeMessages(usize),
    NoLine(usize),
    NoBacklog(usize),
    ServersBack(Vec<usize>),
    Nothing,
}

impl Nemesis {
    pub fn new(seed: u64) -> Nemesis {
        Nemesis {
            seed,
            random: Random::seeded(seed),
            thought_of: 0,
            on: false,
            last_fault: 0,
            active: Vec::new(),
            begun: 0,
        }
    }

    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub(super) fn random_below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    pub(super) fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.random.below(count as u64)).expect("an index")
    }

    /// Most faults are short, some outlast every timer of the protocol.
    fn lasts(&mut self) -> u64 {
        let range = pick(&mut self.random, &[(20, 300), (300, 2_500), (300, 2_500), (2_500, 12_000)]);
        between(&mut self.random, range)
    }
}

impl World<'_> {
    /// Faults may come from now on.
    pub fn unleash(&mut self) {
        self.nemesis.on = true;
        self.queue.push(self.now, Event::NextFault);
    }

    pub(super) fn next_fault(&mut self) -> Outcomes {
        if !self.nemesis.on || self.options.faults.is_empty() {
            return Ok(());
        }
        // Each has a stream of its own, so that one that is left out does not change what the others draw.
        self.nemesis.thought_of += 1;
        let number = self.nemesis.thought_of;
        self.nemesis.random = Random::seeded(mix(self.nemesis.seed.wrapping_add(number)));
        let gap = self.options.fault_gap_ms;
        let next = between(&mut self.nemesis.random, (gap / 4, gap * 7 / 4));
        self.queue.push(self.now + next, Event::NextFault);
        if self.nemesis.active.len() >= self.options.faults_at_once {
            return Ok(());
        }
        if self.options.only.as_ref().is_some_and(|only| !only.contains(&number)) {
            return Ok(());
        }
        self.trace.faults.push(number);
        let total: u64 = self.options.faults.iter().map(|(_, weight)| weight).sum();
        let mut ticket = self.nemesis.random.below(total);
        let mut kind = self.options.faults[0].0;
        for &(candidate, weight) in &self.options.faults {
            if ticket < weight {
                kind = candidate;
                break;
            }
            ticket -= weight;
        }
        self.begin(kind)
    }

    fn begin(&mut self, kind: FaultKind) -> Outcomes {
        let lasts = self.nemesis.lasts();
        let undo = match kind {
            FaultKind::SentinelCrash => self.plan_crash(lasts),
            FaultKind::SentinelPause => {
                let who = self.nemesis.index(self.options.sentinels);
                self.processes[who].frozen = true;
                self.fault(Node::Sentinel(who), format_args!("frozen for {lasts} ms"));
                Undo::Thaw(who)
            }
            FaultKind::ServerKill => {
                let index = self.victim();
                self.fault(Node::Server(index), format_args!("killed for {lasts} ms"));
                self.stop_server(index, false);
                Undo::ServerBack(index)
            }
            FaultKind::ServerLoss => {
                let index = self.victim();
                self.fault(Node::Server(index), format_args!("machine lost for {lasts} ms"));
                self.stop_server(index, true);
                let cuts = self.around(Node::Server(index));
                self.cut(&cuts);
                Undo::MachineBack(index, cuts)
            }
            FaultKind::ServerHang => {
                let index = self.victim();
                self.fault(Node::Server(index), format_args!("hangs for {lasts} ms"));
                if self.servers[index].state == State::Up {
                    self.servers[index].state = State::Hung;
                }
                Undo::ServerBack(index)
            }
            FaultKind::Partition | FaultKind::AsymmetricPartition => {
                let both = kind == FaultKind::Partition;
                self.partition(both, lasts)
            }
            FaultKind::LinkCut => {
                let (a, b) = self.two_nodes();
                let cuts = if self.nemesis.random.below(2) == 0 { vec![(a, b)] } else { vec![(a, b), (b, a)] };
                self.fault(a, format_args!("cut to {b}, {} way(s), for {lasts} ms", cuts.len()));
                self.cut(&cuts);
                Undo::Mend(cuts)
            }
            FaultKind::SlowLink => {
                let (a, b) = self.two_nodes();
                let extra = pick(&mut self.nemesis.random, &[20, 100, 400]);
                self.fault(a, format_args!("slow to {b} by {extra} ms for {lasts} ms"));
                self.net.slow.insert((a, b), extra);
                Undo::FastAgain(a, b)
            }
            FaultKind::Jitter => {
                let worst = pick(&mut self.nemesis.random, &[30, 100, 500]);
                self.line(Weight::Story, "net", "fault", format_args!("jitter to {worst} ms for {lasts} ms"));
                self.net.latency = (self.options.latency.0, self.options.latency.1 + worst);
                Undo::Calm
            }
            FaultKind::FailingDisk => {
                let who = self.nemesis.index(self.options.sentinels);
                self.fault(Node::Sentinel(who), format_args!("saves fail for {lasts} ms"));
                self.processes[who].disk.failing = true;
                Undo::DiskWorks(who)
            }
            FaultKind::SlowDisk => {
                let who = self.nemesis.index(self.options.sentinels);
                let worst = pick(&mut self.nemesis.random, &[20, 200, 1_500]);
                self.fault(Node::Sentinel(who), format_args!("saves take up to {worst} ms for {lasts} ms"));
                self.processes[who].disk.save_ms = (worst / 4, worst);
                Undo::DiskFast(who)
            }
            FaultKind::Reset => self.reset_one(),
            FaultKind::SentinelReplaced => {
                // Always out of the same minority: a majority remembers, or nobody would know a server that was away.
                let few = groups::replaceable(&self.options.groups, self.options.sentinels);
                if few.is_empty() {
                    return Ok(());
                }
                let who = few[self.nemesis.index(few.len())];
                self.fault(Node::Sentinel(who), format_args!("is lost, another comes after {lasts} ms"));
                self.crash(who);
                Undo::Replace(who)
            }
            FaultKind::ServerBusy => {
                let index = self.victim();
                let killable = self.nemesis.random.below(3) > 0;
                let ends = if killable { " or SCRIPT KILL" } else { "" };
                self.fault(Node::Server(index), format_args!("busy with a script for {lasts} ms{ends}"));
                if self.servers[index].state == State::Up {
                    self.servers[index].busy = Some(killable);
                }
                Undo::NotBusy(index)
            }
            FaultKind::ServerUnwilling => {
                let index = self.nemesis.index(self.options.servers());
                self.fault(Node::Server(index), format_args!("refuses orders for {lasts} ms"));
                self.servers[index].unwilling = true;
                Undo::Willing(index)
            }
            FaultKind::LyingInfo => {
                let index = self.victim();
                let ghost = 100 + u8::try_from(self.nemesis.random.below(3)).expect("a few");
                let lies = [Lie::Role, Lie::Half, Lie::Numbers, Lie::Ghost(ghost), Lie::RunId];
                let lie = pick(&mut self.nemesis.random, &lies);
                self.fault(Node::Server(index), format_args!("lies about {lie:?} for {lasts} ms"));
                self.servers[index].lie = Some(lie);
                Undo::Honest(index)
            }
            FaultKind::Stranger => {
                let index = self.victim();
                self.fault(Node::Server(index), format_args!("gone, a stranger comes after {lasts} ms"));
                self.stop_server(index, false);
                Undo::StrangerComes(index)
            }
            FaultKind::Forger => {
                self.forge();
                Undo::Nothing
            }
            FaultKind::Administrator => self.administer(lasts),
            FaultKind::HalfOpen => self.half_open(),
            FaultKind::Pieces => {
                let who = self.nemesis.index(self.options.sentinels);
                let breaks = pick(&mut self.nemesis.random, &[5, 30, 1_000]);
                let details = format_args!("its messages go in pieces for {lasts} ms, one of {breaks} breaks off");
                self.fault(Node::Sentinel(who), details);
                self.net.tear_messages(who, Some(breaks));
                Undo::WholeMessages(who)
            }
            FaultKind::LongLine => {
                let who = self.nemesis.index(self.options.sentinels);
                let worst = pick(&mut self.nemesis.random, &[300, 1_500, 6_000]);
                self.fault(Node::Sentinel(who), format_args!("its dials wait for up to {worst} ms, for {lasts} ms"));
                self.processes[who].line_ms = (worst / 4, worst);
                Undo::NoLine(who)
            }
            FaultKind::Backlog => {
                let who = self.nemesis.index(self.options.sentinels);
                let conns = pick(&mut self.nemesis.random, &[1, 2, 4]);
                let turn_ms = pick(&mut self.nemesis.random, &[30, 100, 300]);
                let details = format_args!("reads {conns} connections in {turn_ms} ms, for {lasts} ms");
                self.fault(Node::Sentinel(who), details);
                self.processes[who].pace = Some(Pace { conns, turn_ms });
                Undo::NoBacklog(who)
            }
            FaultKind::MastersDie => {
                let masters: Vec<usize> = self
                    .servers
                    .iter()
                    .filter(|server| server.role == Role::Master)
                    .map(|server| server.index)
                    .collect();
                for &index in &masters {
                    self.fault(Node::Server(index), format_args!("killed together with all masters for {lasts} ms"));
                    self.stop_server(index, false);
                }
                Undo::ServersBack(masters)
            }
            FaultKind::TwoOperators => {
                let (group, who) = self.master_and_watcher();
                let watchers = self.options.groups[group].watchers.clone();
                let at = watchers.iter().position(|&watcher| watcher == who).expect("one of them");
                let step = 1 + self.nemesis.index(watchers.len() - 1);
                let (other, later) = (watchers[(at + step) % watchers.len()], self.nemesis.random.below(20));
                self.queue.push(self.now + later, Event::Force { who: other, group });
                return self.force(who, group, false);
            }
            FaultKind::Operator => {
                let (group, who) = self.master_and_watcher();
                let coordinated = self.nemesis.random.below(2) == 0;
                return self.force(who, group, coordinated);
            }
        };
        self.nemesis.begun += 1;
        self.nemesis.last_fault += 1;
        let fault = self.nemesis.last_fault;
        self.nemesis.active.push((fault, undo));
        self.queue.push(self.now + lasts, Event::Undo { fault });
        Ok(())
    }

    fn plan_crash(&mut self, lasts: u64) -> Undo {
        let who = self.nemesis.index(self.options.sentinels);
        let at_save = self.nemesis.random.below(2) == 0;
        let effects = self.nemesis.random.below(8);
        let counted = if at_save { "its next save and " } else { "" };
        self.fault(Node::Sentinel(who), format_args!("to crash after {counted}{effects} effects, for {lasts} ms"));
        self.processes[who].plan = Some(CrashPlan { at_save, effects });
        Undo::Restart(who)
    }

    fn partition(&mut self, both: bool, lasts: u64) -> Undo {
        let nodes = self.nodes();
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for node in nodes {
            let side = if self.nemesis.random.below(2) == 0 { &mut left } else { &mut right };
            side.push(node);
        }
        let mut cuts = Vec::new();
        for &a in &left {
            for &b in &right {
                cuts.push((a, b));
                if both {
                    cuts.push((b, a));
                }
            }
        }
        let names = |side: &[Node]| side.iter().map(Node::to_string).collect::<Vec<_>>().join(" ");
        let (arrow, left, right) = (if both { "|" } else { "-x>" }, names(&left), names(&right));
        self.line(Weight::Story, "net", "fault", format_args!("partition {left} {arrow} {right} for {lasts} ms"));
        self.cut(&cuts);
        Undo::Mend(cuts)
    }

    /// A router forgets a connection. That ends when one of its ends has had enough of the silence.
    fn half_open(&mut self) -> Undo {
        let standing = self.net.standing();
        if standing.is_empty() {
            return Undo::Nothing;
        }
        let wire = standing[self.nemesis.index(standing.len())];
        let Some(connection) = self.net.get(wire) else { return Undo::Nothing };
        let (from, to, kind) = (Node::Sentinel(connection.from), connection.to, connection.kind);
        let ways = pick(
            &mut self.nemesis.random,
            &[&[Direction::There][..], &[Direction::Back], &[Direction::There, Direction::Back]],
        );
        self.fault(from, format_args!("its {kind:?} connection to {to} swallows what goes {ways:?}"));
        for &way in ways {
            self.net.swallow(wire, way);
        }
        Undo::Nothing
    }

    fn reset_one(&mut self) -> Undo {
        let standing: Vec<Wire> = self.net.standing();
        if standing.is_empty() {
            return Undo::Nothing;
        }
        let wire = standing[self.nemesis.index(standing.len())];
        let Some(connection) = self.net.get(wire) else { return Undo::Nothing };
        let (from, to) = (Node::Sentinel(connection.from), connection.to);
        self.fault(from, format_args!("loses a connection to {to}"));
        if let Node::Server(index) = to {
            self.servers[index].left(wire);
        }
        self.net.close_to(&mut self.queue, self.now, wire, false);
        Undo::Nothing
    }

    /// An operator's SENTINEL FAILOVER of one master; a process that is down, frozen or busy saving does not hear it.
    pub fn force(&mut self, who: usize, group: usize, coordinated: bool) -> Outcomes {
        let (now, name) = (self.now, self.options.groups[group].name);
        if !self.processes[who].is_idle() {
            return Ok(());
        }
        let Some(sentinel) = &mut self.processes[who].sentinel else { return Ok(()) };
        let outcome = sentinel.force_failover(now, name.as_bytes(), coordinated);
        let option = if coordinated { " COORDINATED" } else { "" };
        let details = format_args!("SENTINEL FAILOVER{option}: {outcome:?}");
        self.line_about(name, Node::Sentinel(who), "operator", details);
        self.drain(who)
    }

    pub(super) fn undo(&mut self, fault: u64) -> Outcomes {
        let Some(position) = self.nemesis.active.iter().position(|&(id, _)| id == fault) else { return Ok(()) };
        let (_, undo) = self.nemesis.active.remove(position);
        match undo {
            Undo::Restart(who) => {
                self.processes[who].plan = None;
                self.start(who)?;
            }
            Undo::Replace(who) => self.replace(who)?,
            Undo::NotBusy(index) => self.servers[index].busy = None,
            Undo::Willing(index) => self.servers[index].unwilling = false,
            Undo::Honest(index) => self.servers[index].lie = None,
            Undo::StrangerComes(index) => {
                let (now, server) = (self.now, &mut self.servers[index]);
                if server.state == State::Down {
                    server.become_stranger(now);
                    let about = self.options.group_of(index).name;
                    self.line_about(about, Node::Server(index), "back", format_args!("as a stranger, an empty master"));
                }
            }
            Undo::MonitorAgain(who, group) => self.monitor_again(who, group),
            Undo::Thaw(who) => self.thaw(who),
            Undo::ServerBack(index) => self.server_back(index)?,
            Undo::Mend(cuts) => self.mend(&cuts),
            Undo::MachineBack(index, cuts) => {
                self.mend(&cuts);
                self.server_back(index)?;
            }
            Undo::FastAgain(a, b) => {
                self.net.slow.remove(&(a, b));
            }
            Undo::Calm => self.net.latency = self.options.latency,
            Undo::DiskWorks(who) => self.processes[who].disk.failing = false,
            Undo::WholeMessages(who) => self.net.tear_messages(who, None),
            Undo::NoLine(who) => self.processes[who].line_ms = (0, 0),
            Undo::NoBacklog(who) => self.processes[who].pace = None,
            Undo::ServersBack(servers) => servers.into_iter().try_for_each(|index| self.server_back(index))?,
            Undo::DiskFast(who) => self.processes[who].disk.save_ms = self.options.save_ms,
            Undo::Nothing => {}
        }
        Ok(())
    }

    /// No more faults, and the end of all that stand.
    pub fn heal(&mut self) -> Outcomes {
        self.nemesis.on = false;
        self.nemesis.active.clear();
        self.line(Weight::Story, "net", "heal", format_args!("everything"));
        self.net.mend_all(&mut self.queue, self.now);
        self.net.slow.clear();
        self.net.latency = self.options.latency;
        for who in 0..self.options.sentinels {
            self.processes[who].plan = None;
            self.processes[who].disk.failing = false;
            self.processes[who].disk.save_ms = self.options.save_ms;
            self.net.tear_messages(who, None);
            self.processes[who].line_ms = (0, 0);
            self.thaw(who);
            self.start(who)?;
            for group in 0..self.options.groups.len() {
                self.monitor_again(who, group);
            }
        }
        for index in 0..self.options.servers() {
            let server = &mut self.servers[index];
            (server.busy, server.unwilling, server.lie) = (None, false, None);
            self.server_back(index)?;
        }
        Ok(())
    }

    /// A Sentinel with an empty file and another id starts where one was lost, with the address that the others name.
    fn replace(&mut self, who: usize) -> Outcomes {
        if self.processes[who].sentinel.is_some() {
            return Ok(());
        }
        let epoch = |process: &Process| {
            let in_memory = process.sentinel.as_deref().map_or(0, Sentinel::current_epoch);
            in_memory.max(process.disk.load().current_epoch)
        };
        let newest = self.processes.iter().map(epoch).max().unwrap_or(0);
        let watched = self.options.groups.iter().filter(|group| group.is_watched_by(who));
        let addresses: Option<BTreeMap<&str, String>> = watched
            .map(|group| self.named(group.name).map(|(host, port)| (group.name, format!("{host} {port}"))))
            .collect();
        let Some(addresses) = addresses else { return self.start(who) };
        let myid = sentinel_id(who, self.nemesis.random.next_u64());
        let text = first_file(&self.options, who, myid, |group: &Group| addresses[group.name].clone());
        self.processes[who].disk = Disk::new(text, self.options.save_ms, None, self.nemesis.random.next_u64());
        self.processes[who].replaced = Some(newest);
        self.forgets_all(who);
        self.start(who)
    }

    pub fn kill_server(&mut self, index: usize) {
        self.fault(Node::Server(index), format_args!("killed"));
        self.stop_server(index, false);
    }

    pub fn hang_server(&mut self, index: usize) {
        self.fault(Node::Server(index), format_args!("hangs"));
        self.servers[index].state = State::Hung;
    }

    /// The machine is gone: its process, and the network to it.
    pub fn lose_server(&mut self, index: usize) {
        self.fault(Node::Server(index), format_args!("machine lost"));
        self.stop_server(index, true);
        self.cut(&self.around(Node::Server(index)));
    }

    /// `quiet`: nobody is told, because the machine is gone.
    fn stop_server(&mut self, index: usize, quiet: bool) {
        let server = &mut self.servers[index];
        if server.state == State::Down {
            return;
        }
        server.stop();
        for wire in self.net.accepted_by(Node::Server(index)) {
            self.net.close_to(&mut self.queue, self.now, wire, quiet);
        }
    }

    pub fn server_back(&mut self, index: usize) -> Outcomes {
        let loading = self.nemesis.random.below(self.options.loading_ms + 1);
        let (now, server) = (self.now, &mut self.servers[index]);
        match server.state {
            State::Up => return Ok(()),
            State::Hung => {
                server.state = State::Up;
                for (wire, requests) in server.take_backlog() {
                    self.serve(index, wire, requests)?;
                }
            }
            State::Down => server.start(now, loading),
        }
        let role = match &self.servers[index].role {
            Role::Master => "master".to_string(),
            Role::Replica(host, port) => format!("replica of {host}:{port}"),
        };
        let about = self.options.group_of(index).name;
        self.line_about(about, Node::Server(index), "back", format_args!("as {role}"));
        Ok(())
    }

    fn thaw(&mut self, who: usize) {
        if std::mem::take(&mut self.processes[who].frozen) && self.processes[who].sentinel.is_some() {
            self.line(Weight::Story, Node::Sentinel(who), "thaw", format_args!(""));
            self.queue_turn(who);
        }
    }

    /// A server to hurt: mostly one that is master, because that is what the group exists for.
    fn victim(&mut self) -> usize {
        let masters: Vec<usize> = self.servers.iter().filter(|s| s.role == Role::Master).map(|s| s.index).collect();
        if !masters.is_empty() && self.nemesis.random.below(10) < 6 {
            return masters[self.nemesis.index(masters.len())];
        }
        self.nemesis.index(self.options.servers())
    }

    fn nodes(&self) -> Vec<Node> {
        let sentinels = (0..self.options.sentinels).map(Node::Sentinel);
        sentinels.chain((0..self.options.servers()).map(Node::Server)).collect()
    }

    fn two_nodes(&mut self) -> (Node, Node) {
        let nodes = self.nodes();
        let first = self.nemesis.index(nodes.len());
        let step = 1 + self.nemesis.index(nodes.len() - 1);
        (nodes[first], nodes[(first + step) % nodes.len()])
    }

    fn around(&self, node: Node) -> Vec<(Node, Node)> {
        let others = self.nodes().into_iter().filter(|&other| other != node);
        others.flat_map(|other| [(node, other), (other, node)]).collect()
    }

    fn cut(&mut self, cuts: &[(Node, Node)]) {
        for &(from, to) in cuts {
            self.net.cut(self.now, from, to);
        }
    }

    fn mend(&mut self, cuts: &[(Node, Node)]) {
        for &(from, to) in cuts {
            self.net.mend(&mut self.queue, self.now, from, to);
        }
    }

    fn fault(&mut self, node: Node, details: fmt::Arguments) {
        let about = match node {
            Node::Server(index) => self.options.group_of(index).name,
            Node::Sentinel(_) | Node::Nobody(_) => "",
        };
        self.line_about(about, node, "fault", details);
    }
}
