//! kill -9 of a Sentinel at any moment, of a failover or of a rush of votes: it starts again, and takes back nothing of
//! what it told others.
//!
//! `KILLS=1000` is the long form; `SEED=` replays the same moments (as far as a real machine lets them be the same).

mod live;
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use live::watch::Watch;
use live::{Epochs, LIMIT, wait_settled};
use support::conn::{Conn, items, text};
use support::group::Group;
use support::process::{Sentinel, wait_for};
use support::standin::{Spec, StandIn};
use watchfire::base::Random;
use watchfire::resp::Reply;

/// How long after the start of a failover the kill may come, ms: until the promotion, or until its last replica follows.
const DECISION: u64 = 50;
const WHOLE: u64 = 800;
const DOWN_AFTER: u64 = 1_000;

fn seed() -> u64 {
    u64::try_from(live::env("SEED", std::process::id() as usize)).expect("a seed of 64 bits")
}

#[test]
fn a_sentinel_killed_in_the_middle_of_a_failover_takes_nothing_back() {
    let Some(plan) = live::plan(3) else { return };
    let kills = live::env("KILLS", 10);
    let seed = seed();
    println!("SEED={seed} KILLS={kills}");
    let _turn = live::turn();
    let mut group = live::start(plan.down_after(DOWN_AFTER).failover_timeout(2_000));
    group.sentinels.iter().for_each(live::hurry);
    let watch = Watch::over(&group);
    let mut files: BTreeMap<u16, Epochs> = BTreeMap::new();
    let mut random = Random::seeded(seed);
    let mut unsettled = 0;
    for round in 0..kills {
        let master = group.agreed().expect("they agree between two rounds");
        // An operator (at the victim or beside it), or the end of the master. The first few ms decide the most.
        let (victim, by_operator, by) = (random.below(3) as usize, random.below(3) > 0, random.below(3) as usize);
        let window = if random.below(2) == 0 { DECISION } else { WHOLE };
        let delay = random.below(window) + if by_operator { 0 } else { DOWN_AFTER - 20 };
        let port = group.sentinels[victim].port;
        let epochs = watch.addresses().len();
        if by_operator {
            let operator = &group.sentinels[by];
            // Refused when the round before has left something to do; the kill is as good then.
            let _ = support::conn::ask(operator.port, &["SENTINEL", "FAILOVER", "mymaster"]);
        } else {
            group.kill(master);
        }
        std::thread::sleep(Duration::from_millis(delay));
        let sentinel = &mut group.sentinels[victim];
        sentinel.kill();

        let told = watch.last_words(port);
        let file = Epochs::of(&sentinel.conf(), "mymaster");
        let story = format!(
            "kill {round} (SEED={seed}): {port}, {delay} ms after {}",
            if by_operator { "SENTINEL FAILOVER" } else { "the end of the master" }
        );
        if let Some(back) = file.back_from(&told) {
            panic!("{story}: {back}: its file has less than it told\n{}\n{}", sentinel.conf(), sentinel.log());
        }
        if let Some(back) = file.back_from(files.get(&port).unwrap_or(&Epochs::default())) {
            panic!("{story}: {back}: its file has less than before\n{}", sentinel.log());
        }
        files.insert(port, file);
        sentinel.restart();
        live::hurry(&group.sentinels[victim]);
        // What it starts with is what it had.
        let config: u64 =
            live::master_field(&group.sentinels[victim], "mymaster", "config-epoch").parse().expect("a config epoch");
        assert!(config >= file.config, "{story}: started with config epoch {config}, its file had {}", file.config);
        watch.check();

        if !by_operator {
            wait_for(LIMIT, &format!("another master, {story}"), || group.agreed().is_some_and(|port| port != master));
            group.restart(master);
        }
        settle(&group, &story);
        watch.check();
        unsettled += usize::from(watch.addresses().len() == epochs);
        for sentinel in &group.sentinels {
            let now = Epochs::of(&sentinel.conf(), "mymaster");
            let before = files.insert(sentinel.port, now).unwrap_or_default();
            if let Some(back) = now.back_from(&before) {
                panic!("{story}: {back} in the file of {}\n{}", sentinel.port, sentinel.log());
            }
        }
        println!("{story}: {file:?}");
    }
    let switches = watch.addresses().len();
    println!("{kills} kills, {switches} config epochs told, {unsettled} failovers that came to nothing");
    assert!(switches > kills / 3, "too few failovers ({switches}) for {kills} kills to be in the middle of one");
}

/// One master, all Sentinels for it, all others its replicas.
fn settle(group: &Group, story: &str) {
    let mut agreed = None;
    wait_for(LIMIT, &format!("everybody to agree, {story}"), || {
        agreed = group.agreed().filter(|&port| Group::role(port).as_deref() == Some("master"));
        agreed.is_some() && group.is_known()
    });
    wait_settled(group, agreed.expect("they agree"));
}

