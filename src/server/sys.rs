//! What std lacks: the only file of the program with `unsafe`.
//!
//! Each function wraps one or two calls of libc, owns every pointer it passes and hands out plain data, so
//! that nothing unsafe can be got wrong from outside.
#![allow(unsafe_code)]

use crate::base::Millis;
use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The monotonic clock, in ms since some moment before this process began, rounded down.
#[must_use]
pub fn clock() -> Millis {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live local of the right type.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Millis(seconds * 1000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000)
}

/// A moment in the local time zone, as calendars count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    pub year: i32,
    /// 0 is January.
    pub month: usize,
    pub day: i32,
    pub hour: i32,
    pub minute: i32,
    pub second: i32,
    /// East of Greenwich, in minutes.
    pub offset: i64,
}

/// The months as logs name them, whatever the language of the machine.
pub const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// What wall-clock seconds since 1970 are called here.
#[must_use]
pub fn local_time(seconds: i64) -> LocalTime {
    let mut parts = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to live locals; localtime_r fills the struct or leaves the zeroes, and zeroes
    // are a valid `tm` (its zone pointer is never read).
    let parts = unsafe {
        libc::localtime_r(&seconds, parts.as_mut_ptr());
        parts.assume_init()
    };
    LocalTime {
        year: parts.tm_year + 1900,
        month: usize::try_from(parts.tm_mon).unwrap_or(0).min(11),
        day: parts.tm_mday,
        hour: parts.tm_hour,
        minute: parts.tm_min,
        second: parts.tm_sec,
        offset: parts.tm_gmtoff / 60,
    }
}

/// Fills `bytes` from the kernel's generator.
pub fn entropy(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: the pointer and the length describe one live, exclusively borrowed slice.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(got) {
            Ok(n) => filled += n,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Goes on as a child without a terminal, its standard streams on /dev/null. The parent ends here, with 0.
///
/// To be called while the process has a single thread.
pub fn daemonize() -> io::Result<()> {
    // SAFETY: no other thread exists, so the child is a whole copy; `_exit` runs no destructors of the parent,
    // which matters because the child goes on using what they would tear down.
    unsafe {
        match libc::fork() {
            -1 => return Err(io::Error::last_os_error()),
            0 => {}
            _ => libc::_exit(0),
        }
        libc::setsid();
    }
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for stream in 0..=2 {
        // SAFETY: plain descriptors; `null` stays open until the loop is over.
        if unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), stream) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Stops this process until somebody sends SIGCONT.
pub fn stop_ourselves() {
    // SAFETY: takes a number and touches no memory of ours.
    unsafe {
        libc::raise(libc::SIGSTOP);
    }
}

/// How many descriptors this process may have open after asking for at least `wanted`: the soft limit is
/// raised only when it is lower, and as far as the hard limit (or our rights) allow.
pub fn open_files(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live local of the right type.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    // First as asked, hard limit included, which only the privileged may; then up to the hard limit.
    for hard in [limit.rlim_max.max(wanted), limit.rlim_max] {
        let try_limit = libc::rlimit { rlim_cur: wanted.min(hard), rlim_max: hard };
        // SAFETY: as above.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &try_limit) } == 0 {
            return Ok(try_limit.rlim_cur);
        }
    }
    Ok(limit.rlim_cur)
}

/// Processor time used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub system: Duration,
    pub user: Duration,
    pub children_system: Duration,
    pub children_user: Duration,
}

#[must_use]
pub fn cpu_time() -> CpuTime {
    let usage = |who| {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a live local; all-zero is a valid `rusage` should the call fail.
        let usage = unsafe {
            libc::getrusage(who, usage.as_mut_ptr());
            usage.assume_init()
        };
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
        (time(usage.ru_stime), time(usage.ru_utime))
    };
    let (system, user) = usage(libc::RUSAGE_SELF);
    let (children_system, children_user) = usage(libc::RUSAGE_CHILDREN);
    CpuTime { system, user, children_system, children_user }
}

/// The permission bits that new files of this process lose.
#[must_use]
pub fn umask() -> u32 {
    // SAFETY: no pointers. Reading the mask means setting it; the second call puts it back.
    unsafe {
        let mask = libc::umask(0o077);
        libc::umask(mask);
        mask
    }
}

