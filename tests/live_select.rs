//! Which replica is promoted: by priority, then by what it holds, then by run id.

mod live;
mod support;

use live::{LIMIT, merit, wait_settled};
use support::conn::{Conn, ask, maps, text};
use support::group::Group;
use support::process::{Sentinel, info_of, wait_for};
use support::standin::{Role, Spec, StandIn};
use watchfire::resp::Reply;

/// The port of every replica of the group and the value of one field, as this Sentinel tells it.
fn replicas(sentinel: &Sentinel, field: &str) -> Vec<(String, String)> {
    let reply = ask(sentinel.port, &["SENTINEL", "REPLICAS", "mymaster"]);
    let replicas = reply.map(|reply| maps(&reply)).unwrap_or_default();
    replicas.iter().map(|replica| (replica["port"].clone(), replica[field].clone())).collect()
}

fn set(port: u16, name: &str, value: &str) {
    assert_eq!(Conn::to(port).cmd(&["CONFIG", "SET", name, value]), Reply::Simple(b"OK".to_vec()));
}

/// Three watchfire over a master and `count` replicas. None: no redis-server.
fn group(count: usize) -> Option<(live::Turn, Group)> {
    let plan = live::plan(3)?;
    let turn = live::turn();
    let group = live::start(plan.replicas(count));
    group.sentinels.iter().for_each(live::hurry);
    Some((turn, group))
}

fn run_id(port: u16) -> String {
    info_of(port)["run_id"].clone()
}

#[test]
fn the_lowest_priority_wins_whatever_else_speaks_against_it() {
    let Some((_turn, mut group)) = group(3) else { return };
    let mut replicas_by_id = group.ports[1..].to_vec();
    replicas_by_id.sort_by_key(|&port| run_id(port));
    // The largest run id, which is the last choice otherwise; and the smallest must not be chosen at all.
    let [never, middle, best] = replicas_by_id[..] else { panic!("three replicas") };
    set(best, "replica-priority", "10");
    set(middle, "replica-priority", "50");
    set(never, "replica-priority", "0");
    let wanted =
        [(best, "10"), (middle, "50"), (never, "0")].map(|(port, value)| (port.to_string(), value.to_string()));
    wait_for(LIMIT, "the priorities to be known", || {
        group.sentinels.iter().all(|sentinel| {
            let known = replicas(sentinel, "slave-priority");
            wanted.iter().all(|pair| known.contains(pair))
        })
    });
    let old = group.ports[0];
    group.kill(old);
    assert_eq!(group.wait_switched(LIMIT, old), best);
}

#[test]
fn a_priority_set_in_the_last_moment_counts() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    let mut replicas_by_id = group.ports[1..].to_vec();
    replicas_by_id.sort_by_key(|&port| run_id(port));
    let old = group.ports[0];
    group.kill(old);
    // No INFO of a calm time has it: it is asked for before the choice.
    set(replicas_by_id[1], "replica-priority", "1");
    assert_eq!(group.wait_switched(LIMIT, old), replicas_by_id[1]);
}

#[test]
fn a_replica_that_lags_behind_is_passed_over() {
    let Some((_turn, mut group)) = group(2) else { return };
    let old = group.ports[0];
    let mut replicas_by_id = group.ports[1..].to_vec();
    replicas_by_id.sort_by_key(|&port| run_id(port));
    // The smaller run id is cut off, so that nothing but the offset speaks for the other.
    let [behind, ahead] = replicas_by_id[..] else { panic!("two replicas") };
    // It follows a port where nobody is: it keeps its offset. Shorter than failover-timeout, so nobody corrects it.
    let nowhere = support::ports::free().to_string();
    assert_eq!(Conn::to(behind).cmd(&["REPLICAOF", "127.0.0.1", &nowhere]), Reply::Simple(b"OK".to_vec()));
    let mut master = Conn::to(old);
    for number in 0..100 {
        assert_eq!(master.cmd(&["SET", &format!("key{number}"), "v"]), Reply::Simple(b"OK".to_vec()));
    }
    assert_eq!(master.cmd(&["WAIT", "1", "20000"]), Reply::Integer(1));
    assert!(merit(ahead) < merit(behind), "{:?} {:?}", merit(ahead), merit(behind));
    group.kill(old);
    assert_eq!(group.wait_switched(LIMIT, old), ahead);
    assert_eq!(text(&Conn::to(ahead).cmd(&["GET", "key99"])), "v");
    wait_for(LIMIT, "the other to follow and catch up", || {
        Group::follows(behind) == Some(ahead) && text(&Conn::to(behind).cmd(&["GET", "key99"])) == "v"
    });
}

#[test]
fn of_equal_replicas_the_smallest_run_id_wins() {
    let Some((_turn, mut group)) = group(3) else { return };
    let old = group.ports[0];
    group.kill(old);
    // Dead masters say nothing more, so what they ended with is what is judged.
    let best = group.ports[1..].iter().copied().min_by_key(|&port| merit(port)).expect("three replicas");
    assert_eq!(group.wait_switched(LIMIT, old), best);
}

