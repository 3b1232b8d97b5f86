//! The git door in a repository in which an editor works too, with a git of its own: libgit2.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use git2::{Oid, Repository, Signature};

use crate::support::{Lab, Output, WAIT, lacking};

/// A repository with the door.
struct Place {
    lab: Lab,
}

impl Place {
    /// `None`, said aloud, where there is no git.
    fn new() -> Option<Place> {
        if std::process::Command::new("git").arg("--version").output().is_err() {
            lacking("git");
            return None;
        }
        let lab = Lab::new();
        std::fs::write(lab.home.join(".gitconfig"), "[user]\nname = t\nemail = t@example.org\n").unwrap();
        let place = Place { lab };
        place.sh("git init -q -b main; echo one > f; echo e > e; git add .; git commit -qm one; echo two > f; git commit -qam two");
        let installed = place.lab.piton(&["install", "git"]);
        assert_eq!(installed.code, 0, "{installed:?}");
        Some(place)
    }

    fn run(&self, script: &str) -> Output {
        let output = self.lab.command("/bin/sh", &self.lab.work).args(["-c", script]).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn sh(&self, script: &str) {
        let done = self.run(&format!("set -e; {script}"));
        assert_eq!(done.code, 0, "{script}: {done:?}");
    }

    fn undo(&self) -> Output {
        self.lab.piton_in(&self.lab.work, &["git-undo", "--yes"])
    }

    /// Waits until the ends of all commands are told.
    fn ended(&self) {
        let (calls, until) = (self.lab.home.join("piton/git-calls"), Instant::now() + WAIT);
        while std::fs::read_dir(&calls).unwrap().count() > 0 {
            assert!(Instant::now() < until, "nobody told of the end");
            std::thread::yield_now();
        }
    }
}

/// The editor.
struct Editor(Repository);

impl Editor {
    fn of(place: &Place) -> Editor {
        Editor(Repository::open(&place.lab.work).unwrap())
    }

    fn stage(&self, path: &str) -> Result<(), git2::Error> {
        let mut index = self.0.index()?;
        index.read(false)?;
        index.add_path(Path::new(path))?;
        index.write()
    }

    /// Returns what is staged.
    fn staged(&self) -> Vec<(Vec<u8>, Oid)> {
        let mut index = self.0.index().unwrap();
        index.read(true).unwrap();
        index.iter().map(|entry| (entry.path, entry.id)).collect()
    }

    fn commit(&self, name: &str) -> Oid {
        let (who, head) = (Signature::now("e", "e@example.org").unwrap(), self.0.head().unwrap());
        let above = head.peel_to_commit().unwrap();
        self.0.commit(Some(name), &who, &who, "by the editor", &above.tree().unwrap(), &[&above]).unwrap()
    }

