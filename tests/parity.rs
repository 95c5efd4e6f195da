//! Parity: redis-sentinel 7.0.15 and watchfire are asked the same questions over real sockets, in RESP2 and RESP3, while
//! they watch the same servers. The answers must be the same bytes, except for what moves (times, ids, ports, ages,
//! counters) and for the differences that `parity/accepted.rs` lists with their reasons.
//!
//! The script is in `parity/script.rs`. Besides the hand-written parts every command and subcommand is called with zero to
//! seven words behind it and in three spellings (R74).

mod support;

#[path = "parity/accepted.rs"]
mod accepted;
#[path = "parity/rig.rs"]
mod rig;
#[path = "parity/run.rs"]
mod run;
#[path = "parity/script.rs"]
mod script;
#[path = "parity/view.rs"]
mod view;
#[path = "parity/wire.rs"]
mod wire;

use std::time::Duration;

use rig::Rig;
use run::{Outcome, Pair, Part, Side, run};
use support::conn::ask;
use support::process::{Program, Redis, present, wait_for};
use view::{Names, View};
use wire::{Answer, Line, Wire};

/// Uses up all connections: what does the one hear that is too many?
fn refusals(outcome: &mut Outcome, pair: &Pair) {
    let [theirs, ours] = [&pair.theirs, &pair.ours].map(|side| {
        let mut lines: Vec<Line> = (0..rig::MAXCLIENTS).map(|_| Line::open(side.port)).collect();
        lines.iter_mut().for_each(|line| drop(line.ask(&["PING"])));
        let refused = Line::open(side.port).receive(None);
        drop(lines);
        wait_for(Duration::from_secs(10), "room for a connection", || ask(side.port, &["PING"]).is_some());
        refused
    });
    outcome.compare(pair, View::Exact, "one connection too many", (&theirs, ""), (&ours, ""));
}

#[test]
fn replies_are_those_of_redis_sentinel() {
    let Some(reference) = present(Program::redis_sentinel(), "redis-sentinel") else { return };
    let Some(server) = present(Redis::program(), "redis-server") else { return };
    let rig = Rig::start(&reference, &server);
    let mut outcome = Outcome::default();
    for proto in [2, 3] {
        let mut play = |pair, parts: Vec<(String, String)>| {
            for (name, lines) in &parts {
                run(&mut outcome, pair, proto, &Part { name, lines });
            }
        };
        play(&rig.open, script::parts(script::OPEN));
        play(&rig.locked, script::parts(script::LOCKED));
        play(&rig.empty, script::parts(script::EMPTY));
        for (pair, situation, first) in [
            (&rig.open, "every command", ""),
            (&rig.open, "every command of a subscriber", "SUBSCRIBE a"),
            (&rig.locked, "every command of a stranger", ""),
            (&rig.locked, "every command of a guest", "AUTH few few"),
        ] {
            play(pair, script::every_command(situation, first));
        }
    }
    refusals(&mut outcome, &rig.empty);
    run(&mut outcome, &rig.empty, 2, &Part { name: "the end", lines: script::THE_END });
    let mut report: Vec<String> = outcome.faults.iter().map(|(text, place)| format!("[{place}] {text}")).collect();
    let dead = accepted::ROWS.iter().enumerate().filter(|(at, _)| !outcome.used.contains(at));
    report.extend(dead.map(|(_, row)| format!("accepted, but nothing differs so: {}", row.show())));
    println!("{} steps, {} facts compared, {} accepted differences", outcome.steps, outcome.facts, outcome.used.len());
    assert!(report.is_empty(), "{} differences:\n{}", report.len(), report.join("\n"));
}

/// What differs on the wire differs here, however alike it looks; what has a row is noted with it.
#[test]
fn a_difference_is_seen() {
    let side = || Side { port: 0, names: Names::default(), words: Vec::new() };
    let pair = Pair { theirs: side(), ours: side(), words: Vec::new(), deeds: Vec::new() };
    let bulk = |text: &str| Wire::Bulk(b'$', Some(text.into()));
    let list = |mark, texts: &[&str]| Wire::Many(mark, Some(texts.iter().map(|text| bulk(text)).collect()));
    let answer = |wire: &Wire, end| Answer { replies: vec![wire.clone()], end };
    let ok = Wire::Line(b'+', b"OK".to_vec());
    for (theirs, ours, ends) in [
        (ok.clone(), bulk("OK"), ["", ""]),
        (ok.clone(), ok.clone(), ["", "closed"]),
        (ok.clone(), Wire::Line(b'+', b"OK ".to_vec()), ["", ""]),
        (Wire::Bulk(b'$', None), Wire::Many(b'*', None), ["", ""]),
        (Wire::Many(b'*', None), Wire::Line(b'_', Vec::new()), ["", ""]),
        (list(b'*', &["a", "1"]), list(b'%', &["a", "1"]), ["", ""]),
        (list(b'*', &["a b"]), list(b'*', &["a", "b"]), ["", ""]),
        (bulk("\n"), bulk("\\n"), ["", ""]),
        (list(b'*', &["last-ping-sent", "5"]), list(b'*', &["last-ping-sent", ""]), ["", ""]),
    ] {
        let mut outcome = Outcome::default();
        let (theirs, ours) = (answer(&theirs, ends[0]), answer(&ours, ends[1]));
        outcome.compare(&pair, View::Exact, "SOMETHING", (&theirs, ""), (&ours, ""));
        assert_eq!((outcome.faults.len(), outcome.used.len()), (1, 0), "{theirs:?} {ours:?}");
        outcome.compare(&pair, View::Exact, "SOMETHING", (&ours, ""), (&ours, ""));
        assert_eq!(outcome.faults.len(), 1);
    }
    let mut outcome = Outcome::default();
    let moving = ["5", "1234"].map(|ms| answer(&list(b'*', &["last-ping-sent", ms]), ""));
    outcome.compare(&pair, View::Exact, "SOMETHING", (&moving[0], ""), (&moving[1], ""));
    let versions = ["7.0.15", "7.4.0"].map(|version| answer(&list(b'%', &["version", version]), ""));
    outcome.compare(&pair, View::Fields, "HELLO 3", (&versions[0], ""), (&versions[1], ""));
    assert_eq!((outcome.faults.len(), outcome.used.len()), (0, 1));
    outcome.compare(&pair, View::Fields, "HELLO 3", (&versions[1], ""), (&versions[0], ""));
    assert_eq!(outcome.faults.len(), 1);
}
