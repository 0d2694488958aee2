//! Parquet files, row by row.
//!
//! What a file tells is in its footer (`footer`, `schema`, `offsets`). A column is made of leaves. The values of a leaf
//! in a row group are a chunk, and that has pages (`header`). Values are read in two ways. Where they are compressed or
//! encoded, a page, or a chunk without an offset index, is decoded once (`pages`, `decode`) and kept as a piece
//! (`piece`), that serves its neighbours. Rows of nested lists and maps are made of several leaves (`assemble`). Where they are stored as they are, as the Hugging Face hub's writer does with
//! images, a page is looked at once to note where each value lies (`notes`, `saved`); from then on a row costs one read
//! of exactly its bytes.

mod agree;
mod assemble;
mod cells;
mod check;
mod chunk;
mod compare;
mod decode;
mod footer;
mod header;
mod inflate;
mod kind;
mod levels;
mod mend;
mod nodes;
mod notes;
mod offsets;
mod pages;
mod piece;
mod sample;
mod saved;
mod schema;
mod source;
mod thrift;
mod words;
mod writer;
mod wrong;

pub(crate) use source::open;

#[cfg(test)]
mod tests;
