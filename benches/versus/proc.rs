//! What the kernel says about a process.

use std::fs;
use std::path::Path;

/// What the scheduler gave to all threads of a process so far, in ms.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    pub used: f64,
    /// Ready to run, and another had the CPU.
    pub waited: f64,
}

impl Cpu {
    /// From `schedstat`, in ns; `stat` counts in hundredths of a second.
    ///
    /// # Panics
    /// When there is no such process.
    #[must_use]
    pub fn of(pid: u32) -> Cpu {
        Cpu::sum(&format!("/proc/{pid}/task"), |_| true)
    }

    /// The same of those threads of this process that have this name.
    #[must_use]
    pub fn of_threads(name: &str) -> Cpu {
        let is = |thread: &Path| fs::read_to_string(thread.join("comm")).is_ok_and(|comm| comm.trim() == name);
        Cpu::sum("/proc/self/task", is)
    }

    fn sum(folder: &str, counts: impl Fn(&Path) -> bool) -> Cpu {
        let threads = fs::read_dir(folder).expect("the threads of a process").flatten().map(|thread| thread.path());
        let mut sum = Cpu::default();
        for thread in threads.filter(|thread| counts(thread)) {
            // A thread may end while we look.
            let text = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
            let mut ms = text.split(' ').map(|ns| ns.parse().unwrap_or(0.0) / 1e6);
            sum.used += ms.next().unwrap_or(0.0);
            sum.waited += ms.next().unwrap_or(0.0);
        }
        sum
    }

    /// What was added since `before`, for every one of `units`.
    #[must_use]
    pub fn since(self, before: Cpu, units: f64) -> Cpu {
        Cpu { used: (self.used - before.used) / units, waited: (self.waited - before.waited) / units }
    }
}

/// How many threads were running or ready to on an average of the last minute.
#[must_use]
pub fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_string()
}

/// Resident memory in MB (of 1,000,000 bytes): all of it, and with shared pages divided among their users.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub rss: f64,
    pub pss: f64,
}

#[must_use]
pub fn memory(pid: u32) -> Memory {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the memory of a process");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib: f64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).expect("a size in KiB");
        kib * 1024.0 / 1e6
    };
    Memory { rss: field("Rss:"), pss: field("Pss:") }
}

/// The limits of open files: now, and the most that can be asked for.
#[must_use]
pub fn open_files() -> (u64, u64) {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap_or_default();
    let mut numbers = line.split_whitespace().map(|word| word.parse().unwrap_or(u64::MAX));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
