//! Damaged files, and files that claim what they do not have.

use super::{
    made::{varint, zigzag},
    written::{plain, properties, row, write},
    *,
};
use crate::parquet::{
    columns::Leaf,
    footer::check_schema,
    pages::{Note, PageHeader, PageKind, PagePlace, PageQueue, Writer, decode, delta_lengths, inflate},
};
use bytes::Bytes;
use parquet::{
    basic::{Compression, CompressionCodec, Encoding},
    column::page::PageReader,
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter},
        properties::WriterVersion,
    },
};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::{fs, slice};

#[test]
fn damaged_files_give_rows_or_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let mut files = Vec::new();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for properties in [
            plain(version),
            properties(version, Compression::SNAPPY, true),
            properties(version, Compression::ZSTD(Default::default()), false),
            properties(version, Compression::GZIP(Default::default()), false).set_dictionary_enabled(false),
            properties(version, Compression::LZ4_RAW, true)
                .set_dictionary_enabled(false)
                .set_column_encoding("id".into(), Encoding::DELTA_BINARY_PACKED)
                .set_column_encoding("word".into(), Encoding::DELTA_BYTE_ARRAY),
        ] {
            write(&path, 60, 40, properties);
            files.push(fs::read(&path).unwrap());
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let options = Options { memory: 1 << 20, index_dir: Some(folder.path().join("none")), ..Options::default() };
    let (mut right, mut errors) = (0, 0);
    for round in 0..3000 {
        let mut bytes = files[round % files.len()].clone();
        let length = bytes.len();
        match rng.random_range(0..5) {
            0 => bytes.truncate(rng.random_range(0..length)),
            1 => bytes[rng.random_range(0..length)] ^= 1 << rng.random_range(0..8),
            2 => bytes[rng.random_range(length - length / 4..length)] = rng.random(),
            3 => bytes.extend_from_slice(&files[0][..rng.random_range(1..100)]),
            _ => (0..4).for_each(|_| bytes[rng.random_range(0..length)] = rng.random()),
        }
        fs::write(&path, &bytes).unwrap();
        let Ok(source) = open(std::slice::from_ref(&path), &Selection::All, &options) else {
            errors += 1;
            continue;
        };
        for at in [0, 23, 39, 40, 59].into_iter().filter(|at| *at < source.len()) {
            match source.read(at) {
                Ok(found) => right += usize::from(found == row(at)),
                Err(_) => errors += 1,
            }
        }
        _ = source.index();
    }
    assert!(right > 3000 && errors > 1500, "{right} right, {errors} errors");
}

/// A header of the first version: sizes, then values of an encoding with RLE levels.
fn header(size: u32, stored: u32, values: u32, encoding: u8) -> Vec<u8> {
    let mut bytes = vec![0x15, 0]; // type: data page
    for (field, number) in [(0x15, size), (0x15, stored)] {
        bytes.push(field);
        bytes.extend(zigzag(number));
    }
    bytes.push(0x2C); // the header of the first version is field 5
    for number in [values, encoding.into(), 3, 3] {
        bytes.push(0x15);
        bytes.extend(zigzag(number));
    }
    bytes.extend([0, 0]);
    bytes
}

/// A leaf of the written files.
fn leaf(column: usize) -> Leaf {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 1, 1, plain(WriterVersion::PARQUET_1_0));
    open(&[path], &Selection::All, &Options::default()).unwrap().leaves(0)[column].clone()
}

