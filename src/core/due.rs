//! When the cron has to look at a master.
//!
//! It runs ten to nineteen times a second and would find nothing to do for most masters. So each master has a moment before
//! which there is certainly nothing: the first of its timers, as they stood when the cron last looked at it
//! (`Master::due`), and only those whose moment has come are looked at, in their order as ever.
//!
//! Most of what happens makes timers later, and then nothing need be said: the cron looks, finds nothing and learns the new
//! moment. Whatever may make something due *earlier* calls [`Sentinel::reconsider`], and the next cron looks; the acting half
//! always does, so whoever calls it need not think of that. A master about which anything is going on is looked at every time.
//! Where there is nobody to be looked at, the cron does not run at all and the process sleeps on: with one master that is
//! most of the time. Debug builds prove at every moment of the cron that those left out were left out rightly.

use super::Sentinel;
use super::ids::{LinkId, MasterId};
use super::model::{Link, Master, Node, Owner, Reconf, Replica, Role};
use crate::base::Millis;

impl Sentinel {
    /// The next cron looks at this master.
    pub(super) fn reconsider(&mut self, id: MasterId) {
        self.plan(id, Millis(0));
    }

    /// The next cron looks at all masters.
    pub(super) fn reconsider_all(&mut self) {
        let ids: Vec<MasterId> = self.masters.keys().copied().collect();
        for id in ids {
            self.reconsider(id);
        }
    }

    /// The next cron looks at whoever uses this link.
    pub(super) fn reconsider_users(&mut self, link: LinkId) {
        match self.links.get(&link).map(|link| &link.owner) {
            None => {}
            Some(Owner::Master(master) | Owner::Replica(master, _)) => self.reconsider(*master),
            Some(Owner::Peer(_, masters)) => {
                for &master in masters.clone().iter() {
                    self.reconsider(master);
                }
            }
        }
    }

