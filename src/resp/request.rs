//! From bytes to requests: what a server hears from its clients.
//!
//! A request that begins with `*` is a multibulk one (`*2\r\n$4\r\nPING\r\n$1\r\nx\r\n`), any other is an inline one: a line
//! of words with optional quotes. Both may be pipelined and arrive in any pieces; the outcome depends only on the bytes.
//!
//! A request that is complete in the buffer goes straight into the caller's [`Argv`]. One that is not is taken apart as far
//! as it has come and kept in an `Argv` of our own, so that no byte is looked at twice and a large argument is not held twice.
//!
//! Like the reference we are not picky about the two bytes behind a number or an argument: the first of them must be `\r`
//! behind a number, everything else is skipped unseen.

use super::argv::Argv;
use super::input::Input;
use super::{ProtocolError, parse_integer};
use crate::base::{limits, quote};

/// What one request may ask of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Most arguments of a multibulk request.
    pub args: usize,
    /// Longest argument of a multibulk request, in bytes.
    pub bulk: usize,
    /// Longest request, in bytes as sent.
    pub buffer: usize,
}

impl RequestLimits {
    /// For clients that need no password or have given it.
    pub const TRUSTED: RequestLimits =
        RequestLimits { args: limits::REQUEST_ARGS, bulk: limits::REQUEST_BULK, buffer: limits::REQUEST_BUFFER };
    /// For clients that still owe a password.
    pub const UNAUTHENTICATED: RequestLimits = RequestLimits {
        args: limits::UNAUTHENTICATED_ARGS,
        bulk: limits::UNAUTHENTICATED_BULK,
        buffer: limits::UNAUTHENTICATED_BUFFER,
    };
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits::TRUSTED
    }
}

/// Decodes the requests of one client.
#[derive(Clone, Debug, Default)]
pub struct RequestDecoder {
    input: Input,
    /// The request in progress, as far as it has come. Empty between requests.
    partial: Argv,
    /// Arguments of the request in progress still to be completed; 0 between requests.
    args_left: usize,
    /// Bytes of the argument in progress still to come, its two closing bytes not counted.
    bulk_left: Option<usize>,
    /// Bytes consumed of the request in progress.
    taken: usize,
    limits: RequestLimits,
    failed: Option<ProtocolError>,
}

impl RequestDecoder {
    #[must_use]
    pub fn new() -> RequestDecoder {
        RequestDecoder::default()
    }

    /// Holds the requests from here on to `limits`; numbers already read stay accepted.
    pub fn set_limits(&mut self, limits: RequestLimits) {
        self.limits = limits;
    }

