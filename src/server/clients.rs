//! The sockets of clients: taking them in, reading requests, writing replies, letting them go.
//!
//! What a client *is* (its name, its subscriptions, its reply buffer) lives in [`crate::command`]; here are
//! the bytes on their way in and out. Requests are executed as they are decoded, a bounded number a turn;
//! replies leave in [`Sockets::flush`], once the effects of the turn are drained, with one write a client.
//!
//! A client whose reply waits for the save of this turn ([`crate::command::Deferred`]) is asked nothing
//! further until then, and one that sends requests without reading the replies is read no further once
//! [`OUTPUT_PAUSE`] bytes wait for it. In both cases the bytes stay in the kernel, which slows the sender down.

use super::desk::Desk;
use crate::base::{Millis, limits};
use crate::command::{self, Client, ClientId};
use crate::config::ServerOptions;
use crate::net::{CloseReason, Reactor, Read, Token, Write};
use crate::resp::{Argv, ProtocolError, RequestDecoder, RequestLimits};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Bound;

/// Requests of one client executed before the others get their turn, and bytes of replies after which it
/// pauses as well: `SENTINEL MASTERS` with a thousand masters is heavier than `PING`.
const REQUESTS_PER_TURN: usize = 512;
const REPLIES_PER_TURN: usize = 512 * 1024;
/// Bytes waiting for a client from which on it is not read any more. Far above what an honest pipeline of
/// requests brings about; redis-sentinel knows no bound here.
pub const OUTPUT_PAUSE: usize = 32 * 1024 * 1024;
/// Written bytes are cut off the front of a reply buffer in pieces of this size, so that a long buffer is
/// not moved for every write.
const CUT: usize = 256 * 1024;
/// How long a look at all clients may take, in ms; see [`Sockets::look_through`].
const ROUND: u64 = 1000;
/// A client that has sent nothing for so many ms does without an input buffer.
const QUIET: u64 = 2000;

const MAXCLIENTS_REACHED: &[u8] = b"-ERR max number of clients reached\r\n";
const PROTECTED: &[u8] = b"-DENIED Redis is running in protected mode because protected mode is enabled and no password \
is set for the default user. Only clients on this machine are served. To let others in, set a password \
with requirepass, or, where a firewall keeps strangers out, put 'protected-mode no' into the configuration file or start \
with '--protected-mode no'.\r\n";

/// All client sockets.
#[derive(Debug, Default)]
pub struct Sockets {
    by_stream: BTreeMap<Token, Socket>,
    by_client: BTreeMap<ClientId, Token>,
    /// Those that owe a password or are in the middle of a TLS handshake, oldest first. Who has come through stays until
    /// somebody looks.
    strangers: BTreeSet<ClientId>,
    /// Seconds between keepalive probes of a silent client; 0 is off.
    keepalive: u32,
    /// What clients whom we trust may send.
    limits: RequestLimits,
    /// The last one looked at in this round of [`Sockets::look_through`], and when that was.
    looked_at: Option<Token>,
    /// The last of this round.
    round_ends: Option<Token>,
    looked: Millis,
    /// Clients times ms that have passed and are no whole look yet.
    owed: usize,
    /// How those that come through the Unix socket are shown.
    unix_name: String,
    argv: Argv,
    /// Where bytes land: lent to the decoder of the client they came from, and empty in between.
    incoming: Vec<u8>,
}

/// One client's socket.
#[derive(Debug)]
struct Socket {
    client: ClientId,
    decoder: RequestDecoder,
    /// Not read because too much waits to be written.
    paused: bool,
    /// The decoder may hold whole requests that had to wait.
    backlog: bool,
    /// Held to the limits of a client that owes a password.
    stranger: bool,
    /// When bytes last moved, either way.
    moved: Millis,
}

impl Sockets {
    #[must_use]
    pub fn new(options: &ServerOptions) -> Sockets {
        let query = usize::try_from(options.query_buffer).unwrap_or(usize::MAX);
        let trusted = RequestLimits::TRUSTED;
        Sockets {
            keepalive: options.tcp_keepalive,
            limits: RequestLimits { buffer: trusted.buffer.min(query), ..trusted },
            // As redis shows it: there is no port, and yet one is expected.
            unix_name: format!("{}:0", options.unixsocket),
            ..Sockets::default()
        }
    }

