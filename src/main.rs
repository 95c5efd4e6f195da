//! The program: options, configuration, and then [`Server::run`].
//!
//! ```text
//! watchfire /etc/redis/sentinel.conf [-] [--directive value ...] [--sentinel]
//! ```
//!
//! The command line is redis-sentinel's. Started through a link with the name of one of redis's or valkey's programs, it
//! behaves as that one: a server has to be told `--sentinel`. What is wrong before the server runs is said on standard error, and
//! the exit code is 1.

use getopts::{Fail, Options, ParsingStyle};
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use watchfire::base::{SortedSet, glob};
use watchfire::config::{self, Opened, Source};
use watchfire::server::{Server, StartUp};

const NO_FILE: &str = "Sentinel needs config file on disk to save state. Exiting...";
const CHECK_WHAT: &str = "--check-config needs the FILE to check.";
const NO_SERVER: &str = "This is watchfire, which is a Sentinel and no server: it starts under this name only with --sentinel. \
Nothing was changed.";
const AFTERWORD: &str = "
Directives of the file may be given on the command line as well; they come after those of the file:
    watchfire /etc/redis/sentinel.conf --port 26380 --loglevel verbose
A '-' after FILE reads more directives from standard input. The file is where the state is kept; it has to be
writable, and so should be its directory.
";

/// The name under which we were started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Own,
    /// `redis-sentinel`, `valkey-sentinel`, or something around that.
    Sentinel,
    /// `redis-server`, `valkey-server`.
    Server,
}

impl Name {
    fn of(program: &OsStr) -> Name {
        let path = program.to_string_lossy();
        let name = path.rsplit('/').next().unwrap_or_default();
        let is = |what: &str| ["redis-", "valkey-"].iter().any(|family| name.contains(&format!("{family}{what}")));
        if is("sentinel") {
            Name::Sentinel
        } else if is("server") {
            Name::Server
        } else {
            Name::Own
        }
    }

    /// What `--version` says. Under a name of theirs the version that we are compatible with stands where tools look for it.
    fn version(self) -> String {
        let ours = env!("CARGO_PKG_VERSION");
        match self {
            Name::Own => format!("Watchfire sentinel v={ours}\n"),
            Name::Sentinel | Name::Server => {
                let (bits, like) = (usize::BITS, config::AS_REDIS);
                format!("Redis server v={like} sha=00000000:0 malloc=libc bits={bits} build=0 (watchfire {ours})\n")
            }
        }
    }
}

/// What to do, as the command line has it.
#[derive(Debug, PartialEq, Eq)]
enum Order {
    Version,
    Help,
    Run(Call),
    Check(Call),
}

/// Where the configuration comes from.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    file: PathBuf,
    stdin: bool,
    /// `--directive value ...`; a value may hold any byte.
    rest: Vec<OsString>,
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let name = Name::of(&std::env::args_os().next().unwrap_or_default());
    let outcome = match order(name, &arguments) {
        Ok(Order::Version) => say(&name.version()),
        Ok(Order::Help) => {
            let brief =
                "Usage: watchfire FILE [-] [--directive value ...] [--sentinel]\n       watchfire --check-config FILE";
            say(&(options().usage(brief) + AFTERWORD))
        }
        Ok(Order::Check(call)) => check(&call),
        Ok(Order::Run(call)) => run(&call),
        Err(text) => Err(text),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            if !text.is_empty() {
                // Where nobody reads it any more, the exit code still tells.
                let _ = writeln!(std::io::stderr(), "{text}");
            }
            ExitCode::FAILURE
        }
    }
}

fn options() -> Options {
    let mut options = Options::new();
    // Everything behind the file belongs to the configuration.
    options.parsing_style(ParsingStyle::StopAtFirstFree);
    options.optflag("v", "version", "say the version");
    options.optflag("h", "help", "say this");
    options.optflag("", "check-config", "say whether a server with this FILE would start; change nothing");
    options.optflag("", "sentinel", "accepted for redis-server's sake: there is no other mode");
    options
}

