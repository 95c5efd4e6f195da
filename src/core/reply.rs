//! What comes back on the links.

use super::effect::Level;
use super::hello::{HELLO_CHANNEL, Heard};
use super::ids::{ConnId, LinkId, MasterId, PeerId, RunId};
use super::model::{Conn, Excused, Expect, Owner};
use super::{Plant, Sentinel};
use crate::base::Millis;
use crate::resp::Reply;

/// Room for so many unanswered commands is kept on a link.
const PENDING_KEPT: usize = 4;

impl Sentinel {
    pub(super) fn command_reply(&mut self, now: Millis, conn: ConnId, reply: Reply) {
        let Some(&(id, _)) = self.conns.get(&conn) else { return };
        let Some(link) = self.links.get_mut(&id) else { return };
        // An answer to nothing: the other side does not keep the order of the protocol, and whatever it says next
        // cannot be matched either.
        let Some(expect) = link.pending.pop_front() else {
            if !std::mem::replace(&mut link.disorder_logged, true) {
                let text = format!("{} sent a reply to no question; reconnecting, now and whenever it does", link.addr);
                self.out.log(Level::Warning, text);
            }
            // It came to nothing, like a welcome that is taken back.
            link.unrefused = link.unrefused.saturating_add(1);
            self.hang_up(id, super::ConnKind::Command);
            // As with a loss: from here on the silence may count, and be over sooner than anybody was to be woken for it.
            self.touch_owner(now, id);
            return;
        };
        if link.pending.is_empty() {
            // At the opening of a link more is asked at once than ever after.
            link.pending.shrink_to(PENDING_KEPT);
        }
        link.refusals = None;
        // Whether we may ask for a priority is no matter of the link, and is said where it matters.
        if let Reply::Error(text) = &reply
            && !matches!(expect, Expect::Priority(..))
        {
            self.log_refusal(id, text);
        }
        match (expect, reply) {
            (Expect::Ping, reply) => self.ping_reply(now, id, &reply),
            (Expect::InfoMaster(master), Reply::Bulk(text)) => self.if_ours(master, id, |this| {
                this.clear_info_mark(master, None);
                this.master_info(now, master, text);
            }),
            (Expect::InfoReplica(master, replica), Reply::Bulk(text)) => {
                self.clear_info_mark(master, Some(replica));
                if self.masters.get(&master).is_some_and(|master| master.replicas.contains_key(&replica)) {
                    self.replica_info(now, master, replica, text);
                }
            }
            (Expect::InfoMaster(master), _) => self.clear_info_mark(master, None),
            (Expect::InfoReplica(master, replica), _) => self.clear_info_mark(master, Some(replica)),
            (Expect::HelloMaster(id), reply) => {
                if let Some(master) = self.masters.get_mut(&id) {
                    master.node.hello_asked = None;
                    if is_error(&reply) {
                        self.reconsider(id);
                    } else {
                        master.node.hello_sent = now;
                    }
                }
            }
            (Expect::HelloReplica(id, replica), reply) => {
                if let Some(replica) = self.masters.get_mut(&id).and_then(|m| m.replicas.get_mut(&replica)) {
                    replica.node.hello_asked = None;
                    if is_error(&reply) {
                        self.reconsider(id);
                    } else {
                        replica.node.hello_sent = now;
                    }
                }
            }
            (Expect::HelloPeer(id, peer), reply) => {
                if let Some(peer) = self.masters.get_mut(&id).and_then(|m| m.peers.get_mut(&peer)) {
                    peer.hello_asked = None;
                    if is_error(&reply) {
                        self.reconsider(id);
                    } else {
                        peer.hello_sent = now;
                    }
                }
            }
            (Expect::Ask { master, peer, epoch, sought }, reply) => {
                self.ask_reply(now, master, peer, epoch, sought, &reply);
            }
            (Expect::Priority(master, replica), reply) => self.priority_reply(now, master, replica, &reply),
            (Expect::Exec(master, replica), reply) => self.exec_reply(master, replica, &reply),
            (Expect::HandOver(master), reply) => self.handover_reply(now, master, &reply),
            (Expect::Released(master, side), reply) => {
                // What it wrote down is said first, and a server without a file of its own cannot: its clients go all the same.
                let dropped = matches!(&reply, Reply::Array(parts)
                    if parts.len() > 1 && !parts[1..].iter().any(is_error));
                if !dropped {
                    let text = format!("{} did not drop its clients", self.links[&id].addr);
                    self.out.log(Level::Warning, text);
                }
                self.released(now, master, side, dropped);
                self.act(now, master);
            }
            (Expect::Ignored | Expect::Auth, _) => {}
        }
    }

