//! A handler that writes down what it is told and acts by a script, and loops that end by condition, never by hope.
#![allow(dead_code)] // Each test binary uses its own part.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use watchfire::base::Millis;
use watchfire::net::{CloseReason, Handler, Next, Reactor, Read, TimerId, Token};

/// How long a condition may take before the test is called hung, in ms.
const PATIENCE: u64 = 20_000;

pub fn clock() -> Millis {
    static START: OnceLock<Instant> = OnceLock::new();
    Millis(u64::try_from(START.get_or_init(Instant::now).elapsed().as_millis()).unwrap())
}

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    BeforeSleep,
    Accepted(Token, Token, Option<SocketAddr>),
    Connected(Token, SocketAddr),
    Readable(Token),
    Writable(Token),
    Closed(Token, CloseReason),
    Timer(TimerId),
    Signal(i32),
    Trouble(String),
}

/// What a script does about an event; the answer counts for timers only.
pub type Script<S> = fn(&mut Reactor, &mut S, &Event) -> Next;

pub struct Story<S> {
    pub state: S,
    /// All that happened, except that `BeforeSleep` is only counted.
    pub events: Vec<Event>,
    pub sleeps: usize,
    script: Script<S>,
    guard: Option<TimerId>,
}

impl<S> Story<S> {
    pub fn new(state: S, script: Script<S>) -> Story<S> {
        Story { state, events: Vec::new(), sleeps: 0, script, guard: None }
    }

    fn tell(&mut self, reactor: &mut Reactor, event: Event) -> Next {
        let next = (self.script)(reactor, &mut self.state, &event);
        match event {
            Event::BeforeSleep => self.sleeps += 1,
            event => self.events.push(event),
        }
        next
    }

    pub fn count(&self, which: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| which(event)).count()
    }

    pub fn accepted(&self) -> Vec<Token> {
        self.events.iter().filter_map(|e| if let Event::Accepted(_, s, _) = e { Some(*s) } else { None }).collect()
    }

    pub fn closed(&self) -> Vec<(Token, CloseReason)> {
        self.events
            .iter()
            .filter_map(|e| if let Event::Closed(s, w) = e { Some((*s, w.clone())) } else { None })
            .collect()
    }
}

impl<S> Handler for Story<S> {
    fn before_sleep(&mut self, reactor: &mut Reactor) {
        self.tell(reactor, Event::BeforeSleep);
    }

    fn accepted(&mut self, reactor: &mut Reactor, listener: Token, stream: Token, peer: Option<SocketAddr>) {
        self.tell(reactor, Event::Accepted(listener, stream, peer));
    }

    fn connected(&mut self, reactor: &mut Reactor, stream: Token, local: SocketAddr) {
        self.tell(reactor, Event::Connected(stream, local));
    }

    fn readable(&mut self, reactor: &mut Reactor, stream: Token) {
        self.tell(reactor, Event::Readable(stream));
    }

    fn writable(&mut self, reactor: &mut Reactor, stream: Token) {
        self.tell(reactor, Event::Writable(stream));
    }

    fn closed(&mut self, reactor: &mut Reactor, stream: Token, why: CloseReason) {
        assert!(!is_open(reactor, stream), "a closed stream no longer exists");
        self.tell(reactor, Event::Closed(stream, why));
    }

    fn timer(&mut self, reactor: &mut Reactor, timer: TimerId) -> Next {
        assert_ne!(self.guard, Some(timer), "the condition did not come about");
        self.tell(reactor, Event::Timer(timer))
    }

    fn signal(&mut self, reactor: &mut Reactor, signal: i32) {
        self.tell(reactor, Event::Signal(signal));
    }

    fn trouble(&mut self, reactor: &mut Reactor, text: &str) {
        self.tell(reactor, Event::Trouble(text.to_string()));
    }
}

/// Whether the token names a stream that was not closed.
pub fn is_open(reactor: &Reactor, stream: Token) -> bool {
    reactor.descriptor(stream).is_some()
}

/// How many of the accepted are left.
pub fn open<S>(reactor: &Reactor, story: &Story<S>) -> usize {
    story.accepted().into_iter().filter(|&stream| is_open(reactor, stream)).count()
}

/// Turns until `done`; returns how many turns that took.
pub fn until<S>(reactor: &mut Reactor, story: &mut Story<S>, done: impl Fn(&Story<S>) -> bool) -> usize {
    let guard = reactor.add_timer(clock() + PATIENCE);
    story.guard = Some(guard);
    let mut turns = 0;
    while !done(story) {
        reactor.turn(story).unwrap();
        turns += 1;
    }
    reactor.cancel(guard);
    turns
}

/// Exactly so many turns, none of which may sleep long.
pub fn turns<S>(reactor: &mut Reactor, story: &mut Story<S>, count: usize) {
    for _ in 0..count {
        let poke = reactor.add_timer(clock());
        reactor.turn(story).unwrap();
        reactor.cancel(poke);
        story.events.retain(|event| *event != Event::Timer(poke));
    }
}

/// Reads all that this turn gives; `Some` at the end of the stream.
pub fn drain(reactor: &mut Reactor, stream: Token, into: &mut Vec<u8>) -> Option<Read> {
    loop {
        match reactor.read(stream, into) {
            Read::Data(_) => {}
            Read::Blocked => return None,
            end => return Some(end),
        }
    }
}

/// A client from outside, blocking, but never for ever.
pub fn client(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(PATIENCE))).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(PATIENCE))).unwrap();
    stream
}

/// Writes until the kernel takes no more; returns how much that was.
pub fn stuff(stream: &mut TcpStream) -> usize {
    let bytes = vec![b'x'; 64 * 1024];
    let mut taken = 0;
    stream.set_nonblocking(true).unwrap();
    loop {
        match stream.write(&bytes) {
            Ok(n) => taken += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
            Err(e) => panic!("{e}"),
        }
    }
    stream.set_nonblocking(false).unwrap();
    taken
}

/// Reads what has arrived, without waiting; returns how much that was.
pub fn suck(stream: &mut TcpStream) -> usize {
    let mut bytes = vec![0; 64 * 1024];
    let mut got = 0;
    stream.set_nonblocking(true).unwrap();
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
            Err(e) => panic!("{e}"),
        }
    }
    stream.set_nonblocking(false).unwrap();
    got
}

pub fn answer<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

pub fn local4() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A loopback port on which nobody listens, for as long as the socket is held.
pub fn deaf_port() -> (socket2::Socket, SocketAddr) {
    // Bound but not listening: nobody else can take it, and connecting to it is refused.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&local4().into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, addr)
}
