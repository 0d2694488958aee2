//! `#[derive(MapTensors)]`: visits the tensors of each field, in order.

use crate::{
    options::Options,
    types::{mentions, with_crate},
};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Data, DeriveInput, Error, Fields, Index, Member, Result, Type, parse_quote, spanned::Spanned};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let path = Options::of(&input.attrs, "map_tensors", &[], &["crate"])?.path()?;
    let (mut types, ident) = (Vec::new(), &input.ident);
    let arms: Vec<TokenStream> = match &input.data {
        Data::Struct(data) => vec![arm(quote!(Self), &data.fields, &mut types)?],
        Data::Enum(data) => {
            let arm = |variant: &syn::Variant| {
                let name = &variant.ident;
                arm(quote!(Self::#name), &variant.fields, &mut types)
            };
            data.variants.iter().map(arm).collect::<Result<_>>()?
        }
        Data::Union(data) => {
            return Err(Error::new_spanned(data.union_token, "`MapTensors` is derived for a struct or an enum"));
        }
    };
    let mut generics = input.generics.clone();
    let parameters: Vec<String> = input.generics.type_params().map(|parameter| parameter.ident.to_string()).collect();
    if !parameters.is_empty() {
        let bounds = types.iter().filter(|ty| mentions(ty, &parameters));
        generics
            .make_where_clause()
            .predicates
            .extend(bounds.map(|ty| -> syn::WherePredicate { parse_quote!(#ty: __burn_pinned::MapTensors) }));
    }
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let code = quote! {
        #[automatically_derived]
        impl #parameters __burn_pinned::MapTensors for #ident #arguments #bounds {
            fn map_tensors<__Mapper: __burn_pinned::TensorMapper>(self, mapper: &mut __Mapper) -> Self {
                let _ = &mapper;
                match self { #(#arms),* }
            }
        }
    };
    Ok(with_crate(code, path.as_ref()))
}

/// Destructures a value of this form, and rebuilds it.
fn arm(form: TokenStream, fields: &Fields, types: &mut Vec<Type>) -> Result<TokenStream> {
    let (mut taken, mut made) = (Vec::new(), Vec::new());
    for (at, field) in fields.iter().enumerate() {
        let member = field.ident.clone().map_or_else(|| Member::Unnamed(Index::from(at)), Member::Named);
        let (value, ty) = (format_ident!("field_{at}"), &field.ty);
        taken.push(quote!(#member: #value));
        if Options::of(&field.attrs, "map_tensors", &["skip"], &[])?.has("skip") {
            made.push(quote!(#member: #value));
        } else {
            types.push(ty.clone());
            // Errors point at the type. `mapper` is the method's, even if the type comes from a `macro_rules!` macro.
            let span = Span::call_site().located_at(ty.span());
            made.push(quote_spanned!(span=> #member: __burn_pinned::MapTensors::map_tensors(#value, mapper)));
        }
    }
    Ok(quote!(#form { #(#taken),* } => #form { #(#made),* }))
}
