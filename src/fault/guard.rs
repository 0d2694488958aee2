//! Calls of user code. Errors and panics of that code become an [`Error`] with its place.

use super::{
    error::{BoxError, Error},
    panics::{Panic, catch},
    watch::during,
};
use crate::vocabulary::Place;

/// Runs user code for a whole batch. Its error or panic becomes an [`Error`] with its place.
pub(crate) fn guard<T>(place: Place, code: impl FnOnce() -> Result<T, BoxError>) -> Result<T, Error> {
    during(place, || guard_at(|| place, code))
}

/// Drops something that holds user values, whose `drop` may hang or panic. A panic is only logged, because there is
/// nowhere else to report it.
pub(crate) fn discard<T>(place: Place, value: T) {
    if let Err(caught) = during(place, || catch(|| drop(value))) {
        log::error!("burn-pinned: a panic in a `drop`, {place}: {}", caught.message);
    }
}

/// Drops several values like [`discard`], one by one: a second panic in one `drop` would end the process.
pub(crate) fn discard_each<T>(place: Place, values: impl IntoIterator<Item = T>) {
    values.into_iter().for_each(|value| discard(place, value));
}

/// Runs user code for samples. Their place is computed only after a failure.
pub(crate) fn guard_at<T>(
    place: impl FnOnce() -> Place,
    code: impl FnOnce() -> Result<T, BoxError>,
) -> Result<T, Error> {
    match catch(code) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(Error::Failed { place: place(), source }),
        Err(Panic { message, trace }) => Err(Error::Panicked { place: place(), message, trace }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fault::watch::Watch, vocabulary::Stage};
    use std::{sync::mpsc, thread, time::Duration};

    struct Slow(mpsc::Receiver<()>);

    impl Drop for Slow {
        fn drop(&mut self) {
            let _ = self.0.recv();
            panic!("dropped");
        }
    }

    #[test]
    fn a_drop_that_hangs_is_named_and_its_panic_ends_nothing() {
        let (end, held) = mpsc::channel();
        let watch = Watch::new(Some(Duration::from_millis(100)));
        let doing = watch.add("a thread");
        let place = Place::batch(Stage::Finish, crate::vocabulary::BatchKey::new(3, 7));
        thread::scope(|scope| {
            let (doing, watch) = (&doing, &watch);
            scope.spawn(move || watch.run(doing, || discard(place, Slow(held))));
            let hung = watch.wait(doing).expect("it hangs");
            assert_eq!((hung.place, hung.thread.as_str()), (place, "a thread"));
            end.send(()).unwrap();
        });
        assert_eq!(watch.wait(&doing), None);
    }
}
