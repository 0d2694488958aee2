//! The statistics between two snapshots.

use super::{
    report::{Queues, Stages, Stats},
    stage::StageStats,
};

impl Stats {
    /// Returns the statistics since an earlier snapshot of the same loader, for example of one epoch, or without the
    /// first steps, in which a device compiles. Counts and times are the differences. Percentiles, peaks and current
    /// values (`workers`, `host_bytes`, `memory` and so on) are from this snapshot.
    ///
    /// ```
    /// # use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
    /// # use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
    /// # struct Squares;
    /// # impl Collate<f32> for Squares {
    /// #     type Batch = Tensor<1>;
    /// #     fn layout(&self) -> Vec<Field> { vec![Field::new("x", DType::F32, [])] }
    /// #     fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> { Ok(row.put("x", x * x)?) }
    /// #     fn finish(&self, mut batch: RawBatch) -> Result<Tensor<1>, BoxError> { Ok(batch.take("x")?) }
    /// # }
    /// # let loader = PinnedDataLoaderBuilder::new(Squares).batch_size(2).build(InMemDataset::new(vec![1.0, 2.0, 3.0]))?;
    /// for epoch in 0..3 {
    ///     let before = loader.stats();
    ///     for batch in loader.iter() { /* train */ }
    ///     let stats = loader.stats().since(&before);
    ///     assert_eq!((stats.epochs, stats.batches), (1, 2));
    ///     println!("epoch {epoch}: {}", stats.verdict());
    /// }
    /// # Ok::<(), burn_pinned::Error>(())
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        macro_rules! less {
            ($($field:ident)*) => {
                Self {
                    $($field: self.$field.saturating_sub(earlier.$field),)*
                    queues: self.queues.since((self.stages.wait.count, &earlier.queues, earlier.stages.wait.count)),
                    warm_up: None,
                    ..self.clone()
                }
            };
        }
        let counts = less!(
            batches items errors faults skipped replaced epochs waited stepped start_waited copies_had workers_had kept_wait
            filtered asked_to_wait looked slept sent_bytes allocations late_allocations allocating
        );
        Self { stages: Stages::from_fn(|stage| self.stages.of(stage).since(earlier.stages.of(stage))), ..counts }
    }
}

impl StageStats {
    fn since(&self, earlier: &Self) -> Self {
        let (count, busy) = (self.count.saturating_sub(earlier.count), self.busy.saturating_sub(earlier.busy));
        Self { count, busy, ..*self }
    }
}

impl Queues {
    /// Returns the means over the calls of `next()` that `earlier` does not count.
    fn since(&self, (calls, earlier, before): (u64, &Self, u64)) -> Self {
        let (all, before) = (calls as f64, before as f64);
        let mean = |now: f64, then: f64| if all > before { (now * all - then * before) / (all - before) } else { 0.0 };
        Self {
            open: mean(self.open, earlier.open),
            to_pin: mean(self.to_pin, earlier.to_pin),
            to_send: mean(self.to_send, earlier.to_send),
            ready: mean(self.ready, earlier.ready),
        }
    }
}
