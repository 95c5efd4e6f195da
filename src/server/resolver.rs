//! Looking names up without stopping the loop.
//!
//! The system's resolver blocks, for seconds when a name server is silent, so it runs beside the loop: on one thread,
//! started with the first name and never for numeric addresses. It answers through a channel and wakes the loop.
//!
//! A name that takes long must not hold up the others, which may be needed for a failover. So as long as nothing comes
//! back and more than the running threads have in hand is asked for, there is one thread more every [`PATIENCE`], up to
//! [`THREADS`].

use crate::net::Waker;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many names can be slow at the same time before the others have to wait.
const THREADS: usize = 4;
/// Longer than a name server that is well takes.
const PATIENCE: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct Resolver {
    waker: Waker,
    look_up: fn(&str) -> Option<IpAddr>,
    line: Option<Line>,
    threads: usize,
    /// Names asked for and not answered; asking again for one of them adds nothing.
    asked: BTreeSet<Box<str>>,
    /// When the last answer came in, or else when the first of `asked` was asked, or when the last thread was started.
    moved: Instant,
}

/// Where questions wait for the next thread that is free, and answers for us.
#[derive(Debug)]
struct Line {
    questions: Sender<Box<str>>,
    inbox: Arc<Mutex<Receiver<Box<str>>>>,
    outbox: Sender<Answer>,
    answers: Receiver<Answer>,
}

/// A name and its first address, if it has one.
pub type Answer = (Box<str>, Option<IpAddr>);

impl Resolver {
    #[must_use]
    pub fn new(waker: Waker) -> Resolver {
        Resolver { waker, look_up, line: None, threads: 0, asked: BTreeSet::new(), moved: Instant::now() }
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
        let line = self.line.get_or_insert_with(Line::new);
        if line.questions.send(host.clone()).is_ok() {
            self.asked.insert(host);
        }
        Ok(())
    }

    /// The next answer that has come in. To be asked in every turn of the loop: what takes long is noticed here.
    #[must_use]
    pub fn answer(&mut self) -> Option<Answer> {
        let line = self.line.as_ref()?;
        if let Ok(answer) = line.answers.try_recv() {
            self.asked.remove(&answer.0);
            self.moved = Instant::now();
            return Some(answer);
        }
        let some_wait = self.asked.len() > self.threads && self.threads < THREADS;
        if some_wait && self.moved.elapsed() > PATIENCE {
            self.moved = Instant::now();
            if let Err(why) = self.start() {
                log::warn!("Names have to wait for each other: there is no further thread to be had: {why}");
            }
        }
        None
    }

    /// One thread more.
    fn start(&mut self) -> io::Result<()> {
        let line = self.line.get_or_insert_with(Line::new);
        let (inbox, outbox) = (Arc::clone(&line.inbox), line.outbox.clone());
        let (waker, look_up) = (self.waker.clone(), self.look_up);
        std::thread::Builder::new().name("resolver".into()).spawn(move || {
            loop {
                // Whoever waits holds the lock, and the next one waits for that.
                let next = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(host) = next else { return };
                let found = look_up(&host);
                if outbox.send((host, found)).is_err() || waker.wake().is_err() {
                    return;
                }
            }
        })?;
        self.threads += 1;
        Ok(())
    }
}

impl Line {
    fn new() -> Line {
        let (questions, inbox) = channel();
        let (outbox, answers) = channel();
        Line { questions, inbox: Arc::new(Mutex::new(inbox)), outbox, answers }
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
    use std::sync::Condvar;
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
        let mut resolver = Resolver { look_up: fake, ..Resolver::new(reactor.waker().unwrap()) };
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
        // More than there may be: those have to wait.
        for number in THREADS..THREADS + 5 {
            resolver.ask(format!("slow{number}").into()).unwrap();
        }
        let begin = Instant::now();
        while begin.elapsed() < 3 * PATIENCE || SLOW.load(Ordering::SeqCst) < THREADS {
            assert_eq!(resolver.answer(), None);
            assert!(begin.elapsed() < Duration::from_secs(20), "one thread for each of the slow");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(resolver.threads, THREADS);
        assert_eq!(SLOW.load(Ordering::SeqCst), THREADS);

        *GATE.0.lock().unwrap() = true;
        GATE.1.notify_all();
        let mut answered: Vec<Box<str>> = (1..THREADS + 5).map(|_| next(&mut resolver).0).collect();
        answered.sort_unstable();
        answered.dedup();
        assert_eq!(answered.len(), THREADS + 4, "each name once: {answered:?}");
        assert!(resolver.asked.is_empty());
        assert_eq!(SLOW.load(Ordering::SeqCst), THREADS + 4);
    }
}
