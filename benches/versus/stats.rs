//! Figures out of samples.

use std::time::Duration;

/// Samples of one kind, in one unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    sorted: Vec<f64>,
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Samples {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Samples { sorted }
    }
}

impl FromIterator<Duration> for Samples {
    /// In ms.
    fn from_iter<I: IntoIterator<Item = Duration>>(samples: I) -> Samples {
        samples.into_iter().map(ms).collect()
    }
}

impl Samples {
    #[must_use]
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The middle one; the mean of the two middle ones of an even number.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        let middle = self.count() / 2;
        let upper = *self.sorted.get(middle)?;
        Some(if self.count().is_multiple_of(2) { f64::midpoint(self.sorted[middle - 1], upper) } else { upper })
    }

    #[must_use]
    pub fn largest(&self) -> Option<f64> {
        self.sorted.last().copied()
    }

    /// The smallest sample that at least `percent` of all do not exceed (nearest rank: a sample, never a mean).
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let rank = (percent / 100.0 * self.count() as f64).ceil() as usize;
        self.sorted.get(rank.max(1) - 1).copied()
    }
}

#[must_use]
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
