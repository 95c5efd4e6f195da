//! `SENTINEL FAILOVER … COORDINATED`: the master itself hands over to the chosen replica, so that nothing it has
//! acknowledged is lost.
//!
//! The steps are those of every failover (see [`super::failover`]), with other orders. Instead of telling the replica to be a
//! master we tell the master, once, in one transaction, to pause writes and to `FAILOVER` to it. The master waits until the
//! replica has everything, makes it a master and follows it. When the replica says that it is a master, both drop their
//! clients and the pause ends: whoever waited there asks us for the new address, and has heard of no success that did not
//! last.
//!
//! * It needs the votes of a majority, like a failover of a master that is down.
//! * The order is not repeated: the second one would be refused because of the first. When its answer is lost with the
//!   connection, the next INFO of the master shows whether it was heard.
//! * While the master is paused we publish no hello there: PUBLISH is a write, and all behind it would wait as well, our
//!   word that ends the pause above all.
//! * When the master goes down meanwhile (objectively), it becomes the failover that is due then, in the same epoch, to the
//!   same replica if the order is out: that one may be a master by now.
//! * When nothing comes of it, the master goes on by itself: pause and `FAILOVER` end on their own with the time that they
//!   were given, failover-timeout or [`HANDOVER_MOST`]. We do not abort what may just be succeeding.

use super::Sentinel;
use super::effect::Level;
use super::failover::{Step, is_stale};
use super::ids::{Addr, LinkId, MasterId, ReplicaId};
use super::info::InfoReport;
use super::link::renamed;
use super::model::{Expect, Master, Role};
use crate::base::Millis;
use crate::resp::Reply;

/// A replica that is in step has all within a second or two (it acknowledges once a second); beyond this a master that waits for
/// one does more harm than a failover that comes to nothing, ms.
const HANDOVER_MOST: u64 = 10_000;

/// What a coordinated failover has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handover {
    order: Order,
    /// How far the two nodes are with dropping their clients, by [`Side`].
    release: [Release; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    NotGiven,
    /// From here on the servers may act on it, whatever we hear.
    Given,
    /// The connection was lost before the answer.
    Unanswered,
    /// And the master has told its state since then.
    InDoubt,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Release {
    #[default]
    Due,
    Sent,
    Done,
}

/// Which of the two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    New,
    Old,
}

impl Sentinel {
    /// Whether the master can do it at all: its INFO shows how far its `FAILOVER` is.
    pub(super) fn can_hand_over(master: &Master) -> bool {
        master.node.handing_over.is_some()
    }

    /// Hellos to this master would wait for the end of a pause that we have asked for.
    pub(super) fn has_paused(&self, id: MasterId) -> bool {
        let failover = self.masters.get(&id).and_then(|master| master.failover.as_ref());
        failover.and_then(|failover| failover.handover).is_some_and(|handover| handover.order != Order::NotGiven)
    }

    /// How long the master may stop writing for it, ms.
    pub(super) fn handover_time(master: &Master) -> u64 {
        master.settings.failover_timeout.min(HANDOVER_MOST)
    }

    /// The best replica; of a coordinated failover, the best of those that the master names, that are in step with it, and that
    /// have answered since it began.
    pub(super) fn best_candidate(&self, now: Millis, master: &Master, coordinated: bool) -> Option<ReplicaId> {
        let listed = if coordinated { self.listed(master) } else { Vec::new() };
        let in_step = |id: &ReplicaId| {
            let replica = &master.replicas[id];
            let is_named = || listed.iter().any(|listed| listed.same(&replica.node.addr));
            // One that hangs would keep the master from writing until the time is over.
            let answers = master.failover.as_ref().is_some_and(|ours| !is_stale(&replica.node, ours.started));
            answers && replica.link_up && !replica.first_sync && is_named()
        };
        self.candidates(now, master).into_iter().find(|id| !coordinated || in_step(id))
    }

    /// The addresses of the replicas as the master spells them, which is how FAILOVER wants to hear one.
    fn listed(&self, master: &Master) -> Vec<Addr> {
        let text = master.node.info.as_ref().map_or(&b""[..], |info| &info.text);
        InfoReport::parse(text).replicas.into_iter().map(|addr| self.as_known(addr)).collect()
    }

