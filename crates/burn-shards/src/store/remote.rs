//! The interface of protocols for remote objects: one call is one request.

#[cfg(any(feature = "http", feature = "cloud"))]
use super::retry_after::retry_after;
use crate::error::{DataError, StoreError};
#[cfg(all(feature = "cloud", not(feature = "http")))]
use reqwest::header;
use std::{
    fmt,
    io::{self, Read},
    ops::Range,
    time::Duration,
};
#[cfg(feature = "http")]
use ureq::http::header;

/// A protocol. The number of an object is its index in the list that the protocol was opened with.
pub(crate) trait Remote: Send + Sync + fmt::Debug {
    /// Requests a part of an object once, on the calling thread. It must check that the answer is this part, and that the object has not
    /// changed since it was opened. The reader may fail or end early.
    ///
    /// The wait for an answer, and each wait for more bytes, must end by itself.
    fn get(&self, object: usize, part: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refusal>;

    /// Whether the tag of each object identifies its bytes. An ETag of a web server may be no more than a time and a size.
    fn is_exact(&self) -> bool {
        false
    }

    /// Requests a small object of the same name with another extension once. `None` if there is none.
    fn beside(&self, _object: usize, _extension: &str) -> Result<Option<Vec<u8>>, Refusal> {
        Ok(None)
    }
}

/// The minimum rate of a part, in bytes per second. A slower part counts as failed.
pub(super) const LEAST_RATE: u64 = 8 << 10;
/// The number of objects that `open` requests at once.
pub(super) const LOOKS_AT_ONCE: usize = 32;
/// The most bytes of an answer that is read as a whole.
pub(super) const SMALL_ANSWER: u64 = 64 << 20;
pub(super) const CHANGED: &str = "it has changed since it was opened";

/// A request that returned no bytes. It never contains a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub(crate) struct Refusal {
    /// The status of HTTP, if there was an answer.
    pub(crate) status: Option<u16>,
    pub(crate) problem: String,
    pub(crate) again: Retry,
}

impl Refusal {
    /// The meaning of an unsuccessful HTTP answer. `header` returns the text of a header.
    #[cfg(any(feature = "http", feature = "cloud"))]
    pub(super) fn of_answer<'a>(status: u16, header: impl Fn(&str) -> Option<&'a str>) -> Self {
        let again = retry_after(header).map_or(Retry::Yes, Retry::After);
        let (problem, again) = match status {
            401 | 403 => ("access is denied", Retry::No),
            404 | 410 => ("it is not there", Retry::No),
            407 => ("the proxy wants a name and a password", Retry::No),
            412 | 416 => (CHANGED, Retry::No),
            408 | 425 | 429 => ("the server asks to wait", again),
            500.. => ("the server has failed", again),
            _ => ("the answer makes no sense here", Retry::No),
        };
        Self { status: Some(status), problem: problem.into(), again }
    }
}

/// A refusal of a request that cannot succeed later.
pub(super) fn no(status: Option<u16>, problem: impl Into<String>) -> Refusal {
    Refusal { status, problem: problem.into(), again: Retry::No }
}

/// Checks that the body of an answer has the object's bytes as they are stored. No request asks for an encoding such as gzip, but some
/// servers use one anyway, and its bytes would be mistaken for rows.
///
/// # Errors
/// If a header names another form.
#[cfg(any(feature = "http", feature = "cloud"))]
pub(super) fn as_stored(status: u16, headers: &header::HeaderMap) -> Result<(), Refusal> {
    // `aws-chunked` belongs to an upload, but some stores keep the word. `chunked` is decoded when the answer is read.
    const NO_ENCODING: [&str; 4] = ["", "identity", "aws-chunked", "chunked"];
    let names = [(header::CONTENT_ENCODING, "Content-Encoding"), (header::TRANSFER_ENCODING, "Transfer-Encoding")];
    let values =
        names.into_iter().flat_map(|(key, name)| headers.get_all(key).into_iter().map(move |value| (name, value)));
    let mut words = values
        .flat_map(|(name, value)| value.to_str().unwrap_or("unknown").split(',').map(move |word| (name, word.trim())));
    let is_none = |word: &str| NO_ENCODING.iter().any(|none| none.eq_ignore_ascii_case(word));
    if let Some((name, word)) = words.find(|(_, word)| !is_none(word)) {
        let word: String = word.chars().take(20).collect();
        let problem = format!(
            "the server sends it encoded ({name}: {word}), though it was asked not to: switch that off there, or \
             store the object without that header"
        );
        return Err(no(Some(status), problem));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match status == 206 && kind.to_ascii_lowercase().starts_with("multipart/") {
        true => Err(no(Some(status), "the server sends several parts (multipart/byteranges), and one was asked for")),
        false => Ok(()),
    }
}

/// Whether the same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It may succeed: the store is busy, or the connection broke.
    Yes,
    /// It may succeed after the time that the store has named.
    After(Duration),
    /// It cannot succeed: the object is gone or has changed, or access is denied.
    No,
}

/// The error of an object that cannot be opened.
pub(super) fn unreadable(name: &str, error: StoreError) -> DataError {
    DataError::Open { path: name.into(), source: io::Error::other(error) }
}
