//! THE SENTINEL: a state machine without socket, file, clock, thread or log.
//!
//! One ear ([`Sentinel::handle`] and the operator's methods), one clock hand ([`Sentinel::tick`]), one mouth
//! ([`Sentinel::poll_effect`]). Every method that can change something takes the time. The same inputs with
//! the same seed give the same effects.
//!
//! The shell's duties, in this order, once a turn: hand in what was read; call [`Sentinel::tick`] when
//! [`Sentinel::next_wakeup`] has come; drain [`Sentinel::poll_effect`], executing each effect before taking
//! the next and answering `Save` with [`Sentinel::saved`]; then tell clients what the methods returned.
//!
//! Nothing waits for the cron that need not: every reply that can change the picture calls
//! `Sentinel::act`, the acting half of one master, and deadlines that matter have wake-ups of their own.
//! The cron (52–100 ms) sends what is periodic and is the safety net for the rest; runs that would find nothing are left out.

mod admin;
mod ask;
mod doubts;
mod down;
mod due;
mod effect;
mod election;
mod failover;
mod handover;
mod hello;
mod ids;
mod info;
mod input;
mod invariants;
mod link;
mod model;
mod names;
mod operator;
mod outbox;
mod periodic;
mod plant;
mod progress;
mod refused;
mod reply;
mod report;
mod script;
mod select;
mod slot;
mod snapshot;
mod switch;

pub use effect::{ConnKind, Effect, Level};
pub use failover::{Failover, Step};
pub use hello::{HELLO_CHANNEL, Hello};
pub use ids::{Addr, ConnId, LinkId, MasterId, PeerId, ReplicaId, RunId, ScriptId};
pub use info::InfoReport;
pub use input::{Gone, Input};
pub use model::{CachedInfo, Conn, Excused, Expect, Link, Master, Node, Owner, Peer, Reconf, Replica, Role, Told};
pub use operator::{
    Answer, Change, FailoverRefused, Identity, MonitorError, NoSuchMaster, PendingScript, QuorumReport, Tilt, Tunables,
    Vote,
};
pub use plant::Plant;
pub use refused::Refusals;
pub use report::{FailoverReport, Outcome, ReportStep, ReportVote, Reports, Trigger};
pub use slot::Measured;
pub use snapshot::{KnownPeer, MasterSnapshot, Options, Settings, Snapshot};

use crate::base::{Millis, Random, Shelf, Sorted, SortedSet, limits};
use doubts::Claims;
use outbox::Outbox;
use script::ScriptQueue;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// How far the epochs of others may be ahead of ours. No group ever holds so many elections, and with one forged epoch
/// nobody gets near [`Snapshot::EPOCH_LAST`], after which there can be none: that takes millions of them.
const EPOCH_STRIDE: u64 = 1 << 40;
/// What nothing rests on is saved this many ms after the last save, at the latest: a thousand replicas that are found within
/// a second are ten saves.
const GATHER: u64 = 100;
/// A failed save is tried again after this many ms.
const SAVE_RETRY: u64 = 1_000;
/// A save that takes longer than so many ms, or a turn that comes so much too late, is a standstill, which nobody is blamed for.
const STANDSTILL: u64 = 100;
/// Several standstills within one silence are excused for no more than so many ms in all; and so are the waits of its dials in our
/// own line, after the first.
const EXCUSE_MOST: u64 = 2_000;
/// Where it would find nothing the cron stays away, but no longer than so many ms and this part of the gap that makes a TILT:
/// a sleep is part of the gap when the process stands still in it.
const CRON_PAUSE: u64 = 500;
const CRON_SHARE_OF_GAP: u64 = 4;

