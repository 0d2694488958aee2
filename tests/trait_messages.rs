//! What a compiler says where a type lacks a trait: each public trait tells what is missing and what to write.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => sources(&entry, found),
            false => found.extend(entry.extension().is_some_and(|ext| ext == "rs").then_some(entry)),
        }
    }
}

#[test]
fn each_public_trait_says_what_to_write() {
    let mut files = Vec::new();
    for folder in ["src", "crates/burn-augment/src"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
    }
    let (mut traits, mut silent) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("pub trait ")) {
            traits += 1;
            let end = lines[..at].iter().rposition(|line| line.is_empty()).unwrap_or(0);
            let above = lines[end..at].join("\n");
            let says = ["#[diagnostic::on_unimplemented(", "message = ", "label = ", "note = "];
            if !says.iter().all(|part| above.contains(part)) {
                silent.push(format!("{}: {line}", file.display()));
            }
        }
    }
    assert!(traits >= 12, "{traits} traits");
    // A transform of images is no augmentation of a sample without `HasImage`: the compiler blames `Augment`.
    let augment = include_str!("../crates/burn-augment/src/augment.rs");
    let says = augment.split("pub trait Augment<I>").next().unwrap().rsplit("#[diagnostic::on_unimplemented(").next();
    assert!(says.unwrap().contains("`HasImage`"));
    assert_eq!(silent, [""; 0]);
}
