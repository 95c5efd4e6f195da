//! When a failover starts, and how its leader is elected.
//!
//! Redis's Sentinels start when their timers happen to say so, and split votes. Here all live voters are ranked
//! by a hash that everybody computes alike; each gives those before it a slot, and stands back once it has voted.
//! That changes no message and needs nothing from peers: a vote is a vote, whoever seeks it.

use super::ask::{DESYNC, Urgency};
use super::effect::{Effect, Level};
use super::failover::{Cause, Failover, Step};
use super::handover::Handover;
use super::ids::{MasterId, RunId};
use super::model::{Master, Peer, Role};
use super::report::Trigger;
use super::snapshot::Snapshot;
use super::{Plant, SAVE_RETRY, Sentinel, majority};
use crate::base::{Millis, Sorted};

/// After an election that provably nobody won, the next attempt follows within this many slots.
const BACK_OFF_SLOTS: u64 = 5;
/// A forced failover looks this often for an epoch of its own.
const FORCED_TRIES: u32 = 3;
/// A peer that is within reach and does not answer, because it is busy or because a partition is not noticed yet, holds up a
/// forced failover for this many ms.
const FORCED_PATIENCE: u64 = 1_000;
/// A failover that is forced where no majority can be asked leaves out so many epochs, in which others may hold elections
/// meanwhile, and draws one out of so many: hardly ever the one that another draws who does the same.
const EPOCHS_APART: u64 = 1 << 20;
/// `SENTINEL SIMULATE-FAILURE crash-after-election`.
const CRASH_AFTER_ELECTION: u32 = 1;
/// The exit code of a simulated failure.
pub(super) const CRASH_CODE: i32 = 99;

impl Sentinel {
    /// The acting half for one master: judge, start, drive. Called by every reply that can change the picture,
    /// by the master's wake-up and by the cron.
    pub(super) fn act(&mut self, now: Millis, id: MasterId) {
        self.reconsider(id);
        if !self.planted(Plant::OwnTimers) {
            self.act_now(now, id);
        }
    }

    /// The same, for the cron, which has just looked at what else is due.
    pub(super) fn act_now(&mut self, now: Millis, id: MasterId) {
        let idle = self.tilt.is_some() && !self.planted(Plant::FailoverInTilt);
        if idle || !self.masters.contains_key(&id) {
            return;
        }
        self.judge_master(now, id);
        self.judge_quorum(now, id);
        self.handover_overtaken(now, id);
        self.start_if_due(now, id);
        self.drive(now, id);
        if self.masters.get(&id).is_some_and(|master| master.node.sdown.is_some()) {
            self.ask_peers(now, id, Urgency::Routine);
            self.ask_peers(now, id, Urgency::Echo);
        }
        self.redial_refused(now, id);
        self.ping_on_time(now, id);
        if let Some(at) = self.deadline(now, id) {
            self.arm(id, at.max(now + 1));
        }
    }

    /// The next moment at which this master needs a look even if nothing is heard and the cron sleeps.
    fn deadline(&self, now: Millis, id: MasterId) -> Option<Millis> {
        let master = self.masters.get(&id)?;
        let own = self.own_deadline(now, master);
        let echo = self.echo_deadline(master).filter(|_| master.node.sdown.is_some());
        [own, echo, self.redial_deadline(master), self.ping_deadline(master)].into_iter().flatten().min()
    }

    fn own_deadline(&self, now: Millis, master: &Master) -> Option<Millis> {
        match &master.failover {
            Some(failover) => match failover.step {
                Step::WaitStart if failover.forced => Some(failover.changed + self.forced_patience(master, failover)),
                Step::WaitStart => Some(failover.changed + self.election_patience(master) + 1),
                Step::SelectReplica => {
                    let patience = failover.changed + self.news_patience(master);
                    Some(if now < patience { patience } else { failover.changed + self.tunables.ping_period })
                }
                Step::WaitPromotion { .. } | Step::ReconfReplicas { .. } => self.progress_deadline(master),
                Step::SendReplicaofNoOne { .. } | Step::UpdateConfig { .. } => None,
            },
            None if master.node.sdown.is_none() => Some(self.sdown_deadline(now, master)),
            // Nothing starts until the disk is well again, which the cron notices.
            None if self.save_retry.is_some() => None,
            None => master.odown.map(|since| self.allowed_at(master).max(since + self.head_start(master))),
        }
    }

    /// The earliest start that the last attempt leaves open.
    fn allowed_at(&self, master: &Master) -> Millis {
        self.delay(master).0
    }

