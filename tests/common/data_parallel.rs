//! The modules of the example `data_parallel`.
#![allow(dead_code, reason = "the example uses all of its modules, each test a part")]

#[path = "../../examples/data_parallel/barrier.rs"]
pub(crate) mod barrier;
#[path = "../../examples/resume/checkpoint.rs"]
pub(crate) mod checkpoint;
#[path = "../../examples/data_parallel/gradients.rs"]
pub(crate) mod gradients;
#[path = "../../examples/data_parallel/lines.rs"]
pub(crate) mod lines;
#[path = "../../examples/data_parallel/mean.rs"]
pub(crate) mod mean;
#[path = "../../examples/data_parallel/model.rs"]
pub(crate) mod model;
#[path = "../../examples/data_parallel/replica.rs"]
pub(crate) mod replica;
#[path = "../../examples/data_parallel/train.rs"]
pub(crate) mod train;
