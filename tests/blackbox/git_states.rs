//! The state of the repository beside each checkpoint, and the way back to it.

use std::path::Path;

use serde_json::Value;

use crate::git_door::{GITS, Place};
use crate::support::tree;

/// The parts that go back with `piton undo --git --to`, as a person would compare them.
const STATE: &str = "git rev-parse HEAD; git symbolic-ref -q HEAD; git for-each-ref; git stash list --format=%H; git ls-files -s; \
    cd .git; ls -d *_HEAD rebase-* sequencer 2>/dev/null | grep -v -e ORIG -e AUTO";

/// Returns the states that the checkpoints of the only workspace have, in their order.
fn states(place: &Place) -> Vec<u64> {
    let dirs = std::fs::read_dir(place.lab.home.join("piton/workspaces")).unwrap();
    let dirs = dirs.map(|entry| entry.unwrap().path()).filter(|dir| dir.join("git-states").exists());
    let text: String = dirs.map(|dir| std::fs::read_to_string(dir.join("git-states")).unwrap()).collect();
    let lines =
        text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str::<Value>(&line[9..]).unwrap());
    lines.map(|line| line["state"].as_u64().unwrap()).collect()
}

/// Takes a checkpoint, and returns its number.
fn checkpoint(place: &Place) -> String {
    let taken = place.lab.piton(&["checkpoint", "one", "--json"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    taken.json()["checkpoint"]["n"].to_string()
}

#[test]
fn a_repository_goes_back_to_a_checkpoint_over_whatever_was_done_unseen() {
    let diverged =
        "echo a > f; git commit -qam a; git checkout -q x; echo b > f; git commit -qam b; git checkout -q main";
    let stashed = "echo s > f; git stash -q; echo t > f; git stash -q";
    for git in GITS {
        for (before, command) in [
            ("echo s > f; git add f; echo more > f", "git reset -q --hard HEAD~1"),
            ("echo s > f; git add f", "git reset -q"),
            ("", "git branch -q -D x"),
            ("git branch -f x HEAD~1; git pack-refs --all", "git branch -q -C main x; git pack-refs --all"),
            ("git tag v1", "git tag -d v1"),
            ("", "echo o > f; git commit -q --amend -am other"),
            ("echo n > n; git add n", "git rm -q -f --cached n"),
            (stashed, "git stash drop -q 'stash@{1}'"),
            (stashed, "git stash clear"),
            (diverged, "git rebase -q x || git rebase --skip"),
            (&format!("{diverged}; git merge -q x || :"), "git merge --abort"),
            (diverged, "git merge -q x || :"),
            ("", "git checkout -q --detach HEAD~1"),
            ("git checkout -q --detach", "git checkout -q main"),
            ("echo n > n", "git add -N n; git update-index --assume-unchanged f"),
        ] {
            let Some(place) = Place::new(git) else { continue };
            place.unseen(before);
            let was = place.run(STATE).stdout;
            let number = checkpoint(&place);
            place.unseen(command);
            let now = place.run(STATE).stdout;
            assert_ne!(now, was, "{git}: {command} did nothing");
            let files = tree(&place.lab.work);
            let preview = place.undo(&["--to", &number, "--preview"]);
            assert_eq!(preview.code, 0, "{git}: {command}: {preview:?}");
            assert_eq!(place.run(STATE).stdout, now, "{git}: {command}: a preview changes nothing");
            let undone = place.undo(&["--to", &number, "--yes"]);
            assert_eq!((undone.code, place.run(STATE).stdout), (0, was), "{git}: {command}: {undone:?}");
            assert!(tree(&place.lab.work) == files, "{git}: {command}: files stay");
            // It is a step like others: it can be taken back in turn.
            let again = place.undo(&["--yes"]);
            assert_eq!((again.code, place.run(STATE).stdout), (0, now), "{git}: {command}: {again:?}");
        }
    }
}

#[test]
fn what_was_made_since_a_checkpoint_stays_and_is_listed() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.unseen("echo s > f; git stash -q");
    let number = checkpoint(&place);
    place.unseen("git branch new; git tag v2; echo t > f; git stash -q; git branch -D x");
    let stashes = place.run("git stash list --format=%H").stdout;
    let undone = place.undo(&["--to", &number, "--yes", "--json"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    let told = undone.json();
    let younger: Vec<&str> =
        told["younger"].as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(told["kept"], Value::Array(Vec::new()));
    assert_eq!(younger, ["branch `new`", "tag `v2`", "the stash"], "{told}");
    assert_eq!((&told["operation"], told["checkpoint"].to_string()), (&Value::Null, number), "{told}");
    assert_eq!(place.run("git stash list --format=%H").stdout, stashes);
    assert_eq!(
        place.run("git for-each-ref --format='%(refname:short)' refs/heads refs/tags").stdout,
        "main\nnew\nx\nv2\n"
    );
    // One is gone, and another one is new: no side is taken.
    place.unseen("git stash drop -q 'stash@{1}'");
    let undone = place.undo(&["--to", "1", "--yes"]);
    assert!(undone.code == 4 && undone.stdout.contains("not restored: the stash: changed since"), "{undone:?}");
}

#[test]
fn a_checkpoint_shows_its_repository_and_shares_a_state_that_has_not_moved() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let mut expected = Vec::new();
    for (script, state, branch) in [
        ("echo 1 > n", 1, "branch `main` at "),
        ("echo 2 > n", 1, "branch `main` at "),
        // git notes other times of the same files.
        ("touch f; git status -s; echo 3 > n", 1, "branch `main` at "),
        ("git add n; echo 4 > n", 2, "branch `main` at "),
        ("echo s > f; git stash -q; echo 5 > n", 3, "branch `main` at "),
        ("git checkout -q --detach; echo 6 > n", 4, "no branch, at "),
        (
            "git merge -q --no-ff --no-commit x; git checkout -q --orphan none; echo 7 > n",
            5,
            "branch `none` without a commit",
        ),
    ] {
        place.unseen(script);
        let number = checkpoint(&place);
        let shown = place.lab.piton(&["show", &number]).stdout;
        let line = shown.lines().find_map(|line| line.strip_prefix("git ")).unwrap_or_default().trim();
        assert!(line.starts_with(branch), "{script}: {shown}");
        assert!(line.ends_with(&format!("`piton undo --git --to {number}` restores it")), "{script}: {shown}");
        assert_eq!(line.contains("1 stash"), state > 2, "{script}: {line}");
        expected.push(state);
    }
    assert_eq!(states(&place), expected);
    let told = place.lab.piton(&["show", "6", "--json"]).json();
    assert_eq!(
        (&told["repository"]["branch"], &told["repository"]["stashes"]),
        (&Value::Null, &Value::from(1)),
        "{told}"
    );
}

#[test]
fn a_state_that_is_not_known_is_never_that_of_another_checkpoint() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let refused = |number: &str, code: &str, word: &str| {
        let done = place.undo(&["--to", number, "--yes", "--json"]);
        assert_eq!(done.json()["error"]["code"], code, "{done:?}");
        assert!(done.stdout.contains(word), "{done:?}");
        let branches = place.run("git for-each-ref").stdout;
        assert!(!branches.contains("refs/heads/x"), "nothing has moved: {branches}");
    };
    let first = checkpoint(&place);
    let dir = std::fs::read_dir(place.lab.home.join("piton/workspaces")).unwrap().next().unwrap().unwrap().path();
    // A process that was killed before it wrote the line, and one that has torn it.
    std::fs::write(dir.join("git-states"), b"\n01234567 {\"checkpoint\":1,\"sta").unwrap();
    place.unseen("git branch -q -D x");
    let second = checkpoint(&place);
    refused(&first, "pruned", "is unknown");
    assert!(!place.lab.piton(&["show", &first]).stdout.contains("piton undo --git"));
    assert!(place.lab.piton(&["show", &second]).stdout.contains(&format!("`piton undo --git --to {second}`")));
    // Another repository at the same place.
    place.run("rm -rf .git; git init -q; git commit -q --allow-empty -m other");
    refused(&second, "conflict", "another one is in its place");
    place.run("rm -rf .git");
    let done = place.undo(&["--to", &second, "--yes"]);
    assert!(done.code != 0 && done.stderr.contains("the repository no longer exists"), "{done:?}");
    // Without a repository there is none to know.
    std::fs::write(place.lab.work.join("n"), "later").unwrap();
    let third = checkpoint(&place);
    assert!(!place.lab.piton(&["show", &third]).stdout.contains("piton undo --git"));
}

#[test]
fn a_branch_without_a_commit_goes_back_to_none() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("git checkout -q --orphan fresh; git rm -rfq .; echo a > a");
    let number = checkpoint(&place);
    let was = place.run(STATE).stdout;
    place.unseen("git add a; git commit -qm a");
    let undone = place.undo(&["--to", &number, "--yes"]);
    assert_eq!((undone.code, place.run(STATE).stdout), (0, was), "{undone:?}");
    assert_eq!(place.run("git status --porcelain").stdout, "?? a\n");
}

