//! Saved lengths: a head of two words, and 4 bytes for each row. The numbers are in the order of this machine, and a file of a machine
//! with the other order is void.

use super::Tokenized;
use crate::{
    index::{Beside, drawn_by},
    mapped::Mapped,
    replace::replace,
};
use burn::data::dataset::Dataset;
use std::{
    fs,
    io::{self, Write},
};

/// Begins each file. The last byte is its version.
const MAGIC: u64 = u64::from_le_bytes(*b"burnlen2");

/// A file of lengths that is mapped: magic, mark, and the lengths.
pub(super) struct Saved(Mapped);

/// Opens saved lengths, if there are some and they are of these rows.
///
/// Other files may have the same names, sizes and times. So a few rows are tokenised and compared.
pub(super) fn open(place: &Beside, rows: &Tokenized) -> Option<Saved> {
    let saved = Saved(Mapped::open(&place.path).ok()?);
    let lengths = saved.as_ref();
    let is_whole = saved.0.bytes().starts_with(bytemuck::bytes_of(&[MAGIC, place.mark])) && lengths.len() == rows.len();
    let is_right = |row: usize| match rows.get(row) {
        Ok(tokens) => tokens.len() == lengths[row] as usize,
        Err(_) => rows.leaves_out && lengths[row] == 0,
    };
    if !is_whole || !drawn_by(&[place.mark], rows.len()).all(is_right) {
        log::warn!("{} is damaged, or is of other rows: it is made again", place.path.display());
        return None;
    }
    Some(saved)
}

/// Saves lengths, and opens the file. It is on the disk when it gets its name: lengths of 0 after a loss of power would be rows that no
/// epoch has.
pub(super) fn save(place: &Beside, lengths: &[u32]) -> io::Result<Saved> {
    if let Some(folder) = place.path.parent() {
        fs::create_dir_all(folder)?;
    }
    replace(
        &place.path,
        |error| error,
        |file| {
            file.write_all(bytemuck::bytes_of(&[MAGIC, place.mark]))?;
            file.write_all(bytemuck::cast_slice(lengths))?;
            file.sync_all()
        },
    )?;
    Mapped::open(&place.path).map(Saved)
}

impl AsRef<[u32]> for Saved {
    fn as_ref(&self) -> &[u32] {
        // The map begins with a page, so the numbers are aligned. A file of half a number has none.
        let numbers = bytemuck::try_cast_slice(self.0.bytes()).unwrap_or_default();
        numbers.get(4..).unwrap_or_default() // behind the head
    }
}
