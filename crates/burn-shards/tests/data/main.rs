//! Data sets of shards: files of real writers, damaged files, servers that fail.

mod claims;
mod damaged;
mod drops;
mod fit;
mod flights;
mod floats;
mod golden;
#[cfg(feature = "http")]
mod house;
mod members;
mod memory;
mod names;
mod nested;
mod no_numbers;
mod opened;
mod parts;
#[cfg(feature = "http")]
mod secrets;
mod series;
#[cfg(all(feature = "http", unix))]
mod strangers;
mod streams;
mod swapped;
mod text;
mod tokens;
#[cfg(feature = "http")]
mod web;

#[cfg(feature = "http")]
use burn_pinned_made::server;
use burn_pinned_made::{any, apart, formats, kept, shards, write};
