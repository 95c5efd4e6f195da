//! The program: options, configuration, and then [`Server::run`].
//!
//! ```text
//! watchfire /etc/redis/sentinel.conf [-] [--directive value ...] [--sentinel]
//! ```
//!
//! The command line is redis-sentinel's. What is wrong before the server runs is said on standard error, and
//! the exit code is 1.

use getopts::{Fail, Options, ParsingStyle};
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use watchfire::base::glob;
use watchfire::config::{self, Source};
use watchfire::server::{Server, StartUp};

const NO_FILE: &str = "Sentinel needs config file on disk to save state. Exiting...";
const AFTERWORD: &str = "
Directives of the file may be given on the command line as well; they come after those of the file:
    watchfire /etc/redis/sentinel.conf --port 26380 --loglevel verbose
A '-' after FILE reads more directives from standard input. The file is where the state is kept; it has to be
writable, and so should be its directory.
";

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
    let outcome = match order(&arguments) {
        Ok(Order::Version) => say(&format!("Watchfire sentinel v={}\n", env!("CARGO_PKG_VERSION"))),
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

fn order(arguments: &[String]) -> Result<Order, String> {
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
        order(&line.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>())
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
