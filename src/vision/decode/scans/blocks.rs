//! The coefficients of a block, from the bits of a scan (T.81, annexes F and G).

use super::entropy::{Bits, Codes};

/// The coefficients of a block, line by line.
pub(super) type Block = [i16; 64];

/// Where each coefficient lies in a block, in the order of the file.
pub(super) const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// The coefficients of each block that a scan brings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pass {
    /// All coefficients.
    Whole,
    /// The first coefficient without its `low` last bits, or one more bit of it.
    Dc { low: u8, more: bool },
    /// Other coefficients, without their `low` last bits, or one more bit of each.
    Ac { first: usize, last: usize, low: u8, more: bool },
}

/// Reads the blocks of one component.
pub(super) struct Reader<'a> {
    pub(super) pass: Pass,
    pub(super) dc: Option<&'a Codes>,
    pub(super) ac: Option<&'a Codes>,
    before: i32,
    /// The number of blocks to come that bring no new coefficients.
    skipped: i32,
}

impl<'a> Reader<'a> {
    pub(super) fn new(pass: Pass, dc: Option<&'a Codes>, ac: Option<&'a Codes>) -> Self {
        Self { pass, dc, ac, before: 0, skipped: 0 }
    }

    pub(super) fn restart(&mut self) {
        (self.before, self.skipped) = (0, 0);
    }

    /// Reads the coefficients of a block that the scan has. `None` if a table is missing.
    pub(super) fn read(&mut self, bits: &mut Bits<'_>, block: &mut Block) -> Option<()> {
        match self.pass {
            Pass::Whole => {
                block[0] = self.dc(bits)? as i16;
                self.coefficients(bits, block, 1, 63, 0)?;
            }
            Pass::Dc { low, more: false } => block[0] = (self.dc(bits)? << low) as i16,
            Pass::Dc { low, more: true } => block[0] |= (bits.take(1) << low) as i16,
            Pass::Ac { first, last, low, more: false } => self.coefficients(bits, block, first, last, low)?,
            Pass::Ac { first, last, low, more: true } => self.more_bits(bits, block, first, last, 1 << low)?,
        }
        Some(())
    }

    fn dc(&mut self, bits: &mut Bits<'_>) -> Option<i32> {
        let length = bits.symbol(self.dc?).min(15);
        self.before = self.before.wrapping_add(bits.value(length));
        Some(self.before)
    }

    fn coefficients(
        &mut self,
        bits: &mut Bits<'_>,
        block: &mut Block,
        first: usize,
        last: usize,
        low: u8,
    ) -> Option<()> {
        let codes = self.ac?;
        if self.skipped > 0 {
            self.skipped -= 1;
            return Some(());
        }
        let mut at = first;
        while at <= last {
            let symbol = bits.symbol(codes);
            let (run, length) = (symbol >> 4, symbol & 15);
            match (run, length) {
                (15, 0) => at += 16,
                (_, 0) => {
                    // A sequential file has no runs of blocks.
                    if !matches!(self.pass, Pass::Whole) {
                        self.skipped = (1 << run) - 1 + bits.take(run);
                    }
                    break;
                }
                _ => {
                    at += usize::from(run);
                    let value = bits.value(length) << low;
                    if at <= last {
                        block[ZIGZAG[at]] = value as i16;
                    }
                    at += 1;
                }
            }
        }
        Some(())
    }

    /// Reads one more bit of each coefficient that is not 0, and coefficients that are of this `size` now.
    fn more_bits(
        &mut self,
        bits: &mut Bits<'_>,
        block: &mut Block,
        first: usize,
        last: usize,
        size: i16,
    ) -> Option<()> {
        let codes = self.ac?;
        let more = |bits: &mut Bits<'_>, value: &mut i16| {
            if bits.take(1) == 1 && *value & size == 0 {
                *value = value.wrapping_add(if *value > 0 { size } else { -size });
            }
        };
        let mut at = first;
        while at <= last && self.skipped == 0 {
            let symbol = bits.symbol(codes);
            let (mut run, length) = (symbol >> 4, symbol & 15);
            let new = match (run, length) {
                (15, 0) => 0,
                (_, 0) => {
                    self.skipped = (1 << run) + bits.take(run);
                    break;
                }
                _ if bits.take(1) == 1 => size,
                _ => -size,
            };
            while at <= last {
                let value = &mut block[ZIGZAG[at]];
                at += 1;
                if *value != 0 {
                    more(bits, value);
                } else if run == 0 {
                    *value = new;
                    break;
                } else {
                    run -= 1;
                }
            }
        }
        if self.skipped > 0 {
            for place in &ZIGZAG[at..last + 1] {
                if block[*place] != 0 {
                    more(bits, &mut block[*place]);
                }
            }
            self.skipped -= 1;
        }
        Some(())
    }
}
