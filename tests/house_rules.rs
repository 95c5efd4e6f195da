//! The rules of the house, held by reading the sources: who may use whom, what lives in which room, what is nowhere.
//!
//! The tables below are the rules; `src/lib.rs` has them in prose. A broken one is told as `file:line: what is wrong`.
//! Sources are read as tokens, so comments and strings break nothing and paths are seen however they are written
//! (`crate::`, `super::super::`, trees of `use`). Each rule is shown a bad snippet at the end of this file.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

// ---------------------------------------------------------------- the rules

/// What of another room may be used.
enum May {
    All,
    /// Only these items: the room's plain data.
    Only(&'static [&'static str]),
}
use May::{All, Only};

/// Every room and the rooms it may use (besides itself).
const ROOMS: &[(&str, &[(&str, May)])] = &[
    ("main", &[("server", All), ("config", All), ("base", All)]),
    (
        "server",
        &[("net", All), ("command", All), ("config", All), ("acl", All), ("core", All), ("resp", All), ("base", All)],
    ),
    ("command", &[("core", All), ("config", All), ("acl", All), ("resp", All), ("base", All)]),
    (
        "config",
        &[
            (
                "core",
                Only(&["Snapshot", "MasterSnapshot", "KnownPeer", "Settings", "Options", "Tunables", "RunId", "Addr"]),
            ),
            ("base", All),
        ],
    ),
    ("core", &[("resp", Only(&["Reply", "request"])), ("base", All)]),
    ("acl", &[("base", All)]),
    ("resp", &[("base", All)]),
    ("net", &[("base", All)]),
    ("base", &[]),
];

/// Every package of Cargo.toml, and where it may be named. `libc` in net is for error numbers that std does not name.
const PACKAGES: &[(&str, &[&str])] = &[
    ("mio", &["net"]),
    ("socket2", &["net"]),
    ("slab", &["net", "server"]),
    ("signal_hook_mio", &["net"]),
    ("signal_hook", &["net", "server"]),
    ("libc", &["net", "server"]),
    ("rustls", &["net"]),
    ("log", &["server", "main"]),
    ("env_logger", &["server", "main"]),
    ("getopts", &["main"]),
    ("sha2", &["acl"]),
];

/// Files, processes, clocks, entropy: where the same inputs would not give the same outputs.
const WORLD: &[&str] = &["std::fs", "std::process", "std::thread", "std::env"];
const WORLD_WORDS: &[&str] = &["Instant", "SystemTime", "getrandom"];
const WORLD_ROOMS: &[&str] = &["server", "main"];

