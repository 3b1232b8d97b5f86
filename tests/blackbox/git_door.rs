//! The git door: a checkpoint before git destroys, and `piton git-undo`, with real gits.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Lab, Output, Sidecar, WAIT, lacking, tree};

/// The state of a repository and its files, as a person would compare it.
const PICTURE: &str = "git rev-parse HEAD; git symbolic-ref -q HEAD; git for-each-ref; git stash list --format=%H; \
    git ls-files -s; git -c core.fsmonitor=false status --porcelain --ignored; cd .git; ls -d *_HEAD rebase-* sequencer 2>/dev/null | grep -v ORIG";

/// A repository with a door, and the git that works in it.
pub(crate) struct Place {
    pub(crate) lab: Lab,
}

impl Place {
    /// Makes it with a git; `None`, said aloud, where that is not there.
    pub(crate) fn new(git: &str) -> Option<Place> {
        if !Path::new(git).exists() {
            lacking(git);
            return None;
        }
        let lab = Lab::new();
        std::fs::create_dir(lab.home.join("bin")).unwrap();
        symlink(git, lab.home.join("bin/git")).unwrap();
        std::fs::write(
            lab.home.join(".gitconfig"),
            "[user]\nname = t\nemail = t@example.org\n[init]\ndefaultBranch = main\n",
        )
        .unwrap();
        let place = Place { lab };
        place.sh("git init -q; echo one > f; mkdir sub; echo g > sub/g; echo '*.o' > .gitignore; git add .; git commit -qm one; \
                  echo two > f; git commit -qam two; git branch x");
        let installed = place.lab.piton(&["install", "git"]);
        assert_eq!(installed.code, 0, "{installed:?}");
        Some(place)
    }

    fn command(&self, script: &str) -> Command {
        let mut command = self.lab.command("/bin/sh", &self.lab.work);
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.lab.home.join("bin").display()));
        command.args(["-c", script]);
        command
    }

    /// Runs a script, and returns what it says.
    pub(crate) fn run(&self, script: &str) -> Output {
        let output = self.command(script).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub(crate) fn sh(&self, script: &str) {
        let done = self.run(&format!("set -e; {script}"));
        assert_eq!(done.code, 0, "{script}: {done:?}");
    }

    /// Runs a script without piton, as somebody else may have worked here before.
    pub(crate) fn unseen(&self, script: &str) {
        self.run(&format!("export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=false; mv .git/hooks .git/h; {script}; rm -rf .git/hooks; mv .git/h .git/hooks"));
    }

    fn picture(&self) -> (String, crate::support::Tree) {
        (self.run(PICTURE).stdout, tree(&self.lab.work))
    }

    /// Waits until the ends of all commands are told.
    pub(crate) fn ended(&self) {
        let calls = self.lab.home.join("piton/git-calls");
        let until = std::time::Instant::now() + WAIT;
        while std::fs::read_dir(&calls).unwrap().count() > 0 {
            assert!(std::time::Instant::now() < until, "nobody told of the end");
            std::thread::yield_now();
        }
    }

    pub(crate) fn undo(&self, args: &[&str]) -> Output {
        self.lab.piton_in(&self.lab.work, &[&["git-undo"], args].concat())
    }
}

/// The gits of this machine: the first that a shell finds, and the distribution's.
pub(crate) const GITS: [&str; 2] = ["/usr/local/bin/git", "/usr/bin/git"];

