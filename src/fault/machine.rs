//! What a machine lacks: files, memory, room on its disks. No sample is to blame for it.

use super::panics::catch;
use crate::files::are_too_many;
use std::{error::Error as StdError, io, sync::Arc};

/// Whether an error, or one behind it, says that the machine lacks something.
pub(super) fn is_lack(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let system = error
            .downcast_ref::<io::Error>()
            .or_else(|| error.downcast_ref::<Box<io::Error>>().map(|error| &**error))
            .or_else(|| error.downcast_ref::<Arc<io::Error>>().map(|error| &**error));
        if system.is_some_and(is_of_system) {
            return true;
        }
        // The `source` of an `io::Error` is that of the error in it.
        next = match system.and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    // Errors that are transparent, or made of text, hide their source. `Display` is user code.
    catch(|| error.to_string()).is_ok_and(|text| says_lack(&text))
}

/// Whether a text has the number of such an error, as `io::Error` is shown to users (`Display`) and in panics (`Debug`).
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
