//! Passwords as we keep them: only the SHA-256 of each, as the reference does in its files. The comparison takes the
//! same time wherever two hashes differ.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// The SHA-256 of a password.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Of a password in clear.
    #[must_use]
    pub fn of(password: &[u8]) -> Hash {
        Hash(Sha256::digest(password).into())
    }

    /// From 64 hexadecimal digits, letters in lower case only.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Hash> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        if text.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Hash(bytes))
    }

    /// Whether both are the same, without telling by the time it takes how much of them is.
    #[must_use]
    pub fn matches(&self, other: &Hash) -> bool {
        let differing = self.0.iter().zip(&other.0).fold(0, |differing, (one, two)| differing | (one ^ two));
        // Without this the compiler may see that the loop can end early.
        std::hint::black_box(differing) == 0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes are no secrets that open anything, but a log is no place for them either.
impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_standard() {
        for (text, hash) in [
            (&b""[..], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
            (&[b'a'; 1_000_000], "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
        ] {
            assert_eq!(Hash::of(text).to_string(), hash);
            assert!(Hash::parse(hash.as_bytes()).unwrap().matches(&Hash::of(text)));
        }
    }

    #[test]
    fn only_64_small_hexadecimal_digits_are_a_hash() {
        let good = Hash::of(b"x").to_string();
        assert!(Hash::parse(good.as_bytes()).is_some());
        for bad in [&good[1..], &format!("{good}0"), &good.to_uppercase(), &good.replace('2', "g"), ""] {
            assert!(Hash::parse(bad.as_bytes()).is_none(), "{bad}");
        }
        assert!(!Hash::of(b"x").matches(&Hash::of(b"y")));
    }
}