    /// `SendReplicaofNoOne`: the order, as soon as the master can hear it.
    pub(super) fn order_handover(&mut self, now: Millis, id: MasterId, promoted: ReplicaId) -> bool {
        let master = &self.masters[&id];
        let Some(failover) = &master.failover else { return false };
        let Some(handover) = failover.handover else { return false };
        let waited = now.since(failover.changed);
        let time = Sentinel::handover_time(master);
        if waited > time {
            return self.end_handover(now, id, "-failover-abort-master-timeout");
        }
        let link = &self.links[&master.node.link];
        if !link.cmd.is_up() || !link.has_room(4) || handover.order == Order::Unanswered {
            return false;
        }
        let untouched = master.node.role_reported == Role::Master && master.node.handing_over == Some(false);
        if handover.order == Order::InDoubt && !untouched {
            self.enter(now, id, Step::WaitPromotion { promoted });
            return true;
        }
        let meant = |listed: &Addr| master.replicas.get(&promoted).is_some_and(|node| listed.same(&node.node.addr));
        let Some(target) = self.listed(master).into_iter().find(meant) else {
            let text = format!("{} has lost the replica to hand over to", self.out.master(master));
            self.out.log(Level::Warning, text);
            return self.end_handover(now, id, "-failover-abort-no-good-slave");
        };
        let ms = (time - waited).max(1).to_string();
        let (host, port) = (target.host.as_bytes(), target.port.to_string());
        let name = |command: &'static str| renamed(&master.settings, command).as_bytes();
        let (out, ms) = (&mut self.out, ms.as_bytes());
        let Some(link) = self.links.get_mut(&master.node.link) else { return false };
        link.command(out, Expect::Ignored, &[name("MULTI")]);
        link.command(out, Expect::Ignored, &[name("CLIENT"), b"PAUSE", ms, b"WRITE"]);
        link.command(out, Expect::Ignored, &[name("FAILOVER"), b"TO", host, port.as_bytes(), b"TIMEOUT", ms]);
        link.command(out, Expect::HandOver(id), &[name("EXEC")]);
        self.change_handover(id, |handover| handover.order = Order::Given);
        self.replica_event(Level::Notice, id, promoted, "+failover-state-wait-promotion");
        self.note(now, id, "+failover-state-wait-promotion", None);
        self.enter(now, id, Step::WaitPromotion { promoted });
        true
    }

    /// The answer to the transaction with the order.
    pub(super) fn handover_reply(&mut self, now: Millis, id: MasterId, reply: &Reply) {
        let Some(master) = self.masters.get(&id) else { return };
        let waits = master
            .failover
            .as_ref()
            .is_some_and(|failover| failover.handover.is_some() && matches!(failover.step, Step::WaitPromotion { .. }));
        if !waits {
            return;
        }
        let (refusal, paused) = match reply {
            Reply::Array(parts) => match parts.as_slice() {
                [_, Reply::Error(text)] => (text.as_slice(), true),
                [_, _] => {
                    self.note(now, id, "handover-begun", None);
                    return self.act(now, id);
                }
                _ => (&b"no transaction"[..], false),
            },
            Reply::Error(text) => (text.as_slice(), false),
            _ => (&b"no transaction"[..], false),
        };
        let text = self.out.master(master);
        let refusal = String::from_utf8_lossy(refusal);
        self.out.log(Level::Warning, format!("{text} does not hand over: {}", refusal.escape_default()));
        if paused && let Some(link) = self.links.get_mut(&master.node.link) {
            let name = renamed(&master.settings, "CLIENT").as_bytes();
            link.command(&mut self.out, Expect::Ignored, &[name, b"UNPAUSE"]);
        }
        // It has refused, so nothing is under way.
        self.change_handover(id, |handover| handover.order = Order::NotGiven);
        self.end_handover(now, id, "-failover-abort-master-timeout");
        self.act(now, id);
    }

    /// The connection was lost with the order on it.
    pub(super) fn handover_unanswered(&mut self, id: MasterId) {
        let Some(failover) = self.masters.get_mut(&id).and_then(|master| master.failover.as_mut()) else { return };
        let Some(handover) = &mut failover.handover else { return };
        if let Step::WaitPromotion { promoted } = failover.step {
            handover.order = Order::Unanswered;
            failover.step = Step::SendReplicaofNoOne { promoted };
        }
    }

    /// The master has told its state; on the connection that it has now, if one was lost.
    pub(super) fn handover_news(&mut self, id: MasterId) {
        self.change_handover(id, |handover| {
            if handover.order == Order::Unanswered {
                handover.order = Order::InDoubt;
            }
        });
    }

