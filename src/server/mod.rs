//! The shell: files, processes, clocks, entropy, and the place where the core and the sockets meet.
//!
//! ```text
//!  net ── readable ──► clients: requests ──► command ──► core
//!      ── readable ──► links:   replies  ──────────────► core
//!
//!  before every sleep:  tick ─► effects, in order ─► open replies ─► flush links, clients ─► dial ─► sleep
//! ```
//!
//! Callbacks hand in what happened and write nothing; [`Shell::before_sleep`] is the one place that acts on
//! what came of it. Effects are executed in the order in which the core gave them, and `Save` is answered
//! before the next one is taken: what rests on a save cannot leave before it.
//!
//! | file | what |
//! |---|---|
//! | `boot`, `access` | from options and configuration to a running server, and to its users |
//! | `clients`, `desk` | sockets of clients, and what their requests act on |
//! | `links` | connections to masters, replicas and peers |
//! | `save` | the configuration file as the durable state |
//! | `log`, `syslog`, `notify`, `listen` | log lines, systemd and upstart, addresses and sockets to listen on |
//! | `tls` | certificates, at the start and on SIGHUP |
//! | `scripts`, `resolver` | processes and the helper threads |
//! | `sys` | what std lacks; the only `unsafe` |

mod access;
mod boot;
mod clients;
mod desk;
mod links;
mod listen;
mod log;
mod notify;
mod resolver;
mod save;
mod scripts;
mod slots;
mod sys;
mod syslog;
mod tls;

pub use boot::{Server, StartError, StartUp};

use crate::base::{Millis, limits};
use crate::config;
use crate::core::{Effect, Input, Level};
use crate::net::{CloseReason, Handler, Next, Reactor, TimerId, Token};
use ::log::{Level as LogLine, warn};
use clients::Sockets;
use desk::Desk;
use links::Links;
use notify::Watchdog;
use resolver::Resolver;
use save::ConfigFile;
use scripts::Scripts;
use std::net::SocketAddr;
use std::time::Instant;
use tls::Tls;

/// How often counters are sampled for the rates in INFO and some of the clients are looked at, in ms, when there is something
/// to do anyway; and how long nothing at all is done.
const HOUSEKEEPING_PERIOD: u64 = 100;
const LONGEST_SLEEP: u64 = 1000;
/// Inputs that arose from effects and are handed in within the same turn; more wait for the next.
const UNTOLD_PER_TURN: usize = 10_000;

/// The handler of the loop.
struct Shell {
    desk: Desk,
    sockets: Sockets,
    links: Links,
    tls: Tls,
    file: ConfigFile,
    scripts: Scripts,
    resolver: Resolver,
    /// There may be more names than were taken in this turn.
    names_left: bool,
    /// Inputs that came up while an effect was executed.
    untold: Vec<Input>,
    /// The latest moment the core has heard of; its time never goes back.
    now: Millis,
    /// The timer for the core's next wake-up, and for when it is set.
    wake: Option<(TimerId, Millis)>,
    watchdog: Option<Watchdog>,
    housekept: Millis,
    /// So many links have descriptors set aside for them.
    room_for: u64,
    /// So many there were when it was last looked at.
    links_seen: u64,
    /// When the work of this turn began; `None` while it sleeps.
    began: Option<Instant>,
}

impl Shell {
    /// Ends the loop; what is not yet saved is saved first.
    fn stop(&mut self, reactor: &mut Reactor) {
        self.desk.sentinel.save_gathered();
        self.drain(reactor);
        reactor.stop();
    }

    /// Executes effects until none is left. `Some(outcome)` of the last save, if there was one.
    fn drain(&mut self, reactor: &mut Reactor) -> Option<bool> {
        let mut saved = None;
        for _ in 0..UNTOLD_PER_TURN {
            while let Some(effect) = self.desk.sentinel.poll_effect() {
                self.execute(reactor, effect, &mut saved);
            }
            match self.links.untold().or_else(|| self.untold.pop()) {
                Some(input) => self.desk.sentinel.handle(self.now, input),
                None => break,
            }
        }
        saved
    }

