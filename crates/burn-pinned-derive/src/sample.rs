//! `#[derive(Sample)]`: the layout, `write`, the struct of the batch, and how it is made.

use crate::{
    field::{Part, part},
    options::Options,
    types::named,
};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Error, Ident, Result};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let DeriveInput { ident, vis, generics, .. } = input;
    let fields = named(input, "Sample")?;
    if !generics.params.is_empty() {
        return Err(Error::new_spanned(generics, "a sample with a derived layout has no parameters"));
    }
    let batch = batch_name(input)?;
    let (mut parts, mut errors) = (Vec::new(), None::<Error>);
    for field in &fields.named {
        match Options::of(&field.attrs).and_then(|options| part(field, &options)) {
            Ok(part) => parts.extend(part),
            Err(error) => match &mut errors {
                Some(errors) => errors.combine(error),
                None => errors = Some(error),
            },
        }
    }
    if let Some(errors) = errors {
        return Err(errors);
    }
    if parts.iter().all(|part| part.fields.is_empty()) {
        return Err(Error::new_spanned(ident, "none of its fields becomes a tensor or a column"));
    }
    let layout = parts.iter().flat_map(|part| &part.fields);
    let writes = parts.iter().map(|part: &Part| &part.write);
    let outs = || parts.iter().flat_map(|part| &part.outs);
    let members = outs().map(|out| {
        let (docs, vis, name, ty) = (&out.docs, &out.vis, &out.name, &out.ty);
        quote!(#(#docs)* #vis #name: #ty)
    });
    let taken = outs().map(|out| {
        let (name, take) = (&out.name, &out.take);
        quote!(#name: #take)
    });
    let mapped = outs().map(|out| {
        let name = &out.name;
        match out.is_mapped {
            true => quote!(#name: ::burn_pinned::MapTensors::map_tensors(self.#name, mapper)),
            false => quote!(#name: self.#name),
        }
    });
    let about = format!("A batch of [`{ident}`]: of each field the values of all samples, in the order of the rows.");
    Ok(quote! {
        #[doc = #about]
        #[derive(Clone, Debug)]
        #vis struct #batch { #(#members),* }

        #[automatically_derived]
        impl ::burn_pinned::MapTensors for #batch {
            fn map_tensors<Mapper: ::burn_pinned::TensorMapper>(self, mapper: &mut Mapper) -> Self {
                let _ = &mapper;
                Self { #(#mapped),* }
            }
        }

        #[automatically_derived]
        impl ::burn_pinned::Sample for #ident {
            type Batch = #batch;

            fn fields() -> ::std::vec::Vec<::burn_pinned::Field> {
                ::std::vec![#(#layout),*]
            }

            #[inline]
            fn write(
                &self,
                row: &mut ::burn_pinned::RowMut<'_>,
            ) -> ::std::result::Result<(), ::burn_pinned::BoxError> {
                #(#writes)*
                ::std::result::Result::Ok(())
            }

            fn finish(
                batch: &mut ::burn_pinned::RawBatch,
            ) -> ::std::result::Result<#batch, ::burn_pinned::BoxError> {
                ::std::result::Result::Ok(#batch { #(#taken),* })
            }
        }
    })
}

/// `#[sample(batch = Name)]`, or the sample's name with `Batch` behind it.
fn batch_name(input: &DeriveInput) -> Result<Ident> {
    let mut name = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("sample")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("batch") {
                return Err(meta.error("a struct has the option `batch = Name`; all others are for its fields"));
            }
            name = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    Ok(name.unwrap_or_else(|| format_ident!("{}Batch", input.ident)))
}
