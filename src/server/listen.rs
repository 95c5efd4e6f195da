//! Where to listen: from the words of `bind` to sockets.
//!
//! `*` is every IPv4 address and `::*` every IPv6 one; a `-` in front makes an address optional, so that the
//! default `* -::*` works on machines without IPv6. Names are looked up once, at the start.
//!
//! The Unix socket is a file as well: one that a dead process left behind is replaced, one that somebody listens on is not,
//! and ours goes when we go.

use super::sys;
use crate::base::SortedSet;
use crate::net::{Reactor, Token, is_abandoned};
use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

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

/// What the words of `bind` mean on one port.
#[derive(Debug, Default)]
pub struct Meant {
    /// The words, for an error.
    on: String,
    port: u16,
    /// Each with the word that it comes from, and whether it may be missing.
    addresses: Vec<(SocketAddr, String, bool)>,
}

/// Finds out what is meant; no port is opened. On port 0, or without words, nothing is.
pub fn meant(binds: &[String], port: u16) -> Result<Meant, CannotListen> {
    let mut meant = Meant { on: binds.join(" "), port, addresses: Vec::new() };
    if port == 0 || binds.is_empty() {
        return Ok(meant);
    }
    for word in binds {
        let (optional, host) = match word.strip_prefix('-') {
            Some(host) => (true, host),
            None => (false, word.as_str()),
        };
        match addresses(host, port) {
            Ok(found) => meant.addresses.extend(found.into_iter().map(|address| (address, host.to_owned(), optional))),
            Err(why) if optional && is_absent(&why) => {}
            Err(why) => return Err(CannotListen { on: host.to_owned(), port, why: why.to_string() }),
        }
    }
    if meant.addresses.is_empty() { Err(meant.nothing_left()) } else { Ok(meant) }
}

impl Meant {
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.addresses.iter().map(|(address, ..)| *address)
    }

    /// Listens on all of it; what is optional may fail without a word.
    pub fn listen(&self, reactor: &mut Reactor, backlog: u32) -> Result<Vec<(Token, SocketAddr)>, CannotListen> {
        let mut listeners = Vec::new();
        // Each address for itself: what is bound must be known to us, whatever becomes of the next one of the same name.
        for &(address, ref host, optional) in &self.addresses {
            match reactor.listen(address, backlog) {
                Ok(token) => listeners.push((token, address)),
                Err(why) if optional && is_absent(&why) => log::debug!("Not listening on {address}: {why}"),
                Err(why) => return Err(CannotListen { on: host.clone(), port: self.port, why: why.to_string() }),
            }
        }
        if listeners.is_empty() && !self.addresses.is_empty() { Err(self.nothing_left()) } else { Ok(listeners) }
    }

    fn nothing_left(&self) -> CannotListen {
        CannotListen { on: self.on.clone(), port: self.port, why: "no address is left to listen on".to_owned() }
    }
}

/// The addresses meant by one word of `bind`.
fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let ip = match host {
        "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        "::*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => match host.parse() {
            Ok(ip) => ip,
            // Names, and numeric addresses with a zone (`fe80::1%eth0`), are the system's to read.
            Err(_) => {
                let found: SortedSet<SocketAddr> = (host, port).to_socket_addrs()?.collect();
                return Ok(found.iter().copied().collect());
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

/// The file of the Unix socket that we listen on.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: Option<(u64, u64)>,
}

/// Who may connect to a Unix socket.
#[derive(Clone, Copy, Debug)]
pub struct SocketRights {
    /// 0: as the umask has it.
    pub mode: u32,
    /// The group of the file; `None` is ours.
    pub group: Option<u32>,
}

impl SocketFile {
    pub fn listen(reactor: &mut Reactor, path: &Path, rights: SocketRights, backlog: u32) -> io::Result<SocketFile> {
        let SocketRights { mode, group } = rights;
        let path = std::path::absolute(path)?;
        remove_abandoned(&path)?;
        let socket = if mode == 0 {
            UnixListener::bind(&path)?
        } else {
            // There is no moment in which anybody else could connect.
            let socket = sys::with_new_files(mode, || UnixListener::bind(&path))?;
            fs::set_permissions(&path, Permissions::from_mode(mode))?;
            socket
        };
        if group.is_some() {
            chown(&path, None, group)?;
        }
        reactor.listen_unix(socket, backlog)?;
        Ok(SocketFile { identity: identity(&path), path })
    }

    /// Removes the file, unless it is another's by now.
    pub fn remove(&self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

fn remove_abandoned(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket && is_abandoned(path) {
        return fs::remove_file(path);
    }
    Ok(())
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

    #[test]
    fn only_an_abandoned_socket_is_taken_over_and_only_our_own_file_is_removed() {
        let path = std::env::temp_dir().join(format!("watchfire-listen-{}", std::process::id()));
        let mut reactor = Reactor::new(sys::clock).unwrap();
        let group = Some(fs::metadata(std::env::temp_dir()).unwrap().gid()).filter(|_| sys::is_root());
        let rights = SocketRights { mode: 0o640, group };
        let mut listen = || SocketFile::listen(&mut reactor, &path, rights, 5);
        fs::write(&path, "not a socket").unwrap();
        assert_eq!(listen().unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read(&path).unwrap(), b"not a socket");
        fs::remove_file(&path).unwrap();

        drop(UnixListener::bind(&path).unwrap());
        let ours = listen().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(listen().unwrap_err().kind(), io::ErrorKind::AddrInUse, "somebody listens there: we");

        let aside = path.with_extension("aside");
        fs::rename(&path, &aside).unwrap();
        fs::write(&path, "another's").unwrap();
        ours.remove();
        assert!(path.exists());
        fs::rename(&aside, &path).unwrap();
        ours.remove();
        assert!(!path.exists());
    }
}