#[test]
fn each_command_of_git_is_taken_back_exactly() {
    // Work that is not committed, and an ignored file.
    let dirty = "echo dirty > f; echo new > n; echo o > a.o; echo p > sub/b.o";
    let diverged =
        "echo a > f; git commit -qam a; git checkout -q x; echo b > f; git commit -qam b; git checkout -q main";
    let stashed = "echo s > f; git stash -q; echo t > f; git stash -q";
    for git in GITS {
        for (before, command) in [
            (dirty, "git reset -q --hard HEAD~1"),
            (dirty, "git -c alias.rh='reset --hard' rh -q HEAD~1"),
            (dirty, "cd sub && git reset -q --hard HEAD~1"),
            (dirty, "git checkout -q -f x"),
            (dirty, "git checkout -q -- f"),
            (dirty, "git restore f"),
            (dirty, "git restore --source=HEAD~1 ."),
            (dirty, "git switch -q --discard-changes x"),
            (dirty, "git clean -fdxq"),
            (dirty, "cd sub && git clean -fdxq ."),
            (dirty, "git stash -q"),
            (dirty, "git stash -q -u"),
            (dirty, "git rm -q -f f"),
            (dirty, "git read-tree -u --reset HEAD~1"),
            (dirty, "git checkout-index -f -a"),
            ("git add .; echo staged > f; git add f; echo more > f", "git reset -q"),
            ("", "git branch -q -D x"),
            ("git pack-refs --all", "git branch -q -D x"),
            ("", "git branch -f x HEAD~1"),
            ("git tag v1", "git tag -d v1"),
            ("", "git update-ref -d refs/heads/x"),
            (dirty, "git commit -q --amend -am other"),
            ("echo s > f; git stash -q", "git stash drop -q"),
            (stashed, "git stash pop -q"),
            (stashed, "git stash clear"),
            (diverged, "git rebase -q x"),
            (diverged, "git merge -q -m m x"),
            (diverged, "git merge -q -X ours -m m x"),
            (diverged, "git cherry-pick x"),
            (diverged, "git -c core.editor=true rebase -q -X ours x"),
            (&format!("{diverged}; git merge -q x || :"), "git merge --abort"),
            (&format!("{diverged}; git merge -q x || :; echo half > f; git add f"), "git reset -q --hard"),
            ("git checkout -q --detach", "git checkout -q -B x"),
        ] {
            let Some(place) = Place::new(git) else { continue };
            place.unseen(before);
            let (was, done) = (place.picture(), place.run(command));
            let now = place.picture();
            assert!(was != now, "{git}: {command} did nothing: {done:?}");
            let undone = place.undo(&["--yes"]);
            assert_eq!(undone.code, 0, "{git}: {command}: {done:?}\n{undone:?}");
            let back = place.picture();
            assert_eq!((&back.0, back.1 == was.1), (&was.0, true), "{git}: {command}: {undone:?}");
            // Taken back in turn, it is as the command left it.
            let by = undone.stdout.rsplit("`piton undo ").next().unwrap().split('`').next().unwrap().to_owned();
            let again = place.undo(&[&by, "--yes"]);
            assert_eq!(again.code, 0, "{git}: {command}: {again:?}");
            let again = place.picture();
            assert_eq!((&again.0, again.1 == now.1), (&now.0, true), "{git}: {command}");
        }
    }
}

/// Makes a branch `x` with another content of `f` and a file of its own. git writes them before it tells of a switch to it.
const OTHER_BRANCH: &str =
    "git checkout -q x; echo x > f; echo made > m; git add .; git commit -qm x; git checkout -q main";

#[test]
fn a_switch_that_git_told_of_late_is_taken_back_exactly() {
    for (before, command) in [
        ("echo new > n; echo o > a.o", "git checkout -q x"),
        ("echo new > n; git add n; echo other > sub/g", "git switch -q x"),
    ] {
        let Some(place) = Place::new(GITS[0]) else { return };
        place.unseen(&format!("{OTHER_BRANCH}; {before}"));
        let (was, done) = (place.picture(), place.run(command));
        let now = place.picture();
        assert!(was != now, "{command} did nothing: {done:?}");
        let undone = place.undo(&["--yes"]);
        if undone.code == 3 {
            lacking(&format!("a git that tells of `{command}`"));
            return;
        }
        assert_eq!((undone.code, &place.picture().0), (0, &was.0), "{command}: {undone:?}");
        assert!(place.picture().1 == was.1, "{command}: {undone:?}");
        let by = undone.stdout.rsplit("`piton undo ").next().unwrap().split('`').next().unwrap().to_owned();
        let again = place.undo(&[&by, "--yes"]);
        assert_eq!((again.code, &place.picture().0), (0, &now.0), "{command}: {again:?}");
        assert!(place.picture().1 == now.1, "{command}: {again:?}");
    }
}

#[test]
fn an_edit_after_a_switch_keeps_the_branch() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.unseen(OTHER_BRANCH);
    place.sh("git checkout -q x");
    place.sh("echo precious > f");
    let was = place.picture();
    let refused = place.undo(&["--yes"]);
    if refused.stderr.contains("Nothing to undo") {
        lacking("a git that tells of switches");
        return;
    }
    assert_eq!((refused.code, place.picture().0), (4, was.0), "{refused:?}");
    assert!(refused.stdout.contains("not restored: `HEAD`, with the files and the index"), "{refused:?}");
    assert_eq!(place.run("git branch --show-current").stdout, "x\n");
}

#[test]
fn what_has_moved_on_stays_and_is_listed() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("echo dirty > f; echo kept > sub/g; git reset -q --hard HEAD~1");
    place.ended();
    place.sh("echo later > sub/g; git commit -qam later");
    let preview = place.undo(&["--preview"]);
    assert!(preview.stdout.contains("not restored: branch `main`: changed since"), "{preview:?}");
    let done = place.undo(&["--yes"]);
    assert_eq!(done.code, 4, "{done:?}");
    assert_eq!(
        (place.lab.read("f"), place.lab.read("sub/g")),
        ("dirty\n".to_owned(), "later\n".to_owned()),
        "{done:?}"
    );
    assert_eq!(place.run("git log -1 --format=%s").stdout, "later\n");
    assert_eq!(place.undo(&["g-77"]).code, 3);
    assert_eq!(place.undo(&["nonsense"]).code, 2);
}

