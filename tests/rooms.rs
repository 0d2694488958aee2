//! The source tree keeps its shape: imports between rooms go down only, and no imports go round in a circle.
//!
//! A room is a folder or a file directly in the `src/` of a crate. The `src/README.md` there says what each is for.

#[path = "common/rust_files.rs"]
mod rust_files;

use rust_files::rust_files;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// A crate: where its sources are, and the rules of its rooms.
struct Rules {
    src: &'static str,
    /// The rooms from top to bottom. A room may import from the lines below its own, not from its neighbours.
    levels: &'static [&'static [&'static str]],
    /// Rooms that may import less than what is below them.
    less: &'static [(&'static str, &'static [&'static str])],
    /// A tree that was read has more imports between files than this.
    arrows: usize,
}

const LOADER: Rules = Rules {
    src: "src",
    levels: &[
        &["loader"],
        &["pipeline", "text"],
        &["batch", "data"],
        &["device", "vision", "stream"],
        &["memory", "order"],
        &["image_rows"],
        &["fault"],
        &["observe"],
        &["vocabulary", "sync"],
    ],
    less: &[
        ("vision", &["fault"]),
        ("stream", &["order", "fault", "observe", "vocabulary", "sync"]),
        ("data", &["order", "fault"]),
        ("text", &["data", "device", "order", "fault"]),
    ],
    arrows: 200,
};

const SHARDS: Rules = Rules {
    src: "crates/burn-shards/src",
    levels: &[
        &["text"],
        &["rows", "audio"],
        &["row", "tokens", "series"],
        &["parquet", "tar", "mds", "jsonl"],
        &["source"],
        &["store"],
        &["system"],
        &["error"],
    ],
    less: &[],
    arrows: 200,
};

const AUGMENT: Rules = Rules {
    src: "crates/burn-augment/src",
    levels: &[&["images"], &["augment"], &["files", "normalize"], &["error", "rng", "size", "warn"]],
    less: &[],
    arrows: 100,
};

const DERIVES: Rules = Rules {
    src: "crates/burn-pinned-derive/src",
    levels: &[&["sample", "map_tensors", "has_image"], &["field"], &["options"], &["types"]],
    less: &[],
    arrows: 5,
};

const CRATES: [Rules; 4] = [LOADER, SHARDS, AUGMENT, DERIVES];

/// One import: what is named, and in which line.
#[derive(Debug, Clone)]
struct Import {
    line: usize,
    /// From the crate's root, without `crate`.
    path: Vec<String>,
}

/// A file of a crate, as a path of modules.
#[derive(Debug)]
struct File {
    shown: String,
    module: Vec<String>,
    imports: Vec<Import>,
    /// Whether it is a door: it lies beside a folder of its name, and has no logic, but only modules, re-exports and comments.
    is_door: bool,
}

/// What logic is made of.
const LOGIC: [&str; 8] = ["fn ", "struct ", "enum ", "trait ", "impl ", "static ", "const ", "macro_rules!"];

/// Why an import is wrong, if it is.
fn wrong(rules: &Rules, from: &str, to: &str) -> Option<String> {
    let level = |room: &str| rules.levels.iter().position(|rooms| rooms.contains(&room));
    let (Some(above), Some(below)) = (level(from), level(to)) else {
        return Some(format!(
            "the table in tests/rooms.rs does not know the room `{}`",
            if level(from).is_none() { from } else { to }
        ));
    };
    if from == to {
        return None;
    }
    if above >= below {
        let way = if above == below { "sideways" } else { "up" };
        return Some(format!(
            "`{from}` imports from `{to}`: imports between rooms go down only, and this one goes {way}"
        ));
    }
    let less = rules.less.iter().find(|(room, _)| *room == from)?.1;
    (!less.contains(&to)).then(|| format!("`{from}` imports from `{to}`: it may know {} alone", less.join(", ")))
}

