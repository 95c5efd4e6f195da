//! Looking names up without stopping the loop.
//!
//! The system's resolver blocks, for seconds when a name server is silent, so it runs beside the loop: on one thread,
//! started with the first name and never for numeric addresses. It leaves its answer and wakes the loop.
//!
//! A name that takes long must not hold up the others, which may be needed for a failover. So as long as nothing comes
//! back and more than the running threads have in hand is asked for, there is one thread more every [`PATIENCE`], up to
//! [`THREADS`]. And where more names are slow than there are threads, as when the name server of a whole zone is dead, the last
//! thread is for those that were quick the last time; the slow ones come after all others.

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

/// What a name was like the last time. Those that come first here are looked up first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Quick,
    Unknown,
    Slow,
}

#[derive(Debug)]
pub struct Resolver {
    waker: Waker,
    look_up: fn(&str) -> Option<IpAddr>,
    line: Arc<Line>,
    threads: usize,
    /// Names asked for and not answered; asking again for one of them adds nothing.
    asked: SortedSet<Box<str>>,
    /// Those of them that no thread has yet, by kind.
    waiting: [VecDeque<Box<str>>; 3],
    /// So many the threads have, and how many of those are not known to be quick.
    in_hand: usize,
    in_doubt: usize,
    /// Whether names were quick.
    quick: Sorted<Box<str>, bool>,
    /// When the last answer came in, or else when the first of `asked` was asked, or when the last thread was started.
    moved: Instant,
}

/// Where questions wait for the next thread that is free, and answers for us.
#[derive(Debug, Default)]
struct Line {
    left: Mutex<Left>,
    asked: Condvar,
}

#[derive(Debug, Default)]
struct Left {
    questions: VecDeque<Question>,
    answers: VecDeque<Done>,
    /// Nobody asks any more.
    ended: bool,
}

/// A name and its first address, if it has one.
pub type Answer = (Box<str>, Option<IpAddr>);

/// A name, and what it is taken to be.
type Question = (Box<str>, Kind);

/// An answer, what the name was taken to be, and whether it was quick.
type Done = (Answer, Kind, bool);

