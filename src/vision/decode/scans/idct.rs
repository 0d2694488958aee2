//! From coefficients to values: the transform of libjpeg (`jidctint.c`), bit for bit.

use super::blocks::Block;

/// Bits behind the point of the factors.
const BITS: u32 = 13;
/// Bits behind the point of what the first pass gives.
const BETWEEN: u32 = 2;

/// Returns the values of a block, line by line. `steps` are those of the coefficients.
pub(super) fn values(block: &Block, steps: &[u16; 64]) -> [u8; 64] {
    let mut between = [0i64; 64];
    for column in 0..8 {
        let given = std::array::from_fn(|row| {
            let at = 8 * row + column;
            i64::from(block[at]) * i64::from(steps[at])
        });
        for (row, value) in line(given, BITS - BETWEEN).into_iter().enumerate() {
            between[8 * row + column] = value;
        }
    }
    let mut out = [0; 64];
    for (given, out) in between.as_chunks::<8>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        *out = line(*given, BITS + BETWEEN + 3).map(|value| (value + 128).clamp(0, 255) as u8);
    }
    out
}

/// Transforms a column or a row, and rounds to `bits` bits fewer.
fn line(given: [i64; 8], bits: u32) -> [i64; 8] {
    // The even part.
    let turn = (given[2] + given[6]) * 4433;
    let (low, high) = (turn - given[6] * 15137, turn + given[2] * 6270);
    let (sum, difference) = ((given[0] + given[4]) << BITS, (given[0] - given[4]) << BITS);
    let even = [sum + high, difference + low, difference - low, sum - high];
    // The odd part.
    let [a, b, c, d] = [given[7], given[5], given[3], given[1]];
    let turn = (a + b + c + d) * 9633;
    let (z1, z2) = ((a + d) * -7373, (b + c) * -20995);
    let (z3, z4) = ((a + c) * -16069 + turn, (b + d) * -3196 + turn);
    let odd = [d * 12299 + z1 + z4, c * 25172 + z2 + z3, b * 16819 + z2 + z4, a * 2446 + z1 + z3];
    std::array::from_fn(|at| {
        let value = if at < 4 { even[at] + odd[at] } else { even[7 - at] - odd[7 - at] };
        (value + (1 << (bits - 1))) >> bits
    })
}
