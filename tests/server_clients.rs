//! Clients at the real binary: pipelines, limits, bad manners.

mod server_support;

use server_support::{Client, Sentinel, until};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// Memory in use, kB.
fn resident(sentinel: &Sentinel) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", sentinel.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_pipeline_is_answered_in_order_however_it_is_cut() {
    let sentinel = Sentinel::start("");
    let mut client = sentinel.client();
    let count = 5000;
    let mut requests = Vec::new();
    let mut answers = String::new();
    for n in 0..count {
        let word = format!("n{n}");
        requests.extend_from_slice(format!("*2\r\n$4\r\nPING\r\n${}\r\n{word}\r\n", word.len()).as_bytes());
        answers.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    client.send(&requests);
    assert_eq!(client.take(answers.len()), answers);
    for byte in b"*1\r\n$4\r\nPING\r\nPING\r\nping x\r\n" {
        client.send(&[*byte]);
    }
    assert_eq!(client.take(21), "+PONG\r\n+PONG\r\n$1\r\nx\r\n");
}

#[test]
fn a_request_that_was_sent_before_the_end_of_the_stream_is_answered() {
    let sentinel = Sentinel::start("");
    let mut client = sentinel.client();
    client.send(b"PING\r\nSENTINEL FLUSHCONFIG\r\nPING\r\n");
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest(), "+PONG\r\n+OK\r\n+PONG\r\n");
}

/// Sends so many requests for a long reply, ends its half and reads nothing before `waited`; what it then gets.
fn half_closed(sentinel: &Sentinel, requests: usize, waited: impl FnOnce()) -> String {
    let mut client = sentinel.client();
    client.send("COMMAND DOCS\r\n".repeat(requests).as_bytes());
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    waited();
    client.rest()
}

#[test]
fn a_client_is_listed_with_the_descriptor_that_it_has() {
    let sentinel = Sentinel::start("");
    let mut clients: Vec<Client> = (0..3).map(|_| sentinel.client()).collect();
    for client in &mut clients {
        let port = client.0.local_addr().unwrap().port();
        client.send(b"CLIENT INFO\r\n");
        let (_, line) = (client.line(), client.line());
        let field = |name: &str| line.split(' ').find_map(|field| field.strip_prefix(name)).unwrap().to_owned();
        assert_eq!(field("addr="), format!("127.0.0.1:{port}"));
        let link = std::fs::read_link(format!("/proc/{}/fd/{}", sentinel.pid(), field("fd="))).unwrap();
        let inode = link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')).unwrap().to_owned();
        // The line of the kernel's table that has this inode is about this connection.
        let table = std::fs::read_to_string(format!("/proc/{}/net/tcp", sentinel.pid())).unwrap();
        let row = table.lines().find(|row| row.split_whitespace().nth(9) == Some(&inode)).unwrap();
        let remote = row.split_whitespace().nth(2).unwrap();
        assert!(remote.ends_with(&format!(":{port:04X}")), "{remote} is not port {port}");
    }
}

#[test]
fn who_has_finished_asking_gets_all_replies_however_long_they_are() {
    let sentinel = Sentinel::start("");
    let once = half_closed(&sentinel, 1, || {});
    assert!(once.len() > 20_000, "{}", once.len());
    // Far more than the kernel takes while nobody reads, and than is written in one turn.
    let mut others = sentinel.client();
    let all = half_closed(&sentinel, 700, || assert_eq!(others.ask("PING"), "+PONG"));
    assert_eq!(all.len(), 700 * once.len());
    assert!(all == once.repeat(700));
    until_alone(&mut others);
    // Who does not read at all is waited for some seconds only.
    let cut = half_closed(&sentinel, 700, || until_alone(&mut others));
    assert!(cut.len() < 700 * once.len());
}

/// Until this client is the only one.
fn until_alone(client: &mut Client) {
    until("nobody is left but the one who asks", || {
        client.send(b"CLIENT LIST\r\n");
        let length: usize = client.line()[1..].parse().unwrap();
        (client.take(length + 2).lines().filter(|line| line.starts_with("id=")).count() == 1).then_some(())
    });
}

#[test]
fn who_has_finished_asking_is_held_to_the_bounds_of_all_others() {
    let sentinel = Sentinel::start("client-output-buffer-limit normal 4mb 0 0\n");
    let once = half_closed(&sentinel, 1, || {});
    let cut = half_closed(&sentinel, 2_000, || {
        until("it is cut off", || sentinel.log().contains("is cut off: it does not read").then_some(()));
    });
    assert!(cut.len() < 2_000 * once.len());
}

