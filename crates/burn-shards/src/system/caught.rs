//! Panics of foreign code become values.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Values of the user's, which are dropped one by one: two panics in one `drop` would end the process. A panic only goes to the
/// log, since nobody else can be told.
#[derive(derive_more::Debug)]
#[debug("{} values", _0.len())]
pub(crate) struct OneByOne<T>(pub(crate) Vec<T>);

impl<T> OneByOne<T> {
    pub(crate) fn take(mut self) -> Vec<T> {
        mem::take(&mut self.0)
    }
}

impl<T> Drop for OneByOne<T> {
    fn drop(&mut self) {
        mem::take(&mut self.0).into_iter().for_each(discard);
    }
}

/// Drops a value of the user's. A panic goes to the log.
pub(crate) fn discard<T>(value: T) {
    if let Err(message) = catch(|| drop(value)) {
        log::error!("a panic in a `drop`: {message}");
    }
}

/// Runs code that may panic. The error is the panic's message.
pub(crate) fn catch<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    // A panic may leave what the closure borrows half done. Callers drop it.
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        // The payload's own drop may panic, and so may that panic's payload.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            mem::forget(again);
        }
        text.unwrap_or_else(|| "a panic whose payload is not text".into())
    })
}
