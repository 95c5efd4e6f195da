//! From the fault to the agreement: sections kill, node, hang, refused, five, manual.

use std::time::Duration;

use super::table::{Goal, Row};
use super::watch::{Fault, Seen, watch};
use super::{Bench, Report, cell, plain};
use crate::support::group::{Group, Plan, Servers};
use crate::support::process::Program;

const DOWN_AFTER: u64 = 1000;
/// How long a group may take to meet.
const MEET: Duration = Duration::from_secs(90);
/// The others need half a minute each without `down-after-refused`; so often is enough.
const SLOW_ROUNDS: usize = 2;

/// Three Sentinels of one kind and a master with two replicas.
fn plan(bench: &Bench, program: &Program, sentinels: usize) -> Plan {
    let servers = bench.redis.clone().map_or(Servers::StandIn, Servers::Real);
    Plan::new(vec![program.clone(); sentinels]).servers(servers).down_after(DOWN_AFTER)
}

/// A fresh group per contestant and round, all started before the first of them is struck. None: the contestant does not
/// take part in this round.
fn fresh_groups(
    bench: &Bench,
    what: &str,
    plan: impl Fn(usize, usize) -> Option<Plan>,
    fault: impl Fn(usize) -> Fault,
    follow: bool,
) -> Vec<Vec<Seen>> {
    let mut groups: Vec<Option<Group>> = Vec::new();
    let mut started = None;
    let outcomes = bench.alternate(bench.rounds, |round, who| {
        if started != Some(round) {
            started = Some(round);
            groups = (0..bench.contestants.len()).map(|who| plan(round, who).map(Plan::start)).collect();
            groups.iter().flatten().for_each(|group| group.wait_known(MEET));
        }
        let mut group = groups[who].take()?;
        // The fault is to come anywhere within the periods of pings and hellos, for all contestants alike.
        std::thread::sleep(Duration::from_secs_f64((round as f64 * 0.618).fract()));
        let seen = watch(&mut group, fault(round), follow);
        tell(bench, what, round, who, &seen);
        Some(seen)
    });
    outcomes.into_iter().map(|seen| seen.into_iter().flatten().collect()).collect()
}

fn tell(bench: &Bench, what: &str, round: usize, who: usize, seen: &Seen) {
    let steps = [
        ("sdown", seen.sdown),
        ("odown", seen.odown),
        ("elected", seen.elected),
        ("promoted", seen.promoted),
        ("writable", seen.writable),
        ("agreed", seen.agreed),
        ("followed", seen.followed),
    ];
    let steps: Vec<String> = steps.iter().filter_map(|(step, at)| at.map(|at| format!("{step} {at:.1}"))).collect();
    eprintln!("{what} {}/{}: {}: {}", round + 1, bench.rounds, bench.contestants[who].name, steps.join(", "));
}

/// One row out of one field, in ms beyond `base`.
fn row(what: &str, base: u64, seen: &[Vec<Seen>], field: impl Fn(&Seen) -> Option<f64>) -> Row {
    let beyond = |seen: &Seen| field(seen).map(|at| at - base as f64);
    Row::cost(what, seen.iter().map(|seen| cell(seen.iter().filter_map(beyond))).collect())
}

/// Rounds without agreement are no samples, so they are told.
fn failures(bench: &Bench, seen: &[Vec<Seen>]) -> Vec<String> {
    let mut notes = Vec::new();
    for (program, seen) in bench.contestants.iter().zip(seen) {
        let never = seen.iter().filter(|seen| seen.agreed.is_none() || seen.writable.is_none()).count();
        if never > 0 {
            notes.push(format!("{}: {never} of {} rounds without a new master", program.name, seen.len()));
        }
    }
    notes
}

pub fn kill(bench: &Bench) -> Report {
    let groups = |_, who: usize| Some(plan(bench, &bench.contestants[who], 3));
    let seen = fresh_groups(bench, "kill", groups, |_| Fault::Kill, false);
    let notes = failures(bench, &seen);
    let rows = vec![
        row("kill: sdown, ms", DOWN_AFTER, &seen, |seen| seen.sdown),
        row("kill: odown, ms", DOWN_AFTER, &seen, |seen| seen.odown),
        row("kill: elected, ms", DOWN_AFTER, &seen, |seen| seen.elected),
        row("kill: promoted, ms", DOWN_AFTER, &seen, |seen| seen.promoted),
        row("kill: a write succeeds, ms", DOWN_AFTER, &seen, |seen| seen.writable).goal(Goal::AtMost(10.0)),
        row("kill: agreed on all, ms", DOWN_AFTER, &seen, |seen| seen.agreed)
            .goal(Goal::AtMost(12.0))
            .goal(Goal::WorstAtMost(80.0))
            .goal(Goal::TimesBetter(80.0)),
    ];
    Report { rows, notes }
}

/// Ids as good as any; the same in every group, so that the order in which our Sentinels stand for election is one of
/// indices.
fn ids() -> Vec<String> {
    ["a1", "b2", "c3"].iter().map(|pair| pair.repeat(20)).collect()
}

