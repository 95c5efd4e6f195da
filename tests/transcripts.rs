//! Data-driven stories of one core: input lines, then after `----` everything they caused.
//!
//! Each file under `tests/transcripts/` is one story. `REWRITE=1 cargo test --test transcripts` writes what the core
//! does now into the files; read the difference, and commit it only when you understand it.
//!
//! Input lines:
//!
//! ```text
//! sentinel [seed=N]                     a fresh Sentinel (id 1111…, port 26379)
//! monitor NAME HOST:PORT QUORUM         SENTINEL MONITOR
//! set NAME down-after|down-after-refused|ping-period|failover-timeout|quorum|parallel-syncs|reboot-down-after N
//! set NAME notification-script|client-reconfig-script PATH
//! peer N NAME                           a hello of peer N (id NNNN…, port 26379+N) about the master's present address
//! hello PAYLOAD                         a hello as it stands, published to us; $N is the id of peer N
//! heard PORT PAYLOAD                    the same, heard on the Pub/Sub connection to that port
//! up PORT [cmd|pubsub]                  the connections under way to this port are established (and subscribed)
//! we-are IP                             our own address on connections that come about from now on; 127.0.0.1 as ever
//! dials wait|go                         dials that are asked for from now on wait in a line of ours; or those in line begin, as
//!                                       all others do at once
//! begun PORT [cmd|pubsub]               the dials to that port that are in line begin
//! behind                                what comes from now on waits to be read, and what is said waits to leave
//! caught-up                             and now nothing waits any more
//! left PORT MS                          what was said there has waited for MS and leaves now
//! down PORT refused|reset [cmd|pubsub]  its connections end
//! info PORT key:value …                 what INFO there says from now on
//! obeys PORT                            INFO there follows what SLAVEOF says from now on (role and master; the rest stays)
//! priority PORT N                       what CONFIG GET says there about it from now on; 100 where nothing is said
//! replies PORT COMMAND|* [TEXT]         that command, or every other, is answered with TEXT (+OK, -BUSY …) there; without
//!                                       TEXT as ever
//! vote PORT down=0|1 [for=N epoch=E]    what that peer answers to questions from now on
//! vote PORT granted                     it holds the master down and votes for whoever asks
//! answer PORT [N]                       every request outstanding there is answered, or the N oldest
//! unasked PORT                          a reply to no question comes from there
//! question HOST:PORT EPOCH *|N          a peer asks us; prints the answer
//! failover NAME [coordinated], reset GLOB, remove NAME
//! restart                               the Sentinel dies and starts again with what it has saved
//! wait MS [answering PORT,PORT…] [refusing PORT,PORT…]
//!                                       time passes; meanwhile the named ports answer or refuse connections at once
//! frozen MS                             time passes, but not for us
//! script-starts PID                     the script that runs longest is that process
//! script-ends CODE                      and ends
//! save-fails yes|no
//! save-takes MS                         from now on; meanwhile the Sentinel stands still
//! options resolve-hostnames|announce-hostnames yes|no
//! resolved HOST IP|-                    a look-up is answered
//! addr NAME                             prints how the master is told and saved
//! reports NAME                          prints the reports of its failovers, newest first
//! known NAME                            prints who is known, and what is saved about them
//! quiet                                 effects of periodic commands (PING, INFO, PUBLISH) are not shown from here
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use watchfire::base::Millis;
use watchfire::core::{
    Change, ConnId, ConnKind, Effect, FailoverReport, Gone, Identity, Input, RunId, ScriptId, Sentinel, Snapshot,
};
use watchfire::resp::{Argv, Reply, RequestDecoder};

fn identity() -> Identity {
    Identity { myid: run_id(1), port: 26379, own_password: Vec::new() }
}

fn run_id(n: u32) -> RunId {
    RunId::parse(&format!("{n:x}").repeat(40).as_bytes()[..40]).expect("hex digits")
}

#[derive(Default)]
struct Wire {
    port: u16,
    requests: Vec<Vec<String>>,
    /// The replies to the transaction that is open.
    queued: Option<Vec<Reply>>,
}

