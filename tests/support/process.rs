//! Child processes that end with their owner: real Redis servers, Sentinels of every kind, their folders and logs.
//!
//! A child is ended by its own id, never by a name, whatever becomes of the test. Its output goes to a file in its
//! folder; [`wait_for`] shows the tails of the files of this thread's children when a test waits in vain.

use std::cell::RefCell;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::conn::{Conn, Events, ask, info, text};
use super::{network, ports};

/// How long a child may take to answer its first PING.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How often a start is tried again when somebody took the port.
const START_TRIES: u32 = 5;
/// What a program of ours that broke has in its log.
const PANIC: &str = "panicked at";
/// Lines of each log shown when a test waits in vain.
const TAIL_LINES: usize = 25;

thread_local! {
    /// Name, id and log of the living children that this thread has started.
    static CHILDREN: RefCell<Vec<(String, u32, PathBuf)>> = const { RefCell::new(Vec::new()) };
}

/// What would be left behind if the process ended without dropping anything.
static LEFT_BEHIND: Mutex<(Vec<u32>, Vec<PathBuf>)> = Mutex::new((Vec::new(), Vec::new()));

/// For programs that would abort on a panic: ends all children, removes all folders and exits with 1 instead.
pub fn clean_up_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        if clean_up() {
            std::process::exit(1);
        }
    }));
}

/// Ends all children and removes all folders, for a process that is about to end without dropping anything. False when
/// somebody, this thread perhaps, is just changing the list of them.
#[must_use]
pub fn clean_up() -> bool {
    let Ok(left) = LEFT_BEHIND.try_lock() else { return false };
    for id in &left.0 {
        // Not waited for yet, so the number is still theirs.
        let _ = Command::new("/bin/sh").args(["-c", &format!("kill -KILL {id} 2>&-")]).status();
    }
    for folder in &left.1 {
        let _ = fs::remove_dir_all(folder);
    }
    true
}

fn left_behind(change: impl FnOnce(&mut (Vec<u32>, Vec<PathBuf>))) {
    change(&mut LEFT_BEHIND.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
}

/// Polls `condition` every few ms.
///
/// # Panics
/// When it does not hold within `limit`; the message says what was waited for and shows the ends of the logs of the
/// children that this thread has started.
pub fn wait_for(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        if begin.elapsed() > limit {
            panic!("waited {limit:?} in vain for: {what}\n{}", tails());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The ends of the logs of this thread's children.
#[must_use]
pub fn tails() -> String {
    let children = CHILDREN.with(|children| children.borrow().clone());
    children.iter().map(|(name, _, log)| format!("--- {name}\n{}\n", tail(log, TAIL_LINES))).collect()
}

fn tail(log: &Path, lines: usize) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let all: Vec<&str> = text.lines().collect();
    let last = all.len().saturating_sub(lines);
    // A backtrace must not push out the words that it belongs to.
    let panic = all.iter().position(|line| line.contains(PANIC)).map_or(last, |line| line.saturating_sub(lines / 2));
    all[last.min(panic)..].join("\n")
}

/// The program of that name in one of the folders of PATH.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The program that this variable names, or else the first of these names in PATH. A variable that names no file is
/// a mistake that should not pass for a missing program.
fn program(variable: &str, name: &str) -> Option<PathBuf> {
    match std::env::var_os(variable) {
        Some(path) => {
            let path = PathBuf::from(path);
            assert!(path.is_file(), "{variable} names {}, which is no file", path.display());
            Some(path)
        }
        None => find_program(name),
    }
}

/// True when the test can go on with `found`. A missing program skips the test with a word, except in CI (`CI=true`),
/// where it fails: there nobody reads the words.
///
/// # Panics
/// In CI, when it is missing.
#[must_use]
pub fn present<T>(found: Option<T>, name: &str) -> Option<T> {
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{name} is missing, and this is CI");
        eprintln!("skipped: {name} is missing");
    }
    found
}

/// A temporary folder of its own, removed with all that is in it.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// # Panics
    /// When the system's folder for such things cannot be written.
    #[must_use]
    pub fn new(what: &str) -> Folder {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("watchfire-{what}-{}-{count}", std::process::id()));
        // Left over from a process that had the same id and was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        left_behind(|left| left.1.push(path.clone()));
        Folder { path }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        left_behind(|left| left.1.retain(|path| *path != self.path));
    }
}

