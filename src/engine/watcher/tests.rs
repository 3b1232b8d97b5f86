//! A timeline with a real watcher, under random edits and captures of every kind. It must hold the same files as a scan
//! without prior knowledge. It runs on one thread, so that a failure can be repeated by its seed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::checkpoint::capture::request::{Selection, Take};
use crate::checkpoint::{Home, Workspace};
use crate::dice::Dice;
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage::Extent;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::manifest::{EntryKind, Manifest, ManifestEntry};
use crate::model::policy::Policy;
use crate::model::stamp::KnownPaths;
use crate::sys::interrupt::Flow;
use crate::worktree::{Request, Target, capture};

/// Makes one random edit; some cannot be done.
fn edit(root: &Path, outside: &Path, dice: &mut Dice) -> String {
    let place = |dice: &mut Dice| {
        let depth = dice.roll(4);
        let mut names: Vec<&str> = (0..depth).map(|_| dice.of(&["a", "b", "ig"])).collect();
        names.push(dice.of(&[
            "f",
            "g",
            "h.log",
            "a",
            "b",
            "ig",
            ".gitignore",
            ".gitignore",
            "package.json",
            "node_modules",
        ]));
        names.join("/")
    };
    let (one, two) = (place(dice), place(dice));
    let (first, second) = (root.join(&one), root.join(&two));
    let aside = outside.join(format!("o{}", dice.roll(3)));
    let rules = first.ends_with(".gitignore");
    let what = dice.roll(16);
    let _ = match what {
        0..=4 if rules => fs::write(&first, dice.of(&["*.log\n", "ig/\n", "!f\n", "", "g\n", "/a\n"])),
        0..=4 => fs::write(&first, format!("{}\n", dice.roll(1000))),
        5 => fs::create_dir_all(&first),
        6 => fs::create_dir_all(&first).and_then(|()| fs::write(first.join("at-once"), "x")),
        7 => fs::rename(&first, &second),
        8 => fs::rename(&first, &aside),
        9 => fs::rename(&aside, &first),
        10 => fs::remove_file(&first),
        11 => fs::remove_dir_all(&first),
        12 => symlink("f", &first),
        13 if first.is_file() => fs::set_permissions(&first, PermissionsExt::from_mode(0o600 + dice.roll(64) as u32)),
        14 => fs::hard_link(&first, &second),
        15 => fs::create_dir_all(first.join("x/y")).and_then(|()| fs::write(first.join("x/y/f"), "x")),
        _ => fs::File::options()
            .append(true)
            .open(&first)
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"y")),
    };
    format!("{what} {one} {two}")
}

struct Lab {
    temp: tempfile::TempDir,
    root: PathBuf,
    policy: Policy,
    timeline: Timeline,
    shared: SharedStatus,
}

impl Lab {
    fn new() -> Lab {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("work");
        fs::create_dir_all(root.join("a/ig/b")).unwrap();
        fs::create_dir_all(temp.path().join("outside")).unwrap();
        let root = root.canonicalize().unwrap();
        let home = Home::at(&temp.path().join("home")).unwrap();
        let mut policy = crate::settings::load(Some(&root), home.path(), &[]).unwrap().policy;
        policy.retention.enabled = false;
        policy.durability = crate::model::policy::Durability::Process;
        let workspace = Workspace::open(&home, &root).unwrap();
        let mut timeline = Timeline::open(&home, workspace, policy.clone()).unwrap();
        timeline.keep_warm();
        Lab { temp, root, policy, timeline, shared: SharedStatus::default() }
    }

    fn idle(&mut self) {
        if self.timeline.is_warm() && !self.timeline.has_change_source() {
            let source = start(&self.timeline, &self.shared, ChangeSignal::new(|| {})).unwrap();
            self.timeline.set_change_source(Some(Box::new(source)));
        }
        self.timeline.warm_up(&|| Flow::Continue).unwrap();
    }

    fn take(&mut self, kind: CheckpointKind, targets: &[&str]) -> (Manifest, bool) {
        let targets: Vec<Target> = targets
            .iter()
            .map(|name| Target { path: RelPath::parse(name.as_bytes()).unwrap(), recursive: true })
            .collect();
        let take = Take { selection: Selection::with(targets), ..Take::of(kind, "r", "test") };
        let taken = self.timeline.take(&take, &|| Flow::Continue).unwrap();
        (self.timeline.catalog().contents(&taken.checkpoint).unwrap().0, taken.cost.dirty.is_some())
    }

    /// Returns the files, found by a scan without prior knowledge.
    fn fresh(&self) -> Manifest {
        let (known, sticky) = (KnownPaths::default(), BTreeSet::new());
        let request = Request {
            root: &self.root,
            known: &known,
            sticky: &sticky,
            private: &crate::worktree::NonePrivate,
            targets: &[],
            unlimited_targets: false,
            budget: crate::worktree::TargetBudget::Wide,
            extent: Extent::Tree,
            limits: self.policy.limits,
            secrets: self.policy.secrets,
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
        capture(&request, crate::worktree::Sinks::nowhere(), &|| Flow::Continue).unwrap().manifest
    }

    fn check(&self, held: &Manifest, when: &str) {
        // Trees tell no sizes.
        let facts = |entry: Option<&ManifestEntry>| entry.map(|entry| (entry.kind, entry.perm, entry.id));
        for (path, entry) in self.fresh().iter() {
            assert_eq!(facts(held.get(path)), facts(Some(entry)), "{when}: {path:?} is missing or old");
        }
        // A path that the rules leave out stays captured once it was.
        for (path, entry) in held.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir) {
            let file = self.root.join(path.to_path());
            let content = match fs::read_link(&file) {
                Ok(target) => Some(target.into_os_string().into_encoded_bytes()),
                Err(_) => fs::read(&file).ok(),
            };
            let id = content.map(|content| ObjectId::of(ObjectKind::Blob, &content).unwrap());
            assert_eq!(id, Some(entry.id), "{when}: {path:?} is not what is held");
        }
    }
}

