//! A Sentinel that watches any number of masters, and a world that answers everything it asks at once.
#![allow(dead_code)]

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use watchfire::base::Millis;
use watchfire::core::{
    ConnId, ConnKind, Effect, Identity, Input, KnownPeer, MasterSnapshot, RunId, Sentinel, Settings, Snapshot,
};
use watchfire::resp::{Argv, Reply, RequestDecoder};

/// INFO as a master with two replicas answers it (redis-server 7.0.15).
pub const INFO: &str = include_str!("info-master.txt");

/// Masters listen from here on; their replicas, one each, at the same port of the next address.
const FIRST_PORT: usize = 10_000;
const PEER_PORT: u16 = 26_380;

pub fn run_id(n: usize) -> RunId {
    RunId::parse(format!("{n:040x}").as_bytes()).expect("forty digits")
}

/// What a peer says about the master of this index.
pub fn hello(master: usize, config_epoch: u64) -> String {
    let (peer, port) = (run_id(2), FIRST_PORT + master);
    format!("127.0.0.1,{PEER_PORT},{peer},7,master-{master},127.0.0.1,{port},{config_epoch}")
}

/// So many masters with a replica and a peer each, as a file would have them.
pub fn snapshot(masters: usize) -> Snapshot {
    let master = |index: usize| MasterSnapshot {
        name: format!("master-{index}"),
        host: "127.0.0.1".to_string(),
        port: u16::try_from(FIRST_PORT + index).expect("a port"),
        settings: Settings::with_quorum(2),
        config_epoch: 7,
        leader_epoch: 7,
        known_replicas: vec![("127.0.0.2".to_string(), u16::try_from(FIRST_PORT + index).expect("a port"))],
        known_peers: vec![KnownPeer { host: "127.0.0.1".to_string(), port: PEER_PORT, run_id: run_id(2) }],
    };
    let masters = (0..masters).map(master).collect();
    Snapshot { myid: Some(run_id(1)), current_epoch: 7, masters, ..Snapshot::default() }
}

/// The Sentinel, its clock, and what it is still owed.
pub struct Group {
    pub core: Sentinel,
    pub now: Millis,
    conns: BTreeMap<ConnId, (u16, IpAddr)>,
    /// Everything asked and not answered: on which connection, and the answer.
    owed: VecDeque<(ConnId, ConnKind, Reply)>,
    pub effects: Vec<Effect>,
    argv: Argv,
}

impl Group {
    /// Everybody is known, connected and fine.
    pub fn calm(masters: usize) -> Group {
        let identity = Identity { myid: run_id(1), port: 26_379, own_password: Vec::new() };
        let now = Millis(1_000_000);
        let core = Sentinel::new(identity, &snapshot(masters), 1, now);
        let mut group =
            Group { core, now, conns: BTreeMap::new(), owed: VecDeque::new(), effects: Vec::new(), argv: Argv::new() };
        group.settle();
        group.live(3_000);
        group
    }

    /// What the shell does in one turn, without the sockets.
    pub fn turn(&mut self) {
        self.core.tick(self.now);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(effect) = self.core.poll_effect() {
            if effect == Effect::Save {
                self.core.saved(self.now, true);
            }
            self.effects.push(effect);
        }
    }

    /// Answers until nothing is left to be answered.
    pub fn settle(&mut self) {
        self.drain();
        while !self.effects.is_empty() {
            self.listen();
            for (conn, kind, reply) in std::mem::take(&mut self.owed) {
                self.core.handle(self.now, Input::Reply { conn, kind, reply });
            }
            self.drain();
        }
    }

    /// Takes the effects in and works out the answers.
    fn listen(&mut self) {
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::Connect { conn, to, .. } => {
                    self.conns.insert(conn, (to.port(), to.ip()));
                    self.core.handle(self.now, Input::Begun { conn });
                    self.core.handle(self.now, Input::Connected { conn, local: IpAddr::V4(Ipv4Addr::LOCALHOST) });
                }
                Effect::Send { conn, bytes } => {
                    let mut decoder = RequestDecoder::new();
                    decoder.extend(&bytes);
                    while decoder.next(&mut self.argv).expect("the core speaks RESP") {
                        let (kind, reply) = self.answer(conn);
                        self.owed.push_back((conn, kind, reply));
                    }
                }
                _ => {}
            }
        }
    }

    fn answer(&self, conn: ConnId) -> (ConnKind, Reply) {
        let &(port, ip) = self.conns.get(&conn).expect("a connection");
        let replica = ip == IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
        let reply = match &self.argv[0] {
            b"PING" => Reply::Simple(b"PONG".to_vec()),
            b"INFO" => Reply::Bulk(info(usize::from(port), replica).into_bytes()),
            b"PUBLISH" => Reply::Integer(1),
            b"SUBSCRIBE" => {
                let words = [Reply::Bulk(b"subscribe".to_vec()), Reply::Bulk(self.argv[1].to_vec()), Reply::Integer(1)];
                return (ConnKind::PubSub, Reply::Array(words.into()));
            }
            _ => Reply::Simple(b"OK".to_vec()),
        };
        (ConnKind::Command, reply)
    }

    /// Time passes, and everything asked is answered at once.
    pub fn live(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.core.next_wakeup() <= end {
            self.now = self.now.max(self.core.next_wakeup());
            self.turn();
            self.settle();
        }
        self.now = end;
    }

    /// Lives until an INFO is to be answered, and gives that answer. All before it have been given.
    pub fn until_info(&mut self) -> Input {
        loop {
            while let Some((conn, kind, reply)) = self.owed.pop_front() {
                let info = matches!(reply, Reply::Bulk(_));
                let input = Input::Reply { conn, kind, reply };
                if info {
                    return input;
                }
                self.core.handle(self.now, input);
            }
            self.drain();
            if self.effects.is_empty() {
                self.now = self.now.max(self.core.next_wakeup());
                self.turn();
            }
            self.listen();
        }
    }
}

/// A real text with the lines that matter.
fn info(port: usize, replica: bool) -> String {
    let role = if replica {
        format!(
            "role:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:{port}\r\nmaster_link_status:up\r\n\
             slave_repl_offset:70\r\nslave_priority:100\r\nconnected_slaves:0\r\n"
        )
    } else {
        format!("role:master\r\nconnected_slaves:1\r\nslave0:ip=127.0.0.2,port={port},state=online,offset=70,lag=0\r\n")
    };
    let id = format!("run_id:{:040x}\r\n", port * 2 + usize::from(replica));
    let mut text = String::new();
    for line in INFO.split_inclusive('\n') {
        match line.split_once(':') {
            Some(("run_id", _)) => text.push_str(&id),
            Some(("role", _)) => text.push_str(&role),
            Some(("connected_slaves" | "slave0" | "slave1", _)) => {}
            _ => text.push_str(line),
        }
    }
    text.shrink_to_fit();
    text
}
