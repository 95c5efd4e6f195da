//! One vote per Sentinel, master and epoch, across crashes.
//!
//! A vote counts from the moment in which somebody may have seen it: in an answer to a peer, or as the event
//! `+vote-for-leader` (our own candidate counts it without being asked). A vote whose save failed was never
//! given: the event was published, but it is withdrawn and no answer will tell it, whatever the disk holds.

use super::facts::{Checker, Fact, Seen};
use std::collections::BTreeMap;
use watchfire::core::RunId;

#[derive(Default)]
pub struct OneVote {
    votes: BTreeMap<(usize, &'static str, u64), RunId>,
}

impl OneVote {
    fn given(&mut self, who: usize, name: &'static str, vote: (RunId, u64), how: &str) -> Result<(), String> {
        let (leader, epoch) = vote;
        let first = *self.votes.entry((who, name, epoch)).or_insert(leader);
        if first == leader {
            return Ok(());
        }
        Err(format!(
            "s{} voted for {first:?} and, by its {how}, for {leader:?}, both about {name} in epoch {epoch}",
            who + 1
        ))
    }
}

impl Checker for OneVote {
    fn name(&self) -> &'static str {
        "one-vote"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match &seen.fact {
            // Another voter, though in the same place.
            Fact::Replaced { .. } => {
                self.votes.retain(|(who, ..), _| *who != seen.who);
                Ok(())
            }
            Fact::Answers { about: Some(name), vote, .. } => match vote.leader {
                Some(leader) => self.given(seen.who, name, (leader, vote.epoch), "answer"),
                None => Ok(()),
            },
            Fact::Event { channel: "+vote-for-leader", payload } => {
                let (leader, epoch) = parse_vote(payload).ok_or(format!("a vote nobody can read: {payload}"))?;
                if seen.sentinel.save_failing() {
                    return Ok(());
                }
                let mut masters = seen.voted(leader, epoch).into_iter();
                masters.try_for_each(|name| self.given(seen.who, name, (leader, epoch), "event"))
            }
            _ => Ok(()),
        }
    }
}

/// `<runid> <epoch>`
pub fn parse_vote(payload: &str) -> Option<(RunId, u64)> {
    let (leader, epoch) = payload.split_once(' ')?;
    Some((RunId::parse(leader.as_bytes())?, epoch.parse().ok()?))
}
