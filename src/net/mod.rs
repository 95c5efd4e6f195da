//! A small `ae`: file events on `mio`, time events, a before-sleep hook. It moves bytes and knows no Redis.
//!
//! One [`Reactor`] owns the poll, the listeners, the streams and the timers; whoever implements [`Handler`] is
//! called back, and only from [`Reactor::turn`]. No verb of the reactor (`connect`, `write`, `close` …) ever calls
//! back itself, so a handler may use all of them anywhere. One turn of the loop is:
//!
//! ```text
//! before_sleep ─► free closed slots ─► poll ─► signals ─► file events ─► ended streams ─► time events
//! ```
//!
//! * `poll` waits until the nearest timer, or not at all while the ready list holds something.
//! * `mio` is edge-triggered and `ae` is level-triggered. The difference is closed here: what a socket was said to be
//!   ready for stays in sticky bits until the kernel answers `WouldBlock`, and a stream whose bits answer its
//!   interest is on the ready list. A handler that takes only part of the bytes is simply called again.
//! * Each stream reads and writes a bounded number of bytes from one poll to the next, so that a flood on one
//!   connection cannot starve the others.
//! * A stream may speak TLS ([`Reactor::accept_tls`], [`Reactor::connect_tls`]): the same verbs then move plain text, and
//!   the handshake, which has its time and its share of a turn, is nobody's business but the reactor's.
//! * A [`Token`] carries a generation. A stale one finds nothing, and its slot is not given away within a batch.

mod handler;
mod listener;
mod reactor;
mod signals;
mod stream;
mod timers;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
pub mod tls;
mod token;
mod turn;
mod wire;

pub use handler::{Handler, Next};
pub use listener::is_abandoned;
pub use reactor::Reactor;
pub use signals::Waker;
pub use stream::{CloseReason, Read, Write};
pub use timers::TimerId;
pub use token::Token;
