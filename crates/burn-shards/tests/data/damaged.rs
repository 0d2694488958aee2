//! Whatever is wrong with a Parquet file, there is an error or rows: no panic, and no memory of a size that the file merely
//! claims.
#![allow(unsafe_code, reason = "an allocator that notes the largest request")]

use crate::{any::Any, golden::golden};
use burn::data::dataset::Dataset;
use burn_shards::{DataError, Rows};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    fs,
};

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// Notes the largest request of each thread.
struct Noting;

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

const FILES: [&str; 10] = [
    "none_direct.parquet",
    "none_direct_v2.parquet",
    "snappy.parquet",
    "zstd_v2.parquet",
    "gzip.parquet",
    "lz4.parquet",
    "brotli.parquet",
    "delta.parquet",
    "types.parquet",
    "split_lists.parquet",
];

#[test]
fn damaged_parquet_gives_rows_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.parquet");
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let (mut errors, mut rows_read) = (0, 0);
    LARGEST.set(0);
    for round in 0..3000 {
        let name = FILES[round % FILES.len()];
        let mut bytes = fs::read(golden("parquet").join(name)).unwrap();
        let length = bytes.len();
        match rng.random_range(0..5) {
            0 => bytes.truncate(rng.random_range(0..length)),
            1 => bytes[rng.random_range(0..length)] ^= 1 << rng.random_range(0..8),
            // The footer, where the claims are.
            2 => bytes[rng.random_range(length.saturating_sub(3000)..length)] = rng.random(),
            3 => {
                let from = rng.random_range(0..length);
                bytes.drain(from..(from + rng.random_range(1..20)).min(length));
            }
            _ => (0..8).for_each(|_| bytes[rng.random_range(0..length)] = rng.random()),
        }
        fs::write(&path, &bytes).unwrap();
        let columns: &[&str] = match name {
            "types.parquet" => &["text", "words", "u64", "image", "kind"],
            "split_lists.parquet" => &["id"],
            _ => &["text", "tokens", "image", "id"],
        };
        for column in columns {
            let open = Rows::<(Any,)>::parquet(&path)
                .columns([*column])
                .memory(1 << 20)
                .index_dir(folder.path().join("none/x"));
            match open.open() {
                Ok(rows) => {
                    let ends = [0, rows.len() / 2, rows.len().saturating_sub(1)];
                    for index in ends.into_iter().filter(|index| *index < rows.len()) {
                        rows_read += usize::from(rows.get(index).is_ok());
                    }
                }
                Err(
                    DataError::Damaged { .. }
                    | DataError::Schema { .. }
                    | DataError::Unsupported { .. }
                    | DataError::Read { .. }
                    | DataError::Row { .. },
                ) => errors += 1,
                Err(other) => panic!("{name}: {other}"),
            }
        }
    }
    assert!(errors > 1000 && rows_read > 1000, "{errors} errors, {rows_read} rows");
    let largest = LARGEST.get();
    assert!(largest < 32 << 20, "a damaged file of some kB had {largest} bytes allocated at once");
}
