//! From bytes to replies: what we hear from the servers and Sentinels we talk to.
//!
//! Nothing here trusts the other side: depth, elements, lengths and the size of a whole reply are bounded. The decoder keeps
//! its place between pieces (open aggregates on a stack of its own), so that no byte is looked at twice.
//!
//! RESP3 types without a [`Reply`] of their own map onto the nearest: set → `Array`, verbatim string → `Bulk` without its
//! format, big number → `Bulk`, blob error → `Error`; attributes are read and dropped.

use super::input::Input;
use super::{ProtocolError, Reply, parse_integer};
use crate::base::limits;

/// Decodes the replies of one server.
#[derive(Clone, Debug, Default)]
pub struct ReplyDecoder {
    input: Input,
    /// Aggregates that are not complete, outermost first.
    open: Vec<Open>,
    /// The string whose header has been read.
    string: Option<(StringKind, usize)>,
    /// Bytes and values of the reply in progress.
    taken: usize,
    values: usize,
    failed: Option<ProtocolError>,
}

#[derive(Clone, Debug)]
struct Open {
    kind: OpenKind,
    left: usize,
    values: Vec<Reply>,
}

#[derive(Clone, Copy, Debug)]
enum OpenKind {
    Array,
    Map,
    Push,
    Attribute,
}

#[derive(Clone, Copy, Debug)]
enum StringKind {
    Bulk,
    Error,
    Verbatim,
}

/// What one header line amounts to.
enum Step {
    Value(Reply),
    /// An attribute, which counts for nothing, or the header of a string or of an aggregate with elements.
    Nothing,
}

impl ReplyDecoder {
    #[must_use]
    pub fn new() -> ReplyDecoder {
        ReplyDecoder::default()
    }

