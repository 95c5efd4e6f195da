//! Words and quotes: how a line of the configuration file or an inline request becomes words, and how a word is written so
//! that it is read back unchanged.
//!
//! Words are separated by white space. `"…"` may hold anything, with the escapes `\n \r \t \b \a \xHH`, and `\` before any
//! other byte stands for that byte; `'…'` knows only `\'`, so its text cannot end in a backslash. A quote may open in the
//! middle of a word (`a"b c"` is `ab c`), but behind the closing one must come white space or the end. Outside of quotes a
//! backslash is just a byte.

/// The words of `line`; `None` when a quote is not closed or something other than white space follows a closing quote.
/// A NUL is a byte like any other.
#[must_use]
pub fn split_args(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    // Hardly a line has more words, and thousands are read at the start.
    let mut words = Words { done: Vec::with_capacity(8), word: Vec::new() };
    split_into(line, &mut words).then_some(words.done)
}

/// Takes the words of a line as they are found, so that the hot path need not allocate one vector per word.
pub trait WordSink {
    /// More bytes of the current word.
    fn bytes(&mut self, bytes: &[u8]);
    /// The current word, perhaps empty, is complete.
    fn end_word(&mut self);
}

struct Words {
    done: Vec<Vec<u8>>,
    word: Vec<u8>,
}

impl WordSink for Words {
    fn bytes(&mut self, bytes: &[u8]) {
        self.word.extend_from_slice(bytes);
    }

    fn end_word(&mut self) {
        self.done.push(std::mem::take(&mut self.word));
    }
}

/// Feeds the words of `line` to `sink`. False when the quotes are wrong; what the sink got until then is of no use.
#[must_use]
pub fn split_into(line: &[u8], sink: &mut impl WordSink) -> bool {
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|&&b| is_space(b)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return true;
        }
        // The plain part of the word: up to white space or an opening quote.
        let plain = rest.iter().position(|&b| ends_word(b) || b == b'"' || b == b'\'').unwrap_or(rest.len());
        sink.bytes(&rest[..plain]);
        rest = &rest[plain..];
        let quoted = match rest.first() {
            Some(b'"') => double_quoted(&rest[1..], sink),
            Some(b'\'') => single_quoted(&rest[1..], sink),
            _ => Some(rest),
        };
        match quoted {
            Some(behind) if behind.first().is_none_or(|&b| is_space(b)) => rest = behind,
            _ => return false,
        }
        sink.end_word();
    }
}

/// Reads up to and with the closing `"`; gives what follows it.
fn double_quoted<'a>(mut rest: &'a [u8], sink: &mut impl WordSink) -> Option<&'a [u8]> {
    loop {
        let plain = rest.iter().position(|&b| b == b'"' || b == b'\\')?;
        sink.bytes(&rest[..plain]);
        rest = match rest[plain..] {
            [b'"', ref behind @ ..] => return Some(behind),
            [_, b'x', high, low, ref behind @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                sink.bytes(&[hex_value(high) << 4 | hex_value(low)]);
                behind
            }
            [_, escaped, ref behind @ ..] => {
                sink.bytes(&[match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => other,
                }]);
                behind
            }
            _ => return None,
        };
    }
}

/// Reads up to and with the closing `'`; gives what follows it.
fn single_quoted<'a>(mut rest: &'a [u8], sink: &mut impl WordSink) -> Option<&'a [u8]> {
    loop {
        let plain = rest.iter().position(|&b| b == b'\'' || b == b'\\')?;
        sink.bytes(&rest[..plain]);
        rest = match rest[plain..] {
            [b'\'', ref behind @ ..] => return Some(behind),
            [_, b'\'', ref behind @ ..] => {
                sink.bytes(b"'");
                behind
            }
            [_, ref behind @ ..] => {
                sink.bytes(b"\\");
                behind
            }
            [] => return None,
        };
    }
}

/// White space between words, as C's `isspace` has it.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// What ends an unquoted word. Vertical tab and form feed separate words but do not end one: Redis has it so.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.to_ascii_uppercase().wrapping_sub(b'A').wrapping_add(10),
    }
}