    fn plan(&mut self, id: MasterId, due: Millis) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let before = std::mem::replace(&mut master.due, due);
        if before != due {
            self.agenda.remove(&(before, id));
            self.agenda.insert((due, id));
        }
    }

    /// A master is new.
    pub(super) fn plan_new(&mut self, master: &Master) {
        self.agenda.insert((master.due, master.id));
    }

    /// A master is gone.
    pub(super) fn unplan(&mut self, master: &Master) {
        self.agenda.remove(&(master.due, master.id));
        if let Some(at) = master.armed {
            self.deadlines.remove(&(at, master.id));
        }
    }

    /// Makes the list of the masters that are due, or of all.
    pub(super) fn list_due(&mut self, now: Millis) {
        let ids = &mut self.to_look_at;
        if self.looks_at_all {
            ids.extend(self.masters.keys());
        } else {
            ids.extend(self.agenda.iter().take_while(|(due, _)| *due <= now).map(|(_, id)| id));
            ids.sort_unstable();
        }
        ids.reverse();
    }

    /// Looks at those that are next in it, as many as one turn may.
    pub(super) fn look(&mut self, now: Millis) {
        for _ in 0..self.looks_per_turn {
            let Some(id) = self.to_look_at.pop() else { break };
            let Some(master) = self.masters.get(&id) else { continue };
            let due = self.due(master);
            if due > now && !self.looks_at_all {
                self.plan(id, due);
                continue;
            }
            self.routine(now, id);
            if let Some(master) = self.masters.get(&id) {
                let due = self.due(master);
                self.plan(id, due);
            }
        }
        if cfg!(debug_assertions) && self.to_look_at.is_empty() {
            self.check_agenda(now);
        }
    }

    fn routine(&mut self, now: Millis, id: MasterId) {
        self.monitor_master(now, id);
        self.judge_others(now, id);
        self.reconsider(id);
        self.act_now(now, id);
    }

    /// What the old way, a look at everybody, would find at this moment beyond what is due: nothing.
    pub(super) fn check_agenda(&mut self, now: Millis) {
        assert_eq!(self.agenda.len(), self.masters.len());
        let armed = self.masters.values().filter(|master| master.armed.is_some()).count();
        assert_eq!(self.deadlines.len(), armed, "a wake-up that nobody stands by");
        let left_out: Vec<MasterId> = self.masters.values().filter(|master| master.due > now).map(|m| m.id).collect();
        for id in left_out {
            let due = self.masters[&id].due;
            assert!(self.due(&self.masters[&id]) >= due, "{} is due earlier than planned", self.masters[&id].name);
            let armed = self.masters[&id].armed;
            let before = self.out.fill();
            self.routine(now, id);
            assert_eq!(self.out.fill(), before, "{} was left out and had something to do", self.masters[&id].name);
            assert_eq!(self.masters[&id].armed, armed, "{} was left out and wants to be woken", self.masters[&id].name);
            self.plan(id, due);
        }
    }

    /// The first moment at which the cron may have something to do for this master, as things stand.
    fn due(&self, master: &Master) -> Millis {
        if is_busy(master) {
            return Millis(0);
        }
        let node = |node: &Node, info_period: u64| {
            let hello = self.hello_at(node.hello_sent, node.hello_asked);
            node.info_at(info_period).min(hello).min(self.link_at(master, node.link))
        };
        let mut at = node(&master.node, self.tunables.info_period);
        if master.node.role_reported == Role::Replica {
            at = at.min(self.patience_ends(master));
        }
        // It has a wake-up of its own, but a turn of the loop may come late.
        at = self.redial_deadline(master).map_or(at, |redial| at.min(redial));
        for replica in master.replicas.values() {
            at = at.min(node(&replica.node, self.info_period(master, replica)));
        }
        for peer in master.peers.values() {
            at = at.min(self.hello_at(peer.hello_sent, peer.hello_asked)).min(self.link_at(master, peer.link));
        }
        at
    }

    /// The first moment at which a link wants a PING, is to be dropped or dialled, or counts as silent.
    fn link_at(&self, master: &Master, link: LinkId) -> Millis {
        let Some(link) = self.links.get(&link) else { return Millis(0) };
        let down_after = master.settings.down_after;
        // An answer must not make it earlier, so it counts as answered.
        let ping = link.ping_at(self.ping_period(master), 0);
        // Another master that shares the link may send a PING before that, and when it is not answered its clock is ours.
        let waits = link.sharers() > 1 && link.active_ping.is_none();
        let mute = if waits { self.mute_at(link, link.last_pong, down_after) } else { None };
        let moments = [
            mute,
            link.silent_at(down_after),
            self.drop_cmd_at(link, down_after),
            self.drop_pubsub_at(link),
            self.dial_cmd_at(link, down_after),
            self.dial_pubsub_at(link),
        ];
        moments.into_iter().flatten().fold(ping, Millis::min)
    }
}

/// Somebody is down, or something is being done about it.
fn is_busy(master: &Master) -> bool {
    let asked = master.peers.values().any(|peer| peer.sdown.is_some() || peer.heard.is_some());
    let in_hand =
        |replica: &Replica| replica.node.sdown.is_some() || matches!(replica.reconf, Reconf::Sent | Reconf::InProgress);
    master.node.sdown.is_some()
        || master.odown.is_some()
        || master.failover.is_some()
        || master.rebooted.is_some()
        || asked
        || master.replicas.values().any(in_hand)
}

impl Link {
    /// When the next PING is due, with `common` the period of most masters. While one is unanswered another tells nothing new:
    /// a short period must not fill the link of a node that hangs. One that answers with an error (-BUSY) does not hang, and a
    /// script that ends soon must not look like its death because nobody asked again.
    pub(super) fn ping_at(&self, period: u64, common: u64) -> Millis {
        let unanswered = self.active_ping.is_some() && self.last_pong < self.ping_sent;
        let pause = if unanswered { period.max(common) / 2 } else { period / 2 };
        (self.last_pong + period).max(self.ping_sent + pause) + 1
    }
}

