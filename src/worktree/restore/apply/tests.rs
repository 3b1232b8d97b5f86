use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Mutex;

use super::super::plan::{PlanInput, plan};
use super::*;
use crate::model::coverage::Extent;
use crate::model::id::ObjectKind;
use crate::model::policy::{Limits, Secrets};
use crate::model::sink::{ObjectSink, hash_stream};
use crate::worktree::{Capture, Flow, Request, capture};

/// Keeps blobs in memory.
#[derive(Default)]
struct Blobs(Mutex<HashMap<ObjectId, Vec<u8>>>);

impl ObjectSink for Blobs {
    fn contains(&self, id: &ObjectId) -> Result<bool> {
        Ok(self.0.lock().unwrap().contains_key(id))
    }

    fn write(&self, _kind: ObjectKind, id: ObjectId, content: &[u8]) -> Result<()> {
        self.0.lock().unwrap().insert(id, content.to_vec());
        Ok(())
    }

    fn write_stream(&self, size: u64, source: &mut dyn std::io::Read) -> Result<ObjectId> {
        let mut content = Vec::new();
        let id = hash_stream(size, source, &mut |piece| {
            content.extend_from_slice(piece);
            Ok(())
        })?;
        self.0.lock().unwrap().insert(id, content);
        Ok(id)
    }
}

struct Work {
    dir: tempfile::TempDir,
    blobs: Blobs,
}

impl Work {
    fn new() -> Work {
        Work { dir: tempfile::tempdir().unwrap(), blobs: Blobs::default() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), content).unwrap();
    }

    fn capture(&self) -> Capture {
        let request = Request {
            root: self.dir.path(),
            known: &BTreeMap::new(),
            sticky: &BTreeSet::new(),
            targets: &[],
            unlimited_targets: true,
            extent: Extent::Tree,
            limits: Limits { file_bytes: 1 << 20, files: 1 << 20, line_bytes: 1 },
            secrets: Secrets::Always,
            exclude: &[],
            never: &[],
            defaults: None,
        };
        capture(&request, &self.blobs, &|| Flow::Continue).unwrap()
    }

    fn plan(&self, target: &Manifest, present: &Capture) -> Plan {
        let input = PlanInput {
            target,
            present: &present.manifest,
            present_skipped: &present.coverage.skipped,
            select: &[],
            keep_new: false,
            covered: &|_, _| Ok(()),
        };
        plan(&input)
    }

    fn apply(&self, plan: &Plan, present: &Capture) -> Outcome {
        let saved = Saved { manifest: &present.manifest, known: &present.known };
        let blobs = self.blobs.0.lock().unwrap();
        let copy = |id: &ObjectId, out: &mut dyn Write| {
            let bytes = &blobs[id];
            out.write_all(bytes).at("writing", "a file")?;
            Ok(bytes.len() as u64)
        };
        apply(self.dir.path(), plan, &saved, &copy).unwrap()
    }

    /// Goes back to `target` and checks that it is reached exactly.
    fn restore(&self, target: &Manifest) -> Outcome {
        let present = self.capture();
        let outcome = self.apply(&self.plan(target, &present), &present);
        assert_eq!(outcome.failed, [], "{outcome:?}");
        assert_eq!(self.capture().manifest, *target);
        outcome
    }
}

fn names(paths: &[RelPath]) -> Vec<String> {
    paths.iter().map(RelPath::display).collect()
}

#[test]
fn bytes_modes_links_and_empty_directories_come_back_and_the_rest_is_untouched() {
    let work = Work::new();
    for (name, content) in [("a", "1"), ("d/b", "2"), ("d/c", "3"), ("same", "s")] {
        work.write(name, content);
    }
    fs::set_permissions(work.at("d/b"), fs::Permissions::from_mode(0o4750)).unwrap();
    fs::set_permissions(work.at("d"), fs::Permissions::from_mode(0o710)).unwrap();
    fs::create_dir(work.at("empty")).unwrap();
    symlink("../x", work.at("link")).unwrap();
    let target = work.capture().manifest;
    let before = fs::metadata(work.at("same")).unwrap();
    fs::remove_dir_all(work.at("d")).unwrap();
    fs::remove_dir(work.at("empty")).unwrap();
    fs::remove_file(work.at("link")).unwrap();
    symlink("elsewhere", work.at("link")).unwrap();
    work.write("a", "changed");
    work.write("new/deep/file", "n");
    let outcome = work.restore(&target);
    assert_eq!(names(&outcome.created), ["d", "d/b", "d/c", "empty"]);
    assert_eq!(names(&outcome.replaced), ["a", "link"]);
    assert_eq!(names(&outcome.deleted), ["new", "new/deep", "new/deep/file"]);
    let after = fs::metadata(work.at("same")).unwrap();
    assert_eq!(
        (before.ino(), before.mtime_nsec(), before.ctime_nsec()),
        (after.ino(), after.mtime_nsec(), after.ctime_nsec())
    );
}

#[test]
fn permissions_alone_keep_inode_and_mtime() {
    let work = Work::new();
    work.write("a", "1");
    let target = work.capture().manifest;
    let before = fs::metadata(work.at("a")).unwrap();
    fs::set_permissions(work.at("a"), fs::Permissions::from_mode(0o600)).unwrap();
    work.restore(&target);
    let after = fs::metadata(work.at("a")).unwrap();
    assert_eq!((after.ino(), after.mtime_nsec(), after.mode()), (before.ino(), before.mtime_nsec(), before.mode()));
}