    /// A listener took a connection: it becomes a client, or hears why not. Without a peer it came through the Unix socket.
    pub fn accepted(&mut self, reactor: &mut Reactor, stream: Token, peer: Option<SocketAddr>, desk: &mut Desk) {
        desk.stats.connections_received += 1;
        let full = desk.clients.len() >= desk.facts.maxclients;
        // First of all: nobody makes room for whoever is not let in anyway.
        let refusal = if desk.facts.protected_mode
            && desk.acl.default_user().needs_no_password()
            && peer.is_some_and(|peer| !peer.ip().to_canonical().is_loopback())
        {
            Some(PROTECTED)
        } else if full && !self.drop_oldest_stranger(reactor, desk) {
            Some(MAXCLIENTS_REACHED)
        } else {
            None
        };
        if let Some(text) = refusal {
            desk.stats.connections_rejected += 1;
            // Best effort: nobody waits for a stranger to read.
            let _ = reactor.write(stream, text);
            reactor.close(stream);
            return;
        }
        if self.keepalive != limits::KEEPALIVE_SECONDS {
            let _ = reactor.set_keepalive(stream, self.keepalive);
        }
        let (remote, local) = match peer {
            Some(peer) => {
                (peer.to_string(), reactor.local_addr(stream).map(|local| local.to_string()).unwrap_or_default())
            }
            None => (self.unix_name.clone(), self.unix_name.clone()),
        };
        log::debug!("Accepted {remote}");
        let client = desk.clients.connect(reactor.now(), remote, local);
        if let Some(client) = desk.clients.get_mut(client) {
            client.unix = peer.is_none();
            client.fd = reactor.descriptor(stream).map_or(-1, i64::from);
            client.authenticated = desk.acl.default_user().is_open();
            if command::owes_password(&desk.acl, client) || reactor.is_shaking(stream) {
                self.strangers.insert(client.id);
            }
        }
        self.by_client.insert(client, stream);
        let mut decoder = RequestDecoder::new();
        decoder.set_limits(self.limits);
        let socket = Socket { client, decoder, paused: false, backlog: false, stranger: false, moved: reactor.now() };
        self.by_stream.insert(stream, socket);
        // Whoever has no password or no certificate cannot keep out those who have: strangers get half of the places.
        while self.strangers.len() > (desk.facts.maxclients / 2).max(1) {
            self.drop_first_stranger(reactor, desk);
        }
    }

    /// Lets the client go that has been a stranger for longest; false when nobody is one.
    fn drop_oldest_stranger(&mut self, reactor: &mut Reactor, desk: &mut Desk) -> bool {
        while !self.strangers.is_empty() {
            if self.drop_first_stranger(reactor, desk) {
                return true;
            }
        }
        false
    }

    /// Takes the oldest off the list of strangers, and lets it go unless it has logged in or shaken hands meanwhile.
    fn drop_first_stranger(&mut self, reactor: &mut Reactor, desk: &mut Desk) -> bool {
        let Some(id) = self.strangers.pop_first() else { return false };
        let Some(&stream) = self.by_client.get(&id) else { return false };
        let owes = desk.clients.get(id).is_some_and(|client| command::owes_password(&desk.acl, client));
        let strange = owes || reactor.is_shaking(stream);
        if strange {
            log::debug!("A client that has not logged in makes room for another");
            self.drop_client(reactor, stream, desk);
        }
        strange
    }

    /// Whether the stream is a client's.
    #[must_use]
    pub fn owns(&self, stream: Token) -> bool {
        self.by_stream.contains_key(&stream)
    }

    /// Executes what is buffered, then reads and executes more, as far as this turn allows.
    pub fn readable(&mut self, reactor: &mut Reactor, stream: Token, desk: &mut Desk) {
        let Some(socket) = self.by_stream.get_mut(&stream) else { return };
        let mut requests = 0;
        let mut read = false;
        loop {
            if socket.backlog {
                socket.execute(&mut self.argv, self.limits, desk, reactor.now(), &mut requests);
                socket.decoder.reclaim(&mut self.incoming);
                if !socket.stranger {
                    self.strangers.remove(&socket.client);
                }
            }
            let Some(client) = desk.clients.get_mut(socket.client) else { return };
            client.query_buffered = socket.decoder.buffered();
            if client.query_buffered > 0 {
                desk.clients.note_peaks(socket.client);
            }
            let Some(client) = desk.clients.get_mut(socket.client) else { return };
            if socket.backlog || !client.takes_requests() {
                if client.takes_requests() {
                    reactor.wake(stream);
                } else if client.deferred.is_none() {
                    // Nothing more is taken from it. (With a reply open, `resume` wakes it after the drain.)
                    reactor.set_reading(stream, false);
                }
                return;
            }
            if client.waiting() > OUTPUT_PAUSE {
                socket.paused = true;
                reactor.set_reading(stream, false);
                return;
            }
            if requests > 0 && !read {
                // The stream may be at its end, and then what was just answered would never be sent.
                reactor.wake(stream);
                return;
            }
            match reactor.read(stream, &mut self.incoming) {
                Read::Data(n) => {
                    read = true;
                    socket.moved = reactor.now();
                    client.net_in += n as u64;
                    client.last_active = reactor.now();
                    desk.stats.net_in += n as u64;
                    desk.stats.reads += 1;
                    socket.decoder.lend(&mut self.incoming);
                    socket.backlog = true;
                }
                // It asks nothing more, and is owed what it has asked for.
                Read::Eof if client.waiting() > 0 || !reactor.is_flushed(stream) => {
                    socket.moved = reactor.now();
                    reactor.keep_writing(stream);
                    let client = socket.client;
                    desk.clients.close_after_reply(client);
                    return;
                }
                // An end is reported by `closed`.
                Read::Blocked | Read::Eof | Read::Failed(_) => return,
            }
        }
    }

