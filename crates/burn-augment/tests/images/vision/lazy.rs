//! Images that are decoded late: the same numbers, the same pixels.

use burn_augment::{
    Augment, BoxError, KeyedRng,
    augment::{OneOf, RandomApply},
    images::*,
};
use image::RgbImage;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use rand::RngExt;

use crate::exif::exif;
use crate::photo::photo;

pub(crate) fn jpeg(size: (u32, u32), sampling: SamplingFactor, progressive: bool, orientation: u8) -> Vec<u8> {
    let image = photo(size.0, size.1);
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, 85);
    encoder.set_progressive(progressive);
    encoder.set_sampling_factor(sampling);
    encoder.add_exif_metadata(&exif(orientation)).unwrap();
    encoder.encode(&image, size.0 as u16, size.1 as u16, ColorType::Rgb).unwrap();
    bytes
}

const SAMPLINGS: [SamplingFactor; 8] = [
    SamplingFactor::F_1_1,
    SamplingFactor::F_2_2,
    SamplingFactor::F_2_1,
    SamplingFactor::F_1_2,
    SamplingFactor::F_4_1,
    SamplingFactor::F_1_4,
    SamplingFactor::F_4_2,
    SamplingFactor::F_2_4,
];

/// Files of all samplings, orientations and odd sizes, and of other formats.
fn files() -> Vec<Vec<u8>> {
    let sizes = [(97, 61), (64, 48), (33, 130), (17, 17), (1, 9), (8, 1), (250, 111)];
    let mut files = Vec::new();
    for (n, sampling) in SAMPLINGS.into_iter().enumerate() {
        for (m, size) in sizes.into_iter().enumerate() {
            files.push(jpeg(size, sampling, (n + m) % 5 == 4, 1 + ((3 * n + m) % 8) as u8));
            files.push(jpeg(size, sampling, false, 1));
        }
    }
    let mut grey = Vec::new();
    let pixels: Vec<u8> = (0..70 * 50).map(|n| (n * 7 % 251) as u8).collect();
    Encoder::new(&mut grey, 90).encode(&pixels, 70, 50, ColorType::Luma).unwrap();
    files.push(grey);
    let mut png = std::io::Cursor::new(Vec::new());
    photo(40, 31).write_to(&mut png, image::ImageFormat::Png).unwrap();
    files.push(png.into_inner());
    files
}

type Change<S> = Box<dyn Augment<S>>;

/// Chains of transforms, some of which need pixels.
fn chains<S: HasImage + Send + Sync + 'static>() -> Vec<Change<S>> {
    fn chain<S: 'static>(augment: impl Augment<S> + 'static) -> Change<S> {
        Box::new(augment)
    }
    let crop = || RandomResizedCrop::new(24).unwrap();
    let jitter = || {
        let jitter = ColorJitter::new().brightness(0.4).unwrap().contrast(0.4).unwrap();
        jitter.saturation(0.4).unwrap().hue(0.1).unwrap()
    };
    let erase = || RandomErasing::new(0.8).unwrap().value(Erased::Color([124, 116, 104]));
    vec![
        chain((crop(), RandomHorizontalFlip::default())),
        chain((RandomHorizontalFlip::default(), RandomVerticalFlip::default(), crop())),
        chain((RandomRotate90, crop(), D4, RandomHorizontalFlip::default())),
        chain((D4, RandomCrop::new(8).unwrap().pad_if_needed(true), jitter(), RandomRotate90, erase(), D4)),
        chain((Resize::shorter_side(40).unwrap(), CenterCrop::new(32).unwrap(), RandomVerticalFlip::default())),
        chain((RandomCrop::new(8).unwrap().pad_if_needed(true), RandomHorizontalFlip::default())),
        chain((RandomVerticalFlip::default(), RandomCrop::new([5, 1]).unwrap().pad_if_needed(true))),
        chain((crop().interpolation(Interpolation::Bicubic), Resize::exact(16).unwrap())),
        chain((
            RandomHorizontalFlip::default(),
            crop().interpolation(Interpolation::Nearest),
            RandomErasing::default(),
        )),
        chain((crop(), ColorJitter::new().brightness(0.4).unwrap(), RandomHorizontalFlip::default())),
        chain((
            RandomApply::new(0.5, RandomRotation::new(20.0).unwrap()).unwrap(),
            OneOf::new(crop()).or(RandomGrayscale::new(0.5).unwrap()),
            TrivialAugmentWide::default(),
        )),
        chain((crop(), RandomHorizontalFlip::default(), jitter(), RandomGrayscale::new(0.3).unwrap(), erase())),
        chain((crop(), jitter(), erase(), RandomHorizontalFlip::default(), RandomVerticalFlip::default())),
        // What follows a change of colour, or comes twice.
        chain((crop(), Grayscale, CenterCrop::new(20).unwrap(), jitter(), CenterCrop::new(16).unwrap())),
        chain((jitter(), crop(), jitter(), erase(), erase())),
        chain((crop(), RandAugment::new(4, 20).unwrap(), RandomErasing::default().value(Erased::Noise))),
        chain((CenterCrop::new(300).unwrap(), RandomHorizontalFlip::default())),
    ]
}

