//! Random trees of every kind of file, through the real capture, the trees of the store's format, and a restore there
//! and back. Files that cannot be captured are left alone.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::model::build;
use crate::model::coverage::{Coverage, Extent};
use crate::model::policy::{Limits, Secrets};
use crate::model::sink::{ObjectSink, hash_stream};
use crate::model::stamp::KnownPaths;
use crate::model::tree;
use crate::sys::interrupt::Flow;
use crate::worktree::{Capture, Request, capture};

/// Ordinary ones, ones that are no text, ones that git or piton reserve.
const NAMES: [&[u8]; 13] = [
    b"a",
    b"a.b",
    b"a0",
    b"-n",
    b"new\nline",
    b"\xff\xfe",
    b"%2F\\",
    b".GIT",
    b"git~1",
    b".piton",
    b".piton~",
    b"~piton~a",
    b"~piton~.git",
];

/// Larger files are not captured.
const CAP: u64 = 64;

#[derive(Clone, Debug)]
enum Node {
    File(u8, u32),
    Large(u8),
    Link(&'static [u8]),
    /// A name of one of two files outside of the workspace, shared with whatever else names it.
    Hard(u8),
    Fifo,
    Socket,
    Dir(u32, BTreeMap<&'static [u8], Node>),
}

fn node() -> impl Strategy<Value = Node> {
    let perms = vec![0o644, 0o600, 0o444, 0o640, 0o755, 0o700, 0o4755, 0o2711, 0o1644, 0o6777];
    let targets: Vec<&[u8]> = vec![b"a", b"no such", b"../outside", b"/etc", b".", b"new\n\xff", b"a/b/../.."];
    let leaf = prop_oneof![
        6 => (0..3u8, prop::sample::select(perms)).prop_map(|(content, perm)| Node::File(content, perm)),
        1 => (0..2u8).prop_map(Node::Large),
        2 => prop::sample::select(targets).prop_map(Node::Link),
        1 => (0..2u8).prop_map(Node::Hard),
        1 => Just(Node::Fifo),
        1 => Just(Node::Socket),
        1 => Just(Node::Dir(0o755, BTreeMap::new())),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        (prop::sample::select(vec![0o755u32, 0o700, 0o1777, 0o2755]), children(inner))
            .prop_map(|(perm, children)| Node::Dir(perm, children))
    })
}

fn children(inner: impl Strategy<Value = Node>) -> impl Strategy<Value = BTreeMap<&'static [u8], Node>> {
    prop::collection::btree_map(prop::sample::select(NAMES.to_vec()), inner, 0..5)
}

fn grow(world: &World, dir: &Path, nodes: &BTreeMap<&'static [u8], Node>) {
    for (name, node) in nodes {
        let at = dir.join(OsStr::from_bytes(name));
        let chmod = |perm| std::fs::set_permissions(&at, PermissionsExt::from_mode(perm)).unwrap();
        let special = |kind| mknodat(CWD, &at, kind, Mode::from_raw_mode(0o600), 0).unwrap();
        match node {
            Node::File(content, perm) => {
                std::fs::write(&at, [b'x', *content].repeat(usize::from(*content) * 5)).unwrap();
                chmod(*perm);
            }
            Node::Large(content) => std::fs::write(&at, [*content; CAP as usize + 1]).unwrap(),
            Node::Link(target) => symlink(OsStr::from_bytes(target), &at).unwrap(),
            Node::Hard(n) => std::fs::hard_link(world.outside().join(n.to_string()), &at).unwrap(),
            Node::Fifo => special(FileType::Fifo),
            Node::Socket => special(FileType::Socket),
            Node::Dir(perm, inside) => {
                std::fs::create_dir(&at).unwrap();
                grow(world, &at, inside);
                chmod(*perm);
            }
        }
    }
}

impl ObjectSink for Blobs {
    fn contains(&self, id: &ObjectId) -> Result<bool> {
        self.has(id)
    }

    fn write(&self, _: ObjectKind, id: ObjectId, content: &[u8]) -> Result<()> {
        assert_eq!(self.add(content), id);
        Ok(())
    }

