//! What can go wrong, where, and for which sample.

use super::{
    FieldError,
    machine::{as_one, causes, is_lack, says_lack},
    panics::catch,
};
use crate::vocabulary::Place;
use std::{backtrace::Backtrace, error::Error as StdError, fmt, io, sync::Arc, time::Duration};

/// Any error of a dataset, an augmentation or a collate.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// A call of user code, of an allocator or of a driver that has not returned for a long time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HungCall {
    /// The thread that made the call.
    pub thread: String,
    /// What the call is for.
    pub place: Place,
    /// How long the call has lasted. For samples of less than 32 KiB, it is how long a group of at most 32 of them has
    /// lasted.
    pub since: Duration,
}

impl fmt::Display for HungCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} has been in {} for {:.1?}", self.thread, self.place, self.since)
    }
}

/// Everything that a loader can report.
///
/// Burn's `DataLoader` yields it inside a `DatasetError`; [`Error::of`] finds it there again.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn_pinned::Error;
/// # use burn::{prelude::*, tensor::DType};
/// # use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
/// # struct Roots;
/// # impl Collate<f32> for Roots {
/// #     type Batch = Tensor<1>;
/// #     fn layout(&self) -> Vec<Field> { vec![Field::new("x", DType::F32, [])] }
/// #     fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> {
/// #         if *x < 0.0 {
/// #             return Err(format!("{x} has no root").into());
/// #         }
/// #         Ok(row.put("x", x.sqrt())?)
/// #     }
/// #     fn finish(&self, mut batch: RawBatch) -> Result<Tensor<1>, BoxError> { Ok(batch.take("x")?) }
/// # }
///
/// let dataset = InMemDataset::new(vec![4.0f32, 9.0, -1.0, 16.0]);
/// let loader = PinnedDataLoaderBuilder::new(Roots).batch_size(2).build(dataset)?;
/// for batch in loader.iter() {
///     match batch {
///         Ok(_roots) => { /* a training step */ }
///         Err(error) => match Error::of(&error) {
///             Some(Error::Failed { place, source }) => {
///                 assert_eq!((place.batch, place.index), (1, Some(2)));
///                 assert_eq!(source.to_string(), "-1 has no root");
///             }
///             _ => panic!("{error}"),
///         },
///     }
/// }
/// # Ok::<(), burn_pinned::Error>(())
/// ```
#[derive(derive_more::Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option of the builder, or a parameter of an augmentation, is wrong. `advice` says what to write instead.
    #[error("`{option}`: {problem}; {advice}")]
    Config {
        /// The method that took it.
        option: &'static str,
        /// What is wrong with its value.
        problem: String,
        /// What to write instead.
        advice: String,
    },
    /// User code returned an error.
    #[error("{place}: {source}")]
    Failed {
        /// Where.
        place: Place,
        /// What it returned.
        source: BoxError,
    },
    /// User code panicked; the thread lives on.
    #[error("{place} panicked: {message}")]
    Panicked {
        /// Where.
        place: Place,
        /// The panic's message.
        message: String,
        /// The backtrace, which shows where in the user's code it happened. It is there if `RUST_BACKTRACE` or
        /// `RUST_LIB_BACKTRACE` asks for backtraces. To take it, the first `iter()` of the process puts a panic hook
        /// before the program's own. The program's own is called for the first panic at each place of the code. For
        /// each later one there is a line on stderr. A hook that is set later replaces this one, and then there is no
        /// backtrace.
        trace: Option<Arc<Backtrace>>,
    },
    /// More bad samples than [`Quota`](crate::fault::Quota) allows.
    #[error(
        "{place}: {skipped} bad samples in this epoch so far, but only {quota} may be skipped; {}",
        list(first, *skipped)
    )]
    QuotaExceeded {
        /// The batch that went beyond the quota, or a later batch that skipped samples too. None of its samples is
        /// delivered.
        place: Place,
        /// The number of samples skipped in this epoch so far, in the order of its batches.
        skipped: usize,
        /// How many samples may be skipped.
        quota: usize,
        /// The errors of the first skipped samples, at most 16, each with its place.
        #[debug("{}", list(first.get(..3).unwrap_or(first), *skipped))]
        first: Vec<Arc<Error>>,
    },
    /// All samples of a batch were skipped, in an epoch that several processes share. The other processes have a batch
    /// at its place.
    #[error("{place}: all {skipped} samples of the batch were skipped, but the other processes have a batch here")]
    AllSkipped {
        /// The batch.
        place: Place,
        /// How many samples it had.
        skipped: usize,
    },
    /// All samples of an epoch were skipped, so it has no batches.
    #[error("no sample of epoch {epoch} was good: all {skipped} were skipped; {}", list(first, *skipped))]
    NoGoodSample {
        /// The epoch of the loader, from 0.
        epoch: usize,
        /// How many samples it had, in this process.
        skipped: usize,
        /// The errors of the first skipped samples, at most 16, each with its place.
        #[debug("{}", list(first.get(..3).unwrap_or(first), *skipped))]
        first: Vec<Arc<Error>>,
    },
    /// A sample was bad, and none behind it could take its place.
    #[error("{source}; none of the {tries} samples after it in the dataset was good either")]
    NoReplacement {
        /// How many samples behind it were tried.
        tries: usize,
        /// What was wrong with the sample itself.
        source: Box<Error>,
    },
    /// The sampler named an index that the dataset does not have.
    #[error("{place}: the sampler's index {index} is out of range for a dataset of {len} items")]
    IndexOutOfRange {
        /// Where.
        place: Place,
        /// The sampler's index.
        index: usize,
        /// The dataset's length.
        len: usize,
    },
    /// The sampler ended before it had given what it promised, or a batch sampler gave an empty batch.
    #[error("{place}: the sampler ended after {got} of the {promised} samples or batches that it promised")]
    SamplerEnded {
        /// Where.
        place: Place,
        /// How many samples the sampler gave; for a batch sampler, how many batches.
        got: usize,
        /// How many were promised.
        promised: usize,
    },
    /// A batch sampler gave a larger batch than its `max_batch_size` promised.
    #[error("{place}: the batch sampler gave {got} samples, but its `max_batch_size` promised at most {max}")]
    LargeBatch {
        /// Where.
        place: Place,
        /// How many samples it gave.
        got: usize,
        /// The most samples that it promised.
        max: usize,
    },
    /// The device refused an upload or a synchronisation.
    #[error("{place}: the device failed: {message}")]
    Device {
        /// Where.
        place: Place,
        /// Burn's message.
        message: String,
    },
    /// Host memory for the slots could not be allocated.
    #[error("{bytes} bytes of {kind} memory for a slot could not be allocated: {message}")]
    OutOfHostMemory {
        /// `page-locked`, `pageable`, or `host` if the memory was refused before its kind was known.
        kind: &'static str,
        /// The size of the slot.
        bytes: usize,
        /// The allocator's message.
        message: String,
    },
    /// One batch is larger than the loader's limit on slot memory.
    #[error(
        "a batch of {bytes} bytes does not fit the limit of {limit} bytes; raise `pinned_limit` or lower `batch_size`"
    )]
    OverLimit {
        /// The size of the batch.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The step has waited too long, and a slot is lacking. The epoch is over.
    #[error("no slot of {slots} came back within {waited:.1?}: {}", holders(*iterators, *kept))]
    LeaseTimeout {
        /// How long `next()` waited.
        waited: Duration,
        /// The number of slots of the pool.
        slots: usize,
        /// How many other iterators the loader has.
        iterators: usize,
        /// How many batches the training loop keeps, if memory is lacking for that. On an accelerator they hold none.
        kept: usize,
    },
    /// A batch did not come within [`timeout`](crate::PinnedDataLoaderBuilder::timeout). The epoch is over.
    #[error(
        "batch {batch} of epoch {epoch}{} did not come within {waited:.1?}, and the {lost} batches behind it are lost; {}",
        device.map_or_else(String::new, |device| format!(", for device {device},")),
        hung.as_ref().map_or_else(|| "no thread hangs in a call: raise `timeout`, or drop other iterators".into(), ToString::to_string)
    )]
    Timeout {
        /// The epoch of the loader, from 0.
        epoch: usize,
        /// The batch of the epoch, from 0.
        batch: usize,
        /// The device that the batch is for, from 0, if the loader is cut for several.
        device: Option<u16>,
        /// How long `next()` waited.
        waited: Duration,
        /// How many batches of the epoch come no more, without this one. It counts as returned.
        lost: usize,
        /// The longest call on this batch or, if there is none, the longest call on any batch. `None` if no thread is
        /// in a call.
        hung: Option<Box<HungCall>>,
    },
    /// A thread of the loader could not be started.
    #[error("the thread {name} could not be started: {source}")]
    Spawn {
        /// The thread's name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The process has forked since the loader started its threads, and a child has none of them. The epoch is over.
    #[error(
        "this process is a fork of process {parent}, which has the loader's threads: build a loader here, after the fork"
    )]
    Forked {
        /// The number of the process that started the threads.
        parent: u32,
    },
    /// A thread of the loader itself ended early: a fault of this crate, please report it.
    #[error("the loader has ended, because one of its threads died; please report this")]
    Ended,
}

