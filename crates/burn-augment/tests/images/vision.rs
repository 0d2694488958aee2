//! The transforms of `vision`: their distributions, their pixels, their bytes, and the changes on the device.

mod bicubic;
mod camera;
mod chains;
mod device;
mod draws;
pub(crate) mod lazy;
mod pixels;
mod refused;
mod sizes;
pub(crate) mod statistics;
mod tiny;

use burn_augment::{Augment, KeyedRng};
use image::{Rgb, RgbImage};

/// A generator for the `nth` draw.
fn rng(nth: usize) -> KeyedRng {
    KeyedRng::for_order(2026, nth)
}

fn apply(augment: &impl Augment<RgbImage>, image: &RgbImage, nth: usize) -> RgbImage {
    augment.apply(image.clone(), &mut rng(nth)).unwrap()
}

/// A grey image with these rows.
fn greys<const W: usize>(rows: &[[u8; W]]) -> RgbImage {
    RgbImage::from_fn(W as u32, rows.len() as u32, |x, y| Rgb([rows[y as usize][x as usize]; 3]))
}

/// How fast the usual chain is: `cargo test --release --test images -- --ignored --nocapture speed`.
#[test]
#[ignore = "a measurement"]
fn speed() {
    use burn_augment::images::{
        CenterCrop, ColorJitter, RandAugment, RandomHorizontalFlip, RandomResizedCrop, RandomRotation, write_chw,
    };
    fn rate(name: &str, augment: impl Augment<RgbImage>) {
        let image = crate::photo::photo(500, 375);
        let mut row = vec![0; 3 * 224 * 224];
        let started = std::time::Instant::now();
        let mut count = 0u32;
        let mut spent = std::time::Duration::ZERO;
        while started.elapsed().as_secs() < 2 {
            let image = image.clone();
            let begun = std::time::Instant::now();
            let image = augment.apply(image, &mut rng(count as usize)).unwrap();
            if image.dimensions() == (224, 224) {
                write_chw(&image, &mut row).unwrap();
            }
            spent += begun.elapsed();
            count += 1;
        }
        println!("{name}: {:.0} images/s on one core", f64::from(count) / spent.as_secs_f64());
    }
    rate("nothing but write_chw", CenterCrop::new(224).unwrap());
    let crop = || RandomResizedCrop::new(224).unwrap();
    let flip = RandomHorizontalFlip::default();
    let jitter = ColorJitter::new().brightness(0.4).unwrap().contrast(0.4).unwrap().saturation(0.4).unwrap();
    rate("RandomResizedCrop(224)", crop());
    rate("RandomResizedCrop(224) + flip", (crop(), flip));
    rate("RandomResizedCrop(224) + flip + ColorJitter(0.4, 0.4, 0.4)", (crop(), flip, jitter.clone()));
    rate("RandomResizedCrop(224) + flip + ColorJitter(0.4, 0.4, 0.4, 0.1)", (crop(), flip, jitter.hue(0.1).unwrap()));
    rate("RandomResizedCrop(224) + flip + RandomRotation(15)", (crop(), flip, RandomRotation::new(15.0).unwrap()));
    rate("RandomResizedCrop(224) + flip + RandAugment", (crop(), flip, RandAugment::default()));
}

/// A letter box against a resize to the same size, of files, in turn:
/// `cargo test --release --test images -- --ignored --nocapture letter_box_speed`.
#[test]
#[ignore = "a measurement"]
fn letter_box_speed() {
    use burn_augment::images::{Image, LetterBox, Limits, Resize};
    let file = lazy::jpeg((500, 375), jpeg_encoder::SamplingFactor::F_2_2, false, 1);
    let mut row = vec![0u8; 3 * 640 * 640];
    let mut spent = |augment: &dyn Augment<Image>| {
        let begun = std::time::Instant::now();
        for _ in 0..20 {
            let image = Image::from_bytes(file.clone(), &Limits::default()).unwrap();
            augment.apply(image, &mut rng(0)).unwrap().write(|_, byte| byte, &mut row).unwrap();
        }
        begun.elapsed().as_secs_f64()
    };
    let (resize, frame) = (Resize::exact(640).unwrap(), LetterBox::new(640).unwrap());
    let mut rates: Vec<f64> = (0..31).map(|_| spent(&resize) / spent(&frame)).collect();
    rates.sort_by(f64::total_cmp);
    println!("a letter box has {:.2} of the rate of a resize ({:.2} to {:.2})", rates[15], rates[3], rates[27]);
}
