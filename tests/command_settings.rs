//! MONITOR, REMOVE, RESET, SET, CONFIG, DEBUG, SIMULATE-FAILURE and FLUSHCONFIG: checks, errors, saves.

mod command_support;

use command_support::{Bench, field, golden};
use watchfire::command::Wish;
use watchfire::config::LogLevel;
use watchfire::core::{Level, Settings, Snapshot};

const NO_MASTER: &str = "-ERR No such master with that name\r\n";
const NOT_SAVED: &str = "-ERR Failed to save config file. Check server logs.\r\n";

fn expect(cases: &[(&str, &str)]) {
    let mut bench = Bench::new();
    let client = bench.client();
    for (line, reply) in cases {
        assert_eq!(bench.ask(client, line), *reply, "{line}");
    }
}

fn settings(bench: &Bench) -> Settings {
    bench.sentinel.master_by_name(b"mymaster").unwrap().settings.clone()
}

#[test]
fn monitor_checks_in_the_references_order() {
    expect(&[
        ("SENTINEL monitor mymaster 127.0.0.1 1 1", "-ERR Duplicate master name.\r\n"),
        ("SENTINEL monitor mymaster 127.0.0.1 70000 1", "-ERR Invalid port number.\r\n"),
        ("SENTINEL monitor m2 foo 1 1", "-ERR Invalid IP address or hostname specified\r\n"),
        ("SENTINEL monitor m2 '' 1 1", "-ERR Invalid IP address or hostname specified\r\n"),
        ("SENTINEL monitor mymaster foo 99999 1", "-ERR Invalid IP address or hostname specified\r\n"),
        ("SENTINEL monitor m2 127.0.0.1 a 1", "-ERR Invalid port\r\n"),
        ("SENTINEL monitor m2 foo a b", "-ERR Invalid quorum\r\n"),
        ("SENTINEL monitor m2 127.0.0.1 1 a", "-ERR Invalid quorum\r\n"),
        ("SENTINEL monitor m2 127.0.0.1 1 0", "-ERR Quorum must be 1 or greater.\r\n"),
        ("SENTINEL monitor m2 127.0.0.1 1 -5", "-ERR Quorum must be 1 or greater.\r\n"),
        ("SENTINEL monitor m2 127.0.0.1 70000 1", "-ERR Invalid port number.\r\n"),
        ("SENTINEL monitor m2 127.0.0.1 -1 1", "-ERR Invalid port number.\r\n"),
        ("SENTINEL monitor m2 127.0.0.1 0 1", "+OK\r\n"),
        ("SENTINEL get-master-addr-by-name m2", "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n0\r\n"),
        ("SENTINEL monitor v6 ::1 6379 1", "+OK\r\n"),
        ("SENTINEL get-master-addr-by-name v6", "*2\r\n$3\r\n::1\r\n$4\r\n6379\r\n"),
        ("SENTINEL remove nope", NO_MASTER),
        ("SENTINEL remove m2", "+OK\r\n"),
        ("SENTINEL get-master-addr-by-name m2", "*-1\r\n"),
    ]);
}

