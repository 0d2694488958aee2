//! Checks that a device has memory for a dataset, before anything is read.

use crate::{
    device::{DeviceMemory, Target},
    fault::Error,
    memory::Field,
};

/// The most rows: row numbers have 32 bits on the device.
const MOST_ROWS: usize = i32::MAX as usize;
/// Error messages show bytes in this unit.
const GB: f64 = 1e9;

/// The memory that a dataset takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableRoom {
    pub(super) rows: usize,
    pub(crate) bytes: usize,
    /// The bytes of the largest field, which is one allocation.
    pub(super) largest: usize,
}

impl TableRoom {
    /// The memory of `rows` rows. Rows of padded fields count with their maximum length.
    pub(crate) fn of(fields: &[Field], rows: usize) -> Self {
        let row = |field: &Field| field.shape.iter().fold(field.dtype.size(), |bytes, dim| bytes.saturating_mul(*dim));
        let each = fields.iter().map(|field| row(field).saturating_mul(rows));
        let bytes = each.clone().fold(0, usize::saturating_add);
        Self { rows, bytes, largest: each.max().unwrap_or(0) }
    }

    /// Checks that the device has enough memory, if its free memory is known.
    ///
    /// # Errors
    /// [`Error::Config`] with the numbers.
    pub(super) fn check(self, target: &Target) -> Result<(), Error> {
        self.check_in(&target.memory()).map_err(|problem| {
            let advice = "use `build`, keep smaller values such as u8 instead of f32, or free memory of the device";
            Error::config("build_kept", problem, advice)
        })
    }

    /// Whether the device reports free memory for twice the dataset: the other half is for the training.
    pub(crate) fn is_small(self, target: &Target) -> bool {
        let memory = target.memory();
        memory.free.is_some_and(|free| self.bytes <= free / 2) && self.check_in(&memory).is_ok()
    }

    fn check_in(self, memory: &DeviceMemory) -> Result<(), String> {
        let Self { rows, bytes, largest } = self;
        let (most, free) = (memory.largest.unwrap_or(usize::MAX), memory.free.unwrap_or(usize::MAX));
        let gb = |bytes: usize| format!("{:.2} GB", bytes as f64 / GB);
        if rows > MOST_ROWS {
            Err(format!("{rows} rows are more than the {MOST_ROWS} that a device can number"))
        } else if largest > most {
            let (largest, most) = (gb(largest), gb(most));
            Err(format!("a field of the dataset takes {largest}, and the device allocates at most {most} at once"))
        } else if bytes > free {
            let (bytes, free) = (gb(bytes), gb(free));
            Err(format!("the dataset takes {bytes} in {rows} rows, and the device has {free} free"))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::DType;

    #[test]
    fn what_does_not_fit_is_refused_with_figures() {
        let fields = [Field::new("image", DType::U8, [3, 10, 10]), Field::padded("tokens", [50], 0i64)];
        let room = TableRoom::of(&fields, 1_000_000);
        assert_eq!((room.bytes, room.largest), (700_000_000, 400_000_000));
        let memory = |free, largest| DeviceMemory { free, largest };
        let check = |room: TableRoom, free, largest| room.check_in(&memory(free, largest)).err().unwrap_or_default();
        assert_eq!(check(room, None, None), "");
        assert_eq!(check(room, Some(700_000_000), Some(400_000_000)), "");
        let refused = check(room, Some(650_000_000), None);
        assert_eq!(refused, "the dataset takes 0.70 GB in 1000000 rows, and the device has 0.65 GB free");
        assert!(check(room, None, Some(399_999_999)).contains("at most 0.40 GB at once"));
        assert!(check(TableRoom::of(&fields, 1 << 31), None, None).contains("2147483648 rows are more than"));
        assert_eq!(TableRoom::of(&fields, usize::MAX).bytes, usize::MAX);
    }
}
