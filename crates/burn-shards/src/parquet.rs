//! Parquet files, row by row.
//!
//! The footer describes a file (`footer`). A column consists of leaves (`columns`). The values of a leaf in a row group are a chunk, which
//! has pages (`pages`). A row takes a value of each column (`rows`), in one of two ways. If values are compressed or encoded, a page
//! (without an offset index, a chunk) is decoded once and kept as a piece (`pages/piece`), which neighbouring rows use too. Rows of nested
//! lists and maps are assembled from several leaves (`rows/assemble`). If values are stored plainly, as the Hugging Face hub's writer does
//! with images, a page is scanned once to note where each value is (`pages/notes`). After that, a row costs one read of exactly its bytes.

mod columns;
mod fault;
mod footer;
mod pages;
mod rows;
mod thrift;

pub(crate) use rows::open;

#[cfg(test)]
mod tests;
