//! One elected leader per master and epoch.
//!
//! Known exceptions of the protocol, excused but counted: a failover that an operator forces needs no vote, and where not
//! everybody can be asked its epoch may be another's, too; and a Sentinel that lost its file has forgotten its votes, so that
//! epochs of before may see a second leader; and whoever has met too few of the others since an operator's RESET may take a
//! few votes for many.

use super::facts::{Census, Checker, Fact, Seen};
use super::groups;
use std::collections::BTreeMap;

pub struct OneLeader {
    /// Operators are no excuse.
    strict: bool,
    census: Census,
    /// Votes up to this epoch may be forgotten.
    forgotten: u64,
    /// Who was elected for a master in an epoch, and whether by force.
    leaders: BTreeMap<(&'static str, u64), (usize, bool)>,
    excused: u64,
}

impl OneLeader {
    pub fn new(strict: bool, census: Census) -> OneLeader {
        OneLeader { strict, census, forgotten: 0, leaders: BTreeMap::new(), excused: 0 }
    }
}

impl Checker for OneLeader {
    fn name(&self) -> &'static str {
        "one-leader"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        if let Fact::Replaced { epoch } = seen.fact {
            self.forgotten = self.forgotten.max(epoch);
        }
        let Fact::Event { channel: "+elected-leader", payload } = seen.fact else { return Ok(()) };
        let Some(name) = groups::told(payload) else { return Ok(()) };
        let Some((epoch, forced)) = failover(seen, name) else { return Ok(()) };
        let forced = forced || self.census.knows_few(seen, name);
        let (first, was_forced) = *self.leaders.entry((name, epoch)).or_insert((seen.who, forced));
        if first == seen.who {
            return Ok(());
        }
        let by_force = (forced || was_forced) && !self.strict;
        if by_force || epoch <= self.forgotten {
            self.excused += 1;
            return Ok(());
        }
        Err(format!("s{} and s{} were both elected for {name} in epoch {epoch}", first + 1, seen.who + 1))
    }

    fn excused(&self) -> u64 {
        self.excused
    }
}

/// The failover of this master that this Sentinel runs: its epoch, and whether an operator forced it.
pub fn failover(seen: &Seen, name: &str) -> Option<(u64, bool)> {
    let failover = seen.master(name)?.failover.as_ref()?;
    Some((failover.epoch, failover.forced))
}