    /// Clients whose reply was waiting may go on with their next request.
    pub fn resume(&mut self, reactor: &mut Reactor, clients: &[ClientId]) {
        for client in clients {
            if let Some(&stream) = self.by_client.get(client) {
                reactor.wake(stream);
            }
        }
    }

    /// One write for each client that has something to read; closes those that are done.
    pub fn flush(&mut self, reactor: &mut Reactor, desk: &mut Desk) {
        for client in desk.clients.take_dirty() {
            if let Some(&stream) = self.by_client.get(&client) {
                self.write(reactor, stream, desk);
            }
        }
    }

    /// Writes once. Asks for more when the kernel did not take all.
    pub fn write(&mut self, reactor: &mut Reactor, stream: Token, desk: &mut Desk) {
        let Some(socket) = self.by_stream.get_mut(&stream) else { return };
        let Some(client) = desk.clients.get_mut(socket.client) else { return };
        if client.killed {
            if client.overflowed {
                log::warn!(
                    "Client {} is cut off: it does not read, and more waits for it than client-output-buffer-limit allows.",
                    client.addr
                );
            }
            self.drop_client(reactor, stream, desk);
            return;
        }
        if client.waiting() > 0 {
            match reactor.write(stream, &client.out[client.sent..]) {
                Write::Wrote(n) => {
                    socket.moved = reactor.now();
                    client.sent += n;
                    client.net_out += n as u64;
                    desk.stats.net_out += n as u64;
                    desk.stats.writes += 1;
                }
                Write::Blocked => {}
                // The reactor reports the end by `closed`.
                Write::Failed(_) => return,
            }
        }
        if client.waiting() > limits::UNAUTHENTICATED_OUTPUT && command::owes_password(&desk.acl, client) {
            log::warn!("Client {} has not logged in and does not read its replies: cut off.", client.addr);
            desk.stats.output_limit_disconnections += 1;
            self.drop_client(reactor, stream, desk);
            return;
        }
        if client.waiting() > 0 {
            if client.sent >= CUT {
                client.out.drain(..client.sent);
                client.sent = 0;
            }
            reactor.arm_write(stream);
        } else {
            client.sent = 0;
            client.out.clear();
            if client.out.capacity() > limits::REPLIES_KEPT {
                client.out = Vec::new();
            }
            if client.close_after_reply {
                if reactor.is_flushed(stream) {
                    self.drop_client(reactor, stream, desk);
                } else {
                    // TLS has the end of the reply, and the kernel has not.
                    reactor.arm_write(stream);
                }
                return;
            }
        }
        let waiting = client.waiting();
        if socket.paused && waiting < OUTPUT_PAUSE / 2 {
            socket.paused = false;
            reactor.set_reading(stream, true);
            reactor.wake(stream);
        }
        if waiting > 0 {
            desk.clients.note_peaks(socket.client);
        }
    }

    /// The stream ended by itself.
    pub fn closed(&mut self, stream: Token, why: &CloseReason, desk: &mut Desk) {
        if let Some(socket) = self.by_stream.remove(&stream) {
            self.by_client.remove(&socket.client);
            self.strangers.remove(&socket.client);
            if let Some(client) = desk.clients.remove(socket.client) {
                log::debug!("Client {} is gone: {why}", client.addr);
            }
        }
    }

