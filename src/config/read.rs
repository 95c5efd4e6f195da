//! From text to meaning. Plain directives act in the order of the file. `sentinel` lines are put aside and read afterwards:
//! first those about the whole Sentinel, then the masters, then what is said about them; so their order does not matter.

use super::directives::{self, Directive, Kind, Meaning, Scope};
use super::error::{ConfigError, Fault};
use super::options::ServerOptions;
use super::statement::{self, Clause, NO_SUCH_MASTER, Statement};
use crate::base::{quote, secret};
use crate::core::{Addr, KnownPeer, MasterSnapshot, RunId, Settings, Snapshot};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

/// How deep files may include each other. A file that includes itself must end somewhere.
const INCLUDE_DEPTH: usize = 16;

/// Where the text comes from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The main file as the operator named it.
    pub file: &'a str,
    /// Lines that follow the file: standard input, then [`super::from_args`]. May be empty.
    pub arguments: &'a [u8],
}

impl<'a> Source<'a> {
    #[must_use]
    pub fn file(file: &'a str) -> Source<'a> {
        Source { file, arguments: b"" }
    }

    #[must_use]
    pub fn with_arguments(self, arguments: &'a (impl AsRef<[u8]> + ?Sized)) -> Source<'a> {
        Source { arguments: arguments.as_ref(), ..self }
    }
}

/// A file that was understood.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub server: ServerOptions,
    pub snapshot: Snapshot,
    /// The `user` lines in order, each name once. Whether their rules are any is for those to say who know the commands.
    pub users: Vec<Declared>,
    /// The `rename-command` lines in order. Whether there are such commands is for those to say who know them.
    pub renamed: Vec<Renamed>,
    /// For the log, once at start: what is without effect though it would mean something, dropped or read with doubt.
    pub notes: Vec<String>,
    /// The directives that were accepted without meaning anything for a Sentinel, each once.
    pub ignored: Vec<&'static str>,
    /// What only the file system can tell. The shell makes these checks in order, before it begins.
    pub checks: Vec<Check>,
}

/// A file behind an `include`.
#[derive(Clone, Debug)]
pub struct Opened {
    pub path: String,
    pub text: Vec<u8>,
}

/// A `user` line.
#[derive(Clone, Debug)]
pub struct Declared {
    pub name: Vec<u8>,
    pub rules: Vec<Vec<u8>>,
    /// What to print when the rules are wrong, once the reason is in its `message`.
    pub error: ConfigError,
}

/// A `rename-command` line.
#[derive(Clone, Debug)]
pub struct Renamed {
    pub old: Vec<u8>,
    /// Empty: the command is taken away.
    pub new: Vec<u8>,
    /// What to print when it cannot be, once the reason is in its `message`.
    pub error: ConfigError,
}

/// Something that must hold outside the text.
#[derive(Clone, Debug)]
pub struct Check {
    pub must: Must,
    pub path: String,
    /// What to print when it does not hold. For a directory the shell puts the system's reason into `message`.
    pub error: ConfigError,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Must {
    /// Exist and be executable by us.
    BeExecutable,
    /// Be a directory that we can change into.
    BeDirectory,
}

/// Reads a configuration.
///
/// `open` gives the files behind the path of an `include`, with their names: one, or all that match a pattern. A relative path
/// counts from the last `dir` before it.
///
/// # Errors
/// The first line that cannot be used; plain directives come before `sentinel` lines.
pub fn read(
    text: &[u8],
    source: Source<'_>,
    open: &mut dyn FnMut(&str) -> io::Result<Vec<Opened>>,
) -> Result<Loaded, ConfigError> {
    let mut lines = Lines {
        open,
        place: PathBuf::new(),
        server: ServerOptions::default(),
        aside: Vec::new(),
        users: Vec::new(),
        renamed: Vec::new(),
        checks: Vec::new(),
        notes: Vec::new(),
        ignored: Vec::new(),
        not_yet: Vec::new(),
    };
    let file: Rc<str> = source.file.into();
    let first_argument = if source.arguments.is_empty() {
        usize::MAX
    } else {
        // As redis-sentinel does: one text, so that line numbers go on.
        text.iter().filter(|&&byte| byte == b'\n').count() + 2
    };
    lines.text(text, &file, 1, 0, false)?;
    if first_argument != usize::MAX {
        lines.text(source.arguments, &file, first_argument, 0, true)?;
    }
    let Lines { mut server, aside, users, renamed, mut checks, mut notes, ignored, not_yet, .. } = lines;
    let included = aside.iter().filter(|line| line.origin == Origin::Included).map(|line| line.text.clone());
    server.included.extend(included);

    let mut masters = Masters::default();
    masters.load(&aside)?;
    if !not_yet.is_empty() {
        notes.push(format!("{}: not supported by this version and NOT in effect", not_yet.join(", ")));
    }
    server.tls.notes(&mut notes);
    notes.append(&mut masters.notes);
    checks.append(&mut masters.checks);
    let users = users.into_iter().map(|(_, user)| user).collect();
    Ok(Loaded { server, snapshot: masters.finish(&mut notes), users, renamed, notes, ignored, checks })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Main,
    Included,
    Arguments,
}

/// A `sentinel` line put aside.
struct Aside {
    file: Rc<str>,
    line: usize,
    origin: Origin,
    /// It came through an `include`, be it one of the command line.
    included: bool,
    text: Vec<u8>,
    words: Vec<Vec<u8>>,
}

impl Aside {
    fn error(&self, fault: Fault) -> ConfigError {
        ConfigError {
            file: self.file.as_ref().into(),
            included: self.included,
            line: self.line,
            text: self.shown(),
            message: fault.message,
            hint: fault.hint,
        }
    }

