//! Recognises types by their names. A derive sees only names, so aliases are unknown types.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use std::iter::repeat_n;
use syn::{
    Data, DataStruct, DeriveInput, Error, Expr, Fields, FieldsNamed, GenericArgument, Ident, Path, PathArguments,
    Result, Type, parse_quote,
};

/// The kind of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Float,
    Bool,
}

impl Kind {
    /// Its name in Burn.
    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }
}

impl ToTokens for Kind {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let name = format_ident!("{}", self.name());
        tokens.extend(quote!(__burn_pinned::derived::#name));
    }
}

/// A number or a bool.
pub(crate) struct Number {
    pub(crate) ty: Type,
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

impl Number {
    pub(crate) fn new(name: &str, kind: Kind) -> Self {
        let ident = format_ident!("{name}");
        // The half-precision types need a path.
        let ty =
            if name.ends_with("f16") { parse_quote!(__burn_pinned::derived::#ident) } else { parse_quote!(#ident) };
        Self { ty, name: name.into(), kind }
    }

    /// The number type with the name of a dtype.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let kind = match name {
            "bool" => Kind::Bool,
            "u8" | "u16" | "u32" | "u64" | "i8" | "i16" | "i32" | "i64" => Kind::Int,
            "f16" | "bf16" | "f32" | "f64" => Kind::Float,
            _ => return None,
        };
        Some(Self::new(name, kind))
    }
}

/// What a field holds.
pub(crate) enum Value {
    /// A number, or an array with these lengths, outermost first.
    Array(Number, Vec<Expr>),
    /// `usize` or `isize`, which no dtype has.
    Size,
    /// A list of numbers, or of arrays with these lengths, outermost first, and the code after the field's name that gets them.
    List(Number, TokenStream, Vec<Expr>),
    /// The `Array` of burn-shards: numbers with a shape.
    Shaped(Number),
    Image,
    Mask,
    Boxes,
    Text,
    Maybe(Box<Value>),
    Unknown,
}

impl Value {
    pub(crate) fn of(ty: &Type) -> Self {
        match bare(ty) {
            Type::Array(array) => match Self::of(&array.elem) {
                Self::Array(number, lengths) => Self::Array(number, [vec![array.len.clone()], lengths].concat()),
                _ => Self::Unknown,
            },
            ty => Self::named(ty),
        }
    }

    /// Whether it is a text, or an optional one.
    pub(crate) fn is_text(&self) -> bool {
        match self {
            Self::Maybe(inner) => inner.is_text(),
            value => matches!(value, Self::Text),
        }
    }

    fn named(ty: &Type) -> Self {
        let floats = || Number::new("f32", Kind::Float);
        let Some((name, inner)) = last(ty) else { return Self::Unknown };
        match (name.to_string().as_str(), inner) {
            ("usize" | "isize", None) => Self::Size,
            ("Image", None) => Self::Image,
            ("Mask", None) => Self::Mask,
            ("Boxes", None) => Self::Boxes,
            ("Points", None) => Self::List(floats(), quote!(.xy()), vec![parse_quote!(2)]),
            ("Audio", None) => Self::List(floats(), quote!(.samples()?), Vec::new()),
            ("String", None) => Self::Text,
            ("Option", Some(inner)) => Self::Maybe(Box::new(Self::of(inner))),
            ("Vec", Some(inner)) => Self::list(inner),
            ("Box" | "Arc" | "Rc", Some(Type::Slice(slice))) => Self::list(&slice.elem),
            ("Array", Some(inner)) => match Self::of(inner) {
                Self::Array(number, lengths) if lengths.is_empty() => Self::Shaped(number),
                _ => Self::Unknown,
            },
            (name, None) => Number::named(name)
                .map_or(Self::Unknown, |number| Self::Array(Number { ty: ty.clone(), ..number }, Vec::new())),
            _ => Self::Unknown,
        }
    }

    fn list(item: &Type) -> Self {
        match Self::of(item) {
            Self::Array(number, lengths) => Self::List(number, TokenStream::new(), lengths),
            _ => Self::Unknown,
        }
    }
}

/// A slice of all numbers of a value, which are in arrays nested to this depth.
pub(crate) fn slice(value: &TokenStream, depth: usize) -> TokenStream {
    let flat: TokenStream = repeat_n(quote!(.as_flattened()), depth).collect();
    if depth == 0 { quote!(&#value[..]) } else { quote!(#value #flat) }
}

/// A type without parentheses and the groups that a `macro_rules!` macro puts around it.
fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        ty => ty,
    }
}

/// Replaces the name `__burn_pinned` in code by a path of the crate burn-pinned, by default its own name.
pub(crate) fn with_crate(code: TokenStream, path: Option<&Path>) -> TokenStream {
    let placed = code.into_iter().map(|token| match token {
        TokenTree::Ident(ident) if ident == "__burn_pinned" => match path {
            Some(path) => path.to_token_stream(),
            None => quote_spanned!(ident.span()=> ::burn_pinned),
        },
        TokenTree::Group(group) => {
            let mut placed = Group::new(group.delimiter(), with_crate(group.stream(), path));
            placed.set_span(group.span());
            TokenTree::Group(placed).into()
        }
        token => token.into(),
    });
    placed.collect()
}

/// The last segment of a path, and its generic parameter, if it has one.
fn last(ty: &Type) -> Option<(&Ident, Option<&Type>)> {
    let Type::Path(path) = bare(ty) else { return None };
    let last = path.path.segments.last()?;
    match &last.arguments {
        PathArguments::None => Some((&last.ident, None)),
        PathArguments::AngleBracketed(arguments) if arguments.args.len() == 1 => match &arguments.args[0] {
            GenericArgument::Type(ty) => Some((&last.ident, Some(bare(ty)))),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the last segment of a type is one of these names.
pub(crate) fn is_named(ty: &Type, names: &[&str]) -> bool {
    last(ty).is_some_and(|(name, _)| names.iter().any(|other| name == other))
}

/// The type inside an `Option` or a `Vec`.
pub(crate) fn held(ty: &Type) -> Option<&Type> {
    last(ty).filter(|(name, _)| *name == "Option" || *name == "Vec")?.1
}

/// Whether one of these names occurs anywhere in a type.
pub(crate) fn mentions(ty: &Type, names: &[impl AsRef<str>]) -> bool {
    fn any(tokens: TokenStream, names: &[impl AsRef<str>]) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => names.iter().any(|name| ident == name.as_ref()),
            TokenTree::Group(group) => any(group.stream(), names),
            _ => false,
        })
    }
    any(ty.to_token_stream(), names)
}

/// The fields of a struct with named fields.
pub(crate) fn named<'a>(input: &'a DeriveInput, derive: &str) -> Result<&'a FieldsNamed> {
    match &input.data {
        Data::Struct(DataStruct { fields: Fields::Named(fields), .. }) => Ok(fields),
        _ => {
            let problem = format!("`{derive}` is derived for a struct whose fields have names");
            Err(Error::new_spanned(&input.ident, problem))
        }
    }
}
