//! The sockets of the process: where it listens, as whom it dials, and what clients may cost.

mod process_support;
mod server_support;

use process_support::{NOBODY, bulk, has, info, is_root, make_noise, skip};
use server_support::{
    Client, Folder, Guard, Sentinel, binary, finished, free_port, is_clean, names, serves, text, until,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A request of words through a Unix socket, and the reply: a line, or a bulk string.
fn ask_unix(stream: &mut UnixStream, request: &str) -> String {
    stream.set_read_timeout(Some(server_support::PATIENCE)).unwrap();
    stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    let line = |stream: &mut UnixStream| {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while !line.ends_with(b"\r\n") {
            stream.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        line.truncate(line.len() - 2);
        text(&line)
    };
    let head = line(stream);
    match head.strip_prefix('$').map(|length| length.parse::<usize>().unwrap()) {
        None => head,
        Some(length) => {
            let mut bytes = vec![0; length + 2];
            stream.read_exact(&mut bytes).unwrap();
            text(&bytes[..length])
        }
    }
}

fn connect(path: &Path) -> UnixStream {
    until("it listens on the Unix socket", || UnixStream::connect(path).ok())
}

#[test]
fn a_unix_socket_is_listened_on_beside_the_port_and_is_gone_with_the_process() {
    let folder = Folder::new();
    let path = folder.path("sentinel.sock");
    let lines = format!("unixsocket {}\nunixsocketperm 600\nprotected-mode yes\ntcp-keepalive 10\n", path.display());
    let sentinel = Sentinel::start(&lines);
    let meta = std::fs::metadata(&path).unwrap();
    assert!(meta.file_type().is_socket());
    assert_eq!(meta.mode() & 0o777, 0o600);

    let mut inside = connect(&path);
    assert_eq!(ask_unix(&mut inside, "PING"), "+PONG");
    let mine = ask_unix(&mut inside, "CLIENT INFO");
    let name = format!("{}:0", path.display());
    assert!(mine.contains(&format!(" addr={name} laddr={name} ")), "{mine}");
    assert!(mine.contains(" flags=U "), "{mine}");
    let info = ask_unix(&mut inside, "INFO server");
    let port = sentinel.port;
    assert!(info.contains(&format!("\r\ntcp_port:{port}\r\n")), "{info}");
    assert!(info.contains(&format!("\r\nlistener0:name=tcp,bind=127.0.0.1,port={port}\r\n")), "{info}");
    assert!(info.contains(&format!("\r\nlistener1:name=unix,bind={}\r\n", path.display())), "{info}");
    // It is found by the address that it is shown with.
    assert_eq!(sentinel.client().ask(&format!("CLIENT KILL ADDR {name}")), ":1");
    assert_eq!(inside.read(&mut [0]).unwrap(), 0);

    let (status, _) = sentinel.end("TERM");
    assert!(is_clean(status), "{status}");
    assert!(!path.exists());
}

#[test]
fn a_unix_socket_alone_is_enough_to_start_and_nothing_at_all_is_not() {
    let folder = Folder::new();
    let dir = folder.0.display().to_string();
    let conf = folder.write("s.conf", &format!("port 0\ndir {dir}\nlogfile log\n"));
    let output = finished(binary().arg(&conf));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("Configured to not listen anywhere"), "{}", text(&output.stderr));

    // A relative path counts from `dir`.
    let conf = folder.write("s.conf", &format!("port 0\ndir {dir}\nlogfile log\nunixsocket sock\n"));
    let mut process = Guard(binary().arg(&conf).stdout(Stdio::null()).spawn().unwrap());
    let mut client = connect(&folder.path("sock"));
    let info = ask_unix(&mut client, "INFO server");
    assert!(info.contains("\r\ntcp_port:0\r\n") && info.contains("\r\nlistener0:name=unix,bind=sock\r\n"), "{info}");
    assert!(!info.contains("listener1"), "{info}");
    client.write_all(b"SHUTDOWN\r\n").unwrap();
    assert!(is_clean(until("the end", || process.0.try_wait().unwrap())));
    assert_eq!(names(&folder.0), ["log", "s.conf"]);
}

#[test]
fn the_group_of_a_unix_socket_must_exist() {
    let folder = Folder::new();
    let sock = folder.path("sock").display().to_string();
    let conf = folder.write("s.conf", &format!("port 0\nunixsocket {sock}\nunixsocketgroup no-such-group\n"));
    let output = finished(binary().arg(&conf));
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("Failed opening Unix socket") && said.contains("no group 'no-such-group'"), "{said}");
    if !is_root() {
        return skip("only root may give a socket to another group");
    }
    let _sentinel = Sentinel::start(&format!("unixsocket {sock}\nunixsocketgroup 12345\n"));
    assert_eq!(std::fs::metadata(&sock).unwrap().gid(), 12345);
}