    /// The line as an error may show it.
    fn shown(&self) -> String {
        // Where a quote is not closed there are no words; what stands between blanks will do.
        let between_blanks = || self.text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let words: Vec<&[u8]> = match self.words.as_slice() {
            [] => between_blanks().collect(),
            words => words.iter().map(Vec::as_slice).collect(),
        };
        let of_sentinel = words[0].eq_ignore_ascii_case(b"sentinel");
        let names = if of_sentinel { 2 } else { 1 };
        let row = words.get(names - 1).and_then(|name| directives::find(of_sentinel, name));
        let parts: Vec<_> = match row {
            Some(row) if row.name == "user" => words.iter().skip(2).map(|word| secret::shown_rule(word)).collect(),
            Some(row) if row.holds_password() => {
                let names = names + usize::from(row.scope == Scope::Master);
                words.iter().skip(names).map(|_| secret::HIDDEN.into()).collect()
            }
            _ => Vec::new(),
        };
        let open = words.len() - parts.len();
        if parts.iter().zip(&words[open..]).all(|(part, word)| part.as_bytes() == *word) {
            return String::from_utf8_lossy(&self.text).into_owned();
        }
        let parts = words[..open].iter().map(|word| String::from_utf8_lossy(word)).chain(parts);
        parts.collect::<Vec<_>>().join(" ")
    }

    /// The place, for a note.
    fn place(&self) -> String {
        match self.origin {
            Origin::Main => format!("line {}", self.line),
            Origin::Included => format!("line {} of {}", self.line, self.file),
            Origin::Arguments => "command line".into(),
        }
    }
}

/// The first walk: plain directives and includes.
struct Lines<'o> {
    open: &'o mut dyn FnMut(&str) -> io::Result<Vec<Opened>>,
    /// Where relative paths count from; empty is where we were started.
    place: PathBuf,
    server: ServerOptions,
    aside: Vec<Aside>,
    /// With where they were said.
    users: Vec<(Origin, Declared)>,
    renamed: Vec<Renamed>,
    checks: Vec<Check>,
    notes: Vec<String>,
    ignored: Vec<&'static str>,
    not_yet: Vec<&'static str>,
}

impl Lines<'_> {
    fn text(&mut self, text: &[u8], file: &Rc<str>, first: usize, depth: usize, args: bool) -> Result<(), ConfigError> {
        // Also what the command line includes comes again with every start, and must not undo what the file has learnt.
        let origin = match (depth, args) {
            (_, true) => Origin::Arguments,
            (0, false) => Origin::Main,
            _ => Origin::Included,
        };
        let included = depth > 0;
        for (index, raw) in text.split(|&byte| byte == b'\n').enumerate() {
            let trimmed = trim(raw);
            if trimmed.is_empty() || trimmed[0] == b'#' {
                continue;
            }
            let mut line = Aside {
                file: Rc::clone(file),
                line: first + index,
                origin,
                included,
                text: trimmed.to_vec(),
                words: Vec::new(),
            };
            match quote::split_args(trimmed) {
                None => return Err(line.error(Fault::new("Unbalanced quotes in configuration line"))),
                Some(words) if words.is_empty() => continue,
                Some(words) => line.words = words,
            }
            if line.words[0].eq_ignore_ascii_case(b"sentinel") {
                self.aside.push(line);
            } else {
                self.plain(line, depth, args)?;
            }
        }
        Ok(())
    }

