//! Chats as text: templates in Jinja, and which parts of the text the assistant has said.

mod blocks;
mod json;
mod mask;
mod template;
mod written;

pub(super) use mask::tokens_of_chat;
pub use template::ChatTemplate;
pub use written::ChatText;
