//! The same bytes over the same links without a loader. Threads copy rows into page-locked memory, always for the GPU that
//! has most of it empty. A thread for each GPU copies it there. What this gives is what the host's memory allows.

use crate::{batch::Case, window::Start};
use burn_pinned::BoxError;

/// GB/s of each GPU. `whole` says that copies begin once a whole batch is there, as those of a loader do; else each part is
/// copied as soon as it is there.
#[cfg(not(feature = "cuda"))]
pub(crate) fn feed(_: &Case, _: usize, _: usize, _: bool, _: &Start) -> Result<Vec<f64>, BoxError> {
    Err("this bench was built without the feature `cuda`".into())
}

#[cfg(feature = "cuda")]
pub(crate) use cuda::feed;

#[cfg(feature = "cuda")]
mod cuda {
    use super::*;
    use crate::{
        batch::ROW,
        data::Item,
        links::context,
        window::{Window, joined},
    };
    use cudarc::driver::{
        CudaContext, CudaEvent, CudaSlice, CudaStream, DriverError, PinnedHostSlice,
        sys::{CU_MEMHOSTALLOC_PORTABLE, CUevent_flags},
    };
    use std::{
        collections::VecDeque,
        sync::{
            Arc, Condvar, Mutex, MutexGuard, PoisonError,
            mpsc::{Receiver, Sender, channel},
        },
        thread,
        time::Instant,
    };

    /// Rows that a thread copies at a time.
    const ROWS: usize = 8;
    /// Batches of page-locked memory for each GPU, as a loader has with `prefetch(2)`, and how many of them are on a link.
    const BATCHES: usize = 4;
    const ON_THE_WAY: usize = 2;

    /// Some rows in page-locked memory.
    type Chunk = PinnedHostSlice<u8>;

    pub(crate) fn feed(
        case: &Case,
        devices: usize,
        workers: usize,
        whole: bool,
        start: &Start,
    ) -> Result<Vec<f64>, BoxError> {
        let (filled, ready): (Vec<_>, Vec<_>) = (0..devices).map(|_| channel()).unzip();
        let empty = Empty::of(devices);
        thread::scope(|scope| {
            for worker in 0..workers {
                let (empty, filled) = (&empty, filled.clone());
                scope.spawn(move || fill(case, worker << 20, empty, &filled));
            }
            drop(filled);
            let copiers = ready.into_iter().enumerate().map(|(nth, ready)| {
                let empty = &empty;
                scope.spawn(move || {
                    let _last = Closing(empty);
                    let link = Link::new(nth, case.batch / ROWS);
                    let window = start.wait();
                    link?.copy(empty, &ready, whole, window)
                })
            });
            joined(copiers, "a thread that copies panicked")
        })
    }

    /// Memory that nobody fills yet, of each GPU. It is gone once a GPU has got enough.
    struct Empty {
        chunks: Mutex<Option<Vec<Vec<Chunk>>>>,
        more: Condvar,
    }

    impl Empty {
        fn of(devices: usize) -> Self {
            Self { chunks: Mutex::new(Some((0..devices).map(|_| Vec::new()).collect())), more: Condvar::new() }
        }

        fn lock(&self) -> MutexGuard<'_, Option<Vec<Vec<Chunk>>>> {
            self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn give(&self, nth: usize, chunks: impl IntoIterator<Item = Chunk>) {
            if let Some(all) = self.lock().as_mut() {
                all[nth].extend(chunks);
            }
            self.more.notify_all();
        }

        /// Takes a chunk of the GPU that has most. Returns `None` at the end.
        fn take(&self) -> Option<(usize, Chunk)> {
            let mut all = self.lock();
            loop {
                let (nth, chunks) = all.as_mut()?.iter_mut().enumerate().max_by_key(|(_, chunks)| chunks.len())?;
                match chunks.pop() {
                    Some(chunk) => return Some((nth, chunk)),
                    None => all = self.more.wait(all).unwrap_or_else(PoisonError::into_inner),
                }
            }
        }
    }

