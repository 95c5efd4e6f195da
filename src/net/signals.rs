//! What comes from outside the sockets: signals, and other threads that want the loop's attention.

use std::io;
use std::sync::Arc;

use mio::{Interest, Registry};
use signal_hook_mio::v1_0;

/// The source of signals. No slot of the slab can have this number.
pub(super) const SIGNALS: mio::Token = mio::Token(usize::MAX);
/// The source of wake-ups.
pub(super) const WAKER: mio::Token = mio::Token(usize::MAX - 1);

/// The signals that were asked for; nothing is installed before the first one is.
#[derive(Default)]
pub(super) struct Signals {
    source: Option<v1_0::Signals>,
}

impl Signals {
    pub(super) fn add(&mut self, registry: &Registry, signals: &[i32]) -> io::Result<()> {
        if let Some(forbidden) = signals.iter().find(|signal| signal_hook::consts::FORBIDDEN.contains(signal)) {
            let text = format!("signal {forbidden} cannot be handled");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        match &self.source {
            Some(source) => signals.iter().try_for_each(|signal| source.add_signal(*signal)),
            None => {
                let mut source = v1_0::Signals::new(signals)?;
                registry.register(&mut source, SIGNALS, Interest::READABLE)?;
                self.source = Some(source);
                Ok(())
            }
        }
    }

    /// Those that arrived since the last call.
    pub(super) fn take(&mut self, arrived: &mut Vec<i32>) {
        if let Some(source) = &mut self.source {
            arrived.extend(source.pending());
        }
    }
}

/// Lets another thread end the poll, so that the next `before_sleep` finds what the thread has left. Wake-ups melt
/// together: several before one poll are one.
#[derive(Clone, Debug)]
pub struct Waker(pub(super) Arc<mio::Waker>);

impl Waker {
    /// Ends the current poll, or the next one.
    pub fn wake(&self) -> io::Result<()> {
        self.0.wake()
    }
}
