//! What the examples conclude and show, from their own files.

mod data_parallel;
mod doctor;
#[cfg(all(feature = "parquet", feature = "http"))]
mod doctor_data;
mod learner;
