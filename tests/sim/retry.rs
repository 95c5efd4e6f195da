//! A leader that dies in the middle of its failover: how long until the group has a master again.
//!
//! Once with our Sentinels and once with Sentinels that keep to timers of their own, as redis's do: there the next attempt
//! waits for 2 x failover-timeout.

use super::facts::Violation;
use super::options::Options;
use super::run::warm_up;
use super::server::{Role, State};
use super::stopwatch;
use super::trace::Trace;
use super::world::World;

/// What the leader says last.
pub const STEPS: [&str; 9] = [
    "+try-failover",
    "+elected-leader",
    "+failover-state-select-slave",
    "+selected-slave",
    "+failover-state-send-slaveof-noone",
    "+failover-state-wait-promotion",
    "+promoted-slave",
    "+switch-master",
    "+failover-end",
];

pub const FAILOVER_TIMEOUT: u64 = 30_000;
/// From the death of the leader. Whoever voted for it has to see that it is down (1 s) and to give it the election timeout,
/// 10 s after the vote.
pub const LIMIT_MS: u64 = 13_000;

const SEEDS: u64 = 9;
const OWN_TIMERS_SEEDS: u64 = 3;

pub struct Row {
    pub median: u64,
    pub worst: u64,
    /// The median with timers of their own.
    pub own_timers: u64,
}

/// Five Sentinels, three servers, links of 1 ms; the master dies, and then whoever says `step`.
pub fn row(step: &'static str) -> Result<Row, Violation> {
    let lap = |seed: u64, own_timers: usize| {
        lap(Options { own_timers, failover_timeout: FAILOVER_TIMEOUT, ..Options::calm(seed, 5) }, step)
    };
    let mut laps = (1..=SEEDS).map(|seed| lap(seed, 0)).collect::<Result<Vec<u64>, _>>()?;
    let mut own = (1..=OWN_TIMERS_SEEDS).map(|seed| lap(seed, 5)).collect::<Result<Vec<u64>, _>>()?;
    laps.sort_unstable();
    own.sort_unstable();
    Ok(Row { median: laps[laps.len() / 2], worst: laps[laps.len() - 1], own_timers: own[own.len() / 2] })
}

/// From the death of the leader to the moment in which all others name a living master, ms.
fn lap(options: Options, step: &'static str) -> Result<u64, Violation> {
    let mut trace = Trace::silent();
    let seed = options.seed;
    let patience = 4 * options.failover_timeout;
    let sentinels = options.sentinels;
    let mut world = World::new(options, &mut trace);
    warm_up(&mut world)?;
    world.run_until(world.now + seed * 37 % 2_000)?;
    world.kill_server(0);
    world.trap = Some(step);
    let limit = world.now + patience;
    let mut died = None;
    loop {
        world.run_until(world.now + 1)?;
        if died.is_none() && world.living().len() < sentinels {
            died = Some(world.now);
        }
        if let Some(died) = died
            && has_a_master(&world)
        {
            let took = world.now.since(died);
            let up = world.servers.iter().filter(|server| server.state == State::Up && server.role == Role::Master);
            if up.count() > 1 {
                return Err(world.violation("retry", "another replica than the one that was a master already".into()));
            }
            // Nothing unsafe comes of it afterwards, either.
            world.run_until(world.now + 10_000)?;
            return Ok(took);
        }
        if world.now > limit {
            return Err(world.violation("retry", format!("no master {patience} ms after the first died")));
        }
    }
}

/// All living Sentinels name one server, and it is a master.
fn has_a_master(world: &World) -> bool {
    let Some(named) = stopwatch::agreed(world) else { return false };
    let is_it = |server: &&super::server::Server| {
        let node = server.node();
        format!("{}:{}", node.ip(), node.port()) == named
    };
    world.servers.iter().find(is_it).is_some_and(|server| server.state == State::Up && server.role == Role::Master)
}
