//! `#[derive(HasImage)]`: the image of a sample, and the parts that move with it.

use crate::{
    options::Options,
    types::{held, is_named, mentions, named, with_crate},
};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Error, Field, Result};

const IMAGES: [&str; 2] = ["Image", "RgbImage"];
const PARTS: [&str; 5] = ["Mask", "Boxes", "Points", "Image", "RgbImage"];
/// The parts that a `Vec` of them is.
const LISTS: [(&str, &str); 2] = [("Mask", "Masks"), ("Points", "PointSets")];
/// Image types of the crate `image` that no transform changes.
const PICTURES: [&str; 7] =
    ["ImageBuffer", "DynamicImage", "GrayImage", "GrayAlphaImage", "RgbaImage", "Rgb32FImage", "Rgba32FImage"];

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let path = Options::of(&input.attrs, "sample", &[], &["batch", "crate"])?.path()?;
    let (ident, fields) = (&input.ident, &named(input, "HasImage")?.named);
    let Some(image) = fields.iter().find(|field| is_named(&field.ty, &IMAGES)) else {
        return Err(Error::new_spanned(ident, "none of its fields is an `Image` or an `RgbImage`"));
    };
    let (name, ty) = (&image.ident, &image.ty);
    let parts = fields.iter().filter(|field| field.ident != image.ident).map(parts).collect::<Result<Vec<_>>>()?;
    let (parameters, arguments, bounds) = input.generics.split_for_impl();
    let code = quote! {
        #[automatically_derived]
        impl #parameters __burn_pinned::vision::HasImage for #ident #arguments #bounds {
            type Image = #ty;

            fn image_mut(&mut self) -> &mut #ty {
                &mut self.#name
            }

            fn parts_mut(&mut self) -> ::std::vec::Vec<__burn_pinned::vision::Part<'_>> {
                ::std::iter::empty()#(#parts)*.collect()
            }
        }
    };
    Ok(with_crate(code, path.as_ref()))
}

/// The call that adds the parts of a field to an iterator of parts.
///
/// # Errors
/// If the field has parts in an unknown form, which would silently not move with the image.
fn parts(field: &Field) -> Result<TokenStream> {
    let (name, ty) = (&field.ident, &field.ty);
    for kind in PARTS {
        let part = format_ident!("{kind}");
        let part = quote!(__burn_pinned::vision::Part::#part);
        if is_named(ty, &[kind]) {
            return Ok(quote!(.chain([#part(&mut self.#name)])));
        }
        if let Some((_, part)) = LISTS.iter().find(|(list, _)| *list == kind).filter(|_| is_named(ty, &["Vec"]))
            && held(ty).is_some_and(|held| is_named(held, &[kind]))
        {
            let part = format_ident!("{part}");
            return Ok(quote!(.chain([__burn_pinned::vision::Part::#part(&mut self.#name)])));
        }
        if held(ty).is_some_and(|held| is_named(held, &[kind])) {
            return Ok(quote!(.chain(self.#name.iter_mut().map(#part))));
        }
    }
    if mentions(ty, &PARTS) {
        return Err(Error::new_spanned(
            ty,
            "a part, a second image, an `Option` or a `Vec` of them moves with the image: for others write `impl HasImage`",
        ));
    }
    if mentions(ty, &PICTURES) {
        return Err(Error::new_spanned(
            ty,
            "no transform changes such a picture, so it would stay behind: make a `Mask` or an `RgbImage` of it, or write \
             `impl HasImage`",
        ));
    }
    Ok(TokenStream::new())
}