/// One child with its output in a file.
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// # Panics
    /// When the program cannot be started or the log not be written.
    #[must_use]
    pub fn spawn(name: &str, mut command: Command, log: &Path) -> Process {
        let out = File::options().create(true).append(true).open(log).expect("the log of a child");
        let err = out.try_clone().expect("a second handle of the log");
        command.stdin(Stdio::null()).stdout(out).stderr(err).env("LC_ALL", "C");
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {name} ({command:?}): {error}"));
        left_behind(|left| left.0.push(child.id()));
        let log = log.to_path_buf();
        CHILDREN.with(|children| children.borrow_mut().push((name.to_string(), child.id(), log.clone())));
        Process { child, name: name.to_string(), log }
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The log so far.
    #[must_use]
    pub fn log(&self) -> String {
        tail(&self.log, usize::MAX)
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGKILL, and its end.
    pub fn kill(&mut self) {
        let id = self.id();
        left_behind(|left| left.0.retain(|other| *other != id));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGSTOP: alive, but answers nobody.
    pub fn hang(&self) {
        self.signal("STOP");
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    /// Sends a signal by its name without `SIG`. Through a shell's `kill`, because std has only SIGKILL and tests have no
    /// `unsafe`.
    ///
    /// # Panics
    /// When there is no shell.
    pub fn signal(&self, name: &str) {
        let words = format!("kill -{name} {}", self.id());
        let done = Command::new("/bin/sh").args(["-c", &words]).stderr(Stdio::null()).status().expect("a shell");
        assert!(done.success(), "{words} failed for {}", self.name);
    }

    /// SIGTERM, and waits for the end.
    ///
    /// # Panics
    /// When it does not end within `limit`.
    pub fn terminate(&mut self, limit: Duration) -> ExitStatus {
        if let Ok(Some(status)) = self.child.try_wait() {
            return status;
        }
        self.signal("TERM");
        let begin = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status;
            }
            assert!(begin.elapsed() < limit, "{} does not end on SIGTERM:\n{}", self.name, tail(&self.log, TAIL_LINES));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL ends stopped processes too.
        self.kill();
        let id = self.id();
        // Not there when the owner of the child has moved to another thread, or the thread is at its end.
        let _ = CHILDREN.try_with(|children| children.borrow_mut().retain(|child| child.1 != id));
    }
}

/// Starts on a free port and waits for the first answer; when somebody took the port in between, on another one.
fn start_on(host: Ipv4Addr, name: &str, start: impl Fn(u16) -> Process) -> (u16, Process) {
    start_with(|| ports::free_on(host), name, start)
}

fn start_with(port: impl Fn() -> u16, name: &str, start: impl Fn(u16) -> Process) -> (u16, Process) {
    for _ in 0..START_TRIES {
        let port = port();
        let mut process = start(port);
        let begin = Instant::now();
        loop {
            if !process.is_running() {
                break;
            }
            // NOAUTH is an answer as well.
            if Conn::open(port).and_then(|mut conn| conn.try_cmd(&["PING"])).is_ok() {
                return (port, process);
            }
            assert!(begin.elapsed() < START_LIMIT, "{name} on port {port} does not answer:\n{}", process.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        let log = process.log();
        assert!(log.contains("in use"), "{name} on port {port} ended at once:\n{log}");
    }
    panic!("{name} found no port in {START_TRIES} tries");
}

/// A real Redis (or Valkey) server in a folder of its own.
pub struct Redis {
    pub port: u16,
    process: Process,
    folder: Folder,
    program: PathBuf,
}

impl Redis {
    /// The `redis-server` that `WATCHFIRE_REDIS` names, or the one in PATH.
    #[must_use]
    pub fn program() -> Option<PathBuf> {
        program("WATCHFIRE_REDIS", "redis-server")
    }

    /// Starts one with these lines in its configuration file.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(program: &Path, lines: &[&str]) -> Redis {
        Redis::start_at(Ipv4Addr::LOCALHOST, program, lines)
    }

    /// The same on that host.
    ///
    /// # Panics
    /// As [`Redis::start`].
    #[must_use]
    pub fn start_at(host: Ipv4Addr, program: &Path, lines: &[&str]) -> Redis {
        let folder = Folder::new("redis");
        let (port, process) = start_on(host, "redis-server", |port| {
            let dir = folder.path().display();
            // No snapshots, a sync without the delay that waits for more replicas, and a quick look for the master.
            let conf = format!(
                "port {port}\nbind {host}\nprotected-mode no\ndir {dir}\nsave \"\"\nappendonly no\nrepl-diskless-sync-delay 0\n\
                 {}\n",
                lines.join("\n")
            );
            fs::write(folder.path().join("redis.conf"), conf).expect("the folder can be written");
            Redis::spawn(program, &folder, port)
        });
        Redis { port, process, folder, program: program.to_path_buf() }
    }

    fn spawn(program: &Path, folder: &Folder, port: u16) -> Process {
        let mut command = network::command(ports::host(port), program);
        command.arg(folder.path().join("redis.conf")).current_dir(folder.path());
        Process::spawn(&format!("redis-server {port}"), command, &folder.path().join("log"))
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Starts it again on the same port, with the file that it had (and may have rewritten).
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.process.kill();
        let port = self.port;
        self.process = start_with(|| port, "redis-server", |port| Redis::spawn(&self.program, &self.folder, port)).1;
    }
}

/// Which program plays the Sentinel, and how it is told to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub name: String,
    pub path: PathBuf,
    /// What follows the configuration file on the command line.
    pub args: Vec<String>,
}

impl Program {
    /// watchfire; pass `env!("CARGO_BIN_EXE_watchfire")`.
    #[must_use]
    pub fn watchfire(path: impl Into<PathBuf>) -> Program {
        Program { name: "watchfire".to_string(), path: path.into(), args: Vec::new() }
    }

    /// The `redis-sentinel` that `WATCHFIRE_REDIS_SENTINEL` names, or the one in PATH.
    #[must_use]
    pub fn redis_sentinel() -> Option<Program> {
        let path = program("WATCHFIRE_REDIS_SENTINEL", "redis-sentinel")?;
        Some(Program { name: "redis-sentinel".to_string(), path, args: Vec::new() })
    }

    /// The `valkey-server` that `WATCHFIRE_VALKEY` names, or the one in PATH, as a Sentinel.
    #[must_use]
    pub fn valkey_sentinel() -> Option<Program> {
        let path = program("WATCHFIRE_VALKEY", "valkey-server")?;
        Some(Program::server("valkey-sentinel", path))
    }

    /// The `redis-server` 8 that `WATCHFIRE_REDIS8` names, as a Sentinel. The one in PATH may be of any age.
    #[must_use]
    pub fn redis8_sentinel() -> Option<Program> {
        std::env::var_os("WATCHFIRE_REDIS8")?;
        let path = program("WATCHFIRE_REDIS8", "redis-server")?;
        Some(Program::server("redis8-sentinel", path))
    }

    /// Any server binary, run with `--sentinel`.
    #[must_use]
    pub fn server(name: &str, path: impl Into<PathBuf>) -> Program {
        Program { name: name.to_string(), path: path.into(), args: vec!["--sentinel".to_string()] }
    }
}

/// A Sentinel of any kind in a folder of its own.
pub struct Sentinel {
    pub port: u16,
    pub program: Program,
    process: Process,
    folder: Folder,
}

impl Sentinel {
    /// Starts one with these lines in its configuration file, besides port, bind and dir.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(program: &Program, lines: &[String]) -> Sentinel {
        Sentinel::start_at(Ipv4Addr::LOCALHOST, program, lines)
    }

    /// The same on that host.
    ///
    /// # Panics
    /// As [`Sentinel::start`].
    #[must_use]
    pub fn start_at(host: Ipv4Addr, program: &Program, lines: &[String]) -> Sentinel {
        let folder = Folder::new("sentinel");
        let (port, process) = start_on(host, &program.name, |port| {
            let dir = folder.path().display();
            let conf = format!("port {port}\nbind {host}\ndir {dir}\n{}\n", lines.join("\n"));
            fs::write(folder.path().join("sentinel.conf"), conf).expect("the folder can be written");
            Sentinel::spawn(program, &folder, port)
        });
        Sentinel { port, program: program.clone(), process, folder }
    }

    fn spawn(program: &Program, folder: &Folder, port: u16) -> Process {
        let mut command = network::command(ports::host(port), &program.path);
        command.arg(folder.path().join("sentinel.conf")).args(&program.args).current_dir(folder.path());
        Process::spawn(&format!("{} {port}", program.name), command, &folder.path().join("log"))
    }

    #[must_use]
    pub fn conn(&self) -> Conn {
        Conn::to(self.port)
    }

    #[must_use]
    pub fn events(&self, patterns: &[&str]) -> Events {
        Events::subscribe(self.port, patterns)
    }

    /// Its run id (`SENTINEL MYID`).
    ///
    /// # Panics
    /// When it does not answer.
    #[must_use]
    pub fn id(&self) -> String {
        text(&self.conn().cmd(&["SENTINEL", "MYID"]))
    }

    /// The port it gives for a master; None when it is dead or knows none.
    #[must_use]
    pub fn master_port(&self, name: &str) -> Option<u16> {
        let reply = ask(self.port, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name])?;
        super::conn::texts(&reply).get(1)?.parse().ok()
    }

    /// Its configuration file as it is now.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn conf(&self) -> String {
        fs::read_to_string(self.conf_path()).expect("the configuration file")
    }

    #[must_use]
    pub fn conf_path(&self) -> PathBuf {
        self.folder.path().join("sentinel.conf")
    }

    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again with the file that it has written.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.process.kill();
        let (port, program) = (self.port, &self.program);
        self.process = start_with(|| port, &program.name, |port| Sentinel::spawn(program, &self.folder, port)).1;
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        // A group can get by without one of its Sentinels; a test must not.
        let log = self.log();
        if log.contains(PANIC) && !std::thread::panicking() {
            panic!("{} {} has panicked:\n{}", self.program.name, self.port, tail(&self.process.log, TAIL_LINES));
        }
    }
}

/// The fields of a server's INFO; empty when it does not answer.
#[must_use]
pub fn info_of(port: u16) -> std::collections::BTreeMap<String, String> {
    ask(port, &["INFO"]).map(|reply| info(&reply)).unwrap_or_default()
}
