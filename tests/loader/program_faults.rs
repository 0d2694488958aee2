//! Faults of the program: no policy for bad samples takes them for the fault of a sample.

use crate::common::*;
use burn::tensor::DType;
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, PinnedDataLoaderBuilder, RawBatch, RowMut,
    fault::{FieldError, Quota},
    vision::{Image, VisionError},
};
use image::RgbImage;
use std::{io, sync::Arc};

/// An error of a program that wraps those of this crate.
#[derive(Debug, thiserror::Error)]
enum Own {
    #[error("row")]
    Row(#[from] FieldError),
    #[error("picture")]
    Picture(#[from] VisionError),
    #[error("both")]
    Both(#[source] BoxError),
    #[error("boxed")]
    Boxed(#[source] Box<FieldError>),
    #[error("shared")]
    Shared(#[source] Arc<FieldError>),
    #[error(transparent)]
    Transparent(FieldError),
}

type Write = fn(&Image, &mut RowMut<'_>) -> Result<(), BoxError>;

/// Writes a picture and a number in a way that does not fit the layout.
struct Wrong(Write);

impl Collate<usize> for Wrong {
    type Batch = ();
    fn layout(&self) -> Vec<Field> {
        vec![Field::image("image", 2), Field::new("number", DType::I64, [])]
    }
    fn write(&self, _: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        (self.0)(&Image::from(RgbImage::new(2, 2)), row)
    }
    fn finish(&self, _: RawBatch) -> Result<(), BoxError> {
        Ok(())
    }
}

const WRONG: [(&str, Write); 16] = [
    ("no field `imgae`", |image, row| Ok(row.image("imgae", image)?)),
    ("no field `imgae`", |image, row| Ok(row.image("imgae", image).map_err(Own::from)?)),
    ("no field `imgae`", |image, row| {
        Ok(row.image("imgae", image).map_err(|error| Own::Both(Own::from(error).into()))?)
    }),
    ("takes no images", |image, row| Ok(row.image("number", image)?)),
    ("takes images", |_, row| Ok(row.write("image", &[0u8; 12])?)),
    ("takes images", |_, row| Ok(row.slice_mut::<u8>("image").map(drop)?)),
    ("no field `numbr`", |_, row| Ok(row.put("numbr", 1i64)?)),
    ("no field `numbr`", |_, row| Ok(row.put("numbr", 1i64).map_err(Own::from)?)),
    ("holds i64, not f32", |_, row| Ok(row.put("number", 1f32)?)),
    // What hides the error of the row.
    ("no field `numbr`", |_, row| Ok(row.put("numbr", 1i64).map_err(|error| Own::Boxed(Box::new(error)))?)),
    ("no field `numbr`", |_, row| Ok(row.put("numbr", 1i64).map_err(|error| Own::Shared(Arc::new(error)))?)),
    ("no field `numbr`", |_, row| Ok(row.put("numbr", 1i64).map_err(io::Error::other)?)),
    ("no field `numbr`", |_, row| Ok(row.put("numbr", 1i64).map_err(Own::Transparent)?)),
    ("holds i64, not f32", |_, row| Ok(row.put("number", 1f32).map_err(Own::Transparent)?)),
    ("takes images", |_, row| Ok(row.write("image", &[0u8; 12]).map_err(Own::Transparent)?)),
    ("takes no images", |image, row| match row.image("number", image) {
        Err(VisionError::Field(error)) => Err(Own::Both(Own::Transparent(*error.downcast()?).into()).into()),
        other => Ok(other?),
    }),
];

#[test]
fn a_field_that_is_not_in_the_layout_is_no_bad_sample() {
    for policy in [BadSamples::Fail, BadSamples::Skip(Quota::Share(1.0)), BadSamples::Replace { tries: 3 }] {
        for (said, write) in WRONG {
            let builder = PinnedDataLoaderBuilder::new(Wrong(write)).batch_size(4).num_workers(2);
            let loader = builder.set_device(device()).bad_samples(policy).build(Numbers::new(12)).unwrap();
            let errors: Vec<_> = loader.iter().map(|batch| batch.unwrap_err()).collect();
            assert_eq!(errors.len(), 3, "{policy:?}: {said}");
            for error in &errors {
                let Some(Error::Failed { source, .. }) = Error::of(error) else { panic!("{policy:?}: {error}") };
                let mut text = source.to_string();
                let mut cause = source.source();
                while let Some(error) = cause {
                    text += &format!(": {error}");
                    cause = error.source();
                }
                assert!(text.contains(said), "{policy:?}: {text}");
            }
            assert_eq!((loader.stats().skipped, loader.stats().replaced), (0, 0));
        }
    }
}
