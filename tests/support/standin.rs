//! A Redis stand-in: any number of servers in one process and one thread, each on a loopback port of its own.
//!
//! It answers what Sentinels and simple clients ask (`PING`, `INFO`, `SLAVEOF` inside `MULTI`, Pub/Sub, `SET` and
//! `GET` …) and *models* replication: a replica that follows a living stand-in of the same process has its link
//! up, the offset and the data of its master; nothing is copied between them. INFO is written when asked for, so
//! that five thousand servers cost little more than their connections.
//!
//! The test thread talks to it in orders: closures that run inside the stand-in's thread, between two events.
//! The common ones have names (`kill`, `hang`, `restart` …); [`StandIn::with`] runs any other.
//!
//! What is not modelled: copying of a data set (a link comes up [`Spec::sync_ms`] after it can), replication from or to
//! real servers, time-outs of a replication link (a replica of a hung master keeps its link), expiry, scripts, ACLs.

mod client;
mod clients;
mod commands;
mod info;
mod pubsub;
mod server;
mod world;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::{Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use watchfire::base::Millis;
use watchfire::net::{Reactor, Waker};

pub use server::{Comeback, Mode, Role, State};
pub use world::World;

/// How a server is born. The defaults are those of a fresh Redis.
#[derive(Clone, Debug)]
pub struct Spec {
    pub host: IpAddr,
    /// None: a free one.
    pub port: Option<u16>,
    pub replica_of: Option<(String, u16)>,
    pub priority: u32,
    pub offset: i64,
    /// The user who may come in with `password`; `default` also with the short `AUTH <password>`.
    pub user: String,
    pub password: Option<String>,
    /// `replica-announced`
    pub announced: bool,
    /// `replica-announce-ip` and `-port`: what a replica's line in the master's INFO shows.
    pub announce: Option<(String, u16)>,
    /// How long a replica's link takes to come up once its master can be reached, in ms.
    pub sync_ms: u64,
    /// `rename-command`: (name, other name); an empty other name forbids the command.
    pub rename: Vec<(String, String)>,
    pub version: String,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: None,
            replica_of: None,
            priority: 100,
            offset: 0,
            user: "default".to_string(),
            password: None,
            announced: true,
            announce: None,
            sync_ms: 20,
            rename: Vec::new(),
            version: "7.0.15".to_string(),
        }
    }
}

impl Spec {
    #[must_use]
    pub fn master() -> Spec {
        Spec::default()
    }

    #[must_use]
    pub fn replica_of(port: u16) -> Spec {
        Spec { replica_of: Some(("127.0.0.1".to_string(), port)), ..Spec::default() }
    }
}

/// One server of a [`StandIn`], by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerHandle {
    pub host: IpAddr,
    pub port: u16,
}

type Order = Box<dyn FnOnce(&mut World, &mut Reactor) + Send>;

/// The running stand-in; dropping it ends all servers and the thread.
pub struct StandIn {
    orders: Mutex<mpsc::Sender<Order>>,
    /// Ends the loop's wait when there are orders.
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl StandIn {
    /// # Panics
    /// When the machine has no socket or thread left.
    #[must_use]
    pub fn start() -> StandIn {
        let (sender, receiver) = mpsc::channel();
        let (born, birth) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("stand-in".to_string())
            .spawn(move || {
                let mut reactor = Reactor::new(now).expect("a reactor");
                let _ = born.send(reactor.waker().expect("a waker"));
                reactor.run(&mut World::new(receiver)).expect("the stand-in's loop");
            })
            .expect("a thread for the stand-in");
        let waker = birth.recv().expect("the stand-in starts");
        StandIn { orders: Mutex::new(sender), waker, thread: Some(thread) }
    }

    /// Runs `order` inside the stand-in's thread and waits for what it returns.
    ///
    /// # Panics
    /// When the stand-in's thread has ended, which only a bug of the stand-in brings about.
    pub fn with<R: Send + 'static>(&self, order: impl FnOnce(&mut World, &mut Reactor) -> R + Send + 'static) -> R {
        let (answer, wait) = mpsc::channel();
        self.order(Box::new(move |world, reactor| {
            let _ = answer.send(order(world, reactor));
        }));
        wait.recv().expect("the stand-in's thread has ended; its panic is above")
    }

    fn order(&self, order: Order) {
        // When the thread has ended the order is lost, and with it the sender of its answer, which its caller notices.
        let _ = self.orders.lock().unwrap_or_else(std::sync::PoisonError::into_inner).send(order);
        let _ = self.waker.wake();
    }

    /// Starts a server.
    ///
    /// # Panics
    /// When the port that the spec asks for is taken.
    pub fn server(&self, spec: Spec) -> ServerHandle {
        self.with(move |world, reactor| world.start(reactor, spec))
    }

    /// Starts many servers in one go.
    ///
    /// # Panics
    /// As [`StandIn::server`].
    pub fn servers(&self, specs: Vec<Spec>) -> Vec<ServerHandle> {
        self.with(move |world, reactor| specs.into_iter().map(|spec| world.start(reactor, spec)).collect())
    }

