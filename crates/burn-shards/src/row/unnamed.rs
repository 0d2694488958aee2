//! Structs whose fields have no names: for a deserializer, a tuple struct is a tuple, and a newtype is its inner value.

/// The methods of a `Deserializer<'de>` for them.
macro_rules! unnamed_structs {
    () => {
        fn deserialize_tuple_struct<V: serde::de::Visitor<'de>>(
            self,
            _name: &'static str,
            len: usize,
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            self.deserialize_tuple(len, visitor)
        }

        fn deserialize_newtype_struct<V: serde::de::Visitor<'de>>(
            self,
            name: &'static str,
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            // The crate `half` takes the inner value of a newtype as bits.
            match name {
                "f16" | "bf16" => self.deserialize_any(visitor),
                _ => visitor.visit_newtype_struct(self),
            }
        }
    };
}

pub(crate) use unnamed_structs;
