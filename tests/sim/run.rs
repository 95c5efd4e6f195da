//! One seed from beginning to end, and many seeds on all cores.

use super::facts::Violation;
use super::options::Options;
use super::trace::Trace;
use super::world::{Outcomes, World};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
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
    let (trace_hash, lines) = (trace.hash(), trace.lines());
    Ok(Report { trace_hash, lines, steps, faults, failovers, requests, excused, converged_after })
}

fn phases(world: &mut World) -> Result<u64, Violation> {
    warm_up(world)?;
    world.unleash();
    world.run_until(world.now + world.options.safety_ms)?;
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
    let text = format!("{options}\n{}\n{what}\nreplay: SEED={} cargo test --test sim\n", trace.story(), options.seed);
    Err(Failure { seed: options.seed, checker, what, text })
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
    let next = AtomicU64::new(0);
    let results = Mutex::new((Vec::new(), Vec::new()));
    let worker = || {
        loop {
            let turn = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).expect("an index");
            let Some(&seed) = seeds.get(turn) else { return };
            let outcome = replayed(&options(seed));
            let mut results = results.lock().expect("no worker panics while it holds the lock");
            match outcome {
                Ok(report) => results.0.push(report),
                Err(failure) => results.1.push(failure),
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(worker);
        }
    });
    let (reports, mut failures) = results.into_inner().expect("all workers are done");
    failures.sort_by_key(|failure| failure.seed);
    (reports, failures)
}

/// The first seed of `1..=limit` in which a planted fault is seen, and the checker that saw it.
pub fn first_finding(limit: u64, options: impl Fn(u64) -> Options) -> Option<(u64, String)> {
    (1..=limit).find_map(|seed| {
        let failed = caught(&options(seed), &mut Trace::silent()).err()?;
        Some((seed, described(failed).0))
    })
}
