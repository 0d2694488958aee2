//! What becomes of one field of a sample.

use crate::{
    options::{Options, Size, dtype_of, numbers_of},
    types::{Kind, Number, Value},
};
use proc_macro2::{Span, TokenStream};
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
    /// The name in the layout.
    name: String,
    options: &'a Options,
}

/// The options of all numbers.
const OF_NUMBERS: [&str; 3] = ["dtype", "mean", "std"];

/// The part of a field; `None` if it is skipped.
pub(crate) fn part(field: &Field, options: &Options) -> Result<Option<Part>> {
    let Some(ident) = &field.ident else { return Ok(None) };
    let made = Made { field, ident, name: ident.to_string().trim_start_matches("r#").into(), options };
    let value = Value::of(&field.ty);
    if options.skip {
        options.only(&["skip"], "a field that is skipped").map(|()| None)
    } else if let Some(path) = &options.with {
        options.only(&["with"], "a field `with` a module of its own")?;
        Ok(Some(made.with(path)))
    } else if options.column || value.is_text() {
        options.only(&["column"], "a column")?;
        Ok(Some(made.column()))
    } else {
        made.tensor(value).map(Some)
    }
}

impl Made<'_> {
    fn out(&self, ty: TokenStream, take: TokenStream) -> Out {
        let docs = self.field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned();
        let mut docs: Vec<Attribute> = docs.collect();
        if docs.is_empty() {
            let text = format!("The field `{}` of the samples.", self.name);
            docs.push(parse_quote!(#[doc = #text]));
        }
        Out { docs, vis: self.field.vis.clone(), name: self.ident.clone(), ty, take, is_mapped: true }
    }

    /// A tensor beside the one of the field.
    fn beside(&self, suffix: &str, doc: &str, rank: usize, kind: Kind) -> Out {
        let (name, doc) = (format!("{}_{suffix}", self.name), format!("{doc} of the field `{}`.", self.name));
        let ident = format_ident!("{name}", span = self.ident.span());
        Out {
            docs: vec![parse_quote!(#[doc = #doc])],
            name: ident,
            ..self.out(tensor(rank, kind), take(&name, rank, kind))
        }
    }

    fn mask(&self, rank: usize) -> Out {
        self.beside("mask", "True for values, false for padding,", rank, Kind::Bool)
    }

    fn with(&self, path: &syn::Path) -> Part {
        let Self { name, ident, .. } = self;
        Part {
            fields: vec![quote!(#path::field(#name))],
            write: quote!(#path::write(&self.#ident, #name, row)?;),
            outs: vec![self.out(quote!(#path::Batch), quote!(#path::finish(batch, #name)?))],
        }
    }

    fn column(&self) -> Part {
        let (Self { name, ident, .. }, ty, span) = (self, &self.field.ty, self.span());
        let out = self.out(quote!(::std::vec::Vec<#ty>), quote_spanned!(span=> batch.column::<#ty>(#name)?));
        Part {
            fields: vec![quote_spanned!(span=> ::burn_pinned::Field::column::<#ty>(#name))],
            write: quote_spanned!(span=> row.put_column(#name, ::std::clone::Clone::clone(&self.#ident))?;),
            outs: vec![Out { is_mapped: false, ..out }],
        }
    }

    fn tensor(&self, value: Value) -> Result<Part> {
        let (Self { name, ident, options, .. }, span) = (self, self.span());
        let write = |values: TokenStream| quote_spanned!(span=> row.write(#name, #values)?;);
        match value {
            Value::Number(number) => {
                options.only(&OF_NUMBERS, "a single number")?;
                self.rows(&number, &Size::Shape(Vec::new()), quote_spanned!(span=> row.put(#name, self.#ident)?;))
            }
            Value::Size => {
                options.only(&OF_NUMBERS, "a single number")?;
                let value = quote_spanned!(span=> <i64 as ::std::convert::TryFrom<_>>::try_from(self.#ident)?);
                self.rows(&Number::named("i64"), &Size::Shape(Vec::new()), quote!(row.put(#name, #value)?;))
            }
            Value::Array(number, lengths) => {
                options.only(&OF_NUMBERS, "an array, whose type says its shape,")?;
                let values = flat(quote!(self.#ident), lengths.len() - 1);
                self.rows(&number, &Size::Shape(lengths), write(values))
            }
            Value::Maybe(inner) => {
                match *inner {
                    Value::Number(number) => self.maybe(&number, Vec::new()),
                    Value::Array(number, lengths) => self.maybe(&number, lengths),
                    _ => Err(self
                        .wrong("an `Option` is of a number, an array or a `String`, or it is a `#[sample(column)]`")),
                }
            }
            Value::List(number, 0) => self.list(&number, write(quote!(&self.#ident[..]))),
            Value::List(number, depth) => self.list(&number, write(flat(quote!(self.#ident), depth))),
            Value::Points => self.list(&Number::named("f32"), write(quote!(self.#ident.xy().as_flattened()))),
            Value::Image => self.image(),
            Value::Mask => {
                let size = self.size(&["shape", "padded"], &["dtype"], &["fill", "mask"], "a mask")?;
                let number = Number::named(options.dtype.as_ref().map_or("u8", |dtype| &dtype.name));
                self.planes(&number, size, quote_spanned!(span=> row.mask(#name, &self.#ident)?;))
            }
            Value::Boxes => self.boxes(),
            Value::Text | Value::Unknown => Err(self.wrong(
                "no tensor is made of this type: say what becomes of it by `#[sample(column)]`, `#[sample(skip)]` or \
                 `#[sample(with = module)]`, or let it be a `Vec` of numbers that `#[serde(deserialize_with = \"..\")]` makes",
            )),
        }
    }

    /// The size of rows, which is one of `sizes`. The field has no options but these, and padded rows have more of them.
    fn size(&self, sizes: &[&str], options: &[&str], padded: &[&str], what: &str) -> Result<&Size> {
        let Some(size) = &self.options.size else {
            let needs = sizes.iter().map(|size| format!("`{size} = [..]`")).collect::<Vec<_>>().join(" or ");
            return Err(self.wrong(&format!("{what} needs its shape, or the shape of its largest row: give {needs}")));
        };
        let (padded, what) = match size {
            Size::Padded(_) => (padded, what.to_string()),
            Size::Shape(_) => (&[][..], format!("{what} of one shape")),
            Size::Jagged(_) => (&[][..], format!("{what} whose rows lie end to end")),
        };
        self.options.only(&[sizes, options, padded].concat(), &what)?;
        Ok(size)
    }

    fn list(&self, number: &Number, write: TokenStream) -> Result<Part> {
        let size = self.size(&["shape", "padded", "jagged"], &OF_NUMBERS, &["fill", "mask"], "a list of numbers")?;
        self.rows(number, size, write)
    }

    /// Rows of numbers, of one shape or varying in their first dimension.
    fn rows(&self, number: &Number, size: &Size, write: TokenStream) -> Result<Part> {
        let field = field(&self.name, number, size, self.fill(&number.ty), quote!(padded));
        self.part(field, write, size, self.taken(number, size.rank())?, 2)
    }

    /// Rows of numbers, of one shape or varying in their last two dimensions.
    fn planes(&self, number: &Number, size: &Size, write: TokenStream) -> Result<Part> {
        let field = field(&self.name, number, size, self.fill(&number.ty), quote!(padded_2d));
        self.part(field, write, size, self.taken(number, size.rank())?, 3)
    }

    /// A field, with the mask or the offsets that the loader adds.
    fn part(
        &self,
        mut field: TokenStream,
        write: TokenStream,
        size: &Size,
        out: Out,
        mask_rank: usize,
    ) -> Result<Part> {
        let mut outs = vec![out];
        match size {
            Size::Padded(_) if self.options.mask => {
                field.extend(quote!(.with_mask()));
                outs.push(self.mask(mask_rank));
            }
            Size::Jagged(_) => outs.push(self.beside("offsets", "The ends of the rows", 1, Kind::Int)),
            _ => {}
        }
        Ok(Part { fields: vec![field], write, outs })
    }

    /// A number or an array that may be lacking: another one stands in its place.
    fn maybe(&self, number: &Number, lengths: Vec<Expr>) -> Result<Part> {
        let (Self { name, ident, options, .. }, span, ty) = (self, self.span(), &number.ty);
        options.only(&[&OF_NUMBERS[..], &["fill", "mask"]].concat(), "an `Option` of numbers")?;
        let Some(fill) = &options.fill else {
            return Err(self.wrong("an `Option` needs the value that stands for `None`: `#[sample(fill = ..)]`"));
        };
        let fill = quote!({ const FILL: #ty = #fill; FILL });
        let fill = lengths.iter().rev().fold(fill, |fill, length| quote!([#fill; #length]));
        let value = quote!(self.#ident.as_ref().unwrap_or(&#fill));
        let values = match lengths.len() {
            0 => quote!(::std::slice::from_ref(#value)),
            1 => value,
            depth => flat(value, depth - 1),
        };
        let mut part = self.rows(number, &Size::Shape(lengths), quote_spanned!(span=> row.write(#name, #values)?;))?;
        if options.mask {
            let mask = format!("{name}_mask");
            part.fields.push(field(&mask, &Number::named("bool"), &Size::Shape(Vec::new()), quote!(), quote!()));
            part.write.extend(quote!(row.put(#mask, self.#ident.is_some())?;));
            part.outs.push(self.mask(1));
        }
        Ok(part)
    }

    fn image(&self) -> Result<Part> {
        let (Self { name, ident, options, .. }, span) = (self, self.span());
        let size = self.size(&["shape", "padded"], &OF_NUMBERS, &["mask"], "an image")?;
        let (dims, normal) = (size.dims(), options.normal()?);
        let dtype = options.dtype.as_ref().map(|dtype| &*dtype.name).or(normal.map(|_| "f32")).unwrap_or("u8");
        let (variant, kind) = (format_ident!("{}", dtype.to_uppercase()), Number::named(dtype).kind);
        let mut field = quote!(
            ::burn_pinned::Field::image(#name, [#(#dims),*]).with_dtype(::burn_pinned::derived::DType::#variant)
        );
        if let Some((mean, std)) = normal {
            field.extend(quote!(.normalize(#mean, #std)));
        }
        if matches!(size, Size::Padded(_)) {
            field.extend(quote!(.any_size()));
        }
        let out = self.out(tensor(4, kind), quote!(batch.take::<4, #kind>(#name)?));
        self.part(field, quote_spanned!(span=> row.image(#name, &self.#ident)?;), size, out, 3)
    }

    fn boxes(&self) -> Result<Part> {
        let (Self { name, ident, options, .. }, span) = (self, self.span());
        let size = self.size(&["padded", "jagged"], &["format"], &["mask"], "a field of boxes")?;
        let [most] = size.dims() else {
            return Err(
                self.wrong("boxes have one number for their size, the most that a sample has: `padded = [100]`")
            );
        };
        let of =
            |dims: Vec<Expr>| if matches!(size, Size::Padded(_)) { Size::Padded(dims) } else { Size::Jagged(dims) };
        let (boxes, only) = (of(vec![most.clone(), parse_quote!(4)]), of(vec![most.clone()]));
        let labels = format!("{name}_labels");
        let values = match &options.format {
            None => quote!(self.#ident.xyxy().as_flattened()),
            Some(format) => quote!(&self.#ident.values(::burn_pinned::derived::BoxFormat::#format)),
        };
        let write = quote_spanned!(span=> row.write(#name, #values)?; row.write(#labels, self.#ident.labels())?;);
        let mut part = self.rows(&Number::named("f32"), &boxes, write)?;
        part.fields.push(field(&labels, &Number::named("i32"), &only, quote!(-1), quote!(padded)));
        part.outs.push(self.beside("labels", "The labels", only.rank(), Kind::Int));
        Ok(part)
    }

    /// How the tensor of a field is taken, and what is made of it on the device.
    fn taken(&self, number: &Number, rank: usize) -> Result<Out> {
        let (name, own, dtype) = (&self.name, number.kind, self.options.dtype.as_ref());
        let plain = quote!(batch.take::<#rank, #own>(#name)?);
        let cast = |tensor: TokenStream, from: &str, to: &str| match from == to {
            true => tensor,
            false => {
                let to = dtype_of(to);
                quote!(#tensor.cast(#to))
            }
        };
        let (kind, take) = match (self.options.normal()?, dtype) {
            (Some((mean, _)), dtype) if own == Kind::Bool || dtype.is_some_and(|dtype| dtype.kind != Kind::Float) => {
                let problem = "numbers are normalized, to floats: `dtype` is `f16`, `bf16`, `f32` or `f64`";
                return Err(Error::new_spanned(mean, problem));
            }
            (Some((mean, std)), dtype) => {
                let (floats, is_bytes) = (cast(plain, &number.name, "f32"), number.name == "u8");
                let (mean, std) = (numbers_of(mean), numbers_of(std));
                let normal = quote!(::burn_pinned::derived::normalize(#floats, #mean, #std, #is_bytes)?);
                (Kind::Float, cast(normal, "f32", dtype.map_or("f32", |dtype| &dtype.name)))
            }
            (None, Some(dtype)) => (dtype.kind, cast(plain, &number.name, &dtype.name)),
            (None, None) => (own, take(name, rank, own)),
        };
        Ok(self.out(tensor(rank, kind), take))
    }

    fn fill(&self, ty: &Type) -> TokenStream {
        match &self.options.fill {
            Some(fill) => quote!({ const FILL: #ty = #fill; FILL }),
            None => quote!(<#ty as ::std::default::Default>::default()),
        }
    }

    fn span(&self) -> Span {
        self.field.ty.span()
    }

    fn wrong(&self, message: &str) -> Error {
        Error::new_spanned(&self.field.ty, message)
    }
}

/// The field of the layout. `padded` is the method for rows that vary.
fn field(name: &str, number: &Number, size: &Size, fill: TokenStream, padded: TokenStream) -> TokenStream {
    let (ty, dims) = (&number.ty, size.dims());
    match size {
        Size::Shape(_) => {
            quote!(::burn_pinned::Field::new(#name, <#ty as ::burn_pinned::derived::Element>::dtype(), [#(#dims),*]))
        }
        Size::Padded(_) => quote!(::burn_pinned::Field::#padded::<#ty>(#name, [#(#dims),*], #fill)),
        Size::Jagged(_) => quote!(::burn_pinned::Field::jagged::<#ty>(#name, [#(#dims),*])),
    }
}

fn tensor(rank: usize, kind: Kind) -> TokenStream {
    quote!(::burn_pinned::derived::Tensor<#rank, #kind>)
}

/// Takes a tensor. Integers get the dtype that losses and metrics need.
fn take(name: &str, rank: usize, kind: Kind) -> TokenStream {
    match kind {
        Kind::Int => quote!(batch.take_int::<#rank>(#name)?),
        kind => quote!(batch.take::<#rank, #kind>(#name)?),
    }
}

/// A slice of all numbers of nested arrays.
fn flat(values: TokenStream, depth: usize) -> TokenStream {
    match depth {
        0 => quote!(&#values),
        depth => (0..depth).fold(values, |values, _| quote!(#values.as_flattened())),
    }
}
