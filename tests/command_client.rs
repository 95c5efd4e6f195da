//! `CLIENT …`: byte for byte redis-sentinel 7.4's.

mod command_support;

use command_support::Bench;
use watchfire::command::ClientId;

fn expect(cases: &[(&str, &str)]) {
    let mut bench = Bench::new();
    let client = bench.client();
    for (line, reply) in cases {
        assert_eq!(bench.ask(client, line), *reply, "{line}");
    }
}

#[test]
fn a_connection_can_be_named_and_described() {
    expect(&[
        ("CLIENT GETNAME", "$-1\r\n"),
        ("CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command\r\n"),
        ("CLIENT SETNAME 'a b'", "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"),
        (r#"CLIENT SETNAME "a\nb""#, "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"),
        ("CLIENT SETNAME abc", "+OK\r\n"),
        ("CLIENT GETNAME", "$3\r\nabc\r\n"),
        ("CLIENT SETNAME ''", "+OK\r\n"),
        ("CLIENT GETNAME", "$-1\r\n"),
        ("CLIENT ID", ":1\r\n"),
        ("CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n"),
        ("CLIENT SETINFO LIB-VER 1", "+OK\r\n"),
        ("CLIENT SETINFO foo 1", "-ERR Unrecognized option 'foo'\r\n"),
        ("CLIENT SETINFO lib-name 'a b'", "-ERR lib-name cannot contain spaces, newlines or special characters.\r\n"),
        ("CLIENT NO-EVICT ON", "+OK\r\n"),
        ("CLIENT NO-EVICT foo", "-ERR syntax error\r\n"),
    ]);
}

#[test]
fn a_description_has_the_references_fields_in_its_order() {
    let mut bench = Bench::new();
    let client = bench.client();
    for line in [
        "CLIENT SETNAME x",
        "CLIENT SETINFO LIB-NAME redis-py",
        "CLIENT SETINFO LIB-VER 1",
        "CLIENT NO-EVICT on",
        "CLIENT TRACKING on",
    ] {
        assert_eq!(bench.ask(client, line), "+OK\r\n");
    }
    bench.now = bench.now + 5_000;
    let reply = bench.ask(client, "CLIENT INFO");
    let line = reply.split("\r\n").nth(1).unwrap();
    assert!(line.ends_with(" resp=2 lib-name=redis-py lib-ver=1\n"));
    assert!(
        line.starts_with("id=1 addr=127.0.0.1:40000 laddr=127.0.0.1:37102 fd=-1 name=x age=5 idle=0 flags=te db=0 ")
    );
    let keys: Vec<&str> = line.split(' ').map(|field| field.split('=').next().unwrap()).collect();
    assert_eq!(
        keys.join(" "),
        "id addr laddr fd name age idle flags db sub psub ssub multi watch qbuf qbuf-free argv-mem multi-mem rbs rbp obl \
         oll omem tot-mem events cmd user redir resp lib-name lib-ver"
    );
    assert!(line.contains(" cmd=client|info user=default redir=0 "));
    // What waits for it: 16 KiB as redis's buffer would hold them, and the rest as tools look for it.
    for (waiting, shown) in [
        (0, "obl=0 oll=0 omem=0"),
        (16_384, "obl=16384 oll=0 omem=0"),
        (16_385, "obl=16384 oll=1 omem=1"),
        (100_000, "obl=16384 oll=6 omem=83616"),
    ] {
        let other = bench.client();
        bench.clients.get_mut(client).unwrap().out = vec![b'x'; waiting + 10];
        bench.clients.get_mut(client).unwrap().sent = 10;
        let reply = bench.ask(other, "CLIENT LIST ID 1");
        assert!(reply.contains(&format!(" rbp={waiting} {shown} tot-mem=")), "{waiting}: {reply}");
    }
    bench.output(client);
    bench.clients.get_mut(client).unwrap().sent = 0;
    bench.ask(client, "HELLO 3");
    let reply = bench.ask(client, "CLIENT INFO");
    assert!(reply.starts_with('=') && reply.contains("\r\ntxt:id=1 "), "verbatim in RESP3");
}

#[test]
fn clients_are_listed_by_type_and_by_id() {
    let mut bench = Bench::new();
    let (one, two) = (bench.client(), bench.client());
    bench.ask(two, "SUBSCRIBE a");
    let listed = |text: &str| -> Vec<u64> {
        // The first line is the bulk header.
        text.lines().filter_map(|line| line.strip_prefix("id=")?.split(' ').next()?.parse().ok()).collect()
    };
    assert_eq!(listed(&bench.ask(one, "CLIENT LIST")), [1, 2]);
    assert_eq!(listed(&bench.ask(one, "CLIENT LIST TYPE normal")), [1]);
    assert_eq!(listed(&bench.ask(one, "CLIENT LIST TYPE PubSub")), [2]);
    assert_eq!(listed(&bench.ask(one, "CLIENT LIST ID 2 999 1")), [2, 1]);
    assert_eq!(bench.ask(one, "CLIENT LIST TYPE replica"), "$0\r\n\r\n");
    for (line, reply) in [
        ("CLIENT LIST TYPE foo", "-ERR Unknown client type 'foo'\r\n"),
        ("CLIENT LIST TYPE", "-ERR syntax error\r\n"),
        ("CLIENT LIST ID", "-ERR syntax error\r\n"),
        ("CLIENT LIST ID x", "-ERR Invalid client ID\r\n"),
        ("CLIENT LIST FOO BAR", "-ERR syntax error\r\n"),
    ] {
        assert_eq!(bench.ask(one, line), reply, "{line}");
    }
}

#[test]
fn kill_takes_filters_and_leaves_the_killer_alone_unless_told_otherwise() {
    let mut bench = Bench::new();
    let (one, two, three) = (bench.client(), bench.client(), bench.client());
    bench.ask(three, "SUBSCRIBE a");
    let killed = |bench: &Bench, id: ClientId| bench.clients.get(id).unwrap().killed;
    for (line, reply) in [
        ("CLIENT KILL", "-ERR wrong number of arguments for 'client|kill' command\r\n"),
        ("CLIENT KILL 1.2.3.4:5", "-ERR No such client\r\n"),
        ("CLIENT KILL USER", "-ERR No such client\r\n"),
        ("CLIENT KILL FOO BAR", "-ERR syntax error\r\n"),
        ("CLIENT KILL ID x", "-ERR client-id should be greater than 0\r\n"),
        ("CLIENT KILL ID 0", "-ERR client-id should be greater than 0\r\n"),
        ("CLIENT KILL ID 1 TYPE", "-ERR syntax error\r\n"),
        ("CLIENT KILL ID 1 SKIPME foo", "-ERR syntax error\r\n"),
        ("CLIENT KILL TYPE foo", "-ERR Unknown client type 'foo'\r\n"),
        ("CLIENT KILL USER nope", "-ERR No such user 'nope'\r\n"),
        ("CLIENT KILL MAXAGE 0", "-ERR maxage should be greater than 0\r\n"),
        ("CLIENT KILL MAXAGE x", "-ERR maxage is not an integer or out of range\r\n"),
        ("CLIENT KILL MAXAGE 10", ":0\r\n"),
        ("CLIENT KILL TYPE master", ":0\r\n"),
        ("CLIENT KILL ID 1", ":0\r\n"),
        ("CLIENT KILL ADDR 127.0.0.1:40000", ":0\r\n"),
        ("CLIENT KILL TYPE pubsub ID 2", ":0\r\n"),
    ] {
        assert_eq!(bench.ask(one, line), reply, "{line}");
    }
    assert_eq!(bench.ask(one, "CLIENT KILL TYPE pubsub"), ":1\r\n");
    assert!(killed(&bench, three) && !killed(&bench, two));
    assert_eq!(bench.ask(one, "CLIENT KILL 127.0.0.1:40001"), "+OK\r\n");
    assert!(killed(&bench, two));
    bench.clients.take_dirty();
    // Oneself: the reply still goes out.
    assert_eq!(bench.ask(one, "CLIENT KILL ID 1 SKIPME no"), ":1\r\n");
    let me = bench.clients.get(one).unwrap();
    assert!(me.close_after_reply && !me.killed && !me.takes_requests());
    assert_eq!(bench.clients.take_dirty(), [one]);
}

#[test]
fn replies_can_be_switched_off_or_skipped() {
    expect(&[
        ("CLIENT REPLY foo", "-ERR syntax error\r\n"),
        ("CLIENT REPLY ON", "+OK\r\n"),
        ("CLIENT REPLY SKIP", ""),
        ("PING", ""),
        ("PING", "+PONG\r\n"),
        ("CLIENT REPLY OFF", ""),
        ("PING", ""),
        ("CLIENT REPLY SKIP", ""),
        ("SENTINEL SET mymaster quorum 1", ""),
        ("FOO", ""),
        ("CLIENT REPLY ON", "+OK\r\n"),
        ("PING", "+PONG\r\n"),
    ]);
}

#[test]
fn tracking_is_accepted_and_remembered_because_clients_insist() {
    let conflict = "You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
                    with a different mode.";
    let other = "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with \
                 a different mode.";
    expect(&[
        ("CLIENT TRACKING", "-ERR wrong number of arguments for 'client|tracking' command\r\n"),
        ("CLIENT TRACKING foo", "-ERR syntax error\r\n"),
        ("CLIENT TRACKING ON FOO", "-ERR syntax error\r\n"),
        ("CLIENT TRACKING ON REDIRECT 999", "-ERR The client ID you want redirect to does not exist\r\n"),
        ("CLIENT TRACKING ON REDIRECT x", "-ERR value is not an integer or out of range\r\n"),
        ("CLIENT TRACKING ON OPTIN OPTOUT", "-ERR You can't specify both OPTIN mode and OPTOUT mode\r\n"),
        ("CLIENT TRACKING ON BCAST OPTIN", "-ERR OPTIN and OPTOUT are not compatible with BCAST\r\n"),
        ("CLIENT TRACKING ON PREFIX a", "-ERR PREFIX option requires BCAST mode to be enabled\r\n"),
        (
            "CLIENT TRACKING ON BCAST PREFIX a PREFIX ab",
            "-ERR Prefix 'a' overlaps with another provided prefix 'ab'. Prefixes for a single client must not overlap.\r\n",
        ),
        ("CLIENT TRACKING ON REDIRECT 1 REDIRECT 1", "-ERR A client can only redirect to a single other client\r\n"),
        ("CLIENT GETREDIR", ":-1\r\n"),
        ("CLIENT TRACKING ON OPTIN", "+OK\r\n"),
        ("CLIENT GETREDIR", ":0\r\n"),
        (
            "CLIENT TRACKINGINFO",
            "*6\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$5\r\noptin\r\n$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0\r\n",
        ),
        ("CLIENT CACHING NO", "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.\r\n"),
        ("CLIENT CACHING foo", "-ERR syntax error\r\n"),
        ("CLIENT CACHING YES", "+OK\r\n"),
        (
            "CLIENT TRACKINGINFO",
            "*6\r\n$5\r\nflags\r\n*3\r\n$2\r\non\r\n$5\r\noptin\r\n$11\r\ncaching-yes\r\n$8\r\nredirect\r\n:0\r\n\
             $8\r\nprefixes\r\n*0\r\n",
        ),
        (
            "CLIENT TRACKINGINFO",
            "*6\r\n$5\r\nflags\r\n*3\r\n$2\r\non\r\n$5\r\noptin\r\n$11\r\ncaching-yes\r\n$8\r\nredirect\r\n:0\r\n\
             $8\r\nprefixes\r\n*0\r\n",
        ),
        // No Sentinel knows RESET, so it ends no tracking either; and it is no CLIENT, so it uses up the CACHING.
        ("RESET", "-ERR unknown command 'RESET', with args beginning with: \r\n"),
        (
            "CLIENT TRACKINGINFO",
            "*6\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$5\r\noptin\r\n$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0\r\n",
        ),
        ("CLIENT TRACKING ON BCAST", &format!("-ERR {conflict}\r\n")),
        ("CLIENT TRACKING ON OPTOUT", &format!("-ERR {other}\r\n")),
        ("CLIENT TRACKING OFF", "+OK\r\n"),
        ("CLIENT TRACKING ON BCAST PREFIX a", "+OK\r\n"),
        (
            "CLIENT TRACKING ON BCAST PREFIX a",
            "-ERR Prefix 'a' overlaps with an existing prefix 'a'. Prefixes for a single client must not overlap.\r\n",
        ),
        ("CLIENT CACHING YES", "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.\r\n"),
        ("CLIENT TRACKING OFF", "+OK\r\n"),
        (
            "CLIENT CACHING YES",
            "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled\r\n",
        ),
        (
            "CLIENT TRACKINGINFO",
            "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n",
        ),
    ]);
}

#[test]
fn pausing_and_unblocking_answer_as_the_reference_does() {
    expect(&[
        ("CLIENT PAUSE x", "-ERR timeout is not an integer or out of range\r\n"),
        ("CLIENT PAUSE -1", "-ERR timeout is negative\r\n"),
        ("CLIENT PAUSE 1 foo", "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n"),
        ("CLIENT PAUSE 1 WRITE", "+OK\r\n"),
        (
            "CLIENT PAUSE 1 WRITE x",
            "-ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.\r\n",
        ),
        ("CLIENT UNPAUSE", "+OK\r\n"),
        ("CLIENT UNBLOCK x", "-ERR value is not an integer or out of range\r\n"),
        ("CLIENT UNBLOCK 1", ":0\r\n"),
        ("CLIENT UNBLOCK 1 foo", "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n"),
        ("CLIENT UNBLOCK 1 ERROR", ":0\r\n"),
        (
            "CLIENT UNBLOCK 1 ERROR x",
            "-ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.\r\n",
        ),
    ]);
}

/// A figure of INFO.
fn info(bench: &mut Bench, client: ClientId, name: &str) -> usize {
    let text = bench.ask(client, "INFO");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|figure| figure.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn what_info_counts_follows_the_clients_through_all_they_do() {
    let mut bench = Bench::new();
    let clients: Vec<ClientId> = (0..4).map(|_| bench.client()).collect();
    // Who says what; then subscribers, clients with tracking and their prefixes. Debug builds count them all again.
    let steps: &[(usize, &str, [usize; 3])] = &[
        (0, "SUBSCRIBE a b", [1, 0, 0]),
        (0, "PSUBSCRIBE *", [1, 0, 0]),
        (1, "PSUBSCRIBE x", [2, 0, 0]),
        (0, "UNSUBSCRIBE", [2, 0, 0]),
        (0, "PUNSUBSCRIBE nothing", [2, 0, 0]),
        (0, "PUNSUBSCRIBE", [1, 0, 0]),
        (2, "CLIENT TRACKING ON BCAST PREFIX a PREFIX b", [1, 1, 2]),
        (2, "CLIENT TRACKING ON BCAST PREFIX c", [1, 1, 3]),
        (2, "CLIENT TRACKING ON BCAST PREFIX ca", [1, 1, 3]),
        (0, "CLIENT TRACKING ON", [1, 2, 3]),
        (0, "CLIENT TRACKING OFF", [1, 1, 3]),
        (0, "CLIENT KILL TYPE pubsub", [1, 1, 3]),
    ];
    for &(who, line, expected) in steps {
        bench.ask(clients[who], line);
        let names = ["pubsub_clients", "tracking_clients", "tracking_total_prefixes"];
        assert_eq!(names.map(|name| info(&mut bench, clients[3], name)), expected, "{line}");
    }
    for (who, expected) in [(1, [0, 1]), (2, [0, 0]), (0, [0, 0])] {
        bench.clients.remove(clients[who]);
        assert_eq!(["pubsub_clients", "tracking_clients"].map(|name| info(&mut bench, clients[3], name)), expected);
    }
    assert_eq!(info(&mut bench, clients[3], "tracking_total_prefixes"), 0);
}

#[test]
fn the_largest_buffers_are_shown_for_a_round_and_then_forgotten() {
    let mut bench = Bench::new();
    let [big, small, asking] = [bench.client(), bench.client(), bench.client()];
    let shown = |bench: &mut Bench| {
        ["client_recent_max_input_buffer", "client_recent_max_output_buffer"].map(|name| info(bench, asking, name))
    };
    for (client, input, output) in [(big, 700, 9_000), (small, 900, 100)] {
        let client = bench.clients.get_mut(client).expect("it is there");
        (client.query_buffered, client.out, client.sent) = (input, vec![0; output + 50], 50);
    }
    for client in [small, big, small] {
        bench.clients.note_peaks(client);
    }
    assert_eq!(shown(&mut bench), [900, 9_000]);
    bench.clients.remove(big);
    bench.clients.next_round();
    bench.clients.note_peaks(small);
    assert_eq!(shown(&mut bench), [900, 9_000], "the round before still counts");
    bench.clients.next_round();
    bench.clients.note_peaks(small);
    assert_eq!(shown(&mut bench), [900, 100]);
}

#[test]
fn a_client_is_killed_by_its_number_only_if_all_else_fits_too() {
    let mut bench = Bench::new();
    let [victim, asking] = [bench.client(), bench.client()];
    for (line, reply) in [
        ("CLIENT KILL ID 1 TYPE pubsub", ":0\r\n"),
        ("CLIENT KILL ID 7", ":0\r\n"),
        ("CLIENT KILL ID 2", ":0\r\n"),
        ("CLIENT KILL ID 1 TYPE normal", ":1\r\n"),
        ("CLIENT KILL ID 1", ":0\r\n"),
    ] {
        assert_eq!(bench.ask(asking, line), reply, "{line}");
    }
    assert!(bench.clients.get(victim).expect("the shell removes it").killed);
}
