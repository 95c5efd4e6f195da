//! INFO: what a server says about itself, and what follows from it.

use super::effect::Level;
use super::failover::Step;
use super::ids::{Addr, MasterId, ReplicaId, RunId, is_host};
use super::link::renamed;
use super::model::{CachedInfo, Expect, Master, Node, Owner, Reconf, Replica, Role, Told};
use super::{Plant, Sentinel, current_addr};
use crate::base::{Alike, Millis};

/// Replicas taken from one INFO, and known of one master in all; a server that lists more is not one.
const REPLICAS_MAX: usize = 1_024;

/// So much of an INFO is kept for `SENTINEL INFO-CACHE`, in bytes. No honest one is longer.
const TEXT_MAX: usize = 256 * 1024;

fn kept(mut text: Vec<u8>) -> Box<[u8]> {
    text.truncate(TEXT_MAX);
    text.into_boxed_slice()
}

/// The meaning of one INFO text. Parsing is total: what is not understood is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfoReport {
    pub run_id: Option<RunId>,
    /// `Some(true)`: `role:master`.
    pub is_master: Option<bool>,
    pub replicas: Vec<Addr>,
    pub master_host: Option<String>,
    pub master_port: Option<u16>,
    pub link_up: Option<bool>,
    /// Seconds; 0 when the line is absent.
    pub link_down_seconds: u64,
    pub priority: Option<u32>,
    pub offset: Option<u64>,
    pub announced: Option<bool>,
    pub sync_in_progress: bool,
    /// `master_repl_offset` of a server whose offsets go on through a failover, which `master_replid` tells: 4.0 and
    /// newer.
    pub reached: Option<u64>,
    /// `Some(true)`: `master_failover_state` is anything but `no-failover`.
    pub handing_over: Option<bool>,
}

