//! The configuration file: text in, plain data out, and back. No file is opened here; the shell hands in the bytes and
//! stores the result.
//!
//! * [`read`] takes the main file, follows `include` through a function, appends the command line ([`from_args`]) and gives
//!   the process's [`ServerOptions`] and the Sentinel's [`Snapshot`](crate::core::Snapshot).
//! * [`rewrite`] takes the file's present text and the state and gives the new text: the operator's lines, comments and order
//!   stay; state lines are brought up to date in place; what is new goes to the end.
//! * [`DIRECTIVES`] is the table that both work from.

mod args;
mod directives;
mod error;
mod masters;
mod options;
mod read;
mod rewrite;
mod statement;
mod tls;

pub use args::from_args;
pub use directives::{DIRECTIVES, Directive, Kind, Meaning, Scope, find};
pub use error::{AS_REDIS, ConfigError};
pub use options::{LogLevel, LogStyle, OomScoreAdj, OutputLimit, ServerOptions, Supervised, TimeStyle};
pub use read::{Check, Declared, Loaded, Must, Opened, Renamed, Source, read};
pub use rewrite::{MARKER, rewrite};
pub use tls::{AuthClients, TlsOptions};
