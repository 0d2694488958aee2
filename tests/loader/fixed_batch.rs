//! Batches that stay where they are on the device, and a step that is recorded once.

use crate::common::{Numbers, device, on_host};
use burn::tensor::{DType, Device, Int, Tensor, TensorData, capture, s};
use burn_pinned::{
    BoxError, Collate, Error, Field, FixedBatch, MapTensors, PinnedDataLoaderBuilder, RawBatch, RowMut, TensorMapper,
    map_tensors,
};

const ROWS: usize = 16;
const WIDTH: usize = 33;

/// Rows of one value, and numbers.
#[derive(Clone, Debug)]
struct Batch {
    values: Tensor<2>,
    numbers: Tensor<1, Int>,
}
map_tensors!(Batch { values, numbers });

struct Rows;

impl Collate<usize> for Rows {
    type Batch = Batch;
    fn layout(&self) -> Vec<Field> {
        vec![Field::new("values", DType::F32, [WIDTH]), Field::new("numbers", DType::I32, [])]
    }
    fn write(&self, &number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.slice_mut::<f32>("values")?.fill(number as f32);
        Ok(row.put("numbers", number as i32)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Batch, BoxError> {
        Ok(Batch { values: batch.take::<2, _>("values")? + 1.0, numbers: batch.take("numbers")? })
    }
}

fn builder() -> PinnedDataLoaderBuilder<usize, Batch> {
    PinnedDataLoaderBuilder::new(Rows).batch_size(ROWS).num_workers(2).set_device(device())
}

fn of(value: f32, rows: usize, device: &Device) -> Batch {
    let numbers = TensorData::new(vec![value as i32; rows], [rows]);
    Batch { values: Tensor::full([rows, 3], value, device), numbers: Tensor::from_data(numbers, (device, DType::I32)) }
}

fn values(batch: Batch) -> (Vec<f32>, Vec<i32>) {
    (batch.values.into_data().try_to_vec().unwrap(), batch.numbers.into_data().try_to_vec().unwrap())
}

/// The step is recorded with the first batch, and run for each of 1,000.
#[test]
fn a_recorded_step_reads_each_batch() {
    const BATCHES: usize = 501;
    let loader = builder().drop_last(true).build(Numbers::new(BATCHES * ROWS + 3)).unwrap();
    // The loader asks for memory with its first batches, and must not while a step is recorded.
    loader.iter().take(10).for_each(|batch| drop(batch.unwrap()));
    let mut batches = loader.iter();
    let fixed = FixedBatch::new(batches.next().unwrap().unwrap()).unwrap();
    // No product of matrices: some devices round its inputs to 11 bits.
    let weights = Tensor::<2>::full([1, WIDTH], 0.5, &device());
    let mut step = capture(&device(), || {
        let Batch { values, numbers } = fixed.batch();
        (values * weights.clone()).sum_dim(1) + numbers.float().unsqueeze_dim(1)
    });
    assert!(step.is_hardware() || on_host(), "the step was not recorded");
    for epoch in 0..2 {
        for number in usize::from(epoch == 0)..BATCHES {
            let batch = batches.next().unwrap().unwrap();
            fixed.set(batch).unwrap();
            // SAFETY: the batch, the weights and the output live, and only this thread uses them.
            #[expect(unsafe_code, reason = "Burn cannot check it")]
            let seen = unsafe { step.replay() }.clone().into_data().try_to_vec::<f32>().unwrap();
            let samples = (0..ROWS).map(|row| (number * ROWS + row) as f32);
            let wanted: Vec<_> = samples.map(|sample| (sample + 1.0) * 0.5 * WIDTH as f32 + sample).collect();
            assert_eq!(seen, wanted, "epoch {epoch}, batch {number}");
        }
        assert!(batches.next().is_none());
        batches = loader.iter();
    }
}

#[test]
fn a_batch_of_another_shape_is_an_error_and_changes_nothing() {
    let device = device();
    let fixed = FixedBatch::new(of(1.0, 4, &device)).unwrap();
    let error = fixed.set(of(2.0, 3, &device)).unwrap_err();
    assert!(matches!(error, Error::Config { option: "FixedBatch::set", .. }), "{error:?}");
    let wanted = "`FixedBatch::set`: tensor 0: it is [3, 3] of f32, and was [4, 3] of f32 in the first batch; give it \
                  batches like the first, e.g. with `drop_last(true)`, on the thread that made it";
    assert_eq!(error.to_string(), wanted);
    let mut other = of(2.0, 4, &device);
    other.numbers = of(2.0, 3, &device).numbers;
    assert!(fixed.set(other).unwrap_err().to_string().contains("tensor 1: it is [3]"));
    assert_eq!(values(fixed.batch()), (vec![1.0; 12], vec![1; 4]));
    fixed.set(of(3.0, 4, &device)).unwrap();
    assert_eq!(values(fixed.batch()), (vec![3.0; 12], vec![3; 4]));
}

#[test]
fn another_number_of_tensors_is_an_error() {
    let device = device();
    let ones = |count: usize| vec![Tensor::<1>::ones([2], &device); count];
    let fixed = FixedBatch::new(ones(2)).unwrap();
    for count in [1, 3] {
        let error = fixed.set(ones(count)).unwrap_err().to_string();
        assert!(error.contains(&format!("{count} tensors, and the first batch had 2")), "{error}");
    }
    assert!(fixed.set(ones(2)).is_ok());
}

#[test]
fn a_tensor_without_values_is_no_error() {
    let empty = || Tensor::<2>::empty([3, 0], &device());
    let fixed = FixedBatch::new((empty(), Tensor::<1>::ones([2], &device()))).unwrap();
    fixed.set((empty(), Tensor::<1>::full([2], 5.0, &device()))).unwrap();
    let (none, some) = fixed.batch();
    assert_eq!((none.dims(), some.into_data().try_to_vec::<f32>().unwrap()), ([3, 0], vec![5.0; 2]));
}

/// A view of another tensor has other strides. What counts are its values.
#[test]
fn tensors_of_any_strides_come_with_their_values() {
    let rising = |from: i64| Tensor::<1, Int>::arange(from..from + 12, &device()).float().reshape([3, 4]);
    let fixed = FixedBatch::new(rising(0).transpose()).unwrap();
    let seen = || fixed.batch().into_data().try_to_vec::<f32>().unwrap();
    assert_eq!(seen(), rising(0).transpose().into_data().try_to_vec::<f32>().unwrap());
    fixed.set(rising(100).transpose()).unwrap();
    assert_eq!(seen(), rising(100).transpose().into_data().try_to_vec::<f32>().unwrap());
}

/// Operations make new tensors, also where Burn would write to a tensor that nobody else has.
#[test]
fn operations_leave_the_tensors_as_they_are() {
    let fixed = FixedBatch::new(of(1.0, 4, &device())).unwrap();
    for value in [2.0, 3.0] {
        fixed.set(of(value, 4, &device())).unwrap();
        let doubled =
            (fixed.batch().values * 2.0).slice_fill(s![0..1, ..], 9.0).into_data().try_to_vec::<f32>().unwrap();
        assert_eq!((doubled[0], doubled[11]), (9.0, 2.0 * value));
        assert_eq!(values(fixed.batch()), (vec![value; 12], vec![value as i32; 4]));
    }
}

/// What was computed with a batch stays. The tensors themselves are the next batch's, where memory stays.
#[test]
fn results_stay_and_tensors_change() {
    let fixed = FixedBatch::new(of(1.0, 4, &device())).unwrap();
    let (taken, result) = (fixed.batch(), fixed.batch().values + 0.5);
    fixed.set(of(2.0, 4, &device())).unwrap();
    assert_eq!(result.into_data().try_to_vec::<f32>().unwrap(), [1.5; 12]);
    let now = if on_host() { 1 } else { 2 };
    assert_eq!(values(taken), (vec![now as f32; 12], vec![now; 4]));
}

/// A view has the same memory, and what was computed has not.
#[test]
fn views_change_too() {
    if on_host() {
        return; // the tensors are replaced there
    }
    let fixed = FixedBatch::new(of(1.0, 4, &device()).values).unwrap();
    let (view, computed) = (fixed.batch().reshape([12]), fixed.batch().reshape([12]) * 1.0);
    fixed.set(of(2.0, 4, &device()).values).unwrap();
    assert_eq!(view.into_data().try_to_vec::<f32>().unwrap(), [2.0; 12]);
    assert_eq!(computed.into_data().try_to_vec::<f32>().unwrap(), [1.0; 12]);
}

/// Copies of another thread would not come behind the steps of this one. A view of what stays would read what is written.
#[test]
fn other_threads_and_views_are_refused() {
    if on_host() {
        return; // nothing is copied there
    }
    let fixed = FixedBatch::new(Tensor::<2>::ones([4, 4], &device())).unwrap();
    let error = std::thread::scope(|scope| {
        let set = || fixed.set(Tensor::<2>::ones([4, 4], &device())).unwrap_err().to_string();
        scope.spawn(set).join().unwrap()
    });
    assert!(error.contains("it was made on another thread"), "{error}");
    let error = fixed.set(fixed.batch().transpose()).unwrap_err().to_string();
    assert!(error.contains("a view of it"), "{error}");
    assert!(fixed.set(fixed.batch() * 3.0).is_ok());
    assert_eq!(fixed.batch().into_data().try_to_vec::<f32>().unwrap(), [3.0; 16]);
}

/// A problem of a later tensor is found before an earlier one is copied. Nor are values copied that the same batch
/// overwrites.
#[test]
fn an_error_at_a_later_tensor_changes_nothing() {
    if on_host() {
        return; // nothing is copied there
    }
    let full = |value: f32| Tensor::<2>::full([4, 4], value, &device());
    let fixed = FixedBatch::new((full(1.0), full(2.0))).unwrap();
    let seen = || {
        let (first, second) = fixed.batch();
        [first, second].map(|tensor| tensor.into_data().try_to_vec::<f32>().unwrap())
    };
    let (first, second) = fixed.batch();
    let autodiff = Tensor::<2>::full([4, 4], 3.0, &device().autodiff());
    let bad = [(second.clone().transpose(), "tensor 1: it is a tensor that stays"), (autodiff, "tensor 1: autodiff")];
    for (bad, problem) in bad {
        let error = fixed.set((full(3.0), bad)).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        assert_eq!(seen(), [vec![1.0; 16], vec![2.0; 16]], "{problem}");
    }
    let error = fixed.set((second, first)).unwrap_err().to_string();
    assert!(error.contains("tensor 0: it is a tensor that stays"), "{error}");
    assert_eq!(seen(), [vec![1.0; 16], vec![2.0; 16]]);
    fixed.set((full(4.0), full(5.0))).unwrap();
    assert_eq!(seen(), [vec![4.0; 16], vec![5.0; 16]]);
}

/// Batches whose mapper computes.
#[derive(Clone)]
struct Scaled(Tensor<1>);

impl MapTensors for Scaled {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        Self(mapper.map(self.0) / 255.0)
    }
}

#[test]
fn a_mapper_that_computes_is_refused() {
    if on_host() {
        return; // nothing shows there
    }
    let error = FixedBatch::new(Scaled(Tensor::ones([3], &device()))).unwrap_err().to_string();
    assert!(error.contains("`map_tensors` computes"), "{error}");
}

/// A copy in a recording would be replayed with it.
#[test]
fn nothing_is_copied_while_a_step_is_recorded() {
    let fixed = FixedBatch::new(Tensor::<1>::ones([3], &device())).unwrap();
    let mut refused = 0;
    let step = capture(&device(), || {
        refused += usize::from(fixed.set(Tensor::<1>::ones([3], &device())).is_err());
        fixed.batch() + 1.0
    });
    drop(step);
    assert_eq!(refused > 0, !on_host());
}

#[test]
fn inputs_that_autodiff_follows_are_refused() {
    if on_host() {
        return; // nothing is recorded, and nothing must stay
    }
    let error = FixedBatch::new(Tensor::<1>::ones([2], &device().autodiff())).unwrap_err().to_string();
    assert!(error.contains("autodiff"), "{error}");
}
