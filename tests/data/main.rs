//! Data sets of shards: files of real writers, damaged files, and what the loader makes of each format.

mod any;
mod damaged;
mod flights;
mod formats;
mod golden;
mod kills;
mod memory;
mod mnist;
mod opened;
mod order;
mod pictures;
mod policies;
mod tokens;
