//! Small encodings that are read here instead of by the decoder: levels, and the lengths of delta blocks.

use crate::parquet::{
    fault::PartError,
    thrift::{unzigzag, varint},
};

/// Decodes definition levels: runs and groups of packed bits. All must be `most` or less.
pub(crate) fn levels(mut data: &[u8], most: u8, count: usize) -> Result<Vec<u8>, PartError> {
    let bits = 8 - most.leading_zeros();
    // There is a level for each row of the page. The caller has checked the number of rows.
    let mut levels = Vec::with_capacity(count);
    while levels.len() < count {
        let header = varint(&mut data)?;
        let left = count - levels.len();
        if header & 1 == 0 {
            let level = data.split_off_first().ok_or_else(short)?;
            let run = usize::try_from(header >> 1).map_or(left, |run| run.min(left));
            if run == 0 {
                return Err(PartError::damaged("a run of levels is empty"));
            }
            levels.resize(levels.len() + run, *level);
        } else {
            let packed = (header >> 1).saturating_mul(u64::from(bits)); // groups of 8 levels
            let packed = usize::try_from(packed).unwrap_or(usize::MAX).min(data.len());
            let group = data.split_off(..packed).unwrap_or_default();
            let there = (packed * 8 / bits as usize).min(left);
            if there == 0 {
                return Err(short());
            }
            levels.extend((0..there).map(|at| packed_level(group, at * bits as usize, bits)));
        }
    }
    if levels.iter().any(|level| *level > most) {
        return Err(PartError::damaged("a level is too high"));
    }
    Ok(levels)
}

fn packed_level(group: &[u8], bit: usize, bits: u32) -> u8 {
    let byte = |at: usize| u16::from(group.get(at).copied().unwrap_or(0));
    let two = byte(bit / 8) | byte(bit / 8 + 1) << 8;
    (two >> (bit % 8)) as u8 & (0xFF >> (8 - bits))
}

/// Where delta-encoded lengths end, and their sum. There may be at most `most` of them.
pub(crate) fn delta_lengths(data: &[u8], most: u32) -> Result<(usize, u64), PartError> {
    let mut rest = data;
    let (block, minis, count) = (varint(&mut rest)?, varint(&mut rest)?, varint(&mut rest)?);
    // Lengths have 32 bits, and wrap as in the decoder.
    let mut value = unzigzag(varint(&mut rest)?) as i32;
    let wrong = || PartError::damaged(format!("a page claims {count} lengths for {most} values"));
    if count > most.into() || minis == 0 || block == 0 || !block.is_multiple_of(minis) {
        return Err(wrong());
    }
    let in_mini = block / minis;
    let length = |value: i32| u64::try_from(value).unwrap_or(0);
    let mut sum = if count > 0 { length(value) } else { 0 };
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let least = unzigzag(varint(&mut rest)?) as i32;
        let minis = usize::try_from(minis).map_err(|_| wrong())?;
        let widths = rest.split_off(..minis).ok_or_else(short)?;
        for width in widths {
            if left == 0 {
                break; // miniblocks after the last length are not stored
            }
            let bytes = u64::from(*width).checked_mul(in_mini).ok_or_else(wrong)? / 8;
            // The decoder accepts a truncated last block.
            let bytes = usize::try_from(bytes).map_or(rest.len(), |bytes| bytes.min(rest.len()));
            let packed = rest.split_off(..bytes).unwrap_or_default();
            for at in 0..left.min(in_mini) {
                value = value.wrapping_add(least).wrapping_add(packed_delta(packed, at, (*width).into()));
                sum = sum.saturating_add(length(value));
            }
            left = left.saturating_sub(in_mini);
        }
    }
    Ok((data.len() - rest.len(), sum))
}

/// The lowest 32 bits of one of the packed numbers, which have `width` bits each.
fn packed_delta(packed: &[u8], at: u64, width: u64) -> i32 {
    let start = at.saturating_mul(width);
    let first = usize::try_from(start / 8).unwrap_or(usize::MAX);
    let bytes = packed.iter().skip(first).take(5).enumerate();
    let word = bytes.fold(0, |word, (place, byte)| word | u64::from(*byte) << (8 * place));
    let mask = if width < 32 { (1 << width) - 1 } else { u64::from(u32::MAX) };
    (word >> (start % 8) & mask) as i32
}

fn short() -> PartError {
    PartError::damaged("a page ends too early")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_runs_and_packed_bits() {
        // A run of five 1s, then a group of eight packed bits.
        assert_eq!(levels(&[10, 1, 3, 0b0100_1101], 1, 12).unwrap(), [1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1]);
        // Two bits each.
        assert_eq!(levels(&[3, 0b1001_0010, 0b0000_0001], 2, 6).unwrap(), [2, 0, 1, 2, 1, 0]);
        // Seven of eight levels of three bits.
        assert_eq!(levels(&[3, 0b1000_1101, 0b0001_0000, 0], 5, 4).unwrap(), [5, 1, 2, 0]);
    }

    #[test]
    fn levels_that_are_too_high_or_too_few() {
        for bad in [&[][..], &[10], &[2, 1], &[0, 1], &[3], &[10, 2], &[0xFF; 12]] {
            assert!(levels(bad, 1, 5).is_err(), "{bad:?}");
        }
        assert_eq!(levels(&[0xFE, 0xFF, 0xFF, 0xFF, 0x7F, 1], 1, 5).unwrap(), [1; 5]); // a longer run than there are rows
    }
}
