//! What the tests and the bench of the example `data_parallel` train, and the folder `replicas`, which trains it.
#![allow(dead_code, unused_imports, reason = "each of them uses a part")]

#[path = "data_parallel/lines.rs"]
pub(crate) mod lines;
#[path = "data_parallel/model.rs"]
pub(crate) mod model;
#[path = "../../examples/replicas/mod.rs"]
pub(crate) mod replicas;
