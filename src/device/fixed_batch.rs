//! A batch that stays where it is on the device, for steps that are recorded once.

use super::{
    fixed::{Fixed, Values},
    tensors::{MapTensors, TensorMapper},
};
use crate::{
    fault::Error,
    sync::locks::Mutex,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::{Tensor, kind::Basic};
use std::{mem, slice};

/// Device tensors that stay where they are, while each batch brings new values. For a step that is recorded once, as a
/// CUDA graph, with Burn's [`capture`](burn::tensor::capture): a recorded step reads its inputs at the addresses that
/// they had when it was recorded.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn::{prelude::*, tensor::{DType, capture}};
/// use burn_pinned::{BoxError, Collate, Field, FixedBatch, PinnedDataLoaderBuilder, RawBatch, RowMut};
///
/// struct Numbers;
/// impl Collate<f32> for Numbers {
///     type Batch = Tensor<1>;
///     fn layout(&self) -> Vec<Field> { vec![Field::new("x", DType::F32, [])] }
///     fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> { Ok(row.put("x", *x)?) }
///     fn finish(&self, mut batch: RawBatch) -> Result<Tensor<1>, BoxError> { Ok(batch.take("x")?) }
/// }
///
/// let dataset = InMemDataset::new((0..100).map(|n| n as f32).collect());
/// let builder = PinnedDataLoaderBuilder::new(Numbers).batch_size(10).drop_last(true);
/// let loader = builder.build(dataset)?;
/// let mut batches = loader.iter();
/// let fixed = FixedBatch::new(batches.next().ok_or("no batch")??)?;
/// let mut step = capture(&fixed.batch().device(), || fixed.batch().sum());
/// for batch in batches {
///     fixed.set(batch?)?;
///     // SAFETY: the batch and the output live, and only this thread uses them.
///     let _sum = unsafe { step.replay() };
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`set`](Self::set) copies a batch on the device, to the memory of the first batch. The copy comes after all that the
/// calling thread has asked of the device, so after the step before, and before what it asks for next. So one set
/// of tensors is enough, and no thread waits for a step. A copy within the device takes a fraction of the copy over
/// the link.
///
/// **Make it, record, `set`, `replay` and read on one thread.** Streams of other threads are not ordered behind the copy.
/// `set` is an error on another thread.
///
/// **All tensors of [`batch`](Self::batch) change with `set`**, also those that were taken before: they are the same
/// memory. So do views of them, such as those of `reshape`, `slice` and `transpose`. Tensors that were computed from
/// them do not change.
///
/// The memory is kept as long as the `FixedBatch` or one of its tensors. A CPU backend records nothing, and `replay`
/// runs the closure again. There `set` replaces the tensors, so let the closure call `batch` each time, as above.
///
/// `O` has its tensors named with [`map_tensors!`](crate::map_tensors), unless it is a tensor or a tuple of them. A
/// `map_tensors` of your own must hand on what the mapper returns, and compute nothing.
#[derive(derive_more::Debug)]
#[debug("FixedBatch {{ tensors: {}, .. }}", tensors.len())]
pub struct FixedBatch<O> {
    tensors: Vec<Fixed>,
    batch: Mutex<O>,
}

impl<O: MapTensors + Clone> FixedBatch<O> {
    /// Copies a first batch to memory that stays. All later batches have the shapes and dtypes of this one.
    ///
    /// # Errors
    /// [`Error::Config`], if a tensor is followed by autodiff or is quantized, if its device is an accelerator but none of
    /// CubeCL (CUDA, wgpu), if the feature `cuda` is missing on an accelerator, if a step is being recorded, or if
    /// `map_tensors` computes. [`Error::Device`], if the device has no memory for the batch.
    pub fn new(batch: O) -> Result<Self, Error> {
        let mut first = First { tensors: Vec::new(), problem: None };
        let batch = batch.map_tensors(&mut first);
        let First { tensors, problem } = first;
        if let Some(problem) = problem {
            let advice = "give it plain tensors of the loader's device, without autodiff";
            return Err(Error::config("FixedBatch::new", problem, advice));
        }
        let mut same = Same { tensors: tensors.iter(), same: true };
        drop(batch.clone().map_tensors(&mut same));
        if !same.same {
            let advice = "let it hand on what the mapper returns, and compute in `Collate::finish`";
            return Err(Error::config("FixedBatch::new", "`map_tensors` computes", advice));
        }
        check(&tensors)?;
        Ok(Self { tensors, batch: Mutex::new(batch) })
    }

