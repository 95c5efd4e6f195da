//! Reports of users, group E: what clients read and hear. The numbers are those of the collection of reports; R64, R65 and
//! R68 are one story in `tests/transcripts` (r64), R67, R71, R73, R74 and R75 have more tests beside the commands.

mod live;
mod support;

use std::time::{Duration, Instant};

use live::{LIMIT, master_field};
use support::conn::{Conn, info, items, map, maps, text, texts};
use support::group::Plan;
use support::ports;
use support::process::{Program, Sentinel, present, wait_for};
use support::standin::{Spec, StandIn};
use watchfire::resp::Reply;

fn sentinel(lines: &[String]) -> Sentinel {
    Sentinel::start(&live::watchfire(), lines)
}

/// The one replica as a flat array of names and values.
fn replica(sentinel: &Sentinel) -> Vec<String> {
    let reply = sentinel.conn().cmd(&["SENTINEL", "REPLICAS", "mymaster"]);
    items(&reply).first().map(texts).unwrap_or_default()
}

fn value<'a>(flat: &'a [String], name: &str) -> &'a str {
    flat.chunks(2).find(|pair| pair[0] == name).map_or("", |pair| &pair[1])
}

/// Clients read this array by position (predis: 31) and by the words in `flags`. Both Sentinels look at one replica, and
/// must show the same names in the same order, the same flags and the same status, whatever happens to it.
#[test]
fn r67_a_replica_in_trouble_is_shown_word_for_word_as_redis_sentinel_shows_it() {
    let Some(reference) = present(Program::redis_sentinel(), "redis-sentinel") else { return };
    let standin = StandIn::start();
    let master = standin.server(Spec::master()).port;
    let port = standin.server(Spec::replica_of(master)).port;
    let lines = [
        format!("sentinel monitor mymaster 127.0.0.1 {master} 2"),
        "sentinel down-after-milliseconds mymaster 1000".to_string(),
    ];
    let sentinels = [sentinel(&lines), Sentinel::start(&reference, &lines)];
    sentinels.iter().for_each(live::hurry);
    let shown = |what: &str, flags: &str, status: &str| {
        for sentinel in &sentinels {
            wait_for(LIMIT, &format!("{what} at {}", sentinel.program.name), || {
                let flat = replica(sentinel);
                value(&flat, "flags") == flags && value(&flat, "master-link-status") == status
            });
        }
        let [ours, theirs] = [replica(&sentinels[0]), replica(&sentinels[1])];
        let names = |flat: &[String]| flat.iter().step_by(2).cloned().collect::<Vec<_>>();
        assert_eq!(names(&ours), names(&theirs), "{what}");
        ours
    };
    let flat = shown("a replica that is well", "slave", "ok");
    assert_eq!(flat[31], "ok");
    standin.answer_error(port, Some("LOADING Redis is loading the dataset in memory"));
    // An answer like this is a sign of life: many such answers, and for longer than down-after.
    let (begin, before) = (Instant::now(), standin.calls(port)["ping"]);
    wait_for(LIMIT, "many answers", || {
        standin.calls(port)["ping"] >= before + 4 && begin.elapsed() > Duration::from_millis(1200)
    });
    assert_eq!(shown("one that loads", "slave", "ok")[31], "ok");
    standin.answer_error(port, None);
    standin.lie_about(port, "master_link_status", Some("down"));
    assert_eq!(shown("one without its master", "slave", "err")[31], "err");
    standin.lie_about(port, "master_link_status", None);
    let _ = shown("one that is well again", "slave", "ok");
    standin.kill(port);
    let _ = shown("one that is gone", "s_down,slave,disconnected", "ok");
}

