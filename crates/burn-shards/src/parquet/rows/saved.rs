//! Notes of pages, saved as an index: a part for each object.

use crate::{
    error::DataError,
    parquet::{
        columns::{Columns, Leaf},
        footer::RowGroup,
        pages::{Chunk, Note},
    },
    source::index::{self, IndexKind, SavedPart, checked},
    store::{Objects, options::Options},
};
use bytes::Bytes;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

const KIND: IndexKind = IndexKind(b"parquet3");

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
    let parts: Vec<Bytes> = parts.into_iter().map(Bytes::from).collect();
    index::save(objects, KIND, options, &parts)
}

/// Takes the saved notes that fit their pages. Notes of other pages are made again.
pub(crate) fn load(objects: &Objects, options: &Options, groups: &[RowGroup], columns: &[Arc<Columns>]) {
    if chunks(groups).next().is_none() {
        return;
    }
    let parts = index::load(objects, KIND, options);
    let notes = |saved: &Option<SavedPart>| saved.as_ref().and_then(|saved| read(&saved.part)).unwrap_or_default();
    let mut notes: Vec<_> = parts.iter().map(notes).collect();
    let mut found: Vec<Vec<SavedNote<'_>>> = notes.iter().map(|_| Vec::new()).collect();
    for (group, at, chunk) in chunks(groups) {
        let leaf = &columns[group.object].leaves[at];
        let saved = notes[group.object].remove(&(group.first as u64, leaf.place as u64)).unwrap_or_default();
        for (number, ((page, place), saved)) in chunk.pages.iter().zip(&chunk.notes).zip(saved).enumerate() {
            let rows = chunk.rows(number, group.rows).len();
            if let Some(note) = saved.filter(|note| note.fits(leaf, page, rows)) {
                found[group.object].push(SavedNote { leaf, place, note });
            }
        }
    }
    let found: Vec<_> = found.into_iter().enumerate().filter(|(_, found)| !found.is_empty()).collect();
    // An error here is ignored: a later read has it too.
    let right = index::look(objects, &found, |(object, found)| {
        Ok(parts[*object].as_ref().is_some_and(|saved| saved.is_same) || are_of(objects, *object, found))
    });
    let right = right.unwrap_or_default();
    for ((object, found), right) in found.into_iter().zip(right) {
        if right {
            found.into_iter().for_each(|SavedNote { place, note, .. }| _ = place.set(note));
        } else {
            let name = objects.name(object);
            log::warn!("the saved index of {name} is of another file of the same size and time: it is made again");
        }
    }
}

/// A saved note, and where it belongs.
struct SavedNote<'a> {
    leaf: &'a Leaf,
    place: &'a OnceLock<Note>,
    note: Note,
}

/// Whether notes are of this object, as far as some of its values tell.
fn are_of(objects: &Objects, object: usize, found: &[SavedNote<'_>]) -> bool {
    let all = found.iter().map(|found| found.note.rows()).sum();
    checked(&objects.list()[object], all).all(|mut row| {
        let found = found.iter().find(|found| match row.checked_sub(found.note.rows()) {
            Some(behind) => {
                row = behind;
                false
            }
            None => true,
        });
        found.is_none_or(|SavedNote { leaf, note, .. }| note.is_of(objects, object, leaf, row))
    })
}

/// The chunks whose values may be read one by one.
fn chunks(groups: &[RowGroup]) -> impl Iterator<Item = (&RowGroup, usize, &Chunk)> {
    let all =
        groups.iter().flat_map(|group| group.chunks.iter().enumerate().map(move |(leaf, chunk)| (group, leaf, chunk)));
    all.filter(|(_, _, chunk)| !chunk.notes.is_empty())
}

/// The notes of the pages of a chunk.
type Notes = Vec<Option<Note>>;

/// The notes of each chunk, by its first row and its leaf.
fn read(mut part: &[u8]) -> Option<HashMap<(u64, u64), Notes>> {
    let mut chunks = HashMap::new();
    while !part.is_empty() {
        let mut word = || Some(u64::from_le_bytes(part.split_off(..8)?.try_into().ok()?));
        let (first, leaf, pages) = (word()?, word()?, word()?);
        let mut notes = Vec::new();
        for _ in 0..pages {
            notes.push(match part.split_off(..1)? {
                [0] => None,
                _ => Some(Note::load(&mut part)?),
            });
        }
        chunks.insert((first, leaf), notes);
    }
    Some(chunks)
}
