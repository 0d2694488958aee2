//! A loader that Burn cuts for all devices of the host.

use super::*;
use burn::data::dataloader::{DataLoader, split::split_dataloader};
use burn_pinned::{LoaderState, Stage};
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
    thread,
    time::Instant,
};

const WIDTH: usize = 50_000;
const BATCH: usize = 32;
/// Samples of a device in an epoch that is killed.
const OF_DEVICE: usize = 30 * BATCH;
/// Set in the process that is killed.
const CHILD: &str = "BURN_PINNED_CHILD";

type Slice = Arc<dyn DataLoader<Kept>>;

/// The host's devices.
pub(crate) fn devices() -> Vec<Device> {
    let count = usize::try_from(cudarc::driver::CudaContext::device_count().unwrap()).unwrap();
    assert!(count > 1, "a test of several devices: leave it out by `--skip several_devices` where there is one");
    (0..count).map(Device::cuda).collect()
}

fn builder(devices: usize) -> PinnedDataLoaderBuilder<usize, Kept> {
    PinnedDataLoaderBuilder::new(OnDevice { width: WIDTH })
        .batch_size(BATCH)
        .num_workers(6.max(devices))
        .devices(devices)
        .require_pinned(true)
        .set_device(Device::cuda(0))
}

fn cut(loader: &Arc<PinnedDataLoader<Kept>>, devices: &[Device]) -> Vec<Slice> {
    split_dataloader(Arc::clone(loader) as Slice, devices)
}

/// Checks every byte of a batch; returns its numbers.
fn numbers(kept: Kept, device: &Device) -> Vec<i64> {
    assert_eq!(kept.1.device(), *device);
    let numbers = kept.0.clone().into_data().try_to_vec::<i64>().unwrap();
    check(kept, WIDTH);
    numbers
}

/// One epoch of each slice on a thread of its own: the numbers of each batch, or its error.
fn epochs(slices: &[Slice], devices: &[Device]) -> Vec<Vec<Result<Vec<i64>, String>>> {
    thread::scope(|scope| {
        let one = |(slice, device): (_, _)| {
            let slice: &Slice = slice;
            scope.spawn(move || {
                let own = |batch: Result<Kept, _>| batch.map(|kept| numbers(kept, device));
                slice.iter().map(|batch| own(batch).map_err(|error| Error::of(&error).unwrap().to_string())).collect()
            })
        };
        let all: Vec<_> = slices.iter().zip(devices).map(one).collect();
        all.into_iter().map(|batches| batches.join().unwrap()).collect()
    })
}

#[test]
#[ignore = "needs several CUDA devices"]
fn slices_divide_the_workers_and_every_byte_arrives() {
    let devices = devices();
    let count = devices.len();
    let loader = builder(count).shuffle(4).build(Numbers::new(count * BATCH * 40)).unwrap();
    let slices = cut(&loader, &devices);
    for _ in 0..2 {
        let mut seen: Vec<i64> = epochs(&slices, &devices).into_iter().flatten().flat_map(Result::unwrap).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..(count * BATCH * 40) as i64));
        let names = common::loader_threads();
        let workers = names.iter().filter(|name| name.contains("-worker-")).count();
        let all = 6.max(count) / count * count;
        assert_eq!((workers, names.len()), (all, all + 4 * count), "{names:?}");
    }
    println!("{}", loader.stats().verdict());
}

#[test]
#[ignore = "needs several CUDA devices"]
fn an_error_a_panic_and_a_hang_in_one_slice_cost_no_other_slice() {
    let devices = devices();
    let count = devices.len();
    let at = |row: usize| count * row + 1; // of device 1
    let data = Numbers::new(count * BATCH * 20)
        .with(at(2 * BATCH), Mischief::Error)
        .with(at(7 * BATCH), Mischief::Panic)
        .with(at(12 * BATCH), Mischief::Hang);
    let gate = data.gate.clone();
    let loader = builder(count).timeout(Duration::from_secs(2)).build(data).unwrap();
    let slices = cut(&loader, &devices);
    let seen = epochs(&slices, &devices);
    for (device, batches) in seen.iter().enumerate() {
        let bad: Vec<_> = batches.iter().enumerate().filter(|(_, batch)| batch.is_err()).map(|(at, _)| at).collect();
        let (count, expected): (_, &[usize]) = if device == 1 { (13, &[2, 7, 12]) } else { (20, &[]) };
        assert_eq!((batches.len(), bad.as_slice()), (count, expected), "device {device}"); // the hang ends its epoch
    }
    for at in [2, 7, 12] {
        let error = seen[1][at].as_ref().unwrap_err();
        println!("{error}");
        assert!(error.contains(&format!("(epoch 0, batch {at}, device 1")), "{error}");
    }
    let start = Instant::now();
    drop((loader, slices));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    gate.open();
    common::wait_for_threads(0);
}

