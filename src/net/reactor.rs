//! The reactor: what it owns, and the verbs that a handler may use anywhere. The loop itself is in `turn`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use mio::{Events, Interest, Poll};
use slab::Slab;
use socket2::SockRef;

use super::listener::Listener;
use super::signals::{Signals, WAKER, Waker};
use super::stream::{CloseReason, Read, Stream, Write};
use super::timers::{TimerId, Timers};
use super::tls::{Acceptor, Connector, Session};
use super::token::Token;
use super::wire::Wire;
use crate::base::{Millis, SortedSet, limits};

/// What a slot holds.
pub(super) enum Socket {
    Listener(Listener),
    Stream(Box<Stream>),
    /// Closed in this batch; the slot is freed before the next poll.
    Closed,
}

pub(super) struct Entry {
    token: Token,
    pub(super) socket: Socket,
}

/// Poll, listeners, streams, timers and signals of one thread.
///
/// Errors of single connections are never `io::Error`s of the loop: they come as [`CloseReason`]s through the handler.
pub struct Reactor {
    pub(super) poll: Poll,
    pub(super) events: Events,
    pub(super) clock: fn() -> Millis,
    /// The time of this turn, and of the one before.
    pub(super) now: Millis,
    pub(super) before: Millis,
    /// Counts the polls; bounds on reading and writing hold from one to the next.
    pub(super) turn: u64,
    pub(super) stopping: bool,
    pub(super) accepts_per_turn: usize,
    /// For TCP sockets.
    mark: Option<u32>,

    pub(super) entries: Slab<Entry>,
    generations: u32,
    /// Slots to be freed before the next poll.
    closed: Vec<usize>,

    /// What has something to do without the kernel saying so (again): the next poll does not wait.
    pub(super) ready: Vec<Token>,
    /// Streams that have ended and whose `closed` is due.
    pub(super) ended: Vec<Token>,
    /// Listeners that wait for better times, until when.
    pub(super) paused: Vec<(Millis, Token)>,
    /// Streams in the middle of a TLS handshake, and when it has to be through.
    pub(super) shaking: SortedSet<(Millis, Token)>,
    pub(super) timers: Timers,
    pub(super) signals: Signals,
    waker: Option<Waker>,

    /// Where bytes land first, so that the buffers of a thousand idle clients need no room in advance.
    pub(super) scratch: Vec<u8>,
    /// Emptied lists of earlier turns, for their memory.
    pub(super) spare_tokens: Vec<Token>,
    pub(super) spare_timers: Vec<TimerId>,
}

impl Reactor {
    /// `clock` is monotonic, in ms rounded down; the reactor knows no other.
    pub fn new(clock: fn() -> Millis) -> io::Result<Reactor> {
        let now = clock();
        Ok(Reactor {
            poll: Poll::new()?,
            events: Events::with_capacity(limits::EVENTS_PER_POLL),
            clock,
            now,
            before: now,
            turn: 1,
            stopping: false,
            accepts_per_turn: limits::ACCEPTS_PER_TURN as usize,
            mark: None,
            entries: Slab::new(),
            generations: 0,
            closed: Vec::new(),
            ready: Vec::new(),
            ended: Vec::new(),
            paused: Vec::new(),
            shaking: SortedSet::new(),
            timers: Timers::default(),
            signals: Signals::default(),
            waker: None,
            scratch: vec![0; limits::READ_PER_TURN],
            spare_tokens: Vec::new(),
            spare_timers: Vec::new(),
        })
    }

    /// Listens on `addr`; port 0 takes a free one, see [`Reactor::local_addr`]. A v6 address takes no v4 connections.
    pub fn listen(&mut self, addr: SocketAddr, backlog: u32) -> io::Result<Token> {
        self.add_listener(Listener::bind(addr, backlog, self.mark)?)
    }

    /// Takes connections from a Unix socket that was bound elsewhere: its file is nobody's business here.
    pub fn listen_unix(&mut self, socket: UnixListener, backlog: u32) -> io::Result<Token> {
        self.add_listener(Listener::unix(socket, backlog)?)
    }

    /// How many connections one listener takes before the others get their turn; at least one.
    pub fn set_accepts_per_turn(&mut self, count: usize) {
        self.accepts_per_turn = count.max(1);
    }

