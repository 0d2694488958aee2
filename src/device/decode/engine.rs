//! Decodes the images of a batch: cut into groups that fit into an arena, each decoded and then resampled.
#![expect(unsafe_code)]

use super::{
    arena::{Arena, Arenas},
    kernel::{Kernel, Launch},
    nvjpeg::{File, Nvjpeg},
};
use crate::{
    device::{
        cuda::context::{InContext, ordinal},
        few_queues,
        flat::{Failure, Redo},
    },
    fault::BoxError,
    image_rows::{HeadError, ImageRow, LongFiles},
    sync::locks::Mutex,
};
use burn::tensor::Device;
use cudarc::driver::{
    CudaContext, DriverError, result,
    sys::{CUdeviceptr, CUevent, CUevent_flags, CUstream},
};
use std::{
    cmp::Reverse,
    mem,
    ops::Range,
    sync::{Arc, Weak},
};

/// One batch is decoded while the one before is resampled.
const ARENAS: usize = 2;
/// The most bytes of decoded pictures in an arena.
const ARENA: usize = 240 << 20;
/// The most images of a launch.
const IMAGES: usize = 65_535;
/// Lines and pictures start at a multiple of this.
const ALIGN: usize = 256;
/// Words of an entry of the kernels' table: the head of a row, two addresses, a pitch, a sum, and one to align it.
const ENTRY: usize = ImageRow::WORDS + 8;

/// The decoder of a device. All loaders of the process share it, because the files of one thread are enough to keep all
/// engines busy.
#[derive(derive_more::Debug)]
#[debug("Engine")]
pub(crate) struct Engine {
    nvjpeg: Mutex<OnStream>,
    kernel: Kernel,
    arenas: Arenas,
    context: Arc<CudaContext>,
}

/// The library, with a stream of its own.
struct OnStream {
    /// `None` once it is not known what the library is still doing. The library is then never unloaded, and not used
    /// again.
    nvjpeg: Option<Nvjpeg>,
    stream: CUstream,
    decoded: CUevent,
    context: Arc<CudaContext>,
}

// SAFETY: streams and events of CUDA may be used from any thread.
unsafe impl Send for OnStream {}

/// With at least this many workers, decoding on them is faster than steps that wait for the device's decoder. See
/// benches/README.md.
const ENOUGH_WORKERS: usize = 8;

/// The engines of the process's devices.
static ENGINES: Mutex<Vec<(usize, Weak<Engine>)>> = Mutex::new(Vec::new());

/// The rows of a field of images.
pub(crate) struct Images<'a> {
    /// All rows, each with a head.
    pub(crate) rows: &'a [u8],
    pub(crate) row_bytes: usize,
    /// Files that are longer than their rows.
    pub(crate) long: &'a LongFiles,
    pub(crate) values: &'a Arc<[u8]>,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// A row to make, and the place of its picture in the arena.
struct PlacedRow<'a> {
    row: usize,
    head: ImageRow,
    bytes: &'a [u8],
    offset: usize,
    pitch: usize,
    /// The bytes of the row's pixels.
    pixels: usize,
    /// The place in the arena for the bytes before a contrast change.
    before: usize,
}

/// Returns the engine of a device, if it is a CUDA device. `workers` is the number of workers that could decode
/// instead.
///
/// # Errors
/// The reason in words, if the device cannot decode, or if the workers would be faster.
pub(in crate::device) fn engine(device: &Device, workers: usize) -> Option<Result<Arc<Engine>, BoxError>> {
    let ordinal = ordinal(device)?;
    let open = || {
        let engine = Engine::of(ordinal)?;
        match few_queues() {
            Some(problem) if workers >= ENOUGH_WORKERS => Err(problem.into()),
            _ => Ok(engine),
        }
    };
    Some(open())
}