/// So `?` works on the parameters of augmentations.
impl From<burn_augment::Error> for Error {
    fn from(burn_augment::Error { option, problem, advice, .. }: burn_augment::Error) -> Self {
        Self::Config { option, problem, advice }
    }
}

impl Error {
    /// Returns the loader's error inside what Burn's `DataLoader` yields, if there is one.
    pub fn of(error: &burn::data::dataset::DatasetError) -> Option<&Self> {
        error.source()?.downcast_ref()
    }

    /// Returns where the error came from, for errors that have a place.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Failed { place, .. }
            | Self::Panicked { place, .. }
            | Self::IndexOutOfRange { place, .. }
            | Self::SamplerEnded { place, .. }
            | Self::LargeBatch { place, .. }
            | Self::QuotaExceeded { place, .. }
            | Self::AllSkipped { place, .. }
            | Self::Device { place, .. } => Some(place),
            Self::NoReplacement { source, .. } => source.place(),
            Self::Timeout { hung, .. } => hung.as_ref().map(|hung| &hung.place),
            _ => None,
        }
    }

    /// Returns the error with the index of another sample in its place.
    pub(crate) fn of_index(mut self, index: usize) -> Self {
        if let Self::Failed { place, .. } | Self::Panicked { place, .. } = &mut self {
            place.index = Some(index);
        }
        self
    }

    /// Whether one sample is to blame. A policy may leave that sample out or replace it. If files or memory are
    /// lacking, the machine is to blame.
    pub(crate) fn is_of_a_sample(&self) -> bool {
        match self {
            Self::Failed { place, source } => {
                place.index.is_some() && !is_of_the_program(&**source) && !is_lack(&**source)
            }
            Self::Panicked { place, message, .. } => place.index.is_some() && !says_lack(message),
            _ => false,
        }
    }

    pub(crate) fn config(option: &'static str, problem: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Config { option, problem: problem.into(), advice: advice.into() }
    }
}

