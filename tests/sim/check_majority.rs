//! An elected leader has more than half of all Sentinels that monitor the master, and at least the quorum, behind it.
//!
//! Counted from what the voters themselves showed, so a candidate that miscounts is seen even when no rival
//! is elected beside it. A voter is a place: whoever is replaced does not vote again. Failovers forced by an operator need no vote and are counted as excused.

use super::check_leader::failover;
use super::check_votes::parse_vote;
use super::facts::{Census, Checker, Fact, Seen};
use super::groups;
use std::collections::{BTreeMap, BTreeSet};
use watchfire::core::RunId;

pub struct MajorityBehindLeader {
    census: Census,
    voters: BTreeMap<(&'static str, u64, RunId), BTreeSet<usize>>,
    excused: u64,
}

impl MajorityBehindLeader {
    pub fn new(census: Census) -> MajorityBehindLeader {
        MajorityBehindLeader { census, voters: BTreeMap::new(), excused: 0 }
    }
}

impl Checker for MajorityBehindLeader {
    fn name(&self) -> &'static str {
        "majority-behind-leader"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match &seen.fact {
            Fact::Answers { about: Some(name), vote, .. } => {
                if let Some(leader) = vote.leader {
                    self.voters.entry((name, vote.epoch, leader)).or_default().insert(seen.who);
                }
            }
            // A vote that did not reach the disk is withdrawn, and counts for nobody.
            Fact::Event { channel: "+vote-for-leader", payload } if !seen.sentinel.save_failing() => {
                let Some((leader, epoch)) = parse_vote(payload) else { return Ok(()) };
                for name in seen.voted(leader, epoch) {
                    self.voters.entry((name, epoch, leader)).or_default().insert(seen.who);
                }
            }
            Fact::Event { channel: "+elected-leader", payload } => {
                let Some(name) = groups::told(payload) else { return Ok(()) };
                let Some((epoch, forced)) = failover(seen, name) else { return Ok(()) };
                let voters = self.voters.get(&(name, epoch, seen.sentinel.myid())).map_or(0, BTreeSet::len);
                let quorum = seen.master(name).map_or(0, |master| master.settings.quorum as usize);
                let all = self.census.watchers(name);
                if 2 * voters > all && voters >= quorum {
                    return Ok(());
                }
                if forced || self.census.knows_few(seen, name) {
                    self.excused += 1;
                    return Ok(());
                }
                return Err(format!(
                    "s{} was elected for {name} in epoch {epoch} with {voters} of {all} votes (quorum {quorum})",
                    seen.who + 1
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
