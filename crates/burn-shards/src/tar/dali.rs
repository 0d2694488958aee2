//! DALI's index of a tar: a text file beside it, with the parts of each sample. Layout: NVIDIA's `wds2idx`, version 1.2.

use super::{
    header::BLOCK,
    samples::{Samples, split},
    saved,
    scan::Walk,
};
use crate::{error::DataError, source::index::MadePart, store::Objects};

/// Reads the index beside a shard. `None` if there is none, or if it is older than the shard, does not match it, or has another version.
/// The shard is then scanned.
pub(super) fn index(objects: &Objects, object: usize) -> Result<Option<MadePart>, DataError> {
    let Some(text) = objects.beside(object, "idx")? else { return Ok(None) };
    let read = str::from_utf8(&text).ok().and_then(|text| read(text, objects, object));
    let is_of = |index: &MadePart| saved::is_of(objects, object, &index.of_object(objects.name(object)));
    let index = read.map(|index| Ok::<_, DataError>(is_of(&index)?.then_some(index))).transpose()?.flatten();
    if index.is_none() {
        let name = objects.name(object);
        log::warn!("the .idx beside {name} does not fit it, or is not of version 1.2: the tar is scanned");
    }
    Ok(index)
}

fn read(text: &str, objects: &Objects, object: usize) -> Option<MadePart> {
    let mut lines = text.lines();
    let count: usize = lines.next()?.strip_prefix("v1.2 ")?.trim().parse().ok()?;
    let mut samples = Samples::default();
    // Where the next header is, if nothing was skipped. An index of a tar with extended headers may be wrong in the middle.
    let mut next = None;
    let mut found = 0;
    for line in lines.filter(|line| !line.is_empty()) {
        found += 1;
        let mut words = line.split(' ').peekable();
        while words.peek().is_some() {
            let (extension, start, bytes) = (words.next()?, words.next()?, words.next()?);
            let (name, start, bytes) = (words.next()?, start.parse::<u64>().ok()?, bytes.parse::<u64>().ok()?);
            let header = start.checked_sub(BLOCK).filter(|header| header.is_multiple_of(BLOCK))?;
            let (_, known) = split(name.as_bytes())?;
            // A longer name is truncated in the header before the data, from which the key would be read.
            let fits = name.len() < 100 && known == extension.as_bytes();
            if !fits || start.checked_add(bytes)? > objects.bytes(object) {
                return None;
            }
            samples.add(name.as_bytes(), header, start, bytes).ok()?;
            if next != Some(header) {
                agrees(objects, object, (name, header, start, bytes))?;
            }
            next = start.checked_add(bytes)?.checked_next_multiple_of(BLOCK);
        }
    }
    (found == count).then(|| samples.end())
}

/// Checks that a file is where the index says.
fn agrees(objects: &Objects, object: usize, (name, header, start, bytes): (&str, u64, u64, u64)) -> Option<()> {
    let entry = Walk::one(objects, object, header).next().ok()??;
    let there = entry.name.strip_prefix(b"./").unwrap_or(&entry.name);
    let told = name.strip_prefix("./").unwrap_or(name).as_bytes();
    ((there, entry.start, entry.bytes) == (told, start, bytes)).then_some(())
}
