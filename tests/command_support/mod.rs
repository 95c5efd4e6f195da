//! A world without sockets for the tests of `src/command`: the core, clients, and servers that answer at once.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use watchfire::acl::{self, Acl};
use watchfire::base::Millis;
use watchfire::command::{ClientId, Clients, Facts, Stats, Wish, World, catalog, dispatch};
use watchfire::core::{
    ConnId, ConnKind, Effect, Identity, Input, KnownPeer, MasterSnapshot, RunId, Sentinel, Settings, Snapshot,
};
use watchfire::resp::{Argv, Reply, RequestDecoder};

pub const MYID: &str = "6f7e5f42a1141b73716d2b540258f6689f51e2f2";
pub const PEER: &str = "e983fe4b484ec4ca0c626d85a9f0eec6e0940157";
pub const MASTER_RUN_ID: &str = "ab3de787e77f44ba476b513fae4ef02102909f65";
pub const REPLICA_RUN_ID: &str = "31913d48215fd4386394273c264bd9135a65eb90";

pub fn run_id(text: &str) -> RunId {
    RunId::parse(text.as_bytes()).unwrap()
}

/// The group of the recorded replies: one master, one replica, one peer.
pub fn golden() -> Snapshot {
    let mut settings = Settings::with_quorum(2);
    settings.down_after = 3000;
    Snapshot {
        myid: Some(run_id(MYID)),
        masters: vec![MasterSnapshot {
            name: "mymaster".to_owned(),
            host: "127.0.0.1".to_owned(),
            port: 37001,
            settings,
            config_epoch: 0,
            leader_epoch: 0,
            known_replicas: vec![("127.0.0.1".to_owned(), 37002)],
            known_peers: vec![KnownPeer { host: "127.0.0.1".to_owned(), port: 37104, run_id: run_id(PEER) }],
        }],
        ..Snapshot::default()
    }
}

