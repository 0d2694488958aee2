//! The pipeline of an accelerator, without a GPU.

mod epochs;
mod fake;
mod faults;
mod verdicts;
mod waits;
