//! ACL commands, logging in and refusals, byte for byte as redis 7.4 answers.

mod command_support;

use command_support::Bench;
use watchfire::acl::{self, Acl, Hash};
use watchfire::command::{ClientId, Wish, catalog};

/// A bench whose default user has the password `sec`.
fn guarded() -> Bench {
    let mut bench = Bench::new();
    bench.acl.require_password(b"sec");
    bench
}

fn expect(bench: &mut Bench, client: ClientId, cases: &[(&str, &str)]) {
    for (line, reply) in cases {
        assert_eq!(bench.ask(client, line), format!("{reply}\r\n"), "{line}");
    }
}

/// A client that is that user, made with those rules.
fn user(bench: &mut Bench, name: &str, rules: &str) -> ClientId {
    let admin = bench.client();
    bench.clients.get_mut(admin).unwrap().authenticated = true;
    expect(bench, admin, &[(&format!("ACL SETUSER {name} on nopass {rules}"), "+OK")]);
    let client = bench.client();
    expect(bench, client, &[(&format!("AUTH {name} x"), "+OK")]);
    client
}

const NOAUTH: &str = "-NOAUTH Authentication required.";
const WRONGPASS: &str = "-WRONGPASS invalid username-password pair or user is disabled.";
const NOAUTH_HELLO: &str = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
     <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
     the same time";

#[test]
fn r98_a_client_that_owes_a_password_hears_so_but_unknown_and_misspelt_requests_come_first() {
    let mut bench = guarded();
    let client = bench.client();
    expect(
        &mut bench,
        client,
        &[
            ("PING", NOAUTH),
            ("FOO x", "-ERR unknown command 'FOO', with args beginning with: 'x' "),
            ("SENTINEL nope", "-ERR unknown subcommand 'nope'. Try SENTINEL HELP."),
            ("SENTINEL masters x", "-ERR wrong number of arguments for 'sentinel|masters' command"),
            ("PING a b", NOAUTH),
            ("SUBSCRIBE x", NOAUTH),
            ("CLIENT SETNAME x", NOAUTH),
            ("HELLO", NOAUTH_HELLO),
            ("HELLO 3 SETNAME x", NOAUTH_HELLO),
            ("HELLO 9", "-NOPROTO unsupported protocol version"),
            ("HELLO abc", "-ERR Protocol version is not an integer or out of range"),
            ("HELLO 3 AUTH default sec FOO", "-ERR Syntax error in HELLO option 'FOO'"),
            ("HELLO 3 AUTH default nope", WRONGPASS),
            ("AUTH", "-ERR wrong number of arguments for 'auth' command"),
            ("AUTH a b c", "-ERR syntax error"),
            ("AUTH nope", WRONGPASS),
            ("AUTH default nope", WRONGPASS),
            ("AUTH nobody sec", WRONGPASS),
            ("PING", NOAUTH),
            ("AUTH sec", "+OK"),
            ("PING", "+PONG"),
            ("CLIENT GETNAME", "$-1"),
        ],
    );
    assert_eq!(bench.stats.auth_failures, 4);
    let other = bench.client();
    let hello = bench.ask(other, "HELLO 3 SETNAME me AUTH default sec");
    assert!(hello.starts_with("%6\r\n"), "{hello}");
    expect(&mut bench, other, &[("CLIENT GETNAME", "$2\r\nme"), ("ACL WHOAMI", "$7\r\ndefault")]);
}

#[test]
fn a_password_that_is_asked_for_later_holds_for_those_who_come_later() {
    let mut bench = Bench::new();
    let admin = bench.client();
    bench.clients.get_mut(admin).unwrap().authenticated = true;
    expect(&mut bench, admin, &[("ACL SETUSER default resetpass >q", "+OK"), ("PING", "+PONG")]);
    let late = bench.client();
    expect(&mut bench, late, &[("PING", NOAUTH), ("AUTH q", "+OK"), ("PING", "+PONG")]);
    let open = bench.client();
    expect(&mut bench, admin, &[("ACL SETUSER default off", "+OK")]);
    expect(&mut bench, open, &[("PING", NOAUTH), ("AUTH q", WRONGPASS)]);
    expect(&mut bench, admin, &[("ACL SETUSER default on nopass", "+OK")]);
    expect(&mut bench, open, &[("PING", "+PONG")]);
}

