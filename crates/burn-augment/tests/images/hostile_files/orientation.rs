//! Where a file may say how it is turned: EXIF at all its places, and XMP.

use super::{close, decode, encoded, jpeg, picture, webp};
use crate::exif::exif;
use crate::photo::png_chunk;
use flate2::{Compression, write::ZlibEncoder};
use image::{ImageFormat, RgbImage, imageops::rotate90};
use jpeg_encoder::ColorType;
use std::io::Write;

/// The orientation that means a quarter turn.
const QUARTER: u8 = 6;

/// A PNG with chunks before and behind its data.
fn png(before: &[Vec<u8>], behind: &[Vec<u8>]) -> Vec<u8> {
    let file = encoded(picture(), ImageFormat::Png);
    let end = file.len() - 12;
    [&file[..33], &before.concat(), &file[33..end], &behind.concat(), &file[end..]].concat()
}

/// A JPEG with APP1 segments.
fn jpeg_with(segments: &[Vec<u8>]) -> Vec<u8> {
    let file = jpeg(&picture(), 8, 6, ColorType::Rgb, false, None);
    let segment = |data: &Vec<u8>| [&[0xFF, 0xE1][..], &(data.len() as u16 + 2).to_be_bytes(), data].concat();
    [&file[..2], &segments.iter().map(segment).collect::<Vec<_>>().concat(), &file[2..]].concat()
}

fn prefixed(exif: Vec<u8>) -> Vec<u8> {
    [b"Exif\0\0", &exif[..]].concat()
}

fn xmp(property: &str) -> Vec<u8> {
    let packet = "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:Description xmlns:tiff=\"http://ns.adobe.com/tiff/1.0/\" ";
    format!("{packet}{property}</rdf:Description></x:xmpmeta>").into_bytes()
}

fn xmp_of(orientation: u8) -> Vec<u8> {
    xmp(&format!("tiff:Orientation=\"{orientation}\">"))
}

fn of_adobe(xmp: Vec<u8>) -> Vec<u8> {
    [b"http://ns.adobe.com/xap/1.0/\0", &xmp[..]].concat()
}

