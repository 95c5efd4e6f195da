//! What operators have made Sentinels forget.
//!
//! RESET and REMOVE are there to forget replicas, and a Sentinel that lost its file has forgotten them, too. Whoever
//! follows the master is found again through it. A server that is no replica at that moment, because it was away or is a
//! master itself, is found by nobody: when it has been forgotten everywhere, it has left the group, and what it does is no
//! business of the Sentinels any more. Convergence is not asked of it.

use super::world::World;
use std::collections::BTreeSet;
use watchfire::core::Sentinel;

/// By Sentinel: the servers that it knew when it was made to forget.
#[derive(Debug)]
pub struct Forgotten(Vec<BTreeSet<usize>>);

impl Forgotten {
    pub fn new(sentinels: usize) -> Forgotten {
        Forgotten(vec![BTreeSet::new(); sentinels])
    }
}

impl World<'_> {
    /// This Sentinel is about to forget what it knows about one master, given by its number.
    pub(super) fn forgets(&mut self, who: usize, group: usize) {
        let servers = self.options.groups[group].servers.clone();
        let known: Vec<usize> = servers.filter(|&server| self.knows(who, server)).collect();
        self.forgotten.0[who].extend(known);
    }

    /// This Sentinel begins with nothing but the addresses of the masters.
    pub(super) fn forgets_all(&mut self, who: usize) {
        self.forgotten.0[who].extend(0..self.servers.len());
    }

    /// The servers that no Sentinel knows any more who monitors their master, as each was made to forget it.
    pub(super) fn forgotten_everywhere(&self) -> BTreeSet<usize> {
        let forgotten = |server: &usize| {
            let by = |who: usize| self.forgotten.0[who].contains(server) && !self.knows(who, *server);
            self.options.group_of(*server).watchers.iter().copied().all(by)
        };
        (0..self.servers.len()).filter(forgotten).collect()
    }

    fn knows(&self, who: usize, server: usize) -> bool {
        let sentinel = self.processes[who].sentinel.as_deref();
        let name = self.options.group_of(server).name.as_bytes();
        let Some(master) = sentinel.and_then(|sentinel: &Sentinel| sentinel.master_by_name(name)) else {
            return false;
        };
        let mut nodes = std::iter::once(&master.node).chain(master.replicas.values().map(|replica| &replica.node));
        nodes.any(|node| self.servers[server].is_at(&node.addr.host, node.addr.port))
    }
}
