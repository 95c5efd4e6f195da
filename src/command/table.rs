//! The shape of the command table and the look-up in it.
//!
//! One row per command and per subcommand. Dispatch, arity errors, `COMMAND …`, `… HELP` and the ACL
//! categories all come from these rows; [`super::commands`] holds them.

use super::arguments::Arg;
use super::call::Handler;
use crate::base::Alike;

/// Properties of a command, as `COMMAND INFO` names them.
pub type Flags = u16;
pub const ADMIN: Flags = 1;
pub const PUBSUB: Flags = 1 << 1;
pub const NOSCRIPT: Flags = 1 << 2;
pub const LOADING: Flags = 1 << 3;
pub const STALE: Flags = 1 << 4;
pub const FAST: Flags = 1 << 5;
pub const NO_AUTH: Flags = 1 << 6;
pub const NO_MULTI: Flags = 1 << 7;
pub const ALLOW_BUSY: Flags = 1 << 8;
/// Categories that do not follow from other flags.
pub const CAT_ADMIN: Flags = 1 << 9;
pub const CAT_DANGEROUS: Flags = 1 << 10;
pub const CAT_CONNECTION: Flags = 1 << 11;

/// What is shown of the flags, in this order.
const FLAG_WORDS: [(Flags, &str); 9] = [
    (ADMIN, "admin"),
    (PUBSUB, "pubsub"),
    (NOSCRIPT, "noscript"),
    (LOADING, "loading"),
    (STALE, "stale"),
    (FAST, "fast"),
    (NO_AUTH, "no_auth"),
    (NO_MULTI, "no_multi"),
    (ALLOW_BUSY, "allow_busy"),
];

/// All ACL categories of the reference, also those without a command here: `ACL CAT` lists them.
pub const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// One command or subcommand.
#[derive(Debug)]
pub struct Command {
    /// In lower case: `ping`, or for a subcommand its own name, `masters`.
    pub name: &'static str,
    /// `ping`, `sentinel|masters`: the name in errors, `CLIENT LIST` and ACL rules.
    pub full: &'static str,
    /// Number of words, the command's included; negative: at least that many.
    pub arity: i32,
    pub flags: Flags,
    pub tips: &'static [&'static str],
    pub since: &'static str,
    pub group: &'static str,
    /// Empty where none is given.
    pub complexity: &'static str,
    /// Versions of Redis, and what each brought.
    pub history: &'static [(&'static str, &'static str)],
    /// Since when another command has taken its place, and which.
    pub replaced: Option<(&'static str, &'static str)>,
    /// What follows the name.
    pub args: &'static [Arg],
    pub summary: &'static str,
    pub subs: Option<&'static Table>,
    pub(super) handler: Handler,
}

impl Command {
    /// The words of its flags.
    pub fn flag_words(&self) -> impl Iterator<Item = &'static str> {
        FLAG_WORDS.iter().filter(|(bit, _)| self.flags & bit != 0).map(|&(_, word)| word)
    }

    /// Its ACL categories without the `@`, implied ones included, in the reference's order.
    pub fn categories(&self) -> impl Iterator<Item = &'static str> {
        let has = |bits| self.flags & bits != 0;
        [
            (has(PUBSUB), "pubsub"),
            (has(ADMIN | CAT_ADMIN), "admin"),
            (has(FAST), "fast"),
            (!has(FAST), "slow"),
            (has(ADMIN | CAT_DANGEROUS), "dangerous"),
            (has(CAT_CONNECTION), "connection"),
        ]
        .into_iter()
        .filter_map(|(has, word)| has.then_some(word))
    }

    /// True when a request of `words` words has a possible length.
    #[must_use]
    pub fn accepts(&self, words: usize) -> bool {
        let least = self.arity.unsigned_abs() as usize;
        if self.arity >= 0 { words == least } else { words >= least }
    }

    /// Its subcommands; none when it has none.
    pub fn subcommands(&self) -> &'static [Command] {
        self.subs.map_or(&[], |table| table.rows)
    }
}

/// Slots of the look-up; a power of two with room for twice the rows of the largest table.
const SLOTS: usize = 64;

/// Rows and an open-addressed index over their names, computed by the compiler. A look-up costs one hash of
/// three bytes and, nearly always, one comparison; case does not matter and nothing is allocated.
#[derive(Debug)]
pub struct Table {
    pub rows: &'static [Command],
    /// Row number plus one; zero is free.
    slots: [u8; SLOTS],
}

