//! The words between the core and whoever asks it: operators through commands, peers through questions.

use super::ids::RunId;
use std::fmt;

/// Who this Sentinel is to others. All but the password is fixed for the life of the process.
#[derive(Clone, Debug)]
pub struct Identity {
    pub myid: RunId,
    /// The port our hello announces unless `announce-port` is set.
    pub port: u16,
    /// Our own `requirepass`, tried on peers when no `sentinel-pass` is set. Empty is unset.
    pub own_password: Vec<u8>,
}

/// The constants of behaviour.md 1 that `SENTINEL DEBUG` can change, in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunables {
    pub info_period: u64,
    pub ping_period: u64,
    pub ask_period: u64,
    pub publish_period: u64,
    pub default_down_after: u64,
    pub default_failover_timeout: u64,
    pub tilt_trigger: u64,
    pub tilt_period: u64,
    pub slave_reconf_timeout: u64,
    pub min_link_reconnect_period: u64,
    pub election_timeout: u64,
    pub script_max_runtime: u64,
    pub script_retry_delay: u64,
}

impl Default for Tunables {
    fn default() -> Self {
        Tunables {
            info_period: 10_000,
            ping_period: 1_000,
            ask_period: 1_000,
            publish_period: 2_000,
            default_down_after: super::snapshot::DEFAULT_DOWN_AFTER,
            default_failover_timeout: super::snapshot::DEFAULT_FAILOVER_TIMEOUT,
            tilt_trigger: 2_000,
            tilt_period: 30_000,
            slave_reconf_timeout: 10_000,
            min_link_reconnect_period: 15_000,
            election_timeout: 10_000,
            script_max_runtime: 60_000,
            script_retry_delay: 30_000,
        }
    }
}

/// TILT as INFO shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tilt {
    /// Whole seconds since it began; `None` outside TILT.
    pub since_seconds: Option<u64>,
    /// How often it was entered.
    pub total: u64,
}

/// A vote as it is told: for whom (`None` when unknown or nobody, `*` on the wire) and in which epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    pub leader: Option<RunId>,
    pub epoch: u64,
}

/// The answer to is-master-down-by-addr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub down: bool,
    /// To be told once the effects are drained and the save went well.
    pub vote: Vote,
    /// To be told instead when that save failed: the vote we held before.
    pub vote_if_unsaved: Vote,
}

/// One setting of `SENTINEL SET`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    DownAfter(u64),
    DownAfterRefused(u64),
    PingPeriod(u64),
    FailoverTimeout(u64),
    ParallelSyncs(u32),
    Quorum(u32),
    RebootDownAfter(u64),
    NotificationScript(String),
    ClientReconfigScript(String),
    AuthPass(Vec<u8>),
    AuthUser(String),
    RenameCommand(String, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchMaster;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorError {
    DuplicateName,
    /// Neither numeric nor (with `resolve-hostnames`) a possible name.
    BadHost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailoverRefused {
    NoSuchMaster,
    InProgress,
    NoGoodReplica,
    /// The master does not know FAILOVER, or has not said yet that it does.
    NoGoodMaster,
    /// Saves fail: an epoch that is not on disk leads nobody.
    Unsaved,
    /// There is no epoch after the current one.
    NoEpochLeft,
    /// In TILT nothing is started: what we know of the nodes may be stale.
    Tilt,
}

/// `SENTINEL CKQUORUM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuorumReport {
    /// Sentinels that can be counted on, we included.
    pub usable: usize,
    pub quorum_reached: bool,
    pub majority_reached: bool,
}

/// One entry of `SENTINEL PENDING-SCRIPTS`. Times in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingScript {
    pub argv: Vec<String>,
    pub running: bool,
    /// Its process; 0 while it does not run.
    pub pid: u32,
    /// Time it has run, or time until it starts.
    pub time: u64,
    pub retries: u32,
}

impl fmt::Display for MonitorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MonitorError::DuplicateName => "Duplicate master name.",
            MonitorError::BadHost => "Invalid IP address or hostname specified",
        })
    }
}
