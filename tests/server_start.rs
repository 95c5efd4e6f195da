//! Starting and ending the real binary: the command line, the configuration, the state on disk, the service.

mod server_support;

use server_support::{
    Client, Folder, Guard, Sentinel, binary, finished, free_port, is_clean, names, run, serves, signal, text, until,
};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

fn myid(conf: &str) -> Option<String> {
    conf.lines().find_map(|line| line.strip_prefix("sentinel myid ")).map(ToOwned::to_owned)
}

#[test]
fn a_first_start_draws_an_id_saves_it_and_says_it_and_sigterm_ends_it_with_0() {
    let sentinel = Sentinel::start("# my comment\n");
    let id = myid(&sentinel.conf()).expect("written before anybody is served");
    assert_eq!(id.len(), 40);
    assert!(sentinel.conf().contains("# my comment\n"));
    let log = sentinel.log();
    assert!(log.contains(&format!("Sentinel ID is {id}\n")), "{log}");
    let pid = sentinel.pid();
    assert!(log.lines().all(|line| line.starts_with(&format!("{pid}:X "))), "{log}");
    assert_eq!(names(&sentinel.folder.0), ["err", "log", "sentinel.conf"]);
    let (status, folder) = sentinel.end("TERM");
    assert!(is_clean(status), "{status}");
    assert_eq!(folder.read("err"), "");
}

#[test]
fn sigint_and_shutdown_end_it_with_0_too() {
    let (status, _) = Sentinel::start("").end("INT");
    assert!(is_clean(status), "{status}");
    let mut sentinel = Sentinel::start("");
    sentinel.client().send(b"SHUTDOWN\r\n");
    assert!(is_clean(sentinel.wait()));
}

#[test]
fn the_id_stays_the_same_after_a_crash() {
    let sentinel = Sentinel::start("");
    let before = myid(&sentinel.conf());
    let sentinel = sentinel.again();
    assert_eq!(myid(&sentinel.conf()), before);
    assert!(sentinel.log().contains(&format!("Sentinel ID is {}\n", before.unwrap())));
}

#[test]
fn what_a_crash_in_the_middle_of_a_save_left_is_gone_after_the_next_start() {
    let folder = Folder::new();
    folder.write("users.acl", "user default on nopass ~* &* +@all\n");
    // Through a link, as where secrets are kept elsewhere.
    std::fs::create_dir(folder.path("links")).unwrap();
    std::os::unix::fs::symlink(folder.path("users.acl"), folder.path("links/users.acl")).unwrap();
    let aclfile = format!("aclfile {}\n", folder.path("links/users.acl").display());
    let sentinel = Sentinel::start_in(folder, &aclfile, |_| {});
    for name in ["sentinel.conf", "users.acl"] {
        sentinel.folder.write(&format!("{name}.watchfire-qwerty"), "half a te");
        sentinel.folder.write(&format!("{name}.backup"), "precious");
    }
    let sentinel = sentinel.again();
    for name in ["sentinel.conf", "users.acl"] {
        let is_there = |suffix: &str| sentinel.folder.path(&format!("{name}{suffix}")).exists();
        assert!(is_there("") && is_there(".backup") && !is_there(".watchfire-qwerty"), "{name}");
    }
}

