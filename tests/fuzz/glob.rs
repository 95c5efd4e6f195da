//! Globs: against their definition, and how long they take.

use super::drive::{behaviour, run, size};
use super::memory;
use watchfire::base::{glob, limits};

/// The definition by a table: which beginnings of the pattern match which beginnings of the text.
fn oracle(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    let fold = |byte: u8| if nocase { byte.to_ascii_lowercase() } else { byte };
    // The elements of the pattern: `None` is a star, `Some` holds the bytes that may stand there.
    let mut elements: Vec<Option<[bool; 256]>> = Vec::new();
    let mut rest = pattern;
    while let [first, behind @ ..] = rest {
        rest = behind;
        let mut holds = [false; 256];
        let mut add = |from: u8, to: u8| {
            let (low, high) = (fold(from).min(fold(to)), fold(from).max(fold(to)));
            (0..=255)
                .filter(|&byte| (low..=high).contains(&fold(byte)))
                .for_each(|byte| holds[usize::from(byte)] = true);
        };
        match *first {
            b'*' => {
                elements.push(None);
                continue;
            }
            b'?' => add(0, 255),
            b'\\' if !rest.is_empty() => {
                add(rest[0], rest[0]);
                rest = &rest[1..];
            }
            b'[' => {
                let negated = rest.first() == Some(&b'^');
                rest = &rest[usize::from(negated)..];
                loop {
                    rest = match *rest {
                        [] => break,
                        [b'\\', escaped, ref behind @ ..] => {
                            add(escaped, escaped);
                            behind
                        }
                        [b']', ref behind @ ..] => {
                            rest = behind;
                            break;
                        }
                        [low, b'-', high, ref behind @ ..] => {
                            add(low, high);
                            behind
                        }
                        [plain, ref behind @ ..] => {
                            add(plain, plain);
                            behind
                        }
                    };
                }
                if negated {
                    holds.iter_mut().for_each(|held| *held = !*held);
                }
            }
            plain => add(plain, plain),
        }
        elements.push(Some(holds));
    }
    let mut matched = vec![false; text.len() + 1];
    matched[0] = true;
    for element in elements {
        match element {
            None => {
                for at in 0..text.len() {
                    matched[at + 1] |= matched[at];
                }
            }
            Some(holds) => {
                for at in (0..text.len()).rev() {
                    matched[at + 1] = matched[at] && holds[usize::from(text[at])];
                }
                matched[0] = false;
            }
        }
    }
    matched[text.len()]
}

const SEEDS: &[&[u8]] = &[
    b"*\n+switch-master",
    b"[-+]sdown\n+sdown",
    b"h[^a-c]llo*?\\*\nhello world*",
    b"a*b*c*[x-z]\nabababababcxyz",
    b"*a*a*a*a*a*b\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    b"[z-a\\]]?[\n]]]",
];
const WORDS: &[&[u8]] =
    &[b"*", b"?", b"[", b"]", b"[^", b"-", b"\\", b"a", b"*a", b"a*", b"[a-z]", b"[^a]", b"***", b"\n", b"\xff"];

#[test]
fn globs() {
    run("glob", SEEDS, WORDS, 1_000, |_, input| {
        let at = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len() / 2);
        let (pattern, text) = (&input[..at], &input[at..]);
        let text = &text[text.len().min(1)..];
        let mut said = 0;
        for nocase in [false, true] {
            let matches = memory::within(0, || glob::matches(pattern, text, nocase));
            said = 2 * said + u64::from(matches);
            if pattern.len() * text.len() < 20_000 && pattern.len() <= limits::PATTERN {
                assert_eq!(matches, oracle(pattern, text, nocase), "{nocase}");
            }
        }
        let stars = pattern.iter().filter(|&&byte| byte == b'*').count();
        let sets = pattern.iter().filter(|&&byte| byte == b'[').count();
        behaviour([said, size(pattern.len()), size(text.len()), size(stars), size(sets)])
    });
}