#[test]
fn head_and_index_stay_where_their_branch_cannot_go_back() {
    for (before, command, why) in [
        // Another work tree works on it by now.
        (
            "git checkout -q x",
            "git checkout -q main; git worktree add -q ../other x; cd ../other; git commit -q --allow-empty -m o",
            "another work tree",
        ),
        (
            "git checkout -q -b y; echo y > f; git commit -qam y",
            "git checkout -q main; git branch -D y; git reflog expire --expire=now --all; git gc -q --prune=now",
            "no longer in the repository",
        ),
        ("git checkout -q -b d", "git checkout -q main; git branch -m d d/e", "is in its way"),
    ] {
        let Some(place) = Place::new(GITS[0]) else { return };
        place.unseen(before);
        let number = checkpoint(&place);
        place.unseen(command);
        let head = "git symbolic-ref HEAD; git ls-files -s";
        let was = place.run(head).stdout;
        let undone = place.undo(&["--to", &number, "--yes"]);
        assert!(matches!(undone.code, 3 | 4) && undone.stdout.contains(why), "{command}: {undone:?}");
        assert_eq!(place.run(head).stdout, was, "{command}: {undone:?}");
        assert!(undone.stdout.contains("not restored: `HEAD`"), "{command}: {undone:?}");
    }
    // The branch of the present stays too: otherwise its commits would look staged.
    for (before, command) in [
        (
            "git checkout -q -b feature",
            "git checkout -q main; echo 4 > f; git commit -qam 4; git worktree add -q ../w feature",
        ),
        (
            "echo s > s; git add s",
            "git rm -q --cached s; rm s; git checkout -q x; echo 4 > f; git commit -qam 4; git gc -q --prune=now",
        ),
    ] {
        let Some(place) = Place::new(GITS[0]) else { return };
        place.unseen(before);
        let number = checkpoint(&place);
        place.unseen(command);
        let was = place.run(STATE).stdout;
        let undone = place.undo(&["--to", &number, "--yes"]);
        assert_eq!((undone.code, place.run(STATE).stdout), (4, was), "{command}: {undone:?}");
    }
}