    /// Puts a mark on the packets of TCP sockets that listen or connect from now on (SO_MARK).
    ///
    /// # Errors
    ///
    /// The system's, most often that this needs CAP_NET_ADMIN. Then sockets stay as they are.
    pub fn set_mark(&mut self, mark: u32) -> io::Result<()> {
        let trial = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        SockRef::from(&trial).set_mark(mark)?;
        self.mark = Some(mark);
        Ok(())
    }

    /// Starts to connect to `to`, from our address `from` if given. What came of it is reported by `connected` or
    /// `closed`, also when it failed at once.
    ///
    /// # Errors
    ///
    /// There is no stream when the families of the two addresses differ or the system has no socket left.
    pub fn connect(&mut self, to: SocketAddr, from: Option<IpAddr>) -> io::Result<Token> {
        let stream = Stream::connect(to, from, self.mark)?;
        self.add_stream(stream)
    }

    /// As [`Reactor::connect`], and then a TLS handshake before `connected` is reported.
    ///
    /// # Errors
    ///
    /// As for [`Reactor::connect`].
    pub fn connect_tls(&mut self, to: SocketAddr, from: Option<IpAddr>, connector: &Connector) -> io::Result<Token> {
        let session = Session::connect(connector, to.ip()).map_err(io::Error::other)?;
        let mut stream = Stream::connect(to, from, self.mark)?;
        stream.tls = Some(Box::new(session));
        self.add_stream(stream)
    }

    /// Has an accepted stream speak TLS; to be said in `accepted`, before anything is read or written. Neither `readable` nor
    /// `writable` is reported before the handshake is through; one that fails or takes longer than
    /// [`limits::TLS_HANDSHAKE`] is reported by `closed`. A stale token is fine.
    ///
    /// # Errors
    ///
    /// TLS cannot begin, in words. The stream should be closed.
    pub fn accept_tls(&mut self, token: Token, acceptor: &Acceptor) -> Result<(), String> {
        let session = Session::accept(acceptor)?;
        if let Some(stream) = self.stream(token) {
            stream.tls = Some(Box::new(session));
            self.start_shaking(token);
        }
        Ok(())
    }

    /// From now on the handshake of this stream has its time.
    pub(super) fn start_shaking(&mut self, token: Token) {
        let deadline = self.now + limits::TLS_HANDSHAKE;
        if let Some(tls) = self.stream(token).and_then(|stream| stream.tls.as_mut()) {
            tls.deadline = Some(deadline);
            self.shaking.insert((deadline, token));
        }
    }

    /// Whether the peer was greeted with TLS (or is to greet us) and the handshake is not through. False for a stale token.
    #[must_use]
    pub fn is_shaking(&self, token: Token) -> bool {
        match self.socket(token) {
            Some(Socket::Stream(stream)) => !stream.connecting && stream.is_shaking(),
            _ => false,
        }
    }

    /// Whether everything that [`Reactor::write`] took has gone to the kernel. Only with TLS it may not have, and then a
    /// `close` would lose it; `writable` tells when it has. A stale token has nothing left to lose.
    #[must_use]
    pub fn is_flushed(&self, token: Token) -> bool {
        match self.socket(token) {
            Some(Socket::Stream(stream)) => stream.is_flushed(),
            _ => true,
        }
    }

    /// Appends to `into` what the stream has, within [`limits::READ_PER_TURN`]. A stale token gives `Failed`.
    pub fn read(&mut self, token: Token, into: &mut Vec<u8>) -> Read {
        let Some(Socket::Stream(stream)) = find(&mut self.entries, token) else { return Read::Failed(gone()) };
        let told = stream.ended;
        let outcome = stream.read(self.turn, &mut self.scratch, into);
        if stream.ended && !told {
            self.ended.push(token);
        }
        outcome
    }

    /// Gives bytes to the stream, within [`limits::WRITE_PER_TURN`]. Nothing is kept here: what was not taken is the
    /// caller's to write again, see [`Reactor::arm_write`]. A stale token gives `Failed`.
    pub fn write(&mut self, token: Token, bytes: &[u8]) -> Write {
        let Some(Socket::Stream(stream)) = find(&mut self.entries, token) else { return Write::Failed(gone()) };
        let told = stream.ended;
        let outcome = stream.write(self.turn, bytes);
        if stream.ended && !told {
            self.ended.push(token);
        }
        outcome
    }

