//! Pub/Sub: the replies, the messages, and who may say what while subscribed.

mod command_support;

use command_support::Bench;
use watchfire::base::Millis;
use watchfire::command::{Clients, SubscriptionKind};
use watchfire::config::OutputLimit;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_name_gets_a_reply_of_its_own_with_the_total() {
    let mut bench = Bench::new();
    let client = bench.client();
    for (line, reply) in [
        ("SUBSCRIBE", "-ERR wrong number of arguments for 'subscribe' command\r\n"),
        (
            "SUBSCRIBE a b a",
            "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n\
             *3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:2\r\n",
        ),
        ("PSUBSCRIBE x*", "*3\r\n$10\r\npsubscribe\r\n$2\r\nx*\r\n:3\r\n"),
        ("UNSUBSCRIBE nope", "*3\r\n$11\r\nunsubscribe\r\n$4\r\nnope\r\n:3\r\n"),
        ("UNSUBSCRIBE b", "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:2\r\n"),
        ("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n"),
        ("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:1\r\n"),
        ("PUNSUBSCRIBE", "*3\r\n$12\r\npunsubscribe\r\n$2\r\nx*\r\n:0\r\n"),
        ("PUNSUBSCRIBE q", "*3\r\n$12\r\npunsubscribe\r\n$1\r\nq\r\n:0\r\n"),
        ("PING", "+PONG\r\n"),
        ("HELLO 3 FOO", "-ERR Syntax error in HELLO option 'FOO'\r\n"),
    ] {
        assert_eq!(bench.ask(client, line), reply, "{line}");
    }
    bench.ask(client, "HELLO 3");
    assert_eq!(bench.ask(client, "SUBSCRIBE a"), ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    assert_eq!(bench.ask(client, "PUNSUBSCRIBE"), ">3\r\n$12\r\npunsubscribe\r\n_\r\n:1\r\n");
}

#[test]
fn a_subscribed_resp2_client_is_held_to_the_commands_of_pubsub() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.ask(client, "SUBSCRIBE a");
    let refused = |name: &str| {
        format!(
            "-ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
             context\r\n"
        )
    };
    for (line, reply) in [
        ("SENTINEL masters", refused("sentinel|masters").as_str()),
        ("CLIENT ID", &refused("client|id")),
        ("HELLO 3", &refused("hello")),
        // What is wrong anyway is told first.
        ("SENTINEL masters x", "-ERR wrong number of arguments for 'sentinel|masters' command\r\n"),
        ("SENTINEL foo", "-ERR unknown subcommand 'foo'. Try SENTINEL HELP.\r\n"),
        ("QUIT", "-ERR unknown command 'QUIT', with args beginning with: \r\n"),
        ("PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n"),
        ("PING x", "*2\r\n$4\r\npong\r\n$1\r\nx\r\n"),
    ] {
        assert_eq!(bench.ask(client, line), reply, "{line}");
    }
}

#[test]
fn a_subscribed_resp3_client_may_say_anything() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.ask(client, "HELLO 3");
    bench.ask(client, "SUBSCRIBE a");
    assert_eq!(bench.ask(client, "PING"), "+PONG\r\n");
    assert_eq!(
        bench.ask(client, "SENTINEL get-master-addr-by-name mymaster"),
        "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n37001\r\n"
    );
}

#[test]
fn messages_reach_channels_then_patterns_in_each_clients_protocol() {
    let mut bench = Bench::new();
    let (one, two, idle) = (bench.client(), bench.client(), bench.client());
    bench.ask(one, "SUBSCRIBE +sdown");
    bench.ask(one, "PSUBSCRIBE [-+]s*");
    bench.ask(two, "HELLO 3");
    bench.ask(two, "PSUBSCRIBE * zzz");
    bench.clients.take_dirty();
    assert_eq!(bench.clients.publish(b"+sdown", b"master m"), 3);
    assert_eq!(
        text(&bench.output(one)),
        "*3\r\n$7\r\nmessage\r\n$6\r\n+sdown\r\n$8\r\nmaster m\r\n\
         *4\r\n$8\r\npmessage\r\n$6\r\n[-+]s*\r\n$6\r\n+sdown\r\n$8\r\nmaster m\r\n"
    );
    assert_eq!(text(&bench.output(two)), ">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$6\r\n+sdown\r\n$8\r\nmaster m\r\n");
    assert!(bench.output(idle).is_empty());
    assert_eq!(bench.clients.take_dirty(), [one, two], "each once");
    assert_eq!(bench.clients.publish(b"+odown", b"x"), 1);
}

