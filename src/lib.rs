//! A data loader for [Burn](burn) that keeps a GPU fed.
//!
//! Worker threads write samples straight into page-locked host memory. Transfer threads copy filled batches to the
//! device, each on a CUDA copy stream of its own. So the next batch is already on the device when the training step
//! asks for it. The loader implements Burn's own [`DataLoader`](burn::data::dataloader::DataLoader) and
//! [`Batcher`](burn::data::dataloader::batcher::Batcher), so training loops and `SupervisedTraining` accept it
//! unchanged. On a CPU backend the same pipeline runs in ordinary memory.
//!
//! ```
//! use burn::data::dataset::InMemDataset;
//! use burn::{prelude::*, tensor::DType};
//! use burn_pinned::{Field, PinnedDataLoaderBuilder, collate};
//!
//! let images = collate(
//!     [Field::new("image", DType::U8, [3, 8, 8]), Field::new("label", DType::I32, [])],
//!     |(image, label): &(Vec<u8>, i32), row| {
//!         row.write("image", image)?; // on a worker, into the memory that is copied to the device
//!         Ok(row.put("label", *label)?)
//!     },
//!     |mut batch| {
//!         let images = batch.take::<4, Int>("image")?; // on the device: the bytes are now a tensor of u8
//!         Ok((images.float() / 255.0, batch.take_int::<1>("label")?))
//!     },
//! );
//! let dataset = InMemDataset::new((0..100).map(|n| (vec![n as u8; 192], n % 10)).collect());
//! let loader = PinnedDataLoaderBuilder::new(images).batch_size(32).shuffle(42).build(dataset)?;
//! for batch in loader.iter() {
//!     let (images, labels) = batch?;
//!     assert_eq!(images.dims()[0], labels.dims()[0]);
//! }
//! println!("{}", loader.stats());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to read next
//!
//! - [`PinnedDataLoaderBuilder`]: every option. [`from_batcher`](PinnedDataLoaderBuilder::from_batcher) takes an
//!   existing Burn `Batcher`.
//! - [`collate`] and [`Collate`]: what a batch looks like, and which thread runs each step of making it.
//! - [`DatasetExt`]: `map`, `filter`, `flat_map`, `chunks`, `split` and `folds` for every Burn `Dataset`.
//! - [`Augment`] and [`Sampler`](order::Sampler): augmentation and sample order, the same on every machine.
//! - [`LoaderState`]: resume in another process with the very next batch. [`Distributed`]: several processes.
//! - [`build_kept`](PinnedDataLoaderBuilder::build_kept): a dataset that fits in device memory is read once and kept
//!   there.
//! - [`BadSamples`]: what happens to samples that fail to load.
//! - [`Error`]: what can go wrong, with the stage, the worker and the sample.
//! - The modules [`order`], [`augment`], [`memory`], [`fault`] and [`observe`]: all names, by subject. The names that
//!   most programs need are also at the root of the crate.
//! - The module `guide` of this documentation: the pages of the folder `docs`, one for each subject.
//! - `src/README.md`: how a batch is made, for developers of this crate; `src/pipeline/README.md`: the scheduler.
//!
//! # Promises
//!
//! - The same seed, dataset and options give the same batches in the same order with the same augmentation, for any
//!   number of workers, any prefetch depth and any pool size. Exception: with [`LiveWeights`](order::LiveWeights) the
//!   training changes the order.
//! - Each sample that the sampler gives this process is handled exactly once: it is delivered, reported as an error,
//!   skipped or replaced as [`BadSamples`] says, or left out by your own filter ([`DatasetExt::filter`]). Exception:
//!   `drop_last` leaves out the samples of a last batch that is
//!   not full. An error or a panic of user code is reported as an `Err` in place of its batch. The loader continues
//!   after it.
//! - Exception: a call that hangs ends its epoch if a [`timeout`](PinnedDataLoaderBuilder::timeout) is set. The epoch
//!   also ends if no slot is free for 60 s. [`Error::Timeout`] says how many batches are lost. Such an epoch is never
//!   reported as complete, and the next `iter()` works again. The `timeout` covers what the loader's threads run. It
//!   does not cover `finish` on an accelerator, which runs in `next()` on the caller's thread. Nor does it cover the
//!   planning of the epoch in `iter()`.
//! - The page-locked memory of a copy of the loader never exceeds `pinned_limit`. With `devices(n)` the limit is for
//!   all devices together. The memory does not depend on the number of workers. Exception: a call that hangs longer
//!   than `timeout` keeps the memory of its batch in addition. The old slots remain until the last iterator on the old
//!   threads ends.
//! - Each copy of a loader has its own threads. Dropping an iterator ends the work on its epoch without waiting for a
//!   thread. There is one exception: if threads were replaced after a hang, dropping the last iterator on the old
//!   threads joins them. Dropping a copy joins its threads. Each thread first completes its current call, copy or
//!   allocation. With a `timeout`, a thread that hangs longer is not joined: it keeps the memory of its batch until its
//!   call returns.
//!
//! With `panic = "abort"`, a panic of user code ends the process, as usual.
//!
//! # Features
//!
//! - `cuda`: page-locked memory and copy streams on NVIDIA GPUs, through Burn's CUDA backend and the driver API, which
//!   is loaded at run time. If memory cannot be page-locked, the loader logs a warning and uses ordinary memory.
//! - `derive`: `#[derive(Sample)]` makes batches from a struct of plain fields, `#[derive(MapTensors)]` visits the
//!   tensors of a batch, and `#[derive(HasImage)]` lets transforms change the image in a struct.
//! - `vision`: the module `vision`: decoding of image files, image augmentation under torchvision's names, and mixing
//!   of whole batches on the device.
//! - `annotations`: Burn's own image datasets with labels, masks or boxes, as samples of the module `vision`.
//! - `turbo`: the workers decode JPEGs with libjpeg-turbo, which is built from source with CMake and NASM.
//! - `parquet`: Parquet files in the module [`data`], in addition to tar shards, MDS folders, JSON lines and token files. `mds`: compressed
//!   MDS shards.
//! - `http`: these datasets from web servers and the Hugging Face hub.
//! - `cloud`: these datasets from S3, Google Cloud Storage and Azure.
//! - `audio`: sounds of WAV, FLAC, MP3, Ogg Vorbis, AAC and others in these datasets, at any rate. `tokenizers`: rows of text as tokens, by Hugging Face's tokenizers.
//! - `metrics`: `LoaderCheckpointer`, which saves the loader's position with the checkpoints of `SupervisedTraining`, and `LoaderMetric`, which shows the loader's statistics in the dashboard and logs of `SupervisedTraining`.
//! - `tracing`: a span of the `tracing` crate, at level debug, for the work of each thread on each batch: `sampler`,
//!   `fill`, `batcher`, `pin`, `device wait`, `decode`, `transfer`, `finish`, `wait`.
//!
//! # Other crates in the API
//!
//! The API uses types and traits of these crates: burn 0.22, bytes 1 and image 0.25 (feature `vision`), rand 0.10 ([`KeyedRng`]), serde 1
//! ([`LoaderState`]), serde_json 1 (feature `tokenizers`). A new major version of one of them needs a new major version of this crate.
//! [`rand`] and `image` are re-exported, so that a program can use the same versions.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod batch;
pub mod data;
mod device;
pub mod fault;
#[cfg(doc)]
pub mod guide;
#[cfg_attr(not(feature = "vision"), allow(dead_code, reason = "without images nobody writes them"))]
mod image_rows;
mod loader;
pub mod memory;
pub mod observe;
pub mod order;
mod pipeline;
pub mod stream;
mod sync;
pub mod text;
#[cfg(feature = "vision")]
pub mod vision;
mod vocabulary;

