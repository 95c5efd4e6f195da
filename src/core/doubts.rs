//! Set-ups that cannot be right. They are said in the log, once (or once a minute while they last), and change nothing
//! of what a Sentinel does.

use super::Sentinel;
use super::effect::Level;
use super::ids::{Addr, MasterId, ReplicaId};
use super::model::{Role, Told};
use crate::base::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What lasts is reported at most this often, ms.
pub(super) const REPORT_PERIOD: u64 = 60_000;
/// Claims are compared at most this often, ms: it takes a look at every node there is.
const CLAIMS_PERIOD: u64 = 10_000;
/// Of many nodes with two claims at once, so many are named.
const CLAIMS_TOLD: usize = 10;
/// So much of a message that is no hello is shown, in bytes.
const SHOWN: usize = 120;

/// True, and noted, when `last` was not reported within the period.
pub(super) fn due(last: &mut Option<Millis>, now: Millis) -> bool {
    let due = last.is_none_or(|at| now.since(at) >= REPORT_PERIOD);
    if due {
        *last = Some(now);
    }
    due
}

/// Which nodes are claimed by two masters, as far as known and said.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// A node came or changed since they were compared.
    stale: bool,
    compared: Option<Millis>,
    /// Those that last, with the two masters.
    said: BTreeSet<(IpAddr, u16, MasterId, MasterId)>,
}

impl Claims {
    pub fn touch(&mut self) {
        self.stale = true;
    }

    /// When they are to be compared; `None` while nothing has changed.
    pub fn compare_at(&self) -> Option<Millis> {
        self.stale.then(|| self.compared.map_or(Millis(0), |at| at + CLAIMS_PERIOD))
    }
}

fn part(role: Role) -> &'static str {
    match role {
        Role::Master => "the master of",
        Role::Replica => "a replica of",
    }
}

impl Sentinel {
    /// One node in two groups: each would turn it to its own master, or promote it away from the other.
    pub(super) fn compare_claims(&mut self, now: Millis) {
        if self.claims.compare_at().is_none_or(|at| now < at) {
            return;
        }
        (self.claims.stale, self.claims.compared) = (false, Some(now));
        let mut owners: BTreeMap<(IpAddr, u16), (MasterId, Role)> = BTreeMap::new();
        let mut shared = BTreeSet::new();
        let mut news = Vec::new();
        for master in self.masters.values() {
            let replicas = master.replicas.values().map(|replica| (&replica.node.addr, Role::Replica));
            for (addr, role) in std::iter::once((&master.node.addr, Role::Master)).chain(replicas) {
                let Some(ip) = addr.ip else { continue };
                let &mut (first, first_role) = owners.entry((ip, addr.port)).or_insert((master.id, role));
                if first == master.id {
                    continue;
                }
                let pair = (ip, addr.port, first, master.id);
                if !self.claims.said.contains(&pair) {
                    let first = &self.masters[&first].name;
                    news.push(format!(
                        "{addr} is known as {} {first} and as {} {}: two groups that give one node orders work against \
                         each other, so one of them should not know it",
                        part(first_role),
                        part(role),
                        master.name
                    ));
                }
                shared.insert(pair);
            }
        }
        self.claims.said = shared;
        let left_out = news.len().saturating_sub(CLAIMS_TOLD);
        for text in news.into_iter().take(CLAIMS_TOLD) {
            self.out.log(Level::Warning, text);
        }
        if left_out > 0 {
            self.out.log(Level::Warning, format!("{left_out} more nodes are known in two groups"));
        }
    }

    /// A name that no hello can carry (its fields are joined by commas, and none may be empty), or a port that nobody can
    /// listen on.
    pub(super) fn doubt_master(&mut self, name: &str, port: u16) {
        if port == 0 {
            let text = format!("The master {name} has port 0: it is never connected to, and so counts as down");
            self.out.log(Level::Warning, text);
        }
        if name.is_empty() || name.contains(',') {
            let text = format!(
                "No hello can tell other Sentinels of a master named \"{name}\": we will not meet any of them, and a \
                 quorum above 1 cannot be reached"
            );
            self.out.log(Level::Warning, text);
        }
    }

