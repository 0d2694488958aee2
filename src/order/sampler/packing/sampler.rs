//! The sampler that packs documents.

use super::{batches::batches, best_fit::BestFit, plan::PackingPlan, plan_file, too_long::TooLong, window::Packing};
use crate::{
    fault::Error,
    observe::warn,
    order::{
        draw::{SharedPlan, check_count},
        sampler::{
            base::Sampler,
            batch::{BatchSampler, EpochBatches},
        },
    },
    sync::locks::Mutex,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// How many documents a window has by default.
const WINDOW: usize = 4096;
/// No plan can reach the end of a longer order.
const LONGEST_ORDER: u64 = 1 << 40;

/// Makes batches of documents that fill rows of a fixed number of tokens, with hardly any padding.
///
/// It is for language models. `text::PackTokens` makes the rows from the documents of a batch.
///
/// ```
/// use burn_pinned::order::{BatchSampler, PackingSampler, RandomSampler};
///
/// let lengths: Vec<u32> = (0..1000).map(|document| 10 + document * 7919 % 500).collect();
/// let sampler = PackingSampler::new(RandomSampler::new(42), lengths.clone(), 512, 8)?; // batches of 8 rows of 512 tokens
/// sampler.check(1000)?; // `build` does this too
/// let mut documents: Vec<usize> = Vec::new();
/// for batch in sampler.batches(1000, 0).batches {
///     let tokens: u32 = batch.iter().map(|document| lengths[*document]).sum();
///     assert!(tokens <= 8 * 512);
///     documents.extend(batch);
/// }
/// documents.sort();
/// assert!(documents.into_iter().eq(0..1000)); // each document once
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// # The batches
/// The order is cut into windows of some thousand documents. The documents of a window are packed into rows by best fit: the longest first,
/// each into the fullest row with enough free space. The rows are shuffled and cut into batches. If the rows do not divide evenly into
/// batches, the emptiest rows are left over, and their documents go into the next window. So every batch except the last of an epoch has
/// `batch_size` rows, and padding is only at the ends of rows. Each document occurs as often as in the order, in one piece, in a batch near
/// its position in the order. Documents without tokens are in no batch. The documents of a batch are sorted from the longest to the
/// shortest.
///
/// The batches depend only on the order, the epoch, the lengths and the options of the sampler. So they are the same in each process and
/// after a [resume](crate::LoaderState).
///
/// # Time and memory
/// An epoch is planned when it begins: all windows are packed once, and the plan notes the documents that each window passes to the next
/// one. After that, any batch costs only the packing of its window. The plan takes 16 bytes per window, and 4 bytes per document that was
/// passed on (8 from 2^32 documents). It is kept until another epoch is planned. Clones share it. With
/// [`save_plans_in`](Self::save_plans_in), a process that resumes an epoch reads its plan. The sampler keeps the lengths without copying
/// them.
#[derive(Clone, derive_more::Debug)]
#[debug("PackingSampler {{ {packing:?}, order: {} }}", order.fingerprint())]
#[debug(bounds(S: Sampler))]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct PackingSampler<S> {
    order: S,
    packing: Packing,
    folder: Option<PathBuf>,
    plan: Arc<SharedPlan<PackingPlan>>,
    /// The newest plan, because the loader needs it several times.
    newest: Arc<Mutex<Option<Arc<PackingPlan>>>>,
}

impl<S: Sampler> PackingSampler<S> {
    /// Packs the documents of `order` into rows of `row_tokens` tokens, and makes batches of `batch_size` rows.
    ///
    /// `lengths` has the number of tokens of each document, in the dataset's order. This function reads them once, which takes 0.1 s for
    /// 100 million documents.
    ///
    /// # Errors
    /// [`Error::Config`] if `row_tokens` is 0 or more than 16,777,216, or if `batch_size` is 0.
    ///
    /// [`check`](BatchSampler::check), which `build` calls, returns one if the number of lengths differs from the number of documents, if a
    /// document has more tokens than a row (see [`too_long`](Self::too_long)), or if the order is endless.
    pub fn new(
        order: S,
        lengths: impl AsRef<[u32]> + Send + Sync + 'static,
        row_tokens: usize,
        batch_size: usize,
    ) -> Result<Self, Error> {
        let row_tokens = BestFit::check("PackingSampler::new", row_tokens)?;
        if batch_size == 0 {
            return Err(Error::config("PackingSampler::new", "0 rows make no batch", "use at least 1"));
        }
        let packing = Packing::new(lengths, row_tokens, batch_size, WINDOW);
        Ok(Self { order, packing, folder: None, plan: Arc::default(), newest: Arc::default() })
    }

    /// Sets how many documents of the order are packed together. Default: 4,096.
    ///
    /// Larger windows need less padding, but move documents further from their position in the order. A window should
    /// have documents for several batches. Fewer documents than rows of a batch are an error of
    /// [`check`](BatchSampler::check).
    pub fn window(mut self, documents: usize) -> Self {
        self.packing.window = documents.max(1);
        self.unplanned()
    }

    /// Sets what happens to documents with more tokens than a row. Default: [`TooLong::Error`].
    ///
    /// With [`TooLong::Cut`], set the same on `text::PackTokens`.
    pub fn too_long(mut self, too_long: TooLong) -> Self {
        self.packing.too_long = too_long;
        self.unplanned()
    }

    /// Saves the plans of epochs in this folder, which is created if needed. A process that resumes an epoch then reads
    /// the plan instead of making it again. Use, for example, the folder of the checkpoints.
    ///
    /// The file name is `burn-pinned.plan-` and a hash of everything that the plan depends on. A corrupt file is not
    /// used. The four newest plans are kept. If a plan cannot be saved, the loader logs a warning.
    pub fn save_plans_in(self, folder: impl AsRef<Path>) -> Self {
        Self { folder: Some(folder.as_ref().into()), ..self }
    }