/// Reads one page of a column of the written files, from its bytes alone.
fn page(column: usize, codec: CompressionCodec, bytes: Vec<u8>, values: u64) -> Result<(), String> {
    let mut pages = PageQueue::new(&leaf(column), codec, Writer::default(), vec![Bytes::from(bytes)], values, 1 << 20);
    pages.get_next_page().map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn claims_are_checked_before_memory_is_allocated() {
    let most = i32::MAX as u32;
    let with =
        |size, stored, values, encoding, data: &[u8]| [header(size, stored, values, encoding), data.to_vec()].concat();
    let snappy = CompressionCodec::SNAPPY;
    assert_eq!(PageHeader::read(&with(8, 8, 1, 0, &[0; 8])).unwrap().page, {
        PageKind::V1 { values: 1, encoding: Encoding::PLAIN, defs: Encoding::RLE, reps: Encoding::RLE }
    });
    assert_eq!(page(0, CompressionCodec::UNCOMPRESSED, with(8, 8, 1, 0, &[0; 8]), 1), Ok(()));
    for (problem, codec, column, bytes) in [
        ("it takes 2147483647 bytes", snappy, 0, with(most, 4, 1, 0, &[0; 4])),
        ("a page claims 2147483647 bytes", snappy, 0, with(8, most, 1, 0, &[0; 4])),
        ("more values than", snappy, 0, with(8, 4, most, 0, &[0; 4])),
        ("another size", CompressionCodec::UNCOMPRESSED, 0, with(100, 4, 1, 0, &[0; 4])),
        ("another size", snappy, 0, with(1000, 3, 1, 0, &[0xE8, 7, 0])),
        ("another size", CompressionCodec::LZ4_RAW, 0, with(1_000_000, 3, 1, 0, &[0; 3])),
        ("no dictionary", snappy, 0, with(8, 4, 1, 8, &[0; 4])),
        ("levels of a page are larger", CompressionCodec::UNCOMPRESSED, 1, with(8, 8, 1, 0, &[0xFF; 8])),
        ("lengths for", CompressionCodec::UNCOMPRESSED, 4, with(9, 9, 1, 6, &[128, 1, 4, 255, 255, 255, 255, 7, 0])),
    ] {
        let error = page(column, codec, bytes, 1).unwrap_err();
        assert!(error.contains(problem) || (problem == "no dictionary" && error.contains("dictionary")), "{error}");
    }
    // As many values as the row group says, and yet far more than the page can hold.
    let error = page(0, snappy, with(8, 4, most, 0, &[0; 4]), u64::MAX).unwrap_err();
    assert!(error.contains("it takes"), "{error}");
}

#[test]
fn bombs_stop_at_the_size_that_their_page_claims() {
    let zeros = vec![0; 8 << 20];
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, &zeros).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = zstd::bulk::compress(&zeros, 3).unwrap();
    for (codec, stored) in [(CompressionCodec::GZIP, gzip), (CompressionCodec::ZSTD, zstd)] {
        let mut into = Vec::new();
        assert!(inflate(codec, &stored, 1000, &mut into).is_err());
        assert!(into.capacity() < 64 << 10, "{codec:?}: {} bytes", into.capacity());
        let mut into = Vec::new();
        inflate(codec, &stored, zeros.len(), &mut into).unwrap();
        assert_eq!(into, zeros);
    }
}

#[test]
fn schemas_that_are_too_deep_or_cut_off_are_refused() {
    // Field 2: a list of nodes, each with a name and a number of children.
    let schema = |children: &[u32]| {
        let mut footer = vec![0x15, 2, 0x19, 0xFC];
        footer.extend(varint(children.len() as u64));
        for children in children {
            footer.extend([0x48, 1, b'x', 0x15]);
            footer.extend(zigzag(*children));
            footer.push(0);
        }
        footer.push(0);
        footer
    };
    assert!(check_schema(&schema(&[2, 0, 1, 0])).is_ok());
    assert!(check_schema(&schema(&[&[1; 60][..], &[0]].concat())).is_ok());
    let error = |children: &[u32]| check_schema(&schema(children)).unwrap_err().to_string();
    assert!(error(&[1; 100_000]).contains("deep"));
    assert!(error(&[3, 0]).contains("cut off"));
    assert!(error(&[i32::MAX as u32, 0]).contains("cut off"));
    assert!(check_schema(&[0x15, 2, 0x15, 2, 0]).unwrap_err().to_string().contains("another type"));
}

#[test]
fn lengths_of_delta_blocks() {
    // 128 values a block, 4 parts; 3 lengths: 5, 6, 7. The deltas are all 1, so no bits are needed.
    let lengths = [128, 1, 4, 3, 10, 2, 0, 0, 0, 0];
    assert_eq!(delta_lengths(&[&lengths[..], b"rest"].concat(), 3).unwrap(), (lengths.len(), 18));
    assert!(delta_lengths(&lengths, 2).is_err() && delta_lengths(&lengths[..7], 3).is_err());
    // 32 values a block, 1 part; 4 lengths: 70, 60, 90, 3. Deltas from -87 on, of 7 bits: 77, 117, 0.
    let packed: u32 = 77 | 117 << 7;
    let lengths = [&[32, 1, 4, 0x8C, 1, 0xAD, 1, 7][..], &packed.to_le_bytes(), &[0; 24]].concat();
    assert_eq!(delta_lengths(&lengths, 4).unwrap(), (lengths.len(), 223));
}