/// Sockets; plain addresses are everybody's.
const SOCKETS: &[&str] = &["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "UnixListener", "UnixDatagram"];
const SOCKET_ROOMS: &[&str] = &["net", "server"];

const UNSAFE_FILE: &str = "src/server/sys.rs";

/// The top level of the repository, besides dot files and what is built.
const TOP: &[&str] = &["Cargo.toml", "Cargo.lock", "src", "tests", "conf", "benches", "README.md", "LICENSE"];

/// Who may use whom.
fn imports(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    let Some((_, table)) = ROOMS.iter().find(|(room, _)| *room == file.room()) else {
        return vec![fault(1, format!("the room `{}` is not in the table of tests/house_rules.rs", file.room()))];
    };
    for path in file.paths() {
        let Some(inside) = path.inside_the_crate() else { continue };
        let Some(room) = inside.first().filter(|room| ROOMS.iter().any(|(name, _)| name == room)) else { continue };
        if room == file.room() {
            continue;
        }
        match table.iter().find(|(name, _)| name == room) {
            None => faults.push(fault(path.line, format!("{} may not use {room}", file.room()))),
            Some((_, All)) => {}
            Some((_, Only(items))) => match inside.get(1) {
                Some(item) if items.contains(&item.as_str()) => {}
                item => faults.push(fault(
                    path.line,
                    format!(
                        "{} may use of {room} only {}, not {}",
                        file.room(),
                        items.join(", "),
                        item.map_or("all of it", String::as_str)
                    ),
                )),
            },
        }
    }
    faults
}

/// Packages stay in their rooms.
fn packages(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    for path in file.paths() {
        let Some((name, rooms)) = PACKAGES.iter().find(|(name, _)| path.segments[0] == *name) else { continue };
        // `log::` inside server may be our own module of that name; it is allowed there anyway.
        if path.inside_the_crate().is_none() && !rooms.contains(&file.room()) {
            faults.push(fault(path.line, format!("{name} may be used only in {}", rooms.join(" and "))));
        }
    }
    faults
}

/// Files, processes, clocks, entropy and sockets; tests inside of src may use what they need.
fn world(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !WORLD_ROOMS.contains(&file.room()) {
        for path in file.paths().iter().filter(|path| !path.in_test) {
            let name = path.segments.join("::").replacen("core::", "std::", 1);
            if let Some(module) =
                WORLD.iter().find(|module| name == **module || name.starts_with(&format!("{module}::")))
            {
                faults.push(fault(path.line, format!("{module} belongs to server and main")));
            }
        }
        for token in file.tokens.iter().filter(|token| !token.in_test) {
            match token.kind {
                Kind::Word if WORLD_WORDS.contains(&token.text.as_str()) => {
                    faults.push(fault(token.line, format!("{} belongs to server and main", token.text)));
                }
                Kind::Text if token.text.contains("/dev/urandom") || token.text.contains("/dev/random") => {
                    faults.push(fault(token.line, "entropy belongs to server and main"));
                }
                _ => {}
            }
        }
    }
    if !SOCKET_ROOMS.contains(&file.room()) {
        let sockets = file.words().filter(|word| !word.in_test && SOCKETS.contains(&word.text.as_str()));
        faults.extend(sockets.map(|word| fault(word.line, format!("{} belongs to net and server", word.text))));
    }
    faults
}

/// `unsafe` is in one file, and nowhere else allowed.
fn unsafe_code(file: &File) -> Vec<Fault> {
    if file.path == UNSAFE_FILE {
        return Vec::new();
    }
    let hits = file.words().filter(|word| word.text == "unsafe");
    hits.map(|word| fault(word.line, format!("`unsafe` belongs to {UNSAFE_FILE}"))).collect()
}

/// No shared mutable state: no `Rc<RefCell<…>>`, no `static mut`.
fn shared_state(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, token) in file.tokens.iter().enumerate() {
        let next = |n: usize| file.tokens.get(at + n).map_or("", |token| token.text.as_str());
        if token.text == "static" && next(1) == "mut" {
            faults.push(fault(token.line, "`static mut`: no globals"));
        }
        if token.text == "Rc" && next(1) == "<" {
            let mut inner = file.tokens[at + 2..].iter();
            let name = inner.find(|token| token.kind == Kind::Word && !["std", "cell"].contains(&token.text.as_str()));
            if name.is_some_and(|name| name.text == "RefCell") {
                faults.push(fault(token.line, "`Rc<RefCell<…>>`: use ids"));
            }
        }
    }
    faults
}

/// Iteration in the core reaches effects, so its maps are ordered.
fn ordered_maps(file: &File) -> Vec<Fault> {
    if file.room() != "core" {
        return Vec::new();
    }
    let hits = file.words().filter(|word| word.text == "HashMap" || word.text == "HashSet");
    hits.map(|word| fault(word.line, format!("{} in core: its order differs from run to run", word.text))).collect()
}

/// Nothing half done.
fn unfinished(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, token) in file.tokens.iter().enumerate() {
        if ["todo", "unimplemented", "dbg"].contains(&token.text.as_str())
            && file.tokens.get(at + 1).is_some_and(|next| next.text == "!")
        {
            faults.push(fault(token.line, format!("`{}!` in src", token.text)));
        }
    }
    for (number, line) in file.source.lines().enumerate() {
        if line.contains("FIXME") {
            faults.push(fault(number + 1, "FIXME in src"));
        }
    }
    faults
}

/// A module begins with what it is for.
fn says_what_it_is(file: &File) -> Vec<Fault> {
    if file.source.starts_with("//! ") {
        Vec::new()
    } else {
        vec![fault(1, "does not begin with `//! ` and a sentence")]
    }
}

