//! Namespaces: a test with its own hosts file, name server or bind-mounted files, or with a network of its own.
//!
//! The test binary runs the one test again, inside. What is mounted there is seen by it and its children, and by
//! nobody else; it ends with them.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::process::{Folder, present};

/// Set inside.
const INSIDE: &str = "WATCHFIRE_TEST_INSIDE";
/// Names come from the hosts file, then from the name server, whatever the machine does otherwise.
const SWITCH: &str = "hosts: files dns\n";

/// True inside a namespace in which each of these files has this text; both are given as (path, text). Outside it runs
/// the test there and returns false when that is done, or when this machine allows no such thing.
///
/// # Panics
/// When the test fails inside; in CI also when there are no namespaces.
#[must_use]
pub fn enter(test: &str, files: &[(&str, &str)]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let trial = "mount --bind /etc/hosts /etc/hosts";
    let Some(unshare) = present(unshare("m", trial), "a mount namespace (unshare -m)") else { return false };
    let folder = Folder::new("namespace");
    let mut script = String::new();
    for (index, (path, text)) in files.iter().chain([&("/etc/nsswitch.conf", SWITCH)]).enumerate() {
        let file = folder.path().join(index.to_string());
        std::fs::write(&file, text).expect("a file to mount");
        script.push_str(&format!("mount --bind {} {path}\n", file.display()));
    }
    run_inside(test, &unshare, &script);
    false
}

/// As [`enter`], for a test with a network of its own (see [`super::network`]).
///
/// # Panics
/// As [`enter`].
#[must_use]
pub fn enter_network(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    // Names of namespaces are kept below /run; these are nobody else's.
    let script = "mount -t tmpfs none /run\nip link set lo up\n";
    let trial = format!("{script}ip netns add trial; ip link add trial0 type veth peer name eth0 netns trial");
    let what = "a network namespace with ip and veth (unshare -mn)";
    let Some(unshare) = present(unshare("mn", &trial), what) else { return false };
    run_inside(test, &unshare, script);
    false
}

/// Runs this one test again behind `unshare` and the script.
fn run_inside(test: &str, unshare: &str, script: &str) {
    let this = std::env::current_exe().expect("the test binary");
    let mut command = Command::new("unshare");
    command.args([unshare, "/bin/sh", "-ec", &format!("{script}exec \"$@\""), "sh"]).arg(this);
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(INSIDE, "yes").stdin(Stdio::null());
    let out = command.output().expect("unshare runs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("1 passed"), "inside the namespace:\n{said}");
    println!("{said}");
}

/// The word of `unshare` that works here for these namespaces: as root, or as the root of a user namespace.
fn unshare(namespaces: &str, trial: &str) -> Option<String> {
    let root = std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
    let word = format!("-{}{namespaces}", if root { "" } else { "r" });
    let mut command = Command::new("unshare");
    command.args([&word, "/bin/sh", "-ec", trial]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()).then_some(word)
}

/// Replaces the hosts file of this namespace.
///
/// # Panics
/// Outside of one.
pub fn set_hosts(text: &str) {
    assert!(std::env::var_os(INSIDE).is_some(), "the hosts file of the machine is not ours");
    std::fs::write(PathBuf::from("/etc/hosts"), text).expect("the hosts file of the namespace");
}