#[test]
fn what_a_user_may_not_do_is_refused_by_name() {
    let mut bench = Bench::new();
    let rules = "+ping +sentinel|masters +acl|whoami +subscribe +psubscribe +publish &foo*";
    let bob = user(&mut bench, "bob", rules);
    let denied = |name: &str| format!("-NOPERM User bob has no permissions to run the '{name}' command");
    let channel = "-NOPERM No permissions to access a channel";
    expect(
        &mut bench,
        bob,
        &[
            ("ACL WHOAMI", "$3\r\nbob"),
            ("PING", "+PONG"),
            ("INFO", &denied("info")),
            ("SENTINEL master x", &denied("sentinel|master")),
            ("SENTINEL master", "-ERR wrong number of arguments for 'sentinel|master' command"),
            ("SENTINEL foo", "-ERR unknown subcommand 'foo'. Try SENTINEL HELP."),
            ("COMMAND", &denied("command")),
            ("COMMAND COUNT", &denied("command|count")),
            ("SHUTDOWN", &denied("shutdown")),
            ("CLIENT LIST", &denied("client|list")),
            ("SUBSCRIBE foo1 bar", channel),
            ("PSUBSCRIBE foobar", channel),
            ("PUBLISH __sentinel__:hello x", channel),
            ("PUBLISH foo x", "-ERR Only HELLO messages are accepted by Sentinel instances."),
            ("AUTH nobody x", WRONGPASS),
            ("ACL WHOAMI", "$3\r\nbob"),
            ("PSUBSCRIBE foo*", "*3\r\n$10\r\npsubscribe\r\n$4\r\nfoo*\r\n:1"),
            // The right to run it is asked for before the mode of the connection.
            ("INFO", &denied("info")),
            (
                "PUBLISH foo x",
                "-ERR Can't execute 'publish': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
                 allowed in this context",
            ),
        ],
    );
    assert_eq!((bench.stats.denied_commands, bench.stats.denied_channels), (7, 3));
    assert!(bench.wishes.is_empty());
}

#[test]
fn r98_users_are_made_shown_and_deleted() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (x, empty) = (Hash::of(b"x"), Hash::of(b""));
    let modifier = |rule: &str, why: &str| format!("-ERR Error in ACL SETUSER modifier '{rule}': {why}");
    expect(
        &mut bench,
        client,
        &[
            ("ACL LIST", "*1\r\n$51\r\nuser default on nopass sanitize-payload ~* &* +@all"),
            ("ACL USERS", "*1\r\n$7\r\ndefault"),
            ("ACL GETUSER nobody", "$-1"),
            ("ACL SETUSER bob ON >x '(+ping' ~a* '&b)' +sentinel|Masters", "+OK"),
            (
                "ACL GETUSER bob",
                &format!(
                    "*12\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$16\r\nsanitize-payload\r\n$9\r\npasswords\r\n*1\r\n$64\r\n{x}\r\n\
                     $8\r\ncommands\r\n$23\r\n-@all +sentinel|masters\r\n$4\r\nkeys\r\n$0\r\n\r\n$8\r\nchannels\r\n$0\r\n\r\n\
                     $9\r\nselectors\r\n*1\r\n*6\r\n$8\r\ncommands\r\n$11\r\n-@all +ping\r\n$4\r\nkeys\r\n$3\r\n~a*\r\n\
                     $8\r\nchannels\r\n$2\r\n&b"
                ),
            ),
            ("ACL SETUSER bob foo", &modifier("foo", "Syntax error")),
            ("ACL SETUSER bob +get", &modifier("+get", "Unknown command or category name in ACL")),
            ("ACL SETUSER bob (+ping +foo )", &modifier("(+ping +foo )", "Unknown command or category name in ACL")),
            ("ACL SETUSER bob (+ping on", "-ERR Unmatched parenthesis in acl selector starting at '(+ping'."),
            ("ACL SETUSER 'a b' on", "-ERR Usernames can't contain spaces or null characters"),
            ("ACL SETUSER bob reset >''", "+OK"),
            ("ACL USERS", "*2\r\n$3\r\nbob\r\n$7\r\ndefault"),
            ("ACL DELUSER bob nope default", "-ERR The 'default' user cannot be removed"),
            ("ACL DELUSER nope", ":0"),
            ("ACL DELUSER bob nope", ":1"),
            ("ACL USERS", "*1\r\n$7\r\ndefault"),
            ("ACL SETUSER", "-ERR wrong number of arguments for 'acl|setuser' command"),
            ("ACL GETUSER a b", "-ERR wrong number of arguments for 'acl|getuser' command"),
            ("ACL foo", "-ERR unknown subcommand 'foo'. Try ACL HELP."),
        ],
    );
    bench.ask(client, "HELLO 3");
    bench.ask(client, "ACL SETUSER bob >'' (+ping)");
    let shown = bench.ask(client, "ACL GETUSER bob");
    assert!(shown.starts_with("%6\r\n$5\r\nflags\r\n~2\r\n$3\r\noff\r\n"), "{shown}");
    assert!(shown.contains(&empty.to_string()) && shown.contains("selectors\r\n*1\r\n%3\r\n"), "{shown}");
    expect(&mut bench, client, &[("ACL GETUSER nobody", "_")]);
}

