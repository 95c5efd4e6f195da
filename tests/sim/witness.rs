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
}

impl Witness {
    pub fn new(servers: usize) -> Witness {
        Witness { unwell: vec![None; servers] }
    }

    /// Says that nobody has a reason to replace this server.
    pub fn need(&self, now: Millis, server: usize, options: &Options) -> Result<(), String> {
        let span = options.down_after + MEMORY_MS;
        match self.unwell[server] {
            Some(at) if now.since(at) <= span => Ok(()),
            Some(at) => Err(format!("it has been well for {} ms", now.since(at))),
            None => Err("it has always been well".into()),
        }
    }
}

impl World<'_> {
    /// A server is well when it serves as a master and too few Sentinels for a quorum have any trouble in reaching it.
    pub(super) fn look_around(&mut self) {
        let weather = self.net.latency != self.options.latency;
        for index in 0..self.servers.len() {
            let server = &self.servers[index];
            let here = Node::Server(index);
            let honest = server.lie.is_none() && server.busy.is_none();
            let up = server.state == State::Up && self.now >= server.loading_until;
            let serves = up && honest && server.role == Role::Master;
            let troubled = |who: &usize| {
                let (there, process) = (Node::Sentinel(*who), &self.processes[*who]);
                let rough = |from: Node, to: Node| self.net.is_cut(from, to) || self.net.slow.contains_key(&(from, to));
                // Who was not yet there has seen nothing.
                process.life > 0 && (!process.is_idle() || rough(here, there) || rough(there, here))
            };
            let troubled = (0..self.processes.len()).filter(troubled).count();
            if !serves || weather || troubled >= self.options.quorum as usize {
                self.witness.unwell[index] = Some(self.now);
            }
        }
    }
}
