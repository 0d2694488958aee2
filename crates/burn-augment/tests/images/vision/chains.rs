//! What `AutoAugment` and `AugMix` draw.

use super::{apply, rng};
use crate::photo::photo;
use burn_augment::images::*;

#[test]
fn pairs_of_a_policy_have_their_strengths() {
    for nth in 0..2_000 {
        let drawn = AutoAugment::new(AutoAugmentPolicy::ImageNet).draw(331, 331, &mut rng(nth));
        assert!(drawn.len() <= 2);
        for op in drawn {
            match op {
                RandAugmentOp::Rotate(degrees) => {
                    assert!([10.0, 80.0 / 3.0, 30.0].iter().any(|most| (degrees.abs() - most).abs() < 1e-9));
                }
                RandAugmentOp::Posterize(bits) => assert!((4..=6).contains(&bits), "{bits}"),
                RandAugmentOp::ShearY(_) | RandAugmentOp::TranslateX(_) | RandAugmentOp::Brightness(_) => {
                    panic!("{op:?} is not of this policy")
                }
                _ => {}
            }
        }
    }
}

#[test]
fn shares_of_chains_sum_to_1() {
    for alpha in [0.001, 0.3, 1.0, 5.0, 1000.0] {
        let (mut sum, mut squares, n) = (0.0, 0.0, 4_000);
        for nth in 0..n {
            let chains = AugMix::new(10, 4).unwrap().alpha(alpha).unwrap().draw(50, 40, &mut rng(nth));
            assert!(chains.len() == 5 && chains[0].1.is_empty());
            assert!(chains[1..].iter().all(|(_, chain)| (1..=3).contains(&chain.len())));
            let total: f64 = chains.iter().map(|(share, _)| share).sum();
            assert!((total - 1.0).abs() < 1e-9 && chains.iter().all(|(share, _)| (0.0..=1.0).contains(share)));
            sum += chains[0].0;
            squares += (chains[0].0 - 0.5).powi(2);
        }
        // Beta(alpha, alpha) has the mean 1/2 and the variance 1 / (8 alpha + 4).
        let (mean, variance) = (sum / f64::from(n as u32), squares / f64::from(n as u32));
        let expected = 1.0 / (8.0 * alpha + 4.0);
        assert!((mean - 0.5).abs() < 0.03, "{alpha}: {mean}");
        assert!((variance - expected).abs() < 0.08 * expected, "{alpha}: {variance}, not {expected}");
    }
}

#[test]
fn chains_have_the_depth_and_the_operations_that_are_set() {
    let mix = AugMix::new(1, 2).unwrap().chain_depth(5).unwrap().all_ops(false);
    for nth in 0..500 {
        for (_, chain) in &mix.draw(30, 30, &mut rng(nth))[1..] {
            assert_eq!(chain.len(), 5);
            for op in chain {
                match *op {
                    // The least strength changes nothing, or keeps 4 bits.
                    RandAugmentOp::Posterize(bits) => assert_eq!(bits, 4),
                    RandAugmentOp::Solarize(threshold) => assert_eq!(threshold, 255.0),
                    RandAugmentOp::Rotate(by) | RandAugmentOp::ShearX(by) | RandAugmentOp::TranslateY(by) => {
                        assert_eq!(by, 0.0);
                    }
                    RandAugmentOp::Brightness(_) | RandAugmentOp::Color(_) | RandAugmentOp::Contrast(_) => {
                        panic!("{op:?} is drawn")
                    }
                    RandAugmentOp::Sharpness(_) | RandAugmentOp::Identity => panic!("{op:?} is drawn"),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn masks_boxes_and_points_stay_in_a_mix() {
    use burn_augment::Augment;
    let image = photo(40, 30);
    let boxes = Boxes::new([[3.0, 4.0, 20.0, 25.0]], [1], BoxFormat::Xyxy).unwrap();
    let points = Points::new([[7.0, 8.0]]).unwrap();
    let mix = AugMix::new(10, 3).unwrap();
    let (mixed, after, at) = mix.apply((image.clone(), boxes.clone(), points.clone()), &mut rng(3)).unwrap();
    assert!(mixed != image && after == boxes && at == points);
    assert_eq!(apply(&mix, &image, 3), mixed);
}