#[test]
fn a_dry_run_says_what_would_be_refused() {
    let mut bench = Bench::new();
    let client = bench.client();
    expect(
        &mut bench,
        client,
        &[
            ("ACL SETUSER dan +ping +subscribe +psubscribe &foo*", "+OK"),
            ("ACL DRYRUN default ping a b c", "+OK"),
            ("ACL DRYRUN nobody ping", "-ERR User 'nobody' not found"),
            ("ACL DRYRUN default foo", "-ERR Command 'foo' not found"),
            ("ACL DRYRUN default sentinel nope", "-ERR Command 'sentinel' not found"),
            ("ACL DRYRUN default acl|cat", "-ERR Command 'acl|cat' not found"),
            ("ACL DRYRUN default sentinel", "-ERR wrong number of arguments for 'sentinel' command"),
            ("ACL DRYRUN default sentinel master", "-ERR wrong number of arguments for 'sentinel|master' command"),
            ("ACL DRYRUN default", "-ERR wrong number of arguments for 'acl|dryrun' command"),
            ("ACL DRYRUN dan ping", "+OK"),
            ("ACL DRYRUN dan hello", "+OK"),
            ("ACL DRYRUN dan info", "$53\r\nUser dan has no permissions to run the 'info' command"),
            ("ACL DRYRUN dan subscribe foobar bar", "$55\r\nUser dan has no permissions to access the 'bar' channel"),
            ("ACL DRYRUN dan psubscribe foo*", "+OK"),
        ],
    );
}

#[test]
fn passwords_are_drawn_from_entropy_as_long_as_asked() {
    let mut bench = Bench::new();
    let client = bench.client();
    expect(&mut bench, client, &[("ACL GENPASS", "-ERR the system gives no random numbers")]);
    bench.facts.entropy = |bytes| {
        bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = 0xa0 + at as u8 % 16);
        true
    };
    let bounds =
        "-ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096";
    let number = "-ERR value is not an integer or out of range";
    expect(
        &mut bench,
        client,
        &[
            ("ACL GENPASS", &format!("$64\r\n{}", "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf".repeat(2))),
            ("ACL GENPASS 1", "$1\r\na"),
            ("ACL GENPASS 5", "$2\r\na0"),
            ("ACL GENPASS 12", "$3\r\na0a"),
            ("ACL GENPASS 0", bounds),
            ("ACL GENPASS -1", bounds),
            ("ACL GENPASS 4097", bounds),
            ("ACL GENPASS abc", number),
            ("ACL GENPASS 00", number),
            ("ACL GENPASS 1.5", number),
            ("ACL GENPASS 5 5", "-ERR unknown subcommand or wrong number of arguments for 'GENPASS'. Try ACL HELP."),
        ],
    );
    assert_eq!(bench.ask(client, "ACL GENPASS 4096").len(), "$1024\r\n".len() + 1024 + 2);
}