struct Story {
    core: Sentinel,
    now: Millis,
    conns: BTreeMap<ConnId, (ConnKind, Wire)>,
    infos: BTreeMap<u16, String>,
    obedient: BTreeSet<u16>,
    priorities: BTreeMap<u16, String>,
    /// By port and command; `*` is every other.
    replies: BTreeMap<(u16, String), String>,
    votes: BTreeMap<u16, Option<Reply>>,
    scripts: Vec<ScriptId>,
    save_fails: bool,
    save_takes: u64,
    own_ip: IpAddr,
    dials_wait: bool,
    in_line: BTreeSet<ConnId>,
    behind: Option<Millis>,
    quiet: bool,
    out: String,
}

impl Story {
    fn new(seed: u64) -> Story {
        Story {
            core: Sentinel::new(identity(), &Snapshot::default(), seed, Millis(0)),
            now: Millis(0),
            conns: BTreeMap::new(),
            infos: BTreeMap::new(),
            obedient: BTreeSet::new(),
            priorities: BTreeMap::new(),
            replies: BTreeMap::new(),
            votes: BTreeMap::new(),
            scripts: Vec::new(),
            save_fails: false,
            save_takes: 0,
            own_ip: Ipv4Addr::LOCALHOST.into(),
            dials_wait: false,
            in_line: BTreeSet::new(),
            behind: None,
            quiet: false,
            out: String::new(),
        }
    }

    fn say(&mut self, text: &str) {
        let text = (1..=9).fold(text.to_owned(), |text, n| text.replace(run_id(n).as_str(), &format!("${n}")));
        writeln!(self.out, "{:>6} {text}", self.now.0).expect("a string takes everything");
    }