    /// Asks for one `writable`, as soon as the stream can take bytes; in the next turn at the earliest.
    pub fn arm_write(&mut self, token: Token) {
        self.change(token, |stream| stream.armed = true);
    }

    /// Asks for one `readable` in the next turn, even if the socket has nothing: there may be bytes left in a buffer.
    pub fn wake(&mut self, token: Token) {
        self.change(token, |stream| stream.woken = true);
    }

    /// Whether `readable` is wanted, as it is at first. A paused stream does not see its peer leave either.
    pub fn set_reading(&mut self, token: Token, wanted: bool) {
        self.change(token, |stream| stream.reading = wanted);
    }

    /// Keeps a stream whose peer has finished sending, to be said in the callback in which [`Reactor::read`] gave `Eof`:
    /// what waits for the peer can still be written. Nothing is read any more; the stream ends when it is closed or a
    /// write fails.
    pub fn keep_writing(&mut self, token: Token) {
        self.change(token, Stream::keep_writing);
    }

    /// Closes a stream or listener now. Nothing is reported for it any more; a stale token is fine.
    pub fn close(&mut self, token: Token) {
        let Some(socket) = find(&mut self.entries, token) else { return };
        let registry = self.poll.registry();
        // One that never was registered (its connect failed at once) cannot be deregistered; both are dropped just the same.
        match std::mem::replace(socket, Socket::Closed) {
            Socket::Listener(mut listener) => {
                let _ = registry.deregister(listener.source());
                self.paused.retain(|(_, paused)| *paused != token);
            }
            Socket::Stream(mut stream) => {
                if let Some(tls) = &mut stream.tls {
                    if let Some(deadline) = tls.deadline {
                        self.shaking.remove(&(deadline, token));
                    }
                    // A farewell, if the socket takes it now. Whoever was not greeted needs none.
                    if !tls.is_shaking() {
                        tls.finish();
                    }
                    let _ = stream.flush_tls();
                }
                let _ = registry.deregister(&mut stream.socket);
            }
            Socket::Closed => return,
        }
        self.closed.push(token.slot());
    }

    /// A timer that fires once `at` has come.
    pub fn add_timer(&mut self, at: Millis) -> TimerId {
        self.timers.add(at)
    }

