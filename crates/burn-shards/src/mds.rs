//! MDS: shards with an `index.json`, as MosaicML's streaming library writes them.
//!
//! A shard begins with a table of where each row is. A row has the size of each column that has no fixed size, and then
//! the values. So one row is one read. What values are made of is in `encoding` and `ndarray`. Columns of pickled Python
//! objects are refused: to read them means to run what is in them.
//!
//! Compressed shards are decompressed once, when the data set is opened, to a folder that the user names (`unpack`, with the
//! feature `mds`). The shards themselves are never touched.

mod encoding;
mod index_json;
mod ndarray;
mod row;
mod shard;
mod source;
#[cfg(test)]
mod tests;
#[cfg(feature = "mds")]
mod unpack;

pub(crate) use source::open;
