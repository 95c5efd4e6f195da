//! One elected leader per master and epoch.
//!
//! A failover that an operator forces is no exception: it needs no vote, but an epoch of its own. Known exceptions of the
//! protocol, excused but counted: a Sentinel that lost its file has forgotten its votes, so that epochs of before may see a
//! second leader; and whoever has met too few of the others since an operator's RESET may take a few votes for many.

use super::facts::{Census, Checker, Fact, Seen};
use super::groups;
use std::collections::BTreeMap;

pub struct OneLeader {
    census: Census,
    /// Votes up to this epoch may be forgotten.
    forgotten: u64,
    /// Who was elected for a master in an epoch, and whether by too few.
    leaders: BTreeMap<(&'static str, u64), (usize, bool)>,
    excused: u64,
}

impl OneLeader {
    pub fn new(census: Census) -> OneLeader {
        OneLeader { census, forgotten: 0, leaders: BTreeMap::new(), excused: 0 }
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
        let Some((epoch, _)) = failover(seen, name) else { return Ok(()) };
        let by_few = self.census.knows_few(seen, name);
        let (first, was_by_few) = *self.leaders.entry((name, epoch)).or_insert((seen.who, by_few));
        if first == seen.who {
            return Ok(());
        }
        if by_few || was_by_few || epoch <= self.forgotten {
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
