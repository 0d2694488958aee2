//! A small JPEG encoder that writes any order of scans, any sampling, and progressive files too.

use std::f64::consts::PI;

/// The step of every coefficient.
const STEP: f64 = 2.0;

/// Places of coefficients in a block, in the order of a file.
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// How a file is coded.
#[derive(Debug, Clone)]
pub(super) struct Coding {
    /// The components of each scan.
    pub(super) scans: Vec<Vec<usize>>,
    pub(super) progressive: bool,
    /// MCUs between restarts; 0 is never.
    pub(super) restart: usize,
    /// The kind of colours, as Adobe writes it.
    pub(super) adobe: Option<u8>,
}

/// The values of a component, as a decoder gets them back.
#[derive(Debug)]
pub(super) struct Plane {
    /// Sampling factors.
    pub(super) across: usize,
    pub(super) down: usize,
    /// True columns and rows.
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Columns of `values`, which has whole blocks.
    pub(super) stride: usize,
    pub(super) values: Vec<f64>,
}

/// A picture, ready to be written in any order.
pub(super) struct Picture {
    size: (usize, usize),
    /// Columns and rows of MCUs.
    mcus: (usize, usize),
    components: Vec<Component>,
    pub(super) planes: Vec<Plane>,
}

struct Component {
    /// Sampling factors.
    across: usize,
    down: usize,
    /// True columns and rows.
    columns: usize,
    rows: usize,
    /// Blocks in a row, with those that fill the last MCU.
    stride: usize,
    /// Quantized, in the order of a file.
    blocks: Vec<[i32; 64]>,
}

impl Picture {
    /// Codes the values of each component, with its sampling factors: `value(component, x, y)` in pixels of the picture.
    pub(super) fn new(
        size: (usize, usize),
        sampling: &[(usize, usize)],
        value: impl Fn(usize, usize, usize) -> f64,
    ) -> Self {
        let most = |factor: fn(&(usize, usize)) -> usize| sampling.iter().map(factor).max().unwrap();
        let (wide, high) = (most(|factors| factors.0), most(|factors| factors.1));
        let mcus = (size.0.div_ceil(8 * wide), size.1.div_ceil(8 * high));
        let component = |(nth, &(across, down)): (usize, &(usize, usize))| {
            let (columns, rows) = ((size.0 * across).div_ceil(wide), (size.1 * down).div_ceil(high));
            // The mean of the pixels that a value is for; the last ones stand for what is beyond them.
            let mean = |x: usize, y: usize| {
                let [left, right] = [x, x + 1].map(|x| x * wide / across);
                let [top, bottom] = [y, y + 1].map(|y| y * high / down);
                let pixels = (top..bottom).flat_map(|y| (left..right).map(move |x| (x, y)));
                let values = pixels.map(|(x, y)| value(nth, x.min(size.0 - 1), y.min(size.1 - 1)));
                values.sum::<f64>() / ((right - left) * (bottom - top)) as f64
            };
            let (stride, lines) = (mcus.0 * across, mcus.1 * down);
            let block = |at: usize| {
                let (left, top) = (8 * (at % stride), 8 * (at / stride));
                quantized(|x, y| mean((left + x).min(columns - 1), (top + y).min(rows - 1)))
            };
            Component { across, down, columns, rows, stride, blocks: (0..stride * lines).map(block).collect() }
        };
        let components: Vec<_> = sampling.iter().enumerate().map(component).collect();
        let planes = components.iter().map(plane).collect();
        Self { size, mcus, components, planes }
    }
}

/// The cosine of a frequency at a place, with the weight of the frequency.
fn wave(frequency: usize, at: usize) -> f64 {
    let weight = if frequency == 0 { 0.5f64.sqrt() } else { 1.0 };
    weight / 2.0 * ((2 * at + 1) as f64 * frequency as f64 * PI / 16.0).cos()
}

