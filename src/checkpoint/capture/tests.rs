//! Timelines with a source of changes that the test controls.

use std::collections::BTreeSet;
use std::mem;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::checkpoint::history::request::Restore;
use crate::checkpoint::{Home, Selection, Take, Taken, Timeline, Workspace};
use crate::model::change::{Admits, ChangeSource, Changes, Dirty, Reach};
use crate::model::checkpoint::CheckpointKind;
use crate::model::path::RelPath;
use crate::sys::clock::file_clock;
use crate::sys::interrupt::Flow;
use crate::worktree::Target;

/// The changes that the next call of `sync` gives.
#[derive(Clone)]
struct Told(Arc<Mutex<Changes>>);

impl ChangeSource for Told {
    fn sync(&mut self, _admits: Admits<'_>) -> Changes {
        mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), Changes::none())
    }

    fn watch(&mut self, _dir: &RelPath, _admits: Admits<'_>) {}

    fn place_watches(&mut self, _admits: Admits<'_>) -> bool {
        false
    }

    fn always_report(&mut self, _paths: &BTreeSet<RelPath>) {}
}

struct Lab {
    temp: tempfile::TempDir,
    timeline: Timeline,
    told: Told,
}

impl Lab {
    /// Makes a warm timeline of a workspace with three files.
    fn new() -> Lab {
        Lab::with(|_| ())
    }

    /// Makes the same with further files from the beginning.
    fn with(more: impl FnOnce(&std::path::Path)) -> Lab {
        let temp = tempfile::tempdir().unwrap();
        let work = temp.path().join("work");
        std::fs::create_dir_all(work.join("a")).unwrap();
        ["f", "a/g", "a/h"].iter().for_each(|name| std::fs::write(work.join(name), name).unwrap());
        more(&work);
        let home = Home::at(&temp.path().join("home")).unwrap();
        let work = work.canonicalize().unwrap();
        let policy = crate::settings::load(Some(&work), home.path(), &[]).unwrap().policy;
        let workspace = Workspace::open(&home, &work).unwrap();
        let mut timeline = Timeline::open(&home, workspace, policy).unwrap();
        let told = Told(Arc::new(Mutex::new(Changes::none())));
        timeline.keep_warm();
        let mut lab = Lab { temp, timeline, told };
        // Files that were written just now are read again until their times prove something.
        while lab.take().cost.hashed > 0 {}
        assert!(lab.timeline.is_warm() && !lab.timeline.is_live());
        lab.timeline.set_change_source(Some(Box::new(lab.told.clone())));
        lab.timeline.warm_up(&|| Flow::Continue).unwrap();
        assert!(lab.timeline.is_live());
        lab
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temp.path().join("work").join(name)
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.at(name), content).unwrap();
    }

    fn tell(&self, names: &[&str]) {
        let paths = names.iter().map(|name| (RelPath::parse(name.as_bytes()).unwrap(), Reach::Entry));
        *self.told.0.lock().unwrap() = Changes::Paths(Dirty::new(paths));
    }

    fn take(&mut self) -> Taken {
        self.timeline.take(&Take::of(CheckpointKind::Auto, "r", "test"), &|| Flow::Continue).unwrap()
    }

    fn audit(&mut self) -> usize {
        self.timeline.audit(&|| Flow::Continue).unwrap().missed
    }
}

#[test]
fn reported_changes_are_looked_at_and_nothing_else() {
    let mut lab = Lab::new();
    let first = lab.take();
    assert!(first.unchanged && first.cost.dirty == Some(0), "{:?}", first.cost);
    lab.write("f", "changed");
    lab.write("a/g", "changed too");
    lab.tell(&["f"]);
    let second = lab.take();
    assert_eq!((second.unchanged, second.changed, second.cost.dirty, second.cost.hashed), (false, Some(1), Some(1), 1));
    lab.tell(&["a/g"]);
    assert_eq!(lab.take().changed, Some(1));
}

#[test]
fn changes_synced_ahead_are_enough_for_an_earlier_request() {
    let mut lab = Lab::new();
    let asked = Instant::now();
    lab.write("f", "changed");
    lab.tell(&["f"]);
    lab.timeline.sync_ahead();
    // Changed after the sync and not asked for again: changes after a request may be left to the next capture.
    lab.write("a/g", "changed");
    lab.tell(&["a/g"]);
    let take = Take { asked: Some(asked), ..Take::of(CheckpointKind::Auto, "r", "test") };
    let first = lab.timeline.take(&take, &|| Flow::Continue).unwrap();
    assert_eq!((first.changed, first.cost.dirty), (Some(1), Some(1)));
    // A sync ahead serves once, and no later request.
    let second = lab.timeline.take(&take, &|| Flow::Continue).unwrap();
    assert_eq!((second.changed, second.cost.dirty), (Some(1), Some(1)));
    lab.timeline.sync_ahead();
    lab.write("a/h", "changed");
    lab.tell(&["a/h"]);
    let later = Take { asked: Some(Instant::now()), ..take };
    assert_eq!(lab.timeline.take(&later, &|| Flow::Continue).unwrap().changed, Some(1));
}

