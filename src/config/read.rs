//! From text to meaning: the first walk. Plain directives act in the order of the file. `sentinel` lines are put aside, and
//! read afterwards by the second walk, which is in `masters`.

use super::directives::{self, Meaning, Scope};
use super::error::{ConfigError, Fault};
use super::masters::Masters;
use super::options::ServerOptions;
use crate::base::{Alike, quote, secret};
use crate::core::Snapshot;
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
pub(super) enum Origin {
    Main,
    Included,
    Arguments,
}

/// A `sentinel` line put aside.
pub(super) struct Aside {
    pub file: Rc<str>,
    line: usize,
    pub origin: Origin,
    /// It came through an `include`, be it one of the command line.
    included: bool,
    text: Vec<u8>,
    pub words: Vec<Vec<u8>>,
}

impl Aside {
    pub fn error(&self, fault: Fault) -> ConfigError {
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
        let of_sentinel = words[0].alike(b"sentinel");
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
    pub fn place(&self) -> String {
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
            if line.words[0].alike(b"sentinel") {
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
