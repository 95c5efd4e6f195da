//! One seed from beginning to end, and many seeds on all cores.

use super::check_messages;
use super::facts::Violation;
use super::options::Options;
use super::rush;
use super::stopwatch;
use super::trace::Trace;
use super::world::{Outcomes, World};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use watchfire::base::Millis;

/// What a clean run amounts to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub trace_hash: u64,
    pub lines: u64,
    pub steps: u64,
    pub faults: u64,
    /// +switch-master seen from the first Sentinel of each.
    pub failovers: u64,
    pub requests: u64,
    pub excused: u64,
    /// From healing to agreement, ms.
    pub converged_after: u64,
    /// Of masters that died together with others: how long they had no successor, beyond their down-after, ms.
    pub waits: Vec<u64>,
}

/// A seed that failed, with all that is needed to see why.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    /// The name of the checker, or `panic`.
    pub checker: String,
    /// What is wrong, in one line.
    pub what: String,
    /// The whole story.
    pub text: String,
}

/// How often the master dies in a drill; how long the group is watched afterwards; how long the dead one has to come back.
const LAPS: u64 = 3;
const SETTLE_MS: u64 = 3_000;
const RETURN_MS: u64 = 15_000;

/// How long the group must stay at rest to be believed, ms, and how often it is looked at.
const REST_MS: u64 = 3_000;
const LOOK_MS: u64 = 100;

/// Runs the world of these options through its phases.
pub fn run(options: &Options, trace: &mut Trace) -> Result<Report, Violation> {
    let mut world = World::new(options.clone(), trace);
    let outcome = phases(&mut world);
    let converged_after = outcome?;
    let failovers = world.events.iter().filter(|heard| heard.channel == "+promoted-slave").count() as u64;
    let (steps, faults, requests, excused) = (world.step, world.nemesis.begun, world.requests, world.excused());
    let waits = std::mem::take(&mut world.waits);
    let (trace_hash, lines) = (trace.hash(), trace.lines());
    Ok(Report { waits, trace_hash, lines, steps, faults, failovers, requests, excused, converged_after })
}

fn phases(world: &mut World) -> Result<u64, Violation> {
    warm_up(world)?;
    if world.options.drill && world.options.groups.len() > 1 {
        rush::rush(world)?;
    } else if world.options.drill {
        drill(world)?;
    } else {
        world.unleash();
        world.run_until(world.now + world.options.safety_ms)?;
    }
    world.heal()?;
    let healed = world.now;
    let limit = healed + world.options.convergence_ms();
    let mut since: Option<Millis> = None;
    loop {
        world.run_until(world.now + LOOK_MS)?;
        match world.at_rest() {
            Ok(()) => {
                let since = *since.get_or_insert(world.now);
                if world.now.since(since) >= REST_MS {
                    return Ok(since.since(healed));
                }
            }
            Err(what) => {
                since = None;
                if world.now > limit {
                    let after = world.now.since(healed);
                    return Err(world.violation("convergence", format!("{after} ms after healing: {what}")));
                }
            }
        }
    }
}

/// The master dies three times, with everything else in order: each time one attempt, and few messages, are enough.
fn drill(world: &mut World) -> Outcomes {
    for lap in 0..LAPS {
        world.run_until(world.now + 1_000 + world.options.seed * 37 % 2_000)?;
        let (first, requests) = (world.events.len(), world.requests);
        let before = stopwatch::agreed(world).ok_or_else(|| world.violation("convergence", "nobody agrees".into()))?;
        let master = world
            .servers
            .iter()
            .position(|server| format!("{}:{}", server.node().ip(), server.node().port()) == before);
        let master = master.expect("a server of this world");
        let limit = world.now + world.options.down_after + 30_000;
        world.kill_server(master);
        while stopwatch::agreed(world).is_none_or(|address| address == before) {
            world.run_until(world.now + 1)?;
            if world.now > limit {
                return Err(world.violation("convergence", format!("no new master in lap {lap}")));
            }
        }
        world.run_until(world.now + SETTLE_MS)?;
        let attempts = world.events[first..].iter().filter(|heard| heard.channel == "+try-failover").count();
        let one =
            if attempts == 1 { Ok(()) } else { Err(format!("{attempts} attempts to replace a master that died")) };
        world.judged("one-attempt", one)?;
        let sent = world.requests - requests;
        let few = check_messages::bound(&world.options);
        let bounded =
            if sent <= few { Ok(()) } else { Err(format!("{sent} requests for one failover, more than {few}")) };
        world.judged("bounded-messages", bounded)?;
        world.server_back(master)?;
        world.run_until(world.now + RETURN_MS)?;
    }
    Ok(())
}