/// `bytes` between double quotes, in printable ASCII; `split_args` reads it back unchanged.
#[must_use]
pub fn quoted(bytes: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for &byte in bytes {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x07 => out.push_str("\\a"),
            0x08 => out.push_str("\\b"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                out.push_str("\\x");
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    out.push('"');
    out
}

/// `bytes` as one word of a line: bare when nothing in it could be misread, else [`quoted`]. A leading `#` would make the
/// line a comment, so it is quoted as well.
#[must_use]
pub fn if_needed(bytes: &[u8]) -> String {
    let bare = |&b: &u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'\\');
    if bytes.first().is_some_and(|&b| b != b'#') && bytes.iter().all(bare) {
        bytes.iter().map(|&b| char::from(b)).collect()
    } else {
        quoted(bytes)
    }
}

/// Whether `bytes` hold an ASCII control byte (0x00–0x1F or 0x7F): such text is refused where it would reach a file or a log.
#[must_use]
pub fn has_control(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_split_into_words_as_redis_has_it() {
        // Checked against redis-server with inline ECHO.
        let table: &[(&[u8], &[&[u8]])] = &[
            (b"", &[]),
            (b" \t\r\n\x0b\x0c", &[]),
            (b"PING", &[b"PING"]),
            (b"  a  b\tc\rd\ne ", &[b"a", b"b", b"c", b"d", b"e"]),
            (b"a\x0bb \x0cc", &[b"a\x0bb", b"c"]),
            (b"\"\"", &[b""]),
            (b"'' a \"\"", &[b"", b"a", b""]),
            (b"\"a b\"\t'c d'", &[b"a b", b"c d"]),
            (b"a\"b c\" d'e f'", &[b"ab c", b"de f"]),
            (b"a\\nb", &[b"a\\nb"]),
            (b"a\\", &[b"a\\"]),
            (b"\"\\x41\\x4\\xg1\\n\\q\\a\\b\\t\\r\\\\\\\"\\xfF\"", &[b"Ax4xg1\nq\x07\x08\t\r\\\"\xff"]),
            (b"'a\\'b\\n\"'", &[b"a'b\\n\""]),
            (b"'\\\\' '", &[b"\\' "]),
            (b"\"a\rb\nc'\"", &[b"a\rb\nc'"]),
            (b"\"a\"\x0bb", &[b"a", b"b"]),
            (b"a\0b \"\0\"", &[b"a\0b", b"\0"]),
            (b"\xff \xfe\x85", &[b"\xff", b"\xfe\x85"]),
        ];
        for (line, words) in table {
            let expected: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
            assert_eq!(split_args(line), Some(expected), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn wrong_quotes_are_refused() {
        for line in [
            b"\"".as_slice(),
            b"'",
            b"a \"b",
            b"a 'b",
            b"\"a\\",
            b"\"a\\\"",
            b"'a\\",
            b"'a\\'",
            b"'\\\\'",
            b"\"\\x4",
            b"\"a\"b",
            b"'a'b",
            b"\"a\"'b'",
            b"\"a\"\"b\"",
            b"x\"a\"\0",
        ] {
            assert_eq!(split_args(line), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn words_are_quoted_only_when_they_could_be_misread() {
        let table: &[(&[u8], &str, &str)] = &[
            (b"", "\"\"", "\"\""),
            (b"mymaster", "mymaster", "\"mymaster\""),
            (b"a#b", "a#b", "\"a#b\""),
            (b"#a", "\"#a\"", "\"#a\""),
            (b"a b", "\"a b\"", "\"a b\""),
            (b"it's", "\"it's\"", "\"it's\""),
            (b"a\"b\\", "\"a\\\"b\\\\\"", "\"a\\\"b\\\\\""),
            (b"\n\r\t\x07\x08", "\"\\n\\r\\t\\a\\b\"", "\"\\n\\r\\t\\a\\b\""),
            (b"\0\x0b\x7f\xff", "\"\\x00\\x0b\\x7f\\xff\"", "\"\\x00\\x0b\\x7f\\xff\""),
            ("é".as_bytes(), "\"\\xc3\\xa9\"", "\"\\xc3\\xa9\""),
            (b"!$%&()*+,-./:;<=>?@[]^_`{|}~", "!$%&()*+,-./:;<=>?@[]^_`{|}~", "\"!$%&()*+,-./:;<=>?@[]^_`{|}~\""),
        ];
        for (word, bare, full) in table {
            assert_eq!(if_needed(word), *bare);
            assert_eq!(quoted(word), *full);
        }
    }

    #[test]
    fn control_bytes_are_found() {
        for byte in 0..=255u8 {
            assert_eq!(has_control(&[b'a', byte, b'b']), byte < 0x20 || byte == 0x7f, "{byte}");
        }
        assert!(!has_control(b""));
    }

    proptest! {
        #[test]
        fn what_is_quoted_splits_back_into_the_same_words(words: Vec<Vec<u8>>, always: bool) {
            let written: Vec<String> =
                words.iter().map(|word| if always { quoted(word) } else { if_needed(word) }).collect();
            let line = written.join(" ");
            prop_assert!(!has_control(line.as_bytes()) && line.is_ascii() && !line.starts_with('#'));
            prop_assert_eq!(split_args(line.as_bytes()), Some(words));
        }

        #[test]
        fn any_line_is_answered(line: Vec<u8>) {
            let _ = split_args(&line);
        }

        #[test]
        fn any_quoting_is_answered(line in proptest::collection::vec(proptest::sample::select(b"a\"'\\ xn4\n".to_vec()), 0..16)) {
            // Words without quotes are the same as by white space alone.
            let words = split_args(&line);
            if !line.iter().any(|b| matches!(b, b'"' | b'\'')) {
                let plain: Vec<Vec<u8>> = line.split(|b| b.is_ascii_whitespace())
                    .filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect();
                prop_assert_eq!(words, Some(plain));
            }
        }
    }
}
