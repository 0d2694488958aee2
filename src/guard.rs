//! Calls of user code: errors and panics of it become an [`Error`] with its place.

use crate::{
    error::{BoxError, Error, Place},
    panics::{Caught, catch},
    watch::during,
};

/// Runs user code for a batch as a whole: an error or a panic of it becomes an [`Error`] with its place.
pub(crate) fn guard<T>(place: Place, code: impl FnOnce() -> Result<T, BoxError>) -> Result<T, Error> {
    during(place, || guard_at(|| place, code))
}

/// The same for samples, whose place is known only when something has gone wrong.
pub(crate) fn guard_at<T>(
    place: impl FnOnce() -> Place,
    code: impl FnOnce() -> Result<T, BoxError>,
) -> Result<T, Error> {
    match catch(code) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(Error::Failed { place: place(), source }),
        Err(Caught { message, trace }) => Err(Error::Panicked { place: place(), message, trace }),
    }
}
