//! Words in any letter case.

/// What has bytes. One copy of the comparison for all: std spreads its own over every place that asks.
pub trait Alike: AsRef<[u8]> {
    /// Equal but for the case of ASCII letters.
    fn alike(&self, other: impl AsRef<[u8]>) -> bool {
        alike(self.as_ref(), other.as_ref())
    }
}

impl<T: AsRef<[u8]> + ?Sized> Alike for T {}

#[inline(never)]
fn alike(one: &[u8], other: &[u8]) -> bool {
    one.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_of_ascii_letters_is_all_that_may_differ() {
        assert!("Sentinel".alike(b"sENTINEL") && b"".alike("") && vec![b'x'].alike("X"));
        assert!(!"a".alike("ab") && !"a".alike("b") && !"ä".alike("Ä") && !"[".alike("{"));
    }
}