/// The Sentinel.
#[derive(Debug)]
pub struct Sentinel {
    identity: Identity,
    options: Options,
    tunables: Tunables,
    current_epoch: u64,
    started: Millis,
    /// The epoch that is on disk; it differs only while saves fail.
    durable_epoch: u64,
    masters: Shelf<MasterId, Master>,
    names: Sorted<Box<[u8]>, MasterId>,
    links: Shelf<LinkId, Link>,
    /// The one link to each peer, whoever shares it.
    peer_links: Sorted<RunId, LinkId>,
    /// Names with the last address that was found for them.
    known_names: Sorted<Box<str>, IpAddr>,
    /// When names were looked up last.
    looked_up: Sorted<Box<str>, Millis>,
    /// Names that could not be looked up the last time, so that the log says it once.
    lost_names: SortedSet<Box<str>>,
    conns: BTreeMap<ConnId, (LinkId, ConnKind)>,
    out: Outbox,
    random: Random,
    last_id: u64,
    last_cron: Millis,
    /// The next moment for the cron. Where it would find nothing, it is passed over.
    next_cron: Millis,
    /// The wake-ups of masters (`Master::armed`).
    deadlines: BTreeSet<(Millis, MasterId)>,
    /// All masters by the moment before which the cron need not look at them (`Master::due`).
    agenda: BTreeSet<(Millis, MasterId)>,
    /// The masters that this cron still has to look at, the next one last; whether they are all, due or not; and when the one
    /// after it is to run, as long as there are any.
    to_look_at: Vec<MasterId>,
    looks_at_all: bool,
    cron_after: Millis,
    /// [`limits::LOOKS_PER_TURN`]; tests have fewer masters, and less of this.
    looks_per_turn: usize,
    /// In TILT since.
    tilt: Option<Millis>,
    tilt_total: u64,
    /// The state on disk is stale; try again at.
    save_retry: Option<Millis>,
    /// The newest moment that was handed in.
    newest: Millis,
    /// All that came before this moment was handed in; `None`: before that one.
    heard_up_to: Option<Millis>,
    /// How long our saves take, and from when to when the last one lasted.
    save: Measured,
    last_save: (Millis, Millis),
    scripts: ScriptQueue,
    simulate_failure: u32,
    /// Our own addresses: from which, and for how many links, the last connection was made. They are what our hello may say.
    local_ips: Sorted<IpAddr, usize>,
    /// How our last hello began.
    own_words: Vec<u8>,
    /// When a hello with our own id from another address was last reported.
    own_id_reported: Option<Millis>,
    /// When something that is no hello was last reported.
    no_hello_reported: Option<Millis>,
    claims: Claims,
    /// A rule that is broken on purpose; tests only.
    plant: Option<Box<plant::Planted>>,
}

impl Sentinel {
    /// A Sentinel that goes on where the snapshot ended. Announces each master with `+monitor`.
    #[must_use]
    pub fn new(identity: Identity, snapshot: &Snapshot, seed: u64, now: Millis) -> Sentinel {
        let mut sentinel = Sentinel {
            identity,
            options: snapshot.options.clone(),
            tunables: Tunables::default(),
            current_epoch: snapshot.current_epoch,
            started: now,
            durable_epoch: snapshot.current_epoch,
            masters: Shelf::new(),
            names: Sorted::new(),
            links: Shelf::new(),
            peer_links: Sorted::new(),
            known_names: Sorted::new(),
            looked_up: Sorted::new(),
            lost_names: SortedSet::new(),
            conns: BTreeMap::new(),
            out: Outbox::new(snapshot.options.announce_hostnames),
            random: Random::seeded(seed),
            last_id: 0,
            last_cron: now,
            next_cron: now,
            deadlines: BTreeSet::new(),
            agenda: BTreeSet::new(),
            to_look_at: Vec::new(),
            looks_at_all: false,
            cron_after: now,
            looks_per_turn: limits::LOOKS_PER_TURN,
            tilt: None,
            tilt_total: 0,
            save_retry: None,
            newest: now,
            heard_up_to: None,
            save: Measured::default(),
            last_save: (Millis(0), Millis(0)),
            scripts: ScriptQueue::default(),
            simulate_failure: 0,
            local_ips: Sorted::new(),
            own_words: Vec::new(),
            own_id_reported: None,
            no_hello_reported: None,
            claims: Claims::default(),
            plant: None,
        };
        for saved in &snapshot.masters {
            sentinel.restore(now, saved);
        }
        sentinel.doubt_announced();
        sentinel
    }

    /// Takes in what a connection, the resolver or a script has to say.
    pub fn handle(&mut self, now: Millis, input: Input) {
        self.notice_gap(now);
        match input {
            Input::Begun { conn } => self.begun(now, conn),
            Input::Left { conn, since } => self.left(now, conn, since),
            Input::Connected { conn, local } => self.connected(now, conn, local),
            Input::Closed { conn, why } => self.closed(now, conn, &why),
            Input::Reply { conn, kind: ConnKind::Command, reply } => self.command_reply(now, conn, reply),
            Input::Reply { conn, kind: ConnKind::PubSub, reply } => self.pubsub_reply(now, conn, &reply),
            Input::Resolved { host, ip } => self.resolved(now, &host, ip),
            Input::ScriptStarted { script, pid } => self.script_started(script, pid),
            Input::ScriptEnded { script, code, signal } => self.script_ended(now, script, code, signal),
            Input::ScriptFailed { script, forked, why } => self.script_failed(script, forked, &why),
        }
        self.check_invariants();
    }

