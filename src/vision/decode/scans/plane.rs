//! The values of a component, spread over the lines of the picture as libjpeg-turbo does it (`jdsample.c`).

/// The values of a component.
pub(super) struct Plane {
    /// Columns and rows of the values that belong to the picture.
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// The number of values in a row, with those that fill its last block.
    pub(super) stride: usize,
    pub(super) values: Vec<u8>,
    /// How many columns and rows of the picture a value is for.
    pub(super) wide: usize,
    pub(super) high: usize,
}

impl Plane {
    fn row(&self, row: usize) -> &[u8] {
        &self.values[row.min(self.rows - 1) * self.stride..][..self.columns]
    }

    /// Writes the values for a line of the picture: those of neighbours are mixed if it has twice as many columns or rows,
    /// else repeated.
    pub(super) fn line(&self, line: usize, sums: &mut Vec<u16>, out: &mut [u8]) {
        let near = self.row(line / self.high);
        let mixed = matches!((self.wide, self.high), (2, 1 | 2)) && self.columns > 2;
        if !mixed && (self.wide, self.high) != (1, 2) {
            return out.iter_mut().enumerate().for_each(|(x, out)| *out = near[x / self.wide]);
        }
        // The near row counts three times, and the row beyond it once.
        sums.clear();
        if self.high == 1 {
            sums.extend(near.iter().map(|near| u16::from(*near)));
        } else {
            let nth = line / 2;
            let far = self.row(if line.is_multiple_of(2) { nth.saturating_sub(1) } else { nth + 1 });
            sums.extend(near.iter().zip(far).map(|(near, far)| 3 * u16::from(*near) + u16::from(*far)));
        }
        if self.wide == 1 {
            let half = 1 + (line % 2) as u16;
            return out.iter_mut().zip(sums).for_each(|(out, sum)| *out = ((*sum + half) >> 2) as u8);
        }
        let (even, odd, bits) = if self.high == 1 { (1, 2, 2) } else { (8, 7, 4) };
        for (x, out) in out.iter_mut().enumerate() {
            let at = x / 2;
            let (beyond, half) =
                if x.is_multiple_of(2) { (at.saturating_sub(1), even) } else { ((at + 1).min(self.columns - 1), odd) };
            *out = ((3 * sums[at] + sums[beyond] + half) >> bits) as u8;
        }
    }
}
