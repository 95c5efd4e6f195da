//! No failover without quorum: whoever begins one, unless an operator asked for it, has lately been told by enough others that
//! the master is down, counted together with itself.
//!
//! Counted from what the others said. An answer may wait behind a cut for a while, so "lately" is generous.

use super::facts::{Checker, Fact, Seen};
use super::groups;
use std::collections::BTreeMap;
use watchfire::base::Millis;

/// An answer counts for 5 s after it came, and it cannot be under way for longer than the rest, ms.
const LATELY_MS: u64 = 30_000;

#[derive(Default)]
pub struct QuorumBehindFailover {
    /// When this one was last told by that one that this master is down.
    told: BTreeMap<(&'static str, usize, usize), Millis>,
}

impl Checker for QuorumBehindFailover {
    fn name(&self) -> &'static str {
        "quorum-behind-failover"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen.fact {
            Fact::Answers { about: Some(name), down: true, to: Some(to), .. } => {
                self.told.insert((name, to, seen.who), seen.now);
            }
            Fact::Event { channel: "+try-failover", payload } => {
                let Some(name) = groups::told(payload) else { return Ok(()) };
                let Some(master) = seen.master(name) else { return Ok(()) };
                let asked_for = master.failover.as_ref().is_none_or(|f| f.forced || f.handover.is_some());
                let quorum = master.settings.quorum as usize;
                let lately = |at: &Millis| seen.now.since(*at) <= LATELY_MS;
                let told = self.told.range((name, seen.who, 0)..=(name, seen.who, usize::MAX));
                let told = told.filter(|(_, at)| lately(at));
                let agreeing = 1 + told.count();
                if !asked_for && agreeing < quorum {
                    return Err(format!(
                        "s{} begins a failover of {name} with {agreeing} of {quorum} agreed",
                        seen.who + 1
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
