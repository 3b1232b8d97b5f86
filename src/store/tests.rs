mod bounds;
mod damage;
mod light;
mod refs;
mod rounds;
mod shared;
mod upkeep;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::repository::{LIGHT_FROM, LIGHT_SOON};
use super::*;
use crate::error::{Code, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::line_counts::LineCounts;
use crate::model::sink::ObjectSink;
use crate::model::tree::{Mode as TreeMode, TreeEntry, encode};
use crate::sys::interrupt::Flow;

fn store() -> (tempfile::TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, store)
}

fn blob(batch: &Batch<'_>, content: &[u8]) -> ObjectId {
    let id = ObjectId::of(ObjectKind::Blob, content).unwrap();
    batch.write(ObjectKind::Blob, id, content).unwrap();
    id
}

/// Runs an ordinary git in the store; `None` (said aloud) when there is none and CI does not require it.
fn git(store: &Store, args: &[&str]) -> Option<(bool, String)> {
    let output = Command::new("git").arg("--git-dir").arg(store.git_dir()).args(args).output();
    match output {
        Ok(output) => {
            let text =
                format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            Some((output.status.success(), text))
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "git is required under CI: {error}");
            println!("skipped: no git");
            None
        }
    }
}

fn temporaries(store: &Store) -> usize {
    let list = |dir: &str| std::fs::read_dir(store.git_dir().join(dir)).unwrap();
    let names = list("objects").chain(list("objects/pack")).map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("tmp_")).count()
}

/// Writes `count` blobs from two threads, a tree over them, a commit and a ref.
fn fill(store: &Store, count: usize) -> ObjectId {
    fill_with(store, count, "content")
}

fn fill_with(store: &Store, count: usize, word: &str) -> ObjectId {
    let batch = store.batch().unwrap();
    let content = |i: usize| format!("{word} of file {i}\n").repeat(20).into_bytes();
    let half = |range: std::ops::Range<usize>| range.map(|i| (i, blob(&batch, &content(i)))).collect::<Vec<_>>();
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(0..count / 2));
        (half(count / 2..count), other.join().unwrap())
    });
    let entry = |(i, id): (usize, ObjectId)| TreeEntry { name: format!("f{i}").into(), mode: TreeMode::File, id };
    let bytes = encode(first.into_iter().chain(second).map(entry).collect());
    let tree = ObjectId::of(ObjectKind::Tree, &bytes).unwrap();
    batch.write(ObjectKind::Tree, tree, &bytes).unwrap();
    let commit = NewCommit { tree, parents: &[], message: "one\n\nbody\n", time_ms: 1_700_000_000_123 };
    let id = batch.put_commit(&commit).unwrap();
    assert_eq!(batch.finish().unwrap().objects, count as u64 + 2);
    id
}

#[test]
fn few_objects_are_loose_and_many_are_one_pack() {
    for (count, packs) in [(10, 0), (500, 1)] {
        let (_home, store) = store();
        let id = fill(&store, count);
        store.update_ref("refs/heads/w/r", None, id).unwrap();
        let found = std::fs::read_dir(store.git_dir().join("objects/pack")).unwrap();
        let found = found.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "pack")).count();
        assert_eq!((found, temporaries(&store)), (packs, 0), "{count} objects");
        let commit = store.read_commit(&id).unwrap();
        assert_eq!((commit.message.as_str(), commit.time_ms), ("one\n\nbody\n", 1_700_000_000_000));
        assert_eq!(store.read_tree(&commit.tree).unwrap().len(), count);
        if let Some((clean, text)) = git(&store, &["fsck", "--full", "--strict", "--no-dangling"]) {
            assert!(clean && !text.contains("warning") && !text.contains("error"), "{text}");
        }
        if let Some((good, text)) = git(&store, &["log", "--oneline", "--all"]) {
            assert!(good && text.contains("one"), "{text}");
        }
    }
}

#[test]
fn an_unfinished_batch_leaves_nothing() {
    let (_home, store) = store();
    let batch = store.batch().unwrap();
    let ids: Vec<ObjectId> = (0..200u32).map(|i| blob(&batch, &i.to_le_bytes())).collect();
    assert!(batch.contains(&ids[7]).unwrap());
    assert_eq!(temporaries(&store), 1);
    drop(batch);
    assert_eq!(temporaries(&store), 0);
    assert_eq!(store.missing(&mut ids.iter().copied()).unwrap().len(), 200);
}

