//! The crates that the feature `cuda` uses from inside are pinned to one release, and Cargo.lock has no other.
//!
//! A lock with CubeCL 0.11.2 beside 0.11.3 compiles, and nothing says that the two do not know each other's rules for memory.

use std::{collections::BTreeMap, fs, path::Path};

/// Of each crate its versions in a lock, or of each pin its version.
type Versions = BTreeMap<String, Vec<String>>;

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// The text of a line such as `name = "burn"` in quotation marks.
fn quoted<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')
}

fn locked(lock: &str) -> Versions {
    let mut found = Versions::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key| package.lines().find_map(|line| quoted(line, key));
        if let (Some(name), Some(version)) = (value("name"), value("version")) {
            found.entry(name.into()).or_default().push(version.into());
        }
    }
    found
}

/// The dependencies on one version alone: `=1.2.3`.
fn pinned(manifest: &str) -> Versions {
    let dependencies = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let pin = |line: &str| {
        let (name, rest) = line.split_once(" = ")?;
        let (_, version) = rest.split_once("\"=")?;
        Some((name.to_string(), vec![version.split('"').next()?.to_string()]))
    };
    dependencies.lines().filter_map(pin).collect()
}

/// A crate of CubeCL, by its name. The numbers of `cubecl-hip-sys` are those of ROCm.
fn is_cubecl(name: &str) -> bool {
    name == "cubecl" || (name.starts_with("cubecl-") && name != "cubecl-hip-sys")
}

fn is_burn(name: &str) -> bool {
    let is_ours = name.starts_with("burn-pinned") || ["burn-augment", "burn-shards"].contains(&name);
    name == "burn" || (name.starts_with("burn-") && !is_ours)
}

/// What is wrong with a lock: crates of a family whose version is not that of the family's pins.
fn mixtures(pins: &Versions, lock: &Versions) -> Vec<String> {
    let mut faults = Vec::new();
    for family in [is_cubecl, is_burn] {
        let mut wanted: Vec<_> =
            pins.iter().filter(|(name, _)| family(name)).flat_map(|(_, version)| version).collect();
        wanted.dedup();
        let [wanted] = wanted[..] else {
            faults.push(format!("the pins of one family are of the versions {wanted:?}"));
            continue;
        };
        let other = lock.iter().filter(|(name, versions)| family(name) && **versions != [wanted.clone()]);
        faults.extend(other.map(|(name, versions)| format!("{name} is {}, not {wanted}", versions.join(" and "))));
    }
    let missing = pins.keys().filter(|name| !lock.contains_key(*name));
    faults.extend(missing.map(|name| format!("{name} is pinned, and not in the lock")));
    faults
}

#[test]
fn the_lock_has_the_pinned_release_of_burn_and_cubecl_alone() {
    let faults = mixtures(&pinned(&read("Cargo.toml")), &locked(&read("Cargo.lock")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The crates that each package of a lock depends on.
fn dependencies(lock: &str) -> BTreeMap<String, Vec<String>> {
    let package = |text: &str| {
        let name = text.lines().find_map(|line| quoted(line, "name"))?.to_string();
        let listed = text.split_once("dependencies = [").map_or("", |(_, rest)| rest.split(']').next().unwrap());
        Some((name, listed.split('"').skip(1).step_by(2).map(|it| it.split(' ').next().unwrap().into()).collect()))
    };
    lock.split("[[package]]").skip(1).filter_map(package).collect()
}

/// The crates of both families that could be of a newer patch than the pins: nothing that they need of their family is pinned.
fn loose(pins: &Versions, needs: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    fn is_held(name: &str, family: fn(&str) -> bool, pins: &Versions, needs: &BTreeMap<String, Vec<String>>) -> bool {
        pins.contains_key(name) || needs[name].iter().any(|other| family(other) && is_held(other, family, pins, needs))
    }
    let family = |name: &str| [is_cubecl, is_burn].into_iter().find(|family| family(name));
    needs
        .keys()
        .filter(|name| family(name).is_some_and(|family| !is_held(name, family, pins, needs)))
        .cloned()
        .collect()
}

#[test]
fn no_crate_of_burn_or_cubecl_comes_of_a_newer_patch_alone() {
    let loose = loose(&pinned(&read("Cargo.toml")), &dependencies(&read("Cargo.lock")));
    // Macros: nothing of the device is in them. Without Burn's `vision`, `burn-dataset` is loose too.
    assert_eq!(loose, ["burn-backend-extension", "burn-derive", "burn-einsum"]);
}

/// `burn::cubecl` is the crate `cubecl`, and `burn::backend::fusion` is `burn-fusion`.
#[test]
fn what_the_device_uses_of_cubecl_is_pinned() {
    let pins = pinned(&read("Cargo.toml"));
    let is_name = |char: char| char.is_alphanumeric() || char == '_';
    let mut used = Vec::new();
    let mut paths = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/device")];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(path).unwrap().map(|file| file.unwrap().path()));
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let crates = code.split("cubecl_").skip(1).filter_map(|rest| {
            let (name, behind) = rest.split_at(rest.find(|char| !is_name(char))?);
            behind.starts_with("::").then(|| format!("cubecl-{}", name.replace('_', "-")))
        });
        used.extend(crates);
    }
    assert!(used.contains(&"cubecl-runtime".into()), "the imports were not found");
    used.extend(
        ["cubecl", "cubecl-common", "cubecl-cuda", "burn-cubecl", "burn-dispatch", "burn-fusion"].map(String::from),
    );
    let loose: Vec<_> = used.iter().filter(|name| !pins.contains_key(*name)).collect();
    assert!(loose.is_empty(), "without an exact version in Cargo.toml: {loose:?}");
}

/// The check finds what it is for.
#[test]
fn a_mixture_of_releases_is_found() {
    let manifest = "\n[dependencies]\nburn = \"0.22.1\"\nburn-fusion = { version = \"=0.22.1\" }\ncubecl = { version = \"=0.11.3\" }\n\n[lib]\n";
    let lock = |cuda: &str| {
        let packages = [("burn", "0.22.1"), ("burn-fusion", "0.22.1"), ("cubecl", "0.11.3"), ("cubecl-cuda", cuda)];
        let package = |(name, version)| format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
        locked(&packages.map(package).concat())
    };
    let pins = pinned(manifest);
    assert_eq!(mixtures(&pins, &lock("0.11.3")), [""; 0]);
    assert_eq!(mixtures(&pins, &lock("0.11.2")), ["cubecl-cuda is 0.11.2, not 0.11.3"]);
    let uneven = pinned(&manifest.replace("\n[lib]", "cubecl-server = { version = \"=0.11.2\" }\n[lib]"));
    assert!(mixtures(&uneven, &lock("0.11.3"))[0].contains("the pins of one family"));
}