#[test]
fn a_restore_looks_at_reported_changes_and_leaves_the_rest_as_it_is() {
    let mut lab = Lab::new();
    let target = lab.take().checkpoint.id;
    lab.write("f", "changed");
    lab.tell(&["f"]);
    let facts = |lab: &Lab| {
        ["a/g", "a/h", "a"].map(|name| {
            let metadata = lab.at(name).symlink_metadata().unwrap();
            (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec())
        })
    };
    let before = facts(&lab);
    let restored = lab.timeline.restore(&Restore::to(target, "r", Vec::new(), false), &|| Flow::Continue).unwrap();
    assert_eq!(restored.outcome.replaced, [RelPath::parse(b"f").unwrap()]);
    assert_eq!(std::fs::read(lab.at("f")).unwrap(), b"f");
    let cost = lab.timeline.cost().unwrap();
    assert_eq!((cost.dirty, cost.hashed), (Some(1), 1), "the rest was not looked at");
    assert_eq!(facts(&lab), before);
    assert!(lab.timeline.is_live(), "and the next one need not look at it either");
}

#[test]
fn later_changes_are_listed_and_late_reports_of_earlier_ones_are_not() {
    let mut lab = Lab::new();
    lab.write("f", "before the question");
    lab.tell(&["f"]);
    lab.take();
    let changed = |lab: &Lab| lab.at("f").metadata().map(|at| at.ctime() * 1_000_000_000 + at.ctime_nsec()).unwrap();
    // The file system's clock moves in ticks.
    let mut asked = file_clock();
    while asked <= changed(&lab) {
        asked = file_clock();
    }
    lab.tell(&["f"]);
    assert_eq!(lab.timeline.touched_since(asked), []);
    let path = |name: &str| RelPath::parse(name.as_bytes()).unwrap();
    lab.write("a/g", "after it");
    std::fs::remove_file(lab.at("a/h")).unwrap();
    lab.tell(&["f", "a/g", "a/h"]);
    assert_eq!(lab.timeline.touched_since(asked), [path("a/g"), path("a/h")]);
    // The same after it is captured.
    lab.take();
    assert_eq!(lab.timeline.touched_since(asked), [path("a/g"), path("a/h")]);
}

#[test]
fn an_audit_finds_and_counts_unreported_changes() {
    let mut lab = Lab::new();
    assert_eq!(lab.audit(), 0);
    lab.write("f", "changed");
    lab.write("a/new", "made");
    std::fs::remove_file(lab.at("a/h")).unwrap();
    lab.tell(&["f"]);
    assert_eq!(lab.audit(), 2, "of three changes one was reported");
    let taken = lab.take();
    assert_eq!((taken.changed, taken.cost.dirty), (Some(3), Some(3)));
    assert_eq!(lab.audit(), 0);
}

#[test]
fn a_new_name_of_a_file_is_reported_for_all_of_its_names() {
    let mut lab = Lab::new();
    std::fs::hard_link(lab.at("f"), lab.at("a/name")).unwrap();
    lab.write("a/name", "written through the new name");
    lab.tell(&["a/name"]);
    assert_eq!(lab.audit(), 0, "a capture would have looked at both");
    assert_eq!(lab.take().changed, Some(2));
    std::fs::hard_link(lab.at("a/h"), lab.temp.path().join("elsewhere")).unwrap();
    lab.tell(&[]);
    assert_eq!(lab.audit(), 0, "only a time has moved");
    let outside = lab.temp.path().join("outside");
    std::fs::hard_link(lab.at("a/g"), &outside).unwrap();
    std::fs::write(&outside, "written through a name outside").unwrap();
    lab.tell(&[]);
    assert_eq!(lab.audit(), 1, "nobody could report it");
    assert_eq!(lab.take().changed, Some(1));
}

#[test]
fn an_audit_that_gives_way_changes_nothing() {
    let mut lab = Lab::new();
    lab.write("f", "changed");
    assert!(lab.timeline.audit(&|| Flow::Stop).is_err());
    assert!(lab.timeline.is_live());
    assert_eq!(lab.audit(), 1);
}

