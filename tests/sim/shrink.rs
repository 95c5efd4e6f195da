//! From a seed that fails to the fewest faults with which it still fails.
//!
//! Faults are numbered in the order in which the nemesis thinks of them, and each has a stream of chance of its own, so any of
//! them can be left out. Whole groups are tried first, then smaller ones, down to single faults. What remains needs every one
//! of its faults, though there may be other ways to fail.

use super::options::Options;
use super::run;
use super::trace::Trace;

/// So many runs are enough for anybody who waits.
const RUNS: usize = 300;

/// What is left of a failing run.
#[derive(Debug)]
pub struct Shrunk {
    /// The run with those faults only.
    pub options: Options,
    /// How many there were at first.
    pub before: usize,
    pub faults: Vec<u64>,
}

/// `None` when these options do not fail, or not by this checker.
pub fn shrink(options: &Options, checker: &str) -> Option<Shrunk> {
    let with = |only: Option<Vec<u64>>| Options { only, ..options.clone() };
    let mut faults = failing(options, checker)?;
    let before = faults.len();
    let mut runs = 0;
    let mut size = faults.len().div_ceil(2);
    while size > 0 && runs < RUNS {
        let mut at = 0;
        while at < faults.len() && runs < RUNS {
            let mut fewer = faults.clone();
            fewer.drain(at..(at + size).min(faults.len()));
            runs += 1;
            match failing(&with(Some(fewer)), checker) {
                // What it got to, which may be less than was allowed.
                Some(got_to) => faults = got_to,
                None => at += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    Some(Shrunk { options: with(Some(faults.clone())), before, faults })
}

/// The faults that took place until this checker had seen enough.
fn failing(options: &Options, checker: &str) -> Option<Vec<u64>> {
    let mut trace = Trace::silent();
    let (name, _) = run::failure(options, &mut trace)?;
    (name == checker).then_some(trace.faults)
}