/// Tests run side by side, also with other things on the machine: they ask for free ports. Seen are literal ports in
/// the arguments of `bind`, `listen` and `TcpStream::connect`.
fn fixed_ports(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, token) in file.tokens.iter().enumerate() {
        let connects = ["connect", "connect_timeout"].contains(&token.text.as_str())
            && at >= 3
            && file.tokens[at - 3].text == "TcpStream";
        let called = file.tokens.get(at + 1).is_some_and(|next| next.text == "(");
        if !called || !(connects || ["bind", "listen"].contains(&token.text.as_str())) {
            continue;
        }
        let mut depth = 0;
        let mut address = false;
        for argument in &file.tokens[at + 1..] {
            match argument.text.as_str() {
                "(" | "[" | "{" if argument.kind == Kind::Sign => depth += 1,
                ")" | "]" | "}" if argument.kind == Kind::Sign => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            let port = match argument.kind {
                Kind::Text => {
                    address |= argument.text.parse::<std::net::IpAddr>().is_ok();
                    argument.text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok())
                }
                // A number directly behind an address: ("127.0.0.1", 6379), SocketAddr::from(([127, 0, 0, 1], 6379)).
                Kind::Number if address || depth > 1 => {
                    argument.text.replace('_', "").parse::<u16>().ok().filter(|n| *n > 255)
                }
                _ => None,
            };
            if let Some(port) = port.filter(|port| *port != 0) {
                faults.push(fault(argument.line, format!("the fixed port {port}")));
            }
        }
    }
    faults
}

// ---------------------------------------------------------------- the rules, held

const SRC_RULES: &[fn(&File) -> Vec<Fault>] =
    &[imports, packages, world, unsafe_code, shared_state, ordered_maps, unfinished, says_what_it_is, fixed_ports];

fn hold(folders: &[&str], rule: fn(&File) -> Vec<Fault>) {
    let mut broken = Vec::new();
    let mut seen = 0;
    for folder in folders {
        for path in rust_files(&root().join(folder)) {
            let source = fs::read_to_string(&path).expect("a source file can be read");
            let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
            let file = File::new(&name, &source);
            seen += 1;
            broken.extend(rule(&file).into_iter().map(|fault| format!("{name}:{}: {}", fault.line, fault.what)));
        }
    }
    assert!(seen > 0, "no sources in {folders:?}");
    assert!(broken.is_empty(), "{} broken:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn rooms_use_only_whom_they_may() {
    hold(&["src"], imports);
}

#[test]
fn packages_stay_in_their_rooms() {
    hold(&["src"], packages);
}

#[test]
fn files_processes_clocks_entropy_and_sockets_stay_in_their_rooms() {
    hold(&["src"], world);
}

#[test]
fn unsafe_is_in_one_file() {
    hold(&["src"], unsafe_code);
}

#[test]
fn there_is_no_shared_mutable_state() {
    hold(&["src"], shared_state);
}

#[test]
fn maps_of_the_core_are_ordered() {
    hold(&["src"], ordered_maps);
}

#[test]
fn nothing_is_left_half_done() {
    hold(&["src"], unfinished);
}

#[test]
fn every_module_says_what_it_is_for() {
    hold(&["src"], says_what_it_is);
}

#[test]
fn tests_take_free_ports() {
    hold(&["src", "tests"], fixed_ports);
}

#[test]
fn every_package_has_its_rooms() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml can be read");
    let homeless = homeless(&manifest);
    assert!(homeless.is_empty(), "say in PACKAGES of tests/house_rules.rs which rooms may use {homeless:?}");
}

/// The packages under `[dependencies]` that PACKAGES does not know.
fn homeless(manifest: &str) -> Vec<String> {
    let mut within = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            within = section.starts_with("dependencies]");
            names.extend(section.strip_prefix("dependencies.").map(|name| name.trim_end_matches(']')));
        } else if within
            && let Some((name, _)) = line.split_once('=').filter(|_| !line.starts_with([' ', '#', '}', ']']))
        {
            names.push(name);
        }
    }
    let names = names.into_iter().map(|name| name.trim().replace('-', "_"));
    names.filter(|name| PACKAGES.iter().all(|(known, _)| known != name)).collect()
}

#[test]
fn the_top_level_holds_only_what_belongs_there() {
    let entries = fs::read_dir(root()).expect("the root can be read");
    let names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    let strange = strangers(&names);
    assert!(strange.is_empty(), "at the top of the repository: {strange:?}");
}

