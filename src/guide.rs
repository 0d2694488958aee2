//! The pages of the folder `docs`, as this documentation shows them. A program does not have this module.
//!
//! - To start: [Your own data set](own_data), [Recipes](recipes), [Moving from Burn's loader](from_burn), [from PyTorch's](from_pytorch),
//!   [On a GPU](gpu), [Features](features), [How it works](how_it_works), [Compared with other loaders](compare).
//! - To use more of it: [Shards through the loader](data), [Data that fits on the device](kept), [Options](options),
//!   [Samplers](samplers), [Text for language models](text), [Augmentation](augmentation), [Images](images), [Resume](resume),
//!   [Several processes and GPUs](processes).
//! - To see what it does: [Statistics](statistics), [Memory](memory), [Faults](faults), [Troubleshooting](troubleshooting).
//!
//! The crate `burn-shards` has pages of its own, on rows, stores, its cache and token files.

// `docs/guide.html` makes links between pages. Their examples are tests, which need features.

#[doc = include_str!("../docs/augmentation.md")]
pub mod augmentation {}
#[doc = include_str!("../docs/compare.md")]
pub mod compare {}
#[cfg(any(all(feature = "vision", feature = "parquet"), not(doctest)))]
#[doc = include_str!("../docs/data.md")]
pub mod data {}
#[doc = include_str!("../docs/faults.md")]
pub mod faults {}
#[doc = include_str!("../docs/features.md")]
pub mod features {}
#[doc = include_str!("../docs/from-burn.md")]
pub mod from_burn {}
#[cfg(any(feature = "vision", not(doctest)))]
#[doc = include_str!("../docs/from-pytorch.md")]
pub mod from_pytorch {}
#[doc = include_str!("../docs/gpu.md")]
pub mod gpu {}
#[doc = include_str!("../docs/how-it-works.md")]
pub mod how_it_works {}
#[cfg(any(all(feature = "vision", feature = "derive", feature = "parquet"), not(doctest)))]
#[doc = include_str!("../docs/images.md")]
pub mod images {}
#[cfg(any(feature = "vision", not(doctest)))]
#[doc = include_str!("../docs/kept.md")]
pub mod kept {}
#[doc = include_str!("../docs/memory.md")]
pub mod memory {}
#[doc = include_str!("../docs/options.md")]
pub mod options {}
#[cfg(any(feature = "derive", not(doctest)))]
#[doc = include_str!("../docs/own-data.md")]
pub mod own_data {}
#[doc = include_str!("../docs/processes.md")]
pub mod processes {}
#[cfg(any(all(feature = "vision", feature = "parquet", feature = "wav"), not(doctest)))]
#[doc = include_str!("../docs/recipes.md")]
pub mod recipes {}
#[cfg(any(all(feature = "vision", feature = "derive"), not(doctest)))]
#[doc = include_str!("../docs/resume.md")]
pub mod resume {}
#[doc = include_str!("../docs/samplers.md")]
pub mod samplers {}
#[doc = include_str!("../docs/statistics.md")]
pub mod statistics {}
#[doc = include_str!("../docs/text.md")]
pub mod text {}
#[doc = include_str!("../docs/troubleshooting.md")]
pub mod troubleshooting {}