/// The lists of the documentation: what clients need, and what peers need.
#[test]
fn r70_a_client_and_a_peer_get_by_with_the_rights_that_are_documented() {
    let client = "user client on >pw ~* &* -@all +auth +client|getname +client|id +client|setname +command +hello +ping \
                  +role +sentinel|get-master-addr-by-name +sentinel|master +sentinel|masters +sentinel|myid \
                  +sentinel|replicas +sentinel|sentinels +subscribe +psubscribe";
    let peer = "user peer on >peer-pw ~* resetchannels &__sentinel__:hello -@all +auth +ping +client|setname +publish \
                +sentinel|is-master-down-by-addr";
    let _turn = live::turn();
    let plan = Plan::new(vec![live::watchfire(); 3]).failover_timeout(5_000);
    let plan = plan.line(client).line(peer).line("sentinel sentinel-user peer").line("sentinel sentinel-pass peer-pw");
    let mut group = live::start(plan);

    let port = group.sentinels[0].port;
    let mut conn = Conn::to(port);
    let hello = map(&conn.cmd(&["HELLO", "3", "AUTH", "client", "pw", "SETNAME", "me"]));
    assert_eq!((hello["mode"].as_str(), hello.contains_key("role")), ("sentinel", false), "{hello:?}");
    assert!(matches!(items(&conn.cmd(&["SENTINEL", "MASTERS"]))[0], Reply::Map(_)));
    assert_eq!(items(&conn.cmd(&["SENTINEL", "REPLICAS", "mymaster"])).len(), 2);
    assert_eq!(items(&conn.cmd(&["SENTINEL", "SENTINELS", "mymaster"])).len(), 2);
    assert_eq!(text(&items(&conn.cmd(&["ROLE"]))[0]), "sentinel");
    for (words, name) in [
        (&["SENTINEL", "RESET", "mymaster"][..], "sentinel|reset"),
        (&["SENTINEL", "FAILOVER", "mymaster"], "sentinel|failover"),
        (&["PUBLISH", "__sentinel__:hello", "x"], "publish"),
        (&["CLIENT", "LIST"], "client|list"),
        (&["SHUTDOWN"], "shutdown"),
    ] {
        let refused = format!("NOPERM User client has no permissions to run the '{name}' command");
        assert_eq!(text(&conn.cmd(words)), refused);
    }
    let mut listener = Conn::to(port);
    assert_eq!(text(&listener.cmd(&["AUTH", "client", "pw"])), "OK");
    assert_eq!(texts(&listener.cmd(&["SUBSCRIBE", "+switch-master"])), ["subscribe", "+switch-master", "1"]);
    listener.set_patience(Some(LIMIT));

    let old = group.ports[0];
    group.kill(old);
    let new = group.wait_switched(LIMIT, old);
    let message = texts(&listener.receive().expect("the switch is told"));
    assert_eq!(message[2], format!("mymaster 127.0.0.1 {old} 127.0.0.1 {new}"));
    let address = texts(&conn.cmd(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"]));
    assert_eq!(address, ["127.0.0.1", &new.to_string()]);
    // No peer missed a right, here or elsewhere.
    for sentinel in &group.sentinels {
        let refusals = maps(&sentinel.conn().cmd(&["ACL", "LOG"]));
        assert!(refusals.iter().all(|refusal| refusal["username"] == "client"), "{refusals:?}");
        let list = text(&sentinel.conn().cmd(&["CLIENT", "LIST"]));
        let mut peers = list.lines().filter(|line| line.contains(" name=sentinel-"));
        assert!(peers.all(|line| line.contains(" user=peer ")), "{list}");
    }
}

#[test]
fn r72_no_age_is_told_of_what_never_came() {
    let dead = ports::free();
    let sentinel = sentinel(&[
        format!("sentinel monitor mymaster 127.0.0.1 {dead} 1"),
        "sentinel down-after-milliseconds mymaster 100".to_string(),
    ]);
    wait_for(LIMIT, "the master to be down", || master_field(&sentinel, "mymaster", "flags").contains("o_down"));
    let masters = maps(&sentinel.conn().cmd(&["SENTINEL", "MASTERS"]));
    assert_eq!(masters[0]["info-refresh"], "0", "{masters:?}");
}

#[test]
fn r76_tools_see_that_it_is_a_sentinel() {
    let sentinel = sentinel(&[]);
    let mut conn = sentinel.conn();
    assert_eq!(info(&conn.cmd(&["INFO"]))["redis_mode"], "sentinel");
    assert_eq!(info(&conn.cmd(&["INFO", "server"]))["redis_mode"], "sentinel");
    assert_eq!(map(&conn.cmd(&["HELLO", "3"]))["mode"], "sentinel");
    assert_eq!(text(&items(&conn.cmd(&["ROLE"]))[0]), "sentinel");
}
