//! Catches panics of foreign code.

use std::{
    any::Any,
    mem,
    ops::{Deref, DerefMut},
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Values of a user's type. In a plain `Vec`, two values whose `drop` panics would abort the process, as would one during another panic.
/// Here each value is dropped separately, and panics are logged, because they cannot be returned.
#[derive(derive_more::Debug)]
#[debug("{} values", _0.len())]
pub struct UserValues<T>(pub Vec<T>);

/// Not derived, because `T` need not be `Default`.
impl<T> Default for UserValues<T> {
    fn default() -> Self {
        Self(Vec::new())
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

impl<T> UserValues<T> {
    /// The values. Their drops are not guarded any more.
    pub fn take(mut self) -> Vec<T> {
        mem::take(&mut self.0)
    }
}

impl<T> Drop for UserValues<T> {
    fn drop(&mut self) {
        let mut values = mem::take(&mut self.0).into_iter();
        while let Err(message) = catch(|| values.by_ref().for_each(drop)) {
            told(&message);
        }
    }
}

/// Drops a value of a user's type. A panic is logged.
pub(crate) fn discard<T>(value: T) {
    if let Err(message) = catch(|| drop(value)) {
        told(&message);
    }
}

fn told(message: &str) {
    log::error!("a panic in a `drop`: {message}");
}

/// Runs code that may panic. The error is the panic's message.
pub(crate) fn catch<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    // A panic may leave values that the closure borrows in an inconsistent state. Callers drop them.
    catch_unwind(AssertUnwindSafe(code)).map_err(panic_message)
}

/// The message of a panic. Its payload is dropped.
pub fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let message = payload.downcast_ref::<&str>().map(ToString::to_string);
    let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
    // The payload's own drop may panic, and so may that panic's payload.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(again);
    }
    message.unwrap_or_else(|| "a panic whose payload is not text".into())
}
