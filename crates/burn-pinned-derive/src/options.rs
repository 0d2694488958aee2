//! The contents of attributes: options, each `name` or `name = value`, and lint levels.

use crate::types::{Kind, Number};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Attribute, Error, Expr, ExprGroup, ExprLit, ExprParen, ExprPath, Ident, Lit, Meta, Path, Result, parse::Parse,
    parse_quote, parse2,
};

/// How long rows are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// All rows have the shape.
    Shape,
    /// Rows vary up to the shape, and are padded.
    Padded,
    /// Rows vary up to the shape, and lie end to end.
    Jagged,
}

/// The shape of a row, or of the largest one.
pub(crate) struct Size {
    pub(crate) form: Form,
    pub(crate) dims: Vec<Expr>,
}

impl Size {
    /// The rank of the batch's tensor. Rows that lie end to end have no dimension of their own.
    pub(crate) fn rank(&self) -> usize {
        self.dims.len() + usize::from(self.form != Form::Jagged)
    }
}

/// The options of one field or type, in order.
pub(crate) struct Options(Vec<(Ident, Option<Expr>)>);

impl Options {
    /// Reads the attributes with this name. Options in `flags` have no value, and those in `values` have one.
    pub(crate) fn of(attributes: &[Attribute], name: &str, flags: &[&str], values: &[&str]) -> Result<Self> {
        let mut options = Self(Vec::new());
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
            attribute.parse_nested_meta(|meta| {
                let option = meta.path.require_ident()?;
                let is_one_of = |names: &[&str]| names.iter().any(|name| option == name);
                if options.has(&option.to_string()) {
                    return Err(meta.error(format!("`{option}` is given twice")));
                }
                if !is_one_of(&[flags, values].concat()) {
                    let known = [flags, values].concat().join("`, `");
                    return Err(meta.error(format!("no option here has this name; there is `{known}`")));
                }
                let value = if is_one_of(values) { Some(bare(meta.value()?.parse()?)) } else { None };
                options.0.push((option.clone(), value));
                Ok(())
            })?;
        }
        Ok(options)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(option, _)| option == name)
    }

    /// The value of an option.
    pub(crate) fn get(&self, name: &str) -> Option<&Expr> {
        self.0.iter().find(|(option, _)| option == name)?.1.as_ref()
    }

    /// The value of an option, which must be a `T`.
    pub(crate) fn parsed<T: Parse>(&self, name: &str) -> Result<Option<T>> {
        self.get(name).map(|value| parse2(value.to_token_stream())).transpose()
    }

    /// The path of the crate burn-pinned, if it has another name.
    pub(crate) fn path(&self) -> Result<Option<Path>> {
        match self.get("crate") {
            None => Ok(None),
            Some(Expr::Lit(ExprLit { lit: Lit::Str(path), .. })) => path.parse_with(Path::parse_mod_style).map(Some),
            Some(Expr::Path(ExprPath { path, .. })) => Ok(Some(path.clone())),
            Some(other) => Err(Error::new_spanned(other, "give the path of burn-pinned, such as `crate = \"loader\"`")),
        }
    }

    /// Refuses all options but these.
    pub(crate) fn only(&self, allowed: &[&str], what: &str) -> Result<()> {
        match self.0.iter().find(|(option, _)| allowed.iter().all(|name| option != name)) {
            None => Ok(()),
            Some((option, _)) => Err(Error::new_spanned(option, format!("{what} has no `{option}`"))),
        }
    }

    /// The size of the rows, if an option gives it.
    pub(crate) fn size(&self) -> Result<Option<Size>> {
        let forms = [("shape", Form::Shape), ("padded", Form::Padded), ("jagged", Form::Jagged)];
        let given: Vec<_> = forms.iter().filter_map(|(name, form)| Some((*form, self.get(name)?))).collect();
        match given[..] {
            [] => Ok(None),
            [(form, Expr::Array(dims))] if !dims.elems.is_empty() => {
                Ok(Some(Size { form, dims: dims.elems.iter().cloned().collect() }))
            }
            [(_, dims)] => Err(Error::new_spanned(dims, "give a shape in brackets, such as `[3, 32, 32]`")),
            [.., (_, dims)] => Err(Error::new_spanned(dims, "give one of `shape`, `padded` and `jagged`")),
        }
    }

    /// The dtype of the tensor on the device.
    pub(crate) fn dtype(&self) -> Result<Option<Number>> {
        let Some(name) = self.parsed::<Ident>("dtype")? else { return Ok(None) };
        match Number::named(&name.to_string()).filter(|number| number.kind != Kind::Bool) {
            Some(number) => Ok(Some(number)),
            None => Err(Error::new_spanned(
                name,
                "no tensor of numbers has this dtype: give `f16`, `bf16`, `f32`, `i64`, ..",
            )),
        }
    }

    /// The mean and the deviation. Either both or neither must be given.
    pub(crate) fn normal(&self) -> Result<Option<(&Expr, &Expr)>> {
        match (self.get("mean"), self.get("std")) {
            (Some(mean), Some(std)) => Ok(Some((mean, std))),
            (None, None) => Ok(None),
            (Some(one), None) | (None, Some(one)) => {
                Err(Error::new_spanned(one, "give `mean` and `std` together: values become (value - mean) / std"))
            }
        }
    }
}

/// Removes the groups that a `macro_rules!` macro puts around a value.
fn bare(value: Expr) -> Expr {
    match value {
        Expr::Group(ExprGroup { expr, .. }) => bare(*expr),
        value => value,
    }
}

/// Code for the mean or the deviation of each channel. A single number is repeated `count` times.
pub(crate) fn by_channel(numbers: &Expr, count: usize) -> TokenStream {
    if is_number(numbers) { quote!([#numbers; #count]) } else { quote!(#numbers) }
}

/// Whether a value is a number or a computation. A name does not count, because it may be an array's.
fn is_number(value: &Expr) -> bool {
    match value {
        Expr::Lit(_) | Expr::Unary(_) | Expr::Binary(_) | Expr::Cast(_) => true,
        Expr::Group(ExprGroup { expr, .. }) | Expr::Paren(ExprParen { expr, .. }) => is_number(expr),
        _ => false,
    }
}

/// The lint levels among the attributes, for generated code with the same names. `expect` becomes `allow`, because the lint may not occur
/// there.
pub(crate) fn lints(attributes: &[Attribute]) -> Vec<Attribute> {
    let levels = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("expect") => {
            let lints = &list.tokens;
            Some(parse_quote!(#[allow(#lints)]))
        }
        Meta::List(list) if ["allow", "warn", "deny", "forbid"].iter().any(|level| list.path.is_ident(level)) => {
            Some(attribute.clone())
        }
        _ => None,
    });
    levels.collect()
}
