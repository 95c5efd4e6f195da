//! What clients call the commands: `rename-command` of the file can give one another name, or none.
//!
//! Only the names change that requests are looked up by. Everything that tells of commands (`COMMAND`, errors, ACL rules,
//! `CLIENT LIST`) goes on with the name of the table, as it does in redis-sentinel.

use super::commands::COMMANDS;
use super::table::{self, Command, Found};
use crate::resp::Argv;
use std::collections::{BTreeMap, BTreeSet};

/// The names in use. As it begins, they are those of the table.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Names of the table that mean nothing any more.
    gone: BTreeSet<&'static str>,
    /// Further names, in lower case.
    given: BTreeMap<Vec<u8>, &'static Command>,
}

/// Why a command cannot be renamed, in redis's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRenamed {
    NoSuchCommand,
    NameTaken,
}

impl NotRenamed {
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            NotRenamed::NoSuchCommand => "No such command in rename-command",
            NotRenamed::NameTaken => "Target command name already exists",
        }
    }
}

impl Names {
    /// Gives a command, by the name that it has now, another one. An empty one takes it away.
    pub fn rename(&mut self, old: &[u8], new: &[u8]) -> Result<(), NotRenamed> {
        let row = self.row(old).ok_or(NotRenamed::NoSuchCommand)?;
        let mut names = self.clone();
        if names.given.remove(&old.to_ascii_lowercase()).is_none() {
            names.gone.insert(row.name);
        }
        if names.row(new).is_some() {
            return Err(NotRenamed::NameTaken);
        }
        if new.eq_ignore_ascii_case(row.name.as_bytes()) {
            names.gone.remove(row.name);
        } else if !new.is_empty() {
            names.given.insert(new.to_ascii_lowercase(), row);
        }
        *self = names;
        Ok(())
    }

    fn row(&self, name: &[u8]) -> Option<&'static Command> {
        if self.gone.is_empty() {
            return COMMANDS.find(name);
        }
        let given = self.given.get(&name.to_ascii_lowercase()).copied();
        given.or_else(|| COMMANDS.find(name).filter(|row| !self.gone.contains(row.name)))
    }

    /// What the words from `argv[at]` on name.
    #[must_use]
    pub fn find(&self, argv: &Argv, at: usize) -> Found {
        let Some(row) = argv.get(at).and_then(|name| self.row(name)) else { return Found::Nothing };
        table::find_sub(row, argv.get(at + 1))
    }

    /// The row of a name as `COMMAND INFO` takes it: `ping` or `client|kill`.
    #[must_use]
    pub fn find_full(&self, name: &[u8]) -> Option<&'static Command> {
        match name.iter().position(|&byte| byte == b'|') {
            None => self.row(name),
            Some(bar) => self.row(&name[..bar])?.subs?.find(&name[bar + 1..]),
        }
    }

    /// The commands that can be called by any name, in the order of the table.
    pub fn rows(&self) -> impl Iterator<Item = &'static Command> + Clone {
        let is_given = |row: &Command| self.given.values().any(|given| given.name == row.name);
        COMMANDS.rows.iter().filter(move |row| !self.gone.contains(row.name) || is_given(row))
    }

    /// The same with their subcommands, each container before its own.
    pub fn all(&self) -> impl Iterator<Item = &'static Command> {
        self.rows().flat_map(|row| std::iter::once(row).chain(row.subcommands()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_go_and_move() {
        let mut names = Names::default();
        let called = |names: &Names, name: &str| names.find_full(name.as_bytes()).map(|row| row.full);
        names.rename(b"PING", b"Pang").unwrap();
        assert_eq!((called(&names, "ping"), called(&names, "PANG")), (None, Some("ping")));
        assert_eq!(names.rename(b"ping", b"x"), Err(NotRenamed::NoSuchCommand));
        assert_eq!(names.rename(b"pang", b"info"), Err(NotRenamed::NameTaken));
        assert_eq!(called(&names, "pang"), Some("ping"), "what is refused changes nothing");
        // The name that became free can be another's, and the way back is open.
        names.rename(b"client", b"ping").unwrap();
        assert_eq!(called(&names, "ping|kill"), Some("client|kill"));
        assert_eq!(names.rename(b"pang", b"ping"), Err(NotRenamed::NameTaken));
        names.rename(b"ping", b"CLIENT").unwrap();
        names.rename(b"pang", b"ping").unwrap();
        assert_eq!(names.rows().count(), COMMANDS.rows.len());
        assert!(names.gone.is_empty() && names.given.is_empty(), "{names:?}");
        names.rename(b"shutdown", b"").unwrap();
        assert_eq!(called(&names, "shutdown"), None);
        assert!(names.find_full(b"").is_none());
        assert_eq!(names.rows().count(), COMMANDS.rows.len() - 1);
        assert!(names.all().all(|row| row.full != "shutdown"));
    }
}
