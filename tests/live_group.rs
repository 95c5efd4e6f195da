//! What a group can do with a part of its Sentinels, and what each Sentinel remembers: restarts, quorum, majority,
//! masters that come and go, masters that share their peers.

mod live;
mod support;

use std::time::{Duration, Instant};

use live::{Epochs, LIMIT, assert_one_switch, count, events, master_field, wait_settled};
use support::conn::{ask, map, maps, text};
use support::group::Group;
use support::process::{Redis, Sentinel, present, wait_for};
use support::standin::{Spec, StandIn};
use watchfire::resp::Reply;

/// How long nothing may happen before it counts as "never": several ask periods and cron runs.
const NEVER: Duration = Duration::from_secs(4);

fn peers(sentinel: &Sentinel, name: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    ask(sentinel.port, &["SENTINEL", "SENTINELS", name]).map(|reply| maps(&reply)).unwrap_or_default()
}

fn ckquorum(sentinel: &Sentinel, name: &str) -> String {
    text(&sentinel.conn().cmd(&["SENTINEL", "CKQUORUM", name]))
}

/// Whether nothing of the kind came, after waiting long enough for it.
fn never(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while begin.elapsed() < NEVER {
        assert!(!happened(), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_sentinel_remembers_and_learns_what_it_missed() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    let old = group.ports[0];
    let id = group.sentinels[0].id();
    // Whoever is newly known is saved a tenth of a second later at the latest.
    for line in ["sentinel monitor mymaster 127.0.0.1 ", "sentinel known-replica mymaster ", "sentinel known-sentinel "]
    {
        wait_for(LIMIT, &format!("{line:?} in the file"), || group.sentinels[0].conf().contains(line));
    }
    let mut killed = group.sentinels.remove(0);
    killed.kill();
    group.kill(old);
    let new = group.wait_switched(LIMIT, old);

    // Alone with its file it would still name the old master; its peers tell it better.
    killed.restart();
    assert_eq!(killed.id(), id);
    group.sentinels.push(killed);
    wait_for(LIMIT, "the restarted Sentinel to learn the new address", || group.agreed() == Some(new));
    group.restart(old);
    wait_settled(&group, new);
    let epochs: Vec<Epochs> = group.sentinels.iter().map(|sentinel| Epochs::of(&sentinel.conf(), "mymaster")).collect();
    assert!(epochs.iter().all(|other| other.config == epochs[0].config && other.config > 0), "{epochs:?}");
    assert!(epochs.iter().all(|other| other.current == epochs[0].current), "{epochs:?}");

    // Nobody has it twice.
    for sentinel in &group.sentinels {
        assert_eq!(peers(sentinel, "mymaster").len(), 2);
    }

    // All at once, as after a power cut: everybody still knows everybody, out of the files alone.
    group.sentinels.iter_mut().for_each(Sentinel::kill);
    group.sentinels.iter_mut().for_each(Sentinel::restart);
    for sentinel in &group.sentinels {
        assert_eq!(peers(sentinel, "mymaster").len(), 2);
        assert_eq!(master_field(sentinel, "mymaster", "num-slaves"), "2");
        assert_eq!(sentinel.master_port("mymaster"), Some(new));
    }
    wait_settled(&group, new);
}

#[test]
fn without_a_quorum_nobody_fails_over() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan.quorum(3));
    assert!(ckquorum(&group.sentinels[0], "mymaster").starts_with("OK 3 usable Sentinels."));
    let mut killed = group.sentinels.remove(0);
    killed.kill();
    wait_for(LIMIT, "-NOQUORUM", || group.sentinels.iter().all(|s| ckquorum(s, "mymaster").starts_with("NOQUORUM")));
    assert_eq!(
        ckquorum(&group.sentinels[0], "mymaster"),
        "NOQUORUM 2 usable Sentinels. Not enough available Sentinels to reach the specified quorum for this master"
    );
    let events = events(&group);
    let old = group.ports[0];
    group.kill(old);
    events.iter().for_each(|events| {
        let _ = events.expect(LIMIT, "+sdown", "master mymaster ");
    });
    never("two of a quorum of three went ahead", || {
        events.iter().any(|events| count(events, "+odown", "") + count(events, "+try-failover", "") > 0)
    });
    assert_eq!(group.agreed(), Some(old));

    // It was that quorum, and nothing else, that was missing.
    killed.restart();
    group.sentinels.push(killed);
    let new = group.wait_switched(LIMIT, old);
    assert_ne!(new, old);
}

