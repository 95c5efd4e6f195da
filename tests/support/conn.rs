//! A blocking client for tests: one command, one reply, and events with the moment of their arrival.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use watchfire::resp::{Reply, ReplyDecoder, request};

use super::ports;

/// How long a reply may take before the test is told that none comes.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Conn {
    stream: TcpStream,
    decoder: ReplyDecoder,
}

impl Conn {
    /// Connects to a server by its port; RESP2.
    ///
    /// # Errors
    /// Nobody listens there, or the connection is not taken in time.
    pub fn open(port: u16) -> io::Result<Conn> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from((ports::host(port), port)), PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Conn { stream, decoder: ReplyDecoder::new() })
    }

    /// Connects, or fails the test.
    ///
    /// # Panics
    /// When nobody listens there.
    #[must_use]
    pub fn to(port: u16) -> Conn {
        Conn::open(port).unwrap_or_else(|error| panic!("cannot connect to port {port}: {error}"))
    }

    /// The same connection speaking RESP3.
    ///
    /// # Panics
    /// When the server does not.
    #[must_use]
    pub fn resp3(mut self) -> Conn {
        let hello = self.cmd(&["HELLO", "3"]);
        assert!(matches!(hello, Reply::Map(_)), "HELLO 3 was answered {hello:?}");
        self
    }

    /// Sends one command and waits for its reply.
    ///
    /// # Panics
    /// When the connection fails or no reply comes in time.
    pub fn cmd(&mut self, args: &[&str]) -> Reply {
        self.try_cmd(args).unwrap_or_else(|error| panic!("{args:?}: {error}"))
    }

    /// As [`Conn::cmd`], for servers that may be dead.
    ///
    /// # Errors
    /// The connection fails, no reply comes in time, or it is no RESP.
    pub fn try_cmd(&mut self, args: &[&str]) -> io::Result<Reply> {
        self.send(args)?;
        self.receive()
    }

    /// Sends without waiting for a reply.
    ///
    /// # Errors
    /// The connection fails.
    pub fn send(&mut self, args: &[&str]) -> io::Result<()> {
        let mut bytes = Vec::new();
        request(&mut bytes, &args.iter().map(|arg| arg.as_bytes()).collect::<Vec<_>>());
        self.send_raw(&bytes)
    }

    /// Sends bytes as they are: inline commands, halves of requests, rubbish.
    ///
    /// # Errors
    /// The connection fails.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next reply or message.
    ///
    /// # Errors
    /// The connection fails (`UnexpectedEof`: closed by the server), nothing comes in time, or it is no RESP.
    pub fn receive(&mut self) -> io::Result<Reply> {
        let mut bytes = [0; 16 * 1024];
        loop {
            let decoded = self.decoder.next().map_err(|error| io::Error::other(error.to_string()))?;
            if let Some(reply) = decoded {
                return Ok(reply);
            }
            match self.stream.read(&mut bytes)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.decoder.extend(&bytes[..count]),
            }
        }
    }

    /// How long [`Conn::receive`] waits; None: for ever.
    ///
    /// # Panics
    /// On a wait of zero.
    pub fn set_patience(&self, patience: Option<Duration>) {
        self.stream.set_read_timeout(patience).expect("a time-out above zero");
    }

    #[must_use]
    pub fn local_port(&self) -> u16 {
        self.stream.local_addr().map_or(0, |addr| addr.port())
    }
}

/// One command on a connection of its own; None when the server is dead, silent or refuses.
#[must_use]
pub fn ask(port: u16, args: &[&str]) -> Option<Reply> {
    let reply = Conn::open(port).and_then(|mut conn| conn.try_cmd(args)).ok()?;
    (!matches!(reply, Reply::Error(_))).then_some(reply)
}

