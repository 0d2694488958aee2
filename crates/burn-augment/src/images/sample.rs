//! Which image and which parts a sample has.

use super::{parts::Part, picture::Picture};

/// A sample with an image, which transforms change, and with parts that move with the image.
///
/// ```
/// use burn_augment::images::{Boxes, HasImage, Image, Mask, Part};
///
/// struct Sample { image: Image, label: u8 }
/// impl HasImage for Sample {
///     type Image = Image; // or `RgbImage`
///     fn image_mut(&mut self) -> &mut Image {
///         &mut self.image
///     }
/// }
///
/// struct Street { image: Image, road: Mask, cars: Boxes }
/// impl HasImage for Street {
///     type Image = Image;
///     fn image_mut(&mut self) -> &mut Image {
///         &mut self.image
///     }
///     fn parts_mut(&mut self) -> Vec<Part<'_>> {
///         vec![Part::Mask(&mut self.road), Part::Boxes(&mut self.cars)]
///     }
/// }
/// ```
///
/// An image implements this trait, and so do pairs and triples that begin with an image. In them, a
/// [`Mask`](super::Mask), [`Boxes`](super::Boxes), [`Points`](super::Points) or a second image moves with the image,
/// and so does an `Option` or a `Vec` of one of these: `(Image, Mask)`, `(Image, Boxes, Vec<Mask>)`, `(Image, Image)`.
/// Parts in a tuple, an array, an `Arc` or a map are an error of the first transform: use a type of your own that names
/// its parts. Anything else is a label, and so is a struct of yours, unless one of its type parameters is a part.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no image that a transform could change",
    label = "this sample does not implement `HasImage`",
    note = "write `impl HasImage for {Self}` with its `Image` or `RgbImage`, or use a pair `(image, label)` as the sample"
)]
pub trait HasImage {
    /// The image's type.
    type Image: Picture;

    /// The image: 8-bit RGB, of any size, but no side may be 0.
    fn image_mut(&mut self) -> &mut Self::Image;

    /// The parts that move with the image. Default: none.
    fn parts_mut(&mut self) -> Vec<Part<'_>> {
        Vec::new()
    }

    /// Appends what else the other sample knows of its objects, such as their areas, when both are combined: see
    /// [`Boxes::indices`](super::Boxes::indices). Parts are joined already. Default: nothing.
    fn append(&mut self, _other: &mut Self) {}
}

impl<P: Picture> HasImage for P {
    type Image = P;

    fn image_mut(&mut self) -> &mut P {
        self
    }
}

/// An image and one value: a mask, boxes, points or a second image, which move with it; or anything else, such as a
/// label. `Part::of` checks at run time which of these the value is.
impl<P: Picture, T: 'static> HasImage for (P, T) {
    type Image = P;

    fn image_mut(&mut self) -> &mut P {
        &mut self.0
    }

    fn parts_mut(&mut self) -> Vec<Part<'_>> {
        Part::of(&mut self.1)
    }
}

/// An image and two values.
impl<P: Picture, T: 'static, U: 'static> HasImage for (P, T, U) {
    type Image = P;

    fn image_mut(&mut self) -> &mut P {
        &mut self.0
    }

    fn parts_mut(&mut self) -> Vec<Part<'_>> {
        let mut parts = Part::of(&mut self.1);
        parts.extend(Part::of(&mut self.2));
        parts
    }
}
