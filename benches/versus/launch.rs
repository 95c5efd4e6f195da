//! One Sentinel under the stopwatch: when it answers, how long it lets a PING wait, how often it saves.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::stats::Samples;
use crate::support::conn::{Conn, text};
use crate::support::ports;
use crate::support::process::{Folder, Process, Program};

/// A slow one may take a while with thousands of masters.
const LIMIT: Duration = Duration::from_secs(120);
/// INFO on a thousand masters is work; asking for it all the time would measure that.
const INFO_POLL: Duration = Duration::from_millis(25);

/// A configuration file in a folder of its own, and nobody running yet.
pub struct Seat {
    folder: Folder,
    program: Program,
    pub port: u16,
}

impl Seat {
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn new(program: &Program, lines: &[String]) -> Seat {
        let seat = Seat { folder: Folder::new("versus"), program: program.clone(), port: ports::free() };
        let (port, dir) = (seat.port, seat.folder.path().display());
        let text = format!("port {port}\nbind 127.0.0.1\ndir {dir}\n{}\n", lines.join("\n"));
        fs::write(seat.conf(), text).expect("the folder can be written");
        seat
    }

    #[must_use]
    pub fn conf(&self) -> PathBuf {
        self.folder.path().join("sentinel.conf")
    }

    /// Starts it and waits for its first answer.
    ///
    /// # Panics
    /// When it ends or stays silent.
    #[must_use]
    pub fn launch(self) -> Launched {
        let mut command = Command::new(&self.program.path);
        command.arg(self.conf()).args(&self.program.args).current_dir(self.folder.path());
        let begin = Instant::now();
        let mut process = Process::spawn(&self.program.name, command, &self.folder.path().join("log"));
        while Conn::open(self.port).and_then(|mut conn| conn.try_cmd(&["PING"])).is_err() {
            assert!(process.is_running(), "{} ended:\n{}", self.program.name, process.log());
            assert!(begin.elapsed() < LIMIT, "{} does not answer:\n{}", self.program.name, process.log());
            std::thread::sleep(Duration::from_micros(200));
        }
        Launched { ready: begin.elapsed(), begin, process, seat: self }
    }
}

/// The running Sentinel; ends with its owner.
pub struct Launched {
    pub begin: Instant,
    /// From its start to its first answer.
    pub ready: Duration,
    process: Process,
    seat: Seat,
}

impl Launched {
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.seat.port
    }

    /// Its INFO on its masters, however long it takes.
    ///
    /// # Panics
    /// When it does not come at all.
    #[must_use]
    pub fn info(&self) -> String {
        let mut conn = Conn::to(self.port());
        conn.set_patience(Some(LIMIT));
        text(&conn.cmd(&["INFO", "sentinel"]))
    }

    /// Waits until it holds so many masters to be fine, each with what stands in `known` (as `slaves=1`).
    ///
    /// # Panics
    /// When that takes too long.
    pub fn wait_for_masters(&self, count: usize, known: &str) {
        let begin = Instant::now();
        loop {
            let info = self.info();
            let fine = info.matches("status=ok").count();
            if fine == count && info.matches(known).count() == count {
                return;
            }
            assert!(begin.elapsed() < LIMIT, "{fine} of {count} masters fine:\n{}", self.process.log());
            std::thread::sleep(INFO_POLL);
        }
    }
}

/// Something counted or measured by a thread of its own until it is asked for.
struct Observer<T> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Observer<T> {
    fn start(observe: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Observer<T> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        Observer { stop, thread: std::thread::spawn(move || observe(&seen)) }
    }

    fn end(self) -> T {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("an observer")
    }
}

/// PINGs one after the other, with a pause between them that decides what the measuring costs: the longest wait is the
/// longest turn of the loop.
pub struct Pings(Observer<Vec<Duration>>);

impl Pings {
    #[must_use]
    pub fn start(port: u16, pause: Duration) -> Pings {
        Pings(Observer::start(move |stop| {
            let mut conn = Conn::to(port);
            conn.set_patience(None);
            let mut waits = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let begin = Instant::now();
                conn.cmd(&["PING"]);
                waits.push(begin.elapsed());
                std::thread::sleep(pause);
            }
            waits
        }))
    }

    /// In ms.
    #[must_use]
    pub fn end(self) -> Samples {
        self.0.end().into_iter().collect()
    }
}

/// Counts how often a file is replaced or rewritten, by looking at it faster than anybody saves.
pub struct Saves(Observer<usize>);

impl Saves {
    #[must_use]
    pub fn watch(file: &Path) -> Saves {
        let file = file.to_path_buf();
        let state = move || {
            let meta = fs::metadata(&file).ok()?;
            Some((meta.ino(), meta.mtime(), meta.mtime_nsec()))
        };
        let mut last = state();
        Saves(Observer::start(move |stop| {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                let now = state();
                if now.is_some() && now != last {
                    count += 1;
                    last = now;
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            count
        }))
    }

    #[must_use]
    pub fn end(self) -> usize {
        self.0.end()
    }
}
