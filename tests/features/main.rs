//! The features `metrics` and `tracing`. The receiver of spans belongs to the process, so each test holds `common::ALONE`.
#![cfg(any(feature = "metrics", feature = "tracing"))]

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod tracing;