/// Clients that ask for votes at the same time, and the longest that they may before the end.
const VOTERS: u64 = 6;
const RUSH_MS: u64 = 60;

/// Asks for votes in epochs that nobody has asked for, as long as it is answered. Returns the votes that it was told.
fn voter(port: u16, master: u16, candidate: &str, epochs: &AtomicU64) -> BTreeMap<u64, String> {
    let mut votes = BTreeMap::new();
    let Ok(mut conn) = Conn::open(port) else { return votes };
    let master = master.to_string();
    loop {
        let epoch = epochs.fetch_add(1, Ordering::Relaxed).to_string();
        let question = ["SENTINEL", "IS-MASTER-DOWN-BY-ADDR", "127.0.0.1", &master, &epoch, candidate];
        let Ok(answer) = conn.try_cmd(&question) else { return votes };
        let [_, leader, Reply::Integer(epoch)] = items(&answer) else { panic!("no vote: {answer:?}") };
        votes.insert(u64::try_from(*epoch).expect("an epoch"), text(leader));
    }
}

/// Sets the quorum to one number after the other, as long as it is answered. Returns the last that was taken.
fn setter(port: u16, from: u64) -> u64 {
    let mut quorum = from;
    let Ok(mut conn) = Conn::open(port) else { return quorum };
    while let Ok(answer) = conn.try_cmd(&["SENTINEL", "SET", "mymaster", "quorum", &(quorum + 1).to_string()]) {
        assert_eq!(text(&answer), "OK");
        quorum += 1;
    }
    quorum
}

#[test]
fn a_sentinel_killed_in_a_rush_of_votes_starts_with_every_one_that_it_told() {
    let kills = live::env("KILLS", 40);
    let seed = seed();
    println!("SEED={seed} KILLS={kills}");
    let _turn = live::turn();
    let standin = StandIn::start();
    let master = standin.server(Spec::master()).port;
    let mut sentinel =
        Sentinel::start(&live::watchfire(), &[format!("sentinel monitor mymaster 127.0.0.1 {master} 1")]);
    let port = sentinel.port;
    let mut random = Random::seeded(seed);
    let epochs = Arc::new(AtomicU64::new(1));
    let (mut votes, mut quorum) = (BTreeMap::new(), 1);
    for round in 0..kills {
        let voters: Vec<_> = (0..VOTERS)
            .map(|number| {
                let epochs = Arc::clone(&epochs);
                std::thread::spawn(move || voter(port, master, &format!("{number:040x}"), &epochs))
            })
            .collect();
        let operator = std::thread::spawn(move || setter(port, quorum));
        std::thread::sleep(Duration::from_millis(random.below(RUSH_MS)));
        sentinel.kill();
        let before = votes.len();
        for voter in voters {
            for (epoch, leader) in voter.join().expect("a voter") {
                let known = votes.entry(epoch).or_insert_with(|| leader.clone());
                assert_eq!(*known, leader, "kill {round}: two votes in epoch {epoch}");
            }
        }
        quorum = operator.join().expect("an operator");
        let told = votes.last_key_value().map_or(0, |(epoch, _)| *epoch);
        let file = Epochs::of(&sentinel.conf(), "mymaster");
        assert!(file.leader >= told, "kill {round}: it told a vote in epoch {told}, its file has {}", file.leader);
        assert!(file.current >= file.leader, "kill {round}: {file:?}");

        sentinel.restart();
        // A second vote in that epoch, for somebody else, is what a voter must never give.
        let (master, epoch, other) = (master.to_string(), told.to_string(), format!("{:040x}", VOTERS + 1));
        let question = ["SENTINEL", "IS-MASTER-DOWN-BY-ADDR", "127.0.0.1", &master, &epoch, &other];
        let answer = sentinel.conn().cmd(&question);
        let [_, leader, _] = items(&answer) else { panic!("no vote: {answer:?}") };
        assert!(told == 0 || text(leader) != other, "kill {round}: a second vote in epoch {told}");
        // What an operator was told is taken is there; one more may be, whose answer the kill has cut off.
        let kept: u64 = live::master_field(&sentinel, "mymaster", "quorum").parse().expect("a quorum");
        assert!(kept == quorum || kept == quorum + 1, "kill {round}: quorum {kept} after {quorum} was taken");
        quorum = kept;
        println!("kill {round}: {} votes told, the last in epoch {told}; {file:?}", votes.len() - before);
    }
    println!("{kills} kills, {} votes told, {quorum} settings", votes.len());
    assert!(votes.len() > kills, "too few votes ({}) for {kills} kills to be among them", votes.len());
}
