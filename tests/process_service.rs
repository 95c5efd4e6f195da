//! The process as a service sees it: under which name it was started, who supervises it, its pid file, its log, its end.

mod process_support;
mod server_support;

use process_support::{
    bulk, called, has, has_namespaces, info, is_root, link, namespace, pid, skip, state, until_state,
};
use server_support::{
    Client, Folder, Guard, PATIENCE, Sentinel, binary, finished, free_port, is_clean, names, serves, signal, text,
    until,
};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

// ---------------------------------------------------------------- names

/// Raising the score is anybody's right.
#[test]
fn the_score_of_the_oom_killer_is_relative_or_absolute_and_the_log_has_the_shape_asked_for() {
    let score = |pid: u32| -> i32 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        text.trim().parse().unwrap()
    };
    let base = score(std::process::id());
    for (mode, expected) in [("no", base), ("yes", (base + 30).min(1000)), ("absolute", 1000)] {
        let value = if mode == "absolute" { 1500 } else { 30 };
        let lines = format!("oom-score-adj-values {value} 2 3\noom-score-adj {mode}\nlog-format logfmt\n");
        let sentinel = Sentinel::start(&lines);
        assert_eq!(score(sentinel.pid()), expected, "{mode}");
        let start = format!("pid={} role=sentinel timestamp=\"", sentinel.pid());
        assert!(sentinel.log().lines().all(|line| line.starts_with(&start)), "{}", sentinel.log());
    }
}

#[test]
fn commands_that_the_file_renames_or_takes_away_cannot_be_called() {
    let sentinel = Sentinel::start("rename-command SHUTDOWN \"\"\nrename-command acl \"guards\"\n");
    let mut client = sentinel.client();
    assert!(client.ask("SHUTDOWN NOSAVE").starts_with("-ERR unknown command 'SHUTDOWN'"));
    assert!(client.ask("ACL WHOAMI").starts_with("-ERR unknown command 'ACL'"));
    assert_eq!(client.ask("guards whoami"), "$7");
    assert!(sentinel.conf().contains("rename-command SHUTDOWN \"\"\n"), "{}", sentinel.conf());
    for (line, why) in [
        ("rename-command FLUSHALL \"\"", "No such command in rename-command"),
        ("rename-command PING info", "Target command name already exists"),
    ] {
        let folder = Folder::new();
        let output = finished(binary().arg(folder.write("s.conf", &format!("port {}\n{line}\n", free_port()))));
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(said.contains(line) && said.contains(why), "{said}");
    }
}

#[test]
fn through_a_link_named_redis_sentinel_it_is_one() {
    let folder = Folder::new();
    for name in ["redis-sentinel", "valkey-sentinel"] {
        let link = link(&folder.0, name);
        let output = finished(called(&link).arg("--version"));
        assert!(is_clean(output.status));
        let said = text(&output.stdout);
        assert!(said.starts_with("Redis server v=7.4.") && said.contains("watchfire"), "{said}");

        let port = free_port();
        let conf = folder.write("s.conf", &format!("port {port}\nbind 127.0.0.1\n"));
        let process = Guard::serving(called(&link).arg(conf), port);
        let mut client = Client::connect(port);
        assert_eq!(info(&mut client, "redis_mode"), "sentinel");
        assert_eq!(info(&mut client, "executable"), link.display().to_string());
        // What `pidof` and `pgrep` look at.
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", pid(&process))).unwrap();
        assert_eq!(comm.trim_end(), name);
    }
}

#[test]
fn through_a_link_named_redis_server_it_wants_to_hear_that_a_sentinel_is_meant() {
    let folder = Folder::new();
    let port = free_port();
    let text_before = format!("port {port}\nbind 127.0.0.1\nsave 60 1\n");
    let conf = folder.write("s.conf", &text_before);
    for name in ["redis-server", "valkey-server"] {
        let link = link(&folder.0, name);
        let output = finished(called(&link).arg(&conf));
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("only with --sentinel"), "{}", text(&output.stderr));
        assert_eq!(folder.read("s.conf"), text_before);
    }
    for words in
        [&["--sentinel"][..], &["--sentinel", "--loglevel", "verbose"], &["--loglevel", "verbose", "--sentinel"]]
    {
        let process = Guard::serving(called(folder.path("redis-server")).arg(&conf).args(words), port);
        let level = if words.len() > 1 { "verbose" } else { "notice" };
        let mut client = Client::connect(port);
        assert_eq!(client.ask("SENTINEL CONFIG GET loglevel"), "*2");
        assert_eq!(
            client.take(19 + level.len()),
            format!("$8\r\nloglevel\r\n${}\r\n{level}\r\n", level.len())[..19 + level.len()]
        );
        drop(process);
    }
    // The flag before the file as well.
    let _process = Guard::serving(called(folder.path("valkey-server")).arg("--sentinel").arg(&conf), port);
}

