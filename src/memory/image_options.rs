//! The constructors and options of image fields.

use super::field::Field;
use crate::fault::Error;
use crate::image_rows::{Decoder, ImageField};
use burn::tensor::DType;
use burn_augment::Size;
use std::borrow::Cow;

impl Field {
    /// Makes a field of images of this size: one side length, or `[height, width]`. Every row has the shape `[3, height, width]` (red,
    /// green, blue), or `[1, height, width]` with [`grey`](Self::grey). Write rows with `RowMut::image`, which needs the feature `vision`.
    /// The dtype is `DType::U8` unless you set [`with_dtype`](Self::with_dtype).
    ///
    /// ```
    /// use burn::tensor::DType;
    /// use burn_pinned::Field;
    ///
    /// const MEAN: [f32; 3] = [0.485, 0.456, 0.406]; // of ImageNet
    /// const STD: [f32; 3] = [0.229, 0.224, 0.225];
    ///
    /// let bytes = Field::image("image", 224); // batch: Int [N, 3, 224, 224], 0 to 255
    /// let floats = Field::image("image", [224, 320]).with_dtype(DType::F32).normalize(MEAN, STD); // Float
    /// let scan = Field::image("scan", 512).grey().with_dtype(DType::U16); // Int [N, 1, 512, 512], 0 to 65,535
    /// ```
    ///
    /// The loader decides where images are decoded; see [`Decoder`]. Apart from small differences between decoders, the
    /// values are the same.
    pub fn image(name: impl Into<Cow<'static, str>>, size: impl Into<Size>) -> Self {
        let Size { height, width } = size.into();
        Self::image_of_shape(name, [3, height as usize, width as usize])
    }

    /// For the derives, which have the shape of a row: `[3, height, width]` or `[1, height, width]`.
    #[doc(hidden)]
    pub fn image_of_shape(name: impl Into<Cow<'static, str>>, shape: impl Into<Vec<usize>>) -> Self {
        let shape: Vec<usize> = shape.into();
        let room = shape.iter().fold(2usize, |bytes, side| bytes.saturating_mul(*side));
        let image = ImageField { mean: [0.0; 3], std: [1.0; 3], normalized: false, room, decoder: Decoder::Auto };
        Self { image: Some(Box::new(image)), ..Self::new(name, DType::U8, shape) }
    }

    /// Makes images grey, with one channel. Colours are converted like Pillow's `convert("L")`.
    pub fn grey(mut self) -> Self {
        match self.image {
            Some(_) => self.shape[0] = 1,
            None => self.no_image = true,
        }
        self
    }

    /// Sets the dtype of an image field: `U8` (bytes), `F32`, `F16` or `BF16` (`byte / 255`), or `U16` (`257 * byte`).
    /// Default: `U8`.
    ///
    /// For files with 16 bits per value (PNG and TIFF can have them), `U16` keeps the values unchanged, and floats with
    /// one channel keep the full precision (`value / 65535`). Such images are decoded on the workers. Deferred
    /// transforms keep the 16 bits; after any other transform, `RowMut::image` returns an error.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Normalizes each channel of a float image field to `(byte / 255 - mean) / std`, like torchvision's `Normalize`
    /// after scaling to 0..1.
    pub fn normalize(self, mean: [f32; 3], std: [f32; 3]) -> Self {
        self.with_image(|image| ImageField { mean, std, normalized: true, ..image })
    }

    /// Sets the longest file, in bytes, that the device decodes. Default: twice the bytes of the pixels, `2 * 3 *
    /// height * width`. Longer files are decoded on the workers.
    ///
    /// Files up to the size of the pixels are in page-locked memory. The bytes of a longer file stay where they are
    /// until the batch is decoded, in addition to the loader's limits. Raise this value if there are few workers. With
    /// many workers, leave large photos to them: a file occupies one engine of the device for a time that grows with
    /// its number of pixels, and its batch waits for it.
    pub fn room(self, bytes: usize) -> Self {
        self.with_image(|image| ImageField { room: bytes, ..image })
    }

    /// Sets where images are decoded. Default: [`Decoder::Auto`].
    pub fn decoder(self, decoder: Decoder) -> Self {
        self.with_image(|image| ImageField { decoder, ..image })
    }

    /// Lets images have any size up to the field's shape. Each batch is as tall as its tallest image and as wide as its widest. The padding
    /// is 0, also after [`normalize`](Self::normalize), as in torchvision's detection models. [`RawBatch::sizes`](crate::RawBatch::sizes)
    /// has the height and width of each image. Such images are decoded on the workers. Slots are sized for images of the field's shape, so
    /// do not make it larger than necessary.
    ///
    /// ```
    /// use burn_pinned::Field;
    ///
    /// let image = Field::image("image", [800, 1333]).any_size(); // batch: Int [N, 3, tallest, widest]
    /// ```
    pub fn any_size(mut self) -> Self {
        self.no_image |= self.image.is_none();
        self.varies_in_2d = true;
        self
    }

    /// Whether images are decoded on the workers regardless of the device.
    pub(super) fn is_for_host(&self) -> bool {
        self.varies_in_2d || self.shape.first() == Some(&1) || self.dtype == DType::U16
    }

    /// Whether 16 bits per value are kept.
    #[cfg(feature = "vision")]
    pub(crate) fn keeps_16_bits(&self) -> bool {
        self.dtype == DType::U16 || self.shape.first() == Some(&1) && self.dtype != DType::U8
    }

    pub(crate) fn is_image(&self) -> bool {
        self.image.is_some()
    }

    fn with_image(mut self, change: impl FnOnce(ImageField) -> ImageField) -> Self {
        match self.image.take() {
            Some(image) => self.image = Some(Box::new(change(*image))),
            None => self.no_image = true,
        }
        self
    }

    /// Checks the options of an image field.
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
        if !matches!(self.shape[..], [1 | 3, _, _]) {
            return wrong(
                format!("images of field `{name}` have the shape {:?}", self.shape),
                "give [3, height, width], or [1, height, width] for grey",
            );
        }
        if !matches!(dtype, DType::U8 | DType::U16 | DType::F32 | DType::F16 | DType::BF16) {
            return wrong(format!("images of field `{name}` are {}", dtype.name()), "give U8, U16, F32, F16 or BF16");
        }
        if image.normalized && matches!(dtype, DType::U8 | DType::U16) {
            let advice = "add `.with_dtype(DType::F32)`, or normalize in `finish`";
            return wrong(format!("integers of field `{name}` cannot be normalized"), advice);
        }
        if self.is_for_host() && image.decoder == Decoder::Device {
            let kind = if self.varies_in_2d { "any size" } else { "one channel or 16 bits" };
            let problem = format!("images of {kind} of field `{name}` are to be decoded on the device");
            let advice = "leave `Decoder::Device` out: a device makes bytes of three channels, of one size";
            return wrong(problem, advice);
        }
        if let Some(std) = image.std.iter().find(|std| !(**std > 0.0 && std.is_finite())) {
            return wrong(format!("{std} is not a standard deviation, in field `{name}`"), "give numbers above 0");
        }
        Ok(())
    }
}
