//! The connections to masters, replicas and peers: the core's [`ConnId`]s on one side, sockets on the other.
//!
//! Bytes that the core sends before the connection stands wait here, and so do those that the kernel does
//! not take; [`Links::flush`] gives each connection one write a turn. Nothing here decides when to dial, to
//! hang up or what a reply means: all that is the core's.

use crate::base::Millis;
use crate::core::{ConnId, ConnKind, Gone, Input, Sentinel};
use crate::net::tls::Connector;
use crate::net::{CloseReason, Reactor, Read, Token, Write};
use crate::resp::ReplyDecoder;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Peers whose TLS failed and of whom the log has spoken, at most.
const COMPLAINTS: usize = 1024;
/// How an alert begins, with which a TLS port answers plain text.
const TLS_ALERT: [u8; 2] = [21, 3];

#[derive(Debug)]
pub struct Links {
    by_conn: BTreeMap<ConnId, Line>,
    by_stream: BTreeMap<Token, ConnId>,
    /// Those with something to write.
    dirty: Vec<ConnId>,
    /// `bind-source-addr`.
    source: Option<IpAddr>,
    /// New links use TLS.
    pub tls: Option<Connector>,
    /// What was said of whom, so that a link that fails every second is not written of every second.
    complaints: BTreeMap<SocketAddr, String>,
    /// Nodes that have answered in the way that we speak; when they hang up, they have gone.
    understood: BTreeSet<SocketAddr>,
    /// What the core has to hear and could not be told in the middle of an effect.
    untold: VecDeque<Input>,
    /// Where bytes land: lent to the decoder of the line they came on, and empty in between.
    incoming: Vec<u8>,
}

/// One connection.
#[derive(Debug)]
struct Line {
    stream: Token,
    to: SocketAddr,
    kind: ConnKind,
    up: bool,
    /// Something came from there.
    heard: bool,
    /// On the dirty list.
    queued: bool,
    decoder: ReplyDecoder,
    out: Vec<u8>,
}

impl Links {
    #[must_use]
    pub fn new(source: Option<IpAddr>, tls: Option<Connector>) -> Links {
        Links {
            by_conn: BTreeMap::new(),
            by_stream: BTreeMap::new(),
            dirty: Vec::new(),
            source,
            tls,
            complaints: BTreeMap::new(),
            understood: BTreeSet::new(),
            untold: VecDeque::new(),
            incoming: Vec::new(),
        }
    }

    /// Starts to connect. When there is not even a socket, the core hears of it through [`Links::untold`].
    pub fn connect(&mut self, reactor: &mut Reactor, conn: ConnId, to: SocketAddr, kind: ConnKind) {
        // The source address is for nodes of its family; the others are reached from wherever the route goes.
        let source = self.source.filter(|source| source.is_ipv4() == to.is_ipv4());
        let begun = match &self.tls {
            Some(connector) => reactor.connect_tls(to, source, connector),
            None => reactor.connect(to, source),
        };
        match begun {
            Ok(stream) => {
                let decoder = ReplyDecoder::new();
                self.by_stream.insert(stream, conn);
                self.by_conn.insert(
                    conn,
                    Line { stream, to, kind, up: false, heard: false, queued: false, decoder, out: Vec::new() },
                );
            }
            Err(why) => self.untold.push_back(Input::Closed { conn, why: Gone::Other(why.to_string()) }),
        }
    }

    /// Queues bytes; for a connection that is gone they are dropped.
    pub fn send(&mut self, conn: ConnId, bytes: Vec<u8>) {
        if let Some(line) = self.by_conn.get_mut(&conn) {
            if line.out.is_empty() {
                line.out = bytes;
            } else {
                line.out.extend_from_slice(&bytes);
            }
            if line.up && !line.queued {
                line.queued = true;
                self.dirty.push(conn);
            }
        }
    }

    /// Drops the connection without a word to the core.
    pub fn close(&mut self, reactor: &mut Reactor, conn: ConnId) {
        if let Some(line) = self.by_conn.remove(&conn) {
            self.by_stream.remove(&line.stream);
            if reactor.is_shaking(line.stream) {
                self.complain(
                    line.to,
                    "TLS handshake failed: no answer; the node hangs, or speaks plain text on that port",
                );
            }
            reactor.close(line.stream);
        }
    }

    /// The next input that could not be handed in where it arose.
    #[must_use]
    pub fn untold(&mut self) -> Option<Input> {
        self.untold.pop_front()
    }

    /// The connection stands; what waited for it goes out with the next flush.
    #[must_use]
    pub fn connected(&mut self, stream: Token, local: SocketAddr) -> Option<Input> {
        let &conn = self.by_stream.get(&stream)?;
        let line = self.by_conn.get_mut(&conn)?;
        line.up = true;
        if !line.out.is_empty() && !line.queued {
            line.queued = true;
            self.dirty.push(conn);
        }
        Some(Input::Connected { conn, local: local.ip() })
    }

