//! Sockets that take connections.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::Path;

use mio::event::Source;
use mio::net::TcpListener;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::wire::Wire;

/// Whether a Unix socket was left behind by somebody who listens no more. One that is too busy to take us is not; it is not
/// waited for either.
#[must_use]
pub fn is_abandoned(path: &Path) -> bool {
    mio::net::UnixStream::connect(path).is_err_and(|why| why.kind() == io::ErrorKind::ConnectionRefused)
}

/// One listening socket.
#[derive(Debug)]
pub(super) struct Listener {
    door: Door,
    /// On the ready list already.
    pub(super) queued: bool,
    /// Left alone until its pause is over.
    pub(super) paused: bool,
    /// The trouble of this spell was reported.
    pub(super) troubled: bool,
}

#[derive(Debug)]
enum Door {
    Tcp(TcpListener),
    Unix(mio::net::UnixListener),
}

/// What one attempt to accept came to.
pub(super) enum Accept {
    /// Whoever comes through a Unix socket has no address.
    Taken(Wire, Option<SocketAddr>),
    /// Nobody waits.
    Drained,
    /// Whoever waited has left, or the call was interrupted: try the next.
    Gone,
    /// Out of descriptors or memory, or worse.
    Trouble(io::Error),
}

impl Listener {
    pub(super) fn bind(addr: SocketAddr, backlog: u32, mark: Option<u32>) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for the connections of the process before.
        socket.set_reuse_address(true)?;
        if addr.is_ipv6() {
            // So that `0.0.0.0` and `::` may be bound side by side.
            socket.set_only_v6(true)?;
        }
        socket.set_nonblocking(true)?;
        if let Some(mark) = mark {
            // What it accepts inherits the mark.
            socket.set_mark(mark)?;
        }
        socket.bind(&addr.into())?;
        socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        Ok(Listener::new(Door::Tcp(TcpListener::from_std(socket.into()))))
    }

    /// Takes over a Unix socket that listens already.
    pub(super) fn unix(socket: UnixListener, backlog: u32) -> io::Result<Listener> {
        socket.set_nonblocking(true)?;
        // Said again, it counts instead of the number that std has chosen.
        SockRef::from(&socket).listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        Ok(Listener::new(Door::Unix(mio::net::UnixListener::from_std(socket))))
    }

    fn new(door: Door) -> Listener {
        Listener { door, queued: false, paused: false, troubled: false }
    }

    /// What the poll watches.
    pub(super) fn source(&mut self) -> &mut dyn Source {
        match &mut self.door {
            Door::Tcp(socket) => socket,
            Door::Unix(socket) => socket,
        }
    }

    /// Where it listens; a Unix socket has no such address.
    pub(super) fn local_addr(&self) -> Option<SocketAddr> {
        match &self.door {
            Door::Tcp(socket) => socket.local_addr().ok(),
            Door::Unix(_) => None,
        }
    }

    pub(super) fn accept(&mut self) -> Accept {
        let taken = match &self.door {
            Door::Tcp(socket) => socket.accept().map(|(stream, peer)| (Wire::Tcp(stream), Some(peer))),
            Door::Unix(socket) => socket.accept().map(|(stream, _)| (Wire::Unix(stream), None)),
        };
        match taken {
            Ok((stream, peer)) => Accept::Taken(stream, peer),
            Err(e) => match e.kind() {
                io::ErrorKind::WouldBlock => Accept::Drained,
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => Accept::Gone,
                _ => Accept::Trouble(e),
            },
        }
    }
}
