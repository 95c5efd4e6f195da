//! Replies as they are on the wire: every type keeps its own mark, so that `$-1`, `*-1` and `_` are three things.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take before it counts as none.
const PATIENCE: Duration = Duration::from_secs(10);

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `+`, `-`, `:`, `_`, `,`, `#`, `(`
    Line(u8, Vec<u8>),
    /// `$`, `=`, `!`; None is a length of -1.
    Bulk(u8, Option<Vec<u8>>),
    /// `*`, `~`, `>`, `%`, `|`; None is a count of -1. A map holds keys and values in turn.
    Many(u8, Option<Vec<Wire>>),
}

impl Wire {
    /// The reply at the start of `bytes` and its length; None when it is not all there.
    ///
    /// # Panics
    /// When it is no reply.
    fn parse(bytes: &[u8]) -> Option<(Wire, usize)> {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let (mark, text) = (bytes[0], &bytes[1..end]);
        let mut at = end + 2;
        let length = || {
            let text = std::str::from_utf8(text).expect("a length");
            text.parse::<i64>().unwrap_or_else(|_| panic!("{text:?} is no length: {}", bytes.escape_ascii()))
        };
        let wire = match mark {
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => Wire::Line(mark, text.to_vec()),
            b'$' | b'=' | b'!' => match usize::try_from(length()) {
                Err(_) => Wire::Bulk(mark, None),
                Ok(length) => {
                    let string = bytes.get(at..at + length + 2)?;
                    at += length + 2;
                    assert!(string.ends_with(b"\r\n"), "a string without its end: {}", bytes.escape_ascii());
                    Wire::Bulk(mark, Some(string[..length].to_vec()))
                }
            },
            b'*' | b'~' | b'>' | b'%' | b'|' => match usize::try_from(length()) {
                Err(_) => Wire::Many(mark, None),
                Ok(count) => {
                    let mut items = Vec::new();
                    for _ in 0..if matches!(mark, b'%' | b'|') { count * 2 } else { count } {
                        let (item, width) = Wire::parse(&bytes[at..])?;
                        items.push(item);
                        at += width;
                    }
                    Wire::Many(mark, Some(items))
                }
            },
            _ => panic!("no reply begins so: {}", bytes.escape_ascii()),
        };
        Some((wire, at))
    }

    /// The bytes it came as, if those were in the one canonical form.
    fn bytes(&self, out: &mut Vec<u8>) {
        match self {
            Wire::Line(mark, text) => {
                out.push(*mark);
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            Wire::Bulk(mark, None) | Wire::Many(mark, None) => {
                out.push(*mark);
                out.extend_from_slice(b"-1\r\n");
            }
            Wire::Bulk(mark, Some(text)) => {
                out.push(*mark);
                out.extend_from_slice(format!("{}\r\n", text.len()).as_bytes());
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            Wire::Many(mark, Some(items)) => {
                let count = if matches!(mark, b'%' | b'|') { items.len() / 2 } else { items.len() };
                out.push(*mark);
                out.extend_from_slice(format!("{count}\r\n").as_bytes());
                items.iter().for_each(|item| item.bytes(out));
            }
        }
    }

    /// The elements of an aggregate.
    pub fn items(&self) -> &[Wire] {
        match self {
            Wire::Many(_, Some(items)) => items,
            _ => &[],
        }
    }

    pub fn mark(&self) -> char {
        match self {
            Wire::Line(mark, _) | Wire::Bulk(mark, _) | Wire::Many(mark, _) => char::from(*mark),
        }
    }

    /// The text of a line or a string.
    pub fn text(&self) -> String {
        match self {
            Wire::Line(_, text) | Wire::Bulk(_, Some(text)) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        }
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Wire::Line(b'-', _))
    }

    /// On one line, for people and for patterns: nothing that differs on the wire looks the same.
    pub fn show(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Wire::Line(mark, text) => {
                out.push(char::from(*mark));
                printable(text, out);
            }
            Wire::Bulk(mark, Some(text)) => {
                out.push(char::from(*mark));
                out.push('"');
                printable(text, out);
                out.push('"');
            }
            Wire::Bulk(mark, None) | Wire::Many(mark, None) => {
                let _ = write!(out, "{}nil", char::from(*mark));
            }
            Wire::Many(mark, Some(items)) => {
                let _ = write!(out, "{}{{", char::from(*mark));
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { " " } else { "" });
                    item.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Bytes that are no printable ASCII as escapes, all others as they are.
fn printable(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' => out.push(char::from(*byte)),
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            other => {
                let _ = write!(out, "\\x{other:02x}");
            }
        }
    }
}

/// What came back for one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub replies: Vec<Wire>,
    /// `closed`, `silent`, or empty when all went on.
    pub end: &'static str,
}

/// One connection to one Sentinel.
pub struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
    pub closed: bool,
}

impl Line {
    /// # Panics
    /// When nobody listens there.
    pub fn open(port: u16) -> Line {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the Sentinel takes connections");
        stream.set_nodelay(true).expect("no delay");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time-out");
        Line { stream, buffer: Vec::new(), closed: false }
    }

    pub fn local_port(&self) -> u16 {
        self.stream.local_addr().expect("an address").port()
    }

    /// A server that closes at the first wrong byte may be gone before the last one; `receive` then tells.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Nothing more will be sent.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// All replies up to the fence, which is left out; up to the end of the stream when there is none.
    pub fn receive(&mut self, fence: Option<&str>) -> Answer {
        let mut answer = Answer::default();
        loop {
            while let Some((wire, width)) = (!self.buffer.is_empty()).then(|| Wire::parse(&self.buffer)).flatten() {
                let mut again = Vec::with_capacity(width);
                wire.bytes(&mut again);
                let shown = self.buffer[..width].escape_ascii().to_string();
                assert!(again == self.buffer[..width], "counts and lengths have one form: {shown}");
                self.buffer.drain(..width);
                let is_fence = fence.is_some_and(|fence| {
                    wire.is_error() && wire.text().starts_with(&format!("ERR unknown command '{fence}'"))
                });
                if is_fence {
                    return answer;
                }
                answer.replies.push(wire);
            }
            let mut bytes = [0; 16 * 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => answer.end = "closed",
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => answer.end = "closed",
                Err(_) => answer.end = "silent",
            }
            if !answer.end.is_empty() {
                self.closed = true;
                return answer;
            }
        }
    }

    /// One request of plain words and its one reply, beside the script.
    pub fn ask(&mut self, words: &[&str]) -> Wire {
        const FENCE: &str = "beside-the-script";
        let mut bytes = Vec::new();
        watchfire::resp::request(&mut bytes, &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        self.send(&bytes);
        self.send(format!("{FENCE}\r\n").as_bytes());
        let mut answer = self.receive(Some(FENCE));
        assert!(answer.replies.len() == 1 && answer.end.is_empty(), "{words:?} was answered {answer:?}");
        answer.replies.remove(0)
    }
}
