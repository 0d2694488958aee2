//! Reads the scans of a picture, and makes its pixels.

use super::{
    super::{jpeg::JpegHeader, segments::Segments},
    blocks::{Block, Pass, Reader, ZIGZAG},
    entropy::{Bits, Codes},
    idct,
    plane::Plane,
};
use crate::vision::error::VisionError;
use image::RgbImage;

/// The most scans of a picture: more than any encoder makes. Each may take as long as the whole picture.
const SCANS: usize = 500;

/// A component, and its coefficients as far as they are read.
struct Component {
    id: u8,
    /// Sampling factors.
    across: usize,
    down: usize,
    /// Columns and rows of the component's values that belong to the picture.
    columns: usize,
    rows: usize,
    /// The number of blocks in a row, with those that fill the last MCU.
    stride: usize,
    blocks: Vec<Block>,
    table: u8,
    /// The quantization steps of its coefficients, once a scan has begun with the component.
    steps: Option<[u16; 64]>,
}

/// The tables that were seen last.
#[derive(Default)]
struct Tables {
    steps: [Option<[u16; 64]>; 4],
    dc: [Option<Codes>; 4],
    ac: [Option<Codes>; 4],
    /// The number of MCUs between restarts. 0 means no restarts.
    restart: usize,
}

/// Decodes a picture of 8 bits and Huffman codes, as it is stored.
///
/// # Errors
/// If a component has no scan, or the headers contradict themselves. Damage within the data is not noticed.
pub(in super::super) fn decode(file: &[u8], jpeg: &JpegHeader) -> Result<RgbImage, VisionError> {
    let colours = jpeg.frame.colours().ok_or(VisionError::Malformed("it has neither 1, 3 nor 4 components"))?;
    let factors = &jpeg.frame.sampling[..colours.components()];
    let (wide, high) = factors.iter().fold((1, 1), |most, factors| (most.0.max(factors.0), most.1.max(factors.1)));
    let fits = |most: u8, factor: u8| (1..=4).contains(&factor) && most.is_multiple_of(factor);
    if !factors.iter().all(|factors| fits(wide, factors.0) && fits(high, factors.1)) {
        return Err(VisionError::Malformed("its components have sizes that do not divide each other"));
    }
    let (width, height) = (jpeg.width as usize, jpeg.height as usize);
    let (wide, high) = (usize::from(wide), usize::from(high));
    let mcus = (width.div_ceil(8 * wide), height.div_ceil(8 * high));
    let mut components: Vec<_> = (0..colours.components())
        .map(|nth| {
            let (across, down) = jpeg.frame.sampling[nth];
            let (across, down) = (usize::from(across), usize::from(down));
            let (columns, rows) = ((width * across).div_ceil(wide), (height * down).div_ceil(high));
            let stride = mcus.0 * across;
            let blocks = vec![[0; 64]; stride * mcus.1 * down];
            let (id, table) = (jpeg.frame.ids[nth], jpeg.frame.quantized[nth]);
            Component { id, across, down, columns, rows, stride, blocks, table, steps: None }
        })
        .collect();
    read_scans(file, jpeg, mcus, &mut components)?;
    let planes = components.into_iter().map(|part| part.plane(wide, high)).collect::<Option<Vec<_>>>();
    let planes = planes.ok_or(VisionError::Malformed("a component has no scan, or no table"))?;
    let mut image = RgbImage::new(jpeg.width, jpeg.height);
    let (mut sums, mut lines) = (Vec::new(), vec![vec![0; width]; 4]);
    for (nth, row) in image.chunks_exact_mut(3 * width).enumerate() {
        planes.iter().zip(&mut lines).for_each(|(plane, line)| plane.line(nth, &mut sums, line));
        for (x, pixel) in row.as_chunks_mut::<3>().0.iter_mut().enumerate() {
            *pixel = colours.pixel(std::array::from_fn(|nth| lines[nth][x]));
        }
    }
    Ok(image)
}

impl Component {
    /// Makes the values of the component. `None` if nothing was read of it.
    fn plane(self, wide: usize, high: usize) -> Option<Plane> {
        let Self { across, down, columns, rows, stride, blocks, .. } = self;
        let steps = self.steps?;
        let mut values = vec![0; 64 * blocks.len()];
        for (at, block) in blocks.iter().enumerate() {
            let start = 64 * (at / stride) * stride + 8 * (at % stride);
            for (row, line) in idct::values(block, &steps).as_chunks::<8>().0.iter().enumerate() {
                values[start + 8 * stride * row..][..8].copy_from_slice(line);
            }
        }
        Some(Plane { columns, rows, stride: 8 * stride, values, wide: wide / across, high: high / down })
    }
}

