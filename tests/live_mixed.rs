//! Groups of several kinds: watchfire, redis-sentinel (Debian's 7.0 and Redis 8.2) and Valkey's Sentinel watch the same
//! servers and agree, watchfire reads the file of any other and any other reads watchfire's.
//!
//! `ROUNDS=20` is the long form.

mod live;
mod support;

use std::collections::BTreeMap;

use live::{Epochs, LIMIT, assert_one_switch, count, events, hurry, wait_settled};
use support::conn::text;
use support::group::Group;
use support::process::{Program, Sentinel, present, wait_for};

/// What a round does to the group.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The master is killed; whoever is first leads.
    Kill,
    /// The master stops.
    Hang,
    /// The Sentinel at this place is killed together with the master, so that the others lead.
    Node(usize),
    /// An operator asks the Sentinel at this place.
    Operator(usize),
    /// As well, for a coordinated failover; of those that know it.
    HandOver(usize),
}

/// Not shorter: the other kinds redial at most once a second, also the new master's link after a switch, and would take
/// that one for down at once when the switch comes soon after their last try to reach the old one.
const DOWN_AFTER: u64 = 2_500;

/// The places of the kinds in the group.
const WATCHFIRE: usize = 0;
const REDIS: usize = 1;
const VALKEY: usize = 2;
const REDIS8: usize = 3;
/// Six rounds, and each kind has led (in the first one anybody may).
const STORY: [Fault; 6] = [
    Fault::Kill,
    Fault::Operator(REDIS),
    Fault::HandOver(VALKEY),
    Fault::Operator(REDIS8),
    Fault::Node(WATCHFIRE),
    Fault::HandOver(WATCHFIRE),
];
/// And what comes after these.
const LONG_STORY: [Fault; 10] = [
    Fault::Kill,
    Fault::Node(REDIS),
    Fault::Hang,
    Fault::Node(VALKEY),
    Fault::Node(REDIS8),
    Fault::Operator(REDIS),
    Fault::Node(WATCHFIRE),
    Fault::Kill,
    Fault::Operator(VALKEY),
    Fault::Operator(WATCHFIRE),
];

/// What an operator may have written besides; every kind writes some of it in words of its own.
const OWN_LINES: [&str; 6] = [
    "user watcher on >s3cret# ~* &* -@all +ping +sentinel|myid",
    "acllog-max-len 64",
    "client-output-buffer-limit pubsub 16mb 4mb 30",
    "sentinel notification-script mymaster /bin/true",
    "sentinel master-reboot-down-after-period mymaster 60000",
    "sentinel rename-command mymaster SCRIPT script",
];

fn kinds() -> Option<[Program; 4]> {
    let redis = present(Program::redis_sentinel(), "redis-sentinel")?;
    Some([live::watchfire(), redis, live::valkey_sentinel()?, live::redis8_sentinel()?])
}

#[test]
fn four_kinds_agree_on_every_failover_and_read_each_others_files() {
    let (Some(kinds), Some(plan)) = (kinds(), live::plan(4)) else { return };
    let _turn = live::turn();
    let mut plan = plan.down_after(DOWN_AFTER).failover_timeout(3_000);
    plan.lines.extend(OWN_LINES.map(str::to_string));
    plan.sentinels = kinds.to_vec();
    let mut group = live::start(plan);
    group.sentinels.iter().for_each(hurry);
    let mut led: BTreeMap<&str, usize> = kinds.iter().map(|kind| (kind.name.as_str(), 0)).collect();
    let mut old = group.ports[0];
    let rounds = live::env("ROUNDS", STORY.len());
    for (round, fault) in STORY.into_iter().chain(LONG_STORY.into_iter().cycle()).take(rounds).enumerate() {
        let (new, leader) = fail_over(&mut group, fault, old);
        *led.get_mut(kinds[leader].name.as_str()).expect("one of the four") += 1;
        println!("round {round}: {fault:?}: {old} -> {new}, led by {}", kinds[leader].name);
        old = new;
    }
    println!("{rounds} failovers, led by {led:?}");
    assert!(rounds < STORY.len() || led.values().all(|&count| count > 0), "{led:?}");

    every_file_loads(group, &kinds, old);
}

/// One failover; returns the new master and the place of the Sentinel that led.
fn fail_over(group: &mut Group, fault: Fault, old: u16) -> (u16, usize) {
    let all = events(group);
    let mut lost = None;
    match fault {
        Fault::Kill => group.kill(old),
        Fault::Hang => group.hang(old),
        Fault::Node(place) => {
            let mut sentinel = group.sentinels.remove(place);
            sentinel.kill();
            group.kill(old);
            lost = Some((place, sentinel));
        }
        Fault::Operator(place) => {
            let reply = group.sentinels[place].conn().cmd(&["SENTINEL", "FAILOVER", &group.name]);
            assert_eq!(text(&reply), "OK", "{fault:?}");
        }
        Fault::HandOver(place) => {
            let reply = group.sentinels[place].conn().cmd(&["SENTINEL", "FAILOVER", &group.name, "COORDINATED"]);
            assert_eq!(text(&reply), "OK", "{fault:?}");
        }
    }
    let new = group.wait_switched(LIMIT, old);
    if let Some((place, mut sentinel)) = lost {
        sentinel.restart();
        hurry(&sentinel);
        group.sentinels.insert(place, sentinel);
    }
    match fault {
        Fault::Hang => group.resume(old),
        Fault::Kill | Fault::Node(_) => group.restart(old),
        Fault::Operator(_) | Fault::HandOver(_) => {}
    }
    wait_settled(group, new);
    let told = |place: usize| !matches!(fault, Fault::Node(lost) if lost == place);
    let witnesses: Vec<usize> = (0..all.len()).filter(|&place| told(place)).collect();
    let mut leaders = Vec::new();
    for (place, events) in all.into_iter().enumerate() {
        if !witnesses.contains(&place) {
            continue;
        }
        // A try that was not elected can come before the one that was; two that end would be two leaders.
        if count(&events, "+promoted-slave", "") > 0 {
            leaders.push(place);
        }
        assert_one_switch(&[events], &group.name, old, new);
    }
    assert_eq!(leaders.len(), 1, "{fault:?}: {old} -> {new} was led by the Sentinels at {leaders:?}");
    let epochs: Vec<Epochs> =
        group.sentinels.iter().map(|sentinel| Epochs::of(&sentinel.conf(), &group.name)).collect();
    assert!(epochs.iter().all(|other| other.config == epochs[0].config && other.config > 0), "{epochs:?}");
    (new, leaders[0])
}

