//! The parameters of an image field: where its images are decoded, and the value of each byte.

use crate::fault::Error;
use burn::tensor::{DType, bf16, f16};
use std::{str::FromStr, sync::Arc};

/// Where the files of an image field (`vision::Image`) are decoded. The choice for a file never depends on timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Decoder {
    /// On the device if it has usable JPEG engines, otherwise on the workers. The workers always decode files that the
    /// engines do not accept (progressive JPEGs, PNG, ...) and files that are longer than
    /// [`Field::room`](crate::Field::room).
    ///
    /// Also on the workers if CUDA has fewer than 16 hardware queues and each device has at least 8 workers, because
    /// steps would wait for the engines. [`prepare`](crate::prepare) sets up 32 queues.
    #[default]
    Auto,
    /// On the workers.
    Host,
    /// On the device. If the device cannot decode, building the loader fails.
    Device,
}

/// Parses `auto`, `host` or `device`, for options of a program.
///
/// ```
/// use burn_pinned::memory::Decoder;
///
/// assert_eq!("device".parse::<Decoder>()?, Decoder::Device);
/// assert!("gpu".parse::<Decoder>().is_err());
/// # Ok::<(), burn_pinned::Error>(())
/// ```
impl FromStr for Decoder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "auto" => Ok(Self::Auto),
            "host" => Ok(Self::Host),
            "device" => Ok(Self::Device),
            other => {
                let problem = format!("`{other}` is no decoder");
                Err(Error::config("Decoder::from_str", problem, "use auto, host or device"))
            }
        }
    }
}

/// The properties of an image field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImageField {
    pub(crate) mean: [f32; 3],
    pub(crate) std: [f32; 3],
    pub(crate) normalized: bool,
    pub(crate) room: usize,
    pub(crate) decoder: Decoder,
}

impl ImageField {
    /// The value for a brightness from 0 to 1.
    pub(crate) fn value(&self, channel: usize, level: f32) -> f32 {
        if self.normalized { (level - self.mean[channel]) / self.std[channel] } else { level }
    }
}

/// The value of each byte, for one channel after another, in the field's dtype.
pub(crate) fn level_table(image: &ImageField, dtype: DType) -> Arc<[u8]> {
    let bytes = (0..3).flat_map(|channel| (0..=255u8).map(move |byte| (channel, byte)));
    let value = |(channel, byte)| image.value(channel, f32::from(byte) / 255.0);
    match dtype {
        DType::F32 => bytes.flat_map(|at| value(at).to_ne_bytes()).collect(),
        DType::F16 => bytes.flat_map(|at| f16::from_f32(value(at)).to_ne_bytes()).collect(),
        DType::BF16 => bytes.flat_map(|at| bf16::from_f32(value(at)).to_ne_bytes()).collect(),
        DType::U16 => bytes.flat_map(|(_, byte)| (257 * u16::from(byte)).to_ne_bytes()).collect(),
        _ => bytes.map(|(_, byte)| byte).collect(),
    }
}
