//! One modelled server: its role, its link to a master, its data, and the faults it was told to have.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::IpAddr;

use watchfire::base::Millis;
use watchfire::net::Token;

use super::Spec;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    Master,
    Replica { host: String, port: u16 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Up,
    /// Stopped: the system takes connections, nobody answers.
    Hung,
    /// No process: connections are refused.
    Down,
}

/// The role with which a server comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comeback {
    /// What its configuration file says: the role at birth or at the last `CONFIG REWRITE`.
    AsWritten,
    /// Master, as a server without a configuration file does after a crash.
    AsMaster,
}

/// What a test can see of a server without asking it.
#[derive(Clone, Debug)]
pub struct State {
    pub mode: Mode,
    pub role: Role,
    pub run_id: String,
    pub link_up: bool,
    pub offset: i64,
    pub priority: u32,
    pub clients: usize,
}

/// The link of a replica to its master, derived whenever something around it changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// Up from this moment on; None: the master cannot be reached.
    pub up_at: Option<Millis>,
    /// When it was last lost; None: it never was up with anybody.
    pub down_since: Option<Millis>,
}

impl Link {
    pub fn is_up(&self, now: Millis) -> bool {
        self.up_at.is_some_and(|at| now >= at)
    }
}

pub struct Server {
    pub(super) host: IpAddr,
    pub(super) port: u16,
    pub(super) spec: Spec,
    pub(super) run_id: String,
    pub(super) replid: String,
    pub(super) mode: Mode,
    pub(super) role: Role,
    /// The role in the imagined configuration file.
    pub(super) written: Role,
    pub(super) link: Link,
    pub priority: u32,
    /// Own offset; of a replica with its link up, the one it had before.
    pub(super) offset: i64,
    /// A replica's offset that a test has fixed.
    pub(super) pinned: Option<i64>,
    pub(super) data: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) config: BTreeMap<String, String>,
    pub(super) started: Millis,
    pub(super) listener: Option<Token>,
    pub(super) clients: BTreeSet<Token>,
    pub(super) channels: BTreeMap<Vec<u8>, BTreeSet<Token>>,
    /// The clients that hold patterns; few, so that they are simply walked.
    pub(super) matchers: BTreeSet<Token>,
    pub calls: BTreeMap<String, u64>,
    pub(super) connections: u64,
    pub delay_ms: u64,
    pub lie: Option<String>,
    pub lies: BTreeMap<String, String>,
    pub refuses_auth: bool,
    pub error: Option<String>,
    /// What follows every answer, though nobody asked for it.
    pub extra: Vec<u8>,
}

impl Server {
    pub(super) fn new(spec: Spec, port: u16, now: Millis) -> Server {
        let role = match &spec.replica_of {
            Some((host, port)) => Role::Replica { host: host.clone(), port: *port },
            None => Role::Master,
        };
        let config = [
            ("maxmemory", "0"),
            ("appendonly", "no"),
            ("save", ""),
            ("timeout", "0"),
            ("min-replicas-to-write", "0"),
            ("repl-diskless-sync-delay", "0"),
            ("masterauth", ""),
            ("maxclients", "10000"),
        ];
        Server {
            host: spec.host,
            port,
            run_id: hex40(),
            replid: hex40(),
            mode: Mode::Up,
            written: role.clone(),
            role,
            link: Link::default(),
            priority: spec.priority,
            offset: spec.offset,
            pinned: None,
            data: BTreeMap::new(),
            config: config.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect(),
            started: now,
            listener: None,
            clients: BTreeSet::new(),
            channels: BTreeMap::new(),
            matchers: BTreeSet::new(),
            calls: BTreeMap::new(),
            connections: 0,
            delay_ms: 0,
            lie: None,
            lies: BTreeMap::new(),
            refuses_auth: false,
            error: None,
            extra: Vec::new(),
            spec,
        }
    }

    /// The port of the master in this process that it follows, if its address can be one of ours at all.
    pub(super) fn follows(&self) -> Option<u16> {
        match &self.role {
            Role::Replica { host, port } => {
                let ours = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
                ours.then_some(*port)
            }
            Role::Master => None,
        }
    }

    /// The address under which a master lists this replica.
    pub(super) fn announced_address(&self) -> (String, u16) {
        self.spec.announce.clone().unwrap_or_else(|| (self.host.to_string(), self.port))
    }

    /// The canonical name of a command as this server knows it after its `rename-command`s; None: unknown here.
    pub(super) fn canonical(&self, asked: &str) -> Option<String> {
        if let Some((name, _)) = self.spec.rename.iter().find(|(_, new)| new.eq_ignore_ascii_case(asked)) {
            return Some(name.to_ascii_lowercase());
        }
        let gone = self.spec.rename.iter().any(|(name, _)| name.eq_ignore_ascii_case(asked));
        (!gone).then(|| asked.to_ascii_lowercase())
    }
}

/// Forty hex characters that no other server has: from the entropy of the standard library's hash maps.
pub(super) fn hex40() -> String {
    let mut text = String::new();
    for word in 0..3u64 {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(word);
        text.push_str(&format!("{:016x}", hasher.finish()));
    }
    text.truncate(40);
    text
}