#[test]
fn a_checkpoint_by_hand_is_taken_where_only_the_repository_has_moved() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let by_hand = || place.lab.piton(&["checkpoint"]).stdout;
    place.sh("echo a > a");
    by_hand();
    assert!(by_hand().contains("Nothing changed"), "nothing has moved");
    place.unseen("git add a; git commit -qm a; git branch kept");
    let second = by_hand();
    assert!(!second.contains("Nothing changed"), "{second}");
    assert!(by_hand().contains("Nothing changed"), "nothing has moved since");
    place.unseen("git branch -q -D kept; git reset -q --soft HEAD~1");
    let undone = place.undo(&["--to", "2", "--yes"]);
    assert_eq!((undone.code, place.run("git log -1 --format=%s kept").stdout.as_str()), (0, "a\n"), "{undone:?}");
}

#[test]
fn a_checkpoint_of_a_project_inside_of_a_repository_has_that_repository() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let web = place.lab.work.join("web");
    place.sh("mkdir web; echo '{}' > web/package.json; git add .; git commit -qm web");
    let first = checkpoint(&place);
    place.unseen("git branch -f x");
    let taken = place.lab.piton_in(&web, &["checkpoint", "own", "--json"]);
    let own = taken.json()["checkpoint"]["n"].to_string();
    assert_eq!((first.as_str(), own.as_str()), ("1", "1"), "each workspace has its own numbers: {taken:?}");
    let was = place.run(STATE).stdout;
    place.unseen("echo o > f; git commit -qam other; git branch -q -D x");
    let undone = place.lab.piton_in(&web, &["git-undo", "--to", &own, "--yes"]);
    assert_eq!((undone.code, place.run(STATE).stdout), (0, was), "{undone:?}");
    let again = place.lab.piton_in(&web, &["git-undo", "--yes"]);
    assert!(again.code == 0 && place.run("git log -1 --format=%s").stdout == "other\n", "{again:?}");
}

