//! One connection: its socket, its sticky readiness, what it may still move before the others get their turn.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mio::net::TcpStream;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use super::tls::Session;
use super::wire::Wire;
use crate::base::{Millis, limits};

/// Why a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Nobody listens at the other end.
    Refused,
    /// The peer has closed its half.
    Eof,
    /// The connection was torn down.
    Reset,
    /// The kernel gave up waiting (connect, keepalive, unacknowledged bytes).
    Timeout,
    /// TLS did not come about, or broke; in words.
    Tls(String),
    /// The system's words.
    Other(String),
}

impl CloseReason {
    fn of(error: &io::Error) -> CloseReason {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => CloseReason::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
                CloseReason::Reset
            }
            io::ErrorKind::TimedOut => CloseReason::Timeout,
            _ => CloseReason::Other(error.to_string()),
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CloseReason::Refused => "Connection refused",
            CloseReason::Eof => "Connection closed by the peer",
            CloseReason::Reset => "Connection reset by the peer",
            CloseReason::Timeout => "Connection timed out",
            CloseReason::Tls(text) | CloseReason::Other(text) => text,
        })
    }
}

/// What a read came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Read {
    /// So many bytes were appended; there may be more.
    Data(usize),
    /// Nothing now: the socket is empty, or the bound of this turn is reached. `readable` will come again by itself.
    Blocked,
    /// The peer sends no more. Never in the same turn as data, so that answers to the last request are flushed first; who has
    /// more to say than that asks for [`super::Reactor::keep_writing`].
    Eof,
    /// The connection is lost.
    Failed(CloseReason),
}

/// What a write came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Write {
    /// The kernel took so many bytes, perhaps not all. With TLS some of them may still wait for the kernel, which comes to
    /// them by itself; who wants to close behind them asks [`super::Reactor::is_flushed`].
    Wrote(usize),
    /// Nothing now: the socket is full, not yet connected, in the middle of a TLS handshake, or the bound of this turn is
    /// reached. Ask with `arm_write`.
    Blocked,
    /// The connection is lost.
    Failed(CloseReason),
}

/// What the socket said when a connect was looked at.
pub(super) enum Connect {
    Pending,
    Done(SocketAddr),
    Failed,
}

/// How far a TLS handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shake {
    Pending,
    /// It is through; the stream can be used.
    Done,
    Failed,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) socket: Wire,
    pub(super) connecting: bool,
    /// We made the connection, not the peer.
    pub(super) ours: bool,
    /// Sticky: set by the poll, cleared by `WouldBlock`, and `readable` also by a read that the socket could not fill.
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The poll has said that the peer's half is closed, or worse: reads go on until they have said so, too.
    hung_up: bool,
    /// The interests: reads are wanted unless paused, a write only while armed.
    pub(super) reading: bool,
    pub(super) armed: bool,
    /// `readable` was asked for, whatever the socket says.
    pub(super) woken: bool,
    /// On the ready list already.
    pub(super) queued: bool,
    /// What waits on it came after this moment; of a stream on the ready list.
    pub(super) waits_since: Millis,
    /// The TLS between the socket and the handler.
    pub(super) tls: Option<Box<Session>>,
    /// What was moved in the turn `budget_turn`, in bytes: handed on, and taken from the socket where TLS makes that another
    /// number.
    budget_turn: u64,
    read: usize,
    fed: usize,
    wrote: usize,
    /// How it ended, once the socket has said so.
    end: Option<CloseReason>,
    /// A read or write has returned `end`: `closed` is due.
    pub(super) ended: bool,
    /// The peer sends no more, and the owner has not finished writing.
    deaf: bool,
}

impl Stream {
    fn new(socket: Wire, connecting: bool) -> Stream {
        Stream {
            socket,
            connecting,
            ours: connecting,
            readable: false,
            writable: !connecting,
            hung_up: false,
            reading: true,
            armed: false,
            woken: false,
            queued: false,
            waits_since: Millis(0),
            tls: None,
            budget_turn: 0,
            read: 0,
            fed: 0,
            wrote: 0,
            end: None,
            ended: false,
            deaf: false,
        }
    }

    /// A connection that a listener took.
    pub(super) fn accepted(socket: Wire) -> Stream {
        Stream::new(socket, false)
    }

