//! Reports of users, group C: who a Sentinel is, ghosts, RESET. The numbers are those of the collection of reports; what
//! the core alone decides is in `tests/transcripts` (r24 and r25, r28, r31, r32, r34).

mod live;
mod support;

use live::{LIMIT, count, master_field, wait_settled};
use support::conn::text;
use support::process::{Sentinel, wait_for};
use support::standin::{Spec, StandIn};
use watchfire::resp::Reply;

const ID: &str = "0123456789abcdef0123456789abcdef01234567";

#[test]
fn r24_a_new_id_at_a_known_address_replaces_the_old_one_in_the_file_too() {
    let standin = StandIn::start();
    let master = standin.server(Spec::master()).port;
    // Answers PING, which is all that a ghost needs to look alive.
    let peer = standin.server(Spec::master()).port;
    let lines = [
        format!("sentinel monitor mymaster 127.0.0.1 {master} 2"),
        // As upstream leaves it behind.
        format!("sentinel known-sentinel mymaster 127.0.0.1 0 {ID}"),
    ];
    let mut sentinel = Sentinel::start(&live::watchfire(), &lines);
    for digit in ["a", "b", "c", "d", "a"] {
        let hello = format!("127.0.0.1,{peer},{},0,mymaster,127.0.0.1,{master},0", digit.repeat(40));
        assert_eq!(sentinel.conn().cmd(&["PUBLISH", "__sentinel__:hello", &hello]), Reply::Integer(1));
        assert_eq!(master_field(&sentinel, "mymaster", "num-other-sentinels"), "1", "{digit}");
    }
    let last = format!("sentinel known-sentinel mymaster 127.0.0.1 {peer} {}", "a".repeat(40));
    for _ in 0..2 {
        let conf = sentinel.conf();
        let known: Vec<&str> = conf.lines().filter(|line| line.starts_with("sentinel known-sentinel ")).collect();
        assert_eq!(known, [last.as_str()]);
        sentinel.restart();
        assert_eq!(master_field(&sentinel, "mymaster", "num-other-sentinels"), "1");
    }
}

#[test]
fn r27_the_id_of_the_file_is_kept() {
    let mut sentinel = Sentinel::start(&live::watchfire(), &[format!("sentinel myid {ID}")]);
    for _ in 0..2 {
        assert_eq!(sentinel.id(), ID);
        assert_eq!(sentinel.conf().matches("sentinel myid ").count(), 1, "{}", sentinel.conf());
        assert!(sentinel.conf().contains(&format!("sentinel myid {ID}\n")), "{}", sentinel.conf());
        sentinel.restart();
    }
}

#[test]
fn r33_a_new_master_that_dies_at_once_is_replaced_too() {
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    let events = live::events(&group);
    let first = group.ports[0];
    group.kill(first);
    // The moment it is told to anybody.
    let mut second = 0;
    wait_for(LIMIT, "the first new master", || {
        let told = group.sentinels.iter().find_map(|sentinel| sentinel.master_port("mymaster").filter(|&p| p != first));
        second = told.unwrap_or(0);
        second != 0
    });
    group.kill(second);
    let third = group.ports.iter().copied().find(|&port| port != first && port != second).expect("three servers");
    wait_for(LIMIT, "all Sentinels to name the last one", || group.agreed() == Some(third));
    group.restart(first);
    group.restart(second);
    wait_settled(&group, third);
    for events in &events {
        assert_eq!(count(events, "+switch-master", &format!(" 127.0.0.1 {third}")), 1);
    }
}

#[test]
fn r34_sentinels_whose_files_name_different_masters_say_so() {
    let standin = StandIn::start();
    let masters: Vec<u16> = standin.servers(vec![Spec::master(); 2]).iter().map(|server| server.port).collect();
    let replica = standin.server(Spec::replica_of(masters[0])).port;
    let start = |port: u16| {
        let monitor = format!("sentinel monitor mymaster 127.0.0.1 {port} 2");
        Sentinel::start(&live::watchfire(), &[monitor])
    };
    let sentinels = [start(masters[0]), start(masters[1]), start(replica)];
    // They meet through whoever hears of the other first; here the operator introduces them.
    let hello = format!("127.0.0.1,{},{},0,mymaster,127.0.0.1,{},0", sentinels[1].port, sentinels[1].id(), masters[1]);
    let _ = sentinels[0].conn().cmd(&["PUBLISH", "__sentinel__:hello", &hello]);
    let said = |sentinel: &Sentinel, word: &str| sentinel.log().contains(word);
    wait_for(LIMIT, "the first to complain about the second", || {
        said(
            &sentinels[0],
            &format!("monitors 127.0.0.1:{} as mymaster, and we monitor 127.0.0.1:{}", masters[1], masters[0]),
        )
    });
    wait_for(LIMIT, "the second to complain about the first", || {
        said(
            &sentinels[1],
            &format!("monitors 127.0.0.1:{} as mymaster, and we monitor 127.0.0.1:{}", masters[0], masters[1]),
        )
    });
    wait_for(LIMIT, "the third to doubt its master", || {
        said(&sentinels[2], &format!("says that it is a replica of 127.0.0.1:{}", masters[0]))
    });
    // Nobody moves anybody because of it.
    for (sentinel, port) in sentinels.iter().zip([masters[0], masters[1], replica]) {
        assert_eq!(sentinel.master_port("mymaster"), Some(port));
        assert_eq!(text(&sentinel.conn().cmd(&["PING"])), "PONG");
    }
}
