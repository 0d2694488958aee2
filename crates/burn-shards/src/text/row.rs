//! The tokens of one document.

/// The tokens of one document, and which of them a model learns to predict.
///
/// ```
/// use burn_shards::TokenRow;
///
/// let mut row = TokenRow::default();
/// row.extend_unlearned([7, 8]); // the question: the loss does not count it
/// row.extend([9, 2]); // the answer
/// assert_eq!(row.tokens, [7, 8, 9, 2]);
/// assert_eq!(row.learned, [false, false, true, true]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenRow {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// For each token, whether the loss counts it. Empty if it counts all.
    pub learned: Vec<bool>,
}

impl TokenRow {
    /// Adds a token that the loss counts.
    pub fn push(&mut self, token: u32) {
        self.extend([token]);
    }

    /// Adds tokens that the loss counts.
    pub fn extend(&mut self, tokens: impl IntoIterator<Item = u32>) {
        self.tokens.extend(tokens);
        if !self.learned.is_empty() {
            self.learned.resize(self.tokens.len(), true);
        }
    }

    /// Adds tokens that the loss does not count.
    pub fn extend_unlearned(&mut self, tokens: impl IntoIterator<Item = u32>) {
        self.learned.resize(self.tokens.len(), true);
        self.tokens.extend(tokens);
        self.learned.resize(self.tokens.len(), false);
    }

    /// Whether the loss counts the token at this index.
    pub fn is_learned(&self, place: usize) -> bool {
        self.learned.get(place).copied().unwrap_or(self.learned.is_empty() && place < self.tokens.len())
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

impl From<Vec<u32>> for TokenRow {
    fn from(tokens: Vec<u32>) -> Self {
        Self { tokens, learned: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_learned_unless_they_are_added_as_context() {
        let mut row = TokenRow::default();
        row.push(1);
        row.extend([2, 3]);
        assert!(row.learned.is_empty() && row.is_learned(2) && !row.is_learned(3));
        row.extend_unlearned([4]);
        row.push(5);
        assert_eq!(row.learned, [true, true, true, false, true]);
        assert_eq!(
            (0..6).map(|place| row.is_learned(place)).collect::<Vec<_>>(),
            [true, true, true, false, true, false]
        );
        let mut first = TokenRow::default();
        first.extend_unlearned([]);
        first.push(1);
        assert_eq!(first, TokenRow::from(vec![1]));
    }
}
