//! Writes a mask into its row: its numbers, in the field's dtype.

use super::{row::RowMut, row_image::check_size};
use crate::vision::{Mask, VisionError};
use burn::tensor::{DType, Element};

impl RowMut<'_> {
    /// Writes a [`Mask`] into a field of `[height, width]` or `[1, height, width]`: the numbers of its pixels,
    /// unscaled.
    ///
    /// ```no_run
    /// use burn::{prelude::*, tensor::DType};
    /// use burn_pinned::{BoxError, Collate, Field, RawBatch, RowMut, vision::{Image, Mask}};
    ///
    /// struct Streets;
    /// impl Collate<(Image, Mask)> for Streets {
    ///     type Batch = (Tensor<4>, Tensor<3, Int>);
    ///     fn layout(&self) -> Vec<Field> {
    ///         let image = Field::image("image", 224).with_dtype(DType::F32);
    ///         vec![image, Field::new("mask", DType::U8, [224, 224])]
    ///     }
    ///     fn write(&self, (image, mask): &(Image, Mask), row: &mut RowMut<'_>) -> Result<(), BoxError> {
    ///         row.image("image", image)?;
    ///         Ok(row.mask("mask", mask)?)
    ///     }
    ///     fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
    ///         Ok((batch.take("image")?, batch.take_int("mask")?))
    ///     }
    /// }
    /// ```
    ///
    /// A U8 field accepts numbers up to 255. U16, I32, I64 and F32 fields accept all numbers, such as 16-bit depths.
    /// For masks of different sizes use a [`Field::padded_2d`](crate::Field::padded_2d).
    ///
    /// # Errors
    /// If the layout has no such field, if the mask has another size, if a number does not fit the dtype, or if the
    /// field has another dtype.
    pub fn mask(&mut self, name: &str, mask: &Mask) -> Result<(), VisionError> {
        let (_, field) = self.find(name)?;
        let largest = match field.shape[..] {
            [height, width] | [1, height, width] => (width, height),
            _ => (0, 0), // no mask has it
        };
        let (size, varies, dtype) = (check_size(field, mask.dimensions(), largest)?, field.varies_in_2d, field.dtype);
        let size = varies.then_some(size);
        match dtype {
            DType::U8 => self.numbers::<u8>(name, mask, size),
            DType::U16 => self.numbers::<u16>(name, mask, size),
            DType::I64 => self.numbers::<i64>(name, mask, size),
            DType::F32 => self.numbers::<f32>(name, mask, size),
            // Any other dtype is an error there.
            _ => self.numbers::<i32>(name, mask, size),
        }
    }

    /// Writes the numbers. A field of varying size takes them in the mask's size.
    fn numbers<E: Element + bytemuck::Pod + TryFrom<u16>>(
        &mut self,
        name: &str,
        mask: &Mask,
        size: Option<[usize; 2]>,
    ) -> Result<(), VisionError> {
        let value = |number| E::try_from(number).ok();
        let Some(size) = size else { return mask.write(value, self.slice_mut(name)?) };
        let mut numbers = vec![E::zeroed(); size[0] * size[1]];
        mask.write(value, &mut numbers)?;
        Ok(self.write_2d(name, size, &numbers)?)
    }
}
