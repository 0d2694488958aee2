//! `#[derive(HasImage)]`: the image of a sample, and the parts that move with it.

use crate::types::{is_named, named};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Error, Result};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let (ident, fields) = (&input.ident, &named(input, "HasImage")?.named);
    let mut images = fields.iter().filter(|field| is_named(&field.ty, &["Image", "RgbImage"]));
    let Some(image) = images.next() else {
        return Err(Error::new_spanned(ident, "none of its fields is an `Image` or an `RgbImage`"));
    };
    if let Some(other) = images.next() {
        return Err(Error::new_spanned(
            &other.ty,
            "a second image: which of them is to change is for `impl HasImage` to say",
        ));
    }
    let (name, ty) = (&image.ident, &image.ty);
    let parts = fields.iter().flat_map(|field| {
        let kind = ["Mask", "Boxes", "Points"].into_iter().find(|kind| is_named(&field.ty, &[*kind]))?;
        let (kind, part) = (format_ident!("{kind}"), &field.ident);
        Some(quote!(::burn_pinned::vision::Part::#kind(&mut self.#part)))
    });
    let (parameters, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::burn_pinned::vision::HasImage for #ident #arguments #bounds {
            type Image = #ty;

            fn image_mut(&mut self) -> &mut #ty {
                &mut self.#name
            }

            fn parts_mut(&mut self) -> ::std::vec::Vec<::burn_pinned::vision::Part<'_>> {
                ::std::vec![#(#parts),*]
            }
        }
    })
}