#[test]
fn r87_control_characters_are_refused_wherever_they_could_reach_the_file() {
    let mut bench = Bench::new();
    let client = bench.client();
    let refused = |at: usize, command: &str| {
        format!("-ERR Invalid argument at index {at} for {command}: control characters are not allowed\r\n")
    };
    for (line, at) in [
        (r#"SENTINEL MONITOR "a\nb" 127.0.0.1 0 1"#, 2),
        (r#"SENTINEL MONITOR m2 "127.0.0.1\n" 0 1"#, 3),
        (r#"SENTINEL MONITOR m2 127.0.0.1 "0\n" 1"#, 4),
        (r#"SENTINEL MONITOR m2 127.0.0.1 0 "1\x7f""#, 5),
    ] {
        assert_eq!(bench.ask(client, line), refused(at, "SENTINEL MONITOR"), "{line}");
    }
    for (line, at) in [
        (r#"SENTINEL SET mymaster quorum 2 auth-user "a\tb""#, 6),
        (r#"SENTINEL SET mymaster rename-command a "b\n""#, 5),
        (r#"SENTINEL SET mymaster rename-command "a\n" b"#, 4),
        (r#"SENTINEL SET mymaster notification-script "/x\nsentinel""#, 4),
    ] {
        assert_eq!(bench.ask(client, line), refused(at, "SENTINEL SET"), "{line}");
    }
    for (line, at) in [
        (r#"SENTINEL CONFIG SET announce-ip "a\nb""#, 4),
        (r#"SENTINEL CONFIG SET announce-port 0 sentinel-user "a\x7f""#, 6),
    ] {
        assert_eq!(bench.ask(client, line), refused(at, "SENTINEL CONFIG SET"), "{line}");
    }
    // A password is any bytes; it is quoted in the file.
    assert_eq!(
        bench.ask(client, r#"SENTINEL SET mymaster auth-pass "p\nsentinel failover-timeout mymaster 777""#),
        "+OK\r\n"
    );
    assert_eq!(settings(&bench).auth_pass, b"p\nsentinel failover-timeout mymaster 777");
    assert_eq!(bench.ask(client, r#"SENTINEL CONFIG SET sentinel-pass "a\r\nb\x00\xff""#), "+OK\r\n");
    assert_eq!(bench.sentinel.options().sentinel_pass, b"a\r\nb\0\xff");
}

#[test]
fn set_takes_every_option_of_the_reference() {
    let mut bench = Bench::new();
    let client = bench.client();
    let line = "SENTINEL SET mymaster down-after-milliseconds 1 FAILOVER-timeout 2 parallel-syncs 3 quorum 4 \
                master-reboot-down-after-period 5 auth-pass p auth-user u rename-command CONFIG c rename-command a b";
    assert_eq!(bench.ask(client, line), "+OK\r\n");
    let now = settings(&bench);
    assert_eq!((now.down_after, now.failover_timeout, now.parallel_syncs, now.quorum), (1, 2, 3, 4));
    assert_eq!((now.reboot_down_after, now.auth_user.as_str(), &now.auth_pass[..]), (5, "u", b"p".as_slice()));
    assert_eq!(now.rename_commands.len(), 2);
    assert_eq!(
        bench.ask(client, "SENTINEL SET mymaster primary-reboot-down-after-period 0 auth-pass '' auth-user ''"),
        "+OK\r\n"
    );
    let now = settings(&bench);
    assert!(now.reboot_down_after == 0 && now.auth_pass.is_empty() && now.auth_user.is_empty());
}

#[test]
fn set_takes_our_own_options_too_and_master_shows_them_where_they_are_set() {
    let mut bench = Bench::new();
    let client = bench.client();
    let shown = |bench: &mut Bench| {
        let reply = bench.ask(client, "SENTINEL MASTER mymaster");
        let value = |field: &str| {
            let mut lines = reply.split("\r\n").skip_while(|line| *line != field);
            lines.nth(2).map(str::to_owned)
        };
        (value("down-after-refused"), value("ping-period"))
    };
    assert_eq!(shown(&mut bench), (None, None));
    assert_eq!(bench.ask(client, "SENTINEL SET mymaster down-after-refused 200 PING-period 100"), "+OK\r\n");
    assert_eq!((settings(&bench).down_after_refused, settings(&bench).ping_period), (200, 100));
    assert_eq!(shown(&mut bench), (Some("200".into()), Some("100".into())));
    let saved = bench.saves;
    assert_eq!(bench.ask(client, "SENTINEL SET mymaster down-after-refused 0 ping-period 0"), "+OK\r\n");
    assert_eq!(shown(&mut bench), (None, None));
    assert_eq!(bench.saves, saved + 1);
}

#[test]
fn l4_a_set_that_is_refused_has_changed_nothing() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (before, saves) = (settings(&bench), bench.saves);
    let invalid =
        |value: &str, option: &str| format!("-ERR Invalid argument '{value}' for SENTINEL SET '{option}'\r\n");
    let unknown = |option: &str| format!("-ERR Unknown option or number of arguments for SENTINEL SET '{option}'\r\n");
    let denied = "-ERR Reconfiguration of scripts path is denied for security reasons. Check the deny-scripts-reconfig \
                  configuration directive in your Sentinel configuration\r\n";
    for (arguments, reply) in [
        ("failover-timeout 4242 quorum -1", invalid("-1", "quorum")),
        ("quorum 1 foo", unknown("foo")),
        ("foo 1", unknown("foo")),
        ("rename-command a", unknown("rename-command")),
        ("quorum 1 rename-command a ''", invalid("", "rename-command")),
        ("rename-command '' b", invalid("", "rename-command")),
        ("quorum 0", invalid("0", "quorum")),
        ("quorum x", invalid("x", "quorum")),
        ("quorum 99999999999", invalid("99999999999", "quorum")),
        ("down-after-milliseconds 0", invalid("0", "down-after-milliseconds")),
        ("failover-timeout ' 5'", invalid(" 5", "failover-timeout")),
        ("failover-timeout +5", invalid("+5", "failover-timeout")),
        ("failover-timeout 05", invalid("05", "failover-timeout")),
        ("failover-timeout 99999999999999999999", invalid("99999999999999999999", "failover-timeout")),
        ("parallel-syncs 0", invalid("0", "parallel-syncs")),
        ("master-reboot-down-after-period -1", invalid("-1", "master-reboot-down-after-period")),
        ("down-after-refused -1", invalid("-1", "down-after-refused")),
        ("ping-period x", invalid("x", "ping-period")),
        ("quorum 1 notification-script /bin/true", denied.to_owned()),
        ("client-reconfig-script ''", denied.to_owned()),
        ("deny-scripts-reconfig no", unknown("deny-scripts-reconfig")),
    ] {
        assert_eq!(bench.ask(client, &format!("SENTINEL SET mymaster {arguments}")), reply, "{arguments}");
    }
    assert_eq!(bench.ask(client, "SENTINEL SET nope quorum 1"), NO_MASTER);
    assert_eq!(
        bench.ask(client, "SENTINEL SET mymaster quorum"),
        "-ERR wrong number of arguments for 'sentinel|set' command\r\n"
    );
    assert_eq!(settings(&bench), before);
    assert_eq!(bench.saves, saves);
}

#[test]
fn scripts_may_be_set_only_where_that_is_allowed_and_only_to_what_can_be_run() {
    let mut snapshot = command_support::golden();
    snapshot.options.deny_scripts_reconfig = false;
    let mut bench = Bench::with(&snapshot);
    let client = bench.client();
    for (arguments, reply) in [
        ("notification-script /nope", "-ERR Notification script seems non existing or non executable\r\n"),
        ("client-reconfig-script /nope", "-ERR Client reconfiguration script seems non existing or non executable\r\n"),
        ("notification-script /bin/true client-reconfig-script /bin/true", "+OK\r\n"),
    ] {
        assert_eq!(bench.ask(client, &format!("SENTINEL SET mymaster {arguments}")), reply, "{arguments}");
    }
    let reply = bench.ask(client, "SENTINEL MASTER mymaster");
    assert!(reply.ends_with(
        "$19\r\nnotification-script\r\n$9\r\n/bin/true\r\n$22\r\nclient-reconfig-script\r\n$9\r\n/bin/true\r\n"
    ));
    assert_eq!(bench.ask(client, "SENTINEL SET mymaster notification-script ''"), "+OK\r\n");
    assert!(field(&bench.ask(client, "SENTINEL MASTER mymaster"), "notification-script").starts_with("no "));
}

#[test]
fn config_get_takes_globs_and_shows_each_key_once() {
    let mut bench = Bench::new();
    let client = bench.client();
    let all = "$17\r\nresolve-hostnames\r\n$2\r\nno\r\n$18\r\nannounce-hostnames\r\n$2\r\nno\r\n$11\r\nannounce-ip\r\n$0\r\n\r\n\
               $13\r\nannounce-port\r\n$1\r\n0\r\n$13\r\nsentinel-user\r\n$0\r\n\r\n$13\r\nsentinel-pass\r\n$0\r\n\r\n\
               $8\r\nloglevel\r\n$6\r\nnotice\r\n";
    let only = "-ERR Only SENTINEL CONFIG GET <param> [<param> <param> ...] / SET <param> <value> [<param> <value> ...] are \
                supported.\r\n";
    let arity = "-ERR wrong number of arguments for 'sentinel|config' command\r\n";
    for (line, reply) in [
        ("GET *", format!("*14\r\n{all}")),
        ("get nope", "*0\r\n".to_owned()),
        (
            "GET announce-ip ANN* sentinel-user nope",
            "*8\r\n$11\r\nannounce-ip\r\n$0\r\n\r\n$18\r\nannounce-hostnames\r\n$2\r\nno\r\n$13\r\nannounce-port\r\n$1\r\n0\r\n\
             $13\r\nsentinel-user\r\n$0\r\n\r\n"
                .to_owned(),
        ),
        ("GET", arity.to_owned()),
        ("foo", arity.to_owned()),
        ("foo bar", only.to_owned()),
        ("SET announce-port", only.to_owned()),
    ] {
        assert_eq!(bench.ask(client, &format!("SENTINEL CONFIG {line}")), reply, "{line}");
    }
    bench.ask(client, "HELLO 3");
    assert_eq!(bench.ask(client, "SENTINEL config get *"), format!("%7\r\n{all}"));
}

#[test]
fn config_set_is_all_or_nothing() {
    let mut bench = Bench::new();
    let client = bench.client();
    let before = bench.sentinel.options().clone();
    for (line, reply) in [
        ("announce-port x", "-ERR Invalid value 'x' to SENTINEL CONFIG SET 'announce-port'\r\n"),
        ("ANNOUNCE-port 70000", "-ERR Invalid value '70000' to SENTINEL CONFIG SET 'ANNOUNCE-port'\r\n"),
        ("resolve-hostnames foo", "-ERR Invalid value 'foo' to SENTINEL CONFIG SET 'resolve-hostnames'\r\n"),
        ("loglevel foo", "-ERR Invalid value 'foo' to SENTINEL CONFIG SET 'loglevel'\r\n"),
        ("foo x", "-ERR Invalid argument 'foo' to SENTINEL CONFIG SET\r\n"),
        ("foo bar baz", "-ERR Invalid argument 'foo' to SENTINEL CONFIG SET\r\n"),
        ("announce-port 7 loglevel zzz", "-ERR Invalid value 'zzz' to SENTINEL CONFIG SET 'loglevel'\r\n"),
        ("loglevel notice announce-port", "-ERR Missing argument 'announce-port' value\r\n"),
        ("loglevel notice loglevel debug", "-ERR Duplicate argument 'loglevel' to SENTINEL CONFIG SET\r\n"),
        ("requirepass x loglevel zzz", "-ERR Invalid value 'zzz' to SENTINEL CONFIG SET 'loglevel'\r\n"),
        ("requirepass x requirepass y", "-ERR Duplicate argument 'requirepass' to SENTINEL CONFIG SET\r\n"),
        ("announce-ip a,b", "-ERR Invalid value 'a,b' to SENTINEL CONFIG SET 'announce-ip'\r\n"),
        ("announce-ip 'a b'", "-ERR Invalid value 'a b' to SENTINEL CONFIG SET 'announce-ip'\r\n"),
        ("announce-ip köln", "-ERR Invalid value 'köln' to SENTINEL CONFIG SET 'announce-ip'\r\n"),
    ] {
        assert_eq!(bench.ask(client, &format!("SENTINEL CONFIG SET {line}")), reply, "{line}");
    }
    assert_eq!(*bench.sentinel.options(), before);
    assert!(bench.wishes.is_empty());
    assert!(bench.acl.default_user().needs_no_password());
    let saves = bench.saves;
    assert_eq!(
        bench.ask(client, "SENTINEL CONFIG SET announce-port 7 resolve-hostnames YES announce-ip foo.bar"),
        "+OK\r\n"
    );
    let options = bench.sentinel.options();
    assert!(options.resolve_hostnames && options.announce_port == 7 && options.announce_ip == "foo.bar");
    assert_eq!(bench.saves, saves + 1);
    assert_eq!(bench.ask(client, "SENTINEL CONFIG SET loglevel VERBOSE"), "+OK\r\n");
    assert_eq!(bench.wishes, [Wish::LogLevel(LogLevel::Verbose)]);
    assert_eq!(bench.saves, saves + 2, "the log level is in the file as well");
}

#[test]
fn what_we_announce_is_what_others_can_take_and_what_they_may_not_be_able_to_is_doubted() {
    let mut bench = Bench::new();
    let client = bench.client();
    let mut set = |line: &str| {
        bench.logged.clear();
        let reply = bench.ask(client, &format!("SENTINEL CONFIG SET {line}"));
        (reply, bench.logged.iter().filter(|text| text.contains("announce-ip")).cloned().collect::<Vec<_>>())
    };
    let (ok, name) = ("+OK\r\n".to_owned(), "a".repeat(253));
    assert!(set(&format!("announce-ip {name}b")).0.starts_with("-ERR Invalid value"), "one letter too many");
    let (reply, doubts) = set(&format!("announce-ip {name}"));
    assert!(
        reply == ok && doubts.len() == 1 && doubts[0].contains("is a name, and resolve-hostnames is no"),
        "{doubts:?}"
    );
    assert_eq!(set(&format!("announce-port 7 announce-ip {name}")), (ok.clone(), vec![]), "said already");
    assert_eq!(set("resolve-hostnames yes"), (ok.clone(), vec![]));
    assert_eq!(set("resolve-hostnames no").1.len(), 1);
    assert!(set("announce-ip fe80::1%eth0").1[0].contains("zone id"));
    for harmless in ["127.0.0.1", "::1", "''"] {
        assert_eq!(set(&format!("announce-ip {harmless}")), (ok.clone(), vec![]), "{harmless}");
    }
    // What stands in the file is looked at as well.
    let mut snapshot: Snapshot = golden();
    snapshot.options.announce_ip = "sentinel-1".to_owned();
    assert!(Bench::with(&snapshot).logged.iter().any(|text| text.starts_with("announce-ip \"sentinel-1\" is a name")));
}

#[test]
fn a_password_that_changes_nothing_for_clients_is_a_warning() {
    let mut bench = Bench::new();
    bench.facts.aclfile = "users.acl".to_owned();
    let client = bench.client();
    assert_eq!(bench.ask(client, "SENTINEL CONFIG SET requirepass sec"), "+OK\r\n");
    let warned =
        |wish: &Wish| matches!(wish, Wish::Log(Level::Warning, text) if text.ends_with("stays what aclfile says."));
    assert!(bench.wishes.iter().any(warned), "{:?}", bench.wishes);
    assert!(bench.acl.default_user().needs_no_password());
}

#[test]
fn epochs_end_and_do_not_begin_again() {
    let mut snapshot = golden();
    (snapshot.current_epoch, snapshot.masters[0].known_peers) = (Snapshot::EPOCH_LAST - 1, Vec::new());
    let mut bench = Bench::with_alive(&snapshot, &[37001, 37002]);
    bench.pass(300);
    let client = bench.client();
    let epoch = |bench: &Bench| bench.sentinel.snapshot().current_epoch;
    assert_eq!(bench.ask(client, "SENTINEL FAILOVER mymaster"), "+OK\r\n");
    assert_eq!(epoch(&bench), Snapshot::EPOCH_LAST, "the last one can be used");
    assert_eq!(bench.ask(client, "SENTINEL RESET mymaster"), ":1\r\n");
    bench.pass(300);
    assert!(!bench.logged.iter().any(|text| text.starts_with("The epochs are used up")));
    let refused = bench.ask(client, "SENTINEL FAILOVER mymaster");
    assert_eq!(refused, "-ERR The epochs are used up, so no failover can be led\r\n");
    assert_eq!(epoch(&bench), Snapshot::EPOCH_LAST);
    // A death says so in the log, and not in every turn.
    bench.alive.clear();
    bench.logged.clear();
    bench.ask(client, "SENTINEL SET mymaster quorum 1 down-after-milliseconds 100");
    bench.pass(60_000);
    let told = bench.logged.iter().filter(|text| text.starts_with("The epochs are used up")).count();
    assert_eq!(told, 1, "in a minute");
    assert_eq!(epoch(&bench), Snapshot::EPOCH_LAST);
}

#[test]
fn no_setting_is_so_large_that_we_stumble_over_it() {
    let mut bench = Bench::alive();
    let client = bench.client();
    let largest = i64::MAX;
    let shown = bench.ask(client, "SENTINEL DEBUG");
    for (name, _) in command_support::pairs(&shown) {
        assert_eq!(bench.ask(client, &format!("SENTINEL DEBUG {name} {largest}")), "+OK\r\n");
    }
    for option in ["down-after-milliseconds", "failover-timeout", "master-reboot-down-after-period", "ping-period"] {
        assert_eq!(bench.ask(client, &format!("SENTINEL SET mymaster {option} {largest}")), "+OK\r\n");
    }
    bench.pass(3_000);
    // Everybody is dialled again, asked anew, and one is promoted.
    assert_eq!(bench.ask(client, "SENTINEL RESET *"), ":1\r\n");
    bench.pass(3_000);
    assert_eq!(bench.ask(client, "SENTINEL FAILOVER mymaster"), "+OK\r\n");
    bench.pass(3_000);
    for line in ["SENTINEL MASTER mymaster", "SENTINEL REPLICAS mymaster", "SENTINEL SENTINELS mymaster", "INFO"] {
        assert!(!bench.ask(client, line).starts_with('-'), "{line}");
    }
}

#[test]
fn debug_shows_and_sets_the_tunables() {
    let mut bench = Bench::new();
    let client = bench.client();
    let shown = bench.ask(client, "SENTINEL debug");
    assert_eq!(
        shown,
        "*26\r\n$11\r\nINFO-PERIOD\r\n$5\r\n10000\r\n$11\r\nPING-PERIOD\r\n$4\r\n1000\r\n$10\r\nASK-PERIOD\r\n$4\r\n1000\r\n\
         $14\r\nPUBLISH-PERIOD\r\n$4\r\n2000\r\n$18\r\nDEFAULT-DOWN-AFTER\r\n$5\r\n30000\r\n$24\r\nDEFAULT-FAILOVER-TIMEOUT\r\n\
         $6\r\n180000\r\n$12\r\nTILT-TRIGGER\r\n$4\r\n2000\r\n$11\r\nTILT-PERIOD\r\n$5\r\n30000\r\n$20\r\nSLAVE-RECONF-TIMEOUT\r\n\
         $5\r\n10000\r\n$25\r\nMIN-LINK-RECONNECT-PERIOD\r\n$5\r\n15000\r\n$16\r\nELECTION-TIMEOUT\r\n$5\r\n10000\r\n\
         $18\r\nSCRIPT-MAX-RUNTIME\r\n$5\r\n60000\r\n$18\r\nSCRIPT-RETRY-DELAY\r\n$5\r\n30000\r\n"
    );
    for (line, reply) in [
        ("foo 1", "-ERR Unknown option or number of arguments for SENTINEL DEBUG 'foo'\r\n"),
        ("a b c", "-ERR Unknown option or number of arguments for SENTINEL DEBUG 'a'\r\n"),
        ("info-period", "-ERR Unknown option or number of arguments for SENTINEL DEBUG 'info-period'\r\n"),
        ("info-period 0", "-ERR Invalid argument '0' for SENTINEL DEBUG 'info-period'\r\n"),
        ("info-period 5 ping-period x", "-ERR Invalid argument 'x' for SENTINEL DEBUG 'ping-period'\r\n"),
    ] {
        assert_eq!(bench.ask(client, &format!("SENTINEL DEBUG {line}")), reply, "{line}");
    }
    assert_eq!(bench.ask(client, "SENTINEL debug"), shown);
    assert_eq!(bench.ask(client, "SENTINEL debug INFO-period 100 script-retry-delay 7"), "+OK\r\n");
    assert_eq!((bench.sentinel.tunables().info_period, bench.sentinel.tunables().script_retry_delay), (100, 7));
    bench.ask(client, "HELLO 3");
    assert!(bench.ask(client, "SENTINEL debug").starts_with("%13\r\n"));
}

#[test]
fn failures_are_simulated_on_request() {
    let mut bench = Bench::new();
    let client = bench.client();
    let list = "*2\r\n$20\r\ncrash-after-election\r\n$21\r\ncrash-after-promotion\r\n";
    // Every call begins with none, and what stands before a wrong word counts, as in the reference.
    for (words, reply, flags) in [
        ("help", list, 0),
        ("HELP foo", list, 0),
        ("x", "-ERR Unknown failure simulation specified\r\n", 0),
        ("crash-after-election foo", "-ERR Unknown failure simulation specified\r\n", 1),
        ("crash-after-promotion help", list, 2),
        ("crash-after-promotion crash-after-election", "+OK\r\n", 3),
        ("x", "-ERR Unknown failure simulation specified\r\n", 0),
    ] {
        assert_eq!(bench.ask(client, &format!("SENTINEL simulate-failure {words}")), reply, "{words}");
        assert_eq!(bench.sentinel.simulate_failure_flags(), flags, "{words}");
    }
    assert_eq!(bench.ask(client, "SENTINEL SIMULATE-FAILURE crash-after-promotion"), "+OK\r\n");
    assert!(bench.ask(client, "INFO sentinel").contains("sentinel_simulate_failure_flags:2\r\n"));
}

#[test]
fn r79_what_cannot_be_saved_is_not_called_ok() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.disk_ok = false;
    for line in [
        "SENTINEL SET mymaster quorum 1",
        "SENTINEL MONITOR m2 127.0.0.1 0 1",
        "SENTINEL CONFIG SET announce-port 7",
        "SENTINEL FLUSHCONFIG",
        "SENTINEL REMOVE m2",
    ] {
        assert_eq!(bench.ask(client, line), NOT_SAVED, "{line}");
    }
    // What was asked for holds all the same, as in the reference.
    assert_eq!(settings(&bench).quorum, 1);
    bench.disk_ok = true;
    bench.pass(2_000);
    for line in ["SENTINEL FLUSHCONFIG", "SENTINEL SET mymaster quorum 2", "SENTINEL CONFIG SET announce-port 0"] {
        assert_eq!(bench.ask(client, line), "+OK\r\n", "{line}");
    }
}

#[test]
fn reset_counts_and_needs_no_save() {
    let mut bench = Bench::alive();
    let client = bench.client();
    bench.ask(client, "SENTINEL MONITOR other 127.0.0.1 0 1");
    assert_eq!(bench.ask(client, "SENTINEL reset nope"), ":0\r\n");
    assert_eq!(bench.ask(client, "SENTINEL RESET MY*"), ":0\r\n", "the glob has a case");
    bench.hand_in(client, &[b"SENTINEL", b"RESET", b"*"]);
    assert_eq!(String::from_utf8(bench.output(client)).unwrap(), ":2\r\n");
    bench.pass(200);
    let reply = bench.ask(client, "SENTINEL MASTER mymaster");
    assert_eq!(
        (field(&reply, "num-other-sentinels").as_str(), field(&reply, "runid").len()),
        ("0", 40),
        "INFO came at once"
    );
}
