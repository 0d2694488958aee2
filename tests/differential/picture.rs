//! Pictures: each pixel of a file.

use crate::manifest::Entry;
use burn_pinned::{
    Augment, KeyedRng,
    vision::{Image, Interpolation, Limits, Resize, decode},
};
use std::fs;

/// Decodes a file and compares all its values.
pub(crate) fn check(entry: &Entry) -> Result<(), String> {
    let right = fs::read(entry.right.as_ref().expect("pixels")).expect("pixels");
    let file = fs::read(&entry.paths[0]).expect("a file");
    let image = Image::from_bytes(file.clone(), &Limits::default()).map_err(|error| error.to_string())?;
    let mut once = decode(&file, &Limits::default()).map_err(|error| error.to_string())?;
    let image = match &entry.resized {
        None => image,
        Some(by) => {
            let resize = resize(entry, by);
            once = resize.resize(&once).map_err(|error| error.to_string())?;
            resize.apply(image, &mut KeyedRng::for_order(0, 0)).map_err(|error| error.to_string())?
        }
    };
    let told = (entry.width, entry.height);
    if image.dimensions() != told {
        return Err(format!("its size is {:?}, not {told:?}", image.dimensions()));
    }
    let pixels = image.to_rgb().map_err(|error| error.to_string())?;
    if pixels != once {
        return Err("`Image` and `decode` differ".into());
    }
    let pixels = pixels.into_raw();
    let off = |at: usize| pixels[at].abs_diff(right[at]);
    let worst = (0..right.len()).max_by_key(|at| off(*at)).unwrap_or(0);
    let mean = (0..right.len()).map(|at| f64::from(off(at))).sum::<f64>() / right.len() as f64;
    let (most, most_mean) = entry.limit;
    if off(worst) <= most && mean <= most_mean {
        return Ok(());
    }
    let (x, y) = (worst / 3 % entry.width as usize, worst / 3 / entry.width as usize);
    let is = |all: &[u8]| all[worst / 3 * 3..][..3].to_vec();
    Err(format!(
        "it is {} levels off (at {x}, {y}: {:?}, not {:?}) and {mean:.2} in the mean; {most} and {most_mean} are allowed",
        off(worst),
        is(&pixels),
        is(&right)
    ))
}

fn resize(entry: &Entry, by: &str) -> Resize {
    let by = match by {
        "nearest" => Interpolation::Nearest,
        "bilinear" => Interpolation::Bilinear,
        "bicubic" => Interpolation::Bicubic,
        other => panic!("no filter {other}"),
    };
    Resize::exact([entry.height, entry.width]).expect("a size").interpolation(by)
}
