use super::*;

/// Path, inode, mtime, atime, permissions.
fn facts(at: &Path) -> (u64, i64, i64, i64, u32) {
    let metadata = at.symlink_metadata().unwrap();
    (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.atime_nsec(), metadata.mode())
}

fn mixed(world: &World) {
    world.file("kept", "kept", 0o644);
    world.file("changed", "old", 0o640);
    world.file("gone", "gone", 0o600);
    world.file("script", "#!/bin/sh\n", 0o750);
    world.file("suid", "suid", 0o4711);
    world.file("deep/er/file", "deep\r\n", 0o444);
    world.dir("empty/inside", 0o700);
    world.dir("sticky", 0o1777);
    world.link("link", "kept");
    world.link("dangling", "no such\ttarget");
}

#[test]
fn everything_comes_back_exactly() {
    let world = World::new();
    mixed(&world);
    let target = world.capture();
    let untouched = facts(&world.at("kept"));
    world.file("changed", "new and longer", 0o600);
    ["gone", "deep", "empty", "link"].iter().for_each(|name| world.remove(name));
    world.link("deep", "empty");
    world.chmod("script", 0o644);
    world.chmod("suid", 0o644);
    world.chmod("sticky", 0o755);
    world.file("new/one", "new", 0o644);
    let outcome = world.restore(&target);
    assert_eq!(world.capture(), target);
    assert_eq!(facts(&world.at("kept")), untouched);
    assert_eq!(names(&outcome.created), ["deep/er", "deep/er/file", "empty", "empty/inside", "gone", "link"]);
    assert_eq!(names(&outcome.replaced), ["changed", "deep", "script", "sticky", "suid"]);
    assert_eq!(names(&outcome.deleted), ["new", "new/one"]);
    assert_eq!(world.restore(&target), Outcome::default(), "nothing left to do");
}

#[test]
fn permissions_alone_are_set_without_a_trace_in_times_and_inode() {
    let world = World::new();
    world.file("script", "#!/bin/sh\n", 0o750);
    let target = world.capture();
    world.chmod("script", 0o644);
    let present = world.capture();
    let old = std::fs::FileTimes::new().set_accessed(std::time::SystemTime::UNIX_EPOCH);
    std::fs::File::open(world.at("script")).unwrap().set_times(old).unwrap();
    let (ino, mtime, mtime_nsec, atime_nsec, _) = facts(&world.at("script"));
    world.apply(&world.plan(&target, &present, &[]), &present).unwrap();
    assert_eq!(facts(&world.at("script")), (ino, mtime, mtime_nsec, atime_nsec, 0o100_750));
}

#[test]
fn every_kind_becomes_every_other_kind_and_back() {
    let make: [fn(&World); 4] = [
        |world| world.file("p", "file", 0o644),
        |world| world.link("p", "../outside"),
        |world| {
            world.file("p/a/b", "b", 0o600);
            world.file("p/c", "c", 0o600);
        },
        |world| world.dir("p", 0o711),
    ];
    for (i, before) in make.iter().enumerate() {
        for (j, after) in make.iter().enumerate() {
            let world = World::new();
            std::fs::write(world.outside().join("a"), "outside").unwrap();
            before(&world);
            let first = world.capture();
            world.remove("p");
            after(&world);
            let second = world.capture();
            for target in [&first, &second, &first] {
                world.restore(target);
                assert_eq!(world.capture(), *target, "{i} -> {j}");
                assert_eq!(std::fs::read(world.outside().join("a")).unwrap(), b"outside");
            }
        }
    }
}

#[test]
fn case_only_renames_work() {
    let world = World::new();
    world.file("Readme", "x", 0o644);
    let target = world.capture();
    std::fs::rename(world.at("Readme"), world.at("README")).unwrap();
    world.restore(&target);
    assert_eq!(world.capture(), target);
}

