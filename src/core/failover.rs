//! The failover of one master, from the wish to the new configuration.
//!
//! ```text
//!            odown, or SENTINEL FAILOVER
//!                       │
//!                 ┌─────▼─────┐ cannot win, timeout, outvoted   -failover-abort-not-elected
//!                 │ WaitStart ├──────────────────────────────────────────────────────────────► none
//!                 └─────┬─────┘
//!       +elected-leader │ enough votes (forced: an epoch of our own)
//!               ┌───────▼───────┐ no candidate                  -failover-abort-no-good-slave
//!               │ SelectReplica ├────────────────────────────────────────────────────────────► none
//!               └───────┬───────┘
//!       +selected-slave │ offsets fresh, or one slot waited
//!            ┌──────────▼─────────┐ failover-timeout            -failover-abort-slave-timeout
//!            │ SendReplicaofNoOne ├──────────────────────────────────────────────────────────► none
//!            └──────────┬─────────┘
//!                       │ the transaction is on its way, INFO behind it
//!              ┌────────▼────────┐ failover-timeout             -failover-abort-slave-timeout
//!              │  WaitPromotion  ├───────────────────────────────────────────────────────────► none
//!              └────────┬────────┘
//!       +promoted-slave │ INFO says master: the new address is in force, saved, told to everybody
//!        +switch-master │
//!             ┌─────────▼────────┐
//!             │ ReconfReplicas   │  parallel-syncs at a time, until all that can are done
//!             └─────────┬────────┘  (or failover-timeout: +failover-end-for-timeout)
//!         +failover-end │
//!              ┌────────▼───────┐
//!              │  UpdateConfig  │  the promoted replica is the master from here on
//!              └────────────────┘
//! ```
//!
//! In a coordinated failover the orders of two steps differ: the master hands over ([`super::handover`]).
//!
//! No step waits for the cron: each is tried again whenever something about the master was heard.

use super::Sentinel;
use super::effect::{Effect, Level};
use super::election::CRASH_CODE;
use super::handover::Handover;
use super::ids::{MasterId, ReplicaId};
use super::model::{Node, Reconf, Replica};
use super::report::{FailoverReport, Outcome};
use super::slot::SLOT_LEAST;
use crate::base::Millis;

/// `SENTINEL SIMULATE-FAILURE crash-after-promotion`.
const CRASH_AFTER_PROMOTION: u32 = 2;

/// A failover under way: its own epoch and how far it is.
#[derive(Clone, Debug)]
pub struct Failover {
    /// The epoch in which votes are sought and under which the new address is published.
    pub epoch: u64,
    pub started: Millis,
    /// Begun by `SENTINEL FAILOVER`, without the consent of others.
    pub forced: bool,
    /// Begun by `SENTINEL FAILOVER … COORDINATED`, and not overtaken by the master's end.
    pub handover: Option<Handover>,
    /// Epochs tried; only a forced failover tries more than one.
    pub tries: u32,
    /// The epoch was drawn apart from all that a majority may use without us.
    pub apart: bool,
    pub step: Step,
    /// When the step was entered.
    pub changed: Millis,
    /// How often the promotion was ordered, and when last.
    pub orders: (u32, Millis),
    pub report: Box<FailoverReport>,
}

/// Why a failover begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The master is down.
    Down,
    /// `SENTINEL FAILOVER`
    Forced,
    /// `SENTINEL FAILOVER … COORDINATED`
    Coordinated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    WaitStart,
    SelectReplica,
    SendReplicaofNoOne { promoted: ReplicaId },
    WaitPromotion { promoted: ReplicaId },
    ReconfReplicas { promoted: ReplicaId },
    UpdateConfig { promoted: ReplicaId },
}

impl Step {
    /// The replica chosen, once there is one.
    #[must_use]
    pub fn promoted(self) -> Option<ReplicaId> {
        match self {
            Step::WaitStart | Step::SelectReplica => None,
            Step::SendReplicaofNoOne { promoted }
            | Step::WaitPromotion { promoted }
            | Step::ReconfReplicas { promoted }
            | Step::UpdateConfig { promoted } => Some(promoted),
        }
    }
}

