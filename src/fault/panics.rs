//! Panics of user code become values: the message, and a backtrace if the user has enabled backtraces.
//!
//! A backtrace must be captured during the panic, and only a panic hook runs then. So this module installs a hook in
//! front of the program's own, but only if `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE` enables backtraces. If the
//! panicking thread is inside [`catch`], the hook keeps the backtrace for it. Then it calls the program's own hook,
//! which usually prints the backtrace. Code that panics for every batch would fill the terminal. So only the first
//! panic at each place in the code goes to the program's hook; each later one is a line. A hook that the program sets
//! later replaces this one, and panics are then reported without a backtrace.

use crate::sync::locks::Mutex;
use burn_shards::for_loader::panic_message;
use std::{
    backtrace::{Backtrace, BacktraceStatus},
    cell::{Cell, RefCell},
    io::{self, Write},
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
    /// How many calls of `catch` are running.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static TRACE: RefCell<Option<Arc<Backtrace>>> = const { RefCell::new(None) };
}

/// Installs the hook, once, if backtraces are enabled.
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
            // A thread that is ending has no thread-locals any more.
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

/// The line that is printed for a panic at a place whose backtrace was printed before.
fn line(info: &PanicHookInfo<'_>) -> String {
    let (thread, message) = (thread::current(), info.payload_as_str().unwrap_or(NO_TEXT));
    let at = info.location().map_or_else(String::new, |at| format!(" at {at} again"));
    format!("thread '{}' panicked{at}: {message}", thread.name().unwrap_or("<unnamed>"))
}

const NO_TEXT: &str = "a panic whose payload is not text";

/// Runs code that may panic. On a thread that is ending, a panic has no backtrace.
pub(crate) fn catch<T>(code: impl FnOnce() -> T) -> Result<T, Panic> {
    // The stored backtrace may be from a panic that user code caught itself.
    let hooked = HOOKED.load(Relaxed) && TRACE.try_with(|trace| drop(trace.replace(None))).is_ok();
    if hooked {
        DEPTH.set(DEPTH.get() + 1);
    }
    // A panic may leave values that the closure borrows in an inconsistent state. Callers drop or replace them.
    let result = catch_unwind(AssertUnwindSafe(code));
    if hooked {
        DEPTH.set(DEPTH.get() - 1);
    }
    result.map_err(|payload| {
        let trace = if hooked { TRACE.try_with(RefCell::take).ok().flatten() } else { None };
        Panic { message: panic_message(payload), trace }
    })
}

/// Drops values one by one.
///
/// # Errors
/// The first panic. Later ones are logged.
pub(crate) fn drop_each<T>(values: impl IntoIterator<Item = T>) -> Result<(), Panic> {
    let mut values = values.into_iter();
    let mut result = Ok(());
    while let Err(caught) = catch(|| values.by_ref().for_each(drop)) {
        if result.is_ok() {
            result = Err(caught);
        } else {
            log::error!("burn-pinned: a panic in a `drop` of a value: {}", caught.message);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_shards::for_loader::UserValues;
    use std::sync::atomic::AtomicUsize;

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
        drop(UserValues(bombs()));
        let _ = catch(|| {
            let _bombs = UserValues(bombs());
            panic!("another one");
        });
        assert_eq!(dropped.load(Relaxed), 9);
        drop_each([1, 2]).unwrap();
    }
}
