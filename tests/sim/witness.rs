//! Who was well, seen from outside: the one thing that no Sentinel can know for certain.

use super::groups;
use super::node::Node;
use super::options::Options;
use super::server::{Role, State};
use super::world::{Outcomes, World};
use watchfire::base::Millis;
use watchfire::core::{Failover, Role as CoreRole};

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
        let group = options.group_of(server);
        let span = options.down_after_of(group) + MEMORY_MS;
        let lately = |at: &Option<Millis>| at.is_some_and(|at| now.since(at) <= span);
        let troubled = group.watchers.iter().filter(|&&who| lately(&self.troubled[server][who])).count();
        if lately(&self.unwell[server]) || troubled >= group.quorum as usize {
            return Ok(());
        }
        Err(format!("it has been well for {span} ms at least, and only {troubled} had trouble in reaching it"))
    }
}

impl World<'_> {
    pub(super) fn look_around(&mut self) {
        let weather = self.net.latency != self.options.latency;
        let half_open = self.net.half_open();
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
                let broken = half_open.contains(&(who, here)) || self.net.is_torn(who);
                if process.life > 0 && (!process.is_idle() || broken || rough(here, there) || rough(there, here)) {
                    self.witness.troubled[index][who] = Some(self.now);
                }
            }
        }
    }

    /// A node was said to be down: by what right?
    pub(super) fn has_cause(&mut self, who: usize, payload: &str) -> Outcomes {
        let [kind, _, ip, port, ..] = payload.split(' ').collect::<Vec<_>>()[..] else { return Ok(()) };
        let node = format!("{ip}:{port}").parse().ok().and_then(Node::at).expect("a node of this world");
        let process = &self.processes[who];
        let group = groups::told(payload).and_then(|name| self.options.named(name)).expect("a master of this world");
        let master = process.sentinel.as_deref().and_then(|sentinel| sentinel.master_by_name(group.name.as_bytes()));
        // A master that says for long that it is a replica is as good as down.
        if kind == "master" && master.is_none_or(|master| master.node.role_reported == CoreRole::Replica) {
            return Ok(());
        }
        let (now, down_after) = (self.now, self.options.down_after_of(group));
        let cause = self.processes[who].ear.cause(now, node, down_after);
        self.judged("down-for-a-cause", cause.map_err(|what| format!("s{}: {what}", who + 1)))
    }

    /// A failover begins that nobody asked for: what was wrong with the master?
    pub(super) fn has_need(&self, who: usize, name: &str) -> Outcomes {
        let sentinel = self.processes[who].sentinel.as_deref();
        let Some(master) = sentinel.and_then(|sentinel| sentinel.master_by_name(name.as_bytes())) else {
            return Ok(());
        };
        let asked_for = |failover: &Failover| failover.forced || failover.handover.is_some();
        if master.failover.as_ref().is_none_or(asked_for) {
            return Ok(());
        }
        let addr = &master.node.addr;
        let Some(server) = self.servers.iter().find(|server| server.is_at(&addr.host, addr.port)) else {
            return Ok(());
        };
        let need = self.witness.need(self.now, server.index, &self.options);
        self.judged(
            "no-needless-demotion",
            need.map_err(|what| format!("s{} replaces {}: {what}", who + 1, server.node())),
        )
    }
}