#[test]
fn a_moved_and_a_copied_repository_go_back_at_their_own_place() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let number = checkpoint(&place);
    let (moved, work) = (place.lab.root().join("moved"), place.lab.work.clone());
    std::fs::rename(&work, &moved).unwrap();
    let git = |dir: &Path, script: &str| {
        let output = place.lab.command("/bin/sh", dir).args(["-c", script]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    git(&moved, "git -c core.fsmonitor=false -c core.hooksPath=/dev/null branch -D x");
    let undone = place.lab.piton_in(&moved, &["git-undo", "--to", &number, "--yes"]);
    assert!(undone.code == 0 && git(&moved, "git branch").contains(" x\n"), "{undone:?}");
    // A copy that takes the history over.
    let copy = place.lab.root().join("copy");
    git(&moved, &format!("cp -a . {}", copy.display()));
    let adopted = place.lab.piton_in(&copy, &["adopt", moved.to_str().unwrap(), copy.to_str().unwrap(), "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    for dir in [&moved, &copy] {
        git(dir, "git -c core.fsmonitor=false -c core.hooksPath=/dev/null branch -D x");
    }
    let undone = place.lab.piton_in(&copy, &["git-undo", "--to", &number, "--yes"]);
    assert!(undone.code == 0 && git(&copy, "git branch").contains(" x\n"), "{undone:?}");
    assert!(!git(&moved, "git branch").contains(" x\n"), "the other one is not touched");
}

#[test]
fn other_forms_of_a_repository_go_back_too() {
    let reftable = "rm -rf .git; git init -q --ref-format=reftable; git add .; git commit -qm one; git branch x; echo s > f; git stash -q";
    let sha256 = "rm -rf .git; git init -q --object-format=sha256; git add .; git commit -qm one; git branch x";
    for (before, command) in [
        (
            reftable,
            "git branch -q -D x; git stash clear; git checkout -q -b new; git branch -q -D main; git checkout -q --detach",
        ),
        (sha256, "git branch -q -D x; git commit -q --amend -m two"),
        ("git update-index --split-index", "echo n > n; git add n; git branch -q -D x"),
        ("git update-index --index-version 4", "git rm -q --cached f"),
        (
            "git commit -q --allow-empty -m 3; git commit -q --allow-empty -m 4; git bisect start HEAD HEAD~3 >/dev/null",
            "git bisect reset 2>/dev/null",
        ),
        (
            "git commit -q --allow-empty -m 3; git bisect start --no-checkout --first-parent HEAD HEAD~2 >/dev/null",
            "git bisect reset 2>/dev/null",
        ),
        (
            "git commit -q --allow-empty -m 3; git commit -q --allow-empty -m 4",
            "git bisect start HEAD HEAD~3 >/dev/null",
        ),
        ("git worktree add -q ../other -b y", "git worktree remove ../other; git branch -q -D y"),
        ("git remote add o .; git fetch -q o", "git remote remove o"),
        ("", "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13; do git tag t$n; done; git branch -q -D x"),
    ] {
        let Some(place) = Place::new(GITS[0]) else { return };
        place.unseen(before);
        let number = checkpoint(&place);
        let refs = "git symbolic-ref -q HEAD; git rev-parse -q --verify HEAD; git for-each-ref refs/heads refs/remotes refs/bisect; git stash list; git ls-files -s; ls .git/BISECT*";
        let was = place.run(refs).stdout;
        place.unseen(command);
        assert_ne!(place.run(refs).stdout, was, "{command} did nothing");
        let undone = place.undo(&["--to", &number, "--yes"]);
        let now = place.run(refs).stdout;
        let now: Vec<&str> = now.lines().filter(|line| !line.ends_with("refs/heads/new")).collect();
        assert_eq!((undone.code, now.join("\n") + "\n"), (0, was), "{command}: {undone:?}");
        if command.starts_with("for") {
            assert!(undone.stdout.contains("not restored: 3 more refs: made since"), "{undone:?}");
        }
    }
}

#[test]
fn a_forget_takes_the_states_along() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.sh("echo hidden > secret");
    let number = checkpoint(&place);
    let forgotten = place.lab.piton(&["forget", "secret", "--yes"]);
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    assert!(states(&place).is_empty());
    assert!(!place.lab.piton(&["show", &number]).stdout.contains("piton undo --git"));
    place.sh("echo more > more");
    let next = checkpoint(&place);
    assert!(place.lab.piton(&["show", &next]).stdout.contains("piton undo --git"));
}

/// Returns the ids of the commits that the checkpoints `1..=count` have noted for HEAD.
fn commits(place: &Place, count: usize) -> Vec<Value> {
    let shown = |n: usize| place.lab.piton(&["show", &n.to_string(), "--json"]).json()["repository"]["commit"].clone();
    (1..=count).map(shown).collect()
}

#[test]
fn a_repository_whose_parts_are_links_gets_no_old_state() {
    for links in [
        "mv .git/refs ../r; ln -s ../../r .git/refs",
        "git pack-refs --all; mv .git/packed-refs ../p; ln -s ../../p .git/packed-refs",
        "rm .git/HEAD; ln -s refs/heads/main .git/HEAD",
    ] {
        let Some(place) = Place::new(GITS[0]) else { return };
        place.unseen(links);
        checkpoint(&place);
        place.unseen(
            "echo n > n; git update-ref refs/heads/main $(git commit-tree -m z 'HEAD^{tree}'); git pack-refs --all",
        );
        checkpoint(&place);
        let known = commits(&place, 2);
        let head = place.run("git rev-parse HEAD").stdout.trim().to_owned();
        assert!(known[0].is_string() && known[0] != known[1], "{links}: {known:?}");
        assert_eq!(known[1], head, "{links}");
    }
}

#[test]
fn a_hostile_repository_costs_a_checkpoint_nothing_but_its_state() {
    for hostile in [
        "rm .git/logs/HEAD; mkfifo .git/logs/HEAD",
        "rm .git/HEAD; mkfifo .git/HEAD",
        "rm .git/index; mkfifo .git/index",
        "mv .git/refs .git/x; ln -s / .git/refs",
        "rm -rf .git; git init -q --ref-format=reftable; mkfifo pipe; git config include.path ../pipe",
    ] {
        let Some(place) = Place::new(GITS[0]) else { return };
        place.unseen(&format!("echo n > n; {hostile}"));
        for label in ["one", "two", "three"] {
            let program = env!("CARGO_BIN_EXE_piton");
            let mut command = place.lab.command("timeout", &place.lab.work);
            let taken = command.args(["40", program, "checkpoint", label]).output().unwrap();
            assert_eq!(taken.status.code(), Some(0), "{hostile}: {taken:?}");
        }
    }
}

#[test]
fn an_operation_in_progress_goes_back_only_as_a_whole() {
    let merge = "git checkout -q -b o; echo o > f; git commit -qam o; git checkout -q main; echo m > f; git commit -qam m; git merge -q o";
    let Some(place) = Place::new(GITS[0]) else { return };
    // Content that only the index had is gone.
    place.unseen(&format!("{merge}; echo unique > f; git add f"));
    let number = checkpoint(&place);
    place.unseen("git merge --abort; git gc -q --prune=now");
    let was = place.run(STATE).stdout;
    let undone = place.undo(&["--to", &number, "--yes"]);
    assert!(undone.stdout.contains("not restored: a merge, rebase or similar operation in progress"), "{undone:?}");
    assert_eq!(place.run(STATE).stdout, was, "{undone:?}");
    // Work that a rebase has put aside is told of, and is kept beyond git's own memory.
    let Some(place) = Place::new(GITS[0]) else { return };
    place.unseen("echo m > f; git commit -qam m");
    let number = checkpoint(&place);
    place.unseen("git checkout -q -b t HEAD~1; echo q > f; git commit -qam q; echo precious > sub/g; git rebase -q --autostash main");
    let id = place.run("cat .git/rebase-merge/autostash").stdout.trim().to_owned();
    let undone = place.undo(&["--to", &number, "--yes"]);
    let told = format!(
        "not restored: work that the rebase has stashed: no file refers to it afterwards; to make a stash of it, run `git stash store {id}`"
    );
    assert!(undone.code == 4 && undone.stdout.contains(&told), "{undone:?}");
    place.unseen("git reflog expire --expire=now --all; git gc -q --prune=now");
    assert_eq!(place.undo(&["--yes"]).code, 0);
    assert_eq!(place.run(&format!("git show {id}:sub/g")).stdout, "precious\n");
}

#[test]
fn a_branch_that_another_work_tree_rebases_stays() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.unseen(
        "git checkout -q -b feat; echo a > f; git commit -qam a; git checkout -q main; echo m > f; git commit -qam m",
    );
    let number = checkpoint(&place);
    place.unseen(
        "git worktree add -q ../wt feat; cd ../wt; echo b > n; git add n; git commit -qm b; git rebase -q main",
    );
    let was = place.run("git rev-parse feat").stdout;
    let undone = place.undo(&["--to", &number, "--yes"]);
    assert!(undone.stdout.contains("not restored: branch `feat`: another work tree"), "{undone:?}");
    assert_eq!(place.run("git rev-parse feat").stdout, was);
}

