//! An allocator that counts, for tests of what must not allocate.
#![allow(
    unsafe_code,
    reason = "an allocator has no safe form; each call is only passed on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting what each thread asks of it. To be a test's
/// `#[global_allocator]`.
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes that this thread has taken, less those that it has given back.
    static HELD: Cell<i64> = const { Cell::new(0) };
}

fn hold(bytes: i64) {
    HELD.with(|held| held.set(held.get() + bytes));
}

// SAFETY: every call is passed on to the system's allocator as it came; the counter is a plain
// thread-local that needs no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        hold(layout.size() as i64);
        // SAFETY: the caller keeps alloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        // SAFETY: the caller keeps dealloc's contract, and all memory is the system's.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        hold(size as i64 - layout.size() as i64);
        // SAFETY: the caller keeps realloc's contract, and all memory is the system's.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

/// The bytes that this thread holds; what the C parts of libraries take is not among them.
pub fn held() -> i64 {
    HELD.get()
}

/// Allocations of this thread while `work` runs.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}