    /// Looks at the next of the clients, so many that each has its turn once a second: closes those that have been silent for
    /// longer than `timeout` says (0: never; subscribers may be silent), that do not log in, that do not read, and those that
    /// are to be closed and do not read their last replies; takes back the input buffers of those that are quiet.
    pub fn look_through(&mut self, reactor: &mut Reactor, desk: &mut Desk) {
        let now = reactor.now();
        let passed = usize::try_from(now.since(self.looked).min(ROUND)).unwrap_or(0);
        self.looked = now;
        self.owed += self.by_stream.len() * passed;
        let count = self.owed / ROUND as usize;
        self.owed %= ROUND as usize;
        let idle_ms = u64::from(desk.options.timeout) * 1000;
        let start = self.looked_at.map_or(Bound::Unbounded, Bound::Excluded);
        // A round ends with whoever was there when it began: those who come all the time must not keep the others out of it.
        if self.looked_at.is_none() {
            self.round_ends = self.by_stream.last_key_value().map(|(&stream, _)| stream);
        }
        let end = self.round_ends.map_or(Bound::Unbounded, Bound::Included);
        let mut late = Vec::new();
        let mut seen = 0;
        for (&stream, socket) in self.by_stream.range_mut((start, end)).take(count) {
            seen += 1;
            self.looked_at = Some(stream);
            desk.clients.note_peaks(socket.client);
            desk.clients.enforce_soft_limit(socket.client, now);
            let Some(client) = desk.clients.get(socket.client) else { continue };
            if now.since(client.last_active) > QUIET {
                socket.decoder.release();
            }
            if overstays(client, command::owes_password(&desk.acl, client), socket.moved, now, idle_ms) {
                late.push(stream);
            }
        }
        if seen < count {
            self.looked_at = None;
            desk.clients.next_round();
        }
        for stream in late {
            log::debug!("Closing an idle client");
            self.drop_client(reactor, stream, desk);
        }
    }

    fn drop_client(&mut self, reactor: &mut Reactor, stream: Token, desk: &mut Desk) {
        reactor.close(stream);
        self.closed(stream, &CloseReason::Other("closed by us".into()), desk);
    }
}

/// Whether the client has had its time; `moved` is when bytes last went either way.
fn overstays(client: &Client, owes_password: bool, moved: Millis, now: Millis, idle_ms: u64) -> bool {
    let idle = idle_ms > 0 && client.subscriptions() == 0 && now.since(client.last_active) > idle_ms;
    let silent_at_the_end = client.close_after_reply && now.since(moved) > limits::LAST_WORDS;
    let not_logged_in = owes_password && now.since(client.created) > limits::LOGIN;
    idle || silent_at_the_end || not_logged_in
}

impl Socket {
    /// Executes buffered requests until there is none, the client has to wait, or its share of this turn is
    /// used up (`backlog` then stays set).
    fn execute(&mut self, argv: &mut Argv, trusted: RequestLimits, desk: &mut Desk, now: Millis, requests: &mut usize) {
        let before = desk.clients.get(self.client).map_or(0, |client| client.out.len());
        loop {
            let Some(client) = desk.clients.get_mut(self.client) else { return };
            if !client.takes_requests()
                || *requests >= REQUESTS_PER_TURN
                || client.out.len().saturating_sub(before) >= REPLIES_PER_TURN
            {
                return;
            }
            let stranger = command::owes_password(&desk.acl, client);
            if stranger != self.stranger {
                self.stranger = stranger;
                self.decoder.set_limits(if stranger { RequestLimits::UNAUTHENTICATED } else { trusted });
            }
            match self.decoder.next(argv) {
                Ok(true) => {
                    *requests += 1;
                    command::dispatch(&mut desk.world(now), self.client, argv);
                    desk.grant_wishes();
                    desk.clients.enforce_hard_limit(self.client);
                    if desk.shutdown {
                        // What stands behind SHUTDOWN comes too late.
                        return;
                    }
                }
                Ok(false) => {
                    self.backlog = false;
                    return;
                }
                Err(error) => {
                    log::debug!("Client {} sent no RESP: {error}", client.addr);
                    desk.stats.query_limit_disconnections += u64::from(error == ProtocolError::BigRequest);
                    client.out.extend_from_slice(&[b"-ERR ".as_slice(), &error.told(), b"\r\n"].concat());
                    desk.clients.close_after_reply(self.client);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Clients;

    #[test]
    fn who_does_not_log_in_has_its_time_and_who_has_logged_in_has_not() {
        let mut clients = Clients::new();
        let born = Millis(1_000);
        let id = clients.connect(born, "127.0.0.1:1".into(), "127.0.0.1:2".into());
        let client = clients.get_mut(id).expect("just made");
        // Bytes now and then buy it no time.
        client.last_active = born + limits::LOGIN;
        let late = born + limits::LOGIN + 1;
        for (owes, now, idle_ms, ends) in [
            (true, born + limits::LOGIN, 0, false),
            (true, late, 0, true),
            (false, late, 0, false),
            (false, late, 1_000, false),
            (false, late + 1_000, 1_000, true),
        ] {
            assert_eq!(overstays(client, owes, now, now, idle_ms), ends, "{owes} {now:?} {idle_ms}");
        }
        // Nor is it about those who have logged in and are to be closed.
        client.close_after_reply = true;
        assert!(!overstays(client, false, late, late + limits::LAST_WORDS, 0));
        assert!(overstays(client, false, late, late + limits::LAST_WORDS + 1, 0));
    }
}
