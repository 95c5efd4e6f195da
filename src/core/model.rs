//! What a Sentinel knows: masters, their replicas, their peers, and the links to all of them.
//!
//! Ordered maps throughout: iteration reaches effects, and the same inputs must give the same effects.

use super::failover::Failover;
use super::handover::Side;
use super::ids::{Addr, ConnId, LinkId, MasterId, PeerId, ReplicaId, RunId};
use super::operator::Vote;
use super::refused::Refusals;
use super::report::Reports;
use super::slot::Measured;
use super::snapshot::Settings;
use crate::base::{Millis, Shelf, SortedSet};
use std::collections::VecDeque;

/// What a server says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Master,
    Replica,
}

impl Role {
    /// The word of the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Role::Master => "master",
            Role::Replica => "slave",
        }
    }
}

/// The last INFO of a server, kept whole for `SENTINEL INFO-CACHE`.
#[derive(Clone, Debug)]
pub struct CachedInfo {
    pub at: Millis,
    pub text: Box<[u8]>,
}

/// What masters and replicas have in common.
#[derive(Clone, Debug)]
pub struct Node {
    pub addr: Addr,
    pub run_id: Option<RunId>,
    pub link: LinkId,
    /// Subjectively down since.
    pub sdown: Option<Millis>,
    /// When it was last declared down; kept after it recovered.
    pub last_down: Option<Millis>,
    pub info: Option<CachedInfo>,
    /// An INFO is under way since.
    pub info_asked: Option<Millis>,
    pub role_reported: Role,
    pub role_reported_at: Millis,
    /// Last successful publish of our hello.
    pub hello_sent: Millis,
    pub hello_asked: Option<Millis>,
    pub script_kill_sent: bool,
    /// Whether its FAILOVER is under way; `None` for a server that knows none.
    pub handing_over: Option<bool>,
}

#[derive(Clone, Debug)]
pub struct Master {
    pub id: MasterId,
    pub name: Box<str>,
    pub node: Node,
    pub settings: Settings,
    pub config_epoch: u64,
    /// Until then servers are not told our configuration, only peers: it comes out of the file of an earlier life.
    pub hushed_until: Option<Millis>,
    /// Monitored a moment ago: the epochs up to this one may be of a former life of the name, and until when that matters.
    pub former_life: Option<(u64, Millis)>,
    /// The config epoch that is on disk.
    pub durable_config_epoch: u64,
    /// Our vote: for whom (unknown after a restart) and in which epoch.
    pub leader: Option<RunId>,
    pub leader_epoch: u64,
    pub voted_at: Millis,
    /// The votes that others got from us. What they have done with them may only show when we seek votes ourselves.
    pub voted_other: Option<VotedOther>,
    /// No vote is given in epochs up to this one: a vote in it did not reach the disk, or was refused because saves
    /// fail, and whoever asked may rely on that.
    pub withdrawn_epoch: u64,
    /// The vote that is on disk: what we fall back to when a save fails.
    pub durable_vote: Vote,
    /// Objectively down since.
    pub odown: Option<Millis>,
    pub rebooted: Option<Millis>,
    pub replicas: Shelf<ReplicaId, Replica>,
    pub peers: Shelf<PeerId, Peer>,
    pub failover: Option<Failover>,
    /// When the last attempt (ours, or one we voted for) counts as begun.
    pub attempt: Option<Millis>,
    /// Set when the next attempt need not wait 2 × failover-timeout: not before this moment.
    pub retry_at: Option<Millis>,
    pub delay_logged: bool,
    /// When two addresses under one config epoch were last reported.
    pub conflict_reported: Option<Millis>,
    /// When too many peers were last reported.
    pub crowd_reported: Option<Millis>,
    /// The replication offset that the master last told, and which node that was.
    pub reached: Option<(Addr, u64)>,
    /// The moment for which a wake-up is queued.
    pub armed: Option<Millis>,
    /// Before this moment the cron need not look at it.
    pub due: Millis,
    /// Of the failovers so far; none, as long as there was none.
    pub reports: Option<Box<Reports>>,
}