// ---------------------------------------------------------------- supervision

/// The end of systemd, or of syslog: a socket, and what arrives there.
struct Listener {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Listener {
    fn new(path: PathBuf) -> Listener {
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Listener { socket, path }
    }

    fn hear(&self) -> String {
        self.receive().expect("a message")
    }

    /// What is there is taken away first.
    fn hears_nothing_for(&self, time: Duration) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        while self.receive().is_ok() {}
        self.socket.set_nonblocking(false).unwrap();
        self.socket.set_read_timeout(Some(time)).unwrap();
        let heard = self.receive();
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        match heard {
            Ok(text) => panic!("heard {text:?}"),
            Err(why) => why.kind() == ErrorKind::WouldBlock,
        }
    }

    /// With a time-out the call ends at signals that others get, too.
    fn receive(&self) -> std::io::Result<String> {
        let mut bytes = [0; 2048];
        loop {
            match self.socket.recv(&mut bytes) {
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                other => return other.map(|length| text(&bytes[..length])),
            }
        }
    }
}

#[test]
fn r119_the_watchdog_is_fed_as_long_as_the_loop_turns() {
    let folder = Folder::new();
    let systemd = Listener::new(folder.path("notify"));
    let sentinel = Sentinel::start_in(Folder::new(), "supervised systemd\n", |command| {
        command.env("NOTIFY_SOCKET", &systemd.path).env("WATCHDOG_USEC", "200000");
    });
    assert_eq!(systemd.hear(), "STATUS=Ready to accept connections\n");
    assert_eq!(systemd.hear(), "READY=1\n");
    for _ in 0..3 {
        assert_eq!(systemd.hear(), "WATCHDOG=1\n");
    }
    // A process that hangs must not look alive.
    signal(sentinel.pid(), "STOP");
    until_state(sentinel.pid(), 'T');
    assert!(systemd.hears_nothing_for(Duration::from_millis(400)));
    signal(sentinel.pid(), "CONT");
    assert_eq!(systemd.hear(), "WATCHDOG=1\n");
    assert_eq!(info(&mut sentinel.client(), "process_supervised"), "systemd");
    let (status, _) = sentinel.end("TERM");
    assert!(is_clean(status), "{status}");
    until("the last word", || (systemd.hear() == "STOPPING=1\n").then_some(()));
}

#[test]
fn the_watchdog_of_another_process_is_not_fed_and_without_one_nothing_is_said() {
    for (name, value) in [("WATCHDOG_PID", "1"), ("WATCHDOG_USEC", "0"), ("WATCHDOG_USEC", "soon")] {
        let folder = Folder::new();
        let systemd = Listener::new(folder.path("notify"));
        let sentinel = Sentinel::start_in(Folder::new(), "supervised auto\n", |command| {
            command.env("NOTIFY_SOCKET", &systemd.path).env("WATCHDOG_USEC", "2000").env(name, value);
        });
        let mut client = sentinel.client();
        (0..100).for_each(|_| assert_eq!(client.ask("PING"), "+PONG"));
        let (status, _) = sentinel.end("TERM");
        assert!(is_clean(status), "{status}");
        let said = [systemd.hear(), systemd.hear(), systemd.hear()];
        assert_eq!(said, ["STATUS=Ready to accept connections\n", "READY=1\n", "STOPPING=1\n"], "{name}={value}");
    }
}

#[test]
fn upstart_is_told_by_stopping_and_daemonize_does_not_count_then() {
    for supervised in ["upstart", "auto"] {
        let folder = Folder::new();
        let port = free_port();
        let lines = format!("port {port}\nbind 127.0.0.1\ndaemonize yes\nsupervised {supervised}\n");
        let conf = folder.write("s.conf", &lines);
        let mut process = Guard(called(binary().get_program()).arg(&conf).env("UPSTART_JOB", "x").spawn().unwrap());
        until("it has stopped", || {
            assert!(process.0.try_wait().unwrap().is_none(), "it ended");
            (state(process.0.id()) == Some('T')).then_some(())
        });
        // Ready means ready: it listens, and its state is on disk.
        assert!(folder.read("s.conf").contains("sentinel myid "));
        let waiting = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        signal(pid(&process), "CONT");
        let mut client = Client::from(waiting);
        assert_eq!(client.ask("PING"), "+PONG");
        assert_eq!(info(&mut client, "process_supervised"), "upstart");
    }
}

