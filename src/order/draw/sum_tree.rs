//! Weights that may change between draws: a tree of their sums.

use super::packed::listed;
use crate::fault::Error;
use std::iter::repeat_n;

/// A binary tree in one list. The children of node `i` are the nodes `2 * i` and `2 * i + 1`, and each node is the sum of its children. The
/// weights are its second half. Node 1 is the sum of all, for any number of weights.
///
/// A change computes the sums above it anew from their children. So rounding errors do not add up over time, and a sum is 0 only if all
/// weights below it are.
#[derive(Debug)]
pub(crate) struct SumTree {
    nodes: Vec<f64>,
}

impl SumTree {
    /// There is at least one weight; none is negative, and the sum of all is finite.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no memory for it.
    pub(crate) fn new(option: &'static str, weights: Vec<f64>) -> Result<Self, Error> {
        let len = weights.len();
        let mut nodes = listed(option, 2 * len, repeat_n(0.0, len).chain(weights))?;
        for node in (1..len).rev() {
            nodes[node] = nodes[2 * node] + nodes[2 * node + 1];
        }
        Ok(Self { nodes })
    }

    pub(crate) fn weights(&self) -> &[f64] {
        &self.nodes[self.nodes.len() / 2..]
    }

    pub(crate) fn sum(&self) -> f64 {
        self.nodes[1]
    }

    pub(crate) fn set(&mut self, item: usize, weight: f64) {
        let mut node = self.nodes.len() / 2 + item;
        self.nodes[node] = weight;
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1];
        }
    }

    /// Returns the item for a random number. `None` if all weights are 0.
    pub(crate) fn pick(&self, random: u64) -> Option<usize> {
        let (len, mut node) = (self.nodes.len() / 2, 1);
        let mut left = self.sum() * ((random >> 11) as f64 / (1u64 << 53) as f64);
        while node < len {
            let [first, second] = [2 * node, 2 * node + 1].map(|child| self.nodes[child]);
            // Rounding may leave more than there is, so a child of weight 0 is never taken.
            let goes_on = second > 0.0 && left >= first;
            left -= if goes_on { first } else { 0.0 };
            node = 2 * node + usize::from(goes_on);
        }
        (self.sum() > 0.0).then(|| node - len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree(weights: &[f64]) -> SumTree {
        SumTree::new("test", weights.to_vec()).unwrap()
    }

    fn weight() -> impl Strategy<Value = f64> {
        prop_oneof![2 => Just(0.0), 3 => 0.0..2.0, 1 => Just(5e-324), 1 => Just(1e300), 1 => 0.0..1e-9]
    }

    proptest! {
        /// After any changes, the tree is the same as one that is made of the weights, to the last bit.
        #[test]
        fn changes_leave_no_trace(
            mut weights in prop::collection::vec(weight(), 1..70),
            changes in prop::collection::vec((any::<prop::sample::Index>(), weight()), 0..200),
            randoms in prop::collection::vec(any::<u64>(), 20),
        ) {
            let mut changed = tree(&weights);
            for (at, weight) in changes {
                let at = at.index(weights.len());
                weights[at] = weight;
                changed.set(at, weight);
            }
            prop_assert_eq!(&changed.nodes, &tree(&weights).nodes);
            prop_assert_eq!(changed.weights(), &weights);
            for random in randoms.into_iter().chain([0, u64::MAX, 1 << 63]) {
                match changed.pick(random) {
                    Some(item) => prop_assert!(weights[item] > 0.0),
                    None => prop_assert!(weights.iter().all(|weight| *weight == 0.0)),
                }
            }
        }
    }

    #[test]
    fn each_item_has_its_part_of_the_random_numbers() {
        // Five weights: they are on two levels of the tree.
        let weights = [1.0, 0.0, 4.0, 3.0, 8.0];
        let (tree, mut counts) = (tree(&weights), [0; 5]);
        for number in 0..1600 {
            counts[tree.pick(number * (u64::MAX / 1600)).unwrap()] += 1; // evenly over all random numbers
        }
        assert!(counts.iter().zip(weights).all(|(count, weight)| (f64::from(*count) - 100.0 * weight).abs() <= 1.0));
    }
}
