//! What clients may ask: the one table of commands and the handlers behind it.
//!
//! A handler reads the request, asks or tells the core, and fills the client's reply buffer. It never sees a
//! socket. What only the shell can do (end the process, change the log level) leaves as a [`Wish`]; a reply
//! that may be told only once the state is on disk leaves as a [`Deferred`].
//!
//! Replies are byte for byte those of redis-sentinel 7.4, errors included.

mod client;
mod facts;
mod pubsub;

pub use client::{
    Client, ClientId, Clients, Deferred, PUBSUB_HARD_LIMIT, PUBSUB_SOFT_LIMIT, PUBSUB_SOFT_MS, ReplyMode, Tracking,
};
pub use facts::{CpuTimes, Facts, LogLevel, Stats};
pub use pubsub::Kind as SubscriptionKind;

use crate::base::Millis;
use crate::core::{Level, Sentinel};
use crate::resp::Argv;

/// The version of redis-sentinel that we answer like; clients compare it.
pub const COMPATIBLE_VERSION: &str = "7.4.0";

/// What a handler works on.
pub struct World<'a> {
    /// The time of this turn, monotonic.
    pub now: Millis,
    /// Wall clock, ms since 1970.
    pub wall_ms: u64,
    pub sentinel: &'a mut Sentinel,
    pub clients: &'a mut Clients,
    pub facts: &'a Facts,
    pub stats: &'a mut Stats,
    pub wishes: &'a mut Vec<Wish>,
}

/// What only the shell can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// End the process in good order (`SHUTDOWN`).
    Shutdown,
    /// Log at this level from now on, and show it in [`Facts::loglevel`].
    LogLevel(LogLevel),
    /// A line for the log.
    Log(Level, String),
}

/// Executes one request of a client: appends the reply to its `out` (or leaves a [`Deferred`]), marks it
/// dirty. The caller must not hand in a request while [`Client::takes_requests`] is false.
pub fn dispatch(world: &mut World<'_>, client: ClientId, argv: &Argv) {
    let _ = (world, client, argv);
    todo!("the table comes next")
}
