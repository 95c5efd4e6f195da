//! Telling whoever supervises us how we are: systemd, by `sd_notify` without its library (one datagram to
//! `$NOTIFY_SOCKET`), or upstart, by stopping until it lets us go on.

use super::sys;
use crate::base::Millis;
use crate::config::Supervised;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// Who waits for our readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervisor {
    Nobody,
    Systemd,
    Upstart,
}

impl Supervisor {
    /// Whom `supervised` means in this environment. Beside it a sentence for the log, when nobody is there whom the file
    /// names: that is no reason not to start.
    #[must_use]
    pub fn find(wanted: Supervised) -> (Supervisor, Option<String>) {
        let is_set = |name: &str| std::env::var_os(name).is_some();
        let (systemd, upstart) = (is_set("NOTIFY_SOCKET"), is_set("UPSTART_JOB"));
        let missing =
            |what: &str, name: &str| Some(format!("supervised {what}: nobody is told, since {name} is not set."));
        match wanted {
            Supervised::No => (Supervisor::Nobody, None),
            Supervised::Systemd if systemd => (Supervisor::Systemd, None),
            Supervised::Systemd => (Supervisor::Nobody, missing("systemd", "NOTIFY_SOCKET")),
            Supervised::Upstart if upstart => (Supervisor::Upstart, None),
            Supervised::Upstart => (Supervisor::Nobody, missing("upstart", "UPSTART_JOB")),
            Supervised::Auto if upstart => (Supervisor::Upstart, None),
            Supervised::Auto if systemd => (Supervisor::Systemd, None),
            Supervised::Auto => (Supervisor::Nobody, None),
        }
    }

    /// As INFO's `process_supervised` has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Supervisor::Nobody => "no",
            Supervisor::Systemd => "systemd",
            Supervisor::Upstart => "upstart",
        }
    }

    /// Clients can come. Under upstart (`expect stop`) this returns when it has sent SIGCONT.
    pub fn ready(self) {
        match self {
            Supervisor::Nobody => {}
            Supervisor::Systemd => {
                notify("STATUS=Ready to accept connections\n");
                notify("READY=1\n");
            }
            Supervisor::Upstart => {
                log::info!("Stopping to tell upstart that we are ready; it sends SIGCONT.");
                sys::stop_ourselves();
            }
        }
    }

    /// The end has begun.
    pub fn stopping(self) {
        if self == Supervisor::Systemd {
            notify("STOPPING=1\n");
        }
    }
}

/// The sign of life that systemd asks for with `WatchdogSec=`, given only while the loop turns.
#[derive(Debug)]
pub struct Watchdog {
    /// Half of the time after which systemd takes us for hung, in ms.
    period: u64,
    due: Millis,
}

impl Watchdog {
    /// None when nobody asked for it, or somebody else was asked: a child must not answer for its parent.
    #[must_use]
    pub fn find(supervisor: Supervisor, now: Millis) -> Option<Watchdog> {
        let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap_or(0));
        let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let micros = number("WATCHDOG_USEC").filter(|&micros| micros > 0)?;
        let period = (micros / 2000).max(1);
        (supervisor == Supervisor::Systemd && ours).then_some(Watchdog { period, due: now + period })
    }

    /// To be called in every turn.
    pub fn beat(&mut self, now: Millis) {
        if self.due <= now {
            self.due = now + self.period;
            notify("WATCHDOG=1\n");
        }
    }

    /// When the loop must turn at the latest.
    #[must_use]
    pub fn due(&self) -> Millis {
        self.due
    }
}

/// Sends `state` (lines of `NAME=value`) to `$NOTIFY_SOCKET`. A socket that does not take the message is the supervisor's
/// trouble, never a reason to stop.
fn notify(state: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        send(&socket, state);
    }
}

/// A name that begins with `@` lives in the abstract name space of Linux. True when the message was taken.
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