#[test]
fn refusals_are_logged_newest_first_and_counted() {
    let mut bench = Bench::new();
    let bob = user(&mut bench, "bob", "+subscribe");
    let admin = bench.client();
    for line in ["INFO", "info", "auth nobody x", "SUBSCRIBE chan"] {
        bench.ask(bob, line);
    }
    bench.now = bench.now + 1500;
    let log = bench.ask(admin, "ACL LOG");
    let words: Vec<&str> = log.split("\r\n").collect();
    let values: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with(['$', '*'])).collect();
    let entries: Vec<Vec<&str>> = values.chunks(20).filter(|chunk| chunk.len() == 20).map(<[&str]>::to_vec).collect();
    assert_eq!(entries.len(), 3, "{log}");
    let shown: Vec<[&str; 7]> = entries.iter().map(|e| [e[1], e[3], e[5], e[7], e[9], e[11], e[15]]).collect();
    assert_eq!(
        shown,
        [
            [":1", "channel", "toplevel", "chan", "bob", "1.5", ":2"],
            [":1", "auth", "toplevel", "auth", "nobody", "1.5", ":1"],
            [":2", "command", "toplevel", "info", "bob", "1.5", ":0"],
        ]
    );
    let keys: Vec<&str> = entries[0].iter().copied().step_by(2).collect();
    assert_eq!(
        keys.join(" "),
        "count reason context object username age-seconds client-info entry-id timestamp-created timestamp-last-updated"
    );
    assert!(entries[0][13].contains(" cmd=subscribe user=bob "), "{}", entries[0][13]);
    assert_eq!(entries[0][17], ":1795995445483");
    assert!(bench.ask(admin, "ACL LOG 1").starts_with("*1\r\n*20\r\n"));
    bench.ask(admin, "HELLO 3");
    assert!(
        bench.ask(admin, "ACL LOG 1").contains("%10\r\n") && bench.ask(admin, "ACL LOG 1").contains("\r\n,1.5\r\n")
    );
    let wrong = "-ERR unknown subcommand or wrong number of arguments for 'LOG'. Try ACL HELP.";
    expect(
        &mut bench,
        admin,
        &[
            ("ACL LOG 0", "*0"),
            ("ACL LOG -5", "*0"),
            ("ACL LOG x", "-ERR value is not an integer or out of range"),
            ("ACL LOG 5 5", wrong),
            ("ACL LOG reset", "+OK"),
            ("ACL LOG", "*0"),
        ],
    );
    bench.ask(bob, "INFO");
    let log = bench.ask(admin, "ACL LOG");
    assert!(log.contains("entry-id\r\n:3\r\n"), "numbers are not given twice: {log}");
}

#[test]
fn who_loses_a_channel_or_the_user_is_let_go() {
    let mut bench = Bench::new();
    let bob = user(&mut bench, "bob", "+@all &foo* &x");
    let idle = user(&mut bench, "bob", "");
    let admin = bench.client();
    bench.ask(bob, "SUBSCRIBE foo1 x");
    let mut killed = |line: &str, client: ClientId| {
        expect(&mut bench, admin, &[(line, "+OK")]);
        bench.clients.get(client).unwrap().killed
    };
    assert!(!killed("ACL SETUSER bob &y", bob));
    assert!(!killed("ACL SETUSER bob resetchannels &foo1 &x", bob));
    assert!(!killed("ACL SETUSER bob off resetpass -@all", bob));
    assert!(killed("ACL SETUSER bob resetchannels &foo1", bob));
    assert!(!bench.clients.get(idle).unwrap().killed);
    expect(&mut bench, admin, &[("ACL DELUSER bob", ":1")]);
    assert!(bench.clients.get(idle).unwrap().killed);
    assert!(!bench.clients.get(admin).unwrap().killed);
    // Patterns have to be allowed word for word.
    let carol = user(&mut bench, "carol", "+@all &*");
    bench.ask(carol, "PSUBSCRIBE foo*");
    expect(&mut bench, admin, &[("ACL SETUSER carol resetchannels &foo*", "+OK")]);
    assert!(!bench.clients.get(carol).unwrap().killed);
    expect(&mut bench, admin, &[("ACL SETUSER carol resetchannels &foo1", "+OK")]);
    assert!(bench.clients.get(carol).unwrap().killed);
    // Who deletes himself hears the reply first.
    let dan = user(&mut bench, "dan", "+@all");
    expect(&mut bench, dan, &[("ACL DELUSER dan", ":1")]);
    let dan = bench.clients.get(dan).unwrap();
    assert!(dan.close_after_reply && !dan.killed);
}

