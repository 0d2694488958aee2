//! The same bytes over the same links without a loader: threads that copy rows into page-locked memory, and a thread for
//! each GPU that copies it there. What this gives is what the host's memory allows.

use crate::{batch::Case, window::Start};
use burn_pinned::BoxError;

/// GB/s of each GPU.
#[cfg(not(feature = "cuda"))]
pub(crate) fn feed(_: &Case, _: usize, _: usize, _: &Start) -> Result<Vec<f64>, BoxError> {
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
        feed::part,
        links::context,
        window::{Window, joined},
    };
    use cudarc::driver::{
        CudaContext, CudaEvent, CudaSlice, CudaStream, DriverError, PinnedHostSlice, sys::CUevent_flags,
    };
    use std::{
        collections::VecDeque,
        sync::{
            Arc, Mutex, PoisonError,
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

    pub(crate) fn feed(case: &Case, devices: usize, workers: usize, start: &Start) -> Result<Vec<f64>, BoxError> {
        thread::scope(|scope| {
            let mut copiers = Vec::new();
            for nth in 0..devices {
                let (free, waiting) = channel();
                let (filled, ready) = channel();
                let waiting = Arc::new(Mutex::new(waiting));
                for worker in 0..part(workers, devices, nth) {
                    let (waiting, filled) = (Arc::clone(&waiting), filled.clone());
                    scope.spawn(move || fill(case, (nth << 40) + (worker << 20), &waiting, &filled));
                }
                copiers.push(scope.spawn(move || {
                    let link = Link::new(nth, case.batch / ROWS);
                    let window = start.wait();
                    link?.copy(&free, &ready, window)
                }));
            }
            joined(copiers, "a thread that copies panicked")
        })
    }

    /// Fills chunks until no more come.
    fn fill(case: &Case, first: usize, waiting: &Mutex<Receiver<Chunk>>, filled: &Sender<Result<Chunk, BoxError>>) {
        let mut index = first;
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(mut chunk) = next else { return };
            let done = rows(case, &mut index, &mut chunk).map(|()| chunk);
            if filled.send(done).is_err() {
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
                // SAFETY: plain bytes, and `fill` writes them before they are read.
                #[expect(unsafe_code, reason = "cudarc leaves fresh memory uninitialised")]
                let mut chunk = unsafe { context.alloc_pinned::<u8>(ROWS * ROW) }?;
                chunk.as_mut_slice()?.fill(1);
                Ok(chunk)
            };
            let chunks = (0..BATCHES * per_batch).map(|_| chunk(&context)).collect::<Result<_, _>>()?;
            let device = stream.alloc_zeros::<u8>(ROWS * ROW)?;
            Ok(Self { stream, chunks, device, per_batch })
        }

        /// Copies what the threads fill until the window is over. Returns GB/s.
        fn copy(
            mut self,
            free: &Sender<Chunk>,
            ready: &Receiver<Result<Chunk, BoxError>>,
            window: Window,
        ) -> Result<f64, BoxError> {
            let give = |chunk| free.send(chunk).map_err(|_| "the threads that fill have gone");
            self.chunks.drain(..).try_for_each(give)?;
            let mut under_way: VecDeque<(Vec<Chunk>, CudaEvent)> = VecDeque::new();
            let (mut copied, mut before) = (0.0, Instant::now());
            while !window.is_over(before) {
                let mut batch = Vec::with_capacity(self.per_batch);
                for _ in 0..self.per_batch {
                    let chunk = ready.recv()??;
                    self.stream.memcpy_htod(&chunk, &mut self.device)?;
                    batch.push(chunk);
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
                batch.into_iter().try_for_each(give)?;
            }
            self.stream.synchronize()?;
            Ok(copied / window.seconds() / 1e9)
        }
    }
}
