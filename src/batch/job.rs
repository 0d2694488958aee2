//! The job that the tasks of one batch share. Each task adds its part, and the last one makes the batch.

use super::{
    next::{Next, Ready},
    samples::BatchPlan,
};
use crate::{
    fault::{Error, Skips, discard},
    sync::locks::Mutex,
    vocabulary::Stage,
};
use std::{
    mem,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// A batch while tasks work on it. `P` are the parts that they make together.
pub(super) struct Job<S, P> {
    pub(super) source: Arc<S>,
    pub(super) plan: Arc<BatchPlan>,
    made: Mutex<Made<P>>,
}

struct Made<P> {
    /// The tasks that have not ended.
    tasks: usize,
    /// The failure that comes first in the batch's order, whichever worker met it and when.
    failed: Option<(usize, Error)>,
    skips: Skips,
    /// `None` once the last task has taken the parts.
    parts: Option<P>,
}

impl<S, P> Job<S, P> {
    pub(super) fn new(source: Arc<S>, plan: Arc<BatchPlan>, tasks: usize, parts: P) -> Arc<Self> {
        let (failed, skips, parts) = (None, Skips::default(), Some(parts));
        Arc::new(Self { source, plan, made: Mutex::new(Made { tasks, failed, skips, parts }) })
    }

    /// Ends a task: notes its failure and its bad samples, and lets it `add` its part. The last task makes the batch of
    /// all parts, unless a task has failed or all samples are skipped. An abandoned batch is not made: rows may be
    /// missing, and user code sees whole batches only.
    pub(super) fn end<O>(
        &self,
        filled: Result<(), (usize, Error)>,
        skips: Skips,
        add: impl FnOnce(&mut P),
        make: impl FnOnce(P, &Skips) -> Result<Next<O>, Error>,
    ) -> Option<(Result<Next<O>, Error>, Skips)> {
        // Errors that are dropped after the lock: those beyond the listed ones, and the failure behind the other one.
        let mut later = filled.err();
        let _too_many;
        let mut made = self.made.lock();
        if let Some(parts) = &mut made.parts {
            add(parts);
        }
        _too_many = made.skips.merge(skips);
        if let Some((position, _)) = &later
            && made.failed.as_ref().is_none_or(|(earlier, _)| position < earlier)
        {
            mem::swap(&mut made.failed, &mut later);
        }
        made.tasks -= 1;
        if made.tasks > 0 {
            return None;
        }
        let (failed, skips, parts) = (made.failed.take(), mem::take(&mut made.skips), made.parts.take()?);
        drop(made);
        if self.plan.abandoned.load(Relaxed) {
            discard(self.plan.place(Stage::Finish), failed);
            return None;
        }
        let batch = match failed {
            Some((_, error)) => Err(error),
            None if skips.skipped.len() == self.plan.indices.len() => Ok(Next::Ready(Ready::Empty)),
            None => make(parts, &skips),
        };
        Some((batch, skips))
    }
}