    /// We announce ourselves under something that others cannot use, unless they are set up in another way than we are.
    pub(super) fn doubt_announced(&mut self) {
        let host = &self.options.announce_ip;
        let why = if host.is_empty() || host.parse::<IpAddr>().is_ok() {
            return;
        } else if host.contains('%') {
            "has a zone id, which means something on this machine only"
        } else if !self.options.resolve_hostnames {
            "is a name, and resolve-hostnames is no: where it is no at the other Sentinels too, they cannot look it up"
        } else {
            return;
        };
        let text = format!("announce-ip \"{host}\" {why}, and those who cannot use it do not count us");
        self.out.log(Level::Warning, text);
    }

    /// A master says how far its data goes. Less than was known before, from it or from its predecessor, means that
    /// writes are gone: it restarted without them, or took over without having had them.
    pub(super) fn watch_offset(&mut self, id: MasterId, offset: u64) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let Some((addr, before)) = master.reached.replace((master.node.addr.clone(), offset)) else { return };
        if offset >= before {
            return;
        }
        let cause = if addr.same(&master.node.addr) {
            "it came back without all of its data, and its replicas will follow it there".to_owned()
        } else {
            format!("{addr} had more, and what was written there last is lost")
        };
        let text = format!(
            "{}: the replication offset went back from {before} to {offset}; {cause}",
            self.out.master(self.masters.get(&id).expect("seen above"))
        );
        self.out.log(Level::Warning, text);
    }

    /// Another process answers where a replica was, and does not follow our master. It may be the replica itself,
    /// restarted without its settings, or a stranger who got its address: by the rules it is turned to our master.
    pub(super) fn doubt_replica(&mut self, now: Millis, id: MasterId, replica: ReplicaId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        if master.failover.as_ref().and_then(super::Failover::promoted) == Some(replica) {
            return;
        }
        let ours = master.node.addr.clone();
        let Some(node) = master.replicas.get_mut(&replica) else { return };
        let astray = |addr: &Addr| addr.ip.is_some() && !addr.same(&ours);
        let says = match (node.node.role_reported, &node.master_addr) {
            (Role::Master, _) => "is a master".to_owned(),
            (Role::Replica, Some(addr)) if astray(addr) => format!("follows {addr}"),
            _ => return,
        };
        if !due(&mut node.doubted, now) {
            return;
        }
        let master = &self.masters[&id];
        let text = format!(
            "Another process answers as {}, and it {says}: if this is no longer a node of {}, SENTINEL RESET {} makes us \
             forget it; otherwise it will be turned to {ours}",
            self.out.replica(master, &master.replicas[&replica]),
            master.name,
            master.name
        );
        self.out.log(Level::Warning, text);
    }

    /// The best candidate holds nothing.
    pub(super) fn doubt_choice(&mut self, id: MasterId, promoted: ReplicaId) {
        let Some((master, replica)) = self.masters.get(&id).and_then(|m| Some((m, m.replicas.get(&promoted)?))) else {
            return;
        };
        if replica.first_sync {
            let text = format!(
                "{} never finished its first synchronisation, but there is no other to promote",
                self.out.replica(master, replica)
            );
            self.out.log(Level::Warning, text);
        }
        if replica.priority_told == Told::Withheld {
            let text = format!(
                "{} does not tell its priority, which is taken to be {}: a master names it only in answer to CONFIG GET, and \
                 our user may need +config|get for that",
                self.out.replica(master, replica),
                replica.priority
            );
            self.out.log(Level::Warning, text);
        }
    }

    /// What came on the hello channel is no hello.
    pub(super) fn report_no_hello(&mut self, now: Millis, payload: &[u8]) {
        if due(&mut self.no_hello_reported, now) {
            let shown = payload[..payload.len().min(SHOWN)].escape_ascii();
            let more = if payload.len() > SHOWN { "…" } else { "" };
            let bytes = payload.len();
            self.out.log(Level::Notice, format!("{bytes} bytes that are no hello are ignored: {shown}{more}"));
        }
    }

    /// More peers than a group can have.
    pub(super) fn report_crowd(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        if due(&mut master.crowd_reported, now) {
            let text = format!(
                "{} Sentinels are known for {}, and others announce themselves: they are ignored. Somebody makes them up, \
                 or SENTINEL RESET {} is overdue",
                master.peers.len(),
                master.name,
                master.name
            );
            self.out.log(Level::Warning, text);
        }
    }
}