#[test]
fn large_blobs_stream_both_ways() {
    let (_home, store) = store();
    let mut state = 1u64;
    let content: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    })
    .take(3 << 20)
    .collect();
    let batch = store.batch().unwrap();
    let id = batch.write_stream(content.len() as u64, &mut content.as_slice()).unwrap();
    assert_eq!(id, ObjectId::of(ObjectKind::Blob, &content).unwrap());
    let short = batch.write_stream(content.len() as u64 + 1, &mut content.as_slice()).unwrap_err();
    assert_eq!((short.code(), temporaries(&store)), (Code::Conflict, 0));
    batch.finish().unwrap();
    let mut out = Vec::new();
    assert_eq!(store.copy_blob(&id, &mut out).unwrap(), content.len() as u64);
    assert!(out == content);
}

#[test]
fn a_damaged_object_is_never_delivered_as_whole() {
    let (_home, store) = store();
    let batch = store.batch().unwrap();
    let id = blob(&batch, &b"precious\n".repeat(100));
    let other = blob(&batch, &b"other\n".repeat(150));
    batch.finish().unwrap();
    std::fs::remove_file(loose::path_of(store.git_dir(), &id)).unwrap();
    std::fs::copy(loose::path_of(store.git_dir(), &other), loose::path_of(store.git_dir(), &id)).unwrap();
    assert_eq!(store.copy_blob(&id, &mut Vec::new()).unwrap_err().code(), Code::StoreDamaged);
    let reader = store.reader().unwrap();
    assert_eq!(reader.read_blob(&id).unwrap_err().code(), Code::StoreDamaged);
    assert_eq!(reader.read_blob(&other).unwrap().unwrap(), b"other\n".repeat(150));
    std::fs::remove_file(loose::path_of(store.git_dir(), &other)).unwrap();
    assert_eq!(store.read_blob(&other).unwrap_err().code(), Code::StoreDamaged);
}

#[test]
fn refs_move_only_from_where_they_are() {
    let (_home, store) = store();
    let (a, b) = (fill(&store, 2), fill(&store, 3));
    let name = "refs/piton/w/auto/1";
    std::fs::create_dir_all(store.git_dir().join("refs/piton/w/auto")).unwrap();
    std::fs::write(store.git_dir().join(format!("{name}.lock")), "").unwrap();
    store.update_ref(name, None, a).unwrap();
    assert_eq!(store.update_ref(name, None, b).unwrap_err().code(), Code::Conflict);
    assert_eq!(store.update_ref(name, Some(b), b).unwrap_err().code(), Code::Conflict);
    store.update_ref(name, Some(a), b).unwrap();
    assert_eq!(store.delete_ref(name, a).unwrap_err().code(), Code::Conflict);
    store.update_ref("refs/heads/w/r", None, a).unwrap();
    if git(&store, &["pack-refs", "--all"]).is_some() {
        assert!(!store.git_dir().join(name).exists());
    }
    let names = |store: &Store| {
        store.refs("refs/").unwrap().into_iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&store), ["refs/heads/w/r", name]);
    store.delete_ref(name, b).unwrap();
    assert_eq!(names(&store), ["refs/heads/w/r"]);
}

#[test]
fn broken_refs_are_reported() {
    let (_home, store) = store();
    let dir = store.git_dir().join("refs/piton/w/auto");
    std::fs::create_dir_all(&dir).unwrap();
    for (name, content) in [("1", &b""[..]), ("2", b"garbage"), ("3", b"ref: refs/heads/x"), ("4", b"\xff\xfe")] {
        std::fs::write(dir.join(name), content).unwrap();
    }
    let refs = store.refs("refs/piton/w/").unwrap();
    assert_eq!((refs.len(), refs.iter().filter(|entry| entry.target.is_err()).count()), (4, 4));
}

