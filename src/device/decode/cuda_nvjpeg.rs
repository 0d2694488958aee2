//! nvJPEG, NVIDIA's library for JPEGs: its engines decode many files at once. It is loaded at run time.
#![expect(unsafe_code)]

use crate::fault::BoxError;
use cudarc::driver::sys::{CUdeviceptr, CUstream};
use libloading::Library;
use std::{
    ffi::{c_int, c_uchar, c_uint, c_void},
    ptr,
};

/// The library's names, the newest first.
const NAMES: [&str; 4] = ["libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so", "nvjpeg64_13.dll"];

/// `NVJPEG_BACKEND_HARDWARE`: baseline files in one scan, by the engines.
const HARDWARE: c_int = 3;
/// `NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION`: chroma as libjpeg makes it, so that a file is the same picture wherever it
/// is decoded.
const INTERPOLATION: c_uint = 1 << 5;
/// `NVJPEG_OUTPUT_RGBI`: interleaved RGB.
const RGB: c_int = 5;

type Status = c_int;
type Handle = *mut c_void;
type State = *mut c_void;

/// `nvjpegImage_t`.
#[repr(C)]
struct Image {
    channel: [*mut c_uchar; 4],
    pitch: [usize; 4],
}

/// The functions that are used. They live as long as the library is loaded.
struct Functions {
    state_create: unsafe extern "C" fn(Handle, *mut State) -> Status,
    state_destroy: unsafe extern "C" fn(State) -> Status,
    destroy: unsafe extern "C" fn(Handle) -> Status,
    image_info: unsafe extern "C" fn(
        Handle,
        *const c_uchar,
        usize,
        *mut c_int,
        *mut c_int,
        *mut [c_int; 4],
        *mut [c_int; 4],
    ) -> Status,
    initialize: unsafe extern "C" fn(Handle, State, c_int, c_int, c_int) -> Status,
    decode: unsafe extern "C" fn(Handle, State, *const *const c_uchar, *const usize, *mut Image, CUstream) -> Status,
}

/// A file, and where its pixels go: interleaved RGB, `pitch` bytes a line.
pub(super) struct File<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) to: CUdeviceptr,
    pub(super) pitch: usize,
}

/// A decoder of the current device.
pub(super) struct Nvjpeg {
    functions: Functions,
    handle: Handle,
    state: State,
    /// The number of files that it is set up for.
    files: usize,
    /// The engines of the device.
    pub(super) engines: u32,
    _library: Library,
}

// SAFETY: a handle and its state may be used from any thread, by one thread at a time: `decode` takes `&mut self`.
unsafe impl Send for Nvjpeg {}

fn check(call: &str, status: Status) -> Result<(), BoxError> {
    let meaning = match status {
        0 => return Ok(()),
        3 => "a damaged file",
        4 => "a file of a kind that it does not decode",
        5 => "no memory",
        6 => "the device failed",
        7 => "this device has no engines for it",
        9 => "this device or this container does not allow it",
        10 => "a file that is cut off",
        _ => "see NVIDIA's manual",
    };
    Err(format!("{call} returned {status}: {meaning}").into())
}

impl Nvjpeg {
    /// Loads the library, and opens the engines of the current context's device. It takes
    /// seconds: the library makes CUDA contexts meanwhile.
    ///
    /// # Errors
    /// The reason in words, if there is no such library or the device has no such engines.
    pub(super) fn open() -> Result<Self, BoxError> {
        // SAFETY: loading NVIDIA's library runs only its own initialisers.
        let library = NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
        let library = library.ok_or("nvJPEG (libnvjpeg.so.13 or .12) was not found; it comes with the CUDA toolkit")?;
        type Create = unsafe extern "C" fn(c_int, *const c_void, *const c_void, c_uint, *mut Handle) -> Status;
        type Info = unsafe extern "C" fn(Handle, *mut c_uint, *mut c_uint) -> Status;
        // SAFETY: these are the functions' types in nvjpeg.h, of the versions 12 and 13.
        let (create, info, functions) = unsafe {
            let create = *library.get::<Create>(b"nvjpegCreateEx\0")?;
            let info = *library.get::<Info>(b"nvjpegGetHardwareDecoderInfo\0")?;
            let functions = Functions {
                state_create: *library.get(b"nvjpegJpegStateCreate\0")?,
                state_destroy: *library.get(b"nvjpegJpegStateDestroy\0")?,
                destroy: *library.get(b"nvjpegDestroy\0")?,
                image_info: *library.get(b"nvjpegGetImageInfo\0")?,
                initialize: *library.get(b"nvjpegDecodeBatchedInitialize\0")?,
                decode: *library.get(b"nvjpegDecodeBatched\0")?,
            };
            (create, info, functions)
        };
        let mut handle = ptr::null_mut();
        // SAFETY: null stands for the library's own allocators.
        let status = unsafe { create(HARDWARE, ptr::null(), ptr::null(), INTERPOLATION, &raw mut handle) };
        check("nvjpegCreateEx", status)?;
        let state = ptr::null_mut();
        let mut nvjpeg = Self { functions, handle, state, files: 0, engines: 0, _library: library };
        let (mut engines, mut cores) = (0, 0);
        // SAFETY: the handle is open, and the numbers are written before it returns.
        check("nvjpegGetHardwareDecoderInfo", unsafe { info(handle, &raw mut engines, &raw mut cores) })?;
        if engines == 0 {
            return Err("this device has no engines for JPEGs".into());
        }
        nvjpeg.engines = engines;
        // SAFETY: the handle is open.
        let status = unsafe { (nvjpeg.functions.state_create)(handle, &raw mut nvjpeg.state) };
        check("nvjpegJpegStateCreate", status)?;
        Ok(nvjpeg)
    }

