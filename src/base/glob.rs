//! Glob patterns as Redis understands them: PSUBSCRIBE, CONFIG GET, SENTINEL RESET.
//!
//! | pattern    | matches                                                                             |
//! |------------|-------------------------------------------------------------------------------------|
//! | `*`        | any run of bytes, also none                                                         |
//! | `?`        | any one byte                                                                        |
//! | `[abc-f]`  | one byte of the set; ranges may be written backwards; `\` escapes; `[^…]` negates   |
//! | `\x`       | the byte `x` itself; a lone `\` at the very end is itself                           |
//! | other      | itself                                                                              |
//!
//! A set without its `]` reaches to the end of the pattern. A range takes whatever byte follows its `-`, even a `]` or a `\`.
//!
//! Every element except `*` takes exactly one byte. That is why only the *latest* star ever has to be tried again: whatever an
//! earlier star could give up, the latest one can take. So there is no recursion, and the work is at most pattern × text.

/// Whether the whole of `text` is matched by `pattern`; with `nocase`, ASCII letters match in either case.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to resume after a mismatch: the pattern behind the latest star, and the text from where it was last tried.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            while pattern.get(p) == Some(&b'*') {
                p += 1;
            }
            if p == pattern.len() {
                return true;
            }
            star = Some((p, t));
        }
        let Some(&byte) = text.get(t) else {
            // What is left of the pattern begins with no star and wants a byte. Letting the star take more cannot help.
            return p == pattern.len();
        };
        match element(&pattern[p..], byte, nocase) {
            Some(width) => {
                p += width;
                t += 1;
            }
            None => match star {
                Some((behind, tried)) => {
                    star = Some((behind, tried + 1));
                    p = behind;
                    t = tried + 1;
                }
                None => return false,
            },
        }
    }
}

/// The width of the element that `pattern` begins with, when it matches `byte`. No element matches an empty pattern.
fn element(pattern: &[u8], byte: u8, nocase: bool) -> Option<usize> {
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', ref set @ ..] => Some(1 + in_set(set, byte, nocase)?),
        [b'\\', escaped, ..] => same(escaped, byte, nocase).then_some(2),
        [plain, ..] => same(plain, byte, nocase).then_some(1),
    }
}

/// The width of a set behind its `[`, closing bracket included, when it holds `byte`.
fn in_set(set: &[u8], byte: u8, nocase: bool) -> Option<usize> {
    let negated = set.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut held = false;
    loop {
        at += match set[at..] {
            [] => break,
            [b'\\', escaped, ..] => {
                held |= same(escaped, byte, nocase);
                2
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [low, b'-', high, ..] => {
                held |= within(low, high, byte, nocase);
                3
            }
            [plain, ..] => {
                held |= same(plain, byte, nocase);
                1
            }
        };
    }
    (held != negated).then_some(at)
}

fn same(a: u8, b: u8, nocase: bool) -> bool {
    a == b || (nocase && a.eq_ignore_ascii_case(&b))
}

fn within(one: u8, other: u8, byte: u8, nocase: bool) -> bool {
    let (low, high) = if one <= other { (one, other) } else { (other, one) };
    if nocase {
        (low.to_ascii_lowercase()..=high.to_ascii_lowercase()).contains(&byte.to_ascii_lowercase())
    } else {
        (low..=high).contains(&byte)
    }
}
