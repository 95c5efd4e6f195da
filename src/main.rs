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
use std::ffi::OsStr;
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use watchfire::base::glob;
use watchfire::config::{self, Source};
use watchfire::server::{Server, StartUp};

const NO_FILE: &str = "Sentinel needs config file on disk to save state. Exiting...";
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
    /// `--directive value ...`
    rest: Vec<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
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
                eprintln!("{text}");
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

fn order(name: Name, arguments: &[String]) -> Result<Order, String> {
    if let Some(check @ ("--test-memory" | "--check-system")) = arguments.first().map(String::as_str) {
        return Err(format!("{check} is not done by watchfire."));
    }
    let matches = match options().parse(arguments) {
        Ok(matches) => matches,
        // A directive where the file should be.
        Err(Fail::UnrecognizedOption(name)) => return Err(format!("{NO_FILE}\n('{name}' comes before any file name)")),
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
    let mut rest = matches.free.clone();
    let mut take = |word: &str| {
        let before = rest.len();
        rest.retain(|argument| argument != word);
        rest.len() < before
    };
    let check = take("--check-config") || matches.opt_present("check-config");
    let stdin = take("-");
    if rest.is_empty() || rest[0].starts_with("--") {
        return Err(NO_FILE.into());
    }
    let call = Call { file: rest.remove(0).into(), stdin, rest };
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
    let mut more = String::new();
    if call.stdin {
        std::io::stdin().read_to_string(&mut more).map_err(|why| format!("Cannot read standard input: {why}"))?;
        more.push('\n');
    }
    more.push_str(&config::from_args(&call.rest));
    let source = Source::file(&name).with_arguments(&more);
    let loaded = config::read(&text, source, &mut include).map_err(|error| error.to_string())?;
    Ok(StartUp { loaded, config_file: call.file.clone() })
}

/// The text behind an `include`: one file, or all that match a pattern in its last part, in order.
fn include(path: &str) -> std::io::Result<Vec<u8>> {
    let (folder, pattern) = path.rsplit_once('/').map_or((".", path), |(folder, last)| (folder, last));
    if !pattern.contains(['*', '?', '[']) {
        return std::fs::read(path);
    }
    let folder = if folder.is_empty() { "/" } else { folder };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        // A hidden file is not meant by a pattern, as in every shell.
        let hidden = name.as_encoded_bytes().starts_with(b".");
        if !hidden && glob::matches(pattern.as_bytes(), name.as_encoded_bytes(), false) {
            found.push(entry.path());
        }
    }
    found.sort();
    let mut text = Vec::new();
    for path in found {
        text.extend(std::fs::read(path)?);
        text.push(b'\n');
    }
    Ok(text)
}

fn check(call: &Call) -> Result<(), String> {
    let start_up = load(call)?;
    let more = start_up.check().map_err(|error| error.to_string())?;
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
        order(name, &line.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>())
    }

    fn run_of(line: &str) -> (String, bool, String) {
        match order_of(line) {
            Ok(Order::Run(call)) => (call.file.display().to_string(), call.stdin, call.rest.join(" ")),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_file_comes_first_and_what_follows_is_configuration() {
        assert_eq!(run_of("s.conf"), ("s.conf".into(), false, String::new()));
        assert_eq!(run_of("s.conf --port 1 --loglevel debug").2, "--port 1 --loglevel debug");
        assert_eq!(run_of("s.conf - --port 1"), ("s.conf".into(), true, "--port 1".into()));
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
    fn without_a_file_nothing_starts() {
        for line in ["", "--port 1", "--sentinel", "-", "--check-config"] {
            assert!(order_of(line).unwrap_err().starts_with(NO_FILE), "{line}");
        }
    }

    #[test]
    fn the_other_orders_are_known_by_their_words() {
        assert_eq!(order_of("-v"), Ok(Order::Version));
        assert_eq!(order_of("--version"), Ok(Order::Version));
        assert_eq!(order_of("-h"), Ok(Order::Help));
        let call = |rest: &[&str]| Call {
            file: "s.conf".into(),
            stdin: false,
            rest: rest.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(order_of("--check-config s.conf"), Ok(Order::Check(call(&[]))));
        assert_eq!(order_of("--check-config s.conf --port 1"), Ok(Order::Check(call(&["--port", "1"]))));
        assert_eq!(order_of("s.conf --check-config"), Ok(Order::Check(call(&[]))));
    }
}