#[test]
fn an_image_that_is_decoded_late_has_the_same_pixels() {
    let (files, limits) = (files(), Limits::default());
    let (lazy, eager) = (chains::<(Image, u8)>(), chains::<(RgbImage, u8)>());
    let mut late = 0;
    for (nth, file) in files.iter().enumerate() {
        let whole = decode(file, &limits).unwrap();
        let image = Image::from_bytes(file.clone(), &limits).unwrap();
        assert_eq!((image.dimensions(), image.is_decoded()), (whole.dimensions(), false));
        assert_eq!(image.to_rgb().unwrap(), whole, "file {nth}");
        for (at, (lazy, eager)) in lazy.iter().zip(&eager).enumerate() {
            for epoch in 0..4 {
                let rngs = || KeyedRng::for_order(nth as u64, epoch);
                let (mut a, mut b) = (rngs(), rngs());
                let (changed, _) = lazy.apply((image.clone(), 0), &mut a).unwrap();
                let (expected, _) = eager.apply((whole.clone(), 0), &mut b).unwrap();
                assert_eq!(a.random::<u64>(), b.random::<u64>(), "file {nth}, chain {at}: other numbers were drawn");
                assert_eq!(changed.dimensions(), expected.dimensions());
                late += usize::from(!changed.is_decoded());
                assert!(changed.into_rgb().unwrap() == expected, "file {nth}, chain {at}, epoch {epoch}");
            }
        }
    }
    assert!(late > files.len() * 22, "{late} were not decoded before their pixels were asked for");
}

/// Every part of some pictures, down to one pixel.
#[test]
fn every_part_is_that_of_the_whole_picture() {
    let mut rng = KeyedRng::for_order(3, 0);
    for sampling in SAMPLINGS {
        for progressive in [false, true] {
            let file = jpeg((150, 77), sampling, progressive, 1);
            let whole = decode(&file, &Limits::default()).unwrap();
            let image = Image::from_bytes(file, &Limits::default()).unwrap();
            for _ in 0..300 {
                let (left, top) = (rng.random_range(0..150), rng.random_range(0..77));
                let (width, height) = (rng.random_range(1..=150 - left), rng.random_range(1..=77 - top));
                let part = CropBox { left: left.into(), top: top.into(), width, height };
                let mut cut = image.clone();
                cut.crop(part, PaddingMode::Constant, [0; 3]).unwrap();
                let expected = image::imageops::crop_imm(&whole, left, top, width, height).to_image();
                assert!(cut.into_rgb().unwrap() == expected, "{sampling:?} {progressive} {part:?}");
            }
        }
    }
}

#[test]
fn what_is_wrong_shows_when_it_is_decoded() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("damaged.jpg");
    let mut file = jpeg((64, 48), SamplingFactor::F_2_2, false, 1);
    // Without its Huffman tables no decoder can read it; its header is fine.
    while let Some(at) = file.windows(2).position(|pair| pair == [0xFF, 0xC4]) {
        let length = usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        file.drain(at..at + 2 + length);
    }
    std::fs::write(&path, &file)?;
    let image = Image::open(&path, &Limits::default())?;
    assert!(format!("{image:?}").contains("64 x 48, not decoded"), "{image:?}");
    let decoded = image.to_rgb();
    // libjpeg takes the tables of the standard where none are given.
    if !cfg!(feature = "turbo") {
        let error = decoded.unwrap_err().to_string();
        assert!(error.contains("damaged.jpg"), "{error}");
    }
    let error = Image::open(folder.path().join("none.jpg"), &Limits::default()).unwrap_err().to_string();
    assert!(error.contains("none.jpg"), "{error}");
    let small = Limits { side: 63, ..Limits::default() };
    assert!(matches!(Image::from_bytes(file.clone(), &small), Err(VisionError::OverLimit { limit: 63, .. })));
    file.truncate(file.len() - 2);
    assert!(matches!(Image::from_bytes(file, &Limits::default()), Err(VisionError::Truncated)));
    let mut image = Image::from(photo(9, 9));
    let part = CropBox { left: 4, top: 0, width: 6, height: 9 };
    let outside = image.resized_crop(part, Size { width: 4, height: 4 }, Interpolation::Bilinear);
    assert!(matches!(outside, Err(VisionError::PartOutside { width: 9, .. })), "{outside:?}");
    Ok(())
}

#[test]
fn damaged_files_spoil_no_later_one() {
    let limits = Limits::default();
    let good = files();
    let mut rng = KeyedRng::for_order(9, 0);
    let mut refused = 0;
    for nth in 0..600 {
        let mut file = good[nth % good.len()].clone();
        let whole = nth % 3 == 0;
        let end = if nth % 2 == 0 { file.len() } else { file.len().min(700) };
        for _ in 0..if whole { 0 } else { rng.random_range(1..6) } {
            let at = rng.random_range(2..end);
            file[at] = rng.random();
        }
        let decoded = Image::from_bytes(file, &limits).and_then(|image| image.to_rgb());
        assert!(decoded.is_ok() || !whole, "file {nth}: {decoded:?}");
        refused += usize::from(decoded.is_err());
    }
    assert!((10..350).contains(&refused), "{refused}");
}
