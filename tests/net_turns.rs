//! The order of a turn, timers, signals, wake-ups from other threads, and stopping.

mod net_support;

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use net_support::*;
use watchfire::base::{Millis, limits};
use watchfire::net::{Next, Reactor, TimerId, Token};

/// A clock of this test alone, that stands until the test moves it.
macro_rules! hand_clock {
    ($now:ident, $clock:ident) => {
        static $now: AtomicU64 = AtomicU64::new(1_000);
        fn $clock() -> Millis {
            Millis($now.load(Ordering::SeqCst))
        }
    };
}

fn fired<S>(story: &Story<S>) -> Vec<TimerId> {
    story.events.iter().filter_map(|e| if let Event::Timer(id) = e { Some(*id) } else { None }).collect()
}

#[test]
fn timers_fire_in_the_order_of_their_deadlines() {
    hand_clock!(NOW, hand);
    let mut reactor = Reactor::new(hand).unwrap();
    let mut story = Story::new((), |_, (), _| Next::Done);
    let late = reactor.add_timer(Millis(1_030));
    let early = reactor.add_timer(Millis(1_010));
    let same = reactor.add_timer(Millis(1_010));
    let past = reactor.add_timer(Millis(3));
    reactor.turn(&mut story).unwrap();
    assert_eq!(fired(&story), [past]);
    NOW.store(1_030, Ordering::SeqCst);
    reactor.turn(&mut story).unwrap();
    assert_eq!(fired(&story), [past, early, same, late]);
    assert_eq!(reactor.now(), Millis(1_030));
}

#[test]
fn a_timer_is_never_early_and_waiting_for_it_does_not_spin() {
    let mut reactor = Reactor::new(clock).unwrap();
    let mut story = Story::new(Millis(0), |_, at, event| {
        if let Event::Timer(_) = event {
            assert!(clock() >= *at, "early");
        }
        Next::Done
    });
    for delay in [1, 2, 3, 7, 20, 40] {
        story.state = clock() + delay;
        let (id, sleeps) = (reactor.add_timer(story.state), story.sleeps);
        until(&mut reactor, &mut story, |s| fired(s).contains(&id));
        assert!(story.sleeps - sleeps <= 3, "{} turns for one timer of {delay} ms", story.sleeps - sleeps);
    }
}

#[test]
fn a_cancelled_timer_does_not_fire() {
    hand_clock!(NOW, hand);
    let mut reactor = Reactor::new(hand).unwrap();
    let mut story = Story::new((), |_, (), _| Next::Done);
    let gone = reactor.add_timer(Millis(1_010));
    let kept = reactor.add_timer(Millis(1_020));
    assert!(reactor.cancel(gone));
    assert!(!reactor.cancel(gone));
    NOW.store(1_020, Ordering::SeqCst);
    reactor.turn(&mut story).unwrap();
    assert_eq!(fired(&story), [kept]);
    assert!(!reactor.cancel(kept), "a timer that is done cannot be cancelled");
}

#[test]
fn a_timer_can_cancel_one_that_is_due_in_the_same_turn() {
    hand_clock!(NOW, hand);
    let mut reactor = Reactor::new(hand).unwrap();
    let mut story = Story::new(None, |reactor, other: &mut Option<TimerId>, event| {
        if let Event::Timer(_) = event
            && let Some(other) = other.take()
        {
            assert!(reactor.cancel(other));
        }
        Next::Done
    });
    let first = reactor.add_timer(Millis(1_010));
    story.state = Some(reactor.add_timer(Millis(1_011)));
    NOW.store(1_500, Ordering::SeqCst);
    reactor.turn(&mut story).unwrap();
    assert_eq!(fired(&story), [first]);
}

#[test]
fn a_periodic_timer_keeps_its_id_until_it_is_done() {
    hand_clock!(NOW, hand);
    let mut reactor = Reactor::new(hand).unwrap();
    let mut story = Story::new(0, |_, times, event| {
        let Event::Timer(_) = event else { return Next::Done };
        *times += 1;
        if *times < 3 { Next::After(100) } else { Next::Done }
    });
    let id = reactor.add_timer(Millis(1_100));
    // A turn that comes late counts from the time it came.
    for (now, times) in [(1_150, 1), (1_249, 1), (1_250, 2), (1_349, 2), (1_351, 3), (9_999, 3)] {
        NOW.store(now, Ordering::SeqCst);
        // So that the poll does not wait for a clock that stands.
        reactor.waker().unwrap().wake().unwrap();
        reactor.turn(&mut story).unwrap();
        assert_eq!(fired(&story).len(), times, "at {now}");
    }
    assert_eq!(fired(&story), [id, id, id]);
    assert!(!reactor.cancel(id));
}

