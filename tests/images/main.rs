//! Images through the loader: a folder, images and masks of any size, 16 bits, and the bytes of all transforms.

mod any_size;
#[path = "../common/exif.rs"]
mod exif;
mod golden;
mod image_folder;
mod masks;
#[path = "../common/photo.rs"]
mod photo;
mod sixteen_bits;
