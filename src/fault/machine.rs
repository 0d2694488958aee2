//! Detects errors of a machine that has run out of files, memory or disk space. No sample is to blame for them.

use super::panics::catch;
use burn_shards::for_loader::are_too_many;
use std::{error::Error as StdError, io, iter, sync::Arc};

/// The error and its sources, including the error inside an `io::Error`: `source()` skips it and returns the source of
/// that inner error.
pub(super) fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    fn behind<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
        match as_one::<io::Error>(error).and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    }
    iter::successors(Some(error), |error| behind(*error))
}

/// Downcasts the error to this type, also if it is boxed or shared.
pub(super) fn as_one<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let boxed = || error.downcast_ref::<Box<E>>().map(|error| &**error);
    error.downcast_ref().or_else(boxed).or_else(|| error.downcast_ref::<Arc<E>>().map(|error| &**error))
}

/// Whether an error or one of its sources says that the machine has run out of something.
pub(super) fn is_lack(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|error| {
        // Errors that are transparent or made from text hide their source. `Display` is user code.
        as_one(error).is_some_and(is_of_system) || catch(|| error.to_string()).is_ok_and(|text| says_lack(&text))
    })
}

/// Whether a text contains the number of such an error, as an `io::Error` shows it to users (`Display`) and in panics
/// (`Debug`).
pub(super) fn says_lack(text: &str) -> bool {
    let numbers = |before: &str| {
        let rest = text.split(before).skip(1);
        rest.filter_map(|rest| rest.split([')', ',']).next()?.parse().ok()).collect::<Vec<i32>>()
    };
    let codes = [numbers("(os error "), numbers("Os { code: ")].concat();
    codes.into_iter().any(|code| is_of_system(&io::Error::from_raw_os_error(code)))
}

fn is_of_system(error: &io::Error) -> bool {
    are_too_many(error)
        || matches!(
            error.kind(),
            io::ErrorKind::OutOfMemory | io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
}
