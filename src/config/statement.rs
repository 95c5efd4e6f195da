//! One `sentinel` line as meaning. Reading turns lines into statements; rewriting compares the statements a file makes with
//! those that the state asks for, and so knows which lines may stay exactly as they are.

use super::directives::{self, Directive, Scope};
use super::error::Fault;
use crate::base::quote;
use crate::core::{Options, RunId, Settings, Snapshot};
use std::net::IpAddr;

/// What a `sentinel` line says. Borrows its words, so that thousands of lines cost no copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement<'a> {
    MyId(RunId),
    CurrentEpoch(u64),
    DenyScriptsReconfig(bool),
    ResolveHostnames(bool),
    AnnounceHostnames(bool),
    AnnounceIp(&'a str),
    AnnouncePort(u16),
    SentinelUser(&'a str),
    SentinelPass(&'a [u8]),
    Monitor {
        master: &'a str,
        host: &'a str,
        port: u16,
        quorum: u32,
    },
    Of(&'a str, Clause<'a>),
    /// Accepted, said to be so in the notes, and without effect: what an operator wrote and may keep.
    Inert(&'a str, &'static Directive),
    /// State of an older program that is of no use; the next rewrite takes it away. Holds the reason.
    Useless(&'static str),
    /// `sentinel` and nothing else, which the command line leaves behind.
    Bare,
}

/// What a line says about one master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clause<'a> {
    DownAfter(u64),
    DownAfterRefused(u64),
    PingPeriod(u64),
    FailoverTimeout(u64),
    ParallelSyncs(u32),
    RebootDownAfter(u64),
    NotificationScript(&'a str),
    ClientReconfigScript(&'a str),
    AuthPass(&'a [u8]),
    AuthUser(&'a str),
    ConfigEpoch(u64),
    LeaderEpoch(u64),
    KnownReplica(&'a str, u16),
    KnownSentinel(&'a str, u16, RunId),
    RenameCommand(&'a str, &'a str),
}

/// What a statement is about: a file says at most one thing about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key<'a> {
    /// Empty for what is about the whole Sentinel (told apart from a master with an empty name by `about`).
    pub master: &'a str,
    pub about: About<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum About<'a> {
    /// The name of a directive that stands once, for the Sentinel or for a master.
    Single(&'static str),
    Replica(&'a str, u16),
    Peer(RunId),
    /// In lower case: command names have no case.
    Rename(String),
}

/// Which of the lists of a master a statement belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum List {
    Replicas,
    Peers,
    Renames,
}

pub(super) const UNRECOGNIZED: &str = "Unrecognized sentinel configuration statement.";
pub(super) const NO_SUCH_MASTER: &str = "No such master with specified name.";

/// The row of a line's directive, when the line has as many words as the row wants. `words[0]` is `sentinel` and
/// `words[1]` is there.
pub(super) fn row_of(words: &[Vec<u8>]) -> Result<&'static Directive, Fault> {
    let row = directives::find_sentinel(&words[1]).ok_or_else(|| Fault::new(UNRECOGNIZED))?;
    let given = words.len() - 2;
    if row.takes(given) {
        return Ok(row);
    }
    let missing: Vec<&str> = row.usage.split(' ').skip(given).filter(|word| !word.starts_with('[')).collect();
    let hint = match missing.len() {
        0 => format!("expected: sentinel {} {}", row.name, row.usage),
        1 => format!("expected: sentinel {} {}; {} is missing", row.name, row.usage, missing[0]),
        _ => format!("expected: sentinel {} {}; {} are missing", row.name, row.usage, missing.join(" and ")),
    };
    Err(Fault::with_hint(UNRECOGNIZED, hint))
}

impl<'a> Statement<'a> {
    /// Reads a `sentinel` line that was cut into words. Whether its master exists is not looked at.
    pub fn parse(words: &'a [Vec<u8>]) -> Result<Statement<'a>, Fault> {
        if words.len() == 1 {
            return Ok(Statement::Bare);
        }
        let row = row_of(words)?;
        let values = &words[2..];
        match row.scope {
            Scope::Master => {
                let master = plain("The master name", &values[0])?;
                Self::of_master(row, master, &values[1..])
            }
            _ => Self::of_sentinel(row, &values[0]),
        }
    }

    fn of_sentinel(row: &'static Directive, value: &'a [u8]) -> Result<Statement<'a>, Fault> {
        Ok(match row.name {
            "myid" => {
                let id = RunId::parse(value).ok_or_else(|| {
                    Fault::with_hint("Malformed Sentinel id in myid option.", "an id is 40 hexadecimal digits")
                })?;
                Statement::MyId(id)
            }
            "current-epoch" => Statement::CurrentEpoch(epoch(value)?),
            // The one text with an s at the end of "option".
            "deny-scripts-reconfig" => Statement::DenyScriptsReconfig(yes_or_no(row, value, "options")?),
            "resolve-hostnames" => Statement::ResolveHostnames(yes_or_no(row, value, "option")?),
            "announce-hostnames" => Statement::AnnounceHostnames(yes_or_no(row, value, "option")?),
            "announce-ip" => {
                let host = plain("announce-ip", value)?;
                if !Options::may_announce(host) {
                    let hint = "no other Sentinel can read an address with a blank, a comma or letters beyond ASCII, or of more \
                                than 253 bytes";
                    return Err(Fault::with_hint("Invalid IP address or hostname specified", hint));
                }
                Statement::AnnounceIp(host)
            }
            "announce-port" => Statement::AnnouncePort(port(value)?),
            "sentinel-user" => Statement::SentinelUser(plain("sentinel-user", value)?),
            "sentinel-pass" => Statement::SentinelPass(value),
            name => unreachable!("{name} is in the table and not read"),
        })
    }

    fn of_master(row: &'static Directive, master: &'a str, values: &'a [Vec<u8>]) -> Result<Statement<'a>, Fault> {
        let clause = match row.name {
            "monitor" => {
                let host = plain("The host", &values[0])?;
                // As in redis-sentinel the quorum is judged before the port.
                let quorum = u32::try_from(number(&values[2]).clamp(0, u32::MAX.into())).expect("clamped");
                if quorum == 0 {
                    return Err(Fault::new("Quorum must be 1 or greater."));
                }
                return Ok(Statement::Monitor { master, host, port: port(&values[1])?, quorum });
            }
            "down-after-milliseconds" => Clause::DownAfter(milliseconds(&values[0], 1)?),
            "down-after-refused" => Clause::DownAfterRefused(milliseconds(&values[0], 0)?),
            "ping-period" => Clause::PingPeriod(milliseconds(&values[0], 0)?),
            "failover-timeout" => Clause::FailoverTimeout(milliseconds(&values[0], 1)?),
            "master-reboot-down-after-period" | "primary-reboot-down-after-period" => {
                Clause::RebootDownAfter(milliseconds(&values[0], 0)?)
            }
            "parallel-syncs" => {
                Clause::ParallelSyncs(u32::try_from(number(&values[0]).clamp(0, u32::MAX.into())).expect("clamped"))
            }
            "notification-script" => Clause::NotificationScript(plain("notification-script", &values[0])?),
            "client-reconfig-script" => Clause::ClientReconfigScript(plain("client-reconfig-script", &values[0])?),
            "auth-pass" => Clause::AuthPass(&values[0]),
            "auth-user" => Clause::AuthUser(plain("auth-user", &values[0])?),
            "config-epoch" => Clause::ConfigEpoch(epoch(&values[0])?),
            "leader-epoch" => Clause::LeaderEpoch(epoch(&values[0])?),
            "known-replica" | "known-slave" => {
                let host = plain("The host", &values[0])?;
                match port(&values[1])? {
                    0 => return Ok(Statement::Useless("a replica with port 0 cannot be reached")),
                    port => Clause::KnownReplica(host, port),
                }
            }
            "known-sentinel" => {
                let Some(id) = values.get(2) else {
                    return Ok(Statement::Useless("a Sentinel without id cannot be counted"));
                };
                let host = plain("The host", &values[0])?;
                plain("The id", id)?;
                match (port(&values[1])?, RunId::parse(id)) {
                    (0, _) => return Ok(Statement::Useless("a Sentinel with port 0 is one that was replaced")),
                    (_, None) => return Ok(Statement::Useless("the id of a Sentinel is 40 hexadecimal digits")),
                    (port, Some(id)) => Clause::KnownSentinel(host, port, id),
                }
            }
            "rename-command" => {
                Clause::RenameCommand(plain("The command", &values[0])?, plain("The command", &values[1])?)
            }
            _ => return Ok(Statement::Inert(master, row)),
        };
        Ok(Statement::Of(master, clause))
    }

    /// `None` for what says nothing that lasts.
    pub fn key(&self) -> Option<Key<'a>> {
        let single = |master, name| Some(Key { master, about: About::Single(name) });
        match *self {
            Statement::Of(master, clause) => match clause {
                Clause::KnownReplica(host, port) => Some(Key { master, about: About::Replica(host, port) }),
                Clause::KnownSentinel(_, _, id) => Some(Key { master, about: About::Peer(id) }),
                Clause::RenameCommand(old, _) => Some(Key { master, about: About::Rename(old.to_ascii_lowercase()) }),
                _ => single(master, self.name()),
            },
            Statement::Monitor { master, .. } => single(master, self.name()),
            Statement::Inert(..) | Statement::Useless(_) | Statement::Bare => None,
            _ => single("", self.name()),
        }
    }

    /// The list that it is a member of, with its master.
    pub fn list(&self) -> Option<(&'a str, List)> {
        let Statement::Of(master, clause) = *self else { return None };
        match clause {
            Clause::KnownReplica(..) => Some((master, List::Replicas)),
            Clause::KnownSentinel(..) => Some((master, List::Peers)),
            Clause::RenameCommand(..) => Some((master, List::Renames)),
            _ => None,
        }
    }

    /// True for what need not be in the file, because its absence says the same.
    pub fn is_default(&self) -> bool {
        let defaults = || Settings::with_quorum(1);
        match *self {
            Statement::DenyScriptsReconfig(yes) => yes,
            Statement::ResolveHostnames(yes) | Statement::AnnounceHostnames(yes) => !yes,
            Statement::Of(_, clause) => match clause {
                Clause::DownAfter(ms) => ms == defaults().down_after,
                Clause::FailoverTimeout(ms) => ms == defaults().failover_timeout,
                Clause::ParallelSyncs(count) => count == defaults().parallel_syncs,
                Clause::RebootDownAfter(ms) | Clause::DownAfterRefused(ms) | Clause::PingPeriod(ms) => ms == 0,
                _ => self.is_unset(),
            },
            _ => self.is_unset(),
        }
    }

    /// True for what is said best by having no line at all.
    pub fn is_unset(&self) -> bool {
        match *self {
            Statement::AnnounceIp(text) | Statement::SentinelUser(text) => text.is_empty(),
            Statement::AnnouncePort(port) => port == 0,
            Statement::SentinelPass(bytes) | Statement::Of(_, Clause::AuthPass(bytes)) => bytes.is_empty(),
            // Ours; without such lines redis-sentinel reads the file as well.
            Statement::Of(_, Clause::DownAfterRefused(ms) | Clause::PingPeriod(ms)) => ms == 0,
            Statement::Of(
                _,
                Clause::NotificationScript(text) | Clause::ClientReconfigScript(text) | Clause::AuthUser(text),
            ) => text.is_empty(),
            _ => false,
        }
    }

    /// The name that is written, which every Sentinel reads.
    pub fn name(&self) -> &'static str {
        match self {
            Statement::MyId(_) => "myid",
            Statement::CurrentEpoch(_) => "current-epoch",
            Statement::DenyScriptsReconfig(_) => "deny-scripts-reconfig",
            Statement::ResolveHostnames(_) => "resolve-hostnames",
            Statement::AnnounceHostnames(_) => "announce-hostnames",
            Statement::AnnounceIp(_) => "announce-ip",
            Statement::AnnouncePort(_) => "announce-port",
            Statement::SentinelUser(_) => "sentinel-user",
            Statement::SentinelPass(_) => "sentinel-pass",
            Statement::Monitor { .. } => "monitor",
            Statement::Of(_, clause) => match clause {
                Clause::DownAfter(_) => "down-after-milliseconds",
                Clause::DownAfterRefused(_) => "down-after-refused",
                Clause::PingPeriod(_) => "ping-period",
                Clause::FailoverTimeout(_) => "failover-timeout",
                Clause::ParallelSyncs(_) => "parallel-syncs",
                Clause::RebootDownAfter(_) => "master-reboot-down-after-period",
                Clause::NotificationScript(_) => "notification-script",
                Clause::ClientReconfigScript(_) => "client-reconfig-script",
                Clause::AuthPass(_) => "auth-pass",
                Clause::AuthUser(_) => "auth-user",
                Clause::ConfigEpoch(_) => "config-epoch",
                Clause::LeaderEpoch(_) => "leader-epoch",
                Clause::KnownReplica(..) => "known-replica",
                Clause::KnownSentinel(..) => "known-sentinel",
                Clause::RenameCommand(..) => "rename-command",
            },
            Statement::Inert(_, row) => row.name,
            Statement::Useless(_) | Statement::Bare => "",
        }
    }

    /// The line, without its end. Words are quoted only where they must be: wrappers cut `sentinel monitor` at blanks.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut line = Line(out);
        line.0.extend_from_slice(b"sentinel ");
        line.0.extend_from_slice(self.name().as_bytes());
        match *self {
            Statement::MyId(id) => line.bare(id),
            Statement::CurrentEpoch(epoch) => line.bare(epoch),
            Statement::DenyScriptsReconfig(yes)
            | Statement::ResolveHostnames(yes)
            | Statement::AnnounceHostnames(yes) => line.bare(if yes { "yes" } else { "no" }),
            Statement::AnnounceIp(text) | Statement::SentinelUser(text) => line.word(text.as_bytes()),
            Statement::AnnouncePort(port) => line.bare(port),
            Statement::SentinelPass(bytes) => line.word(bytes),
            Statement::Monitor { master, host, port, quorum } => {
                line.word(master.as_bytes());
                line.word(host.as_bytes());
                line.bare(port);
                line.bare(quorum);
            }
            Statement::Of(master, clause) => {
                line.word(master.as_bytes());
                match clause {
                    Clause::DownAfter(number)
                    | Clause::DownAfterRefused(number)
                    | Clause::PingPeriod(number)
                    | Clause::FailoverTimeout(number)
                    | Clause::RebootDownAfter(number)
                    | Clause::ConfigEpoch(number)
                    | Clause::LeaderEpoch(number) => line.bare(number),
                    Clause::ParallelSyncs(count) => line.bare(count),
                    Clause::NotificationScript(text) | Clause::ClientReconfigScript(text) | Clause::AuthUser(text) => {
                        line.word(text.as_bytes());
                    }
                    Clause::AuthPass(bytes) => line.word(bytes),
                    Clause::KnownReplica(host, port) => {
                        line.word(host.as_bytes());
                        line.bare(port);
                    }
                    Clause::KnownSentinel(host, port, id) => {
                        line.word(host.as_bytes());
                        line.bare(port);
                        line.bare(id);
                    }
                    Clause::RenameCommand(old, new) => {
                        line.word(old.as_bytes());
                        line.word(new.as_bytes());
                    }
                }
            }
            Statement::Inert(..) | Statement::Useless(_) | Statement::Bare => {
                unreachable!("only what the state asks for is written")
            }
        }
    }
}

struct Line<'a>(&'a mut Vec<u8>);

impl Line<'_> {
    fn word(&mut self, bytes: &[u8]) {
        self.0.push(b' ');
        let simple = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'-' | b'_' | b'/');
        if !bytes.is_empty() && bytes.iter().all(simple) {
            self.0.extend_from_slice(bytes); // nearly all of them, without a detour
        } else {
            self.0.extend_from_slice(quote::if_needed(bytes).as_bytes());
        }
    }

    fn bare(&mut self, value: impl std::fmt::Display) {
        use std::io::Write;
        write!(self.0, " {value}").expect("a vector takes everything");
    }
}

/// A host that needs no looking up.
pub(super) fn is_numeric(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok()
}

/// Text that is shown in events and written back: control characters could forge lines, so they stay out.
fn plain<'a>(what: &str, value: &'a [u8]) -> Result<&'a str, Fault> {
    if quote::has_control(value) {
        return Err(Fault::new(format!("{what} must not contain control characters.")));
    }
    std::str::from_utf8(value).map_err(|_| Fault::new(format!("{what} must be valid UTF-8.")))
}

