//! What is read of an index, and when.

use super::*;

/// If all parts were read, this would fail: all but one are damaged.
#[cfg(target_os = "linux")]
#[test]
fn a_part_is_read_when_its_object_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..2000).map(|n| format!("{n:04}")).collect();
    names.iter().for_each(|name| fs::write(folder.path().join(name), name).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(2100)); // an object that just changed is looked at
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let (options, objects) = (Options::default(), objects(folder.path(), &names));
    let is_of = |_, _: &IndexPart| panic!("all objects are the same");
    let made = AtomicUsize::new(0);
    let open = || {
        let make_one = |object: usize, _: &Progress| {
            made.fetch_add(1, Relaxed);
            Ok(MadePart::new(object % 5, format!("{}", object % 3), format!("part {object:04}").as_bytes()))
        };
        make(&objects, KIND, &options, is_of, make_one).unwrap()
    };
    open();
    let path = path(&objects, KIND, &options).unwrap();
    let mut file = fs::read(&path).unwrap();
    let parts = file.chunks_exact_mut(1).take(16 + 2000 * 13).skip(16);
    let text = "part 1234";
    for (at, byte) in parts.enumerate() {
        byte[0] ^= u8::from(at / 13 != 1234);
    }
    assert!(file.windows(text.len()).any(|bytes| bytes == text.as_bytes()), "one is whole");
    fs::write(&path, file).unwrap();
    let index = open();
    assert_eq!(made.into_inner(), 2000, "none is made again");
    assert_eq!((index.rows(4), &*index.columns[index.list_of(4)]), (4, &b"1"[..]));
    let part = |object| index.part(&objects, object, |_| Ok(true));
    assert_eq!(whole(&part(1234).unwrap()), text);
    for object in [0, 7, 1233, 1235, 1999, 7] {
        let error = part(object).and_then(|part| part.read(0..1)).unwrap_err();
        assert!(matches!(&error, DataError::Index { .. }), "{error}");
        let (error, name) = (error.to_string(), format!("{object:04}"));
        assert!(error.contains(objects.name(object)) && error.contains(".index, and open"), "{name}: {error}");
    }
}

/// Of the objects that may be others, `open` looks at few, and at all if one of these is wrong.
#[test]
fn a_few_objects_tell_whether_all_were_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..100).map(|n| format!("{n:02}")).collect();
    let put = |text: &str| names.iter().for_each(|name| fs::write(folder.path().join(name), text).unwrap());
    put("a");
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let objects = objects(folder.path(), &names);
    let bytes = FirstBytes::of(&objects);
    let (checked, made) = (&bytes.checked, &bytes.made);
    bytes.index();
    assert_eq!((checked.swap(0, Relaxed), made.swap(0, Relaxed)), (0, 100));
    let index = bytes.index();
    assert!(checked.swap(0, Relaxed) <= 5 && made.load(Relaxed) == 0);
    index.part(&objects, 50, |part| bytes.is_of(50, part)).unwrap();
    index.part(&objects, 50, |part| bytes.is_of(50, part)).unwrap();
    assert!(checked.swap(0, Relaxed) <= 1, "it is checked once");
    save(&objects, KIND, &Options::default(), &std::array::from_fn::<_, 100, _>(|_| MadePart::new(0, "", b"b")))
        .unwrap();
    bytes.index();
    assert!(checked.load(Relaxed) >= 100 && made.load(Relaxed) == 100);
}

#[test]
fn an_index_that_cannot_be_saved_stays_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    ["a", "b"].iter().for_each(|name| fs::write(folder.path().join(name), name).unwrap());
    let options = Options { index_dir: Some(folder.path().join("a/in a file")), ..Options::default() };
    let objects = objects(folder.path(), &["a", "b"]);
    let make_one = |object, _: &Progress| Ok(MadePart::new(object + 1, format!("{object}"), &[object as u8; 5000]));
    let index = make(&objects, KIND, &options, |_, _| Ok(false), make_one).unwrap();
    assert_eq!(of(&index, &objects), [0u8, 1].map(|object| Bytes::from(vec![object; 5000])));
    assert_eq!(
        [0, 1].map(|object| (index.rows(object), &*index.columns[index.list_of(object)])),
        [(1, &b"0"[..]), (2, b"1")]
    );
    let part = index.part(&objects, 1, |_| Ok(false)).unwrap();
    assert_eq!(part.read(4000..4003).unwrap(), [1; 3].as_slice());
    assert!(part.read(4000..5001).is_err() && part.read(u64::MAX - 1..u64::MAX).is_err());
}

#[test]
fn an_open_index_may_be_replaced_and_a_truncated_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "a").unwrap();
    let (options, a) = (Options::default(), objects(folder.path(), &["a"]));
    let open = |text: &'static str| {
        let make_one = |_, _: &Progress| Ok(MadePart::new(0, Bytes::new(), text.as_bytes()));
        make(&a, KIND, &options, |_, part| Ok(whole(part) == text), make_one).unwrap()
    };
    let (old, new, unread) = (open("old"), open("new"), open("new"));
    assert_eq!((of(&old, &a), of(&new, &a)), (vec![Bytes::from("old")], vec![Bytes::from("new")]));
    File::options().write(true).open(path(&a, KIND, &options).unwrap()).unwrap().set_len(18).unwrap();
    assert_eq!(of(&old, &a), ["old"]);
    assert_eq!(of(&new, &a), ["new"], "a small index stays in memory");
    let error = unread.part(&a, 0, |_| Ok(true)).and_then(|part| part.read(0..3)).unwrap_err();
    assert!(matches!(&error, DataError::Read { object, .. } if object.ends_with(".index")), "{error}");
}
