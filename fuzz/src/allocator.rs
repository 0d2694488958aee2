//! Ends the process at a request for memory that no input of some kB is worth. libFuzzer cannot count Rust's requests
//! without a sanitizer.

use std::alloc::{GlobalAlloc, Layout, System};

/// No request may be larger. Decoders of pictures and pages are limited to less.
const MOST: usize = 256 << 20;

struct Limited;

fn check(bytes: usize) {
    if bytes > MOST {
        eprintln!("an input had {bytes} bytes allocated at once");
        std::process::abort();
    }
}

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;
