//! Hello messages: how Sentinels find each other and learn of a new master. Eight fields joined by commas:
//! `ip,port,runid,current_epoch,master_name,master_ip,master_port,master_config_epoch`.

use super::doubts::due;
use super::effect::Level;
use super::ids::{Addr, MasterId, PeerId, RunId};
use super::model::Peer;
use super::snapshot::Snapshot;
use super::{EPOCH_STRIDE, Plant, Sentinel, current_addr};
use crate::base::{Millis, quote};

/// The channel on which Sentinels greet each other, at servers and at each other.
pub const HELLO_CHANNEL: &[u8] = b"__sentinel__:hello";
/// Peers of one master; a group has a handful, and whoever announces more is inventing them.
const PEERS_MAX: usize = 256;

/// A well-formed hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub addr: Addr,
    pub run_id: RunId,
    pub current_epoch: u64,
    pub master_name: String,
    pub master_addr: Addr,
    pub config_epoch: u64,
}

impl Hello {
    /// `None` for anything malformed: what a peer says ends in the configuration file, so nothing doubtful enters.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Hello> {
        if quote::has_control(payload) {
            return None;
        }
        let text = std::str::from_utf8(payload).ok()?;
        let mut fields = text.split(',');
        let mut next = || fields.next();
        let (ip, port, run_id, epoch) = (next()?, next()?, next()?, next()?);
        let (name, master_ip, master_port, config_epoch) = (next()?, next()?, next()?, next()?);
        if next().is_some() || name.is_empty() {
            return None;
        }
        Some(Hello {
            addr: addr(ip, port)?,
            run_id: RunId::parse(run_id.as_bytes())?,
            current_epoch: number(epoch).filter(|&epoch| epoch <= Snapshot::EPOCH_LAST)?,
            master_name: name.into(),
            master_addr: addr(master_ip, master_port)?,
            config_epoch: number(config_epoch).filter(|&epoch| epoch <= Snapshot::EPOCH_LAST)?,
        })
    }
}

fn addr(host: &str, port: &str) -> Option<Addr> {
    Addr::told(host, u16::try_from(number(port)?).ok()?)
}

/// Digits only: no sign, no blank.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[expect(clippy::too_many_arguments, reason = "the eight fields of the wire, in their order")]
pub(super) fn compose(
    ip: &str,
    port: u16,
    run_id: RunId,
    current_epoch: u64,
    name: &str,
    master_ip: &str,
    master_port: u16,
    config_epoch: u64,
) -> Vec<u8> {
    format!("{ip},{port},{run_id},{current_epoch},{name},{master_ip},{master_port},{config_epoch}").into_bytes()
}

/// Where a hello came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The peer told us itself, and just now.
    FromPeer,
    /// A server handed it on; it may be old.
    FromServer,
}

impl Sentinel {
    /// A hello that a peer published to us directly. Malformed and foreign ones are ignored.
    pub fn hello(&mut self, now: Millis, payload: &[u8]) {
        self.notice_gap(now);
        self.take_payload(now, payload, Heard::FromPeer);
        self.check_invariants();
    }

    /// What came on the hello channel, ours or a server's.
    pub(super) fn take_payload(&mut self, now: Millis, payload: &[u8], heard: Heard) {
        if self.is_echo(payload) {
            return;
        }
        match Hello::parse(payload) {
            Some(hello) if self.is_credible(hello.current_epoch.max(hello.config_epoch)) => {
                self.take_hello(now, hello, heard)
            }
            _ => self.report_no_hello(now, payload),
        }
    }

    fn take_hello(&mut self, now: Millis, hello: Hello, heard: Heard) {
        if hello.run_id == self.identity.myid {
            self.report_own_id(now, &hello);
            return;
        }
        let Some(&id) = self.names.get(hello.master_name.as_bytes()) else { return };
        // A name that we may not look up is no address.
        let (Some(addr), Some(master_addr)) = (self.locate(hello.addr), self.locate(hello.master_addr)) else { return };
        let hello = &Hello { addr, master_addr, ..hello };
        if self.is_our_address(&hello.addr) {
            self.report_former_self(now, hello);
            return;
        }
        let Some(peer) = self.find_or_add_peer(now, id, hello) else { return };
        if let Some(peer) = self.masters.get_mut(&id).and_then(|master| master.peers.get_mut(&peer)) {
            peer.last_hello = now;
        }
        // A configuration cannot be newer than the epoch it was agreed in.
        self.adopt_epoch(hello.current_epoch.max(hello.config_epoch));
        let first = self.masters.keys().next().copied().filter(|_| self.planted(Plant::ConfigToFirst));
        let id = first.unwrap_or(id);
        if heard == Heard::FromPeer || !self.may_be_of_former_life(now, id, hello) {
            self.adopt_config(now, id, peer, hello);
        }
    }

