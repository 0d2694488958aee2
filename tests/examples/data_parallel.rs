//! The example `data_parallel`: replicas are equal, two of them do what one does with twice the batch, a failure of one ends
//! all, and a training that is killed goes on as if it had not been.

#[path = "../common/data_parallel.rs"]
mod example;

use burn::{
    data::dataloader::DataLoader,
    optim::{AdamConfig, GradientsAccumulator, GradientsParams},
    prelude::*,
    tensor::Tolerance,
};
use burn_pinned::{BoxError, PinnedDataLoader, PinnedDataLoaderBuilder};
use example::{
    lines::{self, Batch, Lines, ToBatch},
    model::Model,
    replicas::{
        Epoch, Plan,
        barrier::Barrier,
        checkpoint::{self, Place},
        gradients,
        mean::Mean,
        train::{Ended, train},
    },
};
use rand::RngExt;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

const PICTURES: usize = 96;
const WIDTH: usize = 12;
const RATE: f64 = 1e-2;

fn device() -> Device {
    Device::flex().autodiff()
}

fn loader(devices: usize, batch: usize, resume: Option<&Place>) -> Arc<PinnedDataLoader<Batch>> {
    let mut builder = PinnedDataLoaderBuilder::new(ToBatch)
        .batch_size(batch)
        .num_workers(2)
        .shuffle(7)
        .drop_last(true)
        .devices(devices)
        .set_device(device());
    if let Some(place) = resume {
        builder = builder.resume(place.loader.clone());
    }
    builder.build(Lines { len: PICTURES, seed: 1 }).unwrap()
}

/// A training of the example's model.
struct Training<'a> {
    first: &'a [u8],
    devices: usize,
    batch: usize,
    accumulate: usize,
    save: Option<(&'a Path, usize)>,
    resume: Option<(Place, PathBuf)>,
}

impl<'a> Training<'a> {
    fn new(first: &'a [u8], devices: usize, batch: usize) -> Self {
        Self { first, devices, batch, accumulate: 1, save: None, resume: None }
    }

    fn run(
        self,
        step: impl Fn(&Model, Batch) -> Result<(Tensor<1>, GradientsParams), BoxError> + Sync,
    ) -> Result<Vec<Model>, Ended> {
        let loader = loader(self.devices, self.batch, self.resume.as_ref().map(|(place, _)| place));
        let devices = vec![device(); self.devices];
        let plan = Plan {
            devices: &devices,
            state: &|| loader.state(),
            epochs: 3,
            accumulate: self.accumulate,
            rate: RATE,
            save: self.save,
            resume: self.resume,
        };
        let init = |_: &Device| from_bytes(self.first);
        train(&plan, Arc::clone(&loader) as _, &AdamConfig::new().init(), init, step, |_, _| Ok(()))
    }
}

fn bytes(model: &Model) -> Vec<u8> {
    model.valid().into_record().into_bytes().unwrap().to_vec()
}

fn from_bytes(bytes: &[u8]) -> Model {
    let bytes = burn::tensor::Bytes::from_bytes_vec(bytes.to_vec());
    Model::new(WIDTH, 1, &device()).load_record(burn::store::ModuleRecord::from_bytes(bytes).unwrap())
}

fn first() -> Vec<u8> {
    bytes(&Model::new(WIDTH, 1, &device()))
}

/// The output for some pictures: what tells models apart.
fn output(model: &Model) -> burn::tensor::TensorData {
    let batch = loader(1, 32, None).iter().next().unwrap().unwrap();
    model.valid().forward(batch.pixels.inner()).into_data()
}

