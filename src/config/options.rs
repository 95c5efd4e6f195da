//! What the shell needs to know from the file: everything that is not the Sentinel's own state.

use super::directives::{self, Directive, Kind};
use super::error::Fault;
use super::tls::TlsOptions;
use crate::base::{Alike, Sorted, SortedSet, limits, quote};

/// The settings of the process, with redis-sentinel's defaults. Plain data; nobody here acts on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// 0: no TCP listener.
    pub port: u16,
    /// As written; a leading `-` means that an address which is not there is no error. Empty: listen nowhere.
    pub bind: Vec<String>,
    /// Where links to other nodes come from. Empty is unset.
    pub bind_source_addr: String,
    /// Empty is unset.
    pub unixsocket: String,
    /// 0: as the umask has it.
    pub unixsocketperm: u32,
    /// A name or a number. Empty is unset.
    pub unixsocketgroup: String,
    /// A mark on the packets of our TCP sockets (SO_MARK). 0 is none.
    pub socket_mark: u32,
    pub oom_score_adj: OomScoreAdj,
    /// How readily the kernel may kill us when memory runs out: -1000 never, 1000 first.
    pub oom_score: i32,
    pub protected_mode: bool,
    pub tcp_backlog: u32,
    /// Seconds; 0 is off.
    pub tcp_keepalive: u32,
    /// Seconds after which an idle client is dropped; 0 is never.
    pub timeout: u32,
    pub maxclients: u32,
    /// What may wait for clients that do not read: those that subscribed, and all others.
    pub output_pubsub: OutputLimit,
    pub output_normal: OutputLimit,
    /// Bytes of one request.
    pub query_buffer: u64,
    /// Connections one listener takes in one turn.
    pub accepts_per_turn: u32,
    /// Empty is unset. May hold any byte.
    pub requirepass: Vec<u8>,
    /// A file with the users; empty is unset.
    pub aclfile: String,
    /// How many refusals are kept for `ACL LOG`.
    pub acllog_max_len: usize,
    /// `acl-pubsub-default allchannels`: new users reach all channels.
    pub acl_pubsub_allchannels: bool,
    /// Empty: stay where we were started.
    pub dir: String,
    /// Empty: standard output.
    pub logfile: String,
    pub loglevel: LogLevel,
    pub log_style: LogStyle,
    pub syslog_enabled: bool,
    pub syslog_ident: String,
    /// Lower case: `user`, `local0` … `local7`.
    pub syslog_facility: String,
    pub daemonize: bool,
    /// Empty is unset; the shell picks its default when it goes to the background.
    pub pidfile: String,
    pub supervised: Supervised,
    pub tls: TlsOptions,
    /// The lines that came out of included files and that we may come to change, as written there. [`super::rewrite`] does not repeat
    /// in the main file what they say already.
    pub included: Vec<Vec<u8>>,
    /// Directives changed while running; the only ones that [`super::rewrite`] writes. Empty after a start, so that
    /// neither the command line nor an included file leaks into the file.
    pub changed: SortedSet<&'static str>,
    /// Users made or changed while running, with their rules, and users deleted, without: their `user` lines follow. Empty
    /// after a start, and always where there is an `aclfile`.
    pub users: Sorted<Vec<u8>, Option<Vec<u8>>>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            port: 26379,
            bind: vec!["*".into(), "-::*".into()],
            bind_source_addr: String::new(),
            unixsocket: String::new(),
            unixsocketperm: 0,
            unixsocketgroup: String::new(),
            socket_mark: 0,
            oom_score_adj: OomScoreAdj::No,
            oom_score: 0,
            protected_mode: false,
            tcp_backlog: 511,
            tcp_keepalive: 300,
            timeout: 0,
            maxclients: 10_000,
            output_pubsub: OutputLimit::PUBSUB,
            output_normal: OutputLimit::NONE,
            query_buffer: 64 << 20,
            accepts_per_turn: limits::ACCEPTS_PER_TURN,
            requirepass: Vec::new(),
            aclfile: String::new(),
            acllog_max_len: 128,
            acl_pubsub_allchannels: false,
            dir: String::new(),
            logfile: String::new(),
            loglevel: LogLevel::Notice,
            log_style: LogStyle::default(),
            syslog_enabled: false,
            syslog_ident: "redis".into(),
            syslog_facility: "local0".into(),
            daemonize: false,
            pidfile: String::new(),
            supervised: Supervised::No,
            tls: TlsOptions::default(),
            included: Vec::new(),
            changed: SortedSet::new(),
            users: Sorted::new(),
        }
    }
}