#[test]
fn quit_is_unknown_as_in_every_sentinel_and_the_connection_stays() {
    let sentinel = Sentinel::start("");
    let mut client = sentinel.client();
    let reply = client.ask("QUIT");
    assert!(reply.starts_with("-ERR unknown command 'QUIT'"), "{reply}");
    assert_eq!(client.ask("PING"), "+PONG");
}

#[test]
fn what_is_no_resp_gets_one_error_and_the_end() {
    let sentinel = Sentinel::start("");
    for (sent, error) in [
        (&b"*x\r\n"[..], "Protocol error: invalid multibulk length"),
        (b"*1\r\n$-5\r\n", "Protocol error: invalid bulk length"),
        (b"*1\r\nPING\r\n", "Protocol error: expected '$', got 'P'"),
        (b"PING \"x\r\n", "Protocol error: unbalanced quotes in request"),
    ] {
        let mut client = sentinel.client();
        client.send(b"PING\r\n");
        client.send(sent);
        assert_eq!(client.rest(), format!("+PONG\r\n-ERR {error}\r\n"));
    }
}

#[test]
fn a_browser_is_cut_off_without_an_answer_and_the_log_says_so() {
    let sentinel = Sentinel::start("");
    let mut client = sentinel.client();
    client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSENTINEL REMOVE m\r\n");
    assert_eq!(client.rest(), "");
    until("the line in the log", || sentinel.log().contains("Possible SECURITY ATTACK detected").then_some(()));
    assert_eq!(sentinel.client().ask("PING"), "+PONG");
}

#[test]
fn the_client_over_maxclients_hears_why_and_a_place_that_gets_free_is_given_away() {
    let sentinel = Sentinel::start("maxclients 3\n");
    // The connection with which the start was awaited may still be counted.
    let mut inside: Vec<Client> = Vec::new();
    while inside.len() < 3 {
        let mut client = sentinel.client();
        client.send(b"PING\r\n");
        if client.line() == "+PONG" {
            inside.push(client);
        }
    }
    let mut outside = sentinel.client();
    assert_eq!(outside.rest(), "-ERR max number of clients reached\r\n");
    inside.pop();
    until("a free place", || {
        let mut client = sentinel.client();
        let _ = client.0.write_all(b"PING\r\n");
        let mut reply = [0; 5];
        (client.0.read_exact(&mut reply).is_ok() && &reply == b"+PONG").then_some(())
    });
    let info = until("INFO", || {
        let mut client = inside.pop()?;
        client.send(b"INFO stats\r\n");
        let length: usize = client.line()[1..].parse().unwrap();
        Some(client.take(length))
    });
    let rejected = info.lines().find_map(|line| line.strip_prefix("rejected_connections:")).unwrap();
    assert!(rejected.parse::<u64>().unwrap() >= 1, "{info}");
}

#[test]
fn an_idle_client_is_let_go_and_a_subscriber_is_not() {
    let sentinel = Sentinel::start("timeout 1\n");
    let mut subscriber = sentinel.client();
    subscriber.send(b"SUBSCRIBE +sdown\r\n");
    assert_eq!(subscriber.line(), "*3");
    let mut idle = sentinel.client();
    assert_eq!(idle.ask("PING"), "+PONG");
    assert_eq!(idle.rest(), "");
    subscriber.take("$9\r\nsubscribe\r\n$6\r\n+sdown\r\n:1\r\n".len());
    assert_eq!(subscriber.ask("PING"), "*2");
}

/// An address of ours that is not the loopback; a machine without a network has none.
fn outward() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    let found = socket.ok().map(|address| address.ip()).filter(|ip| TcpListener::bind((*ip, 0)).is_ok());
    if found.is_none() {
        eprintln!("skipped: this machine has only the loopback");
    }
    found
}

#[test]
fn whom_protected_mode_refuses_takes_nobodys_place() {
    let Some(ip) = outward() else { return };
    let sentinel = Sentinel::start("bind *\nprotected-mode yes\nmaxclients 4\n");
    let mut admins = [sentinel.client(), sentinel.client()];
    // From now on a newcomer is a stranger, who makes room when all places are taken.
    admins.iter_mut().for_each(|admin| assert_eq!(admin.ask("PING"), "+PONG"));
    assert_eq!(admins[0].ask("ACL SETUSER default off"), "+OK");
    until("the client that awaited the start is gone", || {
        admins[0].send(b"CLIENT LIST\r\n");
        let length: usize = admins[0].line()[1..].parse().unwrap();
        (admins[0].take(length + 2).matches(" laddr=").count() == admins.len()).then_some(())
    });
    let mut strangers = [sentinel.client(), sentinel.client()];
    for stranger in &mut strangers {
        assert_eq!(stranger.ask("PING"), "-NOAUTH Authentication required.");
    }
    let mut outsider = Client(TcpStream::connect((ip, sentinel.port)).unwrap());
    assert!(outsider.rest().starts_with("-DENIED Redis is running in protected mode"));
    for stranger in &mut strangers {
        assert_eq!(stranger.ask("PING"), "-NOAUTH Authentication required.");
    }
}