/// Two replicas make the sums that one loop over both slices makes: bit for bit the same model.
#[test]
fn two_replicas_do_what_one_loop_over_both_slices_does() {
    let first = first();
    let models = Training::new(&first, 2, 8).run(Model::step).unwrap();
    assert_eq!(bytes(&models[0]), bytes(&models[1]), "replicas are equal");

    let loader = loader(2, 8, None);
    let slices = burn::data::dataloader::split::split_dataloader(loader as Arc<dyn DataLoader<_>>, &vec![device(); 2]);
    let (mut model, mut optim) = (from_bytes(&first), AdamConfig::new().init());
    for _ in 0..3 {
        for (a, b) in slices[0].iter().zip(slices[1].iter()) {
            let mut sum = GradientsAccumulator::new();
            let mut losses = Vec::new();
            for batch in [a, b] {
                let (loss, grads) = model.step(batch.unwrap()).unwrap();
                sum.accumulate(&model, grads);
                losses.push(loss);
            }
            let flat = gradients::flatten(&model, sum.grads(), losses.remove(0)) * 0.5;
            let (grads, _) = gradients::unflatten(&model, flat);
            model = optim.step(RATE, model, grads);
        }
    }
    assert_ne!(bytes(&model), first);
    assert_eq!(bytes(&models[0]), bytes(&model));
}

/// One device adds up the samples of a batch in another order, so these are equal to rounding only.
#[test]
fn two_replicas_are_one_replica_with_twice_the_batch_to_rounding() {
    let first = first();
    let two = Training::new(&first, 2, 8).run(Model::step).unwrap();
    let one = Training::new(&first, 1, 16).run(Model::step).unwrap();
    let accumulated = Training { accumulate: 2, ..Training::new(&first, 2, 4) }.run(Model::step).unwrap();
    assert_eq!((two.len(), one.len()), (2, 1));
    output(&two[0]).assert_approx_eq::<f32>(&output(&one[0]), Tolerance::rel_abs(1e-3, 1e-4));
    // The four batches of a step are together what the two were: sums to rounding again.
    output(&accumulated[0]).assert_approx_eq::<f32>(&output(&two[0]), Tolerance::rel_abs(1e-3, 1e-4));
    let other = from_bytes(&first);
    assert_ne!(output(&other), output(&one[0]), "the tolerance would tell an untrained model");
}

