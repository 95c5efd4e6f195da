//! A whole group in one thread: Sentinels (the core only), servers, network, disks and one clock, all drawn
//! from a seed and replayable from it.
//!
//! ```text
//!            seed ──► options ──► World ──► trace (hash, story)
//!                                  │ facts
//!   nemesis ──► faults ──►  net ◄──┼──► process (shell around core::Sentinel) ──► disk
//!                            ▲     │
//!                            └──► server           checkers ──► Violation
//! ```
//!
//! * `world` owns everything and runs the one queue of events, ordered by (time, sequence).
//! * `process` does what the real shell does around the core: it executes effects in order.
//! * `server` is a Redis as far as a Sentinel can see one; `net` is TCP with cuts; `disk` keeps what was synced.
//! * `nemesis` breaks and heals; what it may do, how often and how badly is drawn in `options`. People are in `meddling`:
//!   operators at the wrong moment, and whoever forges hellos; `forgotten` remembers what they made Sentinels forget.
//! * `groups` are the masters, each with its servers and with the Sentinels that monitor it: one, or in some runs several.
//! * `facts` is what checkers see, `check_*` are the properties, one file each; `witness` remembers who was well.
//!
//! `shrink` takes a seed that fails to the fewest faults with which it still does.
//!
//! `stopwatch`, `retry` and `rush` measure what a death costs: of a master, of a leader, of several masters at once.
//!
//! One run: warm-up (everybody finds everybody), safety phase (faults), healing, convergence within
//! [`options::Options::convergence_ms`].

pub mod check_address;
pub mod check_cause;
pub mod check_convergence;
pub mod check_durable;
pub mod check_epochs;
pub mod check_leader;
pub mod check_link;
pub mod check_loads;
pub mod check_majority;
pub mod check_messages;
pub mod check_orders;
pub mod check_others;
pub mod check_quorum;
pub mod check_tilt;
pub mod check_votes;
pub mod disk;
pub mod facts;
pub mod forgotten;
pub mod groups;
pub mod meddling;
pub mod nemesis;
pub mod net;
pub mod node;
pub mod options;
pub mod process;
pub mod queue;
pub mod replication;
pub mod retry;
pub mod run;
pub mod rush;
pub mod server;
pub mod shrink;
pub mod stopwatch;
pub mod trace;
pub mod witness;
pub mod world;
