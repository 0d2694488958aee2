//! Any bytes as the footer of a Parquet file whose pages are sound.
#![no_main]

#[path = "../../tests/differential/exact.rs"]
mod exact;

use burn_pinned::data::Rows;
use burn_pinned_fuzz::{
    as_file, begin,
    parquet_file::{COLUMNS, How, write},
    read, run,
};
use exact::Exact;
use libfuzzer_sys::fuzz_target;
use std::{collections::HashMap, sync::LazyLock};

/// Pages and offset indices, and the footer that belongs to them.
static FILE: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let mut file = write(&COLUMNS, How { rows: 9, groups: 2, codec: 1, v2: false, dictionary: true });
    let end = file.split_off(file.len() - 8);
    let length = u32::from_le_bytes([end[0], end[1], end[2], end[3]]) as usize;
    let footer = file.split_off(file.len() - length);
    (file, footer)
});

fn open(footer: &[u8]) {
    let length = (footer.len() as u32).to_le_bytes();
    as_file("a.parquet", &[&FILE.0, footer, &length, b"PAR1"], |path| {
        if let Ok(rows) = Rows::<HashMap<String, Exact>>::parquet(path).memory(1 << 20).open() {
            read(&rows);
            _ = rows.index();
            read(&rows);
        }
    });
}

fuzz_target!(init: begin(|| vec![FILE.1.clone()]), |footer: &[u8]| run(|| open(footer)));
