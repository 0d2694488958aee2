//! Objects that are read over a network, as the protocols see them: one call is one request.

use std::{fmt, io::Read, ops::Range, time::Duration};

/// A protocol. Objects have the numbers of the list that it was opened with.
pub(crate) trait Remote: Send + Sync + fmt::Debug {
    /// Asks once for a part of an object, on the calling thread. The answer must be checked: that it is this part, of an
    /// object that has not changed since it was opened. The reader may fail or end early.
    ///
    /// The wait for an answer, and each wait for more bytes, must end by itself.
    fn get(&self, object: usize, part: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refused>;
}

/// A request that gave no bytes. It never holds a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The status of HTTP, if there was an answer.
    pub(crate) status: Option<u16>,
    pub(crate) problem: String,
    pub(crate) again: Again,
}

/// Whether the same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// It may: the store is busy, or the connection broke.
    Yes,
    /// It may, after the time that the store has named.
    After(Duration),
    /// It cannot: the object is gone or has changed, or access is denied.
    No,
}