pub fn node(bench: &Bench) -> Report {
    let groups = |_, who: usize| Some(plan(bench, &bench.contestants[who], 3).ids(&ids()));
    // Who stands first shows when nothing disturbs the order.
    let first = {
        let mut group = plan(bench, &bench.contestants[0], 3).ids(&ids()).start();
        group.wait_known(MEET);
        watch(&mut group, Fault::Kill, false).leader.expect("somebody led a failover that nothing disturbed")
    };
    let lost = |round: usize| if round.is_multiple_of(2) { first } else { (first + 1 + round / 2 % 2) % 3 };
    let seen = fresh_groups(bench, "node", groups, |round| Fault::Node(lost(round)), false);
    let mut notes = failures(bench, &seen);
    notes.push("in every second round the lost Sentinel is the one that would have stood first".to_string());
    let ranked: Vec<Vec<Seen>> = seen.iter().map(|seen| seen.iter().step_by(2).cloned().collect()).collect();
    let rows = vec![
        row("node: agreed on all left, ms", DOWN_AFTER, &seen, |seen| seen.agreed).goal(Goal::AtMost(45.0)),
        row("node: … first-ranked Sentinel lost, ms", DOWN_AFTER, &ranked, |seen| seen.agreed).goal(Goal::AtMost(45.0)),
    ];
    Report { rows, notes }
}

pub fn hang(bench: &Bench) -> Report {
    let groups = |_, who: usize| Some(plan(bench, &bench.contestants[who], 3));
    let seen = fresh_groups(bench, "hang", groups, |_| Fault::Hang, false);
    let mut notes = failures(bench, &seen);
    notes.push(
        "the last unanswered PING is that of the Sentinel that completes the quorum, as its last-ping-sent says"
            .to_string(),
    );
    let mut rows = vec![
        row("hang: agreed, from the last PING on, ms", DOWN_AFTER, &seen, |seen| Some(seen.agreed? - seen.last_ping?))
            .goal(Goal::AtMost(12.0)),
        row("hang: agreed, from the stop on, ms", DOWN_AFTER, &seen, |seen| seen.agreed),
    ];
    let line = "sentinel ping-period mymaster 100";
    if bench.understands(line) {
        let groups = |_, who: usize| (who == 0).then(|| plan(bench, &bench.contestants[who], 3).line(line));
        let seen = fresh_groups(bench, "hang, ping-period 100", groups, |_| Fault::Hang, false);
        notes.extend(failures(bench, &seen));
        rows.push(row("hang: … with ping-period 100, ms", DOWN_AFTER, &seen, |seen| seen.agreed));
    } else {
        notes.push(format!("skipped: this watchfire refuses `{line}`"));
    }
    Report { rows, notes }
}

pub fn refused(bench: &Bench) -> Report {
    let line = "sentinel down-after-refused mymaster 200";
    if !bench.understands(line) {
        return Report { notes: vec![format!("skipped: this watchfire refuses `{line}`")], ..Report::default() };
    }
    let groups = |round: usize, who: usize| {
        let plan = plan(bench, &bench.contestants[who], 3).down_after(30_000);
        match who {
            0 => Some(plan.line(line)),
            _ => (round < SLOW_ROUNDS).then_some(plan),
        }
    };
    let seen = fresh_groups(bench, "refused", groups, |_| Fault::Kill, false);
    let notes = failures(bench, &seen);
    let what = "refused: agreed, from the kill on, ms";
    Report { rows: vec![row(what, 0, &seen, |seen| seen.agreed).goal(Goal::AtMost(230.0))], notes }
}

pub fn five(bench: &Bench) -> Report {
    let groups = |_, who: usize| Some(plan(bench, &bench.contestants[who], 5).replicas(4).parallel_syncs(1));
    let seen = fresh_groups(bench, "five", groups, |_| Fault::Kill, true);
    let notes = failures(bench, &seen);
    let more = |seen: &Vec<Seen>| plain([seen.iter().map(|seen| seen.elections.saturating_sub(1) as f64).sum()]);
    let rows = vec![
        row("five: agreed on all, ms", DOWN_AFTER, &seen, |seen| seen.agreed),
        row("five: all 4 replicas follow, ms", DOWN_AFTER, &seen, |seen| seen.followed).goal(Goal::AtMost(400.0)),
        Row::shape("five: elections lost, in all rounds", seen.iter().map(more).collect()).goal(Goal::AtMost(0.0)),
    ];
    Report { rows, notes }
}

pub fn manual(bench: &Bench) -> Report {
    // One group each for all rounds: a failover by order leaves it whole.
    let mut groups: Vec<Group> = bench.contestants.iter().map(|program| plan(bench, program, 3).start()).collect();
    let seen = bench.alternate(bench.rounds, |round, who| {
        let group = &mut groups[who];
        group.wait_known(MEET);
        let seen = watch(group, Fault::Order(round % 3), false);
        tell(bench, "manual", round, who, &seen);
        seen
    });
    let notes = failures(bench, &seen);
    let rows = vec![
        row("manual: a write succeeds, ms", 0, &seen, |seen| seen.writable),
        row("manual: agreed on all, ms", 0, &seen, |seen| seen.agreed).goal(Goal::AtMost(15.0)),
    ];
    Report { rows, notes }
}
