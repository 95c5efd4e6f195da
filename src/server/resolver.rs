//! Looking names up without stopping the loop.
//!
//! The system's resolver blocks, for seconds when a name server is silent, so it runs beside the loop: on one thread,
//! started with the first name and never for numeric addresses. It leaves its answer and wakes the loop.
//!
//! A name that takes long must not hold up the others, which may be needed for a failover. So as long as nothing comes
//! back and more than the running threads have in hand is asked for, there is one thread more every [`PATIENCE`], up to
//! [`THREADS`]. And where more names are slow than there are threads, as when the name server of a whole zone is dead, the last
//! thread is for those that were quick the last time, and have no sibling that keeps a thread waiting just now: names that
//! were quick until their server died are as slow as those that never were. The slow ones come after all others, but each of
//! them has its turn.

use crate::base::{Sorted, SortedSet};
use crate::net::Waker;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many names can be slow at the same time before the others have to wait.
const THREADS: usize = 4;
/// Longer than a name server that is well takes.
const PATIENCE: Duration = Duration::from_millis(200);
/// Of so many names it is remembered whether they were quick.
const REMEMBERED: usize = 4_096;
/// Of so many names one is taken from those of which nothing is known, and one from the slow: where quick names keep coming
/// they would wait for ever.
const TURNS: usize = 8;

/// What a name was like the last time. Those that come first here are looked up first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speed {
    Quick,
    Unknown,
    Slow,
}

#[derive(Debug)]
pub struct Resolver {
    waker: Waker,
    look_up: fn(&str) -> Option<IpAddr>,
    shared: Arc<Shared>,
    threads: usize,
    /// Names asked for and not answered; asking again for one of them adds nothing.
    asked: SortedSet<Box<str>>,
    /// Those of them that no thread has yet, by speed.
    waiting: [VecDeque<Box<str>>; 3],
    /// Those that the threads have.
    in_hand: Vec<Held>,
    /// So many they were given.
    dispatched: usize,
    /// Whether names were quick.
    quick: Sorted<Box<str>, bool>,
    /// When the last answer came in, or else when the first of `asked` was asked, or when the last thread was started.
    moved: Instant,
}

/// A name that a thread has.
#[derive(Debug)]
struct Held {
    host: Box<str>,
    since: Instant,
    /// What it was taken to be.
    speed: Speed,
}

impl Held {
    fn is_late(&self) -> bool {
        self.since.elapsed() > PATIENCE
    }

    /// It may keep its thread for long.
    fn is_in_doubt(&self) -> bool {
        self.speed != Speed::Quick || self.is_late()
    }
}

/// Where questions wait for the next thread that is free, and answers for us.
#[derive(Debug, Default)]
struct Shared {
    left: Mutex<Left>,
    asked: Condvar,
}

#[derive(Debug, Default)]
struct Left {
    questions: VecDeque<Box<str>>,
    answers: VecDeque<Done>,
    /// Nobody asks any more.
    ended: bool,
}

/// A name and its first address, if it has one.
pub type Answer = (Box<str>, Option<IpAddr>);

/// An answer, and whether it was quick.
type Done = (Answer, bool);

impl Resolver {
    #[must_use]
    pub fn new(waker: Waker) -> Resolver {
        Resolver {
            waker,
            look_up,
            shared: Arc::default(),
            threads: 0,
            asked: SortedSet::new(),
            waiting: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
            in_hand: Vec::new(),
            dispatched: 0,
            quick: Sorted::new(),
            moved: Instant::now(),
        }
    }