    /// The tensors that stay.
    pub fn batch(&self) -> O {
        self.batch.lock().clone()
    }

    /// Puts the values of a batch into the tensors that stay. Does not wait for the device. It waits until Burn has
    /// launched all that the calling thread has asked for.
    ///
    /// # Errors
    /// [`Error::Config`], if a tensor has another shape or dtype than in the first batch, or if there are more tensors or
    /// fewer. Also on another thread than that of [`new`](Self::new), while a step is recorded, and for a tensor of
    /// another device, one that autodiff follows, or one that stays. Nothing has changed then. [`Error::Device`], if a
    /// copy could not be launched, or if what made the batch had failed. Then do not replay before another `set`.
    pub fn set(&self, batch: O) -> Result<(), Error> {
        let refused = |problem| {
            let advice = "give it batches like the first, e.g. with `drop_last(true)`, on the thread that made it";
            Error::config("FixedBatch::set", problem, advice)
        };
        // Nothing is copied before all tensors are checked: a batch that does not fit changes nothing.
        let mut next = NewValues { tensors: &self.tensors, seen: 0, problem: None, values: Vec::new() };
        let batch = batch.map_tensors(&mut next);
        let NewValues { seen, problem, values, .. } = next;
        let first = self.tensors.len();
        if seen != first {
            return Err(refused(format!("{seen} tensors, and the first batch had {first}")));
        }
        problem.map_or(Ok(()), |problem| Err(refused(problem)))?;
        self.tensors.iter().zip(values).for_each(|(fixed, values)| fixed.copy(values));
        let _before = mem::replace(&mut *self.batch.lock(), batch);
        check(&self.tensors)
    }
}

/// Asks whether the copies went well, as far as it is known.
fn check(tensors: &[Fixed]) -> Result<(), Error> {
    let place = Place::batch(Stage::Finish, BatchKey::NONE);
    tensors.iter().try_for_each(Fixed::check).map_err(|message| Error::Device { place, message })
}

/// Takes the tensors of the first batch.
struct First {
    tensors: Vec<Fixed>,
    problem: Option<String>,
}

impl TensorMapper for First {
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        match Fixed::new(tensor.clone()) {
            Ok((fixed, tensor)) => {
                self.tensors.push(fixed);
                tensor
            }
            Err(problem) => {
                self.problem.get_or_insert(format!("tensor {}: {problem}", self.tensors.len()));
                tensor
            }
        }
    }
}

/// Checks whether a batch has the tensors that stay.
struct Same<'a> {
    tensors: slice::Iter<'a, Fixed>,
    same: bool,
}

impl TensorMapper for Same<'_> {
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        self.same &= self.tensors.next().is_some_and(|fixed| fixed.is(&tensor));
        tensor
    }
}

/// Checks the tensors of another batch, and finds their values.
struct NewValues<'a> {
    tensors: &'a [Fixed],
    seen: usize,
    problem: Option<String>,
    /// The values of each tensor, if there was no problem.
    values: Vec<Values>,
}

impl TensorMapper for NewValues<'_> {
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        let (nth, fixed) = (self.seen, self.tensors.get(self.seen));
        self.seen += 1;
        let Some(fixed) = fixed else { return tensor };
        match fixed.values(tensor.clone(), self.tensors) {
            Ok((values, stays)) => {
                self.values.push(values);
                stays
            }
            Err(problem) => {
                self.problem.get_or_insert(format!("tensor {nth}: {problem}"));
                tensor
            }
        }
    }
}
