//! What row types make of cells.

use super::*;
use crate::{
    Array,
    source::{
        cell::{Raw, Type},
        sample,
    },
};
use bytes::Bytes;
use serde::Deserialize;
use std::{collections::HashMap, fmt};

fn record<const N: usize>(cells: [(&str, Cell); N]) -> Record {
    cells.into_iter().map(|(name, cell)| (name.into(), cell)).collect()
}

fn raw(bytes: &[u8], kind: Raw) -> Cell {
    Cell::Raw(bytes.to_vec(), kind)
}

#[derive(Debug, Deserialize, PartialEq)]
struct Point {
    x: f32,
    y: Option<i64>,
}

#[derive(Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Cat,
    Dog,
}

#[derive(Debug, Deserialize, PartialEq)]
struct All {
    small: u8,
    large: u64,
    real: f64,
    flag: bool,
    text: String,
    file: Bytes,
    maybe: Option<String>,
    gone: Option<u8>,
    tokens: Vec<u16>,
    words: Vec<Option<String>>,
    point: Point,
    kind: Kind,
    #[serde(rename = "seg.png")]
    segments: Vec<u8>,
    grid: Array<f32>,
    flat: Vec<f32>,
}

/// Serde would take the first two values of a list for the shape and the numbers.
#[test]
fn a_list_is_no_array_with_a_shape() {
    let list = |numbers: &[i64]| Cell::List(numbers.iter().map(|number| Cell::Int(*number)).collect());
    let numbers = |numbers: &[u16]| Type::U16.list(numbers);
    for cell in [
        Cell::List(vec![list(&[2, 3]), list(&[1, 2, 3, 4, 5, 6])]),
        Cell::List(vec![numbers(&[2]), numbers(&[1, 2])]),
        Cell::List(Vec::new()),
        list(&[1, 2]),
        numbers(&[1, 2]),
        raw(b"[[2], [1, 2]]", Raw::Json),
    ] {
        let array = row::<HashMap<String, Array<f32>>>(record([("x", cell.clone())]), None);
        let error = array.unwrap_err();
        assert!(error.problem.contains("Vec<Vec<..>>"), "{cell:?}: {error:?}");
        assert!(matches!(error.fault, Fault::Type(_)) && error.column.as_deref() == Some("x"), "{error:?}");
    }
    let lists = record([("x", Cell::List(vec![numbers(&[1, 2]), numbers(&[3])]))]);
    assert_eq!(row::<HashMap<String, Vec<Vec<f32>>>>(lists, None).unwrap()["x"], [vec![1.0, 2.0], vec![3.0]]);
}

#[test]
fn each_type_takes_its_cell() {
    let point =
        Cell::Struct(vec![("x".into(), Cell::F32(0.5)), ("other".into(), Cell::Int(1)), ("y".into(), Cell::Null)]);
    let grid = || Cell::Array(vec![1, 2], Type::U16, Bytes::from_static(&[1, 0, 2, 0]));
    let row: All = row(
        record([
            ("small", Cell::Int(255)),
            ("large", Cell::Unsigned(u64::MAX)),
            ("real", Cell::Int(3)),
            ("flag", Cell::Bool(true)),
            ("text", Cell::Text("a".into())),
            ("file", Cell::Bytes(vec![1, 2])),
            ("maybe", Cell::Null),
            ("not asked for", Cell::Int(0)),
            ("tokens", Type::I64.list(&[1i64, 65535])),
            ("words", Cell::List(vec![Cell::Text("b".into()), Cell::Null])),
            ("point", point),
            ("kind", Cell::Text("dog".into())),
            ("seg.png", Cell::Bytes(vec![9])),
            ("grid", grid()),
            ("flat", grid()),
        ]),
        None,
    )
    .unwrap();
    let expected = All {
        small: 255,
        large: u64::MAX,
        real: 3.0,
        flag: true,
        text: "a".into(),
        file: Bytes::from_static(&[1, 2]),
        maybe: None,
        gone: None,
        tokens: vec![1, 65535],
        words: vec![Some("b".into()), None],
        point: Point { x: 0.5, y: None },
        kind: Kind::Dog,
        segments: vec![9],
        grid: Array::new([1, 2], vec![1.0, 2.0]).unwrap(),
        flat: vec![1.0, 2.0],
    };
    assert_eq!(row, expected);
}