    /// The connection ended, or never came to be.
    #[must_use]
    pub fn closed(&mut self, stream: Token, why: &CloseReason) -> Option<Input> {
        let conn = self.by_stream.remove(&stream)?;
        if let Some(line) = self.by_conn.remove(&conn) {
            match why {
                CloseReason::Tls(text) => self.complain(line.to, text),
                CloseReason::Eof | CloseReason::Reset if self.tls.is_none() && line.up && !line.heard => {
                    self.suspect(line.to);
                }
                _ => {}
            }
        }
        let why = match why {
            CloseReason::Refused => Gone::Refused,
            other => Gone::Other(other.to_string()),
        };
        Some(Input::Closed { conn, why })
    }

    /// Reads what is there and hands whole replies to the core.
    pub fn readable(&mut self, reactor: &mut Reactor, stream: Token, sentinel: &mut Sentinel, now: Millis) {
        let Some(&conn) = self.by_stream.get(&stream) else { return };
        let Some(line) = self.by_conn.get_mut(&conn) else { return };
        loop {
            match reactor.read(stream, &mut self.incoming) {
                Read::Data(_) => {}
                // An end is reported by `closed`.
                Read::Blocked | Read::Eof | Read::Failed(_) => return,
            }
            let first = !std::mem::replace(&mut line.heard, true);
            let alert = self.incoming.starts_with(&TLS_ALERT);
            if first && !alert {
                // It has come about after all; the next failure is news again.
                self.complaints.remove(&line.to);
                if self.understood.len() >= COMPLAINTS {
                    self.understood.clear();
                }
                self.understood.insert(line.to);
            }
            line.decoder.lend(&mut self.incoming);
            loop {
                match line.decoder.next() {
                    Ok(Some(reply)) => sentinel.handle(now, Input::Reply { conn, kind: line.kind, reply }),
                    Ok(None) => break,
                    Err(error) => {
                        let to = line.to;
                        line.decoder.reclaim(&mut self.incoming);
                        if alert && self.tls.is_none() {
                            self.complain(
                                to,
                                "it answers plain text with a TLS alert: either tls-replication is to be yes here, \
                                 or the server's plain port to be used",
                            );
                        }
                        // Whoever answers like this is no server; dialling it again is the core's to decide.
                        self.close(reactor, conn);
                        sentinel.handle(now, Input::Closed { conn, why: Gone::Other(error.to_string()) });
                        return;
                    }
                }
            }
            line.decoder.reclaim(&mut self.incoming);
        }
    }

    /// Says in the log what is wrong between us and a node, once.
    fn complain(&mut self, to: SocketAddr, text: &str) {
        if self.complaints.get(&to).is_none_or(|said| said != text) {
            log::warn!("The link to {to} fails: {text}");
            self.remember(to, text);
        }
    }

    /// A node took the connection and hung up without a word. That is how OpenSSL treats plain text, but also how a server
    /// ends that was just started; so the second time in a row counts, and only of a node that never said a word.
    fn suspect(&mut self, to: SocketAddr) {
        if self.understood.contains(&to) {
            return;
        }
        match self.complaints.get(&to) {
            None => self.remember(to, ""),
            Some(_) => self.complain(
                to,
                "it hangs up before it has answered anything, as a TLS port does with plain text; with tls-replication yes \
                 links use TLS",
            ),
        }
    }

    fn remember(&mut self, to: SocketAddr, text: &str) {
        if self.complaints.len() >= COMPLAINTS {
            self.complaints.clear();
        }
        self.complaints.insert(to, text.to_owned());
    }

    /// A write asked for can go on.
    pub fn writable(&mut self, reactor: &mut Reactor, stream: Token) {
        if let Some(line) = self.by_stream.get(&stream).and_then(|conn| self.by_conn.get_mut(conn)) {
            line.write(reactor);
        }
    }

    /// One write for each connection that has something to say.
    pub fn flush(&mut self, reactor: &mut Reactor) {
        for conn in std::mem::take(&mut self.dirty) {
            if let Some(line) = self.by_conn.get_mut(&conn) {
                line.queued = false;
                line.write(reactor);
            }
        }
    }
}

impl Line {
    fn write(&mut self, reactor: &mut Reactor) {
        let wrote = match reactor.write(self.stream, &self.out) {
            Write::Wrote(n) => n,
            Write::Blocked => 0,
            // The reactor reports the end by `closed`.
            Write::Failed(_) => return,
        };
        // The core bounds what may be pending on a link, so there is never much to move to the front.
        self.out.drain(..wrote);
        if self.out.is_empty() {
            self.out = Vec::new();
        } else {
            reactor.arm_write(self.stream);
        }
    }
}
