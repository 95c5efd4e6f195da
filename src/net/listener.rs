//! Sockets that take connections.

use std::io;
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use socket2::{Domain, Protocol, Socket, Type};

/// One listening socket.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    /// On the ready list already.
    pub(super) queued: bool,
    /// Left alone until its pause is over.
    pub(super) paused: bool,
    /// The trouble of this spell was reported.
    pub(super) troubled: bool,
}

/// What one attempt to accept came to.
pub(super) enum Accept {
    Taken(TcpStream, SocketAddr),
    /// Nobody waits.
    Drained,
    /// Whoever waited has left, or the call was interrupted: try the next.
    Gone,
    /// Out of descriptors or memory, or worse.
    Trouble(io::Error),
}

impl Listener {
    pub(super) fn bind(addr: SocketAddr, backlog: u32) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for the connections of the process before.
        socket.set_reuse_address(true)?;
        if addr.is_ipv6() {
            // So that `0.0.0.0` and `::` may be bound side by side.
            socket.set_only_v6(true)?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&addr.into())?;
        socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        let socket = TcpListener::from_std(socket.into());
        Ok(Listener { socket, queued: false, paused: false, troubled: false })
    }

    pub(super) fn accept(&mut self) -> Accept {
        match self.socket.accept() {
            Ok((stream, peer)) => Accept::Taken(stream, peer),
            Err(e) => match e.kind() {
                io::ErrorKind::WouldBlock => Accept::Drained,
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => Accept::Gone,
                _ => Accept::Trouble(e),
            },
        }
    }
}
