//! What the examples conclude and show, from their own files.

mod data_parallel;
mod learner;
