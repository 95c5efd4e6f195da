//! All servers of the stand-in and what holds between them, and the event handler that moves the bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::mpsc;

use watchfire::base::Millis;
use watchfire::net::{CloseReason, Handler, Next, Reactor, Read, TimerId, Token, Write};
use watchfire::resp::{Argv, Proto, Writer};

use super::super::ports;
use super::client::Client;
use super::server::{Comeback, Link, Mode, Role, Server, State, hex40};
use super::{Order, ServerHandle, Spec, commands};

/// A master sends a PING to its replicas this often, in ms, and its offset moves by those bytes.
const REPLICA_PING_MS: u64 = 10_000;
const REPLICA_PING_BYTES: i64 = 14;

/// What a timer of the stand-in is for.
enum Due {
    Late(Token),
    Wake(u16),
    ReplicaPings,
}

pub struct World {
    servers: BTreeMap<u16, Server>,
    pub(super) clients: BTreeMap<Token, Client>,
    listeners: BTreeMap<Token, u16>,
    /// The replicas that follow a port, living or not.
    followers: BTreeMap<u16, BTreeSet<u16>>,
    /// Clients with bytes to send.
    dirty: BTreeSet<Token>,
    timers: BTreeMap<TimerId, Due>,
    orders: mpsc::Receiver<Order>,
    next_client: u64,
    inbox: Vec<u8>,
    cron: bool,
}

impl World {
    pub(super) fn new(orders: mpsc::Receiver<Order>) -> World {
        World {
            servers: BTreeMap::new(),
            clients: BTreeMap::new(),
            listeners: BTreeMap::new(),
            followers: BTreeMap::new(),
            dirty: BTreeSet::new(),
            timers: BTreeMap::new(),
            orders,
            next_client: 1,
            inbox: Vec::new(),
            cron: false,
        }
    }

    pub(super) fn server(&self, port: u16) -> &Server {
        self.servers.get(&port).expect("a server of this stand-in")
    }

    /// # Panics
    /// When this stand-in has no server on that port.
    pub fn server_mut(&mut self, port: u16) -> &mut Server {
        self.servers.get_mut(&port).expect("a server of this stand-in")
    }

    /// # Panics
    /// When the port that the spec asks for is taken.
    pub fn start(&mut self, reactor: &mut Reactor, spec: Spec) -> ServerHandle {
        let (port, listener) = loop {
            let port = spec.port.unwrap_or_else(ports::free);
            match reactor.listen(SocketAddr::new(spec.host, port), 511) {
                Ok(listener) => break (port, listener),
                Err(error) if spec.port.is_some() => panic!("cannot listen on {}:{port}: {error}", spec.host),
                Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => panic!("cannot listen: {error}"),
                Err(_) => {}
            }
        };
        let now = reactor.now();
        let mut server = Server::new(spec, port, now);
        server.listener = Some(listener);
        self.listeners.insert(listener, port);
        let handle = ServerHandle { host: server.host, port };
        if let Some(master) = server.follows() {
            self.followers.entry(master).or_default().insert(port);
        }
        self.servers.insert(port, server);
        self.refresh(port, now);
        if !self.cron {
            self.cron = true;
            let timer = reactor.add_timer(now + REPLICA_PING_MS);
            self.timers.insert(timer, Due::ReplicaPings);
        }
        handle
    }

    pub fn kill(&mut self, reactor: &mut Reactor, port: u16) {
        let now = reactor.now();
        self.settle(port, now);
        let server = self.server_mut(port);
        server.mode = Mode::Down;
        if let Some(listener) = server.listener.take() {
            self.listeners.remove(&listener);
            reactor.close(listener);
        }
        let clients: Vec<Token> = self.server(port).clients.iter().copied().collect();
        for client in clients {
            self.drop_client(reactor, client);
        }
        self.refresh(port, now);
    }

    pub fn hang(&mut self, reactor: &mut Reactor, port: u16) {
        let server = self.server_mut(port);
        if server.mode == Mode::Up {
            server.mode = Mode::Hung;
            for &client in &server.clients {
                reactor.set_reading(client, false);
            }
        }
    }

    pub fn resume(&mut self, reactor: &mut Reactor, port: u16) {
        let server = self.server_mut(port);
        if server.mode != Mode::Hung {
            return;
        }
        server.mode = Mode::Up;
        let clients = server.clients.clone();
        for &client in &clients {
            reactor.set_reading(client, true);
            // Requests may have been read but not run.
            reactor.wake(client);
        }
        self.dirty.extend(clients);
    }

