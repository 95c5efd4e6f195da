//! Reports of users, group F: the configuration file, which is also the state. The numbers are those of the collection of
//! reports; most of the group is held by `tests/config_*` (R09, R81 to R91), R77 and R79 by `tests/process_disk.rs`; what else needs the real binary is here, and the
//! questions of R92 are a story in `tests/transcripts`.

mod live;
mod support;

use std::process::Command;

use live::{LIMIT, master_field};
use support::conn::{items, text};
use support::ports;
use support::process::{Sentinel, wait_for};
use watchfire::resp::Reply;

fn sentinel(lines: &[String]) -> Sentinel {
    Sentinel::start(&live::watchfire(), lines)
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

#[test]
fn r81_r82_what_older_versions_left_behind_starts_and_starts_again() {
    let port = ports::free();
    let monitor = format!("sentinel monitor mymaster 127.0.0.1 {port} 1");
    let mut sentinel = sentinel(&[
        monitor.clone(),
        monitor.clone(),
        "sentinel known-slave mymaster 127.0.0.1 5001".to_string(),
        "sentinel known-replica mymaster 127.0.0.1 5001".to_string(),
        "sentinel known-slave mymaster 127.0.0.1 5002".to_string(),
    ]);
    for _ in 0..2 {
        assert_eq!(items(&sentinel.conn().cmd(&["SENTINEL", "REPLICAS", "mymaster"])).len(), 2);
        assert_eq!(sentinel.conn().cmd(&["SENTINEL", "FLUSHCONFIG"]), ok());
        let conf = sentinel.conf();
        assert_eq!(conf.matches(&monitor).count(), 1, "{conf}");
        for replica in ["5001", "5002"] {
            assert_eq!(conf.matches(&format!("known-replica mymaster 127.0.0.1 {replica}")).count(), 1, "{conf}");
        }
        assert!(!conf.contains("known-slave"), "{conf}");
        sentinel.restart();
    }
}

/// Nothing is taken at run time, and saved, that the next start would not load.
#[test]
fn r86_what_a_command_takes_loads_from_the_file() {
    let port = ports::free().to_string();
    let sentinel = sentinel(&[format!("sentinel monitor mymaster 127.0.0.1 {port} 1")]);
    let mut conn = sentinel.conn();
    let folder = support::process::Folder::new("check");
    let loads = |line: &str| {
        let conf = folder.path().join("sentinel.conf");
        std::fs::write(&conf, format!("port {port}\nsentinel monitor mymaster 127.0.0.1 {port} 1\n{line}\n"))
            .expect("the folder can be written");
        let check = Command::new(env!("CARGO_BIN_EXE_watchfire")).arg(&conf).arg("--check-config").output();
        check.expect("it runs").status.success()
    };
    let mut taken = 0;
    for words in [
        &["monitor", "other", "127.0.0.1", "6379", "0"][..],
        &["monitor", "other", "127.0.0.1", "0", "1"],
        &["monitor", "other", "127.0.0.1", "70000", "1"],
        &["monitor", "other", "no-such-host.invalid", "6379", "1"],
        &["monitor", "oth er", "127.0.0.1", "6379", "1"],
        &["set", "mymaster", "quorum", "0"],
        &["set", "mymaster", "down-after-milliseconds", "0"],
        &["set", "mymaster", "down-after-milliseconds", "-1"],
        &["set", "mymaster", "failover-timeout", "0"],
        &["set", "mymaster", "failover-timeout", "1500"],
        &["set", "mymaster", "parallel-syncs", "0"],
        &["set", "mymaster", "parallel-syncs", "-7"],
        &["set", "mymaster", "notification-script", "/no/such/script"],
        &["set", "mymaster", "notification-script", "/bin/true"],
        &["set", "mymaster", "client-reconfig-script", "/etc/passwd"],
        &["monitor", "other", "127.0.0.1", "6379", "2"],
    ] {
        let _ = conn.cmd(&["SENTINEL", "REMOVE", "other"]);
        let asked: Vec<&str> = std::iter::once("SENTINEL").chain(words.iter().copied()).collect();
        let reply = conn.cmd(&asked);
        let line = match words {
            ["set", name, "quorum", n] => format!("sentinel monitor second{name} 127.0.0.1 {port} {n}"),
            ["set", name, option, value] => format!("sentinel {option} {name} {value}"),
            ["monitor", name, rest @ ..] => format!("sentinel monitor \"{name}\" {}", rest.join(" ")),
            other => panic!("{other:?}"),
        };
        // The file of another may hold what no command takes, as it does upstream; the other way round is the mistake.
        assert!(reply != ok() || loads(&line), "{words:?} was taken, but does not load");
        let quorum = line.starts_with("sentinel monitor secondmymaster");
        assert!(!quorum || (reply != ok() && !loads(&line)), "{words:?}: {reply:?}");
        taken += usize::from(reply == ok());
    }
    assert!((2..16).contains(&taken), "{taken}");
    // And what was taken is there after a restart.
    drop(conn);
    let mut sentinel = sentinel;
    sentinel.restart();
    assert_eq!(master_field(&sentinel, "mymaster", "failover-timeout"), "1500");
    assert_eq!(master_field(&sentinel, "other", "quorum"), "2");
}

/// Over the wire, into the file and back: nothing that a client or a peer says becomes a line of its own.
#[test]
fn r87_no_argument_becomes_a_directive() {
    let port = ports::free().to_string();
    let mut sentinel = sentinel(&[format!("sentinel monitor mymaster 127.0.0.1 {port} 1")]);
    let mut conn = sentinel.conn();
    let poison = "p\nsentinel failover-timeout mymaster 777";
    assert_eq!(conn.cmd(&["SENTINEL", "SET", "mymaster", "auth-pass", poison]), ok());
    let id = format!("{}\n{poison}", "a".repeat(40));
    for words in [
        &["SENTINEL", "SET", "mymaster", "auth-user", poison][..],
        &["SENTINEL", "SET", "mymaster", "rename-command", "config", poison],
        &["SENTINEL", "MONITOR", poison, "127.0.0.1", &port, "1"],
        &["SENTINEL", "MONITOR", "other", poison, &port, "1"],
        &["SENTINEL", "CONFIG", "SET", "announce-ip", poison],
        &["SENTINEL", "CONFIG", "SET", "sentinel-user", poison],
    ] {
        let reply = conn.cmd(words);
        assert!(matches!(reply, Reply::Error(_)), "{words:?}: {reply:?}");
    }
    for id in [&id, &poison.to_string(), &"a".repeat(39), &String::new()] {
        let _ =
            conn.cmd(&["PUBLISH", "__sentinel__:hello", &format!("127.0.0.1,1,{id},0,mymaster,127.0.0.1,{port},0")]);
    }
    assert_eq!(conn.cmd(&["SENTINEL", "FLUSHCONFIG"]), ok());
    sentinel.restart();
    assert_eq!(master_field(&sentinel, "mymaster", "failover-timeout"), "180000");
    assert_eq!(master_field(&sentinel, "mymaster", "num-other-sentinels"), "0");
    let lines = sentinel.conf().lines().filter(|line| line.starts_with("sentinel failover-timeout")).count();
    assert_eq!(lines, 0, "{}", sentinel.conf());
}

/// A peer of any age asks in its own words, and its vote is given.
#[test]
fn r92_a_question_is_answered_in_either_spelling() {
    let port = ports::free().to_string();
    let sentinel = sentinel(&[
        format!("sentinel monitor mymaster 127.0.0.1 {port} 3"),
        "sentinel down-after-milliseconds mymaster 100".to_string(),
    ]);
    wait_for(LIMIT, "the master to be down", || master_field(&sentinel, "mymaster", "flags").contains("s_down"));
    let mut conn = sentinel.conn();
    for (epoch, word) in
        ["is-master-down-by-addr", "IS-PRIMARY-DOWN-BY-ADDR", "is-primary-down-by-addr"].iter().enumerate()
    {
        let epoch = (epoch + 1).to_string();
        let id = epoch.repeat(40);
        let answer = conn.cmd(&["SENTINEL", word, "127.0.0.1", &port, &epoch, &id]);
        let [Reply::Integer(1), leader, Reply::Integer(vote)] = items(&answer) else { panic!("{word}: {answer:?}") };
        assert_eq!((text(leader), vote.to_string()), (id, epoch), "{word}");
    }
}
