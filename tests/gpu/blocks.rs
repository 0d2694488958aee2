//! The memory of the device that batches are copied to: who keeps it, who writes it next, and from which thread.

use super::{Kept, check, device_mb, loader};
use crate::common::Numbers;
use burn::tensor::{DType, Device, Int, Tensor};
use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
use std::{sync::mpsc, thread};

/// Labels that are kept keep their own memory, and not that of the values beside them.
#[test]
#[ignore = "needs a CUDA device"]
fn a_kept_field_keeps_no_other() {
    const WIDTH: usize = 400_000; // 26 MB a batch
    let loader = loader(WIDTH, 64, 8, 64 * 60);
    let (mut kept, mut before) = (Vec::new(), None);
    for batch in loader.iter() {
        let (numbers, bytes) = batch.unwrap();
        kept.push(numbers);
        drop(bytes);
        Device::cuda(0).sync().unwrap();
        if kept.len() == 10 {
            before = Some(device_mb());
        }
    }
    let grown = device_mb() - before.unwrap();
    println!("device MB in use after 60 batches of which the numbers are kept: {grown:.0} more than after 10");
    assert!(grown < 2.0 * 25.6, "{grown} MB");
    let mut seen: Vec<i64> = kept.into_iter().flat_map(|numbers| numbers.into_data().try_to_vec().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..64 * 60).collect::<Vec<i64>>());
}

/// Batches that one thread takes and others use, all of them late. Each thread has a CubeCL stream of its own.
#[test]
#[ignore = "needs a CUDA device"]
fn other_threads_may_use_batches() {
    const WIDTH: usize = 20_000;
    let loader = loader(WIDTH, 64, 4, 64 * 200);
    let (senders, threads): (Vec<_>, Vec<_>) = (0..3)
        .map(|_| {
            let (sender, batches) = mpsc::sync_channel::<Kept>(4);
            let use_them = move || {
                let matrix = Tensor::<2>::ones([1024, 1024], &Device::cuda(0)) * 1e-4;
                batches.iter().fold(0, |seen, (numbers, bytes): Kept| {
                    // The bytes are read behind some milliseconds of other work.
                    let slow = (0..20).fold(matrix.clone(), |product, _| product.matmul(matrix.clone())).mean() * 0.0;
                    let late = bytes + slow.int().cast(DType::U8).reshape([1, 1]);
                    seen + check((numbers, late), WIDTH)
                })
            };
            (sender, thread::spawn(use_them))
        })
        .unzip();
    for (number, batch) in loader.iter().enumerate() {
        senders[number % senders.len()].send(batch.unwrap()).unwrap();
    }
    drop(senders);
    let seen: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(seen, 64 * 200);
}

/// Floats and integers as they are.
struct Floats;

impl Collate<usize> for Floats {
    type Batch = (Tensor<2>, Tensor<1, Int>);

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("x", DType::F32, [5]), Field::new("n", DType::I32, [])]
    }

    fn write(&self, &number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("x", &[number as f32; 5])?;
        Ok(row.put("n", number as i32)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        Ok((batch.take("x")?, batch.take("n")?))
    }
}

/// With autodiff, a batch of floats is part of the graph.
#[test]
#[ignore = "needs a CUDA device"]
fn floats_arrive_on_a_device_with_autodiff() {
    let device = Device::cuda(0).autodiff();
    let builder = PinnedDataLoaderBuilder::new(Floats).batch_size(8).num_workers(2).set_device(device.clone());
    let loader = builder.build(Numbers::new(80)).unwrap();
    let weight = Tensor::<2>::ones([5, 3], &device).require_grad();
    for (number, batch) in loader.iter().enumerate() {
        let (x, n) = batch.unwrap();
        assert!(x.is_autodiff());
        let sum: i64 = (8 * number as i64..8 * number as i64 + 8).sum();
        let grads = x.clone().matmul(weight.clone()).sum().backward();
        let grad = weight.grad(&grads).unwrap().into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(grad, [sum as f32; 15]);
        assert_eq!(n.sum().into_data().try_to_vec::<i32>().unwrap(), [sum as i32]);
    }
}

/// Kernels that check the length of what they read see every row, for sizes that CubeCL rounds up.
#[test]
#[ignore = "needs a CUDA device"]
fn every_row_is_in_reach() {
    for batch in [1, 16, 100, 129] {
        let loader = loader(3, batch, 2, 4 * batch);
        let mut seen = Vec::new();
        for kept in loader.iter() {
            let (numbers, bytes) = kept.unwrap();
            let none = numbers.clone().lower_elem(0);
            let filled = numbers.mask_fill(none, 7).into_data().try_to_vec::<i64>().unwrap();
            let bytes = bytes.clone().mask_fill(bytes.greater_elem(255), 0);
            check((Tensor::from_data(&filled[..], (&Device::cuda(0), DType::I64)), bytes), 3);
            seen.extend(filled);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..4 * batch as i64).collect::<Vec<_>>(), "{batch} rows");
    }
}