    fn write_stream(&self, size: u64, source: &mut dyn Read) -> Result<ObjectId> {
        let mut content = Vec::new();
        hash_stream(size, source, &mut |bytes| {
            content.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(self.add(&content))
    }
}

fn captured(world: &World) -> Capture {
    let request = Request {
        root: &world.root,
        known: &KnownPaths::default(),
        sticky: &BTreeSet::new(),
        private: &crate::worktree::NonePrivate,
        targets: &[],
        unlimited_targets: false,
        budget: crate::worktree::TargetBudget::Wide,
        extent: Extent::Tree,
        limits: Limits {
            file_bytes: CAP,
            files: 1000,
            line_bytes: 1 << 20,
            memory: 192_000_000,
            git_copy: 0,
            told_tokens: 0,
            ignored: crate::model::policy::Ignored::NONE,
        },
        secrets: Secrets::OnTarget,
        exclude: &[],
        never: &[],
        defaults: None,
        wanted_targets: false,
        dates: false,
        spare: crate::worktree::Spare::default(),
        early: None,
        progress: &crate::sys::progress::Progress::NONE,
        is_deleted: false,
    };
    capture(
        &request,
        crate::worktree::Sinks { shared: &world.blobs, local: &|| Ok(&crate::model::sink::HashOnly) },
        &|| Flow::Continue,
    )
    .unwrap()
}

/// Through tree objects and back, as a restore reads it.
fn stored(capture: &Capture) -> (Manifest, Coverage) {
    let mut objects = BTreeMap::new();
    let root = build::build(&capture.manifest, &capture.coverage, &mut |_, id, bytes| {
        objects.insert(id, bytes.to_vec());
        Ok(())
    });
    let read_tree = |id: &ObjectId| tree::decode(&objects[id]);
    let (manifest, coverage) =
        build::load(&root.unwrap(), &|_| true, 192_000_000, &read_tree, &|id| Ok(objects[id].clone())).unwrap();
    assert_eq!(coverage, capture.coverage);
    assert_eq!(manifest.iter().count(), capture.manifest.iter().count());
    for (at, entry) in capture.manifest.iter() {
        assert!(manifest.get(at).is_some_and(|back| back.same(entry)), "{at:?}");
    }
    (manifest, coverage)
}

/// Restores a stored checkpoint; gives every path of which the plan or the outcome says that it is not as it was then.
fn restore(world: &World, present: &Capture, (target, coverage): &(Manifest, Coverage)) -> Vec<RelPath> {
    let skipped = |at: &RelPath| coverage.skipped.keys().any(|skipped| at.starts_with(skipped));
    let plan = plan(&PlanInput {
        target,
        present: &present.manifest,
        present_skipped: &present.coverage.skipped,
        select: &[],
        keep_new: false,
        covered: &|_, _| Ok(()),
        target_skipped: &skipped,
        stays: &|_, _| None,
        agreed: &|_, _, _| Agreement::Given,
    });
    let outcome = world.apply(&plan, &present.manifest).unwrap();
    assert_eq!((outcome.failed.len(), outcome.kept.len()), (0, 0), "{outcome:?}");
    assert_eq!(world.temporaries(), Vec::<String>::new());
    plan.keep.into_iter().map(|(at, _)| at).chain(plan.conflict.into_iter().map(|(at, _)| at)).collect()
}

/// Returns what a capture leaves out: inode, type and size of each.
fn left_out(world: &World, capture: &Capture) -> BTreeMap<RelPath, (u64, u32, u64)> {
    let facts = |at: &RelPath| {
        let facts = at.under(&world.root).symlink_metadata().unwrap();
        (facts.ino(), facts.mode(), facts.size())
    };
    capture.coverage.skipped.keys().map(|at| (at.clone(), facts(at))).collect()
}

fn agree(now: &Manifest, then: &Manifest, told: &[RelPath]) {
    for (at, entry) in then.iter().filter(|(at, _)| !told.contains(at)) {
        assert_eq!(now.get(at), Some(entry), "{at:?} should be as it was");
    }
    for (at, _) in now.iter().filter(|(at, _)| !told.contains(at)) {
        assert!(then.contains(at), "{at:?} should not be there");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn every_kind_of_file_comes_back_or_is_left_alone(before in children(node()), after in children(node())) {
        let world = World::new();
        for n in ["0", "1"] {
            std::fs::write(world.outside().join(n), format!("shared {n}")).unwrap();
        }
        grow(&world, &world.root, &before);
        let then = captured(&world);
        for entry in std::fs::read_dir(&world.root).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                std::fs::remove_dir_all(entry.path()).unwrap();
            } else {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        grow(&world, &world.root, &after);
        let middle = captured(&world);
        let gaps = left_out(&world, &middle);

        let told = restore(&world, &middle, &stored(&then));
        let now = captured(&world);
        agree(&now.manifest, &then.manifest, &told);
        prop_assert_eq!(left_out(&world, &now), gaps.clone());

        // An undo. Nothing was lost on the way, so that everything is as it was in between.
        let told = restore(&world, &now, &stored(&middle));
        let last = captured(&world);
        agree(&last.manifest, &middle.manifest, &told);
        prop_assert_eq!(&last.coverage.skipped, &middle.coverage.skipped);
        prop_assert_eq!(left_out(&world, &last), gaps);
        for n in ["0", "1"] {
            prop_assert_eq!(std::fs::read_to_string(world.outside().join(n)).unwrap(), format!("shared {n}"));
        }
    }
}