    /// The link may have passed to another node's instance since the question was sent.
    fn if_ours(&mut self, master: MasterId, link: LinkId, then: impl FnOnce(&mut Self)) {
        if self.masters.get(&master).is_some_and(|master| master.node.link == link) {
            then(self);
        }
    }

    fn clear_info_mark(&mut self, master: MasterId, replica: Option<super::ReplicaId>) {
        self.reconsider(master);
        let Some(master) = self.masters.get_mut(&master) else { return };
        match replica {
            None => master.node.info_asked = None,
            Some(replica) => {
                if let Some(replica) = master.replicas.get_mut(&replica) {
                    replica.node.info_asked = None;
                }
            }
        }
    }

    /// A node that refuses us is as good as dead to us, and the reason is worth one line.
    fn log_refusal(&mut self, id: LinkId, text: &[u8]) {
        let refused = [&b"NOAUTH"[..], b"WRONGPASS", b"NOPERM"].iter().any(|code| text.starts_with(code))
            || text.starts_with(b"ERR AUTH ");
        let Some(link) = self.links.get_mut(&id) else { return };
        if refused && !std::mem::replace(&mut link.refusal_logged, true) {
            let text = String::from_utf8_lossy(text);
            let text = format!("{} refuses our commands: {}", link.addr, text.escape_default());
            self.out.log(Level::Warning, text);
        }
    }

    fn ping_reply(&mut self, now: Millis, id: LinkId, reply: &Reply) {
        self.note_pong(now, id);
        let deaf = self.planted(Plant::DeafToMasters);
        let Some(link) = self.links.get_mut(&id) else { return };
        link.last_pong = now;
        let (pong, ok, busy) = match reply {
            Reply::Simple(text) => (text.starts_with(b"PONG"), text.starts_with(b"PONG"), false),
            Reply::Error(text) => {
                let alive = text.starts_with(b"LOADING") || text.starts_with(b"MASTERDOWN");
                (false, alive, text.starts_with(b"BUSY"))
            }
            _ => (false, false, false),
        };
        if ok && !(deaf && matches!(link.owner, Owner::Master(_))) {
            (link.last_ok, link.active_ping, link.excused) = (now, None, Excused::default());
        }
        if pong
            && let Owner::Master(master) = &link.owner
            && let Some(master) = self.masters.get_mut(master)
        {
            master.rebooted = None;
        }
        if busy {
            self.kill_script(id);
        }
        if self.owner_is_down(id) {
            self.touch_owner(now, id);
        }
        if let Some(Owner::Master(master)) = self.links.get(&id).map(|link| &link.owner)
            && let Some(master) = self.masters.get(master)
            && let Some(next) = self.ping_deadline(master)
        {
            self.arm(master.id, next);
        }
    }

    fn owner_is_down(&self, link: LinkId) -> bool {
        match self.links.get(&link).map(|link| &link.owner) {
            None => false,
            Some(Owner::Master(master)) => self.masters.get(master).is_some_and(|master| master.node.sdown.is_some()),
            Some(Owner::Replica(master, replica)) => self
                .masters
                .get(master)
                .and_then(|master| master.replicas.get(replica))
                .is_some_and(|replica| replica.node.sdown.is_some()),
            Some(Owner::Peer(_, masters)) => masters
                .iter()
                .filter_map(|master| self.masters.get(master))
                .any(|master| master.peers.values().any(|peer| peer.link == link && peer.sdown.is_some())),
        }
    }