#[test]
fn directories_go_only_when_empty() {
    let world = World::new();
    let target = world.capture();
    world.file("new/a", "a", 0o644);
    world.file("new/ignored/data", "data", 0o644);
    world.dir("new/other", 0o755);
    let present = world.capture_without(&["new/ignored"]);
    let outcome = world.apply(&world.plan(&target, &present, &[]), &present).unwrap();
    assert_eq!(names(&outcome.deleted), ["new/a", "new/other"]);
    assert_eq!(outcome.kept, [(path("new"), "not empty".to_owned())]);
    assert_eq!(std::fs::read(world.at("new/ignored/data")).unwrap(), b"data");
}

#[test]
fn a_directory_with_a_stranger_inside_stays_as_it_is() {
    let world = World::new();
    world.file("p", "file", 0o644);
    let target = world.capture();
    world.remove("p");
    world.file("p/a", "a", 0o644);
    world.file("p/ignored", "data", 0o644);
    let present = world.capture_without(&["p/ignored"]);
    let before = world.capture();
    let outcome = world.apply(&world.plan(&target, &present, &[]), &present).unwrap();
    assert_eq!(world.capture(), before);
    assert!(outcome.failed[0].1.contains("p/ignored"), "{outcome:?}");
    assert_eq!(outcome.kept.len(), 1, "{outcome:?}");
    assert_eq!(outcome.failed.len(), 1);
}

#[test]
fn one_file_brings_its_parents_and_nothing_else() {
    let world = World::new();
    world.file("d/e/f", "f", 0o640);
    world.file("d/g", "g", 0o640);
    world.chmod("d/e", 0o711);
    world.chmod("d", 0o750);
    let target = world.capture();
    world.remove("d");
    world.file("new", "new", 0o644);
    let present = world.capture();
    let outcome = world.apply(&world.plan(&target, &present, &["d/e/f"]), &present).unwrap();
    assert_eq!(names(&outcome.created), ["d", "d/e", "d/e/f"]);
    let now = world.capture();
    assert!(!now.contains(&path("d/g")) && now.contains(&path("new")));
    for at in ["d", "d/e", "d/e/f"] {
        assert_eq!(now.get(&path(at)), target.get(&path(at)), "{at}");
    }
}

#[test]
fn a_missing_or_damaged_content_leaves_the_tree_as_it_is() {
    let world = World::new();
    world.file("a", "a", 0o644);
    world.file("z", "z", 0o644);
    let target = world.capture();
    world.file("a", "A", 0o644);
    world.remove("z");
    let present = world.capture();
    let z = target.get(&path("z")).unwrap().id;
    let plan = world.plan(&target, &present, &[]);
    for (content, code) in [(Some(b"wrong".to_vec()), Code::StoreDamaged), (None, Code::IncompleteCheckpoint)] {
        match content {
            Some(content) => drop(world.blobs.0.lock().unwrap().insert(z, content)),
            None => drop(world.blobs.0.lock().unwrap().remove(&z)),
        }
        let error = world.apply(&plan, &present).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(world.capture(), present);
    }
}

/// Writes half of a content, then has no space left.
struct FullDisk<'a>(&'a Blobs, ObjectId);

impl BlobSource for FullDisk<'_> {
    fn has(&self, id: &ObjectId) -> Result<bool> {
        self.0.has(id)
    }

    fn read(&self, _: &ObjectId, _: u64) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn copy(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        if *id != self.1 {
            return self.0.copy(id, out);
        }
        out.write_all(b"hal").unwrap();
        Err(Error::io(std::io::Error::from_raw_os_error(libc::ENOSPC), "writing", Path::new("x")))
    }
}

#[test]
fn a_full_disk_leaves_the_tree_as_it_is() {
    let world = World::new();
    world.file("a", "a", 0o644);
    world.file("z", "half of it", 0o644);
    world.dir("ro", 0o555);
    let target = world.capture();
    world.file("a", "A", 0o644);
    world.file("z", "Z", 0o644);
    world.file("new", "new", 0o644);
    let present = world.capture();
    let plan = world.plan(&target, &present, &[]);
    let saved = Saved { present: &present, known: &|_| None };
    let full = FullDisk(&world.blobs, target.get(&path("z")).unwrap().id);
    let error = apply(&world.root, &plan, &saved, &full, WorkControl::unwatched(&|| Flow::Continue)).unwrap_err();
    assert_eq!(error.code(), Code::DiskFull);
    assert_eq!(world.capture(), present);
}