    /// Executes effects as the shell does.
    fn drain(&mut self) {
        self.core.heard_up_to(self.behind.unwrap_or(self.now));
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Save => {
                    let ok = !self.save_fails;
                    self.now = self.now + self.save_takes;
                    self.say(if ok { "save" } else { "save fails" });
                    self.core.saved(self.now, ok);
                }
                Effect::Connect { conn, to, kind } => {
                    let side = if kind == ConnKind::Command { "cmd" } else { "pubsub" };
                    self.say(&format!("connect {to} {side}"));
                    self.conns.insert(conn, (kind, Wire { port: to.port(), ..Wire::default() }));
                    if self.dials_wait {
                        self.in_line.insert(conn);
                    } else {
                        self.core.handle(self.now, Input::Begun { conn });
                    }
                }
                Effect::Send { conn, bytes } => {
                    let mut decoder = RequestDecoder::new();
                    decoder.extend(&bytes);
                    let mut argv = Argv::new();
                    while decoder.next(&mut argv).expect("the core speaks RESP") {
                        let words: Vec<String> =
                            argv.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
                        let (kind, wire) = self.conns.get_mut(&conn).expect("sent on a living connection");
                        let port = wire.port;
                        if *kind == ConnKind::Command {
                            wire.requests.push(words.clone());
                        }
                        let routine = matches!(words[0].as_str(), "PING" | "INFO" | "PUBLISH" | "SUBSCRIBE")
                            || words[..2.min(words.len())] == ["CLIENT", "SETNAME"];
                        if !self.quiet || !routine {
                            self.say(&format!("send {port} {}", words.join(" ")));
                        }
                    }
                }
                Effect::Close { conn } => {
                    let (_, wire) = self.conns.remove(&conn).expect("closed once");
                    self.in_line.remove(&conn);
                    self.say(&format!("close {}", wire.port));
                }
                Effect::Event { channel, payload, .. } => self.say(&format!("event {channel} {payload}")),
                Effect::Log { text, .. } => self.say(&format!("log {text}")),
                Effect::RunScript { script, argv } => {
                    self.scripts.push(script);
                    self.say(&format!("run {}", argv.join(" ")));
                }
                Effect::Resolve { host } => self.say(&format!("resolve {host}")),
                other => self.say(&format!("{other:?}")),
            }
        }
    }

    /// Those that are being made or stand.
    fn conns_of(&self, port: u16) -> Vec<(ConnId, ConnKind)> {
        let of = self.conns.iter().filter(|(conn, (_, wire))| wire.port == port && !self.in_line.contains(conn));
        of.map(|(&conn, (kind, _))| (conn, *kind)).collect()
    }

    /// The turn of those that wait comes.
    fn begin(&mut self, is_meant: impl Fn(ConnKind, u16) -> bool) {
        for conn in std::mem::take(&mut self.in_line) {
            let (kind, wire) = &self.conns[&conn];
            if is_meant(*kind, wire.port) {
                self.handle(Input::Begun { conn });
            } else {
                self.in_line.insert(conn);
            }
        }
    }

    fn handle(&mut self, input: Input) {
        self.core.handle(self.now, input);
        self.drain();
    }

    fn answer(&mut self, port: u16, most: usize) {
        for _ in 0..most {
            let in_line = &self.in_line;
            let found = self
                .conns
                .iter_mut()
                .find(|(conn, (_, wire))| wire.port == port && !wire.requests.is_empty() && !in_line.contains(conn));
            let Some((&conn, (kind, wire))) = found else { return };
            let (kind, request) = (*kind, wire.requests.remove(0));
            let odd =
                [request[0].as_str(), "*"].into_iter().find_map(|what| self.replies.get(&(port, what.to_owned())));
            let odd = odd.map(String::as_str).map(simple);
            let obeyed = request[0] == "SLAVEOF" && odd.is_none() && self.obedient.contains(&port);
            let reply = match (request[0].as_str(), &mut wire.queued) {
                ("MULTI", queued) if odd.is_none() => {
                    *queued = Some(Vec::new());
                    Reply::Simple(b"OK".to_vec())
                }
                ("EXEC", queued) if odd.is_none() => Reply::Array(queued.take().unwrap_or_default()),
                (_, Some(queued)) => {
                    queued.push(odd.unwrap_or_else(|| Reply::Simple(b"OK".to_vec())));
                    Reply::Simple(b"QUEUED".to_vec())
                }
                (command, None) => odd.unwrap_or_else(|| self.reply(port, command, &request)),
            };
            if obeyed {
                self.follow(port, &request[1], &request[2]);
            }
            let published = request[0] == "PUBLISH" && !matches!(reply, Reply::Error(_));
            self.handle(Input::Reply { conn, kind, reply });
            if published {
                self.heard(port, &request[2]);
            }
        }
    }

    /// The server obeys; what it is, INFO tells from now on.
    fn follow(&mut self, port: u16, host: &str, of: &str) {
        let before = self.infos.get(&port).cloned().unwrap_or_default();
        let changed = |line: &str| {
            ["role:", "master_host:", "master_port:", "master_link", "slave0:"].iter().any(|key| line.starts_with(key))
        };
        let kept = before.lines().filter(|line| !changed(line));
        let role = if (host, of) == ("NO", "ONE") {
            "role:master".to_owned()
        } else {
            format!("role:slave\r\nmaster_host:{host}\r\nmaster_port:{of}\r\nmaster_link_status:up")
        };
        let lines: Vec<&str> = std::iter::once(role.as_str()).chain(kept).collect();
        self.infos.insert(port, lines.join("\r\n") + "\r\n");
    }

    /// What stands outside of any transaction.
    fn reply(&self, port: u16, command: &str, request: &[String]) -> Reply {
        match command {
            "PING" => Reply::Simple(b"PONG".to_vec()),
            "INFO" => Reply::Bulk(self.infos.get(&port).cloned().unwrap_or_default().into_bytes()),
            "PUBLISH" => Reply::Integer(1),
            "CONFIG" if request[1] == "GET" => {
                let priority = self.priorities.get(&port).map_or("100", String::as_str);
                Reply::Array([request[2].as_str(), priority].map(|text| Reply::Bulk(text.into())).to_vec())
            }
            "SENTINEL" => match self.votes.get(&port) {
                Some(Some(reply)) => reply.clone(),
                Some(None) => {
                    let leader = RunId::parse(request[5].as_bytes());
                    vote_reply(true, leader, leader.map_or(0, |_| request[4].parse().expect("an epoch")))
                }
                None => vote_reply(false, None, 0),
            },
            _ => Reply::Simple(b"OK".to_vec()),
        }
    }

    /// What was published at a server comes out of every Pub/Sub connection to it.
    fn heard(&mut self, port: u16, payload: &str) {
        for (conn, kind) in self.conns_of(port).into_iter().filter(|(_, kind)| *kind == ConnKind::PubSub) {
            let parts = ["message", "__sentinel__:hello", payload].map(|part| Reply::Bulk(part.as_bytes().to_vec()));
            self.handle(Input::Reply { conn, kind, reply: Reply::Array(parts.to_vec()) });
        }
    }

    fn end_conns(&mut self, port: u16, why: &Gone, side: &[&str]) {
        for (conn, _) in self.conns_of(port).into_iter().filter(|&(_, kind)| is_meant(kind, side)) {
            self.conns.remove(&conn);
            self.handle(Input::Closed { conn, why: why.clone() });
        }
    }

    fn wait(&mut self, span: u64, answering: &[u16], refusing: &[u16]) {
        let end = self.now + span;
        loop {
            for &port in refusing {
                self.end_conns(port, &Gone::Refused, &[]);
            }
            for &port in answering {
                self.answer(port, usize::MAX);
            }
            let next = self.core.next_wakeup();
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            self.core.heard_up_to(self.behind.unwrap_or(self.now));
            self.core.tick(self.now);
            self.drain();
        }
        self.now = end;
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let port = |text: &str| text.parse::<u16>().unwrap_or_else(|_| panic!("a port: {text}"));
        let addr = |text: &str| {
            let (host, port) = text.rsplit_once(':').expect("HOST:PORT");
            (host.to_owned(), port.parse::<u16>().expect("a port"))
        };
        match words.as_slice() {
            ["sentinel"] => *self = Story { out: std::mem::take(&mut self.out), ..Story::new(1) },
            ["sentinel", seed] => {
                let seed = seed.strip_prefix("seed=").and_then(|seed| seed.parse().ok()).expect("seed=N");
                *self = Story { out: std::mem::take(&mut self.out), ..Story::new(seed) };
            }
            ["monitor", name, at, quorum] => {
                let (host, port) = addr(at);
                let quorum = quorum.parse().expect("a quorum");
                let outcome = self.core.monitor(self.now, name, &host, port, quorum);
                self.drain();
                if let Err(error) = outcome {
                    self.say(&format!("refused: {error}"));
                }
            }
            ["set", name, what, value] => {
                let number = || value.parse::<u32>().expect("a number");
                let change = match *what {
                    "down-after" => Change::DownAfter(number().into()),
                    "down-after-refused" => Change::DownAfterRefused(number().into()),
                    "ping-period" => Change::PingPeriod(number().into()),
                    "failover-timeout" => Change::FailoverTimeout(number().into()),
                    "quorum" => Change::Quorum(number()),
                    "parallel-syncs" => Change::ParallelSyncs(number()),
                    "reboot-down-after" => Change::RebootDownAfter(number().into()),
                    "notification-script" => Change::NotificationScript((*value).to_owned()),
                    "client-reconfig-script" => Change::ClientReconfigScript((*value).to_owned()),
                    other => panic!("no such setting: {other}"),
                };
                self.core.set(self.now, name.as_bytes(), vec![change]).expect("a master of that name");
                self.drain();
            }
            ["peer", n, name] => {
                let n: u32 = n.parse().expect("a peer's number");
                let master = self.core.master_by_name(name.as_bytes()).expect("a master of that name");
                let at = self.core.current_addr(master);
                let payload = format!(
                    "127.0.0.1,{},{},{},{name},{},{},{}",
                    26379 + n,
                    run_id(n),
                    self.core.current_epoch(),
                    at.host,
                    at.port,
                    master.config_epoch
                );
                self.core.hello(self.now, payload.as_bytes());
                self.drain();
            }
            ["hello", payload] => {
                self.core.hello(self.now, with_ids(payload).as_bytes());
                self.drain();
            }
            ["heard", at, payload] => {
                let at = port(at);
                assert!(self.conns_of(at).iter().any(|(_, kind)| *kind == ConnKind::PubSub), "nobody listens at {at}");
                self.heard(at, &with_ids(payload));
            }
            ["up", at, side @ ..] => {
                for (conn, kind) in self.conns_of(port(at)).into_iter().filter(|&(_, kind)| is_meant(kind, side)) {
                    self.handle(Input::Connected { conn, local: self.own_ip });
                    if kind == ConnKind::PubSub {
                        let word = |word: &str| Reply::Bulk(word.as_bytes().to_vec());
                        let parts = vec![word("subscribe"), word("__sentinel__:hello"), Reply::Integer(1)];
                        self.handle(Input::Reply { conn, kind, reply: Reply::Array(parts) });
                    }
                }
            }
            ["dials", "wait"] => self.dials_wait = true,
            ["dials", "go"] => {
                self.dials_wait = false;
                self.begin(|_, _| true);
            }
            ["begun", at, side @ ..] => {
                let at = port(at);
                self.begin(|kind, port| port == at && is_meant(kind, side));
            }
            ["behind"] => self.behind = Some(self.now),
            ["caught-up"] => self.behind = None,
            ["left", at, ms] => {
                let since = Millis(self.now.0 - ms.parse::<u64>().expect("ms"));
                for (conn, _) in self.conns_of(port(at)) {
                    self.handle(Input::Left { conn, since });
                }
            }
            ["down", at, why, side @ ..] => {
                let why = if *why == "refused" { Gone::Refused } else { Gone::Other((*why).to_owned()) };
                self.end_conns(port(at), &why, side);
            }
            ["info", at, lines @ ..] => {
                self.infos.insert(port(at), lines.join("\r\n") + "\r\n");
            }
            ["priority", at, number] => {
                self.priorities.insert(port(at), (*number).to_owned());
            }
            ["obeys", at] => drop(self.obedient.insert(port(at))),
            ["replies", at, command] => drop(self.replies.remove(&(port(at), (*command).to_owned()))),
            ["replies", at, command, text @ ..] => {
                self.replies.insert((port(at), (*command).to_owned()), text.join(" "));
            }
            ["vote", at, "granted"] => {
                self.votes.insert(port(at), None);
            }
            ["vote", at, facts @ ..] => {
                let fact = |key: &str| facts.iter().find_map(|fact| fact.strip_prefix(key)?.strip_prefix('='));
                let leader = fact("for").map(|n| run_id(n.parse().expect("a peer's number")));
                let epoch = fact("epoch").map_or(0, |epoch| epoch.parse().expect("an epoch"));
                self.votes.insert(port(at), Some(vote_reply(fact("down") == Some("1"), leader, epoch)));
            }
            ["answer", at] => self.answer(port(at), usize::MAX),
            ["answer", at, most] => self.answer(port(at), most.parse().expect("a number")),
            ["unasked", at] => {
                for (conn, kind) in self.conns_of(port(at)).into_iter().filter(|&(_, kind)| is_meant(kind, &["cmd"])) {
                    self.handle(Input::Reply { conn, kind, reply: Reply::Simple(b"OK".to_vec()) });
                }
            }
            ["question", at, epoch, who] => {
                let (host, port) = addr(at);
                let who = who.parse().ok().map(run_id);
                let answer = self.core.question(self.now, &host, port, epoch.parse().expect("an epoch"), who);
                self.drain();
                let vote = if self.core.save_failing() { answer.vote_if_unsaved } else { answer.vote };
                let leader = vote.leader.map_or("*".to_owned(), |leader| leader.to_string());
                self.say(&format!("answer {} {leader} {}", u8::from(answer.down), vote.epoch));
            }
            ["failover", name, options @ ..] => {
                let coordinated = *options == ["coordinated"];
                let outcome = self.core.force_failover(self.now, name.as_bytes(), coordinated);
                self.drain();
                self.say(&format!("{outcome:?}"));
            }
            ["reset", pattern] => {
                let count = self.core.reset(self.now, pattern.as_bytes());
                self.drain();
                self.say(&format!("{count} matched"));
            }
            ["remove", name] => {
                let outcome = self.core.remove(self.now, name.as_bytes());
                self.drain();
                self.say(&format!("{outcome:?}"));
            }
            ["restart"] => {
                let snapshot = self.core.snapshot();
                self.conns.clear();
                self.in_line.clear();
                self.core = Sentinel::new(identity(), &snapshot, 1, self.now);
                self.drain();
            }
            ["frozen", span] => self.now = self.now + span.parse::<u64>().expect("ms"),
            ["script-starts", pid] => {
                self.handle(Input::ScriptStarted { script: self.scripts[0], pid: pid.parse().expect("a number") });
            }
            ["script-ends", code] => {
                let script = self.scripts.remove(0);
                self.handle(Input::ScriptEnded { script, code: code.parse().ok(), signal: None });
            }
            ["wait", span, rest @ ..] => {
                let ports = |how: &str| -> Vec<u16> {
                    let at = rest.iter().position(|word| *word == how);
                    at.map_or(Vec::new(), |at| rest[at + 1].split(',').map(port).collect())
                };
                self.wait(span.parse().expect("ms"), &ports("answering"), &ports("refusing"));
            }
            ["options", what, word] => {
                let mut options = self.core.options().clone();
                match *what {
                    "resolve-hostnames" => options.resolve_hostnames = *word == "yes",
                    "announce-hostnames" => options.announce_hostnames = *word == "yes",
                    other => panic!("no such option: {other}"),
                }
                self.core.set_options(self.now, options);
                self.drain();
            }
            ["resolved", host, ip] => self.handle(Input::Resolved { host: (*host).into(), ip: ip.parse().ok() }),
            ["addr", name] => {
                let master = self.core.master_by_name(name.as_bytes()).expect("a master of that name");
                let told = self.core.host_text(self.core.current_addr(master));
                let replicas: Vec<String> = master.replicas.values().map(|r| r.node.addr.to_string()).collect();
                let saved = &self.core.snapshot().masters[0];
                let saved = format!("{} {} {:?}", saved.host, saved.port, saved.known_replicas);
                self.say(&format!("told {told}; replicas {}; saved {saved}", replicas.join(" ")));
            }
            ["reports", name] => {
                let master = self.core.master_by_name(name.as_bytes()).expect("a master of that name");
                let told: Vec<String> = self.core.failover_reports(master).map(report).collect();
                self.say(&format!("{} reports", told.len()));
                told.iter().for_each(|text| self.say(text));
            }
            ["known", name] => {
                let master = self.core.master_by_name(name.as_bytes()).expect("a master of that name");
                let peers: Vec<String> = master.peers.values().map(|p| format!("{}@{}", p.run_id, p.addr)).collect();
                let replicas: Vec<String> =
                    master.replicas.values().filter(|r| !r.hidden).map(|r| r.node.addr.to_string()).collect();
                let snapshot = self.core.snapshot();
                let saved = snapshot.masters.iter().find(|saved| saved.name == *name).expect("it is saved");
                let saved_peers: Vec<String> =
                    saved.known_peers.iter().map(|p| format!("{}@{}:{}", p.run_id, p.host, p.port)).collect();
                let saved_replicas: Vec<String> =
                    saved.known_replicas.iter().map(|(host, port)| format!("{host}:{port}")).collect();
                self.say(&format!("sentinels [{}] replicas [{}]", peers.join(" "), replicas.join(" ")));
                self.say(&format!(
                    "saved {} {}: sentinels [{}] replicas [{}]",
                    saved.host,
                    saved.port,
                    saved_peers.join(" "),
                    saved_replicas.join(" ")
                ));
            }
            ["save-fails", word] => self.save_fails = *word == "yes",
            ["we-are", ip] => self.own_ip = ip.parse().expect("an address"),
            ["save-takes", ms] => self.save_takes = ms.parse().expect("ms"),
            ["quiet"] => self.quiet = true,
            other => panic!("not understood: {other:?}"),
        }
    }
}