fn soak(seed: u64, steps: u64) -> (u64, u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut lab = Lab::new();
    let outside = lab.temp.path().join("outside");
    let mut sums = (0, 0);
    let mut story = std::collections::VecDeque::new();
    for step in 0..steps {
        for _ in 0..=dice.roll(5) {
            story.push_back(edit(&lab.root, &outside, &mut dice));
        }
        let (kind, targets): (CheckpointKind, &[&str]) = match dice.roll(6) {
            0 => (CheckpointKind::Turn, &[]),
            1 => (CheckpointKind::Auto, &["ig"]),
            2 => (CheckpointKind::Auto, &["a", "b/h.log"]),
            _ => (CheckpointKind::Auto, &[]),
        };
        let (held, warm) = lab.take(kind, targets);
        story.push_back(format!("take {kind:?} {targets:?} warm {warm}"));
        while story.len() > 300 {
            story.pop_front();
        }
        lab.check(&held, &format!("seed {seed}, step {step}: {story:#?}"));
        sums = (sums.0 + u64::from(warm), sums.1 + 1);
        if dice.roll(3) > 0 {
            lab.idle();
            story.push_back("idle".to_owned());
        }
    }
    sums
}

#[test]
fn a_warm_timeline_holds_what_a_scan_finds() {
    let rounds = std::env::var("PITON_ROUNDS").map_or(4, |text| text.parse().unwrap_or(300));
    let mut sums = (0, 0);
    let first: u64 = std::env::var("PITON_SEED").map_or(1, |t| t.parse().unwrap());
    for seed in first..=first.max(rounds) {
        let (warm, all) = soak(seed, 60);
        sums = (sums.0 + warm, sums.1 + all);
    }
    assert!(sums.0 * 3 > sums.1, "{} of {} by the watcher", sums.0, sums.1);
}

#[test]
fn a_watcher_that_covers_less_than_it_should_tells_why_until_it_does() {
    let lab = Lab::new();
    let options = Options { max_watches: 8, ..Options::new(lab.temp.path().join("cookies")) };
    let watcher = Watcher::start(&lab.root, &|_| true, options).unwrap();
    let (root, shared) = (lab.root.clone(), Arc::clone(&lab.shared));
    let mut source = WatcherSource { watcher, root, is_known: false, clock: Clock::default(), shared };
    let admits = |_: &RelPath| true;
    let told = || {
        let status = snapshot(&lab.shared);
        (status.degraded, status.degradations)
    };
    source.tell(None);
    source.sync(&admits);
    assert_eq!((told(), source.sync(&admits)), ((None, 0), Changes::none()));
    let dirs: Vec<_> = (0..20).map(|n| lab.root.join(format!("d{n}"))).collect();
    dirs.iter().for_each(|dir| fs::create_dir(dir).unwrap());
    source.sync(&admits);
    source.place_watches(&admits);
    let (degraded, times) = told();
    let degraded = degraded.unwrap();
    assert!(degraded.contains("no watches are left for ") && degraded.contains("max_user_watches"), "{degraded}");
    assert_eq!(times, 1);
    // Where more lack one, it is the same story.
    fs::create_dir(lab.root.join("more")).unwrap();
    source.sync(&admits);
    source.place_watches(&admits);
    assert!(told().0.is_some_and(|now| now != degraded) && told().1 == 1, "{:?}", told());
    let mut news = WatcherNews::default();
    assert!(news.next(snapshot(&lab.shared)).is_some() && news.next(snapshot(&lab.shared)).is_none());
    dirs.iter().for_each(|dir| fs::remove_dir(dir).unwrap());
    fs::remove_dir(lab.root.join("more")).unwrap();
    source.sync(&admits);
    source.place_watches(&admits);
    assert_eq!(told(), (None, 1));
    // Another directory in the place of the root.
    fs::rename(&lab.root, lab.temp.path().join("away")).unwrap();
    fs::create_dir(&lab.root).unwrap();
    assert_eq!(source.sync(&admits), Changes::Everything(Why::RootMoved));
    let (degraded, times) = told();
    assert!(degraded.unwrap().contains("the root was moved or deleted") && times == 2);
    source.sync(&admits);
    assert_eq!(told(), (None, 2));
    // It was so for a moment between two looks of a session. A session that begins now is told of nothing.
    assert!(news.next(snapshot(&lab.shared)).is_some() && news.next(snapshot(&lab.shared)).is_none());
    assert_eq!(WatcherNews::default().next(snapshot(&lab.shared)), None);
    // An overflow costs a scan, and is no such story.
    assert_eq!(blindness(&lab.root, &Changes::Everything(Why::Overflow)), None);
}