    /// Appends bytes as they came.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
    }

    /// As [`ReplyDecoder::extend`], and takes the buffer along until [`ReplyDecoder::reclaim`]: nothing is copied, and a
    /// decoder between two replies holds no memory.
    pub fn lend(&mut self, shared: &mut Vec<u8>) {
        self.input.lend(shared);
    }

    /// Gives a lent buffer back, emptied; to be called when `next` has nothing more to give.
    pub fn reclaim(&mut self, shared: &mut Vec<u8>) {
        self.input.reclaim(shared);
    }

    /// The next reply; `None` when more bytes are needed. After an error the stream has lost its frame: the same error
    /// comes back for ever, and the connection should be closed.
    #[allow(clippy::should_implement_trait, reason = "not an iterator: an end is never final, more bytes may come")]
    pub fn next(&mut self) -> Result<Option<Reply>, ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let outcome = self.decode();
        if let Err(error) = outcome {
            *self = ReplyDecoder { failed: Some(error), ..ReplyDecoder::default() };
        }
        outcome
    }

    fn decode(&mut self) -> Result<Option<Reply>, ProtocolError> {
        loop {
            let step = match self.string {
                Some((kind, length)) => match self.take_string(kind, length)? {
                    Some(value) => Step::Value(value),
                    None => return Ok(None),
                },
                None => match self.header()? {
                    Some(step) => step,
                    None => return Ok(None),
                },
            };
            if let Step::Value(value) = step
                && let Some(reply) = self.place(value)
            {
                (self.taken, self.values) = (0, 0);
                return Ok(Some(reply));
            }
        }
    }

    /// Puts a value where it belongs; gives it back when it is the whole reply.
    fn place(&mut self, mut value: Reply) -> Option<Reply> {
        loop {
            let Some(top) = self.open.last_mut() else { return Some(value) };
            top.values.push(value);
            top.left -= 1;
            if top.left > 0 {
                return None;
            }
            let Open { kind, values, .. } = self.open.pop()?;
            value = match kind {
                OpenKind::Array => Reply::Array(values),
                OpenKind::Push => Reply::Push(values),
                OpenKind::Map => Reply::Map(pairs(values)),
                OpenKind::Attribute => return None,
            };
        }
    }

    /// Takes the string whose header has been read; `None` when it is not all there. Nothing is searched, so waiting is free.
    fn take_string(&mut self, kind: StringKind, length: usize) -> Result<Option<Reply>, ProtocolError> {
        let rest = self.input.rest();
        if rest.len() < length + 2 {
            return Ok(None);
        }
        if &rest[length..length + 2] != b"\r\n" {
            return Err(ProtocolError::Reply("string without line end"));
        }
        let string = &rest[..length];
        let value = match kind {
            StringKind::Bulk => Reply::Bulk(string.to_vec()),
            StringKind::Error => Reply::Error(string.to_vec()),
            StringKind::Verbatim => match string {
                [_, _, _, b':', text @ ..] => Reply::Bulk(text.to_vec()),
                _ => return Err(ProtocolError::Reply("verbatim string without format")),
            },
        };
        self.input.consume(length + 2);
        self.string = None;
        Ok(Some(value))
    }

    /// Takes one line; `None` when its end has not come.
    fn header(&mut self) -> Result<Option<Step>, ProtocolError> {
        let Some(newline) = self.line_end()? else { return Ok(None) };
        let line = &self.input.rest()[..newline - 1];
        let Some((&marker, text)) = line.split_first() else {
            return Err(ProtocolError::Reply("empty line"));
        };
        let value = match marker {
            b'+' => Reply::Simple(text.to_vec()),
            b'-' => Reply::Error(text.to_vec()),
            b':' => Reply::Integer(parse_integer(text).ok_or(ProtocolError::Reply("invalid integer"))?),
            b'(' => Reply::Bulk(text.to_vec()),
            b',' if is_double(text) => Reply::Double(text.to_vec()),
            b',' => return Err(ProtocolError::Reply("invalid double")),
            b'#' => match text {
                b"t" => Reply::Boolean(true),
                b"f" => Reply::Boolean(false),
                _ => return Err(ProtocolError::Reply("invalid boolean")),
            },
            b'_' if text.is_empty() => Reply::Nil,
            b'_' => return Err(ProtocolError::Reply("invalid null")),
            b'$' | b'!' | b'=' | b'*' | b'~' | b'>' | b'%' | b'|' => {
                let length = parse_integer(text);
                return self.counted(marker, length, newline + 1).map(Some);
            }
            other => return Err(ProtocolError::ReplyType(other)),
        };
        self.account(newline + 1)?;
        self.input.consume(newline + 1);
        Ok(Some(Step::Value(value)))
    }

    /// The `\n` of the next `\r\n`. A lone `\n` is part of the text.
    fn line_end(&mut self) -> Result<Option<usize>, ProtocolError> {
        let found = self.input.find_line_end();
        if found.unwrap_or(self.input.len()) > limits::REPLY_LINE {
            return Err(ProtocolError::Reply("too long line"));
        }
        Ok(found)
    }

    /// A header with a length or a count, in a line of `width` bytes.
    fn counted(&mut self, marker: u8, length: Option<i64>, width: usize) -> Result<Step, ProtocolError> {
        let Some(length) = length else { return Err(ProtocolError::Reply("invalid length")) };
        let nil = length == -1 && matches!(marker, b'$' | b'*');
        let length = match usize::try_from(length) {
            Ok(length) => length,
            Err(_) if nil => 0,
            Err(_) => return Err(ProtocolError::Reply("negative length")),
        };
        let step = if nil {
            Step::Value(Reply::Nil)
        } else if let b'$' | b'!' | b'=' = marker {
            if length > limits::REPLY_BULK {
                return Err(ProtocolError::Reply("too long string"));
            }
            self.account(length)?;
            self.string = Some((
                match marker {
                    b'$' => StringKind::Bulk,
                    b'!' => StringKind::Error,
                    _ => StringKind::Verbatim,
                },
                length,
            ));
            Step::Nothing
        } else {
            self.aggregate(marker, length)?
        };
        self.account(width)?;
        self.input.consume(width);
        Ok(step)
    }

    fn aggregate(&mut self, marker: u8, count: usize) -> Result<Step, ProtocolError> {
        let kind = match marker {
            b'%' => OpenKind::Map,
            b'|' => OpenKind::Attribute,
            b'>' => OpenKind::Push,
            _ => OpenKind::Array,
        };
        if count > limits::REPLY_ELEMENTS {
            return Err(ProtocolError::Reply("too many elements"));
        }
        if self.open.len() == limits::REPLY_DEPTH {
            return Err(ProtocolError::Reply("too deep nesting"));
        }
        let left = if let OpenKind::Map | OpenKind::Attribute = kind { count * 2 } else { count };
        if left == 0 {
            return Ok(match kind {
                OpenKind::Array => Step::Value(Reply::Array(Vec::new())),
                OpenKind::Map => Step::Value(Reply::Map(Vec::new())),
                OpenKind::Push => Step::Value(Reply::Push(Vec::new())),
                OpenKind::Attribute => Step::Nothing,
            });
        }
        // The count is only a claim; a few bytes must not make us allocate megabytes.
        self.open.push(Open { kind, left, values: Vec::with_capacity(left.min(32)) });
        Ok(Step::Nothing)
    }

    /// Counts one line or string against the bounds of a whole reply.
    fn account(&mut self, bytes: usize) -> Result<(), ProtocolError> {
        self.taken += bytes;
        self.values += 1;
        if self.taken > limits::REPLY_BYTES || self.values > limits::REPLY_VALUES {
            return Err(ProtocolError::Reply("too large reply"));
        }
        Ok(())
    }
}

