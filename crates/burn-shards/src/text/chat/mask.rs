//! From parts of a text that the loss counts to tokens.

use super::ChatText;
use crate::{error::BoxError, text::TokenRow};
use tokenizers::Tokenizer;

/// The tokens of a chat. The loss counts those that have a byte of a learned part, as `transformers` has it.
pub(in crate::text) fn tokens_of_chat(tokenizer: &Tokenizer, chat: &ChatText) -> Result<TokenRow, BoxError> {
    let encoding = tokenizer.encode(chat.text.as_str(), false)?;
    let mut parts = chat.learned.iter().peekable();
    let is_learned = |(start, end): &(usize, usize)| {
        while parts.next_if(|part| part.end <= *start).is_some() {}
        parts.peek().is_some_and(|part| part.start < *end)
    };
    Ok(TokenRow {
        tokens: encoding.get_ids().to_vec(),
        learned: encoding.get_offsets().iter().map(is_learned).collect(),
    })
}