#[test]
fn an_edit_right_behind_a_command_stays() {
    for command in [
        "git branch -q -D x",
        "git tag -d t",
        "git update-ref refs/heads/x HEAD",
        "git commit -q --amend --allow-empty -m new",
        "git reset -q --soft HEAD~1",
        "git reset -q HEAD~1",
        "git reset -q --hard HEAD~1",
        "git checkout -q -f HEAD~1",
        "git clean -fdq",
        "git stash -q",
        "git stash -q; git stash clear",
        "git stash -q -u; git rebase -q --onto x HEAD~1",
    ] {
        let Some(place) = Place::new(GITS[0]) else { return };
        place.sh("git branch -f x HEAD~1; git tag -f t HEAD~1; echo dirty > sub/g; echo new > untracked");
        // No process starts between the end of the command and the edit.
        place.sh(&format!("{command}; echo precious > f"));
        let done = place.undo(&["--yes"]);
        assert_eq!(place.lab.read("f"), "precious\n", "{command}: {done:?}");
        if command.contains("--hard") {
            assert!(done.code == 4 && done.stdout.contains("not restored: `f`: changed since"), "{command}: {done:?}");
        }
        if command.contains("branch") {
            assert!(done.code == 0 && !done.stdout.contains("not restored"), "{command}: {done:?}");
        }
    }
}

#[test]
fn nothing_is_written_while_a_git_is_at_work_and_nothing_without_an_answer() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("echo dirty > f; git reset -q --hard HEAD~1");
    let now = place.picture();
    let refused = place.undo(&[]);
    assert_eq!((refused.code, place.picture() == now), (5, true), "{refused:?}");
    std::fs::write(place.lab.work.join(".git/index.lock"), "").unwrap();
    let busy = place.undo(&["--yes", "--json"]);
    assert_eq!((busy.error().as_str(), place.picture() == now), ("busy", true), "{busy:?}");
    std::fs::remove_file(place.lab.work.join(".git/index.lock")).unwrap();
    let listed = place.undo(&["--list", "--json"]).json();
    let one = &listed["operations"][0];
    assert_eq!((&one["op"], &one["undone"]), (&json!("g-1"), &Value::Null), "{listed}");
    assert!(one["command"].as_str().unwrap().contains("git reset -q --hard"), "{listed}");
    let preview = place.undo(&["--preview", "--json"]).json();
    assert_eq!(
        (&preview["index"], &preview["refs"][0]["name"]),
        (&json!(true), &json!("refs/heads/main")),
        "{preview}"
    );
    assert_eq!(place.undo(&["--yes"]).code, 0);
    assert_eq!(place.lab.read("f"), "dirty\n");
}

#[test]
fn a_command_from_elsewhere_and_an_index_without_its_contents() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let dir = place.lab.work.display().to_string();
    place.sh(&format!("echo dirty > f; cd /; git -C {dir} reset -q --hard HEAD~1"));
    let undone = place.undo(&["--yes"]);
    assert_eq!((undone.code, place.lab.read("f").as_str()), (0, "dirty\n"), "{undone:?}");
    // More than is kept of one command.
    place.sh(
        "head -c 34000000 /dev/urandom > f; git add f; echo staged > f; git reset -q --hard; git gc -q --prune=now",
    );
    let undone = place.undo(&["--yes"]);
    assert!(
        undone.stdout.contains("not restored: the index (what is staged): it refers to content that is no longer"),
        "{undone:?}"
    );
    assert_eq!((undone.code, place.lab.read("f").as_str()), (4, "staged\n"), "{undone:?}");
    place.sh("git fsck --no-dangling; git commit -qam works");
}

#[test]
fn objects_that_git_has_removed_meanwhile_come_back() {
    let prune = "git reflog expire --expire=now --all; git gc -q --prune=now";
    let ahead = "git checkout -q x; for i in 1 2 3; do echo $i > f; git commit -qam $i; done; git branch y; echo z > z; git add z; git commit -qm z; git checkout -q main";
    for git in GITS {
        for (before, command, steps) in [
            (ahead, "git branch -q -D x", 1),
            // The second command leaves without a name what the first one has left with one.
            (ahead, "git branch -q -D y; git branch -q -D x", 2),
            ("echo staged > n; git add n; echo other > n", "git reset -q --hard HEAD~1", 1),
            ("for i in 1 2 3; do echo $i > f; git stash -q; done", "git stash clear", 1),
            ("echo a > f", "git commit -q --amend -am other", 1),
        ] {
            for pruned_at_once in [false, true] {
                let Some(place) = Place::new(git) else { continue };
                place.unseen(before);
                let was = place.picture();
                match pruned_at_once {
                    true => place.sh(&format!("{command}; {prune}")),
                    false => {
                        place.sh(command);
                        place.ended();
                        place.sh(prune);
                    }
                }
                let objects = tree(&place.lab.work.join(".git/objects"));
                place.undo(&["g-1", "--preview"]);
                assert!(tree(&place.lab.work.join(".git/objects")) == objects, "a preview writes nothing");
                let place_of = |op: u64| format!("g-{op}");
                let undone: Vec<_> = (1..=steps).rev().map(|op| place.undo(&[&place_of(op), "--yes"])).collect();
                let now = place.picture();
                assert_eq!((&now.0, now.1 == was.1), (&was.0, true), "{git}: {command}, {pruned_at_once}: {undone:?}");
                place.sh("git fsck --no-dangling --strict --no-reflogs");
            }
        }
    }
}

