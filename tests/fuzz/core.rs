//! The whole core: servers and peers that answer anything at any time, operators in between, and a disk that fails.

use super::config::{load, sentinel, survives_the_file};
use super::drive::{behaviour, run, size, text};
use super::hello::group;
use std::collections::{BTreeMap, VecDeque};
use watchfire::base::{Millis, quote};
use watchfire::config::{self, ServerOptions};
use watchfire::core::{Change, ConnId, ConnKind, Effect, Gone, Identity, Input, RunId, ScriptId, Sentinel, Snapshot};
use watchfire::resp::{Argv, Reply, RequestDecoder};

/// A core and the world around it, which does as it is told.
pub struct Play {
    pub core: Sentinel,
    pub now: Millis,
    /// Open connections, with the names of the commands that wait for an answer.
    conns: BTreeMap<ConnId, Conn>,
    disk_ok: bool,
    scripts: Vec<ScriptId>,
    /// Names that are being looked up.
    asked: Vec<Box<str>>,
    pub effects: usize,
    /// What was said, as a part of a behaviour.
    said: u64,
}

struct Conn {
    kind: ConnKind,
    stands: bool,
    waiting: VecDeque<String>,
}

impl Play {
    pub fn new(snapshot: &Snapshot, seed: u64) -> Play {
        let myid = RunId::from_entropy([0x11; 20]);
        let now = Millis(1_000);
        let identity = Identity { myid, port: 26379, own_password: Vec::new() };
        let mut play = Play {
            core: Sentinel::new(identity, snapshot, seed, now),
            now,
            conns: BTreeMap::new(),
            disk_ok: true,
            scripts: Vec::new(),
            asked: Vec::new(),
            effects: 0,
            said: 0,
        };
        play.drain();
        play
    }

    fn drain(&mut self) {
        while let Some(effect) = self.core.poll_effect() {
            self.effects += 1;
            match effect {
                Effect::Save => self.core.saved(self.now, self.disk_ok),
                Effect::Connect { conn, kind, .. } => {
                    self.conns.insert(conn, Conn { kind, stands: false, waiting: VecDeque::new() });
                }
                Effect::Send { conn, bytes } => {
                    let conn = self.conns.get_mut(&conn).expect("sent on a living connection");
                    let mut decoder = RequestDecoder::new();
                    decoder.extend(&bytes);
                    let mut argv = Argv::new();
                    while decoder.next(&mut argv).expect("the core speaks RESP") {
                        conn.waiting.push_back(String::from_utf8_lossy(&argv[0]).into_owned());
                    }
                }
                Effect::Close { conn } => drop(self.conns.remove(&conn).expect("closed once")),
                Effect::Event { channel, payload, .. } => {
                    assert!(!quote::has_control(payload.as_bytes()), "{payload:?}");
                    self.said |= 1 << (text(channel) % 64);
                }
                Effect::Log { text: line, .. } => {
                    assert!(!quote::has_control(line.as_bytes()), "{line:?}");
                    self.said |= 1 << (text(line.split(' ').next().unwrap_or_default()) % 64);
                }
                Effect::RunScript { script, .. } => self.scripts.push(script),
                Effect::Resolve { host } => self.asked.push(host),
                Effect::KillScript { .. } | Effect::Crash { .. } => {}
            }
        }
    }

    fn handle(&mut self, input: Input) {
        self.core.handle(self.now, input);
        self.drain();
    }

    fn connect(&mut self, conn: ConnId) {
        let Some(state) = self.conns.get_mut(&conn) else { return };
        state.stands = true;
        let kind = state.kind;
        self.handle(Input::Begun { conn });
        self.handle(Input::Connected { conn, local: "127.0.0.1".parse().expect("an address") });
        if kind == ConnKind::PubSub {
            let word = |word: &str| Reply::Bulk(word.as_bytes().to_vec());
            let reply = Reply::Array(vec![word("subscribe"), word("__sentinel__:hello"), Reply::Integer(1)]);
            self.handle(Input::Reply { conn, kind, reply });
        }
    }

