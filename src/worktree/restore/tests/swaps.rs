//! Edits between the proof and the look at the displaced file.

use super::super::swap::{NameIn, set_aside, swap, swap_plainly};
use super::*;
use crate::sys::fs::deferred::DeferredUnlink;
use crate::sys::fs::dir::Dir;

fn content(world: &World, name: &str) -> String {
    String::from_utf8(std::fs::read(world.at(name)).unwrap()).unwrap()
}

/// `name` was seen as `old`; then another process does `meddle`.
fn seen_then(meddle: impl Fn(&World)) -> (World, Dir, crate::sys::fs::stat::Stat) {
    let world = World::new();
    world.file("name", "old", 0o644);
    world.file("staged", "new", 0o644);
    let root = Dir::open_root(&world.root).unwrap();
    let seen = root.stat(b"name").unwrap().unwrap();
    meddle(&world);
    (world, root, seen)
}

#[test]
fn a_file_saved_after_the_proof_goes_back_to_its_place() {
    let meddlers: [fn(&World); 3] = [
        |world| world.file("name", "mine, written in place", 0o644),
        |world| {
            world.file("mine", "mine, renamed over", 0o644);
            std::fs::rename(world.at("mine"), world.at("name")).unwrap();
        },
        |world| {
            world.remove("name");
            world.file("name/inside", "mine", 0o644);
        },
    ];
    for meddle in meddlers {
        let (world, root, seen) = seen_then(meddle);
        let before = world.capture();
        let deferred = &DeferredUnlink::beside(&root);
        assert!(
            !swap(deferred, NameIn { dir: &root, name: b"staged" }, NameIn { dir: &root, name: b"name" }, &seen)
                .unwrap()
        );
        assert_eq!(world.capture(), before);
        assert!(!set_aside(deferred, &root, b"name", &seen).unwrap());
        assert_eq!(world.capture(), before);
    }
}

#[test]
fn an_undisturbed_swap_drops_the_old() {
    let (world, root, seen) = seen_then(|_| ());
    let deferred = &DeferredUnlink::beside(&root);
    assert!(
        swap(deferred, NameIn { dir: &root, name: b"staged" }, NameIn { dir: &root, name: b"name" }, &seen).unwrap()
    );
    assert_eq!(content(&world, "name"), "new");
    assert!(!world.at("staged").exists());
    let seen = root.stat(b"name").unwrap().unwrap();
    assert!(set_aside(deferred, &root, b"name", &seen).unwrap());
    assert!(world.capture().is_empty());
}

#[test]
fn a_directory_makes_way_only_when_it_is_empty() {
    for plainly in [false, true] {
        let world = World::new();
        world.file("dir/inside", "mine", 0o644);
        world.file("staged", "new", 0o644);
        let root = Dir::open_root(&world.root).unwrap();
        let deferred = &DeferredUnlink::beside(&root);
        let go = || {
            let seen = root.stat(b"dir").unwrap().unwrap();
            let swap = if plainly { swap_plainly } else { swap };
            swap(deferred, NameIn { dir: &root, name: b"staged" }, NameIn { dir: &root, name: b"dir" }, &seen).unwrap()
        };
        assert!(!go());
        assert_eq!(content(&world, "dir/inside"), "mine");
        world.remove("dir/inside");
        assert!(go());
        assert_eq!(content(&world, "dir"), "new");
    }
}

#[test]
fn without_an_exchange_kinds_change_all_the_same() {
    let (world, root, seen) = seen_then(|_| ());
    let deferred = &DeferredUnlink::beside(&root);
    assert!(
        swap_plainly(deferred, NameIn { dir: &root, name: b"staged" }, NameIn { dir: &root, name: b"name" }, &seen)
            .unwrap()
    );
    assert_eq!(content(&world, "name"), "new");
    world.dir("dir", 0o755);
    let seen = root.stat(b"name").unwrap().unwrap();
    assert!(
        swap_plainly(deferred, NameIn { dir: &root, name: b"dir" }, NameIn { dir: &root, name: b"name" }, &seen)
            .unwrap()
    );
    assert!(world.at("name").is_dir());
}
