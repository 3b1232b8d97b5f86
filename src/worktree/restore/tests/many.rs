//! As many files as several threads share: the same outcome as one by one, whatever happens meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;

/// The difference of a file from the target, and what happens to it between the plan and the restore.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Same,
    Changed,
    Mode,
    Gone,
    New,
    BecameLink,
    BecameDir,
    /// Changed, and once more after the plan.
    Edited,
    /// Gone, and there again after the plan.
    Retaken,
}

fn fate() -> impl Strategy<Value = Fate> {
    use Fate::*;
    prop::sample::select(vec![Same, Changed, Changed, Mode, Gone, New, BecameLink, BecameDir, Edited, Retaken])
}

fn name(i: usize) -> String {
    format!("d{}/f{i}", i % 7)
}

fn prepared(fates: &[Fate]) -> (World, Manifest, Manifest) {
    let world = World::new();
    for (i, fate) in fates.iter().enumerate() {
        if !matches!(fate, Fate::New) {
            world.file(&name(i), &format!("old {i}"), [0o644, 0o600, 0o755][i % 3]);
        }
    }
    world.file("kept", "kept", 0o644);
    let target = world.capture();
    for (i, fate) in fates.iter().enumerate() {
        let at = name(i);
        match fate {
            Fate::Same => {}
            Fate::Changed | Fate::Edited | Fate::New => world.file(&at, &format!("now {i}"), 0o644),
            Fate::Mode => world.chmod(&at, 0o640),
            Fate::Gone | Fate::Retaken => world.remove(&at),
            Fate::BecameLink => {
                world.remove(&at);
                world.link(&at, "nowhere");
            }
            Fate::BecameDir => {
                world.remove(&at);
                world.file(&format!("{at}/inside"), "inside", 0o644);
            }
        }
    }
    let present = world.capture();
    (world, target, present)
}

fn meddle(world: &World, fates: &[Fate]) {
    for (i, fate) in fates.iter().enumerate() {
        if matches!(fate, Fate::Edited | Fate::Retaken) {
            world.file(&name(i), "mine", 0o644);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn many_at_once_come_to_what_one_by_one_come_to(fates in prop::collection::vec(fate(), 80..160)) {
        let (world, target, present) = prepared(&fates);
        let plan = world.plan(&target, &present, &[]);
        meddle(&world, &fates);
        let together = world.apply(&plan, &present).unwrap();
        prop_assert_eq!(world.temporaries(), Vec::<String>::new());

        // Each path by a restore of its own: too few for a second thread.
        let (alone, _, _) = prepared(&fates);
        meddle(&alone, &fates);
        let mut outcome = Outcome::default();
        for i in 0..fates.len() {
            let at = path(&name(i));
            let mut part = plan.clone();
            part.retain(&|path| path.starts_with(&at));
            let done = alone.apply(&part, &present).unwrap();
            outcome.created.extend(done.created);
            outcome.replaced.extend(done.replaced);
            outcome.deleted.extend(done.deleted);
            outcome.failed.extend(done.failed);
            outcome.kept.extend(done.kept);
        }
        outcome.sort();
        prop_assert_eq!(together, outcome);
        prop_assert_eq!(world.capture(), alone.capture());
    }
}

/// A source that runs `act` before its third file is read, on any thread.
struct Meddling<'a> {
    blobs: &'a Blobs,
    read: AtomicUsize,
    act: &'a (dyn Fn() + Sync),
}

impl BlobSource for Meddling<'_> {
    fn has(&self, id: &ObjectId) -> Result<bool> {
        self.blobs.has(id)
    }

    fn read(&self, id: &ObjectId, size: u64) -> Result<Option<Vec<u8>>> {
        if self.read.fetch_add(1, Ordering::SeqCst) == 2 {
            (self.act)();
        }
        self.blobs.read(id, size)
    }

    fn copy(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        self.blobs.copy(id, out)
    }
}

#[test]
fn a_directory_moved_away_among_many_files_is_not_written_to_behind_its_back() {
    let world = World::new();
    (0..200).for_each(|i| world.file(&format!("d/f{i:03}"), "old", 0o644));
    (0..40).for_each(|i| world.file(&format!("e/f{i}"), "old", 0o644));
    let target = world.capture();
    (0..200).for_each(|i| world.file(&format!("d/f{i:03}"), "now", 0o644));
    (0..40).for_each(|i| world.file(&format!("e/f{i}"), "now", 0o644));
    let present = world.capture();
    let plan = world.plan(&target, &present, &[]);
    let moved = world.outside().join("moved");
    let act = || std::fs::rename(world.at("d"), &moved).unwrap();
    let blobs = Meddling { blobs: &world.blobs, read: AtomicUsize::new(0), act: &act };
    let saved = Saved { present: &present, known: &|_| None };
    let outcome = apply(&world.root, &plan, &saved, &blobs, WorkControl::unwatched(&|| Flow::Continue)).unwrap();
    // All of `d` is refused and listed; the rest is still done.
    let failed: Vec<RelPath> = outcome.failed.iter().map(|(at, _)| at.clone()).collect();
    assert_eq!(failed, (0..200).map(|i| path(&format!("d/f{i:03}"))).collect::<Vec<_>>());
    assert_eq!(outcome.replaced.len(), 40);
    for (at, entry) in world.capture_dir(&moved).iter().filter(|(at, _)| !is_temporary(at)) {
        assert_eq!(present.get(&path(&format!("d/{}", at.display()))), Some(entry));
    }
    // Only the files being staged at that moment are left too, one for each thread.
    let left = world.capture_dir(&moved).iter().filter(|(at, _)| is_temporary(at)).count();
    assert!(left <= 3 + 4, "{left} temporary files are left");
    assert_eq!(outcome.warnings.len(), left, "and it is told: {:?}", outcome.warnings);
}

fn is_temporary(at: &RelPath) -> bool {
    at.name().starts_with(TEMPORARY_PREFIX.as_bytes())
}