    /// All that nodes had said by then was handed in, and what was to be said to them by then has left. Whoever has more to do
    /// than it can says so before every `tick`; where nothing ever waits it need not be said.
    pub fn heard_up_to(&mut self, at: Millis) {
        self.heard_up_to = self.heard_up_to.max(Some(at));
    }

    /// The moment by which silence is judged: an answer that waits unread is an answer.
    fn heard(&self, now: Millis) -> Millis {
        if self.planted(Plant::BlameForBacklog) {
            return now;
        }
        self.heard_up_to.map_or(now, |at| at.min(now))
    }

    /// Does everything that is due at `now`: the cron and the exact deadlines. Cheap when nothing is.
    pub fn tick(&mut self, now: Millis) {
        self.notice_gap(now);
        for _ in 0..self.looks_per_turn {
            let Some(&(at, id)) = self.deadlines.first().filter(|(at, _)| *at <= now) else { break };
            self.deadlines.remove(&(at, id));
            if let Some(master) = self.masters.get_mut(&id) {
                master.armed = None;
            }
            self.act(now, id);
        }
        if self.save_retry.is_some_and(|at| at <= now) {
            self.save_retry = Some(now + SAVE_RETRY);
            self.out.mark_dirty();
        }
        if now >= self.cron_at() {
            self.cron(now);
        }
        if self.gathered_at().is_some_and(|at| at <= now) {
            self.out.mark_dirty();
        }
        self.check_invariants();
    }

    /// The cron: the monitoring half, and outside TILT the acting half, for whoever is due.
    fn cron(&mut self, now: Millis) {
        self.last_cron = now;
        let goes_on = !self.to_look_at.is_empty();
        if !goes_on {
            self.cron_after = now + cron_period(&mut self.random);
        }
        // In TILT nothing is judged and while saves fail not everything is said: both end without a sign from the masters.
        // Whoever was not looked at before they ended is looked at afterwards.
        let all = self.tilt.is_some() || self.save_retry.is_some() || self.planted(Plant::OwnTimers);
        self.looks_at_all = all || (goes_on && self.looks_at_all);
        if self.tilt.is_some_and(|since| now.since(since) > self.tunables.tilt_period) {
            self.tilt = None;
            self.out.event(Level::Warning, "-tilt", "#tilt mode exited".into());
        }
        if !goes_on {
            self.list_due(now);
        }
        self.look(now);
        // Turns that took long may have passed the moment of the next one.
        self.next_cron = if self.to_look_at.is_empty() { self.cron_after.max(now) } else { now };
        self.compare_claims(now);
        self.run_scripts(now);
    }

    /// Every entrance passes here, so that nothing is judged after a gap before TILT is seen, nor by what waits unread since
    /// then: whoever comes first after a standstill speaks before the others are heard.
    fn notice_gap(&mut self, now: Millis) {
        if now.since(self.newest) > STANDSTILL {
            self.excuse_silence(now, now.since(self.newest.max(self.next_wakeup())));
        }
        self.newest = self.newest.max(now);
        let gap = now.since(self.last_cron);
        if gap <= self.tunables.tilt_trigger {
            self.pass_over(now);
            return;
        }
        self.last_cron = now;
        self.tilt = Some(now);
        self.tilt_total += 1;
        self.out.log(
            Level::Warning,
            format!(
                "No turn of the cron for {gap} ms (limit {}): the process or the machine stood still",
                self.tunables.tilt_trigger
            ),
        );
        self.out.event(Level::Warning, "+tilt", "#tilt mode entered".into());
    }

    /// When `tick` wants to be called next.
    #[must_use]
    pub fn next_wakeup(&self) -> Millis {
        let deadline = self.deadlines.first().map(|&(at, _)| at);
        [deadline, self.gathered_at()].into_iter().flatten().fold(self.cron_at(), Millis::min)
    }

    /// When the cron runs next: at the first of its moments at which it finds something to do.
    fn cron_at(&self) -> Millis {
        let (mut at, mut random) = (self.next_cron, self.random.clone());
        while !self.cron_finds(at) {
            at = at + cron_period(&mut random);
        }
        at
    }