fn order(name: Name, arguments: &[OsString]) -> Result<Order, String> {
    if let Some(check @ ("--test-memory" | "--check-system")) = arguments.first().and_then(|word| word.to_str()) {
        return Err(format!("{check} is not done by watchfire."));
    }
    // Ours come first; what begins with the file is taken as it is.
    let is_ours = |word: &&OsString| word.as_bytes().starts_with(b"-") && word.as_bytes() != b"-";
    let (ours, rest) = arguments.split_at(arguments.iter().take_while(is_ours).count());
    let matches = match options().parse(ours) {
        Ok(matches) => matches,
        // A directive where the file should be.
        Err(Fail::UnrecognizedOption(name)) => {
            return Err(format!("{NO_FILE}\n('{name}' is no option of ours, and no FILE comes before it; see --help)"));
        }
        Err(other) => return Err(other.to_string()),
    };
    if matches.opt_present("version") {
        return Ok(Order::Version);
    }
    if matches.opt_present("help") {
        return Ok(Order::Help);
    }
    // Taken for a server, we would write into the file of one.
    if name == Name::Server && !arguments.iter().any(|argument| argument == "--sentinel") {
        return Err(NO_SERVER.into());
    }
    let Some((file, mut rest)) = rest.split_first().filter(|(file, _)| *file != "-") else {
        return Err(if matches.opt_present("check-config") { CHECK_WHAT } else { NO_FILE }.into());
    };
    let mut take_first = |word: &str| {
        let rest_of = rest.split_first().filter(|(first, _)| *first == word).map(|(_, rest)| rest);
        rest = rest_of.unwrap_or(rest);
        rest_of.is_some()
    };
    let check = take_first("--check-config") || matches.opt_present("check-config");
    let mut stdin = take_first("-");
    // Anywhere else it is somebody's value.
    if let Some((_, others)) = rest.split_last().filter(|(last, _)| *last == "-") {
        (stdin, rest) = (true, others);
    }
    let call = Call { file: file.into(), stdin, rest: rest.to_vec() };
    Ok(if check { Order::Check(call) } else { Order::Run(call) })
}

fn say(text: &str) -> Result<(), String> {
    // Whoever closed standard output (`| head`) does not want to hear of it.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn load(call: &Call) -> Result<StartUp, String> {
    let name = call.file.display().to_string();
    let text =
        std::fs::read(&call.file).map_err(|why| format!("Fatal error, can't open config file '{name}': {why}"))?;
    let mut more = Vec::new();
    if call.stdin {
        std::io::stdin().read_to_end(&mut more).map_err(|why| format!("Cannot read standard input: {why}"))?;
        more.push(b'\n');
    }
    let words: Vec<&[u8]> = call.rest.iter().map(|word| word.as_bytes()).collect();
    more.extend(config::from_args(&words));
    let source = Source::file(&name).with_arguments(&more);
    let loaded = config::read(&text, source, &mut include).map_err(|error| error.to_string())?;
    Ok(StartUp { loaded, config_file: call.file.clone() })
}

/// The files behind an `include`: one, or all that match a pattern, in order. None need match.
fn include(path: &str) -> std::io::Result<Vec<Opened>> {
    let is_pattern = |text: &str| text.contains(['*', '?', '[']);
    if !is_pattern(path) {
        return Ok(vec![Opened { path: path.into(), text: std::fs::read(path)? }]);
    }
    let mut found = vec![PathBuf::from(if path.starts_with('/') { "/" } else { "" })];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        found = match is_pattern(part) {
            true => found.iter().flat_map(|folder| matching(folder, part)).collect(),
            false => found.into_iter().map(|folder| folder.join(part)).filter(|path| path.exists()).collect(),
        };
    }
    // A pattern may also match folders, which hold no text.
    let files = found.into_iter().filter(|path| path.is_file());
    files.map(|path| Ok(Opened { text: std::fs::read(&path)?, path: path.display().to_string() })).collect()
}

/// What in a folder matches the pattern, in order. A hidden file is not meant, as in every shell.
fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // A set that is turned round has two spellings in a shell.
    let in_our_words = pattern.replace("[!", "[^");
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let is_meant = |name: &OsString| {
        let hidden = name.as_bytes().starts_with(b".") && !pattern.starts_with('.');
        !hidden && glob::matches(in_our_words.as_bytes(), name.as_bytes(), false)
    };
    let names: SortedSet<OsString> = entries.filter(is_meant).collect();
    names.iter().map(|name| folder.join(name)).collect()
}

fn check(call: &Call) -> Result<(), String> {
    let start_up = load(call)?;
    let more = start_up.check().map_err(|error| error.to_string())?;
    if !start_up.loaded.ignored.is_empty() {
        say(&format!("{}: accepted, but without meaning for a Sentinel\n", start_up.loaded.ignored.join(", ")))?;
    }
    for note in start_up.loaded.notes.iter().chain(&more) {
        say(&format!("{note}\n"))?;
    }
    say(&format!("{}: a server would start\n", call.file.display()))
}

