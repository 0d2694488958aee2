//! What a type is, by its name. A derive sees names alone, so aliases are unknown types.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{
    Data, DeriveInput, Error, Expr, Fields, FieldsNamed, GenericArgument, Ident, PathArguments, Result, Type,
    parse_quote,
};

/// The kind of a tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Float,
    Bool,
}

impl ToTokens for Kind {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(match self {
            Self::Int => quote!(::burn_pinned::derived::Int),
            Self::Float => quote!(::burn_pinned::derived::Float),
            Self::Bool => quote!(::burn_pinned::derived::Bool),
        });
    }
}

const INTS: [&str; 8] = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"];
const FLOATS: [&str; 4] = ["f16", "bf16", "f32", "f64"];

/// The kind of the numbers of this type, if it is a dtype.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    match name {
        "bool" => Some(Kind::Bool),
        name if INTS.contains(&name) => Some(Kind::Int),
        name if FLOATS.contains(&name) => Some(Kind::Float),
        _ => None,
    }
}

/// A number or a truth value.
pub(crate) struct Number {
    pub(crate) ty: Type,
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

impl Number {
    /// The number of a name that is one of a dtype.
    pub(crate) fn named(name: &str) -> Self {
        let ident = format_ident!("{name}");
        // The halves have no names without a path.
        let ty =
            if name.ends_with("f16") { parse_quote!(::burn_pinned::derived::#ident) } else { parse_quote!(#ident) };
        Self { ty, name: name.into(), kind: kind(name).unwrap_or(Kind::Int) }
    }
}

/// What a field holds.
pub(crate) enum Value {
    Number(Number),
    /// `usize` or `isize`, which no dtype has.
    Size,
    /// Numbers of an array of any depth, and its lengths from the outermost.
    Array(Number, Vec<Expr>),
    /// Any number of numbers, or of arrays of this depth.
    List(Number, usize),
    Image,
    Mask,
    Boxes,
    Points,
    Text,
    Maybe(Box<Value>),
    Unknown,
}

impl Value {
    pub(crate) fn of(ty: &Type) -> Self {
        match ty {
            Type::Array(_) => {
                let (mut inner, mut lengths) = (ty, Vec::new());
                while let Type::Array(array) = inner {
                    lengths.push(array.len.clone());
                    inner = &*array.elem;
                }
                number(inner).map_or(Self::Unknown, |number| Self::Array(number, lengths))
            }
            Type::Group(group) => Self::of(&group.elem),
            Type::Paren(paren) => Self::of(&paren.elem),
            _ => Self::named(ty),
        }
    }

    /// Whether it is a text, which may be lacking.
    pub(crate) fn is_text(&self) -> bool {
        match self {
            Self::Maybe(inner) => inner.is_text(),
            value => matches!(value, Self::Text),
        }
    }

    fn named(ty: &Type) -> Self {
        let Some((name, inner)) = last(ty) else { return Self::Unknown };
        match (name.to_string().as_str(), inner) {
            ("usize" | "isize", None) => Self::Size,
            ("Image", None) => Self::Image,
            ("Mask", None) => Self::Mask,
            ("Boxes", None) => Self::Boxes,
            ("Points", None) => Self::Points,
            ("String", None) => Self::Text,
            ("Option", Some(inner)) => Self::Maybe(Box::new(Self::of(inner))),
            ("Vec", Some(inner)) => list(inner),
            ("Box" | "Arc" | "Rc", Some(Type::Slice(slice))) => list(&slice.elem),
            _ => number(ty).map_or(Self::Unknown, Self::Number),
        }
    }
}

fn list(item: &Type) -> Value {
    match Value::of(item) {
        Value::Number(number) => Value::List(number, 0),
        Value::Array(number, lengths) => Value::List(number, lengths.len()),
        _ => Value::Unknown,
    }
}

/// The last name of a path, and its first parameter.
fn last(ty: &Type) -> Option<(&Ident, Option<&Type>)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let inner = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        }),
        _ => None,
    };
    Some((&last.ident, inner))
}

fn number(ty: &Type) -> Option<Number> {
    let (name, None) = last(ty)? else { return None };
    let name = name.to_string();
    Some(Number { ty: ty.clone(), kind: kind(&name)?, name })
}

/// Whether the last name of a type is one of these.
pub(crate) fn is_named(ty: &Type, names: &[&str]) -> bool {
    last(ty).is_some_and(|(name, _)| names.iter().any(|other| name == other))
}

/// The fields of a struct that has names for them.
pub(crate) fn named<'a>(input: &'a DeriveInput, derive: &str) -> Result<&'a FieldsNamed> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields),
            _ => Err(Error::new_spanned(
                &input.ident,
                format!("`{derive}` is derived for a struct whose fields have names"),
            )),
        },
        _ => Err(Error::new_spanned(&input.ident, format!("`{derive}` is derived for a struct"))),
    }
}
