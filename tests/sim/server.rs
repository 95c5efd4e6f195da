//! A Redis as far as a Sentinel can see one: PING, INFO, SLAVEOF and FAILOVER in MULTI, CONFIG REWRITE, CLIENT KILL and
//! PAUSE, Pub/Sub.
//!
//! It decides nothing about time or network: the world hands requests in and carries the outcomes away, and
//! `replication` moves offsets and links.

use super::net::{Request, Wire};
use super::node::Node;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::net::SocketAddr;
use watchfire::base::Millis;
use watchfire::resp::Reply;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    Master,
    /// Of whoever is at that host and port.
    Replica(String, u16),
}

/// A replica's link to its master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Down { since: Millis },
    Syncing { since: Millis, done: Millis },
    Up { heard: Millis },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Up,
    /// The process is frozen; its kernel still accepts connections.
    Hung,
    Down,
}

/// What is untrue in its INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// A master says that it is a replica, and the other way round.
    Role,
    /// Only the beginning of the text.
    Half,
    /// Numbers that nobody can mean.
    Numbers,
    /// A replica that does not exist, at this host of nobody.
    Ghost(u8),
    /// Another run id with every INFO.
    RunId,
}

#[derive(Debug, Default)]
struct Client {
    subscribed: bool,
    transaction: Option<Transaction>,
}

#[derive(Debug, Default)]
struct Transaction {
    queued: Vec<Request>,
    spoilt: bool,
}

/// A FAILOVER under way: to whom, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    pub host: String,
    pub port: u16,
    pub until: Millis,
}

/// What a request brings about, in order.
#[derive(Debug)]
pub enum Outcome {
    Reply(Wire, Reply),
    /// The server drops the connection.
    Drop(Wire),
    /// For the story: the role changed by order of this client.
    Role(Wire),
}

#[derive(Debug)]
pub struct Server {
    pub index: usize,
    pub state: State,
    pub role: Role,
    /// What CONFIG REWRITE saved: the role after a restart.
    rewritten: Role,
    pub link: Link,
    pub offset: u64,
    pub loading_until: Millis,
    pub handover: Option<Handover>,
    /// CLIENT PAUSE WRITE.
    paused_until: Millis,
    /// What waits for the end of a pause: a PUBLISH, and all that comes behind it on the same connection.
    waiting: Vec<(Wire, Request)>,
    pub priority: u32,
    pub lie: Option<Lie>,
    /// It runs a script and answers nothing else; true: SCRIPT KILL ends it.
    pub busy: Option<bool>,
    /// It refuses to change its role: a password changed, or its memory is full.
    pub unwilling: bool,
    refuse_stale: bool,
    /// An order to follow another is acknowledged and ignored: a planted fault.
    stubborn: bool,
    lives: u64,
    clients: BTreeMap<Wire, Client>,
    /// What arrived while frozen.
    backlog: VecDeque<(Wire, Vec<Request>)>,
}

impl Server {
    pub fn new(index: usize, role: Role, now: Millis, refuse_stale: bool, stubborn: bool) -> Server {
        Server {
            index,
            state: State::Up,
            rewritten: role.clone(),
            role,
            link: Link::Down { since: now },
            offset: 0,
            loading_until: now,
            handover: None,
            paused_until: now,
            waiting: Vec::new(),
            priority: 100,
            lie: None,
            busy: None,
            unwilling: false,
            refuse_stale,
            stubborn,
            lives: 1,
            clients: BTreeMap::new(),
            backlog: VecDeque::new(),
        }
    }

    pub fn node(&self) -> Node {
        Node::Server(self.index)
    }

    pub fn is_at(&self, host: &str, port: u16) -> bool {
        port == self.node().port() && host == self.node().ip().to_string()
    }

    /// The process ends, however.
    pub fn stop(&mut self) {
        self.state = State::Down;
        self.clients.clear();
        self.backlog.clear();
        self.waiting.clear();
        (self.handover, self.paused_until, self.busy) = (None, Millis(0), None);
    }

    /// Another machine has got this address: a new, empty server.
    pub fn become_stranger(&mut self, now: Millis) {
        (self.role, self.rewritten, self.offset) = (Role::Master, Role::Master, 0);
        self.start(now, 0);
    }

    pub fn is_paused(&self, now: Millis) -> bool {
        now < self.paused_until || self.handover.is_some()
    }