    /// Leaves the moments behind at which the cron had nothing to do. They are drawn in between all else that chance
    /// decides, as if it had run.
    fn pass_over(&mut self, now: Millis) {
        while self.next_cron < now && !self.cron_finds(self.next_cron) {
            if cfg!(debug_assertions) {
                self.check_agenda(self.next_cron);
            }
            self.next_cron = self.next_cron + cron_period(&mut self.random);
        }
    }

    /// Whether the cron would find something to do at `at`, as things stand, or has stayed away for long enough.
    fn cron_finds(&self, at: Millis) -> bool {
        let pause = CRON_PAUSE.min(self.tunables.tilt_trigger / CRON_SHARE_OF_GAP);
        self.agenda.first().is_some_and(|&(due, _)| due <= at)
            || self.is_astir()
            || self.claims.compare_at().is_some_and(|due| due <= at)
            || self.last_cron + pause <= at
    }

    /// Something is going on that no master's agenda knows of: the cron runs at each of its moments.
    fn is_astir(&self) -> bool {
        self.tilt.is_some()
            || self.save_retry.is_some()
            || self.planted(Plant::OwnTimers)
            || !self.to_look_at.is_empty()
            || !self.out.scripts.is_empty()
            || !self.scripts.is_empty()
    }

    /// The next thing to do, `Save` before whatever rests on it. `None`: nothing is left.
    #[must_use]
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.out.poll()
    }

    /// The outcome of the last `Save`, at the moment in which it is over: that tells how long it took. A failed one is
    /// retried once a second; meanwhile no vote is given, no election entered and no epoch told that is not on disk: what a
    /// crash can undo was never said.
    pub fn saved(&mut self, now: Millis, ok: bool) {
        self.excuse_silence(now, now.since(self.newest));
        self.note_save(now);
        // A slow disk is no gap in our attention: what was said meanwhile is heard before anybody is judged by it.
        self.last_cron = self.last_cron.max(now);
        self.out.save_failing = !ok;
        if ok {
            self.save_retry = None;
            self.durable_epoch = self.current_epoch;
            for master in self.masters.values_mut() {
                master.durable_config_epoch = master.config_epoch;
                master.durable_vote = Vote { leader: master.leader, epoch: master.leader_epoch };
            }
            // An attempt may have waited for its own epoch and vote to be on disk, and for nothing else.
            let waits =
                |master: &&Master| matches!(&master.failover, Some(failover) if failover.step == Step::WaitStart);
            let ids: Vec<MasterId> = self.masters.values().filter(waits).map(|master| master.id).collect();
            for id in ids {
                self.act(now, id);
            }
            return;
        }
        self.save_retry = Some(now + SAVE_RETRY);
        // Messages of this turn were composed in good faith.
        for &conn in self.out.withhold().iter() {
            if let Some(&(link, _)) = self.conns.get(&conn) {
                self.redial(now, link);
            }
        }
        let ids: Vec<MasterId> = self.masters.keys().copied().collect();
        for id in ids {
            self.withdraw_unsaved(now, id);
        }
    }

    /// We stood still for so long, in a save or because we were not let run: nobody could be heard, and the PINGs of a turn
    /// that saves leave only now. That was our silence and not theirs; the votes that were to be asked for, and the offsets,
    /// have not had their time either. What a usual disk takes is not worth it.
    fn excuse_silence(&mut self, now: Millis, stood: u64) {
        if stood <= STANDSTILL {
            return;
        }
        let stood_from = Millis(now.0.saturating_sub(stood));
        for link in self.links.values_mut() {
            // Until then its dial waited in line, and from then on for us.
            link.stand_in_line(stood_from);
            link.skip_line(now);
            // One silence is excused once as a whole. Where we stand still again and again, it is not to last for ever.
            let before = link.excused.stood;
            let more = if before == 0 { stood } else { EXCUSE_MOST.saturating_sub(before).min(stood) };
            link.excused.stood += more;
            link.excuse(now, more);
        }
        let later = |at: Millis| (at + stood).min(now);
        for master in self.masters.values_mut() {
            master.rebooted = master.rebooted.map(later);
            master.node.role_reported_at = later(master.node.role_reported_at);
            if let Some(failover) = &mut master.failover
                && matches!(failover.step, Step::WaitStart | Step::SelectReplica)
            {
                failover.changed = later(failover.changed);
            }
        }
    }

    /// True while the state on disk is older than it should be.
    #[must_use]
    pub fn save_failing(&self) -> bool {
        self.save_retry.is_some()
    }

    /// Somebody new is known. No message, vote or answer rests on that, and after a crash it would be found again; so the
    /// first save is made at once, and what follows soon is gathered. Whatever else is saved takes it along.
    fn save_soon(&mut self) {
        self.out.gather();
        if self.gathered_at().is_some_and(|at| at <= self.newest) {
            self.out.mark_dirty();
        }
    }

    /// When what was gathered is to be saved.
    fn gathered_at(&self) -> Option<Millis> {
        self.out.is_gathering().then(|| self.last_save.1 + GATHER)
    }

    /// The process ends in good order: nothing is left to be gathered.
    pub fn save_gathered(&mut self) {
        if self.out.is_gathering() {
            self.out.mark_dirty();
        }
    }

    fn fresh_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The epoch that may be told.
    fn told_epoch(&self) -> u64 {
        if self.save_retry.is_some() { self.durable_epoch } else { self.current_epoch }
    }

    /// Asks for a wake-up of this master at `at` unless an earlier one is queued.
    fn arm(&mut self, id: MasterId, at: Millis) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        if master.armed.is_none_or(|armed| at < armed) {
            if let Some(later) = master.armed.replace(at) {
                self.deadlines.remove(&(later, id));
            }
            self.deadlines.insert((at, id));
        }
    }
}

