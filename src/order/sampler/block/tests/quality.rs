//! How well samples are mixed, beside a full shuffle. `docs/samplers.md` shows the table and the picture that are made
//! here.

use super::{BlockShuffle, Blocks};
use crate::order::{RandomSampler, Sampler, SequentialSampler};
use std::{fmt::Write as _, fs, path::Path};

/// The data is sorted by class: 100 classes of 1000 samples, in blocks of 500.
const SAMPLES: usize = 100_000;
const CLASSES: usize = 100;
const EPOCHS: usize = 4;

fn shuffle(streams: usize, window: usize) -> BlockShuffle {
    BlockShuffle::new(Blocks::new([(500, 0); 200]), 1).streams(streams).window(window)
}

/// How an order mixes, in the mean of some epochs.
struct Mixing {
    /// The distance between a sample's position and its index, as a part of the epoch.
    moves: f64,
    /// How many classes a batch of 64 has.
    classes: f64,
    /// How many classes the worst batch has.
    fewest: usize,
}

fn mixing(sampler: &dyn Sampler) -> Mixing {
    let (mut distance, mut classes, mut batches, mut fewest) = (0, 0, 0, CLASSES);
    for epoch in 0..EPOCHS {
        let order: Vec<usize> = sampler.indices(SAMPLES, epoch).collect();
        distance += order.iter().enumerate().map(|(position, index)| position.abs_diff(*index)).sum::<usize>();
        for batch in order.chunks_exact(64) {
            let mut seen = [false; CLASSES];
            batch.iter().for_each(|index| seen[index / (SAMPLES / CLASSES)] = true);
            let seen = seen.into_iter().filter(|seen| *seen).count();
            classes += seen;
            batches += 1;
            fewest = fewest.min(seen);
        }
    }
    let moves = distance as f64 / (SAMPLES * SAMPLES * EPOCHS) as f64;
    Mixing { moves, classes: f64::from(classes as u32) / f64::from(batches), fewest }
}

fn document(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

/// More blocks in use mix better. The order of blocks is random, so samples move as far as in a full shuffle.
#[test]
fn batches_are_mixed_as_the_docs_say() {
    let full = mixing(&RandomSampler::new(1));
    assert!((0.33..0.337).contains(&full.moves) && full.classes > 47.0);
    let mut rows = format!("| full shuffle | | all | | {:.2} | {:.1} | {} |\n", full.moves, full.classes, full.fewest);
    let at_least = [(1, 32, 23.0), (4, 4, 14.0), (8, 1, 7.5), (8, 2, 14.0), (8, 4, 24.5), (8, 8, 34.0), (8, 16, 40.0)];
    for (streams, window, bound) in at_least.into_iter().chain([(16, 2, 26.0), (16, 8, 42.0), (32, 1, 28.0)]) {
        let Mixing { moves, classes, fewest } = mixing(&shuffle(streams, window));
        assert!((0.3..0.36).contains(&moves), "{streams} streams of {window}: {moves}");
        assert!(classes > bound && classes < full.classes, "{streams} streams of {window}: {classes} classes");
        let (used, cut) = (streams * window, streams - 1);
        writeln!(rows, "| {streams} | {window} | {used} | {cut} | {moves:.2} | {classes:.1} | {fewest} |").unwrap();
    }
    let page = fs::read_to_string(document("samplers.md")).unwrap();
    assert!(page.contains(&rows), "docs/samplers.md should say:\n{rows}");
}

const PANEL: usize = 260;
const GAP: usize = 28;
const TOP: usize = 44;
/// Every 101st position is drawn. These positions are of all streams.
const STEP: usize = 101;

/// Draws the index of the sample at each position, side by side for several orders.
fn picture(orders: &[(&str, &dyn Sampler)]) -> String {
    let (width, height) = (orders.len() * (PANEL + GAP) + GAP, TOP + PANEL + 34);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222222\">\n<rect width=\"{width}\" height=\"{height}\" \
         fill=\"#ffffff\"/>\n"
    );
    for (panel, (name, sampler)) in orders.iter().enumerate() {
        let (left, bottom, scale) = (GAP + panel * (PANEL + GAP), TOP + PANEL, PANEL as f64 / 1000.0);
        let (x, y, above, below) = (left + PANEL / 2, TOP + PANEL / 2, TOP - 14, bottom + 20);
        write!(
            svg,
            "<rect x=\"{left}\" y=\"{TOP}\" width=\"{PANEL}\" height=\"{PANEL}\" fill=\"#f7f8fa\" stroke=\"#c9c9c9\"/>\n\
             <g text-anchor=\"middle\"><text x=\"{x}\" y=\"{above}\">{name}</text>\n\
             <text x=\"{x}\" y=\"{below}\" font-size=\"11\">position in the epoch</text>\n\
             <text transform=\"translate({} {y}) rotate(-90)\" font-size=\"11\">index in the dataset</text></g>\n\
             <path transform=\"translate({left} {bottom}) scale({scale} -{scale})\" stroke=\"#2f6f9f\" \
             stroke-width=\"9\" stroke-linecap=\"round\" d=\"",
            left - 8
        )
        .unwrap();
        for (position, index) in sampler.indices(SAMPLES, 0).enumerate().step_by(STEP) {
            write!(svg, "M{} {}h0", position * 1000 / SAMPLES, index * 1000 / SAMPLES).unwrap();
        }
        svg.push_str("\"/>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// With `BLOCK_SHUFFLE_PICTURE` set, the picture is made again.
#[test]
fn the_picture_shows_the_order() {
    let svg = picture(&[
        ("full shuffle", &RandomSampler::new(1)),
        ("BlockShuffle, 8 streams of 4 blocks", &shuffle(8, 4)),
        ("in order", &SequentialSampler),
    ]);
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    let path = document("block-shuffle.svg");
    if std::env::var_os("BLOCK_SHUFFLE_PICTURE").is_some() {
        fs::write(&path, &svg).unwrap();
    }
    assert!(fs::read_to_string(path).unwrap() == svg, "set BLOCK_SHUFFLE_PICTURE to make docs/block-shuffle.svg again");
}