    /// An operator has removed this master and monitors it anew, and here a server repeats what was true before that. If it
    /// still is, whoever says so tells us itself as soon as it knows us.
    fn may_be_of_former_life(&self, now: Millis, id: MasterId, hello: &Hello) -> bool {
        let former = self.masters.get(&id).and_then(|master| master.former_life);
        former.is_some_and(|(epoch, until)| now < until && hello.config_epoch <= epoch)
    }

    /// Whether these are our own words. Every server sends them back, once for each name under which we watch it: a thousand
    /// names on a few servers make ten thousand a second of them, too many to be read to the end.
    fn is_echo(&self, payload: &[u8]) -> bool {
        !self.own_words.is_empty() && payload.starts_with(&self.own_words)
    }

    /// Keeps how our hello begins: `ip,port,runid,`.
    pub(super) fn remember_words(&mut self, hello: &[u8]) {
        if !self.is_echo(hello) {
            let fields: usize = hello.split_inclusive(|&byte| byte == b',').take(3).map(<[u8]>::len).sum();
            self.own_words = hello[..fields].to_vec();
        }
    }

    /// Our own words come back to us from every server. One that names an address that is not ours is another's.
    fn report_own_id(&mut self, now: Millis, hello: &Hello) {
        if self.is_our_address(&hello.addr) || !due(&mut self.own_id_reported, now) {
            return;
        }
        self.out.log(
            Level::Warning,
            format!(
                "Another Sentinel at {} announces our own id {}: was a configuration file copied together with its \
                 myid? It is not counted as a peer",
                hello.addr, hello.run_id
            ),
        );
    }

    fn is_our_address(&self, addr: &Addr) -> bool {
        let port = if self.options.announce_port == 0 { self.identity.port } else { self.options.announce_port };
        let host = if self.options.announce_ip.is_empty() {
            addr.ip.is_some_and(|ip| self.local_ips.contains_key(&ip))
        } else {
            *addr.host == *self.options.announce_ip
        };
        host && addr.port == port
    }

    /// Another id at our own address is what we were before our file was lost: a hello can come late. As a peer it would be
    /// asked for its vote, and we would answer, and count twice.
    fn report_former_self(&mut self, now: Millis, hello: &Hello) {
        if due(&mut self.own_id_reported, now) {
            let text = format!(
                "A hello names our own address {} with another id, {}: that is no peer",
                hello.addr, hello.run_id
            );
            self.out.log(Level::Notice, text);
        }
    }

    /// The peer of this address and id under this master, added (or moved here) when it is new.
    fn find_or_add_peer(&mut self, now: Millis, id: MasterId, hello: &Hello) -> Option<PeerId> {
        let master = self.masters.get(&id)?;
        let known = master.peers.values().find(|peer| peer.run_id == hello.run_id);
        let stayed = |peer: &&Peer| peer.addr.same(&hello.addr) && !self.is_linked_elsewhere(hello);
        if let Some(peer) = known.filter(stayed) {
            let peer = peer.id;
            // Another may live there under a name that meant nothing when the two were met.
            if master.peers.values().any(|other| other.id != peer && other.addr.same(&hello.addr)) {
                self.drop_squatters(&hello.addr, hello.run_id);
            }
            self.name_peer(id, peer, &hello.addr);
            return Some(peer);
        }
        if known.is_none() && master.peers.len() >= PEERS_MAX {
            self.report_crowd(now, id);
            return None;
        }
        if known.is_some() {
            let text = format!(
                "{} ip {} port {} for {}",
                self.out.master(master),
                self.out.host(&hello.addr),
                hello.addr.port,
                hello.run_id
            );
            self.out.event(Level::Notice, "+sentinel-address-switch", text);
            self.move_peer(now, id, hello);
        } else {
            self.drop_squatters(&hello.addr, hello.run_id);
            self.add_peer(now, id, hello);
        }
        self.save_soon();
        let peer = self.masters.get(&id)?.peers.values().find(|peer| peer.run_id == hello.run_id)?;
        Some(peer.id)
    }