/// All paths of a `use` tree such as `a::{b, c::{self, D}}`.
fn leaves(tree: &str, before: &[String], found: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let (head, group) = match tree.find('{') {
        Some(at) => (&tree[..at], Some(&tree[at + 1..tree.rfind('}').unwrap_or(tree.len())])),
        None => (tree, None),
    };
    let mut path = before.to_vec();
    let parts = head.split("::").map(|part| part.split(" as ").next().unwrap_or_default().trim());
    path.extend(parts.filter(|part| !part.is_empty() && *part != "self").map(String::from));
    let Some(group) = group else {
        found.push(path);
        return;
    };
    let (mut depth, mut start) = (0, 0);
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                leaves(&group[start..at], &path, found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !group[start..].trim().is_empty() {
        leaves(&group[start..], &path, found);
    }
}

/// The text without comments and without text in quotation marks, line by line.
fn code(text: &str) -> String {
    let strip = |line: &str| {
        let line = line.split("//").next().unwrap_or_default();
        line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
    };
    text.lines().map(strip).collect::<Vec<_>>().join("\n")
}

/// Every path of a text that starts at the crate's root or at the folder of its module, in `use` and in other code.
fn imports(text: &str, module: &[String]) -> Vec<Import> {
    let code = code(text);
    let mut found = Vec::new();
    let mut add = |at: usize, path: Vec<String>| {
        let line = code[..at].lines().count().max(1);
        let mut path = path.into_iter().peekable();
        let mut full = match path.peek().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("super") => module[..module.len().saturating_sub(1)].to_vec(),
            _ => return,
        };
        path.next();
        while path.next_if(|part| part == "super").is_some() {
            full.pop();
        }
        full.extend(path.filter(|part| part != "*"));
        if !full.is_empty() {
            found.push(Import { line, path: full });
        }
    };
    let mut rest = 0;
    while let Some(at) = code[rest..].find("crate::").into_iter().chain(code[rest..].find("super::")).min() {
        let start = rest + at;
        let end = code[start..].find(|char: char| !(char.is_alphanumeric() || "_:".contains(char)));
        let end = end.map_or(code.len(), |end| start + end);
        rest = end.max(start + 1);
        if code[..start].ends_with('$') {
            continue; // in a macro: the root as a user sees it
        }
        let is_use = code[..start].trim_end().ends_with("use");
        let close = if is_use { code[start..].find(';').map(|at| start + at) } else { None };
        let mut paths = Vec::new();
        leaves(&code[start..close.unwrap_or(end)], &[], &mut paths);
        paths.into_iter().for_each(|path| add(start, path));
        rest = close.unwrap_or(rest);
    }
    found
}

/// The source tree, without `lib.rs` and without tests: these may use what is above.
fn tree(rules: &Rules) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(rules.src);
    let mut paths = Vec::new();
    rust_files(&root, &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let inner = path.strip_prefix(&root).unwrap().with_extension("");
        let module: Vec<String> = inner.iter().map(|part| part.to_str().unwrap().to_string()).collect();
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let has_logic = LOGIC.iter().any(|word| code(text).contains(word));
        let is_door = path.with_extension("").is_dir() && !has_logic;
        let shown = format!("{}/{}", rules.src, inner.with_extension("rs").display());
        let is_test = module.iter().any(|name| ["tests", "model", "cases"].contains(&name.as_str()));
        (module != ["lib"] && !is_test).then(|| File { shown, imports: imports(text, &module), module, is_door })
    };
    paths.into_iter().filter_map(read).collect()
}

