//! The configuration file: reading it, and what a save is made of before it reaches the disk.

use std::io;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use watchfire::config::{ServerOptions, Source, read, rewrite};
use watchfire::core::Snapshot;

use crate::group::{Group, snapshot};

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
