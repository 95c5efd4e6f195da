//! Nodes that are on their way to a new role, and how often they are asked how far they are.
//!
//! Nobody tells a Sentinel that a replica has become a master, or that it follows the new one: it has to ask. A fixed
//! period is too long for the many that take a millisecond, one after another with `parallel-syncs 1`, and too short
//! for the few that load gigabytes. So whoever is under way is asked again after as long as it has taken so far: what
//! is noticed late is late in proportion, and the number of questions grows with the logarithm of the time.

use super::Sentinel;
use super::failover::Step;
use super::ids::{MasterId, ReplicaId};
use super::model::{Master, Node, Reconf};
use crate::base::Millis;

/// The shortest and the longest pause between an answer and the next question, ms. The cron asks after the longest as
/// well, in TILT, too.
const SHORTEST_PAUSE: u64 = 4;
pub(super) const LONGEST_PAUSE: u64 = 200;
/// The longest pause while writers wait for the answer, ms: a master that hands over has paused them.
const PAUSE_OF_WRITERS: u64 = 10;
/// For so long after the order to hand over, ms; later it is asked like others that take so long.
const PATIENCE_OF_WRITERS: u64 = 1_000;

impl Sentinel {
    /// Asks those of whom news are due.
    pub(super) fn ask_progress(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let due: Vec<ReplicaId> =
            self.under_way(master).filter(|&(_, at)| at <= now).map(|(replica, _)| replica).collect();
        for replica in due {
            self.send_info_to_replica(now, id, replica);
        }
    }

    /// When the next question is due; `None` while nobody is under way who could be asked.
    pub(super) fn progress_deadline(&self, master: &Master) -> Option<Millis> {
        self.under_way(master).map(|(_, at)| at).min()
    }

    /// The replicas under way that owe no answer and can be asked, each with the moment for it.
    fn under_way<'a>(&'a self, master: &'a Master) -> impl Iterator<Item = (ReplicaId, Millis)> + 'a {
        let failover = master.failover.as_ref();
        master.replicas.values().filter_map(move |replica| {
            let failover = failover?;
            let at = match failover.step {
                Step::WaitPromotion { promoted } if promoted == replica.id => {
                    let anxious = failover.handover.is_some();
                    next_question(&replica.node, failover.changed, anxious)
                }
                Step::ReconfReplicas { promoted } if promoted != replica.id => {
                    let moving = matches!(replica.reconf, Reconf::Sent | Reconf::InProgress);
                    next_question(&replica.node, replica.reconf_changed, false).filter(|_| moving)
                }
                _ => None,
            };
            let link = &self.links[&replica.node.link];
            Some((replica.id, at.filter(|_| link.cmd.is_up() && link.has_room(1))?))
        })
    }
}

/// When to ask a node that has been under way `since`.
fn next_question(node: &Node, since: Millis, anxious: bool) -> Option<Millis> {
    if node.info_asked.is_some() {
        return None;
    }
    let answered = node.info.as_ref().map_or(since, |info| info.at.max(since));
    let taken = answered.since(since);
    let longest = if anxious && taken < PATIENCE_OF_WRITERS { PAUSE_OF_WRITERS } else { LONGEST_PAUSE };
    Some(answered + taken.clamp(SHORTEST_PAUSE, longest))
}
