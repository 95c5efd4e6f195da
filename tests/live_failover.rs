//! Failovers of real servers by real Sentinels: a master that is killed, hangs, dies with the Sentinel beside it,
//! is given up by an operator; and what everybody hears of it.

mod live;
mod support;

use live::watch::Watch;
use live::{LIMIT, assert_one_switch, assert_order, count, events, wait_settled};
use support::conn::{Conn, ask, items, text};
use support::process::{Sentinel, wait_for};
use watchfire::resp::Reply;

#[test]
fn a_killed_master_is_replaced_and_becomes_a_replica_when_it_returns() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    let events = events(&group);
    let old = group.ports[0];
    // On one connection: WAIT waits for the writes of its own.
    let mut writer = Conn::to(old);
    assert_eq!(writer.cmd(&["SET", "kept", "1"]), Reply::Simple(b"OK".to_vec()));
    assert_eq!(writer.cmd(&["WAIT", "2", "20000"]), Reply::Integer(2));
    group.kill(old);
    let new = group.wait_switched(LIMIT, old);
    let alive: Vec<u16> = group.ports.iter().copied().filter(|&port| port != old && port != new).collect();
    live::wait_following(new, &alive);
    assert_eq!(text(&Conn::to(new).cmd(&["GET", "kept"])), "1");

    group.restart(old);
    wait_settled(&group, new);
    assert_eq!(text(&Conn::to(old).cmd(&["GET", "kept"])), "1");
    assert_one_switch(&events, &group.name, old, new);

    let leader = live::leader(&events, &group.name).expect("somebody led");
    for (index, sentinel) in group.sentinels.iter().enumerate() {
        let report = newest_report(sentinel);
        let trigger = if index == leader { "odown end" } else { "observed switched" };
        assert_eq!(report, format!("{trigger} 127.0.0.1:{old} 127.0.0.1:{new}"), "{}", sentinel.log());
    }
    let (old, new) = (format!("mymaster 127.0.0.1 {old}"), format!("slave 127.0.0.1:{new} 127.0.0.1 {new} @ mymaster"));
    assert_order(
        &events[leader],
        &[
            ("+sdown", &format!("master {old}")),
            ("+odown", &format!("master {old} #quorum ")),
            ("+new-epoch", ""),
            ("+try-failover", &format!("master {old}")),
            ("+vote-for-leader", &group.sentinels[leader].id()),
            ("+elected-leader", &format!("master {old}")),
            ("+failover-state-select-slave", &format!("master {old}")),
            ("+selected-slave", &new),
            ("+failover-state-send-slaveof-noone", &new),
            ("+failover-state-wait-promotion", &new),
            ("+promoted-slave", &new),
            ("+failover-state-reconf-slaves", &format!("master {old}")),
            ("+switch-master", &old),
            ("+slave-reconf-sent", "slave 127.0.0.1:"),
            ("+slave-reconf-inprog", "slave 127.0.0.1:"),
            ("+slave-reconf-done", "slave 127.0.0.1:"),
            ("+failover-end", &format!("master {old}")),
            ("+slave", "slave 127.0.0.1:"),
        ],
    );
    for (index, events) in events.iter().enumerate().filter(|&(index, _)| index != leader) {
        assert_order(events, &[("+config-update-from", ""), ("+switch-master", &old), ("+slave", "slave 127.0.0.1:")]);
        assert_eq!(count(events, "+elected-leader", ""), 0, "Sentinel {index} led, too");
    }
}

/// Trigger, outcome and addresses of the last failover that a Sentinel knows of.
fn newest_report(sentinel: &Sentinel) -> String {
    let reply = sentinel.conn().cmd(&["SENTINEL", "FAILOVER-REPORT", "mymaster"]);
    let Some(Reply::Array(fields)) = items(&reply).first() else { panic!("a report: {reply:?}") };
    let value = |key: &str| {
        let pair = fields.chunks(2).find(|pair| text(&pair[0]) == key);
        pair.map_or_else(|| panic!("no {key}: {fields:?}"), |pair| text(&pair[1]))
    };
    ["trigger", "outcome", "from", "to"].map(value).join(" ")
}

#[test]
fn a_master_that_hangs_is_replaced_and_becomes_a_replica_when_it_wakes() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    let events = events(&group);
    let old = group.ports[0];
    group.hang(old);
    let new = group.wait_switched(LIMIT, old);
    wait_for(LIMIT, "the new master to take writes", || support::group::Group::is_writable(new));
    group.resume(old);
    wait_settled(&group, new);
    assert_one_switch(&events, &group.name, old, new);
}