impl ServerOptions {
    /// `SENTINEL CONFIG SET loglevel`; the next rewrite holds it.
    pub fn change_loglevel(&mut self, level: LogLevel) {
        self.loglevel = level;
        self.changed.insert("loglevel");
    }

    /// `SENTINEL CONFIG SET requirepass`; the next rewrite holds it. Empty: none is asked for any more.
    pub fn change_password(&mut self, password: Vec<u8>) {
        self.requirepass = password;
        self.changed.insert("requirepass");
    }

    /// The line that says what a changed directive holds now; `None` for those that do not change at run time.
    pub(super) fn line_of(&self, directive: &str) -> Option<String> {
        match directive {
            "loglevel" => Some(format!("loglevel {}", self.loglevel.as_str())),
            // Also when it is empty: an included file may name another.
            "requirepass" => Some(format!("requirepass {}", quote::if_needed(&self.requirepass))),
            _ => None,
        }
    }

    /// The `user` line that says what a changed user is now; `None` when it is gone. Rules are one line of words, and those
    /// in parentheses stay together only by their parentheses; so each word is quoted for itself where it must be.
    pub(super) fn user_line(name: &[u8], rules: Option<&[u8]>) -> Option<Vec<u8>> {
        let mut line = b"user ".to_vec();
        line.extend_from_slice(quote::if_needed(name).as_bytes());
        for word in rules?.split(|&byte| byte == b' ') {
            line.push(b' ');
            // A hash begins with the sign of a comment, but not at the beginning of the line.
            let hash = word.strip_prefix(b"#").filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
            match hash {
                Some(_) => line.extend_from_slice(word),
                None => line.extend_from_slice(quote::if_needed(word).as_bytes()),
            }
        }
        Some(line)
    }

    /// Takes one line that is no `sentinel` line. Checks its shape and, where it means something here, its value.
    pub(super) fn apply(&mut self, words: &[Vec<u8>]) -> Result<Directive, Fault> {
        let row = directives::find(false, &words[0]).ok_or_else(|| Fault::new(BAD_DIRECTIVE))?;
        let mut values = &words[1..];
        // `"127.0.0.1 ::1"`, as command lines of containers have it.
        let apart = match values {
            [one] if row.is_split() => quote::split_args(one),
            _ => None,
        };
        if let Some(apart) = &apart {
            values = apart;
        }
        if !row.takes(values.len()) {
            // The directives that Redis reads by hand share one text; all the others have another.
            let by_hand = ["include", "rename-command", "user", "loadmodule"].contains(&row.name);
            let message = if by_hand { BAD_DIRECTIVE } else { "wrong number of arguments" };
            return Err(Fault::with_hint(message, format!("expected: {} {}", row.name, row.usage)));
        }
        if row.meaning == directives::Meaning::Used {
            self.set(&row, values)?;
        }
        Ok(row)
    }

