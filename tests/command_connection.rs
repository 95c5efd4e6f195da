//! PING, HELLO, AUTH, ROLE, SHUTDOWN and the errors that every command shares: byte for byte redis-sentinel's.

mod command_support;

use command_support::Bench;
use watchfire::command::Wish;

fn expect(cases: &[(&str, &str)]) {
    let mut bench = Bench::new();
    let client = bench.client();
    for (line, reply) in cases {
        assert_eq!(bench.ask(client, line), *reply, "{line}");
    }
}

#[test]
fn ping_answers_pong_or_what_it_was_given() {
    expect(&[
        ("PING", "+PONG\r\n"),
        ("ping hi", "$2\r\nhi\r\n"),
        ("PING a b", "-ERR wrong number of arguments for 'ping' command\r\n"),
    ]);
}

#[test]
fn commands_that_a_sentinel_lacks_are_unknown() {
    expect(&[
        ("ECHO x", "-ERR unknown command 'ECHO', with args beginning with: 'x' \r\n"),
        ("QUIT", "-ERR unknown command 'QUIT', with args beginning with: \r\n"),
        ("CONFIG GET *", "-ERR unknown command 'CONFIG', with args beginning with: 'GET' '*' \r\n"),
        (r#""fo\no" "a\rb" "\x00\x01""#, "-ERR unknown command 'fo o', with args beginning with: 'a b' '' \r\n"),
        (r#""" "#, "-ERR unknown command '', with args beginning with: \r\n"),
        ("CLIENT", "-ERR wrong number of arguments for 'client' command\r\n"),
        ("CLIENT MAINT_NOTIFICATIONS ON", "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n"),
        ("CLIENT NO-TOUCH ON", "-ERR unknown subcommand 'NO-TOUCH'. Try CLIENT HELP.\r\n"),
        ("CLIENT CAPA redirect", "-ERR unknown subcommand 'CAPA'. Try CLIENT HELP.\r\n"),
        ("SENTINEL", "-ERR wrong number of arguments for 'sentinel' command\r\n"),
        ("SENTINEL foo", "-ERR unknown subcommand 'foo'. Try SENTINEL HELP.\r\n"),
    ]);
}

#[test]
fn the_words_of_an_unknown_command_are_repeated_only_so_far() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (a, c) = ("a".repeat(107), "c".repeat(36));
    assert_eq!(
        bench.ask(client, &format!("foobar {a} bbb {c} dddd ee")),
        format!("-ERR unknown command 'foobar', with args beginning with: '{a}' 'bbb' '{}' \r\n", "c".repeat(12))
    );
    assert_eq!(
        bench.ask(client, &format!("{} {}", "f".repeat(200), "a".repeat(200))),
        format!("-ERR unknown command '{}', with args beginning with: '{}' \r\n", "f".repeat(128), "a".repeat(128))
    );
    assert_eq!(
        bench.ask(client, &format!("CLIENT {}", "a".repeat(200))),
        format!("-ERR unknown subcommand '{}'. Try CLIENT HELP.\r\n", "a".repeat(128))
    );
}

const HELLO_TAIL: &str = "$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n$7\r\nmodules\r\n*0\r\n";

#[test]
fn hello_has_six_fields_and_switches_the_protocol_of_its_own_reply() {
    let head = |first: &str| format!("{first}\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.4.0\r\n");
    expect(&[
        ("HELLO", &format!("{}$5\r\nproto\r\n:2\r\n{HELLO_TAIL}", head("*12"))),
        ("HELLO 3", &format!("{}$5\r\nproto\r\n:3\r\n{HELLO_TAIL}", head("%6"))),
        ("SENTINEL get-master-addr-by-name nope", "_\r\n"),
        ("hello 2 SETNAME x", &format!("{}$5\r\nproto\r\n:2\r\n{HELLO_TAIL}", head("*12"))),
        ("CLIENT GETNAME", "$1\r\nx\r\n"),
        ("SENTINEL get-master-addr-by-name nope", "*-1\r\n"),
    ]);
}

#[test]
fn a_wrong_hello_changes_nothing() {
    expect(&[
        ("HELLO 4", "-NOPROTO unsupported protocol version\r\n"),
        ("HELLO 1", "-NOPROTO unsupported protocol version\r\n"),
        ("HELLO abc", "-ERR Protocol version is not an integer or out of range\r\n"),
        ("HELLO 99999999999999999999", "-ERR Protocol version is not an integer or out of range\r\n"),
        ("HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'\r\n"),
        ("HELLO 3 AUTH u", "-ERR Syntax error in HELLO option 'AUTH'\r\n"),
        ("HELLO 3 SETNAME zz FOO", "-ERR Syntax error in HELLO option 'FOO'\r\n"),
        ("HELLO 3 SETNAME 'a b'", "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"),
        ("HELLO 3 SETNAME zz AUTH u p", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"),
        ("CLIENT GETNAME", "$-1\r\n"),
    ]);
}

#[test]
fn auth_without_a_password_is_told_so() {
    expect(&[
        (
            "AUTH a",
            "-ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?\r\n",
        ),
        ("AUTH default a", "+OK\r\n"),
        ("AUTH u a", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"),
        ("AUTH", "-ERR wrong number of arguments for 'auth' command\r\n"),
        ("AUTH a b c", "-ERR syntax error\r\n"),
        ("ACL WHOAMI", "$7\r\ndefault\r\n"),
        ("ACL foo", "-ERR unknown subcommand 'foo'. Try ACL HELP.\r\n"),
    ]);
}

#[test]
fn role_names_the_masters() {
    expect(&[
        ("ROLE", "*2\r\n$8\r\nsentinel\r\n*1\r\n$8\r\nmymaster\r\n"),
        ("ROLE x", "-ERR wrong number of arguments for 'role' command\r\n"),
    ]);
}

#[test]
fn shutdown_is_a_wish_without_a_reply() {
    let mut bench = Bench::new();
    let client = bench.client();
    for (line, reply) in [
        ("SHUTDOWN foo", "-ERR syntax error\r\n"),
        ("SHUTDOWN SAVE NOSAVE", "-ERR syntax error\r\n"),
        ("SHUTDOWN ABORT NOW", "-ERR syntax error\r\n"),
        ("SHUTDOWN ABORT", "-ERR No shutdown in progress.\r\n"),
    ] {
        assert_eq!(bench.ask(client, line), reply, "{line}");
        assert!(!bench.wishes.contains(&Wish::Shutdown));
    }
    assert_eq!(bench.ask(client, "shutdown nosave now"), "");
    assert!(bench.wishes.contains(&Wish::Shutdown));
}

#[test]
fn whoever_speaks_http_is_cut_off_without_a_reply() {
    for line in ["POST / HTTP/1.1", "Host: x"] {
        let mut bench = Bench::new();
        let client = bench.client();
        bench.hand_in(client, &[b"GET", b"/"]);
        assert_eq!(bench.ask(client, line), "");
        assert!(bench.clients.get(client).unwrap().killed);
        assert!(matches!(bench.wishes[..], [Wish::Log(..)]));
        assert_eq!(bench.clients.take_dirty(), [client]);
    }
}

#[test]
fn of_many_that_speak_http_the_log_says_one_line_a_minute_with_their_number() {
    let mut bench = Bench::new();
    let mut told = Vec::new();
    // Ten of them every ten seconds, for two minutes and a little.
    for _ in 0..13 {
        for _ in 0..10 {
            let client = bench.client();
            assert_eq!(bench.ask(client, "POST / HTTP/1.1"), "");
            assert!(bench.clients.get(client).unwrap().killed);
        }
        for wish in std::mem::take(&mut bench.wishes) {
            let Wish::Log(_, text) = wish else { panic!("{wish:?}") };
            let count = text.split_once("(So were ").map(|(_, rest)| rest.split(' ').next().unwrap().to_owned());
            told.push((bench.now, count));
        }
        bench.now = bench.now + 10_000;
    }
    let (start, _) = told[0];
    let others = Some("59".to_owned());
    assert_eq!(told, [(start, None), (start + 60_000, others.clone()), (start + 120_000, others)]);
}

#[test]
fn info_has_five_sections_and_an_empty_reply_for_others() {
    let mut bench = Bench::new();
    let client = bench.client();
    for line in ["INFO replication", "INFO foo", "INFO ''", "INFO a b"] {
        assert_eq!(bench.ask(client, line), "$0\r\n\r\n", "{line}");
    }
    let headers =
        |text: &str| -> Vec<String> { text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect() };
    for line in ["INFO", "INFO all", "INFO DEFAULT", "INFO everything", "INFO cpu default"] {
        let text = bench.ask(client, line);
        assert_eq!(headers(&text), ["# Server", "# Clients", "# Stats", "# CPU", "# Sentinel"], "{line}");
        assert!(text.contains("\r\n\r\n# Clients\r\n"), "sections are parted by an empty line");
        for field in [
            "redis_mode:sentinel",
            "redis_version:7.4.0",
            "run_id:581939c842d090bbed1fffc04690c2c69358889a",
            "tcp_port:26379",
            "process_id:22216",
            "uptime_in_seconds:140",
            "connected_clients:1",
            "maxclients:10000",
            "pubsub_channels:0",
            "used_cpu_sys:0.000000",
        ] {
            assert!(text.contains(&format!("\r\n{field}\r\n")), "{field} in {text}");
        }
        // A field listed by a collector must parse: no empty value except of paths and names.
        for line in text.lines().filter(|line| line.contains(':')) {
            let (key, value) = line.split_once(':').unwrap();
            assert!(!value.is_empty() || ["os", "executable", "config_file"].contains(&key), "{line}");
        }
    }
    assert_eq!(headers(&bench.ask(client, "INFO sentinel SERVER foo")), ["# Server", "# Sentinel"]);
    bench.ask(client, "HELLO 3");
    assert!(bench.ask(client, "INFO sentinel").starts_with('$'), "never verbatim");
}

#[test]
fn the_sentinel_section_of_info_counts_masters_and_says_how_they_are() {
    let mut bench = Bench::alive();
    let client = bench.client();
    let expected = "# Sentinel\r\nsentinel_masters:1\r\nsentinel_tilt:0\r\nsentinel_tilt_since_seconds:-1\r\n\
         sentinel_total_tilt:0\r\nsentinel_running_scripts:0\r\nsentinel_scripts_queue_length:0\r\n\
         sentinel_simulate_failure_flags:0\r\nsentinel_config_save_failing:0\r\n\
         master0:name=mymaster,status=ok,address=127.0.0.1:37001,slaves=1,sentinels=2\r\n";
    assert_eq!(bench.ask(client, "INFO sentinel"), format!("${}\r\n{expected}\r\n", expected.len()));
    bench.alive = vec![37104];
    bench.pass(4_000);
    assert!(bench.ask(client, "INFO sentinel").contains("status=sdown"));
}

#[test]
fn errors_and_commands_are_counted() {
    let mut bench = Bench::new();
    let client = bench.client();
    for line in ["PING", "FOO", "CLIENT foo", "AUTH a b"] {
        bench.ask(client, line);
    }
    assert_eq!((bench.stats.commands_processed, bench.stats.error_replies, bench.stats.auth_failures), (4, 3, 1));
}
