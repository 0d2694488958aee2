//! Tar shards by the rules of WebDataset: neighbouring files with one key make a row.

mod dali;
mod header;
mod parts;
mod samples;
mod saved;
mod scan;
mod source;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use source::{KEY, URL, open};
pub(crate) use stream::stream;
