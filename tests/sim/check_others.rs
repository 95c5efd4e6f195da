//! What is done or said about one master leaves the others alone: their address, epochs, vote, failover, settings, replicas
//! and the connections to them. Orders and questions leave their peers alone, too, and the connections that they share
//! with the master in question; a hello may tell that a Sentinel has moved, and that concerns every master that sees it.
//!
//! Looked at before and after each input, where a world has several masters.

use super::facts::Hello;
use super::groups::{self, Group};
use super::node::Node;
use super::process::Item;
use std::collections::BTreeSet;
use std::fmt::Write;
use watchfire::core::{ConnId, ConnKind, LinkId, Sentinel};
use watchfire::resp::Reply;

/// How much an input about one master may reach of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Nothing,
    /// Sentinels come, go and move for all masters at once.
    Peers,
}

/// The one master that an item is about, if it is about one. `to`: who is at the other end of a connection.
pub fn concerned(item: &Item, groups: &[Group], to: impl Fn(ConnId) -> Option<Node>) -> Option<(&'static str, Reach)> {
    match item {
        Item::Order(name, _) => Some((name, Reach::Nothing)),
        Item::Requests(_, requests) => {
            // A pipeline may be about several.
            let [request] = &requests[..] else { return None };
            let text = |n: usize| request.get(n).and_then(|word| std::str::from_utf8(word).ok());
            match &request[0].to_ascii_uppercase()[..] {
                b"PUBLISH" => {
                    let hello = Hello::parse(request.get(2)?)?;
                    Some((groups::known(&hello.master)?, Reach::Peers))
                }
                b"SENTINEL" => Some((groups::at(groups, text(2)?, text(3)?.parse().ok()?)?.name, Reach::Nothing)),
                _ => None,
            }
        }
        // What says nothing changes nothing, and there is much of it.
        Item::Reply(_, _, Reply::Simple(_) | Reply::Integer(_))
        | Item::Begun(_)
        | Item::Connected(_)
        | Item::Closed(..) => None,
        Item::Reply(conn, kind, _) => match to(*conn)? {
            Node::Server(index) => {
                let group = groups.iter().find(|group| group.servers.contains(&index))?;
                let reach = if *kind == ConnKind::PubSub { Reach::Peers } else { Reach::Nothing };
                Some((group.name, reach))
            }
            Node::Sentinel(_) | Node::Nobody(_) => None,
        },
    }
}

/// All other masters before an input about one.
#[derive(Debug)]
pub struct Others {
    about: &'static str,
    reach: Reach,
    before: String,
    /// The connections to their peers that stand. A missing one may be dialled at any time.
    stood: BTreeSet<ConnId>,
}

impl Others {
    /// `None` where there are none.
    pub fn of(sentinel: &Sentinel, about: &'static str, reach: Reach) -> Option<Others> {
        (sentinel.masters().count() > 1).then(|| Others {
            about,
            reach,
            before: told(sentinel, about, reach),
            stood: standing(sentinel, about),
        })
    }

    /// Says what has changed.
    pub fn untouched(&self, sentinel: &Sentinel) -> Result<(), String> {
        let after = told(sentinel, self.about, self.reach);
        let stands = standing(sentinel, self.about);
        if let Some(lost) = self.stood.difference(&stands).next().filter(|_| self.reach == Reach::Nothing) {
            return Err(format!(
                "something about {} cost another master the connection {} to a peer",
                self.about, lost.0
            ));
        }
        if self.before == after {
            return Ok(());
        }
        let Some((before, after)) = self.before.lines().zip(after.lines()).find(|(before, after)| before != after)
        else {
            return Err(format!("something about {} took another master away, or brought one", self.about));
        };
        let name = before.split(' ').next().unwrap_or_default();
        let apart = before.bytes().zip(after.bytes()).take_while(|(before, after)| before == after).count();
        let rest = |line: &str| String::from_utf8_lossy(&line.as_bytes()[apart.saturating_sub(40)..]).into_owned();
        Err(format!("something about {} made of {name} …{} what was …{}", self.about, rest(after), rest(before)))
    }
}

fn standing(sentinel: &Sentinel, about: &str) -> BTreeSet<ConnId> {
    let others = sentinel.masters().filter(|master| &*master.name != about);
    let links = others.flat_map(|master| master.peers.values()).map(|peer| sentinel.link(peer.link));
    links.filter(|link| link.cmd.is_up()).filter_map(|link| link.cmd.id()).collect()
}

/// One line for each master but this one.
fn told(sentinel: &Sentinel, about: &str, reach: Reach) -> String {
    let mut text = String::new();
    let conns = |link: LinkId| -> (Option<ConnId>, Option<ConnId>) {
        let link = sentinel.link(link);
        (link.cmd.id(), link.pubsub.id())
    };
    for master in sentinel.masters().filter(|master| &*master.name != about) {
        let failover = master.failover.as_ref().map(|failover| (failover.epoch, failover.step));
        let _ = write!(
            text,
            "{} at {} {:?} epochs {} {} for {:?} {failover:?} {:?}",
            master.name,
            master.node.addr,
            conns(master.node.link),
            master.config_epoch,
            master.leader_epoch,
            master.leader,
            master.settings,
        );
        for replica in master.replicas.values() {
            let _ = write!(text, " [{} {:?} {:?}]", replica.node.addr, replica.hidden, conns(replica.node.link));
        }
        if reach == Reach::Nothing {
            for peer in master.peers.values() {
                let _ = write!(text, " ({} {} {:?} {})", peer.run_id, peer.addr, peer.vote, peer.agrees);
            }
        }
        text.push('\n');
    }
    text
}
