//! `SENTINEL …` as clients and peers read it: shapes, fields, errors, votes.

mod command_support;

use command_support::{Bench, MASTER_RUN_ID, MYID, PEER, REPLICA_RUN_ID, field, golden, pairs};
use std::collections::BTreeMap;
use watchfire::command::{COMMANDS, ClientId};
use watchfire::core::Snapshot;
use watchfire::resp::{Reply, ReplyDecoder};

const NO_MASTER: &str = "-ERR No such master with that name\r\n";

/// The keys and values of one instance as they go over the wire.
fn bulk_pairs(fields: &[(&str, &str)]) -> String {
    fields.iter().flat_map(|(key, value)| [key, value]).map(|word| format!("${}\r\n{word}\r\n", word.len())).collect()
}

#[test]
fn the_address_of_a_master_is_a_pair_and_of_an_unknown_one_a_null_array() {
    let mut bench = Bench::new();
    let client = bench.client();
    for command in ["GET-MASTER-ADDR-BY-NAME", "get-primary-addr-by-name"] {
        assert_eq!(
            bench.ask(client, &format!("SENTINEL {command} mymaster")),
            "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n37001\r\n"
        );
        assert_eq!(bench.ask(client, &format!("SENTINEL {command} nope")), "*-1\r\n");
        assert_eq!(bench.ask(client, &format!("SENTINEL {command} MYMASTER")), "*-1\r\n", "names have a case");
    }
    bench.ask(client, "HELLO 3");
    assert_eq!(bench.ask(client, "SENTINEL get-master-addr-by-name nope"), "_\r\n");
}

#[test]
fn a_healthy_master_has_twenty_pairs_in_the_recorded_order() {
    let mut bench = Bench::alive();
    let client = bench.client();
    let reply = bench.ask(client, "SENTINEL MASTER mymaster");
    // Times move with the clock of the bench; the rest is the recording.
    let times = |key| field(&reply, key);
    let (pong, info, role) = (times("last-ping-reply"), times("info-refresh"), times("role-reported-time"));
    assert!(pong.parse::<u64>().unwrap() <= 300 && info.parse::<u64>().unwrap() <= 300, "{reply}");
    let fields = [
        ("name", "mymaster"),
        ("ip", "127.0.0.1"),
        ("port", "37001"),
        ("runid", MASTER_RUN_ID),
        ("flags", "master"),
        ("link-pending-commands", "0"),
        ("link-refcount", "1"),
        ("last-ping-sent", "0"),
        ("last-ok-ping-reply", pong.as_str()),
        ("last-ping-reply", pong.as_str()),
        ("down-after-milliseconds", "3000"),
        ("info-refresh", info.as_str()),
        ("role-reported", "master"),
        ("role-reported-time", role.as_str()),
        ("config-epoch", "0"),
        ("num-slaves", "1"),
        ("num-other-sentinels", "1"),
        ("quorum", "2"),
        ("failover-timeout", "180000"),
        ("parallel-syncs", "1"),
    ];
    let body = bulk_pairs(&fields);
    assert_eq!(reply, format!("*40\r\n{body}"));
    assert_eq!(bench.ask(client, "SENTINEL PRIMARY mymaster"), reply);
    assert_eq!(bench.ask(client, "SENTINEL masters"), format!("*1\r\n{reply}"));
    assert_eq!(bench.ask(client, "SENTINEL primaries"), format!("*1\r\n{reply}"));
    bench.ask(client, "HELLO 3");
    assert_eq!(bench.ask(client, "SENTINEL MASTER mymaster"), format!("%20\r\n{body}"));
    assert_eq!(bench.ask(client, "SENTINEL MASTER nope"), NO_MASTER);
}