    /// A server stuck in a script and down for us: end the script, once until it recovers.
    fn kill_script(&mut self, id: LinkId) {
        let (master, replica) = match self.links.get(&id).map(|link| &link.owner) {
            Some(Owner::Master(master)) => (*master, None),
            Some(Owner::Replica(master, replica)) => (*master, Some(*replica)),
            Some(Owner::Peer(..)) | None => return,
        };
        let Some(master) = self.masters.get_mut(&master) else { return };
        let node = match replica {
            None => &mut master.node,
            Some(replica) => match master.replicas.get_mut(&replica) {
                Some(replica) => &mut replica.node,
                None => return,
            },
        };
        if node.sdown.is_none() || node.script_kill_sent {
            return;
        }
        node.script_kill_sent = true;
        let name = super::link::renamed(&master.settings, "SCRIPT").as_bytes();
        if let Some(link) = self.links.get_mut(&id) {
            link.command(&mut self.out, Expect::Ignored, &[name, b"KILL"]);
        }
    }

    fn ask_reply(&mut self, now: Millis, id: MasterId, peer: PeerId, epoch: u64, sought: bool, reply: &Reply) {
        self.note_answer(now, id, peer, sought);
        let Some(master) = self.masters.get_mut(&id) else { return };
        let Some(peer) = master.peers.get_mut(&peer) else { return };
        peer.asking = false;
        let Reply::Array(parts) = reply else { return };
        let [Reply::Integer(down), Reply::Bulk(leader), Reply::Integer(vote_epoch)] = parts.as_slice() else { return };
        let (down, leader) = (*down == 1, RunId::parse(leader));
        let Ok(vote_epoch) = u64::try_from(*vote_epoch) else { return };
        peer.heard = Some(now);
        (peer.agrees, peer.echo) = (down, peer.echo && !down);
        if let Some(leader) = leader {
            peer.vote = Some((leader, vote_epoch));
        }
        if sought {
            peer.answered = peer.answered.max(Some(epoch));
            // It knows the master (else it would not call it down, or name a leader), was asked for its vote in
            // this epoch and did not give it: it never will. Redis's is beyond the epoch; ours has a configuration of that
            // epoch or a newer one, could not save, or had just started, and its own epoch was beyond.
            if vote_epoch < epoch && (down || leader.is_some()) {
                peer.abstained = peer.abstained.max(Some(epoch));
            }
            if let Some(failover) = master.failover.as_mut().filter(|failover| failover.epoch == epoch) {
                failover.report.answered(now, peer);
            }
        }
        self.act(now, id);
    }

    fn exec_reply(&mut self, master: MasterId, replica: super::ReplicaId, reply: &Reply) {
        let Some(master) = self.masters.get(&master) else { return };
        let Some(replica) = master.replicas.get(&replica) else { return };
        let failure = match reply {
            Reply::Error(text) => String::from_utf8_lossy(text).escape_default().to_string(),
            // SLAVEOF is the last but three; an end of FAILOVER may stand before it.
            Reply::Array(parts) => match parts.iter().rev().nth(3) {
                Some(Reply::Error(text)) => String::from_utf8_lossy(text).escape_default().to_string(),
                _ => return,
            },
            _ => "no transaction".into(),
        };
        let text = format!("{} did not change its role: {failure}", self.out.replica(master, replica));
        self.out.log(Level::Warning, text);
    }

    pub(super) fn pubsub_reply(&mut self, now: Millis, conn: ConnId, reply: &Reply) {
        let Some(&(id, _)) = self.conns.get(&conn) else { return };
        if self.links.get(&id).is_some_and(|link| link.refusals.is_some()) {
            self.forget_refusals(id);
        }
        let Some(link) = self.links.get_mut(&id) else { return };
        link.pubsub_heard = now;
        // AUTH and CLIENT SETNAME may fail and yet the subscription succeed; the other way round there is no use in
        // the connection.
        let opening = link.pubsub_opening > 0;
        link.pubsub_opening = link.pubsub_opening.saturating_sub(1);
        if let Reply::Error(text) = reply {
            self.log_refusal(id, text);
            if !opening {
                self.hang_up(id, super::ConnKind::PubSub);
            }
            return;
        }
        let (Reply::Array(parts) | Reply::Push(parts)) = reply else { return };
        let [Reply::Bulk(kind), Reply::Bulk(channel), third] = parts.as_slice() else { return };
        if channel != HELLO_CHANNEL {
            return;
        }
        match (kind.as_slice(), third) {
            (b"subscribe", _) => {
                link.pubsub = Conn::Up { conn, since: now };
            }
            (b"message", Reply::Bulk(payload)) => {
                self.take_payload(now, payload, Heard::FromServer);
            }
            _ => {}
        }
    }
}

fn is_error(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(_))
}
