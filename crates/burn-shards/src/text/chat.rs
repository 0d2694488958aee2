//! Chats as text: templates in Jinja, and which parts of the text the assistant has said.

mod blocks;
mod json;
mod template;
mod written;

pub use template::ChatTemplate;
pub use written::ChatText;
