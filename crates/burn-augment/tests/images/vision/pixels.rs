//! Small images, changed, against what was computed by hand.

use super::{apply, greys};
use crate::photo::photo;
use burn_augment::images::*;
use fast_image_resize as fir;
use image::{Rgb, RgbImage};

fn first<const W: usize>(image: &RgbImage) -> Vec<[u8; W]> {
    let row = |y| std::array::from_fn(|x| image.get_pixel(x as u32, y).0[0]);
    assert_eq!(image.width() as usize, W);
    (0..image.height()).map(row).collect()
}

#[test]
fn crops_show_the_right_pixels_and_padding() {
    let image = greys(&[[1, 2, 3], [4, 5, 6], [7, 8, 9]]);
    let all = |mode| {
        // The crop is as large as the padded image: there is one place for it.
        let crop = RandomCrop::new([5, 7]).unwrap().padding_each([2, 1, 2, 1]).padding_mode(mode).fill([50, 60, 70]);
        first::<7>(&apply(&crop, &image, 0))
    };
    assert_eq!(all(PaddingMode::Constant)[0], [50; 7]);
    assert_eq!(all(PaddingMode::Constant)[1], [50, 50, 1, 2, 3, 50, 50]);
    assert_eq!(all(PaddingMode::Edge)[..2], [[1, 1, 1, 2, 3, 3, 3]; 2]);
    assert_eq!(all(PaddingMode::Reflect)[..2], [[6, 5, 4, 5, 6, 5, 4], [3, 2, 1, 2, 3, 2, 1]]);
    assert_eq!(all(PaddingMode::Symmetric)[3..], [[8, 7, 7, 8, 9, 9, 8]; 2]);
    let crop = RandomCrop::new(2).unwrap();
    for nth in 0..20 {
        let [[a, b], [c, d]] = first::<2>(&apply(&crop, &image, nth))[..] else { panic!() };
        assert_eq!([b, c, d], [a + 1, a + 3, a + 4], "a part in one piece");
    }
}

#[test]
fn the_middle_and_what_lacks_around_it() {
    let image = greys(&[[1, 2, 3, 4], [5, 6, 7, 8]]);
    let centre = |size| CenterCrop::new(size).unwrap().crop(&image).unwrap();
    assert_eq!(first::<2>(&centre([2, 2])), [[2, 3], [6, 7]]);
    // (4 - 1) / 2 = 1.5 is rounded to 2, (4 - 3) / 2 = 0.5 to 0: torchvision's int(round(..)).
    assert_eq!(first::<1>(&centre([2, 1])), [[3], [7]]);
    assert_eq!(first::<3>(&centre([2, 3])), [[1, 2, 3], [5, 6, 7]]);
    // One column is missing: it is added at the end. Two rows are missing: one is added on either side.
    let padded = first::<5>(&centre([4, 5]));
    assert_eq!(padded, [[0; 5], [1, 2, 3, 4, 0], [5, 6, 7, 8, 0], [0; 5]]);
}

#[test]
fn flips_mirror() {
    let image = greys(&[[1, 2, 3], [4, 5, 6]]);
    let horizontal = apply(&RandomHorizontalFlip::new(1.0).unwrap(), &image, 0);
    assert_eq!(first::<3>(&horizontal), [[3, 2, 1], [6, 5, 4]]);
    let vertical = apply(&RandomVerticalFlip::new(1.0).unwrap(), &image, 0);
    assert_eq!(first::<3>(&vertical), [[4, 5, 6], [1, 2, 3]]);
}

#[test]
fn grey_is_pillows_and_what_is_grey_stays() {
    let levels = RgbImage::from_fn(256, 1, |x, _| Rgb([x as u8; 3]));
    for by in [apply(&Grayscale, &levels, 0), apply(&RandomGrayscale::new(1.0).unwrap(), &levels, 0)] {
        assert_eq!(by, levels);
    }
    // `Image.convert("L")` of Pillow.
    let colours = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [0, 255, 255], [1, 2, 3], [200, 100, 50]];
    let image = RgbImage::from_fn(7, 1, |x, _| Rgb(colours[x as usize]));
    assert_eq!(first::<7>(&apply(&Grayscale, &image, 0)), [[76, 150, 29, 226, 179, 2, 124]]);
}

