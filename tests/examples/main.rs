//! What the examples conclude and show, from their own files.

mod doctor;
mod learner;
