//! A real directory, a store in memory, and a plain scan that knows nothing of piton's own.

mod attributes;
mod kinds;
mod links;
mod many;
mod plans;
mod promises;
mod race;
mod random;
mod swaps;
mod tree;

use crate::sys::interrupt::Flow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::*;
use crate::error::{Code, Error, Result};
use crate::model::coverage::SkipReason;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::manifest::{EntryKind, Manifest, ManifestEntry};
use crate::model::path::RelPath;
use crate::sys::progress::WorkControl;

pub(super) fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

/// Contents by id; a test may damage it.
#[derive(Default)]
pub(super) struct Blobs(pub Mutex<BTreeMap<ObjectId, Vec<u8>>>);

impl Blobs {
    fn add(&self, content: &[u8]) -> ObjectId {
        let id = ObjectId::of(ObjectKind::Blob, content).unwrap();
        self.0.lock().unwrap().insert(id, content.to_vec());
        id
    }
}

impl BlobSource for Blobs {
    fn has(&self, id: &ObjectId) -> Result<bool> {
        Ok(self.0.lock().unwrap().contains_key(id))
    }

    /// Some come whole, and some in pieces.
    fn read(&self, id: &ObjectId, _: u64) -> Result<Option<Vec<u8>>> {
        let content = self.0.lock().unwrap().get(id).cloned().filter(|_| id.as_bytes()[0].is_multiple_of(2));
        match content {
            Some(content) if ObjectId::of(ObjectKind::Blob, &content).unwrap() != *id => {
                Err(Error::new(Code::StoreDamaged, "another content"))
            }
            content => Ok(content),
        }
    }

    fn copy(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        let content = self.0.lock().unwrap().get(id).cloned();
        let content = content.ok_or_else(|| Error::new(Code::StoreDamaged, "no such blob"))?;
        out.write_all(&content).map_err(|error| Error::io(error, "copying", Path::new("somewhere")))?;
        Ok(content.len() as u64)
    }
}

/// A workspace and the contents seen in it.
pub(super) struct World {
    _temp: tempfile::TempDir,
    pub root: PathBuf,
    pub blobs: Blobs,
    pub keep_new: bool,
    pub skipped: BTreeMap<RelPath, SkipReason>,
}

impl World {
    pub(super) fn new() -> World {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let (blobs, skipped) = (Blobs::default(), BTreeMap::new());
        World { _temp: temp, root, blobs, keep_new: false, skipped }
    }

    pub(super) fn outside(&self) -> PathBuf {
        let outside = self.root.with_file_name("outside");
        std::fs::create_dir_all(&outside).unwrap();
        outside
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn dir(&self, name: &str, perm: u32) {
        std::fs::create_dir_all(self.at(name)).unwrap();
        self.chmod(name, perm);
    }

    pub(super) fn file(&self, name: &str, content: &str, perm: u32) {
        std::fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        std::fs::write(self.at(name), content).unwrap();
        self.chmod(name, perm);
    }

    pub(super) fn link(&self, name: &str, target: &str) {
        std::fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        symlink(target, self.at(name)).unwrap();
    }

    pub(super) fn chmod(&self, name: &str, perm: u32) {
        std::fs::set_permissions(self.at(name), std::fs::Permissions::from_mode(perm)).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        let at = self.at(name);
        if at.symlink_metadata().unwrap().is_dir() {
            std::fs::remove_dir_all(at).unwrap();
        } else {
            std::fs::remove_file(at).unwrap();
        }
    }

    pub(super) fn capture(&self) -> Manifest {
        self.capture_dir(&self.root)
    }

    pub(super) fn capture_dir(&self, root: &Path) -> Manifest {
        let mut manifest = Manifest::new();
        self.scan(root, &RelPath::root(), &mut manifest);
        manifest
    }

    /// Returns what is captured now, without some paths: as if a rule left them out.
    pub(super) fn capture_without(&self, ignored: &[&str]) -> Manifest {
        let all = self.capture();
        let is_ignored = |at: &RelPath| ignored.iter().any(|ignored| at.starts_with(&path(ignored)));
        all.iter().filter(|(at, _)| !is_ignored(at)).map(|(at, entry)| (at.clone(), *entry)).collect()
    }

    fn scan(&self, root: &Path, dir: &RelPath, manifest: &mut Manifest) {
        for entry in std::fs::read_dir(dir.under(root)).unwrap() {
            let at = dir.join(entry.unwrap().file_name().as_bytes());
            let full = at.under(root);
            let metadata = full.symlink_metadata().unwrap();
            let perm = (metadata.mode() & 0o7777) as u16;
            let leaf = |kind, perm, content: &[u8]| ManifestEntry {
                kind,
                perm,
                id: self.blobs.add(content),
                size: content.len() as u64,
            };
            if metadata.is_dir() {
                manifest.insert(at.clone(), ManifestEntry::dir(perm));
                self.scan(root, &at, manifest);
            } else if metadata.is_symlink() {
                let target = std::fs::read_link(&full).unwrap();
                manifest.insert(at, leaf(EntryKind::Link, 0o777, target.as_os_str().as_bytes()));
            } else if metadata.is_file() {
                manifest.insert(at, leaf(EntryKind::File, perm, &std::fs::read(&full).unwrap()));
            }
        }
    }

    pub(super) fn plan(&self, target: &Manifest, present: &Manifest, select: &[&str]) -> Plan {
        let select: Vec<RelPath> = select.iter().map(|text| path(text)).collect();
        plan(&PlanInput {
            target,
            present,
            present_skipped: &self.skipped,
            select: &select,
            keep_new: self.keep_new,
            covered: &|_, _| Ok(()),
            target_skipped: &|_| false,
            stays: &|_, _| None,
            agreed: &|_, _, _| Agreement::Given,
        })
    }

    pub(super) fn apply(&self, plan: &Plan, present: &Manifest) -> Result<Outcome> {
        let saved = Saved { present, known: &|_| None };
        apply(&self.root, plan, &saved, &self.blobs, WorkControl::unwatched(&|| Flow::Continue))
    }

    /// Applies and runs `act` before the first step after `count` questions: staged files are asked for first.
    pub(super) fn apply_meddling(
        &self,
        plan: &Plan,
        present: &Manifest,
        count: usize,
        act: &dyn Fn(),
    ) -> Result<Outcome> {
        let saved = Saved { present, known: &|_| None };
        let asked = Cell::new(0);
        apply(
            &self.root,
            plan,
            &saved,
            &self.blobs,
            WorkControl::unwatched(&|| {
                if asked.replace(asked.get() + 1) == count {
                    act();
                }
                Flow::Continue
            }),
        )
    }

    /// Restores everything and expects no trouble.
    pub(super) fn restore(&self, target: &Manifest) -> Outcome {
        let present = self.capture();
        let plan = self.plan(target, &present, &[]);
        assert_eq!(plan.conflict, [], "no conflict expected");
        let outcome = self.apply(&plan, &present).unwrap();
        assert!(outcome.is_complete(), "{outcome:?}");
        assert_eq!(outcome.warnings, []);
        outcome
    }

    pub(super) fn temporaries(&self) -> Vec<String> {
        let names = self.capture();
        let left = names.iter().filter(|(at, _)| at.name().starts_with(TEMPORARY_PREFIX.as_bytes()));
        left.map(|(at, _)| at.display()).collect()
    }
}

pub(super) fn names(paths: &[RelPath]) -> Vec<String> {
    paths.iter().map(RelPath::display).collect()
}

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