impl Node {
    /// When the next INFO is due. One under way is given a second before it is repeated, or the quick polls would pile up on a
    /// slow node.
    pub(super) fn info_at(&self, period: u64) -> Millis {
        let known = self.info.as_ref().map_or(Millis(0), |info| info.at + period + 1);
        known.max(self.info_asked.map_or(Millis(0), |at| at + period.max(1_000) + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::limits;
    use crate::core::{Addr, Identity, MasterSnapshot, RunId, Settings, Snapshot};

    /// So many masters that nobody has answered for yet.
    fn sentinel(masters: usize, now: Millis) -> Sentinel {
        let master = |port| MasterSnapshot {
            name: format!("m{port}"),
            host: "127.0.0.1".into(),
            port,
            settings: Settings::with_quorum(1),
            config_epoch: 0,
            leader_epoch: 0,
            known_replicas: Vec::new(),
            known_peers: Vec::new(),
        };
        let snapshot = Snapshot { masters: (1..).take(masters).map(master).collect(), ..Snapshot::default() };
        let identity = Identity { myid: RunId::from_entropy([1; 20]), port: 26379, own_password: Vec::new() };
        Sentinel::new(identity, &snapshot, 7, now)
    }

    #[test]
    fn a_turn_looks_at_so_many_masters_and_the_next_goes_on_at_once() {
        let (turn, all) = (limits::LOOKS_PER_TURN, limits::LOOKS_PER_TURN * 5 / 2);
        let mut sentinel = sentinel(all, Millis(1_000));
        let now = Millis(1_050);
        let looked_at = |sentinel: &Sentinel| sentinel.masters.values().filter(|master| master.due > now).count();
        for turns in 1..=3 {
            assert!(sentinel.next_wakeup() <= now, "there are more");
            sentinel.tick(now);
            assert_eq!(looked_at(&sentinel), (turns * turn).min(all));
        }
        assert!(sentinel.next_wakeup() > now, "none is left");

        // The same where all want to be woken for the same moment.
        let now = now + 5;
        let ids: Vec<MasterId> = sentinel.masters.keys().copied().collect();
        ids.into_iter().for_each(|id| sentinel.arm(id, now));
        for left in [all, all - turn, all - 2 * turn, 0] {
            assert_eq!(sentinel.deadlines.iter().take_while(|(at, _)| *at <= now).count(), left);
            assert_eq!(sentinel.next_wakeup() <= now, left > 0);
            sentinel.tick(now);
        }
    }

    #[test]
    fn when_a_tilt_ends_all_are_looked_at_also_in_later_turns() {
        let (turn, all) = (limits::LOOKS_PER_TURN, limits::LOOKS_PER_TURN * 5 / 2);
        let mut sentinel = sentinel(all, Millis(1_000));
        while sentinel.next_wakeup() <= Millis(1_050) {
            sentinel.tick(Millis(1_050));
        }
        // In TILT nobody is waited for.
        (sentinel.tilt, sentinel.tunables.tilt_period) = (Some(Millis(1_050)), 0);
        sentinel.deadlines.clear();
        sentinel.masters.values_mut().for_each(|master| master.armed = None);
        let now = Millis(1_051);
        sentinel.next_cron = now;
        for turns in 1..=3 {
            sentinel.tick(now);
            assert!(sentinel.tilt.is_none());
            assert_eq!(sentinel.deadlines.len(), (turns * turn).min(all), "though nobody is due");
        }
        assert!(sentinel.next_wakeup() > now, "none is left");
    }

    #[test]
    fn who_joins_a_shared_link_has_nobody_looked_at_but_the_one_who_had_it_alone() {
        let now = Millis(1_000);
        let mut sentinel = sentinel(3, now);
        let ids: Vec<MasterId> = sentinel.masters.keys().copied().collect();
        let (peer, addr) = (RunId::from_entropy([2; 20]), Addr::new("127.0.0.1", 26380));
        let later = Millis(9_000);
        let mut looked_at_after = |id| {
            ids.iter().for_each(|&id| sentinel.plan(id, later));
            sentinel.insert_peer(now, id, peer, &addr);
            sentinel.masters.values().map(|master| master.due < later).collect::<Vec<_>>()
        };
        assert_eq!(looked_at_after(ids[0]), [true, false, false]);
        assert_eq!(looked_at_after(ids[1]), [true, true, false], "the first is no longer alone with it");
        assert_eq!(looked_at_after(ids[2]), [false, false, true]);
        assert_eq!(sentinel.agenda.len(), ids.len());
    }
}