    /// Hangs a server for a while (`DEBUG SLEEP`).
    pub(super) fn sleep(&mut self, reactor: &mut Reactor, port: u16, ms: u64) {
        self.hang(reactor, port);
        let timer = reactor.add_timer(reactor.now() + ms + 1);
        self.timers.insert(timer, Due::Wake(port));
    }

    /// # Panics
    /// When the port has been taken by somebody else meanwhile.
    pub fn restart(&mut self, reactor: &mut Reactor, port: u16, how: Comeback) {
        if self.server(port).mode != Mode::Down {
            self.kill(reactor, port);
        }
        let now = reactor.now();
        let host = self.server(port).host;
        let listener = reactor.listen(SocketAddr::new(host, port), 511).expect("the port of the killed server");
        self.listeners.insert(listener, port);
        let server = self.server_mut(port);
        server.listener = Some(listener);
        server.mode = Mode::Up;
        server.run_id = hex40();
        server.started = now;
        server.link = Link::default();
        let role = match how {
            Comeback::AsWritten => server.written.clone(),
            Comeback::AsMaster => Role::Master,
        };
        self.set_role(port, role, now);
    }

    pub fn set_offset(&mut self, port: u16, offset: i64) {
        let server = self.server_mut(port);
        server.offset = offset;
        server.pinned = matches!(server.role, Role::Replica { .. }).then_some(offset);
    }

    /// Takes another role or master; false: it has that already.
    pub fn set_role(&mut self, port: u16, role: Role, now: Millis) -> bool {
        let changed = self.server(port).role != role;
        if changed {
            self.settle(port, now);
            if let Some(old) = self.server(port).follows() {
                self.followers.entry(old).or_default().remove(&port);
            }
            let server = self.server_mut(port);
            server.role = role;
            if server.link.is_up(now) {
                server.link.down_since = Some(now);
            }
            server.link.up_at = None;
            server.pinned = None;
            if server.role == Role::Master {
                server.link = Link::default();
                server.replid = hex40();
            }
            if let Some(new) = self.server(port).follows() {
                self.followers.entry(new).or_default().insert(port);
            }
        }
        self.refresh(port, now);
        changed
    }

    pub fn state(&self, port: u16, now: Millis) -> State {
        let server = self.server(port);
        State {
            mode: server.mode,
            role: server.role.clone(),
            run_id: server.run_id.clone(),
            link_up: self.link_up(port, now),
            offset: self.offset(port, now),
            priority: server.priority,
            clients: server.clients.len(),
        }
    }

    pub(super) fn link_up(&self, port: u16, now: Millis) -> bool {
        self.server(port).link.is_up(now)
    }

    /// The replicas that a master's INFO lists: alive and with their link up.
    pub(super) fn replicas(&self, port: u16, now: Millis) -> Vec<u16> {
        let all = self.followers.get(&port).into_iter().flatten().copied();
        all.filter(|&replica| self.server(replica).mode != Mode::Down && self.link_up(replica, now)).collect()
    }

    /// Where this server's offset and data are: itself, or the end of the chain of links that are up.
    fn source(&self, port: u16, now: Millis) -> u16 {
        let mut at = port;
        // A chain has an end: links of a circle never come up. The bound guards the test against our own mistakes.
        for _ in 0..self.servers.len() {
            match self.server(at).follows() {
                Some(master) if self.link_up(at, now) => at = master,
                _ => break,
            }
        }
        at
    }

    pub(super) fn offset(&self, port: u16, now: Millis) -> i64 {
        let server = self.server(port);
        server.pinned.unwrap_or_else(|| self.server(self.source(port, now)).offset)
    }

    pub(super) fn get(&self, port: u16, key: &[u8], now: Millis) -> Option<&Vec<u8>> {
        self.server(self.source(port, now)).data.get(key)
    }

    pub(super) fn keys(&self, port: u16, now: Millis) -> usize {
        self.server(self.source(port, now)).data.len()
    }

    /// Makes what a server and all below it have by their links their own, before a link changes.
    fn settle(&mut self, port: u16, now: Millis) {
        for follower in self.followers.get(&port).cloned().unwrap_or_default() {
            if self.link_up(follower, now) {
                self.settle(follower, now);
            }
        }
        let source = self.source(port, now);
        if source != port {
            let (offset, data) = (self.offset(port, now), self.server(source).data.clone());
            let server = self.server_mut(port);
            server.offset = offset;
            server.data = data;
        }
    }

