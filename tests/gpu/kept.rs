//! A data set that is kept on the GPU.

use super::{Kept, OnDevice, check, leaks::device_mb};
use crate::common::Numbers;
use burn::{
    data::dataset::{Dataset, DatasetError},
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{BoxError, Collate, Error, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
use cudarc::driver::{CudaContext, CudaSlice};
use std::sync::{Arc, Mutex, atomic::Ordering::Relaxed};

const MB: usize = 1 << 20;

fn builder(width: usize, batch: usize) -> PinnedDataLoaderBuilder<usize, Kept> {
    let builder = PinnedDataLoaderBuilder::new(OnDevice { width }).batch_size(batch).num_workers(4).shuffle(11);
    builder.require_pinned(true).set_device(Device::cuda(0))
}

#[test]
#[ignore = "needs a CUDA device"]
fn kept_batches_are_those_that_are_read() {
    for (width, batch, len) in [(1, 1, 300), (3, 7, 1000), (784, 1024, 20_000), (150_528, 64, 640)] {
        let kept = builder(width, batch).build_kept(Numbers::new(len)).unwrap();
        let read = builder(width, batch).build(Numbers::new(len)).unwrap();
        for _ in 0..2 {
            let (mut kept, mut seen) = (kept.iter(), 0);
            for read in read.iter() {
                let (ours, theirs) = (kept.next().unwrap().unwrap(), read.unwrap());
                assert_eq!(ours.0.to_data(), theirs.0.into_data(), "{width} x {batch}");
                seen += check(ours, width);
            }
            assert!(seen == len && kept.next().is_none());
        }
    }
}

/// Memory of the device that is taken by somebody else.
struct Taken(Option<CudaSlice<u8>>);

impl Taken {
    /// Takes all free memory but `bytes` bytes.
    fn all_but(bytes: usize) -> Self {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        let (free, _) = context.mem_get_info().unwrap();
        let taken = stream.alloc_zeros::<u8>(free - bytes).unwrap();
        stream.synchronize().unwrap();
        Self(Some(taken))
    }
}

/// The driver gives memory back to the device when it is waited for.
impl Drop for Taken {
    fn drop(&mut self) {
        drop(self.0.take());
        CudaContext::new(0).unwrap().default_stream().synchronize().unwrap();
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_does_not_fit_is_refused_before_it_is_read() {
    let refused = |rows| {
        let numbers = Numbers::new(rows);
        let error = builder(4 * MB, 8).build_kept(numbers.clone()).unwrap_err();
        assert!(matches!(error, Error::Config { .. }) && numbers.asked.load(Relaxed) == 0, "{error}");
        error.to_string()
    };
    let (_, total) = CudaContext::new(0).unwrap().mem_get_info().unwrap();
    let most = refused(total / 4 / (4 * MB) + 1);
    assert!(most.contains("allocates at most"), "{most}");
    let _taken = Taken::all_but(256 * MB);
    let free = refused(100);
    assert!(free.contains("the dataset takes 0.42 GB in 100 rows"), "{free}");
}

/// Its first sample takes the memory of the device, as another process may.
struct Greedy {
    numbers: Numbers,
    taken: Arc<Mutex<Option<Taken>>>,
}

impl Dataset<usize> for Greedy {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        self.taken.lock().unwrap().get_or_insert_with(|| Taken::all_but(64 * MB));
        self.numbers.get(index)
    }
    fn len(&self) -> usize {
        self.numbers.len()
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_device_that_runs_out_while_it_is_read_frees_all() {
    const ROWS: usize = 512; // 2 GB
    drop(builder(4 * MB, 16).build_kept(Numbers::new(16)).unwrap()); // what is there for ever
    let before = device_mb();
    for _ in 0..2 {
        let taken = Arc::default();
        let dataset = Greedy { numbers: Numbers::new(ROWS), taken: Arc::clone(&taken) };
        let error = builder(4 * MB, 64).build_kept(dataset).unwrap_err();
        println!("without memory: {error}");
        assert!(!matches!(error, Error::Config { .. }), "{error}");
        drop(taken.lock().unwrap().take());
        let after = device_mb();
        // Batches on their way may stay with the device.
        assert!(after < before + 700.0, "{after:.0} MB in use after the error, {before:.0} before");
    }
    let loader = builder(4 * MB, 64).build_kept(Numbers::new(ROWS)).unwrap();
    assert_eq!(loader.iter().map(|kept| check(kept.unwrap(), 4 * MB)).sum::<usize>(), ROWS);
    drop(loader);
    let after = device_mb();
    assert!(after < before + 700.0, "{after:.0} MB in use after the drop, {before:.0} before");
}

/// Tokens of at most 1,000 steps, and a label.
struct Texts;

impl Collate<usize> for Texts {
    type Batch = (Tensor<2, Int>, Tensor<1, Int>);
    fn layout(&self) -> Vec<Field> {
        vec![Field::padded("tokens", [1000], -1i32), Field::new("label", DType::I32, [])]
    }
    fn write(&self, &number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("tokens", &vec![number as i32; 500 + number % 501])?;
        Ok(row.put("label", number as i32)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        Ok((batch.take("tokens")?, batch.take("label")?))
    }
}

/// Padded rows take what `build_kept` says, and are cut to the longest of a batch.
#[test]
#[ignore = "needs a CUDA device"]
fn padded_rows_are_kept_in_one_piece() {
    const ROWS: usize = 200_000; // 800 MB
    let builder = || PinnedDataLoaderBuilder::new(Texts).batch_size(64).num_workers(4).shuffle(3);
    let keep = |rows| builder().set_device(Device::cuda(0)).build_kept(Numbers::new(rows)).unwrap();
    drop(keep(1000));
    let before = device_mb();
    let loader = keep(ROWS);
    let kept = device_mb() - before;
    println!("{ROWS} rows of 4 kB: {kept:.0} MB more of the device in use");
    assert!((795.0..900.0).contains(&kept), "{kept} MB");
    for (kept, read) in
        loader.iter().zip(builder().set_device(Device::cuda(0)).build(Numbers::new(ROWS)).unwrap().iter()).take(50)
    {
        let (kept, read) = (kept.unwrap(), read.unwrap());
        assert_eq!(kept.0.to_data(), read.0.to_data());
        assert_eq!(kept.1.to_data(), read.1.to_data());
    }
    drop(loader);
    let after = device_mb();
    assert!(after < before + 200.0, "{after:.0} MB in use after the drop, {before:.0} before");
}
