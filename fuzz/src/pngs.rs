//! PNGs of each colour and depth, small.

use png::{BitDepth, ColorType, Encoder};

fn file(colour: ColorType, depth: BitDepth, animated: bool) -> Vec<u8> {
    let (width, height) = (9, 5);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    if colour == ColorType::Indexed {
        let colours = (0..3 << (depth as u8).min(8)).map(|at| (at * 5 % 256) as u8);
        encoder.set_palette(colours.collect::<Vec<u8>>());
    }
    if animated {
        encoder.set_animated(2, 0).expect("two frames");
    }
    let row = (width as usize * colour.samples() * depth as usize).div_ceil(8);
    let pixels: Vec<u8> = (0..row * height as usize).map(|at| (at * 37 % 251) as u8).collect();
    let mut writer = encoder.write_header().expect("memory has no errors");
    let exif = png::chunk::ChunkType(*b"eXIf");
    writer.write_chunk(exif, b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0").expect("memory");
    (0..=usize::from(animated)).for_each(|_| writer.write_image_data(&pixels).expect("memory has no errors"));
    writer.finish().expect("memory has no errors");
    file
}

/// A file of each colour and depth, and an animation.
pub fn pngs() -> Vec<Vec<u8>> {
    use BitDepth::{Eight, Four, One, Sixteen, Two};
    let depths = |colour| match colour {
        ColorType::Grayscale => &[One, Two, Four, Eight, Sixteen][..],
        ColorType::Indexed => &[One, Two, Four, Eight],
        _ => &[Eight, Sixteen],
    };
    let colours =
        [ColorType::Grayscale, ColorType::Rgb, ColorType::Indexed, ColorType::GrayscaleAlpha, ColorType::Rgba];
    let all =
        colours.into_iter().flat_map(|colour| depths(colour).iter().map(move |depth| file(colour, *depth, false)));
    all.chain([file(ColorType::Rgba, Eight, true)]).collect()
}