    /// The same, and the rule that it comes from, in words.
    fn delay(&self, master: &Master) -> (Millis, &'static str) {
        let stubborn = self.planted(Plant::OwnTimers);
        if let Some(at) = master.retry_at.filter(|_| !stubborn) {
            return (at, "a short pause after an attempt that led nobody");
        }
        let Some(attempt) = master.attempt else { return (Millis(0), "") };
        let full = attempt + master.settings.failover_timeout.saturating_mul(2);
        let patient = master.voted_at + self.election_patience(master);
        if patient < full && !stubborn && self.winner_is_gone(master) {
            return (patient, "the election timeout after our vote, as the one we voted for is down");
        }
        (full, "2 x failover-timeout after the last attempt, ours or one we voted for")
    }

    /// The one we voted for is down, and no configuration of its was heard of. It may have promoted a replica all the same;
    /// then the next leader promotes that one, too, under an epoch of its own.
    fn winner_is_gone(&self, master: &Master) -> bool {
        let leader = master.leader.and_then(|leader| master.peers.values().find(|peer| peer.run_id == leader));
        leader.is_some_and(|leader| leader.sdown.is_some()) && master.config_epoch < master.leader_epoch
    }

    fn election_patience(&self, master: &Master) -> u64 {
        self.tunables.election_timeout.min(master.settings.failover_timeout)
    }

    fn start_if_due(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let Some(since) = master.odown else { return };
        let unsaved = self.save_retry.is_some() && !self.planted(Plant::StartWhileSavesFail);
        if master.failover.is_some() || unsaved {
            return;
        }
        let (mut allowed, rule) = self.delay(master);
        if self.planted(Plant::WaitPerSentinel) {
            let voted = self.masters.values().filter(|other| other.id != id && other.leader.is_some());
            let last = voted.map(|other| other.voted_at + 2 * other.settings.failover_timeout).max();
            allowed = allowed.max(last.unwrap_or(allowed));
        }
        if now < allowed {
            if !master.delay_logged {
                let text = format!(
                    "Next failover delay: none of {} for another {} ms ({rule})",
                    master.name,
                    allowed.since(now)
                );
                self.out.log(Level::Notice, text);
                if let Some(master) = self.masters.get_mut(&id) {
                    master.delay_logged = true;
                }
            }
            return;
        }
        if now >= since + self.head_start(master) {
            self.start_failover(now, id, Cause::Down);
        }
    }

    /// A new epoch, our own vote in it, and the question to everybody.
    pub(super) fn start_failover(&mut self, now: Millis, id: MasterId, cause: Cause) {
        let desync = self.random.below(DESYNC);
        let Some(epoch) = self.fresh_epoch(0) else {
            // As after an attempt, so that this is looked at again when the next one would be.
            if let Some(master) = self.masters.get_mut(&id) {
                (master.attempt, master.retry_at, master.delay_logged) = (Some(now + desync), None, false);
            }
            return;
        };
        let Some(master) = self.masters.get(&id) else { return };
        let trigger = match cause {
            Cause::Down => Trigger::Odown,
            Cause::Forced => Trigger::Forced,
            Cause::Coordinated => Trigger::Coordinated,
        };
        let report = self.begin_report(now, master, trigger, epoch);
        let Some(master) = self.masters.get_mut(&id) else { return };
        master.failover = Some(Failover {
            epoch,
            started: now,
            forced: cause == Cause::Forced,
            handover: (cause == Cause::Coordinated).then(Handover::default),
            tries: 1,
            apart: false,
            step: Step::WaitStart,
            changed: now,
            orders: (0, now),
            report: Box::new(report),
        });
        master.attempt = Some(now + desync);
        master.retry_at = None;
        master.delay_logged = false;
        self.out.event(Level::Warning, "+new-epoch", epoch.to_string());
        let text = self.out.master(master);
        self.out.alert(master, "+try-failover", text);
        self.seek_votes(now, id, epoch);
        // What the replicas hold now decides soon; ask while the votes are on their way.
        self.refresh_replicas(now, id);
        self.drive(now, id);
    }

    fn seek_votes(&mut self, now: Millis, id: MasterId, epoch: u64) {
        self.out.mark_dirty();
        self.vote(now, id, epoch, self.identity.myid);
        self.ask_peers(now, id, Urgency::Votes);
    }