#[test]
fn a_failed_capture_is_followed_by_a_scan() {
    let mut lab = Lab::new();
    lab.write("f", "changed");
    lab.tell(&["f"]);
    let stopped = lab.timeline.take(&Take::of(CheckpointKind::Auto, "r", "test"), &|| Flow::Stop);
    assert!(stopped.is_err());
    assert!(!lab.timeline.is_live(), "reported changes are forgotten");
    let taken = lab.take();
    assert_eq!((taken.changed, taken.cost.dirty), (Some(1), None), "{:?}", taken.cost);
    lab.timeline.warm_up(&|| Flow::Continue).unwrap();
    assert!(lab.timeline.is_live());
}

#[test]
fn a_policy_that_changes_what_is_captured_counts_at_once() {
    let mut lab = Lab::new();
    let mut policy = lab.timeline.policy().clone();
    policy.exclude = vec!["a/".to_owned()];
    lab.timeline.set_policy(policy);
    let taken = lab.take();
    assert_eq!(taken.checkpoint.record.files, 1);
    lab.timeline.warm_up(&|| Flow::Continue).unwrap();
    lab.write("f", "changed");
    lab.tell(&["f"]);
    let taken = lab.take();
    assert_eq!((taken.checkpoint.record.files, taken.cost.dirty), (1, Some(1)));
}

#[test]
fn targets_that_rules_leave_out_are_captured_beside_what_is_warm() {
    let large = vec![b'x'; 6_000_000];
    let mut lab = Lab::with(|work| {
        std::fs::write(work.join(".gitignore"), "*.log\n").unwrap();
        std::fs::write(work.join("large.log"), large).unwrap();
    });
    lab.write(".env", "SECRET=1");
    lab.tell(&[".env"]);
    lab.take();
    let target = |name: &str| Target { path: RelPath::parse(name.as_bytes()).unwrap(), recursive: false };
    let take = |targets| Take { selection: Selection::with(targets), ..Take::of(CheckpointKind::Auto, "r", "test") };
    let plain = lab.timeline.take(&take(vec![target("f")]), &|| Flow::Continue).unwrap();
    assert!(plain.unchanged && plain.cost.dirty.is_some(), "{plain:?}");
    let secret = lab.timeline.take(&take(vec![target(".env")]), &|| Flow::Continue).unwrap();
    assert!(secret.unchanged, "it is in the private layer already");
    let large = lab.timeline.take(&take(vec![target("large.log")]), &|| Flow::Continue).unwrap();
    assert_eq!((large.unchanged, large.checkpoint.tree), (false, plain.checkpoint.tree));
    assert!(lab.timeline.is_live());
    let held = large.checkpoint.id;
    let all = Selection::with(["f", ".env", "large.log"].map(target).to_vec());
    assert!(lab.timeline.holds(&held, &all, &|| Flow::Continue).unwrap());
    assert!(!lab.timeline.holds(&plain.checkpoint.id, &all, &|| Flow::Continue).unwrap());
    lab.write("f", "changed");
    lab.tell(&["f"]);
    assert!(!lab.timeline.holds(&held, &Selection::with(vec![target("f")]), &|| Flow::Continue).unwrap());
}

#[test]
fn a_scan_beside_the_warm_tree_does_not_take_older_trees_for_the_present() {
    // A target that no checkpoint can hold, so that everything is checked.
    let mut lab = Lab::with(|work| drop(std::os::unix::net::UnixListener::bind(work.join("socket")).unwrap()));
    lab.write("f", "changed");
    let base = loop {
        lab.tell(&["f"]);
        let base = lab.timeline.take(&Take::of(CheckpointKind::Turn, "r", "base"), &|| Flow::Continue).unwrap();
        assert_eq!(base.cost.dirty, Some(1));
        // Repeated until the file's times prove something.
        if base.cost.hashed == 0 {
            break base;
        }
    };
    let target = Target { path: RelPath::parse(b"socket").unwrap(), recursive: false };
    let take = Take { selection: Selection::with(vec![target]), ..Take::of(CheckpointKind::Auto, "r", "test") };
    let scanned = lab.timeline.take(&take, &|| Flow::Continue).unwrap();
    assert_eq!((scanned.cost.dirty, scanned.unchanged), (None, false));
    assert_eq!(scanned.checkpoint.tree, base.checkpoint.tree);
}

