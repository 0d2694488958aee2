//! A loader on a CPU backend: what it delivers, in which order, and what it says when something is wrong.
//!
//! Tests that count this process's threads, or that change what belongs to the process, are in `threads`.

mod batch_samplers;
mod begin_faults;
mod burn_programs;
mod burn_traits;
mod columns;
#[path = "../common/mod.rs"]
mod common;
mod companions;
mod dataset_errors;
mod derived;
mod devices;
mod faults;
mod fingerprints;
mod golden_samplers;
mod in_turn;
mod integers;
mod kept;
mod labels;
mod live_weights;
#[cfg(unix)]
mod machine;
mod none_good;
mod options;
mod order;
mod packing;
mod parts;
mod planes;
mod policies;
mod program_faults;
mod read_many;
mod resume;
mod sampler_statistics;
mod samplers;
mod shapes;
mod slices;
mod stages;
mod standing;
mod steps;
mod streams;
mod timeline;
mod vast;
