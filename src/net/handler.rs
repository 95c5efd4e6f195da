//! The callbacks of the loop.

use std::net::SocketAddr;

use super::{CloseReason, Reactor, TimerId, Token};

/// What a timer does after it fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is gone.
    Done,
    /// It fires again this many ms after the time of this turn ([`Reactor::now`]), under the same id.
    After(u64),
}

/// What the loop reports, and only from within [`Reactor::turn`].
///
/// Every verb of the reactor may be used in every callback, `close` on any token included: what no longer exists when
/// its turn in the batch comes is passed over.
pub trait Handler {
    /// Before every poll: the one place to drain queues, flush replies and close what is done.
    fn before_sleep(&mut self, reactor: &mut Reactor);

    /// `listener` took a connection; `stream` is registered and may be written at once. Whoever comes through a Unix socket
    /// has no address.
    fn accepted(&mut self, reactor: &mut Reactor, listener: Token, stream: Token, peer: Option<SocketAddr>);

    /// An outgoing connection stands; `local` is our end of it.
    fn connected(&mut self, reactor: &mut Reactor, stream: Token, local: SocketAddr);

    /// Bytes (or the end) may be there: call [`Reactor::read`] until it returns something else than data. Called again in
    /// the next turn for what was left; who wants to leave it there pauses the stream with [`Reactor::set_reading`].
    fn readable(&mut self, reactor: &mut Reactor, stream: Token);

    /// A write asked for with [`Reactor::arm_write`] can go on. One report per `arm_write`.
    fn writable(&mut self, reactor: &mut Reactor, stream: Token);

    /// The stream ended, and not by [`Reactor::close`]: the connect failed, or a read or write returned `Eof` or `Failed`
    /// and the handler left it open. It no longer exists, the token is for bookkeeping only.
    fn closed(&mut self, reactor: &mut Reactor, stream: Token, why: CloseReason);

    /// The deadline of `timer` has passed; never called early.
    fn timer(&mut self, reactor: &mut Reactor, timer: TimerId) -> Next;

    /// One of the signals of [`Reactor::signals`] arrived, once or several times since the last turn.
    fn signal(&mut self, reactor: &mut Reactor, signal: i32);

    /// Something that a person should know, in a sentence: accepting fails and is paused. Reported once until it goes well
    /// again.
    fn trouble(&mut self, reactor: &mut Reactor, text: &str) {
        let _ = (reactor, text);
    }
}
