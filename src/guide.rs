//! The pages of the folder `docs`, as this documentation shows them. A program does not have this module.
//!
//! - Start: [Start here](start), [Recipes](recipes), [Moving from Burn's loader](from_burn), [from PyTorch's](from_pytorch),
//!   [Compared with other loaders](compare).
//! - Data: [Data files](data), [Samplers](samplers), [Text for language models](text),
//!   [Series and graphs](series).
//! - Images: [Images and random changes](images).
//! - Running and measuring: [On a GPU](gpu), [Troubleshooting](troubleshooting), [Memory](memory),
//!   [Several processes and GPUs](processes), [At scale](at_scale).
//!
//! The crates `burn-shards` and `burn-augment` have pages of their own.

// `docs/guide.html` makes links between pages. Their examples are tests, which need features.

#[doc = include_str!("../docs/at-scale.md")]
pub mod at_scale {}
#[doc = include_str!("../docs/compare.md")]
pub mod compare {}
#[cfg(any(all(feature = "vision", feature = "parquet"), not(doctest)))]
#[doc = include_str!("../docs/data.md")]
pub mod data {}
#[doc = include_str!("../docs/from-burn.md")]
pub mod from_burn {}
#[cfg(any(feature = "vision", not(doctest)))]
#[doc = include_str!("../docs/from-pytorch.md")]
pub mod from_pytorch {}
#[doc = include_str!("../docs/gpu.md")]
pub mod gpu {}
#[cfg(any(all(feature = "vision", feature = "derive"), not(doctest)))]
#[doc = include_str!("../docs/images.md")]
pub mod images {}
#[cfg(any(feature = "vision", not(doctest)))]
#[doc = include_str!("../docs/memory.md")]
pub mod memory {}
#[cfg(any(all(feature = "vision", feature = "derive"), not(doctest)))]
#[doc = include_str!("../docs/processes.md")]
pub mod processes {}
#[cfg(any(all(feature = "vision", feature = "derive", feature = "parquet", feature = "audio"), not(doctest)))]
#[doc = include_str!("../docs/recipes.md")]
pub mod recipes {}
#[doc = include_str!("../docs/samplers.md")]
pub mod samplers {}
#[cfg(any(feature = "derive", not(doctest)))]
#[doc = include_str!("../docs/series.md")]
pub mod series {}
#[cfg(any(feature = "derive", not(doctest)))]
#[doc = include_str!("../docs/start.md")]
pub mod start {}
#[doc = include_str!("../docs/text.md")]
pub mod text {}
#[doc = include_str!("../docs/troubleshooting.md")]
pub mod troubleshooting {}
