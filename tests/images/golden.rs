//! The bytes that the loader delivers for a seed. They are a promise: a run that is repeated with a newer version sees the same
//! images. Whoever changes one of them writes so into CHANGELOG.md.

use crate::photo::photo;
use burn::{
    data::dataset::{Dataset, DatasetError},
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{
    Augment, BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut,
    augment::{OneOf, RandomApply, RandomOrder, WithOthers},
    vision::*,
};
use image::RgbImage;

/// Twelve pictures of different sizes.
struct Photos;

impl Dataset<(RgbImage, usize)> for Photos {
    fn get(&self, index: usize) -> Result<(RgbImage, usize), DatasetError> {
        Ok((photo(40 + 5 * index as u32, 60 - 3 * index as u32), index))
    }
    fn len(&self) -> usize {
        12
    }
}

/// 24 x 24 pixels.
struct Planes;

impl Collate<(RgbImage, usize)> for Planes {
    type Batch = Vec<u8>;
    fn layout(&self) -> Vec<Field> {
        vec![Field::new("image", DType::U8, [3, 24, 24])]
    }
    fn write(&self, (image, _): &(RgbImage, usize), row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(write_chw(image, row.slice_mut("image")?)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Vec<u8>, BoxError> {
        let images: Tensor<4, Int> = batch.take("image")?;
        Ok(images.into_data().try_to_vec::<u8>()?)
    }
}

type Sample = (RgbImage, usize);

/// Two epochs of seed 7, as an FNV-1a hash of 64 bits and the first four bytes, made by `workers` workers.
fn delivered(augment: &OneOf<Sample>, workers: usize) -> (u64, [u8; 4]) {
    let builder = PinnedDataLoaderBuilder::new(Planes).batch_size(5).shuffle(7).num_workers(workers);
    let loader = builder.augment(augment.clone()).set_device(Device::flex()).build(Photos).unwrap();
    let bytes: Vec<u8> = (0..2).flat_map(|_| loader.iter().flat_map(Result::unwrap).collect::<Vec<u8>>()).collect();
    assert_eq!(bytes.len(), 2 * 12 * 3 * 24 * 24);
    let hash = bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
    (hash, [bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[test]
fn the_bytes_of_every_transform() {
    let mut wrong = String::new();
    let mut check = |name: &str, augment: OneOf<Sample>, expected: (u64, [u8; 4])| {
        let one = delivered(&augment, 1);
        for workers in [2, 5] {
            assert_eq!(delivered(&augment, workers), one, "{name} by {workers} workers");
        }
        if one != expected {
            wrong += &format!("\n{name}: ({:#018X}, {:?})", one.0, one.1);
        }
    };
    // A `OneOf` with one choice gives all of them the same type.
    fn then(augment: impl Augment<Sample>) -> OneOf<Sample> {
        OneOf::new((augment, CenterCrop::new(24).unwrap()))
    }
    let jitter = ColorJitter::new().brightness(0.4).unwrap().contrast(0.4).unwrap();
    let jitter = jitter.saturation(0.4).unwrap().hue(0.1).unwrap();
    let tilt = RandomRotation::new(30.0).unwrap().fill([9, 8, 7]);
    let resized = || RandomResizedCrop::new(24).unwrap();
    let crop = || RandomCrop::new(24).unwrap().padding(20).fill([1, 2, 3]);
    let smooth = Interpolation::Bilinear;
    check("CenterCrop", then(CenterCrop::new(24).unwrap()), (0x91BA_6F92_3B4D_00D5, [74, 78, 83, 88]));
    check("Resize", then(Resize::exact(24).unwrap()), (0x52AA_B67C_D7C4_E2F5, [4, 13, 24, 34]));
    check(
        "Resize, bicubic",
        then(Resize::shorter_side(24).unwrap().interpolation(Interpolation::Bicubic)),
        (0x85D6_E648_DFB8_02BD, [3, 12, 23, 33]),
    );
    check("RandomResizedCrop", then(resized()), (0x3CAD_FE57_B54A_151A, [125, 127, 130, 134]));
    check(
        "RandomResizedCrop, nearest",
        then(resized().interpolation(Interpolation::Nearest)),
        (0x7FD8_65C6_5CF7_F6E5, [125, 129, 129, 134]),
    );
    check("RandomCrop", then(crop()), (0x6441_1F41_ABEE_158A, [1, 1, 1, 1]));
    check("RandomCrop, edge", then(crop().padding_mode(PaddingMode::Edge)), (0x9E8E_2B3F_8D94_36CB, [0, 0, 0, 0]));
    check(
        "RandomCrop, reflect",
        then(crop().padding_mode(PaddingMode::Reflect)),
        (0x11CB_CE8D_04B9_BAA5, [18, 13, 9, 4]),
    );
    check(
        "RandomCrop, symmetric",
        then(crop().padding_mode(PaddingMode::Symmetric)),
        (0x8963_2A7F_F1EC_E48B, [13, 9, 4, 0]),
    );
    check("RandomHorizontalFlip", then(RandomHorizontalFlip::default()), (0x2A01_DC42_A31C_94D3, [176, 171, 166, 162]));
    check("RandomVerticalFlip", then(RandomVerticalFlip::default()), (0xF53D_E29E_B664_5CE3, [74, 78, 83, 88]));
    check("RandomRotate90", then(RandomRotate90), (0x22EE_6F0F_FE07_A89F, [74, 78, 83, 88]));
    check("D4", then(D4), (0x4ADF_8704_72AC_CF99, [176, 176, 176, 176]));
    check("ColorJitter", then(jitter), (0x45CA_3172_5B38_B5BA, [48, 48, 48, 48]));
    check("Grayscale", then(Grayscale), (0xD543_C8D8_7225_FA39, [80, 84, 86, 87]));
    check("RandomGrayscale", then(RandomGrayscale::new(0.5).unwrap()), (0xA5F5_7695_5249_26B0, [80, 84, 86, 87]));
    check("RandomRotation", then(tilt), (0x0405_A069_3D6E_699E, [55, 60, 64, 69]));
    check(
        "RandomRotation, bilinear",
        then(tilt.interpolation(smooth).expand(true)),
        (0x3A0A_2C5F_509A_7F00, [52, 56, 60, 64]),
    );
    check("RandomErasing", then((resized(), RandomErasing::default())), (0x8E37_A71B_BB5F_7558, [125, 127, 130, 134]));
    check(
        "RandomErasing, noise",
        then((resized(), RandomErasing::default().value(Erased::Noise))),
        (0x743B_42FD_C7FE_EF97, [125, 127, 130, 134]),
    );
    check("RandAugment", then(RandAugment::new(4, 20).unwrap()), (0x8053_1EDB_BCAA_E888, [11, 11, 12, 14]));
    check(
        "RandAugment, bilinear",
        then(RandAugment::default().interpolation(smooth)),
        (0x18E5_77C9_7D9D_221B, [41, 46, 51, 55]),
    );
    check("TrivialAugmentWide", then(TrivialAugmentWide::new()), (0x8C6F_7BB0_A14C_C395, [74, 78, 83, 88]));
    check(
        "TrivialAugmentWide, bilinear",
        then(TrivialAugmentWide::new().interpolation(smooth).fill([9, 8, 7])),
        (0xD218_A2AA_DEFF_384B, [74, 78, 83, 88]),
    );
    let affine = RandomAffine::new(30.0).unwrap().translate(0.2, 0.1).unwrap().scale(0.8, 1.3).unwrap();
    let affine = affine.shear(20.0, 10.0).unwrap().fill([9, 8, 7]);
    check("RandomAffine", then(affine), (0x2C39_DA66_2C1C_147E, [129, 134, 139, 143]));
    check("RandomAffine, bilinear", then(affine.interpolation(smooth)), (0xDDDD_91C6_23F6_5CE8, [129, 134, 139, 143]));
    check(
        "RandomPerspective",
        then(RandomPerspective::new(0.5, 1.0).unwrap()),
        (0xF7F3_09EB_2607_A32B, [76, 82, 88, 93]),
    );
    check(
        "Pad",
        then(Pad::each([30, 2, 3, 4]).padding_mode(PaddingMode::Symmetric)),
        (0x509E_A1C9_E1FD_2765, [9, 13, 18, 23]),
    );
    check("LetterBox", then(LetterBox::new([24, 30]).unwrap()), (0xCF48_45F1_948E_E805, [12, 22, 31, 41]));
    check("RandomResize", then(RandomResize::new(20, 40).unwrap()), (0x7D25_6A0C_A16B_E761, [4, 13, 24, 34]));
    check(
        "RandomResize, listed",
        then(RandomResize::shortest_size(&[20, 30, 40], Some(50)).unwrap()),
        (0x2DBC_44D0_A5F4_30FD, [0, 0, 0, 0]),
    );
    check(
        "RandomResize, jittered",
        then(RandomResize::scale_jitter([24, 30], 0.5, 2.0).unwrap()),
        (0x3E34_58ED_43A8_948A, [0, 0, 0, 0]),
    );
    check(
        "RandomZoomOut",
        then((RandomZoomOut::default(), Resize::exact(24).unwrap())),
        (0x6AE2_8A9E_B54B_84CF, [0, 0, 0, 0]),
    );
    check(
        "RandomPhotometricDistort",
        then(RandomPhotometricDistort::new(0.5).unwrap()),
        (0x7E04_7089_5AD8_E1DE, [142, 163, 167, 167]),
    );
    check("GaussianBlur", then(GaussianBlur::new([5, 9]).unwrap()), (0xF338_F3DE_8ED7_C1EA, [74, 78, 83, 88]));
    check("RandomSolarize", then(RandomSolarize::new(100, 0.5).unwrap()), (0x2480_7BFB_7CB3_C3B2, [74, 78, 83, 88]));
    check("RandomPosterize", then(RandomPosterize::new(3, 0.5).unwrap()), (0xF83D_40B4_429B_3A0B, [64, 64, 64, 64]));
    check("RandomEqualize", then(RandomEqualize::new(0.5).unwrap()), (0x7427_7C25_E429_184E, [82, 87, 92, 97]));
    check("RandomAutocontrast", then(RandomAutocontrast::new(0.5).unwrap()), (0xDDCD_C431_1E66_0FA3, [75, 79, 84, 89]));
    check("RandomInvert", then(RandomInvert::new(0.5).unwrap()), (0xE14A_674F_C4A2_F48D, [181, 177, 172, 167]));
    check(
        "RandomAdjustSharpness",
        then(RandomAdjustSharpness::new(2.5, 0.5).unwrap()),
        (0x41E1_E8C1_CD78_97E1, [74, 78, 83, 88]),
    );
    let cubic = Interpolation::Bicubic;
    check(
        "RandomRotation, bicubic",
        then(tilt.interpolation(cubic).center(3.0, 40.5).unwrap()),
        (0xCD73_1A16_F193_5EA4, [11, 15, 20, 24]),
    );
    check(
        "RandomAffine, bicubic",
        then(affine.interpolation(cubic).center(-10.0, 7.0).unwrap()),
        (0x1A03_4D79_0790_EF1B, [93, 98, 103, 107]),
    );
    check(
        "RandomPerspective, bicubic",
        then(RandomPerspective::new(0.5, 1.0).unwrap().interpolation(cubic)),
        (0xF52F_B008_EE4C_7C13, [75, 81, 87, 93]),
    );
    check(
        "AutoAugment",
        then(AutoAugment::new(AutoAugmentPolicy::ImageNet)),
        (0x6754_D25D_CF2C_9511, [74, 78, 83, 88]),
    );
    check(
        "AutoAugment, CIFAR-10",
        then(AutoAugment::new(AutoAugmentPolicy::Cifar10).interpolation(smooth)),
        (0x3686_8AA5_4A4B_4B31, [82, 87, 92, 97]),
    );
    check(
        "AutoAugment, SVHN",
        then(AutoAugment::new(AutoAugmentPolicy::Svhn).fill([9, 8, 7])),
        (0x9722_ECFA_ACDE_B30E, [71, 77, 82, 87]),
    );
    check("AugMix", then(AugMix::new(3, 3).unwrap()), (0x4A94_C0FF_173D_E650, [63, 68, 72, 77]));
    check(
        "AugMix, alpha 0.3",
        then(AugMix::new(10, 4).unwrap().alpha(0.3).unwrap().chain_depth(2).unwrap().all_ops(false)),
        (0x29CF_2C77_3EA4_FB79, [57, 60, 63, 66]),
    );
    check(
        "ElasticTransform",
        then(ElasticTransform::new(50.0, 5.0).unwrap()),
        (0x3A59_B648_DED3_A94B, [69, 73, 77, 81]),
    );
    check(
        "ElasticTransform, nearest",
        then(ElasticTransform::new(9.0, 0.0).unwrap().interpolation(Interpolation::Nearest).fill([9, 8, 7])),
        (0xD358_EE07_EB5E_A6C2, [69, 74, 83, 88]),
    );
    check("GaussianNoise", then(GaussianNoise::new(0.1, 0.1).unwrap()), (0x2075_A545_5D9D_E6A4, [152, 63, 116, 59]));
    check("RandomGamma", then(RandomGamma::new(80.0, 120.0).unwrap()), (0x8371_0E51_E0CF_3A33, [92, 96, 101, 106]));
    check("CLAHE", then(CLAHE::new(1.0, 4.0).unwrap()), (0x7581_C284_3CEE_D4E9, [122, 132, 141, 145]));
    check("JPEG", then(JPEG::new(10..=90).unwrap()), (0xE874_01D8_79E6_DD28, [80, 82, 84, 86]));
    check("RandomChannelPermutation", then(RandomChannelPermutation), (0xFDC5_CF2A_4792_4705, [74, 78, 83, 88]));
    check(
        "Mosaic",
        then(WithOthers::new(Photos, Mosaic::new(60).unwrap()).unwrap()),
        (0x26FC_6C89_3C64_D583, [69, 78, 87, 95]),
    );
    check(
        "MixUpBoxes",
        then(WithOthers::new(Photos, MixUpBoxes::new(1.5).unwrap()).unwrap().changed(Grayscale)),
        (0x4CD0_BF99_4BCE_1B13, [83, 83, 82, 84]),
    );
    check("RandomApply", then(RandomApply::new(0.5, Grayscale).unwrap()), (0xA5F5_7695_5249_26B0, [80, 84, 86, 87]));
    check(
        "OneOf",
        then(OneOf::new(Grayscale).or(resized()).weights(&[1.0, 2.0]).unwrap()),
        (0x1810_9B1F_8C8A_0EAC, [80, 84, 86, 87]),
    );
    check(
        "RandomOrder",
        then(RandomOrder::new(resized()).and(RandomHorizontalFlip::default())),
        (0x8C12_7C30_A2A5_78D1, [211, 204, 196, 189]),
    );
    assert!(wrong.is_empty(), "other bytes than promised:{wrong}");
}