impl Failover {
    /// The word of `failover-state` in `SENTINEL MASTER`.
    #[must_use]
    pub fn state_word(&self) -> &'static str {
        match self.step {
            Step::WaitStart => "wait_start",
            Step::SelectReplica => "select_slave",
            Step::SendReplicaofNoOne { .. } => "send_slaveof_noone",
            Step::WaitPromotion { .. } => "wait_promotion",
            Step::ReconfReplicas { .. } => "reconf_slaves",
            Step::UpdateConfig { .. } => "update_config",
        }
    }

    /// The replica chosen, once there is one.
    #[must_use]
    pub fn promoted(&self) -> Option<ReplicaId> {
        self.step.promoted()
    }

    /// The replica that has become master and whose address counts from now on.
    #[must_use]
    pub fn in_force(&self) -> Option<ReplicaId> {
        match self.step {
            Step::ReconfReplicas { promoted } | Step::UpdateConfig { promoted } => Some(promoted),
            _ => None,
        }
    }
}

impl Sentinel {
    /// Takes every step that can be taken now.
    pub(super) fn drive(&mut self, now: Millis, id: MasterId) {
        loop {
            let Some(failover) = self.masters.get(&id).and_then(|master| master.failover.as_ref()) else { return };
            let moved = match failover.step {
                Step::WaitStart => self.wait_start(now, id),
                Step::SelectReplica => self.select_replica(now, id),
                Step::SendReplicaofNoOne { promoted } => self.send_replicaof_no_one(now, id, promoted),
                Step::WaitPromotion { promoted } => self.wait_promotion(now, id, promoted),
                Step::ReconfReplicas { promoted } => self.reconf_replicas(now, id, promoted),
                Step::UpdateConfig { promoted } => self.update_config(now, id, promoted),
            };
            if !moved {
                return;
            }
        }
    }

    pub(super) fn enter(&mut self, now: Millis, id: MasterId, step: Step) {
        if let Some(failover) = self.masters.get_mut(&id).and_then(|master| master.failover.as_mut()) {
            (failover.step, failover.changed) = (step, now);
        }
    }

    pub(super) fn abort(&mut self, now: Millis, id: MasterId, channel: &'static str) {
        let Some(master) = self.masters.get(&id) else { return };
        let text = self.out.master(master);
        self.out.alert(master, channel, text);
        self.note(now, id, channel, None);
        self.end_failover(now, id, Outcome::Aborted(channel));
    }

    pub(super) fn replica_event(&mut self, level: Level, id: MasterId, replica: ReplicaId, channel: &'static str) {
        let Some(master) = self.masters.get(&id) else { return };
        let Some(replica) = master.replicas.get(&replica) else { return };
        let text = self.out.replica(master, replica);
        match level {
            Level::Warning => self.out.alert(master, channel, text),
            level => self.out.event(level, channel, text),
        }
    }

    /// INFO to every replica that has none under way: their offsets decide soon. If the master is to hand over, it also
    /// has to name them.
    pub(super) fn refresh_replicas(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let hands_over = master.failover.as_ref().is_some_and(|failover| failover.handover.is_some());
        if hands_over
            && master.node.info_asked.is_none()
            && master.node.info.as_ref().is_none_or(|info| now.since(info.at) > SLOT_LEAST)
        {
            self.send_info_to_master(now, id);
        }
        let Some(master) = self.masters.get(&id) else { return };
        let stale = |replica: &&Replica| {
            replica.node.info_asked.is_none()
                && replica.node.info.as_ref().is_none_or(|info| now.since(info.at) > SLOT_LEAST)
        };
        let stale: Vec<ReplicaId> = master.replicas.values().filter(stale).map(|replica| replica.id).collect();
        for replica in stale {
            self.send_info_to_replica(now, id, replica);
        }
    }

    fn select_replica(&mut self, now: Millis, id: MasterId) -> bool {
        let Some(master) = self.masters.get(&id) else { return false };
        let Some(failover) = &master.failover else { return false };
        let waited = now.since(failover.changed);
        let chosen = self.best_candidate(now, master, failover.handover.is_some());
        // One slot for offsets of today; where news are all that is missing to have a candidate, one ping period.
        let patience = if chosen.is_some() { self.news_patience(master) } else { self.tunables.ping_period };
        let stale = |replica: &Replica| self.is_fit(now, master, replica) && is_stale(&replica.node, failover.started);
        let news_missing = failover.handover.is_some() && is_stale(&master.node, failover.started);
        let priority_missing = chosen.is_none() && self.is_priority_missing(now, master);
        if waited < patience && (news_missing || priority_missing || master.replicas.values().any(stale)) {
            self.refresh_replicas(now, id);
            if chosen.is_none() {
                self.ask_priorities(now, id);
            }
            return false;
        }
        self.log_refusals(now, id);
        let Some(promoted) = chosen else {
            if self.hands_over(id) {
                let text =
                    format!("{} has no replica in step with it to hand over to", self.out.master(&self.masters[&id]));
                self.out.log(Level::Notice, text);
            }
            self.abort(now, id, "-failover-abort-no-good-slave");
            return true;
        };
        if let Some(replica) = self.masters.get_mut(&id).and_then(|master| master.replicas.get_mut(&promoted))
            && std::mem::take(&mut replica.hidden)
        {
            self.announce_replica(id, promoted);
        }
        self.doubt_choice(id, promoted);
        self.replica_event(Level::Warning, id, promoted, "+selected-slave");
        self.note_choice(now, id, promoted);
        self.replica_event(Level::Notice, id, promoted, "+failover-state-send-slaveof-noone");
        self.enter(now, id, Step::SendReplicaofNoOne { promoted });
        true
    }

