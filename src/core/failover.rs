//! The failover of one master.

use super::ids::ReplicaId;
use crate::base::Millis;

/// A failover under way: its own epoch and how far it is.
#[derive(Clone, Debug)]
pub struct Failover {
    /// The epoch in which votes are sought and under which the new address is published.
    pub epoch: u64,
    pub started: Millis,
    /// Begun by `SENTINEL FAILOVER`.
    pub forced: bool,
    pub step: Step,
    /// When the step was entered.
    pub changed: Millis,
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
        match self.step {
            Step::WaitStart | Step::SelectReplica => None,
            Step::SendReplicaofNoOne { promoted }
            | Step::WaitPromotion { promoted }
            | Step::ReconfReplicas { promoted }
            | Step::UpdateConfig { promoted } => Some(promoted),
        }
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