impl InfoReport {
    #[must_use]
    pub fn parse(text: &[u8]) -> InfoReport {
        let mut report = InfoReport::default();
        let mut lasting = false;
        for line in text.split(|&byte| byte == b'\n') {
            // Of the two hundred lines of an INFO most are passed by at their first letter.
            if !matches!(line.first(), Some(b'm' | b'r' | b's')) {
                continue;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let (key, value) = (&line[..colon], &line[colon + 1..]);
            let Ok(value) = std::str::from_utf8(value) else { continue };
            report.line(key, value);
            lasting |= key == b"master_replid";
        }
        report.reached = report.reached.filter(|_| lasting);
        report
    }

    fn line(&mut self, key: &[u8], value: &str) {
        match key {
            b"run_id" => self.run_id = RunId::parse(value.as_bytes()),
            b"role" => {
                self.is_master = match value {
                    "master" => Some(true),
                    "slave" => Some(false),
                    _ => None,
                }
            }
            b"master_host" => self.master_host = is_host(value).then(|| value.to_owned()),
            b"master_port" => self.master_port = value.parse().ok(),
            b"master_link_status" => self.link_up = Some(value.alike("up")),
            b"master_link_down_since_seconds" => self.link_down_seconds = value.parse().unwrap_or(0),
            b"slave_priority" => self.priority = value.parse().ok(),
            b"slave_repl_offset" => self.offset = value.parse().ok(),
            b"replica_announced" => self.announced = value.parse().ok().map(|n: u32| n != 0),
            b"master_repl_offset" => self.reached = value.parse().ok(),
            b"master_failover_state" => self.handing_over = Some(value != "no-failover"),
            b"master_sync_in_progress" => self.sync_in_progress = value == "1",
            _ if is_replica_key(key) && self.replicas.len() < REPLICAS_MAX => {
                self.replicas.extend(replica_addr(value));
            }
            _ => {}
        }
    }
}

/// `slave0`, `slave17`, …
fn is_replica_key(key: &[u8]) -> bool {
    key.strip_prefix(b"slave").is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

/// `ip=127.0.0.1,port=6380,state=online,…`, or the form before 2.8: `127.0.0.1,6380,online`. A line with
/// `type=rdb-channel` is a second connection of a replica that has its own line.
fn replica_addr(value: &str) -> Option<Addr> {
    if !value.contains("ip=") {
        let mut fields = value.split(',');
        return usable(fields.next()?, fields.next()?);
    }
    let field = |wanted: &str| value.split(',').find_map(|pair| pair.strip_prefix(wanted)?.strip_prefix('='));
    if field("type").is_some_and(|kind| kind == "rdb-channel") {
        return None;
    }
    usable(field("ip")?, field("port")?)
}

fn usable(host: &str, port: &str) -> Option<Addr> {
    Addr::told(host, port.parse().ok()?)
}

impl Node {
    pub(super) fn new(addr: Addr, link: super::LinkId, role: Role, now: Millis) -> Node {
        Node {
            addr,
            run_id: None,
            link,
            sdown: None,
            last_down: None,
            info: None,
            info_asked: None,
            role_reported: role,
            role_reported_at: now,
            hello_sent: Millis(0),
            hello_asked: None,
            script_kill_sent: false,
            handing_over: None,
        }
    }

    /// Not down, and not declared down within the last `span` ms.
    fn was_well_for(&self, now: Millis, span: u64) -> bool {
        self.sdown.is_none() && self.last_down.is_none_or(|at| now.since(at) > span)
    }
}

impl Sentinel {
    pub(super) fn master_info(&mut self, now: Millis, id: MasterId, text: Vec<u8>) {
        let report = InfoReport::parse(&text);
        let Some(master) = self.masters.get_mut(&id) else { return };
        let first = master.node.info.is_none();
        master.node.info = Some(CachedInfo { at: now, text: kept(text) });
        master.node.handing_over = report.handing_over;
        let rebooted = take_run_id(&mut master.node, report.run_id);
        if rebooted {
            if master.settings.reboot_down_after > 0 {
                master.rebooted = Some(now);
            }
            let text = self.out.master(master);
            self.out.event(Level::Notice, "+reboot", text);
        }
        self.take_replicas(now, id, &report);

        let Some(master) = self.masters.get_mut(&id) else { return };
        let Some(role) = report.is_master.map(role_of) else { return };
        let changed = master.node.role_reported != role;
        if changed {
            master.node.role_reported = role;
            master.node.role_reported_at = now;
            let text = format!("{} new reported role is {}", self.out.master(master), role.word());
            let channel = if role == Role::Master { "+role-change" } else { "-role-change" };
            self.out.event(Level::Verbose, channel, text);
        }
        if (first || changed) && role == Role::Replica {
            let of = match (&report.master_host, report.master_port) {
                (Some(host), Some(port)) => format!(" of {}", Addr::new(host, port)),
                _ => String::new(),
            };
            let text = format!(
                "{} says that it is a replica{of}: is it the node that should be monitored?",
                self.out.master(master)
            );
            self.out.log(Level::Warning, text);
        }
        if let Some(offset) = report.reached.filter(|_| role == Role::Master) {
            self.watch_offset(id, offset);
        }
        self.handover_news(id);
        // A master that turned replica is judged by the clock, a master that is well again lets others be mended.
        self.act(now, id);
    }

    /// Replicas that the master names and we do not know yet. Outside of a failover this also ends the memory of those that
    /// were known before a RESET and that it does not name.
    fn take_replicas(&mut self, now: Millis, id: MasterId, report: &InfoReport) {
        for addr in &report.replicas {
            let Some(addr) = &self.locate(addr.clone()) else { continue };
            let Some(master) = self.masters.get_mut(&id) else { return };
            if addr.same(&master.node.addr) {
                continue;
            }
            let known = master.replicas.values_mut().find(|replica| replica.node.addr.same(addr));
            if let Some(replica) = known {
                // Known by name once is known by name.
                if addr.is_named() && !replica.node.addr.is_named() {
                    replica.node.addr = addr.clone();
                    if let Some(link) = self.links.get_mut(&replica.node.link) {
                        link.addr = addr.clone();
                    }
                    self.out.mark_dirty();
                }
                if std::mem::take(&mut replica.hidden) {
                    let replica = replica.id;
                    self.announce_replica(id, replica);
                }
                continue;
            }
            if master.replicas.len() < REPLICAS_MAX {
                self.add_replica(now, id, addr.clone());
            }
        }
        let Some(master) = self.masters.get(&id) else { return };
        if report.is_master == Some(true) && master.failover.is_none() {
            let hidden: Vec<ReplicaId> = master.replicas.values().filter(|r| r.hidden).map(|r| r.id).collect();
            for replica in hidden {
                self.drop_replica(id, replica);
            }
        }
    }

    /// A replica that we have not heard of before: linked and announced.
    pub(super) fn add_replica(&mut self, now: Millis, id: MasterId, addr: Addr) {
        let replica = self.insert_replica(now, id, addr);
        self.announce_replica(id, replica);
    }

    /// The same without a word about it: the file knew it.
    pub(super) fn insert_replica(&mut self, now: Millis, id: MasterId, addr: Addr) -> ReplicaId {
        let replica = ReplicaId(self.fresh_id());
        let link = self.add_link(now, addr.clone(), Owner::Replica(id, replica));
        if let Some(master) = self.masters.get_mut(&id) {
            master.replicas.insert(replica, Replica::new(replica, Node::new(addr, link, Role::Replica, now), now));
        }
        self.claims.touch();
        replica
    }

    pub(super) fn announce_replica(&mut self, id: MasterId, replica: ReplicaId) {
        let Some(master) = self.masters.get(&id) else { return };
        let text = self.out.replica(master, &master.replicas[&replica]);
        self.out.event(Level::Notice, "+slave", text);
        self.claims.touch();
        self.save_soon();
    }

    pub(super) fn drop_replica(&mut self, id: MasterId, replica: ReplicaId) {
        let Some(replica) = self.masters.get_mut(&id).and_then(|m| m.replicas.remove(&replica)) else { return };
        self.claims.touch();
        self.leave_link(replica.node.link, id);
    }

    pub(super) fn replica_info(&mut self, now: Millis, id: MasterId, replica: ReplicaId, text: Vec<u8>) {
        let report = InfoReport::parse(&text);
        let Some(master) = self.masters.get_mut(&id) else { return };
        let Some(node) = master.replicas.get_mut(&replica) else { return };
        node.node.info = Some(CachedInfo { at: now, text: kept(text) });
        node.node.handing_over = report.handing_over;
        let rebooted = take_run_id(&mut node.node, report.run_id);
        if rebooted {
            // Whom the process before it followed says nothing about this one, and its settings may be others, too.
            (node.master_addr, node.priority_told) = (None, Told::No);
        }
        node.take(now, &report);
        let follows = node.master_addr.clone();
        let role = report.is_master.map_or(node.node.role_reported, role_of);
        let changed = node.node.role_reported != role;
        if changed {
            node.node.role_reported = role;
            node.node.role_reported_at = now;
            if role == Role::Replica {
                node.master_addr_changed = now;
            }
        }
        let (master, node) = (&self.masters[&id], &self.masters[&id].replicas[&replica]);
        if rebooted {
            let text = self.out.replica(master, node);
            self.out.event(Level::Notice, "+reboot", text);
        }
        if changed {
            let text = format!("{} new reported role is {}", self.out.replica(master, node), role.word());
            let channel = if role == Role::Replica { "+role-change" } else { "-role-change" };
            self.out.event(Level::Verbose, channel, text);
        }
        if self.tilt.is_some() {
            return;
        }
        if let Some(addr) = follows.filter(|addr| addr.ip.is_none()) {
            self.learn_master_name(id, replica, addr);
        }
        if rebooted {
            self.doubt_replica(now, id, replica);
        }
        match role {
            Role::Master => self.replica_says_master(now, id, replica),
            Role::Replica => self.replica_follows(now, id, replica),
        }
        self.act(now, id);
    }

    /// The replica names its master by a name: what is known about it now, or else when it is looked up.
    fn learn_master_name(&mut self, id: MasterId, replica: ReplicaId, addr: Addr) {
        let Some(addr) = self.locate(addr) else { return };
        if let Some(node) = self.masters.get_mut(&id).and_then(|master| master.replicas.get_mut(&replica)) {
            node.master_addr = Some(addr);
        }
    }

    fn replica_says_master(&mut self, now: Millis, id: MasterId, replica: ReplicaId) {
        let master = &self.masters[&id];
        let node = &master.replicas[&replica];
        if let Some(failover) = &master.failover {
            // The others are told by it whom to follow; the master of before, which may look well, is nobody to turn to.
            if failover.step == (Step::WaitPromotion { promoted: replica }) {
                self.promoted(now, id);
            }
            return;
        }
        // Others may know a newer master than we: give their hello the time to reach us.
        let grace = self.tunables.publish_period.saturating_mul(4);
        if node.node.was_well_for(now, grace)
            && now.since(node.node.role_reported_at) > grace
            && self.looks_sane(now, master)
        {
            self.turn_to_master(now, id, replica, "+convert-to-slave");
        }
    }

    fn replica_follows(&mut self, now: Millis, id: MasterId, replica: ReplicaId) {
        let master = &self.masters[&id];
        let node = &master.replicas[&replica];
        let follows_current = node.master_addr.as_ref().is_some_and(|addr| addr.same(current_addr(master)));
        if follows_current && matches!(node.reconf, Reconf::Sent | Reconf::InProgress) {
            let synced = node.link_up;
            if node.reconf == Reconf::Sent {
                self.set_reconf(now, id, replica, Reconf::InProgress, "+slave-reconf-inprog");
            }
            if synced {
                self.set_reconf(now, id, replica, Reconf::Done, "+slave-reconf-done");
            }
            return;
        }
        let timeout = master.settings.failover_timeout;
        // Behind a name of which we know nothing there may be the master itself: that is not mended with every INFO.
        let unknown = node.master_addr.as_ref().is_some_and(|addr| addr.ip.is_none());
        let told_lately = unknown && node.turned.is_some_and(|at| now.since(at) <= timeout);
        let astray = !follows_current
            && !told_lately
            && master.failover.is_none()
            && now.since(node.master_addr_changed) > timeout
            && node.node.was_well_for(now, timeout);
        if astray && self.looks_sane(now, master) {
            self.turn_to_master(now, id, replica, "+fix-slave-config");
        }
    }

    pub(super) fn set_reconf(
        &mut self,
        now: Millis,
        id: MasterId,
        replica: ReplicaId,
        reconf: Reconf,
        channel: &'static str,
    ) {
        let Some(node) = self.masters.get_mut(&id).and_then(|master| master.replicas.get_mut(&replica)) else { return };
        node.reconf = reconf;
        node.reconf_changed = now;
        let text = self.out.replica(&self.masters[&id], &self.masters[&id].replicas[&replica]);
        self.out.event(Level::Notice, channel, text);
        self.note(now, id, channel, Some(replica));
    }

    /// We think it is master, it says so, it is not down, and that is recent news.
    fn looks_sane(&self, now: Millis, master: &Master) -> bool {
        master.node.role_reported == Role::Master
            && master.node.sdown.is_none()
            && master.odown.is_none()
            && master
                .node
                .info
                .as_ref()
                .is_some_and(|info| now.since(info.at) < self.tunables.info_period.saturating_mul(2))
    }

    /// Outside a failover: tells a replica that went astray to follow the master.
    fn turn_to_master(&mut self, now: Millis, id: MasterId, replica: ReplicaId, channel: &'static str) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let target = master.node.addr.clone();
        let Some(node) = master.replicas.get_mut(&replica) else { return };
        // Once per INFO period: it is polled more often than that, but needs time to obey.
        if node.turned.is_some_and(|at| now.since(at) < self.tunables.info_period) || node.node.addr.same(&target) {
            return;
        }
        node.turned = Some(now);
        if self.send_replicaof(now, id, replica, Some(&target)) {
            let (master, node) = (&self.masters[&id], &self.masters[&id].replicas[&replica]);
            let text = self.out.replica(master, node);
            self.out.event(Level::Notice, channel, text);
        }
    }

    /// The transaction that makes a replica follow `target`, or be a master when there is none; INFO rides
    /// behind it, so that the new role is known one round trip later. False when it could not be sent.
    pub(super) fn send_replicaof(
        &mut self,
        now: Millis,
        id: MasterId,
        replica: ReplicaId,
        target: Option<&Addr>,
    ) -> bool {
        let astray = self.planted(Plant::FollowYourself);
        let Some(master) = self.masters.get_mut(&id) else { return false };
        let Some(node) = master.replicas.get_mut(&replica) else { return false };
        let Some(link) = self.links.get_mut(&node.node.link) else { return false };
        let itself = target.is_some_and(|target| target.same(&node.node.addr));
        // The transaction with its INFO goes whole or not at all: a connection left inside a MULTI would be lost.
        if itself || !link.cmd.is_up() || !link.has_room(7) {
            return false;
        }
        let name = |command: &'static str| renamed(&master.settings, command).as_bytes();
        let (host, port) = match target {
            None => ("NO".to_owned(), "ONE".to_owned()),
            Some(_) if astray => (self.out.host(&node.node.addr), node.node.addr.port.to_string()),
            Some(addr) => (self.out.host(addr), addr.port.to_string()),
        };
        let out = &mut self.out;
        link.command(out, Expect::Ignored, &[name("MULTI")]);
        if node.node.handing_over == Some(true) {
            // It would refuse to follow anybody before that is over.
            link.command(out, Expect::Ignored, &[name("FAILOVER"), b"ABORT"]);
        }
        link.command(out, Expect::Ignored, &[name("SLAVEOF"), host.as_bytes(), port.as_bytes()]);
        link.command(out, Expect::Ignored, &[name("CONFIG"), b"REWRITE"]);
        link.command(out, Expect::Ignored, &[name("CLIENT"), b"KILL", b"TYPE", b"normal"]);
        link.command(out, Expect::Ignored, &[name("CLIENT"), b"KILL", b"TYPE", b"pubsub"]);
        link.command(out, Expect::Exec(id, replica), &[name("EXEC")]);
        if link.command(out, Expect::InfoReplica(id, replica), &[name("INFO")]) {
            node.node.info_asked = Some(now);
        }
        true
    }
}

impl Replica {
    pub(super) fn new(id: ReplicaId, node: Node, now: Millis) -> Replica {
        Replica {
            id,
            node,
            priority: 100,
            priority_told: Told::No,
            offset: 0,
            master_addr: None,
            master_addr_changed: now,
            link_up: false,
            link_down_ms: 0,
            announced: true,
            first_sync: false,
            reconf: Reconf::None,
            reconf_changed: now,
            turned: None,
            doubted: None,
            hidden: false,
        }
    }

    fn take(&mut self, now: Millis, report: &InfoReport) {
        self.link_down_ms = report.link_down_seconds.saturating_mul(1_000);
        if let (Some(host), Some(port)) = (&report.master_host, report.master_port) {
            // The address of a name is filled in when it is looked up.
            let known = self.master_addr.as_ref().filter(|known| &*known.host == host && known.port == port);
            let addr = known.cloned().unwrap_or_else(|| Addr::new(host, port));
            if self.master_addr.as_ref() != Some(&addr) {
                self.master_addr = Some(addr);
                self.master_addr_changed = now;
            }
        }
        self.link_up = report.link_up.unwrap_or(false);
        if let Some(priority) = report.priority {
            (self.priority, self.priority_told) = (priority, Told::ByInfo);
        }
        self.offset = report.offset.unwrap_or(self.offset);
        self.announced = report.announced.unwrap_or(self.announced);
        self.first_sync = report.sync_in_progress && self.offset <= 1;
    }
}

/// Stores the run id; true when it differs from the one known before: another process.
fn take_run_id(node: &mut Node, reported: Option<RunId>) -> bool {
    let Some(run_id) = reported else { return false };
    node.run_id.replace(run_id).is_some_and(|before| before != run_id)
}

fn role_of(is_master: bool) -> Role {
    if is_master { Role::Master } else { Role::Replica }
}