impl Engine {
    /// Returns the engine of a device. Opens it if needed, which takes a second or two.
    ///
    /// # Errors
    /// The reason in words, if the device cannot decode.
    fn of(ordinal: usize) -> Result<Arc<Self>, BoxError> {
        let mut engines = ENGINES.lock();
        if let Some(engine) =
            engines.iter().find(|(other, _)| *other == ordinal).and_then(|(_, engine)| engine.upgrade())
        {
            return Ok(engine);
        }
        let (_in_context, context) = InContext::open(ordinal)?;
        let nvjpeg = Nvjpeg::open()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        let decoded = result::event::create(CUevent_flags::CU_EVENT_BLOCKING_SYNC).inspect_err(|_| {
            // SAFETY: just made, and nothing is on it.
            let _ = unsafe { result::stream::destroy(stream) };
        })?;
        let engine = Arc::new(Self {
            nvjpeg: Mutex::new(OnStream { nvjpeg: Some(nvjpeg), stream, decoded, context: Arc::clone(&context) }),
            kernel: Kernel::new(&context)?,
            arenas: Arenas::new(ARENAS, &context),
            context,
        });
        engines.retain(|(other, _)| *other != ordinal);
        engines.push((ordinal, Arc::downgrade(&engine)));
        Ok(engine)
    }

    /// Makes the images of rows at `out`, on the device. Returns when they are complete. `stream` is the calling
    /// thread's. The kernel runs on it, after the work that the stream waits for.
    ///
    /// # Safety
    /// `out` has room for all images, and nothing uses it but what is queued on `stream`.
    ///
    /// # Errors
    /// The errors of `redo`, or of the driver. If a wait failed, the device may still read the images and write to
    /// `out`.
    pub(crate) unsafe fn decode(
        &self,
        images: &Images<'_>,
        out: CUdeviceptr,
        stream: CUstream,
        redo: Redo<'_>,
    ) -> Result<(), Failure> {
        let _in_context = InContext::new(&self.context).map_err(failed)?;
        let rows = images.rows.len() / images.row_bytes;
        let mut first = 0;
        while first < rows {
            let group = group(images, first..rows);
            let (entries, bytes) = group.map_err(|error| Failure::Device(error.into()))?;
            let next = first + entries.len();
            // SAFETY: as for this function.
            unsafe { self.decode_group(images, entries, bytes, out, stream, redo) }?;
            first = next;
        }
        Ok(())
    }

    /// Makes the images of some rows, whose pictures take `bytes` bytes of an arena.
    ///
    /// # Safety
    /// As for `decode`.
    unsafe fn decode_group(
        &self,
        images: &Images<'_>,
        entries: Vec<PlacedRow<'_>>,
        bytes: usize,
        out: CUdeviceptr,
        stream: CUstream,
        redo: Redo<'_>,
    ) -> Result<(), Failure> {
        let mut lent = self.arenas.take();
        // SAFETY: as for this function. The arena is given back only if the waits for all of it were not in vain.
        let done = unsafe { self.decode_into(&mut lent.arena, images, entries, bytes, out, stream, redo) };
        if let Err(Failure::Lost(_)) = &done {
            lent.keep_for_ever();
        }
        done
    }