/// The files of a tar have no types: the row's type says how to read them.
#[test]
fn a_file_is_read_as_its_type_asks() {
    type Row = (i64, f32, bool, String, Bytes, Point, Vec<u8>, Kind, Option<u32>);
    let columns: Vec<Arc<str>> = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(Arc::from).to_vec();
    let cells = record([
        ("i", raw(b"7", Raw::Bytes)),
        ("a", raw(b" 12\n", Raw::Number)),
        ("b", raw(b"-0.5", Raw::Text)),
        ("c", raw(b"true", Raw::Bytes)),
        ("d", raw("grüß".as_bytes(), Raw::Bytes)),
        ("e", raw(b"{}", Raw::Json)),
        ("f", raw(br#"{"x": 1, "y": 2}"#, Raw::Json)),
        ("g", raw(b"[1, 2]", Raw::Json)),
        ("h", raw(b"cat\n", Raw::Text)),
    ]);
    let row: Row = row(cells, Some(&columns)).unwrap();
    let point = Point { x: 1.0, y: Some(2) };
    assert_eq!(row, (12, -0.5, true, "grüß".into(), Bytes::from_static(b"{}"), point, vec![1, 2], Kind::Cat, Some(7)));
}

#[test]
fn what_nobody_asks_for_by_type_is_by_its_kind() {
    let cells = record([("a", raw(b"12", Raw::Number)), ("b", raw(b"x", Raw::Text)), ("c", raw(b"[true]", Raw::Json))]);
    let row: HashMap<String, serde_json::Value> = row(cells, None).unwrap();
    let expected = [("a", 12.into()), ("b", "x".into()), ("c", serde_json::json!([true]))];
    assert_eq!(row, expected.into_iter().map(|(name, value)| (name.into(), value)).collect());
}

#[test]
fn errors_name_the_column_and_the_field_inside() {
    fn error<T: DeserializeOwned + fmt::Debug>(cell: Cell) -> (String, String) {
        let columns = ["col".into()];
        let error = row::<(T,)>(record([("col", cell)]), Some(&columns)).unwrap_err();
        (error.column.unwrap(), error.problem)
    }
    let at = |column: &str, problem: &str| (String::from(column), String::from(problem));
    assert_eq!(error::<u8>(Cell::Int(256)), at("col", "invalid value: integer `256`, expected u8"));
    assert_eq!(
        error::<u8>(Cell::Null),
        at("col", "invalid type: null, expected u8; take an `Option` where it may be null")
    );
    assert_eq!(error::<u8>(raw(b"x1", Raw::Bytes)), at("col", "\"x1\" is no number"));
    assert_eq!(error::<String>(Cell::Bytes(vec![0xff])).0, "col");
    let point = Cell::Struct(vec![("x".into(), Cell::Text("no".into()))]);
    assert_eq!(error::<Point>(point), at("col.x", "invalid type: string \"no\", expected f32"));
    let (column, problem) = error::<Point>(raw(b"{\"x\": 1} 2", Raw::Json));
    assert!(column == "col" && problem.contains("trailing"), "{problem}");
    let missing = row::<Point>(record([("y", Cell::Int(1))]), None).unwrap_err();
    assert!(missing.column.as_deref() == Some("x") && missing.problem.contains("missing field `x`"), "{missing:?}");
}

#[test]
fn a_bad_value_is_told_from_a_wrong_name_or_type() {
    fn fault<T: DeserializeOwned + fmt::Debug>(cell: Cell) -> Fault {
        row::<(T,)>(record([("col", cell)]), Some(&["col".into()])).unwrap_err().fault
    }
    assert_eq!(fault::<u8>(Cell::Int(256)), Fault::Value);
    assert_eq!(fault::<String>(Cell::Bytes(vec![0xff])), Fault::Value);
    assert_eq!(fault::<Kind>(Cell::Text("cow".into())), Fault::Value);
    assert_eq!(fault::<u8>(raw(b"x1", Raw::Bytes)), Fault::Value);
    assert_eq!(fault::<bool>(raw(b"x1", Raw::Bytes)), Fault::Value);
    assert_eq!(fault::<[u8; 2]>(Cell::Bytes(vec![1])), Fault::Value);
    assert_eq!(fault::<Point>(raw(b"{", Raw::Json)), Fault::Value);
    assert!(matches!(fault::<u8>(Cell::Null), Fault::Type(_)));
    assert!(matches!(fault::<u8>(Cell::Text("1".into())), Fault::Type(_)));
    assert!(matches!(fault::<Point>(Cell::Struct(vec![("y".into(), Cell::Int(1))])), Fault::Type(_)));
    let missing = row::<(u8,)>(record([("other", Cell::Int(1))]), Some(&["col".into()])).unwrap_err();
    assert_eq!((missing.column.as_deref(), missing.fault), (Some("col"), Fault::Missing));
}

/// The crate `half` asks for a newtype of its bits, and takes numbers too.
#[test]
fn halves_are_made_of_numbers() {
    use burn::tensor::{bf16, f16};
    let numbers = [Cell::F32(1.5), Cell::F64(1.5), Cell::Raw(b"1.5".to_vec(), Raw::Number)];
    for cell in numbers {
        assert_eq!(row::<(f16,)>(record([("col", cell)]), Some(&["col".into()])).unwrap().0, f16::from_f32(1.5));
    }
    let list = Cell::List(vec![Cell::F32(0.5), Cell::F64(2.0)]);
    let made = row::<(Vec<bf16>,)>(record([("col", list)]), Some(&["col".into()])).unwrap().0;
    assert_eq!(made, [0.5, 2.0].map(bf16::from_f32));
    assert!(row::<(f16,)>(record([("col", Cell::Int(1))]), Some(&["col".into()])).is_err());
}

#[test]
fn what_is_not_known_is_nobodys_fault() {
    fn is_fine<T: DeserializeOwned>() -> bool {
        let made = row::<(T,)>(record([("col", sample::unknown())]), Some(&["col".into()]));
        made.err().is_none_or(|error| error.fault == Fault::Value)
    }
    assert!(is_fine::<u8>() && is_fine::<f32>() && is_fine::<bool>() && is_fine::<String>() && is_fine::<Bytes>());
    assert!(is_fine::<Vec<u8>>() && is_fine::<[f32; 2]>() && is_fine::<Point>() && is_fine::<Option<Point>>());
    assert!(is_fine::<Kind>() && is_fine::<HashMap<String, u8>>() && is_fine::<serde_json::Value>());
}

#[test]
fn a_sample_that_is_no_good_value_hides_no_other_column() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only tried")]
    struct Row {
        kind: Kind,
        point: Point,
        n: u8,
    }
    let point = || Cell::Struct(vec![("x".into(), Cell::F32(1.0))]);
    let samples = |n| record([("kind", Cell::Text(String::new())), ("point", point()), ("n", n)]);
    assert_eq!(misfit::<Row>(&samples(Cell::Int(0)), None), None);
    let wrong = misfit::<Row>(&samples(Cell::Text(String::new())), None).unwrap();
    assert_eq!((wrong.column.as_deref(), wrong.fault), (Some("n"), Fault::Type("u8".into())));
    // A column that is not there is told if all others are good.
    let missing = misfit::<Point>(&record([("y", Cell::Int(0))]), None).unwrap();
    assert_eq!((missing.column.as_deref(), missing.fault), (Some("x"), Fault::Missing));
}

#[test]
fn the_null_of_json_is_none() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Maybe {
        a: Option<f64>,
        b: Option<f64>,
    }
    let cells = record([("a", raw(b" null\n", Raw::Json)), ("b", raw(b"1.5", Raw::Json))]);
    assert_eq!(row::<Maybe>(cells, None).unwrap(), Maybe { a: None, b: Some(1.5) });
}

