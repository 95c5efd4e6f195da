//! Streams over real loopback sockets: echo, fairness, stale tokens, backpressure, the ways to end.

mod net_support;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::Duration;

use net_support::*;
use watchfire::base::limits;
use watchfire::net::{CloseReason, Next, Reactor, Read, Token, Write};

/// Bytes that came and bytes that wait to go, by stream.
#[derive(Default)]
struct Buffers {
    got: BTreeMap<Token, Vec<u8>>,
    out: BTreeMap<Token, Vec<u8>>,
    polls: usize,
}

impl Buffers {
    fn flush(&mut self, reactor: &mut Reactor) {
        for (stream, out) in &mut self.out {
            flush(reactor, *stream, out);
        }
    }
}

fn flush(reactor: &mut Reactor, stream: Token, out: &mut Vec<u8>) {
    while !out.is_empty() {
        match reactor.write(stream, out) {
            Write::Wrote(n) => drop(out.drain(..n)),
            Write::Blocked => return reactor.arm_write(stream),
            Write::Failed(_) => out.clear(),
        }
    }
}

/// What a server does: reads in `readable`, answers in `before_sleep`, leaves the ends to `closed`.
fn echo(reactor: &mut Reactor, state: &mut Buffers, event: &Event) -> Next {
    match event {
        Event::BeforeSleep => {
            state.polls += 1;
            state.flush(reactor);
        }
        Event::Readable(stream) => {
            let mut bytes = Vec::new();
            drain(reactor, *stream, &mut bytes);
            state.got.entry(*stream).or_default().extend(&bytes);
            state.out.entry(*stream).or_default().extend(&bytes);
        }
        Event::Writable(_) => state.flush(reactor),
        Event::Closed(stream, _) => drop(state.out.remove(stream)),
        _ => {}
    }
    Next::Done
}

fn serve<S>(state: S, script: Script<S>) -> (Reactor, Story<S>, std::net::SocketAddr) {
    let mut reactor = Reactor::new(clock).unwrap();
    let listener = reactor.listen(local4(), 511).unwrap();
    let addr = reactor.local_addr(listener).unwrap();
    (reactor, Story::new(state, script), addr)
}

#[test]
fn bytes_that_come_in_go_back_out() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), echo);
    let mut client = client(addr);
    client.write_all(b"hello").unwrap();
    until(&mut reactor, &mut story, |s| s.state.got.values().any(|got| got == b"hello"));
    turns(&mut reactor, &mut story, 1);
    assert_eq!(&answer::<5>(&mut client), b"hello");
    let stream = story.accepted()[0];
    assert_eq!(
        story.count(|e| matches!(e, Event::Accepted(_, _, Some(peer)) if *peer == client.local_addr().unwrap())),
        1
    );
    assert_eq!(reactor.local_addr(stream), Some(addr));
}

#[test]
fn a_flood_on_one_stream_does_not_hold_up_the_others() {
    #[derive(Default)]
    struct Shares {
        turn: usize,
        /// (turn, stream, bytes), one per `readable`.
        reads: Vec<(usize, Token, usize)>,
    }
    let (mut reactor, mut story, addr) = serve(Shares::default(), |reactor, state, event| {
        match event {
            Event::BeforeSleep => state.turn += 1,
            Event::Readable(stream) => {
                let mut bytes = Vec::new();
                drain(reactor, *stream, &mut bytes);
                state.reads.push((state.turn, *stream, bytes.len()));
            }
            _ => {}
        }
        Next::Done
    });
    let (mut flood, mut quiet) = (client(addr), client(addr));
    until(&mut reactor, &mut story, |s| s.accepted().len() == 2);
    let (loud, small) = (story.accepted()[0], story.accepted()[1]);
    let sent = stuff(&mut flood);
    assert!(sent > 4 * limits::READ_PER_TURN, "the loopback took only {sent} bytes");
    let patience = reactor.add_timer(clock() + 60_000);
    until(&mut reactor, &mut story, |s| s.state.reads.len() >= 2);
    quiet.write_all(b"me too").unwrap();
    until(&mut reactor, &mut story, |s| {
        s.state.reads.iter().map(|(_, stream, n)| if *stream == loud { *n } else { 0 }).sum::<usize>() == sent
    });
    reactor.cancel(patience);

    let reads = &story.state.reads;
    let mut shares: BTreeMap<(usize, Token), usize> = BTreeMap::new();
    for (turn, stream, n) in reads {
        *shares.entry((*turn, *stream)).or_default() += n;
    }
    assert!(shares.values().all(|n| *n <= limits::READ_PER_TURN), "{shares:?}");
    let heard = reads.iter().position(|(_, stream, n)| *stream == small && *n == 6).expect("the quiet one was heard");
    assert!(heard <= 5, "heard only after {heard} reads");
}

