//! What operators have made Sentinels forget.
//!
//! RESET and REMOVE are there to forget replicas, and a Sentinel that lost its file has forgotten them, too. Whoever
//! follows the master is found again through it. A server that is no replica at that moment, because it was away or is a
//! master itself, is found by nobody: when it has been forgotten everywhere, it has left the group, and what it does is no
//! business of the Sentinels any more. Convergence is not asked of it.

use super::world::World;
use std::collections::BTreeSet;
use watchfire::core::Sentinel;

/// By Sentinel: the servers that it knew when it was made to forget.
#[derive(Debug)]
pub struct Forgotten(Vec<BTreeSet<usize>>);

impl Forgotten {
    pub fn new(sentinels: usize) -> Forgotten {
        Forgotten(vec![BTreeSet::new(); sentinels])
    }
}

impl World<'_> {
    /// This Sentinel is about to forget what it knows about one master, given by its number.
    pub(super) fn forgets(&mut self, who: usize, group: usize) {
        let servers = self.options.groups[group].servers.clone();
        let known: Vec<usize> = servers.filter(|&server| self.knows(who, server)).collect();
        self.forgotten.0[who].extend(known);
    }

    /// This Sentinel begins with nothing but the addresses of the masters.
    pub(super) fn forgets_all(&mut self, who: usize) {
        self.forgotten.0[who].extend(0..self.servers.len());
    }

    /// The servers that no Sentinel knows any more who monitors their master, as each was made to forget it.
    pub(super) fn forgotten_everywhere(&self) -> BTreeSet<usize> {
        let forgotten = |server: &usize| {
            let by = |who: usize| self.forgotten.0[who].contains(server) && !self.knows(who, *server);
            self.options.group_of(*server).watchers.iter().copied().all(by)
        };
        (0..self.servers.len()).filter(forgotten).collect()
    }

    fn knows(&self, who: usize, server: usize) -> bool {
        let sentinel = self.processes[who].sentinel.as_deref();
        let name = self.options.group_of(server).name.as_bytes();
        let Some(master) = sentinel.and_then(|sentinel: &Sentinel| sentinel.master_by_name(name)) else {
            return false;
        };
        let mut nodes = std::iter::once(&master.node).chain(master.replicas.values().map(|replica| &replica.node));
        nodes.any(|node| self.servers[server].is_at(&node.addr.host, node.addr.port))
    }
}

#[cfg(test)]
mod tests {
    use super::super::meddling::Order;
    use super::super::options::Options;
    use super::super::process::Item;
    use super::super::run;
    use super::super::server::Role;
    use super::super::trace::Trace;
    use super::*;

    #[test]
    fn only_what_all_were_made_to_forget_has_left_the_group() {
        let mut trace = Trace::silent();
        let mut world = World::new(Options::calm(1, 3), &mut trace);
        run::warm_up(&mut world).expect("nothing is wrong yet");
        world.servers[2].role = Role::Master;
        world.run_until(world.now + 1_000).expect("nothing unsafe");
        let reset = |world: &mut World, who: usize| {
            world.forgets(who, 0);
            world.post(who, Item::Order(world.options.groups[0].name, Order::Reset));
            world.run_until(world.now + 1_000).expect("nothing unsafe");
            (world.forgotten_everywhere().into_iter().collect::<Vec<_>>(), world.at_rest().is_ok())
        };
        // Whoever was not made to forget it, has to see to it.
        assert_eq!(reset(&mut world, 0), (vec![], false));
        assert_eq!(reset(&mut world, 1), (vec![], false));
        assert_eq!(reset(&mut world, 2), (vec![2], true));
        // It follows again, and is found through the master.
        world.servers[2].role = world.servers[1].role.clone();
        world.run_until(world.now + 15_000).expect("nothing unsafe");
        assert_eq!((world.forgotten_everywhere().len(), world.at_rest()), (0, Ok(())));
    }
}