#[test]
fn r67_a_replica_has_twentyone_pairs_in_the_recorded_order() {
    let mut bench = Bench::alive();
    let client = bench.client();
    let reply = bench.ask(client, "SENTINEL REPLICAS mymaster");
    let keys: Vec<String> = pairs(&reply[4..]).into_iter().map(|(key, _)| key).collect();
    let one = &reply[4..];
    assert_eq!(
        keys.join(" "),
        "name ip port runid flags link-pending-commands link-refcount last-ping-sent last-ok-ping-reply last-ping-reply \
         down-after-milliseconds info-refresh role-reported role-reported-time master-link-down-time master-link-status \
         master-host master-port slave-priority slave-repl-offset replica-announced"
    );
    assert!(reply.starts_with("*1\r\n*42\r\n$4\r\nname\r\n$15\r\n127.0.0.1:37002\r\n"));
    for (key, value) in [
        ("runid", REPLICA_RUN_ID),
        ("flags", "slave"),
        ("role-reported", "slave"),
        ("master-link-status", "ok"),
        ("master-host", "127.0.0.1"),
        ("master-port", "37001"),
        ("slave-priority", "100"),
        ("slave-repl-offset", "27522"),
        ("replica-announced", "1"),
    ] {
        assert_eq!(field(one, key), value, "{key}");
    }
    // predis reads the value at index 31.
    assert_eq!(one.split("\r\n").skip(2).step_by(2).nth(31).unwrap(), "ok");
    assert_eq!(bench.ask(client, "SENTINEL SLAVES mymaster"), reply);
    for command in ["replicas", "slaves", "sentinels"] {
        assert_eq!(bench.ask(client, &format!("SENTINEL {command} nope")), NO_MASTER);
    }
}

#[test]
fn a_peer_has_fourteen_pairs() {
    let mut bench = Bench::alive();
    let client = bench.client();
    let reply = bench.ask(client, "SENTINEL SENTINELS mymaster");
    let one = &reply[4..];
    let pong = field(one, "last-ping-reply");
    let hello = field(one, "last-hello-message");
    assert_eq!(
        reply,
        format!(
            "*1\r\n*28\r\n{}",
            bulk_pairs(&[
                ("name", PEER),
                ("ip", "127.0.0.1"),
                ("port", "37104"),
                ("runid", PEER),
                ("flags", "sentinel"),
                ("link-pending-commands", "0"),
                ("link-refcount", "1"),
                ("last-ping-sent", "0"),
                ("last-ok-ping-reply", &pong),
                ("last-ping-reply", &pong),
                ("down-after-milliseconds", "3000"),
                ("last-hello-message", &hello),
                ("voted-leader", "?"),
                ("voted-leader-epoch", "0"),
            ])
        )
    );
}

#[test]
fn what_is_down_shows_flags_and_times_in_their_places() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.pass(3_500);
    bench.ask(client, "SENTINEL SET mymaster quorum 1");
    bench.pass(200);
    let reply = bench.ask(client, "SENTINEL MASTER mymaster");
    assert_eq!(field(&reply, "runid"), "");
    // R72: no age before there is one.
    assert_eq!(field(&reply, "info-refresh"), "0");
    assert!(field(&reply, "flags").starts_with("s_down,o_down,master,disconnected"), "{reply}");
    let keys: Vec<String> = pairs(&reply).into_iter().map(|(key, _)| key).collect();
    let at = keys.iter().position(|key| key == "last-ping-reply").unwrap();
    assert_eq!(keys[at + 1..at + 4], ["s-down-time", "o-down-time", "down-after-milliseconds"]);
    if field(&reply, "flags").contains("failover_in_progress") {
        let at = keys.iter().position(|key| key == "link-refcount").unwrap();
        assert_eq!(keys[at + 1..at + 3], ["failover-state", "last-ping-sent"]);
    }
}