#[test]
fn lost_directories_and_files_are_mended() {
    let (home, store) = store();
    let id = fill(&store, 3);
    for gone in ["refs", "objects/info"] {
        std::fs::remove_dir_all(store.git_dir().join(gone)).unwrap();
    }
    for gone in ["HEAD", "config"] {
        std::fs::remove_file(store.git_dir().join(gone)).unwrap();
    }
    drop(store);
    let store = Store::open(home.path()).unwrap();
    assert!(store.has(&id).unwrap());
    store.update_ref("refs/heads/w/r", None, id).unwrap();
    let config = std::fs::read_to_string(store.git_dir().join("config")).unwrap();
    // A configuration with a wrong sum is damaged; one without a sum is from another version.
    let newer = config.replace("format = 3", "format = 4");
    std::fs::write(store.git_dir().join("config"), &newer).unwrap();
    Store::open(home.path()).unwrap();
    assert_eq!(std::fs::read_to_string(store.git_dir().join("config")).unwrap(), config);
    let newer = &newer[..newer.find("# piton: sum").unwrap()];
    std::fs::write(store.git_dir().join("config"), newer).unwrap();
    let newer = Store::open(home.path()).err().unwrap();
    assert!(newer.code() == Code::StoreDamaged && newer.message().contains("newer piton"), "{newer}");
}

#[test]
fn prefixes_and_patches() {
    let (_home, store) = store();
    let id = fill(&store, 2);
    assert_eq!(store.resolve_prefix(&id.to_string()[..12]).unwrap(), [id]);
    assert_eq!(store.kind_of(&id).unwrap(), Some(ObjectKind::Commit));
    let patch = store.patch(Some(b"a\nb\n"), Some(b"a\nc\nd\n"), b"f.txt").unwrap();
    assert_eq!((patch.lines, patch.binary), (LineCounts { plus: 2, minus: 1 }, false));
    assert!(patch.text.starts_with("diff --git a/f.txt b/f.txt\n--- a/f.txt\n+++ b/f.txt\n@@"), "{}", patch.text);
    assert!(store.patch(Some(b"a\0b"), Some(b"a\0c"), b"f").unwrap().binary);
    assert_eq!(store.patch(None, Some(b"x\n"), b"f").unwrap().lines.plus, 1);
}

fn packs(store: &Store) -> usize {
    let found = std::fs::read_dir(store.git_dir().join("objects/pack")).unwrap();
    found.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "pack")).count()
}

fn all_is_there(store: &Store, commits: &[ObjectId]) {
    for id in commits {
        let tree = store.read_commit(id).unwrap().tree;
        for entry in store.read_tree(&tree).unwrap() {
            store.copy_blob(&entry.id, &mut Vec::new()).unwrap();
        }
    }
    if let Some((clean, text)) = git(store, &["fsck", "--full", "--strict"]) {
        assert!(clean && !text.contains("error") && !text.contains("missing"), "{text}");
    }
}

/// Repeats an action until it is done. A process that another test just started may hold a copy of a lock until its
/// `exec`; until then nothing can be done.
fn again_until(store: &mut Store, mut is_done: impl FnMut(&mut Store) -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_mins(2);
    while !is_done(store) {
        assert!(std::time::Instant::now() < deadline, "the lock is never free");
    }
}

fn consolidated(store: &mut Store, bounds: Bounds) {
    again_until(store, |store| store.consolidate(bounds, &|| Flow::Continue).unwrap());
}

const FEW: Bounds = Bounds { packs: 5, left: 2, bytes: 1 << 30, objects: usize::MAX, loose: 6000 };

#[test]
fn many_packs_become_few_and_no_reader_notices() {
    let (home, mut store) = store();
    let commits: Vec<ObjectId> = (0..9).map(|n| fill_with(&store, 70, &format!("pack {n}"))).collect();
    for (n, id) in commits.iter().enumerate() {
        store.update_ref(&format!("refs/heads/w/{n}"), None, *id).unwrap();
    }
    // One store has read every index and opened no pack yet; the other is not loaded at all.
    let stale = Store::open(home.path()).unwrap();
    assert!(commits.iter().all(|id| stale.has(id).unwrap()));
    assert_eq!(packs(&store), 9);
    consolidated(&mut store, FEW);
    assert_eq!((packs(&store), temporaries(&store)), (2, 0));
    all_is_there(&store, &commits);
    all_is_there(&stale, &commits);
    assert!(commits.iter().all(|id| stale.kind_of(id).unwrap() == Some(ObjectKind::Commit)));
    assert!(!store.consolidate(FEW, &|| Flow::Continue).unwrap());
    let batch = stale.batch().unwrap();
    assert!(batch.contains(&commits[0]).unwrap());
}

