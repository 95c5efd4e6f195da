//! What became of the last failovers, and where their time went: `SENTINEL FAILOVER-REPORT`.
//!
//! Every failover writes its own report while it is under way, out of the times that the core is handed anyway. Whoever
//! leads one sees all of it; of a failover that another leads a Sentinel sees its own vote and the new configuration. A
//! master without failovers has no reports and pays one pointer for them.

use super::Sentinel;
use super::effect::Level;
use super::failover::Failover;
use super::ids::{Addr, MasterId, ReplicaId, RunId};
use super::model::{Master, Peer};
use crate::base::Millis;
use std::collections::VecDeque;
use std::fmt::Write as _;

/// Reports kept of one master, the one under way not counted.
const REPORTS_MAX: usize = 16;
/// Steps, and refused replicas, kept in one report: those of some twenty replicas.
const STEPS_MAX: usize = 64;
const REFUSED_MAX: usize = 32;

/// What began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The quorum held the master down.
    Odown,
    /// `SENTINEL FAILOVER`.
    Forced,
    /// `SENTINEL FAILOVER … COORDINATED`.
    Coordinated,
    /// Another Sentinel: its new configuration was heard.
    Observed,
}

impl Trigger {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Trigger::Odown => "odown",
            Trigger::Forced => "forced",
            Trigger::Coordinated => "coordinated",
            Trigger::Observed => "observed",
        }
    }
}

/// How it ended. The words are those of the events, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    InProgress,
    /// `+failover-end`, or `+failover-end-for-timeout` before it.
    End,
    EndForTimeout,
    /// The event that said so.
    Aborted(&'static str),
    /// Overtaken by the configuration of another Sentinel.
    Superseded,
    /// By `SENTINEL RESET` or `SENTINEL REMOVE`.
    Reset,
    /// Of one observed: the new address was taken over.
    Switched,
}

impl Outcome {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Outcome::InProgress => "in-progress",
            Outcome::End => "end",
            Outcome::EndForTimeout => "end-for-timeout",
            Outcome::Aborted(channel) => channel.strip_prefix("-failover-").unwrap_or(channel),
            Outcome::Superseded => "superseded",
            Outcome::Reset => "reset",
            Outcome::Switched => "switched",
        }
    }
}

/// One moment of a failover.
#[derive(Clone, Debug)]
pub struct ReportStep {
    /// The event that tells of it, or a word of its own for what no event tells: `silent`, the PING from which the silence
    /// counts; of a coordinated one `handover-begun` (the master has taken the order) and
    /// `new-master-released`, `old-master-released` (its clients are let go, and ask for the new address).
    pub what: &'static str,
    pub at: Millis,
    /// The replica it is about.
    pub replica: Option<Addr>,
}

/// What was asked of one peer.
#[derive(Clone, Debug)]
pub struct ReportVote {
    pub peer: RunId,
    pub asked: Millis,
    pub answered: Option<Millis>,
    /// For whom it voted, in the epoch of this failover.
    pub vote: Option<RunId>,
}

#[derive(Clone, Debug)]
pub struct FailoverReport {
    pub trigger: Trigger,
    pub epoch: u64,
    /// Who led it, or tried to; unknown of one observed without a vote.
    pub leader: Option<RunId>,
    pub from: Addr,
    /// The replica chosen.
    pub to: Option<Addr>,
    pub started: Millis,
    /// The last answer of the old master.
    pub alive: Millis,
    /// In their order, up to a bound; the rest is only counted.
    pub steps: Vec<ReportStep>,
    pub steps_left_out: usize,
    /// Votes that were got and that are needed, when they were last counted.
    pub votes_got: usize,
    pub votes_needed: usize,
    pub votes: Vec<ReportVote>,
    /// Replicas that could not be promoted, and why.
    pub refused: Vec<(Addr, Box<str>)>,
    pub outcome: Outcome,
    pub ended: Option<Millis>,
}

/// The reports of one master, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Reports(VecDeque<FailoverReport>);