#[test]
fn an_index_that_cannot_be_read_any_more_stays_and_the_rest_goes_back() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh(
        "git config core.splitIndex true; git config splitIndex.sharedIndexExpire now; git update-index --split-index",
    );
    place.sh("echo staged > f; git add f; git reset -q --hard HEAD~1; git update-index --no-split-index; git config core.splitIndex false; rm -f .git/sharedindex.*");
    let undone = place.undo(&["--yes"]);
    assert_eq!((undone.code, place.lab.read("f").as_str()), (4, "staged\n"), "{undone:?}");
    assert!(
        undone.stdout.contains("not restored: the index (what is staged): git cannot read it as it was"),
        "{undone:?}"
    );
    assert_eq!(place.run("git log -1 --format=%s").stdout, "two\n");
}

#[test]
fn the_whole_work_tree_is_kept_from_each_of_its_directories() {
    for (dir, command) in [
        ("sub", "git reset -q --hard"),
        (".", "git -C sub reset -q --hard"),
        ("sub", "git checkout -q -- ../f g"),
        ("sub", "git stash -q"),
    ] {
        let Some(place) = Place::new(GITS[0]) else { return };
        // A project of its own below the repository's top.
        place.unseen("echo '{}' > sub/package.json; git add .; git commit -qm p; echo dirty > f; echo dirty > sub/g");
        place.lab.piton_in(&place.lab.work.join("sub"), &["checkpoint"]);
        place.sh(&format!("cd {dir}; {command}"));
        assert_eq!(place.lab.read("f"), "two\n", "{command}");
        let undone = place.lab.piton_in(&place.lab.work.join(dir), &["git-undo", "--yes"]);
        let back = [place.lab.read("f"), place.lab.read("sub/g")];
        assert_eq!((undone.code, back), (0, ["dirty\n", "dirty\n"].map(str::to_owned)), "{dir}: {command}: {undone:?}");
    }
}

#[test]
fn files_that_have_changed_since_are_named_with_their_checkpoint() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("echo dirty > f; git reset -q --hard");
    place.ended();
    place.lab.write("f", "later\n");
    for (args, code) in [(&["--preview"][..], 4), (&["--yes"], 4), (&["g-1", "--yes"], 4)] {
        let undone = place.undo(args);
        assert_eq!(undone.code, code, "{undone:?}");
        assert!(
            undone.stdout.contains("f  (it has changed since)") && undone.stdout.contains("piton restore 1 FILE"),
            "{undone:?}"
        );
    }
    // A directory in its place.
    place.sh("git rm -q -f sub/g; mkdir -p sub/g; echo x > sub/g/x");
    place.ended();
    let undone = place.undo(&["--yes"]);
    assert!(undone.code == 4 && undone.stdout.contains("sub/g"), "{undone:?}");
}

#[test]
fn a_ref_that_cannot_come_back_is_told_before_and_a_failed_try_takes_nothing_back() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.unseen("git branch d/e; git branch y");
    place.sh("git branch -q -D d/e x y; git branch d");
    place.ended();
    std::fs::write(place.lab.work.join(".git/refs/heads/y.lock"), "").unwrap();
    let failed = place.undo(&["--yes"]);
    assert!(failed.code != 0 && !failed.stderr.contains("\\n"), "{failed:?}");
    std::fs::remove_file(place.lab.work.join(".git/refs/heads/y.lock")).unwrap();
    let undone = place.undo(&["--yes"]);
    assert!(
        undone.code == 4 && undone.stdout.contains("not restored: branch `d/e`: another ref is in its way"),
        "{undone:?}"
    );
    assert_eq!(place.run("git branch --format='%(refname:short)'").stdout, "d\nmain\nx\ny\n");
}

#[test]
fn a_new_work_tree_is_no_loss_and_left_commits_are_kept() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.lab.set("policy:\n  vcs-discard: deny\n");
    place.sh("git worktree add -q ../wt x");
    assert_eq!(place.undo(&[]).code, 3);
    place.lab.set("");
    place.sh("git checkout -q --detach; echo d > d; git add d; git commit -qm left; git checkout -q main");
    place.ended();
    place.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
    let undone = place.undo(&["--yes"]);
    assert_eq!(place.run("git log -1 --format=%s; cat d").stdout, "left\nd\n", "{undone:?}");
}

