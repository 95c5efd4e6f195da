//! The log as datagrams to the system's logger (RFC 3164), without libc's hidden state.

use super::sys;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// Where the loggers of this machine listen.
const SOCKET: &str = "/dev/log";

#[derive(Debug)]
pub struct Syslog {
    path: PathBuf,
    socket: Option<UnixDatagram>,
    ident: String,
    facility: u8,
}

impl Syslog {
    /// `facility` is `user` or one of `local0` … `local7`.
    #[must_use]
    pub fn new(ident: &str, facility: &str) -> Syslog {
        Syslog::at(SOCKET.into(), ident, facility)
    }

    fn at(path: PathBuf, ident: &str, facility: &str) -> Syslog {
        let socket = UnixDatagram::unbound().ok();
        if let Some(socket) = &socket {
            // A logger that does not keep up costs lines, not time.
            let _ = socket.set_nonblocking(true);
        }
        let local =
            facility.strip_prefix("local").and_then(|digit| digit.parse::<u8>().ok()).filter(|&digit| digit < 8);
        Syslog { path, socket, ident: ident.to_owned(), facility: local.map_or(1, |digit| 16 + digit) }
    }

    /// Hands one message over; whether anybody takes it is not our concern. `wall` counts seconds from 1970.
    pub fn say(&self, level: log::Level, wall: u64, text: &str) {
        let severity = match level {
            log::Level::Error | log::Level::Warn => 4,
            log::Level::Info => 5,
            log::Level::Debug => 6,
            log::Level::Trace => 7,
        };
        let at = sys::local_time(i64::try_from(wall).unwrap_or(0));
        let (priority, month, ident, pid) =
            (self.facility * 8 + severity, sys::MONTHS[at.month], &self.ident, std::process::id());
        let message = format!(
            "<{priority}>{month} {:2} {:02}:{:02}:{:02} {ident}[{pid}]: {text}",
            at.day, at.hour, at.minute, at.second
        );
        if let Some(socket) = &self.socket {
            let _ = socket.send_to(message.as_bytes(), &self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_priority_time_name_and_text() {
        let path = std::env::temp_dir().join(format!("watchfire-syslog-{}", std::process::id()));
        let logger = UnixDatagram::bind(&path).unwrap();
        let syslog = Syslog::at(path.clone(), "redis", "local3");
        syslog.say(log::Level::Warn, 1_000_000_000, "+sdown");
        let mut bytes = [0; 256];
        let length = logger.recv(&mut bytes).unwrap();
        std::fs::remove_file(&path).unwrap();
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        // (16 + 3) * 8 + 4
        assert!(text.starts_with("<156>Sep "), "{text}");
        assert!(text.ends_with(&format!(" redis[{}]: +sdown", std::process::id())), "{text}");
        // Nobody listens any more.
        syslog.say(log::Level::Info, 0, "x");
        assert_eq!(Syslog::new("redis", "user").facility, 1);
    }
}
