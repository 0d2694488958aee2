//! A chat that a template has written.

use crate::text::TextError;
use serde_json::Value;
use std::{collections::BTreeSet, ops::Range};

/// The role of the messages that are learned.
pub(super) const ASSISTANT: &str = "assistant";

/// A chat as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatText {
    /// The text.
    pub text: String,
    /// The parts that the loss counts, as ranges of bytes in order.
    pub learned: Vec<Range<usize>>,
}

/// The roles that are not the assistant's.
const ASKING: [&str; 5] = ["developer", "function", "system", "tool", "user"];

impl ChatText {
    /// Returns the chat, or an error if it has answers (messages of the assistant or of an unknown role) but nothing for the loss.
    pub(super) fn checked(self, messages: &[Value]) -> Result<Self, TextError> {
        let roles: BTreeSet<_> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
        let has_others = roles.len() > 1 && !roles.iter().all(|role| ASKING.contains(role));
        let problem = if self.learned.iter().any(|part| !part.is_empty()) {
            return Ok(self);
        } else if roles.contains(ASSISTANT) {
            "the template writes nothing of what the assistant says, or not in a block {% generation %}".into()
        } else if has_others {
            let roles = Vec::from_iter(roles).join("`, `");
            format!("no message has the role `{ASSISTANT}`, but `{roles}`: name the role of the answers `{ASSISTANT}`")
        } else {
            return Ok(self);
        };
        Err(TextError::Chat(format!("nothing of it is learned: {problem}")))
    }
}
