//! Seeded chance: the same seed gives the same stream, so that every run can be replayed.

/// A splitmix64 generator. Good enough to spread timers; never used where an adversary must not guess.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    #[must_use]
    pub fn seeded(seed: u64) -> Random {
        Random { state: seed }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Uniform in `0..bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The multiply-shift method: its bias is below bound / 2^64, far under anything a timer can show.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// The finaliser of splitmix64: spreads every input bit over the whole word.
#[must_use]
pub fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream_and_stays_below_the_bound() {
        let (mut one, mut two) = (Random::seeded(7), Random::seeded(7));
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            let draw = one.below(10);
            assert_eq!(draw, two.below(10));
            seen[usize::try_from(draw).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(one.below(0), 0);
    }
}
