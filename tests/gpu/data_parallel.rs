//! The loop of the example `data_parallel` on GPUs.

#[path = "../common/data_parallel.rs"]
mod example;

use burn::{optim::AdamConfig, prelude::*, store::ModuleRecord, tensor::Bytes};
use burn_pinned::PinnedDataLoaderBuilder;
use example::{
    lines::{Lines, ToBatch},
    model::Model,
    replicas::{Epoch, Plan, train},
};
use std::sync::{Arc, Mutex};

/// A million parameters.
const WIDTH: usize = 1024;

fn bytes(model: &Model) -> Vec<u8> {
    model.valid().into_record().into_bytes().unwrap().to_vec()
}

fn model(of: &[u8], device: &Device) -> Model {
    Model::new(WIDTH, 1, device).load_record(ModuleRecord::from_bytes(Bytes::from_bytes_vec(of.to_vec())).unwrap())
}

/// All steps have this size, so that kernels are compiled and tuned for one.
const BATCH: usize = 64;

/// Three epochs of `batches` batches a step: the replicas, and the loss of each epoch.
fn trained(first: &[u8], devices: &[Device], batches: usize) -> (Vec<Model>, Vec<f64>) {
    let loader = PinnedDataLoaderBuilder::new(ToBatch)
        .batch_size(BATCH)
        .shuffle(7)
        .drop_last(true)
        .devices(devices.len())
        .require_pinned(true)
        .set_device(devices[0].clone())
        .build(Lines { len: 2048 * batches, seed: 1 })
        .unwrap();
    let state = || loader.state();
    let accumulate = batches / devices.len();
    let plan = Plan { devices, state: &state, epochs: 3, accumulate, rate: 1e-3, save: None, resume: None };
    let losses = Mutex::new(Vec::new());
    let tell = |epoch: Epoch, _: Model| {
        losses.lock().unwrap().push(epoch.loss);
        Ok(())
    };
    let init = |device: &Device| model(first, device);
    let models = train(&plan, Arc::clone(&loader) as _, &AdamConfig::new().init(), init, Model::step, tell).unwrap();
    (models, losses.into_inner().unwrap())
}

/// What the model says about some pictures.
fn output(of: &[u8]) -> Vec<f32> {
    let device = Device::cuda(0);
    let loader = PinnedDataLoaderBuilder::new(ToBatch).batch_size(BATCH).set_device(device.clone());
    let loader = loader.build(Lines { len: 4 * BATCH, seed: 2 }).unwrap();
    let model = model(of, &device);
    let outputs = burn::data::dataloader::DataLoader::iter(&*loader).map(|batch| model.forward(batch.unwrap().pixels));
    outputs.flat_map(|output| output.into_data().iter::<f32>().collect::<Vec<_>>()).collect()
}

/// A replica on each device against one with as many times the batch.
fn compare(devices: Vec<Device>) {
    let devices: Vec<Device> = devices.into_iter().map(Device::autodiff).collect();
    let first = bytes(&Model::new(WIDTH, 1, &devices[0]));
    let (all, losses) = trained(&first, &devices, devices.len());
    assert!(all[1..].iter().all(|model| bytes(model) == bytes(&all[0])), "replicas are equal, bit for bit");
    let (one, alone) = trained(&first, &devices[..1], devices.len());
    println!("losses: {losses:.4?} of {}, {alone:.4?} of one", devices.len());
    assert_eq!((losses.len(), alone.len()), (3, 3));
    assert!(losses[2] < losses[0] / 2.0, "it learns: {losses:?}");
    for (all, one) in losses.iter().zip(&alone) {
        assert!((all - one).abs() < 0.05 * one.max(0.1), "{losses:?}, {alone:?}");
    }
    // A GPU adds up a batch in another order, and products may have fewer bits than sums. So single outputs may be far apart after
    // three epochs, and most are not.
    let [all, one] = [&all[0], &one[0]].map(|model| output(&bytes(model)));
    let far = all.iter().zip(&one).filter(|(all, one)| (*all - *one).abs() > 0.3 + 0.1 * one.abs()).count();
    assert!(far <= one.len() / 100, "{far} of {} outputs", one.len());
}

#[test]
#[ignore = "needs a CUDA device"]
fn two_replicas_on_one_device_train_as_one_with_twice_the_batch() {
    compare(vec![Device::cuda(0), Device::cuda(0)]);
}

#[test]
#[ignore = "needs several CUDA devices"]
fn several_devices_train_as_one_with_all_their_batches() {
    compare(crate::several_devices::devices());
}