#[test]
fn a_supervisor_that_is_not_there_is_no_reason_not_to_start() {
    for (word, name) in [("systemd", "NOTIFY_SOCKET"), ("upstart", "UPSTART_JOB")] {
        let sentinel = Sentinel::start(&format!("supervised {word}\n"));
        assert!(sentinel.log().contains(&format!("{name} is not set")), "{}", sentinel.log());
        assert_eq!(info(&mut sentinel.client(), "process_supervised"), "no");
    }
    let sentinel = Sentinel::start("supervised auto\n");
    assert!(!sentinel.log().contains("is not set"), "{}", sentinel.log());
}

// ---------------------------------------------------------------- pid file, signals, log

#[test]
fn r120_a_pid_file_is_written_when_it_is_asked_for_and_only_then() {
    let sentinel = Sentinel::start("");
    assert_eq!(names(&sentinel.folder.0), ["err", "log", "sentinel.conf"]);

    let folder = Folder::new();
    let path = folder.path("sentinel.pid");
    let sentinel = Sentinel::start(&format!("pidfile {}\n", path.display()));
    assert_eq!(folder.read("sentinel.pid"), format!("{}\n", sentinel.pid()));
    let (status, _) = sentinel.end("TERM");
    assert!(is_clean(status), "{status}");
    assert!(!path.exists());

    let sentinel = Sentinel::start("pidfile /no/such/place/pid\n");
    assert!(sentinel.log().contains("Failed to write the pid file /no/such/place/pid"), "{}", sentinel.log());
}

#[test]
fn sighup_and_sigpipe_end_nothing() {
    let sentinel = Sentinel::start("");
    for name in ["HUP", "PIPE", "HUP"] {
        signal(sentinel.pid(), name);
    }
    until("it has noticed", || (sentinel.log().matches("ignal 1,").count() > 0).then_some(()));
    assert_eq!(sentinel.client().ask("PING"), "+PONG");
    let (status, folder) = sentinel.end("INT");
    assert!(is_clean(status), "{status}");
    assert!(folder.read("log").contains("Received SIGINT, shutting down..."), "{}", folder.read("log"));
}

#[test]
fn at_the_lowest_level_we_speak_and_not_the_packages_that_we_use() {
    let sentinel = Sentinel::start("loglevel debug\nsentinel monitor mymaster 127.0.0.1 1 1\n");
    assert_eq!(sentinel.client().ask("PING"), "+PONG");
    let log =
        until("debug lines", || Some(sentinel.log()).filter(|log| log.contains(". -cmd-link-reconnection master")));
    assert!(log.contains(" - Accepted 127.0.0.1:"), "{log}");
    assert!(!log.contains("event source"), "mio tells of its registrations: {log}");
}

#[test]
fn logrotate_may_rename_the_log_or_truncate_it() {
    let sentinel = Sentinel::start("sentinel monitor m 127.0.0.1 1 1\n");
    let mut client = sentinel.client();
    let (log, old) = (sentinel.folder.path("log"), sentinel.folder.path("log.1"));
    std::fs::rename(&log, &old).unwrap();
    let before = std::fs::read(&old).unwrap();
    assert_eq!(client.ask("SENTINEL SET m quorum 2"), "+OK");
    assert!(sentinel.log().contains("+set master m 127.0.0.1 1 quorum 2\n"), "{}", sentinel.log());
    assert!(std::fs::read(&old).unwrap().starts_with(&before));

    std::fs::OpenOptions::new().write(true).truncate(true).open(&log).unwrap();
    assert_eq!(client.ask("SENTINEL SET m quorum 3"), "+OK");
    let log = sentinel.log();
    assert!(log.contains("quorum 3\n") && !log.contains("quorum 2") && !log.contains('\0'), "{log:?}");
}

