//! A power cut at every step of every save: whatever is left on the disk, watchfire starts with it, and never with an
//! older epoch or vote than one that it told.
//!
//! A real Sentinel runs under `strace` and goes through votes, settings and failovers. From the system calls follows
//! what a disk may hold after a cut behind each of them (`power::disk`) and what others had heard by then (`power::trace`).
//! The program is started on every outcome.

mod live;
mod power {
    pub mod disk;
    pub mod trace;
}
mod support;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use live::{Epochs, LIMIT};
use power::disk::{Disk, Folder};
use power::trace::{Step, WORDS, steps};
use support::conn::text;
use support::group::Plan;
use support::process::{Folder as Place, Program, Sentinel, present, wait_for};
use watchfire::config::{self, Source};
use watchfire::resp::Reply;

const FILE: &str = "sentinel.conf";
const NAME: &str = "mymaster";

/// A program that is watched: its calls are written to `trace`.
fn watched(place: &Place) -> Option<Program> {
    let able = Command::new("strace")
        .args(["-D", "-o", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    present(able.then_some(()), "strace (or the right to trace)")?;
    let script = format!(
        "#!/bin/sh\nexec strace {WORDS} -o {} {} \"$@\"\n",
        place.path().join("trace").display(),
        env!("CARGO_BIN_EXE_watchfire")
    );
    let path = place.path().join("watched");
    std::fs::write(&path, script).expect("a script");
    assert!(Command::new("chmod").arg("+x").arg(&path).status().expect("chmod").success());
    Some(Program { path, ..live::watchfire() })
}

/// What a Sentinel of a group does in its life: votes, settings, failovers of its own and of others.
fn life(group: &mut support::group::Group) {
    let mut conn = group.sentinels[0].conn();
    let ok = Reply::Simple(b"OK".to_vec());
    for round in 0..3 {
        // Votes in epochs to come, for candidates that nobody is.
        let current = Epochs::of(&group.sentinels[0].conf(), NAME).current;
        let port = group.agreed().expect("they agree").to_string();
        let (epoch, candidate) = ((current + 1).to_string(), format!("{round:040x}"));
        let vote = conn.cmd(&["SENTINEL", "IS-MASTER-DOWN-BY-ADDR", "127.0.0.1", &port, &epoch, &candidate]);
        let [_, leader, _] = support::conn::items(&vote) else { panic!("a vote: {vote:?}") };
        assert_eq!(text(leader), candidate, "it voted");
        // A file that grows and shrinks.
        let other = format!("m{}", "x".repeat(500 * round));
        assert_eq!(conn.cmd(&["SENTINEL", "MONITOR", &other, "127.0.0.1", "1", "1"]), ok);
        assert_eq!(conn.cmd(&["SENTINEL", "REMOVE", &other]), ok);
        let old = group.agreed().expect("they agree");
        if round == 1 {
            group.kill(old);
        } else {
            let at = group.sentinels[round].port;
            let _ = support::conn::ask(at, &["SENTINEL", "FAILOVER", NAME]);
        }
        let new = group.wait_switched(LIMIT, old);
        group.restart(old);
        live::wait_settled(group, new);
    }
}

/// A Sentinel that has come to its end, the text that it began with, and everything that it did and said.
struct Record {
    sentinel: Sentinel,
    first: Vec<u8>,
    steps: Vec<Step>,
}

fn record() -> Option<Record> {
    let place = Place::new("power");
    let watched = watched(&place)?;
    let _turn = live::turn();
    let plan = Plan::new(vec![watched, live::watchfire(), live::watchfire()]);
    let mut group = live::start(plan.failover_timeout(3_000));
    group.sentinels.iter().for_each(live::hurry);
    life(&mut group);
    let mut sentinel = group.sentinels.remove(0);
    let status = sentinel.process().terminate(LIMIT);
    assert!(status.success(), "{status}: {}", sentinel.log());
    let read = || std::fs::read_to_string(place.path().join("trace")).unwrap_or_default();
    wait_for(LIMIT, "the end of the trace", || read().contains("+++ exited with 0 +++"));
    let (first, steps) = steps(&read(), &sentinel.conf_path(), NAME);
    sentinel.program = live::watchfire();
    Some(Record { sentinel, first, steps })
}

/// What a cut behind each step can lead to.
#[derive(Default)]
struct Verdict {
    outcomes: BTreeSet<Folder>,
    faults: BTreeSet<String>,
}

fn cuts(first: &[u8], steps: &[Step]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut disk = Disk::with(FILE, first);
    let mut told = Epochs::default();
    for (index, step) in steps.iter().enumerate() {
        disk.take(step);
        if let Step::Say(epochs) = step {
            told.current = told.current.max(epochs.current);
            told.config = told.config.max(epochs.config);
            told.leader = told.leader.max(epochs.leader);
        }
        for folder in disk.after_cut() {
            if let Err(fault) = look(&folder, &told) {
                verdict.faults.insert(format!("after step {index}: {fault}"));
            }
            verdict.outcomes.insert(folder);
        }
    }
    verdict
}

/// What a start with this folder comes to, by the code that reads the file.
fn look(folder: &Folder, told: &Epochs) -> Result<(), String> {
    let text = folder.get(FILE).ok_or("there is no file")?;
    let no_includes = &mut |path: &str| Err(std::io::Error::other(format!("no {path} here")));
    config::read(text, Source::file(FILE), no_includes).map_err(|error| error.to_string())?;
    let found = Epochs::of(&String::from_utf8_lossy(text), NAME);
    found.back_from(told).map_or(Ok(()), |back| Err(format!("{back}, as far as others were told")))
}

/// Every step that `what` picks, moved in front of the last step before it that `before` picks.
fn too_early(steps: &[Step], what: fn(&Step) -> bool, before: fn(&Step) -> bool) -> Vec<Step> {
    let mut moved: Vec<Step> = Vec::new();
    for step in steps {
        let at = moved.iter().rposition(before).filter(|_| what(step)).unwrap_or(moved.len());
        moved.insert(at, step.clone());
    }
    moved
}

#[test]
fn a_power_cut_at_any_step_of_a_save_leaves_a_file_that_starts_and_takes_nothing_back() {
    let Some(Record { mut sentinel, first, steps }) = record() else { return };
    let count = |wanted: fn(&Step) -> bool| steps.iter().filter(|step| wanted(step)).count();
    let saves = count(|step| matches!(step, Step::Rename(..)));
    let votes = count(|step| matches!(step, Step::Say(epochs) if epochs.leader > 0));
    let verdict = cuts(&first, &steps);
    let (cuts_made, outcomes) = (steps.len(), &verdict.outcomes);
    println!("{saves} saves, {votes} votes told, {cuts_made} cuts, {} different outcomes", outcomes.len());
    assert!(saves >= 10 && votes >= 5, "too little happened");
    assert!(verdict.faults.is_empty(), "{:#?}", verdict.faults);
    // The model and the real disk come to the same in the end.
    let mut disk = Disk::with(FILE, &first);
    steps.iter().for_each(|step| disk.take(step));
    let real = Folder::from([(FILE.to_string(), sentinel.conf().into_bytes())]);
    assert_eq!(disk.after_cut(), BTreeSet::from([real]), "the model is wrong");

    // The program itself, on each of them.
    let conf = sentinel.conf_path();
    for folder in outcomes {
        for (name, text) in folder {
            std::fs::write(conf.with_file_name(name), text).expect("the folder can be written");
        }
        sentinel.restart();
        let wanted = Epochs::of(&String::from_utf8_lossy(&folder[FILE]), NAME);
        assert_eq!(live::master_field(&sentinel, NAME, "config-epoch"), wanted.config.to_string());
        sentinel.kill();
        // What the power cut left beside the file is gone with the start.
        for name in folder.keys() {
            let there = conf.with_file_name(name);
            assert_eq!(there.exists(), name == FILE, "{name}");
        }
        std::fs::remove_file(&conf).expect("the file");
    }

    // A checker that finds nothing wrong with a broken saver would be none.
    let broken = |steps: &[Step]| !cuts(&first, steps).faults.is_empty();
    let without = |gone: &dyn Fn(usize) -> bool| -> Vec<Step> {
        steps.iter().enumerate().filter(|(index, _)| !gone(*index)).map(|(_, step)| step.clone()).collect()
    };
    assert!(broken(&without(&|index| matches!(steps[index], Step::Sync(_)))), "no file is synced, and nobody notices");
    let unsynced = (0..steps.len()).filter(|&index| steps[index] == Step::SyncFolder);
    let noticed = unsynced.filter(|&lost| broken(&without(&|index| index == lost))).count();
    assert!(noticed > 0, "a folder is not synced, and nobody notices");
    let said = |step: &Step| matches!(step, Step::Say(_));
    let begun = |step: &Step| matches!(step, Step::Create(_));
    assert!(broken(&too_early(&steps, said, begun)), "epochs are told before they are saved, and nobody notices");
    println!("noticed: files that are not synced, {noticed} folders that are not, words before their save");
}