#[doc(hidden)]
pub use batch::derived;
pub use batch::{Collate, RawBatch, RowMut, Sample, SampleCollate, collate};
#[doc(inline)]
pub use burn_augment::augment;
pub use burn_augment::{Augment, KeyedRng};
#[cfg(feature = "derive")]
pub use burn_pinned_derive::MapTensors;
/// Makes batches from a struct of plain fields. It implements the trait [`Sample`](trait@Sample): the layout, how a sample is written, and
/// how the batch is made. It also generates the batch's struct, which has the same fields and the name of the sample followed by `Batch`.
///
/// ```
/// use burn::{data::dataset::InMemDataset, prelude::*};
/// use burn_pinned::{PinnedDataLoaderBuilder, Sample};
///
/// #[derive(Clone, Sample)]
/// struct Review {
///     #[sample(padded = [512], mask)]
///     tokens: Vec<i64>, // Tensor<2, Int> of [N, longest], and `tokens_mask`, a Tensor<2, Bool>
///     #[sample(shape = [1, 8, 8], mean = 0.1307, std = 0.3081)]
///     picture: Vec<u8>, // Tensor<4>: bytes are copied to the device, which computes (byte / 255 - mean) / std
///     words: [[f32; 4]; 2], // Tensor<3>
///     #[sample(fill = -1)]
///     stars: Option<i8>, // Tensor<1, Int>
///     text: String, // Vec<String>
///     #[sample(column)]
///     path: std::path::PathBuf, // Vec<PathBuf>
///     #[sample(skip)]
///     weight: f64,
/// }
/// # let review = |tokens: Vec<i64>| Review {
/// #     tokens, picture: vec![0; 64], words: [[0.5; 4]; 2], stars: None, text: "good".into(), path: "a.txt".into(), weight: 1.0,
/// # };
/// # let reviews = vec![review(vec![7, 8, 9]), review(vec![5])];
///
/// let loader = PinnedDataLoaderBuilder::new(Review::collate()).batch_size(2).build(InMemDataset::new(reviews))?;
/// for batch in loader.iter() {
///     let batch: ReviewBatch = batch?;
///     assert_eq!((batch.tokens.dims(), batch.tokens_mask.dims(), batch.words.dims()), ([2, 3], [2, 3], [2, 2, 4]));
///     assert_eq!((batch.text[0].as_str(), batch.picture.dims()), ("good", [2, 1, 8, 8]));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// | type of the field | option it needs | type in the batch |
/// | --- | --- | --- |
/// | a number, `bool`, `usize` | | `Tensor<1, _>` |
/// | an array of numbers, also nested | | `Tensor<1 + depth, _>` |
/// | `Vec`, `Box<[_]>`, `Arc<[_]>` of numbers | `shape`, `padded` or `jagged` | `Tensor<1 + dimensions, _>`; if jagged, one dimension less, and `<name>_offsets` |
/// | the same of arrays, such as `Vec<[f32; 3]>` | the same, with one number: how many arrays | one more dimension for each dimension of the array: `[N, longest, 3]`. A mask is `[N, longest]`, and offsets count arrays |
/// | `Array<T>` and `Audio` of `burn-shards` | the same; an `Array` must have the shape of a row | the same; of an `Audio`, its samples, which are decoded here |
/// | `Option` of a number, an array or a `usize` | `fill` | the same as without `Option` |
/// | `vision::Image` | `shape` or `padded` | `Tensor<4, _>` |
/// | `vision::Mask` | `shape` or `padded` | `Tensor<3, _>` |
/// | `vision::Boxes` | `padded` or `jagged`, with one number | `Tensor<3>`, and `<name>_labels`, padded with -1 |
/// | `vision::Points` | `shape`, `padded` or `jagged`, with one number | as for `Vec<[f32; 2]>` |
/// | `String`, `Option<String>` | | `Vec<_>` |
///
/// The tensor's kind follows from the type of the numbers: `Int`, `Float` or `Bool`. Integers get the device's own integer dtype, which
/// losses and metrics need. Images of bytes, and fields with a `dtype`, do not. A value that does not fit the dtype is an error of its
/// sample; `dtype = i64` keeps large numbers. Floats are rounded; as integers they lose their fraction. **For many bytes write `dtype =
/// u8`**: they remain bytes. Without it, each byte becomes an integer of four or eight bytes on the device, which is slow on a CPU backend.
///
/// | `#[sample(..)]` | meaning |
/// | --- | --- |
/// | `shape = [3, 8, 8]` | the shape of every row |
/// | `padded = [512]` | the shape of the longest row; a batch is padded to its own longest row. An image may have any size up to this. A longer row is an error: [`Field::padded`] says how to truncate it |
/// | `jagged = [512]` | the same, but rows lie end to end, without padding: see [`Field::jagged`] |
/// | `rows` | adds `<name>_rows` to a jagged field: the row of each step, a `Tensor<1, Int>`. See [`Field::with_rows`] |
/// | `fill = -1` | the value of the padding, or the value for `None`. Default: 0 |
/// | `mask` | adds `<name>_mask`: true for values, false for padding or `None` |
/// | `dtype = bf16` | the dtype on the device, which does the cast. Masks and images are cast on the host |
/// | `mean = 0.5, std = 0.2` | `(value - mean) / std`, for bytes `(value / 255 - mean) / std`, as `f32` or as the `dtype`. Either one number, or an array with one number for each channel; channels are the first dimension of a row. The name of a constant is taken as an array |
/// | `format = Xywh` | the format of boxes. Default: left, top, right, bottom |
/// | `column` | a `Vec` of the values instead of a tensor; the type must be `Clone`, `Debug`, `Send` and `Sync` |
/// | `skip` | the field is not in the batch |
/// | `with = module` | the functions of a module: see below |
///
/// The derive sees only the names of types, so a type alias needs `column`, `skip` or `with`. `#[sample(batch = Name)]` on the struct names
/// the batch. The batch implements [`MapTensors`](trait@MapTensors), `Clone` and `Debug`. Lint attributes of the sample, such as
/// `#[allow(..)]`, also apply to the batch. If the crate has another name in your program, set it with `#[sample(crate = "other::name")]`.
///
/// A module of your own can handle a field of any type. It has the type of the field in the batch, and three functions:
///
/// ```
/// use burn_pinned::Sample;
///
/// mod angle {
///     use burn::{prelude::*, tensor::DType};
///     use burn_pinned::{BoxError, Field, RawBatch, RowMut};
///
///     pub type Batch = Tensor<2>;
///     pub fn field(name: &'static str) -> Field {
///         Field::new(name, DType::F32, [2])
///     }
///     pub fn write(degrees: &f32, name: &str, row: &mut RowMut<'_>) -> Result<(), BoxError> {
///         let (sin, cos) = degrees.to_radians().sin_cos();
///         Ok(row.write(name, &[sin, cos])?)
///     }
///     pub fn finish(batch: &mut RawBatch, name: &str) -> Result<Batch, BoxError> {
///         Ok(batch.take(name)?)
///     }
/// }
///
/// #[derive(Sample)]
/// struct Turned {
///     #[sample(with = angle)]
///     angle: f32,
/// }
/// # let _ = Turned::collate();
/// ```
///
/// A handwritten [`Collate`] can call the derived functions: see the trait.
#[cfg(feature = "derive")]
pub use burn_pinned_derive::Sample;
pub use device::{MapTensors, TensorMapper, copy_to, host_alloc};
pub use fault::{BadSamples, BoxError, Error};
#[cfg(feature = "vision")]
#[doc(no_inline)]
pub use image;
pub use loader::{
    AnyDataset, DatasetExt, LoaderState, PinnedBatcher, PinnedDataLoader, PinnedDataLoaderBuilder, dataset,
};
#[cfg(feature = "metrics")]
pub use loader::{LoaderCheckpointer, LoaderMetric};
pub use memory::Field;
pub use observe::Stats;
pub use order::Distributed;
#[doc(no_inline)]
pub use rand;
pub use vocabulary::{Place, Stage};

