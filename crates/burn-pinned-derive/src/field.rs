//! What becomes of one field of a sample.

use crate::{
    options::{Dtype, Options, Size, channels},
    types::{Kind, Number, Value},
};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Error, Expr, Field, Ident, Result, Type, Visibility, parse_quote, spanned::Spanned};

/// A field of the sample: its fields in the layout, how it is written, and what the batch has of it.
pub(crate) struct Part {
    pub(crate) fields: Vec<TokenStream>,
    pub(crate) write: TokenStream,
    pub(crate) outs: Vec<Out>,
}

/// A field of the batch.
pub(crate) struct Out {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) name: Ident,
    pub(crate) ty: TokenStream,
    pub(crate) take: TokenStream,
    /// Whether it may have tensors.
    pub(crate) is_mapped: bool,
}

/// What is known of a field while its part is made.
struct Made<'a> {
    field: &'a Field,
    ident: &'a Ident,
    options: &'a Options,
}

/// The part of a field; `None` if it is skipped.
pub(crate) fn part(field: &Field, options: &Options) -> Result<Option<Part>> {
    let Some(ident) = &field.ident else { return Ok(None) };
    let made = Made { field, ident, options };
    if options.skip {
        return options.only(&["skip"], "a field that is skipped").map(|()| None);
    }
    if let Some(path) = &options.with {
        options.only(&["with"], "a field `with` a module of its own")?;
        return Ok(Some(made.with(path)));
    }
    let value = Value::of(&field.ty);
    if options.column
        || matches!(value, Value::Text)
        || matches!(&value, Value::Maybe(inner) if matches!(**inner, Value::Text))
    {
        options.only(&["column"], "a column")?;
        return Ok(Some(made.column()));
    }
    made.tensor(value).map(Some)
}