/// A report with all that is in it; times are from its start, and the life sign from the start, too.
fn report(report: &FailoverReport) -> String {
    let id = |id: Option<RunId>| id.map_or("-".into(), |id| id.to_string());
    let mut text = format!(
        "epoch {} {} {} by {}, {} to {}, alive {}, ended {:?}, votes {}/{}:",
        report.epoch,
        report.trigger.word(),
        report.outcome.word(),
        id(report.leader),
        report.from,
        report.to.as_ref().map_or("-".into(), ToString::to_string),
        report.since_start(report.alive),
        report.ended.map(|at| report.since_start(at)),
        report.votes_got,
        report.votes_needed,
    );
    for vote in &report.votes {
        let answered = vote.answered.map(|at| at.since(vote.asked));
        let _ = write!(text, " {} asked {} {answered:?} {};", vote.peer, report.since_start(vote.asked), id(vote.vote));
    }
    for (replica, why) in &report.refused {
        let _ = write!(text, " refused {replica}: {why};");
    }
    for step in &report.steps {
        let replica = step.replica.as_ref().map_or(String::new(), |replica| format!(" {replica}"));
        let _ = write!(text, " [{}{replica} {}]", step.what, report.since_start(step.at));
    }
    if report.steps_left_out > 0 {
        let _ = write!(text, " and {} steps", report.steps_left_out);
    }
    text
}

