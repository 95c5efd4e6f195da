//! The monitoring half: what is sent because time has passed. It runs in TILT, too.

use super::Sentinel;
use super::failover::Step;
use super::hello::{self, HELLO_CHANNEL};
use super::ids::{LinkId, MasterId, PeerId, ReplicaId};
use super::link::renamed;
use super::model::{Expect, Master, Owner, Reconf, Replica, Role};
use super::progress::LONGEST_PAUSE;
use crate::base::Millis;

/// INFO period, ms, for a replica whose news matter: its master is down or being replaced, or it follows nobody.
const ANXIOUS_INFO_PERIOD: u64 = 1_000;

impl Sentinel {
    /// Links, INFO, PING and hello of a master, its replicas and its peers, as far as due.
    pub(super) fn monitor_master(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let down_after = master.settings.down_after;
        let replicas: Vec<(ReplicaId, LinkId)> = master.replicas.values().map(|r| (r.id, r.node.link)).collect();
        let peers: Vec<LinkId> = master.peers.values().map(|p| p.link).collect();
        let own_link = master.node.link;

        for link in std::iter::once(own_link).chain(replicas.iter().map(|&(_, link)| link)).chain(peers) {
            self.tend_link(now, link, down_after);
        }
        self.master_routine(now, id);
        for (replica, _) in replicas {
            self.replica_routine(now, id, replica);
        }
        self.peer_routine(now, id);
    }

    fn master_routine(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let link = master.node.link;
        let timers = [
            (master.node.info_at(self.tunables.info_period), self.tunables.info_period),
            self.ping_timer(master, link),
            self.hello_timer(master.node.hello_sent, master.node.hello_asked),
        ];
        let [info, ping, hello] = leaving(now, timers);
        if info {
            self.send_info_to_master(now, id);
        }
        if ping {
            self.ping(now, link, Some(id));
        }
        if hello {
            self.hello_to_master(now, id);
        }
    }

    fn replica_routine(&mut self, now: Millis, id: MasterId, replica: ReplicaId) {
        let Some((master, node)) = self.masters.get(&id).and_then(|m| Some((m, m.replicas.get(&replica)?))) else {
            return;
        };
        let (link, info_period) = (node.node.link, self.info_period(master, node));
        let timers = [
            (node.node.info_at(info_period), info_period),
            self.ping_timer(master, link),
            self.hello_timer(node.node.hello_sent, node.node.hello_asked),
        ];
        let [info, ping, hello] = leaving(now, timers);
        if info {
            self.send_info_to_replica(now, id, replica);
        }
        if ping {
            self.ping(now, link, Some(id));
        }
        if hello {
            self.hello_to_replica(now, id, replica);
        }
    }

    fn peer_routine(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let peers: Vec<(PeerId, LinkId)> = master.peers.values().map(|peer| (peer.id, peer.link)).collect();
        for (peer, link) in peers {
            let Some((master, known)) = self.masters.get(&id).and_then(|m| Some((m, m.peers.get(&peer)?))) else {
                continue;
            };
            let hello = self.hello_timer(known.hello_sent, known.hello_asked);
            let [ping, hello] = leaving(now, [self.ping_timer(master, link), hello]);
            if ping {
                self.ping(now, link, None);
            }
            if hello {
                self.hello_to_peer(now, id, peer);
            }
        }
    }

    pub(super) fn info_period(&self, master: &Master, replica: &Replica) -> u64 {
        let under_way = matches!(replica.reconf, Reconf::Sent | Reconf::InProgress)
            || matches!(master.failover.as_ref().map(|f| f.step),
                Some(Step::WaitPromotion { promoted }) if promoted == replica.id);
        if under_way {
            LONGEST_PAUSE
        } else if master.odown.is_some()
            || master.failover.is_some()
            || !replica.link_up
            || replica.node.role_reported == Role::Master
        {
            ANXIOUS_INFO_PERIOD.min(self.tunables.info_period)
        } else {
            self.tunables.info_period
        }
    }