impl Made<'_> {
    /// The name in the layout.
    fn name(&self) -> String {
        self.ident.to_string().trim_start_matches("r#").to_string()
    }

    fn out(&self, ty: TokenStream, take: TokenStream) -> Out {
        let docs = self.field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned();
        let mut docs: Vec<Attribute> = docs.collect();
        if docs.is_empty() {
            let text = format!("The field `{}` of the samples.", self.name());
            docs.push(parse_quote!(#[doc = #text]));
        }
        Out { docs, vis: self.field.vis.clone(), name: self.ident.clone(), ty, take, is_mapped: true }
    }

    /// A tensor that the loader adds to the field.
    fn companion(&self, suffix: &str, doc: &str, ty: TokenStream, take: impl Fn(&str) -> TokenStream) -> Out {
        let (name, doc) = (format!("{}_{suffix}", self.name()), format!("{doc} of the field `{}`.", self.name()));
        let ident = format_ident!("{name}", span = self.ident.span());
        Out { docs: vec![parse_quote!(#[doc = #doc])], name: ident, ..self.out(ty, take(&name)) }
    }

    fn mask(&self, rank: usize) -> Out {
        let ty = tensor(rank, Kind::Bool);
        self.companion("mask", "True for values, false for padding", ty, |name| take(name, rank, Kind::Bool))
    }

    fn with(&self, path: &syn::Path) -> Part {
        let (name, ident) = (self.name(), self.ident);
        Part {
            fields: vec![quote!(#path::field(#name))],
            write: quote!(#path::write(&self.#ident, #name, row)?;),
            outs: vec![self.out(quote!(#path::Batch), quote!(#path::finish(batch, #name)?))],
        }
    }

    fn column(&self) -> Part {
        let (name, ident, ty) = (self.name(), self.ident, &self.field.ty);
        let span = ty.span();
        let out = self.out(quote!(::std::vec::Vec<#ty>), quote_spanned!(span=> batch.column::<#ty>(#name)?));
        Part {
            fields: vec![quote_spanned!(span=> ::burn_pinned::Field::column::<#ty>(#name))],
            write: quote_spanned!(span=> row.put_column(#name, ::std::clone::Clone::clone(&self.#ident))?;),
            outs: vec![Out { is_mapped: false, ..out }],
        }
    }

    fn tensor(&self, value: Value) -> Result<Part> {
        let (name, ident, options) = (self.name(), self.ident, self.options);
        let of_number = ["dtype", "mean", "std"];
        match value {
            Value::Number(number) => {
                options.only(&of_number, "a single number")?;
                let write = quote_spanned!(self.span()=> row.put(#name, self.#ident)?;);
                self.fixed(&number, &[], write)
            }
            Value::Size => {
                options.only(&of_number, "a single number")?;
                let number = of_name("i64", Kind::Int);
                let value = quote_spanned!(self.span()=> <i64 as ::std::convert::TryFrom<_>>::try_from(self.#ident)?);
                self.fixed(&number, &[], quote!(row.put(#name, #value)?;))
            }
            Value::Array(number, lengths) => {
                options.only(&of_number, "an array, whose type says its shape,")?;
                let values = flat(quote!(self.#ident), lengths.len() - 1);
                self.fixed(&number, &lengths, quote_spanned!(self.span()=> row.write(#name, #values)?;))
            }
            Value::Maybe(inner) => self.maybe(*inner),
            Value::List(number, depth) => {
                let values = match depth {
                    0 => quote!(&self.#ident[..]),
                    depth => flat(quote!(self.#ident), depth),
                };
                self.list(&number, values)
            }
            Value::Points => self.list(&of_name("f32", Kind::Float), quote!(self.#ident.xy().as_flattened())),
            Value::Image => self.image(),
            Value::Mask => self.numbers_mask(),
            Value::Boxes => self.boxes(),
            Value::Text | Value::Unknown => Err(self.wrong(
                "no tensor is made of this type: say what becomes of it by `#[sample(column)]`, `#[sample(skip)]` or \
                 `#[sample(with = module)]`",
            )),
        }
    }

    /// Rows of one shape.
    fn fixed(&self, number: &Number, lengths: &[Expr], write: TokenStream) -> Result<Part> {
        let (name, ty) = (self.name(), &number.ty);
        let field = quote!(::burn_pinned::Field::new(#name, <#ty as ::burn_pinned::derived::Element>::dtype(), [#(#lengths),*]));
        Ok(Part { fields: vec![field], write, outs: vec![self.taken(number, lengths.len() + 1)?] })
    }

    /// A number or an array that may be lacking: another one stands in its place.
    fn maybe(&self, inner: Value) -> Result<Part> {
        let (name, ident, options) = (self.name(), self.ident, self.options);
        options.only(&["fill", "mask", "dtype", "mean", "std"], "an `Option` of numbers")?;
        let (number, lengths) = match inner {
            Value::Number(number) => (number, Vec::new()),
            Value::Array(number, lengths) => (number, lengths),
            _ => {
                return Err(
                    self.wrong("an `Option` is of a number, an array or a `String`, or it is a `#[sample(column)]`")
                );
            }
        };
        let Some(fill) = &options.fill else {
            return Err(self.wrong("an `Option` needs the value that stands for `None`: `#[sample(fill = ..)]`"));
        };
        let ty = &number.ty;
        let fill = lengths
            .iter()
            .rev()
            .fold(quote!({ const FILL: #ty = #fill; FILL }), |fill, length| quote!([#fill; #length]));
        let value = quote!(self.#ident.as_ref().unwrap_or(&#fill));
        let write = match lengths.len() {
            0 => quote_spanned!(self.span()=> row.put(#name, *#value)?;),
            1 => quote_spanned!(self.span()=> row.write(#name, #value)?;),
            depth => {
                let values = flat(value, depth - 1);
                quote_spanned!(self.span()=> row.write(#name, #values)?;)
            }
        };
        let mut part = self.fixed(&number, &lengths, write)?;
        if options.mask {
            let mask = format!("{name}_mask");
            part.fields.push(quote!(::burn_pinned::Field::new(
                #mask,
                <bool as ::burn_pinned::derived::Element>::dtype(),
                [],
            )));
            part.write.extend(quote!(row.put(#mask, self.#ident.is_some())?;));
            part.outs.push(self.mask(1));
        }
        Ok(part)
    }

    /// Any number of values, as `padded`, `jagged` or `shape` says.
    fn list(&self, number: &Number, values: TokenStream) -> Result<Part> {
        let (name, ty) = (self.name(), &number.ty);
        let write = quote_spanned!(self.span()=> row.write(#name, #values)?;);
        let of_all = ["dtype", "mean", "std"];
        match &self.options.size {
            None => Err(self.wrong(
                "its length is not known: give `shape = [..]` if all have it, or the longest by `padded = [..]` or \
                 `jagged = [..]`",
            )),
            Some(Size::Shape(lengths)) => {
                self.options.only(&[&of_all[..], &["shape"]].concat(), "a field whose rows have one `shape`")?;
                self.fixed(number, lengths, write)
            }
            Some(Size::Padded(lengths)) => {
                self.options.only(&[&of_all[..], &["padded", "fill", "mask"]].concat(), "a padded field")?;
                let fill = self.fill(ty);
                let field = quote!(::burn_pinned::Field::padded::<#ty>(#name, [#(#lengths),*], #fill));
                self.padded(field, write, self.taken(number, lengths.len() + 1)?, 2)
            }
            Some(Size::Jagged(lengths)) => {
                self.options.only(&[&of_all[..], &["jagged"]].concat(), "a jagged field")?;
                let field = quote!(::burn_pinned::Field::jagged::<#ty>(#name, [#(#lengths),*]));
                Ok(Part { fields: vec![field], write, outs: vec![self.taken(number, lengths.len())?, self.offsets()] })
            }
        }
    }

    fn padded(&self, field: TokenStream, write: TokenStream, out: Out, mask_rank: usize) -> Result<Part> {
        let mut part = Part { fields: vec![field], write, outs: vec![out] };
        if self.options.mask {
            let field = &part.fields[0];
            part.fields = vec![quote!(#field.with_mask())];
            part.outs.push(self.mask(mask_rank));
        }
        Ok(part)
    }

    fn offsets(&self) -> Out {
        let take = |name: &str| quote!(batch.take_int::<1>(#name)?);
        self.companion("offsets", "Where each row begins, and where the last one ends,", tensor(1, Kind::Int), take)
    }

    fn image(&self) -> Result<Part> {
        let (name, ident, options) = (self.name(), self.ident, self.options);
        options.only(&["shape", "padded", "mask", "dtype", "mean", "std"], "an image")?;
        let (lengths, any_size) = match &options.size {
            Some(Size::Shape(lengths)) => (lengths, false),
            Some(Size::Padded(lengths)) => (lengths, true),
            _ => {
                return Err(self
                    .wrong("an image needs `shape = [3, height, width]`, or `padded = [..]` for images of any size"));
            }
        };
        let mut field = quote!(::burn_pinned::Field::image(#name, [#(#lengths),*]));
        let normal = options.normal()?;
        let default = normal.map(|_| Dtype { name: "f32".into(), kind: Kind::Float });
        let dtype = options.dtype.as_ref().or(default.as_ref());
        if let Some(dtype) = dtype {
            let variant = dtype.variant();
            field.extend(quote!(.with_dtype(::burn_pinned::derived::DType::#variant)));
        }
        if let Some((mean, std)) = normal {
            field.extend(quote!(.normalize(#mean, #std)));
        }
        if any_size {
            field.extend(quote!(.any_size()));
        } else if options.mask {
            return Err(self.wrong("images of one `shape` have no padding to mask"));
        }
        let kind = dtype.map_or(Kind::Int, |dtype| dtype.kind);
        let out = self.out(tensor(4, kind), take(&name, 4, kind));
        self.padded(field, quote_spanned!(self.span()=> row.image(#name, &self.#ident)?;), out, 3)
    }

    fn numbers_mask(&self) -> Result<Part> {
        let (name, ident, options) = (self.name(), self.ident, self.options);
        options.only(&["shape", "padded", "fill", "mask", "dtype"], "a mask")?;
        let dtype = options.dtype.as_ref();
        let number = dtype.map_or_else(|| of_name("u8", Kind::Int), |dtype| of_name(&dtype.name, dtype.kind));
        let (ty, kind) = (&number.ty, number.kind);
        let write = quote_spanned!(self.span()=> row.mask(#name, &self.#ident)?;);
        let out = |lengths: &[Expr]| {
            let rank = lengths.len() + 1;
            // Numbers of classes have the dtype that losses and metrics take, unless another is asked for.
            let take = if dtype.is_some() { take(&name, rank, kind) } else { quote!(batch.take_int::<#rank>(#name)?) };
            self.out(tensor(rank, kind), take)
        };
        match &options.size {
            Some(Size::Padded(lengths)) => {
                let fill = self.fill(ty);
                let field = quote!(::burn_pinned::Field::padded_2d::<#ty>(#name, [#(#lengths),*], #fill));
                self.padded(field, write, out(lengths), 3)
            }
            Some(Size::Shape(lengths)) if !options.mask && options.fill.is_none() => {
                let dtype = quote!(<#ty as ::burn_pinned::derived::Element>::dtype());
                let field = quote!(::burn_pinned::Field::new(#name, #dtype, [#(#lengths),*]));
                Ok(Part { fields: vec![field], write, outs: vec![out(lengths)] })
            }
            _ => Err(self
                .wrong("a mask needs `shape = [height, width]`, or `padded = [..]`, which may have `fill` and `mask`")),
        }
    }

    fn boxes(&self) -> Result<Part> {
        let (name, ident, options) = (self.name(), self.ident, self.options);
        options.only(&["padded", "jagged", "mask", "format"], "a field of boxes")?;
        let labels = format!("{name}_labels");
        let (of_boxes, of_labels, rank) = match &options.size {
            Some(Size::Padded(most)) if most.len() == 1 => {
                let most = &most[0];
                (
                    quote!(::burn_pinned::Field::padded::<f32>(#name, [#most, 4], 0.0)),
                    quote!(::burn_pinned::Field::padded::<i32>(#labels, [#most], -1)),
                    3,
                )
            }
            Some(Size::Jagged(most)) if most.len() == 1 && !options.mask => {
                let most = &most[0];
                (
                    quote!(::burn_pinned::Field::jagged::<f32>(#name, [#most, 4])),
                    quote!(::burn_pinned::Field::jagged::<i32>(#labels, [#most])),
                    2,
                )
            }
            _ => {
                return Err(self.wrong(
                    "boxes need the most that a sample has: `padded = [100]`, or `jagged = [100]` without a mask",
                ));
            }
        };
        let values = match &options.format {
            None => quote!(self.#ident.xyxy().as_flattened()),
            Some(format) => quote!(&self.#ident.values(::burn_pinned::derived::BoxFormat::#format)),
        };
        let write = quote_spanned!(self.span()=>
            row.write(#name, #values)?;
            row.write(#labels, self.#ident.labels())?;
        );
        let out = self.out(tensor(rank, Kind::Float), take(&name, rank, Kind::Float));
        let mut part = self.padded(of_boxes, write, out, 2)?;
        part.fields.push(of_labels);
        let rank = rank - 1;
        let take = |name: &str| quote!(batch.take_int::<#rank>(#name)?);
        part.outs.push(self.companion("labels", "The labels", tensor(rank, Kind::Int), take));
        if matches!(options.size, Some(Size::Jagged(_))) {
            part.outs.push(self.offsets());
        }
        Ok(part)
    }

    /// How the tensor of a field is taken, and what is made of it on the device.
    fn taken(&self, number: &Number, rank: usize) -> Result<Out> {
        let (name, kind) = (self.name(), number.kind);
        let plain = take(&name, rank, kind);
        let float = |dtype: &str| {
            let dtype = Dtype { name: dtype.into(), kind: Kind::Float }.of_kind();
            quote!(.cast(#dtype))
        };
        let dtype = self.options.dtype.as_ref();
        if let Some((mean, std)) = self.options.normal()? {
            if kind == Kind::Bool || dtype.is_some_and(|dtype| dtype.kind != Kind::Float) {
                return Err(Error::new_spanned(
                    mean,
                    "numbers are normalized, to floats: `dtype` is `f16`, `bf16`, `f32` or `f64`",
                ));
            }
            let to_f32 = if number.name == "f32" { quote!() } else { float("f32") };
            let (mean, std, scale) = (channels(mean), channels(std), number.name == "u8");
            let normal = quote!(::burn_pinned::derived::normalize(#plain #to_f32, #mean, #std, #scale)?);
            let cast = dtype.filter(|dtype| dtype.name != "f32").map(|dtype| float(&dtype.name));
            return Ok(self.out(tensor(rank, Kind::Float), quote!(#normal #cast)));
        }
        Ok(match dtype {
            None if kind == Kind::Int => self.out(tensor(rank, kind), quote!(batch.take_int::<#rank>(#name)?)),
            None => self.out(tensor(rank, kind), plain),
            Some(dtype) if dtype.name == number.name => self.out(tensor(rank, kind), plain),
            Some(dtype) => {
                let cast = dtype.of_kind();
                self.out(tensor(rank, dtype.kind), quote!(#plain.cast(#cast)))
            }
        })
    }

    fn fill(&self, ty: &Type) -> TokenStream {
        match &self.options.fill {
            Some(fill) => quote!({ const FILL: #ty = #fill; FILL }),
            None => quote!(<#ty as ::std::default::Default>::default()),
        }
    }

    fn span(&self) -> proc_macro2::Span {
        self.field.ty.span()
    }

    fn wrong(&self, message: &str) -> Error {
        Error::new_spanned(&self.field.ty, message)
    }
}

fn of_name(name: &str, kind: Kind) -> Number {
    let ident = format_ident!("{name}");
    // The halves have no names without a path.
    let ty = if name.ends_with("f16") { parse_quote!(::burn_pinned::derived::#ident) } else { parse_quote!(#ident) };
    Number { ty, name: name.into(), kind }
}

fn tensor(rank: usize, kind: Kind) -> TokenStream {
    quote!(::burn_pinned::derived::Tensor<#rank, #kind>)
}

fn take(name: &str, rank: usize, kind: Kind) -> TokenStream {
    quote!(batch.take::<#rank, #kind>(#name)?)
}

/// A slice of all numbers of nested arrays.
fn flat(values: TokenStream, depth: usize) -> TokenStream {
    match depth {
        0 => quote!(&#values),
        depth => std::iter::repeat_n(quote!(.as_flattened()), depth).fold(values, |all, flat| quote!(#all #flat)),
    }
}