#[test]
fn a_handler_that_reads_once_per_call_is_called_until_all_is_read() {
    let (mut reactor, mut story, addr) = serve(0_usize, |reactor, got, event| {
        if let Event::Readable(stream) = event
            && let Read::Data(n) = reactor.read(*stream, &mut Vec::new())
        {
            *got += n;
        }
        Next::Done
    });
    let mut client = client(addr);
    let sent = stuff(&mut client);
    until(&mut reactor, &mut story, |s| s.state == sent);
}

#[test]
fn a_stream_that_was_read_dry_lets_the_poll_wait() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), echo);
    let mut client = client(addr);
    client.write_all(b"once").unwrap();
    until(&mut reactor, &mut story, |s| !s.state.got.is_empty());
    let (polls, start) = (story.state.polls, clock());
    let timer = reactor.add_timer(start + 50);
    until(&mut reactor, &mut story, |s| s.events.contains(&Event::Timer(timer)));
    assert!(story.state.polls - polls <= 5, "the loop spun: {} polls", story.state.polls - polls);
}

#[test]
fn a_stream_closed_by_an_earlier_callback_of_the_batch_is_not_reported() {
    #[derive(Default)]
    struct Pair {
        streams: Vec<Token>,
        fresh: Option<Token>,
        addr: Option<std::net::SocketAddr>,
    }
    let (mut reactor, mut story, addr) = serve(Pair::default(), |reactor, state, event| {
        match event {
            Event::Accepted(_, stream, _) => {
                // Both are to be in one batch, so neither is looked at before the other has its bytes.
                reactor.set_reading(*stream, false);
                state.streams.push(*stream);
            }
            Event::Readable(stream) if state.fresh.is_none() => {
                let victim = *state.streams.iter().find(|other| *other != stream).unwrap();
                reactor.close(victim);
                assert!(!is_open(reactor, victim));
                let fresh = reactor.connect(state.addr.unwrap(), None).unwrap();
                assert_ne!(fresh.slot(), victim.slot(), "the slot is not given away within the batch");
                state.fresh = Some(fresh);
            }
            Event::Readable(stream) => drop(drain(reactor, *stream, &mut Vec::new())),
            _ => {}
        }
        Next::Done
    });
    story.state.addr = Some(addr);
    let (mut one, mut two) = (client(addr), client(addr));
    one.write_all(b"1").unwrap();
    two.write_all(b"2").unwrap();
    until(&mut reactor, &mut story, |s| s.state.streams.len() == 2);
    turns(&mut reactor, &mut story, 1);
    let streams = story.state.streams.clone();
    for stream in &streams {
        reactor.set_reading(*stream, true);
    }
    let fresh =
        |s: &Story<Pair>| s.events.iter().any(|e| matches!(e, Event::Connected(t, _) if Some(*t) == s.state.fresh));
    until(&mut reactor, &mut story, fresh);
    let victim = *streams.iter().find(|stream| !is_open(&reactor, **stream)).unwrap();
    assert_eq!(story.count(|e| *e == Event::Readable(victim)), 0);
    assert_eq!(story.count(|e| matches!(e, Event::Closed(..))), 0, "a close of our own is not reported");

    // The stale token finds nothing, even now that its slot has a new owner: the other end of the fresh stream.
    until(&mut reactor, &mut story, |s| s.accepted().len() == 3);
    let heir = story.accepted()[2];
    assert_eq!(heir.slot(), victim.slot());
    assert_ne!(heir.generation(), victim.generation());
    assert!(matches!(reactor.read(victim, &mut Vec::new()), Read::Failed(_)));
    assert!(matches!(reactor.write(victim, b"?"), Write::Failed(_)));
    assert_eq!(reactor.local_addr(victim), None);
    reactor.arm_write(victim);
    reactor.wake(victim);
    reactor.close(victim);
    assert!(is_open(&reactor, heir));
    turns(&mut reactor, &mut story, 2);
    assert_eq!(story.count(|e| matches!(e, Event::Writable(_))), 0, "the demand of a stale token is not its heir's");
}

