//! A data loader for [Burn](burn) that keeps a GPU fed.
//!
//! Worker threads write samples straight into page-locked host memory. Transfer threads copy filled batches to the
//! device, each on a CUDA copy stream of its own. So the training step finds its next batch already there. The loader
//! implements Burn's own [`DataLoader`](burn::data::dataloader::DataLoader) and
//! [`Batcher`](burn::data::dataloader::batcher::Batcher), so training loops and `SupervisedTraining` take it without a
//! change. On a CPU backend the same pipeline runs in ordinary memory.
//!
//! ```
//! use burn::data::dataset::InMemDataset;
//! use burn::{prelude::*, tensor::DType};
//! use burn_pinned::{Field, PinnedDataLoaderBuilder, collate};
//!
//! let images = collate(
//!     [Field::new("image", DType::U8, [3, 8, 8]), Field::new("label", DType::I32, [])],
//!     |(image, label): &(Vec<u8>, i32), row| {
//!         row.write("image", image)?; // on a worker, into the memory that crosses the link
//!         Ok(row.put("label", *label)?)
//!     },
//!     |mut batch| {
//!         let images = batch.take::<4, Int>("image")?; // on the device: bytes became a tensor of u8
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
//! # Where to read on
//!
//! - [`PinnedDataLoaderBuilder`]: every option. [`from_batcher`](PinnedDataLoaderBuilder::from_batcher) takes an
//!   existing Burn `Batcher`.
//! - [`collate`] and [`Collate`]: what a batch looks like, and on which thread each part of its making runs.
//! - [`Augment`] and [`Sampler`](order::Sampler): random changes and orders, the same on every machine.
//! - [`LoaderState`]: going on in another process with the very next batch; [`Distributed`]: several processes.
//! - [`build_kept`](PinnedDataLoaderBuilder::build_kept): a data set that fits is read once and kept on the device.
//! - [`BadSamples`]: what to do about samples that fail to load.
//! - [`Error`]: what can go wrong, with stage, worker and sample.
//! - The modules [`order`], [`augment`], [`memory`], [`fault`] and [`observe`]: all names of their subjects. The
//!   names that most programs need are here too.
//! - The module `guide` of this documentation: the pages of the folder `docs`, on one subject each.
//! - `src/README.md`: the life of a batch, for those who want to change something; `src/pipeline/README.md`: the scheduler.
//!
//! # Promises
//!
//! - The same seed, dataset and options give the same batches in the same order with the same augmentation, for any
//!   number of workers, any prefetch depth and any pool size.
//! - Every sample that the sampler names for this process is delivered, skipped or replaced as [`BadSamples`] says, or
//!   reported, exactly once. Besides, `drop_last` leaves out a last batch that is not full. A report is an `Err` at the
//!   batch's place: an error or a panic of user code. The loader goes on after it.
//! - Exception: a call that hangs ends its epoch, if a [`timeout`](PinnedDataLoaderBuilder::timeout) is set. So does
//!   a slot that is lacking for 60 s. [`Error::Timeout`] says how many batches are lost. Such an epoch is never
//!   reported as complete, and the next `iter()` works again. The `timeout` covers what the loader's threads run. It
//!   covers neither `finish` on an accelerator, which runs in `next()` on the caller's thread, nor the planning of the
//!   epoch in `iter()`.
//! - Page-locked memory of a copy of the loader, or with `devices(n)` of all together, never exceeds `pinned_limit`.
//!   It does not depend on the number of workers. Exception: a call that hangs beyond `timeout` keeps the memory of its
//!   batch on top. The old slots stay until the last iterator on the old threads ends.
//! - Each copy of a loader has threads of its own. Dropping an iterator ends the work on its epoch, and waits for none;
//!   but the last one on threads that were replaced after a hang joins them.
//!   Dropping a copy joins its threads. Each thread ends after the call, the copy or the allocation that it is in. With
//!   a `timeout`, a thread that hangs for longer is left, with its batch's memory, until its call returns.
//!
//! With `panic = "abort"` a panic of user code ends the process, as it always does.
//!
//! # Features
//!
//! - `cuda`: page-locked memory and copy streams on NVIDIA GPUs, through Burn's CUDA backend and the driver's API,
//!   which is loaded at run time. Where memory cannot be page-locked the loader says so and goes on with ordinary
//!   memory.
//! - `derive`: `#[derive(Sample)]` makes a batch of a struct of plain fields, `#[derive(MapTensors)]` visits the tensors
//!   of a batch, and `#[derive(HasImage)]` lets transforms change a struct.
//! - `vision`: the module of that name: decoding of image files, the usual random changes of images under torchvision's
//!   names, and mixing of whole batches on the device.
//! - `annotations`: Burn's own data sets of images with labels, masks or boxes, as samples of the module `vision`.
//! - `turbo`: JPEGs are decoded on the workers by libjpeg-turbo, which is built from source with CMake and NASM.
//! - `parquet`: Parquet files in the module [`data`], beside tar shards, MDS folders, JSON lines and token files. `mds`: MDS shards that
//!   are compressed.
//! - `http`: these data sets from web servers and the Hugging Face hub.
//! - `cloud`: these data sets from S3, Google Cloud Storage and Azure.
//! - `wav`: sounds in `.wav` files of these data sets. `tokenizers`: rows of text as tokens, by Hugging Face's tokenisers.
//! - `metrics`: `LoaderMetric`, the loader's figures for the dashboard and logs of `SupervisedTraining`.
//! - `tracing`: a span of the `tracing` crate, at level debug, for the work of each thread on each batch: `sampler`,
//!   `fill`, `batcher`, `pin`, `device wait`, `decode`, `transfer`, `finish`, `wait`.
//!
//! # Other crates in the API
//!
//! The API has types and traits of these crates: burn 0.22, bytes 1 and image 0.25 (feature `vision`), rand 0.10
//! ([`KeyedRng`]), serde 1 ([`LoaderState`]), serde_json 1 (feature `tokenizers`). A new major version of one of them takes a new
//! one of this crate. [`rand`] and `image` are re-exported, so that a program can use the same versions.

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
/// Makes a batch of a struct of plain fields: its layout, how a sample is written, the struct of the batch, and how that is
/// made. It implements the trait [`Sample`](trait@Sample), and makes a struct of the same fields, named after the sample with `Batch`
/// behind it.
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
///     picture: Vec<u8>, // Tensor<4>: bytes cross the link, and the device makes (byte / 255 - mean) / std
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
/// | a field of the type | needs | the batch has |
/// | --- | --- | --- |
/// | a number, `bool`, `usize` | | `Tensor<1, _>` |
/// | an array of numbers, also nested | | `Tensor<1 + depth, _>` |
/// | `Vec`, `Box<[_]>`, `Arc<[_]>` of numbers | `shape`, `padded` or `jagged` | `Tensor<1 + dimensions, _>`; if jagged one dimension less, and `<name>_offsets` |
/// | the same of arrays, such as `Vec<[f32; 3]>` | the same, of one number: how many arrays | one dimension more for each of an array: `[N, longest, 3]`. A mask is `[N, longest]`, and offsets count arrays |
/// | `Array<T>` and `Wave` of `burn-shards` | the same; the shape of an `Array` must be that of a row | the same; a `Wave` gives its `samples` |
/// | `Option` of a number, an array or a `usize` | `fill` | the same as without `Option` |
/// | `vision::Image` | `shape` or `padded` | `Tensor<4, _>` |
/// | `vision::Mask` | `shape` or `padded` | `Tensor<3, _>` |
/// | `vision::Boxes` | `padded` or `jagged`, of one number | `Tensor<3>`, and `<name>_labels`, filled with -1 |
/// | `vision::Points` | `shape`, `padded` or `jagged`, of one number | as of `Vec<[f32; 2]>` |
/// | `String`, `Option<String>` | | `Vec<_>` |
///
/// The kind of a tensor is that of the numbers: `Int`, `Float` or `Bool`. Integers get the dtype that the device has for them,
/// as losses and metrics need; images of bytes, and what has a `dtype`, do not. A value that does not fit there, or not into the
/// `dtype`, is an error of its sample: `dtype = i64` keeps large numbers. Floats are rounded, and as integers they lose their fraction. **For many bytes write `dtype = u8`**: they stay
/// bytes. Without it each becomes an integer of four or eight bytes on the device, which takes long on a CPU backend.
///
/// | `#[sample(..)]` | meaning |
/// | --- | --- |
/// | `shape = [3, 8, 8]` | the shape of every row |
/// | `padded = [512]` | the shape of the longest row; a batch is padded to its own longest row. An image is of any size up to it. A longer row is an error: [`Field::padded`] says how to cut it |
/// | `jagged = [512]` | the same, and rows lie end to end: see [`Field::jagged`] |
/// | `fill = -1` | the padding, or what stands for `None`; 0 without it |
/// | `mask` | adds `<name>_mask`: true for values, false for padding or `None` |
/// | `dtype = bf16` | the dtype on the device, which casts. The dtype of a mask or an image is made on the host |
/// | `mean = 0.5, std = 0.2` | `(value - mean) / std`, of bytes `(value / 255 - mean) / std`, as `f32` or as `dtype` says. A number, or an array of one for each channel, which is the first dimension of a row; a constant is an array |
/// | `format = Xywh` | of boxes: their format. Left, top, right, bottom without it |
/// | `column` | no tensor, but a `Vec` of the values; the type is `Clone`, `Debug`, `Send` and `Sync` |
/// | `skip` | it is not in the batch |
/// | `with = module` | the functions of a module: see below |
///
/// The derive sees names of types, and no more: an alias needs `column`, `skip` or `with`. `#[sample(batch = Name)]` at the struct
/// names the batch. The batch implements [`MapTensors`](trait@MapTensors), `Clone` and `Debug`. Levels of lints, such as `#[allow(..)]`, are
/// those of the batch too. Where the crate has another name, `#[sample(crate = "other::name")]` says it.
///
/// A module of your own makes a field of any type. It has the type of the batch's field, and three functions:
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
/// A [`Collate`] written by hand may call the derived parts: see the trait.
#[cfg(feature = "derive")]
pub use burn_pinned_derive::Sample;
pub use device::{MapTensors, TensorMapper, copy_to, host_alloc};
pub use fault::{BadSamples, BoxError, Error};
#[cfg(feature = "vision")]
#[doc(no_inline)]
pub use image;
#[cfg(feature = "metrics")]
pub use loader::LoaderMetric;
pub use loader::{LoaderState, PinnedBatcher, PinnedDataLoader, PinnedDataLoaderBuilder, dataset};
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
/// loader and its decoder have more streams than that. So with fewer than 16 queues, steps wait while the device decodes. This function sets
/// the environment variable `CUDA_DEVICE_MAX_CONNECTIONS` to 32, the maximum, for this process. It keeps a number that is already set. CUDA
/// reads the variable when the process first uses a device. You can also start the program with the variable in its environment. With fewer
/// than 16 queues, `Decoder::Auto` decodes on the workers where each device has 8 or more of them, and the log has a warning. Without the
/// feature `cuda` the function does nothing.
///
/// # Errors
/// [`Error::Config`], if the process has other threads already: one of them may read the environment at the same time. Under
/// `#[tokio::main]`, for example, write a `main` that calls it before the runtime starts.
pub fn prepare() -> Result<(), Error> {
    device::prepare()
}

/// The example of the README, compiled and run as a test.
#[cfg(all(doctest, feature = "derive"))]
#[doc = include_str!("../README.md")]
mod readme {}

/// Programs that show faults of Burn. If one of them fails, Burn has fixed its fault.
#[cfg(doctest)]
#[doc = include_str!("../upstream/burn-batcher-panic.md")]
#[doc = include_str!("../upstream/burn-dashboard-error.md")] // only compiled: it needs a terminal
#[doc = include_str!("../upstream/burn-running-state.md")]
#[doc = include_str!("../upstream/burn-shuffled-get-many.md")]
#[doc = include_str!("../upstream/burn-slice-before-shuffle.md")]
#[doc = include_str!("../upstream/burn-uneven-slices.md")]
mod upstream {}