    /// Appends bytes as they came.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
    }

    /// As [`RequestDecoder::extend`], and takes the buffer along until [`RequestDecoder::reclaim`]: nothing is copied, and a
    /// decoder between two requests holds little memory.
    pub fn lend(&mut self, shared: &mut Vec<u8>) {
        self.input.lend(shared);
    }

    /// Gives a lent buffer back, emptied.
    pub fn reclaim(&mut self, shared: &mut Vec<u8>) {
        self.input.reclaim(shared);
    }

    /// Bytes received of requests not yet given out.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.input.len() + self.taken
    }

    /// Gives back memory that a quiet client does not need.
    pub fn release(&mut self) {
        if self.args_left == 0 {
            self.partial = Argv::new();
        }
    }

    /// Decodes one request into `into`, whose former contents are lost. False when more bytes are needed. Lines without
    /// words and multibulk requests of no arguments are passed over. After an error the stream has lost its frame: the
    /// same error comes back for ever, and the connection should be closed.
    pub fn next(&mut self, into: &mut Argv) -> Result<bool, ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        into.clear();
        if self.args_left > 0 {
            std::mem::swap(into, &mut self.partial);
        }
        let outcome = self.decode(into);
        match outcome {
            Ok(true) => self.taken = 0,
            Ok(false) if self.args_left > 0 => std::mem::swap(into, &mut self.partial),
            Ok(false) => {}
            Err(error) => {
                into.clear();
                self.failed = Some(error);
            }
        }
        outcome
    }

    fn decode(&mut self, into: &mut Argv) -> Result<bool, ProtocolError> {
        while self.args_left == 0 {
            match self.input.rest().first() {
                None => return Ok(false),
                Some(b'*') => {
                    if !self.begin_multibulk(into)? {
                        return Ok(false);
                    }
                }
                Some(_) => match self.inline(into)? {
                    None => return Ok(false),
                    Some(()) if into.is_empty() => {}
                    Some(()) => return Ok(true),
                },
            }
        }
        while self.args_left > 0 {
            if !self.argument(into)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes one line of words; `None` when its end has not come.
    fn inline(&mut self, into: &mut Argv) -> Result<Option<()>, ProtocolError> {
        let found = self.input.find(b'\n');
        if found.unwrap_or(self.input.len()) > limits::REQUEST_INLINE {
            return Err(ProtocolError::BigInline);
        }
        let Some(end) = found else { return Ok(None) };
        let line = &self.input.rest()[..end];
        if !quote::split_into(line.strip_suffix(b"\r").unwrap_or(line), into) {
            return Err(ProtocolError::UnbalancedQuotes);
        }
        self.input.consume(end + 1);
        Ok(Some(()))
    }

    /// Takes the `*<count>` line; false when its end has not come.
    fn begin_multibulk(&mut self, into: &mut Argv) -> Result<bool, ProtocolError> {
        let (count, width) = match short_number(self.input.rest()) {
            Some(short) => short,
            None => match self.number(ProtocolError::BigMultibulkCount, ProtocolError::MultibulkLength)? {
                // No count, or a negative one, is a request of nothing.
                Some((count, width)) => (usize::try_from(count).unwrap_or(0), width),
                None => return Ok(false),
            },
        };
        if count > self.limits.args {
            // A count that nobody might send is called invalid, whoever sends it.
            let too_many = self.limits.args == limits::REQUEST_ARGS || i32::try_from(count).is_err();
            return Err(if too_many {
                ProtocolError::MultibulkLength
            } else {
                ProtocolError::UnauthenticatedMultibulk
            });
        }
        self.input.consume(width);
        if count > 0 {
            self.args_left = count;
            self.taken = width;
            // The count is only a claim; a few bytes must not make us allocate megabytes.
            into.expect(count.min(64));
        }
        Ok(true)
    }

    /// Takes one argument, or as much of it as is there; false when it is not complete.
    fn argument(&mut self, into: &mut Argv) -> Result<bool, ProtocolError> {
        let left = match self.bulk_left {
            Some(left) => left,
            None => match self.begin_bulk()? {
                Some(length) => length,
                None => return Ok(false),
            },
        };
        let rest = self.input.rest();
        if rest.len() >= left + 2 {
            into.append(&rest[..left]);
            into.end_argument();
            self.input.consume(left + 2);
            self.taken += left + 2;
            self.args_left -= 1;
            self.bulk_left = None;
            return Ok(true);
        }
        let part = rest.len().min(left);
        into.append(&rest[..part]);
        self.input.consume(part);
        self.taken += part;
        self.bulk_left = Some(left - part);
        Ok(false)
    }

    /// Takes the `$<length>` line; `None` when its end has not come.
    fn begin_bulk(&mut self) -> Result<Option<usize>, ProtocolError> {
        match self.input.rest().first() {
            None => return Ok(None),
            Some(b'$') => {}
            Some(&other) => return Err(ProtocolError::ExpectedDollar(other)),
        }
        let (length, width) = match short_number(self.input.rest()) {
            Some(short) => short,
            None => match self.number(ProtocolError::BigBulkCount, ProtocolError::BulkLength)? {
                Some((length, width)) => (usize::try_from(length).map_err(|_| ProtocolError::BulkLength)?, width),
                None => return Ok(None),
            },
        };
        if length > limits::REQUEST_BULK {
            return Err(ProtocolError::BulkLength);
        }
        if length > self.limits.bulk {
            return Err(ProtocolError::UnauthenticatedBulk);
        }
        if self.taken + width + length > self.limits.buffer {
            return Err(ProtocolError::BigRequest);
        }
        self.input.consume(width);
        self.taken += width;
        Ok(Some(length))
    }

    /// Reads, without consuming, the number behind the type byte; also gives the width of the whole line. `None` when the
    /// line or the byte behind its `\r` has not come.
    fn number(
        &mut self,
        too_big: ProtocolError,
        invalid: ProtocolError,
    ) -> Result<Option<(i64, usize)>, ProtocolError> {
        let found = self.input.find(b'\r');
        if found.unwrap_or(self.input.len()) > limits::REQUEST_INLINE {
            return Err(too_big);
        }
        match found {
            Some(end) if end + 1 < self.input.len() => {
                Ok(Some((parse_integer(&self.input.rest()[1..end]).ok_or(invalid)?, end + 2)))
            }
            _ => Ok(None),
        }
    }
}

/// The number line that nearly all requests have: type byte, one to three digits, `\r` and one byte more.
#[inline(always)]
fn short_number(rest: &[u8]) -> Option<(usize, usize)> {
    match *rest {
        [_, a @ b'0'..=b'9', b'\r', _, ..] => Some((usize::from(a - b'0'), 4)),
        [_, a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', _, ..] => {
            Some((usize::from(a - b'0') * 10 + usize::from(b - b'0'), 5))
        }
        [_, a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', _, ..] => {
            Some((usize::from(a - b'0') * 100 + usize::from(b - b'0') * 10 + usize::from(c - b'0'), 6))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All requests of `bytes`, and the error that ends them.
    fn decode(bytes: &[u8], limits: RequestLimits) -> (Vec<Vec<Vec<u8>>>, Option<String>) {
        let mut decoder = RequestDecoder::new();
        decoder.set_limits(limits);
        decoder.extend(bytes);
        let (mut requests, mut argv) = (Vec::new(), Argv::new());
        loop {
            match decoder.next(&mut argv) {
                Ok(true) => requests.push(argv.iter().map(<[u8]>::to_vec).collect()),
                Ok(false) => return (requests, None),
                Err(error) => {
                    assert_eq!(decoder.next(&mut argv), Err(error), "an error stays");
                    return (requests, Some(error.to_string()));
                }
            }
        }
    }

    #[test]
    fn requests_are_understood_as_by_the_reference() {
        type Row<'a> = (&'a [u8], &'a [&'a [&'a [u8]]]);
        let table: &[Row<'_>] = &[
            (b"*1\r\n$4\r\nPING\r\n", &[&[b"PING"]]),
            (b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", &[&[b"ECHO", b""]]),
            (b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", &[&[b"PING"], &[b"QUIT"]]),
            (b"*1\r\n$12\r\n123456789\r\nx\r\n", &[&[b"123456789\r\nx"]]),
            (b"PING\r\nPING\nquit", &[&[b"PING"], &[b"PING"]]),
            (b"\r\n\n   \r\nPING\r\n", &[&[b"PING"]]),
            (b"\"\"\r\nPING\r\n", &[&[b""], &[b"PING"]]),
            (b"SENTINEL  \"get-master-addr-by-name\" 'm m'\r\n", &[&[b"SENTINEL", b"get-master-addr-by-name", b"m m"]]),
            (b"*0\r\nPING\r\n*-1\r\n*-5\r\nPING\r\n", &[&[b"PING"], &[b"PING"]]),
            (b"*1\r\n$4\r\nPING\r\n\r\nPING\r\n", &[&[b"PING"], &[b"PING"]]),
            // Two bytes end a number or an argument; only the first behind a number is looked at.
            (b"*1\rX$4\rYPINGZZ*1\r\n$4\r\nPING\r\n", &[&[b"PING"], &[b"PING"]]),
            (b"*1\n$4\nPING\n", &[]),
            (b"ECHO a\0b\r\n", &[&[b"ECHO", b"a\0b"]]),
        ];
        for (bytes, expected) in table {
            let (requests, error) = decode(bytes, RequestLimits::TRUSTED);
            assert_eq!(requests, *expected, "{}", bytes.escape_ascii());
            assert_eq!(error, None, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn faults_are_named_in_the_words_clients_know() {
        let table: &[(&[u8], &str)] = &[
            (b"*abc\r\n", "invalid multibulk length"),
            (b"*\r\n", "invalid multibulk length"),
            (b"*+1\r\n", "invalid multibulk length"),
            (b"*01\r\n", "invalid multibulk length"),
            (b"*-0\r\n", "invalid multibulk length"),
            (b"* 1\r\n", "invalid multibulk length"),
            (b"*2147483648\r\n", "invalid multibulk length"),
            (b"*99999999999999999999999\r\n", "invalid multibulk length"),
            (b"*1\r\n$x\r\n", "invalid bulk length"),
            (b"*1\r\n$\r\n", "invalid bulk length"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$04\r\n", "invalid bulk length"),
            (b"*1\r\n$4\n\nPING\r\n", "invalid bulk length"),
            (b"*1\r\n$536870913\r\n", "invalid bulk length"),
            (b"*1\r\n$536870912\r\n", "too big request"),
            (b"*1\r\nxPING\r\n", "expected '$', got 'x'"),
            (b"*2\r\n$4\r\nECHO\r\n:1\r\n", "expected '$', got ':'"),
            (b"*1\r\n\rabc\r\n", "expected '$', got ' '"),
            (b"*1\r\n\xffabc\r\n", "expected '$', got '\\xff'"),
            (b"sentinel \"masters\r\n", "unbalanced quotes in request"),
            (b"ECHO \"a\"b\r\n", "unbalanced quotes in request"),
        ];
        for (bytes, message) in table {
            let (requests, error) = decode(bytes, RequestLimits::TRUSTED);
            assert!(requests.is_empty());
            assert_eq!(error.as_deref(), Some(&*format!("Protocol error: {message}")), "{}", bytes.escape_ascii());
            let before = [b"*1\r\n$4\r\nPING\r\n".as_slice(), bytes].concat();
            assert_eq!(decode(&before, RequestLimits::TRUSTED), (vec![vec![b"PING".to_vec()]], error));
        }
    }

    #[test]
    fn lines_without_an_end_are_given_up_where_the_reference_does() {
        let full = limits::REQUEST_INLINE;
        for (start, message) in [
            (b"P".as_slice(), "too big inline request"),
            (b"*", "too big mbulk count string"),
            (b"*1\r\n$", "too big bulk count string"),
        ] {
            let line = start.len() - start.iter().position(|&b| b == b'$').unwrap_or(0);
            let mut bytes = start.to_vec();
            bytes.resize(start.len() - line + full, b'1');
            assert_eq!(decode(&bytes, RequestLimits::TRUSTED), (vec![], None));
            bytes.push(b'1');
            assert_eq!(
                decode(&bytes, RequestLimits::TRUSTED),
                (vec![], Some(format!("Protocol error: {message}"))),
                "{message}"
            );
            bytes.extend(b"\r\n");
            assert_eq!(
                decode(&bytes, RequestLimits::TRUSTED).1,
                Some(format!("Protocol error: {message}")),
                "and it does not depend on how much comes at once"
            );
        }
        let longest = [vec![b'a'; full - 1], b"\r\n".to_vec()].concat();
        assert_eq!(decode(&longest, RequestLimits::TRUSTED).0[0][0].len(), full - 1);
    }

    #[test]
    fn clients_without_a_password_are_held_short() {
        let table: &[(&[u8], Option<&str>)] = &[
            (b"*10\r\n", None),
            (b"*11\r\n", Some("Protocol error: unauthenticated multibulk length")),
            (b"*2147483647\r\n", Some("Protocol error: unauthenticated multibulk length")),
            (b"*2147483648\r\n", Some("Protocol error: invalid multibulk length")),
            (b"*1\r\n$16384\r\n", None),
            (b"*1\r\n$16385\r\n", Some("Protocol error: unauthenticated bulk length")),
            (b"*1\r\n$600000000\r\n", Some("Protocol error: invalid bulk length")),
        ];
        for (bytes, error) in table {
            assert_eq!(decode(bytes, RequestLimits::UNAUTHENTICATED).1.as_deref(), *error, "{}", bytes.escape_ascii());
        }
        let small = RequestLimits { args: 10, bulk: 100, buffer: 50 };
        let bytes = [b"*2\r\n$30\r\n".as_slice(), &[b'x'; 30], b"\r\n$30\r\n"].concat();
        assert_eq!(decode(&bytes, small).1.as_deref(), Some("Protocol error: too big request"));
        let later = [b"*1\r\n$30\r\n".as_slice(), &[b'x'; 30], b"\r\n"].concat().repeat(3);
        assert_eq!(decode(&later, small).0.len(), 3, "each request counts for itself");
    }

    #[test]
    fn what_is_buffered_is_counted_until_it_is_given_out() {
        let (mut decoder, mut argv) = (RequestDecoder::new(), Argv::new());
        let bytes = b"*1\r\n$4\r\nPING\r\n";
        for (seen, byte) in bytes.iter().enumerate() {
            assert_eq!(decoder.buffered(), seen);
            decoder.extend(&[*byte]);
            assert_eq!(decoder.next(&mut argv), Ok(seen + 1 == bytes.len()));
        }
        assert_eq!(decoder.buffered(), 0);
        decoder.extend(b"PING\r\nPING\r\nPI");
        assert_eq!((decoder.next(&mut argv), decoder.buffered()), (Ok(true), 8));
    }

    #[test]
    fn once_warm_no_request_needs_new_memory() {
        let (mut decoder, mut argv) = (RequestDecoder::new(), Argv::new());
        let burst = b"*2\r\n$4\r\nECHO\r\n$11\r\nhello world\r\nPING\r\n".repeat(100);
        let mut warm = None;
        for _ in 0..50 {
            for piece in burst.chunks(1000) {
                decoder.extend(piece);
                while decoder.next(&mut argv).unwrap() {}
            }
            // The two Argvs may change places, so their sum is what must stay.
            let heap = argv.heap() + decoder.partial.heap() + decoder.input.heap();
            if let Some(before) = warm.replace(heap).filter(|&before| before != heap) {
                assert!(heap < before + 64, "{before} grew to {heap}");
            }
        }
    }

    #[test]
    fn a_large_argument_costs_its_length_once_and_nothing_afterwards() {
        let (mut decoder, mut argv) = (RequestDecoder::new(), Argv::new());
        let big = vec![b'x'; 4 * 1024 * 1024];
        decoder.extend(format!("*1\r\n${}\r\n", big.len()).as_bytes());
        for piece in big.chunks(1000) {
            decoder.extend(piece);
            assert_eq!(decoder.next(&mut argv), Ok(false));
            assert!(decoder.input.len() == 0 && decoder.input.heap() < 4096, "pieces pass through");
        }
        decoder.extend(b"\r\n");
        assert_eq!(decoder.next(&mut argv), Ok(true));
        assert_eq!(&argv[0], big);
        assert_eq!(decoder.next(&mut argv), Ok(false));
        assert!(argv.heap() + decoder.partial.heap() <= 2 * limits::BUFFER_KEPT);
        decoder.release();
        assert_eq!(decoder.partial.heap(), 0);
    }
}
