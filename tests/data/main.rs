//! Data sets of shards: files of real writers, damaged files, and what the loader makes of each format.

mod any;
mod damaged;
mod formats;
mod golden;
mod kills;
mod memory;
mod opened;
mod order;
mod pictures;
mod policies;
mod tokens;