/// Until the next moment of the cron, ms. Drawn anew every time, so that Sentinels started together drift apart: 10 to 19 a
/// second.
fn cron_period(random: &mut Random) -> u64 {
    1000 / (10 + random.below(10))
}

/// Reading: what commands show.
impl Sentinel {
    #[must_use]
    pub fn myid(&self) -> RunId {
        self.identity.myid
    }

    #[must_use]
    pub fn current_epoch(&self) -> u64 {
        self.current_epoch
    }

    /// In the order in which they came.
    pub fn masters(&self) -> impl Iterator<Item = &Master> {
        self.masters.values()
    }

    #[must_use]
    pub fn master_by_name(&self, name: &[u8]) -> Option<&Master> {
        self.masters.get(self.names.get(name)?)
    }

    /// Every instance has one; the id comes from a [`Node`] or a [`Peer`].
    #[must_use]
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[&link]
    }

    /// The address clients are to use: from the promotion on, the promoted replica's.
    #[must_use]
    pub fn current_addr<'a>(&self, master: &'a Master) -> &'a Addr {
        current_addr(master)
    }

    /// The host of an address as it is announced: the name with `announce-hostnames`, else the address.
    #[must_use]
    pub fn host_text(&self, addr: &Addr) -> String {
        self.out.host(addr)
    }

    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    #[must_use]
    pub fn tunables(&self) -> &Tunables {
        &self.tunables
    }

    #[must_use]
    pub fn tilt(&self) -> Tilt {
        Tilt {
            // The reference counts from the cron's own clock; so do we.
            since_seconds: self.tilt.map(|since| self.last_cron.since(since) / 1000),
            total: self.tilt_total,
        }
    }

    /// Bit 0: crash after election; bit 1: crash after promotion.
    #[must_use]
    pub fn simulate_failure_flags(&self) -> u32 {
        self.simulate_failure
    }

    #[must_use]
    pub fn pending_scripts(&self, now: Millis) -> Vec<PendingScript> {
        self.scripts.pending(now)
    }

    /// What `SENTINEL CKQUORUM` says.
    pub fn check_quorum(&self, name: &[u8]) -> Result<QuorumReport, NoSuchMaster> {
        let master = self.master_by_name(name).ok_or(NoSuchMaster)?;
        let usable = 1 + master
            .peers
            .values()
            .filter(|peer| peer.sdown.is_none() && !self.links[&peer.link].is_disconnected())
            .count();
        Ok(QuorumReport {
            usable,
            quorum_reached: usable >= master.settings.quorum as usize,
            majority_reached: usable >= majority(master),
        })
    }
}

/// More than half of all Sentinels known for this master, we included, down ones too.
fn majority(master: &Master) -> usize {
    let voters = master.peers.len() + 1;
    voters / 2 + 1
}

fn current_addr(master: &Master) -> &Addr {
    let promoted = master.failover.as_ref().and_then(Failover::in_force);
    promoted.and_then(|id| master.replicas.get(&id)).map_or(&master.node.addr, |replica| &replica.node.addr)
}