/// One loop over `len` samples takes a batch for each device, as `ExecutionStrategy::multi` does. Tells what came, and where
/// the loader stands then.
fn lockstep(
    len: usize,
    state: Option<LoaderState>,
    devices: &[Device],
    mut tell: impl FnMut(Vec<Vec<i64>>, LoaderState),
) {
    let mut builder = builder(devices.len()).shuffle(9);
    if let Some(state) = state {
        builder = builder.resume(state);
    }
    let loader = builder.build(Numbers::new(len)).unwrap();
    let slices = cut(&loader, devices);
    let mut iterators: Vec<_> = slices.iter().map(|slice| slice.iter()).collect();
    loop {
        let batches: Option<Vec<_>> = iterators
            .iter_mut()
            .zip(devices)
            .map(|(iter, device)| Some(numbers(iter.next()?.unwrap(), device)))
            .collect();
        let Some(batches) = batches else { return };
        tell(batches, loader.state());
    }
}

/// The process that is killed. Without [`CHILD`] it does nothing.
#[test]
#[ignore = "needs several CUDA devices"]
fn a_child() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    let (devices, mut steps) = (devices(), 0);
    lockstep(devices.len() * OF_DEVICE, None, &devices, |batches, state| {
        println!("told {}", serde_json::to_string(&(batches, state)).unwrap());
        std::io::stdout().flush().unwrap();
        steps += 1;
        if steps == 11 {
            thread::sleep(Duration::from_secs(60)); // it is killed here
        }
    });
}

/// Starts a training on all devices, and kills it (SIGKILL) after 11 steps: what it told.
fn killed() -> Vec<(Vec<Vec<i64>>, LoaderState)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "several_devices::a_child", "--nocapture"])
        .env(CHILD, "")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // The first line may follow the name of the test.
    let told = lines.filter_map(|line| line.split_once("told ").map(|(_, told)| told.to_string()));
    let told: Vec<_> = told.take(11).map(|line| serde_json::from_str(&line).unwrap()).collect();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9), "it was still at work");
    assert_eq!(told.len(), 11);
    told
}

/// The devices get the batches that they would have got.
#[test]
#[ignore = "needs several CUDA devices"]
fn a_training_that_is_killed_goes_on_with_the_same_batches() {
    let devices = devices();
    let (len, mut whole) = (devices.len() * OF_DEVICE, Vec::new());
    lockstep(len, None, &devices, |batches, _| whole.push(batches));
    assert_eq!(whole.len(), 30);
    let told = killed();
    assert!(told.iter().map(|(batches, _)| batches).eq(&whole[..11]), "before it was killed");
    let mut rest = Vec::new();
    lockstep(len, told.last().map(|(_, state)| state.clone()), &devices, |batches, _| rest.push(batches));
    assert_eq!(rest, whole[11..]);
    println!("{} devices: killed after 11 steps, {} steps after that", devices.len(), rest.len());
}

/// A part of the devices goes on where all were killed, and all go on where a part stopped: each sample comes once.
#[test]
#[ignore = "needs several CUDA devices"]
fn a_training_that_is_killed_goes_on_with_another_number_of_devices() {
    let devices = devices();
    // A part of them whose steps also divide the epoch.
    let part = (1..devices.len()).rev().find(|part| devices.len().is_multiple_of(*part)).unwrap();
    let (few, len) = (&devices[..part], devices.len() * OF_DEVICE);
    let all_samples = |steps: Vec<Vec<Vec<i64>>>| {
        let mut samples: Vec<i64> = steps.into_iter().flatten().flatten().collect();
        samples.sort_unstable();
        assert!(samples.into_iter().eq(0..len as i64));
    };

    let told = killed();
    let state = told.last().map(|(_, state)| state.clone());
    let mut rest = Vec::new();
    lockstep(len, state, few, |batches, _| rest.push(batches));
    assert_eq!(rest.len(), 19 * devices.len() / few.len());
    println!("{} devices, then {}: {} steps after that", devices.len(), few.len(), rest.len());
    all_samples(told.into_iter().map(|(batches, _)| batches).chain(rest).collect());

    let (mut before, mut state) = (Vec::new(), None);
    lockstep(len, None, few, |batches, now| {
        if before.len() < 6 * devices.len() / few.len() {
            before.push(batches);
            state = Some(now);
        }
    });
    let mut rest = Vec::new();
    lockstep(len, state, &devices, |batches, _| rest.push(batches));
    println!("{} devices, then {}: {} steps after that", few.len(), devices.len(), rest.len());
    all_samples(before.into_iter().chain(rest).collect());
}

/// Statistics and timeline of all devices.
#[test]
#[ignore = "needs several CUDA devices"]
fn the_timeline_shows_devices() {
    let devices = devices();
    let loader = builder(devices.len()).build(Numbers::new(devices.len() * BATCH * 10)).unwrap();
    loader.record(100_000);
    let slices = cut(&loader, &devices);
    assert!(epochs(&slices, &devices).iter().flatten().all(Result::is_ok));
    let stats = loader.stats();
    let workers = 6.max(devices.len()) / devices.len() * devices.len();
    assert_eq!((stats.workers, stats.transfer_threads, stats.batches), (workers, 3, 10 * devices.len() as u64));
    assert_eq!(stats.stages.of(Stage::Transfer).count, stats.batches);
    let trace: serde_json::Value = serde_json::from_str(&loader.timeline().to_trace()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == "transfer");
    let seen: BTreeSet<_> = events.filter_map(|event| event["args"]["device"].as_u64()).collect();
    assert_eq!(seen.len(), devices.len());
}
