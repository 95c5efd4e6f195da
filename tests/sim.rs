//! The simulation: a whole group in one thread, under faults drawn from a seed.
//!
//! * `cargo test --test sim` runs 60 seeds with one master, and besides, as seeds of their own, 20 with one to four, 6 in
//!   which several die and 6 of operators on both sides of partitions; `SEEDS=600` in the environment scales all four,
//!   `FIRST=20001` begins there, `SEED=7` replays one and prints its story (`STORY=all` with every packet).
//!   `MUTE=one-vote,one-leader` sends those checkers to sleep, and `PROFILE=contested` (or `drawn`, `exercise`, `operators`,
//!   `replacements`, `worlds`, `rush`, `shared`, `wires`, `divided`) has all seeds be runs of that kind.
//! * A failure prints seed, step, what was broken, and the story with as few faults as it takes; `ONLY=3,7` leaves only the
//!   faults with these numbers.

#[path = "sim/mod.rs"]
mod simulation;

use simulation::disk::DiskPlant;
use simulation::facts;
use simulation::options::{Options, Planted};
use simulation::process::ShellPlant;
use simulation::retry;
use simulation::run::{self, Report};
use simulation::shrink;
use simulation::stopwatch::{self, Fate};
use simulation::trace::Trace;
use simulation::world::World;
use watchfire::core::Plant;

const DEFAULT_SEEDS: u64 = 60;
/// A planted fault must be found within this many seeds.
const FINDING_SEEDS: u64 = 500;

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

/// Runs these seeds as the environment says; panics with the story of the first that fails.
fn run_seeds(seeds: u64, profile: fn(u64) -> Options) {
    let muted = std::env::var("MUTE").unwrap_or_default();
    let muted: Vec<String> = muted.split(',').map(ToString::to_string).collect();
    let only = std::env::var("ONLY").ok().map(|list| {
        list.split(',').map(|number| number.parse().expect("ONLY is numbers with commas between")).collect::<Vec<u64>>()
    });
    let drawn = |seed| Options { muted: muted.clone(), only: only.clone(), ..profile(seed) };
    if let Some(seed) = from_environment("SEED") {
        let options = drawn(seed);
        let mut trace = Trace::recording();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run::run(&options, &mut trace)));
        println!("{options}\n{}", trace.story());
        match outcome {
            Ok(Ok(report)) => println!("{report:?}"),
            Ok(Err(violation)) => panic!("{violation:?}"),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        return;
    }
    let begun = std::time::Instant::now();
    let first = from_environment("FIRST").unwrap_or(1);
    let (reports, failures) = run::many(first..first + seeds, drawn);
    print_summary(&reports);
    println!("{seeds} seeds from {first} on took {:.1} s", begun.elapsed().as_secs_f64());
    if let Some(first) = failures.first() {
        match shrink::shrink(&drawn(first.seed), &first.checker) {
            Some(shrunk) => {
                println!("{} of {} faults are enough: {:?}", shrunk.faults.len(), shrunk.before, shrunk.faults);
                let told = run::replayed(&shrunk.options).expect_err("it was seen to fail");
                println!("{}", told.text);
            }
            None => println!("{}", first.text),
        }
        let list: Vec<String> =
            failures.iter().map(|f| format!("seed {}, {}: {}", f.seed, f.checker, f.what)).collect();
        panic!("{} of {seeds} seeds failed (the first one's story is above):\n{}", failures.len(), list.join("\n"));
    }
}

#[test]
fn under_faults_nothing_unsafe_happens_and_a_healed_group_agrees() {
    let profile: fn(u64) -> Options = match std::env::var("PROFILE").as_deref() {
        Err(_) => Options::of_seed,
        Ok("drawn") => Options::drawn,
        Ok("contested") => Options::contested,
        Ok("exercise") => Options::exercise,
        Ok("operators") => Options::operators,
        Ok("replacements") => Options::replacements,
        Ok("worlds") => Options::worlds,
        Ok("rush") => Options::rush,
        Ok("shared") => Options::shared,
        Ok("wires") => Options::wires,
        Ok("lines") => Options::lines,
        Ok("backlogs") => Options::backlogs,
        Ok("divided") => Options::divided,
        Ok(other) => panic!("there is no profile {other:?}"),
    };
    run_seeds(from_environment("SEEDS").unwrap_or(DEFAULT_SEEDS), profile);
}