    /// Asks for the address of `host`; it comes out of [`Resolver::answer`].
    ///
    /// # Errors
    /// The system has no thread for the first question.
    pub fn ask(&mut self, host: Box<str>) -> io::Result<()> {
        if self.asked.contains(&host) {
            return Ok(());
        }
        if self.threads == 0 {
            self.start()?;
        }
        if self.asked.is_empty() {
            self.moved = Instant::now();
        }
        let speed = match self.quick.get(&host) {
            None => Speed::Unknown,
            Some(true) => Speed::Quick,
            Some(false) => Speed::Slow,
        };
        self.asked.insert(host.clone());
        self.waiting[speed as usize].push_back(host);
        self.dispatch();
        Ok(())
    }

    /// The next answer that has come in. To be asked in every turn of the loop: what takes long is noticed here.
    #[must_use]
    pub fn answer(&mut self) -> Option<Answer> {
        if self.asked.is_empty() {
            return None;
        }
        let done = self.shared.lock().answers.pop_front();
        if let Some((answer, quick)) = done {
            self.asked.remove(&answer.0);
            self.in_hand.retain(|held| held.host != answer.0);
            if self.quick.len() >= REMEMBERED && !self.quick.contains_key(&answer.0) {
                self.quick.clear();
            }
            self.quick.insert(answer.0.clone(), quick);
            self.moved = Instant::now();
            self.dispatch();
            return Some(answer);
        }
        // One that has become late may have made way for others.
        self.dispatch();
        let some_wait = self.next().is_some() && self.threads < THREADS;
        if some_wait && self.moved.elapsed() > PATIENCE {
            self.moved = Instant::now();
            match self.start() {
                Ok(()) => self.dispatch(),
                Err(why) => {
                    log::warn!("Names have to wait for each other: there is no further thread to be had: {why}")
                }
            }
        }
        None
    }

    /// What the name that comes next is taken to be. The last thread there may be is kept until all others have a name that
    /// may be slow, which quick names do not wait for long, and is not given one more of those.
    fn next(&self) -> Option<Speed> {
        let waits = |speed: &Speed| !self.waiting[*speed as usize].is_empty();
        if self.in_hand.len() >= THREADS - 1 {
            return self.in_hand.iter().all(Held::is_in_doubt).then_some(Speed::Quick).filter(waits);
        }
        let first = match self.dispatched % TURNS {
            3 => Speed::Unknown,
            7 => Speed::Slow,
            _ => Speed::Quick,
        };
        [first, Speed::Quick, Speed::Unknown, Speed::Slow].into_iter().find(waits)
    }

    /// Gives names to the threads that have none.
    fn dispatch(&mut self) {
        while self.in_hand.len() < self.threads
            && let Some(speed) = self.next()
            && let Some(host) = self.waiting[speed as usize].pop_front()
        {
            // Their name server is the same, most likely.
            let is_sibling = |held: &Held| zone(&held.host).is_some_and(|its| zone(&host) == Some(its));
            if speed != Speed::Slow && self.in_hand.iter().any(|held| is_sibling(held) && held.is_late()) {
                self.waiting[Speed::Slow as usize].push_back(host);
                continue;
            }
            self.shared.lock().questions.push_back(host.clone());
            self.shared.asked.notify_one();
            self.in_hand.push(Held { host, since: Instant::now(), speed });
            self.dispatched += 1;
        }
    }

    /// One thread more.
    fn start(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let (waker, look_up) = (self.waker.clone(), self.look_up);
        std::thread::Builder::new().name("resolver".into()).spawn(move || {
            while let Some(host) = shared.next_question() {
                let begin = Instant::now();
                let found = look_up(&host);
                let quick = begin.elapsed() <= PATIENCE;
                shared.lock().answers.push_back(((host, found), quick));
                // If that fails the answer is found in the next turn, which is never far.
                let _ = waker.wake();
            }
        })?;
        self.threads += 1;
        Ok(())
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.asked.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for it; `None` when there will be no more.
    fn next_question(&self) -> Option<Box<str>> {
        let idle = |left: &mut Left| left.questions.is_empty() && !left.ended;
        let mut left = self.asked.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        if left.ended { None } else { left.questions.pop_front() }
    }
}

/// Where the name is at home. Short ones may be from anywhere, the hosts file too.
fn zone(host: &str) -> Option<&str> {
    host.split_once('.').map(|(_, zone)| zone)
}

fn look_up(host: &str) -> Option<IpAddr> {
    (host, 0).to_socket_addrs().ok().and_then(|mut all| all.next()).map(|first| first.ip())
}

#[cfg(test)]
mod tests {
    use super::super::sys;
    use super::*;
    use crate::net::Reactor;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Where slow names wait until it is opened, and how many came there.
    struct Gate {
        open: Mutex<bool>,
        opened: Condvar,
        came: AtomicUsize,
    }