    fn set(&mut self, row: &Directive, values: &[Vec<u8>]) -> Result<(), Fault> {
        if row.name == "bind" {
            let words = values.iter().map(|word| text(word)).collect::<Result<Vec<_>, _>>()?;
            self.bind = words.into_iter().filter(|word| !word.is_empty()).collect();
            return Ok(());
        }
        if row.name == "client-output-buffer-limit" {
            return self.set_output_limits(values);
        }
        let value = &values[0];
        let small = |number: i64| u32::try_from(number).expect("the table's bounds fit");
        match row.name {
            "port" => self.port = u16::try_from(integer(row, value)?).expect("the table's bounds fit"),
            "bind-source-addr" => self.bind_source_addr = text(value)?,
            "unixsocket" => self.unixsocket = text(value)?,
            "unixsocketperm" => self.unixsocketperm = octal(value)?,
            "unixsocketgroup" => self.unixsocketgroup = text(value)?,
            "socket-mark-id" => self.socket_mark = small(integer(row, value)?),
            "oom-score-adj" => self.oom_score_adj = OomScoreAdj::parse(one_of(row, value)?),
            "oom-score-adj-values" => self.oom_score = first_oom_score(values)?,
            "protected-mode" => self.protected_mode = yes_or_no(value)?,
            "tcp-backlog" => self.tcp_backlog = small(integer(row, value)?),
            "tcp-keepalive" => self.tcp_keepalive = small(integer(row, value)?),
            "timeout" => self.timeout = small(integer(row, value)?),
            "maxclients" => self.maxclients = small(integer(row, value)?),
            "client-query-buffer-limit" => self.query_buffer = memory_of(row, value)?,
            "max-new-connections-per-cycle" => self.accepts_per_turn = small(integer(row, value)?),
            "requirepass" => {
                let most = limits::UNAUTHENTICATED_BULK;
                if value.len() > most {
                    // Whoever has not logged in may not send a longer word, so nobody could.
                    return Err(Fault::new(format!("a password must not be longer than {most} bytes")));
                }
                self.requirepass.clone_from(value);
            }
            "aclfile" => self.aclfile = text(value)?,
            "acllog-max-len" => self.acllog_max_len = usize::try_from(integer(row, value)?).unwrap_or(usize::MAX),
            "acl-pubsub-default" => self.acl_pubsub_allchannels = one_of(row, value)? == "allchannels",
            "dir" => self.dir = text(value)?,
            "logfile" => self.logfile = text(value)?,
            "loglevel" => self.loglevel = LogLevel::parse(one_of(row, value)?).expect("the table names all levels"),
            "log-format" => self.log_style.logfmt = one_of(row, value)? == "logfmt",
            "log-timestamp-format" => self.log_style.time = TimeStyle::parse(one_of(row, value)?),
            "syslog-enabled" => self.syslog_enabled = yes_or_no(value)?,
            "syslog-ident" => self.syslog_ident = text(value)?,
            "syslog-facility" => self.syslog_facility = one_of(row, value)?.into(),
            "daemonize" => self.daemonize = yes_or_no(value)?,
            "pidfile" => self.pidfile = text(value)?,
            "supervised" => self.supervised = Supervised::parse(one_of(row, value)?),
            name if name.starts_with("tls-") => self.tls.set(row, value)?,
            // `include`, `user` and `rename-command` are the reader's.
            _ => {}
        }
        Ok(())
    }
}

impl ServerOptions {
    /// Groups of class, hard, soft and seconds; nothing is set unless all are right.
    fn set_output_limits(&mut self, values: &[Vec<u8>]) -> Result<(), Fault> {
        if !values.len().is_multiple_of(4) {
            return Err(Fault::new("Wrong number of arguments in buffer limit configuration."));
        }
        let (mut normal, mut pubsub) = (self.output_normal, self.output_pubsub);
        for group in values.chunks_exact(4) {
            let of_class = match group[0].to_ascii_lowercase().as_slice() {
                b"normal" => Some(&mut normal),
                b"pubsub" => Some(&mut pubsub),
                // A Sentinel has no replicas of its own.
                b"slave" | b"replica" => None,
                _ => return Err(Fault::new("Invalid client class specified in buffer limit configuration.")),
            };
            let limit = memory(&group[1])
                .zip(memory(&group[2]))
                .zip(std::str::from_utf8(&group[3]).ok().and_then(|text| text.parse::<u32>().ok()));
            let Some(((hard, soft), seconds)) = limit else {
                return Err(Fault::new("Error in hard, soft or soft_seconds setting in buffer limit configuration."));
            };
            if let Some(of_class) = of_class {
                *of_class = OutputLimit { hard, soft, soft_ms: u64::from(seconds) * 1000 };
            }
        }
        (self.output_normal, self.output_pubsub) = (normal, pubsub);
        Ok(())
    }
}

/// What is done with `oom_score`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OomScoreAdj {
    /// The system's value stays.
    No,
    /// It is added to the value that we were started with.
    Relative,
    /// It is the value.
    Absolute,
}

impl OomScoreAdj {
    fn parse(word: &str) -> OomScoreAdj {
        match word {
            "yes" | "relative" => OomScoreAdj::Relative,
            "absolute" => OomScoreAdj::Absolute,
            _ => OomScoreAdj::No,
        }
    }
}

/// All three must be numbers, and the first is ours.
fn first_oom_score(values: &[Vec<u8>]) -> Result<i32, Fault> {
    let number = |word: &Vec<u8>| std::str::from_utf8(word).ok()?.parse().ok();
    let numbers: Option<Vec<i32>> = values.iter().map(number).collect();
    match numbers.filter(|all| all.iter().all(|number| (-2000..=2000).contains(number))) {
        Some(all) => Ok(all[0]),
        None => Err(Fault::new("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")),
    }
}

/// How a line of the log looks: as Redis has it, or as Valkey 9 can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStyle {
    /// `key=value` pairs instead of Redis's own shape.
    pub logfmt: bool,
    pub time: TimeStyle,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeStyle {
    /// `30 Nov 2026 13:14:15.016`, local time.
    #[default]
    Legacy,
    /// `2026-11-30T13:14:15.016+00:00`, local time.
    Iso8601,
    /// Since 1970.
    Milliseconds,
}