impl FailoverReport {
    fn step(&mut self, now: Millis, what: &'static str, replica: Option<Addr>) {
        if self.steps.len() < STEPS_MAX {
            self.steps.push(ReportStep { what, at: now, replica });
        } else {
            self.steps_left_out += 1;
        }
    }

    pub(super) fn asked(&mut self, now: Millis, peer: RunId) {
        if !self.votes.iter().any(|vote| vote.peer == peer) {
            self.votes.push(ReportVote { peer, asked: now, answered: None, vote: None });
        }
    }

    /// The first answer counts for the round trip, the last for the vote.
    pub(super) fn answered(&mut self, now: Millis, peer: &Peer) {
        let epoch = self.epoch;
        if let Some(vote) = self.votes.iter_mut().find(|vote| vote.peer == peer.run_id) {
            vote.answered.get_or_insert(now);
            vote.vote = peer.vote.filter(|&(_, at)| at == epoch).map(|(leader, _)| leader);
        }
    }

    /// Votes are sought anew, in another epoch.
    pub(super) fn another_epoch(&mut self, now: Millis, epoch: u64) {
        self.epoch = epoch;
        self.votes.clear();
        self.step(now, "+new-epoch", None);
    }

    /// Milliseconds from the start; negative before it.
    #[must_use]
    pub fn since_start(&self, at: Millis) -> i64 {
        at.0.cast_signed() - self.started.0.cast_signed()
    }

    #[must_use]
    pub fn since_alive(&self, at: Millis) -> i64 {
        at.0.cast_signed() - self.alive.0.cast_signed()
    }

    /// The story on one line, without the single replicas.
    fn summary(&self, name: &str, host: impl Fn(&Addr) -> String) -> String {
        let node = |addr: &Addr| format!("{}:{}", host(addr), addr.port);
        let to = self.to.as_ref().map_or("nobody".into(), node);
        let mut text = format!(
            "Failover of {name} in epoch {} ({}): {}, {} to {to}, begun {} ms after the last sign of life; ms from the start:",
            self.epoch,
            self.trigger.word(),
            self.outcome.word(),
            node(&self.from),
            // Where it was alive all the time, as of a coordinated one, it was heard again since.
            self.since_alive(self.started).max(0),
        );
        let mut comma = "";
        for step in self.steps.iter().filter(|step| step.replica.is_none()) {
            let _ = write!(text, "{comma} {} {}", step.what, self.since_start(step.at));
            comma = ",";
        }
        if self.votes_needed > 0 {
            let trips = self.votes.iter().filter_map(|vote| Some(vote.answered?.since(vote.asked)));
            let slowest = trips.max().map_or(String::new(), |ms| format!(", answers within {ms} ms"));
            let _ = write!(text, "; {} of {} votes{slowest}", self.votes_got, self.votes_needed);
        }
        text
    }
}

impl Master {
    /// Its last sign of life of any kind; `link` is its link.
    pub(super) fn last_alive(&self, link: &super::Link) -> Millis {
        let info = self.node.info.as_ref().map_or(Millis(0), |info| info.at);
        link.last_pong.max(info).max(self.node.hello_sent)
    }

    /// What is known when a failover begins, however it does.
    fn report(&self, trigger: Trigger, now: Millis, link: &super::Link) -> FailoverReport {
        let mut report = FailoverReport {
            trigger,
            epoch: 0,
            leader: None,
            from: self.node.addr.clone(),
            to: None,
            started: now,
            alive: self.last_alive(link),
            steps: Vec::new(),
            steps_left_out: 0,
            votes_got: 0,
            votes_needed: 0,
            votes: Vec::new(),
            refused: Vec::new(),
            outcome: Outcome::InProgress,
            ended: None,
        };
        if let Some(since) = self.node.sdown {
            if let Some(silent) = link.silent_since() {
                report.step(silent, "silent", None);
            }
            report.step(since, "+sdown", None);
        }
        if let Some(since) = self.odown {
            report.step(since, "+odown", None);
        }
        report
    }
}

impl Sentinel {
    /// The report of a failover of our own.
    pub(super) fn begin_report(&self, now: Millis, master: &Master, trigger: Trigger, epoch: u64) -> FailoverReport {
        let mut report = master.report(trigger, now, &self.links[&master.node.link]);
        (report.epoch, report.leader) = (epoch, Some(self.identity.myid));
        report.step(now, "+try-failover", None);
        report
    }

