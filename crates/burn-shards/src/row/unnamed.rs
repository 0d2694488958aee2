//! Structs whose fields have no names: to a deserializer, a tuple struct is a tuple, and a newtype is what it holds.

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
            // To the crate `half`, what a newtype holds are bits.
            match name {
                "f16" | "bf16" => self.deserialize_any(visitor),
                _ => visitor.visit_newtype_struct(self),
            }
        }
    };
}

pub(crate) use unnamed_structs;
