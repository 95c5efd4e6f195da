//! From good inputs to bad ones.

use watchfire::base::random::Random;

/// Longest input, in bytes.
const INPUT_MAX: usize = 64 * 1024;
/// Bytes that mean something somewhere.
const BYTES: &[u8] = b"\0\x01\x07\x1b\x7f\x80\xff\r\n\t \"'\\#$*:+-,;%&@()[]{}|/?^~=<>!0129aAzZ";
/// Numbers at the limits of what holds them.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "-0",
    "00",
    "01",
    "+1",
    "9",
    "10",
    "16",
    "64",
    "100",
    "127",
    "128",
    "255",
    "256",
    "1023",
    "1024",
    "1025",
    "16384",
    "16385",
    "32767",
    "32768",
    "65535",
    "65536",
    "65537",
    "99999",
    "131072",
    "1048576",
    "1048577",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "536870912",
    "536870913",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "1e9",
    "0x10",
    "1.5",
    "inf",
    "nan",
    "",
];

pub struct Mutator<'a> {
    chance: Random,
    words: &'a [&'a [u8]],
}

impl<'a> Mutator<'a> {
    pub fn new(seed: u64, words: &'a [&'a [u8]]) -> Mutator<'a> {
        Mutator { chance: Random::seeded(seed), words }
    }

    fn below(&mut self, bound: usize) -> usize {
        super::drive::below(&mut self.chance, bound)
    }

    /// A place in `from..to`.
    pub fn place(&mut self, from: usize, to: usize) -> usize {
        from + self.below(to - from)
    }

    /// A new input out of one of the corpus.
    pub fn input(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(6) {
            self.change(&mut input, corpus);
        }
        input.truncate(INPUT_MAX);
        input
    }

    fn range(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(input.len() + 1);
        // Mostly short, sometimes as long as it goes.
        let most = if self.below(4) == 0 { input.len() - start } else { (input.len() - start).min(24) };
        start..start + self.below(most + 1)
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        match self.below(14) {
            0 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] ^= 1 << self.below(8);
            }
            1 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] = BYTES[self.below(BYTES.len())];
            }
            2 => {
                let at = self.below(input.len() + 1);
                input.insert(at, BYTES[self.below(BYTES.len())]);
            }
            3 => drop(input.drain(self.range(input))),
            4 => {
                // A piece once more, somewhere.
                let piece = input[self.range(input)].to_vec();
                self.insert(input, &piece);
            }
            5 => {
                // A piece again and again.
                let range = self.range(input);
                let times = [2, 3, 16, 100, 1000][self.below(5)];
                let piece = input[range.clone()].repeat(times.min(INPUT_MAX / range.len().max(1)));
                input.splice(range, piece);
            }
            6 | 7 if !self.words.is_empty() => {
                let word = self.words[self.below(self.words.len())];
                self.insert(input, word);
            }
            8 if !self.words.is_empty() => {
                let range = self.range(input);
                let word = self.words[self.below(self.words.len())];
                input.splice(range, word.iter().copied());
            }
            9 | 10 => self.number(input),
            11 => {
                // The rest of another.
                let other = &corpus[self.below(corpus.len())];
                let (cut, from) = (self.below(input.len() + 1), self.below(other.len() + 1));
                input.truncate(cut);
                input.extend_from_slice(&other[from..]);
            }
            12 => {
                // A piece of another in the middle.
                let other = &corpus[self.below(corpus.len())];
                let piece = other[self.range(other)].to_vec();
                self.insert(input, &piece);
            }
            _ => {
                let at = self.below(input.len() + 1);
                input.truncate(at);
            }
        }
    }

    fn insert(&mut self, input: &mut Vec<u8>, piece: &[u8]) {
        let at = self.below(input.len() + 1);
        input.splice(at..at, piece.iter().copied());
    }

    /// Replaces a number of the input, or puts one in.
    fn number(&mut self, input: &mut Vec<u8>) {
        let number = NUMBERS[self.below(NUMBERS.len())];
        let from = self.below(input.len() + 1);
        let Some(start) = input[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else {
            return self.insert(input, number.as_bytes());
        };
        let digits = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        input.splice(start..start + digits, number.bytes());
    }
}
