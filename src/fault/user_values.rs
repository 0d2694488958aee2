//! Values of the user that are dropped one by one.

use super::panics::{Panic, catch};
use std::{
    mem,
    ops::{Deref, DerefMut},
};

/// Values of the user. In a plain `Vec`, a second value whose `drop` panics would end the process, and so would the first
/// one during another panic. Here each value is dropped by itself, and panics go to the log.
#[derive(Debug)]
pub(crate) struct UserValues<T>(Vec<T>);

/// Not derived: `T` need not be `Default`.
impl<T> Default for UserValues<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> From<Vec<T>> for UserValues<T> {
    fn from(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<T> Deref for UserValues<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for UserValues<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> Drop for UserValues<T> {
    fn drop(&mut self) {
        if let Err(caught) = drop_each(mem::take(&mut self.0)) {
            told(&caught);
        }
    }
}

/// Drops values one by one.
///
/// # Errors
/// The first panic. Later ones go to the log.
pub(crate) fn drop_each<T>(values: impl IntoIterator<Item = T>) -> Result<(), Panic> {
    let mut values = values.into_iter();
    let mut result = Ok(());
    while let Err(caught) = catch(|| values.by_ref().for_each(drop)) {
        if result.is_ok() { result = Err(caught) } else { told(&caught) }
    }
    result
}

fn told(caught: &Panic) {
    log::error!("burn-pinned: a panic in a `drop` of a value: {}", caught.message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    /// It panics when it is dropped, and counts that.
    struct Bomb(Arc<AtomicUsize>);

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("number {}", self.0.fetch_add(1, Relaxed));
        }
    }

    #[test]
    fn each_value_is_dropped_whatever_the_others_do() {
        let dropped = Arc::<AtomicUsize>::default();
        let bombs = || (0..3).map(|_| Bomb(Arc::clone(&dropped))).collect::<Vec<_>>();
        assert_eq!(drop_each(bombs()).unwrap_err().message, "number 0");
        drop(UserValues::from(bombs()));
        let _ = catch(|| {
            let _bombs = UserValues::from(bombs());
            panic!("another one");
        });
        assert_eq!(dropped.load(Relaxed), 9);
        drop_each([1, 2]).unwrap();
    }
}
