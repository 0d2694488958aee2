//! Where the bytes of shards come from. A store knows no format.

mod local;

use super::{error::DataError, location::Paths};
use std::{fmt, io, ops::Range, path::PathBuf, sync::Arc};

/// Reads parts of objects. An object has a number: its place in the list that the store was made of.
pub(crate) trait Store: Send + Sync + fmt::Debug {
    /// Fills `into` with the bytes of an object from `start` on, on the calling thread.
    ///
    /// # Errors
    /// If the object ends before, has changed, or cannot be read.
    fn read(&self, object: usize, start: u64, into: &mut [u8]) -> Result<(), Failed>;
}

/// Why a part of an object could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// It is not the object that was looked at.
    #[error("it has changed")]
    Changed,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// One file or object as it was when the data set was opened.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// Its path or URL, for people.
    pub(crate) name: Arc<str>,
    pub(crate) bytes: u64,
    /// Changes when the object does: the time of its last change.
    pub(crate) tag: u64,
}

/// The objects of a data set, in order, and the store that has them.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    list: Arc<[Object]>,
    store: Arc<dyn Store>,
    /// The folder of the first object, if it is a local one. Indices are saved there.
    pub(crate) folder: Option<PathBuf>,
}

impl Objects {
    /// Finds the files.
    pub(crate) fn find(paths: &Paths) -> Result<Self, DataError> {
        Self::local(paths.files()?)
    }

    /// Looks at local files.
    pub(crate) fn local(paths: Vec<PathBuf>) -> Result<Self, DataError> {
        let folder = paths.first().and_then(|path| path.parent()).map(Into::into);
        let (list, store) = local::open(paths)?;
        Ok(Self { list: list.into(), store: Arc::new(store), folder })
    }

    /// The first object alone.
    #[cfg(feature = "parquet")]
    pub(crate) fn first(&self) -> Self {
        Self { list: self.list[..1].into(), ..self.clone() }
    }

    /// Objects of a store that a test has made.
    #[cfg(all(test, feature = "parquet"))]
    pub(crate) fn of(list: Vec<Object>, store: Arc<dyn Store>) -> Self {
        Self { list: list.into(), store, folder: None }
    }

    pub(crate) fn list(&self) -> &[Object] {
        &self.list
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn name(&self, object: usize) -> &str {
        &self.list[object].name
    }

    pub(crate) fn bytes(&self, object: usize) -> u64 {
        self.list[object].bytes
    }

    /// Reads a part of an object. A part that lies beyond the object's size is an error before memory is allocated for it.
    pub(crate) fn read(&self, object: usize, range: Range<u64>) -> Result<Vec<u8>, DataError> {
        let Object { name, bytes, .. } = &self.list[object];
        let failed = |source| DataError::Read { object: (**name).into(), range: range.clone(), source };
        let length = range.end.checked_sub(range.start).filter(|_| range.end <= *bytes);
        let Some(length) = length.and_then(|length| usize::try_from(length).ok()) else {
            return Err(failed(io::Error::new(io::ErrorKind::UnexpectedEof, format!("it has {bytes} bytes"))));
        };
        let mut part = vec![0; length];
        self.store.read(object, range.start, &mut part).map_err(|error| match error {
            Failed::Changed => DataError::Changed { object: (**name).into() },
            Failed::Io(source) => failed(source),
        })?;
        Ok(part)
    }
}