impl TimeStyle {
    fn parse(word: &str) -> TimeStyle {
        match word {
            "iso8601" => TimeStyle::Iso8601,
            "milliseconds" => TimeStyle::Milliseconds,
            _ => TimeStyle::Legacy,
        }
    }
}

/// How many bytes may wait for a client that does not read before it is cut off. 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    /// At once.
    pub hard: u64,
    /// When it stays so for longer than `soft_ms`.
    pub soft: u64,
    pub soft_ms: u64,
}

impl OutputLimit {
    pub const NONE: OutputLimit = OutputLimit { hard: 0, soft: 0, soft_ms: 0 };
    /// Redis's for subscribers.
    pub const PUBSUB: OutputLimit = OutputLimit { hard: 32 << 20, soft: 8 << 20, soft_ms: 60_000 };
}

const BAD_DIRECTIVE: &str = "Bad directive or wrong number of arguments";

/// How much is logged, in redis's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
    Nothing,
}

impl LogLevel {
    /// In any letter case.
    #[must_use]
    pub fn parse(text: &str) -> Option<LogLevel> {
        use LogLevel::{Debug, Nothing, Notice, Verbose, Warning};
        [Debug, Verbose, Notice, Warning, Nothing].into_iter().find(|level| level.as_str().alike(text))
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Verbose => "verbose",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Nothing => "nothing",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervised {
    No,
    Systemd,
    Upstart,
    /// Whichever of the two the environment shows.
    Auto,
}

impl Supervised {
    fn parse(word: &str) -> Supervised {
        match word {
            "systemd" => Supervised::Systemd,
            "upstart" => Supervised::Upstart,
            "auto" => Supervised::Auto,
            _ => Supervised::No,
        }
    }
}

pub(super) fn text(value: &[u8]) -> Result<String, Fault> {
    if value.contains(&0) {
        return Err(Fault::new("argument must not contain a zero byte"));
    }
    String::from_utf8(value.to_vec()).map_err(|_| Fault::new("argument must be valid UTF-8"))
}

pub(super) fn yes_or_no(value: &[u8]) -> Result<bool, Fault> {
    match value.to_ascii_lowercase().as_slice() {
        b"yes" => Ok(true),
        b"no" => Ok(false),
        _ => Err(Fault::new("argument must be 'yes' or 'no'")),
    }
}

pub(super) fn integer(row: &Directive, value: &[u8]) -> Result<i64, Fault> {
    let Kind::Integer(min, max) = row.kind else { unreachable!("{} is no integer", row.name) };
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
    let number = number.ok_or_else(|| Fault::new("argument couldn't be parsed into an integer"))?;
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(Fault::new(format!("argument must be between {min} and {max} inclusive")))
    }
}

/// A number of bytes, with or without a unit in any letter case.
fn memory(value: &[u8]) -> Option<u64> {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = value.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    std::str::from_utf8(number).ok()?.parse::<u64>().ok()?.checked_mul(factor)
}

fn memory_of(row: &Directive, value: &[u8]) -> Result<u64, Fault> {
    let Kind::Memory(min, max) = row.kind else { unreachable!("{} is no number of bytes", row.name) };
    let bytes = memory(value).ok_or_else(|| Fault::new("argument must be a memory value"))?;
    if (min..=max).contains(&i64::try_from(bytes).unwrap_or(i64::MAX)) {
        Ok(bytes)
    } else {
        Err(Fault::new(format!("argument must be between {min} and {max} inclusive")))
    }
}

fn octal(value: &[u8]) -> Result<u32, Fault> {
    let number = std::str::from_utf8(value).ok().and_then(|text| u32::from_str_radix(text, 8).ok());
    let number = number.ok_or_else(|| Fault::new("argument couldn't be parsed as an octal number"))?;
    if number <= 0o777 { Ok(number) } else { Err(Fault::new("argument must be between 0 and 777 inclusive")) }
}

pub(super) fn one_of(row: &Directive, value: &[u8]) -> Result<&'static str, Fault> {
    let Kind::OneOf(choices) = row.kind else { unreachable!("{} is no choice", row.name) };
    let found = choices.iter().find(|choice| choice.as_bytes().alike(value));
    found
        .copied()
        .ok_or_else(|| Fault::new(format!("argument(s) must be one of the following: {}", choices.join(", "))))
}