    /// Every dial that is under way succeeds.
    pub fn connect_all(&mut self) {
        for conn in self.conns.keys().copied().collect::<Vec<_>>() {
            if self.conns.get(&conn).is_some_and(|state| !state.stands) {
                self.connect(conn);
            }
        }
    }

    /// Answers every request that waits now; `odd` may give another answer than a server that is well.
    pub fn answer_all(&mut self, odd: impl Fn(&str) -> Option<Reply>) {
        for conn in self.conns.keys().copied().collect::<Vec<_>>() {
            while let Some(request) = self.conns.get_mut(&conn).and_then(|state| state.waiting.pop_front()) {
                let reply = odd(&request).unwrap_or_else(|| plain(&request));
                self.reply(conn, reply);
            }
        }
    }

    fn reply(&mut self, conn: ConnId, reply: Reply) {
        if let Some(kind) = self.conns.get(&conn).filter(|state| state.stands).map(|state| state.kind) {
            self.handle(Input::Reply { conn, kind, reply });
        }
    }

    pub fn wait(&mut self, span: u64) {
        let end = self.now + span;
        while self.core.next_wakeup() <= end {
            self.now = self.now.max(self.core.next_wakeup());
            self.core.tick(self.now);
            self.drain();
        }
        self.now = end;
    }
}

fn plain(request: &str) -> Reply {
    match request {
        "PING" => Reply::Simple(b"PONG".to_vec()),
        "PUBLISH" => Reply::Integer(1),
        "INFO" => Reply::Bulk(b"role:master\r\n".to_vec()),
        "SENTINEL" => Reply::Array(vec![Reply::Integer(0), Reply::Bulk(b"*".to_vec()), Reply::Integer(0)]),
        "EXEC" => Reply::Array(Vec::new()),
        _ => Reply::Simple(b"OK".to_vec()),
    }
}

/// The words of an order. `{N}` is the id of peer N.
struct Order<'a> {
    words: Vec<&'a str>,
}

impl Order<'_> {
    fn number(&self, at: usize) -> u64 {
        self.words.get(at).and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    fn word(&self, at: usize) -> &str {
        self.words.get(at).copied().unwrap_or("")
    }
}

fn id(n: u64) -> RunId {
    RunId::from_entropy([u8::try_from(n % 256).unwrap_or(0); 20])
}

impl Play {
    /// The connection that an order means: the first word behind its name counts them.
    fn meant(&self, order: &Order<'_>) -> Option<ConnId> {
        let count = self.conns.len().max(1) as u64;
        let at = usize::try_from(order.number(1) % count).unwrap_or(0);
        self.conns.keys().nth(at).copied()
    }