#[derive(Clone, Debug)]
pub struct Replica {
    pub id: ReplicaId,
    pub node: Node,
    /// What it said last, or what counts where it never did.
    pub priority: u32,
    pub priority_told: Told,
    pub offset: u64,
    /// Whom it says it follows; `None` while unknown.
    pub master_addr: Option<Addr>,
    pub master_addr_changed: Millis,
    pub link_up: bool,
    /// How long its link to the master has been down, ms, as it said itself.
    pub link_down_ms: u64,
    pub announced: bool,
    /// Still in its first synchronisation: holds no data set yet.
    pub first_sync: bool,
    pub reconf: Reconf,
    pub reconf_changed: Millis,
    /// When we last told it, outside a failover, to follow our master.
    pub turned: Option<Millis>,
    /// When it was last reported that it may be another's node.
    pub doubted: Option<Millis>,
    /// Known only from before a RESET: still watched and a candidate, but neither listed nor saved.
    pub hidden: bool,
}

/// Who has said what the priority of a replica is. INFO of one that says it is a master names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nobody, or the process before it, or it is not known whether this is another process.
    No,
    /// INFO has, while it was a replica.
    ByInfo,
    /// It was asked, and has not answered.
    Asked,
    /// It has.
    Answered,
    /// It does not answer that question: what was said before has to do.
    Withheld,
}

/// How far a replica has been turned to the new master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconf {
    None,
    Sent,
    InProgress,
    Done,
}

#[derive(Clone, Debug)]
pub struct Peer {
    pub id: PeerId,
    pub run_id: RunId,
    pub addr: Addr,
    pub link: LinkId,
    pub sdown: Option<Millis>,
    pub last_down: Option<Millis>,
    /// When it was last reported that it names another master, without any failover.
    pub split_reported: Option<Millis>,
    /// It agrees that the master is down.
    pub agrees: bool,
    /// Its last answer to is-master-down-by-addr.
    pub heard: Option<Millis>,
    /// When it was last asked, and whether that answer is still owed.
    pub asked: Option<Millis>,
    pub asking: bool,
    /// It asked us about a master that we hold down, too, so it may have changed its mind: ask it again.
    pub echo: bool,
    /// When it last got such a question.
    pub echoed: Option<Millis>,
    /// Its vote, as it told us: for whom, in which epoch.
    pub vote: Option<(RunId, u64)>,
    /// The newest epoch in which it answered a request for its vote without giving it to anybody.
    pub abstained: Option<u64>,
    /// The newest epoch in which it answered a request for its vote at all.
    pub answered: Option<u64>,
    pub last_hello: Millis,
    pub hello_sent: Millis,
    pub hello_asked: Option<Millis>,
}

/// Whose link it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    Master(MasterId),
    Replica(MasterId, ReplicaId),
    /// All masters that see this peer.
    Peer(RunId, SortedSet<MasterId>),
}

/// One of a link's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conn {
    Down,
    /// Asked for, and not begun yet: it waits for our other connections.
    InLine {
        conn: ConnId,
        since: Millis,
    },
    Dialling {
        conn: ConnId,
        since: Millis,
    },
    Up {
        conn: ConnId,
        since: Millis,
    },
}

impl Conn {
    #[must_use]
    pub fn id(self) -> Option<ConnId> {
        match self {
            Conn::Down => None,
            Conn::InLine { conn, .. } | Conn::Dialling { conn, .. } | Conn::Up { conn, .. } => Some(conn),
        }
    }

    /// When it came to be what it is; while it is in line, until when that has been counted.
    #[must_use]
    pub fn since(self) -> Option<Millis> {
        match self {
            Conn::Down => None,
            Conn::InLine { since, .. } | Conn::Dialling { since, .. } | Conn::Up { since, .. } => Some(since),
        }
    }

    #[must_use]
    pub fn is_up(self) -> bool {
        matches!(self, Conn::Up { .. })
    }
}

/// Votes for others of which no configuration has come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VotedOther {
    /// Of the last one.
    pub epoch: u64,
    /// The first one; after a restart, when we came to know of it.
    pub since: Millis,
    pub last: Millis,
}