#[test]
fn a_lost_node_takes_master_and_sentinel_and_the_rest_goes_on() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    let old = group.ports[0];
    let mut lost = group.sentinels.remove(0);
    let events = events(&group);
    lost.kill();
    group.kill(old);
    let new = group.wait_switched(LIMIT, old);
    assert_one_switch(&events, &group.name, old, new);

    // The node comes back with what it knew.
    lost.restart();
    group.sentinels.push(lost);
    group.restart(old);
    wait_settled(&group, new);
    assert_one_switch(&events, &group.name, old, new);
}

#[test]
fn an_operator_moves_the_master_at_will() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    let name = group.name.clone();
    let mut old = group.ports[0];
    group.sentinels.iter().for_each(live::hurry);
    // By each Sentinel once: none has to wait for what another did before.
    for index in 0..group.sentinels.len() {
        let events = events(&group);
        let reply = group.sentinels[index].conn().cmd(&["SENTINEL", "FAILOVER", &name]);
        assert_eq!(reply, Reply::Simple(b"OK".to_vec()));
        let new = group.wait_switched(LIMIT, old);
        wait_settled(&group, new);
        assert_one_switch(&events, &name, old, new);
        assert_eq!(live::leader(&events, &name), Some(index));
        assert!(events.iter().all(|events| count(events, "+odown", "") == 0));
        old = new;
    }
    // A failover that needs nobody's consent still needs a replica.
    let dead: Vec<u16> = group.ports.iter().copied().filter(|&port| port != old).collect();
    dead.iter().for_each(|&port| group.kill(port));
    wait_for(LIMIT, "-NOGOODSLAVE", || {
        let reply = Conn::to(group.sentinels[0].port).cmd(&["SENTINEL", "FAILOVER", &name]);
        text(&reply).starts_with("NOGOODSLAVE No suitable replica to promote")
    });
}

/// No failover brings another one about, neither at once nor when the dead master returns. `FAILOVERS=200` is the long form.
#[test]
fn every_death_is_one_switch_and_no_more() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    let events = events(&group);
    let mut switches = Vec::new();
    for _ in 0..live::env("FAILOVERS", 2) {
        let old = group.agreed().expect("a settled group");
        group.kill(old);
        let new = group.wait_switched(LIMIT, old);
        group.restart(old);
        wait_settled(&group, new);
        switches.push(format!("mymaster 127.0.0.1 {old} 127.0.0.1 {new}"));
    }
    for (index, events) in events.iter().enumerate() {
        let all = events.all().into_iter().filter(|event| event.channel == "+switch-master");
        let told: Vec<String> = all.map(|event| event.payload).collect();
        assert_eq!(told, switches, "the switches that Sentinel {index} told\n{}", group.sentinels[index].log());
    }
    let epochs: Vec<_> =
        group.sentinels.iter().map(|sentinel| live::master_field(sentinel, "mymaster", "config-epoch")).collect();
    println!("{} deaths, {} switches at each Sentinel; config epochs {epochs:?}", switches.len(), switches.len());
}

#[test]
fn two_operators_at_once_never_make_one_epoch_of_two_addresses() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let group = live::start(plan);
    let watch = Watch::over(&group);
    let name = group.name.clone();
    group.sentinels.iter().for_each(live::hurry);
    for round in 0..live::env("ROUNDS", 4) {
        let epochs = watch.addresses().len();
        let (first, second) = (group.sentinels[round % 3].port, group.sentinels[(round + 1) % 3].port);
        let barrier = std::sync::Barrier::new(2);
        let replies: Vec<String> = std::thread::scope(|scope| {
            let order = |port: u16| {
                let (barrier, name) = (&barrier, name.as_str());
                scope.spawn(move || {
                    let mut conn = Conn::to(port);
                    barrier.wait();
                    text(&conn.cmd(&["SENTINEL", "FAILOVER", name]))
                })
            };
            let threads = [order(first), order(second)];
            threads.map(|thread| thread.join().expect("an answer")).to_vec()
        });
        assert!(replies.iter().any(|reply| reply == "OK"), "round {round}: {replies:?}");
        // Two failovers can also follow each other, so that the old master leads again; settled is what counts.
        wait_for(LIMIT, "both failovers to end", || {
            let busy = |port: u16| {
                let reply = ask(port, &["SENTINEL", "MASTER", &name]);
                reply.is_none_or(|reply| support::conn::map(&reply)["flags"] != "master")
            };
            !busy(first) && !busy(second) && group.agreed().is_some() && watch.addresses().len() > epochs
        });
        let new = group.agreed().expect("they agree");
        wait_settled(&group, new);
        watch.check();
    }
}
