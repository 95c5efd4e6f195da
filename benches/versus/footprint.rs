//! What watching costs: sections footprint, scale, binary.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::launch::{Launched, Pings, Seat};
use super::proc::{self, Cpu};
use super::table::{Cell, Goal, Row};
use super::{Bench, Report, cell, plain};
use crate::support::process::{Program, Redis};
use crate::support::standin::{Spec, StandIn};

/// As many real servers carry all the names.
const SERVERS: usize = 50;
/// INFO goes out every ten seconds: the window holds two rounds of it, and begins after the first.
const SETTLED: Duration = Duration::from_secs(12);
const WINDOW: Duration = Duration::from_secs(20);

struct Cost {
    rss: f64,
    pss: f64,
    /// A second.
    cpu: Cpu,
    /// Masters that were fine at the end.
    fine: usize,
}

/// What this Sentinel costs when it has come to rest.
fn cost(bench: &Bench, sentinel: &Launched, masters: usize) -> Cost {
    let (settled, window) =
        if bench.quick { (Duration::from_secs(3), Duration::from_secs(10)) } else { (SETTLED, WINDOW) };
    sentinel.wait_for_masters(masters, "slaves=0");
    std::thread::sleep(settled.saturating_sub(sentinel.begin.elapsed()));
    let (before, begin) = (Cpu::of(sentinel.pid()), Instant::now());
    std::thread::sleep(window);
    let cpu = Cpu::of(sentinel.pid()).since(before, begin.elapsed().as_secs_f64());
    let memory = proc::memory(sentinel.pid());
    let fine = sentinel.info().matches("status=ok").count();
    Cost { rss: memory.rss, pss: memory.pss, cpu, fine }
}

/// `count` masters on these ports, in turn.
fn monitor(count: usize, ports: &[u16]) -> Vec<String> {
    let ports = ports.iter().cycle().take(count).enumerate();
    ports.map(|(index, port)| format!("sentinel monitor m{index} 127.0.0.1 {port} 1")).collect()
}

pub fn footprint(bench: &Bench) -> Report {
    let redis = match bench.servers() {
        Ok(redis) => redis,
        Err(skipped) => return skipped,
    };
    let servers: Vec<Redis> = (0..SERVERS).map(|_| Redis::start(redis, &["hz 1"])).collect();
    let ports: Vec<u16> = servers.iter().map(|server| server.port).collect();
    let mut report = Report { notes: vec![format!("the masters are spread over {SERVERS} servers")], rows: Vec::new() };
    for (masters, memory, cpu) in
        [(1, Goal::AtMost(2.5), Goal::AtMost(0.5)), (1000, Goal::AtMost(14.0), Goal::TimesBetter(1.0 / 0.6))]
    {
        let costs = bench.alternate(bench.rounds, |_, who| {
            let program = &bench.contestants[who];
            let cost = cost(bench, &Seat::new(program, &monitor(masters, &ports)).launch(), masters);
            eprintln!("footprint {masters}: {} {:.1} MB, {:.2} ms/s", program.name, cost.rss, cost.cpu.used);
            cost
        });
        let name = super::table::number(masters as f64);
        let of = |what: &str, field: fn(&Cost) -> f64| {
            let cells = costs.iter().map(|costs| plain(costs.iter().map(field)));
            Row::cost(format!("{what}, {name} master{}", if masters == 1 { "" } else { "s" }), cells.collect())
        };
        report.rows.push(of("memory (RSS), MB", |cost| cost.rss).goal(memory));
        report.rows.push(of("memory (PSS), MB", |cost| cost.pss));
        report.rows.push(of("CPU, ms a second", |cost| cost.cpu.used).goal(cpu));
    }
    report
}

