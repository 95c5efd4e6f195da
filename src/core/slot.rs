//! How long a candidate leaves to the one ranked before it, measured instead of guessed.
//!
//! The one before us has to notice, to save its epoch and its vote, and its question has to reach us; then we have voted
//! and stand back. On a fast disk and a short way that takes a few ms, on others hundreds. A slot that is too short splits
//! votes, one that is too long is time without a master. So each Sentinel measures what it can:
//!
//! * **ways**, by link: from a PING or a question to its answer;
//! * **its own saves**, from the turn in which something changed to the moment in which that is on disk;
//! * **saves of peers**, by link: what an answer to a request for a vote takes beyond the way, as it has to be saved before.
//!
//! The slot is one save and two ways. One way at most lies between our learning of the objective death and the learning of
//! the one before us, because each asks all when it notices; another, at most, until its question is here. Half of the
//! save, half of each way (a question goes one way only) and [`SLACK`] are the margin for what was not measured.
//!
//! Nobody tells its slot, and they need not be equal. Where the first lives, all that counts is that each of the others
//! waits long enough. Where the first is dead, the second starts after one slot of its own and the third after two: they
//! stay apart as long as these two exceed that one by what the question of the second needs, so slots may differ by the
//! margin. Whoever errs still loses no safety, but an election, which [`super::election`] repeats.

use super::Sentinel;
use super::ids::{LinkId, MasterId, PeerId};
use super::model::{Expect, Master};
use crate::base::Millis;

/// The least and the most that a slot lasts, ms. Whoever needs more is not waited for.
pub(super) const SLOT_LEAST: u64 = 30;
pub(super) const SLOT_MOST: u64 = 250;
/// Turns of the loop, timers and the scheduler, ms.
const SLACK: u64 = 6;

/// By what part of the difference a shorter duration pulls a longer one down. Ways are measured every second, and a hiccup
/// should not be felt for a minute; saves are few, and the slowest of a dozen counts.
const WAYS_FALL: u64 = 8;
const SAVES_FALL: u64 = 16;

/// A duration that was measured now and then, ms: it rises at once and falls slowly, for a slot must cover the slow ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured(u64);

impl Measured {
    fn note(&mut self, took: u64, fall: u64) {
        let took = took.min(SLOT_MOST);
        self.0 = if took >= self.0 { took } else { self.0 - (self.0 - took).div_ceil(fall) };
    }

    #[must_use]
    pub fn ms(self) -> u64 {
        self.0
    }
}

impl Sentinel {
    /// The slot of this master, ms.
    pub(super) fn slot(&self, master: &Master) -> u64 {
        let live = master.peers.values().filter(|peer| peer.sdown.is_none());
        let links = || live.clone().filter_map(|peer| self.links.get(&peer.link));
        let way = links().map(|link| link.way.ms()).max().unwrap_or(0);
        let save = links().map(|link| link.peer_save.ms()).fold(self.save.ms(), u64::max);
        (save + save / 2 + 2 * way + SLACK).clamp(SLOT_LEAST, SLOT_MOST)
    }

    /// How long offsets of today are waited for, ms: as a slot is, but by the ways to the replicas, which save nothing.
    pub(super) fn news_patience(&self, master: &Master) -> u64 {
        let links = master.replicas.values().filter_map(|replica| self.links.get(&replica.node.link));
        let way = links.filter(|link| link.cmd.is_up()).map(|link| link.way.ms()).max().unwrap_or(0);
        (2 * way + SLACK).clamp(SLOT_LEAST, SLOT_MOST)
    }

    /// A save ended that began in the turn of `self.heard_at`: what was asked in that turn leaves only now.
    pub(super) fn note_save(&mut self, now: Millis) {
        self.save.note(now.since(self.heard_at), SAVES_FALL);
        self.last_save = (self.heard_at, now);
        self.heard_at = now;
    }

    /// When that which was composed at this moment left.
    fn left_at(&self, composed: Millis) -> Millis {
        let (began, ended) = self.last_save;
        if composed >= began { composed.max(ended) } else { composed }
    }

    /// A PING was answered; which one is only known when no other is under way.
    pub(super) fn note_pong(&mut self, now: Millis, id: LinkId) {
        let Some(link) = self.links.get(&id) else { return };
        let Some(stood) = link.cmd.since().filter(|_| !link.pending.contains(&Expect::Ping)) else { return };
        let took = now.since(self.left_at(link.ping_sent).max(stood));
        if let Some(link) = self.links.get_mut(&id) {
            link.way.note(took, WAYS_FALL);
        }
    }

    /// A question was answered, and no other is under way.
    pub(super) fn note_answer(&mut self, now: Millis, id: MasterId, peer: PeerId, sought: bool) {
        let Some(peer) = self.masters.get(&id).and_then(|master| master.peers.get(&peer)) else { return };
        let Some(asked) = peer.asked else { return };
        let took = now.since(self.left_at(asked));
        let Some(link) = self.links.get_mut(&peer.link) else { return };
        let theirs = |expect: &Expect| matches!(expect, Expect::Ask { peer: other, .. } if *other == peer.id);
        if link.pending.iter().any(theirs) {
            return;
        }
        if sought {
            link.peer_save.note(took.saturating_sub(link.way.ms()), SAVES_FALL);
        } else {
            link.way.note(took, WAYS_FALL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_rises_at_once_and_falls_slowly() {
        let mut measured = Measured::default();
        for (took, shown) in [(0, 0), (80, 80), (10, 71), (10, 63), (90, 90), (9_000, 250)] {
            measured.note(took, 8);
            assert_eq!(measured.ms(), shown, "after {took}");
        }
        for _ in 0..60 {
            measured.note(1, 8);
        }
        assert_eq!(measured.ms(), 1);
    }
}