/// Prepares the process for GPUs. Call it first in `main`.
///
/// ```
/// fn main() -> Result<(), burn_pinned::Error> {
///     burn_pinned::prepare()?;
///     // the rest of the program
///     Ok(())
/// }
/// ```
///
/// CUDA assigns the streams of a process to 8 hardware queues by default. Streams that share a queue wait for each other. The training, the
/// loader and its decoder have more than 8 streams. So with fewer than 16 queues, steps wait while the device decodes. This function sets
/// the environment variable `CUDA_DEVICE_MAX_CONNECTIONS` to 32, the maximum, for this process. It keeps a number that is already set. CUDA
/// reads the variable when the process first uses a device. You can also start the program with the variable in its environment. With fewer
/// than 16 queues, `Decoder::Auto` decodes on the workers if each device has at least 8 of them. The loader warns, and its verdict has a
/// note. Without the feature `cuda`, the function does nothing.
///
/// # Errors
/// [`Error::Config`] if the process already has other threads: one of them may read the environment at the same time. With
/// `#[tokio::main]`, for example, write a `main` that calls this function before the runtime starts.
pub fn prepare() -> Result<(), Error> {
    device::prepare()
}

/// The example of the README, compiled as a test.
#[cfg(all(doctest, feature = "derive", feature = "parquet", feature = "vision"))]
#[doc = include_str!("../README.md")]
mod readme {}

/// Programs that show bugs in Burn. If one of them fails, Burn has fixed that bug.
#[cfg(doctest)]
#[doc = include_str!("../upstream/burn-batcher-panic.md")]
#[doc = include_str!("../upstream/burn-dashboard-error.md")] // only compiled: it needs a terminal
#[doc = include_str!("../upstream/burn-running-state.md")]
#[doc = include_str!("../upstream/burn-shuffled-get-many.md")]
#[doc = include_str!("../upstream/burn-slice-before-shuffle.md")]
#[doc = include_str!("../upstream/burn-uneven-slices.md")]
mod upstream {}
