//! The file of an index: a head, a table of the objects, and a part for each. All numbers are little-endian.

use crate::{store::Object, system::replace::replace};
use bytes::Bytes;
use crc32fast::hash;
use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    path::PathBuf,
};

const MAGIC: &[u8; 8] = b"burnpid2";
/// Magic, kind, number of objects, checksum of the table.
const HEAD: usize = 8 + 8 + 8 + 8;
/// Hash of the name in its [one spelling](Spelling), size, tag, identity, length of the part, checksum of the part.
const LINE: usize = 6 * 8;

/// Where the index of some objects is saved, or another file for all of them.
#[derive(Debug)]
pub(crate) struct IndexPlace {
    pub(crate) path: PathBuf,
    /// A hash of the names, sizes and tags of the objects, and of what made the file.
    pub(crate) mark: u64,
    /// A hash of the name of each object in its one spelling.
    pub(super) names: Vec<u64>,
    /// [`Store::identity`](crate::store::Store::identity) of each object.
    pub(super) identities: Vec<u64>,
}

/// Writes an index of this kind, in one step.
pub(super) fn write(place: &IndexPlace, objects: &[Object], kind: &[u8; 8], parts: &[Bytes]) -> io::Result<()> {
    let IndexPlace { path, names, identities, .. } = place;
    let mut table = Vec::with_capacity(objects.len() * LINE);
    for (((object, name), identity), part) in objects.iter().zip(names).zip(identities).zip(parts) {
        let line = [*name, object.bytes, object.tag, *identity, part.len() as u64, hash(part).into()];
        line.iter().for_each(|word| table.extend(word.to_le_bytes()));
    }
    let mut head = Vec::with_capacity(HEAD);
    head.extend(MAGIC);
    head.extend(kind);
    head.extend((objects.len() as u64).to_le_bytes());
    head.extend(u64::from(hash(&table)).to_le_bytes());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    replace(
        path,
        |error| error,
        |file| {
            [&head, &table].into_iter().try_for_each(|bytes| file.write_all(bytes))?;
            parts.iter().try_for_each(|part| file.write_all(part))
        },
    )
}

/// Reads an index: the part of each object, if it was saved for one with the same name, size and tag, and whether it was saved for exactly
/// this object. `None` if the index is corrupt or of another kind.
pub(super) fn parts(
    file: Bytes,
    objects: &[Object],
    place: &IndexPlace,
    kind: &[u8; 8],
) -> Option<Vec<Option<(Bytes, bool)>>> {
    let word = |at: usize| Some(u64::from_le_bytes(file.get(at..at.checked_add(8)?)?.try_into().ok()?));
    if file.get(..8)? != MAGIC || file.get(8..16)? != kind {
        return None;
    }
    let count = usize::try_from(word(16)?).ok()?;
    let end = count.checked_mul(LINE)?.checked_add(HEAD)?;
    if u64::from(hash(file.get(HEAD..end)?)) != word(24)? {
        return None;
    }
    let (mut found, mut at) = (HashMap::with_capacity(count), end);
    for n in 0..count {
        let words: Vec<u64> = (0..6).map(|place| word(HEAD + n * LINE + place * 8)).collect::<Option<_>>()?;
        let end = at.checked_add(usize::try_from(words[4]).ok()?)?;
        if end > file.len() {
            return None;
        }
        found.insert((words[0], words[1], words[2]), (at..end, words[3], words[5]));
        at = end;
    }
    let part = |((object, name), identity): ((&Object, &u64), &u64)| {
        let (range, saved, checksum) = found.get(&(*name, object.bytes, object.tag))?;
        let part = file.slice(range.clone());
        (u64::from(hash(&part)) == *checksum).then_some((part, *identity != 0 && identity == saved))
    };
    Some(objects.iter().zip(&place.names).zip(&place.identities).map(part).collect())
}
