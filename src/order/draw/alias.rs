//! Draws by weight in constant time.

use super::{draws::below, packed::listed, weights::pairwise_sum};
use crate::fault::Error;

/// The mass of a column. Probabilities are integers, so the rounding of each weight is the table's only error.
const COLUMN: u64 = 1 << 32;

/// An alias table: one column for each weight, all of equal mass, each shared by at most two items (A. J. Walker, "An
/// Efficient Method for Generating Discrete Random Variables with General Distributions", ACM TOMS 3(3), 1977; M. D.
/// Vose, "A Linear Algorithm for Generating Random Numbers with a Given Distribution", IEEE TSE 17(9), 1991).
///
/// A draw reads one column of 8 bytes. Each probability is off by less than 2^-32 / n. The largest probability absorbs
/// all errors; it is off by less than 2^-32. An item of weight 0 is never drawn; an item of positive weight can be
/// drawn.
pub(crate) struct AliasTable {
    /// For each column, the mass of its own item, and its alias: the item that has the rest of the column.
    columns: Vec<(u32, u32)>,
}

impl AliasTable {
    /// The most weights of a table. With more, the sum of all rounding errors could exceed one column.
    pub(crate) const MAX_WEIGHTS: usize = 1 << 31;

    /// Makes the table from checked weights, at most [`MAX_WEIGHTS`](Self::MAX_WEIGHTS), for the method `option`.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no memory for it.
    pub(crate) fn new(option: &'static str, weights: Vec<f64>) -> Result<Self, Error> {
        let masses = masses(weights);
        let mut columns = listed(option, masses.len(), (0..masses.len() as u32).map(|item| (0, item)))?;
        // Heavy items fill up the columns of light ones. Both are taken in order, so no work lists are needed, and
        // memory is read forwards (L. Hübschle-Schneider, P. Sanders, "Parallel Weighted Random Sampling", ACM TOMS
        // 48(3), 2022).
        let mut light = (0..masses.len()).filter(|&item| masses[item] < COLUMN);
        let mut heavy = (0..masses.len()).filter(|&item| masses[item] >= COLUMN);
        let Some(mut giver) = heavy.next() else { return Ok(Self { columns }) };
        let mut rest = masses[giver];
        // The sum of the masses is exactly the mass of all columns, so both lists end together, with a full column.
        loop {
            if rest > COLUMN {
                let Some(taker) = light.next() else { break };
                columns[taker] = (masses[taker] as u32, giver as u32);
                rest -= COLUMN - masses[taker];
            } else {
                let Some(next) = heavy.next() else { break };
                if rest < COLUMN {
                    columns[giver] = (rest as u32, next as u32);
                }
                rest = masses[next] - (COLUMN - rest);
                giver = next;
            }
        }
        Ok(Self { columns })
    }

    /// Returns the item for a random number.
    pub(crate) fn pick(&self, random: u64) -> usize {
        let (item, place) = below(random, self.columns.len());
        let (own, alias) = self.columns[item];
        if ((place >> 32) as u32) < own { item } else { alias as usize }
    }
}

/// Turns the weights into integers in the same ratio. Their sum is the mass of one column per weight.
fn masses(weights: Vec<f64>) -> Vec<u64> {
    let columns = weights.len() as u64 * COLUMN;
    let max = weights.iter().copied().fold(0.0, f64::max); // a sum of raw weights might overflow
    let scale = columns as f64 / pairwise_sum(&weights, &|weight| weight / max);
    let mass = |weight: f64| if weight == 0.0 { 0 } else { ((weight / max * scale).round() as u64).max(1) };
    let mut masses: Vec<u64> = weights.into_iter().map(mass).collect(); // reuses the memory of the weights
    let sum: u128 = masses.iter().map(|&mass| u128::from(mass)).sum();
    if let Some(largest) = masses.iter_mut().max() {
        // The largest mass is at least one column, so it is larger than the sum of the errors.
        *largest = (u128::from(*largest) + u128::from(columns)).saturating_sub(sum) as u64;
    }
    masses
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(weights: Vec<f64>) -> AliasTable {
        AliasTable::new("weights", weights).unwrap()
    }

    /// The probabilities that a table stands for.
    fn probabilities(table: &AliasTable) -> Vec<f64> {
        let mut mass = vec![0u64; table.columns.len()];
        for (item, &(own, alias)) in table.columns.iter().enumerate() {
            mass[item] += u64::from(own);
            mass[alias as usize] += COLUMN - u64::from(own);
        }
        let sum = COLUMN as f64 * mass.len() as f64;
        mass.into_iter().map(|mass| mass as f64 / sum).collect()
    }

    proptest! {
        #[test]
        fn the_table_has_the_probabilities_of_the_weights(
            weights in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0, 1e3..1e6, Just(1.0)], 1..300),
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0.0));
            let (n, sum) = (weights.len() as f64, weights.iter().sum::<f64>());
            let largest = weights.iter().copied().fold(0.0, f64::max);
            for (weight, probability) in weights.iter().zip(probabilities(&table(weights.clone()))) {
                // The largest weight takes the rounding errors of all.
                let quanta = if *weight == largest { n } else { 1.0 };
                prop_assert!((probability - weight / sum).abs() <= quanta / (n * COLUMN as f64) + 1e-15);
                prop_assert!((*weight > 0.0) == (probability > 0.0), "{weight}: {probability}");
            }
        }
    }

    #[test]
    fn weights_of_any_size_are_taken() {
        for weights in [vec![f64::MAX; 5], vec![f64::MIN_POSITIVE / 8.0; 5], vec![7.0; 5]] {
            assert_eq!(probabilities(&table(weights)), [0.2; 5]);
        }
        assert_eq!(probabilities(&table(vec![f64::MAX, 0.0])), [1.0, 0.0]);
        let tiny = probabilities(&table(vec![f64::MAX, f64::MIN_POSITIVE]));
        assert!(tiny[1] > 0.0 && tiny[1] < 1e-9);
        assert_eq!(table(vec![3.0]).pick(u64::MAX), 0);
    }
}
