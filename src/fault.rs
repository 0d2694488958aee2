//! Errors, and policies for them. [`Error`] is everything that a loader can report. [`BadSamples`] sets what happens to
//! a sample that fails to load, and [`Quota`] how many samples an epoch may skip. [`LeftOut`] leaves out a sample that
//! is not bad. [`FieldError`] says what a collate did wrong with a field. [`HungCall`] is the call that delayed a batch
//! until its `timeout`. [`BoxError`] is any error of your own code.

mod error;
mod field;
mod guard;
mod left_out;
mod machine;
mod panics;
mod policy;
mod watch;

pub(crate) use burn_shards::for_loader::UserValues;
pub(crate) use error::is_left_out;
pub use error::{BoxError, Error, HungCall};
pub use field::FieldError;
pub(crate) use guard::{discard, discard_each, guard, guard_at};
pub use left_out::LeftOut;
pub(crate) use panics::{Panic, catch, drop_each, keep_backtraces};
pub use policy::{BadSamples, Quota};
pub(crate) use policy::{Faults, OnFault, READ_AS_ONE, Skips, Tally};
pub(crate) use watch::{Activity, Watch, aside, during, idle};
