//! What the core is told. One input at a time, always with the time.

use super::effect::ConnKind;
use super::ids::{ConnId, ScriptId};
use crate::base::Millis;
use crate::resp::Reply;
use std::net::IpAddr;

/// Why a connection is gone. `Refused` is the kernel of the other side saying that nobody listens: the
/// process is gone, which is more than silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    Refused,
    Other(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The connection is being made from now on: since [`Effect::Connect`](super::Effect::Connect) it may have waited for others.
    /// To be said before whatever comes of it.
    Begun { conn: ConnId },
    /// What was to be sent on the connection from `since` on has left only now, as others were before it. Not to be said where it
    /// left at once.
    Left { conn: ConnId, since: Millis },
    /// The connection stands; `local` is our address on it, which our hello announces.
    Connected { conn: ConnId, local: IpAddr },
    /// The connection could not be made, or ended. Not sent after [`Effect::Close`](super::Effect::Close).
    Closed { conn: ConnId, why: Gone },
    /// One whole reply (command connection) or push (Pub/Sub connection).
    Reply { conn: ConnId, kind: ConnKind, reply: Reply },
    /// A name was looked up.
    Resolved { host: Box<str>, ip: Option<IpAddr> },
    /// A script runs as this process.
    ScriptStarted { script: ScriptId, pid: u32 },
    /// A script ended: by itself with `code`, or by `signal`.
    ScriptEnded { script: ScriptId, code: Option<i32>, signal: Option<i32> },
    /// A script could not be started.
    ScriptFailed { script: ScriptId, forked: bool, why: String },
}
