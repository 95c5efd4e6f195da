//! What the checkers see. Each property is one checker, in a file of its own, with a name that a failure carries.

use super::groups::{self, Group};
use super::net::Request;
use super::node::Node;
use super::options::Options;
use super::{
    check_address, check_durable, check_epochs, check_leader, check_link, check_loads, check_majority, check_messages,
    check_quorum, check_tilt, check_votes,
};
use watchfire::base::Millis;
use watchfire::core::{Answer, Master, RunId, Sentinel, Snapshot, Vote};

/// Something that happened at one Sentinel.
#[derive(Debug)]
pub enum Fact<'a> {
    /// A process starts from what its disk holds.
    Started,
    /// A save went well; the disk holds it now.
    Durable { written: &'a Snapshot },
    /// An event left for the log and the subscribers.
    Event { channel: &'static str, payload: &'a str },
    /// A hello leaves, to a server or to a peer.
    Hello(Hello),
    /// A question to a peer leaves; with an id it asks for a vote.
    Asks { epoch: u64, seeks: bool },
    /// The answer to the question of the Sentinel `to` leaves. `about`: the master that has a server where the question points.
    Answers { about: Option<&'static str>, vote: Vote, down: bool, to: Option<usize> },
    /// A connection is dialled; `doubled`: while the last one of its kind to the same node is open.
    Dials { to: Node, doubled: bool },
    /// Requests leave, of whatever kind.
    Sends { to: Node, requests: usize },
    /// An operator has removed a master, and what was known about it.
    Removed { name: &'static str },
    /// This is a new Sentinel in the place of one that is lost. No epoch was newer than this.
    Replaced { epoch: u64 },
    /// A turn of the shell is over: everything was drained.
    TurnEnds,
}

/// A fact with the circumstances.
#[derive(Debug)]
pub struct Seen<'a> {
    pub now: Millis,
    pub who: usize,
    /// Counted up with every start of the process.
    pub life: u64,
    pub fact: Fact<'a>,
    pub sentinel: &'a Sentinel,
    /// What would survive if the process died now.
    pub disk: &'a Snapshot,
}

impl Seen<'_> {
    pub fn master(&self, name: &str) -> Option<&Master> {
        self.sentinel.master_by_name(name.as_bytes())
    }

    /// The masters about which this Sentinel has given this very vote: the event does not say. Mostly it is one; when it is
    /// another vote by now, it is none.
    pub fn voted(&self, leader: RunId, epoch: u64) -> Vec<&'static str> {
        let masters =
            self.sentinel.masters().filter(|master| (master.leader, master.leader_epoch) == (Some(leader), epoch));
        masters.filter_map(|master| groups::known(&master.name)).collect()
    }
}

/// Who there is, as the checkers have to know it.
#[derive(Clone, Debug)]
pub struct Census {
    pub groups: Vec<Group>,
    /// Sentinels may come to know fewer of the others than there are.
    pub forgetful: bool,
}

impl Census {
    pub fn watchers(&self, name: &str) -> usize {
        self.groups.iter().find(|group| group.name == name).map_or(0, |group| group.watchers.len())
    }

    /// It knows fewer Sentinels than there are: a majority of those it knows may be none. Forgetting them by RESET or REMOVE is
    /// what the protocol allows an operator to do; where that cannot happen it is no excuse.
    pub fn knows_few(&self, seen: &Seen, name: &str) -> bool {
        let known = seen.master(name).map(|master| master.peers.len() + 1);
        known.is_none_or(|known| self.forgetful && known < self.watchers(name))
    }
}

/// The hello that a peer or a server is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub run_id: RunId,
    pub epoch: u64,
    pub master: String,
    pub address: String,
    pub config_epoch: u64,
}

impl Hello {
    /// Our own reading of the payload: the core's parser is not asked about the core.
    pub fn parse(payload: &[u8]) -> Option<Hello> {
        let text = std::str::from_utf8(payload).ok()?;
        let [_ip, _port, run_id, epoch, master, ip, port, config_epoch] = text.split(',').collect::<Vec<_>>()[..]
        else {
            return None;
        };
        Some(Hello {
            run_id: RunId::parse(run_id.as_bytes())?,
            epoch: epoch.parse().ok()?,
            master: master.into(),
            address: format!("{ip}:{port}"),
            config_epoch: config_epoch.parse().ok()?,
        })
    }
}

/// What a request reveals, when it reveals anything that must have been saved.
pub fn revealed(request: &Request) -> Option<Fact<'static>> {
    let [name, rest @ ..] = &request[..] else { return None };
    if name.eq_ignore_ascii_case(b"PUBLISH") {
        return Hello::parse(rest.get(1)?).map(Fact::Hello);
    }
    let [word, _host, _port, epoch, candidate] = rest else { return None };
    let asks = name.eq_ignore_ascii_case(b"SENTINEL") && word.eq_ignore_ascii_case(b"is-master-down-by-addr");
    let epoch = std::str::from_utf8(epoch).ok()?.parse().ok()?;
    asks.then_some(Fact::Asks { epoch, seeks: candidate != b"*" })
}

/// The vote that an answer tells, by the outcome of the saves of its turn.
pub fn told(answer: &Answer, saved: bool) -> Vote {
    if saved { answer.vote } else { answer.vote_if_unsaved }
}

/// One property.
pub trait Checker {
    fn name(&self) -> &'static str;

    /// Looks at a fact; an error is what is wrong, in a sentence.
    fn see(&mut self, seen: &Seen) -> Result<(), String>;

    /// How often something was let pass that only an operator's force explains.
    fn excused(&self) -> u64 {
        0
    }
}

/// Every property by its name. Each is shown by a planted fault to see what it is there for.
pub const NAMES: [&str; 19] = [
    "one-vote",
    "one-leader",
    "majority-behind-leader",
    "quorum-behind-failover",
    "none-in-tilt",
    "epochs-forward",
    "one-address",
    "saved-first",
    "loads-again",
    "one-link",
    "others-untouched",
    "waits-for-no-other",
    "bounded-messages",
    "one-attempt",
    "down-for-a-cause",
    "no-needless-demotion",
    "no-self-replication",
    "fit-to-promote",
    "convergence",
];

/// Those that look at what one Sentinel does. The others look at the world.
pub fn all_checkers(options: &Options) -> Vec<Box<dyn Checker>> {
    let census = Census { groups: options.groups.clone(), forgetful: options.forgetful() };
    vec![
        Box::new(check_votes::OneVote::default()),
        Box::new(check_leader::OneLeader::new(census.clone())),
        Box::new(check_majority::MajorityBehindLeader::new(census.clone())),
        Box::new(check_quorum::QuorumBehindFailover::default()),
        Box::new(check_tilt::NoneInTilt::default()),
        Box::new(check_epochs::EpochsForward::default()),
        Box::new(check_address::OneAddress::new(census)),
        Box::new(check_durable::SavedFirst),
        Box::new(check_loads::LoadsAgain),
        Box::new(check_link::OneLink),
        Box::new(check_messages::BoundedMessages::default()),
    ]
}

/// A broken property.
#[derive(Clone, Debug)]
pub struct Violation {
    pub checker: &'static str,
    pub at: Millis,
    /// Events of the world before it.
    pub step: u64,
    pub what: String,
}

// What looks at the whole world, or at an order alone, and not at one Sentinel.
pub use super::check_convergence::{all_are_heard, group_at_rest};
pub use super::check_orders::order_is_sane;