#[test]
fn resizing_takes_all_pixels_into_account() {
    let to =
        |image: &RgbImage, size: [u32; 2], by| Resize::exact(size).unwrap().interpolation(by).resize(image).unwrap();
    // Half the size: a triangle of four pixels, 1 3 3 1 by eighths; at the border 0 3 3 1 by sevenths.
    let line = greys(&[[0, 0, 80, 160, 240, 240]]);
    let half = first::<3>(&to(&line, [1, 3], Interpolation::Bilinear))[0];
    assert_eq!(half, [11, 120, 229]); // 80 / 7; (0 + 3 * 80 + 3 * 160 + 240) / 8; (160 + 3 * 240 + 3 * 240) / 7
    let double = first::<4>(&to(&greys(&[[0, 100]]), [1, 4], Interpolation::Bilinear))[0];
    assert_eq!(double, [0, 25, 75, 100]);
    let nearest = first::<2>(&to(&greys(&[[1, 2, 3, 4, 5, 6]]), [1, 2], Interpolation::Nearest))[0];
    assert_eq!(nearest, [2, 5]);
    let same = greys(&[[7, 9], [1, 3]]);
    for by in [Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bicubic] {
        assert_eq!(to(&same, [2, 2], by), same);
    }
    let size = |width, height, side| Resize::shorter_side(side).unwrap().resize(&RgbImage::new(width, height)).unwrap();
    assert_eq!(size(500, 375, 256).dimensions(), (341, 256));
    assert_eq!(size(375, 500, 256).dimensions(), (256, 341));
    assert_eq!(size(90, 90, 30).dimensions(), (30, 30));
}

/// The part is resized as if it were an image of its own: what lies around it has no influence.
#[test]
fn a_resized_crop_sees_nothing_of_its_surroundings() {
    let mut image = RgbImage::from_pixel(60, 60, Rgb([255; 3]));
    let crop = RandomResizedCrop::new(7).unwrap().scale(0.05, 0.3).unwrap();
    for nth in 0..50 {
        let part = crop.draw(60, 60, &mut super::rng(nth));
        image.pixels_mut().for_each(|pixel| pixel.0 = [255; 3]);
        for y in part.top as u32..part.top as u32 + part.height {
            for x in part.left as u32..part.left as u32 + part.width {
                image.put_pixel(x, y, Rgb([10, 20, 30]));
            }
        }
        assert_eq!(apply(&crop, &image, nth), RgbImage::from_pixel(7, 7, Rgb([10, 20, 30])));
    }
}

/// Checks the promise of equal bytes on every CPU: the resizer's vector paths against its plain path.
#[test]
#[expect(unsafe_code, reason = "the resizer trusts its caller that the CPU has the extension")]
fn resizing_gives_the_same_bytes_with_every_extension_of_the_cpu() {
    let all = [
        fir::CpuExtensions::None,
        #[cfg(target_arch = "x86_64")]
        fir::CpuExtensions::Sse4_1,
        #[cfg(target_arch = "x86_64")]
        fir::CpuExtensions::Avx2,
        #[cfg(target_arch = "aarch64")]
        fir::CpuExtensions::Neon,
    ];
    let source = photo(251, 187);
    let view = fir::images::ImageRef::new(251, 187, &source, fir::PixelType::U8x3).unwrap();
    for (width, height) in [(64, 64), (224, 224), (31, 400), (500, 33)] {
        for filter in [fir::FilterType::Bilinear, fir::FilterType::CatmullRom] {
            let mut results = all.iter().filter(|extension| extension.is_supported()).map(|extension| {
                let mut resizer = fir::Resizer::new();
                // SAFETY: it is supported.
                unsafe { resizer.set_cpu_extensions(*extension) };
                let mut out = fir::images::Image::new(width, height, fir::PixelType::U8x3);
                let how = fir::ResizeOptions::new().resize_alg(fir::ResizeAlg::Convolution(filter));
                resizer.resize(&view, &mut out, &how).unwrap();
                out.into_vec()
            });
            let plain = results.next().unwrap();
            assert!(results.all(|other| other == plain), "{width} x {height}, {filter:?}");
        }
    }
}

#[test]
fn colours_change_as_computed_by_hand() {
    let image = RgbImage::from_raw(2, 1, vec![100, 50, 200, 10, 10, 10]).unwrap();
    let changed = |adjust: Adjust| {
        let mut image = image.clone();
        adjust.apply(&mut image);
        image.into_raw()
    };
    assert_eq!(changed(Adjust::Brightness(1.5)), [150, 75, 255, 15, 15, 15]);
    assert_eq!(changed(Adjust::Brightness(0.0)), [0; 6]);
    // Grey: 0.2989 * 100 + 0.587 * 50 + 0.114 * 200 = 82.04, and 10 (9 by 16-bit weights that sum to less than 1).
    let grey = changed(Adjust::Saturation(0.0));
    assert_eq!(grey[..3], [82; 3]);
    assert!(grey[3..].iter().all(|byte| (9..=10).contains(byte)));
    assert_eq!(changed(Adjust::Saturation(2.0))[..3], [118, 18, 255]); // 200 - 82, 100 - 82, 400 - 82
    let mean = changed(Adjust::Contrast(0.0));
    assert!(mean.iter().all(|byte| (45..=46).contains(byte)), "{mean:?}");
    for same in [Adjust::Brightness(1.0), Adjust::Contrast(1.0), Adjust::Saturation(1.0), Adjust::Hue(0.0)] {
        assert_eq!(changed(same), image.clone().into_raw(), "{same:?}");
    }
    // A third of the circle turns red to green to blue; grey has no hue.
    assert_eq!(changed(Adjust::Hue(1.0 / 3.0)), [200, 100, 50, 10, 10, 10]);
    assert_eq!(changed(Adjust::Hue(-1.0 / 3.0)), [50, 200, 100, 10, 10, 10]);
    assert_eq!(changed(Adjust::Hue(0.5)), [150, 200, 50, 10, 10, 10]);
    let mut every = RgbImage::from_fn(256, 64, |x, y| Rgb([x as u8, (4 * y) as u8, (x * y) as u8]));
    let before = every.clone();
    Adjust::Hue(0.25).apply(&mut every);
    Adjust::Hue(-0.25).apply(&mut every);
    assert!(every.iter().zip(before.iter()).all(|(a, b)| a.abs_diff(*b) <= 2), "there and back");
}

