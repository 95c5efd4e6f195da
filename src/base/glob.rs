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
//! earlier star could give up, the latest one can take. So there is no recursion, and the work is at most pattern × text,
//! where a pattern longer than [`limits::PATTERN`] matches nothing: it may come from anybody.

use super::limits;

/// Whether the whole of `text` is matched by `pattern`; with `nocase`, ASCII letters match in either case.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    if pattern.len() > limits::PATTERN {
        return false;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_as_redis_has_them() {
        // Pattern, texts that match, texts that do not. Checked against redis-server with KEYS and COMMAND LIST; it differs
        // in one point that no name can reach: there, stars alone do not match an empty text.
        let table: &[(&str, &[&str], &[&str])] = &[
            ("", &[""], &["a"]),
            ("*", &["", "a", "+sdown"], &[]),
            ("**", &["", "a"], &[]),
            ("?", &["a", "*"], &["", "ab"]),
            ("*?", &["a", "ab"], &[""]),
            ("a*", &["a", "ab", "abc"], &["", "ba"]),
            ("*a", &["a", "ba", "aba"], &["", "ab"]),
            ("a*b*c", &["abc", "aXbXc", "abcbc"], &["ab", "abcb", "acb"]),
            ("*ab*ab", &["abab", "xababab"], &["ab", "aba"]),
            ("h[ae]llo", &["hello", "hallo"], &["hillo", "hllo"]),
            ("h[^e]llo", &["hallo", "h^llo"], &["hello", "hllo"]),
            ("h[a-c]llo", &["hallo", "hbllo", "hcllo"], &["hdllo", "h-llo"]),
            ("h[c-a]llo", &["hallo", "hbllo", "hcllo"], &["hdllo"]),
            ("[-+]sdown", &["-sdown", "+sdown"], &["sdown", "xsdown"]),
            ("[+-]sdown", &["-", "+", "]", "s"], &["+sdown", "-sdown", "sdown"]),
            ("[\\]]", &["]"], &["\\", "\\]"]),
            ("[a\\-c]", &["a", "-", "c"], &["b", "\\"]),
            ("[]a]", &[], &["]", "a", "]a]", "a]"]),
            ("[]", &[], &["", "[]", "]"]),
            ("[^]", &["a", "]"], &["", "ab"]),
            ("[^]a]", &["xa]"], &["x", "a"]),
            ("[abc", &["a", "b", "c"], &["[", "[abc", ""]),
            ("[", &[], &["[", ""]),
            ("[^", &["[", "^", "x"], &["", "xy"]),
            ("[a-", &["a", "-"], &["b", ""]),
            ("x[a-]", &["xa", "x]", "x^"], &["x-", "xb", "x"]),
            ("[\\", &["\\"], &["", "["]),
            ("\\*", &["*"], &["a", "\\*", ""]),
            ("\\?\\[", &["?["], &["a["]),
            ("\\a", &["a"], &["\\a"]),
            ("a\\", &["a\\"], &["a", "a\\\\"]),
            ("*\\", &["\\", "a\\"], &["a"]),
            ("*[", &[], &["", "a", "["]),
        ];
        for (pattern, yes, no) in table {
            for text in *yes {
                assert!(matches(pattern.as_bytes(), text.as_bytes(), false), "{pattern:?} should match {text:?}");
            }
            for text in *no {
                assert!(!matches(pattern.as_bytes(), text.as_bytes(), false), "{pattern:?} should not match {text:?}");
            }
        }
    }

    #[test]
    fn letters_match_in_either_case_only_when_asked_to() {
        for pattern in ["MaxClients", "max*", "m[A]x*", "M[^b]X*", "[L-N]ax*", "\\Max*", "*CLIENTS"] {
            assert!(matches(pattern.as_bytes(), b"maxclients", true), "{pattern}");
        }
        assert!(!matches(b"MaxClients", b"maxclients", false));
        assert!(!matches(b"m[^A]x*", b"maxclients", true));
        assert!(!matches("É".as_bytes(), "é".as_bytes(), true), "only ASCII letters have a case");
    }

    #[test]
    fn bytes_need_not_be_text() {
        assert!(matches(b"\xff?[\xf0-\xfe]\0", b"\xff\0\xf8\0", false));
        assert!(!matches(b"[\x80-\xff]", b"a", false));
    }

    #[test]
    fn many_stars_cost_no_more_than_pattern_times_text() {
        // Exponential in a matcher that tries every star again: this would not end in our lifetime.
        let pattern = b"a*".repeat(2000).into_iter().chain(*b"b").collect::<Vec<u8>>();
        let text = b"a".repeat(20_000);
        assert!(!matches(&pattern, &text, false));
        let pattern = [b"*".repeat(4_000), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &text, true));
    }

    #[test]
    fn a_pattern_that_is_too_long_matches_nothing() {
        let longest = b"*".repeat(limits::PATTERN);
        assert!(matches(&longest, b"a", false));
        assert!(!matches(&[longest, b"*".to_vec()].concat(), b"a", false));
    }

    /// The definition, word for word: slow, and independent of the matcher above.
    fn oracle(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
        let fold = |b: u8| if nocase { b.to_ascii_lowercase() } else { b };
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|taken| oracle(rest, &text[taken..], nocase)),
            (_, []) => false,
            ([b'?', rest @ ..], [_, more @ ..]) => oracle(rest, more, nocase),
            ([b'[', set @ ..], [byte, more @ ..]) => {
                let (negated, mut set) = match set {
                    [b'^', set @ ..] => (true, set),
                    set => (false, set),
                };
                // Spell the set out as all bytes it holds.
                let mut holds = Vec::new();
                let rest = loop {
                    match set {
                        [] => break set,
                        [b']', rest @ ..] => break rest,
                        [b'\\', escaped, rest @ ..] => {
                            holds.push(fold(*escaped));
                            set = rest;
                        }
                        [a, b'-', z, rest @ ..] => {
                            holds.extend(fold(*a.min(z))..=fold(*a.max(z)));
                            set = rest;
                        }
                        [plain, rest @ ..] => {
                            holds.push(fold(*plain));
                            set = rest;
                        }
                    }
                };
                holds.contains(&fold(*byte)) != negated && oracle(rest, more, nocase)
            }
            ([b'\\', escaped, rest @ ..], [byte, more @ ..]) => {
                fold(*escaped) == fold(*byte) && oracle(rest, more, nocase)
            }
            ([plain, rest @ ..], [byte, more @ ..]) => fold(*plain) == fold(*byte) && oracle(rest, more, nocase),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_matcher_agrees_with_the_definition(
            pattern in proptest::collection::vec(proptest::sample::select(b"aAbBc*?[]^-\\".to_vec()), 0..12),
            text in proptest::collection::vec(proptest::sample::select(b"aAbBc-]\\".to_vec()), 0..10),
            nocase: bool,
        ) {
            prop_assert_eq!(matches(&pattern, &text, nocase), oracle(&pattern, &text, nocase));
        }

        #[test]
        fn any_bytes_are_answered(pattern: Vec<u8>, text: Vec<u8>, nocase: bool) {
            let _ = matches(&pattern, &text, nocase);
        }

        #[test]
        fn a_text_with_every_byte_escaped_matches_itself_only(text: Vec<u8>, other: Vec<u8>) {
            let pattern: Vec<u8> = text.iter().flat_map(|&b| [b'\\', b]).collect();
            prop_assert!(matches(&pattern, &text, false));
            prop_assert_eq!(matches(&pattern, &other, false), text == other);
        }
    }
}
