//! The state of the repository beside each checkpoint, and the way back to it.

use serde_json::Value;

use crate::git_door::{GITS, Place};
use crate::support::tree;

/// The parts that go back with `piton git-undo --to`, as a person would compare them.
const STATE: &str = "git rev-parse HEAD; git symbolic-ref -q HEAD; git for-each-ref; git stash list --format=%H; git ls-files -s; \
    cd .git; ls -d *_HEAD rebase-* sequencer 2>/dev/null | grep -v -e ORIG -e AUTO";

/// Returns the lines of `git-states` in the only workspace.
fn lines(place: &Place) -> Vec<Value> {
    let workspaces = std::fs::read_dir(place.lab.home.join("piton/workspaces")).unwrap();
    let dirs = workspaces.map(|entry| entry.unwrap().path()).filter(|dir| dir.join("git-states").exists());
    let text: Vec<String> = dirs.map(|dir| std::fs::read_to_string(dir.join("git-states")).unwrap()).collect();
    let lines = text.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
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
    let kept: Vec<&str> = told["kept"].as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(kept, ["branch `new`", "tag `v2`", "the stash"], "{told}");
    assert_eq!((&told["operation"], told["checkpoint"].to_string()), (&Value::Null, number), "{told}");
    assert_eq!(place.run("git stash list --format=%H").stdout, stashes);
    assert_eq!(
        place.run("git for-each-ref --format='%(refname:short)' refs/heads refs/tags").stdout,
        "main\nnew\nx\nv2\n"
    );
    // One is gone, and another one is new: no side is taken.
    place.unseen("git stash drop -q 'stash@{1}'");
    let undone = place.undo(&["--to", "1", "--yes"]);
    assert!(undone.code == 4 && undone.stdout.contains("stays: the stash: changed since"), "{undone:?}");
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
        assert!(line.ends_with(&format!("`piton git-undo --to {number}` goes back to it")), "{script}: {shown}");
        assert_eq!(line.contains("1 stash"), state > 2, "{script}: {line}");
        expected.push(state);
    }
    let states: Vec<u64> = lines(&place).iter().map(|line| line["state"].as_u64().unwrap()).collect();
    assert_eq!(states, expected);
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
    std::fs::write(dir.join("git-states"), b"\n{\"checkpoint\":1,\"sta").unwrap();
    place.unseen("git branch -q -D x");
    let second = checkpoint(&place);
    refused(&first, "pruned", "not known");
    assert!(!place.lab.piton(&["show", &first]).stdout.contains("git-undo"));
    assert!(place.lab.piton(&["show", &second]).stdout.contains(&format!("`piton git-undo --to {second}`")));
    // Another repository at the same place.
    place.run("rm -rf .git; git init -q; git commit -q --allow-empty -m other");
    refused(&second, "conflict", "another one is at its place");
    place.run("rm -rf .git");
    let done = place.undo(&["--to", &second, "--yes"]);
    assert!(done.code != 0 && done.stderr.contains("the repository is gone"), "{done:?}");
    // Without a repository there is none to know.
    std::fs::write(place.lab.work.join("n"), "later").unwrap();
    let third = checkpoint(&place);
    assert!(!place.lab.piton(&["show", &third]).stdout.contains("git-undo"));
}

#[test]
fn the_newest_states_stay_and_those_of_pinned_checkpoints() {
    let Some(place) = Place::new(GITS[0]) else { return };
    let pinned = checkpoint(&place);
    assert_eq!(place.lab.piton(&["pin", &pinned]).code, 0);
    let dropped = {
        place.unseen("git branch b0; echo 0 > n");
        checkpoint(&place)
    };
    for n in 1..=98 {
        place.unseen(&format!("git branch b{n}; echo {n} > n"));
        checkpoint(&place);
    }
    let known: Vec<u64> = lines(&place).iter().map(|line| line["state"].as_u64().unwrap()).collect();
    assert_eq!(known, std::iter::once(1).chain(51..=100).collect::<Vec<_>>());
    let store = place.lab.home.join("piton/local.git");
    let refs = place.run(&format!("git --git-dir {} for-each-ref --format='%(refname)'", store.display())).stdout;
    assert!(refs.contains("/git/at-1\n") && !refs.contains("/git/at-2\n"), "{refs}");
    assert!(place.lab.piton(&["show", &pinned]).stdout.contains("`piton git-undo --to"));
    assert!(!place.lab.piton(&["show", &dropped]).stdout.contains("`piton git-undo --to"));
    assert_eq!(place.lab.piton(&["doctor"]).code, 0);
}