#[test]
fn a_socket_file_of_a_dead_process_is_replaced_and_that_of_a_living_one_is_not() {
    let folder = Folder::new();
    let path = folder.path("sock");
    let sentinel = Sentinel::start(&format!("unixsocket {}\n", path.display()));
    let conf = folder.write("other.conf", &format!("port 0\nunixsocket {}\n", path.display()));
    let output = finished(binary().arg(&conf));
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("Failed opening Unix socket") && said.contains("in use"), "{said}");
    assert_eq!(ask_unix(&mut connect(&path), "PING"), "+PONG");

    let sentinel = sentinel.again();
    assert_eq!(ask_unix(&mut connect(&path), "PING"), "+PONG");
    drop(sentinel);
}

#[test]
fn a_socket_file_of_one_too_busy_to_take_us_is_neither_replaced_nor_waited_for() {
    let folder = Folder::new();
    let path = folder.path("sock");
    let busy = UnixListener::bind(&path).unwrap();
    socket2::SockRef::from(&busy).listen(0).unwrap();
    let address = socket2::SockAddr::unix(&path).unwrap();
    let mut queued = Vec::new();
    loop {
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        match socket.connect(&address) {
            Ok(()) => queued.push(socket),
            Err(full) => {
                assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
                break;
            }
        }
    }
    let conf = folder.write("s.conf", &format!("port 0\nunixsocket {}\n", path.display()));
    let output = finished(binary().arg(&conf));
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("Failed opening Unix socket") && said.contains("in use"), "{said}");
    assert!(path.exists());
}

#[test]
fn maxclients_shrinks_to_what_the_limit_of_open_files_allows_beside_the_links() {
    // 32 are ours; a master takes two.
    for (files, masters) in [(60, 0), (100, 20)] {
        let folder = Folder::new();
        let port = free_port();
        let dir = folder.0.display().to_string();
        // Whoever dials it is taken in by the kernel, and keeps the connection.
        let node = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut lines = format!("port {port}\nbind 127.0.0.1\ndir {dir}\nlogfile log\n");
        let to = node.local_addr().unwrap().port();
        (0..masters).for_each(|n| lines += &format!("sentinel monitor m{n} 127.0.0.1 {to} 1\n"));
        let conf = folder.write("s.conf", &lines);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$1\"")]).arg(binary().get_program()).arg(&conf);
        if is_root() {
            // Root may raise any limit.
            std::os::unix::fs::chown(&folder.0, Some(NOBODY), Some(NOBODY)).unwrap();
            std::os::unix::fs::chown(&conf, Some(NOBODY), Some(NOBODY)).unwrap();
            command.uid(NOBODY).gid(NOBODY);
        }
        let _process = Guard::serving(command.stdin(Stdio::null()).stdout(Stdio::null()), port);
        assert!(folder.read("log").contains("maxclients is 28 instead of 10000"), "{}", folder.read("log"));
        let mut clients = Vec::new();
        let refusal = until("a refusal", || {
            let mut client = Client::connect(port);
            let line = client.ask("PING");
            if line == "+PONG" {
                clients.push(client);
                return None;
            }
            Some(line)
        });
        assert_eq!(refusal, "-ERR max number of clients reached");
        assert!((27..=28).contains(&clients.len()), "{}", clients.len());
        assert_eq!(info(&mut clients[0], "maxclients"), "28");
        // With all clients inside there is a descriptor for each link.
        node.set_nonblocking(true).unwrap();
        let links: Vec<_> = (0..2 * masters).map(|_| until("a link", || node.accept().ok())).collect();
        assert_eq!(links.len(), 2 * masters);
        assert!(!folder.read("log").contains("Too many open files"), "{}", folder.read("log"));
        // Links that come later take theirs from the clients that are yet to come, but for the first few.
        for n in 0..10 {
            assert_eq!(clients[0].ask(&format!("SENTINEL MONITOR later{n} 127.0.0.1 {to} 1")), "+OK");
        }
        until("fewer clients", || (info(&mut clients[0], "maxclients") == "8").then_some(()));
    }
}

/// What `ss` has to say about sockets with this local port.
fn ss(arguments: &str, port: u16) -> String {
    let output = Command::new("ss").arg(arguments).arg(format!("sport = :{port}")).output().unwrap();
    text(&output.stdout)
}