    /// Stops sharing the plan with clones of this sampler.
    fn unplanned(self) -> Self {
        Self { plan: Arc::default(), newest: Arc::default(), ..self }
    }

    /// The number of documents of the dataset that are in batches.
    fn packed_documents(&self) -> usize {
        let Packing { filled, too_many, too_long, .. } = self.packing;
        if too_long == TooLong::Drop { filled - too_many } else { filled }
    }

    /// Logs how many documents and tokens are in no batch.
    fn say_what_is_left_out(&self) {
        let Packing { filled, too_many, row_tokens, too_long, .. } = self.packing;
        let lengths = self.packing.lengths();
        let documents = lengths.len();
        if filled < documents {
            log::info!("{} of {documents} documents have no tokens, and come in no batch", documents - filled);
        }
        if too_many == 0 {
            return;
        }
        let sum = |of: fn(u32, u32) -> u32| lengths.iter().map(|length| u64::from(of(*length, row_tokens))).sum();
        let all: u64 = sum(|length, _| length);
        let these = format!("{too_many} of {documents} documents have more tokens than a row of {row_tokens}");
        if too_long == TooLong::Drop {
            let dropped: u64 = sum(|length, row| if length > row { length } else { 0 });
            warn(&format!("{these}, and come in no batch: `TooLong::Drop` leaves out {dropped} of {all} tokens"));
        } else {
            let cut: u64 = sum(|length, row| length.saturating_sub(row));
            log::info!("{these}: `TooLong::Cut` leaves out {cut} of {all} tokens");
        }
    }

    /// Returns the plan of an epoch: a saved one, or one that is made now.
    fn plan_epoch(&self, dataset_len: usize, epoch: usize) -> PackingPlan {
        let len = self.order.len(dataset_len);
        let (windows, key) =
            (len.div_ceil(self.packing.window), plan_file::key(&format!("{self:?} {dataset_len} {epoch}")));
        if let Some(plan) = self.folder.as_ref().and_then(|folder| plan_file::read(folder, key, windows)) {
            return plan;
        }
        let mut order = self.order.indices(dataset_len, epoch).take(len);
        let plan = PackingPlan::new(&self.packing, &mut order, windows, epoch);
        if let Some(folder) = &self.folder
            && let Err(error) = plan_file::save(folder, key, &plan)
        {
            warn(&format!("the plan of an epoch is not saved in {}: {error}", folder.display()));
        }
        plan
    }
}

impl<S: Sampler> BatchSampler for PackingSampler<S> {
    fn batches(&self, dataset_len: usize, epoch: usize) -> EpochBatches {
        // The order is made before the plan: as long as this iterator lives, the plan's iterator shares what its sampler plans.
        let order = self.order.indices(dataset_len, epoch).take(self.order.len(dataset_len));
        let plan = self.plan.get_or_make(dataset_len, epoch, || self.plan_epoch(dataset_len, epoch));
        *self.newest.lock() = Some(Arc::clone(&plan));
        EpochBatches::new(plan.batches(), batches(self.packing.clone(), plan, order, epoch))
    }

    fn max_batch_size(&self, dataset_len: usize) -> usize {
        let row = self.packing.row_tokens / self.packing.shortest;
        self.packing.batch_size.saturating_mul(row as usize).min(self.order.len(dataset_len))
    }

    /// The number is exact if an epoch has each document once.
    fn num_items(&self, dataset_len: usize) -> usize {
        let all = self.packed_documents() as u128 * self.order.len(dataset_len) as u128;
        (all / dataset_len.max(1) as u128) as usize
    }

    fn repeats(&self) -> bool {
        self.order.repeats()
    }

    fn left_out(&self, dataset_len: usize) -> usize {
        self.order.left_out(dataset_len).max(dataset_len.saturating_sub(self.packed_documents()))
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        let Packing { too_many, row_tokens, batch_size, window, too_long, .. } = self.packing;
        let lengths = self.packing.lengths();
        let refuse = |problem: String, advice: &str| Err(Error::config("PackingSampler::new", problem, advice));
        check_count("PackingSampler::new", "lengths", lengths.len(), dataset_len)?;
        self.order.check(dataset_len)?;
        if self.order.len(dataset_len) as u64 > LONGEST_ORDER {
            let advice = "give it an order with an end: a loader begins an epoch after the other by itself, and \
                          `RepeatSampler::new(order, passes)` has several passes in one";
            return refuse("the order has no end, so its epoch cannot be planned".into(), advice);
        }
        if window < batch_size {
            let problem = format!("windows of {window} documents do not fill a batch of {batch_size} rows");
            return refuse(problem, &format!("use at least `.window({})`", batch_size.saturating_mul(16)));
        }
        if too_many > 0 && too_long == TooLong::Error {
            let first = lengths.iter().position(|length| *length > row_tokens).unwrap_or(0);
            let length = lengths[first];
            let problem =
                format!("document {first} has {length} tokens, but a row has {row_tokens} ({too_many} are too long)");
            return refuse(problem, "use longer rows, `.too_long(TooLong::Cut)` or `.too_long(TooLong::Drop)`");
        }
        if self.packed_documents() == 0 && too_many > 0 {
            let problem = format!(
                "no document has tokens that fit: all {too_many} have more than the {row_tokens} of a row, and `TooLong::Drop` leaves \
                 them out"
            );
            return refuse(problem, "use longer rows, or `.too_long(TooLong::Cut)`");
        }
        if self.packed_documents() == 0 {
            return refuse("no document has tokens to pack".into(), "give the number of tokens of each document");
        }
        self.say_what_is_left_out();
        Ok(())
    }
}
