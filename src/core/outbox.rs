//! Where effects wait until the shell takes them, and the one door for events.

use super::effect::{ConnKind, Effect, Level};
use super::ids::{Addr, ConnId};
use super::model::{Master, Peer, Replica};
use crate::base::SortedSet;
use std::collections::VecDeque;
use std::net::SocketAddr;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<Effect>,
    /// Of the queued sends, the connections of those that tell an epoch.
    telling: Vec<ConnId>,
    /// Scripts to be queued with the next cron, as argument lists, in the order of what they tell.
    pub scripts: Vec<Vec<String>>,
    /// Something durable changed since the last `Save` left, and what is queued may rest on it.
    dirty: bool,
    /// Something durable changed on which nothing rests: it is saved with the next that does, or after a while.
    gathering: bool,
    /// Saves fail; what is composed meanwhile tells only what is on disk.
    pub save_failing: bool,
    /// Whether addresses are announced by name.
    pub hostnames: bool,
}

/// Room for so many effects is kept for the next turn.
const QUEUE_KEPT: usize = 1024;

impl Outbox {
    pub fn new(hostnames: bool) -> Outbox {
        Outbox { hostnames, ..Outbox::default() }
    }

    /// `Save` overtakes whatever is queued: one save covers everything that changed in this turn.
    pub fn poll(&mut self) -> Option<Effect> {
        if std::mem::take(&mut self.dirty) {
            self.gathering = false;
            return Some(Effect::Save);
        }
        let effect = self.queue.pop_front();
        if self.queue.is_empty() {
            self.telling.clear();
            // A start fills it as nothing does later.
            self.queue.shrink_to(QUEUE_KEPT);
        }
        effect
    }

    /// A message that tells one of our epochs: it must not leave if the save before it fails.
    pub fn send_telling(&mut self, conn: ConnId, bytes: Vec<u8>) {
        if !self.save_failing {
            self.telling.push(conn);
        }
        self.push(Effect::Send { conn, bytes });
    }

    /// The save failed: takes back all that waits for connections on which an epoch would have been told, and
    /// returns these connections, which have lost their place in the protocol.
    pub fn withhold(&mut self) -> SortedSet<ConnId> {
        let conns: SortedSet<ConnId> = self.telling.drain(..).collect();
        self.queue.retain(|effect| !matches!(effect, Effect::Send { conn, .. } if conns.contains(conn)));
        conns
    }

    /// How much there is of everything; it changes with whatever is added.
    pub fn fill(&self) -> (usize, usize, bool, bool) {
        (self.queue.len(), self.scripts.len(), self.dirty, self.gathering)
    }

    pub fn gather(&mut self) {
        self.gathering = true;
    }

    pub fn is_gathering(&self) -> bool {
        self.gathering
    }

    pub fn mark_dirty(&mut self) {
        self.dirty = true;
    }

    pub fn push(&mut self, effect: Effect) {
        self.queue.push_back(effect);
    }

    pub fn connect(&mut self, conn: ConnId, to: SocketAddr, kind: ConnKind) {
        self.push(Effect::Connect { conn, to, kind });
    }

    pub fn log(&mut self, level: Level, text: String) {
        self.push(Effect::Log { level, text });
    }

    /// A warning about a master or something under it: an event that also runs the master's notification script.
    pub fn alert(&mut self, master: &Master, channel: &'static str, payload: String) {
        let script = &master.settings.notification_script;
        if !script.is_empty() {
            self.scripts.push(vec![script.clone(), channel.to_owned(), payload.clone()]);
        }
        self.event(Level::Warning, channel, payload);
    }

    /// An event that is about no master.
    pub fn event(&mut self, level: Level, channel: &'static str, payload: String) {
        self.push(Effect::Event { level, channel, payload });
    }

    /// The host of an address as clients and peers are told it.
    pub fn host(&self, addr: &Addr) -> String {
        match addr.ip {
            Some(ip) if !self.hostnames => ip.to_string(),
            _ => addr.host.to_string(),
        }
    }

    /// `master <name> <ip> <port>`
    pub fn master(&self, master: &Master) -> String {
        format!("master {} {} {}", master.name, self.host(&master.node.addr), master.node.addr.port)
    }

    fn of(&self, master: &Master) -> String {
        format!("@ {} {} {}", master.name, self.host(&master.node.addr), master.node.addr.port)
    }

    /// `slave <ip>:<port> <ip> <port> @ <master> <ip> <port>`
    pub fn replica(&self, master: &Master, replica: &Replica) -> String {
        let addr = &replica.node.addr;
        format!("slave {addr} {} {} {}", self.host(addr), addr.port, self.of(master))
    }

    /// `sentinel <runid> <ip> <port> @ <master> <ip> <port>`
    pub fn peer(&self, master: &Master, peer: &Peer) -> String {
        format!("sentinel {} {} {} {}", peer.run_id, self.host(&peer.addr), peer.addr.port, self.of(master))
    }
}
