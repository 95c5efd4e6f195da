//! Asking peers whether a master is down, answering them, and voting.
//!
//! The question and the request for a vote are one command: with `*` it only asks, with a run id it asks for
//! the vote, too.

use super::effect::Level;
use super::failover::{Failover, Step};
use super::ids::{Addr, MasterId, RunId};
use super::model::{Expect, Link, Master, Peer, VotedOther};
use super::operator::{Answer, Vote};
use super::{Plant, Sentinel, current_addr};
use crate::base::Millis;

/// Questions that questions cause reach one peer at most once in this many ms: they must not chase each other.
const ECHO_GAP: u64 = 20;
/// Redis's random part of the time a failover counts as begun, ms.
pub(super) const DESYNC: u64 = 1_000;

/// Whom to ask now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Whoever was not heard within the ask period.
    Routine,
    /// Everybody: votes are sought.
    Votes,
    /// Somebody else noticed, too: whoever does not agree yet and is owed a question.
    Echo,
}

impl Sentinel {
    pub(super) fn ask_peers(&mut self, now: Millis, id: MasterId, urgency: Urgency) {
        let (period, told_epoch) = (self.tunables.ask_period, self.told_epoch());
        let chatty = self.planted(Plant::AskAllTheTime);
        let Some(master) = self.masters.get_mut(&id) else { return };
        let sought = matches!(master.failover.as_ref().map(|f| f.step), Some(Step::WaitStart));
        let epoch = match &master.failover {
            Some(failover) if sought => failover.epoch,
            _ => told_epoch,
        };
        let old = |at: Millis, span: u64| now.since(at) > span;
        let due = |peer: &Peer| match urgency {
            Urgency::Votes => true,
            Urgency::Routine if chatty => true,
            Urgency::Echo => peer.echo && peer.echoed.is_none_or(|at| now >= at + ECHO_GAP),
            Urgency::Routine => {
                peer.heard.is_none_or(|at| old(at, period))
                    && peer.asked.is_none_or(|at| !peer.asking || old(at, period))
            }
        };
        // This is looked at with every reply while a master is down, and mostly nobody is to be asked.
        if !master.peers.values().any(due) {
            return;
        }
        let me = self.identity.myid;
        let voice = if sought { me.as_str() } else { "*" };
        let (host, port) = (self.out.host(&master.node.addr), master.node.addr.port.to_string());
        let epoch_text = epoch.to_string();
        for peer in master.peers.values_mut() {
            let Some(link) = self.links.get_mut(&peer.link) else { continue };
            if !due(peer) || !link.cmd.is_up() {
                continue;
            }
            let args: [&[u8]; 6] = [
                b"SENTINEL",
                b"is-master-down-by-addr",
                host.as_bytes(),
                port.as_bytes(),
                epoch_text.as_bytes(),
                voice.as_bytes(),
            ];
            if link.command(&mut self.out, Expect::Ask { master: id, peer: peer.id, epoch, sought }, &args) {
                (peer.asked, peer.asking) = (Some(now), true);
                if sought && let Some(failover) = &mut master.failover {
                    failover.report.asked(now, peer.run_id);
                }
                if std::mem::take(&mut peer.echo) {
                    peer.echoed = Some(now);
                }
            }
        }
    }

    /// `SENTINEL IS-MASTER-DOWN-BY-ADDR`; `candidate` is `None` for `*` and for anything that is no run id.
    pub fn question(&mut self, now: Millis, host: &str, port: u16, epoch: u64, candidate: Option<RunId>) -> Answer {
        self.notice_gap(now);
        let addr = self.as_known(Addr::new(host, port));
        let nobody = Vote { leader: None, epoch: 0 };
        let mut answer = Answer { down: false, vote: nobody, vote_if_unsaved: nobody };
        let Some(master) = self.masters.values().find(|master| current_addr(master).same(&addr)) else {
            return answer;
        };
        let id = master.id;
        // The node that lives at that address: from the promotion on, the promoted replica.
        let in_force = master.failover.as_ref().and_then(Failover::in_force);
        let node = in_force.and_then(|id| master.replicas.get(&id)).map_or(&master.node, |replica| &replica.node);
        let down = self.tilt.is_none() && node.sdown.is_some();
        answer.down = down;
        if let Some(candidate) = candidate.filter(|_| self.is_credible(epoch)) {
            self.vote(now, id, epoch, candidate);
            let master = &self.masters[&id];
            answer.vote = Vote { leader: master.leader, epoch: master.leader_epoch };
            answer.vote_if_unsaved = master.durable_vote;
            if self.planted(Plant::VotePerSentinel) {
                let voted = self.masters.values().filter(|other| other.leader_epoch == epoch && other.leader.is_some());
                let vote = voted.map(|other| Vote { leader: other.leader, epoch }).next();
                answer.vote = vote.unwrap_or(answer.vote);
            }
        }
        if down && in_force.is_none() {
            self.echo(now, id);
        }
        self.check_invariants();
        answer
    }

