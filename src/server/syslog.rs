//! The log on its way to syslog: one datagram to `/dev/log` for each line, in the form that C's `syslog` gives it.
//!
//! ```text
//! <133>Nov 30 13:14:15 redis[4711]: +sdown master mymaster 127.0.0.1 6379
//! ```
//!
//! The log file (or standard output) gets every line as well, as with redis-sentinel.

use super::sys::LocalTime;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

pub const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[derive(Debug)]
pub struct Syslog {
    path: PathBuf,
    ident: String,
    facility: u8,
    socket: Option<UnixDatagram>,
}

impl Syslog {
    /// `facility` is one of the words that the table of directives allows.
    #[must_use]
    pub fn new(ident: &str, facility: &str) -> Syslog {
        Syslog { path: "/dev/log".into(), ident: ident.to_owned(), facility: number_of(facility), socket: None }
    }

    /// Sends one line, whose control characters are escaped already. What syslog does not take is lost: whoever reads it
    /// slowly must not hold up a Sentinel. A syslog that was started anew is found again with the next line.
    pub fn send(&mut self, pid: u32, at: LocalTime, level: log::Level, text: &str) {
        let severity = match level {
            log::Level::Error | log::Level::Warn => libc::LOG_WARNING,
            log::Level::Info => libc::LOG_NOTICE,
            log::Level::Debug => libc::LOG_INFO,
            log::Level::Trace => libc::LOG_DEBUG,
        };
        let line = format!(
            "<{}>{} {:2} {:02}:{:02}:{:02} {}[{pid}]: {text}",
            i32::from(self.facility) * 8 + severity,
            MONTHS[at.month],
            at.day,
            at.hour,
            at.minute,
            at.second,
            self.ident,
        );
        for _ in 0..2 {
            let socket = match self.socket.take() {
                Some(socket) => socket,
                None => match self.connect() {
                    Ok(socket) => socket,
                    Err(_) => return,
                },
            };
            match socket.send(line.as_bytes()) {
                // Too long, or the queue is full: a new connection would change nothing.
                Err(why) if why.kind() != io::ErrorKind::WouldBlock && why.raw_os_error() != Some(libc::EMSGSIZE) => {}
                _ => {
                    self.socket = Some(socket);
                    return;
                }
            }
        }
    }

    fn connect(&self) -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(&self.path)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }
}

fn number_of(facility: &str) -> u8 {
    match facility.strip_prefix("local").and_then(|digit| digit.parse::<u8>().ok()) {
        Some(number) => 16 + number,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_datagram_and_a_syslog_that_comes_back_is_found_again() {
        let path = std::env::temp_dir().join(format!("watchfire-syslog-{}", std::process::id()));
        let at = LocalTime { year: 2026, month: 10, day: 3, hour: 13, minute: 4, second: 5 };
        let mut syslog = Syslog { path: path.clone(), ..Syslog::new("sentinel", "local7") };
        let mut say = |level, text: &str| syslog.send(42, at, level, text);
        let heard = |socket: &UnixDatagram| {
            let mut bytes = [0; 256];
            let length = socket.recv(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..length]).into_owned()
        };
        say(log::Level::Warn, "nobody is there yet");
        let socket = UnixDatagram::bind(&path).unwrap();
        say(log::Level::Warn, "one");
        assert_eq!(heard(&socket), "<188>Nov  3 13:04:05 sentinel[42]: one");
        drop(socket);
        std::fs::remove_file(&path).unwrap();
        let socket = UnixDatagram::bind(&path).unwrap();
        say(log::Level::Info, "two");
        say(log::Level::Debug, "three");
        say(log::Level::Trace, "four");
        for (number, text) in [(189, "two"), (190, "three"), (191, "four")] {
            assert_eq!(heard(&socket), format!("<{number}>Nov  3 13:04:05 sentinel[42]: {text}"));
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn facilities_have_the_numbers_of_c() {
        assert_eq!([number_of("user"), number_of("local0"), number_of("local7")], [1, 16, 23]);
    }
}
