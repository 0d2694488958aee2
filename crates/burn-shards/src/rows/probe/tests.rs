use super::*;
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize)]
#[expect(dead_code, reason = "only its names are asked for")]
struct Row {
    #[serde(rename = "seg.png", alias = "mask")]
    segments: Vec<u8>,
    label: Option<i64>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only its names are asked for")]
struct Open {
    label: i64,
    #[serde(flatten)]
    rest: HashMap<String, String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only its names are asked for")]
struct Outer(Row);

#[test]
fn structs_ask_for_names_and_tuples_for_places() {
    assert_eq!(asked::<Row>(), Demand::Fields(&["mask", "seg.png", "label"]));
    assert_eq!(asked::<Outer>(), Demand::Fields(&["mask", "seg.png", "label"]));
    assert_eq!(asked::<(String, u8)>(), Demand::Tuple(2));
    assert_eq!(asked::<Open>(), Demand::All);
    assert_eq!(asked::<HashMap<String, i64>>(), Demand::All);
    assert_eq!(asked::<u8>(), Demand::Value);
}

#[test]
fn fields_beside_flatten_are_found() {
    assert!(declares::<Open>("label"));
    assert!(!declares::<Open>("other"), "a map takes it as any other");
    assert!(!declares::<HashMap<String, i64>>("label"));
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only its names are asked for")]
struct Nested {
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

fn some(fields: &[(&str, Selection)]) -> Selection {
    Selection::Some(fields.iter().map(|(name, wanted)| ((*name).into(), wanted.clone())).collect())
}

#[test]
fn structs_at_each_level_tell_their_fields() {
    let columns = ["label", "the meta", "list", "absent"].map(|name| (Arc::from(name), Selection::All));
    let all = || Selection::All;
    let mut inner = all();
    for _ in 0..DEPTH - 1 {
        inner = some(&[("x", all()), ("again", inner)]);
    }
    let meta = some(&[("w", all()), ("width", all()), ("inner", inner)]);
    let right = some(&[("label", all()), ("the meta", meta.clone()), ("list", meta), ("absent", all())]);
    assert_eq!(nested::<Nested>(&columns), right);
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
    let columns = ["tree", "link"].map(|name| (Arc::from(name), Selection::All));
    let right = ["tree", "link"].map(|name| (Arc::from(name), Selection::All));
    assert_eq!(nested::<Trees>(&columns), Selection::Some(right.into()));
}