#[test]
fn syslog_gets_every_line_under_our_name_and_facility() {
    if !has_namespaces() {
        return;
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.path("dev")).unwrap();
    folder.write("dev/null", "");
    // /dev/log of the Sentinel alone.
    let syslog = Listener::new(folder.path("dev/log"));
    let port = free_port();
    let conf = folder.write(
        "s.conf",
        &format!(
            "port {port}\nbind 127.0.0.1\nlogfile {}\nsyslog-enabled yes\nsyslog-ident guard\nsyslog-facility local3\n\
             sentinel monitor m 127.0.0.1 1 1\n",
            folder.path("log").display()
        ),
    );
    let mut command = namespace("mount --bind \"$2\" /dev; exec \"$1\" \"$3\"");
    command.arg(binary().get_program()).arg(folder.path("dev")).arg(conf).stdout(Stdio::null());
    let process = Guard::serving(&mut command, port);
    assert_eq!(Client::connect(port).ask("SENTINEL SET m quorum 2"), "+OK");
    let tag = format!(" guard[{}]: ", pid(&process));
    let mut lines = Vec::new();
    until("the event", || {
        lines.push(syslog.hear());
        lines.last().unwrap().contains("+set master m").then_some(())
    });
    // local3 is 19; warning is 4 and notice is 5.
    let event = lines.last().unwrap();
    assert!(event.starts_with("<156>"), "{event}");
    assert!(event.ends_with(&format!("{tag}+set master m 127.0.0.1 1 quorum 2")), "{event}");
    assert!(lines[0].starts_with("<157>") && lines[0].contains(&tag), "{}", lines[0]);
    // And the log file has them all the same.
    for line in &lines {
        let said = line.split_once(&tag).unwrap().1;
        assert!(folder.read("log").contains(said), "{line}");
    }
}

// ---------------------------------------------------------------- units

/// The value of a directive of a unit that has it once.
fn unit_value<'a>(unit: &'a str, name: &str) -> &'a str {
    let mut values = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = values.next().unwrap_or_else(|| panic!("no {name}= in the unit"));
    assert_eq!(values.next(), None, "{name}= stands there twice");
    value
}

/// Has systemd look at a unit, our binary in the place of its program.
fn verify(name: &str, unit: &str) {
    let folder = Folder::new();
    let program = unit_value(unit, "ExecStart").split(' ').next().unwrap();
    let unit = unit.replace(program, binary().get_program().to_str().unwrap());
    let path = folder.write(name, &unit);
    let output = finished(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path));
    let said = text(&output.stderr);
    // It looks at the units around ours as well.
    assert!(!said.contains(name), "{said}");
    assert!(is_clean(output.status), "{said}");
}

#[test]
fn our_unit_passes_the_check_of_systemd_and_is_shut_off_well() {
    if !has("systemd-analyze") {
        return;
    }
    let unit = include_str!("../conf/watchfire.service");
    verify("watchfire.service", unit);
    // `systemctl reload` is how certificates are renewed.
    assert_eq!(unit_value(unit, "ExecReload"), "/bin/kill -HUP $MAINPID");
    let folder = Folder::new();
    let path = folder.write("watchfire.service", unit);
    let arguments = ["security", "--offline=yes", "--threshold=20", "--no-pager"];
    let output = finished(Command::new("systemd-analyze").args(arguments).arg(path));
    // Older ones cannot do that without a running systemd.
    let said = text(&output.stderr);
    assert!(is_clean(output.status) || said.contains("unrecognized option"), "{said}{}", text(&output.stdout));
}

/// The line of our unit as it stands there, with other folders.
#[test]
fn the_line_of_our_unit_starts_it_and_systemd_hears_of_it() {
    let unit = include_str!("../conf/watchfire.service");
    let mut words = unit_value(unit, "ExecStart").split(' ');
    assert_eq!(words.next(), Some("/usr/local/bin/watchfire"));
    assert_eq!(words.next(), Some("/etc/watchfire/sentinel.conf"));
    let folder = Folder::new();
    let systemd = Listener::new(folder.path("notify"));
    let mut sample = include_str!("../conf/sentinel.conf").to_owned();
    let port = free_port();
    sample = sample.replace("\nport 26379\n", &format!("\nport {port}\nbind 127.0.0.1\n"));
    let conf = folder.write("sentinel.conf", &sample);
    let seconds: u64 = unit_value(unit, "WatchdogSec").parse().unwrap();
    assert!(seconds >= 10, "a slow disk is no reason to be ended");
    let mut command = binary();
    command.arg(conf).args(words).env("NOTIFY_SOCKET", &systemd.path).env("WATCHDOG_USEC", format!("{seconds}000000"));
    let process = Guard::serving(command.stdout(Stdio::null()), port);
    assert_eq!(systemd.hear(), "STATUS=Ready to accept connections\n");
    assert_eq!(systemd.hear(), "READY=1\n");
    drop(process);
}

const DEBIAN_UNIT: &str = "/lib/systemd/system/redis-sentinel.service";