    /// Does what one line of the input says. What makes no sense does nothing.
    fn order(&mut self, line: &str) {
        let order = Order { words: line.split(' ').collect() };
        let master = order.word(1).as_bytes().to_vec();
        match order.word(0) {
            "all" => self.connect_all(),
            "up" => {
                if let Some(conn) = self.meant(&order) {
                    self.connect(conn);
                }
            }
            "down" => {
                if let Some(conn) = self.meant(&order) {
                    self.conns.remove(&conn);
                    let why =
                        if order.word(2) == "refused" { Gone::Refused } else { Gone::Other(order.word(2).into()) };
                    // The shell tells why in words of its own.
                    let why = if quote::has_control(order.word(2).as_bytes()) { Gone::Refused } else { why };
                    self.handle(Input::Closed { conn, why });
                }
            }
            "answer" => self.answer_all(|_| None),
            "info" => {
                let info = line.split_once(' ').map_or("", |(_, rest)| rest).replace(';', "\r\n");
                self.answer_all(|request| (request == "INFO").then(|| Reply::Bulk(info.clone().into_bytes())));
            }
            "error" => {
                let error = line.split_once(' ').map_or("", |(_, rest)| rest);
                self.answer_all(|_| Some(Reply::Error(error.as_bytes().to_vec())));
            }
            "vote" => {
                let leader = if order.word(2) == "*" { "*".into() } else { id(order.number(2)).to_string() };
                let vote = vec![
                    Reply::Integer(order.number(1).cast_signed()),
                    Reply::Bulk(leader.into_bytes()),
                    Reply::Integer(order.number(3).cast_signed()),
                ];
                self.answer_all(|request| (request == "SENTINEL").then(|| Reply::Array(vote.clone())));
            }
            "odd" => {
                let odd = [
                    Reply::Nil,
                    Reply::Integer(-1),
                    Reply::Array(vec![Reply::Nil; 3]),
                    Reply::Push(vec![Reply::Bulk(b"message".to_vec()), Reply::Nil, Reply::Bulk(Vec::new())]),
                    Reply::Map(vec![(Reply::Nil, Reply::Nil)]),
                    Reply::Simple(Vec::new()),
                    Reply::Bulk(b"\0\xff".to_vec()),
                    Reply::Double(b"nan".to_vec()),
                ];
                let reply = odd[usize::try_from(order.number(1) % odd.len() as u64).unwrap_or(0)].clone();
                self.answer_all(|_| Some(reply.clone()));
            }
            "unasked" => {
                if let Some(conn) = self.meant(&order) {
                    self.reply(conn, Reply::Simple(order.word(2).as_bytes().to_vec()));
                }
            }
            "heard" | "hello" => {
                let payload = line.split_once(' ').map_or("", |(_, rest)| rest);
                let payload =
                    (1..=6).fold(payload.to_owned(), |text, n| text.replace(&format!("{{{n}}}"), id(n).as_str()));
                if order.word(0) == "hello" {
                    self.core.hello(self.now, payload.as_bytes());
                    self.drain();
                    return;
                }
                let word = |word: &str| Reply::Bulk(word.as_bytes().to_vec());
                let reply = Reply::Array(vec![word("message"), word("__sentinel__:hello"), word(&payload)]);
                let deaf = self.conns.iter().find(|(_, state)| state.kind == ConnKind::PubSub && state.stands);
                if let Some(conn) = deaf.map(|(&conn, _)| conn) {
                    self.reply(conn, reply);
                }
            }
            "wait" => self.wait(order.number(1) % 100_000),
            "frozen" => self.now = self.now + order.number(1) % 1_000_000,
            "monitor" => {
                let quorum = u32::try_from(order.number(4)).unwrap_or(1).max(1);
                let port = u16::try_from(order.number(3)).unwrap_or(1);
                // The door of commands keeps control characters out.
                if !quote::has_control(line.as_bytes()) {
                    let _ = self.core.monitor(self.now, order.word(1), order.word(2), port, quorum);
                    self.drain();
                }
            }
            "remove" => {
                let _ = self.core.remove(self.now, &master);
                self.drain();
            }
            "reset" => {
                let _ = self.core.reset(self.now, &master);
                self.drain();
            }
            "failover" => {
                let _ = self.core.force_failover(self.now, &master, order.word(2) == "coordinated");
                self.drain();
            }
            "question" => {
                let candidate = (order.word(4) != "*").then(|| id(order.number(4)));
                let port = u16::try_from(order.number(2)).unwrap_or(1);
                let answer = self.core.question(self.now, order.word(1), port, order.number(3), candidate);
                assert!(answer.vote.leader.is_none() || answer.vote.epoch <= self.core.current_epoch());
                self.drain();
            }
            "set" if !quote::has_control(line.as_bytes()) => {
                let number = order.number(3).max(1);
                let small = u32::try_from(number).unwrap_or(u32::MAX);
                let change = match order.word(2) {
                    "down-after" => Change::DownAfter(number),
                    "refused" => Change::DownAfterRefused(order.number(3)),
                    "ping-period" => Change::PingPeriod(order.number(3)),
                    "failover-timeout" => Change::FailoverTimeout(number),
                    "quorum" => Change::Quorum(small),
                    "parallel-syncs" => Change::ParallelSyncs(small),
                    "reboot" => Change::RebootDownAfter(order.number(3)),
                    "auth-pass" => Change::AuthPass(order.word(3).as_bytes().to_vec()),
                    "script" => Change::ClientReconfigScript(order.word(3).to_owned()),
                    "rename" if !order.word(3).is_empty() && !order.word(4).is_empty() => {
                        Change::RenameCommand(order.word(3).to_owned(), order.word(4).to_owned())
                    }
                    _ => return,
                };
                let _ = self.core.set(self.now, &master, vec![change]);
                self.drain();
            }
            "names" => {
                let mut options = self.core.options().clone();
                options.resolve_hostnames = order.word(1) == "yes";
                options.announce_hostnames = order.word(2) == "yes";
                self.core.set_options(self.now, options);
                self.drain();
            }
            "resolved" => {
                for host in std::mem::take(&mut self.asked) {
                    self.handle(Input::Resolved { host, ip: order.word(1).parse().ok() });
                }
            }
            "script" => {
                for script in std::mem::take(&mut self.scripts) {
                    let code = i32::try_from(order.number(1)).ok();
                    self.handle(Input::ScriptEnded { script, code, signal: None });
                }
            }
            "disk" => self.disk_ok = order.word(1) != "full",
            "restart" => self.restart(),
            _ => {}
        }
    }

