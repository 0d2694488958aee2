//! Asks CUDA for more hardware queues, and finds out whether there are enough.
#![expect(unsafe_code)]

use crate::{
    device::queues::{VARIABLE, advice, are_few, may_set, threads},
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

/// Warns, once, if steps would wait for a decoder on the device.
///
/// # Errors
/// The same in words, if the workers can decode instead.
pub(in crate::device) fn check(workers_can: bool) -> Result<(), String> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    if !are_few(env::var(VARIABLE).ok().as_deref()) {
        return Ok(());
    }
    let place = if workers_can { "on the workers" } else { "on the device" };
    let problem = format!("with few hardware queues, steps wait for the device's decoder: {}", advice());
    ONCE.call_once(|| log::warn!("burn-pinned decodes images {place}: {problem}"));
    if workers_can { Err(problem) } else { Ok(()) }
}