/// Debian's own unit and its own file, with nothing but the program replaced: as user redis, in a view of the system in which
/// our binary lies where redis-sentinel does, and in a network of its own, where its port is free.
#[test]
fn r119_debians_unit_works_with_only_the_program_replaced() {
    let Ok(unit) = std::fs::read_to_string(DEBIAN_UNIT) else {
        return skip("Debian's redis-sentinel.service is missing");
    };
    if !has("systemd-analyze") {
        return;
    }
    verify("redis-sentinel.service", &unit);

    let settled = is_root() && Path::new("/etc/redis/sentinel.conf").is_file();
    if !settled {
        return skip("not root, or no /etc/redis/sentinel.conf: Debian's line cannot be run");
    }
    if !has_namespaces() || !has("setpriv") || !has("nsenter") || !has("ip") || !has("redis-cli") {
        return;
    }
    let (user, group) = (unit_value(&unit, "User"), unit_value(&unit, "Group"));
    let line = unit_value(&unit, "ExecStart");
    let folder = Folder::new();
    let systemd = Listener::new(folder.path("notify"));
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&systemd.path, open).unwrap();
    // What systemd makes for it, or lets it write: fresh folders over the system's.
    let script = format!(
        "here=$2; cd \"$here\"; mkdir etc lib log run; cp -p /etc/redis/sentinel.conf etc/; \
         chown {user}:{group} etc lib log run; chmod 755 \"$here\"; \
         mount --bind etc /etc/redis; mount --bind lib /var/lib/redis; mount --bind log /var/log/redis; \
         mount -t tmpfs none /run; mkdir /run/sentinel; mount --bind run /run/sentinel; \
         mount --bind \"$1\" /usr/bin/redis-sentinel; ip link set lo up; umask 007; cd /; \
         exec setpriv --reuid {user} --regid {group} --clear-groups --no-new-privs --bounding-set -all -- {line}"
    );
    let mut command = namespace(&script);
    command.arg(binary().get_program()).arg(&folder.0).env("NOTIFY_SOCKET", &systemd.path);
    let mut command = {
        let mut netted = Command::new("unshare");
        netted.arg("--net").arg("--").arg(command.get_program()).args(command.get_args());
        netted.env("NOTIFY_SOCKET", &systemd.path).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null());
        netted
    };
    let mut process = Guard(command.stderr(std::fs::File::create(folder.path("err")).unwrap()).spawn().unwrap());
    systemd.socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let first = until("STATUS", || {
        assert!(
            process.0.try_wait().unwrap().is_none(),
            "{}{}",
            folder.read("err"),
            folder.read("log/redis-sentinel.log")
        );
        systemd.receive().ok()
    });
    systemd.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(first, "STATUS=Ready to accept connections\n");
    assert_eq!(systemd.hear(), "READY=1\n");
    assert!(folder.read("etc/sentinel.conf").contains("\nsentinel myid "), "{}", folder.read("etc/sentinel.conf"));
    assert_eq!(folder.read("run/redis-sentinel.pid"), format!("{}\n", pid(&process)));
    assert!(folder.read("log/redis-sentinel.log").contains(&format!("\n{}:X ", pid(&process))));

    let asked = |words: &[&str]| {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &pid(&process).to_string(), "redis-cli", "-p", "26379"]).args(words);
        text(&finished(&mut command).stdout)
    };
    assert_eq!(asked(&["ping"]), "PONG\n");
    assert_eq!(asked(&["sentinel", "get-master-addr-by-name", "mymaster"]), "127.0.0.1\n6379\n");
    let about = asked(&["info", "server"]);
    assert!(about.contains("executable:/usr/bin/redis-sentinel\r\n"), "{about}");
    assert!(about.contains("process_supervised:systemd\r\n"), "{about}");

    signal(pid(&process), "TERM");
    assert!(is_clean(until("the end", || process.0.try_wait().unwrap())));
    assert_eq!(systemd.hear(), "STOPPING=1\n");
    assert!(!folder.path("run/redis-sentinel.pid").exists());
}

// ---------------------------------------------------------------- small examples

#[test]
fn the_example_for_names_starts_and_knows_its_master_by_name() {
    let folder = Folder::new();
    let port = free_port();
    // `localhost` is the one name that every machine knows.
    let example = include_str!("../conf/hostnames.conf")
        .replace("\nport 26379\n", &format!("\nport {port}\nbind 127.0.0.1\n"))
        .replace("redis-1.example.net", "localhost");
    let conf = folder.write("hostnames.conf", &example);
    let output = finished(binary().arg("--check-config").arg(&conf));
    assert!(is_clean(output.status), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), format!("{}: a server would start\n", conf.display()), "and nothing to note");
    let _process = Guard::serving(binary().arg(&conf).stdout(Stdio::null()), port);
    let mut client = Client::connect(port);
    assert_eq!(client.ask("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"), "*2");
    assert_eq!(client.take(15), "$9\r\nlocalhost\r\n");
    let list = bulk(&mut Client::connect(port), "CLIENT LIST");
    assert!(!list.is_empty());
    serves(port);
}
