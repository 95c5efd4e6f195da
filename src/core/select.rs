//! Which replica is promoted.

use super::effect::Level;
use super::ids::{MasterId, ReplicaId};
use super::model::{Master, Replica, Role};
use super::{Plant, Sentinel};
use crate::base::Millis;

impl Sentinel {
    /// Replicas that may be promoted, the best one first: whole before never synced, made a master already before replicas,
    /// those whose priority is known before those that never told one, low priority, large offset, small run id, known before
    /// unknown.
    pub(super) fn candidates(&self, now: Millis, master: &Master) -> Vec<ReplicaId> {
        let mut fit: Vec<&Replica> =
            master.replicas.values().filter(|replica| self.objection(now, master, replica).is_none()).collect();
        fit.sort_by_key(|replica| {
            let run_id = replica.node.run_id;
            let untouched = !promoted_by_another(master, replica);
            let offset = std::cmp::Reverse(replica.offset);
            (replica.first_sync, untouched, !replica.priority_told, replica.priority, offset, run_id.is_none(), run_id)
        });
        fit.iter().map(|replica| replica.id).collect()
    }

    /// Nothing but the age of its INFO can speak against it.
    pub(super) fn is_fit(&self, now: Millis, master: &Master, replica: &Replica) -> bool {
        self.weakness(now, master, replica).is_none()
    }

    /// Why this replica cannot be promoted now; `None` when it can.
    fn objection(&self, now: Millis, master: &Master, replica: &Replica) -> Option<String> {
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
        if replica.priority == 0 && !self.planted(Plant::PromotePriorityZero) {
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
        let silent_since = |since: Millis| since.min(master.last_alive(&self.links[&master.node.link]));
        let master_silent = master.node.sdown.map_or(0, |since| now.since(silent_since(since)));
        let limit = master.settings.down_after.saturating_mul(10).saturating_add(master_silent);
        if replica.link_down_ms > limit {
            return Some(format!(
                "its link to the master was down for {} ms, more than the {limit} that are allowed",
                replica.link_down_ms
            ));
        }
        None
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

/// Since we voted for another this replica of our master has become a master itself, in the same life: that one promoted it,
/// and may even have told somebody. Who follows it up chooses the same.
fn promoted_by_another(master: &Master, replica: &Replica) -> bool {
    replica.node.role_reported == Role::Master
        && replica.node.role_reported_at >= master.voted_at
        && replica.master_addr.as_ref().is_some_and(|addr| addr.same(&master.node.addr))
}
