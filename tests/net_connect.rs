//! Outgoing connections: they stand, they are refused, they fail at once; and nothing is reported before the turn.

mod net_support;

use std::net::{IpAddr, SocketAddr, TcpListener};

use net_support::*;
use watchfire::net::{CloseReason, Next, Reactor, Read, Token, Write};

fn quiet() -> (Reactor, Story<()>) {
    (Reactor::new(clock).unwrap(), Story::new((), |_, _, _| Next::Done))
}

fn connected(story: &Story<()>, stream: Token) -> Option<SocketAddr> {
    story.events.iter().find_map(|e| match e {
        Event::Connected(token, local) if *token == stream => Some(*local),
        _ => None,
    })
}

#[test]
fn a_connection_is_reported_by_the_turn_with_our_end_of_it() {
    let (mut reactor, mut story) = quiet();
    let server = TcpListener::bind(local4()).unwrap();
    let stream = reactor.connect(server.local_addr().unwrap(), None).unwrap();
    assert_eq!(story.events, []);
    assert!(is_open(&reactor, stream));
    until(&mut reactor, &mut story, |s| connected(s, stream).is_some());
    let (_peer, seen) = server.accept().unwrap();
    assert_eq!(connected(&story, stream), Some(seen));
    assert_eq!(reactor.local_addr(stream), Some(seen));
}

#[test]
fn a_connection_comes_from_the_address_that_was_asked_for() {
    let (mut reactor, mut story) = quiet();
    let server = TcpListener::bind(local4()).unwrap();
    let from: IpAddr = "127.0.0.1".parse().unwrap();
    let stream = reactor.connect(server.local_addr().unwrap(), Some(from)).unwrap();
    until(&mut reactor, &mut story, |s| connected(s, stream).is_some());
    assert_eq!(server.accept().unwrap().1.ip(), from);
}

#[test]
fn a_port_without_listener_refuses() {
    let (mut reactor, mut story) = quiet();
    let (_held, addr) = deaf_port();
    let stream = reactor.connect(addr, None).unwrap();
    assert_eq!(story.events, [], "never from within connect");
    assert!(is_open(&reactor, stream));
    until(&mut reactor, &mut story, |s| !s.events.is_empty());
    assert_eq!(story.events, [Event::Closed(stream, CloseReason::Refused)]);
    assert!(!is_open(&reactor, stream));
}

#[test]
fn a_connect_that_fails_at_once_is_reported_by_the_next_turn() {
    let (mut reactor, mut story) = quiet();
    let server = TcpListener::bind(local4()).unwrap();
    // An address of the documentation range is none of ours.
    let stream = reactor.connect(server.local_addr().unwrap(), Some("192.0.2.1".parse().unwrap())).unwrap();
    assert_eq!(story.events, []);
    assert!(matches!(reactor.write(stream, b"x"), Write::Failed(_)));
    reactor.turn(&mut story).unwrap();
    assert!(
        matches!(&story.events[..], [Event::Closed(token, CloseReason::Other(_))] if *token == stream),
        "{:?}",
        story.events
    );
    assert!(!is_open(&reactor, stream));
}

#[test]
fn a_handler_that_connects_again_in_closed_gets_one_answer_per_turn() {
    let mut reactor = Reactor::new(clock).unwrap();
    let mut story = Story::new((), |reactor, (), event| {
        if let Event::Closed(..) = event {
            reactor.connect(local4(), Some("192.0.2.1".parse().unwrap())).unwrap();
        }
        Next::Done
    });
    reactor.connect(local4(), Some("192.0.2.1".parse().unwrap())).unwrap();
    for turn in 1..=3 {
        reactor.turn(&mut story).unwrap();
        assert_eq!(story.closed().len(), turn);
    }
}

#[test]
fn a_stream_that_is_closed_before_its_failure_is_told_stays_silent() {
    let (mut reactor, mut story) = quiet();
    let stream = reactor.connect(local4(), Some("192.0.2.1".parse().unwrap())).unwrap();
    reactor.close(stream);
    turns(&mut reactor, &mut story, 2);
    assert_eq!(story.events, []);
    assert!(!is_open(&reactor, stream));
}

#[test]
fn source_and_destination_must_be_of_one_family() {
    let (mut reactor, _) = quiet();
    let error = reactor.connect(local4(), Some("::1".parse().unwrap())).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn until_it_stands_a_connection_moves_no_bytes_but_remembers_the_demand() {
    let (mut reactor, mut story) = quiet();
    let server = TcpListener::bind(local4()).unwrap();
    let stream = reactor.connect(server.local_addr().unwrap(), None).unwrap();
    assert_eq!(reactor.read(stream, &mut Vec::new()), Read::Blocked);
    assert_eq!(reactor.write(stream, b"early"), Write::Blocked);
    reactor.arm_write(stream);
    until(&mut reactor, &mut story, |s| s.events.contains(&Event::Writable(stream)));
    assert!(matches!(story.events[..], [Event::Connected(..), Event::Writable(_)]), "{:?}", story.events);
    assert_eq!(reactor.write(stream, b"now"), Write::Wrote(3));
}

#[test]
fn two_reactor_streams_talk_to_each_other() {
    let mut reactor = Reactor::new(clock).unwrap();
    let listener = reactor.listen(local4(), 16).unwrap();
    let addr = reactor.local_addr(listener).unwrap();
    let mut story = Story::new(Vec::new(), |reactor, heard: &mut Vec<u8>, event| {
        match event {
            Event::Connected(stream, _) => assert_eq!(reactor.write(*stream, b"ping"), Write::Wrote(4)),
            Event::Readable(stream) => drop(drain(reactor, *stream, heard)),
            Event::Accepted(_, stream, _) => assert_eq!(reactor.write(*stream, b"pong"), Write::Wrote(4)),
            _ => {}
        }
        Next::Done
    });
    reactor.connect(addr, None).unwrap();
    until(&mut reactor, &mut story, |s| s.state.len() == 8);
}
