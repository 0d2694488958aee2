//! Saved lengths: a head of six words, and 4 bytes for each row. The numbers are in the order of this machine, and a file of a machine
//! with the other order is void.

use super::Tokenized;
use crate::{
    index::{Beside, drawn_by},
    mapped::Mapped,
    replace::replace,
    rows::Rows,
};
use burn::data::dataset::Dataset;
use crc32fast::hash;
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Begins each file. The last byte is its version.
const MAGIC: u64 = u64::from_le_bytes(*b"burnlen1");
/// Magic, mark, identity, rows, checksum of these; and a word that is 0.
const HEAD: usize = 6;

/// Lengths in a file that is mapped.
pub(super) struct Saved {
    file: Mapped,
    path: PathBuf,
}

impl Saved {
    /// Where lengths of rows are saved that were `made_by` this tokeniser with these options.
    pub(super) fn place<T>(rows: &Rows<T>, made_by: &str) -> Option<Beside> {
        Beside::of(rows.objects(), "lengths", made_by, &rows.opened().options)
    }

    /// Opens a file, if there is one and it is of these rows.
    ///
    /// Other files may have the same names, sizes and times. So where they are not the very ones that the lengths were saved for, a
    /// few rows are tokenised and compared.
    pub(super) fn open(place: &Beside, rows: &Tokenized) -> Option<Self> {
        let file = Mapped::open(&place.path).ok()?;
        let saved = Self { file, path: place.path.clone() };
        let head: [u64; HEAD] = *bytemuck::try_from_bytes(saved.file.bytes().get(..HEAD * 8)?).ok()?;
        let [_, _, identity, ..] = head;
        if head != self::head(place.mark, identity, rows.len() as u64) || saved.lengths().len() != rows.len() {
            log::warn!("{} is damaged, or is of other rows: it is made again", place.path.display());
            return None;
        }
        let is_same = identity != 0 && identity == place.identity;
        let is_right = |row: usize| rows.get(row).is_ok_and(|tokens| tokens.len() == saved.lengths()[row] as usize);
        if !is_same && !drawn_by(&[place.mark], rows.len()).all(is_right) {
            log::warn!("the lengths in {} are of other files: they are made again", place.path.display());
            return None;
        }
        place.note_use();
        Some(saved)
    }

    /// Saves lengths, and opens the file. It is on the disk when it gets its name: lengths of 0 after a loss of power would be rows
    /// that no epoch has.
    pub(super) fn save(place: &Beside, lengths: &[u32]) -> io::Result<Self> {
        if let Some(folder) = place.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let head = head(place.mark, place.identity, lengths.len() as u64);
        replace(
            &place.path,
            |error| error,
            |file| {
                file.write_all(bytemuck::cast_slice(&head))?;
                file.write_all(bytemuck::cast_slice(lengths))?;
                file.sync_all()
            },
        )?;
        Ok(Self { file: Mapped::open(&place.path)?, path: place.path.clone() })
    }

    pub(super) fn lengths(&self) -> &[u32] {
        // The map begins with a page, so the numbers are aligned. A file of half a number has none.
        bytemuck::try_cast_slice(&self.file.bytes()[HEAD * 8..]).unwrap_or_default()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn head(mark: u64, identity: u64, rows: u64) -> [u64; HEAD] {
    let mut head = [MAGIC, mark, identity, rows, 0, 0];
    head[4] = hash(bytemuck::cast_slice(&head)).into();
    head
}
