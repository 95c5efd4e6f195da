//! Down: subjectively (we alone), objectively (the quorum).

use super::ids::{LinkId, MasterId, RunId};
use super::model::{Link, Master, Peer, Role};
use super::snapshot::Settings;
use super::{Plant, Sentinel};
use crate::base::Millis;

/// An answer about a master, and the vote in it, is forgotten after this many ask periods.
const ANSWER_LIFE_PERIODS: u64 = 5;

impl Link {
    /// Since when the silence counts; `None` when there is none. The Pub/Sub side has no say: it comes and goes
    /// with every failover, and the node answers on the other.
    pub(super) fn silent_since(&self) -> Option<Millis> {
        self.active_ping.or((!self.cmd.is_up()).then_some(self.last_ok))
    }

    /// When the silence will have lasted too long.
    pub(super) fn silent_at(&self, down_after: u64) -> Option<Millis> {
        self.silent_since().map(|since| since + down_after + 1)
    }

    /// Silent, or refused, for longer than the settings of its master allow, as of this moment.
    fn is_lost(&self, by: Millis, settings: &Settings) -> bool {
        self.silent_at(settings.down_after).is_some_and(|at| at <= by) || self.is_refused(settings.down_after_refused)
    }
}

impl Peer {
    /// True when that is news.
    fn becomes(&mut self, now: Millis, down: bool) -> bool {
        if down == self.sdown.is_some() {
            return false;
        }
        self.sdown = down.then_some(now);
        self.last_down = self.sdown.or(self.last_down);
        true
    }
}

impl Sentinel {
    /// The earliest moment at which the master can become SDOWN as things stand. When it cannot, the moment by
    /// which that may have changed: a ping that leaves later runs out later.
    pub(super) fn sdown_deadline(&self, now: Millis, master: &Master) -> Millis {
        let link = &self.links[&master.node.link];
        let down_after = master.settings.down_after;
        let mut at = link.silent_at(down_after).unwrap_or(now + down_after + 1);
        if master.node.role_reported == Role::Replica {
            at = at.min(self.patience_ends(master));
        }
        if let Some(rebooted) = master.rebooted {
            at = at.min(rebooted + master.settings.reboot_down_after + 1);
        }
        at
    }

    /// When a master has said for so long that it is a replica that it counts as down.
    pub(super) fn patience_ends(&self, master: &Master) -> Millis {
        master.node.role_reported_at + master.settings.down_after + self.tunables.info_period.saturating_mul(2) + 1
    }

    /// The moment by which whoever is down since then, or is not, is judged. Nobody is called down but by what has been heard of
    /// everybody, and nobody is up again because that is little.
    fn judged_by(&self, now: Millis) -> impl Fn(Option<Millis>) -> Millis + use<> {
        let heard = self.heard(now);
        move |sdown| if sdown.is_some() { now } else { heard }
    }

    pub(super) fn judge_master(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        self.stand_in_line(now, master.node.link);
        let Some(master) = self.masters.get(&id) else { return };
        let by = self.judged_by(now)(master.node.sdown);
        let down = self.links[&master.node.link].is_lost(by, &master.settings)
            || (master.node.role_reported == Role::Replica && by >= self.patience_ends(master))
            || master.rebooted.is_some_and(|at| by.since(at) > master.settings.reboot_down_after);
        if down == master.node.sdown.is_some() {
            return;
        }
        let text = self.out.master(master);
        self.out.alert(master, if down { "+sdown" } else { "-sdown" }, text);
        let Some(master) = self.masters.get_mut(&id) else { return };
        if down {
            master.node.sdown = Some(now);
            master.node.last_down = Some(now);
            // What others said before is about an earlier silence: taken together, two short ones that not everybody
            // noticed would bring down a master that most have heard all the time. They are asked anew.
            for peer in master.peers.values_mut() {
                (peer.agrees, peer.heard) = (false, None);
            }
            // Soon one of its replicas may be chosen: by what it holds now.
            self.refresh_replicas(now, id);
        } else {
            master.node.sdown = None;
            master.node.script_kill_sent = false;
        }
    }

    /// SDOWN of the replicas and peers of a master; nothing for TILT.
    pub(super) fn judge_others(&mut self, now: Millis, id: MasterId) {
        if self.tilt.is_some() {
            return;
        }
        let by = self.judged_by(now);
        let Some(master) = self.masters.get_mut(&id) else { return };
        let settings = &master.settings;
        let mut is_lost = |link: LinkId, sdown: Option<Millis>| {
            self.links.get_mut(&link).is_some_and(|link| {
                link.stand_in_line(now);
                link.is_lost(by(sdown), settings)
            })
        };
        let mut changed = Vec::new();
        for replica in master.replicas.values_mut() {
            let down = is_lost(replica.node.link, replica.node.sdown);
            if down != replica.node.sdown.is_some() {
                replica.node.sdown = down.then_some(now);
                if down {
                    replica.node.last_down = Some(now);
                } else {
                    replica.node.script_kill_sent = false;
                }
                changed.push((down, Ok(replica.id)));
            }
        }
        for peer in master.peers.values_mut() {
            let down = is_lost(peer.link, peer.sdown);
            if peer.becomes(now, down) {
                changed.push((down, Err(peer.id)));
            }
        }
        for (down, who) in changed {
            let master = &self.masters[&id];
            let text = match who {
                Ok(replica) => self.out.replica(master, &master.replicas[&replica]),
                Err(peer) => self.out.peer(master, &master.peers[&peer]),
            };
            self.out.alert(master, if down { "+sdown" } else { "-sdown" }, text);
        }
    }

    /// SDOWN of one peer of a master; nothing for TILT.
    pub(super) fn judge_peer(&mut self, now: Millis, id: MasterId, who: RunId) {
        let by = self.judged_by(now);
        let Some(master) = self.masters.get_mut(&id).filter(|_| self.tilt.is_none()) else { return };
        let Some(peer) = master.peers.values_mut().find(|peer| peer.run_id == who) else { return };
        let Some(link) = self.links.get_mut(&peer.link) else { return };
        link.stand_in_line(now);
        let down = link.is_lost(by(peer.sdown), &master.settings);
        if peer.becomes(now, down) {
            let peer = peer.id;
            let text = self.out.peer(master, &master.peers[&peer]);
            self.out.alert(master, if down { "+sdown" } else { "-sdown" }, text);
        }
    }

    pub(super) fn judge_quorum(&mut self, now: Millis, id: MasterId) {
        let alone = self.planted(Plant::FailoverWithoutQuorum);
        let Some(master) = self.masters.get_mut(&id) else { return };
        let life = self.tunables.ask_period.saturating_mul(ANSWER_LIFE_PERIODS);
        for peer in master.peers.values_mut() {
            if peer.heard.is_some_and(|at| now.since(at) > life) {
                peer.agrees = false;
                peer.vote = None;
                peer.heard = None;
            }
        }
        let agreeing = 1 + master.peers.values().filter(|peer| peer.agrees).count();
        let enough = alone || agreeing >= master.settings.quorum as usize;
        let down = master.node.sdown.is_some() && enough;
        if down == master.odown.is_some() {
            return;
        }
        master.odown = down.then_some(now);
        let mut text = self.out.master(master);
        if down {
            text.push_str(&format!(" #quorum {agreeing}/{}", master.settings.quorum));
        }
        self.out.alert(master, if down { "+odown" } else { "-odown" }, text);
    }
}
