//! After healing: all Sentinels that monitor a master name one address, that server is master, and all its other servers are
//! its replicas.

use super::node::Node;
use super::server::{Link, Role, Server, State};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use watchfire::core::Sentinel;

/// Says what is still missing.
pub fn group_at_rest(
    name: &str,
    sentinels: &[(usize, &Sentinel)],
    servers: &[Server],
    forgotten: &BTreeSet<usize>,
) -> Result<(), String> {
    let mut named: Option<(String, String)> = None;
    for (who, sentinel) in sentinels {
        let who = format!("s{}", who + 1);
        let Some(master) = sentinel.master_by_name(name.as_bytes()) else {
            return Err(format!("{who} knows no {name}"));
        };
        let address = sentinel.current_addr(master).to_string();
        match &named {
            None => named = Some((who, address)),
            Some((first, other)) if *other != address => {
                return Err(format!("{first} names {other}, {who} names {address}"));
            }
            Some(_) => {}
        }
    }
    let Some((_, address)) = named else { return Err("no Sentinel is up".into()) };
    let (host, port) = address.rsplit_once(':').ok_or("an address has a port")?;
    let port: u16 = port.parse().map_err(|_| "a port is a number")?;
    let master = servers.iter().find(|server| server.is_at(host, port)).ok_or(format!("nobody is at {address}"))?;
    // Excused: whom no Sentinel knows, because operators made each of them forget it (`forgotten`).
    for server in servers.iter().filter(|server| !forgotten.contains(&server.index)) {
        let node = server.node();
        if server.state != State::Up {
            return Err(format!("{node} is not up"));
        }
        match &server.role {
            Role::Master if server.index == master.index => {}
            Role::Master => return Err(format!("{node} is master, all name {}", master.node())),
            Role::Replica(..) if server.index == master.index => {
                return Err(format!("all name {node}, which is {:?}", server.role));
            }
            Role::Replica(host, port) if !master.is_at(host, *port) => {
                return Err(format!("{node} follows {host}:{port}, all name {}", master.node()));
            }
            Role::Replica(..) if !matches!(server.link, Link::Up { .. }) => {
                return Err(format!("the link of {node} is {:?}", server.link));
            }
            Role::Replica(..) => {}
        }
    }
    Ok(())
}

/// Everybody is up, and so nobody is held down for long, but for those that were made up.
pub fn all_are_heard(name: &str, sentinels: &[(usize, &Sentinel)]) -> Result<(), String> {
    for (who, sentinel) in sentinels {
        let Some(master) = sentinel.master_by_name(name.as_bytes()) else { continue };
        let servers = std::iter::once(&master.node).chain(master.replicas.values().map(|replica| &replica.node));
        let servers = servers.map(|node| (&node.addr, node.sdown));
        let peers = master.peers.values().map(|peer| (&peer.addr, peer.sdown));
        for (addr, _) in servers.chain(peers).filter(|(_, sdown)| sdown.is_some()) {
            let there = addr.ip.and_then(|ip| Node::at(SocketAddr::new(ip, addr.port)));
            if let Some(node @ (Node::Server(_) | Node::Sentinel(_))) = there {
                return Err(format!("s{} holds {node} down for {name}", who + 1));
            }
        }
    }
    Ok(())
}
