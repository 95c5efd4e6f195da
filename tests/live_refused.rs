//! `down-after-refused` with real servers: a master whose process is gone is replaced at once, one that hangs or cannot be
//! reached only after down-after.

mod live;
mod support;

use std::time::{Duration, Instant};

use live::{LIMIT, assert_one_switch, assert_order, events, wait_settled};
use support::conn::text;
use support::namespace::{enter_network, set_reachable};
use support::process::{Redis, Sentinel, present};

const REFUSED: &str = "sentinel down-after-refused mymaster 200";
/// What silence is allowed where it must be told from a refusal, ms.
const SILENCE: u64 = 3_000;

#[test]
fn a_killed_master_is_replaced_long_before_down_after_and_returns_as_a_replica() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan.down_after(LIMIT.as_secs() * 2_000).line(REFUSED));
    let events = events(&group);
    let old = group.ports[0];
    group.kill(old);
    // Silence alone would take twice as long as this waits.
    let new = group.wait_switched(LIMIT, old);
    let leader = live::leader(&events, &group.name).expect("somebody led");
    let of_old = format!("master mymaster 127.0.0.1 {old}");
    assert_order(
        &events[leader],
        &[
            ("+sdown", &of_old),
            ("+odown", &of_old),
            ("+try-failover", &of_old),
            ("+elected-leader", &of_old),
            ("+promoted-slave", &format!("slave 127.0.0.1:{new}")),
            ("+switch-master", &format!("mymaster 127.0.0.1 {old}")),
        ],
    );
    group.restart(old);
    wait_settled(&group, new);
    assert_one_switch(&events, &group.name, old, new);
}

#[test]
fn a_master_that_restarts_in_time_stays_master() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan.down_after(60_000).line("sentinel down-after-refused mymaster 30000"));
    let events = events(&group);
    let master = group.ports[0];
    group.kill(master);
    group.restart(master);
    wait_settled(&group, master);
    for (sentinel, events) in group.sentinels.iter().zip(&events) {
        assert!(events.find("+sdown", "master ").is_none(), "{}", sentinel.log());
    }
}

/// One Sentinel over one master; it dials a silent master anew before it holds it down.
fn watch(address: &str, port: u16) -> Sentinel {
    let lines = [
        format!("sentinel monitor mymaster {address} {port} 1"),
        format!("sentinel down-after-milliseconds mymaster {SILENCE}"),
        "sentinel ping-period mymaster 100".into(),
        REFUSED.into(),
    ];
    let sentinel = Sentinel::start(&live::watchfire(), &lines);
    support::process::wait_for(LIMIT, "the master to be known", || {
        !live::master_field(&sentinel, "mymaster", "runid").is_empty()
            && live::master_field(&sentinel, "mymaster", "flags") == "master"
    });
    let reply = sentinel.conn().cmd(&["SENTINEL", "DEBUG", "min-link-reconnect-period", "100"]);
    assert_eq!(text(&reply), "OK");
    sentinel
}

/// It is held to be down, but not before it was silent for that long. A PING may have left before the fault and died with
/// its answer; the test cannot know to the ms.
fn down_only_by_silence(sentinel: &Sentinel, fault: impl FnOnce()) {
    let events = sentinel.events(&["+sdown"]);
    let before = Instant::now();
    fault();
    let _ = events.expect(LIMIT, "+sdown", "master mymaster ");
    let after = before.elapsed();
    assert!(after > Duration::from_millis(SILENCE - 500), "down after {after:?}:\n{}", sentinel.log());
}

#[test]
fn a_master_that_hangs_is_not_held_to_be_refused() {
    let Some(program) = present(Redis::program(), "redis-server") else { return };
    let _turn = live::turn();
    let mut redis = Redis::start(&program, &[]);
    let sentinel = watch("127.0.0.1", redis.port);
    // Its kernel goes on taking connections.
    down_only_by_silence(&sentinel, || redis.process().hang());
    redis.process().resume();
}

#[test]
fn a_master_behind_a_black_hole_is_not_held_to_be_refused() {
    if !enter_network("a_master_behind_a_black_hole_is_not_held_to_be_refused") {
        return;
    }
    const ADDRESS: &str = "10.9.0.1";
    let Some(program) = present(Redis::program(), "redis-server") else { return };
    set_reachable(ADDRESS, true);
    let redis = Redis::start(&program, &["bind 127.0.0.1 10.9.0.1", "protected-mode no"]);
    let sentinel = watch(ADDRESS, redis.port);
    down_only_by_silence(&sentinel, || set_reachable(ADDRESS, false));
    set_reachable(ADDRESS, true);
    support::process::wait_for(LIMIT, "the master to be back", || {
        live::master_field(&sentinel, "mymaster", "flags") == "master"
    });
}
