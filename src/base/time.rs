//! Time is an argument here, never a call: whoever owns a clock hands the moment in.

use std::ops::Add;

/// A moment on a monotonic clock, in milliseconds since some start that never changes within one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// The span since `earlier` in ms; zero when `earlier` lies ahead.
    #[must_use]
    pub fn since(self, earlier: Millis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Moment plus a span in ms; saturates, so that "never" may be written as a huge span.
impl Add<u64> for Millis {
    type Output = Millis;

    fn add(self, span: u64) -> Millis {
        Millis(self.0.saturating_add(span))
    }
}
