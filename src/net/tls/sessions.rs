//! Sessions of clients that may be resumed, bounded in number, age and bytes.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use rustls::server::StoresServerSessions;

use super::Sessions;
use crate::base::{Millis, limits};

/// The oldest go first. All live equally long, so the queue is in the order of their ends.
pub(super) struct Store {
    bounds: Sessions,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_key: HashMap<Vec<u8>, (Vec<u8>, u64)>,
    /// Keys with their time and number; those that were taken or replaced stay until they come to the front or get too many.
    queue: VecDeque<(Millis, u64, Vec<u8>)>,
    made: u64,
    bytes: usize,
}

impl Store {
    pub(super) fn new(bounds: Sessions) -> Store {
        Store { bounds, kept: Mutex::default() }
    }

    /// The content after what is too old has left.
    fn with<T>(&self, now: Millis, act: impl FnOnce(&mut Kept) -> T) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let age = self.bounds.seconds.saturating_mul(1000);
        while let Some((made, ..)) = kept.queue.front()
            && now.since(*made) >= age
        {
            kept.drop_oldest();
        }
        act(&mut kept)
    }

    fn put_at(&self, now: Millis, key: Vec<u8>, value: Vec<u8>) -> bool {
        let most = if self.bounds.count == 0 { usize::MAX } else { self.bounds.count };
        self.with(now, |kept| {
            kept.remove(&key);
            kept.made += 1;
            kept.bytes += key.len() + value.len();
            kept.queue.push_back((now, kept.made, key.clone()));
            kept.by_key.insert(key, (value, kept.made));
            while kept.by_key.len() > most || kept.bytes > limits::TLS_SESSION_BYTES {
                kept.drop_oldest();
            }
            kept.tidy();
            true
        })
    }
}

impl Kept {
    /// Whoever resumes a session takes it, and its key stays behind in the queue. Such keys are swept out before there are more
    /// of them than there are sessions, so that the queue is bounded by what bounds those.
    fn tidy(&mut self) {
        if self.queue.len() > 2 * self.by_key.len() {
            let by_key = &self.by_key;
            self.queue.retain(|(_, number, key)| by_key.get(key).is_some_and(|(_, owner)| owner == number));
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((_, number, key)) = self.queue.pop_front()
            && self.by_key.get(&key).is_some_and(|(_, owner)| *owner == number)
        {
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let (value, _) = self.by_key.remove(key)?;
        self.bytes -= key.len() + value.len();
        Some(value)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store {{ at most {} }}", self.bounds.count)
    }
}

impl StoresServerSessions for Store {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.put_at((self.bounds.clock)(), key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.with((self.bounds.clock)(), |kept| kept.by_key.get(key).map(|(value, _)| value.clone()))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.with((self.bounds.clock)(), |kept| kept.remove(key))
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(count: usize, seconds: u64) -> Sessions {
        Sessions { count, seconds, clock: || Millis(0) }
    }

    fn key(number: u8) -> Vec<u8> {
        vec![number; 32]
    }

    #[test]
    fn the_oldest_session_leaves_when_there_are_too_many() {
        let store = Store::new(bounds(2, 300));
        for number in 0..3 {
            assert!(store.put(key(number), vec![number]));
        }
        assert_eq!(store.get(&key(0)), None);
        assert_eq!(store.get(&key(2)), Some(vec![2]));
        assert_eq!(store.take(&key(2)), Some(vec![2]));
        assert_eq!(store.take(&key(2)), None);
    }

    #[test]
    fn a_session_ends_with_its_time_and_one_that_was_replaced_does_not_end_its_successor() {
        let store = Store::new(bounds(1, 10));
        store.put(key(1), vec![0]);
        store.put(key(1), vec![1]);
        assert_eq!(store.get(&key(1)), Some(vec![1]));

        let store = Store::new(bounds(0, 10));
        store.put_at(Millis(0), key(1), vec![1]);
        store.put_at(Millis(55_000), key(1), vec![2]);
        assert_eq!(store.with(Millis(64_999), |kept| kept.by_key.len()), 1);
        store.put_at(Millis(66_000), key(2), vec![3]);
        assert_eq!(store.get(&key(1)), None);
        assert_eq!(store.with(Millis(66_000), |kept| kept.by_key.len()), 1);
    }

    #[test]
    fn what_was_taken_leaves_nothing_behind_that_grows() {
        let store = Store::new(bounds(0, 300));
        store.put(key(0), vec![0]);
        for number in 1..=200 {
            store.put(key(number), vec![number]);
            assert_eq!(store.take(&key(number)), Some(vec![number]));
        }
        assert_eq!(store.get(&key(0)), Some(vec![0]), "those that nobody took stay");
        let kept = store.kept.lock().unwrap();
        assert_eq!(kept.by_key.len(), 1);
        assert!(kept.queue.len() <= 3, "{} keys wait for their time", kept.queue.len());
    }

    #[test]
    fn sessions_are_bounded_in_bytes() {
        let store = Store::new(bounds(0, 300));
        for number in 0..=255 {
            store.put(key(number), vec![0; 64 * 1024]);
        }
        let kept = store.kept.lock().unwrap();
        assert!(kept.bytes <= limits::TLS_SESSION_BYTES && !kept.by_key.is_empty());
        assert_eq!(kept.bytes, kept.by_key.iter().map(|(key, (value, _))| key.len() + value.len()).sum());
    }
}