/// A reply as text: strings as they are, numbers in digits, nil and aggregates empty.
#[must_use]
pub fn text(reply: &Reply) -> String {
    match reply {
        Reply::Simple(bytes) | Reply::Error(bytes) | Reply::Bulk(bytes) | Reply::Double(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        Reply::Integer(number) => number.to_string(),
        Reply::Boolean(truth) => truth.to_string(),
        Reply::Nil | Reply::Array(_) | Reply::Map(_) | Reply::Push(_) => String::new(),
    }
}

/// The elements of an array or push; of anything else none.
#[must_use]
pub fn items(reply: &Reply) -> &[Reply] {
    match reply {
        Reply::Array(items) | Reply::Push(items) => items,
        _ => &[],
    }
}

/// The elements of an array as text.
#[must_use]
pub fn texts(reply: &Reply) -> Vec<String> {
    items(reply).iter().map(text).collect()
}

/// A RESP3 map, or a flat array of names and values.
#[must_use]
pub fn map(reply: &Reply) -> BTreeMap<String, String> {
    match reply {
        Reply::Map(pairs) => pairs.iter().map(|(name, value)| (text(name), text(value))).collect(),
        other => items(other).chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
    }
}

/// A list of maps, as `SENTINEL MASTERS` and its like answer.
#[must_use]
pub fn maps(reply: &Reply) -> Vec<BTreeMap<String, String>> {
    items(reply).iter().map(map).collect()
}

/// The fields of an INFO text.
#[must_use]
pub fn info(reply: &Reply) -> BTreeMap<String, String> {
    let text = text(reply);
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// One message of a subscription and when it came.
#[derive(Clone, Debug)]
pub struct Event {
    pub at: Instant,
    pub channel: String,
    pub payload: String,
}

/// The events of one Sentinel (or server), collected by a thread from the subscription on.
pub struct Events {
    seen: Arc<(Mutex<Vec<Event>>, Condvar)>,
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Events {
    /// Subscribes to the channels that match one of `patterns`, and returns when the server has confirmed it.
    ///
    /// # Panics
    /// When the server cannot be reached or refuses.
    #[must_use]
    pub fn subscribe(port: u16, patterns: &[&str]) -> Events {
        let mut conn = Conn::to(port);
        let mut words = vec!["PSUBSCRIBE"];
        words.extend(patterns);
        conn.send(&words).expect("a subscription can be sent");
        for _ in patterns {
            let answer = conn.receive().expect("a subscription is confirmed");
            assert!(!matches!(answer, Reply::Error(_)), "PSUBSCRIBE was answered {answer:?}");
        }
        conn.set_patience(None);
        let stream = conn.stream.try_clone().expect("a second handle of the socket");
        let seen: Arc<(Mutex<Vec<Event>>, Condvar)> = Arc::default();
        let shared = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            while let Ok(message) = conn.receive() {
                let at = Instant::now();
                let [kind, _, channel, payload] = items(&message) else { continue };
                if text(kind) == "pmessage" {
                    let event = Event { at, channel: text(channel), payload: text(payload) };
                    shared.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
                    shared.1.notify_all();
                }
            }
        });
        Events { seen, stream, thread: Some(thread) }
    }

    /// All that came so far, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Event> {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first event on this channel whose payload contains `part`, if it has come.
    #[must_use]
    pub fn find(&self, channel: &str, part: &str) -> Option<Event> {
        self.all().into_iter().find(|event| event.channel == channel && event.payload.contains(part))
    }

    /// Waits for an event on this channel whose payload contains `part`; one that came earlier counts.
    ///
    /// # Panics
    /// When it does not come within `limit`; the message lists what came instead.
    pub fn expect(&self, limit: Duration, channel: &str, part: &str) -> Event {
        let deadline = Instant::now() + limit;
        let mut seen = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(event) = seen.iter().find(|event| event.channel == channel && event.payload.contains(part)) {
                return event.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let came: Vec<_> = seen.iter().map(|event| format!("{} {}", event.channel, event.payload)).collect();
                drop(seen);
                panic!("no {channel} with {part:?} within {limit:?}; what came:\n  {}", came.join("\n  "));
            }
            seen = self.seen.1.wait_timeout(seen, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // The thread's read ends with the socket.
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
