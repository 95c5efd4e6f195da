//! Who is who: every node has an address of its own, so that a cut between two nodes is a cut between two addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use watchfire::core::RunId;

/// The name under which the group is monitored.
pub const GROUP: &str = "mymaster";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Sentinel(usize),
    Server(usize),
    /// An address that somebody made up. Whoever dials it is refused.
    Nobody(u8),
}

impl Node {
    pub fn ip(self) -> IpAddr {
        let (net, host) = match self {
            Node::Sentinel(n) => (0, n),
            Node::Server(n) => (1, n),
            Node::Nobody(n) => return IpAddr::V4(Ipv4Addr::new(10, 0, 2, n)),
        };
        IpAddr::V4(Ipv4Addr::new(10, 0, net, u8::try_from(host + 1).expect("a handful of nodes")))
    }

    pub fn port(self) -> u16 {
        match self {
            Node::Sentinel(_) => 26379,
            Node::Server(_) | Node::Nobody(_) => 6379,
        }
    }

    /// The node that listens at an address. Nobody else does in this world.
    pub fn at(addr: SocketAddr) -> Option<Node> {
        let IpAddr::V4(ip) = addr.ip() else { return None };
        let [10, 0, net, host] = ip.octets() else { return None };
        if net == 2 {
            return Some(Node::Nobody(host));
        }
        let index = usize::from(host).checked_sub(1)?;
        let node = if net == 0 { Node::Sentinel(index) } else { Node::Server(index) };
        (node.port() == addr.port()).then_some(node)
    }
}

/// `s1` for the first Sentinel, `r1` for the first server, `x7` for nobody.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Sentinel(n) => write!(f, "s{}", n + 1),
            Node::Server(n) => write!(f, "r{}", n + 1),
            Node::Nobody(n) => write!(f, "x{n}"),
        }
    }
}

/// The `myid` of a Sentinel. Its first digit tells a reader of a story whom it names.
pub fn sentinel_id(index: usize, salt: u64) -> RunId {
    let mut bytes = [0u8; 20];
    bytes[0] = 0x10 * u8::try_from(index + 1).expect("a handful of Sentinels") + 0x0f;
    bytes[1..9].copy_from_slice(&salt.to_be_bytes());
    bytes[9] = u8::try_from(index).expect("a handful of Sentinels");
    RunId::from_entropy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_node() {
        for node in [Node::Sentinel(0), Node::Sentinel(4), Node::Server(0), Node::Server(2)] {
            assert_eq!(Node::at(SocketAddr::new(node.ip(), node.port())), Some(node));
        }
        assert_eq!(Node::at("10.0.0.1:6379".parse().unwrap()), None);
    }
}
