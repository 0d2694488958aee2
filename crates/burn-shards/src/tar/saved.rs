//! Whether a saved index, or DALI's, matches the shard.

use super::{
    parts::{Parts, TarPart, extensions},
    samples::split,
    scan::{Entry, ObjectBytes, Walk},
};
use crate::{
    error::DataError,
    source::index::{IndexPart, checked},
    store::Objects,
};
use std::{str, sync::Arc};

/// Whether an index matches this shard, judging by some of its samples and by the files before and after them.
pub(super) fn is_of(objects: &Objects, object: usize, saved: &IndexPart) -> Result<bool, DataError> {
    let Some(extensions) = extensions(saved.columns.clone()) else { return Ok(false) };
    match fits(objects, object, &Parts::new(saved.clone(), extensions.len()), &extensions) {
        // A corrupt tar is reported when it is scanned.
        Err(DataError::Damaged { .. } | DataError::Unsupported { .. }) => Ok(false),
        other => other,
    }
}

fn fits(objects: &Objects, object: usize, parts: &Parts, extensions: &[Arc<str>]) -> Result<bool, DataError> {
    let samples = parts.samples();
    if !parts.is_whole()? {
        return Ok(false);
    }
    for sample in checked(&objects.list()[object], samples) {
        if !has_sample(objects, object, (parts, extensions), sample)? {
            return Ok(false);
        }
    }
    let first = next(&mut Walk::one(objects, object, 0))?.map(|entry| entry.start);
    let Some(last) = samples.checked_sub(1) else { return Ok(first.is_none()) };
    let begins = first == parts.of(0)?.first().map(|part| part.start);
    let mut behind = Walk::one(objects, object, parts.of(last)?.last().map_or(0, |part| part.header));
    behind.next()?;
    Ok(begins && next(&mut behind)?.is_none())
}

/// Whether the files of a sample are where the index says and have one key, and the previous file has another key.
fn has_sample(
    objects: &Objects,
    object: usize,
    (parts, extensions): (&Parts, &[Arc<str>]),
    sample: usize,
) -> Result<bool, DataError> {
    let key_of = |part: &TarPart| key(&extensions[part.extension], part, Walk::one(objects, object, part.header));
    let mut key = None;
    for part in parts.of(sample)? {
        match key_of(&part)? {
            Some(of) if key.as_ref().is_none_or(|key| *key == of) => key = Some(of),
            _ => return Ok(false),
        }
    }
    let before = sample.checked_sub(1).map(|before| parts.of(before)).transpose()?;
    Ok(match before.as_ref().and_then(|before| before.last()) {
        Some(part) => key_of(part)?.is_some_and(|before| Some(before) != key),
        None => true,
    })
}

/// The key of a file. `None` if it is not where the index says, or has another extension or size.
fn key(known: &str, part: &TarPart, mut walk: Walk<ObjectBytes>) -> Result<Option<Vec<u8>>, DataError> {
    let Some(entry) = walk.next()? else { return Ok(None) };
    let Some((key, extension)) = split(&entry.name) else { return Ok(None) };
    let is_known = str::from_utf8(extension).is_ok_and(|extension| extension.to_lowercase() == known);
    let is_there = (entry.header, entry.start, entry.bytes) == (part.header, part.start, part.bytes);
    Ok((is_known && is_there).then(|| key.to_vec()))
}

/// The next file that belongs to a sample.
fn next(walk: &mut Walk<ObjectBytes>) -> Result<Option<Entry>, DataError> {
    loop {
        match walk.next()? {
            Some(entry) if split(&entry.name).is_none() => {}
            other => return Ok(other),
        }
    }
}
