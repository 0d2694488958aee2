//! `#[derive(Sample)]`: the layout, `write`, the struct of the batch, and how it is made.

use crate::{
    field::{BatchField, part},
    options::{Options, lints},
    types::{named, with_crate},
};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, DeriveInput, Error, Ident, Meta, Result};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let DeriveInput { ident, vis, generics, .. } = input;
    let fields = named(input, "Sample")?;
    if !generics.params.is_empty() {
        return Err(Error::new_spanned(generics, "a sample with a derived layout has no parameters"));
    }
    let options = Options::of(&input.attrs, "sample", &[], &["batch", "crate"])?;
    let (batch, path): (Option<Ident>, _) = (options.parsed("batch")?, options.path()?);
    let batch = batch.unwrap_or_else(|| format_ident!("{ident}Batch"));
    let (mut parts, mut errors) = (Vec::new(), Vec::new());
    for field in &fields.named {
        match part(field) {
            Ok(part) => parts.extend(part),
            Err(error) => errors.push(error),
        }
    }
    let both = |mut all: Error, error| {
        all.combine(error);
        all
    };
    if let Some(all) = errors.into_iter().reduce(both) {
        return Err(all);
    }
    if parts.is_empty() {
        return Err(Error::new_spanned(ident, "none of its fields becomes a tensor or a column"));
    }
    let layout = parts.iter().flat_map(|part| &part.fields);
    let writes = parts.iter().map(|part| &part.write);
    let outs: Vec<&BatchField> = parts.iter().flat_map(|part| &part.outs).collect();
    let members = outs.iter().map(|BatchField { docs, vis, name, ty, .. }| quote!(#(#docs)* #vis #name: #ty));
    let taken = outs.iter().map(|BatchField { name, take, .. }| quote!(#name: #take));
    let mapped = outs.iter().map(|BatchField { name, map, .. }| quote!(#name: #map));
    let about = format!("A batch of [`{ident}`]: of each field the values of all samples, in the order of the rows.");
    let lints = lints(&input.attrs);
    let is_hidden =
        |attribute: &&Attribute| attribute.path().is_ident("doc") && matches!(attribute.meta, Meta::List(_));
    let hidden = input.attrs.iter().filter(is_hidden);
    let code = quote! {
        #[doc = #about]
        #(#hidden)*
        #(#lints)*
        #[derive(::std::clone::Clone, ::std::fmt::Debug)]
        #vis struct #batch { #(#members),* }

        #[automatically_derived]
        #(#lints)*
        impl __burn_pinned::MapTensors for #batch {
            fn map_tensors<__Mapper: __burn_pinned::TensorMapper>(self, mapper: &mut __Mapper) -> Self {
                let _ = &mapper;
                Self { #(#mapped),* }
            }
        }

        #[automatically_derived]
        #(#lints)*
        impl __burn_pinned::Sample for #ident {
            type Batch = #batch;

            fn fields() -> ::std::vec::Vec<__burn_pinned::Field> {
                ::std::vec![#(#layout),*]
            }

            #[inline]
            fn write(
                &self,
                row: &mut __burn_pinned::RowMut<'_>,
            ) -> ::std::result::Result<(), __burn_pinned::BoxError> {
                #(#writes)*
                ::std::result::Result::Ok(())
            }

            fn finish(
                batch: &mut __burn_pinned::RawBatch,
            ) -> ::std::result::Result<#batch, __burn_pinned::BoxError> {
                ::std::result::Result::Ok(#batch { #(#taken),* })
            }
        }
    };
    Ok(with_crate(code, path.as_ref()))
}
