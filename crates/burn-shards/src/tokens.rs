//! Token files: text that was tokenised before training, mapped into memory.
//!
//! From bytes to a sample, one file each: `open` finds the files, `format` tells their formats apart, `megatron` reads
//! Megatron's index, `stream` lays the tokens of all files end to end, `windows` cuts them into samples.

mod content;
mod error;
mod format;
mod kind;
pub(crate) mod megatron;
mod open;
mod source;
mod stream;
mod window;
mod windows;

pub use error::{TokenFileError, TokensError};
pub use kind::TokenType;
pub use source::Tokens;
pub use window::TokenWindow;
pub use windows::TokenWindows;