#[test]
fn data_pages_without_values_are_passed_over() {
    let leaf = leaf(3);
    // Three rows of a list of nulls: no levels below, and nothing behind them.
    let levels = [2, 0, 0, 0, 6, 0, 2, 0, 0, 0, 6, 0];
    let full = [header(12, 12, 3, 0), levels.to_vec()].concat();
    let empty = header(0, 0, 0, 0);
    for pages in [
        vec![full.clone()],
        vec![empty.clone(), full.clone()],
        vec![empty.clone(), empty.clone(), full.clone(), empty.clone()],
        vec![full.clone(), empty.clone()],
    ] {
        // In one part, and in a part for each page.
        for parts in [vec![pages.concat()], pages] {
            let parts = parts.into_iter().map(Bytes::from).collect();
            let pages = PageQueue::new(&leaf, CompressionCodec::UNCOMPRESSED, Writer::default(), parts, 3, 1 << 20);
            assert_eq!(decode(&leaf, pages, 3, 1 << 20).unwrap().rows, 3);
        }
    }
}

#[test]
fn a_small_page_of_very_many_nulls_is_not_noted() {
    let leaf = leaf(1);
    let note = |rows: u32| {
        // A run of that many nulls, and no values.
        let run = varint(u64::from(rows) << 1);
        let levels = [(run.len() as u32 + 1).to_le_bytes().to_vec(), run, vec![0]].concat();
        let bytes = [header(levels.len() as u32, levels.len() as u32, rows, 0), levels].concat();
        let page = PagePlace { start: 4, length: bytes.len() as u32, first_row: 0 };
        let objects = Objects::local(Vec::new()).unwrap();
        Note::find(&objects, 0, &leaf, &page, rows as usize, Some(&bytes)).unwrap()
    };
    assert_eq!(note(1 << 20), Note::Nulls(0));
    assert_eq!(note((1 << 20) + 1), Note::Decoded);
}

#[test]
fn prefixes_that_grow_beyond_all_memory_are_refused() {
    // 30 strings: the first has 100 bytes, each of the others is the one before it, as a whole.
    let lengths = |first: u32, rest: i32| {
        let delta = rest - first as i32;
        // The first length, then a delta, then deltas of 0.
        let zigzag = |number: i32| varint(u64::from((number << 1 ^ number >> 31) as u32));
        let mut bytes = [varint(128), varint(1), varint(30), zigzag(first as i32)].concat();
        let (least, width) = (delta.min(0), 8);
        bytes.extend([zigzag(least), vec![width]].concat());
        let packed: Vec<u8> = (0..128).map(|at| if at == 0 { (delta - least) as u8 } else { -least as u8 }).collect();
        [bytes, packed].concat()
    };
    let data = [lengths(0, 100), lengths(100, 0), vec![b'x'; 100]].concat();
    let bytes = [header(data.len() as u32, data.len() as u32, 30, 7), data].concat();
    let read = |room| {
        let parts = vec![Bytes::from(bytes.clone())];
        let mut pages = PageQueue::new(&leaf(4), CompressionCodec::UNCOMPRESSED, Writer::default(), parts, 30, room);
        pages.get_next_page().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(read(6000), Ok(()));
    assert!(read(3000).unwrap_err().contains("it takes"));
}

#[test]
fn offset_indices_that_take_more_than_the_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 60, 40, plain(WriterVersion::PARQUET_1_0));
    let mut bytes = fs::read(&path).unwrap();
    let meta = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes.clone())).unwrap();
    let end = meta.row_groups()[1].columns()[4].offset_index_offset().unwrap() as usize;
    // All chunks name one index, which is half of the file.
    let one = |column: &ColumnChunkMetaData| {
        let column = column.clone().into_builder().set_offset_index_offset(Some(0));
        column.set_offset_index_length(Some(end as i32 / 2)).build().unwrap()
    };
    let groups = meta.row_groups().iter().map(|group| {
        let columns = group.columns().iter().map(one).collect();
        group.clone().into_builder().set_column_metadata(columns).build().unwrap()
    });
    let meta = ParquetMetaData::new(meta.file_metadata().clone(), groups.collect());
    bytes.truncate(end);
    ParquetMetaDataWriter::new(&mut bytes, &meta).finish().unwrap();
    fs::write(&path, bytes).unwrap();
    let error = open(slice::from_ref(&path), &Selection::All, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("offset indices"), "{error}");
    assert!(open(&[path], &columns(&["id"]), &Options::default()).is_ok());
}
