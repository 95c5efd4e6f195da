//! Networks that fail: every server and Sentinel on a host of its own, and between them a switch that cuts, delays and
//! loses packets. While a fault lasts the majority goes on; when it is over all agree on one master with all others
//! behind it; and at no time are there two masters for one config epoch.
//!
//! `HURRY=0` leaves the Sentinels their own periods; then the times in the table are those of the field.

mod live;
mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use live::watch::Watch;
use live::{LIMIT, count, events};
use support::group::{Group, Plan, Servers};
use support::namespace::enter_hosts;
use support::network::{Network, command};
use support::ports;
use support::process::{Redis, Sentinel, present, wait_for};

const SENTINELS: usize = 3;
const SERVERS: usize = 3;
const DOWN_AFTER: u64 = 1_000;
/// What every packet of a bad network takes, and how many of a hundred it loses.
const SLOW: Duration = Duration::from_millis(200);
const LOSS: u64 = 10;
/// How many packets a bad network has to lose before it is said to have been bad.
const LOSSES: u64 = 400;

fn host(sentinel: &Sentinel) -> std::net::Ipv4Addr {
    ports::host(sentinel.port)
}

/// Waits until these Sentinels agree on another master than `old`, one that takes writes.
fn wait_replaced(group: &Group, sentinels: &[Sentinel], old: u16) {
    wait_for(LIMIT, "a majority to replace the master", || {
        group.agreed_by(sentinels).is_some_and(|new| new != old && Group::is_writable(new))
    });
}

/// One master for all Sentinels, all others its replicas, and nobody held down.
fn is_settled(group: &Group) -> bool {
    group.agreed().is_some_and(|master| {
        Group::role(master).as_deref() == Some("master")
            && group.ports.iter().all(|&port| port == master || Group::follows(port) == Some(master))
            && Group::is_writable(master)
            && group.is_known()
    })
}

/// A fault and what has to come of it while it lasts. `master` is the present master, and the Sentinels know it.
struct Fault {
    name: &'static str,
    happen: fn(&Network, &Group, u16),
    /// Whether a healthy rest has to replace the master. None: that depends on which packets are lost.
    replaced: Option<bool>,
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "the master alone",
        happen: |network, group, master| {
            network.isolate(&[ports::host(master)]);
            wait_replaced(group, &group.sentinels, master);
        },
        replaced: Some(true),
    },
    Fault {
        name: "the master and one Sentinel",
        happen: |network, group, master| {
            network.isolate(&[ports::host(master), host(&group.sentinels[0])]);
            wait_replaced(group, &group.sentinels[1..], master);
            // It cannot know, and cannot do anything.
            assert_eq!(group.agreed_by(&group.sentinels[..1]), Some(master));
        },
        replaced: Some(true),
    },
    Fault {
        name: "one Sentinel alone",
        happen: |network, group, _| {
            let events = events(group);
            network.isolate(&[host(&group.sentinels[0])]);
            let _ = events[0].expect(LIMIT, "+sdown", "master mymaster ");
            for events in &events[1..] {
                let _ = events.expect(LIMIT, "+sdown", "sentinel ");
            }
            wait_for(LIMIT, "the lonely Sentinel to hold its peers down", || {
                count(&events[0], "+sdown", "sentinel ") == 2
            });
            assert_eq!(count(&events[0], "+odown", ""), 0, "it counts itself only");
        },
        replaced: Some(false),
    },
    Fault {
        name: "from the master to two Sentinels",
        happen: |network, group, master| {
            network.cut_one_way(&[ports::host(master)], &[host(&group.sentinels[1]), host(&group.sentinels[2])]);
            wait_replaced(group, &group.sentinels, master);
        },
        replaced: Some(true),
    },
    Fault {
        name: "from one Sentinel to all others",
        happen: |network, group, _| {
            let (lost, lonely) = (network.lost(), host(&group.sentinels[0]));
            let events = events(group);
            network.cut_one_way(&[lonely], &network.hosts);
            for events in &events[1..] {
                let _ = events.expect(LIMIT, "+sdown", "sentinel ");
            }
            assert!(network.lost() > lost);
        },
        replaced: Some(false),
    },
    Fault {
        name: "200 ms and 10 % loss, everywhere",
        happen: |network, group, master| {
            let lost = network.lost();
            network.slow(SLOW, LOSS);
            // There and back for the connection, and once more for the answer.
            let (from, begin) = (host(&group.sentinels[0]), Instant::now());
            let mut client = command(from, Path::new("redis-cli"));
            client.args(["-h", &ports::host(master).to_string(), "-p", &master.to_string(), "PING"]);
            let answer = client.output().expect("redis-cli runs").stdout;
            assert_eq!(String::from_utf8_lossy(&answer).trim(), "PONG");
            assert!(begin.elapsed() >= SLOW * 4, "answered after {:?}", begin.elapsed());
            wait_for(LIMIT, "packets to be lost", || network.lost() >= lost + LOSSES);
        },
        replaced: None,
    },
    Fault {
        name: "the same, and the master alone",
        happen: |network, group, master| {
            network.slow(SLOW, LOSS);
            network.isolate(&[ports::host(master)]);
            wait_replaced(group, &group.sentinels, master);
        },
        replaced: Some(true),
    },
];

#[test]
fn after_every_fault_of_a_network_all_agree_on_one_master() {
    let _turn = live::turn();
    if !enter_hosts("after_every_fault_of_a_network_all_agree_on_one_master") {
        return;
    }
    let Some(redis) = present(Redis::program(), "redis-server") else { return };
    let seed = u64::try_from(live::env("SEED", std::process::id() as usize)).expect("a seed of 64 bits");
    let network = Network::of((SERVERS + SENTINELS) as u8, seed);
    let plan = Plan::new(vec![live::watchfire(); SENTINELS]).servers(Servers::Real(redis)).hosts(&network.hosts);
    let group = live::start(plan.down_after(DOWN_AFTER).failover_timeout(5_000));
    if live::env("HURRY", 1) > 0 {
        group.sentinels.iter().for_each(live::hurry);
    }
    let watch = Watch::over(&group);
    println!("SEED={seed}\n| {:<34} | master | agreed after healing | violations |", "fault");
    for fault in FAULTS {
        wait_for(LIMIT, "a group in order", || is_settled(&group));
        let old = group.agreed().expect("they agree");
        (fault.happen)(&network, &group, old);
        network.heal();
        let healed = Instant::now();
        wait_for(LIMIT, &format!("all to agree after: {}", fault.name), || is_settled(&group));
        let (new, took) = (group.agreed().expect("they agree"), healed.elapsed());
        let master = if new == old { "kept" } else { "other" };
        println!("| {:<34} | {master:<6} | {:>17.1} s | {:>10} |", fault.name, took.as_secs_f64(), watch.faults());
        watch.check();
        assert!(fault.replaced.is_none_or(|replaced| replaced == (new != old)), "{}: {old} became {new}", fault.name);
    }
}
