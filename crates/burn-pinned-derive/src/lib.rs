//! The derives of the crate `burn-pinned`. It documents them, and re-exports them with its feature `derive`.

mod field;
mod has_image;
mod map_tensors;
mod options;
mod sample;
mod types;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

/// Implements `burn_pinned::Sample` for a struct, and generates the struct of its batch.
#[proc_macro_derive(Sample, attributes(sample))]
pub fn sample(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    sample::derive(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Implements `burn_pinned::MapTensors` for a batch: a struct, a tuple struct or an enum, also with generic parameters.
#[proc_macro_derive(MapTensors, attributes(map_tensors))]
pub fn map_tensors(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    map_tensors::derive(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Implements `burn_pinned::vision::HasImage` for a struct with an image field. If there are several, the first is the image. Fields that
/// are a `Mask`, `Boxes`, `Points` or a second image, or an `Option` or a `Vec` of one of these, move with it. A `GrayImage` or another
/// image type that no transform changes is an error. Type aliases are not recognised. If samples are combined, all other fields are those of
/// the first one: for a list with an entry for each object, write the trait yourself, with its `append`.
/// `#[sample(crate = "other::name")]` names the crate, as for `Sample`.
#[proc_macro_derive(HasImage, attributes(sample))]
pub fn has_image(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    has_image::derive(&input).unwrap_or_else(Error::into_compile_error).into()
}

#[cfg(test)]
mod tests {
    use super::{has_image, map_tensors, sample};
    use proc_macro2::TokenStream;
    use quote::{format_ident, quote};
    use syn::{DeriveInput, Result, parse_quote};

    /// All generated code uses the given path of the crate, or the default one.
    #[test]
    fn no_derive_forgets_the_path_of_the_crate() {
        let row = |options: TokenStream| -> DeriveInput {
            parse_quote! {
                #options
                struct Row {
                    #[sample(shape = [3, 4, 4])]
                    image: Image,
                    #[sample(padded = [4, 4], mask)]
                    mask: Mask,
                    #[sample(padded = [4], mask, format = Xywh)]
                    boxes: Boxes,
                    #[sample(jagged = [4], dtype = f16)]
                    list: Vec<[i64; 2]>,
                    #[sample(fill = 1, mask)]
                    maybe: Option<u8>,
                    #[sample(shape = [3], mean = 0.5, std = 0.5)]
                    array: Array<u8>,
                    half: f16,
                    size: usize,
                    text: String,
                }
            }
        };
        let batch = |options: TokenStream| -> DeriveInput {
            parse_quote!(#options enum Batch<T> { One(T), Two { x: Tensor<2> } })
        };
        type Case<'a> = (&'a str, fn(&DeriveInput) -> Result<TokenStream>, &'a dyn Fn(TokenStream) -> DeriveInput);
        let cases: [Case<'_>; 3] = [
            ("sample", sample::derive, &row),
            ("sample", has_image::derive, &row),
            ("map_tensors", map_tensors::derive, &batch),
        ];
        for (name, derive, input) in cases {
            let attribute = format_ident!("{name}");
            let own = derive(&input(TokenStream::new())).unwrap().to_string();
            assert!(own.contains(":: burn_pinned ::") && !own.contains("__burn_pinned"), "{own}");
            for path in [quote!("other::pinned"), quote!(other::pinned)] {
                let code = derive(&input(quote!(#[#attribute(crate = #path)]))).unwrap().to_string();
                assert!(!code.contains("burn_pinned"), "{code}");
                assert_eq!(code.matches("other :: pinned ::").count(), own.matches(":: burn_pinned ::").count());
            }
            let wrong = derive(&input(quote!(#[#attribute(crate = 3)]))).unwrap_err().to_string();
            assert!(wrong.contains("give the path of burn-pinned"), "{wrong}");
        }
    }
}