/// Does something while new files get `mode` and nothing more. The mask is the whole process's: only while there is a
/// single thread.
pub fn with_new_files<T>(mode: u32, work: impl FnOnce() -> T) -> T {
    // SAFETY: no pointers, as below.
    let before = unsafe { libc::umask(!mode & 0o777) };
    let result = work();
    // SAFETY: as above.
    unsafe {
        libc::umask(before);
    }
    result
}

/// Whom the files that we make belong to.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: takes and touches nothing.
    unsafe { libc::geteuid() }
}

/// True for the super-user, the only one who may give files away.
#[must_use]
pub fn is_root() -> bool {
    user() == 0
}

/// The number of a group, known by name or by that number.
#[must_use]
pub fn group_id(group: &str) -> Option<u32> {
    let name = CString::new(group).ok()?;
    // SAFETY: the name is a live, NUL-terminated string. What comes back belongs to libc and lives until the next call of
    // this family; nobody else makes one (there is a single thread at the start), and only a number is copied out.
    let found = unsafe { libc::getgrnam(name.as_ptr()).as_ref().map(|entry| entry.gr_gid) };
    found.or_else(|| group.parse().ok())
}

/// Whether there is a folder of that path in which we may make files.
#[must_use]
pub fn may_write_in(folder: &Path) -> bool {
    let Ok(text) = CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: the pointer is to a live, NUL-terminated string.
    let allowed = unsafe { libc::access(text.as_ptr(), libc::W_OK | libc::X_OK) == 0 };
    allowed && folder.is_dir()
}

/// Whether there is a file of that path that we may execute.
#[must_use]
pub fn may_execute(path: &Path) -> bool {
    let Ok(text) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the pointer is to a live, NUL-terminated string.
    let allowed = unsafe { libc::access(text.as_ptr(), libc::X_OK) == 0 };
    allowed && path.is_file()
}

/// Kernel, release and machine, as INFO's `os` shows them.
#[must_use]
pub fn system_name() -> String {
    let mut names = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: the pointer is to a live local, all-zero (empty strings) should the call fail; the fields are
    // NUL-terminated arrays inside it.
    unsafe {
        libc::uname(names.as_mut_ptr());
        let names = names.assume_init();
        let text = |field: &[libc::c_char]| CStr::from_ptr(field.as_ptr()).to_string_lossy().into_owned();
        format!("{} {} {}", text(&names.sysname), text(&names.release), text(&names.machine))
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub pid: u32,
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// Collects one child that has ended, whoever started it (we may be process 1 of a container).
/// `None`: nobody waits to be collected.
#[must_use]
pub fn reap() -> Option<Ended> {
    let mut status = 0;
    // SAFETY: the pointer is to a live local.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    let pid = u32::try_from(pid).ok().filter(|&pid| pid > 0)?;
    let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
    Some(Ended { pid, code, signal })
}

/// Kills a child that leads its own process group, and what it started with it.
pub fn kill_group(pid: u32) {
    if let Ok(pid) = libc::pid_t::try_from(pid)
        && pid > 1
    {
        // SAFETY: no pointers; a group that is gone makes the call fail, which is as good.
        unsafe {
            libc::kill(-pid, libc::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_fills_the_whole_buffer_and_differs_each_time() {
        let (mut one, mut two) = ([0u8; 64], [0u8; 64]);
        entropy(&mut one).unwrap();
        entropy(&mut two).unwrap();
        assert_ne!(one, two);
        assert!(one[48..].iter().any(|&byte| byte != 0));
    }

    #[test]
    fn the_epoch_is_a_date_and_the_limits_and_names_can_be_read() {
        let epoch = local_time(0);
        assert!(epoch.year == 1970 || epoch.year == 1969, "{epoch:?}");
        assert!(open_files(3).unwrap() >= 3);
        assert!(system_name().starts_with("Linux "), "{}", system_name());
        assert_eq!(umask(), umask());
        assert_eq!((group_id("root"), group_id("77"), group_id("no such group")), (Some(0), Some(77), None));
        assert!(cpu_time().user + cpu_time().system > Duration::ZERO);
        assert!(may_execute(Path::new("/bin/sh")));
        assert!(!may_execute(Path::new("/bin")) && !may_execute(Path::new("/no/such/file")));
    }
}
