//! watchfire: a Sentinel for Redis and Valkey.
//!
//! ```text
//! bytes ──► net ──► server ──► core ──► effects ──► server ──► net ──► bytes
//! ```
//!
//! * [`core`] is the Sentinel itself: a pure state machine without socket, file, clock or thread.
//! * [`server`] is the shell that owns everything and the only place where core and net meet.
//! * [`net`] is a small `ae`: file events on `mio`, time events, a before-sleep hook. It knows no Redis.
//! * [`command`] is what clients may ask; [`acl`] who may ask it; [`config`] the file; [`resp`] the protocol; [`base`] what
//!   all may use.
//!
//! Who may use whom (a test reads the sources and holds us to it):
//!
//! ```text
//! main    → server → { net, command, config, acl, core, resp, base }
//! command → { core, config, acl, resp, base }       core → base, plain data of resp
//! config  → { core's snapshot and options, base }   acl, resp, net → base
//! ```
//!
//! `mio` and `socket2` stay in net; files, processes, clocks and entropy in server and main.

pub mod acl;
pub mod base;
pub mod command;
pub mod config;
pub mod core;
pub mod net;
pub mod resp;
pub mod server;
