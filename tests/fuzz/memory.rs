//! How much memory a piece of work takes: every allocation of this test binary is counted, by thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // Threads that end free memory when their counters are gone already; nobody asks for theirs.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: everything is handed on to the system's allocator unchanged; counting touches only two cells of the thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// What `work` gives, and the most bytes that it held at one moment on top of what was held before.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, usize::try_from(PEAK.get() - before).unwrap_or(0))
}

/// Fails when `work` holds more than `most` bytes.
#[track_caller]
pub fn within<T>(most: usize, work: impl FnOnce() -> T) -> T {
    let (result, peak) = peak(work);
    assert!(peak <= most, "{peak} bytes were held, and {most} are allowed");
    result
}

#[test]
fn memory_is_counted() {
    let ((), held) = peak(|| drop(vec![0u8; 100_000]));
    assert!((100_000..101_000).contains(&held), "{held}");
    let (kept, held) = peak(|| vec![0u8; 50_000]);
    assert!((50_000..51_000).contains(&held), "{held}");
    let ((), held) = peak(|| drop(kept));
    assert_eq!(held, 0);
}
