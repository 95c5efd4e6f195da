//! The TLS half of one stream: what came in encrypted goes out as plain text, and the other way round.
//!
//! rustls does no input or output of its own, so this is a pipe with four ends. The stream owns the socket, the readiness
//! and the bounds; here is nothing but the state of the protocol and two buffers: plain text that nobody has taken yet,
//! and (inside rustls) records that the kernel has not taken yet.

use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConnection, Connection, Error, ServerConnection};

use super::{Acceptor, Connector};
use crate::base::Millis;

/// One end of a TLS connection.
#[derive(Debug)]
pub(in crate::net) struct Session {
    conn: Connection,
    /// When the handshake has to be through, while it is not.
    pub(in crate::net) deadline: Option<Millis>,
    /// `connected` is still owed.
    pub(in crate::net) unreported: bool,
    /// The handshake is not through, as far as the stream was told.
    shaking: bool,
    /// Decrypted, up to `taken` handed on.
    plain: Vec<u8>,
    taken: usize,
    /// The peer has said that it sends no more.
    finished: bool,
}

impl Session {
    pub(in crate::net) fn accept(acceptor: &Acceptor) -> Result<Session, String> {
        let conn = ServerConnection::new(Arc::clone(&acceptor.0)).map_err(|error| error.to_string())?;
        Ok(Session::new(Connection::Server(conn), false))
    }

    pub(in crate::net) fn connect(connector: &Connector, to: IpAddr) -> Result<Session, String> {
        // The name goes nowhere: it is neither sent nor compared.
        let name = ServerName::IpAddress(to.into());
        let conn = ClientConnection::new(Arc::clone(&connector.0), name).map_err(|error| error.to_string())?;
        Ok(Session::new(Connection::Client(conn), true))
    }

    fn new(conn: Connection, unreported: bool) -> Session {
        Session { conn, deadline: None, unreported, shaking: true, plain: Vec::new(), taken: 0, finished: false }
    }

    pub(in crate::net) fn is_shaking(&self) -> bool {
        self.shaking
    }

    /// Looks whether the handshake has come through; true once.
    pub(in crate::net) fn came_through(&mut self) -> bool {
        let through = self.shaking && !self.conn.is_handshaking();
        self.shaking &= !through;
        through
    }

    /// Takes what came from the socket, all of it.
    ///
    /// # Errors
    ///
    /// It is no TLS, or not what we agree to, in words. An alert for the peer may be waiting then.
    pub(in crate::net) fn take(&mut self, mut encrypted: &[u8]) -> Result<(), String> {
        while !encrypted.is_empty() {
            match self.conn.read_tls(&mut encrypted) {
                // After the peer's farewell nothing counts.
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(format!("TLS: {error}")),
            }
            let state = self.conn.process_new_packets().map_err(|error| self.words(&error))?;
            let more = state.plaintext_bytes_to_read();
            if more > 0 {
                let at = self.plain.len();
                self.plain.resize(at + more, 0);
                self.conn.reader().read_exact(&mut self.plain[at..]).expect("as many bytes as rustls has announced");
            }
            self.finished |= state.peer_has_closed();
        }
        Ok(())
    }

    /// Whether plain text waits to be taken.
    pub(in crate::net) fn has_plain(&self) -> bool {
        self.taken < self.plain.len()
    }

    /// Whether the peer has sent its farewell and everything before it was given out.
    pub(in crate::net) fn is_finished(&self) -> bool {
        self.finished && !self.has_plain()
    }

    /// Moves at most `room` bytes of plain text.
    pub(in crate::net) fn give(&mut self, room: usize, into: &mut Vec<u8>) -> usize {
        let count = room.min(self.plain.len() - self.taken);
        into.extend_from_slice(&self.plain[self.taken..self.taken + count]);
        self.taken += count;
        if !self.has_plain() {
            // Most clients are idle most of the time: nothing is kept for them.
            self.plain = Vec::new();
            self.taken = 0;
        }
        count
    }

    /// Encrypts; the records wait for [`Session::flush`]. Returns how many bytes were taken, which rustls bounds.
    pub(in crate::net) fn encrypt(&mut self, bytes: &[u8]) -> usize {
        self.conn.writer().write(bytes).unwrap_or(0)
    }

    /// Whether records wait for the socket.
    pub(in crate::net) fn has_records(&self) -> bool {
        self.conn.wants_write()
    }

    /// Writes records until none is left.
    ///
    /// # Errors
    ///
    /// The socket's, `WouldBlock` among them; the rest is kept.
    pub(in crate::net) fn flush(&mut self, socket: &mut impl io::Write) -> io::Result<()> {
        while self.conn.wants_write() {
            match self.conn.write_tls(socket) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => outcome.map(drop)?,
            }
        }
        Ok(())
    }

    /// Puts our farewell behind what waits.
    pub(in crate::net) fn finish(&mut self) {
        self.conn.send_close_notify();
    }

    fn words(&self, error: &Error) -> String {
        let stage = if self.shaking { "TLS handshake failed" } else { "TLS" };
        let hint = match error {
            Error::InvalidMessage(_) if self.shaking => {
                " (perhaps the peer speaks no TLS, as a plain port or a plain client)"
            }
            Error::InvalidCertificate(CertificateError::Other(other)) if other.to_string().contains("CertVersion") => {
                " (a certificate of version 1 must be issued by an authority of the list itself)"
            }
            _ => "",
        };
        format!("{stage}: {error}{hint}")
    }
}
