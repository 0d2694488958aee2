//! nvJPEG, NVIDIA's library for JPEGs: its engines decode many files at once. It is loaded at run time.
#![expect(unsafe_code)]

use crate::fault::BoxError;
use cudarc::driver::sys::{CUdeviceptr, CUstream};
use libloading::Library;
use std::{
    ffi::{c_int, c_uchar, c_uint, c_void},
    mem, ptr,
};

/// The library's names, the newest first.
const NAMES: [&str; 4] = ["libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so", "nvjpeg64_13.dll"];
/// The oldest version that knows `INTERPOLATION`.
const OLDEST: Version = [12, 1];

/// `NVJPEG_BACKEND_HARDWARE`: baseline files in one scan, by the engines.
const HARDWARE: c_int = 3;
/// `NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION`: chroma upsampling like libjpeg's, so that a file gives the same image on the host and on
/// the device.
const INTERPOLATION: c_uint = 1 << 5;
/// `NVJPEG_OUTPUT_RGBI`: interleaved RGB.
const RGB: c_int = 5;

/// Major and minor.
type Version = [c_int; 2];
type Status = c_int;
type Handle = *mut c_void;
type NvState = *mut c_void;

/// `nvjpegImage_t`.
#[repr(C)]
struct NvImage {
    channel: [*mut c_uchar; 4],
    pitch: [usize; 4],
}

/// `nvjpegGetProperty`: a part of the version, 0 for the major one and 1 for the minor one.
type Property = unsafe extern "C" fn(c_int, *mut c_int) -> Status;

/// The functions that are used. They live as long as the library is loaded.
struct Functions {
    state_create: unsafe extern "C" fn(Handle, *mut NvState) -> Status,
    state_destroy: unsafe extern "C" fn(NvState) -> Status,
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
    initialize: unsafe extern "C" fn(Handle, NvState, c_int, c_int, c_int) -> Status,
    decode:
        unsafe extern "C" fn(Handle, NvState, *const *const c_uchar, *const usize, *mut NvImage, CUstream) -> Status,
}

/// A file, and where its pixels go: interleaved RGB, `pitch` bytes a line.
pub(super) struct File<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) to: CUdeviceptr,
    pub(super) pitch: usize,
}

/// A decoder of the current device. It must also be dropped in the device's context, because the library then frees its
/// memory.
pub(super) struct Nvjpeg {
    functions: Functions,
    handle: Handle,
    /// Null until a file is decoded.
    state: NvState,
    /// The number of files that the state is set up for.
    files: usize,
    /// `None` in tests.
    _library: Option<Library>,
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

/// Asks for the version of the library.
fn check_version(property: Property) -> Result<(), BoxError> {
    let mut version: Version = [0; 2];
    for (part, number) in (0..).zip(&mut version) {
        // SAFETY: the function writes one number before it returns.
        check("nvjpegGetProperty", unsafe { property(part, number) })?;
    }
    if version >= OLDEST {
        return Ok(());
    }
    let ([major, minor], [oldest, least]) = (version, OLDEST);
    Err(format!("nvJPEG {major}.{minor} was found, and {oldest}.{least} or newer is needed: that of CUDA 12.1").into())
}

impl Nvjpeg {
    /// Loads the library, and opens the engines of the current context's device. It takes
    /// seconds: the library makes CUDA contexts meanwhile.
    ///
    /// # Errors
    /// The reason in words, if there is no such library, it is too old, or the device has no such engines.
    pub(super) fn open() -> Result<Self, BoxError> {
        // SAFETY: loading NVIDIA's library runs only its own initialisers.
        let library = NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
        let library = library.ok_or("nvJPEG (libnvjpeg.so.13 or .12) was not found; it comes with the CUDA toolkit")?;
        // SAFETY: this is the function's type in nvjpeg.h, of all versions.
        check_version(unsafe { *library.get::<Property>(b"nvjpegGetProperty\0")? })?;
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
        let mut nvjpeg = Self { functions, handle, state, files: 0, _library: Some(library) };
        let (mut engines, mut cores) = (0, 0);
        // SAFETY: the handle is open, and the numbers are written before it returns.
        check("nvjpegGetHardwareDecoderInfo", unsafe { info(handle, &raw mut engines, &raw mut cores) })?;
        if engines == 0 {
            return Err("this device has no engines for JPEGs".into());
        }
        nvjpeg.make_state()?;
        Ok(nvjpeg)
    }

