//! Names of listeners and streams.

use std::fmt;

/// Names one listener or one stream for as long as it exists; afterwards it finds nothing.
///
/// The slot is the place in the reactor's slab and comes back after a close; the generation is counted up with every
/// listener and stream, so that two that share a slot differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    slot: u32,
    generation: u32,
}

impl Token {
    pub(super) fn new(slot: usize, generation: u32) -> Token {
        // Each slot is an open socket; the kernel's limits end long before u32 does.
        let slot = u32::try_from(slot).expect("fewer than 2^32 sockets");
        Token { slot, generation }
    }

    /// The name of no socket, for tests of what is kept by names.
    #[cfg(test)]
    pub(crate) fn made_up(slot: usize, generation: u32) -> Token {
        Token::new(slot, generation)
    }

    /// Where it lives; small and dense, like a file descriptor.
    #[must_use]
    pub fn slot(self) -> usize {
        self.slot as usize
    }

    /// Which owner of the slot is meant.
    #[must_use]
    pub fn generation(self) -> u32 {
        self.generation
    }

    /// What `mio` is told: the slot alone. A socket is deregistered when it is closed and its slot stays taken until the
    /// batch is over, so an event can never meet the next owner of its slot.
    pub(super) fn to_mio(self) -> mio::Token {
        mio::Token(self.slot())
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}