#[test]
fn the_kernel_hears_of_tcp_backlog_and_tcp_keepalive() {
    if !has("ss") {
        return;
    }
    let sentinel = Sentinel::start("tcp-backlog 17\ntcp-keepalive 77\n");
    let listening = ss("-Hltn", sentinel.port);
    assert_eq!(listening.split_whitespace().nth(2), Some("17"), "{listening}");
    let mut client = sentinel.client();
    assert_eq!(client.ask("PING"), "+PONG");
    let established = ss("-Htno", sentinel.port);
    // 77 seconds at first.
    assert!(established.contains("timer:(keepalive,1min"), "{established}");

    let sentinel = Sentinel::start("tcp-keepalive 0\n");
    let mut client = sentinel.client();
    assert_eq!(client.ask("PING"), "+PONG");
    let established = ss("-Htno", sentinel.port);
    assert!(!established.contains("keepalive"), "{established}");
    drop(client);

    let bound = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let bound: u64 = bound.trim().parse().unwrap();
    let sentinel = Sentinel::start(&format!("tcp-backlog {}\n", bound + 1));
    assert!(sentinel.log().contains(&format!("tcp-backlog is {bound} instead of {}", bound + 1)), "{}", sentinel.log());
}

#[test]
fn links_come_from_bind_source_addr() {
    let node = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = node.local_addr().unwrap().port();
    let lines = format!("bind-source-addr 127.0.0.9\nsentinel monitor m 127.0.0.1 {port} 1\n");
    let _sentinel = Sentinel::start(&lines);
    let (_stream, peer) = node.accept().unwrap();
    assert_eq!(peer.ip().to_string(), "127.0.0.9");

    let folder = Folder::new();
    let conf = folder.write("s.conf", &format!("port {}\nbind-source-addr nowhere\n", free_port()));
    let output = finished(binary().arg(&conf));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("bind-source-addr: 'nowhere'"), "{}", text(&output.stderr));
}

#[test]
fn r15_links_do_not_come_from_the_addresses_that_we_listen_on() {
    let node = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = node.local_addr().unwrap().port();
    let _sentinel = Sentinel::start(&format!("bind 127.0.0.9 127.0.0.1\nsentinel monitor m 127.0.0.1 {port} 1\n"));
    let (_stream, peer) = node.accept().unwrap();
    assert_eq!(peer.ip().to_string(), "127.0.0.1");
}

#[test]
fn r16_nodes_of_both_families_are_reached_whatever_comes_first_in_bind() {
    let six = match TcpListener::bind("[::1]:0") {
        Ok(six) => six,
        Err(_) => return skip("this machine has no IPv6"),
    };
    let four = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = |node: &TcpListener| node.local_addr().unwrap().port();
    // A source address of one family does not keep us from nodes of the other.
    let _sentinel = Sentinel::start(&format!(
        "bind ::1 127.0.0.1\nbind-source-addr ::1\nsentinel monitor four 127.0.0.1 {} 1\nsentinel monitor six ::1 {} 1\n",
        port(&four),
        port(&six),
    ));
    assert!(four.accept().unwrap().1.is_ipv4());
    assert!(six.accept().unwrap().1.is_ipv6());
}

/// A subscriber to everything that reads no more than the confirmation, and what it takes until it is cut off.
fn is_cut_off(sentinel: &Sentinel, noise: usize) {
    let mut subscriber = sentinel.client();
    subscriber.send(b"PSUBSCRIBE *\r\n");
    subscriber.take("*3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:1\r\n".len());
    let mut client = sentinel.client();
    until("it is cut off", || {
        make_noise(sentinel, noise);
        (info(&mut client, "client_output_buffer_limit_disconnections") == "1").then_some(())
    });
    // The kernel had taken something for it; behind that it ends.
    subscriber.rest();
    assert_eq!(info(&mut client, "pubsub_clients"), "0");
    assert!(sentinel.log().contains("client-output-buffer-limit"), "{}", sentinel.log());
}

#[test]
fn r118_a_subscriber_that_does_not_read_is_cut_off_at_the_hard_limit() {
    let sentinel = Sentinel::start("client-output-buffer-limit normal 0 0 0 pubsub 200kb 0 0\n");
    is_cut_off(&sentinel, 60_000);
}

#[test]
fn r118_a_subscriber_that_does_not_read_for_long_is_cut_off_at_the_soft_limit() {
    let sentinel = Sentinel::start("client-output-buffer-limit pubsub 0 100kb 1\n");
    // The kernel takes megabytes before anything waits here.
    is_cut_off(&sentinel, 600_000);
}

