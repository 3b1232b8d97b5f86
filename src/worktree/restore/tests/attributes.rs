//! Owner and extended attributes of replaced files.

use rustix::fs::{XattrFlags, getxattr, setxattr};

use super::*;

fn attribute(at: &Path) -> Option<Vec<u8>> {
    let mut buffer = [0u8; 64];
    let n = getxattr(at, "user.note", &mut buffer).ok()?;
    Some(buffer[..n].to_vec())
}

#[test]
fn extended_attributes_are_kept() {
    let world = World::new();
    world.file("a", "old", 0o644);
    let target = world.capture();
    world.file("a", "now", 0o644);
    if setxattr(world.at("a"), "user.note", b"mine", XattrFlags::empty()).is_err() {
        eprintln!("skipped: no user attributes on this file system");
        return;
    }
    world.restore(&target);
    assert_eq!(attribute(&world.at("a")).as_deref(), Some(&b"mine"[..]));
}

#[test]
fn the_owner_is_kept() {
    if !is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let world = World::new();
    world.file("a", "old", 0o4755);
    let target = world.capture();
    world.file("a", "now", 0o644);
    std::os::unix::fs::chown(world.at("a"), Some(1234), Some(4321)).unwrap();
    world.restore(&target);
    let metadata = world.at("a").metadata().unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (1234, 4321));
    assert_eq!(world.capture(), target, "setuid survives the change of owner");
}

#[test]
fn a_directory_of_somebody_else_is_refused_beforehand() {
    if is_root() {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let nothing = Manifest::new();
    let target: Manifest = [(path("piton-test"), ManifestEntry::dir(0o755))].into_iter().collect();
    let plan = World::new().plan(&target, &nothing, &[]);
    let saved = Saved { present: &nothing, known: &|_| None };
    let error = apply(Path::new("/etc"), &plan, &saved, &Blobs::default(), WorkControl::unwatched(&|| Flow::Continue))
        .unwrap_err();
    assert_eq!(error.code(), Code::Permission);
}
