//! The real binary and real servers: links, events, the state they leave, scripts, names.
//!
//! Skipped, with a word, where there is no `redis-server`.

mod server_support;

use server_support::{Client, Folder, Guard, Sentinel, binary, free_port, serves, signal, until};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// A redis-server in a folder of its own, ended with the value.
struct Server {
    port: u16,
    process: Guard,
    _folder: Folder,
}

impl Server {
    fn start(more: &[&str]) -> Option<Server> {
        let folder = Folder::new();
        let port = free_port();
        let mut command = Command::new("redis-server");
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--repl-diskless-sync-delay",
            "0",
        ]);
        command.args(more).current_dir(&folder.0).stdin(Stdio::null()).stdout(Stdio::null());
        match command.spawn() {
            Ok(child) => {
                let process = Guard(child);
                serves(port);
                Some(Server { port, process, _folder: folder })
            }
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
                eprintln!("skipped: there is no redis-server here");
                None
            }
            Err(why) => panic!("{why}"),
        }
    }

    fn replica_of(port: u16) -> Option<Server> {
        Server::start(&["--replicaof", "127.0.0.1", &port.to_string()])
    }
}

/// The array of strings that answers a request.
fn strings(client: &mut Client, request: &str) -> Vec<String> {
    let count: usize = client.ask(request)[1..].parse().unwrap_or(0);
    (0..count)
        .map(|_| {
            let length: usize = client.line()[1..].parse().unwrap();
            let text = client.take(length + 2);
            text[..length].to_owned()
        })
        .collect()
}

/// One field of `SENTINEL MASTER m`.
fn field(client: &mut Client, name: &str) -> String {
    let fields = strings(client, "SENTINEL MASTER m");
    fields.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone()).unwrap_or_default()
}

#[test]
fn a_master_dies_and_subscribers_the_log_the_file_and_the_next_start_all_tell_the_same() {
    let Some(master) = Server::start(&[]) else { return };
    let replica = Server::replica_of(master.port).unwrap();
    let sentinel = Sentinel::start(&format!(
        "sentinel monitor m 127.0.0.1 {} 1\nsentinel down-after-milliseconds m 500\n",
        master.port
    ));
    let mut client = sentinel.client();
    until("the replica is known and usable", || {
        let replicas = client.ask("SENTINEL REPLICAS m");
        assert!(replicas.starts_with('*'));
        if replicas == "*0" {
            return None;
        }
        // The rest of that reply is of no interest; a new connection is simpler than reading it.
        client = sentinel.client();
        (field(&mut client, "flags") == "master").then_some(())
    });
    let info_port = Client::connect(replica.port);
    let mut replica_client = info_port;
    until("the replica has synchronised", || {
        replica_client.send(b"INFO replication\r\n");
        let length: usize = replica_client.line()[1..].parse().unwrap();
        replica_client.take(length + 2).contains("master_link_status:up").then_some(())
    });
    let line = format!("sentinel known-replica m 127.0.0.1 {}\n", replica.port);
    until("the replica is in the file", || sentinel.conf().contains(&line).then_some(()));

    let mut subscriber = sentinel.client();
    subscriber.send(b"SUBSCRIBE +switch-master\r\n");
    subscriber.take("*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n".len());
    signal(master.process.0.id(), "KILL");
    let payload = format!("m 127.0.0.1 {} 127.0.0.1 {}", master.port, replica.port);
    let expected = format!("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n${}\r\n{payload}\r\n", payload.len());
    assert_eq!(subscriber.take(expected.len()), expected);

    let address = ["127.0.0.1".to_owned(), replica.port.to_string()];
    assert_eq!(strings(&mut client, "SENTINEL GET-MASTER-ADDR-BY-NAME m"), address);
    assert!(sentinel.log().contains(&format!(" # +switch-master {payload}\n")), "{}", sentinel.log());
    let line = format!("sentinel monitor m 127.0.0.1 {} 1\n", replica.port);
    until("the new address is on disk", || sentinel.conf().contains(&line).then_some(()));
    let sentinel = sentinel.again();
    assert_eq!(strings(&mut sentinel.client(), "SENTINEL GET-MASTER-ADDR-BY-NAME m"), address);
}

#[test]
fn a_notification_script_gets_event_and_payload_our_environment_and_no_descriptor_of_ours() {
    let folder = Folder::new();
    let script = folder.write(
        "notify.sh",
        "#!/bin/sh\n\
         here=$(dirname \"$0\")\n\
         echo \"$# $1 $2 MARK=$MARK\" >> \"$here/said\"\n\
         ls -l /proc/self/fd > \"$here/fds.$$\" && mv \"$here/fds.$$\" \"$here/fds\"\n",
    );
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let path = script.display();
    // Nobody listens there: +sdown is a warning with an instance, so the script runs.
    let lines = format!(
        "sentinel monitor m 127.0.0.1 {} 1\nsentinel down-after-milliseconds m 100\nsentinel notification-script m {path}\n",
        free_port()
    );
    let sentinel = Sentinel::start_in(folder, &lines, |command| {
        command.env("MARK", "seen");
    });
    let said = until("the script has run for +sdown", || {
        let said = sentinel.folder.read("said");
        said.contains("+sdown").then_some(said)
    });
    assert!(said.lines().all(|line| line.starts_with("2 ") && line.ends_with(" MARK=seen")), "{said}");
    let fds = until("the list of descriptors", || Some(sentinel.folder.read("fds")).filter(|text| !text.is_empty()));
    assert!(!fds.contains("socket:") && !fds.contains("anon_inode:"), "{fds}");
    assert!(!fds.contains("sentinel.conf"), "{fds}");
    until("every script was collected", || {
        let stat = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", sentinel.pid())).unwrap();
        stat.trim().is_empty().then_some(())
    });
}

