//! The core alone, and what it allocates: ticks, hello messages, INFO. `cargo bench --bench sentinel [-- filter]`
//!
//! What a whole Sentinel costs is measured by `versus`.

#[path = "micro/group.rs"]
mod group;

use std::cell::RefCell;

use divan::{Bencher, black_box};
use watchfire::core::{Hello, InfoReport};

use group::{Group, INFO, hello};

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

const MASTERS: [usize; 4] = [1, 100, 1_000, 5_000];

/// A run of the cron in which nothing is due (as the run before it had nothing to do; a tenth of the samples hits on pings
/// all the same).
#[divan::bench(args = MASTERS, sample_size = 1, sample_count = 50)]
fn tick_quiet(bencher: Bencher, masters: usize) {
    let group = RefCell::new(Group::calm(masters));
    let quiet = || {
        let mut group = group.borrow_mut();
        group.settle();
        // All that was due has been asked and answered; the next run has nothing to do.
        group.now = group.core.next_wakeup();
        let mut sent = true;
        while sent {
            group.turn();
            sent = !group.effects.is_empty();
            group.settle();
            group.now = group.core.next_wakeup();
        }
    };
    bencher.with_inputs(quiet).bench_local_values(|()| group.borrow_mut().turn());
}

/// The run of the cron in which everybody is to be pinged, and half the time told hello.
#[divan::bench(args = MASTERS, sample_size = 1, sample_count = 50)]
fn tick_pings_due(bencher: Bencher, masters: usize) {
    let group = RefCell::new(Group::calm(masters));
    let due = || {
        let mut group = group.borrow_mut();
        group.settle();
        group.now = group.now + 1_001;
    };
    bencher.with_inputs(due).bench_local_values(|()| group.borrow_mut().turn());
}

/// All that a quiet second brings: about fourteen runs of the cron, pings, half a hello and a tenth of an INFO for every
/// node, and the world's answers.
#[divan::bench(args = MASTERS, sample_size = 1, sample_count = 20)]
fn second_of_calm(bencher: Bencher, masters: usize) {
    let mut group = Group::calm(masters);
    bencher.bench_local(|| group.live(1_000));
}

#[divan::bench]
fn hello_parse() -> Option<Hello> {
    Hello::parse(black_box(b"127.0.0.1,26380,c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3,7,mymaster,127.0.0.1,6379,7"))
}

/// A peer says what is known.
#[divan::bench(args = MASTERS)]
fn hello_apply(bencher: Bencher, masters: usize) {
    let mut group = Group::calm(masters);
    let hello = hello(masters / 2, 7);
    let now = group.now;
    bencher.bench_local(|| group.core.hello(now, black_box(hello.as_bytes())));
}

#[divan::bench]
fn info_parse() -> InfoReport {
    InfoReport::parse(black_box(INFO.as_bytes()))
}

/// A server says what is known.
#[divan::bench(args = MASTERS, sample_size = 1, sample_count = 50)]
fn info_apply(bencher: Bencher, masters: usize) {
    let group = RefCell::new(Group::calm(masters));
    let asked = || {
        let mut group = group.borrow_mut();
        let answer = group.until_info();
        (group.now, answer)
    };
    bencher.with_inputs(asked).bench_local_values(|(now, answer)| group.borrow_mut().core.handle(now, answer));
}

fn main() {
    divan::main();
}