fn pairs(values: Vec<Reply>) -> Vec<(Reply, Reply)> {
    let mut pairs = Vec::with_capacity(values.len() / 2);
    let mut values = values.into_iter();
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        pairs.push((key, value));
    }
    pairs
}

/// What Rust reads as an `f64`. To read it would take a table of ten kilobytes.
fn is_double(text: &[u8]) -> bool {
    let unsigned =
        |text: &[u8]| text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text).to_ascii_lowercase();
    let are_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    let text = unsigned(text);
    if [b"inf".as_slice(), b"infinity", b"nan"].contains(&text.as_slice()) {
        return true;
    }
    let mut parts = text.splitn(2, |&byte| byte == b'e');
    let (number, exponent) = (parts.next().unwrap_or_default(), parts.next());
    let mut sides = number.splitn(2, |&byte| byte == b'.');
    let (whole, fraction) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
    let has_digits = whole.len() + fraction.len() > 0 && are_digits(whole) && are_digits(fraction);
    let exponent_is_good = exponent.is_none_or(|text| {
        let digits = unsigned(text);
        !digits.is_empty() && are_digits(&digits)
    });
    has_digits && exponent_is_good
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: &[u8]) -> Result<Option<Reply>, String> {
        let mut decoder = ReplyDecoder::new();
        decoder.extend(bytes);
        let reply = decoder.next().map_err(|error| {
            assert_eq!(decoder.next(), Err(error), "an error stays");
            error.to_string()
        })?;
        assert_eq!(decoder.next(), Ok(None), "nothing is left of {}", bytes.escape_ascii());
        Ok(reply)
    }

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn a_double_is_what_rust_reads_as_one() {
        let parts = ["", "+", "-", "1", "05", ".", "e", "E-2", "inf", "NaN", "Infinity", " ", "x"];
        for (a, b) in parts.iter().flat_map(|a| parts.map(|b| (a, b))) {
            for (c, d) in parts.iter().flat_map(|c| parts.map(|d| (c, d))) {
                let text = format!("{a}{b}{c}{d}");
                assert_eq!(is_double(text.as_bytes()), text.parse::<f64>().is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn every_type_is_read() {
        let table: &[(&[u8], Reply)] = &[
            (b"+PONG\r\n", Reply::Simple(b"PONG".to_vec())),
            (b"+\r\n", Reply::Simple(vec![])),
            (b"+a\nb\rc\r\n", Reply::Simple(b"a\nb\rc".to_vec())),
            (b"-LOADING wait\r\n", Reply::Error(b"LOADING wait".to_vec())),
            (b":-42\r\n", Reply::Integer(-42)),
            (b"$5\r\na\r\nbc\r\n", bulk("a\r\nbc")),
            (b"$0\r\n\r\n", bulk("")),
            (b"$-1\r\n", Reply::Nil),
            (b"*-1\r\n", Reply::Nil),
            (b"_\r\n", Reply::Nil),
            (b"*0\r\n", Reply::Array(vec![])),
            (b"%0\r\n", Reply::Map(vec![])),
            (b">0\r\n", Reply::Push(vec![])),
            (
                b"*3\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n_\r\n",
                Reply::Array(vec![bulk("a"), Reply::Array(vec![Reply::Integer(1), Reply::Array(vec![])]), Reply::Nil]),
            ),
            (b"%1\r\n+a\r\n%1\r\n+b\r\n:1\r\n", {
                let inner = Reply::Map(vec![(Reply::Simple(b"b".to_vec()), Reply::Integer(1))]);
                Reply::Map(vec![(Reply::Simple(b"a".to_vec()), inner)])
            }),
            (b">2\r\n+message\r\n$1\r\nx\r\n", Reply::Push(vec![Reply::Simple(b"message".to_vec()), bulk("x")])),
            (b"~1\r\n:1\r\n", Reply::Array(vec![Reply::Integer(1)])),
            (b",1.5\r\n", Reply::Double(b"1.5".to_vec())),
            (b",-inf\r\n", Reply::Double(b"-inf".to_vec())),
            (b",1e+300\r\n", Reply::Double(b"1e+300".to_vec())),
            (b"#t\r\n", Reply::Boolean(true)),
            (b"#f\r\n", Reply::Boolean(false)),
            (b"(123456789012345678901234567890\r\n", bulk("123456789012345678901234567890")),
            (b"=8\r\ntxt:info\r\n", bulk("info")),
            (b"!9\r\nERR a\r\nbc\r\n", Reply::Error(b"ERR a\r\nbc".to_vec())),
            (b"|1\r\n+ttl\r\n:5\r\n+OK\r\n", Reply::Simple(b"OK".to_vec())),
            (b"*2\r\n|1\r\n+k\r\n*1\r\n:5\r\n:1\r\n|0\r\n:2\r\n", {
                Reply::Array(vec![Reply::Integer(1), Reply::Integer(2)])
            }),
        ];
        for (bytes, reply) in table {
            assert_eq!(one(bytes).as_ref(), Ok(&Some(reply.clone())), "{}", bytes.escape_ascii());
            for end in 0..bytes.len() {
                assert_eq!(one(&bytes[..end]), Ok(None), "{} of {}", end, bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn what_is_no_reply_is_named() {
        let table: &[(&[u8], &str)] = &[
            (b"HTTP/1.1 400\r\n", "unknown reply type 'H'"),
            (b"\x16\x03\r\n", "unknown reply type '\\x16'"),
            (b"\r\n", "empty line"),
            (b":\r\n", "invalid integer"),
            (b":1x\r\n", "invalid integer"),
            (b":9223372036854775808\r\n", "invalid integer"),
            (b",x\r\n", "invalid double"),
            (b"#x\r\n", "invalid boolean"),
            (b"_x\r\n", "invalid null"),
            (b"$x\r\n", "invalid length"),
            (b"$?\r\n", "invalid length"),
            (b"*-2\r\n", "negative length"),
            (b"%-1\r\n", "negative length"),
            (b"$1\r\nabc", "string without line end"),
            (b"=3\r\ntxt\r\n", "verbatim string without format"),
        ];
        for (bytes, message) in table {
            assert_eq!(one(bytes), Err(format!("Protocol error: {message}")), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn every_bound_holds_and_is_reached_before_the_memory_is_taken() {
        let deep = |depth: usize| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
        assert!(matches!(one(&deep(limits::REPLY_DEPTH)), Ok(Some(Reply::Array(_)))));
        let nested: Vec<u8> = format!("*{}\r\n", limits::REPLY_ELEMENTS).into_bytes().repeat(limits::REPLY_DEPTH);
        assert_eq!(one(&nested), Ok(None), "counts alone take no memory");
        let wide = format!("*{}\r\n", limits::REPLY_ELEMENTS).into_bytes();
        let wide = [wide, b":1\r\n".repeat(limits::REPLY_ELEMENTS)].concat();
        assert!(matches!(one(&wide), Ok(Some(Reply::Array(values))) if values.len() == limits::REPLY_ELEMENTS));
        let many = [b"*9\r\n".to_vec(), wide.repeat(9)].concat();
        let sized = |marker: char, length: usize| format!("{marker}{length}\r\n").into_bytes();
        let bulk = [sized('$', limits::REPLY_BULK), vec![b'x'; limits::REPLY_BULK], b"\r\n".to_vec()].concat();
        let large = [b"*5\r\n".to_vec(), bulk.repeat(3), sized('$', limits::REPLY_BULK)].concat();
        for (bytes, message) in [
            (deep(limits::REPLY_DEPTH + 1), "too deep nesting"),
            (sized('*', limits::REPLY_ELEMENTS + 1), "too many elements"),
            (sized('%', limits::REPLY_ELEMENTS + 1), "too many elements"),
            (sized('$', limits::REPLY_BULK + 1), "too long string"),
            (vec![b'+'; limits::REPLY_LINE + 1], "too long line"),
            (many, "too large reply"),
            ([large, bulk.clone()].concat(), "too large reply"),
        ] {
            assert_eq!(one(&bytes), Err(format!("Protocol error: {message}")));
        }
    }

    #[test]
    fn each_reply_counts_for_itself() {
        let mut decoder = ReplyDecoder::new();
        let info = [format!("${}\r\n", 100_000).into_bytes(), vec![b'x'; 100_000], b"\r\n".to_vec()].concat();
        for _ in 0..=limits::REPLY_BYTES / info.len() {
            decoder.extend(&info);
            assert!(matches!(decoder.next(), Ok(Some(Reply::Bulk(_)))));
        }
        let pongs = b"+PONG\r\n".repeat(limits::REPLY_VALUES + 1);
        decoder.extend(&pongs);
        for _ in 0..=limits::REPLY_VALUES {
            assert!(matches!(decoder.next(), Ok(Some(Reply::Simple(_)))));
        }
    }

    #[test]
    fn a_long_string_in_many_pieces_is_not_looked_at_again_and_again() {
        let mut decoder = ReplyDecoder::new();
        let text = vec![b'\n'; 8 * 1024 * 1024];
        decoder.extend(format!("*1\r\n${}\r\n", text.len()).as_bytes());
        for piece in text.chunks(64) {
            decoder.extend(piece);
            assert_eq!(decoder.next(), Ok(None));
        }
        decoder.extend(b"\r\n+OK\r\n");
        assert_eq!(decoder.next(), Ok(Some(Reply::Array(vec![Reply::Bulk(text)]))));
        assert_eq!(decoder.next(), Ok(Some(Reply::Simple(b"OK".to_vec()))));
    }
}
