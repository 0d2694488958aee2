//! Panics of foreign code become values.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

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
