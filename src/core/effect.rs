//! What the core wants done. Effects leave through [`Sentinel::poll_effect`](super::Sentinel::poll_effect)
//! and are executed in that order.
//!
//! **The durability contract.** When anything that must survive a crash has changed, `Save` comes out before
//! every effect queued since. The shell executes it (write, fsync, rename, fsync of the directory), reports
//! the outcome through [`Sentinel::saved`](super::Sentinel::saved), and only then goes on. The same holds for
//! what a method *returned*: it may be told to a client only after the effects have been drained.

use super::ids::{ConnId, ScriptId};
use std::net::SocketAddr;

/// Which of a link's two connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnKind {
    Command,
    PubSub,
}

/// How loud an event is, in redis's words. Only `Warning` starts the notification script;
/// `Debug` is logged and never published; `Verbose` is published, and logged when the level allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    Verbose,
    Notice,
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Make the state of this very moment ([`Sentinel::snapshot`](super::Sentinel::snapshot)) durable,
    /// then call `saved`.
    Save,
    /// Start connecting, at once or when those asked for before have had their turn; report `Begun` and then `Connected` or
    /// `Closed`. Bytes sent meanwhile wait in the buffer.
    Connect { conn: ConnId, to: SocketAddr, kind: ConnKind },
    /// Queue bytes (whole RESP requests) on a connection.
    Send { conn: ConnId, bytes: Vec<u8> },
    /// Drop the connection; nothing about it is reported any more.
    Close { conn: ConnId },
    /// `sentinelEvent`: to the log, and (not `Debug`) to the subscribers of `channel`.
    Event { level: Level, channel: &'static str, payload: String },
    /// A line for the log only.
    Log { level: Level, text: String },
    /// Start a script: `argv[0]` is its path.
    RunScript { script: ScriptId, argv: Vec<String> },
    /// Kill a script that ran too long.
    KillScript { script: ScriptId },
    /// Look a name up, off the loop; report `Resolved`.
    Resolve { host: Box<str> },
    /// `SENTINEL SIMULATE-FAILURE` struck: end the process with this code, at once.
    Crash { code: i32 },
}