/// The quiet start: everybody finds everybody, and nothing else happens.
pub fn warm_up(world: &mut World) -> Outcomes {
    world.run_until(Millis(world.options.warmup_ms))?;
    if let Err(what) = world.all_met().and_then(|()| world.at_rest()) {
        return Err(world.violation("warm-up", what));
    }
    Ok(())
}

/// Runs one seed; when it fails, once more to tell its story.
pub fn replayed(options: &Options) -> Result<Report, Failure> {
    let mut silent = Trace::silent();
    let Err((checker, _)) = caught(options, &mut silent).map_err(described) else {
        return Ok(caught(options, &mut Trace::silent()).map_err(described).expect("it went well a moment ago"));
    };
    let mut trace = Trace::recording();
    let told = caught(options, &mut trace).map_err(described);
    let what = match told {
        Err((_, what)) => what,
        Ok(_) => "the second run went well: the simulation is not deterministic".into(),
    };
    let only = options.only.as_ref().map_or(String::new(), |only| {
        let numbers: Vec<String> = only.iter().map(u64::to_string).collect();
        format!("ONLY={} ", numbers.join(","))
    });
    let (seed, profile) = (options.seed, options.profile.map_or(String::new(), |name| format!("PROFILE={name} ")));
    let text =
        format!("{options}\n{}\n{what}\nreplay: {profile}{only}SEED={seed} cargo test --test sim\n", trace.story());
    Err(Failure { seed: options.seed, checker, what, text })
}

/// The checker that sees something, and what.
pub fn failure(options: &Options, trace: &mut Trace) -> Option<(String, String)> {
    caught(options, trace).err().map(described)
}

type Caught = Result<Report, Result<Violation, String>>;

fn caught(options: &Options, trace: &mut Trace) -> Caught {
    match catch_unwind(AssertUnwindSafe(|| run(options, trace))) {
        Ok(outcome) => outcome.map_err(Ok),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(Err(text.unwrap_or_else(|| "a panic without words".into())))
        }
    }
}

/// The name of what failed, and the sentence.
fn described(failed: Result<Violation, String>) -> (String, String) {
    match failed {
        Ok(violation) => {
            let Violation { checker, at, step, what } = violation;
            (checker.into(), format!("VIOLATION of {checker} at {} ms, step {step}: {what}", at.0))
        }
        Err(panic) => ("panic".into(), format!("PANIC: {panic}")),
    }
}

/// Runs many seeds on all cores; gives the reports, and the failures by seed.
pub fn many(seeds: impl Iterator<Item = u64>, options: impl Fn(u64) -> Options + Sync) -> (Vec<Report>, Vec<Failure>) {
    let seeds: Vec<u64> = seeds.collect();
    let (mut reports, mut failures) = (Vec::new(), Vec::new());
    for outcome in on_all_cores(seeds.len(), |turn| replayed(&options(seeds[turn]))) {
        match outcome {
            Ok(report) => reports.push(report),
            Err(failure) => failures.push(failure),
        }
    }
    (reports, failures)
}

/// Does this for each of `0..count` on all cores; gives the outcomes in that order.
pub fn on_all_cores<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(BTreeMap::new());
    let worker = || {
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn >= count {
                return;
            }
            let outcome = work(turn);
            outcomes.lock().expect("no worker panics while it holds the lock").insert(turn, outcome);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(worker);
        }
    });
    outcomes.into_inner().expect("all workers are done").into_values().collect()
}

/// The first seed of `1..=limit` in which a planted fault is seen, and the checker that saw it.
pub fn first_finding(limit: u64, options: impl Fn(u64) -> Options) -> Option<(u64, String)> {
    (1..=limit).find_map(|seed| {
        let failed = caught(&options(seed), &mut Trace::silent()).err()?;
        Some((seed, described(failed).0))
    })
}
