//! Images that are decoded late: only the part that is wanted, where it is wanted.

mod deep;
mod deserialize;
mod folder;
mod folder_error;
mod image;
mod paint;
mod render;
mod view;

#[cfg(feature = "data")]
pub(crate) use deserialize::with_limits;
pub use folder::ImageFolder;
pub use folder_error::FolderError;
pub use image::Image;
pub(in crate::vision) use image::changed_before;
pub(crate) use paint::Paint;
pub(crate) use render::{WantedPixels, wanted_planes};
pub(crate) use view::{ResizeStep, View};