/// Every Sentinel starts again with its own file, watchfire can take over the file of every other, and every other what
/// watchfire has made of it.
fn every_file_loads(mut group: Group, kinds: &[Program], master: u16) {
    for sentinel in &mut group.sentinels {
        sentinel.process().terminate(LIMIT);
        sentinel.restart();
    }
    group.sentinels.iter().for_each(hurry);
    wait_settled(&group, master);

    // One at a time and without the first ones: a copy has the run id of its original.
    let files: Vec<(String, String)> = group.sentinels.iter().map(|s| (s.conf(), s.id())).collect();
    let peers = files.len() - 1;
    let originals: Vec<Sentinel> = group.sentinels.drain(..).collect();
    for mut original in originals {
        original.process().terminate(LIMIT);
    }
    for (writer, (file, id)) in kinds.iter().zip(&files) {
        let wanted = Wanted { id, name: &group.name, master, peers, epochs: Epochs::of(file, &group.name) };
        let what = format!("watchfire with the file of {}", writer.name);
        let rewritten = take_over(&what, &kinds[WATCHFIRE], file, &wanted);
        for kind in kinds {
            let what = format!("{} with what watchfire made of the file of {}", kind.name, writer.name);
            let _ = take_over(&what, kind, &rewritten, &wanted);
        }
    }
}

/// What a file holds.
struct Wanted<'a> {
    id: &'a str,
    name: &'a str,
    master: u16,
    peers: usize,
    epochs: Epochs,
}

/// Starts a Sentinel of this kind with that file, and returns what it has made of it.
fn take_over(what: &str, kind: &Program, file: &str, wanted: &Wanted) -> String {
    // Its place in the world is the only thing that changes.
    let moved = |line: &&str| {
        let name = line.split(' ').next().unwrap_or_default().to_lowercase();
        !["port", "bind", "dir", "pidfile", "logfile"].contains(&name.as_str())
    };
    let lines: Vec<String> = file.lines().filter(moved).map(str::to_string).collect();
    let mut heir = Sentinel::start(kind, &lines);
    assert_eq!(heir.id(), *wanted.id, "{what}");
    assert_eq!(heir.master_port(wanted.name), Some(wanted.master), "{what}");
    let field = |heir: &Sentinel, field: &str| live::master_field(heir, wanted.name, field);
    assert_eq!(field(&heir, "num-slaves"), "2", "{what}");
    assert_eq!(field(&heir, "num-other-sentinels"), wanted.peers.to_string(), "{what}");
    assert_eq!(field(&heir, "failover-timeout"), "3000", "{what}");
    assert_eq!(field(&heir, "config-epoch"), wanted.epochs.config.to_string(), "{what}");
    assert_eq!(field(&heir, "notification-script"), "/bin/true", "{what}");
    let mut watcher = heir.conn();
    assert_eq!(text(&watcher.cmd(&["AUTH", "watcher", "s3cret#"])), "OK", "{what}");
    assert!(text(&watcher.cmd(&["SENTINEL", "MASTERS"])).starts_with("NOPERM"), "{what}");
    assert_eq!(text(&watcher.cmd(&["SENTINEL", "MYID"])), *wanted.id, "{what}");
    wait_for(LIMIT, &format!("{what}: the master to be well"), || field(&heir, "flags") == "master");
    assert_eq!(text(&heir.conn().cmd(&["SENTINEL", "FLUSHCONFIG"])), "OK", "{what}");
    heir.process().terminate(LIMIT);
    // And what it has made of the file still holds the same.
    let rewritten = heir.conf();
    assert_eq!(Epochs::of(&rewritten, wanted.name), wanted.epochs, "{what}");
    println!("{what}: loaded");
    rewritten
}

/// Five Sentinels of three kinds, quorum three: the majority of one kind is not needed, and not enough.
#[test]
fn two_and_two_and_one_replace_a_killed_master() {
    let (Some([watchfire, redis, valkey, _]), Some(plan)) = (kinds(), live::plan(5)) else { return };
    let _turn = live::turn();
    let mut plan = plan.down_after(DOWN_AFTER).failover_timeout(3_000);
    plan.sentinels = vec![watchfire.clone(), redis.clone(), valkey, watchfire, redis];
    let mut group = live::start(plan);
    group.sentinels.iter().for_each(hurry);
    let old = group.ports[0];
    let (new, _) = fail_over(&mut group, Fault::Kill, old);
    let _ = fail_over(&mut group, Fault::Node(4), new);
}