#[test]
fn r74_every_subcommand_answers_a_wrong_number_of_words_with_an_arity_error() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sentinel = COMMANDS.find(b"sentinel").unwrap();
    for sub in sentinel.subcommands() {
        for words in 0..8 {
            if sub.accepts(words + 2) {
                continue;
            }
            let line = format!("SENTINEL {}{}", sub.name, " x".repeat(words));
            assert_eq!(
                bench.ask(client, &line),
                format!("-ERR wrong number of arguments for 'sentinel|{}' command\r\n", sub.name),
                "{line}"
            );
        }
    }
    for (sub, arity) in [
        ("ckquorum", 3),
        ("config", -4),
        ("debug", -2),
        ("failover", -3),
        ("flushconfig", 2),
        ("get-master-addr-by-name", 3),
        ("help", 2),
        ("info-cache", -3),
        ("is-master-down-by-addr", 6),
        ("master", 3),
        ("masters", 2),
        ("monitor", 6),
        ("myid", 2),
        ("pending-scripts", 2),
        ("remove", 3),
        ("replicas", 3),
        ("reset", 3),
        ("sentinels", 3),
        ("set", -5),
        ("simulate-failure", -3),
        ("slaves", 3),
    ] {
        assert_eq!(sentinel.subs.unwrap().find(sub.as_bytes()).unwrap().arity, arity, "{sub}");
    }
}