    /// Starts to connect. An address that cannot be used or a peer that refuses at once gives a stream that has ended;
    /// an error means that there was no socket to be had or that the families differ.
    pub(super) fn connect(to: SocketAddr, from: Option<IpAddr>, mark: Option<u32>) -> io::Result<Stream> {
        if from.is_some_and(|from| from.is_ipv4() != to.is_ipv4()) {
            let text = "source and destination are of different address families";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        if let Some(mark) = mark {
            socket.set_mark(mark)?;
        }
        let bound = from.map_or(Ok(()), |from| socket.bind(&SocketAddr::new(from, 0).into()));
        let outcome = bound.and_then(|()| socket.connect(&to.into()));
        let mut stream = Stream::new(Wire::Tcp(TcpStream::from_std(socket.into())), true);
        if let Err(e) = outcome
            && e.raw_os_error() != Some(libc::EINPROGRESS)
        {
            stream.fail(CloseReason::of(&e));
        }
        Ok(stream)
    }

    /// Looks whether the connect has come to an end. The socket being writable does not say how, its error slot does.
    pub(super) fn check_connect(&mut self) -> Connect {
        let outcome = match self.socket.take_error() {
            Ok(None) => self.socket.peer_addr().and_then(|peer| Ok((peer, self.socket.local_addr()?))),
            Ok(Some(e)) | Err(e) => Err(e),
        };
        match outcome {
            // Asked for a port of the ephemeral range where nobody listens, the kernel may pick that very port for our end
            // and connect us to ourselves. Held open, this would also keep the server from coming back.
            Ok((peer, local)) if peer == local => {
                self.fail(CloseReason::Refused);
                Connect::Failed
            }
            Ok((_, local)) => {
                self.connecting = false;
                self.writable = true;
                Connect::Done(local)
            }
            Err(e) if e.kind() == io::ErrorKind::NotConnected || e.raw_os_error() == Some(libc::EINPROGRESS) => {
                self.readable = false;
                self.writable = false;
                Connect::Pending
            }
            Err(e) => {
                self.fail(CloseReason::of(&e));
                Connect::Failed
            }
        }
    }

    /// Reads once through `scratch` onto the end of `into`, within the bound of `turn`.
    pub(super) fn read(&mut self, turn: u64, scratch: &mut [u8], into: &mut Vec<u8>) -> Read {
        self.refresh(turn);
        if self.deaf {
            return Read::Eof;
        }
        if self.tls.is_some() {
            return self.read_tls(scratch, into);
        }
        if self.end.is_some() {
            return self.report_end();
        }
        let room = limits::READ_PER_TURN.saturating_sub(self.read).min(scratch.len());
        if self.connecting || !self.readable || room == 0 {
            return Read::Blocked;
        }
        match retried(|| self.socket.read(&mut scratch[..room])) {
            Ok(0) => self.end = Some(CloseReason::Eof),
            Ok(n) => {
                into.extend_from_slice(&scratch[..n]);
                self.read += n;
                self.took(n, room);
                return Read::Data(n);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                return Read::Blocked;
            }
            Err(e) => self.end = Some(CloseReason::of(&e)),
        }
        self.report_end()
    }

    /// A read that brought less than it could has emptied the socket: whatever comes now is a new edge, and the read that
    /// would only say `WouldBlock` is saved. An end that stood behind the bytes was part of this edge and brings no other.
    fn took(&mut self, n: usize, room: usize) {
        self.readable = n == room || self.hung_up;
    }

    /// As [`Stream::read`], through TLS.
    fn read_tls(&mut self, scratch: &mut [u8], into: &mut Vec<u8>) -> Read {
        loop {
            let Some(tls) = &mut self.tls else { return Read::Blocked };
            if tls.is_shaking() && self.end.is_none() {
                return Read::Blocked;
            }
            if tls.has_plain() {
                let room = limits::READ_PER_TURN.saturating_sub(self.read);
                let given = tls.give(room, into);
                self.read += given;
                return if given > 0 { Read::Data(given) } else { Read::Blocked };
            }
            if tls.is_finished() && self.end.is_none() {
                self.end = Some(CloseReason::Eof);
            }
            if self.end.is_some() {
                return self.report_end();
            }
            if !self.feed(scratch) {
                return Read::Blocked;
            }
        }
    }

    /// Takes once from the socket what TLS is to digest. False when there was nothing, or the bound of the turn is reached.
    fn feed(&mut self, scratch: &mut [u8]) -> bool {
        let Some(tls) = &mut self.tls else { return false };
        let room = limits::READ_PER_TURN.saturating_sub(self.fed).min(scratch.len());
        if !self.readable || room == 0 {
            return false;
        }
        match retried(|| self.socket.read(&mut scratch[..room])) {
            // Without a farewell, like most of those who leave. Nothing can be cut short by it: a reply says how long it is.
            Ok(0) => self.end = Some(CloseReason::Eof),
            Ok(n) => {
                self.fed += n;
                if let Err(text) = tls.take(&scratch[..n]) {
                    self.end = Some(CloseReason::Tls(text));
                }
                self.took(n, room);
                // What TLS has to say to that: the next flight, an alert.
                if let Err(why) = self.flush_tls() {
                    self.end.get_or_insert(why);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                return false;
            }
            Err(e) => self.end = Some(CloseReason::of(&e)),
        }
        true
    }

    /// Gives the socket the records that wait for it, as far as it takes them.
    ///
    /// # Errors
    ///
    /// Nobody is at the other end any more.
    pub(super) fn flush_tls(&mut self) -> Result<(), CloseReason> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        if !self.writable || self.connecting {
            return Ok(());
        }
        match tls.flush(&mut self.socket) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.writable = false;
                Ok(())
            }
            outcome => outcome.map_err(|e| CloseReason::of(&e)),
        }
    }

    /// Carries the handshake on, within the bound of `turn`.
    pub(super) fn shake(&mut self, turn: u64, scratch: &mut [u8]) -> Shake {
        self.refresh(turn);
        loop {
            if let Err(why) = self.flush_tls() {
                self.end.get_or_insert(why);
            }
            let Some(tls) = &mut self.tls else { return Shake::Done };
            if tls.came_through() {
                return Shake::Done;
            }
            if self.end.is_some() {
                let left = CloseReason::Tls("TLS handshake failed: the peer has left in the middle of it".to_string());
                let why = self.end.take().filter(|end| *end != CloseReason::Eof).unwrap_or(left);
                self.fail(why);
                return Shake::Failed;
            }
            if !self.feed(scratch) {
                return Shake::Pending;
            }
        }
    }

    /// Whether a handshake is under way.
    pub(super) fn is_shaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_shaking())
    }

    /// Whether everything that was written has gone to the kernel.
    pub(super) fn is_flushed(&self) -> bool {
        !self.tls.as_ref().is_some_and(|tls| tls.has_records())
    }

    /// Whether its handshake is to go on by what the peer has sent, which costs.
    pub(super) fn wants_shake(&self) -> bool {
        self.is_shaking() && self.readable && !self.ended && !self.connecting
    }

    /// Whether TLS itself has something to do: a step of its handshake, or records for a socket that takes them.
    pub(super) fn wants_step(&self) -> bool {
        let shakes = self.is_shaking() && (self.readable || self.end.is_some());
        !self.ended && !self.connecting && self.tls.is_some() && (shakes || (self.writable && !self.is_flushed()))
    }

    /// The end waits for the next turn when this turn brought data. The sticky bit stays set, so that it comes.
    fn report_end(&mut self) -> Read {
        if self.read > 0 && !self.ended {
            return Read::Blocked;
        }
        self.ended = true;
        match self.end.clone() {
            Some(CloseReason::Eof) | None => Read::Eof,
            Some(why) => Read::Failed(why),
        }
    }

    /// Takes back that it has ended, if it was the peer who finished sending: there is something left to tell it.
    pub(super) fn keep_writing(&mut self) {
        if self.end == Some(CloseReason::Eof) {
            (self.ended, self.deaf) = (false, true);
        }
    }

    /// Writes once, within the bound of `turn`.
    pub(super) fn write(&mut self, turn: u64, bytes: &[u8]) -> Write {
        self.refresh(turn);
        if self.ended {
            return Write::Failed(self.why());
        }
        if bytes.is_empty() {
            return Write::Wrote(0);
        }
        let room = limits::WRITE_PER_TURN.saturating_sub(self.wrote).min(bytes.len());
        // What TLS holds back goes first, and while the kernel does not take it nothing is added to it.
        if let Err(why) = self.flush_tls() {
            return self.write_failed(why);
        }
        if self.connecting || self.is_shaking() || !self.is_flushed() || !self.writable || room == 0 {
            return Write::Blocked;
        }
        if let Some(tls) = &mut self.tls {
            let taken = tls.encrypt(&bytes[..room]);
            self.wrote += taken;
            if let Err(why) = self.flush_tls() {
                return self.write_failed(why);
            }
            return if taken > 0 { Write::Wrote(taken) } else { Write::Blocked };
        }
        match retried(|| self.socket.write(&bytes[..room])) {
            Ok(n) => {
                self.wrote += n;
                Write::Wrote(n)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.writable = false;
                Write::Blocked
            }
            Err(e) => self.write_failed(CloseReason::of(&e)),
        }
    }

    fn write_failed(&mut self, why: CloseReason) -> Write {
        self.fail(why);
        Write::Failed(self.why())
    }

    /// What the poll said.
    pub(super) fn note(&mut self, event: &mio::event::Event) {
        // Errors and hang-ups set both bits: the read or write that follows learns the particulars.
        self.hung_up |= event.is_read_closed() || event.is_error();
        self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.writable |= event.is_writable() || event.is_write_closed() || event.is_error();
    }

    /// Whether `readable` is due. A stream that ended has nothing more to say.
    pub(super) fn wants_read(&self) -> bool {
        let there = self.readable || self.tls.as_ref().is_some_and(|tls| tls.has_plain() || self.end.is_some());
        let can_read = !self.ended && !self.deaf && !self.connecting && !self.is_shaking();
        can_read && (self.woken || (self.reading && there))
    }

    /// Whether `writable` is due.
    pub(super) fn wants_write(&self) -> bool {
        !self.ended && !self.connecting && !self.is_shaking() && self.armed && self.writable && self.is_flushed()
    }

    /// Why it ended; to be asked of a stream that has.
    pub(super) fn why(&self) -> CloseReason {
        self.end.clone().unwrap_or(CloseReason::Eof)
    }

    /// Probes after `seconds` of silence, given up after three more at a third of that; zero turns it off.
    pub(super) fn set_keepalive(&self, seconds: u32) -> io::Result<()> {
        let Some(socket) = self.socket.tunable() else { return Ok(()) };
        if seconds == 0 {
            return socket.set_keepalive(false);
        }
        let idle = Duration::from_secs(u64::from(seconds));
        let interval = Duration::from_secs(u64::from(seconds / 3).max(1));
        socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(3))
    }

    /// It has ended, for this reason; `closed` is due.
    pub(super) fn fail(&mut self, why: CloseReason) {
        self.end = Some(why);
        self.ended = true;
    }

    fn refresh(&mut self, turn: u64) {
        if self.budget_turn != turn {
            self.budget_turn = turn;
            self.read = 0;
            self.fed = 0;
            self.wrote = 0;
        }
    }
}