    /// It dies and goes on from what is written of its state.
    fn restart(&mut self) {
        let text = config::rewrite(b"", &self.core.snapshot(), &ServerOptions::default());
        let loaded = load(&text).unwrap_or_else(|error| panic!("{error}\n{}", text.escape_ascii()));
        let (now, disk_ok, effects, said) = (self.now, self.disk_ok, self.effects, self.said);
        let myid = loaded.snapshot.myid.expect("it is written");
        let identity = Identity { myid, port: 26379, own_password: Vec::new() };
        *self = Play {
            core: Sentinel::new(identity, &loaded.snapshot, 2, now),
            now,
            disk_ok,
            effects,
            said,
            ..Play::empty()
        };
        self.drain();
    }

    fn empty() -> Play {
        Play {
            core: sentinel(&Snapshot::default()),
            now: Millis(0),
            conns: BTreeMap::new(),
            disk_ok: true,
            scripts: Vec::new(),
            asked: Vec::new(),
            effects: 0,
            said: 0,
        }
    }
}

const SEEDS: &[&[u8]] = &[
    // Found: a master with port 0 became a replica that no file keeps.
    b"remove mymaster\nmonitor mymaster ::\nhello 7.0.0.1,8,{2},1,mymaster,1.0.0.1,9,1",
    b"all\nanswer\nset mymaster down-after 1000\nhello 127.0.0.1,26380,{2},0,mymaster,127.0.0.1,6379,0\nall\nanswer\n\
      wait 1500\nanswer\ndown 0 refused\ndown 0 refused\nwait 1200\nvote 1 * 0\nwait 100\nvote 1 17 1\nanswer\nwait 500\n\
      info role:master\nwait 500\nanswer\nrestart\nall\nanswer\nwait 3000",
    b"all\ninfo run_id:0123456789abcdef0123456789abcdef01234567;role:master;slave0:ip=127.0.0.1,port=6389,state=online\n\
      all\ninfo role:slave;master_host:127.0.0.1;master_port:6379;master_link_status:up;slave_repl_offset:5\nanswer\n\
      failover mymaster\nanswer\nwait 100\ninfo role:master\nwait 1000\nanswer\nwait 1000\nanswer",
    b"set mymaster refused 100\nset mymaster ping-period 50\nall\nanswer\ndown 0 reset\ndown 0 refused\nwait 30\n\
      down 0 refused\nunasked 1 x\nhello 127.0.0.1,26380,{2},0,mymaster,127.0.0.1,6379,0\n\
      hello 127.0.0.1,26380,{2},0,other,127.0.0.1,6479,0\nhello 127.0.0.1,26390,{2},0,other,127.0.0.1,6479,0\nwait 300",
    b"names yes yes\nmonitor named redis.example 6379 1\nresolved 127.0.0.1\nall\nanswer\n\
      hello peer.example,26380,{3},0,named,redis.example,6379,0\nresolved 127.0.0.2\nall\nresolved -\nwait 2000\nrestart",
    b"question 127.0.0.1 6379 1 2\nquestion 127.0.0.1 6379 1 3\ndisk full\nquestion 127.0.0.1 6379 2 2\nwait 2500\ndisk ok\n\
      wait 2500\nquestion 127.0.0.1 6379 3 2\nfailover other\nanswer\nreset *\nremove mymaster\nmonitor mymaster ::1 6379 2",
    b"all\nanswer\nheard 127.0.0.1,26380,{2},5,mymaster,127.0.0.1,6389,5\nall\nanswer\nhello 10.0.0.1,26380,{2},5,other,127.0.0.1,6479,4\n\
      hello 127.0.0.1,26381,{1},5,mymaster,127.0.0.1,6389,5\nfrozen 5000\nwait 31000\nerror -LOADING\nerror NOAUTH\nodd 3\nunasked 0 x",
    b"set mymaster script /bin/true\nset mymaster rename SLAVEOF hidden\nset mymaster auth-pass p\nset mymaster reboot 5\n\
      set mymaster failover-timeout 100\nset mymaster quorum 1\nall\nanswer\nwait 40000\nscript 1\nscript 0\nwait 31000\nscript 0",
];