#[test]
fn a_replica_of_priority_zero_is_never_promoted() {
    let Some((_turn, mut group)) = group(1) else { return };
    let [old, replica] = group.ports[..] else { panic!("a master and a replica") };
    set(replica, "replica-priority", "0");
    wait_for(LIMIT, "-NOGOODSLAVE", || {
        group
            .sentinels
            .iter()
            .all(|sentinel| replicas(sentinel, "slave-priority") == [(replica.to_string(), "0".to_string())])
    });
    let reply = text(&group.sentinels[0].conn().cmd(&["SENTINEL", "FAILOVER", "mymaster"]));
    assert_eq!(reply, "NOGOODSLAVE No suitable replica to promote");
    let events = live::events(&group);
    group.kill(old);
    wait_for(LIMIT, "an attempt without a candidate", || {
        events.iter().any(|events| events.find("-failover-abort-no-good-slave", "master mymaster ").is_some())
    });
    assert_eq!(Group::role(replica).as_deref(), Some("slave"));
    assert_eq!(group.agreed(), Some(old));
    // The next attempt takes it, because now it may.
    set(replica, "replica-priority", "100");
    assert_eq!(group.wait_switched(LIMIT, old), replica);
}

/// The whole order at once, with servers that are what a test wants them to be.
#[test]
fn offsets_and_run_ids_of_many_replicas_are_ranked() {
    let _turn = live::turn();
    let standin = StandIn::start();
    let master = standin.server(Spec::master()).port;
    // (priority, offset, run id), best first; the best one dies next.
    let id = |digit: &str| digit.repeat(40);
    let order = [(10, 10, id("f")), (50, 900, id("e")), (50, 800, id("1")), (50, 800, id("2")), (100, 5_000, id("0"))];
    let ports: Vec<u16> = standin.servers(vec![Spec::replica_of(master); 6]).iter().map(|server| server.port).collect();
    for &port in &ports {
        wait_for(LIMIT, "the replica's link", || standin.state(port).link_up);
    }
    for (&port, (priority, offset, id)) in ports.iter().rev().zip(&order) {
        standin.set_priority(port, *priority);
        standin.set_offset(port, *offset);
        standin.lie_about(port, "run_id", Some(id));
    }
    // The last one is out of it for ever.
    standin.set_priority(ports[0], 0);
    let lines = [
        format!("sentinel monitor mymaster 127.0.0.1 {master} 2"),
        "sentinel down-after-milliseconds mymaster 1000".to_string(),
        "sentinel failover-timeout mymaster 1000".to_string(),
    ];
    let sentinels: Vec<Sentinel> = (0..3).map(|_| Sentinel::start(&live::watchfire(), &lines)).collect();
    let known = |count: usize| {
        sentinels.iter().all(|sentinel| {
            let flags = replicas(sentinel, "flags");
            flags.iter().filter(|(_, flags)| flags == "slave").count() == count
                && live::master_field(sentinel, "mymaster", "num-other-sentinels") == "2"
                && live::master_field(sentinel, "mymaster", "flags") == "master"
        })
    };
    wait_for(LIMIT, "all replicas to be known", || known(6));
    let mut old = master;
    for (round, &best) in ports.iter().rev().take(order.len()).enumerate() {
        standin.kill(old);
        let mut new = old;
        wait_for(LIMIT, "a new master", || {
            new = sentinels[0].master_port("mymaster").unwrap_or(old);
            new != old && sentinels.iter().all(|sentinel| sentinel.master_port("mymaster") == Some(new))
        });
        assert_eq!(new, best, "choice {round} of {ports:?}, last one first");
        // A replica that is told to follow another master holds what that one has; give the rest their places back.
        let rest = &ports[..ports.len() - 1 - round];
        let role = Role::Replica { host: "127.0.0.1".to_string(), port: new };
        wait_for(LIMIT, "the rest to follow", || rest.iter().all(|&port| standin.state(port).role == role));
        for (&port, (_, offset, _)) in rest.iter().rev().zip(&order[round + 1..]) {
            standin.set_offset(port, *offset);
        }
        wait_for(LIMIT, "the rest to be settled", || known(5 - round));
        old = new;
    }
}

/// A master that returns with its old role is turned into a replica even when nobody restarts a Sentinel or waits.
#[test]
fn an_old_master_that_returns_late_or_early_is_turned_into_a_replica() {
    let Some((_turn, mut group)) = group(2) else { return };
    let old = group.ports[0];
    group.kill(old);
    let new = group.wait_switched(LIMIT, old);
    // Early: in the middle of everything.
    group.restart(old);
    wait_settled(&group, new);
    // Late: it dies as a replica, and comes back as a master by the hand of somebody who meant well.
    group.kill(old);
    wait_for(LIMIT, "the replica to be known as down", || {
        group.sentinels.iter().all(|sentinel| {
            replicas(sentinel, "flags").iter().any(|(port, flags)| *port == old.to_string() && flags.contains("s_down"))
        })
    });
    group.restart(old);
    assert_eq!(Conn::to(old).cmd(&["REPLICAOF", "NO", "ONE"]), Reply::Simple(b"OK".to_vec()));
    assert_eq!(Group::role(old).as_deref(), Some("master"));
    wait_settled(&group, new);
    assert_eq!(Group::role(old).as_deref(), Some("slave"));
}
