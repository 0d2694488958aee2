//! The modules of the example `data_parallel`.
#![allow(dead_code, unused_imports, reason = "the example uses all of its modules, each test a part")]

#[path = "../../examples/data_parallel/lines.rs"]
pub(crate) mod lines;
#[path = "../../examples/data_parallel/model.rs"]
pub(crate) mod model;
#[path = "../../examples/replicas/mod.rs"]
pub(crate) mod replicas;