/// What of the present silence of a node was our own doing, and is left out of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excused {
    /// So many ms we stood still.
    pub stood: u64,
    /// A dial has begun since the silence did.
    pub tried: bool,
    /// So many ms its dials waited for our other connections: that first one, and from then on the later ones.
    pub in_line: u64,
}

/// The connections to one node and what is outstanding on them. Ping state lives here, because peers that
/// several masters share get one PING a period; hello, ask and vote state live with the instance.
#[derive(Clone, Debug)]
pub struct Link {
    pub id: LinkId,
    pub addr: Addr,
    pub owner: Owner,
    pub cmd: Conn,
    /// Peers have no Pub/Sub connection; theirs stays `Down`.
    pub pubsub: Conn,
    /// One entry for each request under way on the command connection, oldest first.
    pub pending: VecDeque<Expect>,
    /// The oldest unanswered PING.
    pub active_ping: Option<Millis>,
    pub ping_sent: Millis,
    pub last_ok: Millis,
    pub last_pong: Millis,
    pub excused: Excused,
    /// From a question to its answer.
    pub way: Measured,
    /// What a peer takes beyond that where it has to save before it answers.
    pub peer_save: Measured,
    pub cmd_dialled: Option<Millis>,
    pub pubsub_dialled: Option<Millis>,
    /// No connection of this kind was lost yet. The first loss is made good at once, and so is any of one that has lasted.
    pub cmd_never_lost: bool,
    pub pubsub_never_lost: bool,
    /// So many attempts to make the command connection came to nothing in another way than by a refusal since it last stood
    /// for a ping period: they failed, or what came of them was lost at once. The first loss of all is left out.
    pub unrefused: u32,
    /// There are some while the command connection is refused.
    pub refusals: Option<Box<Refusals>>,
    pub pubsub_heard: Millis,
    /// The Pub/Sub connection is established, if not yet subscribed.
    pub pubsub_established: bool,
    /// Replies that the Pub/Sub connection still owes before the one to SUBSCRIBE.
    pub pubsub_opening: u8,
    /// Our address on the command connection, or on the last one that there was.
    pub local_ip: Option<std::net::IpAddr>,
    /// A refused command (NOAUTH and the like) was said in the log.
    pub refusal_logged: bool,
    /// A reply to no question was, too.
    pub disorder_logged: bool,
}

impl Link {
    /// The flag `disconnected`: one of the connections that should stand does not.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        !self.cmd.is_up() || (!matches!(self.owner, Owner::Peer(..)) && !self.pubsub.is_up())
    }

    /// How many instances use the link (`link-refcount`).
    #[must_use]
    pub fn sharers(&self) -> usize {
        match &self.owner {
            Owner::Peer(_, masters) => masters.len(),
            _ => 1,
        }
    }
}

/// What the next reply on a command connection answers. It names the instance, so that a late reply for
/// one that is gone dies at the lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// A reply nobody decides on (SETNAME, SCRIPT KILL, …); only a refusal is said in the log.
    Ignored,
    Auth,
    Ping,
    InfoMaster(MasterId),
    InfoReplica(MasterId, ReplicaId),
    HelloMaster(MasterId),
    HelloReplica(MasterId, ReplicaId),
    HelloPeer(MasterId, PeerId),
    /// is-master-down-by-addr; `sought` when it asked for a vote in `epoch`.
    Ask {
        master: MasterId,
        peer: PeerId,
        epoch: u64,
        sought: bool,
    },
    /// CONFIG GET of its priority.
    Priority(MasterId, ReplicaId),
    /// The EXEC that makes a replica a master or turns it to another.
    Exec(MasterId, ReplicaId),
    /// The EXEC that has the master hand over.
    HandOver(MasterId),
    /// The EXEC that ends the pause after a coordinated failover.
    Released(MasterId, Side),
}

impl Expect {
    /// The request told one of our epochs, and so rests on the save of its turn.
    #[must_use]
    pub fn tells_epoch(self) -> bool {
        matches!(self, Expect::HelloMaster(_) | Expect::HelloReplica(..) | Expect::HelloPeer(..) | Expect::Ask { .. })
    }
}
