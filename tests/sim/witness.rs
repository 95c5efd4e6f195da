//! Who was well, seen from outside: the one thing that no Sentinel can know for certain.

use super::node::Node;
use super::options::Options;
use super::server::{Role, State};
use super::world::World;
use watchfire::base::Millis;

/// What happened before a server was well again is forgotten by all after down-after and this many ms: retransmissions after a
/// cut (5 s), and answers about it (5 s).
const MEMORY_MS: u64 = 12_000;

#[derive(Debug)]
pub struct Witness {
    /// When each server was last anything but a master in good health.
    unwell: Vec<Option<Millis>>,
    /// When each Sentinel last had trouble in reaching it.
    troubled: Vec<Vec<Option<Millis>>>,
}

impl Witness {
    pub fn new(servers: usize, sentinels: usize) -> Witness {
        Witness { unwell: vec![None; servers], troubled: vec![vec![None; sentinels]; servers] }
    }

    /// Says that nobody has a reason to replace this server: it has been well, and too few Sentinels for a quorum can still
    /// have it in mind that they could not reach it. They need not have had their trouble at the same moment, because an
    /// answer counts for a while.
    pub fn need(&self, now: Millis, server: usize, options: &Options) -> Result<(), String> {
        let span = options.down_after + MEMORY_MS;
        let lately = |at: &Option<Millis>| at.is_some_and(|at| now.since(at) <= span);
        let troubled = self.troubled[server].iter().filter(|at| lately(at)).count();
        if lately(&self.unwell[server]) || troubled >= options.quorum as usize {
            return Ok(());
        }
        Err(format!("it has been well for {span} ms at least, and only {troubled} had trouble in reaching it"))
    }
}

impl World<'_> {
    pub(super) fn look_around(&mut self) {
        let weather = self.net.latency != self.options.latency;
        for index in 0..self.servers.len() {
            let server = &self.servers[index];
            let here = Node::Server(index);
            let honest = server.lie.is_none() && server.busy.is_none();
            let up = server.state == State::Up && self.now >= server.loading_until;
            if weather || !(up && honest && server.role == Role::Master) {
                self.witness.unwell[index] = Some(self.now);
            }
            for (who, process) in self.processes.iter().enumerate() {
                let there = Node::Sentinel(who);
                let rough = |from: Node, to: Node| self.net.is_cut(from, to) || self.net.slow.contains_key(&(from, to));
                // Who was not yet there has seen nothing.
                if process.life > 0 && (!process.is_idle() || rough(here, there) || rough(there, here)) {
                    self.witness.troubled[index][who] = Some(self.now);
                }
            }
        }
    }
}
