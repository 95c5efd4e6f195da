//! Coordinated failovers of real servers under a client that writes all the time.

mod live;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use live::{LIMIT, assert_one_switch, count, events, hurry, wait_settled};
use support::conn::{Conn, text};
use support::group::Group;
use support::process::{info_of, wait_for};
use watchfire::resp::Reply;

/// Writes one key after the other, wherever the Sentinels say that the master is, and remembers which were acknowledged.
struct Writer {
    acknowledged: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Written>>,
}

/// What a writer has come to.
struct Written {
    acknowledged: Vec<u64>,
    /// Between two acknowledged writes.
    longest_gap: Duration,
}

impl Writer {
    fn start(group: &Group) -> Writer {
        let (acknowledged, over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (count, end) = (Arc::clone(&acknowledged), Arc::clone(&over));
        let (sentinel, name) = (group.sentinels[0].port, group.name.clone());
        let thread = std::thread::spawn(move || {
            let mut written = Written { acknowledged: Vec::new(), longest_gap: Duration::ZERO };
            let (mut number, mut last) = (0, Instant::now());
            while !end.load(Ordering::Relaxed) {
                let master = support::conn::ask(sentinel, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &name]);
                let master = master.and_then(|reply| support::conn::texts(&reply).get(1)?.parse().ok());
                let Some(mut conn) = master.and_then(|port: u16| Conn::open(port).ok()) else { continue };
                conn.set_patience(Some(LIMIT));
                loop {
                    number += 1;
                    match conn.try_cmd(&["SET", &format!("n:{number}"), "written"]) {
                        Ok(Reply::Simple(_)) => written.acknowledged.push(number),
                        // It may have been written or not; nobody was told.
                        _ => break,
                    }
                    written.longest_gap = written.longest_gap.max(last.elapsed());
                    last = Instant::now();
                    count.fetch_add(1, Ordering::Relaxed);
                    if end.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }
            written
        });
        Writer { acknowledged, over, thread: Some(thread) }
    }

    /// Waits until so many more writes were acknowledged.
    fn wait(&self, more: u64) {
        let before = self.acknowledged.load(Ordering::Relaxed);
        wait_for(LIMIT, "more writes", || self.acknowledged.load(Ordering::Relaxed) >= before + more);
    }

    fn stop(mut self) -> Written {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().expect("it was started").join().expect("it ends well")
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// This server has all that was acknowledged.
fn assert_kept(port: u16, written: &Written) {
    let mut conn = Conn::to(port);
    let is_lost = |number: &&u64| conn.cmd(&["EXISTS", &format!("n:{number}")]) == Reply::Integer(0);
    let lost: Vec<u64> = written.acknowledged.iter().filter(is_lost).copied().collect();
    assert!(lost.is_empty(), "{} of {} acknowledged writes are lost", lost.len(), written.acknowledged.len());
    println!("{} writes, the longest gap was {:?}", written.acknowledged.len(), written.longest_gap);
}

fn hand_over(group: &Group, place: usize) {
    let reply = group.sentinels[place].conn().cmd(&["SENTINEL", "FAILOVER", &group.name, "COORDINATED"]);
    assert_eq!(text(&reply), "OK");
}

fn start() -> Option<Group> {
    let group = live::start(live::plan(3)?.failover_timeout(3_000));
    group.sentinels.iter().for_each(hurry);
    // The first replica is the one to be chosen, and the master when it is one.
    for &port in &group.ports[..2] {
        let prefer = Conn::to(port).cmd(&["CONFIG", "SET", "replica-priority", "1"]);
        assert_eq!(text(&prefer), "OK");
    }
    wait_for(LIMIT, "its priority to be known", || {
        group.sentinels.iter().all(|sentinel| {
            let replicas = support::conn::ask(sentinel.port, &["SENTINEL", "REPLICAS", &group.name]);
            let replicas = replicas.map(|reply| support::conn::maps(&reply)).unwrap_or_default();
            replicas.iter().any(|replica| replica["slave-priority"] == "1")
        })
    });
    Some(group)
}

/// How often any of the servers had to copy another one's data.
fn copies(group: &Group) -> u64 {
    group.ports.iter().map(|&port| info_of(port)["sync_full"].parse::<u64>().expect("a number")).sum()
}

#[test]
fn r57_no_acknowledged_write_is_lost_when_the_master_hands_over() {
    let _turn = live::turn();
    let Some(group) = start() else { return };
    let writer = Writer::start(&group);
    let mut old = group.ports[0];
    let before = copies(&group);
    for place in [0, 1, 2] {
        writer.wait(500);
        let heard = events(&group);
        hand_over(&group, place);
        let new = group.wait_switched(LIMIT, old);
        wait_settled(&group, new);
        assert_one_switch(&heard, &group.name, old, new);
        assert_eq!(count(&heard[place], "+failover-end", ""), 1);
        old = new;
    }
    writer.wait(500);
    assert_kept(old, &writer.stop());
    // Who hands over waits for the other, so both go on from the same place.
    assert_eq!(copies(&group), before);
}

/// Has the master hand over to a replica that hangs as soon as it is chosen; which they are. Under a writer the master waits for
/// its word for up to a second; where it has come before we were there, the two have changed places, and it is tried again.
fn hand_over_and_hang(group: &mut Group) -> (u16, u16) {
    let (mut master, mut chosen) = (group.ports[0], group.ports[1]);
    for _ in 0..10 {
        let heard = events(group);
        hand_over(group, 0);
        let _ = heard[0].expect(LIMIT, "+failover-state-wait-promotion", &format!(" {chosen} "));
        group.hang(chosen);
        let info = info_of(master);
        let says = |key: &str, value: &str| info.get(key).is_some_and(|found| found == value);
        if says("role", "master") && says("master_failover_state", "waiting-for-sync") {
            return (master, chosen);
        }
        group.resume(chosen);
        assert_eq!(group.wait_switched(LIMIT, master), chosen);
        wait_settled(group, chosen);
        (master, chosen) = (chosen, master);
    }
    panic!("each time the replica was quicker than we");
}

#[test]
fn r57_a_replica_that_hangs_is_passed_over() {
    let _turn = live::turn();
    let Some(mut group) = start() else { return };
    let writer = Writer::start(&group);
    let (master, preferred, other) = (group.ports[0], group.ports[1], group.ports[2]);
    writer.wait(100);
    group.hang(preferred);
    writer.wait(100);
    // On a busy machine the other one may be late as well, and then nobody is chosen.
    let sentinel = group.sentinels[0].port;
    wait_for(LIMIT, "it to hand over", || {
        let told = support::conn::ask(sentinel, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &group.name]);
        let told = told.map(|reply| support::conn::texts(&reply)).unwrap_or_default();
        if told.get(1).is_some_and(|port| *port != master.to_string()) {
            return true;
        }
        let _ = support::conn::ask(sentinel, &["SENTINEL", "FAILOVER", &group.name, "COORDINATED"]);
        false
    });
    assert_eq!(group.wait_switched(LIMIT, master), other);
    writer.wait(100);
    group.resume(preferred);
    wait_settled(&group, other);
    assert_kept(other, &writer.stop());
}

#[test]
fn r57_a_replica_that_hangs_once_it_is_chosen_is_not_waited_for_for_ever() {
    let _turn = live::turn();
    let Some(mut group) = start() else { return };
    let writer = Writer::start(&group);
    writer.wait(100);
    let (master, chosen) = hand_over_and_hang(&mut group);
    let heard = events(&group);
    let _ = heard[0].expect(LIMIT, "-failover-abort-slave-timeout", "");
    // The master takes writes again, and remains what it is.
    writer.wait(100);
    group.resume(chosen);
    wait_settled(&group, master);
    writer.wait(100);
    assert_kept(master, &writer.stop());
    assert_eq!(heard.iter().map(|heard| count(heard, "+switch-master", "")).sum::<usize>(), 0);
}

#[test]
fn r57_a_master_that_dies_while_it_hands_over_is_replaced_by_another() {
    let _turn = live::turn();
    let Some(mut group) = start() else { return };
    let other = group.ports[2];
    let writer = Writer::start(&group);
    writer.wait(100);
    let (master, chosen) = hand_over_and_hang(&mut group);
    group.kill(master);
    assert_eq!(group.wait_switched(LIMIT, master), other);
    writer.wait(100);
    drop(writer);
    group.resume(chosen);
    group.restart(master);
    wait_settled(&group, other);
}
