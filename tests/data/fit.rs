//! What row types make of columns: of good values, of bad ones, and of those that are not there.

mod lists;
mod numbers;
mod write;
