//! Local files. They are read and not mapped: a file that is cut off meanwhile is an error then, not a signal.

use super::{Object, Store};
use crate::data::error::DataError;
use parking_lot::Mutex;
use std::{
    fs::{self, File},
    io::{self, Read},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

/// At most so many files are open at once. A process may often have no more than 1,024.
const OPEN: usize = 256;

/// An object and its open file.
type Opened = (usize, Arc<File>);

/// Local files, some of them open.
#[derive(Debug)]
pub(super) struct Local {
    paths: Vec<PathBuf>,
    /// The file of object `n` is in place `n % OPEN`, if it was the last of those to be read.
    open: Vec<Mutex<Option<Opened>>>,
}

/// Looks at each file.
pub(super) fn open(paths: Vec<PathBuf>) -> Result<(Vec<Object>, Local), DataError> {
    let objects = paths.iter().map(|path| {
        let meta = fs::metadata(path).and_then(|meta| match meta.is_file() {
            true => Ok(meta),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        });
        let meta = meta.map_err(|source| DataError::Open { path: path.clone(), source })?;
        let changed = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let tag = changed.map_or(0, |time| time.as_nanos() as u64);
        Ok(Object { name: path.to_string_lossy().into(), bytes: meta.len(), tag })
    });
    let objects = objects.collect::<Result<_, DataError>>()?;
    let open = (0..paths.len().min(OPEN)).map(|_| Mutex::new(None)).collect();
    Ok((objects, Local { paths, open }))
}

impl Local {
    fn file(&self, object: usize) -> io::Result<Arc<File>> {
        let mut place = self.open[object % self.open.len()].lock();
        match &*place {
            Some((there, file)) if *there == object => Ok(Arc::clone(file)),
            _ => {
                let file = Arc::new(File::open(&self.paths[object])?);
                *place = Some((object, Arc::clone(&file)));
                Ok(file)
            }
        }
    }
}

/// A part of a file.
struct Part {
    file: Arc<File>,
    rest: Range<u64>,
}

impl Read for Part {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.rest.end - self.rest.start).unwrap_or(usize::MAX);
        let bytes = left.min(into.len());
        read_at(&self.file, self.rest.start, &mut into[..bytes])?;
        self.rest.start += bytes as u64;
        Ok(bytes)
    }
}

impl Store for Local {
    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        Ok(Box::new(Part { file: self.file(object)?, rest: part }))
    }

    fn read(&self, object: usize, start: u64, into: &mut [u8]) -> io::Result<()> {
        read_at(&*self.file(object)?, start, into)
    }

    fn beside(&self, object: usize, extension: &str) -> io::Result<Option<Vec<u8>>> {
        let file = &self.paths[object];
        let path = file.with_extension(extension);
        let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
        if path == *file || changed(&path).is_none_or(|time| Some(time) < changed(file)) {
            return Ok(None);
        }
        Ok(fs::read(&path).ok())
    }
}

#[cfg(unix)]
fn read_at(file: &File, start: u64, into: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, start)
}

#[cfg(windows)]
fn read_at(file: &File, mut start: u64, mut into: &mut [u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !into.is_empty() {
        match file.seek_read(into, start)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (start, into) = (start + read as u64, &mut into[read..]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::data::{DataError, store::Objects};
    use std::{fs, io::ErrorKind};

    #[test]
    fn more_files_than_may_be_open_are_read_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..600).map(|n| folder.path().join(format!("{n}"))).collect();
        paths.iter().enumerate().for_each(|(n, path)| fs::write(path, (n as u32).to_le_bytes()).unwrap());
        let objects = Objects::local(paths).unwrap();
        for n in (0..600).rev().chain((0..600).step_by(7)) {
            assert_eq!(objects.read(n, 0..4).unwrap(), (n as u32).to_le_bytes());
        }
    }

    #[test]
    fn a_file_that_was_cut_off_is_an_error_with_its_name_and_range() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard");
        fs::write(&path, [7; 100]).unwrap();
        let objects = Objects::local(vec![path.clone()]).unwrap();
        assert_eq!(objects.read(0, 90..100).unwrap(), [7; 10]);
        fs::write(&path, [7; 50]).unwrap();
        let error = objects.read(0, 40..60).unwrap_err();
        assert!(
            matches!(&error, DataError::Read { source, .. } if source.kind() == ErrorKind::UnexpectedEof),
            "{error}"
        );
        assert!(error.to_string().contains("bytes 40 to 60 of") && error.to_string().contains("shard"), "{error}");
        // Beyond the size at `open` nothing is even allocated.
        assert!(objects.read(0, 0..u64::MAX).is_err());
    }
}