    fn send_replicaof_no_one(&mut self, now: Millis, id: MasterId, promoted: ReplicaId) -> bool {
        if self.hands_over(id) {
            return self.order_handover(now, id, promoted);
        }
        let (orders, ordered) = self.masters[&id].failover.as_ref().map_or((0, now), |failover| failover.orders);
        let too_soon = orders > 1 && now.since(ordered) < self.tunables.ping_period;
        if !too_soon && self.send_replicaof(now, id, promoted, None) {
            if orders == 0 {
                self.replica_event(Level::Notice, id, promoted, "+failover-state-wait-promotion");
                self.note(now, id, "+failover-state-wait-promotion", None);
                self.enter(now, id, Step::WaitPromotion { promoted });
            }
            if let Some(failover) = self.masters.get_mut(&id).and_then(|master| master.failover.as_mut()) {
                // Said again, it has no more time than the first one.
                (failover.step, failover.orders) = (Step::WaitPromotion { promoted }, (orders + 1, now));
            }
            return true;
        }
        self.give_up_promotion(now, id)
    }

    /// The connection was lost before the transaction was confirmed: nobody knows whether it took place, and saying it
    /// twice does no harm, so it is sent again as soon as there is a connection; after that once in a ping period.
    pub(super) fn order_lost(&mut self, id: MasterId, replica: ReplicaId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        if let Some(failover) = &mut master.failover
            && failover.step == (Step::WaitPromotion { promoted: replica })
        {
            failover.step = Step::SendReplicaofNoOne { promoted: replica };
        }
        if let Some(replica) = master.replicas.get_mut(&replica)
            && replica.reconf == Reconf::Sent
        {
            replica.reconf = Reconf::None;
        }
    }

    /// The promotion itself comes with the replica's INFO ([`Sentinel::promoted`]).
    fn wait_promotion(&mut self, now: Millis, id: MasterId, promoted: ReplicaId) -> bool {
        if !self.masters[&id].replicas.contains_key(&promoted) {
            self.abort(now, id, "-failover-abort-slave-timeout");
            return true;
        }
        self.ask_progress(now, id);
        self.give_up_promotion(now, id)
    }

    fn hands_over(&self, id: MasterId) -> bool {
        self.masters[&id].failover.as_ref().is_some_and(|failover| failover.handover.is_some())
    }

    fn give_up_promotion(&mut self, now: Millis, id: MasterId) -> bool {
        let master = &self.masters[&id];
        let Some(failover) = &master.failover else { return false };
        let patience = if failover.handover.is_some() {
            Sentinel::handover_time(master)
        } else {
            master.settings.failover_timeout
        };
        if now.since(failover.changed) <= patience {
            return false;
        }
        self.abort(now, id, "-failover-abort-slave-timeout");
        true
    }

    /// The chosen replica says that it is a master: from here on it is the address, whatever happens.
    pub(super) fn promoted(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let Some(failover) = &master.failover else { return };
        let Step::WaitPromotion { promoted } = failover.step else { return };
        (master.config_epoch, master.hushed_until) = (failover.epoch, None);
        self.out.mark_dirty();
        let (from, to) = (master.node.addr.clone(), master.replicas[&promoted].node.addr.clone());
        self.replica_event(Level::Warning, id, promoted, "+promoted-slave");
        self.note(now, id, "+promoted-slave", None);
        if self.simulate_failure & CRASH_AFTER_PROMOTION != 0 {
            self.out.push(Effect::Crash { code: CRASH_CODE });
        }
        let master = &self.masters[&id];
        let text = self.out.master(master);
        self.out.alert(master, "+failover-state-reconf-slaves", text);
        self.enter(now, id, Step::ReconfReplicas { promoted });
        self.announce_switch(id, &from, &to);
        self.note(now, id, "+switch-master", None);
        self.run_reconfig_script(id, "leader", &from, &to);
        self.release_clients(now, id, promoted);
        self.hello_to_everybody(now, id);
    }

