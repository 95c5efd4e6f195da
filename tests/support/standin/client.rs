//! One connection of a server: what it has sent, may do, listens to, and is still owed.

use std::collections::{BTreeSet, VecDeque};

use watchfire::base::Millis;
use watchfire::resp::{Proto, RequestDecoder};

pub(super) struct Client {
    /// The port of its server.
    pub server: u16,
    pub id: u64,
    pub addr: String,
    pub laddr: String,
    pub name: String,
    pub decoder: RequestDecoder,
    pub proto: Proto,
    pub authed: bool,
    pub channels: BTreeSet<Vec<u8>>,
    pub patterns: BTreeSet<Vec<u8>>,
    /// The commands of a MULTI that waits for its EXEC.
    pub queued: Option<Vec<Vec<Vec<u8>>>>,
    /// A queued command was refused: EXEC will fail.
    pub broken: bool,
    /// Answers not yet looked at by the flush; it sends them on at once or, from a slow server, later.
    pub fresh: Vec<u8>,
    /// Answers of a slow server and the moments they are due.
    pub late: VecDeque<(Millis, Vec<u8>)>,
    /// Bytes on their way out; `sent` of them are gone.
    pub wire: Vec<u8>,
    pub sent: usize,
    pub close_after_reply: bool,
    pub created: Millis,
    pub last: Millis,
    pub last_command: String,
}

impl Client {
    pub fn new(server: u16, id: u64, addr: String, laddr: String, authed: bool, now: Millis) -> Client {
        Client {
            server,
            id,
            addr,
            laddr,
            name: String::new(),
            decoder: RequestDecoder::new(),
            proto: Proto::Resp2,
            authed,
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            queued: None,
            broken: false,
            fresh: Vec::new(),
            late: VecDeque::new(),
            wire: Vec::new(),
            sent: 0,
            close_after_reply: false,
            created: now,
            last: now,
            last_command: "NULL".to_string(),
        }
    }

    pub fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    /// `normal` or `pubsub`, as CLIENT KILL and CLIENT LIST tell clients apart.
    pub fn kind(&self) -> &'static str {
        if self.subscriptions() > 0 { "pubsub" } else { "normal" }
    }

    pub fn idle(&self) -> bool {
        self.fresh.is_empty() && self.late.is_empty() && self.wire.is_empty()
    }
}
