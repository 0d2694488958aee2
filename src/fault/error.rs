//! The errors of a loader, with place and sample.

use super::{
    FieldError,
    left_out::LeftOut,
    machine::{as_one, causes, is_lack, says_lack},
    panics::catch,
};
use crate::vocabulary::Place;
use std::{backtrace::Backtrace, error::Error as StdError, fmt, io, sync::Arc, time::Duration};

/// Any error from a dataset, an augmentation or a collate.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// A call of user code, an allocator or a driver that has not returned for a long time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HungCall {
    /// The thread that made the call.
    pub thread: String,
    /// What the call is for.
    pub place: Place,
    /// How long the call has lasted. Samples of less than 32 KiB are timed in groups: then it is the time of a group of
    /// at most 32 samples.
    pub since: Duration,
}

impl fmt::Display for HungCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} has been in {} for {:.1?}", self.thread, self.place, self.since)
    }
}

/// Everything that a loader can report.
///
/// Burn's `DataLoader` yields it inside a `DatasetError`; [`Error::of`] gets it out.
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
    /// An option of the builder, or a parameter of an augmentation, is wrong.
    #[error("`{option}`: {problem}; {advice}")]
    Config {
        /// The method that sets it.
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
    /// User code panicked. The thread continues.
    #[error("{place} panicked: {message}")]
    Panicked {
        /// Where.
        place: Place,
        /// The panic's message.
        message: String,
        /// The backtrace, which shows where in the user's code the panic occurred. It is captured only if
        /// `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE` enables backtraces. To capture it, the first `iter()` of the
        /// process installs a panic hook in front of the program's own hook. The program's hook runs for the first
        /// panic at each place in the code; each later panic is one line on stderr. If the program sets another hook
        /// later, it replaces this one, and there is no backtrace.
        trace: Option<Arc<Backtrace>>,
    },
    /// More bad samples than [`Quota`](crate::fault::Quota) allows.
    #[error(
        "{place}: {skipped} bad samples in this epoch so far, but only {quota} may be skipped; {}",
        list(first, *skipped)
    )]
    QuotaExceeded {
        /// The batch that exceeded the quota, or a later batch that also skipped samples. None of its samples is
        /// delivered.
        place: Place,
        /// The number of samples skipped in this epoch so far, counted in the order of its batches.
        skipped: usize,
        /// How many samples may be skipped.
        quota: usize,
        /// The errors of the first skipped samples, at most 16, each with its place.
        #[debug("{}", list(first.get(..3).unwrap_or(first), *skipped))]
        first: Vec<Arc<Error>>,
    },
    /// All samples of a batch were skipped or left out, in an epoch that several processes or devices share. The others
    /// have a batch in its place.
    #[error("{place}: all {skipped} samples were skipped or left out, but the other processes have a batch here")]
    AllSkipped {
        /// The batch.
        place: Place,
        /// How many samples it had.
        skipped: usize,
    },
    /// All samples of an epoch were skipped or left out, so it has no batches.
    #[error(
        "no sample of epoch {epoch} is delivered: {left_out} were left out, and {skipped} were bad{}",
        first.first().map_or_else(String::new, |_| format!("; {}", list(first, *skipped)))
    )]
    NoGoodSample {
        /// The epoch of the loader, from 0.
        epoch: usize,
        /// How many of its samples were bad, in this process.
        skipped: usize,
        /// How many were left out.
        left_out: usize,
        /// The errors of the first skipped samples, at most 16, each with its place.
        #[debug("{}", list(first.get(..3).unwrap_or(first), *skipped))]
        first: Vec<Arc<Error>>,
    },
    /// A sample was bad, and none of the samples tried after it could replace it.
    #[error("{source}; none of the {tries} samples after it in the dataset was good either")]
    NoReplacement {
        /// How many samples after it were tried.
        tries: usize,
        /// The error of the bad sample itself.
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
    /// The sampler ended before it had given the promised number of units, or a batch sampler gave an empty batch.
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
        /// How many samples the batch has.
        got: usize,
        /// The promised maximum.
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
    /// A batch is larger than the loader's limit on slot memory.
    #[error(
        "a batch of {bytes} bytes does not fit the limit of {limit} bytes; raise `pinned_limit` or lower `batch_size`"
    )]
    OverLimit {
        /// The size of the batch.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// No slot was free for too long while the step waited. The epoch is over.
    #[error("no slot of {slots} came back within {waited:.1?}: {}", holders(*iterators, *kept))]
    LeaseTimeout {
        /// How long `next()` waited.
        waited: Duration,
        /// The number of slots of the pool.
        slots: usize,
        /// How many other iterators the loader has.
        iterators: usize,
        /// How many batches the training loop keeps, if that is why no memory is free. On an accelerator, such batches
        /// hold no slots.
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
        /// How many further batches of the epoch are lost. This batch is not included: it counts as returned.
        lost: usize,
        /// The longest running call for this batch or, if there is none, for any batch. `None` if no thread is in a
        /// call.
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
    /// The process was forked after the loader started its threads, and the child process does not have them. The epoch
    /// is over.
    #[error(
        "this process is a fork of process {parent}, which has the loader's threads: build a loader here, after the fork"
    )]
    Forked {
        /// The ID of the process that started the threads.
        parent: u32,
    },
    /// A thread of the loader itself ended early. This is a bug in this crate; please report it.
    #[error("the loader has ended, because one of its threads died; please report this")]
    Ended,
}