/// Transforms the columns of a block, and then its rows: `weight(n, m)` is the share of value m in result n.
fn transformed(block: [f64; 64], weight: impl Fn(usize, usize) -> f64) -> [f64; 64] {
    let weights: [f64; 64] = std::array::from_fn(|at| weight(at / 8, at % 8));
    let columns: [f64; 64] =
        std::array::from_fn(|at| (0..8).map(|m| weights[at / 8 * 8 + m] * block[8 * m + at % 8]).sum());
    std::array::from_fn(|at| (0..8).map(|m| weights[at % 8 * 8 + m] * columns[at / 8 * 8 + m]).sum())
}

fn quantized(value: impl Fn(usize, usize) -> f64) -> [i32; 64] {
    let values = std::array::from_fn(|at| value(at % 8, at / 8) - 128.0);
    let all = transformed(values, wave);
    ZIGZAG.map(|at| (all[at] / STEP).round() as i32)
}

fn plane(component: &Component) -> Plane {
    let Component { across, down, columns, rows, stride, ref blocks } = *component;
    let mut values = vec![0.0; 64 * blocks.len()];
    for (at, block) in blocks.iter().enumerate() {
        let mut coefficients = [0.0; 64];
        for (value, at) in block.iter().zip(ZIGZAG) {
            coefficients[at] = STEP * f64::from(*value);
        }
        for (place, value) in transformed(coefficients, |at, frequency| wave(frequency, at)).into_iter().enumerate() {
            let (x, y) = (8 * (at % stride) + place % 8, 8 * (at / stride) + place / 8);
            values[8 * stride * y + x] = (value + 128.0).round().clamp(0.0, 255.0);
        }
    }
    Plane { across, down, columns, rows, stride: 8 * stride, values }
}

fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
    [&[0xFF, marker][..], &(data.len() as u16 + 2).to_be_bytes(), data].concat()
}

impl Picture {
    pub(super) fn file(&self, coding: &Coding) -> Vec<u8> {
        let mut file = vec![0xFF, 0xD8];
        if let Some(kind) = coding.adobe {
            file.extend(segment(0xEE, &[b"Adobe\0\x64\0\0\0\0", &[kind][..]].concat()));
        }
        file.extend(segment(0xDB, &[&[0][..], &[STEP as u8; 64]].concat()));
        let mut frame = vec![8];
        frame.extend([self.size.1 as u16, self.size.0 as u16].map(u16::to_be_bytes).concat());
        frame.push(self.components.len() as u8);
        let parts = self.components.iter().zip(1..);
        frame.extend(parts.flat_map(|(part, id)| [id, (part.across << 4 | part.down) as u8, 0]));
        file.extend(segment(if coding.progressive { 0xC2 } else { 0xC0 }, &frame));
        // Of both tables a code is the symbol itself: in 4 bits of DC, in 8 bits of AC.
        let table = |class: u8, length: usize, symbols: Vec<u8>| {
            let mut counts = [0; 16];
            counts[length - 1] = symbols.len() as u8;
            segment(0xC4, &[&[class << 4][..], &counts, &symbols].concat())
        };
        file.extend(table(0, 4, (0..12).collect()));
        file.extend(table(1, 8, (0..255).collect()));
        if coding.restart > 0 {
            file.extend(segment(0xDD, &(coding.restart as u16).to_be_bytes()));
        }
        let band = |first, last, high, low| Band { first, last, high, low };
        for scan in &coding.scans {
            if !coding.progressive {
                file.extend(self.scan(scan, coding.restart, band(0, 63, 0, 0)));
                continue;
            }
            file.extend(self.scan(scan, coding.restart, band(0, 0, 0, 1)));
            for part in scan {
                for band in [band(1, 5, 0, 0), band(6, 63, 0, 1), band(6, 63, 1, 0)] {
                    file.extend(self.scan(&[*part], coding.restart, band));
                }
            }
            file.extend(self.scan(scan, coding.restart, band(0, 0, 1, 0)));
        }
        file.extend([0xFF, 0xD9]);
        file
    }