#[test]
fn rotations_turn_against_the_clock() {
    let image = greys(&[[1, 2, 3], [4, 5, 6], [7, 8, 9]]);
    let turn = |degrees: f64| first::<3>(&apply(&RandomRotation::new((degrees, degrees)).unwrap(), &image, 0));
    assert_eq!(turn(0.0), [[1, 2, 3], [4, 5, 6], [7, 8, 9]]);
    assert_eq!(turn(90.0), [[3, 6, 9], [2, 5, 8], [1, 4, 7]]);
    assert_eq!(turn(180.0), [[9, 8, 7], [6, 5, 4], [3, 2, 1]]);
    assert_eq!(turn(-90.0), [[7, 4, 1], [8, 5, 2], [9, 6, 3]]);
    let by = |degrees: f64| RandomRotation::new((degrees, degrees)).unwrap();
    // Bilinear by 45 degrees: the middle stays, a corner comes from outside.
    let smooth = by(45.0).interpolation(Interpolation::Bilinear).fill([200; 3]);
    let smooth = first::<3>(&apply(&smooth, &image, 0));
    assert_eq!(smooth[1][1], 5);
    // The right neighbour is at (1, 1) / sqrt(2) from the middle of the image: 5 + 0.7071 * (1 + 3) = 7.83.
    assert_eq!(smooth[1][2], 8);
    assert!(smooth[0][0] > 20);
    // Expanded by 45 degrees: the diagonal of 10 x 10 is 14.14, on the image's grid from -2.07 to 12.07.
    let square = RgbImage::from_pixel(10, 10, Rgb([9; 3]));
    assert_eq!(apply(&by(45.0).expand(true), &square, 0).dimensions(), (16, 16));
    assert_eq!(apply(&by(180.0).expand(true), &RgbImage::new(7, 4), 0).dimensions(), (7, 4));
    assert_eq!(apply(&by(90.0).expand(true), &RgbImage::new(8, 4), 0).dimensions(), (4, 8));
}

#[test]
fn erasing_fills_the_drawn_rectangle_alone() {
    let image = RgbImage::from_pixel(40, 30, Rgb([1, 2, 3]));
    let erase = RandomErasing::new(1.0).unwrap().value(Erased::Color([200, 100, 50]));
    for nth in 0..50 {
        let part = erase.draw(40, 30, &mut super::rng(nth)).unwrap();
        let inside = |x: u32, y: u32| {
            let (x, y) = (i64::from(x) - part.left, i64::from(y) - part.top);
            (0..i64::from(part.width)).contains(&x) && (0..i64::from(part.height)).contains(&y)
        };
        for (x, y, pixel) in apply(&erase, &image, nth).enumerate_pixels() {
            assert_eq!(pixel.0, if inside(x, y) { [200, 100, 50] } else { [1, 2, 3] });
        }
    }
    let noise = apply(&erase.value(Erased::Noise), &image, 0);
    let different: std::collections::HashSet<[u8; 3]> = noise.pixels().map(|pixel| pixel.0).collect();
    assert!(different.len() > 20);
}

#[test]
fn planes_are_red_then_green_then_blue() {
    let image = RgbImage::from_raw(3, 1, (1..=9).collect()).unwrap();
    let mut row = [0; 9];
    write_chw(&image, &mut row).unwrap();
    assert_eq!(row, [1, 4, 7, 2, 5, 8, 3, 6, 9]);
    let image = photo(37, 21);
    let mut row = vec![0; 3 * 37 * 21];
    write_chw(&image, &mut row).unwrap();
    for (x, y, pixel) in image.enumerate_pixels() {
        for channel in 0..3 {
            assert_eq!(row[channel * 37 * 21 + (y * 37 + x) as usize], pixel.0[channel]);
        }
    }
}