#[test]
fn a_wrong_size_in_the_manifest_is_forgiven() {
    let world = World::new();
    world.file("a", "content", 0o644);
    let exact = world.capture();
    let mut target = exact.clone();
    target.insert(path("a"), ManifestEntry { size: 0, ..*exact.get(&path("a")).unwrap() });
    world.remove("a");
    world.restore(&target);
    assert_eq!(world.capture(), exact);
}

#[test]
fn many_files_are_synced_at_once() {
    let world = World::new();
    (0..100).for_each(|i| world.file(&format!("d{}/f{i}", i % 40), &i.to_string(), 0o644));
    let target = world.capture();
    (0..40).for_each(|i| world.remove(&format!("d{i}")));
    world.restore(&target);
    assert_eq!(world.capture(), target);
}

#[test]
fn unwritable_directories_of_ours_are_opened_for_the_work() {
    let world = World::new();
    world.file("ro/sub/a", "a", 0o444);
    world.file("ro/b", "b", 0o644);
    world.chmod("ro/sub", 0o555);
    world.chmod("ro", 0o555);
    let target = world.capture();
    world.chmod("ro", 0o755);
    world.chmod("ro/sub", 0o755);
    world.remove("ro/sub/a");
    world.file("ro/new", "new", 0o644);
    world.chmod("ro", 0o500);
    world.chmod("ro/sub", 0o555);
    world.restore(&target);
    assert_eq!(world.capture(), target);
    for dir in ["ro", "ro/sub"] {
        world.chmod(dir, 0o755);
    }
}

#[test]
fn an_export_is_the_tree_in_an_empty_directory() {
    let world = World::new();
    mixed(&world);
    let target = world.capture();
    let to = world.outside().join("x/y");
    let outcome = export(&to, &target, &[], &world.blobs, WorkControl::unwatched(&|| Flow::Continue)).unwrap();
    assert!(outcome.is_complete(), "{outcome:?}");
    assert_eq!(world.capture_dir(&to), target);
    assert_eq!(
        export(&to, &target, &[], &world.blobs, WorkControl::unwatched(&|| Flow::Continue)).unwrap_err().code(),
        Code::Conflict
    );
    let part = world.outside().join("part");
    export(&part, &target, &[path("deep/er")], &world.blobs, WorkControl::unwatched(&|| Flow::Continue)).unwrap();
    assert_eq!(std::fs::read(part.join("deep/er/file")).unwrap(), b"deep\r\n");
    assert_eq!(std::fs::read_dir(&part).unwrap().count(), 1);
}

#[test]
fn an_export_never_contains_a_git_directory() {
    let world = World::new();
    world.file(".git/hooks/pre-commit", "evil", 0o755);
    world.file("a", "a", 0o644);
    let target = world.capture();
    let to = world.outside().join("x");
    let outcome = export(&to, &target, &[], &world.blobs, WorkControl::unwatched(&|| Flow::Continue)).unwrap();
    assert_eq!(names(&outcome.created), ["a"]);
    assert_eq!(outcome.failed.len(), 3, "{outcome:?}");
    assert!(!to.join(".git").exists());
}

#[test]
fn crash_remains_are_removed() {
    let world = World::new();
    world.file(".piton-tmp-1-2", "staged", 0o600);
    world.file("d/.piton-tmp-3-4", "staged", 0o600);
    world.dir("d/.piton-tmp-empty", 0o700);
    world.file("d/.piton-tmp-full/mine", "mine", 0o600);
    world.file("d/file", "mine", 0o600);
    world.link("out", "../outside");
    std::fs::write(world.outside().join(".piton-tmp-9"), "outside").unwrap();
    let dirs = ["", "d", "missing", "out"].map(path);
    assert_eq!(clean_temporaries(&world.root, dirs).unwrap(), 3);
    assert_eq!(world.temporaries(), ["d/.piton-tmp-full"]);
    assert!(world.outside().join(".piton-tmp-9").exists());
    assert!(world.at("d/file").exists());
}
