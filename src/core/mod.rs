//! THE SENTINEL: a state machine without socket, file, clock, thread or log.
//!
//! One ear ([`Sentinel::handle`] and the operator's methods), one clock hand ([`Sentinel::tick`]), one mouth
//! ([`Sentinel::poll_effect`]). Every method that can change something takes the time. The same inputs with
//! the same seed give the same effects.
//!
//! The shell's duties, in this order, once a turn: hand in what was read; call [`Sentinel::tick`] when
//! [`Sentinel::next_wakeup`] has come; drain [`Sentinel::poll_effect`], executing each effect before taking
//! the next and answering `Save` with [`Sentinel::saved`]; then tell clients what the methods returned.

mod effect;
mod failover;
mod ids;
mod input;
mod model;
mod operator;
mod snapshot;

pub use effect::{ConnKind, Effect, Level};
pub use failover::{Failover, Step};
pub use ids::{Addr, ConnId, LinkId, MasterId, PeerId, ReplicaId, RunId, ScriptId};
pub use input::{Gone, Input};
pub use model::{CachedInfo, Conn, Expect, Link, Master, Node, Owner, Peer, Reconf, Replica, Role};
pub use operator::{
    Answer, Change, FailoverRefused, Identity, MonitorError, NoSuchMaster, PendingScript, QuorumReport, Tilt, Tunables,
    Vote,
};
pub use snapshot::{KnownPeer, MasterSnapshot, Options, Settings, Snapshot};

use crate::base::Millis;

/// The Sentinel.
#[derive(Debug)]
pub struct Sentinel {}

#[allow(unused_variables)]
impl Sentinel {
    /// A Sentinel that goes on where the snapshot ended. Announces each master with `+monitor`.
    #[must_use]
    pub fn new(identity: Identity, snapshot: &Snapshot, seed: u64, now: Millis) -> Sentinel {
        todo!()
    }

    /// Takes in what a connection, the resolver or a script has to say.
    pub fn handle(&mut self, now: Millis, input: Input) {
        todo!()
    }

    /// Does everything that is due at `now`: the cron and the exact deadlines. Cheap when nothing is.
    pub fn tick(&mut self, now: Millis) {
        todo!()
    }

    /// When `tick` wants to be called next.
    #[must_use]
    pub fn next_wakeup(&self) -> Millis {
        todo!()
    }

    /// The next thing to do, `Save` before whatever rests on it. `None`: nothing is left.
    #[must_use]
    pub fn poll_effect(&mut self) -> Option<Effect> {
        todo!()
    }

    /// The outcome of the last `Save`. A failed one is retried once a second; meanwhile no vote is given.
    pub fn saved(&mut self, now: Millis, ok: bool) {
        todo!()
    }

    /// True while the state on disk is older than it should be.
    #[must_use]
    pub fn save_failing(&self) -> bool {
        todo!()
    }

    /// The durable state of this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }
}

/// Reading: what commands show.
#[allow(unused_variables)]
impl Sentinel {
    #[must_use]
    pub fn myid(&self) -> RunId {
        todo!()
    }

    #[must_use]
    pub fn current_epoch(&self) -> u64 {
        todo!()
    }

    /// In the order in which they came.
    pub fn masters(&self) -> impl Iterator<Item = &Master> {
        std::iter::empty()
    }

    #[must_use]
    pub fn master_by_name(&self, name: &[u8]) -> Option<&Master> {
        todo!()
    }

    /// Every instance has one; the id comes from a [`Node`] or a [`Peer`].
    #[must_use]
    pub fn link(&self, link: LinkId) -> &Link {
        todo!()
    }

    /// The address clients are to use: from the promotion on, the promoted replica's.
    #[must_use]
    pub fn current_addr<'a>(&'a self, master: &'a Master) -> &'a Addr {
        todo!()
    }

    /// The host of an address as it is announced: the name with `announce-hostnames`, else the address.
    #[must_use]
    pub fn host_text(&self, addr: &Addr) -> String {
        todo!()
    }

    #[must_use]
    pub fn options(&self) -> &Options {
        todo!()
    }

    #[must_use]
    pub fn tunables(&self) -> &Tunables {
        todo!()
    }

    #[must_use]
    pub fn tilt(&self) -> Tilt {
        todo!()
    }

    /// Bit 0: crash after election; bit 1: crash after promotion.
    #[must_use]
    pub fn simulate_failure_flags(&self) -> u32 {
        todo!()
    }

    #[must_use]
    pub fn pending_scripts(&self, now: Millis) -> Vec<PendingScript> {
        todo!()
    }

    /// What `SENTINEL CKQUORUM` says.
    pub fn check_quorum(&self, name: &[u8]) -> Result<QuorumReport, NoSuchMaster> {
        todo!()
    }
}

/// Acting: what operators and peers ask for. Whatever these return may be told only after the effects
/// were drained.
#[allow(unused_variables)]
impl Sentinel {
    /// `SENTINEL MONITOR`. The host must be numeric unless `resolve-hostnames` is on.
    pub fn monitor(&mut self, now: Millis, name: &str, host: &str, port: u16, quorum: u32) -> Result<(), MonitorError> {
        todo!()
    }

    /// `SENTINEL REMOVE`.
    pub fn remove(&mut self, now: Millis, name: &[u8]) -> Result<(), NoSuchMaster> {
        todo!()
    }

    /// `SENTINEL RESET`: how many masters matched the glob.
    pub fn reset(&mut self, now: Millis, pattern: &[u8]) -> usize {
        todo!()
    }

    /// `SENTINEL FAILOVER`.
    pub fn force_failover(&mut self, now: Millis, name: &[u8]) -> Result<(), FailoverRefused> {
        todo!()
    }

    /// `SENTINEL SET`, already validated: applies all changes, one `+set` each.
    pub fn set(&mut self, now: Millis, name: &[u8], changes: Vec<Change>) -> Result<(), NoSuchMaster> {
        todo!()
    }

    /// `SENTINEL CONFIG SET`: the new options as a whole.
    pub fn set_options(&mut self, now: Millis, options: Options) {
        todo!()
    }

    /// `SENTINEL DEBUG`: the new tunables as a whole.
    pub fn set_tunables(&mut self, now: Millis, tunables: Tunables) {
        todo!()
    }

    pub fn simulate_failure(&mut self, flags: u32) {
        todo!()
    }

    /// `SENTINEL FLUSHCONFIG`: save even though nothing changed.
    pub fn flush_config(&mut self) {
        todo!()
    }

    /// `SENTINEL IS-MASTER-DOWN-BY-ADDR`; `candidate` is `None` for `*` and for anything that is no run id.
    pub fn question(&mut self, now: Millis, host: &str, port: u16, epoch: u64, candidate: Option<RunId>) -> Answer {
        todo!()
    }

    /// A hello that a peer published to us directly. Malformed and foreign ones are ignored.
    pub fn hello(&mut self, now: Millis, payload: &[u8]) {
        todo!()
    }
}
