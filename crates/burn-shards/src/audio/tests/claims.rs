//! Files whose header claims another length, start or place than they have.

use super::*;

/// A box of an MP4 file, of numbers of 32 bits and bytes behind them.
fn boxed(name: &[u8; 4], numbers: &[u32], rest: &[u8]) -> Vec<u8> {
    let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    [&(8 + numbers.len() as u32 + rest.len() as u32).to_be_bytes(), &name[..], &numbers, rest].concat()
}

/// The film of the tests, with this many packets in its first part, and three in each fragment behind it.
fn fragments(first: u32) -> Vec<u8> {
    let (_, film, ..) = TONES[2];
    let place = |name: &[u8; 4]| film.windows(4).position(|bytes| bytes == name).unwrap() + 4;
    let number = |at: usize| u32::from_be_bytes(film[at..at + 4].try_into().unwrap());
    let sizes: Vec<u32> = (0..41).map(|n| number(place(b"stsz") + 12 + 4 * n)).collect();
    let (before, behind) = sizes.split_at(first as usize);
    let more = boxed(b"mvex", &[], &boxed(b"trex", &[0, 1, 1, 1024, 0, 0], b""));
    let start = place(b"moov") - 8; // it is the last box
    let mut file = [&film[..28], &film[start..], &more].concat();
    let length = file.len() as u32;
    for (at, number) in [
        (start, length - 28),
        (place(b"mdhd") + 16, first * 1024),
        (place(b"stts") + 4, first.min(1)),
        (place(b"stts") + 8, first),
        (place(b"stsc") + 12, first.max(1)),
        (place(b"stsz") + 8, first),
        (place(b"stco") + 8, length + 8),
    ] {
        file[at + 28 - start..][..4].copy_from_slice(&number.to_be_bytes());
    }
    let mut at = place(b"mdat");
    let end = at + before.iter().sum::<u32>() as usize;
    file.extend(boxed(b"mdat", &[], &film[at..end]));
    at = end;
    for (n, sizes) in (2..).zip(behind.chunks(3)) {
        let fragment = |start: u32| {
            let header = boxed(b"tfhd", &[1, 1, 0, start], b"");
            let run = boxed(b"trun", &[&[0x200, sizes.len() as u32], sizes].concat(), b"");
            boxed(b"moof", &[], &[boxed(b"mfhd", &[0, n], b""), boxed(b"traf", &[], &[header, run].concat())].concat())
        };
        let end = at + sizes.iter().sum::<u32>() as usize;
        let start = file.len() + fragment(0).len() + 8;
        file.extend(fragment(start as u32));
        file.extend(boxed(b"mdat", &[], &film[at..end]));
        at = end;
    }
    file
}

#[test]
fn a_film_in_fragments_is_as_long_as_all_of_them() {
    let whole = samples(TONES[2].1.to_vec()).unwrap();
    for first in [0, 1, 7, 40] {
        let audio = Audio::from_bytes(fragments(first)).unwrap_or_else(|error| panic!("{first}: {error}"));
        assert_eq!(audio.frames(), 41 * 1024, "{first}"); // in fragments the last packet is whole
        assert_eq!(audio.samples().unwrap()[..whole.len()], whole);
        assert_eq!(*audio.crop(20_000..20_100).samples().unwrap(), whole[20_000..20_100]);
    }
}

/// The MP3 file of the tests with another number of packets in its tag, or none.
fn tagged(packets: Option<u32>) -> Vec<u8> {
    let (_, file, ..) = TONES[0];
    let mut file = file.to_vec();
    let name = file.windows(4).position(|bytes| bytes == b"Xing" || bytes == b"Info").unwrap();
    file[name + 154..name + 156].fill(0); // no checksum
    match packets {
        Some(packets) => file[name + 8..name + 12].copy_from_slice(&packets.to_be_bytes()),
        None => {
            file[name + 7] &= !1; // the tag does not have the number
            file[name + 8..288].rotate_left(4);
        }
    }
    file
}

#[test]
fn a_tag_without_a_number_of_packets_is_that_of_an_unknown_length() {
    let (_, file, ..) = TONES[0];
    let whole = samples(file.to_vec()).unwrap();
    assert!(samples(tagged(Some(72))).unwrap() == whole);
    for claim in [Some(0), None] {
        let audio = Audio::from_bytes(tagged(claim)).unwrap();
        assert_eq!(audio.frames(), 72 * 576 - 1105, "{claim:?}"); // what was added at the end stays
        assert!(audio.samples().unwrap().starts_with(&whole));
        assert_eq!(*audio.crop(30_000..30_100).samples().unwrap(), whole[30_000..30_100]);
    }
}
