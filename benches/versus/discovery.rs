//! A thousand masters found, or found in the file: sections discovery and start.

use super::launch::{Pings, Saves, Seat};
use super::proc::Cpu;
use super::stats::ms;
use super::table::{Goal, Row};
use super::{Bench, Report, cell};
use crate::support::group::Group;
use crate::support::ports;
use crate::support::process::{Redis, wait_for};
use std::time::Duration;

const MASTERS: usize = 1000;
/// As many real masters, each with a replica, carry all the names.
const SERVERS: usize = 20;

/// Masters and their replicas.
fn pairs(redis: &std::path::Path) -> Vec<(Redis, Redis)> {
    let pairs: Vec<_> = (0..SERVERS)
        .map(|_| {
            let master = Redis::start(redis, &["hz 1"]);
            let replica = Redis::start(redis, &["hz 1", &format!("replicaof 127.0.0.1 {}", master.port)]);
            (master, replica)
        })
        .collect();
    for (master, replica) in &pairs {
        wait_for(Duration::from_secs(30), "the replicas' links", || Group::follows(replica.port) == Some(master.port));
    }
    pairs
}

pub fn discovery(bench: &Bench) -> Report {
    let redis = match bench.servers() {
        Ok(redis) => redis,
        Err(skipped) => return skipped,
    };
    let pairs = pairs(redis);
    let lines: Vec<String> = (0..MASTERS)
        .map(|index| format!("sentinel monitor m{index} 127.0.0.1 {} 1", pairs[index % SERVERS].0.port))
        .collect();
    struct Found {
        time: f64,
        cpu: f64,
        saves: f64,
        longest: f64,
    }
    let found = bench.alternate(bench.rounds, |_, who| {
        let program = &bench.contestants[who];
        let seat = Seat::new(program, &lines);
        let saves = Saves::watch(&seat.conf());
        let sentinel = seat.launch();
        let pings = Pings::start(sentinel.port(), Duration::from_millis(1));
        sentinel.wait_for_masters(MASTERS, "slaves=1,");
        let (time, cpu) = (sentinel.begin.elapsed().as_secs_f64(), Cpu::of(sentinel.pid()).used / 1000.0);
        let longest = pings.end().largest().unwrap_or(0.0);
        let saves = saves.end() as f64;
        eprintln!("discovery: {} {time:.2} s, {cpu:.2} s CPU, {saves} saves, longest {longest:.1} ms", program.name);
        Found { time, cpu, saves, longest }
    });
    let of = |what: &str, field: fn(&Found) -> f64| {
        let cells = found.iter().map(|found| cell(found.iter().map(field)));
        Row::cost(format!("discovery of 1,000: {what}"), cells.collect())
    };
    let rows = vec![
        of("s", |found| found.time).goal(Goal::AtMost(1.0)),
        of("CPU, s", |found| found.cpu),
        of("saves", |found| found.saves).goal(Goal::AtMost(20.0)),
        of("longest PING, ms", |found| found.longest).goal(Goal::AtMost(20.0)),
    ];
    Report { rows, notes: vec![format!("the masters are spread over {SERVERS} servers with a replica each")] }
}

pub fn start(bench: &Bench) -> Report {
    let redis = match bench.servers() {
        Ok(redis) => redis,
        Err(skipped) => return skipped,
    };
    let pairs = pairs(redis);
    // Nobody listens there; a start must not depend on it.
    let peers: Vec<(u16, String)> = ["d4", "e5"].iter().map(|pair| (ports::free(), pair.repeat(20))).collect();
    let mut lines = vec![format!("sentinel myid {}", "c3".repeat(20))];
    for index in 0..MASTERS {
        let (master, replica) = &pairs[index % SERVERS];
        lines.push(format!("sentinel monitor m{index} 127.0.0.1 {} 2", master.port));
        lines.push(format!("sentinel config-epoch m{index} 1"));
        lines.push(format!("sentinel leader-epoch m{index} 1"));
        lines.push(format!("sentinel known-replica m{index} 127.0.0.1 {}", replica.port));
        for (port, id) in &peers {
            lines.push(format!("sentinel known-sentinel m{index} 127.0.0.1 {port} {id}"));
        }
    }
    lines.push("sentinel current-epoch 1".to_string());
    let ready = bench.alternate(bench.rounds, |_, who| {
        let sentinel = Seat::new(&bench.contestants[who], &lines).launch();
        let ready = ms(sentinel.ready);
        assert_eq!(sentinel.info().matches("slaves=1,sentinels=3").count(), MASTERS, "all of the file is there");
        eprintln!("start: {} {ready:.1} ms", bench.contestants[who].name);
        ready
    });
    let cells = ready.into_iter().map(cell).collect();
    let row = Row::cost("start to ready, 1,000 masters known, ms", cells).goal(Goal::AtMost(50.0));
    Report { rows: vec![row], notes: Vec::new() }
}