fn yes_or_no(row: &Directive, value: &[u8], noun: &str) -> Result<bool, Fault> {
    match value.to_ascii_lowercase().as_slice() {
        b"yes" => Ok(true),
        b"no" => Ok(false),
        _ => Err(Fault::new(format!("Please specify yes or no for the {} {noun}.", row.name))),
    }
}

fn port(value: &[u8]) -> Result<u16, Fault> {
    u16::try_from(number(value)).map_err(|_| Fault::new("Invalid port number."))
}

fn epoch(value: &[u8]) -> Result<u64, Fault> {
    if number(value) < 0 {
        return Err(Fault::new("An epoch cannot be negative."));
    }
    Ok(u64::try_from(number(value)).map_or(Snapshot::EPOCH_LAST, |epoch| epoch.min(Snapshot::EPOCH_LAST)))
}

fn milliseconds(value: &[u8], least: i128) -> Result<u64, Fault> {
    let number = number(value);
    if number < least {
        let message = if least == 0 { "negative time parameter." } else { "negative or zero time parameter." };
        return Err(Fault::new(message));
    }
    Ok(u64::try_from(number).unwrap_or(u64::MAX))
}

/// The number at the beginning, as C's strtoll has it: blanks, a sign, digits, and whatever follows is dropped; no digit
/// is 0. Existing files rely on it, so a stricter reader would not be a replacement.
pub(super) fn number(value: &[u8]) -> i128 {
    let text = value.trim_ascii_start();
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let size = digits.fold(0i128, |sum, byte| sum.saturating_mul(10).saturating_add(i128::from(byte - b'0')));
    if negative { -size } else { size }
}

/// True for a number that reads the same to everybody.
pub(super) fn is_clean_number(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}
