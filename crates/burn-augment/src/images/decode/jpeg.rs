//! Reads the headers of a JPEG without decoding it (ITU-T T.81, annex B).

use super::{orientation, segments::next_segment};
use crate::images::error::VisionError;
use image::metadata::Orientation;
use jpeg_decoder::ColorTransform;

/// The headers of a JPEG up to its first scan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JpegHeader {
    /// Columns and rows of the stored picture, before it is turned as `orientation` says.
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) orientation: Orientation,
    /// The second byte of the marker of the frame: 0xC0 is baseline, 0xC2 is progressive.
    process: u8,
    /// Bits of a value.
    precision: u8,
    pub(super) components: u8,
    /// The identifiers of the first four components, and their sampling factors (horizontal, vertical).
    ids: [u8; 4],
    /// The quantization table of each of these components.
    quantized: [u8; 4],
    pub(super) sampling: [(u8, u8); 4],
    /// The kind of colours, if an Adobe segment tells: 0 is RGB or CMYK, 1 is YCbCr, 2 is YCCK.
    adobe: Option<u8>,
    /// The number of components in the first scan.
    scanned: u8,
    /// Whether the file brings all tables that the first scan needs, and they are sound.
    has_tables: bool,
    /// Whether the quality of the picture is low.
    coarse: bool,
}

