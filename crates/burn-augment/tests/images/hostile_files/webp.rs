//! WebPs with chunks that claim wrong sizes.

use super::{close, decode, encoded, picture};
use burn_augment::images::VisionError;
use image::{ImageFormat, RgbImage};

/// The data of a lossy picture, [`picture`] as libwebp made it.
const LOSSY: [u8; 120] = [
    0xD0, 0x03, 0x00, 0x9D, 0x01, 0x2A, 0x08, 0x00, 0x06, 0x00, 0x00, 0x80, 0x08, 0x25, 0xB0, 0x02, 0x74, 0xBA, 0x01,
    0xF8, 0x01, 0xFA, 0x81, 0x4A, 0x03, 0xF0, 0x01, 0xC0, 0x01, 0xE4, 0x2C, 0x52, 0x00, 0x1A, 0x5B, 0x99, 0x92, 0x94,
    0xE0, 0x00, 0xFE, 0xFD, 0xBA, 0xFC, 0xD5, 0xE7, 0x7B, 0xF1, 0xAD, 0xFF, 0xCD, 0xCF, 0xF6, 0x37, 0xCD, 0x63, 0xFF,
    0xFE, 0xF7, 0xFC, 0x93, 0xFF, 0xE8, 0xFE, 0x1B, 0x13, 0x3F, 0x2F, 0xF9, 0x9B, 0x0B, 0x3C, 0x86, 0xA9, 0x82, 0x43,
    0x4E, 0x01, 0x6F, 0xFC, 0xC8, 0xDF, 0xFF, 0xBA, 0xCF, 0xFF, 0xF4, 0x35, 0x8D, 0xFF, 0xEF, 0xFF, 0xAB, 0x06, 0x9F,
    0x57, 0x3F, 0xE7, 0xF8, 0xB7, 0xCD, 0x8E, 0xF4, 0xC3, 0xF7, 0xA5, 0x37, 0x8C, 0xCB, 0x16, 0x58, 0xA7, 0x9F, 0xF2,
    0x7C, 0x7F, 0x8D, 0xE0, 0x00, 0x00,
];

/// The data of a compressed alpha channel for it.
const ALPHA: [u8; 17] =
    [0x09, 0x20, 0xD2, 0xB6, 0x19, 0x9B, 0x8B, 0xF9, 0x17, 0x7A, 0x74, 0x05, 0x11, 0x91, 0xB4, 0xDE, 0x00];

const ALPHA_FLAG: u8 = 0x10;
const EXIF_FLAG: u8 = 0x08;
const XMP_FLAG: u8 = 0x04;
const ANIMATION_FLAG: u8 = 0x02;

pub(crate) fn riff_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut chunk = [kind, &(data.len() as u32).to_le_bytes()[..], data].concat();
    chunk.resize(chunk.len().next_multiple_of(2), 0);
    chunk
}

fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
    riff_chunk(b"RIFF", &[&b"WEBP"[..], &chunks.concat()].concat())
}

/// Each side less one, in 24 bits.
fn sides(width: u32, height: u32) -> Vec<u8> {
    [width, height].iter().flat_map(|side| (side - 1).to_le_bytes().into_iter().take(3)).collect()
}

fn canvas(flags: u8, width: u32, height: u32) -> Vec<u8> {
    riff_chunk(b"VP8X", &[&[flags, 0, 0, 0][..], &sides(width, height)].concat())
}

/// A frame at a place, in steps of two pixels.
fn frame(x: u8, y: u8, width: u32, height: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    let header = [&[x, 0, 0, y, 0, 0][..], &sides(width, height), &[100, 0, 0, 0]].concat();
    riff_chunk(b"ANMF", &[header, chunks.concat()].concat())
}

/// An animation on a canvas of this size.
pub(crate) fn animation(flags: u8, width: u32, height: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    file(&[canvas(ANIMATION_FLAG | flags, width, height), riff_chunk(b"ANIM", &[0; 6]), frames.concat()])
}

/// An animation of pictures that are as large as the canvas.
pub(crate) fn animated(width: u32, height: u32, pictures: &[&RgbImage]) -> Vec<u8> {
    let frame = |image: &&RgbImage| frame(0, 0, image.width(), image.height(), &[lossless(image)]);
    animation(0, width, height, &pictures.iter().map(frame).collect::<Vec<_>>())
}

