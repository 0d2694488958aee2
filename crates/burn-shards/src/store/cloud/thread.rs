//! The thread that transfers bytes for an object store, and how other threads wait for it.

use crate::store::{
    remote::{Refusal, no},
    stop::{LOOK, STOPPED_WAIT, Stop},
};
use std::{
    future::Future,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, JoinHandle, Thread},
};
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::unconstrained,
};

/// The most threads that read files with credentials at once.
const FILE_THREADS: usize = 4;

/// A private runtime, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct CloudThread {
    handle: Handle,
    stop: Stop,
    /// Dropped to end the thread.
    open: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl CloudThread {
    /// `stop` ends the waits for this thread.
    pub(super) fn start(stop: Stop) -> io::Result<Self> {
        let mut runtime = Builder::new_current_thread();
        let runtime =
            runtime.enable_io().enable_time().thread_name("bp-cloud-files").max_blocking_threads(FILE_THREADS);
        let runtime = runtime.build()?;
        let handle = runtime.handle().clone();
        let (open, ended) = oneshot::channel();
        let run = move || {
            _ = runtime.block_on(ended);
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("bp-cloud".into()).spawn(run)?;
        Ok(Self { handle, stop, open: Some(open), thread: Some(thread) })
    }

    /// Waits on the calling thread. Each request has time limits, so this ends. A stop ends it earlier, with an error.
    ///
    /// Unlike the runtime's own `block_on`, it may be called inside another runtime, as in a program whose `main` is
    /// async.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Refusal> {
        // Connections and timers go to our runtime.
        let _entered = self.handle.enter();
        // If the caller is inside another runtime, that runtime's cooperative budget would run out, because nothing renews it here.
        let mut future = pin!(unconstrained(future));
        let signal = Arc::new(Signal { is_set: AtomicBool::new(false), waits: thread::current() });
        let waker = Waker::from(Arc::clone(&signal));
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Ok(value);
            }
            while !signal.is_set.swap(false, SeqCst) {
                if self.stop.is_set() {
                    return Err(no(None, STOPPED_WAIT));
                }
                thread::park_timeout(LOOK);
            }
        }
    }
}

impl Drop for CloudThread {
    fn drop(&mut self) {
        self.open = None;
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// Wakes a thread that waits.
struct Signal {
    is_set: AtomicBool,
    waits: Thread,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.is_set.store(true, SeqCst);
        self.waits.unpark();
    }
}
