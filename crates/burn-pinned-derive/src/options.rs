//! The options of a field: what stands in `#[sample(..)]`.

use crate::types::{Kind, kind};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, Expr, Ident, Path, Result, Token, bracketed, meta::ParseNestedMeta, parse::ParseStream,
    punctuated::Punctuated,
};

/// A dtype that a tensor has on the device.
pub(crate) struct Dtype {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// How long rows are.
pub(crate) enum Size {
    /// All rows have this shape.
    Shape(Vec<Expr>),
    /// Rows vary up to this shape, and are padded.
    Padded(Vec<Expr>),
    /// Rows vary up to this shape, and lie end to end.
    Jagged(Vec<Expr>),
}

impl Size {
    pub(crate) fn dims(&self) -> &[Expr] {
        let (Self::Shape(dims) | Self::Padded(dims) | Self::Jagged(dims)) = self;
        dims
    }

    /// The rank of the batch's tensor. Rows that lie end to end have no dimension of their own.
    pub(crate) fn rank(&self) -> usize {
        self.dims().len() + usize::from(!matches!(self, Self::Jagged(_)))
    }
}

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) size: Option<Size>,
    pub(crate) fill: Option<Expr>,
    pub(crate) mask: bool,
    pub(crate) dtype: Option<Dtype>,
    pub(crate) mean: Option<Expr>,
    pub(crate) std: Option<Expr>,
    pub(crate) format: Option<Ident>,
    pub(crate) skip: bool,
    pub(crate) column: bool,
    pub(crate) with: Option<Path>,
    /// All that are given, for errors.
    given: Vec<(String, Span)>,
}

const KNOWN: &str =
    "`shape`, `padded`, `jagged`, `fill`, `mask`, `dtype`, `mean`, `std`, `format`, `column`, `skip` and `with`";

impl Options {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("sample")) {
            attribute.parse_nested_meta(|meta| options.add(&meta))?;
        }
        Ok(options)
    }

    fn add(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let name = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
        let span = meta.path.get_ident().map_or_else(Span::call_site, Ident::span);
        if self.given.iter().any(|(other, _)| *other == name) {
            return Err(meta.error(format!("`{name}` is given twice")));
        }
        match name.as_str() {
            "shape" | "padded" | "jagged" => {
                let dims = numbers(meta.value()?)?;
                if self.size.is_some() {
                    return Err(meta.error("give one of `shape`, `padded` and `jagged`"));
                }
                self.size = Some(match name.as_str() {
                    "shape" => Size::Shape(dims),
                    "padded" => Size::Padded(dims),
                    _ => Size::Jagged(dims),
                });
            }
            "fill" => self.fill = Some(meta.value()?.parse()?),
            "mask" => self.mask = true,
            "dtype" => self.dtype = Some(dtype(meta.value()?)?),
            "mean" => self.mean = Some(meta.value()?.parse()?),
            "std" => self.std = Some(meta.value()?.parse()?),
            "format" => self.format = Some(meta.value()?.parse()?),
            "skip" => self.skip = true,
            "column" => self.column = true,
            "with" => self.with = Some(meta.value()?.parse()?),
            _ => return Err(meta.error(format!("no option of a field has this name; there are {KNOWN}"))),
        }
        self.given.push((name, span));
        Ok(())
    }

    /// Refuses all options but these.
    pub(crate) fn only(&self, allowed: &[&str], what: &str) -> Result<()> {
        match self.given.iter().find(|(name, _)| !allowed.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, span)) => Err(Error::new(*span, format!("{what} has no `{name}`"))),
        }
    }

    /// The mean and the deviation, of which none or both are given.
    pub(crate) fn normal(&self) -> Result<Option<(&Expr, &Expr)>> {
        match (&self.mean, &self.std) {
            (Some(mean), Some(std)) => Ok(Some((mean, std))),
            (None, None) => Ok(None),
            (Some(one), None) | (None, Some(one)) => {
                Err(Error::new_spanned(one, "give `mean` and `std` together: values become (value - mean) / std"))
            }
        }
    }
}

/// The numbers in brackets.
fn numbers(input: ParseStream<'_>) -> Result<Vec<Expr>> {
    let inner;
    if !input.peek(syn::token::Bracket) {
        return Err(input.error("give a shape in brackets, such as `[3, 32, 32]`"));
    }
    bracketed!(inner in input);
    let dims = Punctuated::<Expr, Token![,]>::parse_terminated(&inner)?;
    match dims.is_empty() {
        true => Err(inner.error("give at least one length")),
        false => Ok(dims.into_iter().collect()),
    }
}

fn dtype(input: ParseStream<'_>) -> Result<Dtype> {
    let ident: Ident = input.parse()?;
    let name = ident.to_string();
    match kind(&name) {
        Some(kind) if kind != Kind::Bool => Ok(Dtype { name, kind }),
        _ => {
            Err(Error::new_spanned(ident, "no tensor of numbers has this dtype: give `f16`, `bf16`, `f32`, `i64`, .."))
        }
    }
}

/// The value that a tensor is cast to.
pub(crate) fn dtype_of(name: &str) -> TokenStream {
    let variant = format_ident!("{}", name.to_uppercase());
    match kind(name) {
        Some(Kind::Float) => quote!(::burn_pinned::derived::FloatDType::#variant),
        _ => quote!(::burn_pinned::derived::IntDType::#variant),
    }
}

/// Numbers by channel, also where one number is given for all.
pub(crate) fn numbers_of(numbers: &Expr) -> TokenStream {
    match numbers {
        Expr::Lit(_) | Expr::Unary(_) => quote!(&[#numbers]),
        _ => quote!(&#numbers),
    }
}