fn run(call: &Call) -> Result<(), String> {
    let server = match Server::start(load(call)?) {
        Ok(server) => server,
        Err(error) if error.logged && !std::io::stderr().is_terminal() => return Err(String::new()),
        Err(error) => return Err(error.to_string()),
    };
    server.run().map_err(|why| format!("The event loop has failed: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(line: &str) -> Result<Order, String> {
        order_as(Name::Own, line)
    }

    fn order_as(name: Name, line: &str) -> Result<Order, String> {
        order(name, &line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn run_of(line: &str) -> (String, bool, String) {
        match order_of(line) {
            Ok(Order::Run(call)) => {
                (call.file.display().to_string(), call.stdin, call.rest.join(OsStr::new(" ")).into_string().unwrap())
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_file_comes_first_and_what_follows_is_configuration() {
        assert_eq!(run_of("s.conf"), ("s.conf".into(), false, String::new()));
        assert_eq!(run_of("s.conf --port 1 --loglevel debug").2, "--port 1 --loglevel debug");
        assert_eq!(run_of("s.conf - --port 1"), ("s.conf".into(), true, "--port 1".into()));
        assert_eq!(run_of("s.conf --port 1 -"), ("s.conf".into(), true, "--port 1".into()));
        let values = "--requirepass - --user --check-config --port 1";
        assert_eq!(run_of(&format!("s.conf {values}")), ("s.conf".into(), false, values.into()));
        assert_eq!(run_of("--sentinel s.conf --port 1").0, "s.conf");
        assert_eq!(run_of("s.conf --port 1 --sentinel").2, "--port 1 --sentinel");
        assert_eq!(run_of("s.conf --supervised systemd --daemonize no").2, "--supervised systemd --daemonize no");
    }

    #[test]
    fn the_name_of_the_program_says_what_it_is_taken_for() {
        for (path, name) in [
            ("watchfire", Name::Own),
            ("/usr/bin/redis-sentinel", Name::Sentinel),
            ("valkey-sentinel", Name::Sentinel),
            ("./redis-sentinel-7.4", Name::Sentinel),
            ("/opt/redis-sentinel/bin/watchfire", Name::Own),
            ("/usr/bin/redis-server", Name::Server),
            ("valkey-server", Name::Server),
            ("", Name::Own),
        ] {
            assert_eq!(Name::of(OsStr::new(path)), name, "{path}");
        }
        assert_eq!(order_as(Name::Server, "redis.conf").unwrap_err(), NO_SERVER);
        assert_eq!(order_as(Name::Server, "").unwrap_err(), NO_SERVER);
        for line in ["s.conf --sentinel", "--sentinel s.conf", "s.conf --sentinel --port 1"] {
            assert!(matches!(order_as(Name::Server, line), Ok(Order::Run(_))), "{line}");
        }
        assert_eq!(order_as(Name::Server, "-v"), Ok(Order::Version));
        assert!(Name::Server.version().contains(" v=7.") && Name::Own.version().contains(env!("CARGO_PKG_VERSION")));
        assert!(order_of("--test-memory 100").unwrap_err().contains("--test-memory"));
    }

    #[test]
    fn a_pattern_of_an_include_may_stand_in_any_part_of_the_path_and_match_nothing() {
        let folder = std::env::temp_dir().join(format!("watchfire-include-{}", std::process::id()));
        for place in ["b", "a", ".hidden", "a/x.conf"] {
            std::fs::create_dir_all(folder.join(place)).unwrap();
        }
        for (file, text) in
            [("a/s.conf", "1"), ("b/s.conf", "2"), ("b/t.conf", "3"), ("b/.u.conf", "4"), (".hidden/s.conf", "5")]
        {
            std::fs::write(folder.join(file), text).unwrap();
        }
        let texts = |pattern: &str| {
            let found = include(&folder.join(pattern).display().to_string()).unwrap();
            found.iter().map(|file| String::from_utf8_lossy(&file.text).into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(texts("*/s.conf"), "1 2");
        // `a/x.conf` is a folder.
        assert_eq!(texts("?/*.conf"), "1 2 3");
        assert_eq!(texts("[!b]/*.conf") + &texts("b/[t-z].conf"), "13");
        assert_eq!(texts("nowhere/*.conf"), "");
        assert_eq!(texts(".h*/*.conf"), "5");
        assert!(include(&folder.join("nowhere").display().to_string()).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn without_a_file_nothing_starts() {
        for line in ["", "--port 1", "--sentinel", "-"] {
            assert!(order_of(line).unwrap_err().starts_with(NO_FILE), "{line}");
        }
        assert_eq!(order_of("--check-config").unwrap_err(), CHECK_WHAT);
    }

    #[test]
    fn the_other_orders_are_known_by_their_words() {
        assert_eq!(order_of("-v"), Ok(Order::Version));
        assert_eq!(order_of("--version"), Ok(Order::Version));
        assert_eq!(order_of("-h"), Ok(Order::Help));
        let call = |rest: &[&str]| Call {
            file: "s.conf".into(),
            stdin: false,
            rest: rest.iter().map(OsString::from).collect(),
        };
        assert_eq!(order_of("--check-config s.conf"), Ok(Order::Check(call(&[]))));
        assert_eq!(order_of("--check-config s.conf --port 1"), Ok(Order::Check(call(&["--port", "1"]))));
        assert_eq!(order_of("s.conf --check-config"), Ok(Order::Check(call(&[]))));
    }
}