    /// Makes the images of some rows, using an arena.
    ///
    /// # Safety
    /// As for `decode`. After [`Failure::Lost`] nobody may use the arena.
    #[expect(clippy::too_many_arguments, reason = "one caller, which has all of it")]
    unsafe fn decode_into(
        &self,
        arena: &mut Arena,
        images: &Images<'_>,
        mut entries: Vec<PlacedRow<'_>>,
        bytes: usize,
        out: CUdeviceptr,
        stream: CUstream,
        redo: Redo<'_>,
    ) -> Result<(), Failure> {
        let first = entries.first().map_or(0, |entry| entry.row);
        let values = &**images.values;
        let table_bytes = (4 * ENTRY * entries.len()).next_multiple_of(ALIGN);
        let start = arena.reserve(table_bytes + values.len().next_multiple_of(ALIGN) + bytes).map_err(failed)?;
        let (table_at, values_at) = (start, start + table_bytes as u64);
        let pictures_at = values_at + values.len().next_multiple_of(ALIGN) as u64;

        let redone = self.pictures(&mut entries, pictures_at, redo)?;
        let mut table = vec![0u32; ENTRY * entries.len()];
        for (entry, words) in entries.iter().zip(table.chunks_exact_mut(ENTRY)) {
            let halves =
                |offset: usize| [pictures_at + offset as u64, (pictures_at + offset as u64) >> 32].map(|at| at as u32);
            let ([low, high], [before_low, before_high]) = (halves(entry.offset), halves(entry.before));
            let (head, rest) = words.split_at_mut(ImageRow::WORDS);
            head.copy_from_slice(bytemuck::cast_slice(&[entry.head]));
            rest[..5].copy_from_slice(&[low, high, entry.pitch as u32, before_low, before_high]);
        }
        let size = values.len() / (3 * 256);
        let row = 3 * images.width as usize * images.height as usize * size;
        let launch = Launch {
            table: table_at,
            values: values_at,
            size: size as u32,
            width: images.width,
            height: images.height,
            images: entries.len() as u32,
            contrast: entries.iter().any(|entry| entry.head.has_contrast()),
            widest: entries.iter().map(|entry| entry.head.part[0]).max().unwrap_or(0),
            out: out + (first * row) as u64,
        };
        // SAFETY: everything goes to this arena, which nobody else has. It has room for the table, the values and all
        // pictures; `group` has laid them out, and checked the heads that tell the kernel what to read. The kernel reads
        // it behind the copies, on the same stream, and the wait below is for all of it: what is copied lives until then,
        // and so does the arena. If the wait fails, both live for ever.
        let (launched, waited) = unsafe {
            let copied = result::memcpy_htod_async(table_at, bytemuck::cast_slice::<u32, u8>(&table), stream)
                .and_then(|()| result::memcpy_htod_async(values_at, values, stream))
                .and_then(|()| {
                    entries.iter().filter(|entry| entry.head.kind == ImageRow::PIXELS).try_for_each(|entry| {
                        let pixels = redone.iter().find(|(row, _)| *row == entry.row);
                        let pixels = pixels.map_or(entry.bytes, |(_, pixels)| pixels.as_slice());
                        result::memcpy_htod_async(pictures_at + entry.offset as u64, pixels, stream)
                    })
                });
            let launched = copied.map_err(BoxError::from).and_then(|()| self.kernel.launch(&launch, stream));
            (launched, result::stream::synchronize(stream))
        };
        if let Err(error) = waited {
            mem::forget((table, redone, Arc::clone(images.values)));
            return Err(Failure::Lost(error.into()));
        }
        launched.map_err(Failure::Device)
    }