    /// A peer that we know by its address announces a name: that is how it is known from now on.
    fn name_peer(&mut self, id: MasterId, peer: PeerId, addr: &Addr) {
        let Some(peer) = self.masters.get_mut(&id).and_then(|master| master.peers.get_mut(&peer)) else { return };
        if addr.is_named() && !peer.addr.is_named() {
            peer.addr = addr.clone();
            if let Some(link) = self.links.get_mut(&peer.link) {
                link.addr = addr.clone();
            }
            self.out.mark_dirty();
        }
    }

    /// The link to this peer, made for another master, goes to another address.
    fn is_linked_elsewhere(&self, hello: &Hello) -> bool {
        let link = self.peer_links.get(&hello.run_id).map(|link| &self.links[link]);
        // A name that was not looked up yet may mean that very address.
        hello.addr.ip.is_some() && link.is_some_and(|link| !link.addr.same(&hello.addr))
    }

    /// A peer that we had not heard of for this master.
    fn add_peer(&mut self, now: Millis, id: MasterId, hello: &Hello) {
        let peer = self.insert_peer(now, id, hello.run_id, &hello.addr);
        let Some(master) = self.masters.get(&id) else { return };
        let text = self.out.peer(master, &master.peers[&peer]);
        self.out.event(Level::Notice, "+sentinel", text);
        self.reconsider(id);
        if self.is_linked_elsewhere(hello) {
            self.move_peer(now, id, hello);
        } else {
            // A peer already linked for another master need not wait for a new connection to be greeted.
            self.hello_to_peer(now, id, peer);
        }
    }

    /// The same without a word about it: the file knew it.
    pub(super) fn insert_peer(&mut self, now: Millis, id: MasterId, run_id: RunId, addr: &Addr) -> PeerId {
        let link = self.peer_link(now, run_id, addr, id);
        let peer = PeerId(self.fresh_id());
        let Some(master) = self.masters.get_mut(&id) else { return peer };
        master.peers.insert(
            peer,
            Peer {
                id: peer,
                run_id,
                addr: addr.clone(),
                link,
                sdown: None,
                last_down: None,
                split_reported: None,
                agrees: false,
                heard: None,
                asked: None,
                asking: false,
                echo: false,
                echoed: None,
                vote: None,
                abstained: None,
                answered: None,
                last_hello: now,
                hello_sent: Millis(0),
                hello_asked: None,
            },
        );
        self.reconsider(id);
        peer
    }

    /// A known peer has a new address: under every master, and its link goes there.
    fn move_peer(&mut self, now: Millis, seen_by: MasterId, hello: &Hello) {
        self.drop_squatters(&hello.addr, hello.run_id);
        let mut others = 0;
        for master in self.masters.values_mut() {
            for peer in master.peers.values_mut().filter(|peer| peer.run_id == hello.run_id) {
                peer.addr = hello.addr.clone();
                others += usize::from(master.id != seen_by);
            }
        }
        if let Some(&link) = self.peer_links.get(&hello.run_id) {
            if let Some(link) = self.links.get_mut(&link) {
                link.moves_to(now, hello.addr.clone());
            }
            self.redial(now, link);
        }
        if others > 0
            && let Some(master) = self.masters.get(&seen_by)
            && let Some(peer) = master.peers.values().find(|peer| peer.run_id == hello.run_id)
        {
            let text = format!("{} {others} additional matching instances", self.out.peer(master, peer));
            self.out.event(Level::Notice, "+sentinel-address-update", text);
        }
    }

    /// One address, one Sentinel: whoever else is known there is gone, and must not count in a majority.
    fn drop_squatters(&mut self, addr: &Addr, owner: RunId) {
        let squatters: Vec<(MasterId, PeerId)> = self
            .masters
            .values()
            .flat_map(|master| master.peers.values().map(|peer| (master.id, peer)))
            .filter(|(_, peer)| peer.run_id != owner && peer.addr.same(addr))
            .map(|(id, peer)| (id, peer.id))
            .collect();
        for (id, peer) in squatters {
            let master = &self.masters[&id];
            let text = self.out.peer(master, &master.peers[&peer]);
            self.out.event(Level::Notice, "+sentinel-invalid-addr", text);
            self.out.mark_dirty();
            self.drop_peer(id, peer);
        }
    }

    pub(super) fn drop_peer(&mut self, id: MasterId, peer: PeerId) {
        let Some(peer) = self.masters.get_mut(&id).and_then(|master| master.peers.remove(&peer)) else { return };
        if self.planted(Plant::KeepRemovedPeersVote) {
            self.planted_farewell(id, &peer);
        }
        self.leave_link(peer.link, id);
    }

