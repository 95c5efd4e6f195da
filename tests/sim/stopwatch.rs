//! How long a group takes: a calm world with links of 1 ms, a master that dies or is asked to hand over, and a look at
//! every millisecond.

use super::facts::Violation;
use super::groups::Group;
use super::options::Options;
use super::run::warm_up;
use super::trace::Trace;
use super::world::{Heard, World};
use watchfire::base::Millis;

/// What becomes of the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Dies,
    /// `SENTINEL FAILOVER … COORDINATED` at the first Sentinel.
    HandsOver,
}

#[derive(Clone, Debug)]
pub struct Lap {
    /// From the death of the master to the moment in which all live Sentinels name the new one, beyond down-after, ms.
    pub beyond_down_after: u64,
    /// From its fate to that moment, ms.
    pub took: u64,
    pub died: Millis,
    /// The address that all agreed on, and the first one.
    pub before: String,
    pub after: String,
    /// What the Sentinels said from then on.
    pub events: Vec<Heard>,
}

/// Lets this happen to the master at some moment after the start and waits for agreement.
pub fn failover(options: Options, fate: Fate) -> Result<Lap, Violation> {
    let seed = options.seed;
    let mut trace = Trace::silent();
    let mut world = World::new(options, &mut trace);
    warm_up(&mut world)?;
    // Anywhere in the periods of ping, hello and cron.
    world.run_until(world.now + seed * 37 % 2_000)?;
    let before = agreed(&world).expect("a calm group agrees");
    let died = world.now;
    let first = world.events.len();
    match fate {
        Fate::Dies => world.kill_server(0),
        Fate::HandsOver => world.force(0, 0, true)?,
    }
    let after = loop {
        world.run_until(world.now + 1)?;
        match agreed(&world) {
            Some(address) if address != before => break address,
            _ if world.now > died + 60_000 => {
                return Err(world.violation("stopwatch", "no agreement within a minute".into()));
            }
            _ => {}
        }
    };
    let took = world.now.since(died);
    let beyond_down_after = took.saturating_sub(world.options.down_after);
    world.run_until(Millis(world.now.0 + 5_000))?;
    Ok(Lap { beyond_down_after, took, died, before, after, events: world.events[first..].to_vec() })
}

/// What a calm group says within `span` ms of a fault of its master.
pub fn aftermath(options: Options, fault: fn(&mut World), span: u64) -> Result<Vec<Heard>, Violation> {
    let mut trace = Trace::silent();
    let mut world = World::new(options, &mut trace);
    warm_up(&mut world)?;
    let first = world.events.len();
    fault(&mut world);
    world.run_until(world.now + span)?;
    Ok(world.events[first..].to_vec())
}

/// The one address that all Sentinels name who monitor the first master.
pub fn agreed(world: &World) -> Option<String> {
    agreed_about(world, &world.options.groups[0])
}

/// The same about any master.
pub fn agreed_about(world: &World, group: &Group) -> Option<String> {
    let watching = world.living().into_iter().filter(|(who, _)| group.is_watched_by(*who));
    let mut named = watching.map(|(_, sentinel)| {
        let master = sentinel.master_by_name(group.name.as_bytes())?;
        Some(sentinel.current_addr(master).to_string())
    });
    let first = named.next()??;
    named.all(|other| other.as_deref() == Some(&first)).then_some(first)
}