    /// Columns and rows of a file, as the library reads them. `None` if it cannot.
    fn size(&self, file: &[u8]) -> Option<(usize, usize)> {
        let (mut components, mut sampling, mut widths, mut heights) = (0, 0, [0; 4], [0; 4]);
        let (count, kind) = (&raw mut components, &raw mut sampling);
        let (across, down) = (&raw mut widths, &raw mut heights);
        // SAFETY: the handle is open, and the call is allowed on any thread. It writes to what the pointers are of: two
        // numbers, and four each.
        let status =
            unsafe { (self.functions.image_info)(self.handle, file.as_ptr(), file.len(), count, kind, across, down) };
        let side = |side: c_int| usize::try_from(side).ok();
        if status == 0 { Some((side(widths[0])?, side(heights[0])?)) } else { None }
    }

    /// Starts to decode files. The pixels are there when all that is queued on the stream is done.
    ///
    /// The engines may write before earlier work on the stream is done. So nobody else may use the memory from the start
    /// of this call on.
    ///
    /// # Safety
    /// The calling thread is in the context of this decoder. The memory that a file goes to has `pitch` bytes for each
    /// of its `rows`, and no fewer than three for each of its `columns`. The bytes and the memory live until the stream
    /// is done.
    ///
    /// # Errors
    /// If a file has another size than it should, or the library refuses it. Then some may be decoded.
    pub(super) unsafe fn decode(&mut self, files: &[File<'_>], stream: CUstream) -> Result<(), BoxError> {
        let count = c_int::try_from(files.len())?;
        // What is written is as large as the library thinks that the file is.
        if files.iter().any(|file| self.size(file.bytes) != Some((file.columns, file.rows))) {
            return Err("a file has another size than its first header says".into());
        }
        let Self { functions, handle, state, .. } = self;
        if self.files != files.len() {
            self.files = 0;
            // SAFETY: handle and state are open, and nothing is being decoded.
            let status = unsafe { (functions.initialize)(*handle, *state, count, 1, RGB) };
            check("nvjpegDecodeBatchedInitialize", status)?;
            self.files = files.len();
        }
        let pointers: Vec<_> = files.iter().map(|file| file.bytes.as_ptr()).collect();
        let lengths: Vec<_> = files.iter().map(|file| file.bytes.len()).collect();
        let image = |file: &File<'_>| Image {
            channel: [file.to as *mut c_uchar, ptr::null_mut(), ptr::null_mut(), ptr::null_mut()],
            pitch: [file.pitch, 0, 0, 0],
        };
        let mut images: Vec<_> = files.iter().map(image).collect();
        // SAFETY: the arrays have as many entries as the state is set up for. The caller vouches for the rest.
        let status = unsafe {
            (functions.decode)(*handle, *state, pointers.as_ptr(), lengths.as_ptr(), images.as_mut_ptr(), stream)
        };
        check("nvjpegDecodeBatched", status).inspect_err(|_| self.files = 0) // it must be set up again
    }
}

impl Drop for Nvjpeg {
    fn drop(&mut self) {
        // SAFETY: both were made in `open`, and are destroyed only here. The callers of `decode` have waited.
        let (state, handle) = unsafe {
            let state = if self.state.is_null() { 0 } else { (self.functions.state_destroy)(self.state) };
            (state, (self.functions.destroy)(self.handle))
        };
        if state != 0 || handle != 0 {
            log::debug!("burn-pinned: nvJPEG ended with status {state} and {handle}");
        }
    }
}
