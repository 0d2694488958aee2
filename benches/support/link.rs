//! What the hardware gives without any loader: the raw link, and the device's memory.

/// The first device; `None` without one, or without a driver.
#[cfg(feature = "cuda")]
fn context() -> Option<std::sync::Arc<cudarc::driver::CudaContext>> {
    // SAFETY: it only tries to load the driver's library, which has no unsound initialisers.
    #[expect(unsafe_code, reason = "cudarc panics where there is no driver")]
    let driver = unsafe { cudarc::driver::sys::is_culib_present() };
    driver.then(|| cudarc::driver::CudaContext::new(0).ok())?
}

/// GB/s of page-locked memory to the device, back to back; `None` without CUDA.
#[cfg(feature = "cuda")]
pub(crate) fn gb_per_s(bytes: usize) -> Option<f64> {
    let context = context()?;
    let stream = context.new_stream().ok()?;
    // SAFETY: the memory is plain bytes; what they hold does not matter to a copy.
    #[expect(unsafe_code, reason = "cudarc leaves fresh memory uninitialised")]
    let (mut host, mut device) = unsafe { (context.alloc_pinned::<u8>(bytes).ok()?, stream.alloc::<u8>(bytes).ok()?) };
    host.as_mut_slice().ok()?.fill(1);
    let mut rate = 0.0;
    for copies in [5, 40] {
        stream.synchronize().ok()?;
        let start = std::time::Instant::now();
        for _ in 0..copies {
            stream.memcpy_htod(&host, &mut device).ok()?;
        }
        stream.synchronize().ok()?;
        rate = (copies * bytes) as f64 / start.elapsed().as_secs_f64() / 1e9;
    }
    Some(rate)
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn gb_per_s(_: usize) -> Option<f64> {
    None
}

/// Megabytes of device memory in use, by anybody.
#[cfg(feature = "cuda")]
pub(crate) fn device_mb() -> Option<f64> {
    let context = context()?;
    let (free, total) = context.mem_get_info().ok()?;
    Some((total - free) as f64 / 1e6)
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn device_mb() -> Option<f64> {
    None
}

/// The GPU and its driver, for the record.
#[cfg(feature = "cuda")]
pub(crate) fn gpu() -> Option<String> {
    let context = context()?;
    let driver = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let driver = driver.split_whitespace().find(|word| word.contains('.')).unwrap_or("?").to_string();
    Some(format!("{}, driver {driver}", context.name().ok()?))
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn gpu() -> Option<String> {
    None
}
