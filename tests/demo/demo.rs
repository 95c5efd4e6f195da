//! A failover to look at: `cargo run --release --example demo`.
//!
//! Three Sentinels watch a master with two replicas, all on free loopback ports. When everybody knows everybody the
//! master is killed, and what happens is printed as it happens. Needs nothing but Rust: without a `redis-server` in
//! PATH (or with `--standin`) the tests' own Redis stand-in plays the servers. `--with <program>` puts another
//! Sentinel to the same test, `redis-sentinel` for instance.

#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::conn::{Conn, Event, Events, texts};
use support::group::{Group, Plan, Servers};
use support::process::{Program, Redis, clean_up_on_panic, find_program};

const SENTINELS: usize = 3;
const DOWN_AFTER_MS: u64 = 1000;
/// How long the group may take to meet, and to agree after the kill.
const LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(2);

/// The steps that Sentinels tell of: our word, their channel, and whose payload begins how (empty: any).
const STEPS: &[(&str, &str, &str)] = &[
    ("sdown", "+sdown", "master "),
    ("odown", "+odown", "master "),
    ("elected", "+elected-leader", "master "),
    ("promoted", "+promoted-slave", "slave "),
    ("switch", "+switch-master", ""),
];

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(help) => {
            eprintln!("{help}");
            return ExitCode::from(2);
        }
    };
    // The release profile aborts on a panic: then nothing is dropped, and children and folders would stay.
    clean_up_on_panic();
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&interrupted)) {
            eprintln!("cannot watch for signal {signal}: {error}");
        }
    }
    match run(&options, &interrupted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("\n{why}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    standin: bool,
    with: Option<PathBuf>,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
        let help = "usage: demo [--standin] [--with <another sentinel program>]";
        let mut options = Options { standin: false, with: None };
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--standin" => options.standin = true,
                "--with" => {
                    let name = args.next().ok_or(help)?;
                    let path = Path::new(&name).is_file().then(|| PathBuf::from(&name));
                    let found = path.or_else(|| find_program(&name));
                    options.with = Some(found.ok_or_else(|| format!("there is no program {name}"))?);
                }
                _ => return Err(help.to_string()),
            }
        }
        Ok(options)
    }
}

fn run(options: &Options, interrupted: &AtomicBool) -> Result<(), String> {
    let sentinel = match &options.with {
        Some(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = name.as_str();
            if name.ends_with("-server") {
                Program::server(name, path)
            } else {
                Program { name: name.to_string(), ..Program::watchfire(path) }
            }
        }
        None => Program::watchfire(watchfire_binary()?),
    };
    let redis = if options.standin { None } else { Redis::program() };
    let played_by = redis.as_ref().map_or("stand-in", |_| "redis-server");
    let servers = redis.map_or(Servers::StandIn, Servers::Real);
    let name = sentinel.name.clone();
    println!("{SENTINELS} × {name}, a master and two replicas ({played_by}), down-after {DOWN_AFTER_MS} ms\n");

    let begin = Instant::now();
    let plan = Plan::new(vec![sentinel; SENTINELS]).servers(servers).down_after(DOWN_AFTER_MS);
    let mut group = plan.start();
    while !group.is_known() {
        pause(begin, interrupted, "everybody knows everybody")?;
    }
    let old = group.ports[0];
    line("ready", "", &format!("everybody knows everybody after {:.1} s", begin.elapsed().as_secs_f64()));
    let events: Vec<Events> = group.sentinels.iter().map(|sentinel| sentinel.events(&["*"])).collect();

    let killed = Instant::now();
    group.kill(old);
    line("killed", "0", &format!("the master, 127.0.0.1:{old}"));
    let (agreed, new) = watch(&group, &events, old, killed, interrupted)?;

    let over = agreed.saturating_sub(u128::from(DOWN_AFTER_MS));
    println!(
        "\nAll {SENTINELS} Sentinels give 127.0.0.1:{new} and it takes writes, {agreed} ms after the kill: \
         {over} ms on top of down-after."
    );
    Ok(())
}

/// Prints the steps as they come until all Sentinels give one new master and it takes writes: in how many ms since
/// the kill, and which port.
fn watch(
    group: &Group,
    events: &[Events],
    old: u16,
    killed: Instant,
    interrupted: &AtomicBool,
) -> Result<(u128, u16), String> {
    let mut asked: Vec<Conn> = group.sentinels.iter().map(|sentinel| Conn::to(sentinel.port)).collect();
    let mut told = [false; STEPS.len()];
    // What we saw ourselves. It is printed one round later, in order with events that were on their way meanwhile.
    let mut seen: Vec<Line> = Vec::new();
    let (mut agreed, mut writable) = (None, None);
    loop {
        let mut fresh = new_steps(events, &mut told);
        fresh.append(&mut seen);
        fresh.sort();
        for (at, word, text) in &fresh {
            line(word, &since(killed, *at).to_string(), text);
        }
        // The last event can still be under way when all questions are answered.
        if let (Some((agreed, new)), Some(writable), Some(true)) = (agreed, writable, told.last())
            && fresh.is_empty()
        {
            return Ok((since(killed, writable).max(since(killed, agreed)), new));
        }
        let given: Vec<Option<u16>> = asked.iter_mut().map(|conn| new_master(conn, &group.name, old)).collect();
        let now = Instant::now();
        if agreed.is_none()
            && let Some(new) = given[0]
            && given.iter().all(|port| *port == Some(new))
        {
            agreed = Some((now, new));
            seen.push((now, "agreed", format!("all {SENTINELS} Sentinels give 127.0.0.1:{new}")));
        }
        if writable.is_none()
            && let Some(new) = given.iter().flatten().find(|new| Group::is_writable(**new))
        {
            let now = Instant::now();
            writable = Some(now);
            seen.push((now, "writable", format!("127.0.0.1:{new} takes a SET")));
        }
        pause(killed, interrupted, "the Sentinels agree on a new master")?;
    }
}