#[test]
fn trees_that_were_built_in_idle_time_are_in_the_store_too() {
    let mut lab = Lab::new();
    lab.write("a/.env", "SECRET=1");
    lab.write("a/g", "changed");
    lab.tell(&["a/.env", "a/g"]);
    let target = Target { path: RelPath::parse(b"a/.env").unwrap(), recursive: false };
    let take = Take { selection: Selection::with(vec![target]), ..Take::of(CheckpointKind::Auto, "r", "test") };
    let taken = lab.timeline.take(&take, &|| Flow::Continue).unwrap();
    lab.timeline.warm_up(&|| Flow::Continue).unwrap();
    let plain = lab.take();
    assert_eq!((plain.checkpoint.tree, plain.checkpoint.record.files), (taken.checkpoint.tree, 3));
    let catalog = lab.timeline.catalog();
    let (manifest, _) = catalog.contents(&plain.checkpoint).unwrap();
    assert_eq!(manifest.totals().0, 4);
    assert!(catalog.entry_at(&plain.checkpoint.tree, &RelPath::parse(b"a/.env").unwrap()).unwrap().is_none());
}

#[test]
fn refs_of_others_are_seen() {
    let mut lab = Lab::new();
    let (home, workspace) = (lab.timeline.home().clone(), lab.timeline.workspace().clone());
    let mut other = Timeline::open(&home, workspace, lab.timeline.policy().clone()).unwrap();
    for n in 0..20 {
        lab.write("f", &format!("{n}"));
        lab.tell(&["f"]);
        let mine = lab.take();
        assert!(!mine.unchanged);
        let mut take = Take::of(CheckpointKind::Manual, "o", "other");
        take.draft.always = true;
        let theirs = other.take(&take, &|| Flow::Continue).unwrap();
        assert_eq!(theirs.checkpoint.record.ordinal, mine.checkpoint.record.ordinal + 1);
    }
    let all = lab.timeline.catalog().all().unwrap();
    assert!(all.broken.is_empty() && all.checkpoints.len() >= 40, "{}", all.checkpoints.len());
}

#[test]
fn named_paths_are_looked_at_although_nothing_is_reported() {
    for (name, at, recursive) in
        [("f", "f", true), ("a/g", "a/g", false), ("a/g", "a", true), ("a/new", "a", true), ("f", "", true)]
    {
        let mut lab = Lab::new();
        let held = lab.take().checkpoint.id;
        let wanted = Selection::with(vec![Target { path: RelPath::parse(at.as_bytes()).unwrap(), recursive }]);
        assert!(lab.timeline.holds(&held, &wanted, &|| Flow::Continue).unwrap());
        lab.write(name, "changed");
        let plain = lab.take();
        assert!(plain.unchanged && plain.cost.dirty == Some(0), "{name}: nothing is reported and nothing named");
        assert!(!lab.timeline.holds(&held, &wanted, &|| Flow::Continue).unwrap(), "{name}, {at}");
        let take = Take { selection: wanted, ..Take::of(CheckpointKind::Auto, "r", "test") };
        let taken = lab.timeline.take(&take, &|| Flow::Continue).unwrap();
        assert_eq!((taken.changed, taken.cost.dirty), (Some(1), Some(1)), "{name}, {at}");
        assert!(lab.timeline.is_live());
    }
}

#[test]
fn a_named_file_that_is_as_it_was_costs_no_capture() {
    let mut lab = Lab::new();
    lab.take();
    let target = |name: &str| Target { path: RelPath::parse(name.as_bytes()).unwrap(), recursive: true };
    for names in [vec!["f"], vec!["a"], vec![""], vec!["a/g", "f", "nothing"]] {
        let targets = names.iter().map(|name| target(name)).collect();
        let take = Take { selection: Selection::with(targets), ..Take::of(CheckpointKind::Auto, "r", "test") };
        let taken = lab.timeline.take(&take, &|| Flow::Continue).unwrap();
        assert_eq!((taken.unchanged, taken.cost.dirty, taken.cost.hashed), (true, Some(0), 0), "{names:?}");
    }
}

#[test]
fn an_audit_finds_a_mapped_write_that_changes_no_time() {
    let mut lab =
        Lab::with(|work| (0..600).for_each(|n| std::fs::write(work.join(format!("f{n:03}")), "old").unwrap()));
    lab.audit();
    let mapping = crate::mapping::Mapping::of(&lab.at("f599"));
    mapping.sync();
    mapping.store(0, b'1');
    // Reported until its times prove something.
    loop {
        lab.tell(&["f599"]);
        if lab.take().cost.hashed == 0 {
            break;
        }
    }
    let times = |facts: std::fs::Metadata| (facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec());
    let before = times(mapping.facts());
    mapping.store(1, b'2');
    if times(mapping.facts()) != before {
        eprintln!("skipped: the page was written back meanwhile");
        return;
    }
    assert!(lab.take().unchanged, "no time tells of it, and nobody");
    assert_eq!(lab.audit(), 1);
    let taken = lab.take();
    assert_eq!((taken.changed, taken.cost.hashed), (Some(1), 1));
}
