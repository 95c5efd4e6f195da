//! One elected leader per master and epoch.
//!
//! A failover forced by an operator needs no vote, so it is excused here for now, but counted.

use super::facts::{Checker, Fact, Seen};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct OneLeader {
    /// Who was elected in an epoch, and whether by force.
    leaders: BTreeMap<u64, (usize, bool)>,
    excused: u64,
}

impl Checker for OneLeader {
    fn name(&self) -> &'static str {
        "one-leader"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let Fact::Event { channel: "+elected-leader", .. } = seen.fact else { return Ok(()) };
        let Some((epoch, forced)) = failover(seen) else { return Ok(()) };
        let (first, was_forced) = *self.leaders.entry(epoch).or_insert((seen.who, forced));
        if first == seen.who {
            return Ok(());
        }
        if forced || was_forced {
            self.excused += 1;
            return Ok(());
        }
        Err(format!("s{} and s{} were both elected in epoch {epoch}", first + 1, seen.who + 1))
    }

    fn excused(&self) -> u64 {
        self.excused
    }
}

/// The failover that this Sentinel runs: its epoch, and whether an operator forced it.
pub fn failover(seen: &Seen) -> Option<(u64, bool)> {
    let failover = seen.master()?.failover.as_ref()?;
    Some((failover.epoch, failover.forced))
}
