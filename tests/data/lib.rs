//! What the loader makes of data sets of shards; crates/burn-shards has the tests of the data sets themselves.

#![cfg(test)]

mod ahead;
mod busy;
mod derived;
#[cfg(target_os = "linux")]
mod descriptors;
mod drops;
mod kills;
mod mnist;
mod order;
mod pictures;
mod policies;
mod series;
mod sums;
mod text;
mod tokens;

use burn_pinned_made::{apart, formats, golden, server};
