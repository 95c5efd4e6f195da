//! Replication between servers: links come up after a synchronisation, offsets grow and follow, silence is noticed late.

use super::net::Net;
use super::node::Node;
use super::options::between;
use super::server::{Link, Role, Server, State};
use std::net::SocketAddr;
use watchfire::base::{Millis, Random};

/// How often the state of replication is moved on, ms.
pub const STEP_MS: u64 = 100;

pub struct Rules {
    pub sync_ms: (u64, u64),
    pub timeout: u64,
}

/// Moves replication on by one step. Returns who has handed over to whom.
pub fn step(now: Millis, servers: &mut [Server], net: &Net, rules: &Rules, random: &mut Random) -> Vec<(usize, usize)> {
    for server in servers.iter_mut() {
        let writes = !server.is_paused(now) && now >= server.loading_until;
        if server.state == State::Up && server.role == Role::Master && writes {
            server.offset += 10 + random.below(100);
        }
    }
    for index in 0..servers.len() {
        let server = &servers[index];
        let Role::Replica(host, port) = &server.role else { continue };
        if server.state != State::Up {
            continue;
        }
        let target = servers.iter().position(|other| other.is_at(host, *port));
        let path = |to: usize| {
            let (here, there) = (Node::Server(index), Node::Server(to));
            !net.is_cut(here, there) && !net.is_cut(there, here)
        };
        let reachable = target.is_some_and(|to| to != index && path(to));
        let (serves, died, offset) = target.map_or((false, false, 0), |to| {
            let master = &servers[to];
            (reachable && master.serves(now), reachable && master.state == State::Down, master.offset)
        });
        let hangs = target.is_some_and(|to| servers[to].state == State::Hung);
        let link = match server.link {
            Link::Down { since } if serves => Link::Syncing { since, done: now + between(random, rules.sync_ms) },
            Link::Syncing { since, .. } if !serves => Link::Down { since },
            Link::Syncing { done, .. } if now >= done => Link::Up { heard: now },
            Link::Up { .. } if serves => Link::Up { heard: now },
            // A reset is seen at once, and so is a master that turned away; silence only after the timeout.
            Link::Up { .. } if died || (reachable && !hangs) => Link::Down { since: now },
            Link::Up { heard } if now.since(heard) > rules.timeout => Link::Down { since: now },
            unchanged => unchanged,
        };
        let server = &mut servers[index];
        server.link = link;
        if serves && matches!(link, Link::Up { .. }) {
            server.offset = offset;
        }
    }
    (0..servers.len()).filter_map(|index| Some((index, hand_over(now, servers, net, index)?))).collect()
}

/// A FAILOVER under way ends with the replica that has everything, or with its time.
fn hand_over(now: Millis, servers: &mut [Server], net: &Net, index: usize) -> Option<usize> {
    let server = &servers[index];
    let handover = server.handover.clone().filter(|_| server.state == State::Up)?;
    if now >= handover.until {
        servers[index].handover = None;
        return None;
    }
    let to = servers.iter().position(|other| other.is_at(&handover.host, handover.port))?;
    let (here, there) = (Node::Server(index), Node::Server(to));
    let target = &servers[to];
    let follows = matches!(&target.role, Role::Replica(host, port) if server.is_at(host, *port));
    let in_step = matches!(target.link, Link::Up { .. }) && target.offset == server.offset;
    let reachable = target.state == State::Up && !net.is_cut(here, there) && !net.is_cut(there, here);
    if !(follows && in_step && reachable) {
        return None;
    }
    servers[to].role = Role::Master;
    let server = &mut servers[index];
    server.handover = None;
    server.role = Role::Replica(handover.host, handover.port);
    server.link = Link::Up { heard: now };
    Some(to)
}

/// Who is linked to this server, and how far: what its INFO lists.
pub fn replicas_of(servers: &[Server], index: usize) -> Vec<(SocketAddr, u64)> {
    let linked = |server: &&Server| {
        let follows = matches!(&server.role, Role::Replica(host, port) if servers[index].is_at(host, *port));
        follows && server.index != index && server.state != State::Down && matches!(server.link, Link::Up { .. })
    };
    let line = |server: &Server| (SocketAddr::new(server.node().ip(), server.node().port()), server.offset);
    servers.iter().filter(linked).map(line).collect()
}