#[test]
fn a_periodic_timer_that_cancels_itself_stays_cancelled() {
    hand_clock!(NOW, hand);
    let mut reactor = Reactor::new(hand).unwrap();
    let mut story = Story::new((), |reactor, (), event| {
        if let Event::Timer(id) = event {
            reactor.cancel(*id);
        }
        Next::After(0)
    });
    let id = reactor.add_timer(Millis(1_000));
    reactor.turn(&mut story).unwrap();
    NOW.store(2_000, Ordering::SeqCst);
    let waker = reactor.waker().unwrap();
    waker.wake().unwrap();
    reactor.turn(&mut story).unwrap();
    assert_eq!(fired(&story), [id]);
}

#[test]
fn a_timer_that_makes_another_without_delay_does_not_hold_the_loop() {
    hand_clock!(NOW, hand);
    let mut reactor = Reactor::new(hand).unwrap();
    let mut story = Story::new((), |reactor, (), event| {
        if let Event::Timer(_) = event {
            reactor.add_timer(Millis(0));
        }
        Next::Done
    });
    reactor.add_timer(Millis(0));
    for turn in 1..=3 {
        reactor.turn(&mut story).unwrap();
        assert_eq!(fired(&story).len(), turn);
    }
    assert_eq!(NOW.load(Ordering::SeqCst), 1_000);
}

#[test]
fn before_sleep_comes_before_each_poll_and_file_events_before_time_events() {
    let mut reactor = Reactor::new(clock).unwrap();
    let listener = reactor.listen(local4(), 16).unwrap();
    let addr = reactor.local_addr(listener).unwrap();
    let mut story = Story::new(Vec::new(), |_, order: &mut Vec<&str>, event| {
        order.push(match event {
            Event::BeforeSleep => "sleep",
            Event::Accepted(..) => "accepted",
            Event::Readable(_) => "readable",
            Event::Timer(_) => "timer",
            _ => "?",
        });
        Next::Done
    });
    let mut client = client(addr);
    client.write_all(b"x").unwrap();
    reactor.add_timer(Millis(0));
    reactor.turn(&mut story).unwrap();
    assert_eq!(story.state, ["sleep", "accepted", "timer"]);
    story.state.clear();
    reactor.add_timer(Millis(0));
    reactor.turn(&mut story).unwrap();
    assert_eq!(story.state, ["sleep", "readable", "timer"]);
}

#[test]
fn a_stop_ends_the_run_with_its_turn() {
    let mut reactor = Reactor::new(clock).unwrap();
    let mut story = Story::new(0, |reactor, times, event| {
        if let Event::Timer(_) = event {
            *times += 1;
            if *times == 3 {
                reactor.stop();
            }
        }
        Next::After(1)
    });
    reactor.add_timer(clock());
    reactor.run(&mut story).unwrap();
    assert_eq!(story.state, 3);
    // And it can run again.
    story.state = 2;
    reactor.run(&mut story).unwrap();
    assert_eq!(story.state, 3);
}

#[test]
fn a_stop_in_before_sleep_ends_the_run_without_a_poll() {
    let mut reactor = Reactor::new(clock).unwrap();
    let mut story = Story::new((), |reactor, (), event| {
        assert_eq!(*event, Event::BeforeSleep);
        reactor.stop();
        Next::Done
    });
    // Nothing else would ever end the poll.
    reactor.run(&mut story).unwrap();
    assert_eq!(story.sleeps, 1);
}

#[test]
fn a_signal_ends_the_poll_and_is_reported() {
    const USR1: i32 = signal_hook::consts::SIGUSR1;
    let mut reactor = Reactor::new(clock).unwrap();
    let mut story = Story::new((), |_, (), _| Next::Done);
    reactor.signals(&[signal_hook::consts::SIGUSR2]).unwrap();
    reactor.signals(&[USR1]).unwrap();
    for count in 1..=3 {
        let raiser = std::thread::spawn(|| signal_hook::low_level::raise(USR1).unwrap());
        until(&mut reactor, &mut story, |s| s.events.len() == count);
        raiser.join().unwrap();
        assert_eq!(story.events[count - 1], Event::Signal(USR1));
    }
}

