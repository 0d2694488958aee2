//! Files on a disk, and what looks like files but is none.

use super::{encoded, picture};
use burn_augment::images::{self, Image, Limits, VisionError};
use image::ImageFormat;
use std::fs;

#[test]
fn files_are_named_in_errors_and_what_is_no_file_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { bytes: 1000, ..Limits::default() };
    let open = |name: &str| images::open(dir.path().join(name), &limits);
    // A file that is decoded late is refused in the same words, before it is decoded.
    let message = |name: &str| {
        let message = open(name).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
        assert_eq!(Image::open(dir.path().join(name), &limits).unwrap_err().to_string(), message);
        message
    };
    let rgb = picture();
    fs::write(dir.path().join("wrong.jpg"), encoded(rgb.clone(), ImageFormat::Png)).unwrap();
    assert_eq!(open("wrong.jpg").unwrap(), rgb, "the content counts, not the name");
    assert_eq!(Image::open(dir.path().join("wrong.jpg"), &limits).unwrap().into_rgb().unwrap(), rgb);
    fs::write(dir.path().join("empty.png"), b"").unwrap();
    assert!(message("empty.png").ends_with("it is empty"));
    fs::write(dir.path().join("long.png"), [0; 1001]).unwrap();
    assert!(message("long.png").ends_with("a file of 1001 bytes is over the limit of 1000"));
    assert!(matches!(open("missing.png").unwrap_err(), VisionError::File { .. }));
    fs::create_dir(dir.path().join("folder.png")).unwrap();
    assert!(message("folder.png").ends_with("not a regular file"));

    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        symlink("b.png", dir.path().join("a.png")).unwrap();
        symlink("a.png", dir.path().join("b.png")).unwrap();
        message("a.png");
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe.png")).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(message("pipe.png").ends_with("not a regular file"));
        }
        assert!(images::open("/dev/zero", &Limits::default()).is_err());
        assert!(Image::open("/dev/zero", &Limits::default()).is_err());
        let locked = dir.path().join("locked.png");
        fs::copy(dir.path().join("wrong.jpg"), &locked).unwrap();
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
        if fs::read(&locked).is_ok() {
            println!("permissions do not bind this user (root?): the unreadable file is not tested");
        } else {
            message("locked.png");
        }
    }
}

#[cfg(unix)]
#[test]
fn folders_with_loops_pipes_and_strange_names() {
    use burn::data::dataset::Dataset;
    use burn_augment::images::{FolderError, ImageFolder};
    use std::os::unix::{ffi::OsStrExt, fs::symlink};
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for class in ["one", "two"] {
        fs::create_dir(root.join(class)).unwrap();
        fs::write(root.join(class).join("0.png"), encoded(picture(), ImageFormat::Png)).unwrap();
    }
    // A name that is not UTF-8, as from an old archive.
    let name = std::ffi::OsStr::from_bytes(b"caf\xE9.png");
    fs::write(root.join("one").join(name), encoded(picture(), ImageFormat::Png)).unwrap();
    symlink("..", root.join("two/up.png")).unwrap(); // named as an image, but a folder
    symlink(".", root.join("loop")).unwrap(); // a class that is the folder of all classes
    symlink("round", root.join("round")).unwrap(); // a class that is a link to itself
    let folder = ImageFolder::open(root).unwrap();
    assert_eq!(folder.classes(), ["one", "two"]);
    let samples: Vec<(Image, usize)> = (0..folder.len()).map(|at| folder.get(at).unwrap()).collect();
    assert!(samples.iter().all(|(image, _)| image.to_rgb().unwrap() == picture()));
    assert_eq!(samples.iter().map(|(_, label)| *label).collect::<Vec<_>>(), [0, 0, 1]);

    // A link that is named as an image and leads nowhere is reported with its path, before training begins.
    symlink("ring.png", root.join("two/ring.png")).unwrap();
    let error = ImageFolder::open(root).unwrap_err();
    assert!(matches!(&error, FolderError::Read { path, .. } if path.ends_with("two/ring.png")), "{error}");
}