    fn plain(&mut self, line: Aside, depth: usize, args: bool) -> Result<(), ConfigError> {
        let row = self.server.apply(&line.words).map_err(|fault| line.error(fault))?;
        match row.meaning {
            Meaning::Ignored => note_once(&mut self.ignored, row.name),
            Meaning::NotYet => note_once(&mut self.not_yet, row.name),
            _ => {}
        }
        if row.name == "dir" {
            let error = line.error(Fault::new("No such file or directory"));
            self.checks.push(Check { must: Must::BeDirectory, path: self.server.dir.clone(), error });
            self.place.push(&self.server.dir);
        }
        if line.origin == Origin::Included && ["user", "loglevel", "requirepass"].contains(&row.name) {
            self.server.included.push(line.text.clone());
        }
        if row.name == "user" {
            self.user(&line)?;
        }
        if row.name == "rename-command" {
            let (old, new) = (line.words[1].clone(), line.words[2].clone());
            if new.iter().any(u8::is_ascii_control) {
                return Err(line.error(Fault::new("A name of a command must not hold control characters")));
            }
            self.renamed.push(Renamed { old, new, error: line.error(Fault::new("")) });
        }
        if row.name == "include" {
            let path = String::from_utf8_lossy(&line.words[1]).into_owned();
            let refused = |why: &dyn std::fmt::Display| {
                Fault::new(format!("Fatal error, can't open config file '{path}': {why}"))
            };
            if depth == INCLUDE_DEPTH {
                return Err(line.error(refused(&"files include each other without end")));
            }
            let from_here = self.place.join(&path).display().to_string();
            for Opened { path, text } in (self.open)(&from_here).map_err(|why| line.error(refused(&why)))? {
                self.text(&text, &path.as_str().into(), 1, depth + 1, args)?;
            }
        }
        Ok(())
    }
}

impl Lines<'_> {
    /// A name said twice in one file is a mistake. Otherwise the later line counts: what an included file says cannot be
    /// kept up to date there, so the main file corrects it.
    fn user(&mut self, line: &Aside) -> Result<(), ConfigError> {
        let name = &line.words[1];
        if let Some(at) = self.users.iter().position(|(_, user)| user.name == *name) {
            let (origin, earlier) = &self.users[at];
            let shown = String::from_utf8_lossy(name);
            if *origin == line.origin && earlier.error.file == *line.file {
                let text = format!(
                    "Error in user declaration '{shown}': Duplicate user found. A user can only be defined once in config files"
                );
                let hint = format!("line {} declares it already", earlier.error.line);
                return Err(line.error(Fault::with_hint(text, hint)));
            }
            self.notes.push(format!("{}: counts instead of an earlier line about the user {shown}", line.place()));
            self.users.remove(at);
        }
        let user = Declared { name: name.clone(), rules: line.words[2..].to_vec(), error: line.error(Fault::new("")) };
        self.users.push((line.origin, user));
        Ok(())
    }
}

fn note_once(names: &mut Vec<&'static str>, name: &'static str) {
    if !names.contains(&name) {
        names.push(name);
    }
}

