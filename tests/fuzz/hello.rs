//! Hellos: what a peer says of itself and of a master, published to us or heard at a server.

use super::config::{sentinel, survives_the_file};
use super::drive::{behaviour, run, size};
use super::memory;
use watchfire::base::{Millis, quote};
use watchfire::config::ServerOptions;
use watchfire::core::{Effect, Hello, MasterSnapshot, Options, Sentinel, Settings, Snapshot};

/// Peers of one master that are taken in at most.
const PEERS_MAX: usize = 256;

/// Two masters, one with a replica.
pub fn group(names: bool) -> Snapshot {
    let master = |name: &str, port: u16| MasterSnapshot {
        name: name.into(),
        host: "127.0.0.1".into(),
        port,
        settings: Settings::with_quorum(2),
        config_epoch: 0,
        leader_epoch: 0,
        known_replicas: vec![("127.0.0.1".into(), port + 10)],
        known_peers: Vec::new(),
    };
    Snapshot {
        options: Options { resolve_hostnames: names, announce_hostnames: names, ..Options::default() },
        masters: vec![master("mymaster", 6379), master("other", 6479)],
        ..Snapshot::default()
    }
}

/// Executes what the core wants; the disk is well, nobody else is there. How many effects there were.
pub fn drain(sentinel: &mut Sentinel, now: Millis) -> usize {
    let mut count = 0;
    while let Some(effect) = sentinel.poll_effect() {
        count += 1;
        match effect {
            Effect::Save => sentinel.saved(now, true),
            Effect::Event { payload, .. } => assert!(!quote::has_control(payload.as_bytes()), "{payload:?}"),
            Effect::Log { text, .. } => assert!(!quote::has_control(text.as_bytes()), "{text:?}"),
            _ => {}
        }
    }
    count
}

/// What is in the file is only what a Sentinel writes there.
pub fn only_our_lines(file: &[u8]) {
    for line in file.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let ours = [b"sentinel ".as_slice(), b"# Generated"].iter().any(|start| line.starts_with(start));
        assert!(ours && !quote::has_control(line), "{}", line.escape_ascii());
    }
}

const SEEDS: &[&[u8]] = &[
    b"127.0.0.1,26380,0123456789abcdef0123456789abcdef01234567,0,mymaster,127.0.0.1,6379,0",
    b"127.0.0.1,26380,0123456789abcdef0123456789abcdef01234567,3,mymaster,127.0.0.1,6389,3\n\
      127.0.0.1,26381,0123456789abcdef0123456789abcdef01234568,4,mymaster,127.0.0.1,6379,4\n\
      127.0.0.1,26380,0123456789abcdef0123456789abcdef01234568,4,other,127.0.0.1,6379,4",
    b"::1,26380,89abcdef0123456789abcdef0123456789abcdef,7,other,2001:db8::7,6479,7",
    b"peer.example,26380,89abcdef0123456789abcdef0123456789abcdef,1,mymaster,redis.example,6379,1",
    b"127.0.0.1,26380,1111111111111111111111111111111111111111,0,mymaster,127.0.0.1,6379,0",
];

const WORDS: &[&[u8]] = &[
    b",",
    b",,",
    b"\n",
    b"127.0.0.1",
    b"::1",
    b"mymaster",
    b"other",
    b"26380",
    b"6379",
    b"6389",
    b"0123456789abcdef0123456789abcdef01234567",
    b"1111111111111111111111111111111111111111",
    b" ",
    b"\"",
    b"\\n",
    b"9223372032559808511",
    b"9223372032559808512",
    b"\xc2\xa0",
    b"\xe2\x80\xa8",
    b"%eth0",
    b"*",
    b"\x7f",
    b"127.0.0.1,26390,0123456789abcdef0123456789abcdef01234569,9,mymaster,127.0.0.1,6389,9\n",
    b"\r\nsentinel notification-script mymaster /bin/sh",
];

#[test]
fn hellos() {
    run("hello", SEEDS, WORDS, 600, |choices, input| {
        let mut understood = 0;
        for payload in input.split(|&byte| byte == b'\n').chain([input]) {
            let Some(hello) = memory::within(4 * payload.len() + 4096, || Hello::parse(payload)) else { continue };
            understood += 1;
            for addr in [&hello.addr, &hello.master_addr] {
                assert!(addr.port != 0 && !addr.host.is_empty() && addr.host.len() <= 253);
                assert!(!quote::has_control(addr.host.as_bytes()) && !addr.host.contains(char::is_whitespace));
            }
            let (from, about) = (&hello.addr, &hello.master_addr);
            let again = format!(
                "{},{},{},{},{},{},{},{}",
                from.host,
                from.port,
                hello.run_id,
                hello.current_epoch,
                hello.master_name,
                about.host,
                about.port,
                hello.config_epoch
            );
            assert_eq!(Hello::parse(again.as_bytes()), Some(hello));
        }
        let mut now = Millis(1_000);
        let mut core = sentinel(&group(choices.below(2) == 0));
        let mut effects = 0;
        for payload in input.split(|&byte| byte == b'\n') {
            now = now + choices.below(300);
            core.hello(now, payload);
            effects += drain(&mut core, now);
        }
        assert!(core.masters().all(|master| master.peers.len() <= PEERS_MAX));
        let peers = core.masters().map(|master| master.peers.len()).sum();
        let moved = core.masters().filter(|master| master.config_epoch > 0).count() as u64;
        only_our_lines(&survives_the_file(b"", &core, &ServerOptions::default()));
        behaviour([size(understood), size(effects), size(peers), moved])
    });
}

#[test]
fn whoever_invents_peers_fills_no_memory() {
    let mut core = sentinel(&group(true));
    let mut now = Millis(1_000);
    let ((), held) = memory::peak(|| {
        for n in 0..600u64 {
            now = now + 1;
            let host = if n % 2 == 0 {
                format!("10.{}.{}.{}", n >> 16, (n >> 8) & 255, n & 255)
            } else {
                format!("peer{n}.example")
            };
            for name in ["mymaster", "other"] {
                core.hello(now, format!("{host},26379,{n:040x},{n},{name},127.0.0.1,6379,0").as_bytes());
            }
            drain(&mut core, now);
        }
    });
    // 256 peers for each of two masters and their links, some kilobytes each at most.
    assert!(held < 8 * 1024 * 1024, "{held}");
    assert!(core.masters().all(|master| master.peers.len() == PEERS_MAX));
}
