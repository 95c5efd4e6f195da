//! INFO: what a server says of itself and of its replicas.

use super::config::survives_the_file;
use super::core::Play;
use super::drive::{behaviour, run, size};
use super::hello::{group, only_our_lines};
use super::memory;
use watchfire::base::quote;
use watchfire::config::ServerOptions;
use watchfire::core::InfoReport;
use watchfire::resp::Reply;

/// Replicas of one master that are taken in at most.
const REPLICAS_MAX: usize = 1_024;

const SEEDS: &[&[u8]] = &[
    b"# Server\r\nredis_version:7.0.15\r\nrun_id:ab3de787e77f44ba476b513fae4ef02102909f65\r\n# Replication\r\nrole:master\r\n\
      connected_slaves:2\r\nslave0:ip=127.0.0.1,port=6380,state=online,offset=27522,lag=0\r\n\
      slave1:ip=127.0.0.1,port=6381,state=online,offset=27522,lag=1\r\nmaster_replid:ab3de787e77f44ba476b513fae4ef02102909f65\r\n\
      master_repl_offset:27522\r\n",
    b"run_id:31913d48215fd4386394273c264bd9135a65eb90\nrole:slave\nmaster_host:127.0.0.1\nmaster_port:6379\n\
      master_link_status:down\nmaster_link_down_since_seconds:12\nmaster_sync_in_progress:1\nslave_repl_offset:0\n\
      slave_priority:100\nreplica_announced:1\n",
    b"role:master\r\nslave0:127.0.0.1,6380,online\r\nslave1:ip=::1,port=6381\r\nslave2:ip=replica.example,port=6382,type=rdb-channel",
    b"role:master\r\nslave0:ip=10.0.0.1,port=1\r\nslave1:ip=10.0.0.2,port=2\r\nslave2:ip=10.0.0.3,port=3\r\n\
      slave3:ip=10.0.0.4,port=4\r\nslave4:ip=10.0.0.5,port=5\r\nslave5:ip=10.0.0.6,port=6\r\n",
];

const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b":",
    b",",
    b"=",
    b"role:",
    b"role:master\r\n",
    b"role:slave\r\n",
    b"slave0:",
    b"slave17:",
    b"slave",
    b"ip=",
    b"port=",
    b"state=online",
    b"type=rdb-channel",
    b"slave0:ip=127.0.0.1,port=6380,state=online\r\n",
    b"run_id:0123456789abcdef0123456789abcdef01234567\r\n",
    b"run_id:",
    b"master_host:",
    b"master_port:",
    b"master_host:127.0.0.1\r\nmaster_port:6380\r\n",
    b"master_link_status:up\r\n",
    b"master_link_down_since_seconds:",
    b"slave_priority:",
    b"slave_repl_offset:",
    b"master_repl_offset:",
    b"replica_announced:0\r\n",
    b"127.0.0.1",
    b"::1",
    b"fe80::1%eth0",
    b"localhost",
    b"\0",
    b"\xff",
    b" ",
    b"\x1b[2J",
    b"\xe2\x80\xae",
];

#[test]
fn reports_of_servers() {
    run("info", SEEDS, WORDS, 80, |choices, input| {
        // A replica takes a line of twelve bytes and an address of some hundred, and the vector doubles.
        let report = memory::within(40 * input.len() + 4096, || InfoReport::parse(input));
        assert!(report.replicas.len() <= REPLICAS_MAX);
        for host in report.replicas.iter().map(|addr| &*addr.host).chain(report.master_host.as_deref()) {
            assert!(!host.is_empty() && host.len() <= 253 && !quote::has_control(host.as_bytes()));
            assert!(!host.contains(char::is_whitespace) && !host.contains(','), "{host:?}");
        }
        assert!(report.replicas.iter().all(|addr| addr.port != 0));

        let mut play = Play::new(&group(choices.below(2) == 0), 1);
        play.connect_all();
        for _ in 0..3 {
            play.answer_all(|request| (request == "INFO").then(|| Reply::Bulk(input.to_vec())));
            play.wait(1 + choices.below(12_000));
            play.connect_all();
        }
        assert!(play.core.masters().all(|master| master.replicas.len() <= REPLICAS_MAX));
        let replicas = play.core.masters().map(|master| master.replicas.len()).sum();
        only_our_lines(&survives_the_file(b"", &play.core, &ServerOptions::default()));
        let flags = [
            report.run_id.is_some(),
            report.is_master == Some(true),
            report.is_master == Some(false),
            report.master_host.is_some(),
            report.master_port.is_some(),
            report.link_up == Some(true),
            report.link_down_seconds > 0,
            report.priority.is_some(),
            report.offset.is_some(),
            report.reached.is_some(),
            report.sync_in_progress,
        ];
        let flags = flags.iter().fold(0, |all, &flag| 2 * all + u64::from(flag));
        behaviour([flags, size(report.replicas.len()), size(replicas), size(play.effects)])
    });
}

#[test]
fn whoever_invents_replicas_fills_no_memory() {
    let mut snapshot = group(true);
    snapshot.masters.truncate(1);
    let mut play = Play::new(&snapshot, 1);
    let lines = (0..1_500).map(|n| match n % 3 {
        0 => format!("slave{n}:ip=10.0.{}.{},port={},state=online\r\n", n / 256, n % 256, 1 + n),
        1 => format!("slave{n}:ip=replica{n}.example,port=1\r\n"),
        _ => format!("slave{n}:10.1.0.{},{},online\r\n", n % 256, 1 + n),
    });
    let info = format!("role:master\r\n{}{}", lines.collect::<String>(), "x:y\r\n".repeat(100_000)).into_bytes();
    let ((), held) = memory::peak(|| {
        for _ in 0..2 {
            play.connect_all();
            play.answer_all(|request| (request == "INFO").then(|| Reply::Bulk(info.clone())));
        }
    });
    assert!(play.core.masters().all(|master| master.replicas.len() == REPLICAS_MAX));
    // Every replica with an address said so as well: of half a megabyte each a quarter is kept. Their links take some kB.
    assert!(held < 300 * 1024 * 1024, "{held}");
}
