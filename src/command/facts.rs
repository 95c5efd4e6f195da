//! What the shell knows about the process and commands show: plain data, no look-ups.

use super::Names;
use crate::base::Millis;
use crate::config::LogLevel;
use crate::core::RunId;
use std::fmt;
use std::time::Duration;

/// Processor time used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    pub sys: Duration,
    pub user: Duration,
    pub sys_children: Duration,
    pub user_children: Duration,
    pub sys_main_thread: Duration,
    pub user_main_thread: Duration,
}

/// Fixed or rarely changing facts about this process. Functions stand for what has to be looked up outside.
#[derive(Clone)]
pub struct Facts {
    pub pid: u32,
    /// Random, of this process; not the Sentinel's `myid`.
    pub run_id: RunId,
    pub tcp_port: u16,
    /// What INFO shows as `listenerN:`, such as `name=tcp,bind=*,bind=-::*,port=26379`.
    pub listeners: Vec<String>,
    /// When the process began, on the clock of [`World::now`](super::World::now).
    pub started: Millis,
    pub executable: String,
    pub config_file: String,
    pub maxclients: usize,
    pub loglevel: LogLevel,
    pub protected_mode: bool,
    /// `no`, `upstart` or `systemd`.
    pub supervised: &'static str,
    /// `Linux 6.1.0 x86_64`: system, release, machine.
    pub os: String,
    /// Cron runs per second at the moment (10..=19).
    pub hz: u32,
    pub cpu_times: fn() -> CpuTimes,
    /// Is there a file of that path that we may execute?
    pub is_executable: fn(&str) -> bool,
    /// Fills the slice with random bytes that nobody can guess; false when there are none to be had.
    pub entropy: fn(&mut [u8]) -> bool,
    /// What clients call the commands.
    pub names: Names,
    /// The file with the users, as configured; empty when there is none.
    pub aclfile: String,
    /// The bytes of a file, or why they cannot be read.
    pub read_file: fn(&str) -> Result<Vec<u8>, String>,
    /// Replaces a file as a whole, or says why not.
    pub write_file: fn(&str, &[u8]) -> Result<(), String>,
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Facts {{ pid: {}, run_id: {}, tcp_port: {} }}", self.pid, self.run_id, self.tcp_port)
    }
}

impl Facts {
    /// Facts of a process about which nothing is known yet; the shell overwrites what it knows.
    #[must_use]
    pub fn new(run_id: RunId) -> Facts {
        Facts {
            pid: 0,
            run_id,
            tcp_port: 26379,
            listeners: Vec::new(),
            started: Millis(0),
            executable: String::new(),
            config_file: String::new(),
            maxclients: 10_000,
            loglevel: LogLevel::Notice,
            protected_mode: false,
            supervised: "no",
            os: String::new(),
            hz: 10,
            cpu_times: CpuTimes::default,
            is_executable: |_| false,
            entropy: |_| false,
            names: Names::default(),
            aclfile: String::new(),
            read_file: |_| Err("No such file or directory".to_owned()),
            write_file: |_, _| Err("Read-only file system".to_owned()),
        }
    }
}

/// Samples that an instantaneous rate is averaged over.
const SAMPLES: usize = 16;
/// How far apart they are taken while there is something to do, in ms.
const SAMPLE_PERIOD: u64 = 100;

/// A rate per second, sampled by the shell about every 100 ms.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    samples: [u64; SAMPLES],
    next: usize,
    last_value: u64,
}

impl Rate {
    /// A long sleep counts for as many samples as would have been taken meanwhile.
    fn sample(&mut self, value: u64, elapsed_ms: u64) {
        let grown = value.saturating_sub(self.last_value);
        self.last_value = value;
        for _ in 0..(elapsed_ms / SAMPLE_PERIOD).clamp(1, SAMPLES as u64) {
            self.samples[self.next] = grown.saturating_mul(1000) / elapsed_ms;
            self.next = (self.next + 1) % SAMPLES;
        }
    }