    /// The last one to notice must not cost the group an ask period: whoever does not agree yet may just have changed
    /// its mind, so it is asked at once, or as soon as the gap allows.
    fn echo(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let mut any = false;
        for peer in master.peers.values_mut().filter(|peer| !peer.agrees) {
            (peer.echo, any) = (true, true);
        }
        if any {
            self.act(now, id);
        }
    }

    /// When the next peer that is owed a question may be asked.
    pub(super) fn echo_deadline(&self, master: &Master) -> Option<Millis> {
        let can_be_asked = |link: &Link| link.cmd.is_up() && link.has_room(1);
        let owed = master.peers.values().filter(|peer| peer.echo && can_be_asked(&self.links[&peer.link]));
        owed.map(|peer| peer.echoed.map_or(Millis(0), |at| at + ECHO_GAP)).min()
    }

    /// One vote per master and epoch, first come first served; never one that may not reach the disk. The epoch may be an older
    /// one than ours, as long as this master is not beyond it: when a machine with many masters dies, their elections are held
    /// at once, each moves the epoch on, and none is to be lost by that. But an election that began before our start may have
    /// had the vote of whoever was here before us, so until all of those are over nothing older will do.
    pub(super) fn vote(&mut self, now: Millis, id: MasterId, epoch: u64, candidate: RunId) {
        self.adopt_epoch(epoch);
        let own_timers = self.planted(Plant::OwnTimers);
        let twice = self.planted(Plant::VoteTwice);
        let given = self.planted(Plant::VotePerSentinel)
            && self.masters.values().any(|other| other.id != id && other.leader_epoch >= epoch);
        let Some(master) = self.masters.get_mut(&id) else { return };
        let fresh = (master.leader_epoch < epoch && !given) || twice;
        let newcomer = now.since(self.started) <= self.tunables.election_timeout;
        let oldest = if own_timers || newcomer { self.current_epoch } else { master.config_epoch + 1 };
        if self.save_retry.is_some() || epoch < oldest {
            // Whoever asked takes this for a final no in this epoch, so it must be one.
            master.withdrawn_epoch = master.withdrawn_epoch.max(epoch);
        }
        if !fresh || epoch <= master.withdrawn_epoch {
            return;
        }
        let other = candidate != self.identity.myid;
        master.leader = Some(candidate);
        master.leader_epoch = epoch;
        master.voted_at = now;
        if other {
            // What an earlier one of them has done and nobody was told counts on.
            let unsettled = master.voted_other.filter(|vote| vote.epoch > master.config_epoch);
            let since = unsettled.map_or(now, |vote| vote.since);
            master.voted_other = Some(VotedOther { epoch, since, last: now });
            master.attempt = Some(now + self.random.below(DESYNC));
            master.retry_at = None;
            master.delay_logged = false;
        }
        self.out.mark_dirty();
        self.out.event(Level::Warning, "+vote-for-leader", format!("{candidate} {epoch}"));
        if other && !own_timers {
            self.give_way(now, id, epoch);
        }
    }
}

impl Master {
    /// The votes known for `candidate` in `epoch`: those peers told us, and ours.
    pub(super) fn votes_for(&self, candidate: RunId, epoch: u64) -> usize {
        let theirs = self.peers.values().filter(|peer| peer.vote == Some((candidate, epoch))).count();
        let ours = self.leader == Some(candidate) && self.leader_epoch == epoch;
        theirs + usize::from(ours)
    }
}
