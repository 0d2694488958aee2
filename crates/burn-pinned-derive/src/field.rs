//! The code for one field of a sample.

use crate::{
    options::{Form, Options, Size, by_channel, lints},
    types::{Kind, Number, Value, slice},
};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Error, Expr, Field, Ident, Result, Type, Visibility, parse_quote, spanned::Spanned};

/// The code for one field of the sample: its fields in the layout, how it is written, and its fields in the batch.
pub(crate) struct Part {
    pub(crate) fields: Vec<TokenStream>,
    pub(crate) write: TokenStream,
    pub(crate) outs: Vec<BatchField>,
}

/// A field of the batch.
pub(crate) struct BatchField {
    /// Its documentation and lint levels.
    pub(crate) docs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) name: Ident,
    pub(crate) ty: TokenStream,
    /// Takes the field out of the raw batch.
    pub(crate) take: TokenStream,
    /// Rebuilds the field with other tensors.
    pub(crate) map: TokenStream,
}

/// A field of the sample whose [`Part`] is being made.
struct SampleField<'a> {
    field: &'a Field,
    ident: &'a Ident,
    /// The name in the layout.
    name: String,
    options: Options,
}

const FLAGS: [&str; 4] = ["mask", "rows", "column", "skip"];
const VALUES: [&str; 9] = ["shape", "padded", "jagged", "fill", "dtype", "mean", "std", "format", "with"];
/// The options that all fields of numbers have.
const OF_NUMBERS: [&str; 3] = ["dtype", "mean", "std"];

/// The part of a field; `None` if it is skipped.
pub(crate) fn part(field: &Field) -> Result<Option<Part>> {
    let Some(ident) = &field.ident else { return Ok(None) };
    let options = Options::of(&field.attrs, "sample", &FLAGS, &VALUES)?;
    let made = SampleField { field, ident, name: ident.to_string().trim_start_matches("r#").into(), options };
    let (options, value) = (&made.options, Value::of(&field.ty));
    if options.has("skip") {
        options.only(&["skip"], "a field that is skipped").map(|()| None)
    } else if let Some(module) = options.get("with") {
        options.only(&["with"], "a field `with` a module of its own")?;
        Ok(Some(made.with(module)))
    } else if options.has("column") || value.is_text() {
        options.only(&["column"], "a column")?;
        Ok(Some(made.column()))
    } else {
        made.tensor(value).map(Some)
    }
}