#[test]
fn without_a_majority_nobody_leads() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan.quorum(1).failover_timeout(3_000));
    let mut killed: Vec<Sentinel> = group.sentinels.drain(1..).collect();
    killed.iter_mut().for_each(Sentinel::kill);
    wait_for(LIMIT, "-NOQUORUM", || ckquorum(&group.sentinels[0], "mymaster").starts_with("NOQUORUM"));
    assert_eq!(
        ckquorum(&group.sentinels[0], "mymaster"),
        "NOQUORUM 1 usable Sentinels. Not enough available Sentinels to reach the majority and authorize a failover"
    );
    let events = events(&group).remove(0);
    let old = group.ports[0];
    group.kill(old);
    // Enough for the quorum of one: it tries, and is not elected, again and again.
    let _ = events.expect(LIMIT, "+odown", "master mymaster ");
    let _ = events.expect(LIMIT, "-failover-abort-not-elected", "master mymaster ");
    wait_for(LIMIT, "a second attempt", || count(&events, "+try-failover", "") > 1);
    never("one of three led", || count(&events, "+elected-leader", "") + count(&events, "+switch-master", "") > 0);

    let mut back = killed.remove(0);
    back.restart();
    group.sentinels.push(back);
    let new = group.wait_switched(LIMIT, old);
    assert_ne!(new, old);
}

#[test]
fn a_master_can_be_removed_and_monitored_again() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    let events = events(&group).remove(0);
    let master = group.ports[0];
    let address = master.to_string();
    let ok = Reply::Simple(b"OK".to_vec());
    let mut conn = group.sentinels[0].conn();
    assert_eq!(conn.cmd(&["SENTINEL", "REMOVE", "mymaster"]), ok);
    let _ = events.expect(LIMIT, "-monitor", &format!("master mymaster 127.0.0.1 {master}"));
    assert_eq!(conn.cmd(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"]), Reply::Nil);
    assert!(text(&conn.cmd(&["SENTINEL", "REMOVE", "mymaster"])).starts_with("ERR No such master with that name"));
    assert!(!group.sentinels[0].conf().contains("mymaster"), "{}", group.sentinels[0].conf());

    assert_eq!(conn.cmd(&["SENTINEL", "MONITOR", "mymaster", "127.0.0.1", &address, "2"]), ok);
    let _ = events.expect(LIMIT, "+monitor", &format!("master mymaster 127.0.0.1 {master} quorum 2"));
    let settings = ["SENTINEL", "SET", "mymaster", "down-after-milliseconds", "1000", "failover-timeout", "5000"];
    assert_eq!(conn.cmd(&settings), ok);
    group.wait_known(LIMIT);
    // What an operator does at run time is there after a restart.
    group.sentinels[0].restart();
    group.wait_known(LIMIT);
    assert_eq!(master_field(&group.sentinels[0], "mymaster", "down-after-milliseconds"), "1000");
    assert_eq!(master_field(&group.sentinels[0], "mymaster", "quorum"), "2");
    group.kill(master);
    let new = group.wait_switched(LIMIT, master);
    assert_ne!(new, master);
}

/// R31 of the reports: after a RESET nobody has replicas or peers, and a master that dies now must be replaced all the
/// same.
#[test]
fn a_reset_just_before_the_end_of_a_master_does_not_cost_its_failover() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan.failover_timeout(3_000));
    group.sentinels.iter().for_each(live::hurry);
    let mut old = group.ports[0];
    // By the hand of one operator at one Sentinel, then by a script at all of them.
    for (reset, delay) in [(1, 0), (3, 0), (3, 700)] {
        let events = events(&group);
        for sentinel in &group.sentinels[..reset] {
            assert_eq!(sentinel.conn().cmd(&["SENTINEL", "RESET", "mymaster"]), Reply::Integer(1));
        }
        std::thread::sleep(Duration::from_millis(delay));
        group.kill(old);
        let new = group.wait_switched(LIMIT, old);
        assert!(events[0].find("+reset-master", "master mymaster ").is_some());
        group.restart(old);
        wait_settled(&group, new);
        assert_one_switch(&events, "mymaster", old, new);
        old = new;
    }
}