#[test]
fn nothing_is_removed_during_a_write_or_without_the_new_pack() {
    let (_home, mut store) = store();
    let commits: Vec<ObjectId> = (0..6).map(|n| fill_with(&store, 70, &format!("pack {n}"))).collect();
    let writer = store.lock_shared("writing", Duration::ZERO).unwrap();
    assert!(!store.consolidate(FEW, &|| Flow::Continue).unwrap());
    // The new pack stays beside the old ones at every attempt.
    assert!(!store.consolidate(FEW, &|| Flow::Continue).unwrap());
    assert_eq!(packs(&store), 7);
    all_is_there(&store, &commits);
    drop(writer);
    let text = std::fs::read_to_string(store.home().join("superseded")).unwrap();
    consolidated(&mut store, FEW);
    assert_eq!(packs(&store), 2);
    all_is_there(&store, &commits);
    // A list that names what it must not, or whose pack is gone, removes nothing.
    let new = text.lines().next().unwrap();
    let kept = std::fs::read_dir(store.git_dir().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).find(|name| !new.ends_with(name));
    for list in
        [format!("pack/pack-0\npack/{}", kept.unwrap()), format!("{new}\n../config\n/x\npack/../../HEAD\n{new}")]
    {
        std::fs::write(store.home().join("superseded"), list).unwrap();
        store.consolidate(FEW, &|| Flow::Continue).unwrap();
        assert!(!store.home().join("superseded").exists() && store.git_dir().join("config").exists());
    }
    all_is_there(&store, &commits);
}

#[test]
fn very_many_loose_objects_become_a_pack() {
    let (home, mut store) = store();
    let commits: Vec<ObjectId> = (0..12).map(|n| fill_with(&store, 50, &format!("loose {n}"))).collect();
    let stale = Store::open(home.path()).unwrap();
    assert!(stale.has(&commits[0]).unwrap());
    let ids = loose::list(store.git_dir()).unwrap();
    assert!(ids.len() > 600 && loose::estimate(store.git_dir()).unwrap() > 300);
    consolidated(&mut store, Bounds { loose: 10, ..FEW });
    assert_eq!((packs(&store), loose::list(store.git_dir()).unwrap().len()), (1, 0));
    all_is_there(&store, &commits);
    all_is_there(&stale, &commits);
}

#[test]
fn a_short_step_takes_few_objects() {
    let (_home, mut store) = store();
    for n in 0..12 {
        fill_with(&store, 50, &format!("loose {n}"));
    }
    let brief = Bounds { packs: 4, left: 1, objects: 100, loose: 10, ..FEW };
    let loose = |store: &Store| loose::list(store.git_dir()).unwrap().len();
    let all = loose(&store);
    for step in 1..=5 {
        consolidated(&mut store, brief);
        assert_eq!((packs(&store), loose(&store)), (step, all - step * 100));
    }
    consolidated(&mut store, brief);
    assert_eq!(packs(&store), 4, "two packs became one");
}

#[test]
fn packs_with_deltas_or_damage_are_left_as_they_are() {
    let (_home, mut store) = store();
    for n in 0..6 {
        let id = fill_with(&store, 70, &format!("pack {n}"));
        store.update_ref(&format!("refs/heads/w/{n}"), None, id).unwrap();
        if n == 2 && git(&store, &["repack", "-adfq"]).is_none() {
            return;
        }
    }
    let dir = store.git_dir().join("objects/pack");
    let mut by_size: Vec<PathBuf> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    by_size.retain(|path| path.extension().is_some_and(|kind| kind == "pack"));
    by_size.sort_by_key(|path| path.metadata().unwrap().len());
    let damaged = by_size.last().unwrap();
    let mut bytes = std::fs::read(damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::remove_file(damaged).unwrap();
    std::fs::write(damaged, &bytes).unwrap();
    store.consolidate(Bounds { packs: 2, left: 1, ..FEW }, &|| Flow::Continue).unwrap();
    assert_eq!(std::fs::read(damaged).unwrap(), bytes);
}

impl Store {
    pub(super) fn read_blob(&self, id: &ObjectId) -> Result<Vec<u8>> {
        self.read_blob_within(id, u64::MAX)
    }

    pub(super) fn read_tree(&self, id: &ObjectId) -> Result<Vec<TreeEntry>> {
        self.read_tree_within(id, u64::MAX)
    }
}
