//! Saved lengths: a head of three words, the rows that are compared with two words each, and 4 bytes for each row. The numbers have the
//! byte order of this machine, and a file from a machine with another byte order is invalid.

use super::{TokenRow, Tokenized};
use crate::{
    source::index::IndexPlace,
    system::{mapped::MappedFile, replace::replace},
};
use burn::data::dataset::Dataset;
use std::{
    fs,
    io::{self, Write},
};

/// Begins each file. The last byte is its version.
const MAGIC: u64 = u64::from_le_bytes(*b"burnlen3");
/// Magic, mark, and the number of compared rows.
const HEAD: usize = 3 * 8;

/// A row that is compared, and a hash of its tokens.
#[repr(C)]
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct ComparedRow {
    row: u64,
    hash: u64,
}

impl ComparedRow {
    pub(super) fn new(row: usize, tokens: &TokenRow) -> Self {
        Self { row: row as u64, hash: crc32fast::hash(bytemuck::cast_slice(&tokens.tokens)).into() }
    }

    /// Whether the row still has these tokens.
    fn holds(self, rows: &Tokenized, lengths: &[u32]) -> bool {
        let Some((row, length)) =
            usize::try_from(self.row).ok().and_then(|row| Some((row, *lengths.get(row)? as usize)))
        else {
            return false;
        };
        match rows.get(row) {
            Ok(tokens) => tokens.len() == length && Self::new(row, &tokens).hash == self.hash,
            Err(_) => rows.leaves_out && length == 0,
        }
    }
}

/// A mapped file of lengths.
pub(super) struct SavedLengths {
    file: MappedFile,
    /// Where the lengths begin.
    start: usize,
}

impl SavedLengths {
    /// `None` if the file is corrupt or belongs to other rows.
    fn of(file: MappedFile, mark: u64) -> Option<Self> {
        let rest = file.bytes().strip_prefix(bytemuck::bytes_of(&[MAGIC, mark]))?;
        let compared = usize::try_from(u64::from_ne_bytes(*rest.first_chunk()?)).ok()?;
        let start = compared.checked_mul(size_of::<ComparedRow>())?.checked_add(HEAD)?;
        let is_whole = file.bytes().get(start..)?.len().is_multiple_of(4);
        is_whole.then_some(Self { file, start })
    }

    fn compared(&self) -> &[ComparedRow] {
        bytemuck::cast_slice(&self.file.bytes()[HEAD..self.start])
    }
}

impl AsRef<[u32]> for SavedLengths {
    fn as_ref(&self) -> &[u32] {
        // The map begins at a page, and whole words precede the lengths, so they are aligned.
        bytemuck::cast_slice(&self.file.bytes()[self.start..])
    }
}

/// Opens saved lengths, if they exist and belong to these rows.
///
/// Other files may have the same names, sizes and times, and the tokeniser may use another text of the row. So some rows are tokenised
/// again and compared.
pub(super) fn open(place: &IndexPlace, rows: &Tokenized) -> Option<SavedLengths> {
    let saved = SavedLengths::of(MappedFile::open(&place.path).ok()?, place.mark).filter(|saved| {
        let lengths = saved.as_ref();
        lengths.len() == rows.len() && saved.compared().iter().all(|compared| compared.holds(rows, lengths))
    });
    if saved.is_none() {
        log::warn!("{} is damaged, or is of other rows or texts: it is made again", place.path.display());
    }
    saved
}

/// Saves lengths, and opens the file. It is on the disk before it gets its name, because after a power failure it could have lengths of 0,
/// and no epoch would have those rows.
pub(super) fn save(place: &IndexPlace, lengths: &[u32], compared: &[ComparedRow]) -> io::Result<SavedLengths> {
    if let Some(folder) = place.path.parent() {
        fs::create_dir_all(folder)?;
    }
    replace(
        &place.path,
        |error| error,
        |file| {
            file.write_all(bytemuck::bytes_of(&[MAGIC, place.mark, compared.len() as u64]))?;
            file.write_all(bytemuck::cast_slice(compared))?;
            file.write_all(bytemuck::cast_slice(lengths))?;
            file.sync_all()
        },
    )?;
    SavedLengths::of(MappedFile::open(&place.path)?, place.mark).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