#[test]
fn two_masters_share_the_links_to_their_peers() {
    let Some(plan) = live::plan(3) else { return };
    let program = present(Redis::program(), "redis-server").expect("there is one: the plan has it");
    let _turn = live::turn();
    let mut second = vec![Redis::start(&program, &[])];
    let other = second[0].port;
    second.push(Redis::start(&program, &[&format!("replicaof 127.0.0.1 {other}")]));
    let group = plan
        .line(&format!("sentinel monitor second 127.0.0.1 {other} 2"))
        .line("sentinel down-after-milliseconds second 1000")
        .line("sentinel failover-timeout second 5000");
    let mut group = live::start(group);
    wait_for(LIMIT, "every peer to be shared by both masters", || {
        group.sentinels.iter().all(|sentinel| {
            ["mymaster", "second"].iter().all(|name| {
                let peers = peers(sentinel, name);
                peers.len() == 2 && peers.iter().all(|peer| peer["link-refcount"] == "2" && peer["flags"] == "sentinel")
            })
        })
    });
    wait_for(LIMIT, "the second replica", || {
        group.sentinels.iter().all(|sentinel| master_field(sentinel, "second", "num-slaves") == "1")
    });
    wait_for(LIMIT, "the second replica's link", || Group::follows(second[1].port) == Some(other));

    // Both die together: both are replaced, each by one of its own.
    let events = events(&group);
    let old = group.ports[0];
    group.kill(old);
    second[0].kill();
    let new = group.wait_switched(LIMIT, old);
    assert!(group.ports.contains(&new));
    assert_one_switch(&events, "mymaster", old, new);
    assert_one_switch(&events, "second", other, second[1].port);

    // A master less is a sharer less.
    assert_eq!(group.sentinels[0].conn().cmd(&["SENTINEL", "REMOVE", "second"]), Reply::Simple(b"OK".to_vec()));
    assert!(peers(&group.sentinels[0], "mymaster").iter().all(|peer| peer["link-refcount"] == "1"));
}

#[test]
fn a_peer_of_two_masters_gets_one_ping_a_period() {
    let _turn = live::turn();
    let standin = StandIn::start();
    let (first, second) = (standin.server(Spec::master()).port, standin.server(Spec::master()).port);
    // Answers PING and takes hellos, as a Sentinel would; that is all a peer has to do here.
    let peer = standin.server(Spec::master()).port;
    let lines = [
        format!("sentinel monitor first 127.0.0.1 {first} 2"),
        format!("sentinel monitor second 127.0.0.1 {second} 2"),
    ];
    let sentinel = Sentinel::start(&live::watchfire(), &lines);
    let id = "abcdef0123456789abcdef0123456789abcdef01";
    for (name, port) in [("first", first), ("second", second)] {
        let hello = format!("127.0.0.1,{peer},{id},0,{name},127.0.0.1,{port},0");
        assert_eq!(sentinel.conn().cmd(&["PUBLISH", "__sentinel__:hello", &hello]), Reply::Integer(1));
    }
    let refcount = || {
        let reply = ask(sentinel.port, &["SENTINEL", "SENTINELS", "second"]).map(|reply| maps(&reply));
        reply.and_then(|peers| peers.first().map(|peer| (peer["link-refcount"].clone(), peer["flags"].clone())))
    };
    wait_for(LIMIT, "the peer's link", || refcount() == Some(("2".to_string(), "sentinel".to_string())));

    let (begin, before) = (Instant::now(), standin.calls(peer)["ping"]);
    wait_for(LIMIT, "six PINGs", || standin.calls(peer)["ping"] >= before + 6);
    // Slow machines make them fewer, never more; one per master would need three seconds.
    assert!(begin.elapsed() > Duration::from_millis(4_500), "six PINGs in {:?}", begin.elapsed());
    let names = text(&ask(peer, &["CLIENT", "LIST"]).expect("the list"));
    assert_eq!(names.matches("name=sentinel-").count(), 1, "{names}");
    let hellos = standin.calls(peer)["publish"];
    wait_for(LIMIT, "hellos for both masters", || standin.calls(peer)["publish"] >= hellos + 4);
}

/// A Sentinel that knows nobody yet: the group grows around it.
#[test]
fn a_new_sentinel_is_found_and_counted() {
    let Some(plan) = live::plan(2) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    assert!(ckquorum(&group.sentinels[0], "mymaster").starts_with("OK 2 usable Sentinels."));
    let lines = [
        format!("sentinel monitor mymaster 127.0.0.1 {} 2", group.ports[0]),
        "sentinel down-after-milliseconds mymaster 1000".to_string(),
    ];
    group.sentinels.push(Sentinel::start(&live::watchfire(), &lines));
    group.wait_known(LIMIT);
    for sentinel in &group.sentinels {
        assert!(ckquorum(sentinel, "mymaster").starts_with("OK 3 usable Sentinels."));
    }
    let myself = map(&group.sentinels[0].conn().cmd(&["SENTINEL", "MASTER", "mymaster"]));
    assert_eq!(myself["num-other-sentinels"], "2");
}