#[test]
fn a_writer_is_held_back_until_its_peer_reads() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), echo);
    let mut client = client(addr);
    until(&mut reactor, &mut story, |s| s.accepted().len() == 1);
    let stream = story.accepted()[0];
    let total = 16 * 1024 * 1024;
    story.state.out.insert(stream, vec![b'y'; total]);

    // Until the kernel takes no more: then nothing is reported, and the poll waits.
    let mut before = usize::MAX;
    while story.state.out[&stream].len() < before {
        before = story.state.out[&stream].len();
        turns(&mut reactor, &mut story, 1);
        assert!(before - story.state.out[&stream].len() <= 2 * limits::WRITE_PER_TURN);
    }
    let writables = story.count(|e| matches!(e, Event::Writable(_)));
    turns(&mut reactor, &mut story, 5);
    assert_eq!(story.count(|e| matches!(e, Event::Writable(_))), writables);
    assert!(!story.state.out[&stream].is_empty(), "the loopback took it all");

    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; total];
        client.read_exact(&mut bytes).unwrap();
        bytes.iter().all(|b| *b == b'y')
    });
    until(&mut reactor, &mut story, |s| s.state.out[&stream].is_empty());
    assert!(reader.join().unwrap(), "what arrived is what was written");
    assert!(story.count(|e| matches!(e, Event::Writable(_))) > writables);
}

#[test]
fn one_poll_to_the_next_writes_no_more_than_the_bound() {
    let (mut reactor, mut story, addr) = serve(0_usize, |reactor, wrote, event| {
        if let Event::Accepted(_, stream, _) = event {
            while let Write::Wrote(n) = reactor.write(*stream, &vec![b'z'; 10_000]) {
                *wrote += n;
            }
        }
        Next::Done
    });
    let _client = client(addr);
    until(&mut reactor, &mut story, |s| s.state > 0);
    assert_eq!(story.state, limits::WRITE_PER_TURN);
}

#[test]
fn a_writable_is_reported_once_for_each_time_it_was_armed() {
    let (mut reactor, mut story, addr) = serve((), |_, _, _| Next::Done);
    let _client = client(addr);
    until(&mut reactor, &mut story, |s| s.accepted().len() == 1);
    let stream = story.accepted()[0];
    reactor.arm_write(stream);
    reactor.arm_write(stream);
    assert_eq!(story.count(|e| matches!(e, Event::Writable(_))), 0, "not from within arm_write");
    turns(&mut reactor, &mut story, 3);
    assert_eq!(story.count(|e| matches!(e, Event::Writable(_))), 1);
}

#[test]
fn a_peer_that_ends_its_half_still_gets_the_answer() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), echo);
    let mut client = client(addr);
    client.write_all(b"last words").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    until(&mut reactor, &mut story, |s| !s.closed().is_empty());
    assert_eq!(story.closed(), [(story.accepted()[0], CloseReason::Eof)]);
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"last words");
    assert_eq!(open(&reactor, &story), 0);
}

