//! What will happen, ordered by (time, sequence): two events of one millisecond happen in the order in which
//! they were queued, so that a run depends on nothing but its seed.

use std::collections::BTreeMap;
use watchfire::base::Millis;

#[derive(Debug)]
pub struct Queue<E> {
    events: BTreeMap<(Millis, u64), E>,
    sequence: u64,
}

impl<E> Queue<E> {
    pub fn new() -> Queue<E> {
        Queue { events: BTreeMap::new(), sequence: 0 }
    }

    pub fn push(&mut self, at: Millis, event: E) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    /// The next event, unless it lies after `until`.
    pub fn pop(&mut self, until: Millis) -> Option<(Millis, E)> {
        let entry = self.events.first_entry()?;
        if entry.key().0 > until {
            return None;
        }
        let ((at, _), event) = entry.remove_entry();
        Some((at, event))
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