#[test]
fn clients_are_listed_and_killed_by_user() {
    let mut bench = Bench::new();
    let bob = user(&mut bench, "bob", "+ping");
    let admin = bench.client();
    assert!(bench.ask(admin, "CLIENT LIST").contains(" user=bob "));
    expect(
        &mut bench,
        admin,
        &[("CLIENT KILL USER nobody", "-ERR No such user 'nobody'"), ("CLIENT KILL USER bob", ":1")],
    );
    assert!(bench.clients.get(bob).unwrap().killed);
}

#[test]
fn without_a_file_load_and_save_say_so_and_with_one_it_is_all_or_nothing() {
    let mut bench = Bench::new();
    let admin = bench.client();
    let none = "-ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL \
                SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order \
                to store users in the Redis configuration.";
    expect(&mut bench, admin, &[("ACL LOAD", none), ("ACL SAVE", none)]);
    bench.facts.aclfile = "users.acl".to_owned();
    expect(
        &mut bench,
        admin,
        &[
            ("ACL LOAD", "-ERR Error loading ACLs, opening file 'users.acl': No such file or directory"),
            (
                "ACL SAVE",
                "-ERR There was an error trying to save the ACLs. Please check the server logs for more information",
            ),
        ],
    );
    assert!(matches!(&bench.wishes[1], Wish::Log(_, text) if text.contains("Read-only")), "{:?}", bench.wishes);
    let bob = user(&mut bench, "bob", "+ping");
    let carol = user(&mut bench, "carol", "+@all &*");
    let dan = user(&mut bench, "dan", "+@all &*");
    bench.ask(carol, "SUBSCRIBE foo");
    bench.facts.read_file = |_| Ok(b"user bob on +foo\nuser x +@all\nnobody\n".to_vec());
    expect(
        &mut bench,
        admin,
        &[(
            "ACL LOAD",
            "-ERR users.acl:1: Error in applying operation '+foo': Unknown command or category name in ACL. users.acl:3 should \
             start with user keyword followed by the username. WARNING: ACL errors detected, no change to the previously \
             active ACL rules was performed",
        )],
    );
    bench.facts.read_file = |_| Ok(b"user bob on +info\nuser carol on +@all".to_vec());
    expect(&mut bench, admin, &[("ACL LOAD", "+OK")]);
    let killed = |bench: &Bench, client| bench.clients.get(client).unwrap().killed;
    assert!(!killed(&bench, bob) && killed(&bench, carol) && killed(&bench, dan));
    expect(&mut bench, bob, &[("PING", "-NOPERM User bob has no permissions to run the 'ping' command")]);
    bench.facts.write_file = |path, text| {
        assert_eq!(path, "users.acl");
        assert!(text.starts_with(b"user bob on sanitize-payload resetchannels -@all +info\nuser carol "));
        Ok(())
    };
    expect(&mut bench, admin, &[("ACL SAVE", "+OK")]);
}

#[test]
fn new_users_reach_all_channels_where_the_operator_wants_it() {
    let mut bench = Bench::new();
    bench.acl = Acl::new(catalog(), acl::Settings { all_channels: true, log_length: 128 });
    let client = bench.client();
    bench.ask(client, "ACL SETUSER bob (+ping)");
    assert!(bench.ask(client, "ACL LIST").contains("user bob off sanitize-payload &* -@all (&* -@all +ping)"));
}

#[test]
fn nothing_that_a_client_sends_as_rules_makes_us_panic() {
    let mut bench = Bench::new();
    let client = bench.client();
    let mut seed = 7u64;
    let mut next = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let pieces: [&[u8]; 24] = [
        b"+", b"-", b"@", b"|", b"(", b")", b"~", b"%", b"&", b">", b"<", b"#", b"!", b"*", b"R", b"W", b"ping",
        b"client", b"kill", b"all", b" ", b"\0", b"\xff", b"on",
    ];
    for _ in 0..20_000 {
        let words: Vec<Vec<u8>> =
            (0..next(4)).map(|_| (0..next(6)).flat_map(|_| pieces[next(24) as usize].to_vec()).collect()).collect();
        let mut argv: Vec<&[u8]> = vec![b"ACL", b"SETUSER", b"bob"];
        argv.extend(words.iter().map(Vec::as_slice));
        bench.ask_bytes(client, &argv);
        let line: Vec<u8> = words.join(&b' ');
        let _ = bench.acl.load(&[b"user bob ", line.as_slice()].concat(), "f");
    }
    assert!(bench.acl.default_user().is_open());
}
