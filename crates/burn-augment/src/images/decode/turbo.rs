//! Decodes JPEGs by libjpeg-turbo, also only a part of one.
#![expect(unsafe_code)]

use super::jpeg::JpegHeader;
use crate::images::{error::VisionError, geometry::Rect};
use image::ImageFormat;
use std::{
    ffi::{CStr, c_int, c_void},
    ptr::NonNull,
};
use turbojpeg_sys as sys;

/// More scans than any encoder makes. Each scan of a damaged or malicious file may take as long as the whole picture.
const SCANS: c_int = 500;

/// A decoder of libjpeg-turbo for one file. A second file would get the tables of the first.
pub(super) struct Turbo<'a> {
    handle: NonNull<c_void>,
    jpeg: &'a [u8],
    size: (u32, u32),
}

impl<'a> Turbo<'a> {
    /// Reads the headers of a file, with its tables. Its pixels may take `most_bytes`.
    ///
    /// # Errors
    /// If libjpeg-turbo refuses the headers, or reads another size than `header` has.
    pub(super) fn open(jpeg: &'a [u8], header: &JpegHeader, most_bytes: u64) -> Result<Self, VisionError> {
        // SAFETY: it only allocates.
        let handle = unsafe { sys::tj3Init(sys::TJINIT_TJINIT_DECOMPRESS as c_int) };
        let handle = NonNull::new(handle)
            .ok_or_else(|| VisionError::of_decoder(ImageFormat::Jpeg, "no memory for a decoder"))?;
        let mut turbo = Self { handle, jpeg, size: (header.width, header.height) };
        // Coefficients of progressive pictures take about three times the memory of their pixels.
        let megabytes = c_int::try_from(most_bytes.saturating_mul(4) >> 20).unwrap_or(c_int::MAX).max(1);
        turbo.set(sys::TJPARAM_TJPARAM_MAXMEMORY, megabytes)?;
        turbo.set(sys::TJPARAM_TJPARAM_SCANLIMIT, SCANS)?;
        // SAFETY: the handle is a decoder, and the bytes live during the call.
        let read = unsafe { sys::tj3DecompressHeader(turbo.handle(), jpeg.as_ptr(), jpeg.len() as _) };
        turbo.check(read)?;
        let (width, height) = (turbo.get(sys::TJPARAM_TJPARAM_JPEGWIDTH), turbo.get(sys::TJPARAM_TJPARAM_JPEGHEIGHT));
        if (Ok(header.width), Ok(header.height)) != (u32::try_from(width), u32::try_from(height)) {
            return Err(VisionError::Malformed("it has several sizes"));
        }
        Ok(turbo)
    }

    /// Decodes the columns and rows of `part`, and a few more around it. Returns the decoded rectangle. Its pixels are
    /// in `out`, as interleaved RGB, the same as in the whole picture.
    ///
    /// # Errors
    /// If the file is refused. Damage within its data is not noticed: the decoder fills the damaged part with something.
    pub(super) fn decode(mut self, part: Rect, out: &mut Vec<u8>) -> Result<Rect, VisionError> {
        let whole = Rect::whole(self.size);
        let region = self.mcu_width().filter(|_| part != whole).map_or(whole, |mcu| around(part, self.size, mcu));
        let pitch = 3 * region.width as usize;
        out.clear(); // for a damaged file some rows may stay unwritten
        out.resize(pitch * region.height as usize, 0);
        if region != whole {
            let [x, y, w, h] = [region.left, region.top, region.width, region.height].map(|side| side as c_int); // sides have 16 bits
            // SAFETY: the handle is a decoder that has read a header.
            let set = unsafe { sys::tj3SetCroppingRegion(self.handle(), sys::tjregion { x, y, w, h }) };
            self.check(set)?;
        }
        let (handle, format) = (self.handle(), sys::TJPF_TJPF_RGB as c_int);
        let (from, length, to) = (self.jpeg.as_ptr(), self.jpeg.len(), out.as_mut_ptr());
        // SAFETY: the handle is a decoder. It writes as many rows as the region has, of `pitch` bytes each, which is
        // as long as `out` is. The size of the picture is the one that the region was checked with: a decoder reads the
        // header once, and refuses a region outside the picture.
        let decoded = unsafe { sys::tj3Decompress8(handle, from, length as _, to, pitch as c_int, format) };
        self.check(decoded)?;
        Ok(region)
    }

    fn handle(&mut self) -> sys::tjhandle {
        self.handle.as_ptr()
    }

    fn set(&mut self, parameter: sys::TJPARAM, value: c_int) -> Result<(), VisionError> {
        // SAFETY: the handle is a decoder.
        let set = unsafe { sys::tj3Set(self.handle(), parameter as c_int, value) };
        self.check(set)
    }

    fn get(&mut self, parameter: sys::TJPARAM) -> c_int {
        // SAFETY: the handle is a decoder.
        unsafe { sys::tj3Get(self.handle(), parameter as c_int) }
    }

    /// Returns the columns of the smallest unit in which columns can be left out. `None` if the sampling is not known.
    fn mcu_width(&mut self) -> Option<u32> {
        match self.get(sys::TJPARAM_TJPARAM_SUBSAMP) as sys::TJSAMP {
            sys::TJSAMP_TJSAMP_444 | sys::TJSAMP_TJSAMP_GRAY | sys::TJSAMP_TJSAMP_440 | sys::TJSAMP_TJSAMP_441 => {
                Some(8)
            }
            sys::TJSAMP_TJSAMP_422 | sys::TJSAMP_TJSAMP_420 => Some(16),
            sys::TJSAMP_TJSAMP_411 => Some(32),
            _ => None,
        }
    }

    /// Turns the result of a call into an error. A warning is no error: the pixels are there.
    fn check(&mut self, result: c_int) -> Result<(), VisionError> {
        // SAFETY: the handle is a decoder.
        if result == 0 || unsafe { sys::tj3GetErrorCode(self.handle()) } == sys::TJERR_TJERR_WARNING as c_int {
            return Ok(());
        }
        // SAFETY: it returns a C string, which lives until the next call.
        let text = unsafe { CStr::from_ptr(sys::tj3GetErrorStr(self.handle())) };
        Err(VisionError::of_decoder(ImageFormat::Jpeg, text.to_string_lossy()))
    }
}

impl Drop for Turbo<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `open`, and destroyed only here.
        unsafe { sys::tj3Destroy(self.handle()) }
    }
}

/// Returns the region to decode so that the pixels of `part` are those of the whole picture. Chroma is interpolated
/// from its neighbours, so the border of the region is not to be used.
fn around(part: Rect, (width, height): (u32, u32), mcu: u32) -> Rect {
    /// Chroma has at most a fourth of the columns and rows.
    const GUARD: u32 = 4;
    let left = part.left.saturating_sub(GUARD) / mcu * mcu;
    let top = part.top.saturating_sub(GUARD);
    let right = (part.left + part.width + GUARD).min(width);
    let bottom = (part.top + part.height + GUARD).min(height);
    Rect { left, top, width: right - left, height: bottom - top }
}
