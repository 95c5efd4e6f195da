//! An elected leader has more than half of all Sentinels, and at least the quorum, behind it.
//!
//! Counted from what the voters themselves showed, so a candidate that miscounts is seen even when no rival
//! is elected beside it. A voter is a place: whoever is replaced does not vote again. Failovers forced by an operator need no vote and are counted as excused.

use super::check_leader::failover;
use super::check_votes::parse_vote;
use super::facts::{Checker, Fact, Seen};
use std::collections::{BTreeMap, BTreeSet};
use watchfire::core::RunId;

pub struct MajorityBehindLeader {
    sentinels: usize,
    /// How many Sentinels one has to know.
    all: usize,
    voters: BTreeMap<(u64, RunId), BTreeSet<usize>>,
    excused: u64,
}

impl MajorityBehindLeader {
    pub fn new(sentinels: usize, all: usize) -> MajorityBehindLeader {
        MajorityBehindLeader { sentinels, all, voters: BTreeMap::new(), excused: 0 }
    }
}

impl Checker for MajorityBehindLeader {
    fn name(&self) -> &'static str {
        "majority-behind-leader"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match &seen.fact {
            Fact::Answers { vote, .. } => {
                if let Some(leader) = vote.leader {
                    self.voters.entry((vote.epoch, leader)).or_default().insert(seen.who);
                }
            }
            // A vote that did not reach the disk is withdrawn, and counts for nobody.
            Fact::Event { channel: "+vote-for-leader", payload } if !seen.sentinel.save_failing() => {
                if let Some((leader, epoch)) = parse_vote(payload) {
                    self.voters.entry((epoch, leader)).or_default().insert(seen.who);
                }
            }
            Fact::Event { channel: "+elected-leader", .. } => {
                let Some((epoch, forced)) = failover(seen) else { return Ok(()) };
                let voters = self.voters.get(&(epoch, seen.sentinel.myid())).map_or(0, BTreeSet::len);
                let quorum = seen.master().map_or(0, |master| master.settings.quorum as usize);
                if 2 * voters > self.sentinels && voters >= quorum {
                    return Ok(());
                }
                if forced || seen.knows_few(self.all) {
                    self.excused += 1;
                    return Ok(());
                }
                return Err(format!(
                    "s{} was elected in epoch {epoch} with {voters} of {} votes (quorum {quorum})",
                    seen.who + 1,
                    self.sentinels
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn excused(&self) -> u64 {
        self.excused
    }
}