    /// A step of the failover under way.
    pub(super) fn note(&mut self, now: Millis, id: MasterId, what: &'static str, replica: Option<ReplicaId>) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let Some(failover) = &mut master.failover else { return };
        let replica = replica.and_then(|id| master.replicas.get(&id)).map(|replica| replica.node.addr.clone());
        failover.report.step(now, what, replica);
    }

    pub(super) fn note_count(&mut self, id: MasterId, got: usize, needed: usize) {
        if let Some(failover) = self.masters.get_mut(&id).and_then(|master| master.failover.as_mut()) {
            (failover.report.votes_got, failover.report.votes_needed) = (got, needed);
        }
    }

    pub(super) fn note_choice(&mut self, now: Millis, id: MasterId, promoted: ReplicaId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let Some(failover) = &mut master.failover else { return };
        failover.report.to = master.replicas.get(&promoted).map(|replica| replica.node.addr.clone());
        failover.report.step(now, "+selected-slave", None);
    }

    /// All replicas are done, or out of time.
    pub(super) fn note_end(&mut self, now: Millis, id: MasterId, timed_out: bool) {
        let Some(failover) = self.masters.get_mut(&id).and_then(|master| master.failover.as_mut()) else { return };
        failover.report.outcome = if timed_out { Outcome::EndForTimeout } else { Outcome::End };
        failover.report.step(now, if timed_out { "+failover-end-for-timeout" } else { "+failover-end" }, None);
    }

    /// The replicas that were refused, of one choice.
    pub(super) fn note_refused(&mut self, id: MasterId, mut refused: Vec<(Addr, Box<str>)>) {
        if let Some(failover) = self.masters.get_mut(&id).and_then(|master| master.failover.as_mut()) {
            refused.truncate(REFUSED_MAX);
            failover.report.refused = refused;
        }
    }

    /// Takes the failover away and files its report. `outcome` is that of one that has not ended yet.
    pub(super) fn end_failover(&mut self, now: Millis, id: MasterId, outcome: Outcome) {
        let Some(Failover { mut report, .. }) = self.masters.get_mut(&id).and_then(|m| m.failover.take()) else {
            return;
        };
        if report.outcome == Outcome::InProgress {
            report.outcome = outcome;
        }
        self.file_report(now, id, *report);
    }

    /// Another Sentinel has led a failover: this is the address it came to.
    pub(super) fn observe_failover(&mut self, now: Millis, id: MasterId, epoch: u64, to: &Addr) {
        self.end_failover(now, id, Outcome::Superseded);
        let Some(master) = self.masters.get(&id) else { return };
        let mut report = master.report(Trigger::Observed, now, &self.links[&master.node.link]);
        (report.epoch, report.to, report.outcome) = (epoch, Some(to.clone()), Outcome::Switched);
        if master.leader_epoch == epoch
            && let Some(leader) = master.leader
        {
            (report.leader, report.started) = (Some(leader), master.voted_at);
            report.step(master.voted_at, "+vote-for-leader", None);
        }
        report.step(now, "+switch-master", None);
        self.file_report(now, id, report);
    }

    fn file_report(&mut self, now: Millis, id: MasterId, mut report: FailoverReport) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        report.ended = Some(now);
        report.steps.shrink_to_fit();
        let line = report.summary(&master.name, |addr| self.out.host(addr));
        self.out.log(Level::Notice, line);
        let Reports(reports) = &mut **master.reports.get_or_insert_default();
        if reports.len() == REPORTS_MAX {
            reports.pop_front();
        }
        reports.push_back(report);
    }

    /// The failover under way and the last ones before it, newest first.
    pub fn failover_reports<'a>(&'a self, master: &'a Master) -> impl Iterator<Item = &'a FailoverReport> {
        let current = master.failover.iter().map(|failover| &*failover.report);
        current.chain(master.reports.iter().flat_map(|reports| reports.0.iter().rev()))
    }
}