pub fn scale(bench: &Bench) -> Report {
    let most = if bench.quick { 2000 } else { 5000 };
    // Listener and two connections each on our side.
    let (allowed, _) = proc::open_files();
    if allowed < 3 * most as u64 + 200 {
        let note = format!("skipped: {} open files are needed, {allowed} are allowed (ulimit -n)", 3 * most + 200);
        return Report { notes: vec![note], ..Report::default() };
    }
    let standin = StandIn::start();
    let ports: Vec<u16> = standin.servers(vec![Spec::master(); most]).into_iter().map(|server| server.port).collect();
    let mut report = Report::default();
    let mut costs: Vec<Vec<Vec<(Cost, f64, f64)>>> = Vec::new();
    for masters in [1000, most] {
        costs.push(bench.alternate(bench.rounds, |_, who| {
            let program = &bench.contestants[who];
            let mut lines = monitor(masters, &ports);
            // Their default would not hold our own connections besides those to the servers.
            lines.push("maxclients 15000".to_string());
            let (before, begin) = (Cpu::of_threads("stand-in"), Instant::now());
            let sentinel = Seat::new(program, &lines).launch();
            let pings = Pings::start(sentinel.port(), Duration::from_millis(10));
            let cost = cost(bench, &sentinel, masters);
            let pings = pings.end();
            let carried = Cpu::of_threads("stand-in").since(before, begin.elapsed().as_secs_f64()).used;
            let (p99, worst) = (pings.percentile(99.0).unwrap_or(0.0), pings.largest().unwrap_or(0.0));
            let name = &program.name;
            eprintln!("scale {masters}: {name} {:.1} MB, {:.1} ms/s, PING p99 {p99:.2} ms", cost.rss, cost.cpu.used);
            let waited = cost.cpu.waited;
            report.notes.push(format!(
                "{name}, {masters}: waited {waited:.0} ms a second for a CPU; the stand-in took {carried:.0} ms a second"
            ));
            if cost.fine != masters {
                report.notes.push(format!("{name}: only {} of {masters} masters fine", cost.fine));
            }
            (cost, p99, worst)
        }));
    }
    let name = super::table::number(most as f64);
    for (index, label) in [(0, "1,000"), (1, name.as_str())] {
        let of = |what: &str, field: fn(&Cost) -> f64| {
            let cells = costs[index].iter().map(|costs| plain(costs.iter().map(|(cost, ..)| field(cost))));
            Row::cost(format!("{label} stand-ins: {what}"), cells.collect())
        };
        report.rows.push(of("memory (RSS), MB", |cost| cost.rss));
        report.rows.push(of("CPU, ms a second", |cost| cost.cpu.used));
        let pings = |costs: &Vec<(Cost, f64, f64)>| {
            let worst = costs.iter().map(|cost| cost.2).fold(0.0, f64::max);
            plain(costs.iter().map(|cost| cost.1)).map(|cell| Cell { worst: Some(worst), ..cell })
        };
        report.rows.push(
            Row::cost(format!("{label} stand-ins: PING p99, ms"), costs[index].iter().map(pings).collect())
                .goal(Goal::AtMost(5.0)),
        );
    }
    let growth = |field: fn(&Cost) -> f64| {
        let median = |costs: &Vec<(Cost, f64, f64)>| cell(costs.iter().map(|(cost, ..)| field(cost)));
        let each = costs[0].iter().zip(&costs[1]).map(|(few, many)| {
            let (few, many) = (median(few)?.typical / 1000.0, median(many)?.typical / most as f64);
            Some(Cell { typical: many / few, worst: None })
        });
        each.collect::<Vec<_>>()
    };
    let what = |what: &str| format!("{what} a master at {name}, at 1,000 = 1");
    report.rows.push(Row::shape(what("memory"), growth(|cost| cost.rss)).goal(Goal::AtMost(1.1)));
    report.rows.push(Row::shape(what("CPU"), growth(|cost| cost.cpu.used)).goal(Goal::AtMost(1.1)));
    report
}

pub fn binary(bench: &Bench) -> Report {
    let size = |path: &Path| {
        let bytes = std::fs::metadata(path).ok()?.len();
        Some(Cell { typical: bytes as f64 / 1e6, worst: None })
    };
    let all = bench.contestants.iter().map(|program: &Program| size(&program.path)).collect();
    let mut report = Report::default();
    report.rows.push(Row::cost("binary, MB", all).goal(Goal::AtMost(2.2)));
    // <target>/release/watchfire, and beside it what the command below builds.
    let small: Option<PathBuf> = bench.contestants[0].path.ancestors().nth(2).map(|target| target.join("small"));
    let Some(small) = small.map(|target| target.join("release/watchfire")) else { return report };
    match size(&small) {
        Some(cell) => {
            let mut cells = vec![None; bench.contestants.len()];
            cells[0] = Some(cell);
            let what = "binary without default features, MB";
            report.rows.push(Row::cost(what, cells).goal(Goal::AtMost(0.9)));
        }
        None => report.notes.push(format!(
            "skipped: no {}; cargo build --release --no-default-features --target-dir {} makes it",
            small.display(),
            small.ancestors().nth(2).unwrap_or(Path::new("")).display()
        )),
    }
    report
}
