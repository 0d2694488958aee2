//! `copy_to`: the copy has the values that another thread has asked for, also those that are written in place behind long work.

use crate::several_devices;
use burn::prelude::*;
use burn_pinned::copy_to;
use std::thread;

const LEN: usize = 1 << 20;

/// Copies tensors of another thread again and again, and looks at all values.
fn copies(from: &Device, to: &Device) {
    let matrix = Tensor::<2>::ones([4096, 4096], from) * 1e-4;
    from.sync().unwrap();
    for round in 0..30 {
        let fill = || {
            let product = (0..6).fold(matrix.clone(), |product, _| product.matmul(matrix.clone()));
            let late = product.mean().expand([LEN / 2]) * 0.0 + round as f32;
            let values = Tensor::<1>::zeros([LEN], from);
            let values = values.slice_assign(0..LEN / 2, late.clone()).slice_assign(LEN / 2..LEN, late);
            let whole = Tensor::<2, Int>::full([2, 3], round, from);
            from.flush().unwrap();
            (values, whole)
        };
        let (values, whole) = thread::scope(|scope| scope.spawn(fill).join().unwrap());
        let part = values.clone().narrow(0, 5, LEN - 9);
        let turned = whole.clone().transpose();
        let copied = (copy_to(values, to).unwrap(), copy_to(part, to).unwrap(), copy_to(turned, to).unwrap());
        assert_eq!((copied.0.device(), copied.2.device()), (to.clone(), to.clone()));
        let wrong = |values: Tensor<1>| values.into_data().iter::<f32>().filter(|value| *value != round as f32).count();
        assert_eq!((wrong(copied.0), wrong(copied.1)), (0, 0), "round {round}");
        assert_eq!(copied.2.dims(), [3, 2]);
        assert!(copied.2.into_data().iter::<i64>().all(|value| value == i64::from(round)), "round {round}");
    }
    let empty = || Tensor::<2>::zeros([0, 3], from);
    let empty = thread::scope(|scope| scope.spawn(empty).join().unwrap());
    assert_eq!(copy_to(empty, to).unwrap().dims(), [0, 3]);
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_copy_on_one_device_has_the_values_of_another_thread() {
    copies(&Device::cuda(0), &Device::cuda(0));
}

#[test]
#[ignore = "needs several CUDA devices"]
fn several_devices_copy_the_values_of_another_thread() {
    let devices = several_devices::devices();
    for (nth, device) in devices.iter().enumerate() {
        let next = &devices[(nth + 1) % devices.len()];
        copies(device, next);
        copies(next, device);
    }
}

#[test]
#[ignore = "needs several CUDA devices"]
fn several_devices_keep_the_autodiff_setting_of_the_target() {
    let devices = several_devices::devices();
    let labels = Tensor::<1, Int>::from_ints([1, 2, 3], &devices[0]);
    let copy = copy_to(labels, &devices[1].clone().autodiff()).unwrap();
    assert!(copy.device().is_autodiff());
    let tracked = Tensor::<1>::ones([3], &devices[0].clone().autodiff());
    assert!(copy_to(tracked, &devices[1]).unwrap_err().to_string().contains("autodiff"));
}
