//! Which fields of the structs in a row its type asks for. The `Deserialize` of the row is asked, with a deserializer that
//! has no data but one name at each level.

use crate::{
    row::{RowError, unnamed_structs},
    source::Wanted,
};
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, IntoDeserializer, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use std::{cell::Cell, iter, sync::Arc};

/// The depth of fields that are asked for. A type may hold itself, so all deeper fields are wanted.
const DEPTH: usize = 4;
/// The lists and options that are looked through.
const LAYERS: u8 = 64;

/// What a row type with named fields wants of the values of these columns.
pub(crate) fn nested<T: DeserializeOwned>(columns: &[(Arc<str>, Wanted)]) -> Wanted {
    let inside = |(name, _): &(Arc<str>, Wanted)| (Arc::clone(name), inside::<T>(&mut vec![Arc::clone(name)]));
    Wanted::Some(columns.iter().map(inside).collect())
}

/// What the row type wants of the value that these names lead to. A value that is no struct is wanted as it is.
fn inside<T: DeserializeOwned>(path: &mut Vec<Arc<str>>) -> Wanted {
    let asked = Cell::new(None);
    let _ = T::deserialize(Way { path, asked: &asked, left: LAYERS }); // always an error: there are no data
    let Some(fields) = asked.get().filter(|_| path.len() <= DEPTH) else { return Wanted::All };
    let field = |name: &&'static str| {
        let name: Arc<str> = Arc::from(*name);
        path.push(Arc::clone(&name));
        let wanted = inside::<T>(path);
        path.pop();
        (name, wanted)
    };
    Wanted::Some(fields.iter().map(field).collect())
}

/// The rest of the way to a value.
#[derive(Clone, Copy)]
struct Way<'a> {
    path: &'a [Arc<str>],
    asked: &'a Cell<Option<&'static [&'static str]>>,
    /// How many more lists and options may hold each other: a type may hold itself in them.
    left: u8,
}

impl Way<'_> {
    fn deeper(self) -> Result<Self, RowError> {
        self.left.checked_sub(1).map_or_else(no_data, |left| Ok(Self { left, ..self }))
    }
}

fn no_data<V>() -> Result<V, RowError> {
    Err(RowError::new("no data"))
}

impl<'de> Deserializer<'de> for Way<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
        no_data()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_some(self.deeper()?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        let Some((name, path)) = self.path.split_first() else {
            self.asked.set(Some(fields));
            return no_data();
        };
        visitor.visit_map(MapDeserializer::new(iter::once((&**name, Way { path, ..self }))))
    }

    /// A list has the way of its elements.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_seq(SeqDeserializer::new(iter::once(self.deeper()?)))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, _: V) -> Result<V::Value, RowError> {
        no_data()
    }

    unnamed_structs!();

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct map enum
        identifier ignored_any
    }
}

impl IntoDeserializer<'_, RowError> for Way<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its names are asked for")]
    struct Row {
        label: i64,
        #[serde(rename = "the meta")]
        meta: Option<Box<Meta>>,
        list: Vec<Meta>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its names are asked for")]
    struct Meta {
        #[serde(alias = "width")]
        w: u32,
        inner: Wrapped,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its names are asked for")]
    struct Wrapped(Inner);

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its names are asked for")]
    struct Inner {
        x: Option<f32>,
        again: Option<Box<Inner>>,
    }

    fn some(fields: &[(&str, Wanted)]) -> Wanted {
        Wanted::Some(fields.iter().map(|(name, wanted)| ((*name).into(), wanted.clone())).collect())
    }

    #[test]
    fn structs_at_each_level_tell_their_fields() {
        let columns = ["label", "the meta", "list", "absent"].map(|name| (Arc::from(name), Wanted::All));
        let all = || Wanted::All;
        let mut inner = all();
        for _ in 0..DEPTH - 1 {
            inner = some(&[("x", all()), ("again", inner)]);
        }
        let meta = some(&[("w", all()), ("width", all()), ("inner", inner)]);
        let right = some(&[("label", all()), ("the meta", meta.clone()), ("list", meta), ("absent", all())]);
        assert_eq!(nested::<Row>(&columns), right);
    }

    /// A type that holds itself in lists has no end, and no fields.
    #[test]
    fn a_type_that_holds_itself_is_looked_at_for_a_while() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only its names are asked for")]
        struct Trees {
            tree: Tree,
            link: Link,
        }
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "it is never made")]
        struct Tree(Vec<Tree>);
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "it is never made")]
        struct Link(Option<Box<Link>>);
        let columns = ["tree", "link"].map(|name| (Arc::from(name), Wanted::All));
        let right = ["tree", "link"].map(|name| (Arc::from(name), Wanted::All));
        assert_eq!(nested::<Trees>(&columns), Wanted::Some(right.into()));
    }
}
