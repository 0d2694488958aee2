//! The pages of the folder `docs`. This module exists only in the documentation.
//!
//! - [Rows](rows): row types, formats and what each format costs.
//! - [Stores](stores): servers, credentials, fetching ahead, a cache on disk, errors.
//! - [Text and tokens](text): tokenisers, chats, token files.

// `docs/guide.html` makes the links between the pages work. The examples of the pages are tests, and need features.

#[cfg(any(feature = "parquet", not(doctest)))]
#[doc = include_str!("../docs/rows.md")]
pub mod rows {}
#[cfg(any(all(feature = "http", feature = "parquet"), not(doctest)))]
#[doc = include_str!("../docs/stores.md")]
pub mod stores {}
#[cfg(any(feature = "tokenizers", not(doctest)))]
#[doc = include_str!("../docs/text.md")]
pub mod text {}
