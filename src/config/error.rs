//! What is told to the operator whose file cannot be used: where, which line, why, and what would help.

use std::fmt;

/// The version of redis-sentinel that we are compatible with, wherever one is told: HELLO, INFO, the error block.
pub const AS_REDIS: &str = "7.4.0";

/// A line that cannot be used. [`Display`](fmt::Display) gives the block that belongs on stderr before exit 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file as named by the operator: the main file or an included one.
    pub file: String,
    /// True for a file reached through `include`; only then does the block name it.
    pub included: bool,
    /// From 1. Lines of the command line count on behind those of the main file.
    pub line: usize,
    /// The line without surrounding blanks, and without passwords.
    pub text: String,
    /// In the words that redis-sentinel uses.
    pub message: String,
    /// What would help, in ours. Empty when the message says it all.
    pub hint: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n*** FATAL CONFIG FILE ERROR (Redis {AS_REDIS}) ***")?;
        write!(f, "Reading the configuration file, at line {}", self.line)?;
        if self.included {
            write!(f, " of {}", self.file)?;
        }
        writeln!(f, "\n>>> '{}'", self.text)?;
        f.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(f, "\n({})", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Why one line is wrong, before it is known where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub message: String,
    pub hint: String,
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), hint: String::new() }
    }

    pub fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault { message: message.into(), hint: hint.into() }
    }
}
