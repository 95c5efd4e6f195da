//! Refused connections, and what they prove where `down-after-refused` is set.
//!
//! "Connection refused" is the kernel of the other machine saying that nobody listens: the process is gone. Silence
//! says less, as a node that hangs, is slow or cannot be reached is silent as well; none of these refuses anything. So
//! a run of refusals may be believed much sooner than a silence, as long as nothing else was heard within it: an
//! attempt that was accepted, that ended in another way or that never ended begins the run anew.
//!
//! What a run has proven stands until the node answers. The machine may follow its process, and then nothing is
//! refused any more, but nothing has come back either.

use super::Sentinel;
use super::effect::ConnKind;
use super::ids::{LinkId, MasterId};
use super::model::{Conn, Link, Master, Owner};
use crate::base::{Millis, SortedSet};

/// Attempts that must have been refused besides the first one, spread over the span that is asked for.
const REDIALS: u32 = 4;

/// So long, ms, the port of a process that has just died may still take connections.
const LAST_BREATH: u64 = 5;

/// Attempts to make the command connection, all of them refused.
#[derive(Clone, Debug)]
pub struct Refusals {
    /// When the first refusal came.
    since: Millis,
    /// When the attempt behind the last one was made: so late the node refused for certain, however late we hear of it.
    last: Millis,
    count: u32,
}

impl Refusals {
    /// When the first of them came.
    pub(super) fn since(&self) -> Millis {
        self.since
    }
}

impl Link {
    pub(super) fn note_refusal(&mut self, now: Millis) {
        let attempted = self.cmd_dialled.unwrap_or(now);
        let run = self.refusals.get_or_insert_with(|| Box::new(Refusals { since: now, last: now, count: 0 }));
        run.last = attempted;
        run.count = run.count.saturating_add(1);
    }

    /// Refused for longer than `span` ms; never when that is 0.
    pub(super) fn is_refused(&self, span: u64) -> bool {
        let proves = |run: &Refusals| run.count > REDIALS && run.last.since(run.since) > span;
        span > 0 && self.refusals.as_deref().is_some_and(proves)
    }

    /// When to dial again, for a run that has to last longer than `span`. Attempts lie on a grid that begins with the run,
    /// so that a loop which was held up does not make up for the ones it missed all at once.
    ///
    /// Whoever is quick to dial when a process dies may still be accepted by its port and then lose that connection, too.
    /// No run has begun by that: it begins some ms later, or where a process takes long to die with the attempt after that.
    /// But a node that goes on like that, accepting and hanging up, lives, and every connection begins with a hello for each
    /// master: it is dialled like others, and so is one that cannot be reached.
    fn next_attempt(&self, span: u64) -> Option<Millis> {
        // Nobody can refuse us at port 0, or behind a name of which nothing is known.
        let reachable = self.addr.ip.is_some() && self.addr.port != 0;
        if !reachable || self.cmd != Conn::Down || self.is_refused(span) {
            return None;
        }
        let step = span / u64::from(REDIALS) + 1;
        let Some(run) = self.refusals.as_deref() else {
            let wait = match self.unrefused {
                0 | 1 => LAST_BREATH.min(step),
                2 => step,
                _ => return None,
            };
            return self.cmd_dialled.map(|at| at + wait);
        };
        let passed = self.cmd_dialled.map_or(0, |at| at.since(run.since)) / step;
        Some(run.since + (passed + 1).saturating_mul(step))
    }
}

impl Master {
    /// The links whose refusals can still bring somebody of this master down, with the span that is asked for.
    fn links_on_probation(&self) -> impl Iterator<Item = LinkId> {
        let master = self.node.sdown.is_none().then_some(self.node.link);
        let replicas = self.replicas.values().filter(|replica| replica.node.sdown.is_none());
        let peers = self.peers.values().filter(|peer| peer.sdown.is_none());
        let on = self.settings.down_after_refused > 0;
        let all =
            master.into_iter().chain(replicas.map(|replica| replica.node.link)).chain(peers.map(|peer| peer.link));
        all.filter(move |_| on)
    }
}

impl Sentinel {
    /// An attempt to connect was not refused, or nobody knows: the run is over, unless it has proven its case.
    pub(super) fn end_refusals(&mut self, id: LinkId) {
        let Some(link) = self.links.get(&id) else { return };
        if link.refusals.is_none() {
            return;
        }
        let proven = |master: &MasterId| {
            self.masters.get(master).is_some_and(|master| link.is_refused(master.settings.down_after_refused))
        };
        let stands = match &link.owner {
            Owner::Master(master) | Owner::Replica(master, _) => proven(master),
            Owner::Peer(_, masters) => masters.iter().any(proven),
        };
        if !stands {
            self.forget_refusals(id);
        }
    }

    /// The run is over. Without it the next attempt may be nearer than on its grid, and is to be made in time.
    pub(super) fn forget_refusals(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.refusals = None;
        let users = match &link.owner {
            Owner::Master(master) | Owner::Replica(master, _) => SortedSet::from_iter([*master]),
            Owner::Peer(_, masters) => masters.clone(),
        };
        self.reconsider_users(id);
        for &master in users.iter() {
            if let Some(at) = self.masters.get(&master).and_then(|master| self.redial_deadline(master)) {
                self.arm(master, at);
            }
        }
    }

    /// When a refused node of this master is to be dialled again.
    pub(super) fn redial_deadline(&self, master: &Master) -> Option<Millis> {
        let span = master.settings.down_after_refused;
        master.links_on_probation().filter_map(|link| self.links[&link].next_attempt(span)).min()
    }

    /// Dials those whose turn it is.
    pub(super) fn redial_refused(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let span = master.settings.down_after_refused;
        let due = |link: &LinkId| self.links[link].next_attempt(span).is_some_and(|at| at <= now);
        let due: Vec<LinkId> = master.links_on_probation().filter(due).collect();
        for link in due {
            self.dial(now, link, ConnKind::Command);
        }
    }
}
