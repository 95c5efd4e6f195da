//! What the tests of the process need besides `server_support`: private views of the file system, INFO, and what `/proc` says.
#![allow(dead_code)] // each test file uses its part

use crate::server_support::{Client, Guard, Sentinel, binary, until};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The users of Debian that own nothing.
pub const NOBODY: u32 = 65534;

pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// The test cannot be done here: said aloud, and a failure in CI, where nobody reads it.
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{why}, and this is CI");
    eprintln!("skipped: {why}");
}

/// True when that program of the system is there; otherwise the test is skipped.
pub fn has(program: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
    if !found {
        skip(&format!("{program} is missing"));
    }
    found
}

/// True when we may have a view of the file system of our own; otherwise the test is skipped.
pub fn has_namespaces() -> bool {
    let works = namespace("true").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|ok| ok.success());
    if !works {
        skip("mount namespaces are not allowed");
    }
    works
}

/// A shell that runs `script` where its mounts are nobody else's. Its process becomes whatever the script executes; `$1` and
/// so on are the arguments of the command.
pub fn namespace(script: &str) -> Command {
    let mut command = Command::new("unshare");
    if !is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--mount", "--propagation", "private", "--", "/bin/sh", "-ec", script, "sh"]);
    command.stdin(Stdio::null()).env_remove("NOTIFY_SOCKET").env("LC_ALL", "C");
    command
}

/// Mounts in a namespace that is there already, from outside.
pub fn mount_in(pid: u32, arguments: &[&str]) {
    let mut command = Command::new("nsenter");
    if !is_root() {
        command.args(["--preserve-credentials", "--user"]);
    }
    let status = command.args(["--mount", "--target", &pid.to_string(), "mount"]).args(arguments).status().unwrap();
    assert!(status.success(), "mount {arguments:?}");
}

/// The letter that `/proc` has for the state of a process: `T` is stopped.
pub fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

pub fn until_state(pid: u32, wanted: char) {
    until("the state of the process", || (state(pid) == Some(wanted)).then_some(()));
}

/// The answer to a request that is answered with one bulk string.
pub fn bulk(client: &mut Client, request: &str) -> String {
    let head = client.ask(request);
    let length: usize = head.strip_prefix('$').unwrap_or_else(|| panic!("{request}: {head}")).parse().unwrap();
    let text = client.take(length);
    client.line();
    text
}

/// One field of INFO.
pub fn info(client: &mut Client, field: &str) -> String {
    let text = bulk(client, "INFO");
    let found = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    found.unwrap_or_else(|| panic!("no {field} in {text}")).to_owned()
}

/// The binary under another name: a link to it in `folder`.
pub fn link(folder: &Path, name: &str) -> std::path::PathBuf {
    let link = folder.join(name);
    std::os::unix::fs::symlink(binary().get_program(), &link).unwrap();
    link
}

/// The binary under another name, ready to be given arguments.
pub fn called(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).env_remove("NOTIFY_SOCKET").env("LC_ALL", "C");
    command
}

pub fn pid(guard: &Guard) -> u32 {
    guard.0.id()
}

/// An event with `size` bytes of text for whoever subscribed to `+monitor`.
pub fn make_noise(sentinel: &Sentinel, size: usize) {
    let name = format!("{}-{size}", "n".repeat(size));
    let mut client = sentinel.client();
    // Not inline: a line has bounds.
    for words in [&["SENTINEL", "MONITOR", &name, "127.0.0.1", "1", "1"][..], &["SENTINEL", "REMOVE", &name]] {
        let bulks: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        client.send(format!("*{}\r\n{bulks}", words.len()).as_bytes());
        assert_eq!(client.line(), "+OK");
    }
}
