//! Fields of images: what their values are, and where their pixels are made.

use super::layout::Field;
use crate::fault::Error;
use burn::tensor::{DType, bf16, f16};
use std::borrow::Cow;

/// Where the pixels of an image field are made, for files that wait to be decoded
/// ([`vision::Image`](crate::vision::Image)). What decodes a file never depends on time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Decoder {
    /// On the device if it has engines for JPEGs that can be used, else on the workers. On the device, files that its
    /// engines do not take (progressive ones, PNG, ...), or that are longer than the [room](Field::room), are decoded
    /// on the workers.
    #[default]
    Auto,
    /// On the workers.
    Host,
    /// On the device. If it cannot be done there, building the loader fails.
    Device,
    /// As `Device`, but this share of the files, from 0 to 1, is decoded on the workers. Which files it is depends on
    /// the seed, the epoch and the index.
    Shared(f64),
}

/// The longest file that a device gets by default.
const ROOM: usize = 16 << 20;

/// What makes a field one of images.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImageField {
    mean: [f32; 3],
    std: [f32; 3],
    normalized: bool,
    pub(crate) room: usize,
    pub(crate) decoder: Decoder,
}

impl Field {
    /// Makes a field of images. Every row has the shape `[3, height, width]`: red, green, blue. It is written by
    /// [`RowMut::image`](crate::RowMut::image), needs the feature `vision`, and holds bytes (`DType::U8`) unless
    /// [`with_dtype`](Self::with_dtype) says otherwise.
    ///
    /// ```
    /// use burn::tensor::DType;
    /// use burn_pinned::Field;
    ///
    /// const MEAN: [f32; 3] = [0.485, 0.456, 0.406]; // of ImageNet
    /// const STD: [f32; 3] = [0.229, 0.224, 0.225];
    ///
    /// let bytes = Field::image("image", [3, 224, 224]); // batch: Int [N, 3, 224, 224], 0 to 255
    /// let floats = Field::image("image", [3, 224, 224]).with_dtype(DType::F32).normalize(MEAN, STD); // Float
    /// ```
    ///
    /// The loader decides where the pixels are made; see [`Decoder`]. The values are the same up to the
    /// differences of decoders.
    pub fn image(name: impl Into<Cow<'static, str>>, shape: impl Into<Vec<usize>>) -> Self {
        let shape: Vec<usize> = shape.into();
        let image = ImageField { mean: [0.0; 3], std: [1.0; 3], normalized: false, room: ROOM, decoder: Decoder::Auto };
        Self { image: Some(Box::new(image)), ..Self::new(name, DType::U8, shape) }
    }

    /// Sets the dtype of an image field: `U8` (bytes), `F32`, `F16` or `BF16` (`byte / 255`). Default: `U8`.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Makes values `(byte / 255 - mean) / std` for each channel of an image field of floats, as torchvision's
    /// `Normalize` does after a scaling to 0..1.
    pub fn normalize(self, mean: [f32; 3], std: [f32; 3]) -> Self {
        self.with_image(|image| ImageField { mean, std, normalized: true, ..image })
    }

    /// Sets the longest file, in bytes, that a device which decodes gets. Default: 16 MiB. Longer files are decoded on
    /// the workers. A file that is no longer than the pixels, `3 * height * width`, is copied to page-locked memory. The
    /// bytes of a longer one stay where they are until the batch is decoded, in addition to the loader's limits.
    pub fn room(self, bytes: usize) -> Self {
        self.with_image(|image| ImageField { room: bytes, ..image })
    }

    /// Sets where the pixels of an image field are made. Default: [`Decoder::Auto`].
    pub fn decoder(self, decoder: Decoder) -> Self {
        self.with_image(|image| ImageField { decoder, ..image })
    }

    fn with_image(mut self, change: impl FnOnce(ImageField) -> ImageField) -> Self {
        match self.image.take() {
            Some(image) => self.image = Some(Box::new(change(*image))),
            None => self.no_image = true,
        }
        self
    }

    /// Checks what only image fields have.
    pub(super) fn check_image(&self) -> Result<(), Error> {
        let wrong = |problem: String, advice: &str| Err(Error::config("Collate::layout", problem, advice));
        let (name, dtype) = (&self.name, self.dtype);
        let Some(image) = &self.image else {
            return match self.no_image {
                true => {
                    wrong(format!("field `{name}` is no image, but has options of one"), "make it by `Field::image`")
                }
                false => Ok(()),
            };
        };
        if self.shape.len() != 3 || self.shape[0] != 3 {
            return wrong(
                format!("images of field `{name}` have the shape {:?}", self.shape),
                "give [3, height, width]",
            );
        }
        if !matches!(dtype, DType::U8 | DType::F32 | DType::F16 | DType::BF16) {
            return wrong(format!("images of field `{name}` are {}", dtype.name()), "give U8, F32, F16 or BF16");
        }
        if image.normalized && dtype == DType::U8 {
            let advice = "add `.with_dtype(DType::F32)`, or normalize in `finish`";
            return wrong(format!("bytes of field `{name}` cannot be normalized"), advice);
        }
        if let Some(std) = image.std.iter().find(|std| !(**std > 0.0 && std.is_finite())) {
            return wrong(format!("{std} is not a standard deviation, in field `{name}`"), "give numbers above 0");
        }
        match image.decoder {
            Decoder::Shared(share) if !(0.0..=1.0).contains(&share) => {
                wrong(format!("{share} is not a share, in field `{name}`"), "give a number from 0 to 1")
            }
            _ => Ok(()),
        }
    }
}

/// The value of each byte, for each channel, as bits of the field's dtype.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    Bits8(Box<[[u8; 256]; 3]>),
    Bits16(Box<[[u16; 256]; 3]>),
    Bits32(Box<[[u32; 256]; 3]>),
}

impl Values {
    pub(super) fn of(image: &ImageField, dtype: DType) -> Self {
        let value = |channel: usize, byte: usize| {
            let x = byte as f32 / 255.0;
            if image.normalized { (x - image.mean[channel]) / image.std[channel] } else { x }
        };
        fn table<T>(value: impl Fn(usize, usize) -> T) -> Box<[[T; 256]; 3]> {
            Box::new(std::array::from_fn(|channel| std::array::from_fn(|byte| value(channel, byte))))
        }
        match dtype {
            DType::F32 => Self::Bits32(table(|channel, byte| value(channel, byte).to_bits())),
            DType::F16 => Self::Bits16(table(|channel, byte| f16::from_f32(value(channel, byte)).to_bits())),
            DType::BF16 => Self::Bits16(table(|channel, byte| bf16::from_f32(value(channel, byte)).to_bits())),
            _ => Self::Bits8(Box::new([std::array::from_fn(|byte| byte as u8); 3])),
        }
    }

    /// The bytes of the table: channel after channel.
    #[cfg(feature = "cuda")]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bits8(table) => table.as_flattened(),
            Self::Bits16(table) => bytemuck::cast_slice(table.as_flattened()),
            Self::Bits32(table) => bytemuck::cast_slice(table.as_flattened()),
        }
    }
}
