//! The GPUs and their links, measured without any loader.

use super::clock::Clock;

/// A GPU, and the GB/s that go to it.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    pub(crate) name: String,
    /// The NUMA node that it is attached to.
    pub(crate) node: Option<usize>,
    /// Bytes of its memory that are free.
    pub(crate) free: usize,
    pub(crate) pageable: f64,
    pub(crate) locked: f64,
    /// While all GPUs copy.
    pub(crate) together: f64,
}

/// Measures all GPUs.
///
/// # Errors
/// Why there is none.
#[cfg(not(feature = "cuda"))]
pub(crate) fn measure(_: &Clock) -> Result<Vec<Gpu>, String> {
    Err("this program was built without the feature `cuda`".into())
}

#[cfg(feature = "cuda")]
pub(crate) use cuda::measure;

#[cfg(feature = "cuda")]
mod cuda {
    use super::{Clock, Gpu};
    use cudarc::driver::{CudaContext, DriverError, sys::CUdevice_attribute as Attribute};
    use std::{
        fs,
        sync::{Arc, Barrier},
        thread,
        time::{Duration, Instant},
    };

    /// Bytes of a copy: those of a batch of 128 images.
    const BYTES: usize = 128 * 3 * 224 * 224;

    pub(crate) fn measure(clock: &Clock) -> Result<Vec<Gpu>, String> {
        // SAFETY: it only tries to load the driver's library, which has no unsound initialisers.
        #[expect(unsafe_code, reason = "cudarc panics where there is no driver")]
        let driver = unsafe { cudarc::driver::sys::is_culib_present() };
        if !driver {
            return Err("NVIDIA's driver was not found".into());
        }
        let words = |error: DriverError| error.to_string();
        let count = CudaContext::device_count().map_err(words)?;
        let contexts =
            (0..count).map(|nth| CudaContext::new(nth as usize)).collect::<Result<Vec<_>, _>>().map_err(words)?;
        if contexts.is_empty() {
            return Err("the driver shows no GPU".into());
        }
        clock.expect(2 * contexts.len() + usize::from(contexts.len() > 1));
        let mut gpus = Vec::new();
        for (nth, context) in contexts.iter().enumerate() {
            let [locked, pageable] = [(true, "page-locked"), (false, "pageable")]
                .map(|(locked, kind)| rate(context, locked, clock.next(format_args!("link of GPU {nth}, {kind}"))));
            let (locked, pageable) = (locked.map_err(words)?, pageable.map_err(words)?);
            let name = context.name().map_err(words)?;
            let (free, _) = context.mem_get_info().map_err(words)?;
            gpus.push(Gpu { name, node: node(context), free, pageable, locked, together: locked });
        }
        if gpus.len() > 1 {
            let (start, time) = (Barrier::new(contexts.len()), clock.next("links of all GPUs at once"));
            let all: Vec<Result<f64, DriverError>> = thread::scope(|scope| {
                let one = |context| {
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        rate(context, true, time)
                    })
                };
                let threads: Vec<_> = contexts.iter().map(one).collect();
                threads.into_iter().map(|thread| thread.join().expect("a copy does not panic")).collect()
            });
            for (gpu, rate) in gpus.iter_mut().zip(all) {
                gpu.together = rate.map_err(words)?;
            }
        }
        Ok(gpus)
    }

    /// GB/s of copies to a GPU for some time, from memory that is page-locked or not.
    fn rate(context: &Arc<CudaContext>, locked: bool, time: Duration) -> Result<f64, DriverError> {
        let stream = context.new_stream()?;
        // SAFETY: what the device's memory holds does not matter to a copy into it.
        #[expect(unsafe_code, reason = "cudarc leaves fresh memory uninitialised")]
        let mut device = unsafe { stream.alloc::<u8>(BYTES) }?;
        let plain = vec![1u8; if locked { 0 } else { BYTES }];
        // SAFETY: all of it is filled before it is copied.
        #[expect(unsafe_code, reason = "cudarc leaves fresh memory uninitialised")]
        let mut pinned = unsafe { context.alloc_pinned::<u8>(if locked { BYTES } else { 1 }) }?;
        pinned.as_mut_slice()?.fill(1);
        let mut copies = |count: usize| -> Result<(), DriverError> {
            for _ in 0..count {
                match locked {
                    true => stream.memcpy_htod(&pinned, &mut device)?,
                    false => stream.memcpy_htod(&plain, &mut device)?,
                }
            }
            stream.synchronize()
        };
        copies(3)?;
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < time {
            copies(8)?;
            count += 8;
        }
        Ok((count * BYTES) as f64 / start.elapsed().as_secs_f64() / 1e9)
    }

    fn node(context: &CudaContext) -> Option<usize> {
        let number = |attribute| context.attribute(attribute).ok();
        let domain = number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
        let bus = number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
        let slot = number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
        let file = format!("/sys/bus/pci/devices/{domain:04x}:{bus:02x}:{slot:02x}.0/numa_node");
        fs::read_to_string(file).ok()?.trim().parse().ok() // -1 where the host does not say
    }
}
