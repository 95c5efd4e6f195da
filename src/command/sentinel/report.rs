//! `SENTINEL FAILOVER-REPORT`: the last failovers as timelines, newest first.
//!
//! Every report is a map, and so are its steps, votes and refused replicas. Spans are integers, in ms.

use super::super::call::{Call, wrong_arity};
use super::NO_SUCH_MASTER;
use crate::core::{Addr, FailoverReport, Master, RunId, Sentinel};
use crate::resp::Writer;

/// `[master-name]`: of one master, or of all.
pub(in super::super) fn failover_report(call: &mut Call<'_, '_>) {
    if call.argv.len() > 3 {
        return wrong_arity(call.out, "sentinel|failover-report");
    }
    let sentinel = &*call.world.sentinel;
    let masters: Vec<&Master> = match call.argv.len() {
        2 => sentinel.masters().collect(),
        _ => match sentinel.master_by_name(&call.argv[2]) {
            Some(master) => vec![master],
            None => return call.error(NO_SUCH_MASTER),
        },
    };
    let reports: Vec<_> =
        masters.iter().flat_map(|master| sentinel.failover_reports(master).map(|report| (*master, report))).collect();
    let now = call.world.now;
    let mut reply = Writer::new(call.out, call.proto);
    reply.array(reports.len());
    for (master, report) in reports {
        let ended = report.ended.unwrap_or(now);
        reply.map(16);
        field(&mut reply, "name", &master.name);
        field(&mut reply, "trigger", report.trigger.word());
        field(&mut reply, "outcome", report.outcome.word());
        number(&mut reply, "epoch", report.epoch.cast_signed());
        id(&mut reply, "leader", report.leader);
        node(&mut reply, "from", sentinel, Some(&report.from));
        node(&mut reply, "to", sentinel, report.to.as_ref());
        number(&mut reply, "started-ago", span(now.since(report.started)));
        number(&mut reply, "duration", span(ended.since(report.started)));
        number(&mut reply, "last-sign-of-life", report.since_start(report.alive));
        number(&mut reply, "votes-got", count(report.votes_got));
        number(&mut reply, "votes-needed", count(report.votes_needed));
        votes(&mut reply, report);
        refused(&mut reply, sentinel, report);
        steps(&mut reply, sentinel, report);
        number(&mut reply, "steps-left-out", count(report.steps_left_out));
    }
}

/// What was asked of the other Sentinels.
fn votes(reply: &mut Writer<'_>, report: &FailoverReport) {
    reply.bulk("votes");
    reply.array(report.votes.len());
    for vote in &report.votes {
        reply.map(4);
        field(reply, "sentinel", vote.peer.as_str());
        number(reply, "asked", report.since_start(vote.asked));
        reply.bulk("round-trip");
        match vote.answered {
            Some(at) => reply.integer(span(at.since(vote.asked))),
            None => reply.nil(),
        }
        id(reply, "vote", vote.vote);
    }
}

fn refused(reply: &mut Writer<'_>, sentinel: &Sentinel, report: &FailoverReport) {
    reply.bulk("refused");
    reply.array(report.refused.len());
    for (addr, why) in &report.refused {
        reply.map(2);
        node(reply, "replica", sentinel, Some(addr));
        field(reply, "reason", why);
    }
}

fn steps(reply: &mut Writer<'_>, sentinel: &Sentinel, report: &FailoverReport) {
    reply.bulk("steps");
    reply.array(report.steps.len());
    for step in &report.steps {
        reply.map(if step.replica.is_some() { 4 } else { 3 });
        field(reply, "step", step.what);
        number(reply, "since-start", report.since_start(step.at));
        number(reply, "since-sign-of-life", report.since_alive(step.at));
        if let Some(replica) = &step.replica {
            node(reply, "replica", sentinel, Some(replica));
        }
    }
}

fn field(reply: &mut Writer<'_>, key: &str, value: &str) {
    reply.bulk(key);
    reply.bulk(value);
}

fn number(reply: &mut Writer<'_>, key: &str, value: i64) {
    reply.bulk(key);
    reply.integer(value);
}

fn id(reply: &mut Writer<'_>, key: &str, id: Option<RunId>) {
    reply.bulk(key);
    match id {
        Some(id) => reply.bulk(id.as_str()),
        None => reply.nil(),
    }
}

/// `host:port` as the address is announced.
fn node(reply: &mut Writer<'_>, key: &str, sentinel: &Sentinel, addr: Option<&Addr>) {
    reply.bulk(key);
    match addr {
        Some(addr) => reply.bulk(Addr::new(&super::host_text(sentinel, addr), addr.port).to_string()),
        None => reply.nil(),
    }
}

fn span(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
