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
use std::collections::BTreeMap;
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
    let mut trace = Trace::silent();
    let mut world = quiet(seed, SENTINELS, weather, &mut trace);
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

/// A quiet group under this weather, somewhere in the periods of ping, hello and cron.
fn quiet<'t>(seed: u64, sentinels: usize, weather: Weather, trace: &'t mut Trace) -> World<'t> {
    let options = Options { save_ms: weather.save_ms, ..Options::calm(seed, sentinels) };
    let mut world = World::new(options, trace);
    let mut random = Random::seeded(seed);
    for a in (0..sentinels).map(Node::Sentinel) {
        for b in (0..sentinels).map(Node::Sentinel).filter(|&b| b != a) {
            world.net.slow.insert((a, b), between(&mut random, weather.ways));
        }
    }
    warm_up(&mut world).unwrap_or_else(|violation| panic!("seed {seed}: {violation:?}"));
    world.run_until(world.now + seed * 37 % 2_000).expect("nothing unsafe");
    world
}

/// `SENTINEL FAILOVER` at one Sentinel, and at another so many ms later. Ends when all name one other master.
fn by_order(seed: u64, sentinels: usize, weather: Weather, second: Option<u64>) -> Lap {
    let mut trace = Trace::silent();
    let mut world = quiet(seed, sentinels, weather, &mut trace);
    let (ordered, first) = (world.now, world.events.len());
    let before = Node::Server(0).ip().to_string();
    // Every address that a Sentinel holds with its config epoch, looked for in every millisecond.
    let mut addresses: BTreeMap<u64, String> = BTreeMap::new();
    let mut go_on = |world: &mut World, until: Millis| {
        while world.now < until {
            world.run_until(world.now + 1).unwrap_or_else(|violation| panic!("seed {seed}: {violation:?}"));
            for (who, sentinel) in world.living() {
                let master = sentinel.master_by_name(GROUP.as_bytes()).expect("everybody knows the group");
                let address = sentinel.current_addr(master).to_string();
                let known = addresses.entry(master.config_epoch).or_insert_with(|| address.clone());
                assert_eq!(*known, address, "seed {seed}, s{}: config epoch {}", who + 1, master.config_epoch);
            }
        }
    };
    let who = usize::try_from(seed % sentinels as u64).expect("an index");
    world.force(who, 0, false).expect("nothing unsafe");
    if let Some(later) = second {
        go_on(&mut world, ordered + later);
        world.force((who + 1) % sentinels, 0, false).expect("nothing unsafe");
    }
    while !moved(&world, &before) {
        assert!(world.now < ordered + 60_000, "seed {seed}: no agreement within a minute");
        let next = world.now + 1;
        go_on(&mut world, next);
    }
    let took = world.now.since(ordered);
    let settled = world.now + 500;
    go_on(&mut world, settled);
    let limit = settled + world.options.convergence_ms();
    while let Err(what) = world.at_rest() {
        assert!(world.now < limit, "seed {seed}: {what}");
        world.run_until(world.now + 500).unwrap_or_else(|violation| panic!("seed {seed}: {violation:?}"));
    }
    Lap { seed, took, events: world.events[first..].to_vec() }
}

fn moved(world: &World, from: &str) -> bool {
    world.living().iter().all(|(_, sentinel)| {
        let master = sentinel.master_by_name(GROUP.as_bytes()).expect("everybody knows the group");
        *sentinel.current_addr(master).host != *from
    })
}

/// Many of them, on all cores, in the order of their seeds.
fn many(lap: impl Fn(u64) -> Lap + Sync) -> Vec<Lap> {
    let seeds = std::env::var("SEEDS").map_or(DEFAULT_SEEDS, |text| text.parse().expect("SEEDS is a number"));
    let (next, laps) = (AtomicU64::new(1), Mutex::new(Vec::new()));
    let worker = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > seeds {
                return;
            }
            let lap = lap(seed);
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
    let laps = many(|seed| one_death(seed, weather, None));
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
        let laps = many(|seed| one_death(seed, weather, usize::try_from(seed % SENTINELS as u64).ok()));
        let unclean = unclean(what, &laps);
        assert!(unclean.len() * 20 <= laps.len(), "{what}: seeds {unclean:?}");
        let slowest = laps.iter().map(|lap| lap.took).max().expect("some");
        assert!(weather.save_ms.1 + weather.ways.1 > 0 || slowest <= 20, "{what}: one took {slowest} ms");
    }
}

#[test]
fn an_operators_failover_waits_for_nothing_but_answers() {
    let weathers = [CALM, FAST_DISKS, SLOW_DISKS, SLOW_LINKS];
    let of = |seed: u64| weathers[usize::try_from(seed).expect("a small number") % weathers.len()];
    for sentinels in [1, 3, 5] {
        let laps = many(|seed| by_order(seed, sentinels, of(seed), None));
        let unclean = unclean(&format!("by order, {sentinels} Sentinels"), &laps);
        assert!(unclean.is_empty(), "seeds {unclean:?}");
        for lap in laps {
            // Nobody can be quicker: the leader saves its epoch and asks, a peer saves its vote and answers, the replica is
            // told and says that it is a master, the leader saves that and tells it, a peer saves what it hears.
            let weather = of(lap.seed);
            let longest = 4 * weather.save_ms.1 + 3 * (weather.ways.1 + 1) + 2;
            assert!(lap.took <= longest, "seed {}: {} ms, longer than {longest}", lap.seed, lap.took);
        }
    }
}

#[test]
fn two_operators_at_once_never_share_an_epoch() {
    let weathers = [CALM, FAST_DISKS, SLOW_DISKS, SICK_DISKS, SLOW_LINKS, SLOW_EVERYTHING];
    for sentinels in [3, 5] {
        let laps = many(|seed| {
            let weather = weathers[usize::try_from(seed).expect("a small number") % weathers.len()];
            by_order(seed, sentinels, weather, Some(seed * 7 % 60))
        });
        unclean(&format!("two operators, {sentinels} Sentinels"), &laps);
    }
}
