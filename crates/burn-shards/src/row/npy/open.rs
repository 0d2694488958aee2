//! `.npy` files as arrays in memory: mapped, so that their numbers are read when they are used.

use super::layout;
use crate::{
    error::DataError,
    source::{
        cell::{Array, Type},
        magic::{NPY, known},
    },
    system::mapped::MappedFile,
};
use burn::tensor::Element;
use bytemuck::Pod;
use std::{ops::Range, path::Path, sync::Arc};

/// The numbers of a mapped file, and their bytes there.
struct MappedNumbers {
    map: MappedFile,
    bytes: Range<usize>,
}

impl<T: Pod> AsRef<[T]> for MappedNumbers {
    fn as_ref(&self) -> &[T] {
        bytemuck::cast_slice(&self.map.bytes()[self.bytes.clone()])
    }
}

impl<T: Element + Pod> Array<T> {
    /// Opens a `.npy` file of numbers of the type `T`, and maps it into memory. It reads the header, on the calling thread. The numbers are
    /// read from the file when they are used; all processes of a machine share one copy of them.
    ///
    /// ```
    /// use burn_shards::Array;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("power.npy");
    /// # let header = b"\x93NUMPY\x01\0\x46\0{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }          \n";
    /// # std::fs::write(&path, [&header[..], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes).concat()].concat())?;
    /// let power = Array::<f32>::open(path)?; // of three hours at two places
    /// assert_eq!(power.shape(), [3, 2]);
    /// assert_eq!(power.rows(1..2).data(), [3.0, 4.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Nothing is converted, except that numbers which do not lie at a multiple of their size are copied into memory; NumPy writes no such
    /// files. Do not truncate the file or write to it while it is open, as for [`Tokens`](crate::Tokens#files-that-change).
    ///
    /// # Errors
    /// - [`DataError::Open`]: the file cannot be opened or mapped.
    /// - [`DataError::Format`]: it is a file of another kind.
    /// - [`DataError::Damaged`]: its header is not clear or has an unknown type, or its shape does not fit its bytes, because it is cut off
    ///   or has more behind the array.
    /// - [`DataError::Schema`]: its numbers have another type.
    /// - [`DataError::Unsupported`]: its numbers are in Fortran order, or not in the order of bytes of this machine.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let object = path.display().to_string();
        let map = MappedFile::open(path).map_err(|source| DataError::Open { path: path.into(), source })?;
        if let Some(magic) = known(map.bytes()).filter(|magic| magic.is != NPY.is) {
            return Err(DataError::format(&object, magic.is, magic.cure));
        }
        let npy = layout(map.bytes()).map_err(|problem| DataError::damaged(&object, problem))?;
        let dtype = T::dtype();
        if Type::of_numpy(&dtype.name()[..1], dtype.size()) != Some(npy.kind) {
            let problem = format!("its numbers are not {}: open an `Array` of their type", dtype.name());
            return Err(DataError::Schema { object, problem, there_is: vec![("numbers".into(), npy.descr)] });
        }
        let refused = |what| Err(DataError::unsupported(&object, None, what));
        if npy.is_big != cfg!(target_endian = "big") && dtype.size() > 1 {
            return refused("numbers in the other order of bytes (`x.astype` converts them)");
        }
        if npy.is_fortran {
            return refused("numbers in Fortran order (`numpy.ascontiguousarray` converts them)");
        }
        let bytes = &map.bytes()[npy.data.clone()];
        match bytemuck::try_cast_slice::<u8, T>(bytes) {
            Ok(_) => Self::shared(npy.shape, Arc::new(MappedNumbers { map, bytes: npy.data })),
            Err(_) => Self::new(npy.shape, bytemuck::pod_collect_to_vec(bytes)),
        }
    }
}