    fn scan(&self, numbers: &[usize], restart: usize, band: Band) -> Vec<u8> {
        let mut head = vec![numbers.len() as u8];
        head.extend(numbers.iter().flat_map(|nth| [*nth as u8 + 1, 0]));
        head.extend([band.first as u8, band.last as u8, band.high << 4 | band.low]);
        let mut out = segment(0xDA, &head);
        let parts: Vec<_> = numbers.iter().map(|nth| &self.components[*nth]).collect();
        // Of one component the blocks that hold pixels, line by line; of several all blocks of each MCU.
        let (across, down) = match parts.as_slice() {
            [part] => (part.columns.div_ceil(8), part.rows.div_ceil(8)),
            _ => self.mcus,
        };
        let (mut bits, mut before) = (Bits::default(), vec![0; parts.len()]);
        for mcu in 0..across * down {
            if restart > 0 && mcu > 0 && mcu.is_multiple_of(restart) {
                out.extend(std::mem::take(&mut bits).end());
                out.extend([0xFF, 0xD0 + (mcu / restart - 1) as u8 % 8]);
                before.fill(0);
            }
            for (part, before) in parts.iter().zip(&mut before) {
                let (wide, high) = if parts.len() == 1 { (1, 1) } else { (part.across, part.down) };
                for nth in 0..wide * high {
                    let (x, y) = (mcu % across * wide + nth % wide, mcu / across * high + nth / wide);
                    write_block(&part.blocks[y * part.stride + x], band, before, &mut bits);
                }
            }
        }
        out.extend(bits.end());
        out
    }
}

/// The coefficients of a scan, and the bits of them.
#[derive(Clone, Copy)]
struct Band {
    first: usize,
    last: usize,
    high: u8,
    low: u8,
}

fn write_block(block: &[i32; 64], band: Band, before: &mut i32, bits: &mut Bits) {
    let Band { first, last, high, low } = band;
    let mut first = first;
    if first == 0 {
        let value = block[0] >> low;
        if high > 0 {
            return bits.put((value & 1) as u32, 1);
        }
        bits.symbol_and(value - *before, 4, 0);
        (*before, first) = (value, 1);
    }
    if last == 0 {
        return;
    }
    let shifted = |nth: usize| block[nth].signum() * (block[nth].abs() >> low);
    // What was not 0 before gets one bit more, behind the next symbol.
    let (mut run, mut more) = (0u32, Vec::new());
    for nth in first..=last {
        let value = shifted(nth);
        if high > 0 && value.abs() > 1 {
            more.push(value.unsigned_abs() & 1);
        } else if value == 0 {
            run += 1;
            if run == 16 && (nth..=last).any(|nth| shifted(nth) != 0 && (high == 0 || shifted(nth).abs() == 1)) {
                bits.put(0xF0, 8);
                more.drain(..).for_each(|bit| bits.put(bit, 1));
                run = 0;
            }
        } else {
            bits.symbol_and(value, 8, run);
            more.drain(..).for_each(|bit| bits.put(bit, 1));
            run = 0;
        }
    }
    if run > 0 || !more.is_empty() {
        bits.put(0x00, 8); // the end of a block
        more.drain(..).for_each(|bit| bits.put(bit, 1));
    }
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    held: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for at in (0..count).rev() {
            self.held = self.held << 1 | (value >> at & 1);
            self.count += 1;
            if self.count == 8 {
                self.bytes.push(self.held as u8);
                if self.held as u8 == 0xFF {
                    self.bytes.push(0);
                }
                (self.held, self.count) = (0, 0);
            }
        }
    }

    /// Writes the run and the length of a value as a symbol, and then the value.
    fn symbol_and(&mut self, value: i32, length_of_code: u32, run: u32) {
        let length = 32 - value.unsigned_abs().leading_zeros();
        self.put(run << 4 | length, length_of_code);
        let coded = if value < 0 { value - 1 } else { value };
        self.put(coded as u32 & ((1 << length) - 1), length);
    }

    /// Fills the last byte with ones.
    fn end(mut self) -> Vec<u8> {
        while self.count > 0 {
            self.put(1, 1);
        }
        self.bytes
    }
}
