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

    /// The next reply; `None` when more bytes are needed. After an error the stream has lost its frame: the same error
    /// comes back for ever, and the connection should be closed.
    #[allow(clippy::should_implement_trait, reason = "not an iterator: an end is never final, more bytes may come")]
    pub fn next(&mut self) -> Result<Option<Reply>, ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let outcome = self.decode();
        if let Err(error) = outcome {
            self.failed = Some(error);
            self.open = Vec::new();
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
            b',' => Reply::Double(parse_double(text).ok_or(ProtocolError::Reply("invalid double"))?),
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

fn parse_double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