/// The chunk of the picture.
fn lossless(image: &RgbImage) -> Vec<u8> {
    encoded(image.clone(), ImageFormat::WebP)[12..].to_vec()
}

/// [`picture`] with chunks behind it.
pub(crate) fn with_chunks(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let flag = |(kind, _): &(&[u8; 4], _)| if *kind == b"EXIF" { EXIF_FLAG } else { XMP_FLAG };
    let flags = chunks.iter().fold(0, |flags, chunk| flags | flag(chunk));
    let chunks = chunks.iter().map(|(kind, data)| riff_chunk(kind, data)).collect::<Vec<_>>();
    file(&[canvas(flags, 8, 6), lossless(&picture()), chunks.concat()])
}

fn lossy() -> Vec<u8> {
    riff_chunk(b"VP8 ", &LOSSY)
}

/// A lossy picture that claims another size.
fn lossy_of(width: u16, height: u16) -> Vec<u8> {
    let mut data = LOSSY;
    data[6..8].copy_from_slice(&width.to_le_bytes());
    data[8..10].copy_from_slice(&height.to_le_bytes());
    riff_chunk(b"VP8 ", &data)
}

pub(crate) fn lossy_file_of(width: u16, height: u16) -> Vec<u8> {
    file(&[lossy_of(width, height)])
}

/// A lossless picture that claims another size.
fn lossless_of(width: u32, height: u32) -> Vec<u8> {
    let mut chunk = lossless(&picture());
    chunk[9..13].copy_from_slice(&((width - 1) | (height - 1) << 14).to_le_bytes());
    chunk
}

/// A chunk that claims all the bytes that there can be.
fn endless(kind: &[u8; 4]) -> Vec<u8> {
    [kind, &0xFFFF_FFFEu32.to_le_bytes()[..], &[0; 8]].concat()
}

/// The lossy picture in each form that a file can have, alone and with an alpha channel that is opaque or not.
pub(crate) fn lossy_files() -> Vec<Vec<u8>> {
    let opaque = riff_chunk(b"ALPH", &[&[0][..], &[255; 48]].concat());
    let clear = riff_chunk(b"ALPH", &ALPHA);
    vec![
        file(&[lossy()]),
        file(&[canvas(0, 8, 6), lossy()]),
        file(&[canvas(ALPHA_FLAG, 8, 6), clear.clone(), lossy()]),
        animation(0, 8, 6, &[frame(0, 0, 8, 6, &[lossy()])]),
        animation(ALPHA_FLAG, 8, 6, &[frame(0, 0, 8, 6, &[opaque, lossy()])]),
        animation(ALPHA_FLAG, 10, 12, &[frame(1, 2, 8, 6, &[clear, lossy()])]),
    ]
}

#[test]
fn lossy_pictures_come_in_many_ways() {
    let images: Vec<RgbImage> = lossy_files().iter().map(|file| decode(file).unwrap()).collect();
    let (small, last) = (&images[..5], &images[5]);
    assert!(small.iter().all(|image| close(image, &images[0], 1)));
    assert!(close(&images[0], &picture(), 150), "colours are stored for 2 x 2 pixels: {:?}", images[0]);
    assert_eq!(last.dimensions(), (10, 12));
}

/// Bytes after the end that a file states are not read. The byte that pads a chunk may be missing.
#[test]
fn the_end_is_where_the_file_says() {
    let exif = riff_chunk(b"EXIF", b"II*");
    let whole = file(&[canvas(EXIF_FLAG, 8, 6), lossy(), exif]);
    let image = decode(&whole).unwrap();
    for behind in [&b"more"[..], &endless(b"EXIF"), &endless(b"ICCP"), &lossy_of(16_383, 16_383)] {
        assert_eq!(decode(&[&whole, behind].concat()).unwrap(), image);
    }
    let mut odd = whole[..whole.len() - 1].to_vec();
    assert!(matches!(decode(&odd), Err(VisionError::Truncated)));
    odd[4] -= 1;
    assert_eq!(decode(&odd).unwrap(), image);
}

