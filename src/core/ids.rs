//! Names of things inside the core. Ids are counted up and never reused, so an id that outlived its
//! owner finds nothing at the lookup: that is how late replies and late events die.

use crate::base::Alike;
use std::fmt;
use std::net::IpAddr;

/// Longest host: a DNS name's limit.
pub(super) const HOST_MAX: usize = 253;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);
    };
}

id!(/// A monitored master, from `SENTINEL MONITOR` to `SENTINEL REMOVE`.
    MasterId);
id!(/// One replica of one master; a switch of address makes new ones.
    ReplicaId);
id!(/// One peer Sentinel as seen under one master.
    PeerId);
id!(/// A link: the connections to one node, shared by all masters that see the same peer.
    LinkId);
id!(/// One connection attempt and what came of it. The shell maps it to a socket.
    ConnId);
id!(/// One script run.
    ScriptId);

/// The 40 hex characters that name a Sentinel (`myid`) or a server process (`run_id`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; 40]);

impl RunId {
    /// `None` unless the text is exactly 40 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<RunId> {
        let digits: [u8; 40] = text.try_into().ok()?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(RunId(digits))
    }

    /// Twenty random bytes, spelled in hex.
    #[must_use]
    pub fn from_entropy(bytes: [u8; 20]) -> RunId {
        let mut digits = [0u8; 40];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        RunId(digits)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hex digits are ASCII")
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", &self.as_str()[..8])
    }
}

/// Where a node lives: the host as the operator or the wire spelled it, its address when known, its port.
///
/// A numeric host always carries its `ip`; a name carries the last good one. Port 0 is a node that is never dialled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr {
    pub host: Box<str>,
    pub ip: Option<IpAddr>,
    pub port: u16,
}

/// False for what cannot be a host, or could be taken for something else where it is repeated (the file, the log, our
/// hello): empty or longer than a DNS name, anything but printable ASCII, a comma, a zone id.
pub(super) fn is_host(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'%');
    (1..=HOST_MAX).contains(&text.len()) && text.bytes().all(plain)
}

impl Addr {
    /// The address of a host as spelled; `ip` is filled when the host is numeric.
    #[must_use]
    pub fn new(host: &str, port: u16) -> Addr {
        Addr { ip: host.parse().ok(), host: host.into(), port }
    }

    /// The address as another tells it; `None` when its host is none, or its port 0.
    pub(super) fn told(host: &str, port: u16) -> Option<Addr> {
        (is_host(host) && port != 0).then(|| Addr::new(host, port))
    }

    /// True when the host is a name, not a numeric address.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.host.parse::<IpAddr>().is_err()
    }

    /// True when both mean one node: equal ports, and equal addresses (or, where one is unknown, equal spelling).
    #[must_use]
    pub fn same(&self, other: &Addr) -> bool {
        self.port == other.port
            && match (self.ip, other.ip) {
                (Some(a), Some(b)) => a == b,
                _ => self.host.alike(&*other.host),
            }
    }
}

/// `host:port`, an IPv6 address in brackets: the name of a replica.
impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}
