//! kill -9 of a Sentinel at any moment of a failover: it starts again, and takes back nothing of what it told others.
//!
//! `KILLS=100` is the long form; `SEED=` replays the same moments (as far as a real machine lets them be the same).

mod live;
mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use live::watch::Watch;
use live::{Epochs, LIMIT, wait_settled};
use support::group::Group;
use support::process::wait_for;
use watchfire::base::Random;

/// How long after the start of a failover the kill may come, ms: until the promotion, or until its last replica follows.
const DECISION: u64 = 50;
const WHOLE: u64 = 800;
const DOWN_AFTER: u64 = 1_000;

#[test]
fn a_sentinel_killed_in_the_middle_of_a_failover_takes_nothing_back() {
    let Some(plan) = live::plan(3) else { return };
    let kills = live::env("KILLS", 10);
    let seed = u64::try_from(live::env("SEED", std::process::id() as usize)).expect("a seed of 64 bits");
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