pub struct Bench {
    pub sentinel: Sentinel,
    pub clients: Clients,
    pub acl: Acl,
    pub facts: Facts,
    pub stats: Stats,
    pub wishes: Vec<Wish>,
    pub now: Millis,
    /// Whether saves succeed, and how many there were.
    pub disk_ok: bool,
    pub saves: usize,
    pub crashed: bool,
    /// What the core wanted in the log.
    pub logged: Vec<String>,
    /// Connections that stand: whose, and what they have sent.
    conns: BTreeMap<ConnId, (u16, ConnKind, RequestDecoder)>,
    /// Ports whose servers answer; everybody else stays silent.
    pub alive: Vec<u16>,
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with(&golden())
    }

    pub fn with(snapshot: &Snapshot) -> Bench {
        Bench::with_alive(snapshot, &[])
    }

    pub fn with_alive(snapshot: &Snapshot, alive: &[u16]) -> Bench {
        let now = Millis(1_000_000);
        let identity = Identity { myid: run_id(MYID), port: 37102, own_password: Vec::new() };
        let mut facts = Facts::new(run_id("581939c842d090bbed1fffc04690c2c69358889a"));
        facts.is_executable = |path| path == "/bin/true";
        facts.started = Millis(now.0 - 140_000);
        facts.pid = 22216;
        let mut bench = Bench {
            sentinel: Sentinel::new(identity, snapshot, 7, now),
            clients: Clients::new(),
            acl: Acl::new(catalog(), acl::Settings::default()),
            facts,
            stats: Stats::default(),
            wishes: Vec::new(),
            now,
            disk_ok: true,
            saves: 0,
            crashed: false,
            logged: Vec::new(),
            conns: BTreeMap::new(),
            alive: alive.to_vec(),
        };
        bench.drain();
        bench
    }

    /// A group whose servers answer.
    pub fn alive() -> Bench {
        let mut bench = Bench::with_alive(&golden(), &[37001, 37002, 37104]);
        bench.pass(300);
        bench
    }

    pub fn client(&mut self) -> ClientId {
        let number = self.clients.len() + 40_000;
        self.clients.connect(self.now, format!("127.0.0.1:{number}"), "127.0.0.1:37102".to_owned())
    }

    pub fn hand_in(&mut self, client: ClientId, argv: &[&[u8]]) {
        let mut world = World {
            now: self.now,
            wall_ms: || 1_795_995_445_483,
            sentinel: &mut self.sentinel,
            clients: &mut self.clients,
            acl: &mut self.acl,
            facts: &self.facts,
            stats: &mut self.stats,
            wishes: &mut self.wishes,
        };
        dispatch(&mut world, client, &Argv::from_slices(argv));
    }

    /// What waits for the client; taken.
    pub fn output(&mut self, client: ClientId) -> Vec<u8> {
        std::mem::take(&mut self.clients.get_mut(client).unwrap().out)
    }

    /// One request and everything the client is sent in the turn it causes.
    pub fn ask_bytes(&mut self, client: ClientId, argv: &[&[u8]]) -> Vec<u8> {
        self.hand_in(client, argv);
        self.drain();
        self.clients.settle(self.disk_ok);
        self.output(client)
    }

    /// The same with words, as text: `SENTINEL MASTER m`.
    pub fn ask(&mut self, client: ClientId, line: &str) -> String {
        let words = watchfire::base::quote::split_args(line.as_bytes()).unwrap();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        String::from_utf8_lossy(&self.ask_bytes(client, &words)).into_owned()
    }

    /// Lets time go by in steps of 10 ms.
    pub fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 10 {
            self.now = self.now + 10;
            self.sentinel.tick(self.now);
            self.drain();
        }
    }

    /// Executes all effects; servers that are alive answer within the call.
    pub fn drain(&mut self) {
        while let Some(effect) = self.sentinel.poll_effect() {
            match effect {
                Effect::Save => {
                    self.saves += 1;
                    self.sentinel.saved(self.now, self.disk_ok);
                }
                Effect::Connect { conn, to, kind } => {
                    self.sentinel.handle(self.now, Input::Begun { conn });
                    if self.alive.contains(&to.port()) {
                        self.conns.insert(conn, (to.port(), kind, RequestDecoder::new()));
                        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
                        self.sentinel.handle(self.now, Input::Connected { conn, local });
                    }
                }
                Effect::Send { conn, bytes } => self.serve(conn, &bytes),
                Effect::Close { conn } => drop(self.conns.remove(&conn)),
                Effect::Event { channel, payload, .. } => {
                    self.clients.publish(channel.as_bytes(), payload.as_bytes());
                }
                Effect::Log { text, .. } => self.logged.push(text),
                Effect::Crash { .. } => self.crashed = true,
                _ => {}
            }
        }
    }

    fn serve(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some((port, kind, decoder)) = self.conns.get_mut(&conn) else { return };
        let (port, kind) = (*port, *kind);
        if !self.alive.contains(&port) {
            return;
        }
        decoder.extend(bytes);
        let mut argv = Argv::new();
        let mut replies = Vec::new();
        while decoder.next(&mut argv).unwrap() {
            replies.push(match &argv[0] {
                b"PING" => Reply::Simple(b"PONG".to_vec()),
                b"PUBLISH" => Reply::Integer(1),
                b"INFO" if port == 37001 => Reply::Bulk(master_info().into_bytes()),
                b"INFO" => Reply::Bulk(replica_info().into_bytes()),
                b"SENTINEL" => Reply::Array(vec![Reply::Integer(0), Reply::Bulk(b"*".to_vec()), Reply::Integer(0)]),
                b"SUBSCRIBE" => {
                    let channel = Reply::Bulk(argv[1].to_vec());
                    Reply::Array(vec![Reply::Bulk(b"subscribe".to_vec()), channel, Reply::Integer(1)])
                }
                _ => Reply::Simple(b"OK".to_vec()),
            });
        }
        for reply in replies {
            self.sentinel.handle(self.now, Input::Reply { conn, kind, reply });
        }
    }
}

pub fn master_info() -> String {
    format!(
        "# Server\r\nrun_id:{MASTER_RUN_ID}\r\n# Replication\r\nrole:master\r\n\
         slave0:ip=127.0.0.1,port=37002,state=online,offset=27522,lag=0\r\nmaster_failover_state:no-failover\r\n"
    )
}

pub fn replica_info() -> String {
    format!(
        "# Server\r\nrun_id:{REPLICA_RUN_ID}\r\n# Replication\r\nrole:slave\r\nmaster_host:127.0.0.1\r\n\
         master_port:37001\r\nmaster_link_status:up\r\nslave_repl_offset:27522\r\nslave_priority:100\r\n\
         replica_announced:1\r\n"
    )
}

/// A flat RESP2 array of bulk strings as pairs.
pub fn pairs(reply: &str) -> Vec<(String, String)> {
    let words: Vec<&str> = reply.split("\r\n").skip(2).step_by(2).collect();
    words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

pub fn field(reply: &str, key: &str) -> String {
    pairs(reply).into_iter().find(|(name, _)| name == key).map_or_else(|| format!("no {key} in {reply}"), |(_, v)| v)
}
