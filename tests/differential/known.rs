//! Types that rows are read as, each as an exact value again.

use crate::exact::Exact;
use burn_pinned::data::Array;
use bytes::Bytes;
use serde::de::DeserializeOwned;

/// A type of a field.
pub(crate) trait Known: DeserializeOwned + Send + Sync + 'static {
    fn exact(self) -> Exact;
}

impl Known for Exact {
    fn exact(self) -> Exact {
        self
    }
}

impl Known for bool {
    fn exact(self) -> Exact {
        Exact::Bool(self)
    }
}

impl Known for i128 {
    fn exact(self) -> Exact {
        Exact::Int(self)
    }
}

impl Known for f32 {
    fn exact(self) -> Exact {
        Exact::F32(self)
    }
}

impl Known for f64 {
    fn exact(self) -> Exact {
        Exact::F64(self)
    }
}

impl Known for String {
    fn exact(self) -> Exact {
        Exact::Text(self)
    }
}

impl Known for Bytes {
    fn exact(self) -> Exact {
        Exact::Bytes(self.to_vec())
    }
}

impl<T: Known> Known for Option<T> {
    fn exact(self) -> Exact {
        self.map_or(Exact::Null, T::exact)
    }
}

impl<T: Known> Known for Vec<T> {
    fn exact(self) -> Exact {
        Exact::List(self.into_iter().map(T::exact).collect())
    }
}

impl<T: Known + Clone> Known for Array<T> {
    fn exact(self) -> Exact {
        let shape = self.shape().iter().map(|side| Exact::Int(*side as i128)).collect();
        Exact::Struct(vec![("shape".into(), Exact::List(shape)), ("data".into(), self.data().to_vec().exact())])
    }
}