#[test]
fn r118_a_client_that_does_not_read_its_replies_is_cut_off_when_there_is_a_limit_for_it() {
    let sentinel = Sentinel::start("client-output-buffer-limit normal 100kb 50kb 60 replica 1mb 1mb 1\n");
    let mut glutton = sentinel.client();
    let word = "x".repeat(30_000);
    let request = format!("*2\r\n$4\r\nPING\r\n${}\r\n{word}\r\n", word.len());
    let mut client = sentinel.client();
    glutton.0.set_nonblocking(true).unwrap();
    until("it is cut off", || {
        let _ = glutton.0.write(request.repeat(20).as_bytes());
        (info(&mut client, "client_output_buffer_limit_disconnections") == "1").then_some(())
    });
    // Those that read are served, whatever the size.
    for _ in 0..20 {
        client.send(request.as_bytes());
        assert_eq!(client.take(word.len() + 10).len(), word.len() + 10);
    }
}

#[test]
fn a_request_longer_than_client_query_buffer_limit_ends_the_connection() {
    let sentinel = Sentinel::start("client-query-buffer-limit 1mb\n");
    let mut client = sentinel.client();
    let word = "x".repeat(900_000);
    client.send(format!("*2\r\n$4\r\nPING\r\n${}\r\n{word}\r\n", word.len()).as_bytes());
    assert_eq!(client.take(word.len() + 11).len(), word.len() + 11);
    client.send(b"*2\r\n$4\r\nPING\r\n$1200000\r\n");
    assert_eq!(client.rest(), "-ERR Protocol error: too big request\r\n");
    let mut client = sentinel.client();
    assert_eq!(info(&mut client, "client_query_buffer_limit_disconnections"), "1");
}

#[test]
fn wrong_limits_are_refused_in_the_words_of_redis() {
    for (line, error) in [
        (
            "client-output-buffer-limit pubsub 1mb 1mb 1 normal",
            "Wrong number of arguments in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit master 1mb 1mb 1",
            "Invalid client class specified in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit pubsub 1xb 1mb 1",
            "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit pubsub 1mb 1mb -1",
            "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
        ),
        ("client-query-buffer-limit 1k", "argument must be between 1048576 and 9223372036854775807 inclusive"),
        ("client-query-buffer-limit much", "argument must be a memory value"),
        ("max-new-connections-per-cycle 0", "argument must be between 1 and 1000 inclusive"),
    ] {
        let folder = Folder::new();
        let conf = folder.write("s.conf", &format!("port {}\n{line}\n", free_port()));
        let output = finished(binary().arg(&conf));
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(said.contains(&format!(">>> '{line}'\n{error}\n")), "{said}");
    }
}

#[test]
fn everybody_is_accepted_however_few_at_a_time() {
    let sentinel = Sentinel::start("max-new-connections-per-cycle 1\n");
    let mut clients: Vec<Client> = (0..100).map(|_| sentinel.client()).collect();
    clients.iter_mut().for_each(|client| client.send(b"PING\r\n"));
    for client in &mut clients {
        assert_eq!(client.line(), "+PONG");
    }
    let list = bulk(&mut clients[0], "CLIENT LIST");
    assert!(list.lines().count() >= 100, "{list}");
}

#[test]
fn r103_without_a_descriptor_left_those_who_are_inside_are_served_and_others_come_later() {
    let folder = Folder::new();
    let (port, gone) = (free_port(), free_port());
    let dir = folder.0.display().to_string();
    // Five masters that nobody can reach: redialled over and over while there is no descriptor to do it with.
    let mut lines = format!("port {port}\nbind 127.0.0.1\ndir {dir}\nlogfile log\nmaxclients 30\n");
    (0..5).for_each(|n| lines += &format!("sentinel monitor m{n} 127.0.0.1 {gone} 1\n"));
    let conf = folder.write("s.conf", &lines);
    let process = Guard::serving(binary().arg(&conf).stdout(Stdio::null()), port);
    if !has("prlimit") {
        return;
    }
    let pid = process.0.id().to_string();
    let limit = |files: &str| {
        let status = Command::new("prlimit").args(["--pid", &pid, &format!("--nofile={files}")]).status().unwrap();
        assert!(status.success());
    };
    let mut inside = Client::connect(port);
    assert_eq!(inside.ask("PING"), "+PONG");
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    limit(&format!("{open}:1024"));
    let outside: Vec<TcpStream> = (0..10).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    until("the trouble is told", || folder.read("log").contains("Accepting connections").then_some(()));
    assert_eq!(inside.ask("PING"), "+PONG");
    limit("1024:1024");
    for stream in outside {
        assert_eq!(Client::from(stream).ask("PING"), "+PONG");
    }
    assert_eq!(folder.read("log").matches("Accepting connections").count(), 1, "{}", folder.read("log"));
    serves(port);
}