#[test]
fn a_wrong_line_is_shown_in_a_block_on_stderr_and_the_code_is_1() {
    let folder = Folder::new();
    let conf = folder.write("s.conf", &format!("port {}\nsentinel monitor\nno-such-thing 1\n", free_port()));
    let output = run(&[conf.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("*** FATAL CONFIG FILE ERROR"), "{said}");
    assert!(said.contains("Reading the configuration file, at line "), "{said}");
    assert!(said.contains(">>> '"), "{said}");
    assert_eq!(names(&folder.0), ["s.conf"]);
}

#[test]
fn without_a_file_or_with_one_that_is_not_there_nothing_starts() {
    for arguments in [&[][..], &["--port", "1234"], &["--sentinel"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(said.starts_with("Sentinel needs config file on disk to save state. Exiting..."), "{said}");
    }
    let output = run(&["/no/such/file.conf"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/no/such/file.conf"));
}

#[test]
fn a_file_that_is_not_writable_is_refused_at_the_start() {
    let folder = Folder::new();
    let conf = folder.write("s.conf", &format!("port {}\n", free_port()));
    std::fs::set_permissions(&conf, PermissionsExt::from_mode(0o444)).unwrap();
    let mut command = binary();
    if is_root() {
        // Root may write everything, so somebody else has to try.
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = finished(command.arg(&conf));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("Sentinel config file {} is not writable: ", conf.display())), "{said}");
    assert!(said.trim_end().ends_with("Exiting..."), "{said}");
}

#[test]
fn r77_a_file_whose_directory_is_not_ours_to_write_or_to_sync_is_rewritten_in_place() {
    // One may be read and not written; in the other a file could be replaced, but nobody could make sure that it stays so.
    for mode in [0o555, 0o300] {
        let folder = Folder::new();
        let (logs, state) = (folder.path("logs"), folder.path("state"));
        std::fs::create_dir(&logs).unwrap();
        std::fs::create_dir(&state).unwrap();
        let port = free_port();
        let text = format!("port {port}\nbind 127.0.0.1\nlogfile {}/log\n", logs.display());
        let conf = folder.write("state/s.conf", &text);
        std::fs::set_permissions(&conf, PermissionsExt::from_mode(0o600)).unwrap();
        let mut command = binary();
        if is_root() {
            for path in [&conf, &logs, &state] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            command.uid(NOBODY).gid(NOBODY);
        }
        std::fs::set_permissions(&state, PermissionsExt::from_mode(mode)).unwrap();
        let inode = std::fs::metadata(&conf).unwrap().ino();
        let process = Guard::serving(command.arg(&conf).stdout(Stdio::null()), port);
        assert!(myid(&folder.read("state/s.conf")).is_some());
        assert_eq!(std::fs::metadata(&conf).unwrap().ino(), inode, "{mode:o}");
        assert!(folder.read("logs/log").contains("rewritten in place"), "{}", folder.read("logs/log"));
        assert_eq!(Client::connect(port).ask("SENTINEL FLUSHCONFIG"), "+OK");
        drop(process);
        // So that the folder can be removed.
        std::fs::set_permissions(&state, PermissionsExt::from_mode(0o700)).unwrap();
    }
}

#[test]
fn r79_a_save_that_fails_is_told_and_a_later_one_goes_well() {
    let sentinel = Sentinel::start("");
    let mut client = sentinel.client();
    assert_eq!(client.ask("SENTINEL FLUSHCONFIG"), "+OK");
    let conf = sentinel.folder.path("sentinel.conf");
    let aside = sentinel.folder.path("aside");
    // A directory in the place of the file: not even root can write that.
    std::fs::rename(&conf, &aside).unwrap();
    std::fs::create_dir(&conf).unwrap();
    // Several requests in one packet: those behind the open reply wait for it.
    client.send(b"PING\r\nSENTINEL FLUSHCONFIG\r\nPING\r\n");
    assert_eq!(client.line(), "+PONG");
    assert_eq!(client.line(), "-ERR Failed to save config file. Check server logs.");
    assert_eq!(client.line(), "+PONG");
    assert!(sentinel.log().contains("could not be saved"), "{}", sentinel.log());
    std::fs::remove_dir(&conf).unwrap();
    std::fs::rename(&aside, &conf).unwrap();
    assert_eq!(client.ask("SENTINEL FLUSHCONFIG"), "+OK");
    assert!(myid(&sentinel.conf()).is_some());
}

#[test]
fn check_config_says_whether_it_would_start_and_changes_nothing() {
    let folder = Folder::new();
    let port = free_port();
    // The port is taken; that is no matter of the configuration.
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let good = folder
        .write("good.conf", &format!("port {port}\nbind 127.0.0.1\nlogfile log\nsentinel monitor m 127.0.0.1 1 1\n"));
    let bad = folder.write("bad.conf", "sentinel monitor m 127.0.0.1 1 0\n");
    let before = std::fs::read(&good).unwrap();
    for arguments in [["--check-config", good.to_str().unwrap()], [good.to_str().unwrap(), "--check-config"]] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("good.conf: a server would start"));
    }
    let output = run(&["--check-config", bad.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("Quorum must be 1 or greater."), "{}", text(&output.stderr));
    let output = run(&["--check-config", good.to_str().unwrap(), "--dir", "/no/such/place"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read(&good).unwrap(), before);
    assert_eq!(names(&folder.0), ["bad.conf", "good.conf"]);
}

#[test]
fn what_the_check_says_is_what_a_start_does() {
    // A name that a port would need, and a group of the socket that there is not.
    for (lines, refusal) in [
        ("port 0\nbind no..such..name\nunixsocket sock\n", None),
        ("bind no..such..name\nunixsocket sock\n", Some("Could not listen on no..such..name port ")),
        ("port 0\nunixsocket sock\nunixsocketgroup no-such-group\n", Some("there is no group 'no-such-group'")),
        ("unixsocketgroup no-such-group\n", None),
    ] {
        let folder = Folder::new();
        let content = format!("port {}\nbind 127.0.0.1\ndir {}\n{lines}", free_port(), folder.0.display());
        let conf = folder.write("s.conf", &content);
        let check = run(&["--check-config", conf.to_str().unwrap()]);
        let said = text(&check.stdout) + &text(&check.stderr);
        assert_eq!(check.status.code(), Some(i32::from(refusal.is_some())), "{lines}: {said}");
        let Some(refusal) = refusal else {
            let log = folder.path("log");
            let mut command = binary();
            command.arg(&conf).arg("--logfile").arg(&log).stdout(Stdio::null());
            let _process = Guard(command.spawn().unwrap());
            until("the start", || folder.read("log").contains("Ready to accept connections").then_some(()));
            continue;
        };
        assert!(said.contains(refusal), "{said}");
        let start = run(&[conf.to_str().unwrap()]);
        assert_eq!((start.status.code(), text(&start.stderr)), (Some(1), text(&check.stderr)));
    }
}

#[test]
fn a_port_that_is_taken_is_a_sentence_on_stderr_and_the_code_is_1() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let folder = Folder::new();
    let conf = folder.write("s.conf", &format!("port {port}\nbind 127.0.0.1\n"));
    let output = run(&[conf.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("127.0.0.1 port {port}")), "{said}");
    assert!(said.to_lowercase().contains("address already in use"), "{said}");
    // With a log file it is said there, and standard error is left alone unless it is a terminal.
    let log = folder.path("log");
    let output = run(&[conf.to_str().unwrap(), "--logfile", log.to_str().unwrap()]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(1), ""));
    assert!(folder.read("log").contains(&format!("127.0.0.1 port {port}")), "{}", folder.read("log"));
}

#[test]
fn an_optional_address_may_be_missing_and_a_mandatory_one_may_not() {
    // 192.0.2.0/24 is for documentation: no machine has it.
    let sentinel = Sentinel::start("bind 127.0.0.1 -192.0.2.1\n");
    assert_eq!(sentinel.client().ask("PING"), "+PONG");
    let folder = Folder::new();
    let conf = folder.write("s.conf", &format!("port {}\nbind 127.0.0.1 192.0.2.1\n", free_port()));
    let output = run(&[conf.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("192.0.2.1"), "{}", text(&output.stderr));
}

#[test]
fn the_command_line_and_standard_input_add_to_the_file_without_getting_into_it() {
    let folder = Folder::new();
    let (wrong, port) = (free_port(), free_port());
    let conf = folder.write("s.conf", &format!("port {wrong}\n"));
    let mut command = binary();
    command.arg("--sentinel").arg(&conf).args(["-", "--port", &port.to_string()]);
    let mut process = Guard(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    process.0.stdin.take().unwrap().write_all(b"bind 127.0.0.1\nloglevel warning\n").unwrap();
    serves(port);
    let mut client = Client::connect(port);
    assert_eq!(client.ask("SENTINEL FLUSHCONFIG"), "+OK");
    let conf = folder.read("s.conf");
    assert!(conf.contains(&format!("port {wrong}\n")) && !conf.contains("127.0.0.1"), "{conf}");
}

#[test]
fn in_the_background_the_pid_file_names_the_process_and_goes_with_it() {
    let folder = Folder::new();
    let port = free_port();
    let dir = folder.0.display();
    let conf = folder.write(
        "s.conf",
        &format!("port {port}\nbind 127.0.0.1\ndir {dir}\nlogfile log\ndaemonize yes\npidfile {dir}/pid\n"),
    );
    let output = run(&[conf.to_str().unwrap()]);
    assert!(is_clean(output.status), "{}", text(&output.stderr));
    let pid: u32 = until("the pid file", || folder.read("pid").trim().parse().ok());
    serves(port);
    let mut client = Client::connect(port);
    assert!(myid(&folder.read("s.conf")).is_some());
    signal(pid, "TERM");
    assert_eq!(client.rest(), "");
    until("the pid file is gone", || (!folder.path("pid").exists()).then_some(()));
    until("the process is gone", || {
        // Whoever adopted it may not have collected it yet.
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (state.is_empty() || state.contains(") Z ")).then_some(())
    });
}

#[test]
fn r119_systemd_hears_that_it_is_ready_and_that_it_stops() {
    let folder = Folder::new();
    let path = folder.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(server_support::PATIENCE)).unwrap();
    let hear = || {
        let mut bytes = [0; 256];
        loop {
            match socket.recv(&mut bytes) {
                // With a time-out the call ends at signals, too.
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                heard => return text(&bytes[..heard.unwrap()]),
            }
        }
    };
    // The unit of Debian: the file says daemonize, the command line takes it back.
    let sentinel = Sentinel::start_in(Folder::new(), "daemonize yes\n", |command| {
        command.args(["--supervised", "systemd", "--daemonize", "no"]).env("NOTIFY_SOCKET", &path);
    });
    assert_eq!(hear(), "STATUS=Ready to accept connections\n");
    assert_eq!(hear(), "READY=1\n");
    let (status, _) = sentinel.end("TERM");
    assert!(is_clean(status), "{status}");
    assert_eq!(hear(), "STOPPING=1\n");
}

#[test]
fn version_and_help_are_said_on_standard_output() {
    let output = run(&["--version"]);
    assert!(is_clean(output.status) && text(&output.stdout).contains(env!("CARGO_PKG_VERSION")));
    let output = run(&["--help"]);
    assert!(is_clean(output.status) && text(&output.stdout).contains("--check-config"));
}