/// `$N` stands for the id of peer N.
fn with_ids(text: &str) -> String {
    (1..=9).fold(text.to_owned(), |text, n| text.replace(&format!("${n}"), run_id(n).as_str()))
}

/// `+text` or `-text` as a reply.
/// Without a word both sides are meant.
fn is_meant(kind: ConnKind, side: &[&str]) -> bool {
    match side {
        [] => true,
        ["cmd"] => kind == ConnKind::Command,
        ["pubsub"] => kind == ConnKind::PubSub,
        other => panic!("neither cmd nor pubsub: {other:?}"),
    }
}

fn simple(text: &str) -> Reply {
    match text.split_at(1) {
        ("+", text) => Reply::Simple(text.as_bytes().to_vec()),
        ("-", text) => Reply::Error(text.as_bytes().to_vec()),
        _ => panic!("neither +text nor -text: {text}"),
    }
}

fn vote_reply(down: bool, leader: Option<RunId>, epoch: i64) -> Reply {
    let leader = leader.map_or(b"*".to_vec(), |leader| leader.as_str().as_bytes().to_vec());
    Reply::Array(vec![Reply::Integer(i64::from(down)), Reply::Bulk(leader), Reply::Integer(epoch)])
}

/// Runs one file; returns it with the outputs of today.
fn replay(text: &str) -> String {
    let mut story = Story::new(1);
    let mut result = String::new();
    let mut in_output = false;
    for line in text.lines().chain([""]) {
        if in_output {
            in_output = !line.is_empty();
            if in_output {
                continue;
            }
            result.push('\n');
        } else if line == "----" {
            in_output = true;
            result.push_str("----\n");
            result.push_str(&std::mem::take(&mut story.out));
        } else {
            if !line.is_empty() && !line.starts_with('#') {
                story.line(line);
            }
            result.push_str(line);
            result.push('\n');
        }
    }
    result.trim_end().to_owned() + "\n"
}

#[test]
fn every_story_goes_as_it_is_told() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let rewrite = std::env::var_os("REWRITE").is_some();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("the stories").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let mut differing = Vec::new();
    for file in files {
        let told = std::fs::read_to_string(&file).expect("a story");
        let today = replay(&told);
        assert_eq!(today, replay(&told), "{}: the same story went two ways", file.display());
        if rewrite {
            std::fs::write(&file, &today).expect("rewritten");
        } else if today != told {
            let line = told.lines().zip(today.lines()).position(|(a, b)| a != b).unwrap_or(0);
            differing.push(format!(
                "{}:{}: told\n  {}\ntoday\n  {}",
                file.display(),
                line + 1,
                told.lines().nth(line).unwrap_or(""),
                today.lines().nth(line).unwrap_or("")
            ));
        }
    }
    assert!(differing.is_empty(), "{}\n(REWRITE=1 takes today's)", differing.join("\n"));
}
