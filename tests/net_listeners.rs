//! Listeners on both families, and what happens when descriptors run out.

mod net_support;

use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::process::Command;

use net_support::*;
use watchfire::base::limits;
use watchfire::net::{Next, Reactor};

fn quiet() -> (Reactor, Story<()>) {
    (Reactor::new(clock).unwrap(), Story::new((), |_, _, _| Next::Done))
}

#[test]
fn a_v6_listener_takes_v6_connections() {
    let (mut reactor, mut story) = quiet();
    let listener = reactor.listen("[::1]:0".parse().unwrap(), 16).unwrap();
    let addr = reactor.local_addr(listener).unwrap();
    assert_eq!(addr.ip(), Ipv6Addr::LOCALHOST);
    let client = client(addr);
    until(&mut reactor, &mut story, |s| !s.accepted().is_empty());
    let stream = story.accepted()[0];
    assert_eq!(story.events, [Event::Accepted(listener, stream, client.local_addr().ok())]);
}

#[test]
fn both_families_listen_on_one_port_side_by_side() {
    let (mut reactor, mut story) = quiet();
    // A port that is free for v4 may be taken for v6 by somebody else; then another one will do.
    let (four, six, port) = (0..20)
        .find_map(|_| {
            let four = reactor.listen("0.0.0.0:0".parse().unwrap(), 16).unwrap();
            let port = reactor.local_addr(four).unwrap().port();
            match reactor.listen(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port), 16) {
                Ok(six) => Some((four, six, port)),
                Err(_) => {
                    reactor.close(four);
                    None
                }
            }
        })
        .expect("a port free in both families");
    let _four = client(SocketAddr::new("127.0.0.1".parse().unwrap(), port));
    let _six = client(SocketAddr::new("::1".parse().unwrap(), port));
    until(&mut reactor, &mut story, |s| s.accepted().len() == 2);
    for listener in [four, six] {
        assert_eq!(story.count(|e| matches!(e, Event::Accepted(l, ..) if *l == listener)), 1);
    }
}

#[test]
fn a_taken_port_is_an_error() {
    let (mut reactor, _) = quiet();
    let listener = reactor.listen(local4(), 16).unwrap();
    let error = reactor.listen(reactor.local_addr(listener).unwrap(), 16).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn a_closed_listener_refuses_and_its_port_is_free_again() {
    let (mut reactor, mut story) = quiet();
    let listener = reactor.listen(local4(), 16).unwrap();
    let addr = reactor.local_addr(listener).unwrap();
    reactor.close(listener);
    assert!(TcpStream::connect(addr).is_err());
    turns(&mut reactor, &mut story, 1);
    assert_eq!(story.events, []);
    reactor.listen(addr, 16).unwrap();
}

#[test]
fn a_listener_closed_by_its_own_callback_accepts_no_more() {
    let mut reactor = Reactor::new(clock).unwrap();
    let mut story = Story::new((), |reactor, (), event| {
        if let Event::Accepted(listener, ..) = event {
            reactor.close(*listener);
        }
        Next::Done
    });
    let listener = reactor.listen(local4(), 16).unwrap();
    let addr = reactor.local_addr(listener).unwrap();
    let _clients = [client(addr), client(addr), client(addr)];
    until(&mut reactor, &mut story, |s| !s.accepted().is_empty());
    turns(&mut reactor, &mut story, 3);
    assert_eq!(story.accepted().len(), 1);
}

/// Runs in a process of its own, which [`without_descriptors_accepting_pauses_and_says_so_once`] starts with few descriptors.
#[test]
#[ignore = "is started by another test, under a limit"]
fn accepts_with_few_descriptors() {
    let (mut reactor, mut story) = quiet();
    let listener = reactor.listen(local4(), 64).unwrap();
    let addr = reactor.local_addr(listener).unwrap();
    // Our side takes one descriptor for each client, too: the last clients fit, their other ends do not.
    let mut clients = Vec::new();
    while let Ok(client) = TcpStream::connect(addr) {
        clients.push(client);
    }
    let room = clients.len() / 2;
    clients.truncate(room + 3);
    until(&mut reactor, &mut story, |s| s.count(|e| matches!(e, Event::Trouble(_))) == 1);
    let stuck = story.accepted().len();

    let (sleeps, start) = (story.sleeps, clock());
    let timer = reactor.add_timer(start + 5 * limits::ACCEPT_PAUSE);
    until(&mut reactor, &mut story, |s| s.events.contains(&Event::Timer(timer)));
    assert!(story.sleeps - sleeps < 20, "the loop spun: {} turns", story.sleeps - sleeps);
    assert_eq!(story.count(|e| matches!(e, Event::Trouble(_))), 1, "told once: {:?}", story.events);

    // Descriptors come back, and with them the service, though no new connection announces itself.
    for stream in story.accepted().into_iter().take(6) {
        reactor.close(stream);
    }
    until(&mut reactor, &mut story, |s| s.accepted().len() > stuck);
    println!("served again");
}

#[test]
fn without_descriptors_accepting_pauses_and_says_so_once() {
    let tests = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .arg("-c")
        .arg("ulimit -n 40; exec \"$0\" --ignored --exact accepts_with_few_descriptors --nocapture --test-threads=1")
        .arg(tests)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("served again"), "{text}");
}

#[test]
fn a_unix_socket_is_listened_on_like_any_other_and_who_comes_has_no_address() {
    let (mut reactor, mut story) = quiet();
    let path = std::env::temp_dir().join(format!("watchfire-net-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = reactor.listen_unix(std::os::unix::net::UnixListener::bind(&path).unwrap(), 16).unwrap();
    assert_eq!(reactor.local_addr(listener), None);
    let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    until(&mut reactor, &mut story, |s| !s.accepted().is_empty());
    let stream = story.accepted()[0];
    assert_eq!(story.events, [Event::Accepted(listener, stream, None)]);
    assert_eq!(reactor.local_addr(stream), None);
    reactor.set_keepalive(stream, 60).unwrap();

    assert_eq!(reactor.write(stream, b"one"), watchfire::net::Write::Wrote(3));
    let mut bytes = [0; 3];
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"one");
    client.write_all(b"two").unwrap();
    until(&mut reactor, &mut story, |s| s.count(|e| matches!(e, Event::Readable(_))) > 0);
    let mut got = Vec::new();
    assert_eq!(reactor.read(stream, &mut got), watchfire::net::Read::Data(3));
    assert_eq!(got, b"two");
    drop(client);
    until(&mut reactor, &mut story, |s| s.count(|e| matches!(e, Event::Readable(_))) > 1);
    assert_eq!(reactor.read(stream, &mut got), watchfire::net::Read::Eof);
    until(&mut reactor, &mut story, |s| s.closed().len() == 1);
}

#[test]
fn no_more_are_accepted_in_one_turn_than_asked_for() {
    let (mut reactor, mut story) = quiet();
    reactor.set_accepts_per_turn(2);
    let listener = reactor.listen(local4(), 16).unwrap();
    let addr = reactor.local_addr(listener).unwrap();
    let _clients: Vec<_> = (0..5).map(|_| client(addr)).collect();
    let mut seen = 0;
    while seen < 5 {
        reactor.turn(&mut story).unwrap();
        assert!(story.accepted().len() <= seen + 2);
        seen = story.accepted().len();
    }
}
