//! The log: redis's line format through `log` and `env_logger`.
//!
//! ```text
//! 4711:X 30 Nov 2026 13:14:15.016 # +sdown master mymaster 127.0.0.1 6379
//! ```
//!
//! `X` is the role letter of a Sentinel; the sign before the text is the level: `.` debug, `-` verbose,
//! `*` notice, `#` warning. Redis has two levels below notice and `log` has two below info, so verbose is
//! [`log::Level::Debug`] and debug is [`log::Level::Trace`]. `log-format` and `log-timestamp-format` give the shapes of
//! Valkey 9 instead.
//!
//! **Rotation.** redis-sentinel opens the log file anew for every line, so that logrotate may rename it and
//! expect the next line in a new file, without a signal. Here the file stays open (`O_APPEND`, so that
//! `copytruncate` works too) and one `stat` before each line finds out whether the name still means that
//! file; only when it does not is the file opened again. Same visible behaviour, a third of the system
//! calls, and a directory that became unwritable does not silence the log.

use super::sys;
use super::syslog::Syslog;
use crate::config::{LogLevel, LogStyle, TimeStyle};
use crate::core::Level;
use log::LevelFilter;
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Starts the log of the process: on standard output, or in `file`; and to `syslog` as well, if given.
pub fn start(file: Option<&Path>, syslog: Option<Syslog>, style: LogStyle, level: LogLevel) -> io::Result<()> {
    let target = match file {
        None => env_logger::Target::Stdout,
        Some(path) => env_logger::Target::Pipe(Box::new(LogFile::open(path)?)),
    };
    env_logger::Builder::new()
        // What the packages that we use tell of their insides is nothing to an operator.
        .filter_level(LevelFilter::Off)
        .filter_module(env!("CARGO_CRATE_NAME"), LevelFilter::Trace)
        .target(target)
        .format(move |out, record| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let text = record.args().to_string();
            let text = printable(&text);
            let line = line(style, std::process::id(), now.as_millis(), record.level(), &text);
            if let Some(syslog) = &syslog {
                syslog.say(record.level(), now.as_secs(), &text);
            }
            out.write_all(line.as_bytes())
        })
        .try_init()
        .map_err(io::Error::other)?;
    set_level(level);
    Ok(())
}

/// Whether a log file could be opened, without making one.
pub fn may_write(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    match OpenOptions::new().append(true).open(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match std::fs::metadata(folder) {
                Ok(_) if sys::may_write_in(folder) => Ok(()),
                Ok(_) => Err(io::ErrorKind::PermissionDenied.into()),
                Err(why) => Err(why),
            }
        }
        other => other.map(drop),
    }
}

/// Logs from now on what is at least as important as `level`.
pub fn set_level(level: LogLevel) {
    log::set_max_level(match level {
        LogLevel::Debug => LevelFilter::Trace,
        LogLevel::Verbose => LevelFilter::Debug,
        LogLevel::Notice => LevelFilter::Info,
        LogLevel::Warning => LevelFilter::Warn,
        LogLevel::Nothing => LevelFilter::Off,
    });
}

/// The level of `log` for one of the core's.
#[must_use]
pub fn level_of(level: Level) -> log::Level {
    match level {
        Level::Debug => log::Level::Trace,
        Level::Verbose => log::Level::Debug,
        Level::Notice => log::Level::Info,
        Level::Warning => log::Level::Warn,
    }
}

/// One finished line. `wall_ms` counts from 1970.
fn line(style: LogStyle, pid: u32, wall_ms: u128, level: log::Level, text: &str) -> String {
    let (sign, word) = match level {
        log::Level::Error | log::Level::Warn => ('#', "warning"),
        log::Level::Info => ('*', "notice"),
        log::Level::Debug => ('-', "info"),
        log::Level::Trace => ('.', "debug"),
    };
    let time = time(style.time, wall_ms);
    if style.logfmt {
        // Valkey's way out of quoting: a double quote becomes a single one.
        let text = text.replace('"', "'");
        return format!("pid={pid} role=sentinel timestamp=\"{time}\" level={word} message=\"{text}\"\n");
    }
    format!("{pid}:X {time} {sign} {text}\n")
}

