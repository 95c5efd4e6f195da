//! Rules broken on purpose, one at a time, so that the simulation can show that it would see it.
//!
//! A fault is planted through [`Sentinel::plant`], which only tests call: no option, no command and no file leads here. Where
//! a rule stands in the core, `planted` beside it breaks it. Without a plant that is one comparison with nothing.
//!
//! [`Plant::OwnTimers`] is no fault but another peer: what redis's Sentinels do, who are in one group with ours.

use super::Sentinel;
use super::ids::{MasterId, RunId};
use super::model::{Master, Peer};

#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
    /// Votes for whoever asks, also twice in one epoch.
    VoteTwice,
    /// Leads with its own vote alone.
    LeaderWithoutMajority,
    /// A vote once given to us counts in every later epoch, too.
    CountOldVotes,
    /// More than half of those that are not down lead, instead of more than half of all.
    MajorityOfTheLiving,
    /// The vote of a peer that is no longer known still counts.
    KeepRemovedPeersVote,
    /// All start at once, whatever their rank.
    IgnoreRank,
    /// `SENTINEL FAILOVER` goes ahead without making sure that nobody else uses its epoch.
    ForceWithoutOwnEpoch,
    /// … or, where no majority can be asked, in the next epoch, which may be that majority's.
    ForceAmongOthers,
    /// A higher config epoch for the address that we have already is not saved.
    SameAddressInMemory,
    /// A hello with a lower config epoch is believed, too.
    AcceptOlderConfig,
    /// TILT keeps nobody from judging and starting.
    FailoverInTilt,
    /// Our own word is enough for ODOWN.
    FailoverWithoutQuorum,
    /// A PONG of a master does not count.
    DeafToMasters,
    /// A failover begins though its epoch and vote cannot be saved.
    StartWhileSavesFail,
    /// A replica of priority 0 is as good as any, and better.
    PromotePriorityZero,
    /// Whoever is told to follow another is told its own address.
    FollowYourself,
    /// A connection that is given up is not closed.
    ForgetToHangUp,
    /// Whether the master is down is asked with everything that is heard.
    AskAllTheTime,
    /// A vote about one master is the vote about every other in that epoch.
    VotePerSentinel,
    /// The configuration in a hello, about whichever master, is taken for that of the first.
    ConfigToFirst,
    /// RESET and REMOVE of a master close the connections to its peers, whoever shares them.
    HangUpOnSharers,
    /// RESET means every master, whatever the pattern says.
    ResetAll,
    /// The wait after a vote holds for every master, not only for the one that it was about.
    WaitPerSentinel,
    /// A connection is kept, however long nothing came back on it.
    KeepSilentLinks,
    /// While a dial of a master's link waits in our own line the master is silent.
    BlameForOwnLine,
    /// Whoever has answered is silent while its answer waits to be read.
    BlameForBacklog,
    /// Acts in the cron only, without ranks: a start is spread by chance alone, and after an attempt, whoever made it, comes
    /// the full wait.
    OwnTimers,
}

/// The fault, and what it needs to remember.
#[derive(Debug)]
pub(super) struct Planted {
    fault: Plant,
    /// Of peers that are no longer known: the master that was voted about, for whom and in which epoch.
    ghosts: Vec<(MasterId, RunId, u64)>,
}

impl Sentinel {
    #[doc(hidden)]
    pub fn plant(&mut self, fault: Plant) {
        self.plant = Some(Box::new(Planted { fault, ghosts: Vec::new() }));
    }

    /// Has a turn look at fewer masters than it would.
    #[doc(hidden)]
    pub fn set_looks_per_turn(&mut self, count: usize) {
        self.looks_per_turn = count;
    }

    /// Whether this rule is to be broken.
    pub(super) fn planted(&self, fault: Plant) -> bool {
        self.plant.as_ref().is_some_and(|planted| planted.fault == fault)
    }

    /// Our votes in an epoch and how many are needed, as a planted fault would have them.
    pub(super) fn planted_count(&self, master: &Master, epoch: u64, honest: (usize, usize)) -> (usize, usize) {
        let Some(planted) = &self.plant else { return honest };
        let (mine, needed) = honest;
        let me = self.identity.myid;
        match planted.fault {
            Plant::LeaderWithoutMajority => (mine, 1),
            Plant::CountOldVotes => {
                let old = |peer: &&Peer| peer.vote.is_some_and(|(candidate, at)| candidate == me && at != epoch);
                (mine + master.peers.values().filter(old).count(), needed)
            }
            Plant::MajorityOfTheLiving => {
                let living = 1 + master.peers.values().filter(|peer| peer.sdown.is_none()).count();
                (mine, (living / 2 + 1).max(master.settings.quorum as usize))
            }
            Plant::KeepRemovedPeersVote => {
                let ghosts = planted.ghosts.iter().filter(|ghost| **ghost == (master.id, me, epoch));
                (mine + ghosts.count(), needed)
            }
            _ => honest,
        }
    }

    /// A peer is about to be forgotten.
    pub(super) fn planted_farewell(&mut self, id: MasterId, peer: &Peer) {
        if let (Some(planted), Some((candidate, epoch))) = (&mut self.plant, peer.vote) {
            planted.ghosts.push((id, candidate, epoch));
        }
    }
}
