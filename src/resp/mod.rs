//! RESP2 and RESP3, both directions, pure: bytes in, values out, and back.
//!
//! [`RequestDecoder`] reads what clients send into a reusable [`Argv`]; [`Writer`] appends replies to a client's buffer.
//! [`request`] writes to the servers we watch, [`ReplyDecoder`] reads what they answer.

mod argv;
mod input;
mod reply;
mod request;
mod writer;

pub use argv::Argv;
pub use reply::ReplyDecoder;
pub use request::{RequestDecoder, RequestLimits};
pub use writer::{Writer, request};

use std::fmt;

/// Protocol version of a client connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Proto {
    #[default]
    Resp2,
    Resp3,
}

/// One decoded reply of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    Push(Vec<Reply>),
    /// Its text, as nothing is computed with it.
    Double(Vec<u8>),
    Boolean(bool),
}

/// The peer does not speak RESP; nothing behind that point can be understood. The text is what follows `-ERR ` in the reply
/// that a client gets before its connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    MultibulkLength,
    BulkLength,
    ExpectedDollar(u8),
    UnbalancedQuotes,
    BigInline,
    BigMultibulkCount,
    BigBulkCount,
    /// A whole request beyond [`RequestLimits::buffer`].
    BigRequest,
    /// More arguments than the limits of this client allow, though others might send as many.
    UnauthenticatedMultibulk,
    /// A longer argument than the limits of this client allow, though others might send it.
    UnauthenticatedBulk,
    /// A reply that begins with no known type.
    ReplyType(u8),
    /// Another fault in a reply, or a bound it exceeds.
    Reply(&'static str),
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match *self {
            ProtocolError::MultibulkLength => f.write_str("invalid multibulk length"),
            ProtocolError::BulkLength => f.write_str("invalid bulk length"),
            ProtocolError::ExpectedDollar(got) => write!(f, "expected '$', got '{}'", Shown(got)),
            ProtocolError::UnbalancedQuotes => f.write_str("unbalanced quotes in request"),
            ProtocolError::BigInline => f.write_str("too big inline request"),
            ProtocolError::BigMultibulkCount => f.write_str("too big mbulk count string"),
            ProtocolError::BigBulkCount => f.write_str("too big bulk count string"),
            ProtocolError::BigRequest => f.write_str("too big request"),
            ProtocolError::UnauthenticatedMultibulk => f.write_str("unauthenticated multibulk length"),
            ProtocolError::UnauthenticatedBulk => f.write_str("unauthenticated bulk length"),
            ProtocolError::ReplyType(got) => write!(f, "unknown reply type '{}'", Shown(got)),
            ProtocolError::Reply(what) => f.write_str(what),
        }
    }
}

impl ProtocolError {
    /// The text for the peer: as shown, except that the byte it is about stands there as it came (line breaks as spaces).
    #[must_use]
    pub fn told(&self) -> Vec<u8> {
        match *self {
            ProtocolError::ExpectedDollar(got) if !matches!(got, b'\r' | b'\n') => {
                [b"Protocol error: expected '$', got '".as_slice(), &[got], b"'"].concat()
            }
            ref other => other.to_string().into_bytes(),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// A byte of the peer as it may stand in a message: itself when printable, a space for a line break (as the reference
/// shows it), else `\xHH`.
struct Shown(u8);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b'\r' | b'\n' => f.write_str(" "),
            b' '..=b'~' => write!(f, "{}", char::from(self.0)),
            other => write!(f, "\\x{other:02x}"),
        }
    }
}

/// A decimal number in its one canonical form: no sign but `-`, no leading zeros, no blanks, no `-0`. Lengths and integer
/// arguments are held to it.
#[must_use]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match *text {
        [b'-', ref digits @ ..] => (true, digits),
        ref digits => (false, digits),
    };
    match *digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    // Nineteen digits fit an u64.
    let mut number: u64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u64::from(digit - b'0');
    }
    if negative { 0i64.checked_sub_unsigned(number) } else { i64::try_from(number).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_told_the_very_byte_and_a_log_a_readable_one() {
        let error = ProtocolError::ExpectedDollar(0xff);
        assert_eq!(error.told(), b"Protocol error: expected '$', got '\xff'");
        assert_eq!(error.to_string(), "Protocol error: expected '$', got '\\xff'");
        assert_eq!(ProtocolError::ExpectedDollar(b'\n').told(), b"Protocol error: expected '$', got ' '");
        assert_eq!(ProtocolError::BulkLength.told(), b"Protocol error: invalid bulk length");
    }

    #[test]
    fn only_canonical_numbers_are_numbers() {
        for number in [0, 1, -1, 10, -10, 26379, i64::MAX, i64::MIN] {
            assert_eq!(parse_integer(number.to_string().as_bytes()), Some(number));
        }
        for text in ["", "-", "-0", "00", "01", "-01", "+1", " 1", "1 ", "1x", "x", "1.0", "0x1", "9223372036854775808"]
        {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
        for text in ["-9223372036854775809", "9999999999999999999", "-9999999999999999999", "18446744073709551616"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
    }
}
