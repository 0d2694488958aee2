//! Images that are decoded late: only the needed part, where it is needed.

mod deserialize;
mod file;
mod folder;
mod folder_error;
mod image;
mod paint;
mod plan;
mod render;
mod view;

pub use deserialize::RowScope;
pub(crate) use file::PictureContent;
pub(in crate::images) use file::open;
pub use folder::ImageFolder;
pub use folder_error::FolderError;
pub use image::Image;
pub use plan::DecodePlan;
pub(crate) use view::View;