    /// Makes a state, if there is none.
    fn make_state(&mut self) -> Result<(), BoxError> {
        if !self.state.is_null() {
            return Ok(());
        }
        // SAFETY: the handle is open.
        let status = unsafe { (self.functions.state_create)(self.handle, &raw mut self.state) };
        check("nvjpegJpegStateCreate", status)
    }

    /// Destroys the state, and with it all work that a failed call has started. The next call makes a new state. The
    /// calling thread is in the context of this decoder, and has waited for the stream of that call.
    ///
    /// # Errors
    /// If the library refuses to destroy it. Then it is not known what the library is still doing.
    pub(super) fn end_state(&mut self) -> Result<(), BoxError> {
        let state = mem::replace(&mut self.state, ptr::null_mut());
        self.files = 0;
        if state.is_null() {
            return Ok(());
        }
        // SAFETY: made in `make_state`, and destroyed only here. Nobody has it any more.
        check("nvjpegJpegStateDestroy", unsafe { (self.functions.state_destroy)(state) })
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
    /// The engines may write before earlier work on the stream is done. So nothing else may use the memory from the
    /// start of this call on.
    ///
    /// # Safety
    /// The calling thread is in the context of this decoder. The memory that a file goes to has `pitch` bytes for each
    /// of its `rows`, and no fewer than three for each of its `columns`. The bytes and the memory live until the stream
    /// is done.
    ///
    /// # Errors
    /// If a file has an unexpected size, or the library refuses it. Then some files may be decoded, and others may
    /// still be in progress: wait for the stream, and then call [`end_state`](Self::end_state).
    pub(super) unsafe fn decode(&mut self, files: &[File<'_>], stream: CUstream) -> Result<(), BoxError> {
        let count = c_int::try_from(files.len())?;
        // The library writes as many pixels as it reads from the file itself.
        if files.iter().any(|file| self.size(file.bytes) != Some((file.columns, file.rows))) {
            return Err("a file has another size than its first header says".into());
        }
        self.make_state()?;
        let ready = mem::take(&mut self.files) == files.len(); // a failed call leaves it not ready
        let Self { functions, handle, state, .. } = self;
        if !ready {
            // SAFETY: handle and state are open, and nothing is being decoded.
            let status = unsafe { (functions.initialize)(*handle, *state, count, 1, RGB) };
            check("nvjpegDecodeBatchedInitialize", status)?;
        }
        let pointers: Vec<_> = files.iter().map(|file| file.bytes.as_ptr()).collect();
        let lengths: Vec<_> = files.iter().map(|file| file.bytes.len()).collect();
        let image = |file: &File<'_>| NvImage {
            channel: [file.to as *mut c_uchar, ptr::null_mut(), ptr::null_mut(), ptr::null_mut()],
            pitch: [file.pitch, 0, 0, 0],
        };
        let mut images: Vec<_> = files.iter().map(image).collect();
        // SAFETY: the arrays have as many entries as the state is set up for. The caller vouches for the rest.
        let status = unsafe {
            (functions.decode)(*handle, *state, pointers.as_ptr(), lengths.as_ptr(), images.as_mut_ptr(), stream)
        };
        check("nvjpegDecodeBatched", status)?;
        self.files = files.len();
        Ok(())
    }
}

impl Drop for Nvjpeg {
    fn drop(&mut self) {
        let state = self.end_state();
        // SAFETY: made in `open`, and destroyed only here. The callers of `decode` have waited.
        let handle = check("nvjpegDestroy", unsafe { (self.functions.destroy)(self.handle) });
        if let Err(error) = state.and(handle) {
            log::debug!("burn-pinned: an error at the end of nvJPEG: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::RefCell, slice};

    thread_local! {
        static CALLS: RefCell<Vec<&'static str>> = RefCell::default();
    }

    fn note(call: &'static str) -> Status {
        CALLS.with_borrow_mut(|calls| calls.push(call));
        0
    }

    fn calls() -> Vec<&'static str> {
        CALLS.take()
    }

    unsafe extern "C" fn state_create(_: Handle, state: *mut NvState) -> Status {
        // SAFETY: as in the library's contract.
        unsafe { *state = ptr::dangling_mut() };
        note("create state")
    }

    unsafe extern "C" fn state_destroy(_: NvState) -> Status {
        note("destroy state")
    }

    unsafe extern "C" fn destroy(_: Handle) -> Status {
        note("destroy")
    }

    /// Each file is a picture of as many columns and rows as it has bytes.
    unsafe extern "C" fn image_info(
        _: Handle,
        _: *const c_uchar,
        len: usize,
        _: *mut c_int,
        _: *mut c_int,
        widths: *mut [c_int; 4],
        heights: *mut [c_int; 4],
    ) -> Status {
        // SAFETY: as in the library's contract.
        unsafe { ((*widths)[0], (*heights)[0]) = (len as c_int, len as c_int) };
        0
    }

    unsafe extern "C" fn initialize(_: Handle, _: NvState, _: c_int, _: c_int, _: c_int) -> Status {
        note("set up")
    }

    /// Refuses a batch whose first file starts with a 0.
    unsafe extern "C" fn decode(
        _: Handle,
        state: NvState,
        files: *const *const c_uchar,
        _: *const usize,
        _: *mut NvImage,
        _: CUstream,
    ) -> Status {
        assert!(!state.is_null());
        note("decode");
        // SAFETY: as in the library's contract.
        if unsafe { **files } == 0 { 3 } else { 0 }
    }

    fn nvjpeg() -> Nvjpeg {
        let functions = Functions { state_create, state_destroy, destroy, image_info, initialize, decode };
        let (handle, state) = (ptr::dangling_mut(), ptr::null_mut());
        Nvjpeg { functions, handle, state, files: 0, _library: None }
    }

    fn run(nvjpeg: &mut Nvjpeg, files: &[u8]) -> Result<(), BoxError> {
        let file = |byte| File { bytes: slice::from_ref(byte), columns: 1, rows: 1, to: 0, pitch: 3 };
        let files: Vec<_> = files.iter().map(file).collect();
        // SAFETY: nothing is written by these functions.
        unsafe { nvjpeg.decode(&files, ptr::null_mut()) }
    }

    /// Work that a failed call has started may continue. It ends with the state.
    #[test]
    fn after_an_error_the_state_is_a_new_one() {
        let mut nvjpeg = nvjpeg();
        run(&mut nvjpeg, &[1, 2]).unwrap();
        run(&mut nvjpeg, &[3, 4]).unwrap();
        assert_eq!(calls(), ["create state", "set up", "decode", "decode"]);
        let error = run(&mut nvjpeg, &[0, 5]).unwrap_err().to_string();
        assert_eq!(error, "nvjpegDecodeBatched returned 3: a damaged file");
        nvjpeg.end_state().unwrap();
        assert_eq!(calls(), ["decode", "destroy state"]);
        run(&mut nvjpeg, &[6, 7]).unwrap();
        assert_eq!(calls(), ["create state", "set up", "decode"]);
        drop(nvjpeg);
        assert_eq!(calls(), ["destroy state", "destroy"]);
    }

    #[test]
    fn a_file_of_another_size_does_not_reach_the_library() {
        let mut nvjpeg = nvjpeg();
        let file = File { bytes: &[1], columns: 1, rows: 2, to: 0, pitch: 3 };
        // SAFETY: nothing is written by these functions.
        let error = unsafe { nvjpeg.decode(&[file], ptr::null_mut()) }.unwrap_err();
        assert!(error.to_string().contains("another size"), "{error}");
        assert_eq!(calls(), [""; 0]);
    }

    #[test]
    fn a_library_that_is_too_old_is_refused_by_its_version() {
        unsafe extern "C" fn version<const MAJOR: c_int, const MINOR: c_int>(part: c_int, value: *mut c_int) -> Status {
            // SAFETY: as in the library's contract.
            unsafe { *value = [MAJOR, MINOR][part as usize] };
            0
        }
        for new in [version::<12, 1>, version::<12, 4>, version::<13, 0>] as [Property; 3] {
            assert!(check_version(new).is_ok());
        }
        for (old, found) in [(version::<12, 0> as Property, "12.0"), (version::<11, 9>, "11.9")] {
            let wanted = format!("nvJPEG {found} was found, and 12.1 or newer is needed: that of CUDA 12.1");
            assert_eq!(check_version(old).unwrap_err().to_string(), wanted);
        }
        unsafe extern "C" fn fails(_: c_int, _: *mut c_int) -> Status {
            6
        }
        assert!(check_version(fails).unwrap_err().to_string().contains("nvjpegGetProperty returned 6"));
    }
}
