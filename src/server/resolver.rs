//! Looking names up without stopping the loop.
//!
//! The system's resolver blocks, for seconds when a name server is silent, so it runs on a thread of its
//! own. That thread is started with the first name and never for numeric addresses; it answers through a
//! channel and wakes the loop.

use crate::net::Waker;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Enough for getaddrinfo, which keeps its answers on the stack.
const STACK: usize = 256 * 1024;

#[derive(Debug)]
pub struct Resolver {
    waker: Waker,
    thread: Option<Channels>,
    /// Names asked for and not answered; asking again for one of them adds nothing.
    asked: BTreeSet<Box<str>>,
}

#[derive(Debug)]
struct Channels {
    questions: Sender<Box<str>>,
    answers: Receiver<Answer>,
}

/// A name and its first address, if it has one.
pub type Answer = (Box<str>, Option<IpAddr>);

impl Resolver {
    #[must_use]
    pub fn new(waker: Waker) -> Resolver {
        Resolver { waker, thread: None, asked: BTreeSet::new() }
    }

    /// Asks for the address of `host`; it comes out of [`Resolver::answers`].
    pub fn ask(&mut self, host: Box<str>) -> Result<(), io::Error> {
        if self.asked.contains(&host) {
            return Ok(());
        }
        let channels = match &mut self.thread {
            Some(channels) => channels,
            empty => empty.insert(start(self.waker.clone())?),
        };
        if channels.questions.send(host.clone()).is_err() {
            // The thread is gone, which only a panic in the system's resolver could bring about.
            self.thread = None;
            self.asked.clear();
            return Err(io::Error::other("the resolver thread has ended"));
        }
        self.asked.insert(host);
        Ok(())
    }

    /// The next answer that has come in.
    #[must_use]
    pub fn answer(&mut self) -> Option<Answer> {
        let answer = self.thread.as_ref()?.answers.try_recv().ok()?;
        self.asked.remove(&answer.0);
        Some(answer)
    }
}

fn start(waker: Waker) -> io::Result<Channels> {
    let (questions, inbox) = channel::<Box<str>>();
    let (outbox, answers) = channel();
    std::thread::Builder::new().name("resolver".into()).stack_size(STACK).spawn(move || {
        for host in inbox {
            let found = (&*host, 0).to_socket_addrs().ok().and_then(|mut all| all.next()).map(|first| first.ip());
            if outbox.send((host, found)).is_err() || waker.wake().is_err() {
                return;
            }
        }
    })?;
    Ok(Channels { questions, answers })
}