/// A part of the seeds, unless somebody wants those of another kind.
fn run_share(one_of: u64, profile: fn(u64) -> Options) {
    if std::env::var("PROFILE").is_err() && std::env::var("SEED").is_err() {
        run_seeds(from_environment("SEEDS").unwrap_or(DEFAULT_SEEDS).div_ceil(one_of), profile);
    }
}

#[test]
fn no_master_costs_another_anything() {
    run_share(3, Options::worlds);
}

#[test]
fn nobody_is_held_down_because_a_dial_waited_in_a_line_of_ours() {
    run_share(10, Options::lines);
}

#[test]
fn nobody_is_held_down_because_its_answer_waits_to_be_read() {
    run_share(10, Options::backlogs);
}

#[test]
fn masters_that_die_together_are_replaced_as_soon_as_one_alone() {
    run_share(10, Options::rush);
}

#[test]
fn whoever_is_failed_over_by_force_where_no_majority_can_be_asked_has_an_epoch_of_its_own() {
    run_share(10, Options::divided);
}

fn print_summary(reports: &[Report]) {
    let sum = |field: fn(&Report) -> u64| reports.iter().map(field).sum::<u64>();
    let mut converged: Vec<u64> = reports.iter().map(|report| report.converged_after).collect();
    converged.sort_unstable();
    println!(
        "{} clean seeds: {} steps, {} lines, {} requests, {} faults, {} promotions, {} excused; \
         agreement after healing: median {} ms, worst {} ms",
        reports.len(),
        sum(|r| r.steps),
        sum(|r| r.lines),
        sum(|r| r.requests),
        sum(|r| r.faults),
        sum(|r| r.failovers),
        sum(|r| r.excused),
        converged.get(converged.len() / 2).unwrap_or(&0),
        converged.last().unwrap_or(&0),
    );
    let mut waits: Vec<u64> = reports.iter().flat_map(|report| report.waits.iter().copied()).collect();
    waits.sort_unstable();
    if let (Some(median), Some(worst)) = (waits.get(waits.len() / 2), waits.last()) {
        let masters = waits.len();
        println!("{masters} masters died together: a new one {median} ms beyond down-after (median), {worst} at worst");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in [1, 2, 3] {
        // Whether it ends well is another test's business.
        let hash = |trace: &mut Trace| {
            let report = run::run(&Options::drawn(seed), trace).ok();
            if let Some(report) = report {
                assert_eq!(report.trace_hash, trace.hash());
            }
            (trace.hash(), trace.lines())
        };
        let (silent, lines) = hash(&mut Trace::silent());
        let recorded = hash(&mut Trace::recording());
        assert_eq!((silent, lines), recorded, "seed {seed}");
        assert!(lines > 1_000, "seed {seed} tells something");
        println!("seed {seed}: trace {silent:016x}, {lines} lines");
    }
}

/// The other half of the test below: prints traces when it is told to.
#[test]
fn traces_are_told_to_another_process() {
    for seed in std::env::var("TRACES").unwrap_or_default().split_whitespace() {
        let seed = seed.parse().expect("a seed");
        println!("traces {seed} {:016x} {:016x}", trace_of(Options::of_seed(seed)), trace_of(Options::worlds(seed)));
    }
}

fn trace_of(options: Options) -> u64 {
    let mut trace = Trace::silent();
    let _ = run::run(&options, &mut trace);
    trace.hash()
}

/// What is another in every process (addresses, the order in hash tables, chance) has no part in it.
#[test]
fn the_same_seed_gives_the_same_trace_in_another_process() {
    let seeds = [4, 5, 6, 7];
    let itself = std::env::current_exe().expect("this program");
    let other = std::process::Command::new(itself)
        .args(["--exact", "traces_are_told_to_another_process", "--nocapture"])
        .env("TRACES", seeds.map(|seed| seed.to_string()).join(" "))
        .output()
        .expect("the other process");
    assert!(other.status.success(), "{other:?}");
    let told = String::from_utf8_lossy(&other.stdout);
    for seed in seeds {
        let here = (trace_of(Options::of_seed(seed)), trace_of(Options::worlds(seed)));
        let line = format!("traces {seed} {:016x} {:016x}", here.0, here.1);
        assert!(told.lines().any(|told| told.ends_with(&line)), "{line} is not in:\n{told}");
    }
}

/// A disk that fails and a master that dies are the two things that this mistake needs.
#[test]
fn a_failing_run_is_shrunk_to_the_faults_that_it_needs() {
    let options = |seed| Options { planted: Some(Planted::Core(Plant::StartWhileSavesFail)), ..Options::of_seed(seed) };
    let (seed, checker) = run::first_finding(FINDING_SEEDS, options).expect("another test shows that it is found");
    let shrunk = shrink::shrink(&options(seed), &checker).expect("it fails");
    println!("seed {seed}: {} of {} faults: {:?}", shrunk.faults.len(), shrunk.before, shrunk.faults);
    assert!(shrunk.before > 3 && shrunk.faults.len() < shrunk.before, "{shrunk:?}");
    let fails = |only: &[u64]| {
        let options = Options { only: Some(only.to_vec()), ..options(seed) };
        run::failure(&options, &mut Trace::silent()).is_some_and(|(name, _)| name == checker)
    };
    assert!(fails(&shrunk.faults), "{shrunk:?}");
    for left_out in &shrunk.faults {
        let fewer: Vec<u64> = shrunk.faults.iter().copied().filter(|fault| fault != left_out).collect();
        assert!(!fails(&fewer), "{left_out} is not needed: {shrunk:?}");
    }
}

/// The one who leads a failover dies, at each step of it. How long until there is a master again that all name?
#[test]
fn a_failover_whose_leader_dies_is_made_again_within_seconds() {
    let rows = run::on_all_cores(retry::STEPS.len(), |row| retry::row(retry::STEPS[row]));
    println!("{:<36} {:>12} {:>12} {:>14}", "the leader dies with", "median, ms", "worst, ms", "own timers, ms");
    let mut slow = Vec::new();
    for (step, row) in retry::STEPS.iter().zip(rows) {
        let row = row.unwrap_or_else(|violation| panic!("{step}: {violation:?}"));
        println!("{step:<36} {:>12} {:>12} {:>14}", row.median, row.worst, row.own_timers);
        if row.worst > retry::LIMIT_MS {
            slow.push(format!("{step}: {} ms", row.worst));
        }
    }
    println!("own timers: what redis's rule, 2 x failover-timeout ({} ms), makes of it", 2 * retry::FAILOVER_TIMEOUT);
    assert!(slow.is_empty(), "more than {} ms: {}", retry::LIMIT_MS, slow.join(", "));
}

#[test]
fn another_seed_gives_another_trace() {
    let hash = |seed| {
        let mut trace = Trace::silent();
        let _ = run::run(&Options::drawn(seed), &mut trace);
        trace.hash()
    };
    assert_ne!(hash(1), hash(2));
}

#[test]
fn a_healthy_group_stays_quiet() {
    for sentinels in [3, 5] {
        let options = Options { safety_ms: 30_000, ..Options::calm(1, sentinels) };
        let mut trace = Trace::recording();
        let report = run::run(&options, &mut trace).unwrap_or_else(|v| panic!("{v:?}\n{}", trace.story()));
        assert_eq!(report.failovers, 0, "{}", trace.story());
        assert!(!trace.story().contains("down"), "{}", trace.story());
    }
}

/// One deliberate mistake, the runs in which it is looked for, who looks away, and who must see it.
type Row = (Planted, fn(u64) -> Options, &'static [&'static str], &'static str);

/// Where a leader has no majority a second one may stand up before it is counted.
const ALSO: &[(&str, &str)] = &[("majority-behind-leader", "one-leader")];

/// Every rule that can be broken on purpose. Some are there twice: what the first line of defence sees, the next one would
/// see as well.
const PLANTED: &[Row] = &[
    (Planted::Core(Plant::VoteTwice), Options::of_seed, &[], "one-vote"),
    (Planted::Core(Plant::LeaderWithoutMajority), Options::of_seed, &[], "majority-behind-leader"),
    (Planted::Core(Plant::LeaderWithoutMajority), Options::of_seed, &["majority-behind-leader"], "one-leader"),
    (
        Planted::Core(Plant::LeaderWithoutMajority),
        Options::of_seed,
        &["majority-behind-leader", "one-leader", "one-vote"],
        "one-address",
    ),
    (Planted::Core(Plant::CountOldVotes), Options::of_seed, &[], "majority-behind-leader"),
    (Planted::Core(Plant::MajorityOfTheLiving), Options::of_seed, &[], "majority-behind-leader"),
    (Planted::Core(Plant::KeepRemovedPeersVote), Options::replacements, &[], "majority-behind-leader"),
    (Planted::Core(Plant::IgnoreRank), Options::of_seed, &[], "one-attempt"),
    (Planted::Core(Plant::ForceWithoutOwnEpoch), Options::of_seed, &[], "one-leader"),
    (Planted::Core(Plant::ForceAmongOthers), Options::divided, &[], "one-leader"),
    (Planted::Core(Plant::ForceAmongOthers), Options::divided, &["one-leader"], "one-address"),
    (Planted::Core(Plant::SameAddressInMemory), Options::of_seed, &[], "saved-first"),
    (Planted::Core(Plant::AcceptOlderConfig), Options::of_seed, &[], "epochs-forward"),
    (Planted::Core(Plant::FailoverInTilt), Options::of_seed, &[], "none-in-tilt"),
    (Planted::Core(Plant::FailoverWithoutQuorum), Options::of_seed, &[], "quorum-behind-failover"),
    (Planted::Core(Plant::DeafToMasters), Options::of_seed, &[], "down-for-a-cause"),
    (Planted::Core(Plant::DeafToMasters), Options::of_seed, &["down-for-a-cause"], "no-needless-demotion"),
    (Planted::Core(Plant::StartWhileSavesFail), Options::of_seed, &[], "saved-first"),
    (Planted::Core(Plant::PromotePriorityZero), Options::of_seed, &[], "fit-to-promote"),
    (Planted::Core(Plant::FollowYourself), Options::of_seed, &[], "no-self-replication"),
    (Planted::Core(Plant::ForgetToHangUp), Options::of_seed, &[], "one-link"),
    (Planted::Core(Plant::AskAllTheTime), Options::of_seed, &[], "bounded-messages"),
    (Planted::Shell(ShellPlant::AnswerBeforeSaving), Options::of_seed, &[], "saved-first"),
    (
        Planted::Shell(ShellPlant::AnswerBeforeSaving),
        Options::contested,
        &["saved-first", "epochs-forward", "one-leader", "one-address", "majority-behind-leader"],
        "one-vote",
    ),
    (Planted::Shell(ShellPlant::CallEverythingRefused), Options::of_seed, &[], "down-for-a-cause"),
    (Planted::Shell(ShellPlant::ForgetEpochsOnRestart), Options::of_seed, &[], "epochs-forward"),
    (Planted::Disk(DiskPlant::OldFileAfterCrash), Options::of_seed, &[], "epochs-forward"),
    (Planted::Disk(DiskPlant::TornFile), Options::of_seed, &[], "loads-again"),
    (Planted::StubbornServers, Options::of_seed, &[], "convergence"),
    // What only several masters show.
    (Planted::Core(Plant::VotePerSentinel), Options::rush, &[], "saved-first"),
    (Planted::Core(Plant::ConfigToFirst), Options::shared, &[], "others-untouched"),
    (Planted::Core(Plant::ConfigToFirst), Options::shared, &["others-untouched"], "one-link"),
    (Planted::Core(Plant::HangUpOnSharers), Options::shared, &[], "others-untouched"),
    (Planted::Core(Plant::ResetAll), Options::shared, &[], "others-untouched"),
    (Planted::Core(Plant::KeepSilentLinks), Options::wires, &[], "convergence"),
    (Planted::Core(Plant::BlameForOwnLine), Options::lines, &[], "down-for-a-cause"),
    (Planted::Core(Plant::BlameForBacklog), Options::backlogs, &[], "down-for-a-cause"),
    (Planted::Core(Plant::WaitPerSentinel), Options::rush, &[], "waits-for-no-other"),
];

#[test]
fn every_planted_fault_is_found_by_the_checker_that_is_there_for_it() {
    let found = run::on_all_cores(PLANTED.len(), |row| {
        let (planted, drawn, muted, _) = PLANTED[row];
        let muted: Vec<String> = muted.iter().map(ToString::to_string).collect();
        run::first_finding(FINDING_SEEDS, |seed| Options {
            planted: Some(planted),
            muted: muted.clone(),
            ..drawn(seed)
        })
    });
    println!("{:<32} {:<24} {:>5}  looking away", "planted", "found by", "seeds");
    let mut wrong = Vec::new();
    for ((planted, _, muted, by), found) in PLANTED.iter().zip(&found) {
        let (seeds, checker) = found.as_ref().map_or((FINDING_SEEDS, "nobody"), |(seed, who)| (*seed, who));
        let planted = planted.to_string();
        println!("{planted:<32} {checker:<24} {seeds:>5}  {}", muted.join(" "));
        if checker != *by && !ALSO.contains(&(by, checker)) {
            wrong.push(format!("{planted} was found by {checker} within {seeds} seeds, not by {by}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let sharp = |name: &str| PLANTED.iter().any(|(.., by)| *by == name);
    let blunt: Vec<&str> = facts::NAMES.into_iter().filter(|name| !sharp(name)).collect();
    assert!(blunt.is_empty(), "no planted fault shows what these are good for: {blunt:?}");
}

/// A report, not a limit: the bench of the real program sets the limits. What must hold is the order of events.
#[test]
fn r57_a_master_that_hands_over_is_at_no_time_down() {
    for sentinels in [1, 3, 5] {
        let mut took = Vec::new();
        for seed in 1..=21 {
            let lap = stopwatch::failover(Options::calm(seed, sentinels), Fate::HandsOver)
                .unwrap_or_else(|v| panic!("{seed}: {v:?}"));
            assert_ne!(lap.before, lap.after, "seed {seed}");
            let of = |channel: &str| lap.events.iter().filter(|event| event.channel == channel).count();
            assert_eq!(of("+switch-master"), sentinels, "seed {seed}: {:?}", lap.events);
            assert_eq!((of("+elected-leader"), of("+failover-end")), (1, 1), "seed {seed}: {:?}", lap.events);
            let bad = |channel: &str| channel.contains("down") || channel.contains("abort") || channel.contains("fix");
            assert!(!lap.events.iter().any(|event| bad(event.channel)), "seed {seed}: {:?}", lap.events);
            took.push(lap.took);
        }
        took.sort_unstable();
        let (least, median, most) = (took[0], took[took.len() / 2], took[took.len() - 1]);
        println!("{sentinels} Sentinels, 1 ms links: handed over after {median} ms (median), {least} to {most} ms");
    }
}

#[test]
fn the_death_of_a_master_is_answered_in_order() {
    for sentinels in [3, 5] {
        let (mut laps, mut all) = (Vec::new(), Vec::new());
        for seed in 1..=21 {
            let options = Options::calm(seed, sentinels);
            let lap = stopwatch::failover(options, Fate::Dies).unwrap_or_else(|v| panic!("seed {seed}: {v:?}"));
            assert_ne!(lap.before, lap.after, "seed {seed}");
            assert_order(&lap, sentinels, seed);
            laps.push(lap.beyond_down_after);
            all.push(lap);
        }
        laps.sort_unstable();
        println!(
            "{sentinels} Sentinels, 1 ms links: agreement {} ms (median), {} to {} ms beyond down-after",
            laps[laps.len() / 2],
            laps[0],
            laps[laps.len() - 1]
        );
        println!("  first said after (ms from the death, median):{}", timeline(&all));
    }
}

/// Down-after is what it is by default, and a refused connection counts after 200 ms.
fn refusing(seed: u64) -> Options {
    Options { down_after: 30_000, down_after_refused: 200, ..Options::calm(seed, 3) }
}

#[test]
fn a_master_that_refuses_connections_is_replaced_long_before_down_after() {
    let mut laps = Vec::new();
    for seed in 1..=21 {
        let lap = stopwatch::failover(refusing(seed), Fate::Dies).unwrap_or_else(|v| panic!("seed {seed}: {v:?}"));
        assert_order(&lap, 3, seed);
        laps.push(lap.took);
    }
    laps.sort_unstable();
    println!("down-after-refused 200: agreement {} ms after the death (median), {:?}", laps[laps.len() / 2], laps);
    assert!(*laps.last().expect("laps") <= 230, "{laps:?}");
}

/// Nobody is held down while down-after lasts.
fn is_not_refused(fault: fn(&mut World)) {
    for seed in 1..=5 {
        let events = stopwatch::aftermath(refusing(seed), fault, 28_000).expect("nothing unsafe");
        let down: Vec<_> = events.iter().filter(|heard| heard.channel == "+sdown").collect();
        assert!(down.is_empty(), "seed {seed}: {down:?}");
    }
}

#[test]
fn a_master_that_hangs_is_not_held_to_be_refused() {
    is_not_refused(|world| world.hang_server(0));
}

#[test]
fn a_master_whose_machine_is_lost_is_not_held_to_be_refused() {
    is_not_refused(|world| world.lose_server(0));
}

fn timeline(laps: &[stopwatch::Lap]) -> String {
    let mut text = String::new();
    for channel in ["+sdown", "+odown", "+elected-leader", "+promoted-slave", "+switch-master", "+failover-end"] {
        let first = |lap: &stopwatch::Lap| {
            lap.events.iter().find(|heard| heard.channel == channel).map(|heard| heard.at.since(lap.died))
        };
        let mut times: Vec<u64> = laps.iter().filter_map(first).collect();
        times.sort_unstable();
        if let Some(median) = times.get(times.len() / 2) {
            text.push_str(&format!(" {channel} {median}"));
        }
    }
    text
}

fn assert_order(lap: &stopwatch::Lap, sentinels: usize, seed: u64) {
    let find = |channel: &str| lap.events.iter().find(|heard| heard.channel == channel);
    let leader = find("+elected-leader").unwrap_or_else(|| panic!("seed {seed}: nobody was elected")).who;
    let steps = ["+sdown", "+odown", "+try-failover", "+elected-leader", "+selected-slave", "+promoted-slave"];
    let mut last = None;
    for step in steps {
        let position = lap.events.iter().position(|heard| heard.who == leader && heard.channel == step);
        assert!(position.is_some(), "seed {seed}: the leader never said {step}");
        assert!(position > last, "seed {seed}: {step} came out of order");
        last = position;
    }
    let elected = lap.events.iter().filter(|heard| heard.channel == "+elected-leader").count();
    assert_eq!(elected, 1, "seed {seed}: one election is enough");
    let switched = lap.events.iter().filter(|heard| heard.channel == "+switch-master");
    let switched: Vec<_> = switched.filter(|heard| heard.payload.ends_with(&lap.after.replace(':', " "))).collect();
    let mut who: Vec<usize> = switched.iter().map(|heard| heard.who).collect();
    who.sort_unstable();
    assert_eq!(who, (0..sentinels).collect::<Vec<_>>(), "seed {seed}: +switch-master once from each");
}
