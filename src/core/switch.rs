//! A master's address changes, or is started afresh.

use super::ids::{Addr, LinkId, MasterId, ReplicaId};
use super::model::{Excused, Expect, Node, Owner, Replica, Role};
use super::report::Outcome;
use super::{Plant, Sentinel};
use crate::base::Millis;

impl Sentinel {
    /// `+switch-master <name> <old-ip> <old-port> <new-ip> <new-port>`
    pub(super) fn announce_switch(&mut self, id: MasterId, from: &Addr, to: &Addr) {
        let Some(master) = self.masters.get(&id) else { return };
        let text = format!("{} {} {} {} {}", master.name, self.out.host(from), from.port, self.out.host(to), to.port);
        self.out.alert(master, "+switch-master", text);
    }

    /// The master lives at `to` from now on. Its replicas are rebuilt: those known so far without the new master,
    /// plus the old master, so that it is turned into a replica when it returns. Peers, votes and settings stay.
    ///
    /// A link is about an address, not about a role: the new master keeps the link it had as a replica, and so do
    /// the others. Only the old master starts afresh.
    pub(super) fn switch_to(&mut self, now: Millis, id: MasterId, to: Addr) {
        self.end_failover(now, id, Outcome::Superseded);
        let Some(master) = self.masters.get_mut(&id) else { return };
        let old_addr = master.node.addr.clone();
        let old_link = master.node.link;
        let replicas = std::mem::take(&mut master.replicas);
        let same = old_addr.same(&to);
        let mut new_link = same.then_some(old_link);
        let mut kept: Vec<(Addr, LinkId, u32)> = Vec::new();
        for replica in replicas.into_values() {
            if replica.node.addr.same(&to) && new_link.is_none() {
                new_link = Some(replica.node.link);
            } else if replica.node.addr.same(&to) {
                self.leave_link(replica.node.link, id);
            } else {
                kept.push((replica.node.addr, replica.node.link, replica.priority));
            }
        }
        if !same {
            self.leave_link(old_link, id);
        }
        let link = match new_link {
            Some(link) => {
                self.own(link, Owner::Master(id));
                link
            }
            None => self.add_link(now, to.clone(), Owner::Master(id)),
        };
        let Some(master) = self.masters.get_mut(&id) else { return };
        master.node = Node::new(to, link, Role::Master, now);
        master.odown = None;
        master.rebooted = None;
        master.attempt = None;
        master.retry_at = None;
        master.delay_logged = false;
        // A silence of the new master counts from now on, and answers about the old one count no more.
        if let Some(link) = self.links.get_mut(&link) {
            link.active_ping = link.active_ping.map(|_| now);
            link.last_ok = now;
            link.refusals = None;
            link.excused = Excused::default();
        }
        for peer in master.peers.values_mut() {
            if let Some(link) = self.links.get_mut(&peer.link) {
                let about_it = |expect: &&mut Expect| matches!(expect, Expect::Ask { master, .. } if *master == id);
                link.pending.iter_mut().filter(about_it).for_each(|expect| *expect = Expect::Ignored);
            }
            (peer.agrees, peer.heard, peer.asked, peer.asking) = (false, None, None, false);
            (peer.echo, peer.echoed) = (false, None);
        }
        self.send_info_to_master(now, id);
        for (addr, link, priority) in kept {
            let replica = ReplicaId(self.fresh_id());
            self.own(link, Owner::Replica(id, replica));
            let node = Node::new(addr, link, Role::Replica, now);
            if let Some(master) = self.masters.get_mut(&id) {
                // Until it says another.
                master.replicas.insert(replica, Replica { priority, ..Replica::new(replica, node, now) });
            }
            self.announce_replica(id, replica);
            self.send_info_to_replica(now, id, replica);
        }
        // Port 0 is let in by MONITOR, as in the reference, but nobody can return from there, and no file would keep it.
        if !same && old_addr.port != 0 {
            self.add_replica(now, id, old_addr);
        }
        self.out.mark_dirty();
        self.act(now, id);
    }

    fn own(&mut self, link: LinkId, owner: Owner) {
        if let Some(link) = self.links.get_mut(&link) {
            link.owner = owner;
        }
    }

    /// `SENTINEL RESET`: how many masters matched the glob.
    pub fn reset(&mut self, now: Millis, pattern: &[u8]) -> usize {
        self.notice_gap(now);
        let all = self.planted(Plant::ResetAll);
        let matching: Vec<MasterId> = self
            .masters
            .values()
            .filter(|master| all || crate::base::glob::matches(pattern, master.name.as_bytes(), false))
            .map(|master| master.id)
            .collect();
        for &id in &matching {
            self.reset_master(now, id);
        }
        self.check_invariants();
        matching.len()
    }

    /// Forgets replicas, peers and a failover under way. Two things are kept, so that a RESET just before a crash
    /// does not harm: how long the master has been silent (its link stays), and, hidden, the replicas: they may
    /// still be promoted until the master has named its replicas anew.
    fn reset_master(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let peers: Vec<_> = master.peers.keys().copied().collect();
        let in_force = super::current_addr(master).clone();
        for peer in peers {
            self.drop_peer(id, peer);
        }
        let Some(master) = self.masters.get_mut(&id) else { return };
        if !in_force.same(&master.node.addr) {
            // Promoted, but not yet at home: the new address is the one to start afresh with.
            self.switch_to(now, id, in_force);
        }
        self.end_failover(now, id, Outcome::Reset);
        let Some(master) = self.masters.get_mut(&id) else { return };
        let link = master.node.link;
        let last_down = master.node.last_down;
        master.node = Node { last_down, ..Node::new(master.node.addr.clone(), link, Role::Master, now) };
        (master.odown, master.rebooted) = (None, None);
        (master.attempt, master.retry_at, master.delay_logged) = (None, None, false);
        for replica in master.replicas.values_mut() {
            replica.hidden = true;
        }
        let text = self.out.master(master);
        // The next cron asks for INFO. There is no hurry, as the replicas are still at hand, and whoever looks
        // right after a RESET sees that it took place.
        self.out.alert(master, "+reset-master", text);
        self.out.mark_dirty();
        self.act(now, id);
    }
}