impl Resolver {
    #[must_use]
    pub fn new(waker: Waker) -> Resolver {
        Resolver {
            waker,
            look_up,
            line: Arc::default(),
            threads: 0,
            asked: SortedSet::new(),
            waiting: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
            in_hand: 0,
            in_doubt: 0,
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
        let kind = match self.quick.get(&host) {
            None => Kind::Unknown,
            Some(true) => Kind::Quick,
            Some(false) => Kind::Slow,
        };
        self.asked.insert(host.clone());
        self.waiting[kind as usize].push_back(host);
        self.hand_out();
        Ok(())
    }

    /// The next answer that has come in. To be asked in every turn of the loop: what takes long is noticed here.
    #[must_use]
    pub fn answer(&mut self) -> Option<Answer> {
        if self.asked.is_empty() {
            return None;
        }
        let done = self.line.lock().answers.pop_front();
        if let Some((answer, kind, quick)) = done {
            self.asked.remove(&answer.0);
            self.in_hand -= 1;
            self.in_doubt -= usize::from(kind != Kind::Quick);
            if self.quick.len() >= REMEMBERED {
                self.quick.clear();
            }
            self.quick.insert(answer.0.clone(), quick);
            self.moved = Instant::now();
            self.hand_out();
            return Some(answer);
        }
        let some_wait = self.next().is_some() && self.threads < THREADS;
        if some_wait && self.moved.elapsed() > PATIENCE {
            self.moved = Instant::now();
            match self.start() {
                Ok(()) => self.hand_out(),
                Err(why) => {
                    log::warn!("Names have to wait for each other: there is no further thread to be had: {why}")
                }
            }
        }
        None
    }

    /// The kind of name that comes next. One that may be slow is not given to the last thread there may be.
    fn next(&self) -> Option<Kind> {
        let kinds = [Kind::Quick, Kind::Unknown, Kind::Slow];
        let next = kinds.into_iter().find(|&kind| !self.waiting[kind as usize].is_empty())?;
        (next == Kind::Quick || self.in_doubt < THREADS - 1).then_some(next)
    }

    /// Gives names to the threads that have none.
    fn hand_out(&mut self) {
        while self.in_hand < self.threads
            && let Some(kind) = self.next()
            && let Some(host) = self.waiting[kind as usize].pop_front()
        {
            self.line.lock().questions.push_back((host, kind));
            self.line.asked.notify_one();
            self.in_hand += 1;
            self.in_doubt += usize::from(kind != Kind::Quick);
        }
    }

    /// One thread more.
    fn start(&mut self) -> io::Result<()> {
        let line = Arc::clone(&self.line);
        let (waker, look_up) = (self.waker.clone(), self.look_up);
        std::thread::Builder::new().name("resolver".into()).spawn(move || {
            while let Some((host, kind)) = line.next_question() {
                let begin = Instant::now();
                let found = look_up(&host);
                let quick = begin.elapsed() <= PATIENCE;
                line.lock().answers.push_back(((host, found), kind, quick));
                if waker.wake().is_err() {
                    return;
                }
            }
        })?;
        self.threads += 1;
        Ok(())
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.line.lock().ended = true;
        self.line.asked.notify_all();
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for it; `None` when there will be no more.
    fn next_question(&self) -> Option<Question> {
        let idle = |left: &mut Left| left.questions.is_empty() && !left.ended;
        let mut left = self.asked.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        if left.ended { None } else { left.questions.pop_front() }
    }
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

    /// Whether slow names are answered by now, and how many are being looked up.
    static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
    static SLOW: AtomicUsize = AtomicUsize::new(0);

    /// Names that begin with `slow` are not known, which takes until the gate is opened.
    fn fake(host: &str) -> Option<IpAddr> {
        if !host.starts_with("slow") {
            return Some(Ipv4Addr::LOCALHOST.into());
        }
        SLOW.fetch_add(1, Ordering::SeqCst);
        let _open = GATE.1.wait_while(GATE.0.lock().unwrap(), |open| !*open).unwrap();
        None
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
        let begin = Instant::now();
        while begin.elapsed() < 3 * PATIENCE {
            assert_eq!(resolver.answer(), None);
            std::thread::sleep(Duration::from_millis(5));
        }
        for name in ["one", "two"] {
            resolver.ask(name.into()).unwrap();
            assert_eq!(next(&mut resolver), (name.into(), known));
        }
        assert_eq!(resolver.threads, THREADS);
        assert_eq!(SLOW.load(Ordering::SeqCst), THREADS - 1);

        *GATE.0.lock().unwrap() = true;
        GATE.1.notify_all();
        let mut answered: Vec<Box<str>> = (1..THREADS + 5).map(|_| next(&mut resolver).0).collect();
        answered.sort_unstable();
        answered.dedup();
        assert_eq!(answered.len(), THREADS + 4, "each name once: {answered:?}");
        assert!(resolver.asked.is_empty());
        assert_eq!(SLOW.load(Ordering::SeqCst), THREADS + 4);
        // Those that were slow come after those of which nothing is known.
        *GATE.0.lock().unwrap() = false;
        for name in ["slow1", "slow-a", "slow-b", "slow2", "new"] {
            resolver.ask(name.into()).unwrap();
        }
        assert_eq!(resolver.waiting.each_ref().map(VecDeque::len), [0, 1, 1]);
        resolver.in_doubt -= 1;
        assert_eq!(resolver.next(), Some(Kind::Unknown));
        resolver.in_doubt += 1;
        *GATE.0.lock().unwrap() = true;
        GATE.1.notify_all();
        let answered: SortedSet<Box<str>> = (0..5).map(|_| next(&mut resolver).0).collect();
        assert_eq!(answered.len(), 5);
        assert_eq!((resolver.in_hand, resolver.in_doubt), (0, 0));
    }
}
