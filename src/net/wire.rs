//! The socket under a stream: TCP, or a Unix socket, which has neither addresses nor anything to tune.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::SockRef;

#[derive(Debug)]
pub(super) enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Wire {
    /// What TCP knows to be tuned; `None` where there is nothing of that kind.
    pub(super) fn tunable(&self) -> Option<SockRef<'_>> {
        match self {
            Wire::Tcp(socket) => Some(SockRef::from(socket)),
            Wire::Unix(_) => None,
        }
    }

    /// The number by which the system knows it.
    pub(super) fn descriptor(&self) -> RawFd {
        match self {
            Wire::Tcp(socket) => socket.as_raw_fd(),
            Wire::Unix(socket) => socket.as_raw_fd(),
        }
    }

    pub(super) fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self {
            Wire::Tcp(socket) => socket.take_error(),
            Wire::Unix(socket) => socket.take_error(),
        }
    }

    /// # Errors
    ///
    /// The socket is not connected, or has no addresses.
    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Wire::Tcp(socket) => socket.peer_addr(),
            Wire::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// # Errors
    ///
    /// As for the other end.
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Wire::Tcp(socket) => socket.local_addr(),
            Wire::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Tcp(socket) => socket.read(into),
            Wire::Unix(socket) => socket.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Tcp(socket) => socket.write(bytes),
            Wire::Unix(socket) => socket.write(bytes),
        }
    }

    /// TLS hands over several records at once.
    fn write_vectored(&mut self, bytes: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Wire::Tcp(socket) => socket.write_vectored(bytes),
            Wire::Unix(socket) => socket.write_vectored(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Wire {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Wire::Tcp(socket) => socket.register(registry, token, interests),
            Wire::Unix(socket) => socket.register(registry, token, interests),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Wire::Tcp(socket) => socket.reregister(registry, token, interests),
            Wire::Unix(socket) => socket.reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Wire::Tcp(socket) => socket.deregister(registry),
            Wire::Unix(socket) => socket.deregister(registry),
        }
    }
}
