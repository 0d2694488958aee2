//! The GPUs and their links, without any loader.

use crate::window::{Start, joined};
use burn::tensor::Device;
use burn_pinned::BoxError;
use std::{thread, time::Duration};

#[cfg(feature = "cuda")]
pub(crate) use cuda::{address, beside, context, copy, devices};

/// GB/s to each of the first devices, from page-locked memory, while all of them copy.
pub(crate) fn together(devices: usize, bytes: usize, start: &Start) -> Result<Vec<f64>, BoxError> {
    thread::scope(|scope| {
        let threads = (0..devices).map(|nth| scope.spawn(move || copy(nth, bytes, start)));
        joined(threads, "a thread that copies panicked")
    })
}

/// All GPUs, or why there are none.
#[cfg(not(feature = "cuda"))]
pub(crate) fn devices() -> Result<Vec<Device>, String> {
    Err("this bench was built without the feature `cuda`".into())
}

/// The PCI address of a GPU.
#[cfg(not(feature = "cuda"))]
pub(crate) fn address(_: usize) -> Option<String> {
    None
}

/// GB/s to one device.
#[cfg(not(feature = "cuda"))]
pub(crate) fn copy(_: usize, _: usize, start: &Start) -> Result<f64, BoxError> {
    start.wait();
    Err("this bench was built without the feature `cuda`".into())
}

/// Calls `run` while a thread copies bytes to a device again and again. Without GPUs, nothing is copied.
#[cfg(not(feature = "cuda"))]
pub(crate) fn beside<T>(
    _: usize,
    _: usize,
    _: Duration,
    run: impl FnOnce() -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    run()
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::*;
    use cudarc::driver::{
        CudaContext, CudaSlice, CudaStream, DriverError, PinnedHostSlice, sys::CUdevice_attribute as Attribute,
    };
    use std::{
        sync::{
            Arc, LazyLock,
            atomic::{AtomicBool, Ordering::Relaxed},
        },
        time::Instant,
    };

    /// Copies between two looks at the clock.
    const COPIES: usize = 8;

    /// They stay for the life of the process: a context that nobody has open takes long to open again.
    static CONTEXTS: LazyLock<Result<Vec<Arc<CudaContext>>, String>> = LazyLock::new(|| {
        // SAFETY: it only tries to load the driver's library, which has no unsound initialisers.
        #[expect(unsafe_code, reason = "cudarc panics where there is no driver")]
        let driver = unsafe { cudarc::driver::sys::is_culib_present() };
        if !driver {
            return Err("NVIDIA's driver was not found".into());
        }
        let open = || -> Result<Vec<_>, DriverError> {
            (0..CudaContext::device_count()?).map(|nth| CudaContext::new(nth as usize)).collect()
        };
        match open() {
            Ok(contexts) if contexts.is_empty() => Err("the driver shows no GPU".into()),
            Ok(contexts) => Ok(contexts),
            Err(error) => Err(error.to_string()),
        }
    });

    pub(crate) fn devices() -> Result<Vec<Device>, String> {
        let contexts = CONTEXTS.as_ref().map_err(String::clone)?;
        Ok((0..contexts.len()).map(Device::cuda).collect())
    }

    pub(crate) fn context(nth: usize) -> Option<Arc<CudaContext>> {
        CONTEXTS.as_ref().ok()?.get(nth).cloned()
    }

    pub(crate) fn address(nth: usize) -> Option<String> {
        let context = context(nth)?;
        let number = |attribute| context.attribute(attribute).ok();
        let domain = number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
        let bus = number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
        let slot = number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
        Some(format!("{domain:04x}:{bus:02x}:{slot:02x}.0"))
    }

    /// Memory on both sides of a link.
    struct Link {
        stream: Arc<CudaStream>,
        host: PinnedHostSlice<u8>,
        device: CudaSlice<u8>,
    }

    impl Link {
        fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, DriverError> {
            let stream = context.new_stream()?;
            // SAFETY: the memory is plain bytes; what they hold does not matter to a copy.
            #[expect(unsafe_code, reason = "cudarc leaves fresh memory uninitialised")]
            let (mut host, device) = unsafe { (context.alloc_pinned::<u8>(bytes)?, stream.alloc::<u8>(bytes)?) };
            host.as_mut_slice()?.fill(1);
            let mut link = Self { stream, host, device };
            link.copy(1)?;
            Ok(link)
        }

        fn copy(&mut self, times: usize) -> Result<(), DriverError> {
            for _ in 0..times {
                self.stream.memcpy_htod(&self.host, &mut self.device)?;
            }
            self.stream.synchronize()
        }
    }

    /// Sets what it has when it is dropped.
    struct Ends<'a>(&'a AtomicBool);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }

    pub(crate) fn beside<T>(
        nth: usize,
        bytes: usize,
        every: Duration,
        run: impl FnOnce() -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        let Some(context) = context(nth) else { return run() };
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let ends = Ends(&done); // also if `run` panics
            let done = &done;
            let copies = scope.spawn(move || -> Result<(), DriverError> {
                let mut link = Link::new(&context, bytes)?;
                let mut next = Instant::now();
                while !done.load(Relaxed) {
                    link.copy(1)?;
                    next += every;
                    thread::sleep(next.saturating_duration_since(Instant::now()));
                }
                Ok(())
            });
            let ran = run();
            drop(ends);
            copies.join().map_err(|_| "a thread that copies panicked")??;
            ran
        })
    }

    pub(crate) fn copy(nth: usize, bytes: usize, start: &Start) -> Result<f64, BoxError> {
        let link = context(nth).map(|context| Link::new(&context, bytes));
        let window = start.wait();
        let mut link = link.ok_or("there is no such GPU")??;
        let (mut copied, mut before) = (0.0, Instant::now());
        while !window.is_over(before) {
            link.copy(COPIES)?;
            let now = Instant::now();
            copied += window.share(before, now) * (COPIES * bytes) as f64;
            before = now;
        }
        Ok(copied / window.seconds() / 1e9)
    }
}