#[test]
fn a_store_that_cannot_be_written_is_said_once_and_holds_where_the_settings_say() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let home = place.lab.home.join("piton");
    // It may not be there yet.
    let _ = std::fs::remove_dir_all(&home);
    std::fs::write(&home, "a file where piton's home should be").unwrap();
    let script = "export TMPDIR=$HOME/tmp; mkdir -p $TMPDIR; echo dirty > f; git reset -q --hard HEAD";
    // Each time anew, and the mark of the git before it does not stay.
    place.sh(script);
    let done = place.run(script);
    let marks = std::fs::read_dir(place.lab.home.join("tmp")).unwrap().count();
    assert_eq!(marks, 1, "the last git's");
    assert_eq!((done.code, place.lab.read("f").as_str()), (0, "two\n"), "{done:?}");
    assert_eq!(done.stderr.matches("piton: nothing was saved before this git command").count(), 1, "{done:?}");
    place.lab.set("on_failure: hold\n");
    let held = place.run(script);
    assert!(held.code != 0 && place.lab.read("f") == "dirty\n", "{held:?}");
}

#[test]
fn a_pull_is_one_command() {
    for git in GITS {
        for flags in ["--no-rebase", "--rebase", "--rebase --autostash"] {
            let Some(place) = Place::new(git) else { continue };
            place.unseen("git clone -q . ../other; cd ../other; echo o > o; git add o; git commit -qm o; cd ../work; git remote add origin ../other; git fetch -q");
            place.unseen("git branch -q -u origin/main; echo l > l; git add l; git commit -qm l");
            if flags.contains("autostash") {
                place.unseen("echo dirty > f");
            }
            let was = place.picture();
            place.sh(&format!("git -c core.editor=true pull -q {flags}"));
            place.ended();
            let listed = place.undo(&["--list", "--json"]).json();
            let commands: Vec<&str> =
                listed["operations"].as_array().unwrap().iter().filter_map(|one| one["command"].as_str()).collect();
            assert!(commands.len() == 1 && commands[0].contains(" pull "), "{git}: {commands:?}");
            let undone = place.undo(&["--yes"]);
            let now = place.picture();
            assert_eq!((&now.0, now.1 == was.1), (&was.0, true), "{git} {flags}: {undone:?}");
        }
    }
}

#[test]
fn a_lock_that_a_killed_undo_has_left_is_taken_away() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("echo dirty > f; git reset -q --hard HEAD~1");
    let lock = place.lab.work.join(".git/index.lock");
    // Of somebody else; of this process; of one with the same number that began at another time.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let owner = json!({"pid": std::process::id(), "started": 1, "boot": boot.trim(), "space": space});
    let other = format!("piton git-undo {owner}");
    for (text, code) in [("DIRC", 1), ("piton git-undo", 1), (other.as_str(), 0)] {
        std::fs::write(&lock, text).unwrap();
        let undone = place.undo(&["g-1", "--yes"]);
        assert_eq!(undone.code, code, "{text}: {undone:?}");
    }
    assert!(!lock.exists());
    // Also where nothing is left to do.
    std::fs::write(&lock, &other).unwrap();
    assert_eq!(place.undo(&["g-1", "--yes"]).code, 3);
    assert!(!lock.exists());
}

#[test]
fn a_file_that_is_written_right_behind_a_command_stays() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("echo dirty > f; git reset -q --hard HEAD~1; echo new > n; git add n; git commit -qm n");
    let undone = place.undo(&["--yes"]);
    assert_eq!((place.lab.read("f").as_str(), place.lab.read("n").as_str()), ("dirty\n", "new\n"), "{undone:?}");
}

#[test]
fn a_command_is_known_though_its_checkpoint_was_late() {
    let Some(place) = Place::new(GITS[0]) else { return };
    // Nothing can be captured in no time.
    place.lab.set_only("deadline_ms: 1\n");
    place.sh("git branch -q -D x; git reset -q --hard HEAD~1");
    place.ended();
    let (branch, reset) = (place.undo(&["g-1", "--yes"]), place.undo(&["g-2", "--yes"]));
    assert!(
        branch.stdout.contains("branch `x` is restored") && reset.stdout.contains("branch `main` moves back"),
        "{branch:?} {reset:?}"
    );
}

#[test]
fn a_directory_whose_name_is_no_text_is_guarded() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("d=$(printf 'd\\377ir'); mkdir \"$d\"; echo a > \"$d/f\"; git add .; git commit -qm d; echo dirty > \"$d/f\"; cd \"$d\"; git checkout -q -- f");
    assert_eq!(place.undo(&["--yes"]).code, 0);
    assert_eq!(place.run("cat d*/f").stdout, "dirty\n");
}

#[test]
fn a_harmless_command_is_no_checkpoint_and_its_answer_is_right() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("echo dirty > f; git status -s > ../status; git diff --stat; git add f; git commit -qm three; git fetch -q . ; git log -1");
    assert_eq!(std::fs::read_to_string(place.lab.root().join("status")).unwrap(), " M f\n");
    assert!(!place.lab.home.join("piton/store.git").exists(), "nobody was asked to keep anything");
    // Without piton, git works as before, and says nothing.
    place.lab.sh("rm -rf ../home/piton");
    let said = place.run("git status -s; git reset -q --hard HEAD");
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
}

