//! Time events: deadlines in ms, in order, cancellable.

use crate::base::{Millis, Sorted, SortedSet};

/// Names one timer. Counted up and never reused, so a stale id finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(u64);

/// The timers by deadline; equal deadlines in the order in which the timers were made.
///
/// An ordered set rather than a binary heap: a cancelled timer leaves at once instead of lingering until its deadline, so
/// timers that are moved all the time cost no memory, and the first deadline is always a real one.
#[derive(Debug, Default)]
pub(super) struct Timers {
    made: u64,
    queue: SortedSet<(Millis, TimerId)>,
    /// The deadline of each living timer. One that is due stays here, out of the queue, until its callback decided.
    deadlines: Sorted<TimerId, Millis>,
}

impl Timers {
    pub(super) fn add(&mut self, at: Millis) -> TimerId {
        let id = TimerId(self.made);
        self.made += 1;
        self.queue.insert((at, id));
        self.deadlines.insert(id, at);
        id
    }

    /// False when there is no such timer (any more).
    pub(super) fn cancel(&mut self, id: TimerId) -> bool {
        match self.deadlines.remove(&id) {
            Some(at) => {
                self.queue.remove(&(at, id));
                true
            }
            None => false,
        }
    }

    /// The nearest deadline.
    pub(super) fn nearest(&self) -> Option<Millis> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes those due at `now` out of the queue, in order, into `due`. What callbacks add waits for the next call, so a
    /// timer that starts another one without delay cannot hold the loop.
    pub(super) fn take_due(&mut self, now: Millis, due: &mut Vec<TimerId>) {
        while let Some((at, id)) = self.queue.first().copied()
            && at <= now
        {
            self.queue.pop_first();
            due.push(id);
        }
    }

    /// Whether it lives: neither cancelled nor done.
    pub(super) fn lives(&self, id: TimerId) -> bool {
        self.deadlines.contains_key(&id)
    }

    /// Puts a due timer back with a new deadline, unless its callback cancelled it.
    pub(super) fn again(&mut self, id: TimerId, at: Millis) {
        if let Some(deadline) = self.deadlines.get_mut(&id) {
            *deadline = at;
            self.queue.insert((at, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(timers: &mut Timers, now: u64) -> Vec<TimerId> {
        let mut due = Vec::new();
        timers.take_due(Millis(now), &mut due);
        due
    }

    #[test]
    fn timers_come_by_deadline_and_then_by_age() {
        let mut timers = Timers::default();
        let late = timers.add(Millis(30));
        let first = timers.add(Millis(10));
        let second = timers.add(Millis(10));
        assert_eq!(timers.nearest(), Some(Millis(10)));
        assert_eq!(due(&mut timers, 9), []);
        assert_eq!(due(&mut timers, 30), [first, second, late]);
        assert_eq!(timers.nearest(), None);
    }

    #[test]
    fn a_cancelled_timer_leaves_nothing_behind() {
        let mut timers = Timers::default();
        let id = timers.add(Millis(10));
        assert!(timers.cancel(id));
        assert!(!timers.cancel(id));
        assert_eq!(timers.nearest(), None);
        assert!(timers.deadlines.is_empty() && timers.queue.is_empty());
    }

    #[test]
    fn a_due_timer_that_was_cancelled_does_not_come_back() {
        let mut timers = Timers::default();
        let id = timers.add(Millis(10));
        assert_eq!(due(&mut timers, 10), [id]);
        assert!(timers.lives(id));
        assert!(timers.cancel(id));
        timers.again(id, Millis(20));
        assert!(!timers.lives(id));
        assert_eq!(due(&mut timers, 100), []);
    }

    #[test]
    fn a_timer_put_back_keeps_its_id_and_can_be_cancelled() {
        let mut timers = Timers::default();
        let id = timers.add(Millis(10));
        assert_eq!(due(&mut timers, 15), [id]);
        timers.again(id, Millis(25));
        assert_eq!(timers.nearest(), Some(Millis(25)));
        assert!(timers.cancel(id));
        assert_eq!(timers.nearest(), None);
    }
}