/// For `?` on constructors of augmentations.
impl From<burn_augment::Error> for Error {
    fn from(burn_augment::Error { option, problem, advice, .. }: burn_augment::Error) -> Self {
        Self::Config { option, problem, advice }
    }
}

impl Error {
    /// Returns the loader's error inside the error that Burn's `DataLoader` yields, if there is one.
    pub fn of(error: &burn::data::dataset::DatasetError) -> Option<&Self> {
        error.source()?.downcast_ref()
    }

    /// Returns the place of the error, if it has one.
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

    /// Returns the error with the index of another sample.
    pub(crate) fn of_index(mut self, index: usize) -> Self {
        if let Self::Failed { place, .. } | Self::Panicked { place, .. } = &mut self {
            place.index = Some(index);
        }
        self
    }

    /// Returns the error with the place of the batch that it is for.
    pub(crate) fn of_place(mut self, batch: Place) -> Self {
        if let Self::Failed { place, .. } | Self::Panicked { place, .. } = &mut self {
            *place = batch;
        }
        self
    }

    /// Whether a sample is left out, so that it is not bad.
    pub(crate) fn leaves_out(&self) -> bool {
        matches!(self, Self::Failed { place, source } if place.index.is_some() && is_left_out(&**source))
    }

    /// Whether one sample is to blame, so that a policy may skip or replace it. If the machine has run out of files or
    /// memory, no sample is to blame.
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

/// Whether an error or one of its sources is [`LeftOut`]. A transparent error has only its text.
pub(crate) fn is_left_out(error: &(dyn StdError + 'static)) -> bool {
    let says_it = |text: String| text == LeftOut.to_string();
    causes(error).any(|cause| as_one::<LeftOut>(cause).is_some() || catch(|| cause.to_string()).is_ok_and(says_it))
}

/// Whether an error or one of its sources is a fault of the program: a field that is not in the layout, that gets
/// another dtype, or that is not an image field.
fn is_of_the_program(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| {
        // A transparent error hides its inner error, but has the same text. `Display` is user code.
        as_one(cause).is_some_and(FieldError::is_of_the_program)
            || catch(|| cause.to_string()).is_ok_and(|text| FieldError::says_the_program(&text))
    })
}

/// Describes what may hold the slots, or the memory of batches.
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

/// Lists the errors, one per line.
fn list(errors: &[Arc<Error>], of: usize) -> String {
    let lines: String = errors.iter().map(|error| format!("\n  {error}")).collect();
    format!("the first {} of {of}:{lines}", errors.len())
}
