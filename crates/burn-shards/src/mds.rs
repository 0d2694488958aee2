//! MDS: shards with an `index.json`, as MosaicML's streaming library writes them.
//!
//! A shard begins with a table of where each row is. A row has the sizes of the columns that have no fixed size, and then the values. So
//! one row is one read. `encoding` and `ndarray` decode the values. Columns of pickled Python objects are refused, because reading them
//! runs code.
//!
//! Compressed shards are decompressed once, when the data set is opened, to a folder that the user names (`unpack`, with the feature
//! `mds`). The original shards are never modified.

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