/// Fewer values than ranks, parts of different lengths, and two means one behind the other.
#[test]
fn the_mean_is_exact_for_any_number_of_ranks() {
    for (ranks, len) in [(1, 5), (2, 1), (2, 9), (3, 16), (4, 7), (4, 2)] {
        let mean = Mean::new(ranks);
        let of = |rank: usize| {
            let values: Vec<f32> = (0..len).map(|at| (at * ranks + rank) as f32).collect();
            let flat = Tensor::<1>::from_floats(values.as_slice(), &Device::flex());
            let once = mean.of(rank, flat, [0, 1]).unwrap();
            mean.of(rank, once, [0, 2]).unwrap().into_data().try_to_vec::<f32>().unwrap()
        };
        let all: Vec<Vec<f32>> = thread::scope(|scope| {
            let of = &of;
            let threads: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || of(rank))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (rank, values) in all.iter().enumerate() {
            assert_eq!(values.len(), len);
            for (at, value) in values.iter().enumerate() {
                let expected = (at * ranks) as f32 / 2.0 + (ranks - 1) as f32 / 4.0;
                assert!((value - expected).abs() < 1e-4, "{ranks} ranks, rank {rank}, {at}: {value}, not {expected}");
            }
        }
        assert!(all.iter().all(|values| *values == all[0]), "bit for bit");
    }
}

/// Runs a step that fails as `end` says in the fourth batch of the second thread.
fn failing(devices: usize, end: impl Fn() -> BoxError + Sync) -> Ended {
    let first = first();
    let steps = AtomicUsize::new(0);
    let step = |model: &Model, batch: Batch| {
        if thread::current().name() == Some("replica-1") && steps.fetch_add(1, Relaxed) == 3 {
            return Err(end());
        }
        model.step(batch)
    };
    Training::new(&first, devices, 8).run(step).unwrap_err()
}

#[test]
fn an_error_on_one_device_ends_all_with_its_message() {
    for devices in [2, 3] {
        let ended = failing(devices, || "the disk is full".into());
        assert_eq!(ended.to_string(), "device 1: the disk is full");
    }
}

#[test]
fn a_panic_on_one_device_ends_all_with_its_message() {
    for devices in [2, 3] {
        let ended = failing(devices, || panic!("device {} is hot", 1));
        assert_eq!(ended.to_string(), "device 1 panicked: device 1 is hot");
    }
}

/// The thread of device 0 validates, while the others wait in their next step.
#[test]
fn an_error_of_the_validation_ends_all_with_its_message() {
    let (first, seen) = (first(), Mutex::new(Vec::new()));
    let loader = loader(2, 8, None);
    let devices = vec![device(); 2];
    let plan = Plan {
        devices: &devices,
        state: &|| loader.state(),
        epochs: 3,
        accumulate: 1,
        rate: RATE,
        save: None,
        resume: None,
    };
    let tell = |epoch: Epoch, model: Model| {
        let is_tracked = model.forward(Tensor::zeros([1, lines::SIDE * lines::SIDE], &Device::flex())).is_autodiff();
        seen.lock().unwrap().push((epoch.number, is_tracked));
        if epoch.number == 2 { Err("no validation data".into()) } else { Ok(()) }
    };
    let optim = AdamConfig::new().init();
    let ended = train(&plan, Arc::clone(&loader) as _, &optim, |_| from_bytes(&first), Model::step, tell).unwrap_err();
    assert_eq!(ended.to_string(), "device 0: no validation data");
    assert_eq!(seen.into_inner().unwrap(), [(1, false), (2, false)]);
}

/// Burn cuts 17 pictures for two devices into slices of 8 and 9, and 44 for three into 14, 14 and 16.
#[test]
fn slices_of_different_lengths_are_an_error_and_no_hang() {
    for (devices, pictures) in [(2, 17), (3, 44)] {
        let first = first();
        let loader = PinnedDataLoaderBuilder::new(ToBatch).batch_size(1).set_device(device()); // without `.devices(n)`
        let loader = loader.build(Lines { len: pictures, seed: 1 }).unwrap();
        let all = vec![device(); devices];
        for epochs in [1, 2] {
            let state = || loader.state();
            let plan =
                Plan { devices: &all, state: &state, epochs, accumulate: 1, rate: RATE, save: None, resume: None };
            let optim = AdamConfig::new().init();
            let (init, tell) = (|_: &Device| from_bytes(&first), |_: Epoch, _: Model| Ok(()));
            let ended = train(&plan, Arc::clone(&loader) as _, &optim, init, Model::step, tell).unwrap_err();
            assert!(ended.to_string().contains("different numbers of batches"), "{ended}");
        }
    }
}

#[test]
fn a_barrier_that_is_broken_holds_nobody() {
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let waits = scope.spawn(|| (barrier.wait().is_ok(), barrier.wait().is_ok()));
        barrier.wait().unwrap();
        barrier.break_up();
        assert_eq!(waits.join().unwrap(), (true, false));
    });
    assert!(barrier.wait().is_err() && barrier.wait().is_err());
}

/// A training that ends at any step goes on from its last checkpoint, and ends with the same bits.
#[test]
fn a_killed_training_goes_on_bit_for_bit() {
    const STEPS: usize = 3 * PICTURES / 16;
    const EVERY: usize = 3; // an epoch has 6 steps, so one of them ends with a checkpoint
    let first = first();
    let whole = Training::new(&first, 2, 8).run(Model::step).unwrap();
    let any = rand::rng().random_range(0..STEPS);
    for killed_at in [2, 6, any] {
        let folder = tempfile::tempdir().unwrap();
        let done = Mutex::new([0; 2]);
        let step = |model: &Model, batch: Batch| {
            let rank = usize::from(thread::current().name() == Some("replica-1"));
            let mut done = done.lock().unwrap();
            done[rank] += 1;
            if rank == 1 && done[rank] > killed_at {
                return Err("killed".into());
            }
            drop(done);
            model.step(batch)
        };
        let save = Some((folder.path(), EVERY));
        let ended = Training { save, ..Training::new(&first, 2, 8) }.run(step).unwrap_err();
        assert_eq!(ended.to_string(), "device 1: killed");

        let resume = checkpoint::newest(folder.path()).unwrap();
        assert_eq!(resume.as_ref().map_or(0, |(place, _)| place.step), killed_at / EVERY * EVERY, "of {killed_at}");
        let resumed = Training { resume, ..Training::new(&first, 2, 8) }.run(Model::step).unwrap();
        for model in resumed {
            assert!(bytes(&model) == bytes(&whole[0]), "killed at step {killed_at}");
        }
    }
}
