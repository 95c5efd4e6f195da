//! Namespaces: a test with its own hosts file, name server or bind-mounted files, or with a network of its own.
//!
//! The test binary runs the one test again, inside. What is mounted or set up there is seen by it and its children, and
//! by nobody else; it ends with them.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::process::{Folder, find_program, present};

/// Set inside.
const INSIDE: &str = "WATCHFIRE_TEST_INSIDE";
/// Names come from the hosts file, then from the name server, whatever the machine does otherwise.
const SWITCH: &str = "hosts: files dns\n";
/// Outside of a network of its own no test may touch addresses.
const OUTSIDE: &str = "the network of the machine is not ours";
/// From where what is in the hole is dialled.
const HERE: &str = "10.9.0.9";

/// True inside a mount namespace in which each of these files has this text; both are given as (path, text). Outside it
/// runs the test there and returns false when that is done, or when this machine allows no such thing.
///
/// # Panics
/// When the test fails inside; in CI also when there are no namespaces.
#[must_use]
pub fn enter(test: &str, files: &[(&str, &str)]) -> bool {
    if is_inside() {
        return true;
    }
    let ways = ["-m", "-rm"];
    let trial = "mount --bind /etc/hosts /etc/hosts";
    let Some(way) = present(unshare(ways, trial), "a mount namespace (unshare -m)") else { return false };
    let folder = Folder::new("namespace");
    let mut script = String::new();
    for (index, (path, text)) in files.iter().chain([&("/etc/nsswitch.conf", SWITCH)]).enumerate() {
        let file = folder.path().join(index.to_string());
        std::fs::write(&file, text).expect("a file to mount");
        script.push_str(&format!("mount --bind {} {path}\n", file.display()));
    }
    run_inside(test, way, &script);
    false
}

/// As [`enter`], for a network that is nothing but a loopback device: see [`set_reachable`].
///
/// # Panics
/// As [`enter`].
#[must_use]
pub fn enter_network(test: &str) -> bool {
    if is_inside() {
        return true;
    }
    let way = find_program("ip").and_then(|_| unshare(["-n", "-rn"], "ip link set lo up"));
    let Some(way) = present(way, "a network namespace (unshare -n, ip)") else { return false };
    run_inside(test, way, &format!("ip link set lo up\nip address add {HERE}/32 dev lo\n"));
    false
}

/// As [`enter`], for a network of several hosts: see [`super::network`].
///
/// # Panics
/// As [`enter`].
#[must_use]
pub fn enter_hosts(test: &str) -> bool {
    if is_inside() {
        return true;
    }
    // Names of namespaces are kept below /run; these are nobody else's.
    let preparation = "mount -t tmpfs none /run\nip link set lo up\n";
    let trial = format!("{preparation}ip netns add trial; ip link add trial0 type veth peer name eth0 netns trial");
    let way = unshare(["-mn", "-rmn"], &trial);
    let Some(way) = present(way, "a network of namespaces (unshare -mn, ip, veth)") else { return false };
    run_inside(test, way, preparation);
    false
}

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

fn run_inside(test: &str, way: &str, preparation: &str) {
    let this = std::env::current_exe().expect("the test binary");
    let script = format!("{preparation}exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args([way, "/bin/sh", "-ec", &script, "sh"]).arg(this);
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(INSIDE, "yes").stdin(Stdio::null());
    let out = command.output().expect("unshare runs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("1 passed"), "inside the namespace:\n{said}");
    println!("{said}");
}

/// The words of `unshare` with which the trial works here: as root, or as the root of a user namespace.
fn unshare(ways: [&'static str; 2], trial: &str) -> Option<&'static str> {
    let root = std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
    let way = ways[usize::from(!root)];
    let mut command = Command::new("unshare");
    command.args([way, "/bin/sh", "-ec", trial]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()).then_some(way)
}

/// Makes this address one of ours, or a black hole: packets to it vanish, and nobody refuses anything.
///
/// # Panics
/// Outside of [`enter_network`].
pub fn set_reachable(address: &str, reachable: bool) {
    assert!(is_inside(), "{OUTSIDE}");
    let ip = |words: &str| {
        let done = Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status();
        done.expect("ip runs").success()
    };
    // The kernel drops what comes in at the loopback device for an address that is not there.
    let (home, hole) = (format!("{address}/32 dev lo"), format!("{address}/32 dev lo src {HERE}"));
    if reachable {
        let _ = ip(&format!("route del {hole}"));
        assert!(ip(&format!("address add {home}")), "{OUTSIDE}");
    } else {
        assert!(ip(&format!("address del {home}")) && ip(&format!("route add {hole}")), "{OUTSIDE}");
    }
}

/// Replaces the hosts file of this namespace.
///
/// # Panics
/// Outside of one.
pub fn set_hosts(text: &str) {
    assert!(is_inside(), "the hosts file of the machine is not ours");
    std::fs::write(PathBuf::from("/etc/hosts"), text).expect("the hosts file of the namespace");
}
