//! CUDA's hardware queues. Streams that share a queue wait for each other.

use std::{env, sync::Once};

/// The environment variable that sets the number of queues, before the process first uses CUDA. CUDA's default is 8,
/// and the most is 32.
const VARIABLE: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
/// nvJPEG makes several streams. Beside CubeCL's and those of the loader, 8 queues are too few: see benches/README.md.
const ENOUGH_QUEUES: u32 = 16;

/// Warns, once, if the steps may wait for the decoder.
pub(super) fn check() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let queues = env::var(VARIABLE).ok().and_then(|value| value.trim().parse().ok());
        if queues.is_none_or(|queues: u32| queues < ENOUGH_QUEUES) {
            log::warn!(
                "burn-pinned decodes images on the device: start the program with {VARIABLE}=32 in its environment, \
                 or steps may wait for the decoder"
            );
        }
    });
}
