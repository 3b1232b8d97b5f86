//! The hot path alone, for benches/instructions: checkpoints of a warm workspace, as a sidecar's worker takes them.
//!
//! usage: hot DIR FILES TAKES CHANGED [NAMED]. Makes a workspace of FILES files below DIR, brings it to be warm, and
//! takes TAKES checkpoints with CHANGED changed files each, for actions that name NAMED files. Instructions of one
//! checkpoint are the difference of two runs by TAKES. The program itself reports the changes: inotify and its thread
//! are not measured.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use piton::checkpoint::{Home, Selection, Take, Timeline, Workspace};
use piton::error::Result;
use piton::model::change::{Admits, ChangeSource, Changes, Dirty, Reach};
use piton::model::checkpoint::CheckpointKind;
use piton::model::path::RelPath;
use piton::sys::interrupt::Flow;
use piton::worktree::Target;

/// Tells what the program has put in.
struct Told(Arc<Mutex<Changes>>);

impl ChangeSource for Told {
    fn sync(&mut self, _admits: Admits<'_>) -> Changes {
        std::mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), Changes::none())
    }

    fn watch(&mut self, _dir: &RelPath, _admits: Admits<'_>) {}

    fn place_watches(&mut self, _admits: Admits<'_>) -> bool {
        false
    }

    fn always_report(&mut self, _paths: &BTreeSet<RelPath>) {}
}

fn name(n: usize) -> String {
    format!("d{}/e{}/f{n}.rs", n % 17, n % 153)
}

fn write(root: &Path, n: usize, content: &str) {
    let path = root.join(name(n));
    std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("a directory can be made");
    std::fs::write(path, content).expect("a file can be written");
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
    let named = number(4).unwrap_or_default();
    let (Some(dir), Some(files), Some(takes), Some(changed)) = (words.first(), number(1), number(2), number(3)) else {
        println!("usage: hot DIR FILES TAKES CHANGED [NAMED]");
        return Ok(());
    };
    let dir = Path::new(dir).canonicalize().expect("DIR is a directory");
    let root = dir.join("workspace");
    (0..files).for_each(|n| write(&root, n, &format!("// file {n}\n").repeat(40)));
    let home = Home::at(&dir.join("home"))?;
    let policy = piton::settings::load(Some(&root), home.path(), &[])?.policy;
    let mut timeline = Timeline::open(&home, Workspace::open(&home, &root)?, policy)?;
    let told = Arc::new(Mutex::new(Changes::none()));
    let go_on = || Flow::Continue;
    let take = Take::of(CheckpointKind::Auto, "bench", "hot path");
    timeline.keep_warm();
    timeline.take(&take, &go_on)?;
    timeline.set_change_source(Some(Box::new(Told(Arc::clone(&told)))));
    timeline.warm_up(&go_on)?;
    for round in 0..takes {
        let names: Vec<usize> = (0..changed).map(|n| (round * changed + n) % files).collect();
        names.iter().for_each(|n| write(&root, *n, &format!("// changed in {round}\n").repeat(40)));
        let paths = names.iter().filter_map(|n| RelPath::parse(name(*n).as_bytes()).ok());
        let dirty = Dirty::new(paths.map(|path| (path, Reach::Entry)));
        *told.lock().unwrap_or_else(PoisonError::into_inner) = Changes::Paths(dirty);
        let target = |n: usize| RelPath::parse(name((round + n) % files).as_bytes()).ok();
        let targets: Vec<Target> = (0..named).filter_map(target).map(|path| Target { path, recursive: true }).collect();
        let naming = (named > 0).then(|| Take { selection: Selection::with(targets), ..take.clone() });
        let taken = timeline.take(naming.as_ref().unwrap_or(&take), &go_on)?;
        // The first one also looks again at files that were written shortly before they were captured.
        assert!(taken.cost.dirty.is_some() && taken.unchanged == (changed == 0), "{:?}", taken.cost);
    }
    Ok(())
}
