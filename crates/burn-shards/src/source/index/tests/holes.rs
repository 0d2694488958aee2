//! An index whose parts are holes of its file.

use super::super::{
    part::{CONTENT, PAGE},
    *,
};
use std::{
    cell::Cell,
    fs::File,
    io::{self, Seek, SeekFrom},
    path::PathBuf,
};

/// Saves the same part for all objects, as a hole in the file. `keep` is called with the file and with where each part begins.
pub(crate) fn save_a_hole_for_each(
    objects: &Objects,
    kind: &[u8; 8],
    part: &MadePart,
    keep: impl Fn(&File, &dyn Fn(usize) -> u64),
) -> PathBuf {
    struct HoleWriter<'a>(&'a File, &'a Cell<bool>);

    impl Write for HoleWriter<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1.get() {
                Seek::seek(&mut self.0, SeekFrom::Current(bytes.len() as i64))?;
                return Ok(bytes.len());
            }
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let place = IndexPlace::of(objects, kind, &Options::default()).unwrap();
    let (file, is_hole) = (File::create(&place.path).unwrap(), Cell::new(false));
    let mut writer = IndexWriter::new(HoleWriter(&file, &is_hole), &place, objects.list(), kind).unwrap();
    is_hole.set(true);
    (0..objects.len()).for_each(|object| writer.add(object, &part.of_object("a")).unwrap());
    is_hole.set(false);
    writer.end().unwrap();
    keep(&file, &|object| 16 + object as u64 * part.of_object("a").room());
    place.path
}

/// The page of a part that has a byte, and where in the part it is.
pub(crate) fn page(part: &MadePart, byte: u64) -> (u64, Bytes) {
    let (part, start) = (part.of_object("a"), byte / CONTENT * PAGE);
    (start, part.with_checksums(start..part.room().min(start + PAGE)).unwrap())
}
