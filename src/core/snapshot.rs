//! What is saved and loaded: the whole durable state as plain data. [`crate::config`] turns it into the
//! directives of the configuration file and back.

use super::ids::{HOST_MAX, RunId};
use crate::base::Sorted;

/// Defaults of the protocol (behaviour.md 1) that the file omits.
pub const DEFAULT_DOWN_AFTER: u64 = 30_000;
pub const DEFAULT_FAILOVER_TIMEOUT: u64 = 180_000;
pub const DEFAULT_PARALLEL_SYNCS: u32 = 1;

/// The `sentinel …` part of a configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// `None` in a file that never ran; the shell draws one before the core is made.
    pub myid: Option<RunId>,
    pub current_epoch: u64,
    pub options: Options,
    /// In the order of the file.
    pub masters: Vec<MasterSnapshot>,
}

impl Snapshot {
    /// The last epoch there is: peers read no larger one. A file that claims more is read as this, and no election is held
    /// beyond it, so that epochs never begin again at 0.
    pub const EPOCH_LAST: u64 = i64::MAX as u64;
}

/// Settings of the whole Sentinel that can change at run time through `SENTINEL CONFIG SET`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub resolve_hostnames: bool,
    pub announce_hostnames: bool,
    /// Empty is unset.
    pub announce_ip: String,
    /// 0 is unset.
    pub announce_port: u16,
    pub sentinel_user: String,
    pub sentinel_pass: Vec<u8>,
    pub deny_scripts_reconfig: bool,
}

impl Options {
    /// Whether a host can stand in our hello, or is empty, which is none. What fails here is read by nobody: a comma would
    /// make another field, and the rest is no address and no name to any resolver. (A zone id would be one on this very
    /// machine, so it passes; what comes of it is for `doubts` to say.)
    #[must_use]
    pub fn may_announce(host: &str) -> bool {
        host.len() <= HOST_MAX && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            resolve_hostnames: false,
            announce_hostnames: false,
            announce_ip: String::new(),
            announce_port: 0,
            sentinel_user: String::new(),
            sentinel_pass: Vec::new(),
            deny_scripts_reconfig: true,
        }
    }
}

/// One `sentinel monitor` and everything said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterSnapshot {
    pub name: String,
    /// The current address: after a promotion the promoted node's.
    pub host: String,
    pub port: u16,
    pub settings: Settings,
    pub config_epoch: u64,
    pub leader_epoch: u64,
    /// `(host, port)`; after a promotion the old master stands in the promoted node's place.
    pub known_replicas: Vec<(String, u16)>,
    pub known_peers: Vec<KnownPeer>,
}

/// `sentinel known-sentinel`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPeer {
    pub host: String,
    pub port: u16,
    pub run_id: RunId,
}

/// What an operator sets for one master (`SENTINEL SET`). Times in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub quorum: u32,
    pub down_after: u64,
    /// A node whose connections are refused for longer is down; 0: refusals say nothing.
    pub down_after_refused: u64,
    /// The PING period of this master's nodes; 0: the common one ([`Tunables::ping_period`](super::Tunables)).
    pub ping_period: u64,
    pub failover_timeout: u64,
    /// 0 counts as 1.
    pub parallel_syncs: u32,
    /// 0: a rebooted master is not down for that reason.
    pub reboot_down_after: u64,
    /// Empty is unset, as for the password and the scripts.
    pub auth_user: String,
    pub auth_pass: Vec<u8>,
    pub notification_script: String,
    pub client_reconfig_script: String,
    /// Old command name, as written by the operator, to the name the servers know.
    pub rename_commands: Sorted<String, String>,
}

impl Settings {
    #[must_use]
    pub fn with_quorum(quorum: u32) -> Settings {
        Settings {
            quorum,
            down_after: DEFAULT_DOWN_AFTER,
            down_after_refused: 0,
            ping_period: 0,
            failover_timeout: DEFAULT_FAILOVER_TIMEOUT,
            parallel_syncs: DEFAULT_PARALLEL_SYNCS,
            reboot_down_after: 0,
            auth_user: String::new(),
            auth_pass: Vec::new(),
            notification_script: String::new(),
            client_reconfig_script: String::new(),
            rename_commands: Sorted::new(),
        }
    }
}