fn strangers(names: &[String]) -> Vec<&String> {
    let built = |name: &str| name == "target" || name.ends_with(".log");
    names.iter().filter(|name| !name.starts_with('.') && !built(name) && !TOP.contains(&name.as_str())).collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

// ---------------------------------------------------------------- reading a source

struct Fault {
    line: usize,
    what: String,
}

fn fault(line: usize, what: impl Into<String>) -> Fault {
    Fault { line, what: what.into() }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Word,
    Number,
    /// A string; the text is what stands between the quotes.
    Text,
    Lifetime,
    Sign,
}

struct Token {
    kind: Kind,
    text: String,
    line: usize,
    /// Inside of an item under `#[cfg(test)]`.
    in_test: bool,
}

struct File {
    path: String,
    source: String,
    /// Where it hangs in the tree of modules; `src/core/link.rs` is `[core, link]`.
    module: Vec<String>,
    tokens: Vec<Token>,
}

/// One path as it is used: `use a::{b, c::*}` gives `a::b` and `a::c::*`.
struct Used {
    segments: Vec<String>,
    /// The module in which it stands.
    module: Vec<String>,
    line: usize,
    in_test: bool,
}

impl Used {
    /// The path from the root of the crate, without `crate`; `None` when it leads elsewhere.
    fn inside_the_crate(&self) -> Option<Vec<String>> {
        let mut at = match self.segments[0].as_str() {
            // The binary sees the library as a package.
            "crate" | "watchfire" => Vec::new(),
            "self" | "super" => self.module.clone(),
            _ => return None,
        };
        for segment in &self.segments {
            match segment.as_str() {
                "crate" | "watchfire" if at.is_empty() => {}
                "self" => {}
                "super" => {
                    at.pop();
                }
                name => at.push(name.to_string()),
            }
        }
        Some(at)
    }
}

impl File {
    fn new(path: &str, source: &str) -> File {
        let inner = path.trim_start_matches("src/").trim_end_matches(".rs");
        let mut module: Vec<String> = inner.split('/').map(str::to_string).collect();
        if module.last().is_some_and(|name| ["mod", "lib"].contains(&name.as_str())) {
            module.pop();
        }
        let mut tokens = tokens(source);
        mark_tests(&mut tokens);
        File { path: path.to_string(), source: source.to_string(), module, tokens }
    }

    /// The room the file lies in; lib.rs only lists the rooms.
    fn room(&self) -> &str {
        self.module.first().map_or("main", String::as_str)
    }

    fn words(&self) -> impl Iterator<Item = &Token> {
        self.tokens.iter().filter(|token| token.kind == Kind::Word)
    }

    fn paths(&self) -> Vec<Used> {
        let mut found = Vec::new();
        let mut module = self.module.clone();
        if module == ["main"] {
            module.clear();
        }
        // The depths of braces at which inline modules end.
        let mut inner: Vec<usize> = Vec::new();
        let mut depth = 0;
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            let text = |n: usize| self.tokens.get(n).map_or("", |token| token.text.as_str());
            match token.text.as_str() {
                "{" if token.kind == Kind::Sign => depth += 1,
                "}" if token.kind == Kind::Sign => {
                    depth -= 1;
                    if inner.last() == Some(&depth) {
                        inner.pop();
                        module.pop();
                    }
                }
                "mod" if token.kind == Kind::Word && text(at + 2) == "{" => {
                    module.push(text(at + 1).to_string());
                    inner.push(depth);
                }
                "use" if token.kind == Kind::Word => {
                    let from = found.len();
                    at = self.tree(at + 1, &mut Vec::new(), &mut found);
                    for used in &mut found[from..] {
                        used.module.clone_from(&module);
                    }
                    continue;
                }
                _ if token.kind == Kind::Word && (text(at + 1), text(at + 2)) == (":", ":") => {
                    let mut segments = vec![token.text.clone()];
                    let begin = at;
                    while text(at + 1) == ":"
                        && text(at + 2) == ":"
                        && self.tokens.get(at + 3).is_some_and(|next| next.kind == Kind::Word)
                    {
                        segments.push(text(at + 3).to_string());
                        at += 3;
                    }
                    let Token { line, in_test, .. } = self.tokens[begin];
                    found.push(Used { segments, module: module.clone(), line, in_test });
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// Reads one branch of a `use` from token `at`; the number of the token behind it.
    fn tree(&self, mut at: usize, stem: &mut Vec<String>, found: &mut Vec<Used>) -> usize {
        let base = stem.len();
        let mut whole = true;
        while let Some(token) = self.tokens.get(at) {
            match (token.kind, token.text.as_str()) {
                (Kind::Word, "as") => at += 1,
                (Kind::Word, _) | (Kind::Sign, "*") => stem.push(token.text.clone()),
                (Kind::Sign, ":") => {}
                (Kind::Sign, "{") => {
                    whole = false;
                    at += 1;
                    while self.tokens.get(at).is_some_and(|token| token.text != "}") {
                        at = self.tree(at, stem, found);
                        if self.tokens.get(at).is_some_and(|token| token.text == ",") {
                            at += 1;
                        }
                    }
                }
                _ => break,
            }
            at += 1;
        }
        if whole && let Some(last) = at.checked_sub(1).and_then(|at| self.tokens.get(at)) {
            // `a::{self}` is `a`; a lone `self` or `super` at the beginning stays.
            let mut segments = stem.clone();
            if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
                segments.pop();
            }
            if !segments.is_empty() {
                found.push(Used { segments, module: Vec::new(), line: last.line, in_test: last.in_test });
            }
        }
        stem.truncate(base);
        at
    }
}

/// Marks every token of an item that stands under `#[cfg(test)]`.
fn mark_tests(tokens: &mut [Token]) {
    let attribute = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut at = 0;
    while at + attribute.len() <= tokens.len() {
        if !tokens[at..].iter().zip(attribute).all(|(token, text)| token.text == text) {
            at += 1;
            continue;
        }
        // Up to the end of the item: a `;` or the end of a block, outside of all brackets.
        let mut depth = 0;
        let mut end = at + attribute.len();
        while end < tokens.len() {
            let text = if tokens[end].kind == Kind::Sign { tokens[end].text.as_str() } else { "" };
            match text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 && (text == ";" || text == "}") {
                break;
            }
            end += 1;
        }
        for token in tokens.iter_mut().take(end + 1).skip(at) {
            token.in_test = true;
        }
        at = end + 1;
    }
}

/// Enough of Rust's words to tell code from comments and strings.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let get = |at: usize| chars.get(at).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let (begin, first) = (at, line);
        let mut push = |kind, text: String| found.push(Token { kind, text, line: first, in_test: false });
        match get(at) {
            c if c.is_whitespace() => at += 1,
            '/' if get(at + 1) == '/' => {
                while at < chars.len() && get(at) != '\n' {
                    at += 1;
                }
            }
            '/' if get(at + 1) == '*' => {
                let mut depth = 0;
                while at < chars.len() {
                    match (get(at), get(at + 1)) {
                        ('/', '*') => depth += 1,
                        ('*', '/') => depth -= 1,
                        _ => {
                            at += 1;
                            continue;
                        }
                    }
                    at += 2;
                    if depth == 0 {
                        break;
                    }
                }
            }
            '"' => {
                at = end_of_string(&chars, at);
                push(Kind::Text, chars[begin + 1..at.saturating_sub(1)].iter().collect());
            }
            // 'x', '\'' and '\u{1}' are characters; anything else begins a lifetime.
            '\'' if get(at + 1) == '\\' || get(at + 2) == '\'' => {
                at += if get(at + 1) == '\\' { 3 } else { 2 };
                while at < chars.len() && get(at) != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' => {
                at += 1;
                while is_word(get(at)) {
                    at += 1;
                }
                push(Kind::Lifetime, chars[begin..at].iter().collect());
            }
            c if is_word(c) => {
                while is_word(get(at)) {
                    at += 1;
                }
                let word: String = chars[begin..at].iter().collect();
                let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
                if ["r", "br", "cr"].contains(&word.as_str()) && get(at + hashes) == '"' {
                    let inner = at + hashes + 1;
                    at = inner;
                    while at < chars.len() && !(get(at) == '"' && (1..=hashes).all(|n| get(at + n) == '#')) {
                        at += 1;
                    }
                    push(Kind::Text, chars[inner..at.min(chars.len())].iter().collect());
                    at += 1 + hashes;
                } else if ["b", "c"].contains(&word.as_str()) && get(at) == '"' {
                    let inner = at + 1;
                    at = end_of_string(&chars, at);
                    push(Kind::Text, chars[inner..at.saturating_sub(1).max(inner)].iter().collect());
                } else if word == "r" && hashes == 1 {
                    at += 1; // r#word: the word follows.
                } else if c.is_ascii_digit() {
                    push(Kind::Number, word);
                } else {
                    push(Kind::Word, word);
                }
            }
            c => {
                at += 1;
                push(Kind::Sign, c.to_string());
            }
        }
        line += chars[begin..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// The place behind the string whose opening quote is at `at`.
fn end_of_string(chars: &[char], mut at: usize) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

// ---------------------------------------------------------------- the rules can fail

/// The lines at which `rule` finds fault with `source` if it lay at `path`.
fn lines(rule: fn(&File) -> Vec<Fault>, path: &str, source: &str) -> Vec<usize> {
    rule(&File::new(path, source)).iter().map(|fault| fault.line).collect()
}

fn expect(rule: fn(&File) -> Vec<Fault>, cases: &[(&str, &str, &[usize])]) {
    for (path, source, wanted) in cases {
        assert_eq!(lines(rule, path, source), *wanted, "{path}:\n{source}");
    }
}

#[test]
fn imports_are_seen_however_they_are_written() {
    expect(
        imports,
        &[
            ("src/core/x.rs", "use crate::net::Reactor;", &[1]),
            ("src/core/x.rs", "use crate::base::Millis;\nuse crate::resp::{Reply, request};", &[]),
            ("src/core/x.rs", "use crate::{base::Millis,\n resp::{Reply,\n Writer}};", &[3]),
            ("src/core/x.rs", "use crate::resp;", &[1]),
            ("src/core/x.rs", "use crate::resp::{self, Reply};", &[1]),
            ("src/core/x.rs", "use crate::resp::*;", &[1]),
            ("src/core/x.rs", "use crate::resp as r;", &[1]),
            ("src/core/x.rs", "// crate::net\n/* crate::net /* */ */ const A: &str = \"crate::net\";", &[]),
            ("src/core/x.rs", "/// [`crate::config`]\nfn f() {\n    crate::config::read();\n}", &[3]),
            ("src/core/x.rs", "use super::super::server::Server;", &[1]),
            ("src/core/mod.rs", "use super::server::Server;", &[1]),
            ("src/core/mod.rs", "use self::net::Own;\nuse net::Own;", &[]),
            ("src/core/x.rs", "mod tests {\n    use super::super::super::net::A;\n}\nuse super::net::B;", &[2]),
            ("src/core/x.rs", "pub(in crate::core) fn f<'a>(x: &'a str) -> char { '\"' }\nuse crate::net::A;", &[2]),
            ("src/config/x.rs", "use crate::core::{Settings, Snapshot};\nuse crate::core::Sentinel;", &[2]),
            ("src/net/x.rs", "use crate::resp::Reply;", &[1]),
            ("src/resp/x.rs", "use crate::core::Addr;", &[1]),
            ("src/acl/x.rs", "use crate::command::Call;", &[1]),
            ("src/base/x.rs", "use crate::resp::Proto;", &[1]),
            ("src/command/x.rs", "use crate::{acl, config, core, resp};\nuse crate::server::Server;", &[2]),
            ("src/command/a/b.rs", "use super::super::super::net::A;\nuse super::super::net::B;", &[1]),
            ("src/server/x.rs", "use crate::{base, command, config, core, net, resp};", &[]),
            ("src/main.rs", "use watchfire::server::Server;\nuse watchfire::core::Sentinel;", &[2]),
            ("src/attic/mod.rs", "fn f() {}", &[1]),
        ],
    );
}

#[test]
fn packages_in_the_wrong_room_are_seen() {
    expect(
        packages,
        &[
            ("src/server/x.rs", "use mio::Poll;\nfn f(_: socket2::Socket) {}\nuse slab::Slab;", &[1, 2]),
            ("src/net/x.rs", "use mio::Poll;\nuse socket2::{Socket, Type};\nuse slab::Slab;", &[]),
            ("src/core/x.rs", "fn f() {\n    log::info!(\"\");\n}\nuse libc;", &[2, 4]),
            ("src/core/x.rs", "use super::log::Line;", &[]),
        ],
    );
    assert_eq!(
        homeless(
            "[package]\nname = \"x\"\n[dependencies]\nmio = \"1\"\nsignal-hook = { }\nrayon = \"1\"\n[features]\na = []"
        ),
        ["rayon"]
    );
    assert_eq!(homeless("[dependencies.rand]\nversion = \"1\"\n[dev-dependencies]\nproptest = \"1\""), ["rand"]);
}

#[test]
fn the_world_outside_is_seen() {
    expect(
        world,
        &[
            ("src/core/x.rs", "use std::fs;", &[1]),
            ("src/core/x.rs", "use std::{collections::BTreeMap, process::Command};", &[1]),
            ("src/net/x.rs", "fn f() {\n    std::thread::sleep(d);\n}", &[2]),
            ("src/config/x.rs", "use std::time::{Duration, Instant};", &[1]),
            ("src/base/x.rs", "use std::time;\nfn f() -> time::SystemTime { g() }", &[2]),
            ("src/base/x.rs", "const A: &str = \"/dev/urandom\"; // std::fs", &[1]),
            ("src/command/x.rs", "#[cfg(test)]\nmod tests {\n    use std::thread;\n}\nuse std::env;", &[5]),
            ("src/core/x.rs", "#[cfg(test)]\nuse std::fs;\nuse std::process;", &[3]),
            ("src/core/x.rs", "use std::net::{SocketAddr, TcpStream};", &[1]),
            ("src/server/x.rs", "use std::{fs, process, thread};\nuse std::time::Instant;", &[]),
            ("src/main.rs", "use std::process::ExitCode;", &[]),
        ],
    );
}

#[test]
fn words_that_are_nowhere_are_seen() {
    expect(
        unsafe_code,
        &[
            ("src/server/x.rs", "// unsafe\n#![allow(unsafe_code)]\nfn f() { unsafe { g() } }", &[3]),
            (UNSAFE_FILE, "fn f() { unsafe { g() } }", &[]),
        ],
    );
    expect(
        shared_state,
        &[
            ("src/core/x.rs", "type A = Rc<RefCell<u8>>;\ntype B = Rc<str>;", &[1]),
            ("src/core/x.rs", "type A = std::rc::Rc<std::cell::RefCell<u8>>;\nstatic mut B: u8 = 0;", &[1, 2]),
            ("src/core/x.rs", "static A: &'static str = \"static mut\";", &[]),
        ],
    );
    expect(
        ordered_maps,
        &[
            ("src/core/x.rs", "use std::collections::HashMap;\nuse std::collections::BTreeMap;", &[1]),
            ("src/config/x.rs", "use std::collections::HashMap;", &[]),
        ],
    );
    expect(
        unfinished,
        &[
            ("src/core/x.rs", "fn f() {\n    todo!()\n}\nfn g() { dbg!(1); unimplemented!() }", &[2, 4, 4]),
            ("src/core/x.rs", "fn todo() {}\n// FIXME later", &[2]),
        ],
    );
    expect(
        says_what_it_is,
        &[("src/core/x.rs", "use a;\n//! Late.", &[1]), ("src/core/x.rs", "//! What it is.\nuse a;", &[])],
    );
}

#[test]
fn fixed_ports_are_seen() {
    expect(
        fixed_ports,
        &[
            ("tests/x.rs", "TcpListener::bind(\"127.0.0.1:6379\")", &[1]),
            ("tests/x.rs", "TcpListener::bind((\"127.0.0.1\", 26_379))", &[1]),
            ("tests/x.rs", "TcpListener::bind((Ipv4Addr::LOCALHOST, 26379))", &[1]),
            ("tests/x.rs", "reactor.listen(SocketAddr::from(([127, 0, 0, 1], 7000)), 511)", &[1]),
            ("tests/x.rs", "reactor.listen(\"[::1]:7000\".parse().unwrap(), 511)", &[1]),
            ("tests/x.rs", "std::net::TcpStream::connect(\"127.0.0.1:80\")", &[1]),
            ("tests/x.rs", "TcpListener::bind((\"127.0.0.1\", 0)); bind(port); f(6379)", &[]),
            ("tests/x.rs", "reactor.listen(\"127.0.0.1:0\".parse().unwrap(), 511)", &[]),
            ("tests/x.rs", "clients.connect(now, \"1.1.1.1:1\")", &[]),
        ],
    );
}

#[test]
fn strangers_at_the_top_are_seen() {
    let names = ["src", ".ci", "target", "README.md", "notes.txt", "examples"].map(str::to_string);
    assert_eq!(strangers(&names), ["notes.txt", "examples"]);
}

#[test]
fn lines_are_counted_through_strings_and_comments() {
    let source = "//! What.\nconst A: &str = \"one\ntwo\";\n/* three\nfour */\nconst B: &str = r#\"five\n\"six\"#;\nuse crate::net::A;";
    for rule in SRC_RULES {
        let found = lines(*rule, "src/core/x.rs", source);
        assert!(found.is_empty() || found == [8], "{found:?}");
    }
    assert_eq!(lines(imports, "src/core/x.rs", source), [8]);
}