fn time(style: TimeStyle, wall_ms: u128) -> String {
    if style == TimeStyle::Milliseconds {
        return wall_ms.to_string();
    }
    let at = sys::local_time(i64::try_from(wall_ms / 1000).unwrap_or(0));
    let of_day = format_args!("{:02}:{:02}:{:02}.{:03}", at.hour, at.minute, at.second, wall_ms % 1000);
    if style == TimeStyle::Legacy {
        return format!("{:02} {} {} {of_day}", at.day, sys::MONTHS[at.month], at.year);
    }
    let sign = if at.offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (at.offset.abs() / 60, at.offset.abs() % 60);
    format!("{}-{:02}-{:02}T{of_day}{sign}{hours:02}:{minutes:02}", at.year, at.month + 1, at.day)
}

/// What peers and clients send ends up in the log: a line break of theirs must not forge a line of ours.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if letter.is_control() {
            clean.extend(letter.escape_default());
        } else {
            clean.push(letter);
        }
    }
    Cow::Owned(clean)
}

/// A log file that follows its name.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    /// Device and inode of the open file.
    identity: (u64, u64),
}

impl LogFile {
    fn open(path: &Path) -> io::Result<LogFile> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let meta = file.metadata()?;
        Ok(LogFile { path: path.to_owned(), identity: (meta.dev(), meta.ino()), file })
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let still_there = std::fs::metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.identity);
        if !still_there && let Ok(fresh) = LogFile::open(&self.path) {
            *self = fresh;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_shape_of_redis_and_cannot_be_forged() {
        let line = |pid, wall, level, text: &str| line(LogStyle::default(), pid, wall, level, text);
        let text = line(42, 1_000_000_000_007, log::Level::Warn, &printable("+sdown a\nb"));
        let words: Vec<&str> = text.split(' ').collect();
        assert_eq!(words[0], "42:X");
        assert_eq!((words[2], words[3]), ("Sep", "2001"));
        assert!(words[4].ends_with(".007"), "{text}");
        assert!(text.ends_with(" # +sdown a\\nb\n"), "{text}");
        assert_eq!(text.matches('\n').count(), 1);
        for (level, sign) in [(log::Level::Info, '*'), (log::Level::Debug, '-'), (log::Level::Trace, '.')] {
            assert!(line(1, 0, level, "x").ends_with(&format!(" {sign} x\n")));
        }
    }

    #[test]
    fn the_shapes_of_valkey() {
        let shaped = |logfmt, time| {
            let text = printable("+monitor master \"m\"\n");
            line(LogStyle { logfmt, time }, 42, 1_000_000_000_007, log::Level::Warn, &text)
        };
        let expected =
            "pid=42 role=sentinel timestamp=\"1000000000007\" level=warning message=\"+monitor master 'm'\\n\"\n";
        assert_eq!(shaped(true, TimeStyle::Milliseconds), expected);
        let text = shaped(false, TimeStyle::Iso8601);
        let stamp = text.strip_prefix("42:X ").and_then(|rest| rest.split_once(' ')).expect("a time and a text").0;
        assert!(stamp.starts_with("2001-09-0") && stamp.contains(":46:40.007"), "{text}");
        let zone = stamp.split_at(stamp.len() - 6).1;
        assert!(zone.starts_with(['+', '-']) && zone.contains(':'), "{text}");
    }

    #[test]
    fn a_renamed_log_file_gets_no_further_line_and_its_name_a_new_file() {
        let dir = std::env::temp_dir().join(format!("watchfire-log-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let (path, old) = (dir.join("log"), dir.join("log.1"));
        let mut log = LogFile::open(&path).unwrap();
        log.write_all(b"one\n").unwrap();
        std::fs::rename(&path, &old).unwrap();
        log.write_all(b"two\n").unwrap();
        // copytruncate: the same file, emptied; an appending writer starts at its new end.
        std::fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
        log.write_all(b"three\n").unwrap();
        assert_eq!(std::fs::read(&old).unwrap(), b"one\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"three\n");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
