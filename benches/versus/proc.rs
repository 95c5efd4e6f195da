//! What the kernel says about a process.

use std::fs;

/// CPU time of all threads so far, in ms. From `schedstat`, in ns; `stat` counts in hundredths of a second.
///
/// # Panics
/// When there is no such process, as in all that follow.
#[must_use]
pub fn cpu_ms(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("the threads of a process");
    let ns = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    ns.sum::<f64>() / 1e6
}

/// CPU time so far of the threads of this process with that name, in ms.
#[must_use]
pub fn thread_cpu_ms(name: &str) -> f64 {
    let threads = fs::read_dir("/proc/self/task").expect("our threads");
    let ours = threads
        .flatten()
        .filter(|thread| fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim() == name));
    let ns = ours.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    ns.sum::<f64>() / 1e6
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
