//! What files mean: every spelling that is about, in any order.

use std::io;
use watchfire::config::{self, Loaded, LogLevel, Must, Opened, ServerOptions, Source, Supervised};
use watchfire::core::{Options, RunId, Snapshot};

const M: &str = "sentinel monitor mymaster 127.0.0.1 6379 2\n";

fn read(text: impl AsRef<[u8]>) -> Loaded {
    let mut none = |_: &str| Err(io::Error::from_raw_os_error(2));
    config::read(text.as_ref(), Source::file("sentinel.conf"), &mut none).unwrap_or_else(|error| panic!("{error}"))
}

fn with_args(text: &str, args: &[&str]) -> Loaded {
    let arguments = config::from_args(args);
    config::read(text.as_bytes(), Source::file("s").with_arguments(&arguments), &mut |_| unreachable!())
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn an_empty_file_gives_the_defaults_of_redis_sentinel() {
    let loaded = read("");
    assert_eq!(loaded.server, ServerOptions::default());
    assert_eq!(loaded.snapshot, Snapshot::default());
    assert_eq!((loaded.server.port, loaded.server.tcp_backlog, loaded.server.tcp_keepalive), (26379, 511, 300));
    assert_eq!((loaded.server.timeout, loaded.server.maxclients), (0, 10_000));
    assert!(!loaded.server.protected_mode && !loaded.server.daemonize);
    assert!(loaded.notes.is_empty());
}

#[test]
fn every_plain_directive_that_means_something_is_stored() {
    let loaded = read(
        "PORT 5000\nbind 127.0.0.1 -::1\nBind-Source-Addr 10.0.0.1\nunixsocket /s\nunixsocketperm 0700\nprotected-mode YES\n\
         tcp-backlog 7\ntcp-keepalive 8\ntimeout 9\nmaxclients 10\nrequirepass \"a b\\x00\"\ndir /tmp\nlogfile \"\"\n\
         loglevel NOTHING\nsyslog-enabled yes\nsyslog-ident x\nsyslog-facility LOCAL3\ndaemonize yes\npidfile '/p q'\r\n\
         \t supervised systemd \t\nport 5001\n",
    );
    let expected = ServerOptions {
        port: 5001, // the last one counts
        bind: vec!["127.0.0.1".into(), "-::1".into()],
        bind_source_addr: "10.0.0.1".into(),
        unixsocket: "/s".into(),
        unixsocketperm: 0o700,
        protected_mode: true,
        tcp_backlog: 7,
        tcp_keepalive: 8,
        timeout: 9,
        maxclients: 10,
        requirepass: b"a b\0".to_vec(),
        dir: "/tmp".into(),
        loglevel: LogLevel::Nothing,
        syslog_enabled: true,
        syslog_ident: "x".into(),
        syslog_facility: "local3".into(),
        daemonize: true,
        pidfile: "/p q".into(),
        supervised: Supervised::Systemd,
        ..ServerOptions::default()
    };
    assert_eq!(loaded.server, expected);
    assert_eq!((loaded.checks[0].must, loaded.checks[0].path.as_str()), (Must::BeDirectory, "/tmp"));
}

#[test]
fn r09_sentinel_lines_may_stand_in_any_order_and_case() {
    let id = "Ab".repeat(20);
    let forward = format!(
        "sentinel resolve-hostnames yes\nsentinel myid {id}\nsentinel monitor m redis.example 6379 2\n\
         sentinel down-after-milliseconds m 5\nsentinel failover-timeout m 6\nsentinel parallel-syncs m 7\n\
         sentinel notification-script m /n\nsentinel client-reconfig-script m /c\nsentinel auth-pass m p\n\
         sentinel auth-user m u\nsentinel config-epoch m 8\nsentinel leader-epoch m 9\nsentinel known-replica m ::1 1\n\
         sentinel known-sentinel m 10.0.0.1 2 {id2}\nsentinel rename-command m CONFIG x\n\
         sentinel master-reboot-down-after-period m 10\nsentinel down-after-refused m 13\nsentinel ping-period m 14\nsentinel current-epoch 11\nsentinel announce-ip 1.1.1.1\n\
         sentinel announce-port 12\nsentinel announce-hostnames yes\nsentinel sentinel-user su\n\
         sentinel sentinel-pass sp\nsentinel deny-scripts-reconfig no\n",
        id2 = "c".repeat(40),
    );
    let backward: Vec<String> = forward.lines().rev().map(|l| l.replacen("sentinel ", "SenTinel  ", 1)).collect();
    let backward = backward.join("\n");
    let loaded = read(&forward);
    assert_eq!(read(backward).snapshot, loaded.snapshot);

    let snapshot = loaded.snapshot;
    assert_eq!((snapshot.myid.unwrap().as_str(), snapshot.current_epoch), (id.as_str(), 11));
    let options = Options {
        resolve_hostnames: true,
        announce_hostnames: true,
        announce_ip: "1.1.1.1".into(),
        announce_port: 12,
        sentinel_user: "su".into(),
        sentinel_pass: b"sp".to_vec(),
        deny_scripts_reconfig: false,
    };
    assert_eq!(snapshot.options, options);
    let m = &snapshot.masters[0];
    assert_eq!((m.host.as_str(), m.port, m.config_epoch, m.leader_epoch), ("redis.example", 6379, 8, 9));
    let s = &m.settings;
    assert_eq!((s.quorum, s.down_after, s.failover_timeout, s.parallel_syncs, s.reboot_down_after), (2, 5, 6, 7, 10));
    assert_eq!((s.down_after_refused, s.ping_period), (13, 14));
    assert_eq!((s.auth_user.as_str(), s.auth_pass.as_slice()), ("u", b"p".as_slice()));
    assert_eq!((s.notification_script.as_str(), s.client_reconfig_script.as_str()), ("/n", "/c"));
    assert_eq!(s.rename_commands.get("CONFIG").map(String::as_str), Some("x"));
    assert_eq!(m.known_replicas, [("::1".to_string(), 1)]);
    assert_eq!((m.known_peers[0].host.as_str(), m.known_peers[0].port), ("10.0.0.1", 2));
    assert_eq!(loaded.checks.iter().map(|check| check.path.as_str()).collect::<Vec<_>>(), ["/n", "/c"]);
    assert!(loaded.checks[1].error.message.starts_with("Client reconfiguration script seems non existing"));
}

#[test]
fn the_epoch_is_the_largest_that_the_file_knows() {
    let text = format!("{M}sentinel current-epoch 5\nsentinel current-epoch 3\nsentinel config-epoch mymaster 7\n");
    assert_eq!(read(text).snapshot.current_epoch, 7);
    assert_eq!(read("sentinel current-epoch 5\nsentinel current-epoch 3\n").snapshot.current_epoch, 5);
}

#[test]
fn an_epoch_beyond_the_last_is_the_last() {
    for epoch in ["9223372036854775808", "18446744073709551615", "99999999999999999999"] {
        for (line, whose) in [("current-epoch", ""), ("config-epoch", " mymaster"), ("leader-epoch", " mymaster")] {
            let loaded = read(format!("{M}sentinel {line}{whose} {epoch}\n"));
            let master = &loaded.snapshot.masters[0];
            let epochs = [loaded.snapshot.current_epoch, master.config_epoch, master.leader_epoch];
            assert_eq!(epochs.iter().max(), Some(&Snapshot::EPOCH_LAST), "{line} {epoch}");
            assert!(loaded.notes[0].starts_with(&format!(
                "line 2: sentinel {line} '{epoch}' is more than there can be and is read as {}: ",
                Snapshot::EPOCH_LAST
            )));
        }
    }
    let loaded = read(format!("sentinel current-epoch {}\n", Snapshot::EPOCH_LAST));
    assert_eq!((loaded.snapshot.current_epoch, loaded.notes.len()), (Snapshot::EPOCH_LAST, 0));
}

#[test]
fn r91_both_families_of_names_load_and_vanished_ones_do_not_stop_the_start() {
    let text = format!(
        "{M}sentinel known-slave mymaster 127.0.0.1 1\nsentinel known-replica mymaster 127.0.0.1 2\n\
         sentinel primary-reboot-down-after-period mymaster 5\nsentinel can-failover mymaster yes\n\
         primaryauth x\nmasterauth y\nsave 900 1\nmaxmemory 1gb\nmaxmemory 2gb\nmptcp yes\n"
    );
    let loaded = read(text);
    let master = &loaded.snapshot.masters[0];
    assert_eq!(master.known_replicas.len(), 2);
    assert_eq!(master.settings.reboot_down_after, 5);
    let notes = loaded.notes.join("\n");
    assert_eq!(loaded.ignored, ["primaryauth", "masterauth", "save", "maxmemory"]);
    assert!(notes.contains("mptcp: not supported by this version and NOT in effect"), "{notes}");
    assert!(notes.contains("can-failover is ignored") && notes.contains("replica-priority 0"), "{notes}");
}

#[test]
fn r24_sentinels_with_port_0_load_and_are_dropped_as_are_those_that_cannot_be_counted() {
    let (a, b) = ("a".repeat(40), "b".repeat(40));
    let text = format!(
        "{M}sentinel myid {b}\nsentinel known-sentinel mymaster 127.0.0.1 0 {a}\n\
         sentinel known-sentinel mymaster 127.0.0.1 5000 {a}\nsentinel known-sentinel mymaster 127.0.0.1 5001\n\
         sentinel known-sentinel nobody 127.0.0.1 5001\nsentinel known-sentinel mymaster 127.0.0.1 5001 \"\"\n\
         sentinel known-sentinel mymaster 127.0.0.1 5001 ab\nsentinel known-sentinel mymaster 127.0.0.1 5002 {b}\n"
    );
    let loaded = read(text);
    let peers = &loaded.snapshot.masters[0].known_peers;
    assert_eq!(peers.len(), 1);
    assert_eq!((peers[0].port, peers[0].run_id), (5000, RunId::parse(a.as_bytes()).unwrap()));
    assert_eq!(loaded.notes.len(), 6, "{:#?}", loaded.notes);
}

#[test]
fn r45_a_replica_that_is_the_master_itself_is_dropped() {
    let loaded = read(format!("{M}sentinel known-replica mymaster 127.0.0.1 6379\n"));
    assert!(loaded.snapshot.masters[0].known_replicas.is_empty());
    assert_eq!(loaded.notes.len(), 1);
}

#[test]
fn r82_lines_that_say_the_same_twice_are_noted_and_load() {
    let id = "a".repeat(40);
    let lines = format!(
        "{M}sentinel known-replica mymaster 127.0.0.1 1\nsentinel known-sentinel mymaster 127.0.0.1 2 {id}\n\
         sentinel rename-command mymaster config x\nsentinel down-after-milliseconds mymaster 5\nsentinel myid {id}\n"
    );
    let id = "b".repeat(40);
    let lines = lines.replace(&format!("myid {}", "a".repeat(40)), &format!("myid {id}"));
    let (once, twice) = (read(&lines), read(format!("{lines}{lines}")));
    assert_eq!(once.snapshot, twice.snapshot);
    assert_eq!(twice.notes.len(), 6, "{:#?}", twice.notes);
    assert!(twice.notes.iter().all(|note| note.contains("repeats line")), "{:#?}", twice.notes);
}

#[test]
fn r81_a_replica_under_the_old_and_the_new_spelling_is_one_replica() {
    let text =
        format!("{M}sentinel known-slave mymaster 127.0.0.1 5001\nsentinel known-replica mymaster 127.0.0.1 5001\n");
    assert_eq!(read(text).snapshot.masters[0].known_replicas, [("127.0.0.1".to_string(), 5001)]);
}

#[test]
fn words_may_be_quoted_everywhere_as_valkey_writes_them() {
    let id = "a".repeat(40);
    let text = format!(
        "\"sentinel\" 'monitor' \"my master\" \"127.0.0.1\" \"6379\" \"2\"\n\
         sentinel known-sentinel \"my master\" 127.0.0.1 5000 \"{id}\"\nsentinel auth-pass \"my master\" \"a\\x00\\\"b\"\n"
    );
    let loaded = read(text);
    let master = &loaded.snapshot.masters[0];
    assert_eq!((master.name.as_str(), master.known_peers.len()), ("my master", 1));
    assert_eq!(master.settings.auth_pass, b"a\0\"b");
}

#[test]
fn numbers_are_read_as_ever_and_doubtful_ones_are_noted() {
    let loaded =
        read(format!("{M}sentinel down-after-milliseconds mymaster 12abc\nsentinel parallel-syncs mymaster -3\n"));
    let settings = &loaded.snapshot.masters[0].settings;
    assert_eq!((settings.down_after, settings.parallel_syncs), (12, 0));
    let notes = [
        "line 2: sentinel down-after-milliseconds '12abc' is read as 12",
        "mymaster: parallel-syncs is 0, which counts as 1",
    ];
    assert_eq!(loaded.notes, notes);
}

#[test]
fn a_file_that_redis_sentinel_has_written_loads_without_alarm() {
    let loaded = read(
        "port 26379\n\n# Generated by CONFIG REWRITE\nlatency-tracking-info-percentiles 50 99 99.9\ndir \"/tmp\"\n\
         protected-mode no\nuser default on nopass sanitize-payload ~* &* +@all\n\
         sentinel myid e3009d3269d6f4b3eb011480a3618b1779a647bd\nsentinel monitor mymaster 127.0.0.1 6379 2\n\
         sentinel config-epoch mymaster 0\nsentinel leader-epoch mymaster 0\nsentinel current-epoch 0\n",
    );
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    assert_eq!(loaded.ignored, ["latency-tracking-info-percentiles"]);
    assert_eq!((loaded.users.len(), loaded.users[0].rules.len()), (1, 6));
}

#[test]
fn debians_file_loads() {
    // Upper-case keywords and every default of the package.
    let loaded = read(
        "protected-mode no\nport 26379\ndaemonize yes\npidfile /run/sentinel/redis-sentinel.pid\n\
         logfile /var/log/redis/redis-sentinel.log\ndir /var/lib/redis\nsentinel monitor mymaster 127.0.0.1 6379 2\n\
         sentinel down-after-milliseconds mymaster 30000\nacllog-max-len 128\nsentinel parallel-syncs mymaster 1\n\
         sentinel failover-timeout mymaster 180000\nsentinel deny-scripts-reconfig yes\nSENTINEL resolve-hostnames no\n\
         SENTINEL announce-hostnames no\nSENTINEL master-reboot-down-after-period mymaster 0\n",
    );
    assert_eq!(loaded.snapshot.options, Options::default());
    assert!(loaded.server.daemonize);
}

fn one(path: &str, text: &str) -> Vec<Opened> {
    vec![Opened { path: path.into(), text: text.into() }]
}

/// The command line comes again with every start: what it includes must not move a master back either.
#[test]
fn what_the_command_line_includes_is_the_command_lines() {
    let mut open = |path: &str| Ok(one(path, "sentinel monitor m 127.0.0.1 1 2\nport 7\n"));
    let main = b"port 5\nsentinel monitor m 127.0.0.1 2 2\nsentinel config-epoch m 7\n";
    let arguments = config::from_args(&["--include", "i.conf"]);
    let loaded = config::read(main, Source::file("s").with_arguments(&arguments), &mut open).unwrap();
    assert_eq!((loaded.snapshot.masters[0].port, loaded.server.port), (2, 7));
    assert!(loaded.notes[0].contains("line 2 says otherwise and counts"), "{:?}", loaded.notes);
    assert!(loaded.server.included.is_empty());
}

#[test]
fn included_paths_count_from_the_last_dir() {
    let mut asked = Vec::new();
    let mut open = |path: &str| {
        asked.push(path.to_string());
        Ok(one(path, ""))
    };
    let main = b"include a\ndir /x\ninclude b\ndir y\ninclude c*\ninclude /d\n";
    config::read(main, Source::file("s"), &mut open).unwrap();
    assert_eq!(asked, ["a", "/x/b", "/x/y/c*", "/d"]);
}

#[test]
fn directives_of_several_words_may_come_as_one() {
    let loaded = read(
        "bind \"127.0.0.1 ::1\"\nclient-output-buffer-limit \"pubsub 3mb 2mb 60\"\noom-score-adj-values \"5 6 7\"\n\
         save\nsave \"900 1\"\nlatency-tracking-info-percentiles\n",
    );
    assert_eq!(loaded.server.bind, ["127.0.0.1", "::1"]);
    assert_eq!(loaded.server.output_pubsub.hard, 3 << 20);
    assert_eq!(loaded.server.oom_score, 5);
    assert_eq!(with_args("", &["--bind", "127.0.0.1 ::1"]).server.bind.len(), 2);
}

#[test]
fn included_lines_stand_where_the_include_stands_and_may_be_corrected_by_the_main_file() {
    let mut open = |path: &str| match path {
        "/a" => Ok(one(path, "port 2\ninclude /b\nsentinel monitor m 127.0.0.1 1 1\n")),
        "/b" => Ok(one(path, "timeout 3\nsentinel down-after-milliseconds m 50")),
        _ => Err(io::Error::from_raw_os_error(2)),
    };
    let main = b"port 1\ninclude /a\ntimeout 4\nsentinel monitor m 127.0.0.1 2 2\n";
    let loaded = config::read(main, Source::file("main"), &mut open).unwrap();
    assert_eq!((loaded.server.port, loaded.server.timeout), (2, 4));
    let master = &loaded.snapshot.masters[0];
    assert_eq!((master.port, master.settings.quorum, master.settings.down_after), (2, 2, 50));
    assert_eq!(loaded.server.included.len(), 2);
    assert_eq!(loaded.notes, ["line 4: counts instead of line 3 of /a"]);
}

#[test]
fn r90_the_command_line_follows_the_file_but_does_not_move_a_master_back() {
    let loaded = with_args("port 1\n", &["--sentinel", "--port", "2", "--loglevel", "verbose"]);
    assert_eq!((loaded.server.port, loaded.server.loglevel), (2, LogLevel::Verbose));

    let monitor = ["--sentinel", "monitor", "mymaster", "127.0.0.1", "6379", "2"];
    assert_eq!(with_args("", &monitor).snapshot.masters.len(), 1);
    assert_eq!(with_args(M, &monitor).snapshot.masters[0].port, 6379);
    // After a failover the file holds another address than the command line of the container.
    let loaded = with_args("sentinel monitor mymaster 127.0.0.1 7777 2\n", &monitor);
    assert_eq!(loaded.snapshot.masters[0].port, 7777);
    assert_eq!(loaded.notes.len(), 1, "{:?}", loaded.notes);
}

#[test]
fn a_line_may_hold_any_bytes_where_passwords_stand() {
    let mut text = format!("{M}sentinel auth-pass mymaster ").into_bytes();
    text.extend_from_slice(b"\xff\xfe\x01\n");
    assert_eq!(read(text).snapshot.masters[0].settings.auth_pass, b"\xff\xfe\x01");
}