/// Answers with far more than one write takes when the peer has finished, and closes when all of it is written.
fn long_answer(reactor: &mut Reactor, state: &mut Buffers, event: &Event) -> Next {
    match event {
        Event::BeforeSleep => state.polls += 1,
        Event::Readable(stream) if drain(reactor, *stream, &mut Vec::new()) == Some(Read::Eof) => {
            reactor.keep_writing(*stream);
            // Has no effect: there is nothing left to read.
            reactor.wake(*stream);
            let out = state.out.entry(*stream).or_insert_with(|| vec![b'x'; LONG]);
            flush(reactor, *stream, out);
        }
        Event::Writable(stream) => {
            let out = state.out.get_mut(stream).unwrap();
            match reactor.write(*stream, out) {
                Write::Wrote(n) => drop(out.drain(..n)),
                Write::Blocked => {}
                Write::Failed(_) => return Next::Done,
            }
            if out.is_empty() {
                reactor.close(*stream);
            } else {
                reactor.arm_write(*stream);
            }
        }
        _ => {}
    }
    Next::Done
}

const LONG: usize = 24 * 1024 * 1024;

#[test]
fn a_peer_that_ends_its_half_is_written_to_as_long_as_that_is_wanted() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), long_answer);
    let mut client = client(addr);
    client.shutdown(Shutdown::Write).unwrap();
    until(&mut reactor, &mut story, |s| s.state.out.len() == 1);
    // While nobody reads and the kernel has its fill, nothing is reported and the poll waits.
    turns(&mut reactor, &mut story, 1000);
    let before = story.events.len();
    turns(&mut reactor, &mut story, 5);
    assert_eq!(story.events.len(), before);
    let reader = std::thread::spawn(move || {
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        heard.len()
    });
    let token = story.accepted()[0];
    until(&mut reactor, &mut story, |s| s.state.out[&token].is_empty());
    turns(&mut reactor, &mut story, 1);
    assert_eq!(reader.join().unwrap(), LONG);
    assert_eq!(story.closed(), []);
    assert_eq!(story.count(|e| matches!(e, Event::Readable(_))), 1);
    assert_eq!(open(&reactor, &story), 0);
}

#[test]
fn a_peer_that_ended_its_half_and_then_leaves_is_reported() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), long_answer);
    let client = client(addr);
    client.shutdown(Shutdown::Write).unwrap();
    until(&mut reactor, &mut story, |s| s.state.out.len() == 1);
    drop(client);
    until(&mut reactor, &mut story, |s| !s.closed().is_empty());
    assert_eq!(story.closed(), [(story.accepted()[0], CloseReason::Reset)]);
    assert_eq!(open(&reactor, &story), 0);
}

#[test]
fn an_end_that_comes_between_the_poll_and_the_read_is_seen() {
    // The read empties the socket and stops short of the end, of which this poll has not heard.
    let (mut reactor, mut story, addr) = serve(None::<std::net::TcpStream>, |reactor, client, event| {
        if let Event::Readable(stream) = event {
            if let Some(client) = client.take() {
                client.shutdown(Shutdown::Write).unwrap();
            }
            drain(reactor, *stream, &mut Vec::new());
        }
        Next::Done
    });
    let mut client = client(addr);
    client.write_all(b"last words").unwrap();
    story.state = Some(client);
    until(&mut reactor, &mut story, |s| !s.closed().is_empty());
    assert_eq!(story.closed(), [(story.accepted()[0], CloseReason::Eof)]);
}

#[test]
fn a_handler_that_closes_at_the_end_itself_is_not_told_again() {
    let (mut reactor, mut story, addr) = serve(0, |reactor, ends, event| {
        if let Event::Readable(stream) = event
            && drain(reactor, *stream, &mut Vec::new()) == Some(Read::Eof)
        {
            *ends += 1;
            reactor.close(*stream);
        }
        Next::Done
    });
    drop(client(addr));
    until(&mut reactor, &mut story, |s| s.state == 1);
    turns(&mut reactor, &mut story, 3);
    assert_eq!(story.state, 1);
    assert_eq!(story.closed(), []);
}

#[test]
fn a_torn_down_connection_ends_as_reset() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), echo);
    let client = client(addr);
    until(&mut reactor, &mut story, |s| s.accepted().len() == 1);
    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    until(&mut reactor, &mut story, |s| !s.closed().is_empty());
    assert_eq!(story.closed(), [(story.accepted()[0], CloseReason::Reset)]);
}