    /// The timer will not fire (again). False when it was gone already.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.timers.cancel(timer)
    }

    /// Has these signals reported through `signal` instead of doing what they usually do. May be called again for more.
    ///
    /// # Errors
    ///
    /// Signals that cannot be handled (KILL, STOP, ILL, FPE, SEGV), and what the system refuses.
    pub fn signals(&mut self, signals: &[i32]) -> io::Result<()> {
        self.signals.add(self.poll.registry(), signals)
    }

    /// A handle with which other threads end the poll.
    pub fn waker(&mut self) -> io::Result<Waker> {
        if let Some(waker) = &self.waker {
            return Ok(waker.clone());
        }
        let waker = Waker(Arc::new(mio::Waker::new(self.poll.registry(), WAKER)?));
        self.waker = Some(waker.clone());
        Ok(waker)
    }

    /// Ends [`Reactor::run`] with this turn.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// The time of this turn: read after the poll, and never going back.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.now
    }

    /// All that the connections which we made had brought by then was reported: the time of this turn, or less when it left
    /// some of them to the next ones.
    #[must_use]
    pub fn heard_up_to(&self) -> Millis {
        // The list is in the order in which they came.
        let left = self.ready.iter().find_map(|&token| match self.socket(token) {
            Some(Socket::Stream(stream)) if stream.ours => Some(stream.waits_since),
            _ => None,
        });
        left.unwrap_or(self.now)
    }

    /// Reads the clock outside of a turn: what went before the first one may have taken long, a look-up of names to bind to.
    pub fn read_clock(&mut self) -> Millis {
        self.now = self.now.max((self.clock)());
        self.now
    }

    /// The number of a stream's descriptor, to be shown and for nothing else.
    #[must_use]
    pub fn descriptor(&self, token: Token) -> Option<i32> {
        match self.socket(token)? {
            Socket::Stream(stream) => Some(stream.socket.descriptor()),
            _ => None,
        }
    }

    /// Our end of a stream, or where a listener listens.
    #[must_use]
    pub fn local_addr(&self, token: Token) -> Option<SocketAddr> {
        match self.socket(token)? {
            Socket::Stream(stream) => stream.socket.local_addr().ok(),
            Socket::Listener(listener) => listener.local_addr(),
            Socket::Closed => None,
        }
    }

    /// Has the kernel probe a silent peer after so many seconds; zero turns it off. A stale token is fine.
    pub fn set_keepalive(&mut self, token: Token, seconds: u32) -> io::Result<()> {
        match self.socket(token) {
            Some(Socket::Stream(stream)) => stream.set_keepalive(seconds),
            _ => Ok(()),
        }
    }

    /// Registers what a listener took.
    pub(super) fn add_accepted(&mut self, socket: Wire) -> io::Result<Token> {
        let stream = Stream::accepted(socket);
        // The peer may have left already, which some systems report here. The first read will tell.
        let _ = stream.socket.tunable().map(|socket| socket.set_tcp_nodelay(true));
        let _ = stream.set_keepalive(limits::KEEPALIVE_SECONDS);
        self.add_stream(stream)
    }

    fn add_listener(&mut self, mut listener: Listener) -> io::Result<Token> {
        let token = self.next_token();
        self.poll.registry().register(listener.source(), token.to_mio(), Interest::READABLE)?;
        self.insert(token, Socket::Listener(listener));
        Ok(token)
    }

    fn add_stream(&mut self, mut stream: Stream) -> io::Result<Token> {
        let token = self.next_token();
        if stream.ended {
            self.ended.push(token);
        } else {
            // Both interests once and for all: with edges, an interest without a demand costs nothing.
            let both = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut stream.socket, token.to_mio(), both)?;
        }
        self.insert(token, Socket::Stream(Box::new(stream)));
        Ok(token)
    }

    /// The name of what is inserted next.
    fn next_token(&mut self) -> Token {
        self.generations = self.generations.wrapping_add(1);
        Token::new(self.entries.vacant_key(), self.generations)
    }

    fn insert(&mut self, token: Token, socket: Socket) {
        let slot = self.entries.insert(Entry { token, socket });
        assert_eq!(slot, token.slot(), "registered under the slot that it lives in");
    }

    fn socket(&self, token: Token) -> Option<&Socket> {
        let entry = self.entries.get(token.slot())?;
        (entry.token == token && !matches!(entry.socket, Socket::Closed)).then_some(&entry.socket)
    }

    pub(super) fn stream(&mut self, token: Token) -> Option<&mut Stream> {
        match find(&mut self.entries, token)? {
            Socket::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    pub(super) fn listener(&mut self, token: Token) -> Option<&mut Listener> {
        match find(&mut self.entries, token)? {
            Socket::Listener(listener) => Some(listener),
            _ => None,
        }
    }

    /// Changes an interest, and puts the stream on the ready list if its sticky bits answer it already.
    fn change(&mut self, token: Token, change: impl FnOnce(&mut Stream)) {
        if let Some(stream) = self.stream(token) {
            change(stream);
        }
        self.enlist(token);
    }

    /// Puts a stream that has something to do on the ready list.
    pub(super) fn enlist(&mut self, token: Token) {
        let before = self.before;
        if let Some(stream) = self.stream(token)
            && (stream.wants_read() || stream.wants_write() || stream.wants_step())
            && !stream.queued
        {
            (stream.queued, stream.waits_since) = (true, before);
            self.ready.push(token);
        }
    }

    /// Gives the slots of the closed away. Only between two batches.
    pub(super) fn free_closed(&mut self) {
        for slot in self.closed.drain(..) {
            let entry = self.entries.remove(slot);
            debug_assert!(matches!(entry.socket, Socket::Closed), "slot {slot} was freed while in use");
        }
    }
}

/// A function of the slab alone, so that the other fields stay free to be used.
fn find(entries: &mut Slab<Entry>, token: Token) -> Option<&mut Socket> {
    let entry = entries.get_mut(token.slot())?;
    (entry.token == token && !matches!(entry.socket, Socket::Closed)).then_some(&mut entry.socket)
}

fn gone() -> CloseReason {
    CloseReason::Other("the stream is closed".to_string())
}

impl Entry {
    /// The name under which the slot's owner is known.
    pub(super) fn token(&self) -> Token {
        self.token
    }
}
