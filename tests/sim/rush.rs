//! Several masters die at once, or one while the failover of another is under way, or a whole machine with masters and a
//! Sentinel; everything else is in order. Votes are per master, but the epoch is one per Sentinel: elections that are held at
//! the same time must not spoil each other for long.

use super::facts::Violation;
use super::groups::Group;
use super::stopwatch;
use super::world::{Outcomes, World};
use std::collections::BTreeMap;
use watchfire::base::Millis;

/// What dies together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lap {
    /// All masters in one moment.
    AtOnce,
    /// All within a few moments.
    OneByOne,
    /// One, and the others while its failover is not over.
    Meanwhile,
    /// All, and one of the Sentinels with them.
    WithASentinel,
}

/// How long the group is watched after the last of them was replaced.
const SETTLE_MS: u64 = 1_000;
/// How long the dead have to come back.
const RETURN_MS: u64 = 10_000;
/// From the death of a master, beyond its down-after, to the moment in which all name the new one. Alone it takes some 10 ms; an
/// election that is spoilt by another and repeated has taken up to 110.
const LIMIT_MS: u64 = 300;

/// When each master died, and where it was.
type Dead<'a> = BTreeMap<&'a str, (Millis, String)>;

pub fn rush(world: &mut World) -> Outcomes {
    for lap in [Lap::AtOnce, Lap::OneByOne, Lap::Meanwhile, Lap::WithASentinel] {
        world.run_until(world.now + 1_000 + world.options.seed * 37 % 2_000)?;
        let first = world.events.len();
        let mut groups = world.options.groups.clone();
        let any = usize::try_from(world.options.seed).expect("a seed is no large number") % world.options.sentinels;
        let lost = (lap == Lap::WithASentinel).then_some(any);
        if let Some(lost) = lost {
            groups.iter_mut().for_each(|group| group.watchers.retain(|who| *who != lost));
            // The others cannot be without it.
            groups.retain(|group| {
                let all = world.options.named(group.name).map_or(0, |group| group.watchers.len());
                2 * group.watchers.len() > all && group.watchers.len() >= group.quorum as usize
            });
            world.crash(lost);
        }
        let slain = slay(world, lap, &groups)?;
        world.run_until(world.now + SETTLE_MS)?;
        for group in &groups {
            each_once(world, group, first)?;
        }
        if let Some(lost) = lost {
            world.start(lost)?;
        }
        for master in slain {
            world.server_back(master)?;
        }
        world.run_until(world.now + RETURN_MS)?;
    }
    Ok(())
}

/// Kills the masters and waits until all are replaced. Returns which servers they were.
fn slay(world: &mut World, lap: Lap, groups: &[Group]) -> Result<Vec<usize>, Violation> {
    let (mut dead, mut slain) = (Dead::new(), Vec::new());
    for (n, group) in groups.iter().enumerate() {
        let before = stopwatch::agreed_about(world, group);
        let before =
            before.ok_or_else(|| world.violation("convergence", format!("nobody agrees on {}", group.name)))?;
        let is_there = |index: &usize| {
            let node = world.servers[*index].node();
            format!("{}:{}", node.ip(), node.port()) == before
        };
        let master = group.servers.clone().find(is_there).expect("a server of this master");
        slain.push(master);
        world.kill_server(master);
        dead.insert(group.name, (world.now, before));
        match lap {
            Lap::OneByOne => world.run_until(world.now + world.options.seed % 40)?,
            Lap::Meanwhile if n == 0 => await_all(world, &groups[..1], &mut dead)?,
            Lap::AtOnce | Lap::Meanwhile | Lap::WithASentinel => {}
        }
    }
    await_all(world, groups, &mut dead)?;
    Ok(slain)
}

/// Until all of these masters are replaced.
fn await_all(world: &mut World, groups: &[Group], dead: &mut Dead) -> Outcomes {
    loop {
        for group in groups {
            let Some((died, before)) = dead.get(group.name) else { continue };
            let took = world.now.since(*died + world.options.down_after_of(group));
            if stopwatch::agreed_about(world, group).is_some_and(|address| address != *before) {
                world.waits.push(took);
                dead.remove(group.name);
            } else if took > LIMIT_MS {
                let what = format!("{took} ms beyond down-after {} has no new master", group.name);
                world.judged("waits-for-no-other", Err(what))?;
                if took > 60_000 {
                    return Err(world.violation("convergence", format!("{} has no new master", group.name)));
                }
            }
        }
        if !groups.iter().any(|group| dead.contains_key(group.name)) {
            return Ok(());
        }
        world.run_until(world.now + 1)?;
    }
}

/// Whatever else goes on, the death of a master is one promotion, and one switch for each who monitors it. Of attempts there
/// may be two: whoever has heard of the epoch of one election votes in no earlier one, also about another master.
fn each_once(world: &World, group: &Group, first: usize) -> Outcomes {
    let about = |payload: &str| payload.split(' ').any(|word| word == group.name);
    for (channel, times) in [("+promoted-slave", 1), ("+switch-master", group.watchers.len())] {
        let said = world.events[first..].iter().filter(|heard| heard.channel == channel && about(&heard.payload));
        let said = said.count();
        if said != times {
            let what = format!("the death of the master of {} was {said} times {channel}, not {times}", group.name);
            world.judged("one-attempt", Err(what))?;
        }
    }
    Ok(())
}