    /// Ends the threads that fill, however a thread that copies ends.
    struct Closing<'a>(&'a Empty);

    impl Drop for Closing<'_> {
        fn drop(&mut self) {
            let rest = self.0.lock().take();
            self.0.more.notify_all();
            drop(rest); // without the lock: other GPUs may still be measured
        }
    }

    /// Fills chunks until no more come.
    fn fill(case: &Case, first: usize, empty: &Empty, filled: &[Sender<Result<Chunk, BoxError>>]) {
        let mut index = first;
        while let Some((nth, mut chunk)) = empty.take() {
            let done = rows(case, &mut index, &mut chunk).map(|()| chunk);
            if filled[nth].send(done).is_err() {
                return;
            }
        }
    }

    fn rows(case: &Case, index: &mut usize, chunk: &mut Chunk) -> Result<(), BoxError> {
        for row in chunk.as_mut_slice()?.chunks_exact_mut(ROW) {
            Item { store: case.store, index: *index }.write(row)?;
            *index += 1;
        }
        Ok(())
    }

    /// Memory on both sides of a link.
    struct Link {
        nth: usize,
        stream: Arc<CudaStream>,
        chunks: Vec<Chunk>,
        device: CudaSlice<u8>,
        /// Of one batch.
        per_batch: usize,
    }

    impl Link {
        fn new(nth: usize, per_batch: usize) -> Result<Self, BoxError> {
            let context = context(nth).ok_or("there is no such GPU")?;
            let stream = context.new_stream()?;
            let chunk = |context: &Arc<CudaContext>| -> Result<Chunk, DriverError> {
                // SAFETY: plain bytes, all written in the next line.
                #[expect(unsafe_code, reason = "cudarc leaves fresh memory uninitialised")]
                let mut chunk = unsafe { context.alloc_pinned_with_flags(ROWS * ROW, CU_MEMHOSTALLOC_PORTABLE) }?;
                chunk.as_mut_slice()?.fill(1);
                Ok(chunk)
            };
            let chunks = (0..BATCHES * per_batch).map(|_| chunk(&context)).collect::<Result<_, _>>()?;
            let device = stream.alloc_zeros::<u8>(ROWS * ROW)?;
            Ok(Self { nth, stream, chunks, device, per_batch })
        }

        /// Copies what the threads fill until the window is over. Returns GB/s.
        fn copy(
            mut self,
            empty: &Empty,
            ready: &Receiver<Result<Chunk, BoxError>>,
            whole: bool,
            window: Window,
        ) -> Result<f64, BoxError> {
            empty.give(self.nth, self.chunks.drain(..));
            let mut under_way: VecDeque<(Vec<Chunk>, CudaEvent)> = VecDeque::new();
            let (mut copied, mut before) = (0.0, Instant::now());
            while !window.is_over(before) {
                let mut batch = Vec::with_capacity(self.per_batch);
                for _ in 0..self.per_batch {
                    // Nothing is filled once the window of any GPU is over.
                    let Ok(chunk) = ready.recv() else { break };
                    let chunk = chunk?;
                    if !whole {
                        self.stream.memcpy_htod(&chunk, &mut self.device)?;
                    }
                    batch.push(chunk);
                }
                for chunk in batch.iter().filter(|_| whole) {
                    self.stream.memcpy_htod(chunk, &mut self.device)?;
                }
                let done = self.stream.record_event(Some(CUevent_flags::CU_EVENT_BLOCKING_SYNC))?;
                under_way.push_back((batch, done));
                if under_way.len() < ON_THE_WAY {
                    continue;
                }
                let Some((batch, done)) = under_way.pop_front() else { continue };
                done.synchronize()?;
                let now = Instant::now();
                copied += window.share(before, now) * (batch.len() * ROWS * ROW) as f64;
                before = now;
                empty.give(self.nth, batch);
            }
            self.stream.synchronize()?;
            Ok(copied / window.seconds() / 1e9)
        }
    }
}