    /// When the next hello to a node is due.
    pub(super) fn hello_at(&self, sent: Millis, asked: Option<Millis>) -> Millis {
        sent.max(asked.unwrap_or(sent)) + self.tunables.publish_period + 1
    }

    fn hello_timer(&self, sent: Millis, asked: Option<Millis>) -> (Millis, u64) {
        (self.hello_at(sent, asked), self.tunables.publish_period)
    }

    fn ping_timer(&self, master: &Master, link: LinkId) -> (Millis, u64) {
        let period = self.ping_period(master);
        let link = &self.links[&link];
        // Another one before its time is no good while one is unanswered.
        (link.ping_at(period, self.tunables.ping_period), if link.active_ping.is_none() { period } else { 0 })
    }

    /// How often the nodes of this master get a PING; a peer that several masters share, as often as the shortest says.
    pub(super) fn ping_period(&self, master: &Master) -> u64 {
        let own = Some(master.settings.ping_period).filter(|&period| period > 0);
        own.unwrap_or(self.tunables.ping_period).min(master.settings.down_after)
    }

    /// When the master wants its next PING, where the operator has chosen a period: one shorter than the turns of the
    /// cron is kept as well.
    pub(super) fn ping_deadline(&self, master: &Master) -> Option<Millis> {
        let link = &self.links[&master.node.link];
        if master.settings.ping_period == 0 || link.active_ping.is_some() || !link.cmd.is_up() || !link.has_room(1) {
            return None;
        }
        Some(link.ping_at(self.ping_period(master), self.tunables.ping_period))
    }

    pub(super) fn ping_on_time(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        if self.ping_deadline(master).is_some_and(|at| at <= now) {
            self.ping(now, master.node.link, Some(id));
        }
    }

    /// `servers` names the master whose rename-command map applies; peers have none.
    fn ping(&mut self, now: Millis, link: LinkId, servers: Option<MasterId>) {
        let Some(link) = self.links.get_mut(&link) else { return };
        let settings = servers.and_then(|id| self.masters.get(&id)).map(|master| &master.settings);
        link.ping(&mut self.out, now, settings.map_or("PING", |settings| renamed(settings, "PING")));
    }

    /// A command connection stands: learn at once what the node is, and say who we are.
    pub(super) fn greet(&mut self, now: Millis, link: LinkId) {
        let Some(link) = self.links.get(&link) else { return };
        match link.owner.clone() {
            Owner::Master(id) => {
                self.send_info_to_master(now, id);
                self.hello_to_master(now, id);
            }
            Owner::Replica(id, replica) => {
                self.send_info_to_replica(now, id, replica);
                self.hello_to_replica(now, id, replica);
            }
            Owner::Peer(run_id, masters) => {
                for &id in masters.iter() {
                    let peer = self.masters.get(&id).and_then(|m| m.peers.values().find(|p| p.run_id == run_id));
                    if let Some(peer) = peer.map(|peer| peer.id) {
                        self.hello_to_peer(now, id, peer);
                    }
                }
            }
        }
    }

    pub(super) fn send_info_to_master(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let Some(link) = self.links.get_mut(&master.node.link) else { return };
        let name = renamed(&master.settings, "INFO").as_bytes();
        if link.command(&mut self.out, Expect::InfoMaster(id), &[name]) {
            master.node.info_asked = Some(now);
        }
    }

