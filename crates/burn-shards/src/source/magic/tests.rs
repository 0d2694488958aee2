use super::*;
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};

fn is(file: &[u8]) -> Option<&'static str> {
    known(file).map(|magic| magic.is)
}

/// A start of a file, with zeros behind it.
fn long(start: &[u8]) -> Vec<u8> {
    [start, &[0; 3000]].concat()
}

#[test]
fn formats_are_told_by_all_their_marks() {
    assert_eq!(is(b"\x93NUMPY\x01\x00"), Some(NPY.is));
    assert_eq!(is(b"BZh91AY&SY"), Some("compressed with bzip2"));
    assert_eq!(is(b"\xff\xff\xff\xff\x60\x01\0\0\x10\0\0\0"), Some("an Arrow stream, as `datasets` saves"));
    assert_eq!(is(b"\xff\xff\xff\xff\x60\x01\0\0\xff\0\0\0"), None, "numbers of a token file");
    assert_eq!(is(&[&[0; 257][..], b"ustar\0"].concat()), Some("a tar"));
    for none in [&b"BZh is a word"[..], b"", b"\x1f", b"\x1f\x8b\x07", b"{}", b"PK", b"PAR"] {
        assert_eq!(is(none), None, "{none:?}");
    }
}

#[test]
fn short_marks_need_what_follows_them() {
    let zip = |name: &str| [&b"PK\x03\x04"[..], &[0; 22], &[name.len() as u8, 0, 0, 0], name.as_bytes()].concat();
    let mp3 = |next: &[u8]| [&b"\xff\xfb\x90\x64"[..], &[0; 413], next].concat();
    let jpeg = |next: &[u8]| [&b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"[..], next].concat();
    let tensors = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let utf16: Vec<u8> = "\u{feff}{\"a\": 1}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bmp = |field: u8| [&b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0"[..], &[field, 0, 0, 0]].concat();
    for (file, right) in [
        (zip("x.npy"), Some("NumPy arrays")),
        (zip("archive/data.pkl"), Some("torch.save")),
        (zip("x.txt"), Some("zip")),
        (mp3(b"\xff\xfb\x90\x64"), Some("sound")),
        (mp3(b"\0\0\0\0"), None),
        (jpeg(b"\xff\xdb"), Some("image")),
        (jpeg(b"\0\0"), None),
        (b"\xff\xd8\xff".to_vec(), None),
        (tensors(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#), Some("safetensors")),
        (tensors("these are bytes"), None),
        (utf16, Some("UTF-16")),
        (b"\xff\xfe\x01\x10\x02\x10\x03\x10\x04\x10".to_vec(), None),
        (b"\x80\x04\x95\x1d\0\0\0\0\0\0\0".to_vec(), Some("pickle")),
        (b"\x80\x04\x95\x1d\0\0\0\0\0\x01\0".to_vec(), None),
        (b"\x80\x02]q\0(K\x01".to_vec(), Some("pickle")),
        (b"\x80\x03cnumpy.core.multiarray\n_reconstruct\n".to_vec(), Some("pickle")),
        (b"\x80\x02c\x01\x02\n".to_vec(), None),
        (bmp(40), Some("image")),
        (bmp(41), None),
        (b"fLaC\0\0\0\x22".to_vec(), Some("sound")),
        (b"fLaC\0\0\0\x23".to_vec(), None),
        (b"\x1f\x8b\x08\xe0".to_vec(), None),
    ] {
        let told = is(&file);
        assert!(
            right.map_or(told.is_none(), |right| told.is_some_and(|told| told.contains(right))),
            "{right:?}: {told:?}"
        );
    }
}

#[test]
fn texts_are_told_apart() {
    let lines = |line: &str| line.repeat(300);
    for (text, right) in [
        (lines("It was a bright cold day in April.\n"), "a text"),
        (lines("Grüße, Zoë, 你好\n"), "a table in a text (CSV)"),
        (lines("{\"a\": 1}\n"), JSON.is),
        (format!("[{}1]", lines("1, ")), JSON.is),
        (lines("1,\"a,b\",2\n2,c,3\n"), "a table in a text (CSV)"),
        (lines("a\tb\r\nc\td\r\n"), "a table in a text (CSV)"),
        (lines("a, b\nc\n"), "a text"),
        (format!("\u{feff}\n <!DOCTYPE html>{}", lines("<p>")), "an answer of a web server (HTML, XML or an error)"),
        (format!("<?xml version=\"1.0\"?>{}", lines("<Error>")), "an answer of a web server (HTML, XML or an error)"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n".into(), LFS.is),
        ("404: Not Found".into(), "an answer of a web server (HTML, XML or an error)"),
        ("Entry not found".into(), "an answer of a web server (HTML, XML or an error)"),
        ("/annex/objects/SHA256E-s1--00.bin\n".into(), "a pointer of git-annex"),
    ] {
        assert_eq!(is(text.as_bytes()), Some(right), "{text:.60}");
    }
    // Of another encoding behind its first words.
    assert_eq!(
        is(b"<html><head><title>Zo\xeb</title></head></html>"),
        Some("an answer of a web server (HTML, XML or an error)")
    );
    for none in [&b"a few letters"[..], b"{\"a\": 1}", &long(b"It was a bright cold day in April."), &[b'a'; 31]] {
        assert_eq!(is(none), None, "{none:?}");
    }
}

/// A random start is the worst case of `u16` tokens: their vocabularies use less of it.
#[test]
fn random_tokens_are_no_other_format() {
    let mut rng = ChaCha8Rng::seed_from_u64(34);
    for vocabulary in [256u32, 32_000, 50_257, 65_536] {
        for _ in 0..200_000 {
            let tokens: Vec<u8> =
                (0..32).flat_map(|_| (rng.random_range(0..vocabulary) as u16).to_le_bytes()).collect();
            assert_eq!(is(&tokens), None, "{tokens:?}");
        }
    }
}