impl JpegHeader {
    /// Reads the headers, and checks that an end marker follows the first scan. A thumbnail in the headers has its own
    /// end marker, which does not count. Bytes between headers that decoders skip are skipped too.
    ///
    /// # Errors
    /// If the scan or its end is missing: a decoder would fill what is missing with grey and report nothing, so
    /// half-copied files would be used for training. If there is no frame header.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, VisionError> {
        let (mut frame, mut adobe, mut exif, mut xmp) = (None, None, None, None);
        let (mut tables, mut rest) = (HeaderTables::default(), bytes.get(2..).unwrap_or_default());
        while let Some((marker, data)) = next_segment(&mut rest) {
            match (marker, data) {
                (0xDA, scan) => {
                    // The search starts at the end of the file, where the marker is.
                    if !rest.windows(2).rev().any(|pair| pair == [0xFF, 0xD9]) {
                        return Err(VisionError::Truncated);
                    }
                    let none = VisionError::Malformed("no frame header comes before its data");
                    let orientation = orientation::of_metadata(exif, xmp);
                    return Ok(Self::new(frame.ok_or(none)?, scan, &tables, adobe, orientation));
                }
                // Frames: all of C0 to CF but the tables C4 and CC, and the reserved C8.
                (0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF, data) if frame.is_none() => {
                    frame = data.split_first_chunk().map(|(head, components)| (marker, head, components));
                }
                (0xE1, data) if data.starts_with(b"Exif\0\0") => {
                    exif = exif.or(Some(data));
                }
                (0xE1, data) if data.starts_with(b"http://ns.adobe.com/xap/1.0/\0") => {
                    xmp = xmp.or(Some(data));
                }
                (0xC4, data) => tables.huffman(data),
                (0xDB, data) => tables.quantization(data),
                (0xEE, [b'A', b'd', b'o', b'b', b'e', _, _, _, _, _, _, kind, ..]) => adobe = Some(*kind),
                _ => {}
            }
        }
        Err(VisionError::Truncated)
    }

    /// The bytes of its pixels, in the colours of the file.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.components) * u64::from(self.width) * u64::from(self.height)
    }

    /// Whether zune-jpeg decodes the picture wrong or not at all. These are pictures in several scans without
    /// progressive mode. Others are so narrow that colours have one or two columns, which zune-jpeg mixes and libjpeg
    /// does not. Others have a sampling that is no power of two, or is finer for colours than for light. The last are
    /// coarse pictures with colours behind the edge, which zune-jpeg mixes into the last column or line.
    pub(super) fn is_for_scans(&self) -> bool {
        let Self { process, precision, components, sampling, .. } = *self;
        let [first, rest @ ..] = &sampling[..components.min(4).into()] else { return false };
        let in_parts = self.scanned < components && process != 0xC2;
        let subsampled = rest.iter().any(|factors| factors != first);
        let odd = first.0 == 3 || first.1 == 3 || rest.iter().any(|factors| factors.0 > first.0 || factors.1 > first.1);
        let fills = |side: u32, factor: u8| side.is_multiple_of(8 * u32::from(factor.max(1)));
        let behind = self.coarse && subsampled && !(fills(self.width, first.0) && fills(self.height, first.1));
        matches!(process, 0xC0..=0xC2) && precision == 8 && (in_parts || self.is_narrow() || odd || behind)
    }

    /// Whether it is so narrow that subsampled colours have one or two columns.
    pub(super) fn is_narrow(&self) -> bool {
        let sampling = &self.sampling[..self.components.min(4).into()];
        self.width <= 4 && sampling.iter().any(|factors| *factors != sampling[0])
    }

    /// Whether the hardware of a GPU decodes it: a baseline picture in one scan, YCbCr, with usual sampling.
    pub(crate) fn for_hardware(&self) -> bool {
        // NVIDIA's engines take sides of 16,384. The kernel that resizes has 48 KiB for a line of the part, and needs a
        // little of that for itself.
        const LONGEST: u32 = 16_000;
        const SHORTEST: u32 = 16;
        /// The most bytes of a decoded picture. Larger pictures would need too much memory of the device.
        const BYTES: u64 = 128 << 20;
        let sides = SHORTEST..=LONGEST;
        let Self { process, sampling: [luma, rest @ .., _], components, .. } = *self;
        let usual = components == 3 && matches!(luma, (1 | 2, 1 | 2)) && rest == [(1, 1); 2];
        usual
            && process == 0xC0
            && self.scanned == components
            && self.has_tables
            && self.is_ycc_or_grey()
            && sides.contains(&self.width)
            && sides.contains(&self.height)
            && self.bytes() <= BYTES
    }

    /// The headers by the frame, which is its marker, the head of its segment and the rest, and by the head of the scan.
    fn new(
        (process, &[precision, a, b, c, d, components], rest): (u8, &[u8; 6], &[u8]),
        scan: &[u8],
        tables: &HeaderTables,
        adobe: Option<u8>,
        orientation: Orientation,
    ) -> Self {
        let (mut ids, mut sampling, mut quantized) = ([0; 4], [(0, 0); 4], [0; 4]);
        let count = usize::from(components.min(4));
        for (at, component) in rest.chunks_exact(3).take(count).enumerate() {
            (ids[at], sampling[at]) = (component[0], (component[1] >> 4, component[1] & 15));
            quantized[at] = component[2];
        }
        Self {
            width: u16::from_be_bytes([c, d]).into(),
            height: u16::from_be_bytes([a, b]).into(),
            orientation,
            process,
            precision,
            components,
            ids,
            quantized,
            sampling,
            adobe,
            scanned: scan.first().copied().unwrap_or(0),
            has_tables: tables.serve(&ids[..count], &quantized[..count], scan),
            coarse: tables.are_coarse(&quantized[..count]),
        }
    }

    /// The colours of its components. As in libjpeg, components that are named R, G and B are these colours.
    pub(super) fn colours(&self) -> Option<ColorTransform> {
        match (self.components, self.adobe) {
            (1, _) => Some(ColorTransform::Grayscale),
            (3, Some(1)) => Some(ColorTransform::YCbCr),
            (3, None) if self.ids[..3] != *b"RGB" => Some(ColorTransform::YCbCr),
            (3, _) => Some(ColorTransform::RGB),
            (4, Some(2)) => Some(ColorTransform::YCCK),
            (4, _) => Some(ColorTransform::CMYK),
            _ => None,
        }
    }

    /// Whether the components are Y, Cb and Cr, or Y alone, in 8 bits.
    fn is_ycc_or_grey(&self) -> bool {
        self.precision == 8 && matches!(self.colours(), Some(ColorTransform::YCbCr | ColorTransform::Grayscale))
    }

    /// Whether libjpeg-turbo decodes it: 8 bits, Huffman codes, not lossless, grey or YCbCr.
    #[cfg(feature = "turbo")]
    pub(crate) fn for_turbo(&self) -> bool {
        matches!(self.process, 0xC0..=0xC2) && self.is_ycc_or_grey()
    }
}

/// The tables that were seen before a scan, as bits of their numbers.
#[derive(Debug, Default)]
struct HeaderTables {
    quantization: u8,
    /// The first step of each quantization table.
    steps: [u16; 4],
    /// The Huffman tables of DC and of AC coefficients.
    huffman: [u8; 2],
    /// Whether any of the tables is unsound.
    bad: bool,
}