    fn average(&self) -> u64 {
        self.samples.iter().sum::<u64>() / SAMPLES as u64
    }
}

/// Counters for INFO. The shell counts what it does; `commands_processed` and `error_replies` are counted by
/// [`dispatch`](super::dispatch).
#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub connections_received: u64,
    pub connections_rejected: u64,
    pub commands_processed: u64,
    pub error_replies: u64,
    /// AUTH and HELLO AUTH that failed; commands refused for want of the right to run them, or to reach a channel.
    pub auth_failures: u64,
    pub denied_commands: u64,
    pub denied_channels: u64,
    pub net_in: u64,
    pub net_out: u64,
    pub reads: u64,
    pub writes: u64,
    /// Clients cut off by the shell because of too much input without a request, too much output not read.
    pub query_limit_disconnections: u64,
    pub output_limit_disconnections: u64,
    /// Turns of the loop and the time spent working in them, in µs.
    pub loop_cycles: u64,
    pub loop_usec: u64,
    /// Of which in commands, in µs.
    pub command_usec: u64,
    /// When the log last spoke of a client that speaks HTTP, and how many have come since.
    http_told: Option<Millis>,
    http_untold: u64,
    sampled: Millis,
    ops: Rate,
    cycles: Rate,
    usec: Rate,
    rate_in: Rate,
    rate_out: Rate,
}

/// Of clients that speak HTTP the log speaks so often at most, in ms: whoever sends a thousand of them must not fill it.
const HTTP_TOLD_PERIOD: u64 = 60_000;

impl Stats {
    /// A client speaks HTTP. `Some` when that is to be said, with how many others there were since it was said last.
    pub(super) fn http_seen(&mut self, now: Millis) -> Option<u64> {
        if self.http_told.is_some_and(|told| now.since(told) < HTTP_TOLD_PERIOD) {
            self.http_untold += 1;
            return None;
        }
        self.http_told = Some(now);
        Some(std::mem::take(&mut self.http_untold))
    }

    /// Notes the counters for the instantaneous rates; to be called about every 100 ms, as long as anything happens.
    pub fn sample(&mut self, now: Millis) {
        let elapsed = now.since(self.sampled);
        if elapsed == 0 {
            return;
        }
        self.sampled = now;
        self.ops.sample(self.commands_processed, elapsed);
        self.cycles.sample(self.loop_cycles, elapsed);
        self.usec.sample(self.loop_usec, elapsed);
        self.rate_in.sample(self.net_in, elapsed);
        self.rate_out.sample(self.net_out, elapsed);
    }

    /// Commands a second, lately.
    #[must_use]
    pub fn ops_per_sec(&self) -> u64 {
        self.ops.average()
    }

    /// Turns of the loop a second, lately.
    #[must_use]
    pub fn cycles_per_sec(&self) -> u64 {
        self.cycles.average()
    }

    /// µs of work in one turn, lately.
    #[must_use]
    pub fn usec_per_cycle(&self) -> u64 {
        self.usec.average().checked_div(self.cycles.average()).unwrap_or(0)
    }

    /// Bytes a second, lately: in, out.
    #[must_use]
    pub fn bytes_per_sec(&self) -> (u64, u64) {
        (self.rate_in.average(), self.rate_out.average())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_after_a_long_sleep_is_that_of_lately() {
        let mut stats = Stats::default();
        let mut now = Millis(0);
        let mut sample = |stats: &mut Stats, commands: u64, after: u64| {
            now = now + after;
            stats.commands_processed += commands;
            stats.sample(now);
        };
        for _ in 0..SAMPLES {
            sample(&mut stats, 100, SAMPLE_PERIOD);
        }
        assert_eq!(stats.ops_per_sec(), 1_000);
        // Half of the time that is averaged over was slept away.
        sample(&mut stats, 0, SAMPLE_PERIOD * SAMPLES as u64 / 2);
        assert_eq!(stats.ops_per_sec(), 500);
        sample(&mut stats, 0, 3_600_000);
        assert_eq!(stats.ops_per_sec(), 0);
    }
}
