//! Telling systemd how we are: `sd_notify` without its library, one datagram to `$NOTIFY_SOCKET`.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// Sends `state` (lines of `NAME=value`) to whoever supervises us. True when somebody was told.
///
/// Without the environment variable nobody asked; a socket that does not take the message is the
/// supervisor's trouble, never a reason to stop.
pub fn notify(state: &str) -> bool {
    match std::env::var_os("NOTIFY_SOCKET") {
        Some(socket) => send(&socket, state),
        None => false,
    }
}

/// A name that begins with `@` lives in the abstract name space of Linux.
fn send(socket: &OsStr, state: &str) -> bool {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(Path::new(socket)),
    };
    let (Ok(address), Ok(from)) = (address, UnixDatagram::unbound()) else {
        return false;
    };
    // A full queue on the other side must not hold up the start.
    let _ = from.set_nonblocking(true);
    from.send_to_addr(state.as_bytes(), &address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_socket_get_the_message_and_a_missing_one_is_no_error() {
        let name = format!("watchfire-notify-{}", std::process::id());
        let abstract_end = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes()).unwrap()).unwrap();
        assert!(send(OsStr::new(&format!("@{name}")), "READY=1\n"));
        let mut bytes = [0; 64];
        assert_eq!(abstract_end.recv(&mut bytes).unwrap(), 8);

        let path = std::env::temp_dir().join(&name);
        let file_end = UnixDatagram::bind(&path).unwrap();
        assert!(send(path.as_os_str(), "STOPPING=1\n"));
        assert_eq!(file_end.recv(&mut bytes).unwrap(), 11);
        std::fs::remove_file(&path).unwrap();
        assert!(!send(path.as_os_str(), "READY=1\n"));
    }
}