#[test]
fn a_stash_that_is_partly_gone_goes_back_without_a_hole() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.unseen("for n in 1 2 3; do echo $n > f; git stash -q; done");
    let number = checkpoint(&place);
    place.unseen("git stash drop -q 'stash@{1}'; git gc -q --prune=now; git stash drop -q");
    let undone = place.undo(&["--to", &number, "--yes"]);
    assert!(undone.code == 4 && undone.stdout.contains("a part of the stash"), "{undone:?}");
    let again = place.undo(&["--to", &number, "--yes"]);
    assert!(again.code == 4 && !again.stdout.contains("the stash list is restored"), "{again:?}");
    let stashes = "git stash list --format=%gd; git show 'stash@{0}:f' 'stash@{1}:f'; git fsck 2>&1 | grep reflog";
    assert_eq!(place.run(stashes).stdout, "stash@{0}\nstash@{1}\n3\n1\n");
}

#[test]
fn a_state_goes_with_its_checkpoint_and_a_damaged_one_stops_no_later_one() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let store = place.lab.home.join("piton/local.git");
    let git = format!("git --git-dir {}", store.display());
    place.unseen("git branch private-name");
    checkpoint(&place);
    place.unseen("git branch -D private-name; echo n > n");
    checkpoint(&place);
    assert_eq!(place.lab.piton(&["delete", "1", "--yes"]).code, 0);
    let refs = place.run(&format!("{git} for-each-ref --format='%(refname)'")).stdout;
    assert!(!refs.contains("/git/at-1\n") && refs.contains("/git/at-2\n"), "{refs}");
    // The newest state is damaged.
    place.run(&format!(
        "o=$({git} rev-parse $({git} for-each-ref --format='%(refname)' | grep at-2)); d={}/objects; \
         f=$d/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); chmod u+w $f; truncate -s 10 $f",
        store.display()
    ));
    place.unseen("git branch more; echo m > m");
    let third = checkpoint(&place);
    let shown = place.lab.piton(&["show", &third]).stdout;
    assert!(shown.contains("`piton undo --git --to 3`"), "{shown}");
}

#[test]
fn another_repository_without_a_log_is_not_taken_for_the_same() {
    let Some(place) = Place::new(GITS[0]) else { return };
    place.run("rm -rf .git; git init -q; echo n > n");
    let number = checkpoint(&place);
    place.run("rm -rf .git; git init -q; git config core.logAllRefUpdates false; git add .; git commit -qm other");
    let was = place.run(STATE).stdout;
    let done = place.undo(&["--to", &number, "--yes"]);
    assert!(done.code != 0 && done.stderr.contains("another one is in its place"), "{done:?}");
    assert_eq!(place.run(STATE).stdout, was);
}
