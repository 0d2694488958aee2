//! Asks CUDA for more hardware queues.
#![expect(unsafe_code)]

use crate::{
    device::queues::{VARIABLE, may_set, threads},
    fault::Error,
};
use std::env;

/// Asks for 32 queues, unless the environment says how many there should be.
pub(crate) fn prepare() -> Result<(), Error> {
    if may_set(env::var_os(VARIABLE).is_some(), threads())? {
        // SAFETY: the process has this thread alone, so nobody reads the environment meanwhile. Windows locks its environment.
        unsafe { env::set_var(VARIABLE, "32") };
    }
    Ok(())
}