/// EXIF as ImageMagick puts it into a text.
fn raw_profile(exif: Vec<u8>) -> Vec<u8> {
    let bytes = prefixed(exif);
    let lines = bytes.chunks(36).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n");
    format!("\nexif\n{:8}\n{}", bytes.len(), lines.collect::<String>()).into_bytes()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[track_caller]
fn is(file: &[u8], meant: &RgbImage, of: &str) {
    let decoded = decode(file).unwrap_or_else(|error| panic!("{of}: {error}"));
    assert!(close(&decoded, meant, 4), "{of}: {:?}", decoded.dimensions());
}

#[track_caller]
fn is_turned(file: &[u8], of: &str) {
    is(file, &rotate90(&picture()), of);
}

#[track_caller]
fn is_not_turned(file: &[u8], of: &str) {
    is(file, &picture(), of);
}

#[test]
fn a_webp_is_turned_by_its_exif_and_by_its_xmp() {
    is_turned(&webp::with_chunks(&[(b"EXIF", exif(QUARTER))]), "EXIF");
    is_turned(&webp::with_chunks(&[(b"EXIF", prefixed(exif(QUARTER)))]), "EXIF with its prefix, as libvips writes it");
    is_turned(&webp::with_chunks(&[(b"XMP ", xmp_of(QUARTER))]), "XMP");
    is_not_turned(&webp::with_chunks(&[(b"EXIF", exif(1)), (b"XMP ", xmp_of(QUARTER))]), "EXIF counts before XMP");
}

#[test]
fn a_png_is_turned_by_its_exif_at_any_place() {
    let chunk = |kind: &[u8; 4], data: &[u8]| vec![png_chunk(kind, data)];
    is_turned(&png(&chunk(b"eXIf", &exif(QUARTER)), &[]), "eXIf before the data");
    is_turned(&png(&[], &chunk(b"eXIf", &exif(QUARTER))), "eXIf behind the data");
    is_turned(&png(&chunk(b"eXIf", &prefixed(exif(QUARTER))), &[]), "eXIf with its prefix");
    let name = b"Raw profile type exif\0";
    let text = [name, &raw_profile(exif(QUARTER))[..]].concat();
    is_turned(&png(&chunk(b"tEXt", &text), &[]), "a raw profile as text");
    is_turned(&png(&[], &chunk(b"tEXt", &text)), "a raw profile as text, behind the data");
    let packed = [name, &[0][..], &deflated(&raw_profile(exif(QUARTER)))].concat();
    is_turned(&png(&chunk(b"zTXt", &packed), &[]), "a raw profile as compressed text");
    is_not_turned(&png(&chunk(b"zTXt", &[name, &[0][..], &[7; 40]].concat()), &[]), "a raw profile that is damaged");
}

#[test]
fn a_png_is_turned_by_its_xmp() {
    let name = b"XML:com.adobe.xmp\0";
    let plain = [name, &[0, 0, 0, 0][..], &xmp_of(QUARTER)].concat();
    is_turned(&png(&[png_chunk(b"iTXt", &plain)], &[]), "XMP");
    let packed = [name, &[1, 0, 0, 0][..], &deflated(&xmp_of(QUARTER))].concat();
    is_turned(&png(&[], &[png_chunk(b"iTXt", &packed)]), "compressed XMP");
    let both = [png_chunk(b"iTXt", &plain), png_chunk(b"eXIf", &exif(1))];
    is_not_turned(&png(&both, &[]), "EXIF counts before XMP");
}

#[test]
fn of_two_exif_segments_the_first_counts() {
    let exif_of = |orientation| prefixed(exif(orientation));
    is_turned(&jpeg_with(&[exif_of(QUARTER), exif_of(1)]), "first turned");
    is_not_turned(&jpeg_with(&[exif_of(1), exif_of(QUARTER)]), "first not turned");
    is_turned(&webp::with_chunks(&[(b"EXIF", exif(QUARTER)), (b"EXIF", exif(1))]), "WebP");
    is_turned(&png(&[png_chunk(b"eXIf", &exif(QUARTER))], &[png_chunk(b"eXIf", &exif(1))]), "PNG");
}

#[test]
fn a_jpeg_is_turned_by_its_xmp() {
    is_turned(&jpeg_with(&[of_adobe(xmp_of(QUARTER))]), "an attribute");
    is_turned(&jpeg_with(&[of_adobe(xmp("><tiff:Orientation>6</tiff:Orientation>"))]), "an element");
    is_turned(&jpeg_with(&[of_adobe(xmp("tiff:Orientation = '6'>"))]), "an attribute, written otherwise");
    is_not_turned(&jpeg_with(&[of_adobe(xmp_of(QUARTER)), prefixed(exif(1))]), "EXIF counts before XMP");
    for nonsense in [">", "tiff:Orientation", "tiff:Orientation=\"", "tiff:Orientation=\"77\">", "tiff:Orientation>9<"]
    {
        is_not_turned(&jpeg_with(&[of_adobe(xmp(nonsense))]), nonsense);
    }
}

#[test]
fn the_orientation_may_be_of_the_type_long() {
    let mut long = exif(QUARTER);
    long[12] = 4;
    is_turned(&jpeg_with(&[prefixed(long.clone())]), "little endian");
    is_turned(&webp::with_chunks(&[(b"EXIF", long)]), "in a WebP");
    for (kind, value) in [(3, [0, QUARTER, 0, 0]), (4, [0, 0, 0, QUARTER])] {
        let entry = [&[0x01, 0x12, 0, kind, 0, 0, 0, 1][..], &value].concat();
        let big = [&b"MM\0*\0\0\0\x08\0\x01"[..], &entry, &[0; 4]].concat();
        is_turned(&jpeg_with(&[prefixed(big)]), "big endian");
    }
    let mut of_text = exif(QUARTER);
    of_text[12] = 2;
    is_not_turned(&jpeg_with(&[prefixed(of_text)]), "no number");
}