impl Table {
    pub(super) const fn new(rows: &'static [Command]) -> Table {
        assert!(rows.len() < SLOTS / 2 + 1);
        let mut slots = [0u8; SLOTS];
        let mut row = 0;
        while row < rows.len() {
            let mut slot = hash(rows[row].name.as_bytes());
            while slots[slot] != 0 {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = row as u8 + 1;
            row += 1;
        }
        Table { rows, slots }
    }

    /// The row of that name, in any case.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<&'static Command> {
        if name.is_empty() {
            return None;
        }
        let mut slot = hash(name);
        loop {
            let row = &self.rows[usize::from(self.slots[slot].checked_sub(1)?)];
            if row.name.alike_at_once(name) {
                return Some(row);
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

/// Mixes length, first, middle and last byte. Setting bit 5 folds the case of letters; that it also folds a
/// few other bytes only costs a comparison.
const fn hash(name: &[u8]) -> usize {
    let len = name.len();
    let (first, middle, last) = (name[0] | 32, name[len / 2] | 32, name[len - 1] | 32);
    let mixed = (first as u32)
        .wrapping_mul(0x9e37_79b1)
        .wrapping_add((middle as u32).wrapping_mul(0x85eb_ca6b))
        .wrapping_add((last as u32).wrapping_mul(0xc2b2_ae35))
        .wrapping_add((len as u32).wrapping_mul(0x27d4_eb2f));
    (mixed >> 26) as usize
}

/// What the first words of a request name.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    Command(&'static Command),
    /// No such command.
    Nothing,
    /// The container is known, the subcommand is not.
    NoSub(&'static Command),
}

/// What a command means together with the word that follows it.
pub(super) fn find_sub(command: &'static Command, word: Option<&[u8]>) -> Found {
    match (command.subs, word) {
        (Some(subs), Some(name)) => subs.find(name).map_or(Found::NoSub(command), Found::Command),
        _ => Found::Command(command),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Names;
    use super::super::commands::COMMANDS;
    use super::*;

    fn all() -> impl Iterator<Item = &'static Command> {
        COMMANDS.rows.iter().flat_map(|row| std::iter::once(row).chain(row.subcommands()))
    }

    #[test]
    fn every_row_is_found_by_its_name_in_any_case_and_nothing_else_is() {
        let names = Names::default();
        for row in all() {
            assert_eq!(names.find_full(row.full.as_bytes()).unwrap().full, row.full);
            assert_eq!(names.find_full(row.full.to_uppercase().as_bytes()).unwrap().full, row.full);
            // The last one differs by the bit that tells capitals from small letters, where there are no letters.
            let folded: String =
                row.full.bytes().map(|byte| char::from(if byte == b'-' { byte ^ 32 } else { byte })).collect();
            for wrong in [format!("{}x", row.full), row.full[..row.full.len() - 1].to_owned(), folded] {
                let hit = names.find_full(wrong.as_bytes());
                assert!(hit.is_none_or(|hit| hit.full == wrong), "{wrong}");
            }
        }
        assert!(COMMANDS.find(b"").is_none());
        assert!(names.find_full(b"client|").is_none());
        assert!(names.find_full(b"ping|x").is_none());
    }

    #[test]
    fn look_ups_seldom_meet_a_second_row() {
        for table in std::iter::once(&COMMANDS).chain(COMMANDS.rows.iter().filter_map(|row| row.subs)) {
            let mut probes = 0;
            for row in table.rows {
                let mut slot = hash(row.name.as_bytes());
                probes += 1;
                while table.rows[usize::from(table.slots[slot]) - 1].name != row.name {
                    probes += 1;
                    slot = (slot + 1) % SLOTS;
                }
            }
            assert!(probes <= table.rows.len() * 2, "{probes} probes for {} rows", table.rows.len());
        }
    }

    #[test]
    fn rows_are_complete() {
        for row in all() {
            assert!(!row.summary.is_empty() && row.summary.ends_with('.'), "{}", row.full);
            assert!(!row.since.is_empty() && !row.group.is_empty(), "{}", row.full);
            assert!(row.full.ends_with(row.name), "{}", row.full);
            assert!(row.categories().all(|word| CATEGORIES.contains(&word)));
        }
    }
}
