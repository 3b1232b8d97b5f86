//! Tests of the watcher on real directories. None sleeps: a sync waits for the events.

mod changes;
mod limits;
mod soak;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;

/// A workspace, its watcher, and the clock of the last answer.
struct Scene {
    temp: tempfile::TempDir,
    watcher: Watcher,
    clock: Clock,
}

/// Admits all but `node_modules` and names that begin with `closed`.
fn rules(path: &RelPath) -> bool {
    path.name() != b"node_modules" && !path.name().starts_with(b"closed")
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

impl Scene {
    /// Makes a workspace with these files, and takes the first answer.
    fn new(files: &[&str]) -> Scene {
        Scene::with(files, |_| {})
    }

    fn with(files: &[&str], change: impl Fn(&mut Options)) -> Scene {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("w")).unwrap();
        for file in files {
            let path = temp.path().join("w").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let mut options = Options::new(temp.path().join("cookies"));
        change(&mut options);
        let mut watcher = Watcher::start(&temp.path().join("w"), &rules, options).unwrap();
        let (clock, changes) = watcher.sync(Clock::default(), &rules, soon());
        assert_eq!(changes, Changes::Everything(Why::FirstLook));
        let mut scene = Scene { temp, watcher, clock };
        assert_eq!(scene.reported(), "");
        scene
    }

    fn at(&self, text: &str) -> PathBuf {
        self.temp.path().join("w").join(text)
    }

    fn outside(&self, text: &str) -> PathBuf {
        self.temp.path().join(text)
    }

    /// Returns the next answer.
    fn sync(&mut self) -> Changes {
        let (clock, changes) = self.watcher.sync(self.clock, &rules, soon());
        self.clock = clock;
        changes
    }

    /// Returns the next answer as text: subtrees end in `/**`.
    fn reported(&mut self) -> String {
        match self.sync() {
            Changes::Everything(why) => format!("everything: {why}"),
            Changes::Paths(dirty) => {
                let texts = dirty.iter().map(|(path, reach)| match reach {
                    Reach::Entry => path.display(),
                    Reach::Subtree => format!("{}/**", path.display()),
                });
                texts.collect::<Vec<_>>().join(" ")
            }
        }
    }
}