    fn reconf_replicas(&mut self, now: Millis, id: MasterId, promoted: ReplicaId) -> bool {
        let Some(master) = self.masters.get(&id) else { return false };
        let Some(failover) = &master.failover else { return false };
        let Some(target) = master.replicas.get(&promoted) else {
            self.abort(now, id, "-failover-abort-slave-timeout");
            return true;
        };
        let (target_addr, target_down) = (target.node.addr.clone(), target.node.sdown.is_some());
        let timed_out = now.since(failover.changed) > master.settings.failover_timeout;
        // A file may say 0, as it always could; replicas that wait out the failover-timeout help nobody.
        let parallel = master.settings.parallel_syncs.max(1) as usize;
        let reconf_timeout = self.tunables.slave_reconf_timeout;

        let late: Vec<ReplicaId> = others(master.replicas.values(), promoted)
            .filter(|r| r.reconf == Reconf::Sent && now.since(r.reconf_changed) > reconf_timeout)
            .map(|r| r.id)
            .collect();
        for replica in late {
            self.set_reconf(now, id, replica, Reconf::Done, "-slave-reconf-sent-timeout");
        }

        let master = &self.masters[&id];
        let mut busy = others(master.replicas.values(), promoted)
            .filter(|r| matches!(r.reconf, Reconf::Sent | Reconf::InProgress) && r.node.sdown.is_none())
            .count();
        let waiting: Vec<ReplicaId> = others(master.replicas.values(), promoted)
            .filter(|r| r.reconf == Reconf::None && !r.node.addr.same(&target_addr))
            .map(|r| r.id)
            .collect();
        for replica in waiting {
            if busy >= parallel {
                break;
            }
            if self.send_replicaof(now, id, replica, Some(&target_addr)) {
                self.set_reconf(now, id, replica, Reconf::Sent, "+slave-reconf-sent");
                busy += 1;
            }
        }
        self.ask_progress(now, id);

        let unreleased = self.release_clients(now, id, promoted);
        let unfinished = others(self.masters[&id].replicas.values(), promoted)
            .any(|r| r.reconf != Reconf::Done && r.node.sdown.is_none());
        if ((unfinished || unreleased) && !timed_out) || target_down {
            return false;
        }
        let master = &self.masters[&id];
        let text = self.out.master(master);
        if unfinished {
            self.out.alert(master, "+failover-end-for-timeout", text.clone());
        }
        self.out.alert(master, "+failover-end", text);
        self.note_end(now, id, unfinished);
        if unfinished {
            self.last_word(now, id, promoted, &target_addr);
        }
        self.enter(now, id, Step::UpdateConfig { promoted });
        true
    }

    /// Out of time: whoever was not told yet is told now, without waiting for an answer.
    fn last_word(&mut self, now: Millis, id: MasterId, promoted: ReplicaId, target: &super::Addr) {
        let untold: Vec<ReplicaId> = others(self.masters[&id].replicas.values(), promoted)
            .filter(|r| matches!(r.reconf, Reconf::None) && !r.node.addr.same(target))
            .map(|r| r.id)
            .collect();
        for replica in untold {
            if self.send_replicaof(now, id, replica, Some(target)) {
                self.set_reconf(now, id, replica, Reconf::Sent, "+slave-reconf-sent-be");
            }
        }
    }

    fn update_config(&mut self, now: Millis, id: MasterId, promoted: ReplicaId) -> bool {
        let Some(target) = self.masters.get(&id).and_then(|master| master.replicas.get(&promoted)) else {
            return false;
        };
        let target = target.node.addr.clone();
        self.switch_to(now, id, target);
        true
    }
}

fn others<'a>(replicas: impl Iterator<Item = &'a Replica>, promoted: ReplicaId) -> impl Iterator<Item = &'a Replica> {
    replicas.filter(move |replica| replica.id != promoted)
}

/// What it said of itself is older than the start of the failover.
pub(super) fn is_stale(node: &Node, started: Millis) -> bool {
    node.info.as_ref().is_none_or(|info| info.at + SLOT_LEAST < started)
}