    /// Ends the server as `kill -9` does: connections are closed, new ones refused.
    ///
    /// # Panics
    /// When the port still takes connections a second later.
    pub fn kill(&self, port: u16) {
        let host = self.with(move |world, reactor| {
            world.kill(reactor, port);
            world.server_mut(port).host
        });
        // Another thread of this process may be starting a child just now. Until that child has become its program it
        // holds copies of all our sockets, the listener too.
        let deadline = Instant::now() + Duration::from_secs(1);
        while TcpStream::connect((host, port)).is_ok() {
            assert!(Instant::now() < deadline, "the killed {host}:{port} still takes connections");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// As `kill -STOP`: connections are taken by the system, nobody answers on them.
    pub fn hang(&self, port: u16) {
        self.with(move |world, reactor| world.hang(reactor, port));
    }

    /// Ends a hang: everything asked meanwhile is answered now.
    pub fn resume(&self, port: u16) {
        self.with(move |world, reactor| world.resume(reactor, port));
    }

    /// Every byte of this server's answers comes `delay_ms` late; 0 ends that.
    pub fn slow(&self, port: u16, delay_ms: u64) {
        self.with(move |world, _| world.server_mut(port).delay_ms = delay_ms);
    }

    /// Starts a killed server again (or kills and starts a living one): same port, new run id.
    ///
    /// # Panics
    /// When somebody else has taken the port.
    pub fn restart(&self, port: u16, how: Comeback) {
        if self.state(port).mode != Mode::Down {
            self.kill(port);
        }
        self.with(move |world, reactor| world.restart(reactor, port, how));
    }

    /// What an operator's `REPLICAOF` would do; None: `NO ONE`.
    pub fn replicate(&self, port: u16, of: Option<u16>) {
        self.with(move |world, reactor| {
            let role = of.map_or(Role::Master, |port| Role::Replica { host: "127.0.0.1".to_string(), port });
            world.set_role(port, role, reactor.now());
        });
    }

    pub fn set_priority(&self, port: u16, priority: u32) {
        self.with(move |world, _| world.server_mut(port).priority = priority);
    }

    /// A replica stays at this offset whatever its master does, until it becomes a master; a master goes on from it.
    pub fn set_offset(&self, port: u16, offset: i64) {
        self.with(move |world, _| world.set_offset(port, offset));
    }

    /// Answers INFO with this text instead of the truth; None: with the truth again.
    pub fn lie(&self, port: u16, info: Option<&str>) {
        let info = info.map(str::to_string);
        self.with(move |world, _| world.server_mut(port).lie = info);
    }

    /// Changes one field of INFO (`role`, `run_id` …) wherever it appears; None: the truth again.
    pub fn lie_about(&self, port: u16, field: &str, value: Option<&str>) {
        let (field, value) = (field.to_string(), value.map(str::to_string));
        self.with(move |world, _| {
            let lies = &mut world.server_mut(port).lies;
            match value {
                Some(value) => lies.insert(field, value),
                None => lies.remove(&field),
            };
        });
    }

    /// Refuses every AUTH, right or wrong.
    pub fn refuse_auth(&self, port: u16, refuse: bool) {
        self.with(move |world, _| world.server_mut(port).refuses_auth = refuse);
    }

    /// `CONFIG SET requirepass`: for connections that come from now on.
    pub fn set_password(&self, port: u16, password: &str) {
        let password = password.to_string();
        self.with(move |world, _| world.server_mut(port).spec.password = Some(password));
    }

    /// Answers everything with this error (`LOADING …`, `BUSY …`, `MASTERDOWN …`); None: as usual again.
    /// `SCRIPT KILL` ends a `BUSY`.
    pub fn answer_error(&self, port: u16, error: Option<&str>) {
        let error = error.map(str::to_string);
        self.with(move |world, _| world.server_mut(port).error = error);
    }

    /// Sends these bytes after each answer, as a server that has lost count does; empty: no more.
    pub fn send_extra(&self, port: u16, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.with(move |world, _| world.server_mut(port).extra = bytes);
    }

    /// The truth about one server.
    #[must_use]
    pub fn state(&self, port: u16) -> State {
        self.with(move |world, reactor| world.state(port, reactor.now()))
    }

    /// How often each command was called since the server's birth; subcommands as `client|setname`.
    #[must_use]
    pub fn calls(&self, port: u16) -> BTreeMap<String, u64> {
        self.with(move |world, _| world.server_mut(port).calls.clone())
    }

    /// Whom a Sentinel would find promoted: the living servers whose role is master, out of `ports`.
    #[must_use]
    pub fn masters_among(&self, ports: &[u16]) -> Vec<u16> {
        ports
            .iter()
            .copied()
            .filter(|&port| {
                let state = self.state(port);
                state.mode == Mode::Up && state.role == Role::Master
            })
            .collect()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.order(Box::new(|_, reactor| reactor.stop()));
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed already; another one in a drop would hide the test's own words.
            let _ = thread.join();
        }
    }
}

/// Monotonic ms since the first call of this process.
fn now() -> Millis {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    // One past, so that no moment of the stand-in is 0.
    Millis(u64::try_from(START.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1))
}