#[test]
fn imports_between_rooms_go_down() {
    let mut faults = Vec::new();
    for rules in &CRATES {
        for File { shown, module, imports, .. } in tree(rules) {
            for Import { line, path } in imports {
                if let Some(rule) = wrong(rules, &module[0], &path[0]) {
                    faults.push(format!("{shown}:{line}: {} ({rule})", path.join("::")));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The file that an import is from: the longest part of its path that is a file. If a door names the item,
/// it is the file behind the door.
fn target<'a>(
    path: &[String],
    tree: &'a BTreeMap<Vec<String>, &File>,
    doors: &'a BTreeMap<Vec<String>, Vec<Vec<String>>>,
) -> Option<Vec<String>> {
    let deepest = (1..=path.len()).rev().map(|len| path[..len].to_vec()).find(|module| tree.contains_key(module))?;
    let Some(behind) = doors.get(&deepest) else { return Some(deepest) };
    let item = path.get(deepest.len())?;
    let named = behind.iter().find(|named| named.last() == Some(item))?;
    target(named, tree, doors)
}

#[test]
fn no_imports_go_round_in_a_circle() {
    CRATES.iter().for_each(no_circle);
}

fn no_circle(rules: &Rules) {
    let files = tree(rules);
    let by_module: BTreeMap<Vec<String>, &File> = files.iter().map(|file| (file.module.clone(), file)).collect();
    // What a door re-exports: `use file::Item` is relative to its folder.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = |door: &File| {
        let text = code(&fs::read_to_string(root.join(&door.shown)).unwrap());
        let mut paths = Vec::new();
        for tree in text.split("use ").skip(1) {
            leaves(tree.split(';').next().unwrap_or_default(), &door.module, &mut paths);
        }
        paths
    };
    let doors: BTreeMap<_, _> =
        files.iter().filter(|file| file.is_door).map(|door| (door.module.clone(), named(door))).collect();
    let mut arrows: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_door) {
        let to = file.imports.iter().filter_map(|import| target(&import.path, &by_module, &doors));
        arrows.insert(file.module.clone(), to.filter(|to| *to != file.module).collect());
    }
    assert!(arrows.values().map(BTreeSet::len).sum::<usize>() > rules.arrows, "the imports were not found");
    // Files that import from no file that is left are taken away, until there are none. What stays is in a circle, or
    // imports from one.
    let mut left = arrows.clone();
    loop {
        let free: Vec<_> =
            left.keys().filter(|file| left[*file].iter().all(|to| !left.contains_key(to))).cloned().collect();
        if free.is_empty() {
            break;
        }
        free.iter().for_each(|file| drop(left.remove(file)));
    }
    let show = |(file, to): (&Vec<String>, &BTreeSet<Vec<String>>)| {
        let to: Vec<_> = to.iter().filter(|to| left.contains_key(*to)).map(|to| to.join("::")).collect();
        format!("{} imports from {}", file.join("::"), to.join(", "))
    };
    let circle: Vec<_> = left.iter().map(show).collect();
    assert!(circle.is_empty(), "there is a circle among these:\n{}", circle.join("\n"));
}

/// The file beside the folder of a room is its door.
#[test]
fn rooms_have_doors() {
    for file in tree(&LOADER).iter().filter(|file| file.module.len() == 1 && !file.is_door) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file.shown).with_extension("");
        assert!(!folder.is_dir(), "{} is the door of a room, and has one of {LOGIC:?}", file.shown);
    }
}

/// The line that each src/README.md shows is the table of this test.
#[test]
fn the_readme_shows_the_rule() {
    for rules in &CRATES {
        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join(rules.src).join("README.md");
        let rule = rules.levels.iter().map(|rooms| rooms.join(", ")).collect::<Vec<_>>().join(" -> ");
        assert!(fs::read_to_string(readme).unwrap().contains(&rule), "{}/README.md does not say: {rule}", rules.src);
    }
}

/// The check finds what it is for.
#[test]
fn wrong_imports_are_found() {
    let module: Vec<String> = ["memory", "pool"].map(String::from).to_vec();
    let text = "use crate::{\n    fault::Error,\n    loader::{self, Plan},\n};\n// crate::vision::No\nfn f() -> crate::order::Order { super::slot::new(\"crate::batch::No\") }\n";
    let found: Vec<String> =
        imports(text, &module).iter().map(|import| format!("{}:{}", import.line, import.path.join("::"))).collect();
    assert_eq!(found, ["1:fault::Error", "1:loader", "1:loader::Plan", "6:order::Order", "6:memory::slot::new"]);
    assert!(wrong(&LOADER, "memory", "fault").is_none() && wrong(&LOADER, "memory", "memory").is_none());
    assert!(wrong(&LOADER, "memory", "loader").unwrap().contains("goes up"));
    assert!(wrong(&LOADER, "memory", "order").unwrap().contains("sideways"));
    assert!(wrong(&LOADER, "vision", "memory").unwrap().contains("may know fault alone"));
    assert!(wrong(&LOADER, "memory", "attic").unwrap().contains("does not know the room `attic`"));
}