    /// What has waited for the end of a pause that is over.
    pub fn resumed(&mut self, now: Millis) -> Vec<(Wire, Request)> {
        let over = self.state == State::Up && !self.is_paused(now);
        if over { std::mem::take(&mut self.waiting) } else { Vec::new() }
    }

    /// A new process with the rewritten role, and a new run id.
    pub fn start(&mut self, now: Millis, loading_ms: u64) {
        self.state = State::Up;
        self.lives += 1;
        self.role = self.rewritten.clone();
        self.link = Link::Down { since: now };
        self.loading_until = now + loading_ms;
    }

    pub fn accepted(&mut self, wire: Wire) {
        self.clients.insert(wire, Client::default());
    }

    pub fn left(&mut self, wire: Wire) {
        self.clients.remove(&wire);
        self.waiting.retain(|(other, _)| *other != wire);
    }

    /// Keeps requests that a frozen process does not read.
    pub fn keep(&mut self, wire: Wire, requests: Vec<Request>) {
        self.backlog.push_back((wire, requests));
    }

    pub fn take_backlog(&mut self) -> VecDeque<(Wire, Vec<Request>)> {
        std::mem::take(&mut self.backlog)
    }

    pub fn serves(&self, now: Millis) -> bool {
        let linked = match self.role {
            Role::Master => true,
            Role::Replica(..) => matches!(self.link, Link::Up { .. }),
        };
        self.state == State::Up && now >= self.loading_until && linked
    }

    /// Executes one request. `replicas` is what INFO lists: who is linked to this server, and how far.
    pub fn run(
        &mut self,
        now: Millis,
        wire: Wire,
        request: &Request,
        replicas: &[(SocketAddr, u64)],
        out: &mut Vec<Outcome>,
    ) {
        let name = request.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
        let waits = self.waiting.iter().any(|(other, _)| *other == wire);
        if self.clients.contains_key(&wire) && (waits || (name == b"PUBLISH" && self.is_paused(now))) {
            self.waiting.push((wire, request.clone()));
            return;
        }
        let Some(client) = self.clients.get_mut(&wire) else { return };
        if let Some(killable) = self.busy {
            let killed = killable && name == b"SCRIPT";
            if killed {
                self.busy = None;
            }
            client.transaction = None;
            let busy = Reply::Error(b"BUSY Redis is busy running a script. You can only call SCRIPT KILL.".into());
            out.push(Outcome::Reply(wire, if killed { ok() } else { busy }));
            return;
        }
        if let Some(transaction) = &mut client.transaction {
            if name == b"EXEC" {
                let transaction = client.transaction.take().unwrap_or_default();
                let reply = self.exec(now, wire, transaction, replicas, out);
                out.push(Outcome::Reply(wire, reply));
                return;
            }
            let is_order = name == b"SLAVEOF";
            let reply = match is_order {
                true if now < self.loading_until => loading(),
                true if self.unwilling => Reply::Error(b"NOPERM this user has no permissions".into()),
                _ => Reply::Simple(b"QUEUED".into()),
            };
            transaction.spoilt |= matches!(reply, Reply::Error(_));
            transaction.queued.push(request.clone());
            out.push(Outcome::Reply(wire, reply));
            return;
        }
        if name == b"MULTI" {
            client.transaction = Some(Transaction::default());
            out.push(Outcome::Reply(wire, ok()));
            return;
        }
        let reply = self.command(now, wire, &name, request, replicas, out);
        out.push(Outcome::Reply(wire, reply));
    }

    fn exec(
        &mut self,
        now: Millis,
        wire: Wire,
        transaction: Transaction,
        replicas: &[(SocketAddr, u64)],
        out: &mut Vec<Outcome>,
    ) -> Reply {
        if transaction.spoilt {
            return Reply::Error(b"EXECABORT Transaction discarded because of previous errors.".into());
        }
        let run = |request: &Request| {
            let name = request[0].to_ascii_uppercase();
            self.command(now, wire, &name, request, replicas, out)
        };
        Reply::Array(transaction.queued.iter().map(run).collect())
    }

