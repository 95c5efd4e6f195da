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
//! save (more, while few were measured), half of each way (a question goes one way only) and [`SLACK`] are the margin for what was not measured.
//!
//! Nobody tells its slot, and they need not be equal. Where the first lives, all that counts is that each of the others
//! waits long enough. Where the first is dead, the second starts after one slot of its own and the third after two: they
//! stay apart as long as these two exceed that one by what the question of the second needs, so slots may differ by the
//! margin. Whoever errs still loses no safety, but an election, which [`super::election`] repeats.
//!
//! One that died together with the master keeps its place, as an order that shifts between those who have noticed and those
//! who have not would let neighbours start in the same moment. But where its kernel has refused us since long before the
//! objective death, it will not start, and others were refused as well: then its place costs a third of a slot. Even if one
//! of two neighbours saw it refuse and the other did not, that third is between them.

use super::ids::{LinkId, MasterId, PeerId, RunId};
use super::model::{Expect, Master, Peer};
use super::{Plant, Sentinel};
use crate::base::{Millis, random};

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
pub struct Measured {
    ms: u64,
    /// How often, up to [`ENOUGH`].
    times: u64,
}

/// So many measurements are enough to have seen a slow one.
const ENOUGH: u64 = 5;

impl Measured {
    fn note(&mut self, took: u64, fall: u64) {
        let took = took.min(SLOT_MOST);
        self.ms = if took >= self.ms { took } else { self.ms - (self.ms - took).div_ceil(fall) };
        self.times = (self.times + 1).min(ENOUGH);
    }

    #[must_use]
    pub fn ms(self) -> u64 {
        self.ms
    }

    /// With a margin for what was not seen yet: half of it, and the whole of it more for each measurement that is wanting.
    fn with_margin(self) -> u64 {
        self.ms + self.ms / 2 + self.ms * (ENOUGH - self.times)
    }
}

impl Sentinel {
    /// The slot of this master, ms.
    pub(super) fn slot(&self, master: &Master) -> u64 {
        let live = master.peers.values().filter(|peer| peer.sdown.is_none());
        let links = || live.clone().filter_map(|peer| self.links.get(&peer.link));
        let way = links().map(|link| link.way.ms()).max().unwrap_or(0);
        let theirs = links().map(|link| link.peer_save.ms()).max().unwrap_or(0);
        let save = self.save.with_margin().max(theirs + theirs / 2);
        (save + 2 * way + SLACK).clamp(SLOT_LEAST, SLOT_MOST)
    }

    /// How long those before us are left alone with the objective death of the master, ms: the live voters, we and the peers
    /// that are not SDOWN, stand in the order of a hash of id and master.
    pub(super) fn head_start(&self, master: &Master) -> u64 {
        if self.planted(Plant::IgnoreRank) || self.planted(Plant::OwnTimers) {
            return 0;
        }
        let place = |voter: RunId| {
            let bytes = voter.as_str().bytes().chain(master.name.bytes());
            let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
            (random::mix(hash), voter)
        };
        let me = place(self.identity.myid);
        let slot = self.slot(master);
        let margin = self.tunables.ask_period;
        let long_gone = |since: Millis| master.node.sdown.is_some_and(|master_since| since + margin < master_since);
        let stands = |peer: &&Peer| !peer.sdown.is_some_and(long_gone);
        let before_us = master.peers.values().filter(stands).filter(|peer| place(peer.run_id) < me);
        let share = |peer: &Peer| {
            let refuses = self.links.get(&peer.link).and_then(|link| Some(link.refusals.as_deref()?.since()));
            let known = refuses.is_some_and(|since| master.odown.is_some_and(|odown| since + slot <= odown));
            if known { slot / 3 } else { slot }
        };
        before_us.map(share).sum()
    }

    /// How long offsets of today are waited for, ms: as a slot is, but by the ways to the replicas, which save nothing.
    pub(super) fn news_patience(&self, master: &Master) -> u64 {
        let links = master.replicas.values().filter_map(|replica| self.links.get(&replica.node.link));
        let way = links.filter(|link| link.cmd.is_up()).map(|link| link.way.ms()).max().unwrap_or(0);
        (2 * way + SLACK).clamp(SLOT_LEAST, SLOT_MOST)
    }

    /// A save ended that began in the turn of `self.newest`: what was asked in that turn leaves only now.
    pub(super) fn note_save(&mut self, now: Millis) {
        self.save.note(now.since(self.newest), SAVES_FALL);
        self.last_save = (self.newest, now);
        self.newest = now;
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