    /// `WaitStart`: true when the failover went on or ended.
    pub(super) fn wait_start(&mut self, now: Millis, id: MasterId) -> bool {
        let Some(master) = self.masters.get(&id) else { return false };
        let Some(failover) = &master.failover else { return false };
        let (epoch, me) = (failover.epoch, self.identity.myid);
        if self.durable_epoch < epoch {
            // Our own vote does not count before it is on disk; `saved` comes back here.
            return false;
        }
        let needed = majority(master).max(master.settings.quorum as usize);
        let (mine, needed) = self.planted_count(master, epoch, (master.votes_for(me, epoch), needed));
        let (forced, waited, began) = (failover.forced, now.since(failover.changed), failover.started);
        self.note_count(id, mine, needed);
        if mine >= needed {
            self.elected(now, id);
            return true;
        }
        if forced {
            return self.wait_forced(now, id);
        }
        let master = &self.masters[&id];
        let unheard = master.peers.values().filter(|peer| peer.answered < Some(epoch)).count();
        let lost = mine + unheard < needed && !self.planted(Plant::OwnTimers);
        if !lost && waited <= self.election_patience(master) {
            return false;
        }
        // Early, only proof will do. When the time of an election is over, whoever won it without our knowing would have got
        // somewhere by now; then those who are down, and were silent before it began, are taken to have given no vote in it.
        // Without a living majority another attempt could not win either, and nothing presses.
        let living = 1 + master.peers.values().filter(|peer| peer.sdown.is_none()).count();
        let over = waited > self.election_patience(master) && living >= needed && !got_anywhere(master, epoch);
        let was_gone = |peer: &Peer| over && peer.sdown.is_some() && self.links[&peer.link].last_pong < began;
        let nobody_won = nobody_won(master, epoch, was_gone);
        let text = format!(
            "Election for {} in epoch {epoch}: {mine} of {needed} votes after {waited} ms, {unheard} of {} not heard{}",
            master.name,
            master.peers.len() + 1,
            if nobody_won { "; nobody won, so the next attempt comes soon" } else { "" }
        );
        self.out.log(Level::Notice, text);
        self.abort(now, id, "-failover-abort-not-elected");
        if nobody_won {
            let slot = self.masters.get(&id).map_or(0, |master| self.slot(master));
            let at = now + slot + self.random.below(BACK_OFF_SLOTS * slot);
            if let Some(master) = self.masters.get_mut(&id) {
                master.retry_at = Some(at);
            }
        }
        true
    }

    /// A forced failover needs no majority, but an epoch that nobody else uses.
    fn wait_forced(&mut self, now: Millis, id: MasterId) -> bool {
        let master = &self.masters[&id];
        let Some(failover) = &master.failover else { return false };
        let (epoch, me, tries) = (failover.epoch, self.identity.myid, failover.tries);
        let waited = now.since(failover.changed);
        let rival = master.peers.values().filter_map(|peer| peer.vote).find(|&(who, at)| at == epoch && who != me);
        if let Some((rival, _)) = rival.filter(|_| !self.planted(Plant::ForceWithoutOwnEpoch)) {
            let beaten = master.votes_for(rival, epoch) >= majority(master);
            // Of two that met in one epoch, one moves on and the other votes for it there.
            let patience = if me < rival { 0 } else { 2 * self.slot(master) };
            if beaten || (waited >= patience && tries >= FORCED_TRIES) {
                self.abort(now, id, "-failover-abort-not-elected");
                return true;
            }
            if waited >= patience {
                self.next_epoch(now, id, false);
            }
            return false;
        }
        let within_reach = |peer: &&Peer| peer.sdown.is_none() && self.links[&peer.link].cmd.is_up();
        let all_answered = master.peers.values().filter(within_reach).all(|peer| peer.answered >= Some(epoch));
        let careless = self.planted(Plant::ForceWithoutOwnEpoch);
        if !all_answered && waited < self.forced_patience(master, failover) && !careless {
            return false;
        }
        // A majority behind us can be behind nobody else in this epoch. Without one, others may be electing in it.
        let ours_alone = failover.apart || master.votes_for(me, epoch) >= majority(master);
        if !ours_alone && !careless && !self.planted(Plant::ForceAmongOthers) {
            self.next_epoch(now, id, true);
            return false;
        }
        self.elected(now, id);
        true
    }

    /// So long whoever is within reach is waited for. In an epoch apart from all others nothing depends on the answers.
    fn forced_patience(&self, master: &Master, failover: &Failover) -> u64 {
        if failover.apart { self.slot(master) } else { FORCED_PATIENCE }
    }