impl SampleField<'_> {
    fn out(&self, ty: TokenStream, take: TokenStream) -> BatchField {
        let docs = self.field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned();
        let mut docs: Vec<Attribute> = docs.collect();
        if docs.is_empty() {
            let text = format!("The field `{}` of the samples.", self.name);
            docs.push(parse_quote!(#[doc = #text]));
        }
        self.named(self.ident.clone(), docs, ty, take)
    }

    fn named(&self, name: Ident, mut docs: Vec<Attribute>, ty: TokenStream, take: TokenStream) -> BatchField {
        docs.extend(lints(&self.field.attrs));
        let map = quote!(__burn_pinned::MapTensors::map_tensors(self.#name, mapper));
        BatchField { docs, vis: self.field.vis.clone(), name, ty, take, map }
    }

    /// A second tensor of the field, such as its mask.
    fn beside(&self, suffix: &str, doc: &str, rank: usize, kind: Kind) -> BatchField {
        let (name, doc) = (format!("{}_{suffix}", self.name), format!("{doc} of the field `{}`.", self.name));
        let ident = format_ident!("{name}", span = self.ident.span());
        self.named(ident, vec![parse_quote!(#[doc = #doc])], tensor(rank, kind), take(&name, rank, kind))
    }

    fn mask(&self, rank: usize) -> BatchField {
        self.beside("mask", "True for values, false for padding,", rank, Kind::Bool)
    }

    fn with(&self, module: &Expr) -> Part {
        let Self { name, ident, .. } = self;
        Part {
            fields: vec![quote!(#module::field(#name))],
            write: quote!(#module::write(&self.#ident, #name, row)?;),
            outs: vec![self.out(quote!(#module::Batch), quote!(#module::finish(batch, #name)?))],
        }
    }

    fn column(&self) -> Part {
        let (Self { name, ident, .. }, ty, span) = (self, &self.field.ty, self.span());
        let out = self.out(quote!(::std::vec::Vec<#ty>), quote_spanned!(span=> batch.column::<#ty>(#name)?));
        Part {
            fields: vec![quote_spanned!(span=> __burn_pinned::Field::column::<#ty>(#name))],
            write: quote_spanned!(span=> row.put_column(#name, ::std::clone::Clone::clone(&self.#ident))?;),
            outs: vec![BatchField { map: quote!(self.#ident), ..out }],
        }
    }

    fn tensor(&self, value: Value) -> Result<Part> {
        let (Self { name, ident, options, .. }, span) = (self, self.span());
        let i64s = || Number::new("i64", Kind::Int);
        match value {
            Value::Array(number, lengths) => self.array(&number, lengths, &quote!(self.#ident), &[]),
            Value::Size => self.array(&i64s(), Vec::new(), &self.widened(&quote!(self.#ident)), &[]),
            Value::Maybe(inner) => {
                match *inner {
                    Value::Array(number, lengths) => self.maybe(&number, lengths, false),
                    Value::Size => self.maybe(&i64s(), Vec::new(), true),
                    _ => Err(self.wrong(
                        "an `Option` is of a number, an array or a `String`, or it is a `#[sample(column)]`; a list that is \
                         lacking is an empty one",
                    )),
                }
            }
            Value::List(number, get, lengths) => {
                let values = slice(&quote!(self.#ident #get), lengths.len());
                let write = quote_spanned!(span=> row.write(#name, #values)?;);
                self.list(&number, &lengths, |_| write)
            }
            Value::Shaped(number) => self.list(&number, &[], |Size { form, dims, .. }| {
                let varies = *form != Form::Shape;
                quote_spanned!(span=> row.write(
                    #name,
                    __burn_pinned::derived::shaped(self.#ident.data(), self.#ident.shape(), &[#(#dims),*], #varies)?
                )?;)
            }),
            Value::Image => self.image(),
            Value::Mask => {
                let size = self.size(&["shape", "padded"], &["dtype"], &["fill", "mask"], "a mask")?;
                let number = options.dtype()?.unwrap_or_else(|| Number::new("u8", Kind::Int));
                let mut field = field(name, &number, &size, &self.fill(&number.ty), &quote!(padded_2d));
                field.extend(self.cast_to(&number)?);
                let out = self.taken(&number, size.rank())?;
                Ok(self.part(field, quote_spanned!(span=> row.mask(#name, &self.#ident)?;), &size, out, 3))
            }
            Value::Boxes => self.boxes(),
            Value::Text | Value::Unknown => Err(self.wrong(
                "no tensor is made of this type: say what becomes of it by `#[sample(column)]`, `#[sample(skip)]` or \
                 `#[sample(with = module)]`, or let it be a `Vec` of numbers (`i64`, not `usize`) or of arrays such as \
                 `[f32; 2]`, that `#[serde(deserialize_with = \"..\")]` makes",
            )),
        }
    }

    /// The size of the rows, given by one of the options `sizes`. Also allowed are `options`, and `padded` or `rows` for rows that vary.
    fn size(&self, sizes: &[&str], options: &[&str], padded: &[&str], what: &str) -> Result<Size> {
        let Some(size) = self.options.size()? else {
            let needs = sizes.iter().map(|size| format!("`{size} = [..]`")).collect::<Vec<_>>().join(" or ");
            return Err(self.wrong(&format!("{what} needs its shape, or the shape of its largest row: give {needs}")));
        };
        let (more, what) = match size.form {
            Form::Padded => (padded, format!("{what} whose rows are padded")),
            Form::Shape => (&[][..], format!("{what} of one shape")),
            Form::Jagged => (&["rows"][..], format!("{what} whose rows lie end to end")),
        };
        self.options.only(&[sizes, options, more].concat(), &what)?;
        Ok(size)
    }

    /// A number or an array, whose type says its shape.
    fn array(&self, number: &Number, lengths: Vec<Expr>, value: &TokenStream, more: &[&str]) -> Result<Part> {
        self.options.only(&[&OF_NUMBERS, more].concat(), "a field whose type says its shape")?;
        let (name, span) = (&self.name, self.span());
        let write = match lengths.len() {
            0 => quote_spanned!(span=> row.put(#name, #value)?;),
            depth => {
                let values = slice(value, depth - 1);
                quote_spanned!(span=> row.write(#name, #values)?;)
            }
        };
        self.rows(number, &Size { form: Form::Shape, dims: lengths }, write)
    }

    /// A number whose type is no dtype, converted to `i64`.
    fn widened(&self, value: &TokenStream) -> TokenStream {
        let (name, span) = (&self.name, self.span());
        quote_spanned!(span=> __burn_pinned::derived::widened(#value, #name)?)
    }

    /// An optional number or array. `None` becomes the value of `fill`.
    fn maybe(&self, number: &Number, lengths: Vec<Expr>, is_size: bool) -> Result<Part> {
        let Self { name, ident, options, .. } = self;
        if !options.has("fill") {
            return Err(self.wrong("an `Option` needs the value that stands for `None`: `#[sample(fill = ..)]`"));
        }
        let fill = lengths.iter().rev().fold(self.fill(&number.ty), |fill, length| quote!([#fill; #length]));
        let value = quote!((*self.#ident.as_ref().unwrap_or(&#fill)));
        let value = if is_size { self.widened(&value) } else { value };
        let mut part = self.array(number, lengths, &value, &["fill", "mask"])?;
        if options.has("mask") {
            let (mask, none) = (format!("{name}_mask"), Size { form: Form::Shape, dims: Vec::new() });
            part.fields.push(field(&mask, &Number::new("bool", Kind::Bool), &none, &quote!(), &quote!()));
            part.write.extend(quote!(row.put(#mask, self.#ident.is_some())?;));
            part.outs.push(self.mask(1));
        }
        Ok(part)
    }

    /// A list of numbers, or of arrays with these lengths.
    fn list(&self, number: &Number, lengths: &[Expr], write: impl FnOnce(&Size) -> TokenStream) -> Result<Part> {
        let size = self.size(&["shape", "padded", "jagged"], &OF_NUMBERS, &["fill", "mask"], "a list of numbers")?;
        let (size, check) = self.of_arrays(size, lengths)?;
        let mut part = self.rows(number, &size, write(&size))?;
        part.fields.iter_mut().for_each(|field| *field = quote!({ #check #field }));
        Ok(part)
    }

    /// The size of rows of arrays: their number, and the lengths from their type. If the lengths are given too, they must be the same; the
    /// returned code checks this.
    fn of_arrays(&self, mut size: Size, lengths: &[Expr]) -> Result<(Size, TokenStream)> {
        let Some((_, given)) = size.dims.split_first().filter(|_| !lengths.is_empty()) else {
            return Ok((size, TokenStream::new()));
        };
        if !given.is_empty() && given.len() != lengths.len() {
            let problem =
                "give one number, how many arrays a sample has, such as `padded = [6]`: the type says the rest";
            return Err(Error::new_spanned(&size.dims[1], problem));
        }
        let checks = given.iter().zip(lengths).map(|(given, length)| {
            let problem = format!("the arrays of `{}` have another length: give only how many there are", self.name);
            let check = quote_spanned!(given.span()=> const { ::std::assert!(#given == #length, #problem) });
            quote!(#[allow(clippy::assertions_on_constants, clippy::eq_op)] { #check })
        });
        let checks = checks.collect();
        size.dims.truncate(1);
        size.dims.extend_from_slice(lengths);
        Ok((size, checks))
    }

    /// Rows of numbers, of one shape or varying in their first dimension.
    fn rows(&self, number: &Number, size: &Size, write: TokenStream) -> Result<Part> {
        let mut field = field(&self.name, number, size, &self.fill(&number.ty), &quote!(padded));
        field.extend(self.cast_to(number)?);
        Ok(self.part(field, write, size, self.taken(number, size.rank())?, 2))
    }

    /// A field, with the mask, the offsets and the rows that the loader adds.
    fn part(&self, mut field: TokenStream, write: TokenStream, size: &Size, out: BatchField, mask_rank: usize) -> Part {
        let mut outs = vec![out];
        if size.form == Form::Padded && self.options.has("mask") {
            field.extend(quote!(.with_mask()));
            outs.push(self.mask(mask_rank));
        }
        if size.form == Form::Jagged {
            outs.push(self.beside("offsets", "The ends of the rows", 1, Kind::Int));
            if self.options.has("rows") {
                field.extend(quote!(.with_rows()));
                outs.push(self.beside("rows", "The row of each step", 1, Kind::Int));
            }
        }
        Part { fields: vec![field], write, outs }
    }

    fn image(&self) -> Result<Part> {
        let (Self { name, ident, options, .. }, span) = (self, self.span());
        let size = self.size(&["shape", "padded"], &OF_NUMBERS, &["mask"], "an image")?;
        let (dims, normal) = (&size.dims, options.normal()?);
        let (bytes, floats) = (Number::new("u8", Kind::Int), Number::new("f32", Kind::Float));
        let Number { ty, kind, .. } = options.dtype()?.unwrap_or(if normal.is_some() { floats } else { bytes });
        let mut field = quote!(
            __burn_pinned::Field::image_of_shape(#name, [#(#dims),*])
                .with_dtype(<#ty as __burn_pinned::derived::Element>::dtype())
        );
        if let Some((mean, std)) = normal {
            let (mean, std) = (by_channel(mean, 3), by_channel(std, 3));
            field.extend(quote!(.normalize(#mean, #std)));
        }
        if size.form == Form::Padded {
            field.extend(quote!(.any_size()));
        }
        let out = self.out(tensor(4, kind), quote!(batch.take::<4, #kind>(#name)?));
        Ok(self.part(field, quote_spanned!(span=> row.image(#name, &self.#ident)?;), &size, out, 3))
    }

    fn boxes(&self) -> Result<Part> {
        let (Self { name, ident, options, .. }, span) = (self, self.span());
        let Size { form, dims } = self.size(&["padded", "jagged"], &["format"], &["mask"], "a field of boxes")?;
        if dims.len() != 1 {
            return Err(
                self.wrong("boxes have one number for their size, the most that a sample has: `padded = [100]`")
            );
        }
        let boxes = Size { form, dims: [&dims[..], &[parse_quote!(4)]].concat() };
        let (labels, only) = (format!("{name}_labels"), Size { form, dims });
        let values = match options.get("format") {
            None => quote!(self.#ident.xyxy().as_flattened()),
            Some(format) => quote!(&self.#ident.values(__burn_pinned::derived::BoxFormat::#format)),
        };
        let write = quote_spanned!(span=> row.write(#name, #values)?; row.write(#labels, self.#ident.labels())?;);
        let mut part = self.rows(&Number::new("f32", Kind::Float), &boxes, write)?;
        let field = field(&labels, &Number::new("i32", Kind::Int), &only, &quote!(-1), &quote!(padded));
        part.fields.push(quote!(#field.cast_to(::std::option::Option::None)));
        part.outs.push(self.beside("labels", "The labels", only.rank(), Kind::Int));
        Ok(part)
    }

    /// How the tensor of a field is taken from the batch, and how it is converted on the device.
    fn taken(&self, number: &Number, rank: usize) -> Result<BatchField> {
        let (name, own, dtype) = (&self.name, number.kind, self.options.dtype()?);
        let plain = quote!(batch.take::<#rank, #own>(#name)?);
        let Some((mean, std)) = self.options.normal()? else {
            return Ok(match dtype {
                Some(dtype) => self.out(tensor(rank, dtype.kind), cast(plain, number, &dtype)),
                None => self.out(tensor(rank, own), take(name, rank, own)),
            });
        };
        let (floats, is_bytes) = (Number::new("f32", Kind::Float), number.name == "u8");
        let dtype = dtype.unwrap_or_else(|| Number::new("f32", Kind::Float));
        if own == Kind::Bool || dtype.kind != Kind::Float {
            let problem = "numbers are normalized, to floats: `dtype` is `f16`, `bf16`, `f32` or `f64`";
            return Err(Error::new_spanned(mean, problem));
        }
        let (plain, mean, std) = (cast(plain, number, &floats), by_channel(mean, 1), by_channel(std, 1));
        let normal = quote!(__burn_pinned::derived::normalize(#plain, &#mean, &#std, #is_bytes)?);
        Ok(self.out(tensor(rank, Kind::Float), cast(normal, &floats, &dtype)))
    }

    /// Names the dtype that the tensor is cast to, if some values may not fit into it.
    fn cast_to(&self, number: &Number) -> Result<TokenStream> {
        let dtype = self.options.dtype()?;
        Ok(match dtype {
            _ if self.options.normal()?.is_some() => TokenStream::new(),
            Some(Number { kind: Kind::Float, name, .. }) if name != "f16" => TokenStream::new(),
            Some(Number { ty, .. }) => {
                quote!(.cast_to(::std::option::Option::Some(<#ty as __burn_pinned::derived::Element>::dtype())))
            }
            None if number.kind == Kind::Int => quote!(.cast_to(::std::option::Option::None)),
            None => TokenStream::new(),
        })
    }

    fn fill(&self, ty: &Type) -> TokenStream {
        match self.options.get("fill") {
            Some(fill) => quote!(const { #fill }),
            None => quote!(<#ty as ::std::default::Default>::default()),
        }
    }

    /// The location of the type, for errors. Names resolve as in the derive, even if the type comes from a `macro_rules!` macro.
    fn span(&self) -> Span {
        Span::call_site().located_at(self.field.ty.span())
    }

    fn wrong(&self, message: &str) -> Error {
        Error::new_spanned(&self.field.ty, message)
    }
}

/// The field of the layout. `padded` is the method for rows of varying length.
fn field(
    name: &str,
    number: &Number,
    Size { form, dims }: &Size,
    fill: &TokenStream,
    padded: &TokenStream,
) -> TokenStream {
    let ty = &number.ty;
    match form {
        Form::Shape => {
            quote!(__burn_pinned::Field::new(#name, <#ty as __burn_pinned::derived::Element>::dtype(), [#(#dims),*]))
        }
        Form::Padded => quote!(__burn_pinned::Field::#padded::<#ty>(#name, [#(#dims),*], #fill)),
        Form::Jagged => quote!(__burn_pinned::Field::jagged::<#ty>(#name, [#(#dims),*])),
    }
}

fn tensor(rank: usize, kind: Kind) -> TokenStream {
    quote!(__burn_pinned::derived::Tensor<#rank, #kind>)
}

/// Takes a tensor. Integers get the dtype that losses and metrics need.
fn take(name: &str, rank: usize, kind: Kind) -> TokenStream {
    match kind {
        Kind::Int => quote!(batch.take_int::<#rank>(#name)?),
        kind => quote!(batch.take::<#rank, #kind>(#name)?),
    }
}

fn cast(tensor: TokenStream, from: &Number, to: &Number) -> TokenStream {
    if from.name == to.name {
        return tensor;
    }
    let (dtypes, dtype) = (format_ident!("{}DType", to.kind.name()), format_ident!("{}", to.name.to_uppercase()));
    quote!(#tensor.cast(__burn_pinned::derived::#dtypes::#dtype))
}
