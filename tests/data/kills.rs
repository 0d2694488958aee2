//! A world is killed at a random place and another one goes on, again and again, over each format.

use crate::formats::{FORMATS, ROWS, Row, bytes, sum};
use crate::sums::Sums;
use burn::{
    data::dataset::{Dataset, transform::ComposedDataset},
    tensor::Device,
};
use burn_pinned::{
    Distributed, LoaderState, PinnedDataLoaderBuilder,
    data::Rows,
    order::{BlockShuffle, MixPart, MixSampler, RandomSampler, Sampler},
};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::sync::Arc;

const WORLDS: [usize; 5] = [1, 2, 3, 4, 8];

/// Plays epoch 0 to its end in several worlds, and checks each row against the plain loop over the order. Returns how
/// many worlds there were. `open` opens the data again, as a new process does.
fn play<D: Dataset<Row> + 'static>(name: &str, order: &Arc<dyn Sampler>, open: impl Fn() -> D, seed: u64) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rows = open().len();
    let whole: Vec<usize> = order.indices(rows, 0).collect();
    let (mut state, mut worlds): (Option<LoaderState>, usize) = (None, 0);
    let mut given = vec![0; whole.len()];
    while state.as_ref().is_none_or(|state| state.epoch() == 0) {
        let start = state.as_ref().map_or(0, LoaderState::position);
        let (world, steps) = (WORLDS[rng.random_range(0..WORLDS.len())], rng.random_range(1..6));
        let mut states = Vec::new();
        for rank in 0..world {
            let mut builder = PinnedDataLoaderBuilder::new(Sums).batch_size(5).set_device(Device::flex());
            builder = builder.order(Arc::clone(order)).num_workers(rng.random_range(1..5));
            builder = builder.distributed(Distributed::new(rank, world).unwrap());
            if let Some(state) = &state {
                builder = builder.resume(state.clone());
            }
            let loader = builder.build(open()).unwrap();
            let share: Vec<(i64, i64)> = loader.iter().take(steps).flat_map(Result::unwrap).collect();
            for (step, got) in share.iter().enumerate() {
                let place = start + rank + world * step;
                let row = whole[place % whole.len()] % ROWS; // at its end, an epoch may have its first rows again
                assert_eq!(
                    *got,
                    (row as i64, sum(&bytes(row))),
                    "{name}, seed {seed}: place {place}, {rank} of {world}"
                );
                given.get_mut(place).into_iter().for_each(|times| *times += 1);
            }
            let saved = serde_json::to_string(&loader.state()).unwrap();
            states.push(serde_json::from_str::<LoaderState>(&saved).unwrap());
        }
        assert!(states.iter().all(|other| *other == states[0]), "{name}, seed {seed}: {states:?}");
        state = states.pop();
        worlds += 1;
    }
    assert!(given.iter().all(|times| *times == 1), "{name}, seed {seed}: {given:?}");
    worlds
}

#[test]
fn any_worlds_one_after_the_other_make_one_epoch() {
    let mut worlds = 0;
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let open = || -> Rows<Row> { format.open(folder.path()).open().unwrap() };
        let blocks = open().blocks().unwrap();
        for order in
            [Arc::new(RandomSampler::new(7)) as Arc<dyn Sampler>, Arc::new(BlockShuffle::new(blocks, 7).window(1))]
        {
            worlds += (0..3).map(|seed| play(&format!("{format:?}, {order:?}"), &order, open, seed)).sum::<usize>();
        }
    }
    assert!(worlds > 3 * 36, "{worlds} are too few to have been killed");
}

#[test]
fn mixtures_of_two_formats_go_on_too() {
    for (one, two) in [(0, 4), (1, 2), (3, 5)] {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let open = || {
            let parts = [one, two].into_iter().zip(&folders);
            ComposedDataset::new(
                parts.map(|(format, folder)| FORMATS[format].open(folder.path()).open().unwrap()).collect(),
            )
        };
        let blocks = FORMATS[two].open(folders[1].path()).open().unwrap().blocks().unwrap();
        let parts = [
            MixPart::new(ROWS, 1.0, RandomSampler::new(1)),
            MixPart::new(ROWS, 3.0, BlockShuffle::new(blocks, 2).window(1)),
        ];
        let mix: Arc<dyn Sampler> = Arc::new(MixSampler::new(parts, 5).unwrap());
        let name = format!("{:?} and {:?}", FORMATS[one], FORMATS[two]);
        assert!((0..2).map(|seed| play::<ComposedDataset<Rows<Row>>>(&name, &mix, open, seed)).sum::<usize>() > 4);
    }
}