#[test]
fn protected_mode_serves_this_machine_and_refuses_others_unless_there_is_a_password() {
    let Some(ip) = outward() else { return };
    let sentinel = Sentinel::start("bind *\nprotected-mode yes\n");
    assert_eq!(sentinel.client().ask("PING"), "+PONG");
    let mut stranger = Client(TcpStream::connect((ip, sentinel.port)).unwrap());
    assert!(stranger.rest().starts_with("-DENIED Redis is running in protected mode"));
}

#[test]
fn a_client_that_floods_and_never_reads_neither_starves_the_others_nor_eats_the_memory() {
    let sentinel = Sentinel::start("");
    let mut flood = TcpStream::connect(("127.0.0.1", sentinel.port)).unwrap();
    flood.set_nonblocking(true).unwrap();
    let requests = b"PING aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(1000);
    let mut others = sentinel.client();
    let mut sent = 0usize;
    let mut refused = 0;
    // Until the other side has stopped reading for good: it has had its fill, and the kernel's buffers are full.
    while refused < 50 && sent < 512 * 1024 * 1024 {
        match flood.write(&requests[sent % requests.len()..]) {
            Ok(n) => {
                sent += n;
                refused = 0;
            }
            Err(why) => {
                assert_eq!(why.kind(), std::io::ErrorKind::WouldBlock);
                refused += 1;
                // Answered although the flood is not, and will not be for as long as it does not read.
                assert_eq!(others.ask("PING"), "+PONG");
            }
        }
    }
    assert!(refused >= 50, "everything that was sent was taken: {sent} bytes");
    others.send(b"INFO stats\r\n");
    let length: usize = others.line()[1..].parse().unwrap();
    let info = others.take(length + 2);
    let done = info.lines().find_map(|line| line.strip_prefix("total_commands_processed:")).unwrap();
    assert!(done.parse::<usize>().unwrap() < sent * 1000 / requests.len(), "all of the flood came before: {info}");
    assert!(resident(&sentinel) < 120 * 1024, "{} kB", resident(&sentinel));
    // It reads after all, and every reply is there.
    flood.set_nonblocking(false).unwrap();
    flood.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let reply = b"$58\r\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n";
    let expected = sent / (requests.len() / 1000) * reply.len();
    let mut seen = 0;
    let mut bytes = vec![0; 1 << 20];
    while seen < expected {
        seen += flood.read(&mut bytes).unwrap();
    }
    assert_eq!(seen, expected);
}

#[test]
fn r118_a_subscriber_that_never_reads_is_cut_off_before_it_eats_the_memory() {
    let sentinel = Sentinel::start("sentinel monitor m 127.0.0.1 1 1\n");
    let mut subscriber = sentinel.client();
    subscriber.send(b"PSUBSCRIBE *\r\n");
    assert_eq!(subscriber.line(), "*3");
    let mut client = sentinel.client();
    let subscribers = |client: &mut Client| {
        client.send(b"INFO clients\r\n");
        let length: usize = client.line()[1..].parse().unwrap();
        let info = client.take(length + 2);
        info.lines().find_map(|line| line.strip_prefix("pubsub_clients:")).unwrap().to_owned()
    };
    assert_eq!(subscribers(&mut client), "1");
    // Each makes an event of a quarter of a megabyte: 32 MB and what the kernel holds are soon reached.
    let long = "u".repeat(256 * 1024);
    let mut events = 0;
    while subscribers(&mut client) == "1" {
        assert!(events < 400, "still there after {events} events");
        assert_eq!(
            client.ask(&format!(
                "*5\r\n$8\r\nSENTINEL\r\n$3\r\nSET\r\n$1\r\nm\r\n$9\r\nauth-user\r\n${}\r\n{long}",
                long.len()
            )),
            "+OK"
        );
        events += 1;
    }
    assert!(events > 100, "cut off after {events} events already");
    assert!(resident(&sentinel) < 150 * 1024, "{} kB", resident(&sentinel));
}

#[test]
fn many_clients_at_once_are_all_served() {
    let sentinel = Sentinel::start("");
    let mut clients: Vec<Client> = (0..500).map(|_| sentinel.client()).collect();
    clients.iter_mut().for_each(|client| client.send(b"PING\r\nPING\r\n"));
    for client in &mut clients {
        assert_eq!(client.take(14), "+PONG\r\n+PONG\r\n");
    }
}