/// A tuple of the user's own, which takes less than it says.
#[derive(Debug)]
struct First(#[expect(dead_code, reason = "only read")] u8);

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = First;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tuple")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First, A::Error> {
                Ok(First(list.next_element()?.unwrap_or_default()))
            }
        }
        deserializer.deserialize_tuple(2, Take)
    }
}

#[test]
fn columns_that_a_tuple_leaves_are_an_error() {
    let cells = record([("a", Cell::Int(1)), ("b", Cell::Int(2))]);
    let error = row::<First>(cells, Some(&["a".into(), "b".into()])).unwrap_err();
    assert_eq!(error.problem, "invalid length 2, expected 1 columns");
}

#[test]
fn objects_are_maps_and_variants_as_json_has_them() {
    #[derive(Debug, PartialEq, Deserialize)]
    enum Shape {
        Dot,
        Line(u8, u8),
        Box { side: u8 },
    }
    let of = |json: &str| row::<(Shape,)>(record([("s", raw(json.as_bytes(), Raw::Json))]), Some(&["s".into()]));
    assert_eq!(of("\"Dot\"").unwrap().0, Shape::Dot);
    assert_eq!(of("{\"Line\": [1, 2]}").unwrap().0, Shape::Line(1, 2));
    assert_eq!(of("{\"Box\": {\"side\": 3}}").unwrap().0, Shape::Box { side: 3 });
    assert_eq!(of("{\"Line\": [1, 2, 3]}").unwrap_err().problem, "invalid length 3, expected 2 elements in sequence");
    assert!(of("{\"Line\": [1, 2], \"Dot\": null}").is_err());

    type Maps = (HashMap<i8, f32>, HashMap<Option<Kind>, bool>);
    let cells = record([("a", raw(b"{\"-1\": 2}", Raw::Json)), ("b", raw(b"{\"cat\": true}", Raw::Json))]);
    let (numbers, kinds) = row::<Maps>(cells, Some(&["a".into(), "b".into()])).unwrap();
    assert_eq!((numbers[&-1], kinds.len()), (2.0, 1));
}

