//! What clients may ask: the one table of commands and the handlers behind it.
//!
//! A handler reads the request, asks or tells the core, and fills the client's reply buffer. It never sees a
//! socket. What only the shell can do (end the process, change the log level) leaves as a [`Wish`]; a reply
//! that may be told only once the state is on disk leaves as a [`Deferred`].
//!
//! Replies are byte for byte those of redis-sentinel 7.4, errors included.

mod access;
mod acl_cmd;
mod arguments;
mod call;
mod client;
mod client_cmd;
mod commands;
mod connection;
mod facts;
mod info;
mod introspect;
mod names;
mod pubsub;
mod sentinel;
mod table;
mod tally;

pub use access::{catalog, owes_password};
pub use client::{Client, ClientId, Clients, Deferred, ReplyMode, Tracking};
pub use commands::COMMANDS;
pub use facts::{CpuTimes, Facts, Stats};
pub use names::{Names, NotRenamed};
pub use pubsub::Kind as SubscriptionKind;
pub use table::{CATEGORIES, Command, Found, Table};
pub use tally::Tally;

use crate::acl::Acl;
use crate::base::Millis;
use crate::core::{Level, Sentinel};
use crate::resp::{Argv, Proto};
use call::Call;

/// The version of redis-sentinel that we answer like; clients compare it.
pub const COMPATIBLE_VERSION: &str = crate::config::AS_REDIS;

/// What a handler works on.
pub struct World<'a> {
    /// The time of this turn, monotonic.
    pub now: Millis,
    /// Reads the wall clock, in ms since 1970: few commands need it.
    pub wall_ms: fn() -> u64,
    pub sentinel: &'a mut Sentinel,
    pub clients: &'a mut Clients,
    pub acl: &'a mut Acl,
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
    LogLevel(crate::config::LogLevel),
    /// Our own password is this one from now on, in the file too (`SENTINEL CONFIG SET requirepass`).
    Password(Vec<u8>),
    /// A line for the log.
    Log(Level, String),
}

/// Executes one request of a client: appends the reply to its `out` (or leaves a [`Deferred`]) and marks it
/// dirty. The caller must not hand in a request while [`Client::takes_requests`] is false.
pub fn dispatch(world: &mut World<'_>, client: ClientId, argv: &Argv) {
    let now = world.now;
    let Some(asking) = world.clients.get_mut(client).filter(|_| !argv.is_empty()) else { return };
    asking.last_active = now;
    asking.commands += 1;
    let proto = asking.proto;
    let subscribed = asking.subscriptions() > 0;
    // Lent to the handlers, so that they can write while they look at other clients.
    let mut out = std::mem::take(&mut asking.out);
    let start = out.len();
    world.stats.commands_processed += 1;

    let found = world.facts.names.find(argv, 0);
    match found {
        Found::Nothing if is_http(&argv[0]) => {
            if let Some(others) = world.stats.http_seen(now) {
                let more = if others > 0 {
                    format!(" (So were {others} others since this was last said.)")
                } else {
                    String::new()
                };
                let text = format!(
                    "Possible SECURITY ATTACK detected: {} speaks HTTP to this port, as a web page does that was made to \
                     send commands to Redis. Its connection is closed.{more}",
                    asking.addr
                );
                world.wishes.push(Wish::Log(Level::Warning, text));
            }
            world.clients.kill(client);
            return;
        }
        Found::Nothing => call::unknown_command(&mut out, argv),
        Found::NoSub(_) => call::unknown_subcommand(&mut out, argv),
        Found::Command(command) if !command.accepts(argv.len()) => call::wrong_arity(&mut out, command.full),
        Found::Command(command) => {
            asking.last_command = command.full;
            if access::refused(world, client, command, argv, &mut out) {
                // It heard why.
            } else if subscribed && proto == Proto::Resp2 && !is_for_subscribers(command) {
                let name = command.full.as_bytes();
                let only =
                    b"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";
                call::refuse(&mut out, &[b"ERR Can't execute '", name, only]);
            } else {
                (command.handler)(&mut Call { world, id: client, argv, out: &mut out, proto, command });
            }
        }
    }
    finish(world, client, out, start, found);
}

/// Gives the output back to the client and does what holds for every reply.
fn finish(world: &mut World<'_>, client: ClientId, mut out: Vec<u8>, start: usize, found: Found) {
    if out.get(start) == Some(&b'-') {
        world.stats.error_replies += 1;
    }
    let Some(asked) = world.clients.get_mut(client) else { return };
    // Pushes are wanted even by those who want no replies.
    let is_push = matches!(found, Found::Command(command) if command.flags & table::PUBSUB != 0);
    match asked.reply_mode {
        ReplyMode::On => {}
        ReplyMode::SkipNext => asked.reply_mode = ReplyMode::Skip,
        mode @ (ReplyMode::Off | ReplyMode::Skip) => {
            if !is_push {
                out.truncate(start);
                if let Some(reply) = &mut asked.deferred {
                    *reply = Deferred { saved: Vec::new(), unsaved: Vec::new() };
                }
            }
            if mode == ReplyMode::Skip {
                asked.reply_mode = ReplyMode::On;
            }
        }
    }
    // Meant for the next command of another kind: whatever CLIENT does or refuses lets it stand.
    if !matches!(found, Found::Command(command) if command.full.starts_with("client|")) {
        asked.set_caching(None);
    }
    // Nothing was published meanwhile: messages come from events, and those are drained after the requests.
    debug_assert!(asked.out.is_empty());
    asked.out = out;
    if !asked.out.is_empty() || asked.close_after_reply || asked.killed {
        world.clients.mark_dirty(client);
    }
}

/// What a subscribed RESP2 client may still say: its replies must be tellable from messages.
fn is_for_subscribers(command: &Command) -> bool {
    matches!(command.full, "ping" | "subscribe" | "psubscribe" | "unsubscribe" | "punsubscribe")
}

/// A browser tricked into talking to us sends these as the first word of a line.
fn is_http(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:")
}
