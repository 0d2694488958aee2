//! The values of image fields, and where their pixels are made.

use crate::fault::Error;
use burn::tensor::{DType, bf16, f16};
use std::str::FromStr;

/// Where the pixels of an image field are made, for files that wait to be decoded
/// (`vision::Image`). The choice for a file never depends on timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Decoder {
    /// On the device if it has engines for JPEGs that can be used, else on the workers. Files that the engines do not
    /// take (progressive ones, PNG, ...) are decoded on the workers in any case, and so are those that are longer than
    /// the room ([`Field::room`](crate::Field::room)).
    ///
    /// On the workers too if CUDA has fewer than 16 hardware queues and there are 8 workers for each device: steps would
    /// wait for the engines. [`prepare`](crate::prepare) asks for 32 queues.
    #[default]
    Auto,
    /// On the workers.
    Host,
    /// On the device. If the device cannot decode, building the loader fails.
    Device,
}

/// `auto`, `host` or `device`: for options of a program.
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

/// What makes a field one of images.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImageField {
    pub(super) mean: [f32; 3],
    pub(super) std: [f32; 3],
    pub(super) normalized: bool,
    pub(crate) room: usize,
    pub(crate) decoder: Decoder,
}

impl ImageField {
    /// The value of a level from 0 to 1.
    pub(crate) fn value(&self, channel: usize, level: f32) -> f32 {
        if self.normalized { (level - self.mean[channel]) / self.std[channel] } else { level }
    }
}

/// The value of each byte, for each channel, as bits of the field's dtype.
#[derive(Debug, Clone)]
pub(crate) enum LevelTable {
    /// The bytes are the values: the host copies them.
    #[cfg_attr(not(any(feature = "cuda", test)), expect(dead_code, reason = "only CUDA decodes on the device"))]
    Bits8(Box<[[u8; 256]; 3]>),
    Bits16(Box<[[u16; 256]; 3]>),
    Bits32(Box<[[u32; 256]; 3]>),
}

impl LevelTable {
    pub(super) fn of(image: &ImageField, dtype: DType) -> Self {
        let value = |channel: usize, byte: usize| image.value(channel, byte as f32 / 255.0);
        fn table<T>(value: impl Fn(usize, usize) -> T) -> Box<[[T; 256]; 3]> {
            Box::new(std::array::from_fn(|channel| std::array::from_fn(|byte| value(channel, byte))))
        }
        match dtype {
            DType::F32 => Self::Bits32(table(|channel, byte| value(channel, byte).to_bits())),
            DType::F16 => Self::Bits16(table(|channel, byte| f16::from_f32(value(channel, byte)).to_bits())),
            DType::BF16 => Self::Bits16(table(|channel, byte| bf16::from_f32(value(channel, byte)).to_bits())),
            DType::U16 => Self::Bits16(table(|_, byte| 257 * byte as u16)),
            _ => Self::Bits8(Box::new([std::array::from_fn(|byte| byte as u8); 3])),
        }
    }

    /// The bytes of the table: channel after channel.
    #[cfg(feature = "cuda")]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bits8(table) => table.as_flattened(),
            Self::Bits16(table) => bytemuck::cast_slice(table.as_flattened()),
            Self::Bits32(table) => bytemuck::cast_slice(table.as_flattened()),
        }
    }
}