#[test]
fn a_client_that_is_gone_leaves_no_subscription_behind() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.ask(client, "SUBSCRIBE a b");
    bench.ask(client, "PSUBSCRIBE c");
    assert_eq!(bench.clients.listened(SubscriptionKind::Channel), 2);
    bench.clients.remove(client);
    assert_eq!(bench.clients.listened(SubscriptionKind::Channel), 0);
    assert_eq!(bench.clients.listened(SubscriptionKind::Pattern), 0);
    assert_eq!(bench.clients.publish(b"a", b"x"), 0);
}

#[test]
fn an_event_of_the_own_request_comes_before_its_reply() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.ask(client, "HELLO 3");
    bench.ask(client, "PSUBSCRIBE *");
    let reply = bench.ask(client, "SENTINEL SET mymaster quorum 1");
    assert!(reply.starts_with(">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$4\r\n+set\r\n"), "{reply}");
    assert!(reply.ends_with("quorum 1\r\n+OK\r\n"), "{reply}");
}

#[test]
fn r118_a_subscriber_that_does_not_read_is_cut_off() {
    let mut clients = Clients::new();
    let id = clients.connect(Millis(0), "1.1.1.1:1".to_owned(), "1.1.1.1:2".to_owned());
    clients.subscribe(id, SubscriptionKind::Channel, b"a");
    let payload = vec![b'x'; 1024 * 1024];
    let limit = OutputLimit::PUBSUB;
    while (clients.get(id).unwrap().waiting() as u64) < limit.soft {
        clients.publish(b"a", &payload);
    }
    clients.enforce_soft_limit(id, Millis(1_000));
    clients.enforce_soft_limit(id, Millis(1_000 + limit.soft_ms));
    assert_eq!(clients.times_cut_off(), 0);
    clients.enforce_soft_limit(id, Millis(1_001 + limit.soft_ms));
    assert_eq!(clients.times_cut_off(), 1);
    assert!(clients.get(id).unwrap().killed);

    let id = clients.connect(Millis(0), "1.1.1.1:3".to_owned(), "1.1.1.1:2".to_owned());
    clients.subscribe(id, SubscriptionKind::Channel, b"a");
    for _ in 0..=limit.hard / payload.len() as u64 {
        clients.publish(b"a", &payload);
    }
    let client = clients.get(id).unwrap();
    assert!(client.killed && client.overflowed && client.out.is_empty());
    assert_eq!(clients.take_dirty().len(), 2);
}

#[test]
fn what_is_written_already_does_not_count_against_a_limit_and_who_reads_again_starts_anew() {
    let mut clients = Clients::new();
    clients.normal_limit = OutputLimit { hard: 100, soft: 50, soft_ms: 1_000 };
    let id = clients.connect(Millis(0), "1.1.1.1:1".to_owned(), "1.1.1.1:2".to_owned());
    let give = |clients: &mut Clients, out: usize, sent: usize| {
        let client = clients.get_mut(id).unwrap();
        (client.out, client.sent) = (vec![0; out], sent);
        clients.enforce_hard_limit(id);
    };
    give(&mut clients, 199, 100);
    clients.enforce_soft_limit(id, Millis(0));
    give(&mut clients, 149, 100);
    clients.enforce_soft_limit(id, Millis(1_500));
    give(&mut clients, 150, 100);
    clients.enforce_soft_limit(id, Millis(2_000));
    clients.enforce_soft_limit(id, Millis(3_000));
    assert_eq!(clients.times_cut_off(), 0);
    give(&mut clients, 200, 100);
    assert_eq!(clients.times_cut_off(), 1);
    // Once is enough.
    clients.enforce_hard_limit(id);
    assert_eq!(clients.times_cut_off(), 1);
}

