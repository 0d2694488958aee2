//! What can go wrong, what is done about it, and what each thread is doing.

mod error;
mod field;
mod guard;
mod panics;
mod policy;
mod watch;

pub use error::{BoxError, Error, HungCall};
pub use field::FieldError;
pub(crate) use guard::{discard, guard, guard_at};
pub(crate) use panics::{Caught, catch, keep_backtraces};
pub use policy::{BadSamples, Quota};
pub(crate) use policy::{Faults, OnFault, Skips, Tally};
pub(crate) use watch::{Doing, Watch, during};
