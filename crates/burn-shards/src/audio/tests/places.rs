//! Sounds that do not start at 0, that follow another, or whose places are hard to find.

use super::*;

const FRAMES: usize = 100_000;

/// The pages of FLAC in Ogg, each with a packet: what precedes the first frame has this number of frames.
fn pages(serial: u32, start: u64) -> Vec<Vec<u8>> {
    let source = MemSource::from_samples(&noise(FRAMES, 16), 1, 16, 44_100);
    let config = Encoder::default().into_verified().unwrap();
    let stream = flacenc::encode_with_fixed_block_size(&config, source, config.block_size).unwrap();
    let header = &flac(&noise(FRAMES, 16), 1, 16)[..42];
    let mut packets =
        vec![(0, [&b"\x7fFLAC\x01\0\0\x01"[..], header].concat()), (0, vec![0x84, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0])];
    for n in 0..stream.frame_count() {
        let mut sink = ByteSink::new();
        stream.frame(n).unwrap().write(&mut sink).unwrap();
        packets.push((start + FRAMES.min((n + 1) * config.block_size) as u64, sink.into_inner()));
    }
    let last = packets.len() - 1;
    let page = |(n, (end, packet)): (usize, (u64, Vec<u8>))| {
        let kind = if n == 0 {
            2
        } else if n == last {
            4
        } else {
            0
        };
        let pieces = packet.len() / 255 + 1;
        let mut page =
            [&b"OggS\0"[..], &[kind], &end.to_le_bytes(), &serial.to_le_bytes(), &(n as u32).to_le_bytes()].concat();
        page.extend([0, 0, 0, 0, pieces as u8]);
        page.extend(vec![255; pieces - 1]);
        page.push((packet.len() % 255) as u8);
        page.extend(packet);
        let checksum = page.iter().fold(0_u32, |sum, byte| {
            let step = |sum: u32, _| if sum >> 31 == 1 { sum << 1 ^ 0x04C1_1DB7 } else { sum << 1 };
            (0..8).fold(sum ^ u32::from(*byte) << 24, step)
        });
        page[22..26].copy_from_slice(&checksum.to_le_bytes());
        page
    };
    packets.into_iter().enumerate().map(page).collect()
}

/// Whether the whole, and parts near and far, are the noise.
fn is_right(file: Vec<u8>) {
    let right: Vec<f32> = noise(FRAMES, 16).iter().map(|sample| *sample as f32 / 32_768.0).collect();
    let audio = Audio::from_bytes(file).unwrap();
    assert_eq!(audio.frames(), FRAMES);
    assert!(*audio.samples().unwrap() == right);
    for start in [0, 10, 20_000, 50_000, 90_000, FRAMES - 1] {
        let end = FRAMES.min(start + 5000);
        assert!(*audio.clone().crop(start..end).samples().unwrap() == right[start..end], "from {start}");
    }
}

#[test]
fn a_stream_that_was_recorded_from_its_middle_starts_at_its_first_frame() {
    for start in [0, 1000, 1 << 20, 1 << 40] {
        is_right(pages(7, start).concat());
    }
}

#[test]
fn a_chain_of_sounds_is_an_error_and_no_part_of_them() {
    let (one, two) = (pages(7, 0).concat(), pages(8, 0).concat());
    for chain in [[one.clone(), two.clone()].concat(), [&one[..], &two, &pages(9, 0).concat()].concat()] {
        let error = Audio::from_bytes(chain).unwrap_err().to_string();
        assert!(error.contains("a chain of several sounds") && error.contains("save it as FLAC"), "{error}");
    }
}

#[test]
fn two_sounds_side_by_side_are_searched_without_end_by_nobody() {
    let both = pages(7, 0).into_iter().zip(pages(8, 0)).flat_map(|(one, two)| [one, two]);
    is_right(both.flatten().collect());
}

#[test]
fn a_false_table_of_places_is_not_believed() {
    let file = flac(&noise(FRAMES, 16), 1, 16);
    let point = |frame: u64, place: u64| [&frame.to_be_bytes()[..], &place.to_be_bytes(), &[16, 0]].concat();
    for points in [
        vec![point(0, 0), point(90_000, 0)],
        vec![point(90_000, 140_000), point(0, 180_000)],
        vec![point(0, 1 << 40), point(90_000, 1 << 41)],
        vec![point(0, 50_001), point(90_000, 50_002)],
        vec![point(0, u64::MAX), point(90_000, u64::MAX - 9)],
    ] {
        let table = points.concat();
        let mut file = [&file[..42], &[0x83, 0, 0, table.len() as u8], &table, &file[42..]].concat();
        file[4] = 0; // the table is the last block
        is_right(file);
    }
}
