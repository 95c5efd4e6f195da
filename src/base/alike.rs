//! Words in any letter case.

/// What has bytes. One copy of the comparison for all: std spreads its own over every place that asks, and folds the case of
/// letters that do not differ as well.
pub trait Alike: AsRef<[u8]> {
    /// Equal but for the case of ASCII letters.
    fn alike(&self, other: impl AsRef<[u8]>) -> bool {
        alike(self.as_ref(), other.as_ref())
    }

    /// The same, spread over the place that asks: for the one that every request passes.
    #[inline(always)]
    fn alike_at_once(&self, other: &[u8]) -> bool {
        compare(self.as_ref(), other)
    }
}

impl<T: AsRef<[u8]> + ?Sized> Alike for T {}

#[inline(never)]
fn alike(one: &[u8], other: &[u8]) -> bool {
    compare(one, other)
}

#[inline(always)]
fn compare(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    // Most words that are meant come as we spell them, and cost one `memcmp`.
    if one == other {
        return true;
    }
    for (at, &ours) in one.iter().enumerate() {
        // Capitals and small letters differ by one bit, as do other bytes, which are no letters.
        let differs = ours ^ other[at];
        if differs != 0 && !(differs == 32 && ours.is_ascii_alphabetic()) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_of_ascii_letters_is_all_that_may_differ() {
        assert!("Sentinel".alike(b"sENTINEL") && b"".alike("") && vec![b'x'].alike("X"));
        assert!(!"a".alike("ab") && !"a".alike("b") && !"ä".alike("Ä") && !"[".alike("{"));
    }

    #[test]
    fn it_finds_what_std_finds() {
        for (one, other) in (0..=u8::MAX).flat_map(|one| (0..=u8::MAX).map(move |other| (one, other))) {
            assert_eq!([one].alike([other]), one.eq_ignore_ascii_case(&other), "{one} {other}");
            let (one, other) = ([b'a', one, b'-'], [b'A', other, b'-']);
            assert_eq!(one.alike(other), one.eq_ignore_ascii_case(&other), "{one:?} {other:?}");
        }
    }
}
