//! What is read and written: RESP and the configuration file. `cargo bench --bench text [-- filter]`

#[path = "micro/group.rs"]
mod group;

use std::io;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use watchfire::acl::{self, Acl};
use watchfire::base::Millis;
use watchfire::command::{Clients, Facts, Stats, World, catalog, dispatch};
use watchfire::config::{ServerOptions, Source, read, rewrite};
use watchfire::core::{RunId, Snapshot};
use watchfire::resp::{Argv, Proto, Reply, ReplyDecoder, RequestDecoder, Writer, request};

use group::{Group, INFO, hello, snapshot};

const QUESTION: [&[u8]; 3] = [b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", b"mymaster"];

fn questions(count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..count).for_each(|_| request(&mut bytes, &QUESTION));
    bytes
}

/// So many requests that came in one piece.
#[divan::bench(args = [1, 16, 256])]
fn requests_pipelined(bencher: Bencher, count: usize) {
    let bytes = questions(count);
    let mut decoder = RequestDecoder::new();
    let mut argv = Argv::new();
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| {
        decoder.extend(black_box(&bytes));
        while decoder.next(&mut argv).expect("a request") {
            black_box(&argv);
        }
    });
}

#[divan::bench]
fn request_byte_by_byte(bencher: Bencher) {
    let bytes = questions(1);
    let mut decoder = RequestDecoder::new();
    let mut argv = Argv::new();
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| {
        for byte in black_box(&bytes) {
            decoder.extend(std::slice::from_ref(byte));
            if decoder.next(&mut argv).expect("a request") {
                black_box(&argv);
            }
        }
    });
}

#[divan::bench]
fn request_inline(bencher: Bencher) {
    let mut decoder = RequestDecoder::new();
    let mut argv = Argv::new();
    bencher.bench_local(|| {
        decoder.extend(black_box(b"PING\r\n"));
        assert!(decoder.next(&mut argv).expect("a request"));
    });
}

fn reply(bencher: Bencher, bytes: &[u8]) {
    let mut decoder = ReplyDecoder::new();
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| {
        decoder.extend(black_box(bytes));
        decoder.next().expect("a reply")
    });
}

#[divan::bench]
fn reply_pong(bencher: Bencher) {
    reply(bencher, b"+PONG\r\n");
}

#[divan::bench]
fn reply_hello(bencher: Bencher) {
    let hello = hello(0, 7);
    let mut bytes = Vec::new();
    request(&mut bytes, &[b"message", b"__sentinel__:hello", hello.as_bytes()]);
    reply(bencher, &bytes);
}

#[divan::bench]
fn reply_info(bencher: Bencher) {
    reply(bencher, format!("${}\r\n{INFO}\r\n", INFO.len()).as_bytes());
}

#[divan::bench]
fn write_address(bencher: Bencher) {
    let mut out = Vec::new();
    bencher.bench_local(|| {
        out.clear();
        let mut to = Writer::new(&mut out, Proto::Resp2);
        to.array(2);
        to.bulk(black_box("127.0.0.1"));
        to.bulk(black_box("6379"));
    });
}

/// About what SENTINEL MASTER answers.
#[divan::bench]
fn write_map_of_40(bencher: Bencher) {
    let pairs =
        (0..40).map(|n| (Reply::Bulk(format!("field-{n}").into()), Reply::Bulk(n.to_string().into()))).collect();
    let map = Reply::Map(pairs);
    let mut out = Vec::new();
    bencher.bench_local(|| {
        out.clear();
        Writer::new(&mut out, Proto::Resp3).reply(black_box(&map));
    });
}

/// INFO while so many clients are connected: their number must not show.
#[divan::bench(args = [1, 1_000, 12_000])]
fn info_beside_clients(bencher: Bencher, count: usize) {
    let mut group = Group::calm(1);
    let mut clients = Clients::new();
    let ids: Vec<_> =
        (0..count).map(|_| clients.connect(group.now, "127.0.0.1:1".into(), "127.0.0.1:2".into())).collect();
    let mut acl = Acl::new(catalog(), acl::Settings::default());
    let facts = Facts::new(RunId::parse(&[b'a'; 40]).expect("forty digits"));
    let (mut stats, mut wishes) = (Stats::default(), Vec::new());
    let argv = Argv::from_slices(&[b"INFO"]);
    bencher.bench_local(|| {
        let mut world = World {
            now: Millis(1_000_000),
            wall_ms: || 0,
            sentinel: &mut group.core,
            clients: &mut clients,
            acl: &mut acl,
            facts: &facts,
            stats: &mut stats,
            wishes: &mut wishes,
        };
        dispatch(&mut world, ids[0], &argv);
        clients.get_mut(ids[0]).expect("it is there").out.clear();
    });
}

const MASTERS: [usize; 3] = [1, 100, 1_000];

/// A file that was saved before.
fn saved(masters: usize) -> (Vec<u8>, Snapshot) {
    let snapshot = snapshot(masters);
    let text = rewrite(b"port 26379\n# of the operator\n", &snapshot, &ServerOptions::default());
    (text, snapshot)
}

#[divan::bench(args = MASTERS, max_time = 1)]
fn read_file(bencher: Bencher, masters: usize) {
    let (text, _) = saved(masters);
    bencher.counter(BytesCount::new(text.len())).bench_local(|| {
        let mut none = |_: &str| Err(io::Error::from_raw_os_error(2));
        read(black_box(&text), Source::file("sentinel.conf"), &mut none).expect("what we wrote")
    });
}

/// One epoch has changed.
#[divan::bench(args = MASTERS, max_time = 1)]
fn save_rewrite(bencher: Bencher, masters: usize) {
    let (text, mut snapshot) = saved(masters);
    snapshot.current_epoch += 1;
    let server = ServerOptions::default();
    bencher
        .counter(BytesCount::new(text.len()))
        .bench_local(|| rewrite(black_box(&text), black_box(&snapshot), &server));
}

/// The state as plain data, which a save begins with.
#[divan::bench(args = MASTERS, max_time = 1)]
fn save_snapshot(bencher: Bencher, masters: usize) {
    let group = Group::calm(masters);
    bencher.bench_local(|| group.core.snapshot());
}

fn main() {
    divan::main();
}