/// A call that a signal interrupted is made again.
fn retried(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_to_ourselves_counts_as_refused() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let ourselves = socket.local_addr().unwrap();
        socket.connect(&ourselves).unwrap();
        let mut stream = Stream::new(Wire::Tcp(TcpStream::from_std(socket.into())), true);
        assert!(matches!(stream.check_connect(), Connect::Failed));
        assert_eq!(stream.why(), CloseReason::Refused);
    }

    #[test]
    fn keepalive_is_set_in_seconds_and_zero_turns_it_off() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let stream = Stream::new(Wire::Tcp(TcpStream::from_std(socket.into())), true);
        let socket = stream.socket.tunable().unwrap();
        stream.set_keepalive(60).unwrap();
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(60));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(20));
        // A third of a second would be no second at all, which the kernel does not take.
        stream.set_keepalive(1).unwrap();
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(1));
        stream.set_keepalive(0).unwrap();
        assert!(!socket.keepalive().unwrap());
    }

    #[test]
    fn errors_of_the_system_become_reasons() {
        let reason = |code| CloseReason::of(&io::Error::from_raw_os_error(code));
        assert_eq!(reason(libc::ECONNREFUSED), CloseReason::Refused);
        assert_eq!(reason(libc::ECONNRESET), CloseReason::Reset);
        assert_eq!(reason(libc::EPIPE), CloseReason::Reset);
        assert_eq!(reason(libc::ETIMEDOUT), CloseReason::Timeout);
        assert!(matches!(reason(libc::EHOSTUNREACH), CloseReason::Other(_)));
        assert_eq!(CloseReason::Refused.to_string(), "Connection refused");
    }
}
