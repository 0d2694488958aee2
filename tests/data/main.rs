//! Data sets of shards: files of real writers, damaged files, and what the loader makes of each format.

mod any;
#[path = "../common/apart.rs"]
mod apart;
mod claims;
mod damaged;
#[cfg(target_os = "linux")]
mod descriptors;
mod fit;
mod flights;
mod floats;
mod formats;
mod golden;
#[cfg(feature = "http")]
mod house;
mod kept;
mod kills;
mod memory;
mod mnist;
mod names;
mod no_numbers;
mod opened;
mod order;
mod pictures;
mod policies;
#[cfg(feature = "http")]
mod secrets;
#[cfg(feature = "http")]
#[allow(dead_code)] // the store's own tests use the rest
mod server;
mod shards;
#[cfg(all(feature = "http", unix))]
mod strangers;
mod swapped;
mod tokens;
#[cfg(feature = "http")]
mod web;