/// Some tools remove EXIF and leave its flag. libwebp decodes such files.
#[test]
fn flags_of_metadata_that_are_not_there_do_not_matter() {
    let exif = riff_chunk(b"EXIF", &crate::exif::exif(6));
    for flags in [0, EXIF_FLAG, XMP_FLAG, EXIF_FLAG | XMP_FLAG] {
        assert_eq!(decode(&file(&[canvas(flags, 8, 6), lossless(&picture())])).unwrap(), picture(), "{flags}");
        let turned = decode(&file(&[canvas(flags, 8, 6), lossless(&picture()), exif.clone()])).unwrap();
        assert_eq!(turned, image::imageops::rotate90(&picture()), "{flags}");
    }
}

/// The limits are compared with the size of the canvas. So the other sizes must agree with it before the decoder sees
/// them.
#[test]
fn chunks_that_contradict_each_other_are_refused() {
    let malformed = |bytes: Vec<u8>| match decode(&bytes) {
        Err(VisionError::Malformed(what)) => what,
        other => panic!("{other:?}"),
    };
    let alpha = || riff_chunk(b"ALPH", &[0, 255]);
    let other_size = "a picture and its frame or canvas differ in size";
    // Written over the end of a frame that says it has one pixel.
    let larger = frame(0, 0, 1, 1, &[alpha(), lossy()]);
    assert_eq!(malformed(animation(ALPHA_FLAG, 1, 1, &[larger])), other_size);
    for huge in [lossy_of(16_383, 16_383), lossless_of(16_383, 16_383)] {
        assert_eq!(malformed(file(&[canvas(0, 1, 1), huge.clone()])), other_size);
        assert_eq!(malformed(animation(0, 1, 1, &[frame(0, 0, 1, 1, std::slice::from_ref(&huge))])), other_size);
        assert_eq!(malformed(file(&[lossy(), huge])), other_size);
    }
    // Only a picture that is a key frame has a size.
    let mut delta = lossy();
    delta[8] |= 1;
    assert_eq!(malformed(file(&[canvas(0, 8, 6), delta.clone()])), other_size);
    assert_eq!(malformed(file(&[delta])), "it does not begin with the size of an image");

    let outside = "a frame lies outside the canvas";
    assert_eq!(malformed(animation(0, 8, 6, &[frame(1, 0, 8, 6, &[lossy()])])), outside);
    assert_eq!(malformed(animation(0, 8, 6, &[frame(0, 255, 8, 6, &[lossy()])])), outside);
    assert_eq!(malformed(animation(0, 8, 6, &[frame(0, 0, 1 << 24, 1, &[lossy()])])), outside);
    assert_eq!(malformed(animation(0, 8, 6, &[frame(0, 0, 8, 6, &[])])), "a frame has no picture");
    assert_eq!(malformed(animation(0, 8, 6, &[riff_chunk(b"ANMF", &[0; 11])])), "a frame is too short");
    let hidden = [alpha(), riff_chunk(b"JUNK", &LOSSY), lossy()];
    let hidden = animation(ALPHA_FLAG, 8, 6, &[frame(0, 0, 8, 6, &hidden)]);
    assert_eq!(malformed(hidden), "no picture follows the alpha channel of a frame");

    assert_eq!(malformed(file(&[])), "it has no chunks");
    assert_eq!(malformed(file(&[riff_chunk(b"JUNK", &[]), lossy()])), "it does not begin with the size of an image");
    let mut short = file(&[lossy()]);
    short[4] -= 4;
    assert_eq!(malformed(short), "a chunk is longer than what contains it");
}

/// The decoder would first allocate memory for them: 4 GB.
#[test]
fn chunks_that_end_behind_the_file_are_refused() {
    let truncated = |bytes: Vec<u8>| match decode(&bytes) {
        Err(VisionError::Truncated) => {}
        other => panic!("{other:?}"),
    };
    truncated(file(&[canvas(EXIF_FLAG, 8, 6), lossy(), endless(b"EXIF")]));
    truncated(animation(0, 8, 6, &[frame(0, 0, 8, 6, &[lossy(), endless(b"EXIF")])]));
    truncated(animation(0, 8, 6, &[endless(b"ANMF")]));
    truncated(file(&[endless(b"VP8 ")]));
    truncated(file(&[endless(b"VP8X")]));
}