impl HeaderTables {
    /// Notes the quantization tables of a segment.
    fn quantization(&mut self, mut data: &[u8]) {
        while let [head, rest @ ..] = data {
            let bytes = if head >> 4 == 0 { 64 } else { 128 };
            match (rest.split_at_checked(bytes), head & 15) {
                (Some((values, rest)), number @ 0..4) if head >> 4 == 1 || !values.contains(&0) => {
                    let step = if bytes == 64 { [0, values[0]] } else { [values[0], values[1]] };
                    self.steps[usize::from(number)] = u16::from_be_bytes(step);
                    (self.quantization, data) = (self.quantization | 1 << number, rest);
                }
                _ => return self.bad = true,
            }
        }
    }

    /// Notes the Huffman tables of a segment. The codes of each table must fit into their lengths (T.81, annex C).
    fn huffman(&mut self, mut data: &[u8]) {
        while let [head, rest @ ..] = data {
            let Some((counts, rest)) = rest.split_first_chunk::<16>() else { return self.bad = true };
            let all = counts.iter().map(|count| usize::from(*count)).sum::<usize>();
            // After each length, the codes used so far must be fewer than that length has.
            let mut used = 0u32;
            let fits = (1..=16u32).zip(counts).all(|(length, count)| {
                used = 2 * used + u32::from(*count);
                used < 1 << length
            });
            let Some((values, rest)) = rest.split_at_checked(all) else { return self.bad = true };
            let (class, number) = (usize::from(head >> 4), head & 15);
            let sound =
                fits && all > 0 && class < 2 && number < 4 && (class == 1 || values.iter().all(|size| *size < 16));
            if !sound {
                return self.bad = true;
            }
            self.huffman[class] |= 1 << number;
            data = rest;
        }
    }

    /// Whether the values of a frame are so coarse that values behind its edge may differ much from those before the
    /// edge. This is below quality 50 of libjpeg, whose first steps are 16 and 17.
    fn are_coarse(&self, quantized: &[u8]) -> bool {
        const FINE: u16 = 17;
        quantized.iter().any(|number| self.steps.get(usize::from(*number)).is_some_and(|step| *step > FINE))
    }

    /// Whether a scan of all components of a baseline frame has its tables. `scan` is its header.
    fn serve(&self, ids: &[u8], quantized: &[u8], scan: &[u8]) -> bool {
        let has = |tables: u8, number: u8| number < 4 && tables & (1 << number) != 0;
        let [_, rest @ ..] = scan else { return false };
        let Some((components, [0, 63, 0, ..])) = rest.split_at_checked(2 * ids.len()) else { return false };
        let coded = components.chunks_exact(2).zip(ids).all(|(component, id)| {
            let [own, tables] = [component[0], component[1]];
            own == *id && has(self.huffman[0], tables >> 4) && has(self.huffman[1], tables & 15)
        });
        !self.bad && coded && quantized.iter().all(|number| has(self.quantization, *number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Engines of a GPU get whole pictures in one scan. Pictures that zune-jpeg gets wrong do not go to them.
    #[test]
    fn the_head_tells_who_decodes_a_file() {
        let coded = |width: u16, quality: u8| {
            let (mut file, pixels) = (Vec::new(), vec![90; 3 * 32 * usize::from(width)]);
            let mut encoder = jpeg_encoder::Encoder::new(&mut file, quality);
            encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_2_2);
            encoder.encode(&pixels, width, 32, jpeg_encoder::ColorType::Rgb).unwrap();
            file
        };
        let file = |width: u16| coded(width, 90);
        let who = |file: &[u8]| JpegHeader::read(file).map(|jpeg| (jpeg.for_hardware(), jpeg.is_for_scans())).unwrap();
        assert_eq!(who(&file(24)), (true, false));
        assert_eq!(who(&file(5)), (false, false));
        assert_eq!(who(&file(3)), (false, true));
        let coarse = [who(&coded(24, 30)), who(&coded(32, 30)), who(&coded(24, 60))];
        assert_eq!(coarse, [(true, true), (true, false), (true, false)]);
        let mut in_parts = file(24);
        let scan = in_parts.windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap();
        in_parts[scan + 4] = 1; // of three components
        assert_eq!(who(&in_parts), (false, true));
        let mut finer = file(24);
        let frame = finer.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
        (finer[frame + 11], finer[frame + 14]) = (0x11, 0x22);
        assert_eq!(who(&finer), (false, true));
    }
}
