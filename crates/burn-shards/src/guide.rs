//! The pages of the folder `docs`, as this documentation shows them. A program does not have this module.
//!
//! [Rows](rows): row types, formats and their costs. [Stores](stores): servers, credentials, reading ahead, faults. [A cache](cache)
//! on a disk for them. [Text](text): rows to tokens, chats. [Token files](tokens).

// `docs/guide.html` makes links between pages. Their examples are tests, which need features.

#[doc = include_str!("../docs/cache.md")]
pub mod cache {}
#[cfg(any(feature = "parquet", not(doctest)))]
#[doc = include_str!("../docs/rows.md")]
pub mod rows {}
#[cfg(any(all(feature = "http", feature = "parquet"), not(doctest)))]
#[doc = include_str!("../docs/stores.md")]
pub mod stores {}
#[cfg(any(feature = "tokenizers", not(doctest)))]
#[doc = include_str!("../docs/text.md")]
pub mod text {}
#[doc = include_str!("../docs/tokens.md")]
pub mod tokens {}
