//! What will happen, ordered by (time, sequence): two events of one millisecond happen in the order in which
//! they were queued, so that a run depends on nothing but its seed.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use watchfire::base::Millis;

#[derive(Debug)]
pub struct Queue<E> {
    heap: BinaryHeap<Entry<E>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Millis,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    /// The heap gives its greatest entry first: that has to be the earliest.
    fn rank(&self) -> Reverse<(Millis, u64)> {
        Reverse((self.at, self.sequence))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl<E> Queue<E> {
    pub fn new() -> Queue<E> {
        Queue { heap: BinaryHeap::new(), sequence: 0 }
    }

    pub fn push(&mut self, at: Millis, event: E) {
        self.sequence += 1;
        self.heap.push(Entry { at, sequence: self.sequence, event });
    }

    /// The next event, unless it lies after `until`.
    pub fn pop(&mut self, until: Millis) -> Option<(Millis, E)> {
        if self.heap.peek()?.at > until {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_within_one_millisecond_in_the_order_of_pushing() {
        let mut queue = Queue::new();
        for (at, name) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b'), (9, 'e')] {
            queue.push(Millis(at), name);
        }
        let seen: String = std::iter::from_fn(|| queue.pop(Millis(5)).map(|(_, name)| name)).collect();
        assert_eq!(seen, "abcd");
        assert_eq!(queue.pop(Millis(9)), Some((Millis(9), 'e')));
    }
}