#[test]
fn a_policy_that_denies_stops_git_before_anything_is_lost() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.lab.set("policy:\n  vcs-discard: deny\n  vcs-history: deny\n");
    place.sh("echo dirty > f");
    let was = place.picture();
    for command in
        ["git reset --hard", "git checkout -f x", "git clean -fdx", "git branch -D x", "git commit --amend -am x"]
    {
        let refused = place.run(command);
        assert!(refused.code != 0 && refused.stderr.contains("piton: git was stopped"), "{command}: {refused:?}");
        assert!(place.picture() == was, "{command}");
        assert!(!place.lab.work.join(".git/index.lock").exists(), "{command} left a lock");
    }
    place.sh("git commit -qam three");
}

#[test]
fn commands_of_an_agent_belong_to_its_run() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let mut sidecar = Sidecar::start(&place.lab, &[]);
    sidecar.ask(json!({"type": "hello", "client": "harness", "session": "s-1", "pid": std::process::id()}));
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    sidecar.ask(json!({"type": "shell.before", "action": "a", "command": "./deploy.sh"}));
    place.sh("echo kept > sub/g; git commit -qam kept; echo dirty > f; git reset -q --hard HEAD~1");
    sidecar.ask(json!({"type": "shell.after", "action": "a", "exit": 0}));
    sidecar.ask(json!({"type": "turn.end", "turn": "t"}));
    assert_eq!(sidecar.finish(), 0);
    let listed = place.undo(&["--list", "--json"]).json();
    assert_eq!(listed["operations"][0]["run"], json!("s-1"), "{listed}");
    assert_eq!(listed["operations"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(place.undo(&["--yes"]).code, 0);
    assert_eq!((place.lab.read("f"), place.lab.read("sub/g")), ("dirty\n".to_owned(), "kept\n".to_owned()));
}

#[test]
fn a_git_in_a_script_is_known_where_only_the_agent_tells_of_its_commands() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let out = place.lab.piton(&["uninstall", "git"]);
    assert_eq!(out.code, 0, "{out:?}");
    place.lab.write("reset.sh", "git reset -q --hard HEAD~1; git branch -q -D x");
    place.lab.write("idle.sh", "touch sub/g; git status -s; git fetch -q ../other; echo built > out.o");
    place.unseen("git clone -q . ../other; sh ./idle.sh; rm out.o; echo dirty > f");
    let was = place.picture().0;
    let mut sidecar = Sidecar::start(&place.lab, &[]);
    sidecar.ask(json!({"type": "hello", "client": "harness", "session": "s-1", "pid": std::process::id()}));
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    for script in ["idle.sh", "reset.sh", "idle.sh"] {
        sidecar.ask(json!({"type": "shell.before", "action": script, "command": format!("sh ./{script}")}));
        place.sh(&format!("sh ./{script}"));
        sidecar.ask(json!({"type": "shell.after", "action": script, "exit": 0}));
    }
    sidecar.ask(json!({"type": "turn.end", "turn": "t"}));
    assert_eq!(sidecar.finish(), 0);
    let listed = place.undo(&["--list", "--json"]).json();
    let commands: Vec<_> = listed["operations"].as_array().unwrap().iter().map(|one| &one["command"]).collect();
    assert_eq!(commands, ["sh ./reset.sh"]);
    std::fs::remove_file(place.lab.work.join("out.o")).unwrap();
    let undone = place.undo(&["--yes"]);
    assert_eq!((undone.code, place.picture().0, place.lab.read("f")), (0, was, "dirty\n".to_owned()), "{undone:?}");
}

#[test]
fn refs_that_are_a_table_go_back_too() {
    let git = GITS[0];
    let Some(place) = Place::new(git) else { return };
    if place.run("git init -q --ref-format=reftable ../t").code != 0 {
        return lacking("a git that keeps refs as a table");
    }
    let two = "for i in 1 2; do echo $i > f; git stash -q -m \"s $i\"; done";
    let picture = "git rev-parse HEAD; git symbolic-ref -q HEAD; git for-each-ref; git log -g --format='%H %gn %ge %gd %gs' --date=raw refs/stash --; \
        git ls-files -s; git -c core.fsmonitor=false status --porcelain=v2 --branch";
    for (before, command) in [
        ("echo dirty > f", "git reset -q --hard HEAD~1"),
        ("", "git branch -q -D x"),
        (two, "git stash clear"),
        (two, "git stash pop -q"),
        (
            "git checkout -q x; echo x > f; git commit -qam x; git checkout -q main; echo m > f; git commit -qam m; git cherry-pick x",
            "git cherry-pick --abort",
        ),
    ] {
        let Some(place) = Place::new(git) else { continue };
        place.unseen("rm -rf .git; git init -q --ref-format=reftable; git add .; git commit -qm one; echo three > f; git commit -qam three; git branch x");
        let installed = place.lab.piton(&["install", "git"]);
        assert_eq!(installed.code, 0, "{installed:?}");
        place.unseen(before);
        let was = place.run(picture).stdout;
        place.sh(command);
        let now = place.run(picture).stdout;
        assert!(was != now, "{command}");
        let undone = place.undo(&["--yes"]);
        assert_eq!((undone.code, place.run(picture).stdout), (0, was), "{command}: {undone:?}");
    }
}