#[test]
fn any_bytes_as_arguments_of_any_command_get_an_answer() {
    let mut bench = Bench::new();
    let client = bench.client();
    let odd: [&[u8]; 4] = [b"", b"\xff\xfe", b"\r\n\0", b"-9223372036854775808"];
    for row in COMMANDS.rows {
        for name in std::iter::once(row).chain(row.subcommands()) {
            for words in 0..7 {
                for word in odd {
                    let mut argv: Vec<&[u8]> = name.full.split('|').map(str::as_bytes).collect();
                    argv.extend(std::iter::repeat_n(word, words));
                    if matches!(name.full, "shutdown" | "subscribe" | "psubscribe") && name.accepts(argv.len()) {
                        continue;
                    }
                    let reply = bench.ask_bytes(client, &argv);
                    assert!(reply.ends_with(b"\r\n"), "{argv:?}");
                    if reply.starts_with(b"-") {
                        let text = &reply[..reply.len() - 2];
                        assert!(!text.iter().any(|byte| b"\r\n\0".contains(byte)), "{argv:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_peers_question_about_an_unknown_master_is_answered_with_zeroes() {
    let mut bench = Bench::new();
    let client = bench.client();
    let nothing = "*3\r\n:0\r\n$1\r\n*\r\n:0\r\n";
    for (arguments, reply) in [
        ("127.0.0.1 37001 0 *", nothing),
        ("1.2.3.4 37001 0 abc", nothing),
        ("foo 37001 0 *", nothing),
        ("127.0.0.1 99999 0 *", nothing),
        ("127.0.0.1 37001 -1 *", nothing),
        ("127.0.0.1 x 0 *", "-ERR value is not an integer or out of range\r\n"),
        ("127.0.0.1 37001 x *", "-ERR value is not an integer or out of range\r\n"),
    ] {
        for command in ["is-master-down-by-addr", "IS-PRIMARY-DOWN-BY-ADDR"] {
            assert_eq!(bench.ask(client, &format!("SENTINEL {command} {arguments}")), reply, "{arguments}");
        }
    }
    // The last epoch there is would end all elections.
    let reply = bench.ask(client, &format!("SENTINEL is-master-down-by-addr 127.0.0.1 37001 -1 {PEER}"));
    assert_eq!(reply, "-ERR value is not an integer or out of range\r\n");
    assert_eq!(bench.sentinel.current_epoch(), 0);
}

#[test]
fn a_vote_is_told_once_it_is_saved_and_not_at_all_when_it_cannot_be() {
    let question = format!("SENTINEL is-master-down-by-addr 127.0.0.1 37001 5 {PEER}");
    let mut bench = Bench::new();
    let client = bench.client();
    bench.hand_in(client, &question.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    let asking = bench.clients.get(client).unwrap();
    assert!(asking.out.is_empty() && !asking.takes_requests(), "nothing before the save");
    let saves = bench.saves;
    bench.drain();
    assert!(bench.saves > saves);
    assert_eq!(bench.clients.settle(true), [client]);
    let voted = format!("*3\r\n:0\r\n$40\r\n{PEER}\r\n:5\r\n");
    assert_eq!(String::from_utf8(bench.output(client)).unwrap(), voted);
    // The same vote again rests on no save.
    assert_eq!(bench.ask(client, &question), voted);

    let mut bench = Bench::new();
    let client = bench.client();
    bench.disk_ok = false;
    assert_eq!(bench.ask(client, &question), "*3\r\n:0\r\n$1\r\n*\r\n:0\r\n");
    assert!(bench.sentinel.save_failing());
    assert!(bench.ask(client, "INFO sentinel").contains("sentinel_config_save_failing:1\r\n"));
}

#[test]
fn myid_ckquorum_and_pending_scripts() {
    let mut bench = Bench::alive();
    let client = bench.client();
    assert_eq!(bench.ask(client, "SENTINEL myid"), format!("$40\r\n{MYID}\r\n"));
    assert_eq!(bench.ask(client, "SENTINEL ckquorum nope"), NO_MASTER);
    assert_eq!(
        bench.ask(client, "SENTINEL ckquorum mymaster"),
        "+OK 2 usable Sentinels. Quorum and failover authorization can be reached\r\n"
    );
    let short = "Not enough available Sentinels to reach the specified quorum for this master";
    let few = "Not enough available Sentinels to reach the majority and authorize a failover";
    bench.ask(client, "SENTINEL SET mymaster quorum 3");
    assert_eq!(bench.ask(client, "SENTINEL ckquorum mymaster"), format!("-NOQUORUM 2 usable Sentinels. {short}\r\n"));
    bench.alive = vec![37001, 37002];
    bench.pass(4_500);
    assert_eq!(
        bench.ask(client, "SENTINEL ckquorum mymaster"),
        format!("-NOQUORUM 1 usable Sentinels. {short}. {few}\r\n")
    );
    bench.ask(client, "SENTINEL SET mymaster quorum 1");
    assert_eq!(bench.ask(client, "SENTINEL ckquorum mymaster"), format!("-NOQUORUM 1 usable Sentinels. {few}\r\n"));
    assert_eq!(bench.ask(client, "SENTINEL pending-scripts"), "*0\r\n");
}

#[test]
fn pending_scripts_are_shown_with_all_values_as_strings() {
    let mut snapshot = golden();
    snapshot.masters[0].settings.notification_script = "/bin/true".to_owned();
    let mut bench = Bench::with(&snapshot);
    let client = bench.client();
    bench.pass(200);
    let reply = bench.ask(client, "SENTINEL pending-scripts");
    let head = "*1\r\n*10\r\n$4\r\nargv\r\n*3\r\n$9\r\n/bin/true\r\n$8\r\n+monitor\r\n$40\r\n\
                master mymaster 127.0.0.1 37001 quorum 2\r\n$5\r\nflags\r\n$7\r\nrunning\r\n$3\r\npid\r\n$1\r\n0\r\n\
                $8\r\nrun-time\r\n";
    assert!(reply.starts_with(head), "{reply}");
    assert!(reply.ends_with("$9\r\nretry-num\r\n$1\r\n1\r\n"), "{reply}");
}

#[test]
fn r73_info_cache_shows_the_last_info_of_master_and_replicas() {
    let mut bench = Bench::alive();
    let client = bench.client();
    assert_eq!(bench.ask(client, "SENTINEL info-cache nope"), "*0\r\n");
    let reply = bench.ask(client, "SENTINEL info-cache mymaster nope mymaster");
    assert!(reply.starts_with("*2\r\n$8\r\nmymaster\r\n*2\r\n*2\r\n:"), "{reply}");
    assert!(reply.contains(&command_support::master_info()) && reply.contains(&command_support::replica_info()));
    let mut silent = Bench::new();
    let client = silent.client();
    assert_eq!(
        silent.ask(client, "SENTINEL info-cache mymaster"),
        "*2\r\n$8\r\nmymaster\r\n*2\r\n*2\r\n:0\r\n$-1\r\n*2\r\n:0\r\n$-1\r\n"
    );
}

#[test]
fn a_failover_is_refused_or_begun() {
    let mut bench = Bench::new();
    let client = bench.client();
    assert_eq!(bench.ask(client, "SENTINEL failover nope"), NO_MASTER);
    assert_eq!(bench.ask(client, "SENTINEL failover mymaster"), "-NOGOODSLAVE No suitable replica to promote\r\n");
    // Valkey's option, with its errors in its order.
    let arity = "-ERR wrong number of arguments for 'sentinel|failover' command\r\n";
    assert_eq!(bench.ask(client, "SENTINEL failover mymaster coordinated x"), arity);
    assert_eq!(bench.ask(client, "SENTINEL failover nope foo"), NO_MASTER);
    assert_eq!(bench.ask(client, "SENTINEL failover mymaster foo"), "-ERR Unknown failover option specified\r\n");
    assert_eq!(
        bench.ask(client, "SENTINEL failover mymaster coordinated"),
        "-NOGOODPRIMARY Primary does not support FAILOVER command\r\n"
    );
    let mut bench = Bench::alive();
    let client = bench.client();
    assert_eq!(bench.ask(client, "SENTINEL failover mymaster"), "+OK\r\n");
    assert_eq!(bench.ask(client, "SENTINEL failover mymaster"), "-INPROG Failover already in progress\r\n");
    let reply = bench.ask(client, "SENTINEL master mymaster");
    assert!(field(&reply, "flags").contains("failover_in_progress,force_failover"), "{reply}");
    let promoted = bench.ask(client, "SENTINEL replicas mymaster");
    assert!(promoted.contains("slave"), "{promoted}");
    let mut bench = Bench::alive();
    let client = bench.client();
    bench.hand_in(client, &[b"SENTINEL", b"failover", b"mymaster", b"COORDINATED"]);
    // Before the peers have answered, who vote for nobody here.
    let other = bench.client();
    bench.hand_in(other, &[b"SENTINEL", b"master", b"mymaster"]);
    let reply = String::from_utf8(bench.output(other)).unwrap();
    assert_eq!(field(&reply, "flags"), "master,failover_in_progress,coordinated_failover");
    bench.hand_in(other, &[b"SENTINEL", b"failover", b"mymaster", b"coordinated"]);
    assert_eq!(bench.output(other), b"-INPROG Failover already in progress\r\n");
}

#[test]
fn without_masters_everything_is_empty() {
    let mut bench = Bench::with(&Snapshot { masters: Vec::new(), ..golden() });
    let client = bench.client();
    assert_eq!(bench.ask(client, "SENTINEL masters"), "*0\r\n");
    assert_eq!(bench.ask(client, "ROLE"), "*2\r\n$8\r\nsentinel\r\n*0\r\n");
    assert_eq!(bench.ask(client, "SENTINEL reset *"), ":0\r\n");
    assert!(bench.ask(client, "INFO sentinel").contains("sentinel_masters:0\r\n"));
}

/// The fields of a RESP3 map, or of a flat RESP2 array.
fn fields(reply: &Reply) -> BTreeMap<String, Reply> {
    let text = |reply: &Reply| match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("a key: {other:?}"),
    };
    match reply {
        Reply::Map(pairs) => pairs.iter().map(|(key, value)| (text(key), value.clone())).collect(),
        Reply::Array(flat) => flat.chunks(2).map(|pair| (text(&pair[0]), pair[1].clone())).collect(),
        other => panic!("a map: {other:?}"),
    }
}

fn report(bench: &mut Bench, client: ClientId, request: &str) -> Vec<BTreeMap<String, Reply>> {
    let mut decoder = ReplyDecoder::new();
    decoder.extend(bench.ask(client, request).as_bytes());
    match decoder.next().unwrap().unwrap() {
        Reply::Array(reports) => reports.iter().map(fields).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failover_report_is_a_timeline_in_both_protocols() {
    let mut bench = Bench::alive();
    let client = bench.client();
    assert_eq!(bench.ask(client, "SENTINEL failover-report"), "*0\r\n");
    assert_eq!(bench.ask(client, "SENTINEL failover-report nope"), NO_MASTER);
    assert_eq!(
        bench.ask(client, "SENTINEL failover-report mymaster x"),
        "-ERR wrong number of arguments for 'sentinel|failover-report' command\r\n"
    );
    assert_eq!(bench.ask(client, "SENTINEL failover mymaster"), "+OK\r\n");
    bench.pass(50);
    let flat = report(&mut bench, client, "SENTINEL failover-report mymaster");
    assert_eq!(flat, report(&mut bench, client, "SENTINEL FAILOVER-REPORT"));
    assert!(bench.ask(client, "HELLO 3").starts_with('%'));
    assert!(bench.ask(client, "SENTINEL failover-report").starts_with("*1\r\n%16\r\n"));
    let maps = report(&mut bench, client, "SENTINEL failover-report mymaster");
    let bulk = |text: &str| Reply::Bulk(text.into());
    // One of its own, as nobody could be asked.
    let epoch = i64::try_from(bench.sentinel.snapshot().current_epoch).unwrap();
    for reports in [&flat, &maps] {
        let [report] = &reports[..] else { panic!("{reports:?}") };
        assert_eq!(report["name"], bulk("mymaster"));
        assert_eq!(report["trigger"], bulk("forced"));
        assert_eq!(report["outcome"], bulk("in-progress"));
        assert_eq!(report["epoch"], Reply::Integer(epoch));
        assert_eq!(report["leader"], bulk(MYID));
        assert_eq!(report["from"], bulk("127.0.0.1:37001"));
        assert_eq!(report["to"], bulk("127.0.0.1:37002"));
        assert_eq!(report["started-ago"], Reply::Integer(50));
        assert_eq!(report["refused"], Reply::Array(vec![]));
        let Reply::Array(steps) = &report["steps"] else { panic!("{report:?}") };
        let steps: Vec<_> = steps.iter().map(fields).collect();
        assert_eq!(steps[0]["step"], bulk("+try-failover"));
        assert_eq!(steps[0]["since-start"], Reply::Integer(0));
        let (Reply::Integer(alive), Reply::Integer(since)) =
            (&report["last-sign-of-life"], &steps[0]["since-sign-of-life"])
        else {
            panic!("{report:?}")
        };
        assert_eq!(-alive, *since);
        let Reply::Array(votes) = &report["votes"] else { panic!("{report:?}") };
        assert_eq!(fields(&votes[0])["sentinel"], bulk(PEER));
    }
}

#[test]
fn the_last_sixteen_failovers_are_remembered_newest_first() {
    let mut bench = Bench::alive();
    let client = bench.client();
    for epoch in 1..=20u64 {
        let port = 37001 + epoch % 2;
        let hello = format!("127.0.0.1,37104,{PEER},{epoch},mymaster,127.0.0.1,{port},{epoch}");
        bench.sentinel.hello(bench.now, hello.as_bytes());
        bench.pass(10);
    }
    let reports = report(&mut bench, client, "SENTINEL failover-report mymaster");
    let epochs: Vec<_> = reports.iter().map(|report| report["epoch"].clone()).collect();
    assert_eq!(epochs, (5..=20).rev().map(Reply::Integer).collect::<Vec<_>>());
    assert!(reports.iter().all(|report| report["trigger"] == Reply::Bulk("observed".into())));
    assert!(reports.iter().all(|report| report["outcome"] == Reply::Bulk("switched".into())));
}
