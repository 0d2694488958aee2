//! Notes of pages, saved as an index: a part for each object.

use crate::{
    error::DataError,
    parquet::{
        columns::{Columns, Leaf},
        footer::RowGroup,
        pages::{Chunk, Note},
    },
    source::index::{self, IndexPart, MadePart, checked, look},
    store::{Objects, options::Options},
};
use bytes::{Buf, Bytes};
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

const KIND: &[u8; 8] = b"parquet3";

/// Saves the notes of all pages that have one.
pub(crate) fn save(
    objects: &Objects,
    options: &Options,
    groups: &[RowGroup],
    columns: &[Arc<Columns>],
) -> Result<(), DataError> {
    let mut parts = vec![Vec::new(); objects.len()];
    for (group, leaf, chunk) in chunks(groups) {
        let part = &mut parts[group.object];
        let place = columns[group.object].leaves[leaf].place;
        [group.first as u64, place as u64, chunk.notes.len() as u64].iter().for_each(|word| {
            part.extend(word.to_le_bytes());
        });
        for note in &chunk.notes {
            part.push(note.get().is_some().into());
            if let Some(note) = note.get() {
                note.save(part);
            }
        }
    }
    let parts: Vec<MadePart> = parts.iter().map(|part| MadePart::new(0, Bytes::new(), part)).collect();
    index::save(objects, KIND, options, &parts)
}

/// Loads the saved notes that fit their pages. The others are made again. All are loaded, because they go to the pages of the footers, which
/// are all in memory.
pub(crate) fn load(objects: &Objects, options: &Options, groups: &[RowGroup], columns: &[Arc<Columns>]) {
    if chunks(groups).next().is_none() {
        return;
    }
    let Some(index) = index::load(objects, KIND, options) else { return };
    let fitting = |object: usize, part: &IndexPart| {
        let start = groups.partition_point(|group| group.object < object);
        let end = groups.partition_point(|group| group.object <= object);
        Ok::<_, DataError>(fitting(&groups[start..end], &columns[object].leaves, &part.read(0..part.len())?))
    };
    let load = |object: &usize| {
        let is_of = |part: &IndexPart| Ok(are_of(objects, *object, &fitting(*object, part)?));
        match index.part(objects, *object, is_of).and_then(|part| fitting(*object, &part)) {
            Err(DataError::Index { .. }) => Ok(()),
            found => Ok(found?.into_iter().for_each(|(_, place, note)| _ = place.set(note))),
        }
    };
    // An error here is ignored, because a later read returns it too.
    let _ = look(objects, &(0..objects.len()).collect::<Vec<_>>(), load);
}

/// The saved notes of an object that fit a page, each with its leaf and its place.
fn fitting<'a>(groups: &'a [RowGroup], leaves: &'a [Leaf], part: &[u8]) -> Vec<(&'a Leaf, &'a OnceLock<Note>, Note)> {
    let (mut notes, mut found) = (read(part).unwrap_or_default(), Vec::new());
    for (group, at, chunk) in chunks(groups) {
        let leaf = &leaves[at];
        let saved = notes.remove(&[group.first as u64, leaf.place as u64]).unwrap_or_default();
        for (number, ((page, place), saved)) in chunk.pages.iter().zip(&chunk.notes).zip(saved).enumerate() {
            let rows = chunk.rows(number, group.rows).len();
            found.extend(saved.filter(|note| note.fits(leaf, page, rows)).map(|note| (leaf, place, note)));
        }
    }
    found
}

/// Whether notes belong to this object, judging by some of its values.
fn are_of(objects: &Objects, object: usize, found: &[(&Leaf, &OnceLock<Note>, Note)]) -> bool {
    let all = found.iter().map(|(.., note)| note.rows()).sum();
    checked(&objects.list()[object], all).all(|mut row| {
        let found = found.iter().find(|(.., note)| match row.checked_sub(note.rows()) {
            Some(behind) => {
                row = behind;
                false
            }
            None => true,
        });
        found.is_none_or(|(leaf, _, note)| note.is_of(objects, object, leaf, row))
    })
}

/// The chunks whose values may be read one by one, each with its group and the number of its leaf.
pub(super) fn chunks(groups: &[RowGroup]) -> impl Iterator<Item = (&RowGroup, usize, &Chunk)> {
    let all =
        groups.iter().flat_map(|group| group.chunks.iter().enumerate().map(move |(leaf, chunk)| (group, leaf, chunk)));
    all.filter(|(_, _, chunk)| !chunk.notes.is_empty())
}

/// The notes of the pages of each chunk, by its first row and its leaf.
fn read(mut part: &[u8]) -> Option<HashMap<[u64; 2], Vec<Option<Note>>>> {
    let mut chunks = HashMap::new();
    while !part.is_empty() {
        let mut word = || part.try_get_u64_le().ok();
        let (first, leaf, pages) = (word()?, word()?, word()?);
        let mut notes = Vec::new();
        for _ in 0..pages {
            notes.push(match part.split_off(..1)? {
                [0] => None,
                _ => Some(Note::load(&mut part)?),
            });
        }
        chunks.insert([first, leaf], notes);
    }
    Some(chunks)
}
