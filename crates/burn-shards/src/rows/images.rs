//! Limits of the images in rows.

use super::builder::RowsBuilder;
use burn_augment::{for_loader::RowScope, images::Limits};
use serde::de::DeserializeOwned;

/// Limits of the images in rows.
///
/// ```no_run
/// use burn_augment::images::{Image, Limits};
/// use burn_shards::{ImageLimits, Rows};
///
/// let limits = Limits { side: 4096, ..Limits::default() };
/// let rows = Rows::<(Image, usize)>::tar("train-*.tar").columns(["jpg", "cls"]).image_limits(limits).open()?;
/// # Ok::<(), burn_shards::DataError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no limits of images",
    label = "these are not the options of rows",
    note = "call `image_limits` between `Rows::tar(..)`, or another format, and `open`"
)]
pub trait ImageLimits: Sized {
    /// Sets the limits for image files. Default: [`Limits::default`].
    fn image_limits(self, limits: Limits) -> Self;
}

impl<T: DeserializeOwned> ImageLimits for RowsBuilder<T> {
    fn image_limits(self, limits: Limits) -> Self {
        self.around_rows(move |make| {
            let _until_made = RowScope::with_limits(limits);
            make();
        })
    }
}