    pub(super) fn send_info_to_replica(&mut self, now: Millis, id: MasterId, replica: ReplicaId) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let Some(node) = master.replicas.get_mut(&replica) else { return };
        let Some(link) = self.links.get_mut(&node.node.link) else { return };
        let name = renamed(&master.settings, "INFO").as_bytes();
        if link.command(&mut self.out, Expect::InfoReplica(id, replica), &[name]) {
            node.node.info_asked = Some(now);
        }
    }

    /// Our hello about this master over this link; `None` while we do not know our own address there, or while
    /// what there is to tell is not on disk.
    fn our_hello(&self, id: MasterId, link: LinkId) -> Option<Vec<u8>> {
        let master = self.masters.get(&id)?;
        if self.save_retry.is_some() && master.durable_config_epoch != master.config_epoch {
            return None;
        }
        let ip = if self.options.announce_ip.is_empty() {
            self.links.get(&link)?.local_ip?.to_string()
        } else {
            self.options.announce_ip.clone()
        };
        let port = if self.options.announce_port == 0 { self.identity.port } else { self.options.announce_port };
        let addr = super::current_addr(master);
        Some(hello::compose(
            &ip,
            port,
            self.identity.myid,
            self.told_epoch(),
            &master.name,
            &self.out.host(addr),
            addr.port,
            master.config_epoch,
        ))
    }

    fn publish(&mut self, now: Millis, id: MasterId, link: LinkId, expect: Expect, command: &str) -> bool {
        let hushed = self.masters.get(&id).and_then(|master| master.hushed_until).is_some_and(|until| now < until);
        if hushed && !matches!(expect, Expect::HelloPeer(..)) {
            return false;
        }
        let Some(hello) = self.our_hello(id, link) else { return false };
        self.remember_words(&hello);
        let Some(link) = self.links.get_mut(&link) else { return false };
        link.command(&mut self.out, expect, &[command.as_bytes(), HELLO_CHANNEL, &hello])
    }

    pub(super) fn hello_to_master(&mut self, now: Millis, id: MasterId) {
        if self.has_paused(id) {
            return;
        }
        let Some(master) = self.masters.get(&id) else { return };
        let (link, command) = (master.node.link, renamed(&master.settings, "PUBLISH").to_owned());
        if self.publish(now, id, link, Expect::HelloMaster(id), &command)
            && let Some(master) = self.masters.get_mut(&id)
        {
            master.node.hello_asked = Some(now);
        }
    }

    pub(super) fn hello_to_replica(&mut self, now: Millis, id: MasterId, replica: ReplicaId) {
        let Some(master) = self.masters.get(&id) else { return };
        let Some(link) = master.replicas.get(&replica).map(|replica| replica.node.link) else { return };
        let command = renamed(&master.settings, "PUBLISH").to_owned();
        if self.publish(now, id, link, Expect::HelloReplica(id, replica), &command)
            && let Some(replica) = self.masters.get_mut(&id).and_then(|master| master.replicas.get_mut(&replica))
        {
            replica.node.hello_asked = Some(now);
        }
    }

    pub(super) fn hello_to_peer(&mut self, now: Millis, id: MasterId, peer: PeerId) {
        let Some(link) = self.masters.get(&id).and_then(|m| m.peers.get(&peer)).map(|peer| peer.link) else { return };
        if self.publish(now, id, link, Expect::HelloPeer(id, peer), "PUBLISH")
            && let Some(peer) = self.masters.get_mut(&id).and_then(|master| master.peers.get_mut(&peer))
        {
            peer.hello_asked = Some(now);
        }
    }

    /// The news cannot wait for the publish period: peers first, they decide.
    pub(super) fn hello_to_everybody(&mut self, now: Millis, id: MasterId) {
        let Some(master) = self.masters.get(&id) else { return };
        let peers: Vec<_> = master.peers.keys().copied().collect();
        let replicas: Vec<_> = master.replicas.keys().copied().collect();
        for peer in peers {
            self.hello_to_peer(now, id, peer);
        }
        for replica in replicas {
            self.hello_to_replica(now, id, replica);
        }
        self.hello_to_master(now, id);
    }
}

/// Which of these leave now, each with the moment at which it is due and its period: those that are due, and with them whatever
/// would follow within a tenth of its period. One write carries them all, and the next time they are due together.
fn leaving<const N: usize>(now: Millis, timers: [(Millis, u64); N]) -> [bool; N] {
    let any = timers.iter().any(|&(at, _)| at <= now);
    timers.map(|(at, period)| any && at <= now + period / 10)
}
