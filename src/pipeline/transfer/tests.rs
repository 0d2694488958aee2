//! Transfer threads without a GPU.

mod epochs;
mod fake;
mod faults;
mod verdicts;
mod waits;
