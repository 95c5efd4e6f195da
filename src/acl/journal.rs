//! What was refused, for `ACL LOG`. The newest stands first; what is refused again within a minute is counted rather
//! than listed.

use crate::base::{Millis, limits};
use std::collections::VecDeque;

/// An entry younger than this, in ms, takes in others of its kind.
const GROUPED_MS: u64 = 60_000;
/// How many of the newest entries are looked at for one of the same kind.
const LOOKED_AT: usize = 10;

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Auth,
    Command,
    Channel,
}

impl Reason {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Reason::Auth => "auth",
            Reason::Command => "command",
            Reason::Channel => "channel",
        }
    }
}

/// One refusal, or several of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub count: u64,
    pub reason: Reason,
    /// The command's name or the channel.
    pub object: Vec<u8>,
    pub username: Vec<u8>,
    /// The client as `CLIENT INFO` shows it.
    pub client: Vec<u8>,
    /// Counts entries from the start of the process.
    pub id: u64,
    /// The wall clock, ms since 1970: of the first and of the last refusal.
    pub created: u64,
    pub updated: u64,
    /// The last refusal, on the clock that never jumps.
    pub at: Millis,
}

impl Entry {
    /// What it holds, roughly.
    fn bytes(&self) -> usize {
        size_of::<Entry>() + self.object.len() + self.username.len() + self.client.len()
    }
}

/// The entries, a bounded number of them.
#[derive(Debug)]
pub struct Log {
    entries: VecDeque<Entry>,
    next_id: u64,
    most: usize,
    /// What the entries hold, in bytes.
    bytes: usize,
}

impl Log {
    /// One that holds at most so many entries.
    #[must_use]
    pub fn new(most: usize) -> Log {
        Log { entries: VecDeque::new(), next_id: 0, most, bytes: 0 }
    }

    /// Newest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Forgets all entries. Their numbers are not given again.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Notes a refusal at `now`, which is `wall` ms since 1970.
    pub fn add(
        &mut self,
        (now, wall): (Millis, u64),
        (reason, object): (Reason, &[u8]),
        username: &[u8],
        client: Vec<u8>,
    ) {
        // They came from somebody who may be a stranger, and are here to be recognised.
        let short = |word: &'_ [u8]| word[..word.len().min(limits::CLIENT_WORD)].to_vec();
        let (object, username) = (short(object), short(username));
        let same = |entry: &Entry| {
            entry.reason == reason
                && entry.object == object
                && entry.username == username
                && now.since(entry.at) <= GROUPED_MS
        };
        let known = self.entries.iter().take(LOOKED_AT).position(same).and_then(|place| self.entries.remove(place));
        let entry = if let Some(mut entry) = known {
            self.bytes -= entry.bytes();
            entry.count += 1;
            entry
        } else {
            let id = self.next_id;
            self.next_id += 1;
            Entry { count: 1, reason, object, username, client: Vec::new(), id, created: wall, updated: wall, at: now }
        };
        let entry = Entry { client, updated: wall, at: now, ..entry };
        self.bytes += entry.bytes();
        self.entries.push_front(entry);
        while self.entries.len() > self.most || self.bytes > limits::ACL_LOG {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.bytes -= oldest.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_stranger_says_little_of_it_is_kept() {
        let mut log = Log::new(usize::MAX);
        let long = |n: usize| [n.to_string().into_bytes(), vec![b'x'; 16 * 1024]].concat();
        for n in 0..10_000 {
            log.add((Millis(0), 0), (Reason::Channel, &long(n)), &long(n), Vec::new());
        }
        let (first, kept) = (log.iter().next().unwrap(), log.iter().len());
        assert_eq!((first.object.len(), first.username.len()), (limits::CLIENT_WORD, limits::CLIENT_WORD));
        assert!(first.object.starts_with(b"9999x"), "the newest is kept");
        let held: usize = log.iter().map(|entry| entry.object.len() + entry.username.len()).sum();
        assert!(held <= limits::ACL_LOG && held > limits::ACL_LOG / 2, "{kept} entries hold {held}");
        // Those of a kind are recognised by what is kept.
        log.add((Millis(1), 1), (Reason::Channel, &long(9_999)), &long(9_999), b"id=1".to_vec());
        assert_eq!((log.iter().next().unwrap().count, log.iter().len()), (2, kept));
        log.clear();
        add(&mut log, 2, "a");
        assert_eq!((log.iter().len(), log.bytes), (1, log.iter().next().unwrap().bytes()));
    }

    fn add(log: &mut Log, at: u64, user: &str) {
        let info = format!("at={at}").into_bytes();
        log.add((Millis(at), at + 1_000_000), (Reason::Auth, b"AUTH"), user.as_bytes(), info);
    }

    fn shown(log: &Log) -> Vec<String> {
        log.iter().map(|e| format!("{}x{}#{}", e.count, String::from_utf8_lossy(&e.username), e.id)).collect()
    }

    #[test]
    fn what_is_refused_again_is_counted_and_comes_first() {
        let mut log = Log::new(128);
        for (at, user) in [(0, "a"), (1, "b"), (2, "a"), (60_002, "a"), (120_003, "a")] {
            add(&mut log, at, user);
        }
        assert_eq!(shown(&log), ["1xa#2", "3xa#0", "1xb#1"]);
        let entry = log.iter().nth(1).unwrap();
        assert_eq!((entry.created, entry.updated, entry.at), (1_000_000, 1_060_002, Millis(60_002)));
        assert_eq!(entry.client, b"at=60002");
        log.clear();
        add(&mut log, 120_004, "a");
        assert_eq!(shown(&log), ["1xa#3"]);
    }

    #[test]
    fn only_the_newest_are_looked_at_and_kept() {
        let mut log = Log::new(12);
        (0..11).for_each(|n| add(&mut log, n, &n.to_string()));
        add(&mut log, 11, "0");
        assert_eq!(log.iter().len(), 12);
        add(&mut log, 12, "x");
        assert_eq!(log.iter().len(), 12);
        assert_eq!(shown(&log)[..2], ["1xx#12", "1x0#11"]);
        let mut none = Log::new(0);
        add(&mut none, 0, "a");
        assert_eq!(none.iter().len(), 0);
    }
}