    impl Gate {
        const fn new() -> Gate {
            Gate { open: Mutex::new(false), opened: Condvar::new(), came: AtomicUsize::new(0) }
        }

        fn pass(&self) {
            self.came.fetch_add(1, Ordering::SeqCst);
            let _open = self.opened.wait_while(self.open.lock().unwrap(), |open| !*open).unwrap();
        }

        fn set(&self, open: bool) {
            *self.open.lock().unwrap() = open;
            self.opened.notify_all();
        }

        fn came(&self) -> usize {
            self.came.load(Ordering::SeqCst)
        }
    }

    static GATE: Gate = Gate::new();
    static ZONE: Gate = Gate::new();

    /// Names that begin with `slow` are not known, which takes until the gate is opened.
    fn fake(host: &str) -> Option<IpAddr> {
        if !host.starts_with("slow") {
            return Some(Ipv4Addr::LOCALHOST.into());
        }
        GATE.pass();
        None
    }

    /// Names of one zone take until its gate is opened.
    fn fake_zone(host: &str) -> Option<IpAddr> {
        if host.ends_with(".zone") {
            ZONE.pass();
        }
        Some(Ipv4Addr::LOCALHOST.into())
    }

    fn next(resolver: &mut Resolver) -> Answer {
        let begin = Instant::now();
        loop {
            if let Some(answer) = resolver.answer() {
                return answer;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "no answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Until it is so; no answer may come in meanwhile.
    fn wait_until(resolver: &mut Resolver, is_so: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert_eq!(resolver.answer(), None);
            assert!(begin.elapsed() < Duration::from_secs(20), "it does not become so");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn slow_names_hold_up_no_others_and_there_are_few_threads() {
        let mut reactor = Reactor::new(sys::clock).unwrap();
        let mut resolver = Resolver::new(reactor.waker().unwrap());
        resolver.look_up = fake;
        assert!(resolver.answer().is_none());
        assert_eq!(resolver.threads, 0);
        let known = Some(IpAddr::from(Ipv4Addr::LOCALHOST));
        for name in ["one", "two", "three"] {
            resolver.ask(name.into()).unwrap();
            assert_eq!(next(&mut resolver), (name.into(), known));
        }
        assert_eq!(resolver.threads, 1, "quick answers need no more");

        // One less than there may be threads; asked for again and again, as links do that wait for them.
        let slow: Vec<Box<str>> = (1..THREADS).map(|number| format!("slow{number}").into()).collect();
        for _ in 0..10 {
            slow.iter().for_each(|name| resolver.ask(name.clone()).unwrap());
        }
        for name in ["one", "two"] {
            resolver.ask(name.into()).unwrap();
            assert_eq!(next(&mut resolver), (name.into(), known));
        }
        // More than there may be: those have to wait, and a name that was quick does not.
        for number in THREADS..THREADS + 5 {
            resolver.ask(format!("slow{number}").into()).unwrap();
        }
        wait_until(&mut resolver, || GATE.came() == THREADS - 1);
        let begin = Instant::now();
        wait_until(&mut resolver, || begin.elapsed() > 3 * PATIENCE);
        for name in ["one", "two"] {
            resolver.ask(name.into()).unwrap();
            assert_eq!(next(&mut resolver), (name.into(), known));
        }
        assert_eq!(resolver.threads, THREADS);
        assert_eq!(GATE.came(), THREADS - 1);

        GATE.set(true);
        let mut answered: Vec<Box<str>> = (1..THREADS + 5).map(|_| next(&mut resolver).0).collect();
        answered.sort_unstable();
        answered.dedup();
        assert_eq!(answered.len(), THREADS + 4, "each name once: {answered:?}");
        assert!(resolver.asked.is_empty());
        assert_eq!(GATE.came(), THREADS + 4);
        // Those that were slow come after those of which nothing is known.
        GATE.set(false);
        for name in ["slow1", "slow-a", "slow-b", "slow2", "new"] {
            resolver.ask(name.into()).unwrap();
        }
        assert_eq!(resolver.waiting.each_ref().map(VecDeque::len), [0, 1, 1]);
        assert_eq!(resolver.next(), None, "the last thread is kept");
        let held = resolver.in_hand.pop();
        // But those that come last are first now and then.
        let mut order = Vec::new();
        for turn in 0..TURNS {
            resolver.dispatched = turn;
            order.extend(resolver.next());
        }
        assert_eq!(order, [[Speed::Unknown; TURNS - 1].as_slice(), &[Speed::Slow]].concat());
        resolver.waiting[Speed::Quick as usize].push_back("one".into());
        resolver.dispatched = 0;
        assert_eq!(resolver.next(), Some(Speed::Quick));
        resolver.dispatched = 3;
        assert_eq!(resolver.next(), Some(Speed::Unknown));
        resolver.waiting[Speed::Quick as usize].clear();
        resolver.in_hand.extend(held);
        GATE.set(true);
        let answered: SortedSet<Box<str>> = (0..5).map(|_| next(&mut resolver).0).collect();
        assert_eq!(answered.len(), 5);
        assert!(resolver.in_hand.is_empty());

        // What is remembered is bounded, and not lost for a name that is in it already.
        for number in resolver.quick.len()..REMEMBERED {
            resolver.quick.insert(format!("{number}").into(), true);
        }
        for (name, remembered) in [("one", REMEMBERED), ("other", 1)] {
            resolver.ask(name.into()).unwrap();
            assert_eq!(next(&mut resolver), (name.into(), known));
            assert_eq!(resolver.quick.len(), remembered);
        }
    }

    #[test]
    fn a_zone_whose_names_were_quick_and_are_slow_holds_up_no_others() {
        let mut reactor = Reactor::new(sys::clock).unwrap();
        let mut resolver = Resolver::new(reactor.waker().unwrap());
        resolver.look_up = fake_zone;
        let zone: Vec<Box<str>> = (0..2 * THREADS).map(|number| format!("host{number}.zone").into()).collect();
        let others = ["well.example", "plain"];
        // With one thread at first, and then with all that there may be.
        for round in 0..2 {
            ZONE.set(true);
            for name in zone.iter().map(|name| &**name).chain(others) {
                resolver.ask(name.into()).unwrap();
                assert_eq!(*next(&mut resolver).0, *name);
            }
            let came = ZONE.came();
            ZONE.set(false);
            zone.iter().for_each(|name| resolver.ask(name.clone()).unwrap());
            for name in others {
                resolver.ask(name.into()).unwrap();
                assert_eq!(*next(&mut resolver).0, *name, "round {round}");
            }
            wait_until(&mut resolver, || ZONE.came() - came == THREADS - 1);
            for name in others {
                resolver.ask(name.into()).unwrap();
                assert_eq!(*next(&mut resolver).0, *name, "round {round}");
            }
            assert_eq!((resolver.threads, ZONE.came() - came), (THREADS, THREADS - 1));
            ZONE.set(true);
            zone.iter().for_each(|_| assert!(zone.contains(&next(&mut resolver).0)));
            assert!(resolver.asked.is_empty());
        }
    }
}