    /// Derives the links of a server and of all below it anew, after something about it has changed.
    fn refresh(&mut self, port: u16, now: Millis) {
        let mut todo = VecDeque::from([port]);
        let mut seen = BTreeSet::new();
        while let Some(port) = todo.pop_front() {
            if !seen.insert(port) {
                continue;
            }
            todo.extend(self.followers.get(&port).into_iter().flatten());
            if !self.servers.contains_key(&port) {
                continue;
            }
            let reachable = self.reaches_a_master(port);
            let server = self.server_mut(port);
            let sync = server.spec.sync_ms;
            match (reachable, server.link.up_at) {
                (true, None) => server.link.up_at = Some(now + sync),
                (false, Some(at)) => {
                    if now >= at {
                        server.link.down_since = Some(now);
                    }
                    server.link.up_at = None;
                }
                _ => {}
            }
        }
    }

    /// Whether a living chain of masters leads from this replica to one that is no replica. A hung master counts: a
    /// real replica keeps such a link for a minute.
    fn reaches_a_master(&self, port: u16) -> bool {
        let mut at = port;
        for _ in 0..self.servers.len() {
            let Some(server) = self.servers.get(&at).filter(|server| server.mode != Mode::Down) else { return false };
            match (&server.role, server.follows()) {
                (Role::Master, _) => return at != port,
                (Role::Replica { .. }, Some(master)) => at = master,
                (Role::Replica { .. }, None) => return false,
            }
        }
        false
    }

    /// Sends a message to the subscribers of one server; how many got it.
    pub(super) fn deliver(&mut self, port: u16, channel: &[u8], payload: &[u8]) -> usize {
        let server = self.server(port);
        if server.mode == Mode::Down {
            return 0;
        }
        let listeners = server.channels.get(channel).cloned().unwrap_or_default();
        let matchers = server.matchers.clone();
        let mut count = listeners.len();
        for token in listeners {
            self.say(token, |to| {
                to.push(3);
                to.bulk("message");
                to.bulk(channel);
                to.bulk(payload);
            });
        }
        for token in matchers {
            let patterns = self.clients.get(&token).map(|client| client.patterns.clone()).unwrap_or_default();
            for pattern in patterns.iter().filter(|pattern| watchfire::base::glob::matches(pattern, channel, false)) {
                count += 1;
                self.say(token, |to| {
                    to.push(4);
                    to.bulk("pmessage");
                    to.bulk(pattern);
                    to.bulk(channel);
                    to.bulk(payload);
                });
            }
        }
        count
    }

    /// A write or message of a master reaches its replicas: its offset moves by `bytes`.
    pub(super) fn replicate(&mut self, port: u16, bytes: usize, message: Option<(&[u8], &[u8])>, now: Millis) {
        let server = self.server_mut(port);
        if server.role == Role::Master {
            server.offset += i64::try_from(bytes).unwrap_or(0);
        }
        let Some((channel, payload)) = message else { return };
        let mut todo = VecDeque::from(self.replicas(port, now));
        while let Some(replica) = todo.pop_front() {
            self.deliver(replica, channel, payload);
            todo.extend(self.replicas(replica, now));
        }
    }

