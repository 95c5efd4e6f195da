//! Several masters die at once, or one while the failover of another is under way, with everything else in order. Votes are
//! per master, but the epoch is one per Sentinel: two elections at once must not spoil each other.

use super::groups::Group;
use super::stopwatch;
use super::world::{Outcomes, World};
use std::collections::BTreeMap;
use watchfire::base::Millis;

const LAPS: u64 = 3;
/// How long the dead have to come back.
const RETURN_MS: u64 = 10_000;
/// From the death of a master, beyond its down-after, to the moment in which all name the new one.
pub const LIMIT_MS: u64 = 300;

/// When each master died, and who was it.
type Dead<'a> = BTreeMap<&'a str, (Millis, String)>;

pub fn rush(world: &mut World) -> Outcomes {
    let groups = world.options.groups.clone();
    for lap in 0..LAPS {
        world.run_until(world.now + 1_000 + world.options.seed * 37 % 2_000)?;
        let mut dead = Dead::new();
        let mut slain = Vec::new();
        for (n, group) in groups.iter().enumerate() {
            let before = stopwatch::agreed_about(world, group);
            let before =
                before.ok_or_else(|| world.violation("convergence", format!("nobody agrees on {}", group.name)))?;
            let at = |index: &usize| {
                let node = world.servers[*index].node();
                format!("{}:{}", node.ip(), node.port()) == before
            };
            let master = group.servers.clone().find(at).expect("a server of this master");
            slain.push(master);
            world.kill_server(master);
            dead.insert(group.name, (world.now, before));
            // In the first lap all die in one moment, in the second within a few, and then while the failover before is not
            // over.
            match lap {
                0 => {}
                1 => world.run_until(world.now + world.options.seed % 40)?,
                _ if n == 0 => await_all(world, &groups[..1], &mut dead)?,
                _ => {}
            }
        }
        await_all(world, &groups, &mut dead)?;
        for master in slain {
            world.server_back(master)?;
        }
        world.run_until(world.now + RETURN_MS)?;
    }
    Ok(())
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
                let what = format!("{} ms beyond down-after {} has no new master", took, group.name);
                world.judged("waits-for-no-other", Err(what))?;
                if took > 30 * LIMIT_MS {
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
