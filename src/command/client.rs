//! The registry of connected clients, as plain data.
//!
//! A client here is what commands may know and change: its name, its protocol, its subscriptions and the
//! bytes that wait to be sent to it. Sockets are the shell's; it maps each one to a [`ClientId`] and moves
//! [`Client::out`] to the wire. Nothing here is sent, closed or freed by itself: marks are set, and the
//! shell acts on them when it drains [`Clients::take_dirty`].

use super::pubsub::Index;
use super::tally::{Peaks, Tally};
use crate::acl::DEFAULT;
use crate::base::Millis;
use crate::config::OutputLimit;
use crate::resp::Proto;
use std::collections::{BTreeMap, BTreeSet};

/// Names one connection for the life of the process; what `CLIENT ID` shows. Counted up from 1, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A reply that rests on the save of this turn. The shell appends one of the two once the effects are
/// drained ([`Clients::settle`]); until then it takes no further request of that client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deferred {
    /// Told when the save went well, or when none was needed.
    pub saved: Vec<u8>,
    /// Told when the save failed.
    pub unsaved: Vec<u8>,
}

/// `CLIENT REPLY`: whether the client wants to hear answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    #[default]
    On,
    Off,
    /// Set by `CLIENT REPLY SKIP` itself: the next request stays unanswered.
    SkipNext,
    /// The request under way stays unanswered.
    Skip,
}

/// `CLIENT TRACKING`. A Sentinel has no keys, so nothing is ever invalidated; only the setting is kept,
/// because clients ask for it on every connection and read it back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracking {
    pub on: bool,
    pub bcast: bool,
    pub optin: bool,
    pub optout: bool,
    pub noloop: bool,
    /// `CLIENT CACHING YES|NO`, for the next command only.
    pub caching: Option<bool>,
    /// The client that gets the invalidations; 0: this one.
    pub redirect: u64,
    pub prefixes: Vec<Vec<u8>>,
}

/// One connected client.
#[derive(Debug)]
pub struct Client {
    pub id: ClientId,
    /// The peer's `ip:port` (or the path of a Unix socket) and ours, as `CLIENT LIST` shows them.
    pub addr: String,
    pub laddr: String,
    /// The descriptor number for `CLIENT LIST`; the shell may fill it in, -1 when unknown.
    pub fd: i64,
    /// `CLIENT SETNAME`; empty is unset, as for the library's name and version.
    pub name: Vec<u8>,
    pub lib_name: Vec<u8>,
    pub lib_ver: Vec<u8>,
    /// The user it is: `default` unless it has logged in as somebody else.
    pub user: Vec<u8>,
    /// It has logged in, or came when nobody needed to.
    pub authenticated: bool,
    pub proto: Proto,
    pub created: Millis,
    /// When its last request arrived.
    pub last_active: Millis,
    /// Whole replies and pushes that wait to be written. The shell writes it from the front, as far as `sent`, and cuts that
    /// part off now and then.
    pub out: Vec<u8>,
    pub sent: usize,
    /// Close once `out` is written; no further request is taken.
    pub close_after_reply: bool,
    /// Close at once; `out` is dropped.
    pub killed: bool,
    /// Killed because it did not read.
    pub overflowed: bool,
    /// Came through a Unix socket.
    pub unix: bool,
    pub deferred: Option<Deferred>,
    /// The last command, as `container|sub`; empty before the first.
    pub last_command: &'static str,
    pub reply_mode: ReplyMode,
    pub no_evict: bool,
    tracking: Tracking,
    /// For `CLIENT LIST`, kept by the shell: bytes received that are no complete request yet, bytes moved
    /// in each direction.
    pub query_buffered: usize,
    pub net_in: u64,
    pub net_out: u64,
    /// Requests taken so far.
    pub commands: u64,
    /// Since when more than the soft limit waits for it.
    pub over_soft_limit: Option<Millis>,
    pub(super) subs: BTreeSet<Box<[u8]>>,
    pub(super) psubs: BTreeSet<Box<[u8]>>,
    dirty: bool,
}

impl Client {
    /// Channels and patterns it listens to.
    #[must_use]
    pub fn subscriptions(&self) -> usize {
        self.subs.len() + self.psubs.len()
    }

    #[must_use]
    pub fn tracking(&self) -> &Tracking {
        &self.tracking
    }

    /// `CLIENT CACHING`; `None` once it has had its command.
    pub(super) fn set_caching(&mut self, caching: Option<bool>) {
        self.tracking.caching = caching;
    }

    /// Bytes that wait to be written.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.out.len().saturating_sub(self.sent)
    }

    /// True when the shell may hand in the next request.
    #[must_use]
    pub fn takes_requests(&self) -> bool {
        self.deferred.is_none() && !self.close_after_reply && !self.killed
    }
}

/// All connected clients and the Pub/Sub index over them.
#[derive(Debug)]
pub struct Clients {
    pub(super) all: BTreeMap<ClientId, Client>,
    last_id: u64,
    dirty: Vec<ClientId>,
    deferring: Vec<ClientId>,
    /// Clients cut off because they did not read.
    cut_off: u64,
    /// How much may wait for those that subscribed, and for all others.
    pub pubsub_limit: OutputLimit,
    pub normal_limit: OutputLimit,
    pub(super) index: Index,
    pub(super) tally: Tally,
    pub(super) peaks: Peaks,
}

impl Default for Clients {
    fn default() -> Clients {
        Clients {
            all: BTreeMap::new(),
            last_id: 0,
            dirty: Vec::new(),
            deferring: Vec::new(),
            cut_off: 0,
            pubsub_limit: OutputLimit::PUBSUB,
            normal_limit: OutputLimit::NONE,
            index: Index::default(),
            tally: Tally::default(),
            peaks: Peaks::default(),
        }
    }
}