    fn say(&mut self, token: Token, words: impl FnOnce(&mut Writer<'_>)) {
        if let Some(client) = self.clients.get_mut(&token) {
            words(&mut Writer::new(&mut client.fresh, client.proto));
            self.dirty.insert(token);
        }
    }

    pub(super) fn drop_client(&mut self, reactor: &mut Reactor, token: Token) {
        self.forget_client(token);
        reactor.close(token);
    }

    fn forget_client(&mut self, token: Token) {
        self.dirty.remove(&token);
        let Some(client) = self.clients.remove(&token) else { return };
        let server = self.server_mut(client.server);
        server.clients.remove(&token);
        server.matchers.remove(&token);
        for channel in &client.channels {
            if let Some(listeners) = server.channels.get_mut(channel) {
                listeners.remove(&token);
            }
        }
        server.channels.retain(|_, listeners| !listeners.is_empty());
    }

    /// Answers all complete requests of a client.
    fn serve(&mut self, reactor: &mut Reactor, token: Token) {
        let mut argv = Argv::default();
        while let Some(client) = self.clients.get_mut(&token) {
            let hung = self.servers.get(&client.server).is_none_or(|server| server.mode == Mode::Hung);
            if hung || client.close_after_reply {
                return;
            }
            match client.decoder.next(&mut argv) {
                Ok(true) => {
                    let words: Vec<Vec<u8>> = argv.iter().map(<[u8]>::to_vec).collect();
                    commands::execute(self, reactor, token, words);
                }
                Ok(false) => return,
                Err(error) => {
                    let text = format!("ERR {error}");
                    Writer::new(&mut client.fresh, Proto::Resp2).error(&text);
                    client.close_after_reply = true;
                }
            }
            self.dirty.insert(token);
        }
    }

    /// Gives one client what it is owed, as far as its socket takes it.
    fn flush(&mut self, reactor: &mut Reactor, token: Token) {
        let now = reactor.now();
        let Some(client) = self.clients.get_mut(&token) else { return };
        let Some(server) = self.servers.get(&client.server) else { return };
        if server.mode == Mode::Hung {
            return;
        }
        let fresh = std::mem::take(&mut client.fresh);
        if fresh.is_empty() || (server.delay_ms == 0 && client.late.is_empty()) {
            client.wire.extend_from_slice(&fresh);
        } else {
            // One more, as the clock rounds down. What was promised later cannot overtake what was promised before.
            let due = client.late.back().map_or(now, |(due, _)| *due).max(now + server.delay_ms + 1);
            client.late.push_back((due, fresh));
            let timer = reactor.add_timer(due);
            self.timers.insert(timer, Due::Late(token));
        }
        while client.late.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, bytes)) = client.late.pop_front() {
                client.wire.extend_from_slice(&bytes);
            }
        }
        while client.sent < client.wire.len() {
            match reactor.write(token, &client.wire[client.sent..]) {
                Write::Wrote(n) => client.sent += n,
                Write::Blocked => {
                    reactor.arm_write(token);
                    return;
                }
                Write::Failed(_) => {
                    self.drop_client(reactor, token);
                    return;
                }
            }
        }
        client.wire.clear();
        client.sent = 0;
        if client.close_after_reply && client.idle() {
            self.drop_client(reactor, token);
        }
    }
}

impl Handler for World {
    fn before_sleep(&mut self, reactor: &mut Reactor) {
        while let Ok(order) = self.orders.try_recv() {
            order(self, reactor);
        }
        for token in std::mem::take(&mut self.dirty) {
            self.flush(reactor, token);
        }
    }

    fn accepted(&mut self, reactor: &mut Reactor, listener: Token, stream: Token, peer: Option<SocketAddr>) {
        let Some(&port) = self.listeners.get(&listener) else {
            reactor.close(stream);
            return;
        };
        let id = self.next_client;
        self.next_client += 1;
        let server = self.server_mut(port);
        server.clients.insert(stream);
        server.connections += 1;
        if server.mode == Mode::Hung {
            reactor.set_reading(stream, false);
        }
        let laddr = SocketAddr::new(server.host, port).to_string();
        let authed = server.spec.password.is_none();
        let client =
            Client::new(port, id, peer.map(|peer| peer.to_string()).unwrap_or_default(), laddr, authed, reactor.now());
        self.clients.insert(stream, client);
    }

    fn connected(&mut self, _: &mut Reactor, _: Token, _: SocketAddr) {}

    fn readable(&mut self, reactor: &mut Reactor, stream: Token) {
        let mut gone = false;
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.clear();
        loop {
            match reactor.read(stream, &mut inbox) {
                Read::Data(_) => {}
                Read::Blocked => break,
                Read::Eof | Read::Failed(_) => {
                    gone = true;
                    break;
                }
            }
        }
        if let Some(client) = self.clients.get_mut(&stream) {
            client.decoder.extend(&inbox);
            client.last = reactor.now();
            self.serve(reactor, stream);
        }
        self.inbox = inbox;
        if gone {
            self.drop_client(reactor, stream);
        }
    }

    fn writable(&mut self, reactor: &mut Reactor, stream: Token) {
        self.flush(reactor, stream);
    }

    fn closed(&mut self, _: &mut Reactor, stream: Token, _: CloseReason) {
        self.forget_client(stream);
    }

    fn timer(&mut self, reactor: &mut Reactor, timer: TimerId) -> Next {
        match self.timers.remove(&timer) {
            Some(Due::Late(client)) => {
                self.dirty.insert(client);
            }
            Some(Due::Wake(port)) => self.resume(reactor, port),
            Some(Due::ReplicaPings) => {
                let now = reactor.now();
                let masters: Vec<u16> = self.servers.keys().copied().collect();
                for port in masters {
                    if self.server(port).mode == Mode::Up && !self.replicas(port, now).is_empty() {
                        self.replicate(port, usize::try_from(REPLICA_PING_BYTES).unwrap_or(0), None, now);
                    }
                }
                self.timers.insert(timer, Due::ReplicaPings);
                return Next::After(REPLICA_PING_MS);
            }
            None => {}
        }
        Next::Done
    }

    fn signal(&mut self, _: &mut Reactor, _: i32) {}
}