    fn execute(&mut self, reactor: &mut Reactor, effect: Effect, saved: &mut Option<bool>) {
        match effect {
            Effect::Save => {
                let snapshot = self.desk.sentinel.snapshot();
                if self.desk.options.aclfile.is_empty() {
                    self.desk.options.users = self.desk.acl.changes();
                }
                let options = &self.desk.options;
                let ok = self.file.save(|old| config::rewrite(old, &snapshot, options));
                // A slow disk must not look like an instant to the core.
                self.now = self.now.max(sys::clock());
                self.desk.sentinel.saved(self.now, ok);
                // What was answered in this turn rests on all of its saves.
                *saved = Some(ok && saved.unwrap_or(true));
            }
            Effect::Connect { conn, to, kind } => self.links.connect(conn, to, kind),
            Effect::Send { conn, bytes } => self.links.send(reactor.now(), conn, bytes),
            Effect::Close { conn } => self.links.close(reactor, conn),
            Effect::Event { level, channel, payload } => {
                ::log::log!(log::level_of(level), "{channel} {payload}");
                if level != Level::Debug {
                    self.desk.clients.publish(channel.as_bytes(), payload.as_bytes());
                }
            }
            Effect::Log { level, text } => ::log::log!(log::level_of(level), "{text}"),
            Effect::RunScript { script, argv } => self.untold.push(self.scripts.start(script, &argv)),
            Effect::KillScript { script } => self.scripts.kill(script),
            Effect::Resolve { host } => {
                if let Err(why) = self.resolver.ask(host.clone()) {
                    warn!("Looking up {host} is not possible: {why}");
                    self.untold.push(Input::Resolved { host, ip: None });
                }
            }
            Effect::Crash { code } => {
                warn!("Ending with code {code}, as SENTINEL SIMULATE-FAILURE asked for.");
                std::process::exit(code);
            }
        }
    }

    /// What is done now and then rather than every turn.
    fn housekeeping(&mut self, reactor: &mut Reactor) {
        if self.now.since(self.housekept) >= HOUSEKEEPING_PERIOD {
            self.housekept = self.now;
            self.desk.stats.sample(self.now);
            self.sockets.look_through(reactor, &mut self.desk);
            self.make_room();
        }
    }

    /// Links to nodes that were not known at the start need descriptors too, and come before clients that are yet to come.
    /// While they become more and more it is not said each time.
    fn make_room(&mut self) {
        let links = self.links.count();
        let settled = std::mem::replace(&mut self.links_seen, links) == links;
        if settled && links > self.room_for {
            self.room_for = links;
            match boot::descriptors(&self.desk.options, links) {
                Ok(maxclients) => self.desk.facts.maxclients = maxclients,
                Err(why) => warn!("{why}"),
            }
        }
    }

    /// Sets the timer for the next moment at which something is due.
    fn arm(&mut self, reactor: &mut Reactor) {
        let watched = self.watchdog.as_ref().map_or(self.now + LONGEST_SLEEP, Watchdog::due);
        let due = self.desk.sentinel.next_wakeup().min(watched);
        let due = if self.links.has_more() || self.names_left { self.now } else { due };
        let at = due.max(self.now).min(self.now + LONGEST_SLEEP);
        match self.wake {
            Some((_, set)) if set == at => {}
            other => {
                if let Some((timer, _)) = other {
                    reactor.cancel(timer);
                }
                self.wake = Some((reactor.add_timer(at), at));
            }
        }
    }

    /// To be called first in every callback: takes the time of this turn over.
    fn advance(&mut self, reactor: &Reactor) {
        self.now = self.now.max(reactor.now());
        self.began.get_or_insert_with(Instant::now);
    }
}