    /// The master is down for the quorum before it has handed over: what is left is the failover that this calls for.
    pub(super) fn handover_overtaken(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        if master.odown.is_none() {
            return;
        }
        let Some(failover) = &mut master.failover else { return };
        if failover.in_force().is_some() || failover.handover.take().is_none() {
            return;
        }
        let step = failover.step;
        let text = format!("{} is down before it has handed over; going on without it", self.out.master(master));
        self.out.log(Level::Warning, text);
        if let Step::WaitPromotion { promoted } = step {
            self.enter(now, id, Step::SendReplicaofNoOne { promoted });
        }
        let promoted = step.promoted().and_then(|promoted| self.masters[&id].replicas.get(&promoted));
        if promoted.is_some_and(|promoted| promoted.node.sdown.is_some()) {
            self.end_handover(now, id, "-failover-abort-slave-timeout");
        }
    }

    /// Ends a failover that we lead, so that nobody else can have led one in this epoch: the next attempt need not wait.
    fn end_handover(&mut self, now: Millis, id: MasterId, channel: &'static str) -> bool {
        self.abort(now, id, channel);
        if let Some(master) = self.masters.get_mut(&id) {
            master.retry_at = Some(now);
        }
        true
    }

    /// `ReconfReplicas`: the two nodes write down what they are now, drop their clients and end the pause. True while that
    /// is to be waited for.
    pub(super) fn release_clients(&mut self, now: Millis, id: MasterId, promoted: ReplicaId) -> bool {
        let Some(failover) = self.masters.get(&id).and_then(|master| master.failover.as_ref()) else { return false };
        let Some(handover) = failover.handover else { return false };
        if now.since(failover.changed) > self.tunables.slave_reconf_timeout {
            return false;
        }
        let mut owing = false;
        for side in [Side::New, Side::Old] {
            let master = &self.masters[&id];
            let node = match side {
                Side::Old => &master.node,
                Side::New => match master.replicas.get(&promoted) {
                    Some(replica) => &replica.node,
                    None => continue,
                },
            };
            let (link, down) = (node.link, node.sdown.is_some());
            if handover.release[side as usize] == Release::Due && self.send_release(id, side, link) {
                self.change_handover(id, |handover| handover.release[side as usize] = Release::Sent);
            }
            owing |= handover.release[side as usize] != Release::Done && !down;
        }
        owing
    }

    fn send_release(&mut self, id: MasterId, side: Side, link: LinkId) -> bool {
        let Some(master) = self.masters.get(&id) else { return false };
        let Some(link) = self.links.get_mut(&link) else { return false };
        if !link.cmd.is_up() || !link.has_room(6) {
            return false;
        }
        let name = |command: &'static str| renamed(&master.settings, command).as_bytes();
        let out = &mut self.out;
        link.command(out, Expect::Ignored, &[name("MULTI")]);
        link.command(out, Expect::Ignored, &[name("CONFIG"), b"REWRITE"]);
        link.command(out, Expect::Ignored, &[name("CLIENT"), b"KILL", b"TYPE", b"normal"]);
        link.command(out, Expect::Ignored, &[name("CLIENT"), b"KILL", b"TYPE", b"pubsub"]);
        link.command(out, Expect::Ignored, &[name("CLIENT"), b"UNPAUSE"]);
        link.command(out, Expect::Released(id, side), &[name("EXEC")])
    }

    /// The release was answered. It is not repeated, whether the clients were `dropped` or not.
    pub(super) fn released(&mut self, now: Millis, id: MasterId, side: Side, dropped: bool) {
        let mut awaited = false;
        self.change_handover(id, |handover| {
            let release = &mut handover.release[side as usize];
            awaited = *release == Release::Sent;
            if awaited {
                *release = Release::Done;
            }
        });
        // Another failover may be under way by now, to which this answer says nothing.
        if !awaited || !dropped {
            return;
        }
        let what = match side {
            Side::New => "new-master-released",
            Side::Old => "old-master-released",
        };
        self.note(now, id, what, None);
    }

    /// The release was lost with its connection.
    pub(super) fn release_unanswered(&mut self, id: MasterId, side: Side) {
        self.change_handover(id, |handover| handover.release[side as usize] = Release::Due);
    }

    fn change_handover(&mut self, id: MasterId, change: impl FnOnce(&mut Handover)) {
        let failover = self.masters.get_mut(&id).and_then(|master| master.failover.as_mut());
        if let Some(handover) = failover.and_then(|failover| failover.handover.as_mut()) {
            change(handover);
        }
    }
}