    /// An epoch in which nobody has voted yet, `leap` beyond the next one. There is none after the last, and to begin again at 0
    /// would let everybody vote twice.
    fn fresh_epoch(&mut self, leap: u64) -> Option<u64> {
        let left = Snapshot::EPOCH_LAST.saturating_sub(self.current_epoch);
        if left == 0 {
            let text = "The epochs are used up, so no failover can be voted for: the file of this Sentinel, or a peer, named \
                        one that no election can have led to";
            self.out.log(Level::Warning, text.to_owned());
            return None;
        }
        self.current_epoch += left.min(1 + leap);
        Some(self.current_epoch)
    }

    /// Forced, and the epoch tried is not ours: another, the next or one far from where anybody else may be.
    fn next_epoch(&mut self, now: Millis, id: MasterId, apart: bool) {
        let leap = if apart { EPOCHS_APART + self.random.below(EPOCHS_APART) } else { 0 };
        let Some(epoch) = self.fresh_epoch(leap) else { return self.abort(now, id, "-failover-abort-not-elected") };
        if apart {
            let text = format!(
                "{} is failed over by force without a majority behind it: the epochs in which others may be electing are left out",
                self.out.master(&self.masters[&id])
            );
            self.out.log(Level::Notice, text);
        }
        let Some(failover) = self.masters.get_mut(&id).and_then(|master| master.failover.as_mut()) else { return };
        failover.apart = apart;
        failover.epoch = epoch;
        failover.changed = now;
        failover.tries += 1;
        failover.report.another_epoch(now, epoch);
        self.out.event(Level::Warning, "+new-epoch", epoch.to_string());
        self.seek_votes(now, id, epoch);
    }

    fn elected(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let text = self.out.master(master);
        self.out.alert(master, "+elected-leader", text.clone());
        if self.simulate_failure & CRASH_AFTER_ELECTION != 0 {
            self.out.push(Effect::Crash { code: CRASH_CODE });
        }
        self.out.alert(master, "+failover-state-select-slave", text);
        self.note(now, id, "+elected-leader", None);
        self.forget_priorities(id);
        self.enter(now, id, Step::SelectReplica);
    }

    /// Somebody else has our vote in `epoch`, or published a config epoch: an attempt that can still be taken
    /// back, or that could no longer be told from theirs, ends.
    pub(super) fn give_way(&mut self, now: Millis, id: MasterId, epoch: u64) {
        let Some(master) = self.masters.get(&id) else { return };
        let Some(failover) = &master.failover else { return };
        let outdated = failover.epoch <= master.config_epoch;
        let beaten = match failover.step {
            Step::WaitStart | Step::SelectReplica => outdated || failover.epoch < epoch,
            Step::SendReplicaofNoOne { .. } | Step::WaitPromotion { .. } => outdated,
            Step::ReconfReplicas { .. } | Step::UpdateConfig { .. } => false,
        };
        if beaten {
            self.abort(now, id, "-failover-abort-not-elected");
            self.act(now, id);
        }
    }

    /// A vote or an epoch of ours did not reach the disk: what rests on it is taken back.
    pub(super) fn withdraw_unsaved(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        (master.leader, master.leader_epoch) = (master.durable_vote.leader, master.durable_vote.epoch);
        master.withdrawn_epoch = self.current_epoch;
        if matches!(master.failover.as_ref().map(|f| f.step), Some(Step::WaitStart | Step::SelectReplica)) {
            master.retry_at = Some(now + SAVE_RETRY);
            self.abort(now, id, "-failover-abort-not-elected");
        }
    }
}

/// Something shows that a failover in this epoch went on.
fn got_anywhere(master: &Master, epoch: u64) -> bool {
    master.config_epoch >= epoch || master.replicas.values().any(|replica| replica.node.role_reported == Role::Master)
}

/// For every candidate, the votes known and all voters of whom nothing is known stay below the majority; but for those that
/// `was_gone` names, who cannot have voted.
fn nobody_won(master: &Master, epoch: u64, was_gone: impl Fn(&Peer) -> bool) -> bool {
    let mut votes: Sorted<RunId, usize> = Sorted::new();
    let mut unknown = 0;
    for peer in master.peers.values() {
        match peer.vote {
            Some((candidate, at)) if at == epoch => *votes.or_default(candidate) += 1,
            _ => unknown += usize::from(peer.abstained < Some(epoch) && !was_gone(peer)),
        }
    }
    if let (Some(candidate), true) = (master.leader, master.leader_epoch == epoch) {
        *votes.or_default(candidate) += 1;
    }
    votes.values().max().unwrap_or(&0) + unknown < majority(master)
}
