//! Parquet files, row by row.
//!
//! What a file tells is in its footer (`footer`). A column is made of leaves (`columns`). The values of a leaf in a row group are
//! a chunk, and that has pages (`pages`). A row takes a value of each column (`rows`), in one of two ways. Where values are
//! compressed or encoded, a page, or a chunk without an offset index, is decoded once and kept as a piece (`pages/piece`), which
//! serves its neighbours. Rows of nested lists and maps are made of several leaves (`rows/assemble`). Where values are stored as
//! they are, as the Hugging Face hub's writer does with images, a page is looked at once to note where each value lies
//! (`pages/notes`); from then on a row costs one read of exactly its bytes.

mod columns;
mod fault;
mod footer;
mod pages;
mod rows;
mod thrift;

pub(crate) use rows::open;

#[cfg(test)]
mod tests;