#[test]
fn linked_worktrees_and_repositories_without_a_work_tree_of_their_own_work_too() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("git worktree add -q ../wt -b wt; git clone -q --bare . ../bare.git; cd ../bare.git; git worktree add -q ../of-bare x");
    let installed = place.lab.piton_in(&place.lab.root().join("of-bare"), &["install", "git"]);
    for (dir, is_installed) in [("wt", true), ("of-bare", installed.code == 0)] {
        assert!(is_installed, "{dir}: {installed:?}");
        let at = place.lab.root().join(dir);
        place.sh(&format!("cd ../{dir}; echo dirty > f; git reset -q --hard HEAD~1"));
        let undone = place.lab.piton_in(&at, &["git-undo", "--yes"]);
        assert_eq!(
            (undone.code, std::fs::read_to_string(at.join("f")).unwrap()),
            (0, "dirty\n".to_owned()),
            "{dir}: {undone:?}"
        );
        let log = place.run(&format!("cd ../{dir}; git log -1 --format=%s; git status -s"));
        assert_eq!(log.stdout, "two\n M f\n", "{dir}: {log:?}");
    }
}

#[test]
fn a_branch_that_another_work_tree_has_checked_out_stays() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("git checkout -q -B feat; git -c core.fsmonitor=false -c core.hooksPath=/dev/null switch -q main; git -c core.fsmonitor=false -c core.hooksPath=/dev/null worktree add -q ../feat feat");
    let undone = place.undo(&["g-1", "--yes"]);
    assert!(format!("{undone:?}").contains("another work tree has it checked out"), "{undone:?}");
    let log = place.run("cd ../feat; git log -1 --format=%s; git status -s");
    assert_eq!(log.stdout, "two\n", "{log:?} {undone:?}");
}

#[test]
fn the_end_of_a_command_is_known_soon_after_it() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("echo dirty > f; git reset -q --hard HEAD~1");
    place.ended();
    assert!(!place.undo(&["--list", "--json"]).json()["operations"][0]["ended"].is_null());
}

#[test]
fn a_stash_that_cannot_go_back_keeps_nothing_else_from_it_and_the_next_try_does_the_rest() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.unseen("echo staged > f; git add f; echo dirty > sub/g");
    let was = place.picture();
    place.sh("git stash -q");
    place.ended();
    let lock = place.lab.work.join(".git/refs/stash.lock");
    std::fs::write(&lock, "").unwrap();
    let failed = place.undo(&["--yes"]);
    assert_eq!(failed.code, 5, "{failed:?}");
    let told = "restored: the index, files; not restored: the stash";
    assert!(failed.stderr.contains(told) && failed.stderr.contains("`piton undo g-1`"), "{failed:?}");
    assert_eq!(place.run("git status -s").stdout, "M  f\n M sub/g\n", "{failed:?}");
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(place.undo(&["--list", "--json"]).json()["operations"][1]["undone"], Value::Null);
    let undone = place.undo(&["--yes"]);
    let back = place.picture();
    assert_eq!((undone.code, &back.0, back.1 == was.1), (0, &was.0, true), "{undone:?}");
}

#[test]
fn a_head_that_has_moved_meanwhile_is_not_moved_again() {
    for git in GITS {
        let Some(place) = Place::new(git) else { continue };
        place.sh("echo dirty > f; git checkout -q -f x");
        place.ended();
        let lock = place.lab.work.join(".git/HEAD.lock");
        std::fs::write(&lock, "").unwrap();
        let now = place.picture();
        let failed = place.undo(&["g-1", "--yes"]);
        assert!(failed.code != 0 && lock.exists(), "{git}: {failed:?}");
        assert_eq!(place.picture().0, now.0, "{git}: {failed:?}");
        std::fs::remove_file(&lock).unwrap();
        assert_eq!(place.undo(&["g-1", "--yes"]).code, 0, "{git}");
        assert_eq!(
            place.run("git symbolic-ref HEAD; git reflog -1 --format=%gs").stdout,
            "refs/heads/main\npiton git-undo g-1\n"
        );
    }
}

#[test]
fn an_undo_of_the_files_alone_says_so() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("echo dirty > f; git reset -q --hard HEAD~1");
    assert_eq!(place.undo(&["--yes"]).code, 0);
    let told = "this undoes only the file changes of `piton git-undo g-1`";
    let preview = place.lab.piton(&["undo", "--preview"]);
    assert!(
        preview.stdout.contains(told) && preview.stdout.contains("To undo all of it, run `piton undo g-2`"),
        "{preview:?}"
    );
    let json = place.lab.piton(&["undo", "--preview", "--json"]);
    assert!(json.stdout.contains(told), "{json:?}");
    assert_eq!(place.undo(&["g-2", "--yes"]).code, 0);
    assert_eq!((place.lab.read("f").as_str(), place.run("git status -s").stdout.as_str()), ("one\n", ""));
    let preview = place.lab.piton(&["undo", "--preview"]);
    assert!(!preview.stdout.contains("`piton git-undo g-1`"), "{preview:?}");
}

