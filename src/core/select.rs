//! Which replica is promoted.
//!
//! Never one whose priority is 0, nor one whose priority is only guessed. INFO tells it of replicas, not of a node that says it
//! is a master: an old master that came back, one that was restarted without its settings. Where there is no other, such a
//! node is asked for it (`CONFIG GET`) before it is chosen, which costs one round trip. A user that may not ask is told so,
//! and then what the node said last counts, or what counts where nothing is said.

use super::effect::Level;
use super::ids::{MasterId, ReplicaId};
use super::info::InfoReport;
use super::link::renamed;
use super::model::{Expect, Master, Node, Replica, Role, Told};
use super::{Plant, Sentinel};
use crate::base::{Millis, SortedSet};
use crate::resp::Reply;

impl Sentinel {
    /// Replicas that may be promoted, the best one first: whole before never synced, made a master already before replicas,
    /// those whose priority is known before those that never told one, low priority, large offset, small run id, known before
    /// unknown.
    pub(super) fn candidates(&self, now: Millis, master: &Master) -> Vec<ReplicaId> {
        let fit = master.replicas.values().filter(|replica| self.objection(now, master, replica).is_none());
        let ranks = fit.map(|replica| {
            let run_id = replica.node.run_id;
            let untouched = !promoted_by_another(master, replica);
            let offset = std::cmp::Reverse(replica.offset);
            let untold = !matches!(replica.priority_told, Told::ByInfo | Told::Answered);
            let rank = (replica.first_sync, untouched, untold, replica.priority, offset, run_id.is_none(), run_id);
            (rank, replica.id)
        });
        ranks.collect::<SortedSet<_>>().iter().map(|&(_, id)| id).collect()
    }

    /// There is a candidate, or one that has only to tell its priority.
    pub(super) fn may_have_candidate(&self, now: Millis, master: &Master) -> bool {
        master.replicas.values().any(|replica| self.shortcoming(now, master, replica).is_none())
    }

    /// Somebody has only to tell its priority to be a candidate.
    pub(super) fn is_priority_missing(&self, now: Millis, master: &Master) -> bool {
        let mut open = master.replicas.values().filter(|replica| replica.is_to_tell_priority());
        open.any(|replica| self.shortcoming(now, master, replica).is_none())
    }

    /// Nothing but the age of its INFO, or a priority that it has yet to tell, can speak against it.
    pub(super) fn is_fit(&self, now: Millis, master: &Master, replica: &Replica) -> bool {
        self.weakness(now, master, replica).is_none()
    }

    /// Why this replica cannot be promoted now; `None` when it can.
    fn objection(&self, now: Millis, master: &Master, replica: &Replica) -> Option<String> {
        let untold = || replica.is_to_tell_priority().then(|| "its priority is not known".into());
        self.shortcoming(now, master, replica).or_else(untold)
    }

    /// The same, but for a priority that it has yet to tell.
    fn shortcoming(&self, now: Millis, master: &Master, replica: &Replica) -> Option<String> {
        self.weakness(now, master, replica).or_else(|| {
            let Some(info) = &replica.node.info else { return Some("it never answered INFO".into()) };
            let (age, limit) = (now.since(info.at), self.info_limit(master));
            (age > limit).then(|| format!("its INFO is {age} ms old"))
        })
    }

    fn info_limit(&self, master: &Master) -> u64 {
        if master.node.sdown.is_some() {
            self.tunables.ping_period.saturating_mul(5)
        } else {
            self.tunables.info_period.saturating_mul(3)
        }
    }

    fn weakness(&self, now: Millis, master: &Master, replica: &Replica) -> Option<String> {
        let link = &self.links[&replica.node.link];
        if replica.node.sdown.is_some() {
            return Some("it is down".into());
        }
        // The Pub/Sub side may be missing for a moment; what counts is that it hears us.
        if !link.cmd.is_up() {
            return Some("not connected".into());
        }
        let silent = now.since(link.last_ok);
        // A short period of its own is for the sake of a hanging master; it makes nobody else a worse candidate.
        if silent > self.tunables.ping_period.max(master.settings.ping_period).saturating_mul(5) {
            return Some(format!("last good PING {silent} ms ago"));
        }
        let never = replica.priority == 0 && !replica.is_to_tell_priority();
        if never && !self.planted(Plant::PromotePriorityZero) {
            return Some("its priority is 0".into());
        }
        // One that has not followed our master yet has another's data, or that of an earlier life. Where the master lives there
        // is time to wait for it; where it is dead, this may be all there is.
        let astray = replica.node.role_reported == Role::Master && !promoted_by_another(master, replica);
        if astray && master.node.sdown.is_none() {
            return Some("it says that it is a master itself".into());
        }
        // SDOWN may come late, after TILT or a pause: then the replicas were cut off long before it, and would all be refused
        // for ever. So what counts is how long the master has been silent, where that is longer.
        // And one that follows another has served nobody since it says so, or up to one INFO longer, which is long before that
        // makes it SDOWN: two that were left following each other would never be replaced. We may not have been there when
        // that began; then it has been so for as long as it says itself that its link is down.
        let follows = (master.node.role_reported == Role::Replica)
            .then(|| Millis(master.node.role_reported_at.0.saturating_sub(self.tunables.info_period)));
        let silent_since = |since: Millis| {
            let since = since.min(master.last_alive(&self.links[&master.node.link]));
            follows.map_or(since, |at| since.min(at))
        };
        let master_silent = master.node.sdown.map_or(0, |since| now.since(silent_since(since)));
        let master_silent = master_silent.max(cut_off_ms(now, &master.node));
        let limit = master.settings.down_after.saturating_mul(10).saturating_add(master_silent);
        if replica.link_down_ms > limit {
            return Some(format!(
                "its link to the master was down for {} ms, more than the {limit} that are allowed",
                replica.link_down_ms
            ));
        }
        None
    }

