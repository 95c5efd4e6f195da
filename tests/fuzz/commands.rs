//! Whole conversations of clients: any requests, whoever asks them. Each gets replies that clients can read, and nothing of
//! it breaks the file.

use super::config::{in_order, load, wanted};
use super::drive::{behaviour, run, size, text};
use super::memory;
use super::wire::{one_of, requests_of, understood};
use crate::command_support::Bench;
use watchfire::base::quote;
use watchfire::command::{COMMANDS, Wish};
use watchfire::config::{self, ServerOptions};

/// The scripts of the parity test, cut into conversations.
fn seeds() -> Vec<&'static [u8]> {
    let scripts = [include_str!("../parity/script/open.txt"), include_str!("../parity/script/locked.txt")];
    let lines: Vec<&'static str> = scripts.iter().flat_map(|script| script.lines()).collect();
    // One string from the first to the last line of eight; they lie behind each other.
    let mut seeds: Vec<&'static [u8]> = Vec::new();
    for script in scripts {
        let (mut start, mut at) = (0, 0);
        for (number, line) in script.split_inclusive('\n').enumerate() {
            at += line.len();
            if number % 8 == 7 {
                seeds.push(&script.as_bytes()[start..at]);
                start = at;
            }
        }
    }
    assert!(!lines.is_empty() && seeds.len() > 50);
    seeds
}

const WORDS: &[&[u8]] = &[
    b"\n", b" ", b"\"", b"\\x00", b"\\n", b"\\xff", b"PING\n", b"HELLO 3\n", b"HELLO 2\n", b"AUTH x\n", b"SENTINEL ", b"CLIENT ", b"ACL ",
    b"COMMAND ", b"mymaster", b"SENTINEL SET mymaster ", b"SENTINEL CONFIG SET ", b"SENTINEL MONITOR m2 127.0.0.1 6379 2\n",
    b"auth-pass ", b"quorum ", b"down-after-milliseconds ", b"rename-command a b", b"announce-ip ", b"requirepass ", b"SUBSCRIBE a\n",
    b"PSUBSCRIBE *\n", b"UNSUBSCRIBE\n", b"CLIENT REPLY ON\n", b"CLIENT REPLY OFF\n", b"CLIENT REPLY SKIP\n", b"ACL SETUSER bob ",
    b"on >p +@all ~* &*", b"CLIENT KILL ", b"CLIENT TRACKING ON BCAST PREFIX a\n", b"SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 37001 1 *\n",
    b"PUBLISH __sentinel__:hello 127.0.0.1,26380,0123456789abcdef0123456789abcdef01234567,0,mymaster,127.0.0.1,37001,0\n",
    b"SENTINEL DEBUG ", b"SENTINEL RESET *\n", b"SENTINEL FAILOVER mymaster\n", b"INFO everything\n", b"*1\r\n$4\r\nPING\r\n",
];

/// What a reply is: of an error its beginning, of others the type and the order of their size.
fn kind(line: &&[u8]) -> u64 {
    match line {
        [b'-', error @ ..] => text(&String::from_utf8_lossy(&error[..error.len().min(24)])),
        [kind, length @ ..] => behaviour([u64::from(*kind), size(length.len())]),
        [] => 0,
    }
}

#[test]
fn conversations() {
    run("commands", &seeds(), WORDS, 600, |choices, input| {
        let mut bench = if choices.below(2) == 0 { Bench::new() } else { Bench::alive() };
        if choices.below(4) == 0 {
            bench.acl.require_password(b"x");
        }
        bench.disk_ok = choices.below(8) != 0;
        let me = bench.client();
        if let Some(client) = bench.clients.get_mut(me) {
            client.authenticated = choices.below(4) != 0;
        }
        let mut parts = Vec::new();
        for argv in requests_of(input).iter().take(64) {
            let words: Vec<&[u8]> = argv.iter().map(Vec::as_slice).collect();
            let bytes: usize = words.iter().map(|word| word.len() + 16).sum();
            // COMMAND INFO and DOCS tell kilobytes for a word; the tables of all commands are 200 kB.
            let (out, held) = memory::peak(|| bench.ask_bytes(me, &words));
            assert!(held < 3_000 * bytes + 4 * 1024 * 1024, "{held} bytes for {bytes}");
            let replies = understood(&out);
            let row = COMMANDS.find(words[0]).map_or(0, |row| text(row.name));
            parts.push(behaviour([row, words.len().min(8) as u64, replies.first().map_or(0, kind)]));
            let Some(client) = bench.clients.get(me) else { break };
            if client.killed || client.close_after_reply {
                break;
            }
        }
        // What went into the state comes out of the file, and the users with it.
        let server = ServerOptions { users: bench.acl.changes(), ..ServerOptions::default() };
        let state = bench.sentinel.snapshot();
        let file = config::rewrite(b"", &state, &server);
        for line in file.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let ours = [b"sentinel ".as_slice(), b"user ", b"# Generated"].iter().any(|start| line.starts_with(start));
            assert!(ours && !quote::has_control(line), "{}", line.escape_ascii());
        }
        let loaded = load(&file).unwrap_or_else(|error| panic!("{error}\n{}", file.escape_ascii()));
        assert_eq!(in_order(loaded.snapshot), wanted(&state));
        for wish in std::mem::take(&mut bench.wishes) {
            if let Wish::Log(_, line) = wish {
                assert!(!quote::has_control(line.as_bytes()), "{line:?}");
            }
        }
        // The behaviour is one of the requests: all of them together are new nearly always.
        if parts.is_empty() { 0 } else { *one_of(choices, &parts) }
    });
}