#[test]
fn files_that_no_checkpoint_holds_are_named() {
    let git = GITS[0];
    for (command, named) in [
        ("git clean -fdxq", &["x.skip", "dir"][..]),
        ("git reset -q --hard", &["t.skip", "large"]),
        ("git checkout -q -f x", &["t.skip", "large"]),
    ] {
        let Some(place) = Place::new(git) else { return };
        place.lab.set("exclude: ['*.skip', dir/]\nlimits: {file_mb: 1}\n");
        place.unseen("echo 1 > t.skip; echo 1 > large; git add -f t.skip large; git commit -qm skip; git branch -f x");
        place.unseen("echo 2 > x.skip; mkdir dir; echo 2 > dir/a; echo 2 > t.skip; head -c 2000000 /dev/zero > big; cp big large; echo dirty > f");
        place.sh(command);
        place.ended();
        let undone = place.undo(&["--yes"]);
        assert_eq!(undone.code, 4, "{command}: {undone:?}");
        // A path that a command names is held though it is over the limit. One that is not saved does not go.
        let length = |name: &str| place.lab.work.join(name).metadata().unwrap().len();
        let large = if named.contains(&"large") { 2 } else { 2_000_000 };
        assert_eq!((length("big"), length("large")), (2_000_000, large), "{command}: {undone:?}");
        for name in ["x.skip", "big", "dir", "t.skip", "large"] {
            let line = format!("not restored: `{name}`: no checkpoint contains it");
            assert_eq!(undone.stdout.contains(&line), named.contains(&name), "{command}: {name}: {undone:?}");
        }
    }
    // Nothing is said of those that the command has left alone.
    let Some(place) = Place::new(git) else { return };
    place.lab.set("exclude: ['*.skip']\n");
    place.sh("echo 2 > x.skip; echo dirty > f; git reset -q --hard HEAD~1");
    assert_eq!(place.undo(&["--yes"]).code, 0);
}

#[test]
fn a_nested_repository_that_is_gone_is_named_with_the_way_back() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.unseen("mkdir n; cd n; git init -q; echo a > a; git add a; git commit -qm nested");
    place.sh("git clean -q -ffdx");
    assert!(!place.lab.work.join("n").exists());
    place.ended();
    let undone = place.undo(&["--yes"]);
    assert_eq!((undone.code, place.lab.read("n/a").as_str()), (4, "a\n"), "{undone:?}");
    assert!(
        undone.stdout.contains("not restored: the repository `n/.git`: to restore it, run `piton restore "),
        "{undone:?}"
    );
    let command = undone.stdout.split("`piton restore ").nth(1).unwrap().split('`').next().unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    let back = place.lab.piton(&["restore", words[0], words[1], "--yes"]);
    assert_eq!(
        (back.code, place.run("cd n; git log --format=%s; git status -s").stdout.as_str()),
        (0, "nested\n"),
        "{back:?}"
    );
}

#[test]
fn where_there_is_nothing_to_take_back_there_is_a_document_all_the_same() {
    let Some(place) = Place::new(GITS[0]) else { return };
    for args in [&["--json"][..], &["--json", "--preview"], &["--json", "--yes"]] {
        let nothing = place.undo(args);
        assert_eq!((nothing.code, &nothing.json()["operation"]), (3, &Value::Null), "{nothing:?}");
        assert!(nothing.json()["message"].as_str().unwrap().contains("Nothing to undo"), "{nothing:?}");
    }
    // One of which all has changed since.
    place.sh("git branch -f x HEAD~1");
    place.ended();
    place.unseen("git branch -f x HEAD; git commit -q --allow-empty -m later; git branch -f x HEAD");
    let stays = place.undo(&["g-1", "--json", "--yes"]);
    assert_eq!((stays.code, &stays.json()["operation"]["op"]), (4, &json!("g-1")), "{stays:?}");
    assert_eq!(place.undo(&["g-1", "--preview"]).code, 4);
}

#[test]
fn operations_of_a_repository_that_is_gone_are_not_offered() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("echo dirty > f; git reset -q --hard HEAD~1");
    place.ended();
    // A copy is the same repository, by its commits.
    place.sh("cp -a .git ../copy; rm -rf .git; mv ../copy .git");
    assert_eq!(place.undo(&["--list", "--json"]).json()["operations"][0]["op"], json!("g-1"));
    assert_eq!(place.undo(&["--preview"]).code, 0);
    place.sh("rm -rf .git; git init -q; git add .; git commit -qm new");
    assert_eq!(place.undo(&["--list", "--json"]).json()["operations"], json!([]));
    assert_eq!(place.undo(&["--yes"]).code, 3);
    let refused = place.undo(&["g-1", "--yes"]);
    assert!(refused.code == 5 && refused.stderr.contains("another repository, which is no longer here"), "{refused:?}");
}