#[test]
fn who_is_about_to_be_closed_hears_nothing_new_and_keeps_its_limit() {
    let mut clients = Clients::new();
    clients.pubsub_limit = OutputLimit { hard: 100, soft: 0, soft_ms: 0 };
    let id = clients.connect(Millis(0), "1.1.1.1:1".to_owned(), "1.1.1.1:2".to_owned());
    clients.subscribe(id, SubscriptionKind::Pattern, b"*");
    assert_eq!(clients.publish(b"+sdown", b"x"), 1);
    let heard = clients.get(id).unwrap().out.clone();
    clients.close_after_reply(id);
    assert_eq!(clients.publish(b"-sdown", b"x"), 0);
    assert_eq!(clients.get(id).unwrap().out, heard);
    assert!(!clients.get(id).unwrap().takes_requests());
    clients.get_mut(id).unwrap().out = vec![0; 100];
    clients.enforce_hard_limit(id);
    assert_eq!(clients.times_cut_off(), 1);
    assert!(clients.remove(id).is_some());
}

#[test]
fn who_kills_itself_or_loses_its_channels_hears_nothing_behind_the_reply() {
    for (line, reply) in [
        ("CLIENT KILL ID 1 SKIPME no", ":1\r\n"),
        ("ACL SETUSER eve resetchannels", "+OK\r\n"),
        ("ACL DELUSER eve", ":1\r\n"),
    ] {
        let mut bench = Bench::new();
        let eve = bench.client();
        bench.ask(eve, "ACL SETUSER eve on >secret +@all &*");
        bench.ask(eve, "HELLO 3 AUTH eve secret");
        bench.ask(eve, "SUBSCRIBE +sdown");
        assert_eq!(bench.clients.publish(b"+sdown", b"x"), 1);
        bench.output(eve);
        assert_eq!(bench.ask(eve, line), reply);
        assert_eq!(bench.clients.publish(b"+sdown", b"x"), 0, "{line}");
        assert!(!bench.clients.get(eve).unwrap().takes_requests());
    }
}

#[test]
fn only_hellos_may_be_published() {
    let mut bench = Bench::new();
    let client = bench.client();
    assert_eq!(bench.ask(client, "PUBLISH a b"), "-ERR Only HELLO messages are accepted by Sentinel instances.\r\n");
    assert_eq!(bench.ask(client, "PUBLISH x"), "-ERR wrong number of arguments for 'publish' command\r\n");
}

#[test]
fn r109_malformed_hellos_are_answered_and_ignored() {
    let mut bench = Bench::new();
    let client = bench.client();
    let before = bench.ask(client, "SENTINEL sentinels mymaster");
    let own = command_support::MYID;
    let id = "0123456789012345678901234567890123456789";
    for hello in [
        String::new(),
        "b".to_owned(),
        format!("127.0.0.1,1,{id},0,mymaster,127.0.0.1,37001"),
        format!("127.0.0.1,1,{id},0,mymaster,127.0.0.1,37001,0,9"),
        format!(" 127.0.0.1,1,{id},0,mymaster,127.0.0.1,37001,0"),
        format!("127.0.0.1,0,{id},0,mymaster,127.0.0.1,37001,0"),
        format!("127.0.0.1,99999,{id},0,mymaster,127.0.0.1,37001,0"),
        "127.0.0.1,1,,0,mymaster,127.0.0.1,37001,0".to_owned(),
        "127.0.0.1,1,ab,0,mymaster,127.0.0.1,37001,0".to_owned(),
        format!("127.0.0.1,1,{own},0,mymaster,127.0.0.1,37001,0"),
        format!("127.0.0.1,1,{}\n,0,mymaster,127.0.0.1,37001,0", &id[..39]),
        "x".repeat(1024 * 1024),
    ] {
        assert_eq!(text(&bench.ask_bytes(client, &[b"PUBLISH", b"__sentinel__:hello", hello.as_bytes()])), ":1\r\n");
    }
    assert_eq!(bench.ask(client, "SENTINEL sentinels mymaster"), before);
    let good = format!("127.0.0.1,37103,{id},0,mymaster,127.0.0.1,37001,0");
    assert_eq!(text(&bench.ask_bytes(client, &[b"PUBLISH", b"__sentinel__:hello", good.as_bytes()])), ":1\r\n");
    assert!(bench.ask(client, "SENTINEL sentinels mymaster").contains(id));
}
