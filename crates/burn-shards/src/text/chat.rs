//! Chats as text: templates in Jinja, and which parts of the text the assistant has said.

mod arguments;
mod blocks;
mod expression;
mod filters;
mod json;
mod learned;
mod methods;
mod python;
mod source;
mod template;
mod wordwrap;
mod written;

pub use template::ChatTemplate;
pub use written::ChatText;
