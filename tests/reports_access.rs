//! Reports of users, group G: passwords, rights, descriptors. The numbers are those of the collection of reports; R98 and
//! R100 are held by `tests/acl_*`, R101 and R102 by `tests/tls_*`.

mod live;
mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use live::{LIMIT, master_field};
use support::conn::{Conn, Events, ask, items, maps, text, texts};
use support::process::{Program, Redis, Sentinel, find_program, present, wait_for};
use support::standin::{Spec, StandIn};
use watchfire::resp::Reply;

fn sentinel(lines: &[String]) -> Sentinel {
    Sentinel::start(&live::watchfire(), lines)
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

fn is_well(sentinel: &Sentinel) -> bool {
    master_field(sentinel, "mymaster", "flags") == "master" && !master_field(sentinel, "mymaster", "runid").is_empty()
}

fn with_password(password: &str) -> Spec {
    Spec { password: Some(password.to_string()), ..Spec::master() }
}

#[test]
fn r93_a_password_that_comes_after_the_master_is_used_at_once() {
    let standin = StandIn::start();
    let master = standin.server(with_password("first")).port;
    let sentinel = sentinel(&[]);
    let mut conn = sentinel.conn();
    let monitor = ["SENTINEL", "MONITOR", "mymaster", "127.0.0.1", &master.to_string(), "1"];
    assert_eq!(conn.cmd(&monitor), ok());
    assert_eq!(conn.cmd(&["SENTINEL", "SET", "mymaster", "down-after-milliseconds", "1000"]), ok());
    let refusal = format!("127.0.0.1:{master} refuses our commands: NOAUTH");
    wait_for(LIMIT, "the reason in the log", || sentinel.log().contains(&refusal));
    wait_for(LIMIT, "the master to be down", || master_field(&sentinel, "mymaster", "flags").contains("s_down"));
    assert_eq!(conn.cmd(&["SENTINEL", "SET", "mymaster", "auth-pass", "first"]), ok());
    wait_for(LIMIT, "the master to be well, without a RESET", || is_well(&sentinel));

    // The server's password changes, its connections end, and the operator says the new one here.
    standin.set_password(master, "second");
    let mut killer = Conn::to(master);
    assert_eq!(killer.cmd(&["AUTH", "second"]), ok());
    let _ = killer.cmd(&["CLIENT", "KILL", "TYPE", "normal"]);
    let _ = killer.cmd(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    wait_for(LIMIT, "the master to be down", || master_field(&sentinel, "mymaster", "flags").contains("s_down"));
    assert_eq!(conn.cmd(&["SENTINEL", "SET", "mymaster", "auth-pass", "second"]), ok());
    wait_for(LIMIT, "the master to be well again", || is_well(&sentinel));
    assert!(sentinel.conf().contains("sentinel auth-pass mymaster second\n"), "{}", sentinel.conf());
}

/// A connection that has given the password.
fn logged_in(sentinel: &Sentinel, password: &str) -> Conn {
    let mut conn = sentinel.conn();
    assert_eq!(conn.cmd(&["AUTH", password]), ok());
    conn
}

#[test]
fn r99_our_own_password_changes_while_we_run_for_clients_and_for_peers() {
    let standin = StandIn::start();
    let master = standin.server(Spec::master()).port;
    let lines = [
        format!("sentinel monitor mymaster 127.0.0.1 {master} 2"),
        "sentinel down-after-milliseconds mymaster 1000".to_string(),
        "requirepass \"the old one\"".to_string(),
    ];
    let (one, mut two) = (sentinel(&lines), sentinel(&lines));
    let sees_the_other = |sentinel: &Sentinel, password: &str| {
        let reply = logged_in(sentinel, password).cmd(&["SENTINEL", "SENTINELS", "mymaster"]);
        maps(&reply).iter().any(|peer| peer["flags"] == "sentinel")
    };
    wait_for(LIMIT, "both to see each other", || {
        sees_the_other(&one, "the old one") && sees_the_other(&two, "the old one")
    });

    let change = ["SENTINEL", "CONFIG", "SET", "requirepass", "the \"new\" one"];
    let mut operator = logged_in(&one, "the old one");
    assert_eq!(operator.cmd(&change), ok());
    // Who is in stays in; the old password lets nobody in any more.
    assert_eq!(operator.cmd(&["PING"]), Reply::Simple(b"PONG".to_vec()));
    assert!(text(&one.conn().cmd(&["AUTH", "the old one"])).starts_with("WRONGPASS"));
    // It is given to the peer at once, which does not take it yet.
    let refusal = format!("127.0.0.1:{} refuses our commands: WRONGPASS", two.port);
    wait_for(LIMIT, "the peer to refuse the new password", || one.log().contains(&refusal));
    assert_eq!(operator.cmd(&["SENTINEL", "DEBUG", "min-link-reconnect-period", "1000"]), ok());
    assert_eq!(logged_in(&two, "the old one").cmd(&change), ok());
    let both = |two: &Sentinel| sees_the_other(&one, "the \"new\" one") && sees_the_other(two, "the \"new\" one");
    wait_for(LIMIT, "both to see each other again", || both(&two));

    // The file holds it, too.
    let conf = two.conf();
    assert!(conf.contains("requirepass \"the \\\"new\\\" one\"\n") && !conf.contains("the old one"), "{conf}");
    two.restart();
    assert!(text(&two.conn().cmd(&["PING"])).starts_with("NOAUTH"));
    wait_for(LIMIT, "both to see each other after a restart", || both(&two));

    // And away with it.
    let mut operator = logged_in(&two, "the \"new\" one");
    assert_eq!(operator.cmd(&["SENTINEL", "CONFIG", "SET", "requirepass", ""]), ok());
    two.restart();
    assert_eq!(two.conn().cmd(&["PING"]), Reply::Simple(b"PONG".to_vec()));
}

#[test]
fn r95_a_replica_with_another_password_is_down_and_the_log_says_why() {
    let standin = StandIn::start();
    let master = standin.server(with_password("one")).port;
    let replica = standin.server(Spec { password: Some("two".to_string()), ..Spec::replica_of(master) }).port;
    let sentinel = sentinel(&[
        format!("sentinel monitor mymaster 127.0.0.1 {master} 1"),
        "sentinel down-after-milliseconds mymaster 1000".to_string(),
        "sentinel auth-pass mymaster one".to_string(),
    ]);
    wait_for(LIMIT, "the replica to be down", || {
        let replicas = ask(sentinel.port, &["SENTINEL", "REPLICAS", "mymaster"]).map(|reply| maps(&reply));
        replicas.is_some_and(|replicas| replicas.len() == 1 && replicas[0]["flags"].contains("s_down"))
    });
    assert!(is_well(&sentinel));
    let reason = format!("127.0.0.1:{replica} refuses our commands: WRONGPASS");
    assert_eq!(sentinel.log().matches(&reason).count(), 1, "{}", sentinel.log());
}

/// The user whom the Sentinel is may do everything but use the hello channel.
#[test]
fn r96_a_right_that_is_missing_is_told_once_and_not_with_every_try() {
    let Some(program) = present(Redis::program(), "redis-server") else { return };
    let server = Redis::start(&program, &["user watcher on >pw ~* resetchannels +@all"]);
    let sentinel = sentinel(&[
        format!("sentinel monitor mymaster 127.0.0.1 {} 1", server.port),
        "sentinel auth-user mymaster watcher".to_string(),
        "sentinel auth-pass mymaster pw".to_string(),
    ]);
    assert_eq!(
        sentinel.conn().cmd(&["SENTINEL", "DEBUG", "publish-period", "200", "min-link-reconnect-period", "500"]),
        ok()
    );
    let refusal = format!("127.0.0.1:{} refuses our commands: NOPERM", server.port);
    wait_for(LIMIT, "the reason in the log", || sentinel.log().contains(&refusal));
    // Asked again and again, told once.
    let denied = || {
        let log = maps(&Conn::to(server.port).cmd(&["ACL", "LOG"]));
        log.iter()
            .filter(|entry| entry["object"] == "__sentinel__:hello")
            .map(|e| e["count"].parse().unwrap_or(0))
            .sum()
    };
    wait_for(LIMIT, "many refusals", || {
        let count: u32 = denied();
        count >= 10
    });
    assert_eq!(sentinel.log().matches(&refusal).count(), 1, "{}", sentinel.log());
    // What it may do goes on.
    let flags = || master_field(&sentinel, "mymaster", "flags");
    assert!(!flags().contains("s_down"), "{}", flags());
    let _ = text(&Conn::to(server.port).cmd(&["ACL", "SETUSER", "watcher", "&*"]));
    let hellos = Events::subscribe(server.port, &["__sentinel__:hello"]);
    let _ = hellos.expect(LIMIT, "__sentinel__:hello", &sentinel.id());
    wait_for(LIMIT, "both links", || flags() == "master");
}

#[test]
fn r103_links_that_are_lost_while_there_are_no_descriptors_come_back_when_there_are_some() {
    let Some(prlimit) = present(find_program("prlimit"), "prlimit") else { return };
    let standin = StandIn::start();
    let masters: Vec<u16> = standin.servers(vec![Spec::master(); 20]).iter().map(|server| server.port).collect();
    let mut lines = Vec::new();
    for (index, port) in masters.iter().enumerate() {
        lines.push(format!("sentinel monitor m{index} 127.0.0.1 {port} 1"));
        lines.push(format!("sentinel down-after-milliseconds m{index} 1000"));
    }
    let mut sentinel = sentinel(&lines);
    let well =
        |sentinel: &Sentinel| (0..20).filter(|n| master_field(sentinel, &format!("m{n}"), "flags") == "master").count();
    wait_for(LIMIT, "all links", || well(&sentinel) == 20);
    let mut conn = sentinel.conn();
    // Answered, and so accepted, while there are descriptors.
    assert_eq!(text(&conn.cmd(&["PING"])), "PONG");
    let id = sentinel.process().id();
    let limit = |files: &str| {
        let done = Command::new(&prlimit).args(["--pid", &id.to_string(), &format!("--nofile={files}:")]).status();
        assert!(done.is_ok_and(|status| status.success()), "prlimit");
    };
    let files = || std::fs::read_dir(format!("/proc/{id}/fd")).map_or(0, Iterator::count);
    let before = std::fs::read_to_string(format!("/proc/{id}/limits")).expect("its limits");
    let before = before.lines().find(|line| line.starts_with("Max open files")).expect("that limit").to_string();
    let before = before.split_whitespace().nth(3).expect("the soft one");
    // Below what is open: all links are cut, and none can be made anew.
    limit("3");
    for &port in &masters {
        let mut killer = Conn::to(port);
        let _ = killer.cmd(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        let _ = killer.cmd(&["CLIENT", "KILL", "TYPE", "normal"]);
    }
    let down = |conn: &mut Conn| {
        maps(&conn.cmd(&["SENTINEL", "MASTERS"])).iter().filter(|m| m["flags"].contains("s_down")).count()
    };
    wait_for(LIMIT, "all masters to be down", || down(&mut conn) == 20);
    assert!(files() < 20, "{} descriptors", files());
    let begin = Instant::now();
    assert_eq!(text(&conn.cmd(&["PING"])), "PONG");
    assert!(begin.elapsed() < Duration::from_secs(2));
    // A save needs a descriptor, too.
    assert!(text(&conn.cmd(&["SENTINEL", "FLUSHCONFIG"])).starts_with("ERR Failed to save config file"));
    limit(before);
    wait_for(LIMIT, "all links again", || well(&sentinel) == 20);
    assert_eq!(conn.cmd(&["SENTINEL", "FLUSHCONFIG"]), ok());
    assert!(sentinel.process().is_running());
}

/// The way back: the lines that we write about users give them the same rights under redis-sentinel, quotes included.
#[test]
fn the_users_that_we_write_are_those_that_redis_sentinel_reads() {
    let Some(redis) = present(Program::redis_sentinel(), "redis-sentinel") else { return };
    let ours = sentinel(&[]);
    let rules = ["on", "nopass", "+info", "~a\"b", "(~'x\"y' ~z\\\\w +ping)", "(&c) +client|id)"];
    let mut set = vec!["ACL", "SETUSER", "bob"];
    set.extend(rules);
    assert_eq!(ours.conn().cmd(&set), ok());
    assert_eq!(ours.conn().cmd(&["SENTINEL", "FLUSHCONFIG"]), ok());
    let conf = ours.conf();
    let line = conf.lines().find(|line| line.starts_with("user bob ")).unwrap_or_else(|| panic!("{conf}"));
    let theirs = Sentinel::start(&redis, &[line.to_string()]);
    let rights = |sentinel: &Sentinel| {
        let reply = sentinel.conn().cmd(&["ACL", "GETUSER", "bob"]);
        let reply = items(&reply);
        let selectors: Vec<Vec<String>> = reply.last().map(items).unwrap_or_default().iter().map(texts).collect();
        (texts(&Reply::Array(reply[..10].to_vec())), selectors)
    };
    let (ours, theirs) = (rights(&ours), rights(&theirs));
    assert_eq!(theirs.1, ours.1, "{line}");
    assert_eq!(theirs.1.len(), 2);
    let keys = |root: &[String]| root.iter().skip_while(|word| *word != "keys").nth(1).cloned();
    assert_eq!((keys(&theirs.0), keys(&ours.0)), (Some("~a\"b".to_string()), Some("~a\"b".to_string())));
}
