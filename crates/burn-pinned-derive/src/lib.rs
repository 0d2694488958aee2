//! The derives of the crate `burn-pinned`, which has their documentation and re-exports them with its feature `derive`.

mod field;
mod has_image;
mod map_tensors;
mod options;
mod sample;
mod types;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

/// Implements `burn_pinned::Sample` for a struct, and makes the struct of its batch.
#[proc_macro_derive(Sample, attributes(sample))]
pub fn sample(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    sample::derive(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Implements `burn_pinned::MapTensors` for a batch: a struct, a tuple struct or an enum, also with parameters.
#[proc_macro_derive(MapTensors, attributes(map_tensors))]
pub fn map_tensors(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    map_tensors::derive(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Implements `burn_pinned::vision::HasImage` for a struct with a field that is an image: the first counts. Fields that are a `Mask`,
/// `Boxes`, `Points` or a second image, or an `Option` or a `Vec` of one of these, move with it. An alias of such a type is not seen.
#[proc_macro_derive(HasImage)]
pub fn has_image(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    has_image::derive(&input).unwrap_or_else(Error::into_compile_error).into()
}