    fn command(
        &mut self,
        now: Millis,
        wire: Wire,
        name: &[u8],
        request: &Request,
        replicas: &[(SocketAddr, u64)],
        out: &mut Vec<Outcome>,
    ) -> Reply {
        let is_loading = now < self.loading_until;
        let is_stale = self.refuse_stale && matches!(self.role, Role::Replica(..)) && !self.serves(now);
        match name {
            b"PING" if is_loading => loading(),
            b"PING" if is_stale => {
                Reply::Error(b"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.".into())
            }
            b"PING" => Reply::Simple(b"PONG".into()),
            b"INFO" => Reply::Bulk(self.info(now, replicas).into_bytes()),
            b"SLAVEOF" if is_loading => loading(),
            b"SLAVEOF" => self.slaveof(now, wire, request, out),
            b"FAILOVER" => self.failover(now, request, replicas),
            b"CONFIG" if request.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"get")) => {
                let bulk = |text: String| Reply::Bulk(text.into_bytes());
                Reply::Array(vec![bulk("slave-priority".into()), bulk(self.priority.to_string())])
            }
            b"CONFIG" => {
                self.rewritten = self.role.clone();
                ok()
            }
            b"CLIENT" => self.client(now, wire, request, out),
            b"PUBLISH" => self.publish(request, out),
            b"SUBSCRIBE" => {
                let Some(channel) = request.get(1) else { return arity() };
                if let Some(client) = self.clients.get_mut(&wire) {
                    client.subscribed = true;
                }
                Reply::Array(vec![Reply::Bulk(b"subscribe".into()), Reply::Bulk(channel.clone()), Reply::Integer(1)])
            }
            b"SCRIPT" => Reply::Error(b"NOTBUSY No scripts in execution right now.".into()),
            b"AUTH" => Reply::Error(b"ERR AUTH <password> called without any password configured".into()),
            _ => Reply::Error(format!("ERR unknown command '{}'", String::from_utf8_lossy(name)).into_bytes()),
        }
    }

    fn slaveof(&mut self, now: Millis, wire: Wire, request: &Request, out: &mut Vec<Outcome>) -> Reply {
        let [_, host, port] = &request[..] else { return arity() };
        if self.handover.is_some() {
            return Reply::Error(b"ERR REPLICAOF not allowed while failing over.".into());
        }
        let role = if host.eq_ignore_ascii_case(b"no") {
            Role::Master
        } else {
            let host = String::from_utf8_lossy(host).into_owned();
            let Some(port) = std::str::from_utf8(port).ok().and_then(|port| port.parse().ok()) else {
                return Reply::Error(b"ERR Invalid master port".into());
            };
            Role::Replica(host, port)
        };
        if self.stubborn && role != Role::Master {
            return ok();
        }
        if role != self.role {
            self.role = role;
            self.link = Link::Down { since: now };
            out.push(Outcome::Role(wire));
        }
        ok()
    }

    fn failover(&mut self, now: Millis, request: &Request, replicas: &[(SocketAddr, u64)]) -> Reply {
        let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
        match &request.iter().map(text).collect::<Vec<_>>()[..] {
            [_, abort] if abort == "ABORT" => match self.handover.take() {
                Some(_) => ok(),
                None => Reply::Error(b"ERR No failover in progress.".into()),
            },
            [_, to, host, port, timeout, ms] if to == "TO" && timeout == "TIMEOUT" => {
                let (Ok(port), Ok(ms)) = (port.parse::<u16>(), ms.parse::<u64>()) else { return arity() };
                let is_replica = replicas.iter().any(|(addr, _)| addr.ip().to_string() == *host && addr.port() == port);
                match &self.role {
                    _ if self.handover.is_some() => Reply::Error(b"ERR FAILOVER already in progress.".into()),
                    Role::Replica(..) => Reply::Error(b"ERR FAILOVER is not valid when server is a replica.".into()),
                    Role::Master if !is_replica => {
                        Reply::Error(b"ERR FAILOVER target HOST and PORT is not a replica.".into())
                    }
                    Role::Master => {
                        self.handover = Some(Handover { host: host.clone(), port, until: now + ms });
                        ok()
                    }
                }
            }
            _ => arity(),
        }
    }

    fn client(&mut self, now: Millis, wire: Wire, request: &Request, out: &mut Vec<Outcome>) -> Reply {
        let word = |i: usize| request.get(i).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
        match word(1).as_slice() {
            b"KILL" => {}
            b"PAUSE" => {
                let ms = String::from_utf8_lossy(&word(2)).parse::<u64>();
                let Ok(ms) = ms else { return arity() };
                self.paused_until = now + ms;
                return ok();
            }
            b"UNPAUSE" => {
                self.paused_until = now;
                return ok();
            }
            _ => return ok(),
        }
        let pubsub = word(3) == b"PUBSUB";
        let killed: Vec<Wire> = self
            .clients
            .iter()
            // The caller is spared, and is no Pub/Sub client.
            .filter(|&(&other, client)| other != wire && client.subscribed == pubsub)
            .map(|(&other, _)| other)
            .collect();
        for other in &killed {
            self.left(*other);
            out.push(Outcome::Drop(*other));
        }
        Reply::Integer(i64::try_from(killed.len()).expect("a handful"))
    }

    fn publish(&mut self, request: &Request, out: &mut Vec<Outcome>) -> Reply {
        let [_, channel, payload] = &request[..] else { return arity() };
        let subscribers: Vec<Wire> =
            self.clients.iter().filter(|(_, client)| client.subscribed).map(|(&wire, _)| wire).collect();
        for &subscriber in &subscribers {
            let message =
                vec![Reply::Bulk(b"message".into()), Reply::Bulk(channel.clone()), Reply::Bulk(payload.clone())];
            out.push(Outcome::Reply(subscriber, Reply::Array(message)));
        }
        Reply::Integer(i64::try_from(subscribers.len()).expect("a handful"))
    }

    fn info(&self, now: Millis, replicas: &[(SocketAddr, u64)]) -> String {
        let mut text = String::from("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n");
        let life = if self.lie == Some(Lie::RunId) { now.0 } else { self.lives };
        let run_id = format!("{:020x}{:020x}", self.index + 1, life);
        let _ = write!(text, "run_id:{run_id}\r\ntcp_port:{}\r\n\r\n# Replication\r\n", self.node().port());
        let elsewhere = Role::Replica(Node::Nobody(1).ip().to_string(), 6379);
        let role = match (&self.role, self.lie == Some(Lie::Role)) {
            (role, false) => role,
            (Role::Master, true) => &elsewhere,
            (Role::Replica(..), true) => &Role::Master,
        };
        if let Role::Replica(host, port) = role {
            let _ = write!(text, "role:slave\r\nmaster_host:{host}\r\nmaster_port:{port}\r\n");
            let (status, sync, since) = match self.link {
                Link::Up { .. } => ("up", 0, None),
                Link::Syncing { since, .. } => ("down", 1, Some(since)),
                Link::Down { since } => ("down", 0, Some(since)),
            };
            let _ = write!(text, "master_link_status:{status}\r\nmaster_sync_in_progress:{sync}\r\n");
            let _ = write!(text, "slave_read_repl_offset:{0}\r\nslave_repl_offset:{0}\r\n", self.offset);
            if let Some(since) = since {
                let _ = write!(text, "master_link_down_since_seconds:{}\r\n", now.since(since) / 1000);
            }
            let _ = write!(text, "slave_priority:{}\r\nslave_read_only:1\r\nreplica_announced:1\r\n", self.priority);
        } else {
            text.push_str("role:master\r\n");
        }
        let _ = write!(text, "connected_slaves:{}\r\n", replicas.len());
        for (n, (addr, offset)) in replicas.iter().enumerate() {
            let (ip, port) = (addr.ip(), addr.port());
            let _ = write!(text, "slave{n}:ip={ip},port={port},state=online,offset={offset},lag=0\r\n");
        }
        let state = if self.handover.is_some() { "waiting-for-sync" } else { "no-failover" };
        let _ = write!(text, "master_failover_state:{state}\r\n");
        let _ = write!(text, "master_replid:{run_id}\r\nmaster_repl_offset:{}\r\n", self.offset);
        match self.lie {
            Some(Lie::Half) => text.truncate(text.len() / 2),
            Some(Lie::Numbers) => {
                text.push_str("slave_repl_offset:18446744073709551615\r\nslave_priority:4294967295\r\n");
                text.push_str("master_link_down_since_seconds:9999999999\r\nmaster_port:0\r\n");
            }
            Some(Lie::Ghost(host)) => {
                let ip = Node::Nobody(host).ip();
                let _ = write!(text, "slave99:ip={ip},port=6379,state=online,offset=1,lag=0\r\n");
            }
            Some(Lie::Role | Lie::RunId) | None => {}
        }
        text
    }
}

fn ok() -> Reply {
    Reply::Simple(b"OK".into())
}

fn loading() -> Reply {
    Reply::Error(b"LOADING Redis is loading the dataset in memory".into())
}

fn arity() -> Reply {
    Reply::Error(b"ERR wrong number of arguments".into())
}
