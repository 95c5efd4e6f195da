//! What stands in for TLS when the program is built without it: the same names, and nothing that could exist.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;

use crate::base::Millis;

/// There is none.
#[derive(Clone, Debug)]
pub struct Acceptor(Infallible);

/// There is none.
#[derive(Clone, Debug)]
pub struct Connector(Infallible);

/// There is none.
#[derive(Debug)]
pub(super) struct Session {
    never: Infallible,
    pub(super) deadline: Option<Millis>,
    pub(super) unreported: bool,
}

impl Session {
    pub(super) fn accept(acceptor: &Acceptor) -> Result<Session, String> {
        match acceptor.0 {}
    }

    pub(super) fn connect(connector: &Connector, _to: IpAddr) -> Result<Session, String> {
        match connector.0 {}
    }

    pub(super) fn is_shaking(&self) -> bool {
        match self.never {}
    }

    pub(super) fn came_through(&mut self) -> bool {
        match self.never {}
    }

    pub(super) fn take(&mut self, _encrypted: &[u8]) -> Result<(), String> {
        match self.never {}
    }

    pub(super) fn has_plain(&self) -> bool {
        match self.never {}
    }

    pub(super) fn is_finished(&self) -> bool {
        match self.never {}
    }

    pub(super) fn give(&mut self, _room: usize, _into: &mut Vec<u8>) -> usize {
        match self.never {}
    }

    pub(super) fn encrypt(&mut self, _bytes: &[u8]) -> usize {
        match self.never {}
    }

    pub(super) fn has_records(&self) -> bool {
        match self.never {}
    }

    pub(super) fn flush(&mut self, _socket: &mut impl io::Write) -> io::Result<()> {
        match self.never {}
    }

    pub(super) fn finish(&mut self) {
        match self.never {}
    }
}
