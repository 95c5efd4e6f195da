//! The loop of every target: make an input, run it, keep what is new, and make small what fails.

use super::mutate::Mutator;
use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::{Duration, Instant};
use watchfire::base::quote;
use watchfire::base::random::{Random, mix};

/// Inputs kept for having done something new.
const CORPUS_MAX: usize = 4_096;
/// Tries to make a find smaller.
const SHRINK_TRIES: usize = 3_000;

/// A fingerprint of what an input did: same parts, same behaviour as far as the target can tell.
pub fn behaviour(parts: impl IntoIterator<Item = u64>) -> u64 {
    parts.into_iter().fold(0, |all, part| mix(all ^ part))
}

/// A text as a part of a behaviour. Digits count as one digit, so that a message about line 7 is no news after line 6.
pub fn text(text: &str) -> u64 {
    let plain = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    plain.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// A size as a part of a behaviour: its order of magnitude.
pub fn size(size: usize) -> u64 {
    u64::from((size as u64 + 1).ilog2())
}

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// Whether the run is one by hand, of so many seconds a target.
pub fn long() -> Option<Duration> {
    env("FUZZ_SECONDS").map(Duration::from_secs)
}

/// The time that this thread has had of a processor. On a busy machine a clock on the wall measures the others.
fn spent() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or_default())
}

/// Runs `one` on inputs grown from `seeds` with the help of `words`: `short` of them, or for as long as `FUZZ_SECONDS`
/// says. It gets a generator for choices of its own, which the input alone determines, and gives its [`behaviour`]. It
/// fails by panicking.
pub fn run(name: &str, seeds: &[&[u8]], words: &[&[u8]], short: u64, mut one: impl FnMut(&mut Random, &[u8]) -> u64) {
    hush_while_shrinking();
    let mut once = |input: &[u8]| {
        let mut choices = Random::seeded(input.iter().fold(1, |all, &byte| mix(all ^ u64::from(byte))));
        one(&mut choices, input)
    };
    if let Ok(input) = std::env::var("FUZZ_INPUT") {
        let input = quote::split_args(input.as_bytes()).and_then(|mut words| words.pop()).expect("a quoted word");
        once(&input);
        return;
    }
    let seed = env("FUZZ_SEED").unwrap_or(1);
    let mut mutator = Mutator::new(mix(seed ^ text(name)), words);
    let mut corpus: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.to_vec()).collect();
    let mut seen = HashSet::new();
    let (begin, limit) = (Instant::now(), long());
    let (mut done, mut slowest) = (0u64, (Duration::ZERO, 0));
    loop {
        let over = match limit {
            Some(limit) => begin.elapsed() >= limit,
            None => done >= short.max(seeds.len() as u64),
        };
        if over {
            break;
        }
        // First all seeds as they are.
        let at = usize::try_from(done).unwrap_or(usize::MAX);
        let input = if at < seeds.len() { seeds[at].to_vec() } else { mutator.input(&corpus) };
        let start = spent();
        let Ok(new) = catch_unwind(AssertUnwindSafe(|| once(&input))) else {
            found(name, seed, done, &input, &mut once);
        };
        let took = spent().saturating_sub(start);
        if took > slowest.0 {
            slowest = (took, input.len());
        }
        done += 1;
        if seen.insert(new) && at >= seeds.len() {
            if corpus.len() < CORPUS_MAX {
                corpus.push(input);
            } else {
                let place = mutator.place(seeds.len(), corpus.len());
                corpus[place] = input;
            }
        }
    }
    println!(
        "fuzz {name}: {done} inputs in {:.1} s (seed {seed}), {} behaviours, slowest {:.1} ms of CPU for {} bytes, no find",
        begin.elapsed().as_secs_f64(),
        seen.len(),
        slowest.0.as_secs_f64() * 1000.0,
        slowest.1
    );
}

/// Makes the find smaller as long as it fails, and fails with it.
fn found(name: &str, seed: u64, done: u64, input: &[u8], once: &mut impl FnMut(&[u8]) -> u64) -> ! {
    SHRINKING.set(true);
    let mut best = input.to_vec();
    let mut tries = 0;
    let mut piece = best.len().div_ceil(2);
    while piece > 0 && tries < SHRINK_TRIES {
        let mut at = 0;
        let mut smaller = false;
        while at < best.len() && tries < SHRINK_TRIES {
            let mut shorter = best.clone();
            shorter.drain(at..(at + piece).min(best.len()));
            tries += 1;
            if catch_unwind(AssertUnwindSafe(|| once(&shorter))).is_err() {
                best = shorter;
                smaller = true;
            } else {
                at += piece;
            }
        }
        if !smaller {
            piece /= 2;
        }
        piece = piece.min(best.len());
    }
    SHRINKING.set(false);
    println!(
        "FIND in fuzz {name} (seed {seed}, input {done}), {} bytes of {}:\nFUZZ_INPUT='{}'",
        best.len(),
        input.len(),
        quote::quoted(&best).replace('\'', "\\x27")
    );
    once(&best);
    // It fails after some other input and not by itself.
    once(input);
    panic!("fuzz {name}: the input failed once and does not fail again");
}

thread_local! {
    static SHRINKING: Cell<bool> = const { Cell::new(false) };
}

/// Of a find only the last failure is of interest.
fn hush_while_shrinking() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !SHRINKING.get() {
                before(info);
            }
        }));
    });
}

/// The input in pieces of any size, now and then byte by byte.
pub fn pieces<'a>(choices: &mut Random, input: &'a [u8]) -> Vec<&'a [u8]> {
    if choices.below(8) == 0 {
        return input.chunks(1).collect();
    }
    let cuts = choices.below(12);
    let mut at: Vec<usize> = (0..cuts).map(|_| below(choices, input.len() + 1)).collect();
    at.extend([0, input.len()]);
    at.sort_unstable();
    at.windows(2).map(|ends| &input[ends[0]..ends[1]]).collect()
}

pub fn below(choices: &mut Random, bound: usize) -> usize {
    usize::try_from(choices.below(bound as u64)).unwrap_or(0)
}