/// One line of the timeline: when, the step, what it means.
type Line = (Instant, &'static str, String);

fn since(killed: Instant, at: Instant) -> u128 {
    at.saturating_duration_since(killed).as_millis()
}

/// The steps that some Sentinel has told of and that were not told before: the first who did.
fn new_steps(events: &[Events], told: &mut [bool]) -> Vec<Line> {
    let heard: Vec<Vec<Event>> = events.iter().map(Events::all).collect();
    let mut fresh = Vec::new();
    for ((word, channel, begins), told) in STEPS.iter().zip(told).filter(|(_, told)| !**told) {
        let first = |who: usize| {
            let fits = |event: &&Event| event.channel == *channel && event.payload.starts_with(begins);
            heard[who].iter().find(fits).map(|event| (event.at, who, event.payload.as_str()))
        };
        if let Some((at, who, payload)) = (0..heard.len()).filter_map(first).min() {
            *told = true;
            fresh.push((at, *word, explain(word, who + 1, payload)));
        }
    }
    fresh
}

/// The master that a Sentinel gives, when it is another than `old`.
fn new_master(conn: &mut Conn, name: &str, old: u16) -> Option<u16> {
    let reply = conn.try_cmd(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name]).ok()?;
    texts(&reply).get(1)?.parse().ok().filter(|port| *port != old)
}

/// What a step means, in a few words.
fn explain(word: &str, who: usize, payload: &str) -> String {
    let words: Vec<&str> = payload.split(' ').collect();
    match word {
        "sdown" => format!("Sentinel {who} holds the master down"),
        "odown" => format!("Sentinel {who} counts {} of the quorum", words.last().unwrap_or(&"")),
        "elected" => format!("Sentinel {who} leads the failover"),
        "promoted" => format!("{} is a master now", words.get(1).unwrap_or(&"")),
        _ => format!("Sentinel {who} gives the new address"),
    }
}

fn line(word: &str, ms: &str, text: &str) {
    let unit = if ms.is_empty() { "" } else { "ms" };
    println!("  {word:<9} {ms:>6} {unit:<2}   {text}");
}

/// A short wait of a loop that began at `begin`; an error when it has taken too long or somebody pressed Ctrl-C.
fn pause(begin: Instant, interrupted: &AtomicBool, until: &str) -> Result<(), String> {
    if interrupted.load(Ordering::Relaxed) {
        return Err("interrupted".to_string());
    }
    if begin.elapsed() > LIMIT {
        return Err(format!("waited {} s in vain until {until}\n{}", LIMIT.as_secs(), support::process::tails()));
    }
    std::thread::sleep(POLL);
    Ok(())
}

/// The watchfire beside this example, built if need be: `cargo run --example` builds the example only.
fn watchfire_binary() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("where am I? {error}"))?;
    // <target>/<profile>/examples/demo
    let profile = own.parent().and_then(Path::parent).ok_or("the demo is not where cargo puts examples")?;
    let binary = profile.join(format!("watchfire{}", std::env::consts::EXE_SUFFIX));
    let cargo = std::env::var_os("CARGO");
    if binary.is_file() && cargo.is_none() {
        return Ok(binary);
    }
    if !binary.is_file() {
        println!("building watchfire …");
    }
    // When it is there and fresh this takes no time; when it is stale, the demo would show yesterday's program.
    let mut build = Command::new(cargo.unwrap_or_else(|| "cargo".into()));
    // What cargo has told us about our own package would make it build those anew that look at it.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"CARGO_")) {
        let setting = ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_NET", "CARGO_PROFILE", "CARGO_BUILD"];
        if !setting.iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes())) {
            build.env_remove(name);
        }
    }
    build.args(["build", "--quiet", "--bin", "watchfire", "--manifest-path"]);
    build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    build.arg("--target-dir").arg(profile.parent().unwrap_or(profile));
    match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => {}
        Some(name) => drop(build.args(["--profile", name])),
    }
    match build.status() {
        Ok(status) if status.success() && binary.is_file() => Ok(binary),
        Ok(_) => Err("watchfire could not be built".to_string()),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
}