#[test]
fn signals_that_cannot_be_handled_are_an_error() {
    let mut reactor = Reactor::new(clock).unwrap();
    let error = reactor.signals(&[signal_hook::consts::SIGKILL]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn another_thread_can_end_the_poll() {
    let mut reactor = Reactor::new(clock).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut story = Story::new(receiver, |reactor, receiver, event| {
        if *event == Event::BeforeSleep && receiver.try_recv() == Ok(7) {
            reactor.stop();
        }
        Next::Done
    });
    // Should the wake-up be lost, the test fails instead of hanging.
    let late = reactor.add_timer(clock() + 20_000);
    let waker = reactor.waker().unwrap();
    let thread = std::thread::spawn(move || {
        sender.send(7).unwrap();
        waker.wake().unwrap();
    });
    reactor.run(&mut story).unwrap();
    thread.join().unwrap();
    assert!(reactor.cancel(late));
}

#[test]
fn who_came_to_us_is_served_before_the_connections_that_we_made_and_of_each_kind_so_many_in_a_turn() {
    const MANY: usize = limits::STREAMS_PER_TURN * 5 / 2;
    let mut reactor = Reactor::new(clock).unwrap();
    let listener = reactor.listen(local4(), 512).unwrap();
    let at = reactor.local_addr(listener).unwrap();
    let server = TcpListener::bind(local4()).unwrap();
    let mut story = Story::new(Vec::new(), |reactor, order: &mut Vec<Vec<Token>>, event| {
        match event {
            Event::BeforeSleep => order.push(Vec::new()),
            Event::Readable(stream) => {
                assert_eq!(drain(reactor, *stream, &mut Vec::new()), None);
                order.last_mut().unwrap().push(*stream);
            }
            _ => {}
        }
        Next::Done
    });
    // Ours first, in the list as well: all of them have something to say before anybody else has.
    let (mut ours, mut nodes) = (Vec::new(), Vec::new());
    for _ in 0..MANY {
        ours.push(reactor.connect(server.local_addr().unwrap(), None).unwrap());
        nodes.push(server.accept().unwrap().0);
    }
    let clients: Vec<TcpStream> = (0..3).map(|_| client(at)).collect();
    until(&mut reactor, &mut story, |s| {
        s.accepted().len() == clients.len() && s.count(|e| matches!(e, Event::Connected(..))) == MANY
    });
    turns(&mut reactor, &mut story, 1);
    story.state.clear();
    for mut stream in nodes.iter().chain(&clients) {
        stream.write_all(b"x").unwrap();
    }
    turns(&mut reactor, &mut story, 3);
    let theirs = story.accepted();
    let [first, second, third] = story.state.as_slice() else { panic!("three turns") };
    let (served_first, served_ours) = first.split_at(theirs.len());
    assert_eq!(served_first, theirs, "though they were the last to say something");
    assert_eq!(served_ours.len(), limits::STREAMS_PER_TURN);
    assert_eq!(second.len(), limits::STREAMS_PER_TURN);
    let all: Vec<Token> = [served_ours, second, third].concat();
    assert_eq!(all, ours, "in the order in which they had something to say, each once");
}

#[test]
fn what_is_left_to_the_next_turn_has_not_been_heard() {
    hand_clock!(NOW, hand);
    const MANY: usize = limits::STREAMS_PER_TURN + 1;
    let mut reactor = Reactor::new(hand).unwrap();
    let server = TcpListener::bind(local4()).unwrap();
    let mut story = Story::new(0, |reactor, read: &mut usize, event| {
        if let Event::Readable(stream) = event {
            assert_eq!(drain(reactor, *stream, &mut Vec::new()), None);
            *read += 1;
        }
        Next::Done
    });
    let mut nodes = Vec::new();
    for _ in 0..MANY {
        let _ = reactor.connect(server.local_addr().unwrap(), None).unwrap();
        nodes.push(server.accept().unwrap().0);
    }
    let waker = reactor.waker().unwrap();
    while story.count(|e| matches!(e, Event::Connected(..))) < MANY {
        reactor.turn(&mut story).unwrap();
    }
    let mut turn_at = |at: u64, says: Option<&[u8]>| {
        for (node, says) in nodes.iter_mut().flat_map(|node| says.map(|says| (node, says))) {
            node.write_all(says).unwrap();
        }
        NOW.store(at, Ordering::SeqCst);
        // So that the poll does not wait for a clock that stands.
        waker.wake().unwrap();
        reactor.turn(&mut story).unwrap();
        (story.state, reactor.heard_up_to())
    };
    assert_eq!(turn_at(2_000, None), (0, Millis(2_000)));
    // All of them have said something since then, and one had to be left.
    assert_eq!(turn_at(2_100, Some(b"x")), (MANY - 1, Millis(2_000)));
    // It comes first now, but all have said something again, after the turn before at the earliest.
    assert_eq!(turn_at(2_200, Some(b"y")), (2 * MANY - 2, Millis(2_100)));
    assert_eq!(turn_at(2_300, None), (2 * MANY - 1, Millis(2_300)));
}