#[test]
fn a_write_that_fails_in_before_sleep_is_reported_by_the_turn() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), echo);
    let client = client(addr);
    until(&mut reactor, &mut story, |s| s.accepted().len() == 1);
    let stream = story.accepted()[0];
    reactor.set_reading(stream, false);
    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    story.state.out.insert(stream, b"anybody there?".to_vec());
    until(&mut reactor, &mut story, |s| !s.closed().is_empty());
    assert_eq!(story.closed(), [(stream, CloseReason::Reset)]);
}

#[test]
fn a_paused_stream_is_silent_until_it_is_resumed() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), echo);
    let mut client = client(addr);
    until(&mut reactor, &mut story, |s| s.accepted().len() == 1);
    let stream = story.accepted()[0];
    reactor.set_reading(stream, false);
    client.write_all(b"patience").unwrap();
    turns(&mut reactor, &mut story, 5);
    assert!(story.state.got.is_empty());
    reactor.set_reading(stream, true);
    assert!(story.state.got.is_empty(), "not from within set_reading");
    until(&mut reactor, &mut story, |s| !s.state.got.is_empty());
    assert_eq!(story.state.got[&stream], b"patience");
}

#[test]
fn a_woken_stream_is_reported_once_though_nothing_came() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), echo);
    let _client = client(addr);
    until(&mut reactor, &mut story, |s| s.accepted().len() == 1);
    turns(&mut reactor, &mut story, 2);
    let stream = story.accepted()[0];
    reactor.wake(stream);
    assert_eq!(story.count(|e| matches!(e, Event::Readable(_))), 0);
    turns(&mut reactor, &mut story, 3);
    assert_eq!(story.count(|e| *e == Event::Readable(stream)), 1);
}

#[test]
fn every_callback_may_close_its_own_stream() {
    for step in 0..3 {
        let (mut reactor, mut story, addr) = serve(step, |reactor, step, event| {
            match event {
                Event::Accepted(_, stream, _) if *step == 0 => reactor.close(*stream),
                Event::Accepted(_, stream, _) => reactor.arm_write(*stream),
                Event::Readable(stream) if *step == 1 => reactor.close(*stream),
                Event::Readable(stream) => drop(drain(reactor, *stream, &mut Vec::new())),
                Event::Writable(stream) if *step == 2 => reactor.close(*stream),
                _ => {}
            }
            Next::Done
        });
        let mut client = client(addr);
        // Not if the stream is closed before it could be sent.
        let _ = client.write_all(b"x");
        until(&mut reactor, &mut story, |s| s.accepted().len() == 1);
        while open(&reactor, &story) > 0 {
            turns(&mut reactor, &mut story, 1);
        }
        turns(&mut reactor, &mut story, 2);
        assert_eq!(story.closed(), []);
        let after = story.count(|e| matches!(e, Event::Readable(_) | Event::Writable(_)));
        assert!(after <= 2, "step {step}: {:?}", story.events);
    }
}

#[test]
fn hundreds_of_clients_are_served_and_their_slots_are_used_again() {
    let (mut reactor, mut story, addr) = serve(Buffers::default(), echo);
    for round in 1..=2 {
        let mut clients: Vec<_> = (0..300).map(|_| client(addr)).collect();
        for (n, client) in clients.iter_mut().enumerate() {
            client.write_all(&u32::try_from(n).unwrap().to_be_bytes()).unwrap();
        }
        until(&mut reactor, &mut story, |s| s.state.got.values().filter(|got| got.len() == 4).count() == 300 * round);
        turns(&mut reactor, &mut story, 1);
        for (n, client) in clients.iter_mut().enumerate() {
            assert_eq!(u32::from_be_bytes(answer(client)), u32::try_from(n).unwrap());
        }
        assert_eq!(open(&reactor, &story), 300);
        drop(clients);
        until(&mut reactor, &mut story, |s| s.closed().len() == 300 * round);
        assert_eq!(open(&reactor, &story), 0);
    }
    let highest = story.accepted().iter().map(|stream| stream.slot()).max().unwrap();
    assert!(highest <= 301, "slots are not used again: {highest}");
    let mut tokens = story.accepted();
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 600, "no token comes twice");
}
