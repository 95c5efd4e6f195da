//! The masters of a world: each has a name, servers of its own, a quorum, and the Sentinels that monitor it. Some are
//! monitored by all Sentinels, some by a few, so that two Sentinels may be peers for one master and strangers for another.

use super::node::{GROUP, Node};
use super::options::{between, pick};
use std::net::SocketAddr;
use std::ops::Range;
use watchfire::base::Random;

/// The names of the masters, in the order in which a world has them.
pub const NAMES: [&str; 4] = [GROUP, "cache", "queue", "users"];

/// One master with all that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: &'static str,
    /// Its servers, by their numbers in the world. The first begins as master.
    pub servers: Range<usize>,
    /// The Sentinels that monitor it, in ascending order.
    pub watchers: Vec<usize>,
    pub quorum: u32,
    /// Its down-after is so many times that of the world.
    pub patience: u64,
}

impl Group {
    pub fn is_watched_by(&self, who: usize) -> bool {
        self.watchers.contains(&who)
    }

    /// In the order in which operators would ask them.
    pub fn master_at_first(&self) -> Node {
        Node::Server(self.servers.start)
    }
}

/// A world with one master that all Sentinels monitor.
pub fn one(sentinels: usize, servers: usize, quorum: u32) -> Vec<Group> {
    vec![Group { name: GROUP, servers: 0..servers, watchers: (0..sentinels).collect(), quorum, patience: 1 }]
}

/// So many masters. A quorum may be less than a majority, which is needed besides, or more; never more than there are.
pub fn several(draw: &mut Random, count: usize, sentinels: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for name in NAMES.into_iter().take(count) {
        let first = groups.last().map_or(0, |group| group.servers.end);
        let servers = first..first + pick(draw, &[1, 2, 3, 3, 4, 5]);
        let watchers = if draw.below(2) == 0 { (0..sentinels).collect() } else { a_few(draw, sentinels) };
        let half = watchers.len() as u64 / 2;
        let most = (half + 2).min(watchers.len() as u64);
        let quorum = u32::try_from(between(draw, (half.max(2), most))).expect("a handful");
        groups.push(Group { name, servers, watchers, quorum, patience: pick(draw, &[1, 1, 2, 4]) });
    }
    groups
}

/// Two of three, or three and more of five and seven.
fn a_few(draw: &mut Random, sentinels: usize) -> Vec<usize> {
    let least = sentinels.min(4) - 1;
    let count = between(draw, (least as u64, sentinels as u64 - 1));
    let mut left: Vec<usize> = (0..sentinels).collect();
    while left.len() as u64 > count {
        left.remove(usize::try_from(draw.below(left.len() as u64)).expect("an index"));
    }
    left
}

/// The Sentinels that may lose their memory, one after the other, without a majority of the watchers of any master losing
/// it: at least those who remember would know a server that was away.
pub fn replaceable(groups: &[Group], sentinels: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for who in 0..sentinels {
        let fits = |group: &Group| {
            let lost = 1 + chosen.iter().filter(|&&other| group.is_watched_by(other)).count();
            !group.is_watched_by(who) || lost <= (group.watchers.len() - 1) / 2
        };
        if groups.iter().all(fits) {
            chosen.push(who);
        }
    }
    chosen
}

/// The group whose server listens there.
pub fn at<'a>(groups: &'a [Group], host: &str, port: u16) -> Option<&'a Group> {
    match Node::at(SocketAddr::new(host.parse().ok()?, port))? {
        Node::Server(index) => groups.iter().find(|group| group.servers.contains(&index)),
        Node::Sentinel(_) | Node::Nobody(_) => None,
    }
}

/// One of the names, as it stands in a message.
pub fn known(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}

/// The master that the payload of an event is about: `master <name> …`, or `… @ <name> …`.
pub fn told(payload: &str) -> Option<&'static str> {
    let mut words = payload.split(' ');
    let name = match words.next()? {
        "master" => words.next()?,
        _ => words.skip_while(|word| *word != "@").nth(1)?,
    };
    known(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_groups_can_elect_and_share_no_server() {
        let mut draw = Random::seeded(1);
        for round in 0..300 {
            let sentinels = [3, 5, 7][round % 3];
            let groups = several(&mut draw, 1 + round % 4, sentinels);
            for (n, group) in groups.iter().enumerate() {
                let voters = group.watchers.len();
                assert!(voters >= 2 && voters <= sentinels && group.quorum as usize <= voters, "{group:?}");
                assert_eq!(group.servers.start, n.checked_sub(1).map_or(0, |before| groups[before].servers.end));
            }
            for group in &groups {
                let lost = replaceable(&groups, sentinels).into_iter().filter(|&who| group.is_watched_by(who)).count();
                assert!(2 * lost < group.watchers.len(), "{group:?}");
            }
        }
    }

    #[test]
    fn a_payload_tells_its_master() {
        assert_eq!(told("master cache 10.0.1.1 6379"), Some("cache"));
        assert_eq!(told("slave 10.0.1.2:6379 10.0.1.2 6379 @ queue 10.0.1.1 6379"), Some("queue"));
        assert_eq!(told("cache 10.0.1.1 6379 10.0.1.2 6379"), None);
        assert_eq!(told("#tilt mode entered"), None);
    }
}