const WORDS: &[&[u8]] = &[
    b"\nall\n",
    b"\nanswer\n",
    b"\nwait 1000\n",
    b"\nwait 100\n",
    b"\nwait 31000\n",
    b"\nrestart\n",
    b"\ndisk full\n",
    b"\ndisk ok\n",
    b"\nfailover mymaster\n",
    b"\nfailover mymaster coordinated\n",
    b"\nreset *\n",
    b"\nremove mymaster\n",
    b"\nmonitor mymaster 127.0.0.1 6379 2\n",
    b"\ndown 0 refused\n",
    b"\ndown 1 reset\n",
    b"\nup 0\n",
    b"\nvote 1 17 1\n",
    b"\nvote 1 * 0\n",
    b"\nvote 1 2 2\n",
    b"\nfrozen 3000\n",
    b"\nodd 1\n",
    b"\ninfo role:master\n",
    b"\ninfo role:master;slave0:ip=127.0.0.1,port=6379;slave1:ip=127.0.0.1,port=6389\n",
    b"\ninfo role:slave;master_host:127.0.0.1;master_port:6389\n",
    b"\ninfo role:master;slave0:ip=redis.example,port=6379\n",
    b"\ninfo role:slave;master_host:127.0.0.1;master_port:6379;master_link_status:up\n",
    b"\nerror BUSY\n",
    b"\nhello 127.0.0.1,26380,{2},1,mymaster,127.0.0.1,6389,1\n",
    b"\nheard 127.0.0.1,26380,{3},2,mymaster,127.0.0.1,6379,2\n",
    b"\nquestion 127.0.0.1 6379 1 2\n",
    b"\nset mymaster down-after 1\n",
    b"\nset mymaster refused 200\n",
    b"\nset mymaster ping-period 50\n",
    b"\nnames yes yes\n",
    b"\nresolved 127.0.0.1\n",
    b"\nscript 1\n",
    b"\nset mymaster quorum 1\n",
    b"\nunasked 0 PONG\n",
    b"mymaster",
    b"other",
    b"127.0.0.1",
    b"6379",
    b"6389",
    b"{2}",
    b"redis.example",
];

#[test]
fn any_story() {
    run("core", SEEDS, WORDS, 150, |choices, input| {
        let mut play = Play::new(&group(false), choices.next_u64());
        // Time is what makes an order expensive: a hundred seconds are a thousand turns of the cron.
        for line in String::from_utf8_lossy(input).split('\n').take(150) {
            play.order(line);
        }
        let core = &play.core;
        assert!(core.masters().all(|master| master.peers.len() <= 256 && master.replicas.len() <= 1_024));
        for master in core.masters() {
            let link = core.link(master.node.link);
            assert!(link.pending.len() <= 100 * link.sharers(), "{} answers are owed", link.pending.len());
        }
        let epoch = core.current_epoch();
        let steps =
            core.masters().filter_map(|master| master.failover.as_ref()).map(|failover| text(failover.state_word()));
        let parts = [play.said, size(usize::try_from(epoch).unwrap_or(usize::MAX)), steps.fold(0, u64::wrapping_add)];
        survives_the_file(b"", core, &ServerOptions::default());
        behaviour(parts)
    });
}
