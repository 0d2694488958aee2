//! What tests of both crates make: shards, a web server that fails as it is told, a process apart, a log that is kept.

#[cfg(feature = "shards")]
pub mod any;
pub mod apart;
#[cfg(feature = "shards")]
pub mod formats;
pub mod golden;
pub mod kept;
pub mod server;
#[cfg(feature = "shards")]
pub mod shards;
#[cfg(feature = "shards")]
pub mod write;