    /// Whether elections can have led there from what we know.
    pub(super) fn is_credible(&self, epoch: u64) -> bool {
        epoch <= self.current_epoch.saturating_add(EPOCH_STRIDE).min(Snapshot::EPOCH_LAST)
    }

    /// A larger epoch anywhere is ours from now on.
    pub(super) fn adopt_epoch(&mut self, epoch: u64) {
        if epoch > self.current_epoch {
            self.current_epoch = epoch;
            self.out.mark_dirty();
            self.out.event(Level::Warning, "+new-epoch", epoch.to_string());
        }
    }

    /// Two addresses under config epoch 0 come from no failover: somebody wrote them into two files. No epoch will
    /// ever decide between them, so the operator has to.
    fn report_split(&mut self, now: Millis, id: MasterId, peer: PeerId, hello: &Hello) {
        let Some(master) = self.masters.get_mut(&id) else { return };
        let ours = current_addr(master).clone();
        let unknown = ours.ip.is_none() || hello.master_addr.ip.is_none();
        if hello.config_epoch != 0 || master.config_epoch != 0 || unknown || ours.same(&hello.master_addr) {
            return;
        }
        let Some(peer) = master.peers.get_mut(&peer) else { return };
        if !due(&mut peer.split_reported, now) {
            return;
        }
        let text = format!(
            "The Sentinel {} at {} monitors {} as {}, and we monitor {ours}, both without a failover: one of the two \
             configurations is wrong",
            peer.run_id, peer.addr, hello.master_addr, hello.master_name
        );
        self.out.log(Level::Warning, text);
    }

    /// A larger config epoch names the master's address from now on. Two addresses under one config epoch are what a failover
    /// leaves behind that was forced at a Sentinel of redis, or a file that somebody edited; then all must choose the same one,
    /// so the larger address stands.
    fn adopt_config(&mut self, now: Millis, id: MasterId, peer: PeerId, hello: &Hello) {
        let gullible = self.planted(Plant::AcceptOlderConfig);
        let forgetful = self.planted(Plant::SameAddressInMemory);
        let Some(master) = self.masters.get_mut(&id) else { return };
        let (ours, theirs) = (current_addr(master), &hello.master_addr);
        // A name that was not looked up yet may be that very address.
        let known = ours.ip.is_some() && theirs.ip.is_some();
        let disputed = hello.config_epoch == master.config_epoch && hello.config_epoch > 0;
        let collides = disputed && known && !ours.same(theirs);
        if collides && due(&mut master.conflict_reported, now) {
            let (ours, theirs) = (current_addr(master), &hello.master_addr);
            let text = format!(
                "{} says that {} is {theirs}, we say {ours}, both in config epoch {}: either a failover was forced at a \
                 Sentinel that asks nobody, and then the larger address stands, or a configuration was edited",
                hello.run_id, master.name, hello.config_epoch
            );
            self.out.log(Level::Warning, text);
        }
        let ours = current_addr(master);
        // Both were promoted within this group, so each side knows the other's as a replica. Anything else is no outcome
        // of a failover, and nobody's word alone moves a master.
        let one_of_us = master.replicas.values().any(|replica| replica.node.addr.same(&hello.master_addr));
        let theirs = &hello.master_addr;
        let yields = collides && one_of_us && (ours.ip, ours.port) < (theirs.ip, theirs.port);
        let older = gullible && hello.config_epoch < master.config_epoch;
        if hello.config_epoch <= master.config_epoch && !yields && !older {
            self.report_split(now, id, peer, hello);
            return;
        }
        (master.config_epoch, master.hushed_until) = (hello.config_epoch, None);
        let from = current_addr(master).clone();
        if !forgetful || !from.same(&hello.master_addr) {
            self.out.mark_dirty();
        }
        if from.same(&hello.master_addr) {
            // Somebody made sure of the address we have: whatever we were about to promote comes too late.
            self.give_way(now, id, hello.config_epoch);
            return;
        }
        if let Some(peer) = master.peers.get(&peer) {
            let text = self.out.peer(master, peer);
            self.out.alert(master, "+config-update-from", text);
        }
        self.announce_switch(id, &from, &hello.master_addr);
        self.run_reconfig_script(id, "observer", &from, &hello.master_addr);
        self.observe_failover(now, id, hello.config_epoch, &hello.master_addr);
        self.switch_to(now, id, hello.master_addr.clone());
    }
}