#[test]
fn a_script_is_known_by_its_process_and_ended_when_it_runs_too_long() {
    let folder = Folder::new();
    let said = folder.path("said");
    let script = folder.write("slow.sh", &format!("#!/bin/sh\necho $$ >> {}\nexec sleep 600\n", said.display()));
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let path = script.display();
    let port = free_port();
    let lines =
        format!("loglevel debug\nsentinel monitor m 127.0.0.1 {port} 1\nsentinel notification-script m {path}\n");
    let sentinel = Sentinel::start_in(folder, &lines, |_| {});
    let pid: u32 = until("the script runs", || std::fs::read_to_string(&said).ok()?.trim().parse().ok());
    let mut client = sentinel.client();
    assert_eq!(client.ask("SENTINEL PENDING-SCRIPTS"), "*1");
    while client.line() != "running" {}
    assert_eq!([client.line(), client.line()], ["$3", "pid"]);
    client.line();
    assert_eq!(client.line(), pid.to_string());
    assert!(sentinel.log().contains(&format!("+script-child {pid}\n")), "{}", sentinel.log());

    let mut subscriber = sentinel.client();
    assert_eq!(subscriber.ask("SUBSCRIBE -script-timeout"), "*3");
    while subscriber.line() != ":1" {}
    assert_eq!(sentinel.client().ask("SENTINEL DEBUG script-max-runtime 1"), "+OK");
    let payload = format!("{path} {pid}");
    while subscriber.line() != payload {}
    until("the process is gone and it is known", || {
        let known = sentinel.log().contains(&format!("-script-child {pid} 0 9\n"));
        (known && !std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
}

#[test]
fn a_script_that_cannot_be_started_is_said_with_the_reason_and_nothing_ends() {
    let folder = Folder::new();
    let script = folder.write("gone.sh", "#!/no/such/interpreter\n");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let lines = format!(
        "sentinel monitor m 127.0.0.1 {} 1\nsentinel down-after-milliseconds m 100\nsentinel notification-script m {}\n",
        free_port(),
        script.display()
    );
    let sentinel = Sentinel::start_in(folder, &lines, |_| {});
    until("the reason is in the log", || sentinel.log().contains("No such file or directory").then_some(()));
    assert_eq!(sentinel.client().ask("PING"), "+PONG");
}

#[test]
fn a_master_known_by_name_is_looked_up_by_one_thread_that_numeric_addresses_never_start() {
    let Some(master) = Server::start(&[]) else { return };
    let threads = |sentinel: &Sentinel| std::fs::read_dir(format!("/proc/{}/task", sentinel.pid())).unwrap().count();
    let numeric = Sentinel::start(&format!("sentinel monitor m 127.0.0.1 {} 1\n", master.port));
    let named =
        Sentinel::start(&format!("sentinel resolve-hostnames yes\nsentinel monitor m localhost {} 1\n", master.port));
    for sentinel in [&numeric, &named] {
        let mut client = sentinel.client();
        until("the link stands", || (field(&mut client, "flags") == "master").then_some(()));
    }
    assert_eq!(threads(&numeric), 1);
    assert_eq!(threads(&named), 2);
}

#[test]
fn r116_many_masters_leave_time_for_clients() {
    // A debug build looks over everything it knows after every input, which is no measure of anything.
    let masters = if cfg!(debug_assertions) { 50 } else { 1000 };
    // Half of them refuse, half take connections and never answer: the kernel does that for a full backlog.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (silent_port, dead_port) = (silent.local_addr().unwrap().port(), free_port());
    let mut lines = String::new();
    for n in 0..masters {
        let port = if n % 2 == 0 { silent_port } else { dead_port };
        lines.push_str(&format!("sentinel monitor m{n} 127.0.0.1 {port} 1\n"));
    }
    let sentinel = Sentinel::start(&lines);
    let mut slowest = std::time::Duration::ZERO;
    for _ in 0..100 {
        let begun = std::time::Instant::now();
        assert_eq!(sentinel.client().ask("PING"), "+PONG");
        slowest = slowest.max(begun.elapsed());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(slowest < std::time::Duration::from_millis(300), "{slowest:?}");
}

#[test]
fn what_is_no_server_does_not_disturb() {
    let liar = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = liar.local_addr().unwrap().port();
    let talker = std::thread::spawn(move || {
        use std::io::Write;
        // Each kind of nonsense once: no RESP, an endless line, a claim of 4 GB, nesting without end, and goodbye.
        let nonsense: [Vec<u8>; 5] = [
            b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
            b"+".iter().copied().chain(std::iter::repeat_n(b'x', 1 << 20)).collect(),
            b"$4294967296\r\n".to_vec(),
            b"*1\r\n".repeat(1 << 16),
            Vec::new(),
        ];
        for bytes in nonsense {
            let (mut stream, _) = liar.accept().unwrap();
            // It may hang up on us in the middle, which is the right thing to do.
            let _ = stream.write_all(&bytes);
        }
    });
    let folder = Folder::new();
    let own_port = free_port();
    let dir = folder.0.display();
    let lines = format!(
        "port {own_port}\nbind 127.0.0.1\nlogfile {dir}/log\nsentinel monitor m 127.0.0.1 {port} 1\n\
         sentinel down-after-milliseconds m 200\n"
    );
    let conf = folder.write("s.conf", &lines);
    let _process = Guard::serving(binary().arg(conf).stdout(Stdio::null()), own_port);
    talker.join().unwrap();
    let mut client = Client::connect(own_port);
    until("the liar counts as down", || field(&mut client, "flags").contains("s_down").then_some(()));
}