fn read_scans(
    file: &[u8],
    jpeg: &JpegHeader,
    mcus: (usize, usize),
    components: &mut [Component],
) -> Result<(), VisionError> {
    let progressive = jpeg.frame.is_progressive();
    let (mut tables, mut segments, mut scans) = (Tables::default(), Segments::new(file), 0);
    while let Some((marker, data)) = segments.next() {
        match marker {
            0xC4 => tables.codes(data),
            0xDB => tables.steps(data),
            0xDD => tables.restart = data.first_chunk().map_or(0, |count| u16::from_be_bytes(*count).into()),
            0xDA => {
                let bits = Bits::new(segments.rest());
                let rest = read_scan(data, bits, &tables, progressive, mcus, components);
                let wrong = VisionError::Malformed("a scan contradicts the frame, or a table is missing");
                let rest = rest.ok_or(wrong)?;
                let is_end = rest.starts_with(&[0xFF, 0xD9]); // another picture may follow behind the end
                segments.go_on(rest);
                scans += 1;
                if is_end || scans == SCANS || (!progressive && components.iter().all(|part| part.steps.is_some())) {
                    break;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads a scan, and returns the bytes behind it. `None` if its header is wrong, or a table is missing.
fn read_scan<'a>(
    head: &[u8],
    mut bits: Bits<'a>,
    tables: &Tables,
    progressive: bool,
    mcus: (usize, usize),
    components: &mut [Component],
) -> Option<&'a [u8]> {
    let (&count, rest) = head.split_first()?;
    let (parts, rest) = rest.split_at_checked(2 * usize::from(count))?;
    let [first, last, bits_of, ..] = *rest else { return None };
    let (first, last, more, low) = (usize::from(first), usize::from(last), bits_of >> 4 > 0, bits_of & 15);
    let pass = match progressive {
        false => Pass::Whole,
        true if (first, last) == (0, 0) && low < 14 => Pass::Dc { low, more },
        true if count == 1 && (1..64).contains(&first) && (first..64).contains(&last) && low < 14 => {
            Pass::Ac { first, last, low, more }
        }
        true => return None,
    };
    let mut readers = Vec::with_capacity(parts.len() / 2);
    for [id, numbers] in parts.as_chunks::<2>().0 {
        let nth = components.iter().position(|part| part.id == *id)?;
        let part = &mut components[nth];
        // In a file without progressive mode each component is read once.
        let again = part.steps.is_some() || readers.iter().any(|(other, _)| *other == nth);
        if again && !progressive {
            return None;
        }
        part.steps = part.steps.or(tables.steps.get(usize::from(part.table)).copied()?);
        part.steps?;
        let dc = tables.dc.get(usize::from(numbers >> 4)).and_then(Option::as_ref);
        let ac = tables.ac.get(usize::from(numbers & 15)).and_then(Option::as_ref);
        readers.push((nth, Reader::new(pass, dc, ac)));
    }
    // In a scan of one component the blocks with pixels follow each other, line by line. In a scan of several
    // components all blocks of an MCU follow each other.
    let single = match *readers.as_slice() {
        [] => return None,
        [(nth, _)] => Some((components[nth].columns.div_ceil(8), components[nth].rows.div_ceil(8))),
        _ => None,
    };
    let (across, down) = single.unwrap_or(mcus);
    for mcu in 0..across * down {
        if tables.restart > 0 && mcu > 0 && mcu.is_multiple_of(tables.restart) {
            bits.restart();
            readers.iter_mut().for_each(|(_, reader)| reader.restart());
        }
        if bits.are_used_up() {
            continue;
        }
        for (nth, reader) in &mut readers {
            let part = &mut components[*nth];
            let (wide, high) = if single.is_some() { (1, 1) } else { (part.across, part.down) };
            for at in 0..wide * high {
                let (x, y) = (mcu % across * wide + at % wide, mcu / across * high + at / wide);
                reader.read(&mut bits, &mut part.blocks[y * part.stride + x])?;
            }
        }
    }
    Some(bits.rest())
}

impl Tables {
    /// Notes the Huffman codes of a segment, up to bytes that are no table.
    fn codes(&mut self, mut data: &[u8]) {
        while let Some((head, rest)) = data.split_first() {
            let of_class = if head >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            let Some(place) = of_class.get_mut(usize::from(head & 15)) else { return };
            let Some((codes, rest)) = Codes::read(rest) else { return };
            (*place, data) = (Some(codes), rest);
        }
    }

    /// Notes the quantization steps of a segment, up to bytes that are no table.
    fn steps(&mut self, mut data: &[u8]) {
        while let Some((head, rest)) = data.split_first() {
            let size = if head >> 4 == 0 { 1 } else { 2 };
            let Some(place) = self.steps.get_mut(usize::from(head & 15)) else { return };
            let Some((steps, rest)) = rest.split_at_checked(64 * size) else { return };
            let mut table = [0; 64];
            for (step, at) in steps.chunks_exact(size).zip(ZIGZAG) {
                table[at] = step.iter().fold(0, |value, byte| value << 8 | u16::from(*byte));
            }
            (*place, data) = (Some(table), rest);
        }
    }
}