#[test]
fn every_change_of_kind_comes_back() {
    let shapes: [fn(&Work); 5] = [
        |work| work.write("x", "file"),
        |work| work.write("x/inner/file", "deep"),
        |work| symlink("/somewhere", work.at("x")).unwrap(),
        |work| fs::create_dir(work.at("x")).unwrap(),
        |_| {},
    ];
    for make_target in &shapes {
        for make_present in &shapes {
            let work = Work::new();
            make_target(&work);
            let target = work.capture().manifest;
            if let Ok(facts) = fs::symlink_metadata(work.at("x")) {
                if facts.is_dir() {
                    fs::remove_dir_all(work.at("x")).unwrap()
                } else {
                    fs::remove_file(work.at("x")).unwrap()
                }
            }
            make_present(&work);
            work.restore(&target);
        }
    }
}

#[test]
fn what_changed_since_the_plan_is_left_alone() {
    let work = Work::new();
    for name in ["edited", "gone", "replaced"] {
        work.write(name, "old");
    }
    let target = work.capture().manifest;
    for name in ["edited", "replaced", "new"] {
        work.write(name, "work of the agent");
    }
    fs::remove_file(work.at("gone")).unwrap();
    let present = work.capture();
    let plan = work.plan(&target, &present);
    work.write("edited", "work of the user, after the plan");
    work.write("new", "also after the plan");
    work.write("gone", "appeared");
    let outcome = work.apply(&plan, &present);
    assert_eq!(names(&outcome.replaced), ["replaced"]);
    let failed: Vec<String> = outcome.failed.iter().map(|(path, _)| path.display()).collect();
    assert_eq!(failed, ["gone", "edited", "new"]);
    assert_eq!(fs::read_to_string(work.at("edited")).unwrap(), "work of the user, after the plan");
    assert_eq!(fs::read_to_string(work.at("new")).unwrap(), "also after the plan");
    assert_eq!(fs::read_to_string(work.at("gone")).unwrap(), "appeared");
    let litter = fs::read_dir(work.dir.path())
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with(".piton"));
    assert_eq!(litter.count(), 0);
}

#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f"), "outside").unwrap();
    let work = Work::new();
    work.write("dir/f", "old");
    let target = work.capture().manifest;
    work.write("dir/f", "new");
    work.write("dir/extra", "x");
    let present = work.capture();
    let plan = work.plan(&target, &present);
    fs::rename(work.at("dir"), work.at("moved")).unwrap();
    symlink(outside.path(), work.at("dir")).unwrap();
    let outcome = work.apply(&plan, &present);
    assert_eq!(outcome.failed.len(), 2, "{outcome:?}");
    assert_eq!(fs::read_to_string(outside.path().join("f")).unwrap(), "outside");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn read_only_directories_are_opened_for_the_work_and_closed_again() {
    let work = Work::new();
    work.write("d/a", "1");
    fs::set_permissions(work.at("d"), fs::Permissions::from_mode(0o555)).unwrap();
    let target = work.capture().manifest;
    fs::set_permissions(work.at("d"), fs::Permissions::from_mode(0o755)).unwrap();
    work.write("d/a", "2");
    fs::set_permissions(work.at("d"), fs::Permissions::from_mode(0o555)).unwrap();
    work.restore(&target);
    assert_eq!(fs::metadata(work.at("d")).unwrap().mode() & 0o777, 0o555);
}

#[test]
fn failing_content_leaves_the_old_file() {
    let work = Work::new();
    work.write("a", "old");
    let target = work.capture().manifest;
    work.write("a", "new");
    let present = work.capture();
    let plan = work.plan(&target, &present);
    let saved = Saved { manifest: &present.manifest, known: &present.known };
    let full = |_: &ObjectId, out: &mut dyn Write| {
        out.write_all(b"ha").at("writing", "a file")?;
        Err(Error::io(std::io::Error::from_raw_os_error(libc::ENOSPC), "writing", Path::new("x")))
    };
    let outcome = apply(work.dir.path(), &plan, &saved, &full).unwrap();
    assert_eq!((outcome.failed.len(), outcome.replaced.len()), (1, 0));
    assert_eq!(fs::read_to_string(work.at("a")).unwrap(), "new");
    assert_eq!(fs::read_dir(work.dir.path()).unwrap().count(), 1);
}

#[test]
fn exporting_needs_an_empty_directory() {
    let work = Work::new();
    work.write("d/a", "1");
    let capture = work.capture();
    let into = tempfile::tempdir().unwrap();
    let calls = RefCell::new(0);
    let blobs = work.blobs.0.lock().unwrap().clone();
    let copy = |id: &ObjectId, out: &mut dyn Write| {
        *calls.borrow_mut() += 1;
        out.write_all(&blobs[id]).at("writing", "a file")?;
        Ok(1)
    };
    export(&into.path().join("new"), &capture.manifest, &[], &copy).unwrap();
    assert_eq!(fs::read_to_string(into.path().join("new/d/a")).unwrap(), "1");
    assert_eq!(*calls.borrow(), 1);
    assert_eq!(export(into.path(), &capture.manifest, &[], &copy).unwrap_err().code(), Code::Conflict);
}

#[test]
fn leftovers_of_a_killed_restore_are_removed() {
    let work = Work::new();
    work.write("d/.piton-tmp-1-2", "x");
    work.write("d/mine", "x");
    let dirs = [RelPath::parse(b"d").unwrap(), RelPath::parse(b"gone").unwrap()];
    assert_eq!(clean_temporaries(work.dir.path(), dirs.iter()).unwrap(), 1);
    assert!(work.at("d/mine").exists());
}