/// Whether an error, or one that it was made from, is a fault of the program: a field that is not in the layout, that is
/// given another dtype, or that is no field of images.
fn is_of_the_program(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| {
        // A transparent error hides the one in it, but has its text. `Display` is user code.
        as_one(cause).is_some_and(FieldError::is_of_the_program)
            || catch(|| cause.to_string()).is_ok_and(|text| FieldError::says_the_program(&text))
    })
}

/// What may hold the slots, or the memory of batches.
fn holders(iterators: usize, kept: usize) -> String {
    let of = |count: usize, what: &str, more: &str| format!("{count} {what}{}", if count == 1 { "" } else { more });
    match (iterators, kept) {
        (0, 0) => "copies to the device do not end, or other loaders hold the memory of a shared limit".into(),
        (0, kept) => {
            let kept = of(kept, "batch", "es");
            format!("the training loop keeps {kept}, and the allocator gives no more; drop them, or raise the limit")
        }
        (iterators, 0) => {
            let others = of(iterators, "other iterator", "s");
            format!("the loader has {others}; drop those that are not read")
        }
        (iterators, kept) => {
            let (others, kept) = (of(iterators, "other iterator", "s"), of(kept, "batch", "es"));
            format!("the loader has {others}, and the training loop keeps {kept}; drop what is not read any more")
        }
    }
}

/// Lists the errors, one on each line.
fn list(errors: &[Arc<Error>], of: usize) -> String {
    let lines: String = errors.iter().map(|error| format!("\n  {error}")).collect();
    format!("the first {} of {of}:{lines}", errors.len())
}
