//! Host names, where `resolve-hostnames` allows them.
//!
//! A name is looked up off the loop and never waited for. It keeps the last address that was found: a name that
//! stops resolving is a dead peer with a known address, not an unknown one. Before a named node is dialled again its
//! name is looked up again, and an answer that differs moves its links. A node met by name and by address is one
//! node, as soon as the name is known to mean that address.

use super::effect::{Effect, Level};
use super::ids::{Addr, LinkId, MasterId, ReplicaId};
use super::{Sentinel, current_addr};
use crate::base::Millis;
use std::net::IpAddr;

/// Names remembered; peers and servers tell us names, and may not fill our memory with them.
const NAMES_MAX: usize = 4_096;
/// Between two look-ups of one name is this part of the PING period at least. A lost node is dialled as often before its silence
/// counts as its death, and may have moved.
const LOOK_UPS_A_PERIOD: u64 = 4;

impl Sentinel {
    /// The address with what is known about its name. `None` when it is a name and names are not allowed.
    pub(super) fn locate(&mut self, addr: Addr) -> Option<Addr> {
        if addr.ip.is_some() {
            return Some(addr);
        }
        if !self.options.resolve_hostnames {
            return None;
        }
        let addr = self.as_known(addr);
        if addr.ip.is_none() {
            self.look_up(&addr);
        }
        Some(addr)
    }

    /// The same, without anything being looked up for it.
    pub(super) fn as_known(&self, addr: Addr) -> Addr {
        Addr { ip: addr.ip.or_else(|| self.known_names.get(&addr.host).copied()), ..addr }
    }

    /// A name is looked up [`LOOK_UPS_A_PERIOD`] times in a PING period at most: where refusals count its node is dialled more
    /// often than that, and a host that many masters are on is dialled for each of them.
    pub(super) fn look_up(&mut self, addr: &Addr) {
        if !addr.is_named() || !self.options.resolve_hostnames {
            return;
        }
        let (now, period) = (self.newest, self.tunables.ping_period / LOOK_UPS_A_PERIOD);
        let recent = |at: &Millis| now.since(*at) < period;
        if self.looked_up.get(&addr.host).is_some_and(recent) {
            return;
        }
        if self.looked_up.len() >= NAMES_MAX {
            self.looked_up.retain(|_, at| recent(at));
        }
        if self.looked_up.len() < NAMES_MAX {
            self.looked_up.insert(addr.host.clone(), now);
        }
        self.out.push(Effect::Resolve { host: addr.host.clone() });
    }

    /// A name was looked up: everybody known under it gets the address; a failed look-up changes nothing.
    pub(super) fn resolved(&mut self, now: Millis, host: &str, ip: Option<IpAddr>) {
        let Some(ip) = ip else {
            let last = self.known_names.get(host);
            let still = last.map_or("nobody is connected to under it until it can".into(), |ip| {
                format!("its last address {ip} is used")
            });
            let news = self.lost_names.len() < NAMES_MAX && self.lost_names.insert(host.into());
            let level = if news { Level::Warning } else { Level::Verbose };
            self.out.log(level, format!("The name {host} cannot be looked up; {still}"));
            return;
        };
        self.lost_names.remove(host);
        if self.known_names.len() < NAMES_MAX || self.known_names.contains_key(host) {
            self.known_names.insert(host.into(), ip);
        }
        // True when that is news.
        let name = |addr: &mut Addr| &*addr.host == host && addr.ip.replace(ip) != Some(ip);
        let mut changed: Vec<MasterId> = Vec::new();
        for master in self.masters.values_mut() {
            let mut news = name(&mut master.node.addr);
            for replica in master.replicas.values_mut() {
                news |= name(&mut replica.node.addr);
                if let Some(addr) = &mut replica.master_addr {
                    name(addr);
                }
            }
            for peer in master.peers.values_mut() {
                name(&mut peer.addr);
            }
            if news {
                changed.push(master.id);
            }
        }
        let (mut found, mut moved): (Vec<LinkId>, Vec<LinkId>) = (Vec::new(), Vec::new());
        for link in self.links.values_mut().filter(|link| &*link.addr.host == host) {
            match link.addr.ip.replace(ip) {
                None => found.push(link.id),
                Some(before) if before != ip => moved.push(link.id),
                Some(_) => {}
            }
        }
        if !(found.is_empty() && moved.is_empty()) {
            self.claims.touch();
        }
        for link in found.into_iter().chain(moved) {
            self.redial(now, link);
        }
        // Most answers say what is known.
        for id in changed {
            self.merge_replicas(now, id);
        }
    }

    /// Replicas that turned out to be one node, or the master itself, become one.
    fn merge_replicas(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let mut kept: Vec<(ReplicaId, Addr)> = Vec::new();
        let mut gone: Vec<ReplicaId> = Vec::new();
        for replica in master.replicas.values() {
            let addr = &replica.node.addr;
            if addr.same(&master.node.addr) {
                gone.push(replica.id);
            } else if let Some((_, first)) = kept.iter_mut().find(|(_, first)| first.same(addr)) {
                gone.push(replica.id);
                // Known by name once is known by name.
                if addr.is_named() && !first.is_named() {
                    *first = addr.clone();
                }
            } else {
                kept.push((replica.id, addr.clone()));
            }
        }
        if gone.is_empty() {
            return;
        }
        let promoted = master.failover.as_ref().and_then(super::Failover::promoted);
        if promoted.is_some_and(|promoted| gone.contains(&promoted)) && current_addr(master).same(&master.node.addr) {
            self.abort(now, id, "-failover-abort-slave-timeout");
        }
        for replica in gone {
            if self.masters[&id].failover.as_ref().and_then(super::Failover::promoted) != Some(replica) {
                self.drop_replica(id, replica);
            }
        }
        for (replica, addr) in kept {
            let Some(replica) = self.masters.get_mut(&id).and_then(|m| m.replicas.get_mut(&replica)) else { continue };
            if replica.node.addr != addr {
                replica.node.addr = addr.clone();
                let link = replica.node.link;
                if let Some(link) = self.links.get_mut(&link) {
                    link.addr = addr;
                }
            }
        }
        self.out.mark_dirty();
        self.act(now, id);
    }
}
