//! Random numbers that depend only on a key, never on the thread or the time.

use rand::{SeedableRng, TryRng, rngs::ChaCha8Rng};
use std::convert::Infallible;

/// The purpose of a stream of random numbers: equal keys with different purposes give unrelated numbers.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// The order of an epoch.
    Order = 1,
    /// The augmentation of a sample.
    Sample = 2,
    /// The work on a batch in `finish`.
    Batch = 3,
    /// The choice of the next dataset of a mixture, whose samplers may have the same seed.
    Mixture = 4,
    /// The order of the samples of neighbouring blocks.
    Block = 5,
    /// The order of the rows of packed documents.
    Packing = 6,
    /// Where samples of the pass before go, if epochs have fewer samples than the dataset.
    Slots = 7,
}

/// A random generator whose numbers depend only on its key. In burn-pinned, the key is the seed, the epoch, and the
/// index of the sample or the position of the batch's first sample.
///
/// It is ChaCha with 8 rounds: the same on every system, and cheap to create. Use it with `rand`'s `RngExt`.
///
/// ```
/// use burn_augment::KeyedRng;
/// use rand::RngExt;
///
/// # fn augment(rng: &mut KeyedRng) {
/// let flip = rng.random_bool(0.5);
/// let angle = rng.random_range(-15.0..15.0);
/// # }
/// ```
#[derive(Debug)]
pub struct KeyedRng(ChaCha8Rng);

impl KeyedRng {
    /// A generator for the order of an epoch, for samplers of your own.
    pub fn for_order(seed: u64, epoch: usize) -> Self {
        Self::new(Purpose::Order, seed, epoch, 0)
    }

    /// A generator for the augmentation of a sample.
    pub fn for_sample(seed: u64, epoch: usize, index: usize) -> Self {
        Self::for_occurrence(seed, epoch, index, None)
    }

    /// As [`for_sample`](Self::for_sample). Set `occurrence` if an index may occur more than once in an epoch.
    #[doc(hidden)]
    pub fn for_occurrence(seed: u64, epoch: usize, index: usize, occurrence: Option<usize>) -> Self {
        let occurrence = occurrence.map_or(0, |at| (at as u64).wrapping_add(1) << 8); // the purpose has the low bits
        Self::keyed([Purpose::Sample as u64 | occurrence, seed, epoch as u64, index as u64])
    }

    /// A generator for a purpose.
    #[doc(hidden)]
    pub fn new(purpose: Purpose, seed: u64, epoch: usize, index: usize) -> Self {
        Self::keyed([purpose as u64, seed, epoch as u64, index as u64])
    }

    fn keyed(words: [u64; 4]) -> Self {
        let mut key = [0; 32];
        for (place, word) in key.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// Moves behind the first `count` numbers of 64 bits.
    #[doc(hidden)]
    pub fn seek(&mut self, count: u64) {
        self.0.set_word_pos(2 * u128::from(count)); // it counts words of 32 bits
    }
}

impl TryRng for KeyedRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(bytes)
    }
}