#[test]
fn the_number_of_a_variant_may_be_unsigned() {
    #[derive(Debug, PartialEq, Deserialize)]
    enum Number {
        Zero,
        One,
    }
    let of = |cell| row::<(Number,)>(record([("n", cell)]), Some(&["n".into()]));
    assert_eq!(of(Cell::Int(0)).unwrap(), (Number::Zero,));
    assert_eq!(of(Cell::Unsigned(1)).unwrap(), (Number::One,));
    assert!([u64::MAX, 2].iter().all(|number| of(Cell::Unsigned(*number)).unwrap_err().fault == Fault::Value));
}

#[test]
fn numbers_of_a_list_may_be_options_and_newtypes() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Token(u32);
    fn of<T: DeserializeOwned>(numbers: Cell) -> T {
        row::<(Vec<T>,)>(record([("n", numbers)]), Some(&["n".into()])).unwrap().0.remove(0)
    }
    assert_eq!(of::<Option<f32>>(Type::F32.list(&[0.5f32])), Some(0.5));
    assert_eq!(of::<Option<f64>>(Type::F64.list(&[0.1f64])), Some(0.1));
    assert_eq!(of::<Option<i128>>(Type::I64.list(&[i64::MIN])), Some(i64::MIN.into()));
    assert_eq!(of::<Option<u8>>(Type::U8.list(&[7u8])), Some(7));
    assert_eq!(of::<Token>(Type::U16.list(&[9u16])), Token(9));
}

#[test]
fn of_json_a_struct_gets_the_fields_that_it_asks_for() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Few {
        #[serde(alias = "other")]
        a: i64,
        list: Vec<Point>,
        #[serde(default)]
        real: f64,
    }
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)] // it is refused
    struct Strict {
        a: i64,
    }
    let json = r#"{"x": {"x": [1, {"deep": null}]}, "x": 2, "other": 7, "list": [{"x": 1, "y": 2, "z": 3}], "real": -Infinity}"#;
    let of = |json: &str| record([("s", raw(json.as_bytes(), Raw::Json))]);
    let (few,): (Few,) = row(of(json), Some(&["s".into()])).unwrap();
    assert_eq!(few, Few { a: 7, list: vec![Point { x: 1.0, y: Some(2) }], real: f64::NEG_INFINITY });
    let problem = |json: &str| row::<(Strict,)>(of(json), Some(&["s".into()])).unwrap_err().to_string();
    assert!(problem(r#"{"a": 1, "b": 2, "c": 3}"#).contains("unknown field `b`"));
    assert!(problem(r#"{"a": 1, "a": 2}"#).contains("`a` is there twice"));
    // All of the text is still read.
    assert!(problem(r#"{"a": 1, "b": [1, }"#).contains("its JSON"));
}

/// Each value that is made takes memory, and a file of many keys has many.
#[test]
fn of_json_other_fields_are_not_made() {
    let names: Vec<String> = (0..50).map(|n| format!("\"key_{n}\": [{n}]")).collect();
    let json = format!("{{{}}}", names.join(", "));
    let Cell::Struct(fields) = text::json_for(json.as_bytes(), &["key_7", "key_9"]).unwrap() else { panic!() };
    let one = |n: i64| Cell::List(vec![Cell::Int(n)]);
    let fields: Vec<(&str, Cell)> = fields.iter().map(|(name, cell)| (&**name, cell.clone())).collect();
    assert_eq!(fields, [("key_0", Cell::Null), ("key_7", one(7)), ("key_9", one(9))]);
}
