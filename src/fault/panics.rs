//! Panics of user code become values: the message, and a backtrace where the user asked for backtraces.
//!
//! A backtrace must be taken while the panic is under way, and only a panic hook runs then. So this module puts a hook
//! before the program's own, but only if `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE` asks for backtraces. If [`catch`]
//! runs on the thread that panics, the hook keeps the backtrace for it. Then the hook calls the program's own, which
//! mostly prints the backtrace. Code that panics for every batch would fill the terminal. So only the first panic at
//! each place of the code goes to the program's own hook, and each later one is a line. A hook that the program sets
//! later replaces this one, and panics are then reported without a backtrace.

use crate::sync::locks::Mutex;
use std::{
    any::Any,
    backtrace::{Backtrace, BacktraceStatus},
    cell::{Cell, RefCell},
    io::{self, Write},
    mem,
    panic::{AssertUnwindSafe, Location, PanicHookInfo, catch_unwind, set_hook, take_hook},
    sync::{
        Arc, Once,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

/// A caught panic.
#[derive(Debug)]
pub(crate) struct Panic {
    pub(crate) message: String,
    pub(crate) trace: Option<Arc<Backtrace>>,
}

static HOOKED: AtomicBool = AtomicBool::new(false);

/// The places in the code that have panicked: file, line, column.
static PLACES: Mutex<Vec<(String, u32, u32)>> = Mutex::new(Vec::new());

thread_local! {
    /// How many calls of `catch` are under way.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static TRACE: RefCell<Option<Arc<Backtrace>>> = const { RefCell::new(None) };
}

/// Puts the hook in place, once, if backtraces are wanted.
pub(crate) fn keep_backtraces() {
    static ONCE: Once = Once::new();
    if thread::panicking() {
        return; // hooks cannot be changed now
    }
    ONCE.call_once(|| {
        if Backtrace::capture().status() != BacktraceStatus::Captured {
            return;
        }
        let before = take_hook();
        set_hook(Box::new(move |info| {
            // A thread that is being torn down has no thread-locals any more.
            if DEPTH.try_with(Cell::get).unwrap_or(0) > 0 {
                let trace = Arc::new(Backtrace::capture());
                let _ = TRACE.try_with(|kept| kept.replace(Some(trace)));
                if again(info.location()) {
                    let _ = writeln!(io::stderr(), "{}", line(info)); // a panic in a hook would end the process
                    return;
                }
            }
            before(info);
        }));
        HOOKED.store(true, Relaxed);
    });
}

/// Notes the place of a panic. Returns whether there was a panic at this place before.
fn again(at: Option<&Location<'_>>) -> bool {
    let Some(at) = at else { return false };
    let (mut places, at) = (PLACES.lock(), (at.file().to_owned(), at.line(), at.column()));
    let again = places.contains(&at);
    if !again {
        places.push(at);
    }
    again
}

/// The line that is printed of a panic at a place whose backtrace was printed before.
fn line(info: &PanicHookInfo<'_>) -> String {
    let (thread, message) = (thread::current(), info.payload_as_str().unwrap_or(NO_TEXT));
    let at = info.location().map_or_else(String::new, |at| format!(" at {at} again"));
    format!("thread '{}' panicked{at}: {message}", thread.name().unwrap_or("<unnamed>"))
}

const NO_TEXT: &str = "a panic whose payload is not text";

/// Runs code that may panic. A panic has no backtrace on a thread that is being torn down.
pub(crate) fn catch<T>(code: impl FnOnce() -> T) -> Result<T, Panic> {
    // The backtrace that is kept may be of a panic that user code caught itself.
    let hooked = HOOKED.load(Relaxed) && TRACE.try_with(|trace| drop(trace.replace(None))).is_ok();
    if hooked {
        DEPTH.set(DEPTH.get() + 1);
    }
    // A panic may leave what the closure borrows half done. Callers drop it or replace it.
    let result = catch_unwind(AssertUnwindSafe(code));
    if hooked {
        DEPTH.set(DEPTH.get() - 1);
    }
    result.map_err(|payload| {
        let trace = if hooked { TRACE.try_with(RefCell::take).ok().flatten() } else { None };
        Panic { message: text(payload), trace }
    })
}

/// The message of a panic.
fn text(payload: Box<dyn Any + Send>) -> String {
    let message = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| NO_TEXT.into());
    // The payload's own drop may panic too. The payload of that second panic may also panic when it is dropped, so it
    // is forgotten.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_payload_is_caught() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                std::panic::panic_any(7);
            }
        }
        assert_eq!(catch(|| 3).unwrap(), 3);
        assert_eq!(catch(|| panic!("at {}", 1)).unwrap_err().message, "at 1");
        assert_eq!(catch(|| panic!("plain")).unwrap_err().message, "plain");
        for _ in 0..2 {
            let caught = catch(|| std::panic::panic_any(Bomb)).unwrap_err();
            assert_eq!(caught.message, NO_TEXT);
        }
    }
}