/// Blanks as redis-sentinel trims them.
pub(super) fn trim(line: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = line.iter().position(|byte| !blank(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

/// The second walk: the masters and what is known about them.
#[derive(Default)]
struct Masters {
    snapshot: Snapshot,
    /// Name to place in `snapshot.masters`.
    places: HashMap<String, usize>,
    /// What was said and by which line; to find lines that say a thing twice.
    said: HashMap<(Option<usize>, Topic), usize>,
    resolve: bool,
    notes: Vec<String>,
    checks: Vec<Check>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Topic {
    Directive(&'static str),
    Replica(String, u16),
    Peer(RunId),
    Rename(String),
}

/// What to do with a line that speaks of something already spoken of.
enum Again {
    /// It says the same, or the earlier one counts.
    Skip,
    /// It counts instead of the earlier one.
    Replace,
}

impl Masters {
    fn load(&mut self, lines: &[Aside]) -> Result<(), ConfigError> {
        let phase = |line: &Aside| {
            let row = line.words.get(1).and_then(|name| directives::find(true, name));
            match row {
                Some(row) if row.scope == Scope::Sentinel => 0,
                Some(row) if row.name == "monitor" => 1,
                _ => 2,
            }
        };
        let phases: Vec<u8> = lines.iter().map(phase).collect();
        self.said.reserve(lines.len());
        for wanted in 0..3 {
            for index in (0..lines.len()).filter(|&index| phases[index] == wanted) {
                self.line(lines, index).map_err(|fault| lines[index].error(fault))?;
            }
        }
        Ok(())
    }

    fn line(&mut self, lines: &[Aside], index: usize) -> Result<(), Fault> {
        let line = &lines[index];
        let words = &line.words;
        if words.len() == 1 {
            return Ok(());
        }
        let row = statement::row_of(words)?;
        // An old form without id was never looked at, not even for its master.
        let old_form = row.name == "known-sentinel" && words.len() == 5;
        if row.scope == Scope::Master && row.name != "monitor" && !old_form {
            let known = std::str::from_utf8(&words[2]).is_ok_and(|name| self.places.contains_key(name));
            if !known {
                return Err(Fault::new(NO_SUCH_MASTER));
            }
        }
        let statement = Statement::parse(words)?;
        self.doubt(line, row);
        match statement {
            Statement::Bare => {}
            Statement::Useless(why) => self.notes.push(format!("{}: dropped {}: {why}", line.place(), row.full_name())),
            Statement::Inert(_, row) => self.inert(line, row),
            Statement::Monitor { master, host, port, quorum } => {
                self.monitor(lines, index, master, host, port, quorum)?;
            }
            Statement::Of(master, clause) => {
                let place = self.places[master];
                self.clause(lines, index, place, row, clause)?;
            }
            _ => self.whole(lines, index, row, statement),
        }
        Ok(())
    }

    /// Says how a number was read that others might read differently.
    fn doubt(&mut self, line: &Aside, row: &Directive) {
        let last = line.words.last().expect("a line has words");
        let is_epoch = row.name.ends_with("-epoch");
        let number = match (row.kind, row.name) {
            (Kind::Number, _) => last,
            (Kind::Node, _) => &line.words[4],
            _ => return,
        };
        let read = statement::number(number);
        if is_epoch && read > Snapshot::EPOCH_LAST.into() {
            let shown = String::from_utf8_lossy(number);
            self.notes.push(format!(
                "{}: {} '{shown}' is more than there can be and is read as {}: no election can be held any more. \
                 Set the epochs of all Sentinels of the group back while all of them are stopped",
                line.place(),
                row.full_name(),
                Snapshot::EPOCH_LAST
            ));
        } else if !statement::is_clean_number(number) {
            let shown = String::from_utf8_lossy(number);
            self.notes.push(format!("{}: {} '{shown}' is read as {read}", line.place(), row.full_name()));
        }
    }

    fn inert(&mut self, line: &Aside, row: &Directive) {
        self.notes.push(format!("{}: {} is ignored ({})", line.place(), row.full_name(), row.about));
    }

    /// A thing said twice. Where both lines say the same, one is enough. Where they differ, `conflict` tells what
    /// redis-sentinel does within one file: `None` lets the later one count, a text is fatal. Between files and the command
    /// line a later line always counts: an included file cannot be kept up to date by us, so the main file corrects it.
    fn again(
        &mut self,
        lines: &[Aside],
        key: (Option<usize>, Topic),
        index: usize,
        conflict: Option<&str>,
    ) -> Result<Option<Again>, Fault> {
        let Some(earlier) = self.said.insert(key.clone(), index) else { return Ok(None) };
        let (before, now) = (&lines[earlier], &lines[index]);
        if Statement::parse(&before.words) == Statement::parse(&now.words) {
            self.notes.push(format!("{}: repeats {}; one is enough", now.place(), before.place()));
            return Ok(Some(Again::Skip));
        }
        match conflict {
            Some(text) if before.origin == now.origin && before.file == now.file => {
                let hint = format!("{} said otherwise", before.place());
                Err(Fault::with_hint(text, hint))
            }
            // A master moves; what the file saved is younger than a command line that never changes.
            Some(_) if now.origin == Origin::Arguments => {
                self.notes.push(format!("{}: {} says otherwise and counts", now.place(), before.place()));
                self.said.insert(key, earlier);
                Ok(Some(Again::Skip))
            }
            _ => {
                self.notes.push(format!("{}: counts instead of {}", now.place(), before.place()));
                Ok(Some(Again::Replace))
            }
        }
    }

    fn whole(&mut self, lines: &[Aside], index: usize, row: &'static Directive, statement: Statement<'_>) {
        if let Statement::CurrentEpoch(epoch) = statement {
            // The largest counts: an epoch never goes back.
            self.snapshot.current_epoch = self.snapshot.current_epoch.max(epoch);
            return;
        }
        let again = self.again(lines, (None, Topic::Directive(row.name)), index, None);
        if matches!(again, Ok(Some(Again::Skip))) {
            return;
        }
        let options = &mut self.snapshot.options;
        match statement {
            Statement::MyId(id) => self.snapshot.myid = Some(id),
            Statement::DenyScriptsReconfig(yes) => options.deny_scripts_reconfig = yes,
            Statement::ResolveHostnames(yes) => {
                options.resolve_hostnames = yes;
                self.resolve = yes;
            }
            Statement::AnnounceHostnames(yes) => options.announce_hostnames = yes,
            Statement::AnnounceIp(text) => options.announce_ip = text.into(),
            Statement::AnnouncePort(port) => options.announce_port = port,
            Statement::SentinelUser(text) => options.sentinel_user = text.into(),
            Statement::SentinelPass(bytes) => options.sentinel_pass = bytes.into(),
            _ => unreachable!("the caller sorted the others out"),
        }
    }

    fn monitor(
        &mut self,
        lines: &[Aside],
        index: usize,
        name: &str,
        host: &str,
        port: u16,
        quorum: u32,
    ) -> Result<(), Fault> {
        let place = self.places.get(name).copied();
        if let Some(place) = place {
            let key = (Some(place), Topic::Directive("monitor"));
            if let Some(Again::Replace) = self.again(lines, key, index, Some("Duplicate master name."))? {
                self.resolvable(host)?;
                let master = &mut self.snapshot.masters[place];
                (master.host, master.port, master.settings.quorum) = (host.into(), port, quorum);
            }
            return Ok(());
        }
        self.resolvable(host)?;
        let place = self.snapshot.masters.len();
        self.places.insert(name.into(), place);
        self.said.insert((Some(place), Topic::Directive("monitor")), index);
        self.snapshot.masters.push(MasterSnapshot {
            name: name.into(),
            host: host.into(),
            port,
            settings: Settings::with_quorum(quorum),
            config_epoch: 0,
            leader_epoch: 0,
            known_replicas: Vec::new(),
            known_peers: Vec::new(),
        });
        Ok(())
    }

    /// Names are looked up while we run, not here; but without `resolve-hostnames` they never would be.
    fn resolvable(&self, host: &str) -> Result<(), Fault> {
        if statement::is_numeric(host) || (self.resolve && !host.is_empty()) {
            return Ok(());
        }
        let hint = if host.is_empty() { "the host is empty" } else { "names need: sentinel resolve-hostnames yes" };
        Err(Fault::with_hint("Can't resolve instance hostname.", hint))
    }

    fn clause(
        &mut self,
        lines: &[Aside],
        index: usize,
        place: usize,
        row: &'static Directive,
        clause: Clause<'_>,
    ) -> Result<(), Fault> {
        let line = &lines[index];
        let (topic, conflict) = match clause {
            Clause::KnownReplica(host, port) => {
                self.resolvable(host)?;
                (Topic::Replica(host.into(), port), None)
            }
            Clause::KnownSentinel(host, _, id) => {
                self.resolvable(host)?;
                (Topic::Peer(id), Some("Duplicate runid for sentinel."))
            }
            Clause::RenameCommand(old, _) => (
                Topic::Rename(old.to_ascii_lowercase()),
                Some("Same command renamed multiple times with rename-command."),
            ),
            Clause::RebootDownAfter(_) => (Topic::Directive("master-reboot-down-after-period"), None),
            _ => (Topic::Directive(row.name), None),
        };
        let again = self.again(lines, (Some(place), topic), index, conflict)?;
        if matches!(again, Some(Again::Skip)) {
            return Ok(());
        }
        let master = &mut self.snapshot.masters[place];
        let settings = &mut master.settings;
        match clause {
            Clause::DownAfter(ms) => settings.down_after = ms,
            Clause::DownAfterRefused(ms) => settings.down_after_refused = ms,
            Clause::PingPeriod(ms) => settings.ping_period = ms,
            Clause::FailoverTimeout(ms) => settings.failover_timeout = ms,
            Clause::ParallelSyncs(count) => settings.parallel_syncs = count,
            Clause::RebootDownAfter(ms) => settings.reboot_down_after = ms,
            Clause::NotificationScript(path) => {
                settings.notification_script = path.into();
                self.executable(line, path, "Notification script seems non existing or non executable.");
            }
            Clause::ClientReconfigScript(path) => {
                settings.client_reconfig_script = path.into();
                self.executable(line, path, "Client reconfiguration script seems non existing or non executable.");
            }
            Clause::AuthPass(bytes) => settings.auth_pass = bytes.into(),
            Clause::AuthUser(text) => settings.auth_user = text.into(),
            Clause::ConfigEpoch(epoch) => master.config_epoch = epoch,
            Clause::LeaderEpoch(epoch) => master.leader_epoch = epoch,
            Clause::KnownReplica(host, port) => {
                // Under the old and the new spelling, or once in an included file: the same replica all the same.
                if again.is_none() {
                    master.known_replicas.push((host.into(), port));
                }
            }
            Clause::KnownSentinel(host, port, run_id) => {
                master.known_peers.retain(|peer| again.is_none() || peer.run_id != run_id);
                master.known_peers.push(KnownPeer { host: host.into(), port, run_id });
            }
            Clause::RenameCommand(old, new) => {
                settings.rename_commands.retain(|known, _| again.is_none() || !known.eq_ignore_ascii_case(old));
                settings.rename_commands.insert(old.into(), new.into());
            }
        }
        Ok(())
    }

    fn executable(&mut self, line: &Aside, path: &str, message: &str) {
        if !path.is_empty() {
            let error = line.error(Fault::new(message));
            self.checks.push(Check { must: Must::BeExecutable, path: path.into(), error });
        }
    }

    /// What cannot be judged line by line.
    fn finish(self, notes: &mut Vec<String>) -> Snapshot {
        let mut snapshot = self.snapshot;
        let options = &snapshot.options;
        let named = |master: &&MasterSnapshot| Addr::new(&master.host, master.port).is_named();
        if options.resolve_hostnames
            && !options.announce_hostnames
            && let Some(master) = snapshot.masters.iter().find(named)
        {
            notes.push(format!(
                "{}: resolve-hostnames without announce-hostnames: clients are told addresses as they are seen from \
                 here, not names",
                master.name
            ));
        }
        for master in &mut snapshot.masters {
            snapshot.current_epoch = snapshot.current_epoch.max(master.config_epoch);
            let own = snapshot.myid;
            let (name, host, port) = (&master.name, &master.host, master.port);
            if master.settings.parallel_syncs == 0 {
                notes.push(format!("{name}: parallel-syncs is 0, which counts as 1"));
            }
            master.known_peers.retain(|peer| {
                let keep = Some(peer.run_id) != own;
                if !keep {
                    notes.push(format!("{name}: dropped a known-sentinel that has our own id"));
                }
                keep
            });
            master.known_replicas.retain(|replica| {
                let keep = replica.0 != *host || replica.1 != port;
                if !keep {
                    notes.push(format!("{name}: dropped a known-replica that is the master itself"));
                }
                keep
            });
        }
        snapshot
    }
}