impl Handler for Shell {
    fn before_sleep(&mut self, reactor: &mut Reactor) {
        self.advance(reactor);
        self.names_left = true;
        for _ in 0..limits::NAMES_PER_TURN {
            let Some((host, ip)) = self.resolver.answer() else {
                self.names_left = false;
                break;
            };
            self.desk.sentinel.handle(self.now, Input::Resolved { host, ip });
        }
        let heard = reactor.heard_up_to();
        self.desk.sentinel.heard_up_to(self.links.unsent_since().map_or(heard, |unsent| unsent.min(heard)));
        if self.desk.sentinel.next_wakeup() <= self.now {
            self.desk.sentinel.tick(self.now);
        }
        let saved = self.drain(reactor).unwrap_or_else(|| !self.desk.sentinel.save_failing());
        let settled = self.desk.clients.settle(saved);
        self.sockets.resume(reactor, &settled);
        self.housekeeping(reactor);
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.beat(self.now);
        }
        let (sentinel, now) = (&mut self.desk.sentinel, self.now);
        self.links.flush(reactor, now, |conn, since| sentinel.handle(now, Input::Left { conn, since }));
        self.sockets.flush(reactor, &mut self.desk);
        // Whoever was just answered need not wait for these.
        let sentinel = &mut self.desk.sentinel;
        self.links.begin_waiting(reactor, |conn| sentinel.handle(now, Input::Begun { conn }));
        self.arm(reactor);
        self.desk.stats.loop_cycles += 1;
        if let Some(began) = self.began.take() {
            self.desk.stats.loop_usec += u64::try_from(began.elapsed().as_micros()).unwrap_or(0);
        }
        if self.desk.shutdown {
            self.stop(reactor);
        }
    }

    fn accepted(&mut self, reactor: &mut Reactor, listener: Token, stream: Token, peer: Option<SocketAddr>) {
        self.advance(reactor);
        if !self.tls.accepted(reactor, listener, stream) {
            reactor.close(stream);
            return;
        }
        self.sockets.accepted(reactor, stream, peer, &mut self.desk);
    }

    fn connected(&mut self, reactor: &mut Reactor, stream: Token, local: SocketAddr) {
        self.advance(reactor);
        if let Some(input) = self.links.connected(reactor.now(), stream, local) {
            self.desk.sentinel.handle(self.now, input);
        }
    }

    fn readable(&mut self, reactor: &mut Reactor, stream: Token) {
        self.advance(reactor);
        if self.sockets.owns(stream) {
            self.sockets.readable(reactor, stream, &mut self.desk);
        } else {
            self.links.readable(reactor, stream, &mut self.desk.sentinel, self.now);
        }
    }

    fn writable(&mut self, reactor: &mut Reactor, stream: Token) {
        self.advance(reactor);
        if self.sockets.owns(stream) {
            self.sockets.write(reactor, stream, &mut self.desk);
        } else {
            self.links.writable(reactor, stream);
        }
    }

    fn closed(&mut self, reactor: &mut Reactor, stream: Token, why: CloseReason) {
        self.advance(reactor);
        if self.sockets.owns(stream) {
            self.sockets.closed(stream, &why, &mut self.desk);
        } else if let Some(input) = self.links.closed(stream, &why) {
            self.desk.sentinel.handle(self.now, input);
        }
    }

    fn timer(&mut self, reactor: &mut Reactor, _timer: TimerId) -> Next {
        self.advance(reactor);
        // The only timer there is; `before_sleep` does what is due.
        self.wake = None;
        Next::Done
    }

    fn signal(&mut self, reactor: &mut Reactor, signal: i32) {
        self.advance(reactor);
        match signal {
            libc::SIGCHLD => {
                for input in self.scripts.reap() {
                    self.desk.sentinel.handle(self.now, input);
                }
            }
            libc::SIGTERM | libc::SIGINT => {
                let name = if signal == libc::SIGINT { "SIGINT" } else { "SIGTERM" };
                warn!("Received {name}, shutting down...");
                self.stop(reactor);
            }
            libc::SIGHUP if self.desk.options.tls.is_on() => {
                self.tls.reload(&self.desk.options.tls);
                self.links.tls.clone_from(&self.tls.connector);
            }
            other => ::log::info!("Received signal {other}, which changes nothing."),
        }
    }

    fn trouble(&mut self, _reactor: &mut Reactor, text: &str) {
        ::log::log!(LogLine::Warn, "{text}");
    }
}
