//! What rules can speak of: commands, subcommands and categories. The table itself belongs to the command room, which
//! hands its names in; here each gets a number, so that a set of commands is a handful of bits.

use crate::base::Sorted;
use std::ops::Range;

/// Most commands and subcommands there may be.
const ROOM: usize = 256;

/// A set of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set([u64; ROOM / 64]);

impl Set {
    pub(super) const ALL: Set = Set([u64::MAX; ROOM / 64]);
    pub(super) const NONE: Set = Set([0; ROOM / 64]);

    pub(super) fn has(self, id: usize) -> bool {
        self.0[id / 64] >> (id % 64) & 1 == 1
    }

    pub(super) fn put(&mut self, id: usize, within: bool) {
        let bit = 1 << (id % 64);
        if within {
            self.0[id / 64] |= bit;
        } else {
            self.0[id / 64] &= !bit;
        }
    }
}

/// One command or subcommand.
#[derive(Clone, Debug)]
struct Row {
    /// `ping`, `client|kill`
    name: &'static str,
    /// Bits by the place of the category in [`Catalog::categories`].
    categories: u32,
    /// Its subcommands, which follow it.
    subs: Range<usize>,
}

/// All commands, their subcommands and their categories.
#[derive(Clone, Debug)]
pub struct Catalog {
    categories: &'static [&'static str],
    rows: Vec<Row>,
    /// Numbers of the rows.
    by_name: Sorted<&'static [u8], usize>,
}

impl Catalog {
    /// `rows` gives the full name of each command with its categories, every container just before its
    /// subcommands. All names are in lower case.
    ///
    /// # Panics
    /// When there are more rows or categories than a set has room for, or one of an unknown category.
    #[must_use]
    pub fn new<C>(categories: &'static [&'static str], rows: impl IntoIterator<Item = (&'static str, C)>) -> Catalog
    where
        C: IntoIterator<Item = &'static str>,
    {
        assert!(categories.len() <= 32, "categories have 32 bits");
        let mut all: Vec<Row> = Vec::new();
        for (name, its) in rows {
            let place = |word| categories.iter().position(|known| *known == word).expect("a known category");
            let bits = its.into_iter().fold(0, |bits, word| bits | 1 << place(word));
            let at = all.len();
            if let Some((container, _)) = name.split_once('|') {
                let owner = all.iter_mut().rfind(|row| row.name == container).expect("a container comes first");
                owner.subs.end = at + 1;
            }
            all.push(Row { name, categories: bits, subs: at + 1..at + 1 });
        }
        assert!(all.len() <= ROOM, "a set of commands has {ROOM} bits");
        let by_name = all.iter().enumerate().map(|(id, row)| (row.name.as_bytes(), id)).collect();
        Catalog { categories, rows: all, by_name }
    }

    /// The number of a command by its full name in lower case.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// A command and all its subcommands.
    pub(super) fn family(&self, id: usize) -> impl Iterator<Item = usize> + use<> {
        std::iter::once(id).chain(self.rows[id].subs.clone())
    }

    pub(super) fn is_container(&self, id: usize) -> bool {
        !self.rows[id].subs.is_empty()
    }

    /// The commands of a category, whose name is in lower case. A container takes its subcommands with it, even
    /// those that are not of the category by themselves: so the reference has it.
    pub(super) fn members(&self, category: &[u8]) -> Option<Vec<usize>> {
        let bit = 1 << self.categories.iter().position(|known| known.as_bytes() == category)?;
        let of_it = (0..self.rows.len()).filter(|&id| self.rows[id].categories & bit != 0);
        let mut members = Set::NONE;
        of_it.flat_map(|id| self.family(id)).for_each(|id| members.put(id, true));
        Some((0..self.rows.len()).filter(|&id| members.has(id)).collect())
    }
}

#[cfg(test)]
pub(super) fn sample() -> Catalog {
    Catalog::new(
        &["fast", "slow", "admin", "dangerous", "connection", "pubsub"],
        [
            ("ping", vec!["fast", "connection"]),
            ("info", vec!["slow", "dangerous"]),
            ("subscribe", vec!["slow", "pubsub"]),
            ("psubscribe", vec!["slow", "pubsub"]),
            ("publish", vec!["fast", "pubsub"]),
            ("client", vec!["slow"]),
            ("client|id", vec!["slow", "connection"]),
            ("client|kill", vec!["slow", "connection", "admin", "dangerous"]),
            ("sentinel", vec!["slow", "admin", "dangerous"]),
            ("sentinel|help", vec!["slow"]),
            ("sentinel|masters", vec!["slow", "admin", "dangerous"]),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_nothing_else() {
        let catalog = sample();
        for (id, row) in catalog.rows.iter().enumerate() {
            assert_eq!(catalog.find(row.name.as_bytes()), Some(id));
        }
        for wrong in [&b""[..], b"PING", b"pin", b"pingg", b"client|", b"client|nope", b"|id"] {
            assert_eq!(catalog.find(wrong), None);
        }
    }

    #[test]
    fn a_container_takes_its_subcommands_into_its_categories() {
        let catalog = sample();
        let names = |category: &str| -> Vec<&str> {
            catalog.members(category.as_bytes()).unwrap().into_iter().map(|id| catalog.rows[id].name).collect()
        };
        assert_eq!(names("admin"), ["client|kill", "sentinel", "sentinel|help", "sentinel|masters"]);
        assert_eq!(names("connection"), ["ping", "client|id", "client|kill"]);
        assert!(catalog.members(b"keyspace").is_none());
    }

    #[test]
    fn a_set_holds_what_was_put_and_nothing_else() {
        let mut set = Set::NONE;
        for id in [0, 63, 64, 255] {
            set.put(id, true);
        }
        assert_eq!((0..ROOM).filter(|&id| set.has(id)).collect::<Vec<_>>(), [0, 63, 64, 255]);
        set.put(64, false);
        assert!(!set.has(64) && set.has(63));
        assert!((0..ROOM).all(|id| Set::ALL.has(id) && !Set::NONE.has(id)));
    }
}