    fn tip(&self, name: &str) -> Option<Oid> {
        self.0.refname_to_id(name).ok()
    }
}

#[test]
fn what_an_editor_staged_and_committed_comes_back_from_git() {
    let Some(place) = Place::new() else { return };
    let editor = Editor::of(&place);
    place.lab.write("f", "staged");
    place.lab.write("n", "new");
    editor.stage("f").unwrap();
    editor.stage("n").unwrap();
    place.lab.write("f", "further");
    let (staged, side) = (editor.staged(), editor.0.head().unwrap().peel_to_commit().unwrap());
    editor.0.branch("side", &side, false).unwrap();
    let tip = editor.commit("refs/heads/other");
    place.sh("git reset -q --hard; git branch -q -D other");
    assert!(editor.staged() != staged && editor.tip("refs/heads/other").is_none());
    for _ in 0..2 {
        let undone = place.undo();
        assert_eq!(undone.code, 0, "{undone:?}");
    }
    assert_eq!((editor.staged(), editor.tip("refs/heads/other")), (staged, Some(tip)));
    assert_eq!((place.lab.read("f"), place.lab.read("n")), ("further".to_owned(), "new".to_owned()));
    assert!(editor.0.statuses(None).unwrap().iter().all(|entry| ["f", "n"].contains(&entry.path().unwrap())));
}

#[test]
fn what_an_editor_does_behind_a_command_stays() {
    let Some(place) = Place::new() else { return };
    let editor = Editor::of(&place);
    place.sh("echo dirty > f; git reset -q --hard HEAD~1");
    place.ended();
    let tip = editor.commit("refs/heads/main");
    editor.0.reference("refs/heads/made", tip, false, "made").unwrap();
    place.lab.write("n", "new");
    editor.stage("n").unwrap();
    let staged = editor.staged();
    let undone = place.undo();
    for part in ["branch `main`: changed since", "the index (what is staged): changed since"] {
        assert!(undone.stdout.contains(&format!("not restored: {part}")), "{part}: {undone:?}");
    }
    assert_eq!((undone.code, place.lab.read("f").as_str()), (4, "dirty\n"), "{undone:?}");
    assert_eq!((editor.tip("refs/heads/main"), editor.tip("refs/heads/made")), (Some(tip), Some(tip)));
    assert_eq!(editor.staged(), staged);
}

#[test]
fn while_an_editor_has_the_index_locked_git_says_so_itself_and_nothing_is_lost() {
    let Some(place) = Place::new() else { return };
    place.sh("git branch x HEAD~1; echo precious > f; echo n > n");
    let lock = place.lab.work.join(".git/index.lock");
    std::fs::File::create_new(&lock).unwrap();
    let commands = [
        "reset --hard",
        "checkout -f x",
        "checkout -- f",
        "restore .",
        "switch --discard-changes x",
        "stash",
        "stash -u",
        "rm -f f",
        "read-tree -u --reset HEAD~1",
        "merge x",
        "cherry-pick x",
        "rebase x",
        "commit -qam three",
        "add n",
        "status --porcelain",
    ];
    for command in commands {
        let alone = place.run(&format!("git -c core.fsmonitor=false -c core.hooksPath=/none {command}"));
        let done = place.run(&format!("git {command}"));
        assert_eq!((done.code, &done.stdout, &done.stderr), (alone.code, &alone.stdout, &alone.stderr), "{command}");
        assert_eq!((place.lab.read("f").as_str(), place.lab.read("n").as_str()), ("precious\n", "n\n"), "{command}");
        assert!(lock.exists(), "{command}");
    }
    // A command that needs no index is guarded as ever.
    place.sh("git clean -fdq");
    assert_eq!(place.lab.piton(&["checkpoint"]).code, 0);
    let busy = place.undo();
    assert!(busy.code == 1 && busy.stderr.contains("index.lock"), "{busy:?}");
    std::fs::remove_file(&lock).unwrap();
    let undone = place.undo();
    assert_eq!((undone.code, place.lab.read("n").as_str()), (0, "n\n"), "{undone:?}");
    place.sh("git fsck --no-dangling; git commit -qam works");
}

#[test]
fn an_editor_at_work_disturbs_neither_git_nor_its_undo() {
    let Some(place) = Place::new() else { return };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let editor = Editor::of(&place);
            let tip = editor.0.head().unwrap().target().unwrap();
            for n in 0_u32.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let _ = editor.0.statuses(None);
                place.lab.write("e", n.to_string());
                // git holds the lock now and then, and takes the file away.
                let _ = editor.stage("e");
                let _ = editor.0.reference(&format!("refs/heads/editor/{}", n % 3), tip, true, "moved");
                let _ = editor.0.statuses(None);
                // Without a pause the editor has the lock nearly all the time on a slow machine, and git never gets it.
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| beside(&place)));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    place.sh("git fsck --no-dangling; git add .; git commit -qm works");
}

/// Has git destroy work, again and again, and takes that back.
fn beside(place: &Place) {
    // A person tries again what another program was in the way of.
    let again = |what: &str, run: &dyn Fn() -> Output, fits: &dyn Fn(&Output) -> bool| {
        let until = Instant::now() + WAIT;
        loop {
            let done = run();
            if fits(&done) {
                return done;
            }
            let is_busy = ["lock", "could not write index", "moved since", "changed since the preview", "File exists"];
            assert!(is_busy.iter().any(|part| done.stderr.contains(part)), "{what}: {done:?}");
            assert!(Instant::now() < until, "{what}: {done:?}");
        }
    };
    let commands = ["reset -q --hard", "checkout -q -f", "stash -q", "restore f", "clean -fdqx n", "checkout -q -- f"];
    for (n, command) in commands.iter().cycle().take(12).enumerate() {
        let (dirty, new) = (format!("dirty {n}\n"), format!("new {n}\n"));
        let attempt = || {
            place.lab.write("f", &dirty);
            place.lab.write("n", &new);
            place.run(&format!("git {command}"))
        };
        again(command, &attempt, &|done| done.code == 0);
        assert!(place.lab.read("f") != dirty || !place.lab.work.join("n").exists(), "{command} did nothing");
        let status = |off: &str| place.run(&format!("git {off} status --porcelain -- f n")).stdout;
        assert_eq!(status(""), status("-c core.fsmonitor=false"), "{command}");
        let undone = again("git-undo", &|| place.undo(), &|done| matches!(done.code, 0 | 4));
        assert!(undone.stdout.contains(&format!("git {command}")), "{command}: {undone:?}");
        assert_eq!((place.lab.read("f"), place.lab.read("n")), (dirty, new), "{command}: {undone:?}");
    }
}
