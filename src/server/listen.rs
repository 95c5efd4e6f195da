//! Where to listen: from the words of `bind` to sockets.
//!
//! `*` is every IPv4 address and `::*` every IPv6 one; a `-` in front makes an address optional, so that the
//! default `* -::*` works on machines without IPv6. Names are looked up once, at the start.

use crate::net::{Reactor, Token};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// An address that has to be listened on and cannot be.
#[derive(Debug)]
pub struct CannotListen {
    pub on: String,
    pub port: u16,
    pub why: String,
}

impl fmt::Display for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Could not listen on {} port {}: {}. ", self.on, self.port, self.why)?;
        f.write_str("Is the address one of this machine, and is no other process on that port?")
    }
}

/// Listens on every address of `binds`; an optional one may fail without a word.
pub fn listen(
    reactor: &mut Reactor,
    binds: &[String],
    port: u16,
    backlog: u32,
) -> Result<Vec<(Token, SocketAddr)>, CannotListen> {
    let mut listeners = Vec::new();
    for word in binds {
        let (optional, host) = match word.strip_prefix('-') {
            Some(host) => (true, host),
            None => (false, word.as_str()),
        };
        let fail = |why: io::Error| CannotListen { on: host.to_owned(), port, why: why.to_string() };
        match bind_one(reactor, host, port, backlog) {
            Ok(mut more) => listeners.append(&mut more),
            Err(why) if optional && is_absent(&why) => log::debug!("Not listening on {host}: {why}"),
            Err(why) => return Err(fail(why)),
        }
    }
    if listeners.is_empty() {
        let why = "no address is left to listen on".to_owned();
        return Err(CannotListen { on: binds.join(" "), port, why });
    }
    Ok(listeners)
}

fn bind_one(reactor: &mut Reactor, host: &str, port: u16, backlog: u32) -> io::Result<Vec<(Token, SocketAddr)>> {
    addresses(host, port)?.into_iter().map(|address| Ok((reactor.listen(address, backlog)?, address))).collect()
}

/// The addresses meant by one word of `bind`.
pub fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let ip = match host {
        "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        "::*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => match host.parse() {
            Ok(ip) => ip,
            // Names, and numeric addresses with a zone (`fe80::1%eth0`), are the system's to read.
            Err(_) => {
                let mut found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
                found.sort_unstable();
                found.dedup();
                return Ok(found);
            }
        },
    };
    Ok(vec![SocketAddr::new(ip, port)])
}

/// The machine has no such address, or no such family. A port that is taken is another matter.
fn is_absent(why: &io::Error) -> bool {
    why.kind() == io::ErrorKind::AddrNotAvailable
        || matches!(
            why.raw_os_error(),
            Some(
                libc::EAFNOSUPPORT
                    | libc::EPROTONOSUPPORT
                    | libc::ESOCKTNOSUPPORT
                    | libc::EPFNOSUPPORT
                    | libc::ENOPROTOOPT
            )
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_bind_mean_addresses() {
        let one = |host: &str| addresses(host, 7).unwrap()[0].to_string();
        assert_eq!(one("*"), "0.0.0.0:7");
        assert_eq!(one("::*"), "[::]:7");
        assert_eq!(one("127.0.0.1"), "127.0.0.1:7");
        assert_eq!(one("::1"), "[::1]:7");
        assert!(addresses("localhost", 7).unwrap().iter().all(|address| address.ip().is_loopback()));
        assert!(addresses("no such name", 7).is_err());
    }
}
