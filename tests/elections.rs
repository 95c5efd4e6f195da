//! Elections in fair and foul weather, by the hundred, in the world of the simulation (`sim.rs`).
//!
//! Nothing here is unsafe when it goes wrong: a split vote is repeated. What is at stake is time, and whether the slot that
//! candidates leave each other (`core/slot.rs`) is long enough where disks and links are slow.
//!
//! `SEEDS=200 cargo test --test elections` runs so many elections in each weather, instead of 50.

#[path = "sim/mod.rs"]
#[allow(dead_code, reason = "of the simulation, each test uses a part")]
mod simulation;

use simulation::node::{GROUP, Node};
use simulation::options::{Options, between};
use simulation::process::CrashPlan;
use simulation::run::warm_up;
use simulation::trace::Trace;
use simulation::world::{Event, Heard, World};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use watchfire::base::{Millis, Random};

const SENTINELS: usize = 5;
const DEFAULT_SEEDS: u64 = 50;

/// What is slow, ms: the least and the most of one save, and of what a message between two Sentinels takes on top of 1 ms.
#[derive(Clone, Copy, Debug)]
struct Weather {
    save_ms: (u64, u64),
    ways: (u64, u64),
}

const CALM: Weather = Weather { save_ms: (0, 0), ways: (0, 0) };
const FAST_DISKS: Weather = Weather { save_ms: (0, 12), ways: (0, 0) };
const SLOW_DISKS: Weather = Weather { save_ms: (20, 80), ways: (0, 0) };
const SICK_DISKS: Weather = Weather { save_ms: (60, 170), ways: (0, 0) };
const SLOW_LINKS: Weather = Weather { save_ms: (0, 0), ways: (5, 50) };
const SLOW_EVERYTHING: Weather = Weather { save_ms: (10, 60), ways: (5, 30) };

/// What became of one death.
#[derive(Debug)]
struct Lap {
    seed: u64,
    /// From the death to the moment in which all live Sentinels name the new master, beyond down-after, ms.
    took: u64,
    events: Vec<Heard>,
}

impl Lap {
    fn count(&self, channel: &str) -> usize {
        self.events.iter().filter(|heard| heard.channel == channel).count()
    }

    /// One candidate, elected at its first attempt.
    fn is_clean(&self) -> bool {
        self.count("+try-failover") == 1 && self.count("+elected-leader") == 1
    }
}

/// The master dies, and the Sentinel `beside` it as well.
fn one_death(seed: u64, weather: Weather, beside: Option<usize>) -> Lap {
    let options = Options { save_ms: weather.save_ms, ..Options::calm(seed, SENTINELS) };
    let mut trace = Trace::silent();
    let mut world = World::new(options, &mut trace);
    let mut random = Random::seeded(seed);
    for a in (0..SENTINELS).map(Node::Sentinel) {
        for b in (0..SENTINELS).map(Node::Sentinel).filter(|&b| b != a) {
            world.net.slow.insert((a, b), between(&mut random, weather.ways));
        }
    }
    warm_up(&mut world).unwrap_or_else(|violation| panic!("seed {seed}: {violation:?}"));
    // Anywhere in the periods of ping, hello and cron.
    world.run_until(world.now + seed * 37 % 2_000).expect("nothing unsafe");
    let (died, first) = (world.now, world.events.len());
    world.kill_server(0);
    if let Some(who) = beside {
        world.processes[who].plan = Some(CrashPlan { at_save: false, effects: 0 });
        let life = world.processes[who].life;
        world.queue.push(died, Event::Turn { who, life });
    }
    let before = Node::Server(0).ip().to_string();
    let limit = died + 60_000;
    while !moved(&world, &before) {
        assert!(world.now < limit, "seed {seed}: no agreement within a minute");
        world.run_until(world.now + 1).unwrap_or_else(|violation| panic!("seed {seed}: {violation:?}"));
    }
    let took = world.now.since(died).saturating_sub(world.options.down_after);
    world.run_until(world.now + 1_000).unwrap_or_else(|violation| panic!("seed {seed}: {violation:?}"));
    Lap { seed, took, events: world.events[first..].to_vec() }
}

fn moved(world: &World, from: &str) -> bool {
    world.living().iter().all(|(_, sentinel)| {
        let master = sentinel.master_by_name(GROUP.as_bytes()).expect("everybody knows the group");
        *sentinel.current_addr(master).host != *from
    })
}

/// Many deaths, on all cores, in the order of their seeds.
fn deaths(weather: Weather, beside: impl Fn(u64) -> Option<usize> + Sync) -> Vec<Lap> {
    let seeds = std::env::var("SEEDS").map_or(DEFAULT_SEEDS, |text| text.parse().expect("SEEDS is a number"));
    let (next, laps) = (AtomicU64::new(1), Mutex::new(Vec::new()));
    let worker = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > seeds {
                return;
            }
            let lap = one_death(seed, weather, beside(seed));
            laps.lock().expect("no worker panics while it holds the lock").push(lap);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(worker))));
    let mut laps = laps.into_inner().expect("all workers are done");
    laps.sort_by_key(|lap| lap.seed);
    laps
}

/// Says how it went, and gives the seeds in which more than one stood.
fn unclean(what: &str, laps: &[Lap]) -> Vec<u64> {
    let mut took: Vec<u64> = laps.iter().map(|lap| lap.took).collect();
    took.sort_unstable();
    let seeds: Vec<u64> = laps.iter().filter(|lap| !lap.is_clean()).map(|lap| lap.seed).collect();
    println!(
        "{what}: {} of {} elections with more than one candidate; agreed {} ms beyond down-after (median), {} to {}",
        seeds.len(),
        laps.len(),
        took[took.len() / 2],
        took[0],
        took[took.len() - 1]
    );
    seeds
}

fn nobody_collides(what: &str, weather: Weather) {
    let laps = deaths(weather, |_| None);
    for lap in &laps {
        let seen = |heard: &&Heard| heard.channel == "+sdown" && heard.payload.ends_with(" 10.0.1.1 6379");
        let at: Vec<Millis> = lap.events.iter().filter(seen).map(|heard| heard.at).collect();
        let (first, last) = (at.iter().min().expect("it was seen"), at.iter().max().expect("it was seen"));
        assert!(at.len() == SENTINELS && last.since(*first) <= 1, "seed {}: all see it within 1 ms: {at:?}", lap.seed);
    }
    let unclean = unclean(what, &laps);
    assert!(unclean.is_empty(), "{what}: seeds {unclean:?}");
}

#[test]
fn on_fast_disks_and_short_links_one_candidate_stands() {
    nobody_collides("calm", CALM);
    nobody_collides("fast disks", FAST_DISKS);
}

#[test]
fn on_slow_disks_one_candidate_stands() {
    nobody_collides("slow disks", SLOW_DISKS);
    nobody_collides("sick disks", SICK_DISKS);
}

#[test]
fn on_slow_links_one_candidate_stands() {
    nobody_collides("slow links", SLOW_LINKS);
    nobody_collides("slow links and disks", SLOW_EVERYTHING);
}

#[test]
fn with_a_sentinel_lost_beside_the_master_one_candidate_stands() {
    for (what, weather) in
        [("node lost", CALM), ("node lost, slow disks", SLOW_DISKS), ("node lost, slow links", SLOW_LINKS)]
    {
        let laps = deaths(weather, |seed| usize::try_from(seed % SENTINELS as u64).ok());
        let unclean = unclean(what, &laps);
        assert!(unclean.len() * 20 <= laps.len(), "{what}: seeds {unclean:?}");
    }
}
