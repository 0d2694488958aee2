//! Mel spectrograms of batches, computed by the device.

use burn::tensor::{DType, Device, Tensor};
use burn_pinned::{
    BoxError, Field, KeyedRng, PinnedDataLoaderBuilder, collate,
    data::{Array, Audio, MelSpectrogram},
    dataset,
};
use rand::RngExt;
use std::f32::consts::TAU;

const RATE: u32 = 16_000;
const FRAMES: usize = 8000;

/// Noise that is quiet or loud, or a tone alone, whose bands far from it have nearly no power.
fn sound(n: usize) -> Audio {
    let mut rng = KeyedRng::for_order(1, n);
    let loud = 10f32.powi(-(n as i32 % 4));
    let noise = move |_| loud * rng.random_range(-1.0..1.0f32);
    let tone = |frame: usize| (TAU * 100.0 * (n + 1) as f32 * frame as f32 / RATE as f32).sin();
    let samples = if n.is_multiple_of(2) { (0..FRAMES).map(noise).collect() } else { (0..FRAMES).map(tone).collect() };
    Audio::new(samples, 1, RATE).unwrap()
}

#[test]
#[ignore = "needs a CUDA device"]
fn spectrograms_on_the_device_are_those_of_the_workers() {
    let device = Device::cuda(0);
    for [n_fft, hop, bands] in [[400, 160, 80], [400, 200, 128], [1024, 256, 64], [511, 100, 40]] {
        let mel = MelSpectrogram::new(RATE, n_fft, hop, bands).unwrap();
        let on_device = mel.to_device(&device);
        let batches = collate(
            [Field::new("wave", DType::F32, [FRAMES])],
            |audio: &Audio, row| Ok(row.write("wave", &audio.samples()?)?),
            move |mut batch| -> Result<[Tensor<3>; 2], BoxError> {
                let wave: Tensor<2> = batch.take("wave")?;
                Ok([on_device.power(wave.clone())?, on_device.decibels(wave)?])
            },
        );
        let builder = PinnedDataLoaderBuilder::new(batches).batch_size(8).num_workers(2).set_device(device.clone());
        let loader = builder.build(dataset((0..24).collect(), |n: &usize| Ok(sound(*n)))).unwrap();
        let mut made: [Vec<f32>; 2] = Default::default();
        for batch in loader.iter() {
            for (made, tensor) in made.iter_mut().zip(batch.unwrap()) {
                assert_eq!(tensor.dims()[2], bands);
                made.extend(tensor.into_data().try_to_vec::<f32>().unwrap());
            }
        }
        let right = |of: fn(&MelSpectrogram, &Audio) -> Array<f32>| -> Vec<Array<f32>> {
            (0..24).map(|n| of(&mel, &sound(n))).collect()
        };
        let power = right(|mel, audio| mel.power(audio).unwrap());
        let decibels = right(|mel, audio| mel.decibels(audio).unwrap());
        let length = power[0].data().len();
        assert_eq!(made.each_ref().map(Vec::len), [24 * length; 2]);
        // CUDA's products of matrices round to 11 bits, so the power of one frequency leaks into bands far from it.
        let (mut worst_power, mut worst_decibels) = (0.0f32, 0.0f32);
        for n in 0..24 {
            let loudest = power[n].data().iter().copied().fold(0.0, f32::max);
            let ours = made.each_ref().map(|made| &made[n * length..(n + 1) * length]);
            for (at, right) in power[n].data().iter().enumerate() {
                worst_power = worst_power.max((ours[0][at] - right).abs() / loudest);
                if *right > 1e-5 * loudest && *right > 1e-9 {
                    worst_decibels = worst_decibels.max((ours[1][at] - decibels[n].data()[at]).abs());
                }
            }
        }
        println!("n_fft {n_fft}: {worst_power:e} of the loudest; {worst_decibels} decibels");
        assert!(worst_power < 1e-3 && worst_decibels < 0.2, "{n_fft}: {worst_power:e}, {worst_decibels}");
    }
}