    /// Decodes the files among some rows into an arena. Files that the device refuses are decoded by `redo`. Returns
    /// their pixels, and turns their rows into rows of pixels.
    fn pictures(
        &self,
        entries: &mut [PlacedRow<'_>],
        at: CUdeviceptr,
        redo: Redo<'_>,
    ) -> Result<Vec<(usize, Vec<u8>)>, Failure> {
        let mut files: Vec<usize> =
            (0..entries.len()).filter(|nth| entries[*nth].head.kind != ImageRow::PIXELS).collect();
        // The largest first: if it came last, one engine would keep working alone.
        files.sort_by_key(|nth| Reverse(entries[*nth].pitch * entries[*nth].head.stored[1] as usize));
        let mut refused = Vec::new();
        self.nvjpeg.lock().decode(entries, &files, at, &mut refused)?;
        let mut redone = Vec::new();
        for nth in refused {
            let PlacedRow { row, head, bytes, pixels: wanted, .. } = &mut entries[nth];
            let pixels = redo(*row, head, bytes).map_err(Failure::Sample)?;
            if pixels.len() != *wanted {
                return Err(Failure::Device(format!("{} bytes of pixels, not {wanted}", pixels.len()).into()));
            }
            *head = ImageRow { bytes: pixels.len() as u32, part: [0; 2], ..ImageRow::default() };
            redone.push((*row, pixels));
        }
        Ok(redone)
    }
}

fn failed(error: DriverError) -> Failure {
    Failure::Device(error.into())
}

impl OnStream {
    /// Decodes files, and waits for the pixels. Adds refused files to `refused`.
    fn decode(
        &mut self,
        entries: &[PlacedRow<'_>],
        files: &[usize],
        at: CUdeviceptr,
        refused: &mut Vec<usize>,
    ) -> Result<(), Failure> {
        if files.is_empty() {
            return Ok(());
        }
        let Some(nvjpeg) = &mut self.nvjpeg else {
            return Err(Failure::Device("an earlier wait for nvJPEG failed, so it decodes nothing more".into()));
        };
        let file = |nth: &usize| {
            let PlacedRow { head, bytes, offset, pitch, .. } = &entries[*nth];
            let [columns, rows] = head.stored.map(|side| side as usize);
            File { bytes, columns, rows, to: at + *offset as u64, pitch: *pitch }
        };
        let targets: Vec<_> = files.iter().map(file).collect();
        // SAFETY: the caller is in the context. `group` gave each file room for its size. The arena is idle, and belongs
        // to the caller. The wait below is for all of it.
        let decoded = unsafe { nvjpeg.decode(&targets, self.stream) };
        // SAFETY: stream and event are this one's, and live. An event may fail where the stream does not.
        let waited = unsafe {
            let reached = result::event::record(self.decoded, self.stream)
                .and_then(|()| result::event::synchronize(self.decoded));
            reached.or_else(|_| result::stream::synchronize(self.stream))
        };
        let Err(error) = decoded else { return waited.map_err(|error| self.lose(error.into())) };
        // The library may have begun some files on streams of its own, which nothing joins after an error. These
        // streams end with its state.
        if let Err(error) = waited.map_err(BoxError::from).and_then(|()| nvjpeg.end_state()) {
            return Err(self.lose(error));
        }
        if files.len() == 1 {
            log::debug!("burn-pinned: a file is decoded on the host: {error}");
            refused.push(files[0]);
            return Ok(());
        }
        // One bad file fails the whole call. Calls for each half of the files find it.
        let (first, second) = files.split_at(files.len() / 2);
        self.decode(entries, first, at, refused)?;
        self.decode(entries, second, at, refused)
    }

    /// Never unloads the library, because it is not known what it is still doing.
    fn lose(&mut self, error: BoxError) -> Failure {
        mem::forget(self.nvjpeg.take());
        Failure::Lost(error)
    }
}

impl Drop for OnStream {
    fn drop(&mut self) {
        let nvjpeg = self.nvjpeg.take();
        let ended = match InContext::new(&self.context) {
            Ok(_in_context) => {
                drop(nvjpeg);
                // SAFETY: made in `Engine::of`, and destroyed only here. The driver frees each once its work is done.
                unsafe { result::event::destroy(self.decoded).and(result::stream::destroy(self.stream)) }
            }
            // The library would free its memory in the wrong context, so it is not dropped.
            Err(error) => {
                mem::forget(nvjpeg);
                Err(error)
            }
        };
        if let Err(error) = ended {
            log::debug!("burn-pinned: an error at the end of a stream that decodes: {error}");
        }
    }
}

/// Lays out the pictures of the next rows in an arena: as many as fit, at least one. Returns their bytes.
///
/// # Errors
/// If the head of a row is wrong.
fn group<'a>(images: &Images<'a>, rows: Range<usize>) -> Result<(Vec<PlacedRow<'a>>, usize), HeadError> {
    let (mut entries, mut end) = (Vec::with_capacity(rows.len()), 0usize);
    for row in rows {
        let bytes = &images.rows[row * images.row_bytes..][..images.row_bytes];
        let (head, bytes) = ImageRow::open(bytes, images.long, [images.width, images.height])?;
        let pixels = 3 * images.width as usize * images.height as usize;
        let pitch = (3 * head.stored[0] as usize).next_multiple_of(ALIGN);
        let room = match head.kind {
            ImageRow::PIXELS => pixels,
            // A file that the device refuses is decoded on the host.
            _ => (pitch * head.stored[1] as usize).max(pixels),
        };
        let before = end + room.next_multiple_of(ALIGN);
        let room = before - end + if head.has_contrast() { pixels.next_multiple_of(ALIGN) } else { 0 };
        if !entries.is_empty() && (end + room > ARENA || entries.len() == IMAGES) {
            break;
        }
        entries.push(PlacedRow { row, head, bytes, offset: end, pitch, pixels, before });
        end += room;
    }
    Ok((entries, end))
}