    /// What was answered before this attempt may have changed since.
    pub(super) fn forget_priorities(&mut self, id: MasterId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        for replica in master.replicas.values_mut().filter(|replica| replica.priority_told != Told::ByInfo) {
            replica.priority_told = Told::No;
        }
    }

    /// Asks those who might be chosen if their priority were known, each once in an attempt.
    pub(super) fn ask_priorities(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let unasked = |replica: &&Replica| replica.is_to_tell_priority() && replica.priority_told == Told::No;
        let fit = |replica: &&Replica| self.is_fit(now, master, replica);
        let open: Vec<ReplicaId> =
            master.replicas.values().filter(unasked).filter(fit).map(|replica| replica.id).collect();
        let command = renamed(&master.settings, "CONFIG").to_owned();
        for replica in open {
            let Some(node) = self.masters.get_mut(&id).and_then(|master| master.replicas.get_mut(&replica)) else {
                return;
            };
            let Some(link) = self.links.get_mut(&node.node.link) else { return };
            // The name that every version knows.
            let args: [&[u8]; 3] = [command.as_bytes(), b"GET", b"slave-priority"];
            if link.command(&mut self.out, Expect::Priority(id, replica), &args) {
                node.priority_told = Told::Asked;
            }
        }
    }

    pub(super) fn priority_reply(&mut self, now: Millis, id: MasterId, replica: ReplicaId, reply: &Reply) {
        let Some(node) = self.masters.get_mut(&id).and_then(|master| master.replicas.get_mut(&replica)) else { return };
        // It may have told it in INFO meanwhile.
        if node.priority_told != Told::Asked {
            return;
        }
        let told = match reply {
            Reply::Array(parts) => match parts.as_slice() {
                [_, Reply::Bulk(value)] => std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()),
                _ => None,
            },
            // Busy with a script: that is no answer, and it could not obey either.
            Reply::Error(text) if text.starts_with(b"BUSY") => return,
            _ => None,
        };
        node.priority = told.unwrap_or(node.priority);
        node.priority_told = if told.is_some() { Told::Answered } else { Told::Withheld };
        self.act(now, id);
    }

    pub(super) fn log_refusals(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let refused: Vec<(&Replica, String)> = master
            .replicas
            .values()
            .filter_map(|replica| Some((replica, self.objection(now, master, replica)?)))
            .collect();
        for (replica, why) in &refused {
            let text = format!("{} is no candidate: {why}", self.out.replica(master, replica));
            self.out.log(Level::Notice, text);
        }
        let refused = refused.into_iter().map(|(replica, why)| (replica.node.addr.clone(), why.into())).collect();
        self.note_refused(id, refused);
    }
}

impl Replica {
    /// It says that it is a master, so INFO does not tell its priority, and it has not been told in another way.
    fn is_to_tell_priority(&self) -> bool {
        self.node.role_reported == Role::Master && matches!(self.priority_told, Told::No | Told::Asked)
    }
}

/// We voted for another, no configuration has come of that, and within the time that an attempt has this replica of our master
/// has become a master itself, in the same life: that one promoted it, and may even have told somebody. Who follows it up
/// chooses the same. One that becomes a master at any other time is somebody's mistake.
fn promoted_by_another(master: &Master, replica: &Replica) -> bool {
    let Some(vote) = master.voted_other.filter(|vote| vote.epoch > master.config_epoch) else { return false };
    let until = vote.last + master.settings.failover_timeout.saturating_mul(2);
    replica.node.role_reported == Role::Master
        && (vote.since..=until).contains(&replica.node.role_reported_at)
        && replica.master_addr.as_ref().is_some_and(|addr| addr.same(&master.node.addr))
}

/// So long, by its last INFO, a master that is a replica has had nobody to follow.
fn cut_off_ms(now: Millis, master: &Node) -> u64 {
    let Some(info) = master.info.as_ref().filter(|_| master.role_reported == Role::Replica) else { return 0 };
    match InfoReport::parse(&info.text).link_down_seconds {
        0 => 0,
        seconds => seconds.saturating_mul(1_000).saturating_add(now.since(info.at)),
    }
}