impl Clients {
    #[must_use]
    pub fn new() -> Clients {
        Clients::default()
    }

    /// Registers a connection: `addr` is the peer's address, `laddr` ours, both as `ip:port`.
    pub fn connect(&mut self, now: Millis, addr: String, laddr: String) -> ClientId {
        self.last_id += 1;
        let id = ClientId(self.last_id);
        self.all.insert(
            id,
            Client {
                id,
                addr,
                laddr,
                fd: -1,
                name: Vec::new(),
                lib_name: Vec::new(),
                lib_ver: Vec::new(),
                user: DEFAULT.to_vec(),
                authenticated: false,
                proto: Proto::Resp2,
                created: now,
                last_active: now,
                out: Vec::new(),
                sent: 0,
                close_after_reply: false,
                killed: false,
                overflowed: false,
                unix: false,
                deferred: None,
                last_command: "",
                reply_mode: ReplyMode::On,
                no_evict: false,
                tracking: Tracking::default(),
                query_buffered: 0,
                net_in: 0,
                net_out: 0,
                commands: 0,
                over_soft_limit: None,
                subs: BTreeSet::new(),
                psubs: BTreeSet::new(),
                dirty: false,
            },
        );
        id
    }

    /// Forgets a client whose connection is gone, with its subscriptions.
    pub fn remove(&mut self, id: ClientId) -> Option<Client> {
        let client = self.all.remove(&id)?;
        self.index.forget(id, &client.subs, &client.psubs);
        self.uncount(&client);
        Some(client)
    }

    #[must_use]
    pub fn get(&self, id: ClientId) -> Option<&Client> {
        self.all.get(&id)
    }

    #[must_use]
    pub fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.all.get_mut(&id)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Client> {
        self.all.values()
    }

    /// `CLIENT TRACKING`: these are its settings from now on.
    pub(super) fn track(&mut self, id: ClientId, tracking: Tracking) {
        self.change(id, |client| client.tracking = tracking);
    }

    /// Puts a client on the list of [`Clients::take_dirty`].
    pub fn mark_dirty(&mut self, id: ClientId) {
        if let Some(client) = self.all.get_mut(&id)
            && !client.dirty
        {
            client.dirty = true;
            self.dirty.push(id);
        }
    }

    /// Those with new output, or that are to be closed, since the last call; each once.
    pub fn take_dirty(&mut self) -> Vec<ClientId> {
        let dirty = std::mem::take(&mut self.dirty);
        for id in &dirty {
            if let Some(client) = self.all.get_mut(id) {
                client.dirty = false;
            }
        }
        dirty
    }

    /// Takes nothing more from a client and tells it nothing new; it is closed once what waits for it is written.
    pub fn close_after_reply(&mut self, id: ClientId) {
        if let Some(client) = self.all.get_mut(&id) {
            client.close_after_reply = true;
            self.index.forget(id, &client.subs, &client.psubs);
            self.mark_dirty(id);
        }
    }

    /// Marks a client to be closed at once.
    pub fn kill(&mut self, id: ClientId) {
        if let Some(client) = self.all.get_mut(&id) {
            client.killed = true;
            client.out = Vec::new();
            client.sent = 0;
            self.mark_dirty(id);
        }
    }

    /// Leaves a reply open until the save of this turn is known.
    pub fn defer(&mut self, id: ClientId, reply: Deferred) {
        if let Some(client) = self.all.get_mut(&id) {
            debug_assert!(client.deferred.is_none(), "a client with an open reply was asked again");
            client.deferred = Some(reply);
            self.deferring.push(id);
        }
    }

    /// Closes all open replies: the effects of this turn are drained, and `saved` says whether its save (if
    /// there was one) went well. Returns the clients that may go on with their next request.
    pub fn settle(&mut self, saved: bool) -> Vec<ClientId> {
        let settled = std::mem::take(&mut self.deferring);
        for &id in &settled {
            if let Some(client) = self.all.get_mut(&id)
                && let Some(reply) = client.deferred.take()
                && !client.killed
            {
                client.out.extend_from_slice(if saved { &reply.saved } else { &reply.unsaved });
                self.mark_dirty(id);
            }
        }
        settled
    }

    fn limit_of(&self, client: &Client) -> OutputLimit {
        if client.subscriptions() > 0 { self.pubsub_limit } else { self.normal_limit }
    }

    /// Cuts the client off if more waits for it than its hard limit allows; to be called when something was added.
    pub fn enforce_hard_limit(&mut self, id: ClientId) {
        let Some(client) = self.all.get(&id) else { return };
        let hard = self.limit_of(client).hard;
        if !client.killed && hard > 0 && client.waiting() as u64 >= hard {
            self.cut_off(id);
        }
    }

    /// Cuts the client off if it has let too much pile up for too long; to be called about once a second.
    pub fn enforce_soft_limit(&mut self, id: ClientId, now: Millis) {
        let Some(client) = self.all.get(&id) else { return };
        let limit = self.limit_of(client);
        let Some(client) = self.all.get_mut(&id) else { return };
        if limit.soft == 0 || (client.waiting() as u64) < limit.soft {
            client.over_soft_limit = None;
        } else if now.since(*client.over_soft_limit.get_or_insert(now)) > limit.soft_ms {
            self.cut_off(id);
        }
    }

    /// Kills a client that does not read.
    fn cut_off(&mut self, id: ClientId) {
        self.cut_off += 1;
        if let Some(client) = self.all.get_mut(&id) {
            client.overflowed = true;
        }
        self.kill(id);
    }

    /// How many clients were cut off because they did not read.
    #[must_use]
    pub fn times_cut_off(&self) -> u64 {
        self.cut_off
    }
}
