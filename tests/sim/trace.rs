//! What happened: a hash of every line always, the lines themselves only when somebody will read them.
//!
//! ```text
//!       ms  who    what    details
//!     5210  s2     event   +sdown master mymaster 10.0.1.1 6379
//!     5213  s1     save    epoch 1
//!     5214  s1>s3  vote    1f.. epoch 1
//! ```
//!
//! Where there are several masters, the one that a line is about stands before who says it.

use std::fmt::{self, Write};
use watchfire::base::Millis;

/// How much a line interests a reader. Everything goes into the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Every packet and every ping.
    Noise,
    Story,
}

#[derive(Debug)]
pub struct Trace {
    hash: u64,
    lines: u64,
    /// Collect lines of the story.
    recording: bool,
    /// There is a column for the master that a line is about.
    pub several_masters: bool,
    /// Collect the noise as well.
    verbose: bool,
    story: String,
    /// The faults that took place, by their number.
    pub faults: Vec<u64>,
}

impl Trace {
    /// Hashes only: the fast way to run a seed.
    pub fn silent() -> Trace {
        Trace {
            hash: 0xcbf2_9ce4_8422_2325,
            lines: 0,
            recording: false,
            several_masters: false,
            verbose: false,
            story: String::new(),
            faults: Vec::new(),
        }
    }

    /// Keeps the story, and with `STORY=all` in the environment the packets as well.
    pub fn recording() -> Trace {
        let verbose = std::env::var("STORY").is_ok_and(|value| value == "all");
        Trace { recording: true, verbose, ..Trace::silent() }
    }

    /// `about`: the name of a master, or nothing.
    pub fn line(
        &mut self,
        now: Millis,
        weight: Weight,
        about: &str,
        who: impl fmt::Display,
        what: &str,
        details: fmt::Arguments,
    ) {
        self.lines += 1;
        let mut hasher = Hasher(self.hash);
        if self.several_masters {
            let _ = write!(hasher, "{about} ");
        }
        let _ = writeln!(hasher, "{} {who} {what} {details}", now.0);
        self.hash = hasher.0;
        if self.recording && (self.verbose || weight == Weight::Story) {
            // The column is padded by hand: a Display that writes in pieces ignores the width.
            let who = who.to_string();
            let _ = write!(self.story, "{:>9}  ", now.0);
            if self.several_masters {
                let _ = write!(self.story, "{about:<8} ");
            }
            let _ = writeln!(self.story, "{who:<6} {what:<8} {details}");
        }
    }

    /// The same seed gives the same hash: what the determinism test compares.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn lines(&self) -> u64 {
        self.lines
    }

    pub fn story(&self) -> &str {
        &self.story
    }
}

/// FNV-1a over what is written, without an allocation.
struct Hasher(u64);

impl Write for Hasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_are_several_masters_a_line_says_which() {
        for (several_masters, line) in [(false, "r1     back     up\n"), (true, "cache    r1     back     up\n")] {
            let mut trace = Trace { several_masters, ..Trace::recording() };
            trace.line(Millis(7), Weight::Story, "cache", "r1", "back", format_args!("up"));
            assert_eq!(trace.story(), format!("        7  {line}"));
        }
    }
}
