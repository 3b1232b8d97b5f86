//! Long options by the beginnings of their names.

use super::evaluation::{context, policy};
use super::shared;
use crate::model::effect::Verdict;

fn judged(line: &str) -> Verdict {
    shared().shell(line, &context(), &policy())
}

fn effects(line: &str) -> Vec<(String, String, Option<String>)> {
    let effects = judged(line).effects.into_iter();
    effects.map(|effect| (effect.class.as_str().to_owned(), effect.rule.clone(), effect.target)).collect()
}

/// A line with beginnings, and the same with whole names.
const PAIRS: &[(&str, &str)] = &[
    ("git reset --har", "git reset --hard"),
    ("git reset --h HEAD~1", "git reset --hard HEAD~1"),
    ("git reset --so HEAD~1", "git reset --soft HEAD~1"),
    ("git checkout --forc HEAD~1", "git checkout --force HEAD~1"),
    ("git checkout --fo", "git checkout --force"),
    ("git checkout --th .", "git checkout --theirs ."),
    ("git checkout --pathspec-from=x", "git checkout --pathspec-from-file=x"),
    ("git switch --discard old", "git switch --discard-changes old"),
    ("git switch --disc --det old", "git switch --discard-changes --detach old"),
    ("git switch --force-c x", "git switch --force-create x"),
    ("git restore --stag --work a", "git restore --staged --worktree a"),
    ("git restore --stag a", "git restore --staged a"),
    ("git clean --forc", "git clean --force"),
    ("git clean --forc --dry", "git clean --force --dry-run"),
    ("git clean --f --f -d", "git clean --force --force -d"),
    ("git branch --del --forc x", "git branch --delete --force x"),
    ("git branch --cop --forc a b", "git branch --copy --force a b"),
    ("git branch --mov --forc a b", "git branch --move --force a b"),
    ("git branch -C a b", "git branch --copy --force a b"),
    ("git reset --mer", "git reset --merge"),
    ("git checkout --pat", "git checkout --patch"),
    ("git checkout --trac o/x", "git checkout --track o/x"),
    ("git checkout --orph x", "git checkout --orphan x"),
    ("git restore --pat .", "git restore --patch ."),
    ("git restore --sour=HEAD a", "git restore --source=HEAD a"),
    ("git restore --sour HEAD a", "git restore --source HEAD a"),
    ("git clean --forc --inter", "git clean --force --interactive"),
    ("git clean --forc --excl=keep", "git clean --force --exclude=keep"),
    ("git clean --forc --excl keep", "git clean --force --exclude keep"),
    ("git rm --forc --dry a", "git rm --force --dry-run a"),
    ("git rm --forc --cach a", "git rm --force --cached a"),
    ("git stash --keep", "git stash --keep-index"),
    ("git stash push --pat", "git stash push --patch"),
    ("git stash push --stag", "git stash push --staged"),
    ("git stash push --pathspec-from-f=x", "git stash push --pathspec-from-file=x"),
    ("git commit --ame", "git commit --amend"),
    ("git commit --am --no-edit", "git commit --amend --no-edit"),
    ("git stash push --al", "git stash push --all"),
    ("git stash --inc", "git stash --include-untracked"),
    ("git stash push --inc -- a", "git stash push --include-untracked -- a"),
    ("git push --forc", "git push --force"),
    ("git push --force-w", "git push --force-with-lease"),
    ("git push --del origin x", "git push --delete origin x"),
    ("git push --mir x", "git push --mirror x"),
    ("git push --pru x", "git push --prune x"),
    ("git rebase --abo", "git rebase --abort"),
    ("git rebase --sk", "git rebase --skip"),
    ("git merge --abo", "git merge --abort"),
    ("git cherry-pick --sk", "git cherry-pick --skip"),
    ("git tag --del v1", "git tag --delete v1"),
    ("git fetch --forc x main:mine", "git fetch --force x main:mine"),
    ("git fetch --pru . a:refs/heads/b", "git fetch --prune . a:refs/heads/b"),
    ("git pull --reb", "git pull --rebase"),
    ("git pull --reb=fal", "git pull --rebase=fal"),
    ("git read-tree --rese -u HEAD", "git read-tree --reset -u HEAD"),
    ("git checkout-index --forc --al", "git checkout-index --force --all"),
    ("git rm --forc a", "git rm --force a"),
    ("git rm --fo a", "git rm --force a"),
    ("git rm --f a", "git rm --force a"),
    ("git rm --cac a", "git rm --cached a"),
    ("git mv --dr a b", "git mv --dry-run a b"),
    ("git gc --pru=now", "git gc --prune=now"),
    ("git update-ref --std", "git update-ref --stdin"),
    ("git worktree remove --fo ../wt", "git worktree remove --force ../wt"),
    ("git submodule update --fo", "git submodule update --force"),
    ("git diff --outp=a.txt", "git diff --output=a.txt"),
    ("git archive --outp=a.tgz HEAD", "git archive --output=a.tgz HEAD"),
    ("git rebase --exe 'rm -rf src' main", "git rebase --exec 'rm -rf src' main"),
    ("git -C sub -c a.b=c --no-pager reset --har", "git -C sub -c a.b=c --no-pager reset --hard"),
    ("sh -c 'git reset --har'", "sh -c 'git reset --hard'"),
    ("env A=b git reset --har", "env A=b git reset --hard"),
    ("rm --recurs --for src", "rm --recursive --force src"),
    ("sed --in-pl s/a/b/ f", "sed --in-place s/a/b/ f"),
    ("sed --in-pl=.bak --expr s/a/b/ f", "sed --in-place=.bak --expression s/a/b/ f"),
    ("truncate --si 0 a", "truncate --size 0 a"),
    ("truncate --si=0 a", "truncate --size=0 a"),
    ("cp --for a b", "cp --force a b"),
    ("cp --target=dir a b", "cp --target-directory=dir a b"),
    ("mv --target dir a", "mv --target-directory dir a"),
    ("sort --out=a b", "sort --output=a b"),
    ("env --split 'rm -rf src'", "env --split-string 'rm -rf src'"),
    ("env --uns X rm -rf src", "env --unset X rm -rf src"),
    ("tar --to-c 'rm -rf src' -xf a.tar", "tar --to-command 'rm -rf src' -xf a.tar"),
    ("tar --checkpoint --extr --file a.tar", "tar --checkpoint --extract --file a.tar"),
    ("tar --extr --file a.tar", "tar --extract --file a.tar"),
    ("psql --comm 'drop table t'", "psql --command 'drop table t'"),
    ("mysql --exec 'drop table t'", "mysql --execute 'drop table t'"),
    ("shred --rem a", "shred --remove a"),
    ("sudo --us root rm -rf src", "sudo --user root rm -rf src"),
    ("timeout --sig 9 5 git reset --har", "timeout --signal 9 5 git reset --hard"),
];

#[test]
fn a_beginning_stands_for_its_option() {
    let mut wrong = Vec::new();
    for (line, whole) in PAIRS {
        let (given, wanted) = (effects(line), effects(whole));
        let (given_losses, wanted_losses) = (judged(line).losses, judged(whole).losses);
        if given != wanted || format!("{given_losses:?}") != format!("{wanted_losses:?}") {
            wrong.push(format!("{line}: given {given:?} {given_losses:?}, wanted {wanted:?} {wanted_losses:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_have_the_class_of_what_they_do() {
    let mut wrong = Vec::new();
    for (line, class) in [
        ("git reset --har", "vcs-discard"),
        ("git checkout --forc", "vcs-discard"),
        ("git switch --discard x", "vcs-discard"),
        ("git clean --forc", "vcs-discard"),
        ("git stash --inc", "vcs-discard"),
        ("git restore --work a", "vcs-discard"),
        // Git refuses it today; with fewer options it was `--source`, `--staged` or both.
        ("git restore --s a", "vcs-discard"),
        ("git push --d origin x", "vcs-remote"),
        ("git branch -C a b", "vcs-history"),
        ("git branch --copy --force a b", "vcs-history"),
        ("git branch --del --forc x", "vcs-history"),
        ("git commit --ame", "vcs-history"),
        ("git fetch . +main:mine", "vcs-history"),
        ("git fetch . +main:mine +x:refs/remotes/o/x", "vcs-history"),
        ("git fetch . +main:refs/heads/mine", "vcs-history"),
        ("git fetch . '+refs/heads/*:refs/tags/*'", "vcs-history"),
        ("git fetch --force x main:mine", "vcs-history"),
        ("git fetch --prune . 'refs/heads/*:refs/heads/*'", "vcs-history"),
        ("git fetch -p . main:mine", "vcs-history"),
        ("git fetch --prune --prune-tags", "vcs-history"),
        ("git fetch --tags --force", "vcs-history"),
        ("git pull . +main:mine", "vcs-history"),
        ("git pull --rebase", "vcs-history"),
        ("git pull -q --rebase . o", "vcs-history"),
        ("git pull -r", "vcs-history"),
        ("git pull --rebase=merges", "vcs-history"),
        ("git -c pull.rebase=true pull", "vcs-history"),
        ("git push . +main:mine", "vcs-history"),
        ("git push --forc ../other main:mine", "vcs-history"),
        ("rm --recurs --for src", "file-delete"),
        ("sed --in-pl s/a/b/ f", "file-overwrite"),
        ("truncate --si 0 a", "file-overwrite"),
        ("sort --ou=a b", "file-overwrite"),
        ("psql --comm 'drop table t'", "database"),
    ] {
        let given = effects(line);
        if !given.iter().any(|(found, _, _)| found == class) {
            wrong.push(format!("{line}: wanted {class}, given {given:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whole names that others begin with, beginnings of harmless options, values, words behind `--`, and other programs.
#[test]
fn nothing_else_is_taken_for_a_beginning() {
    let mut wrong = Vec::new();
    for line in [
        "git restore --stag a",
        "git clean --forc --dry",
        "git rm --cac a",
        "git push --dr",
        "git commit -m x --all",
        "git commit -m --am",
        "git log --grep --out",
        "git log --all --oneline --author x",
        "git add --all --force",
        "git fetch --prune --all --tags",
        "git fetch origin +main:refs/remotes/origin/main",
        "git fetch --prune origin '+refs/heads/*:refs/remotes/origin/*'",
        "git fetch origin main:mine",
        "git pull --no-rebase",
        "git pull --rebase=false",
        "git -c pull.rebase=false pull",
        "git branch --all",
        "git checkout --det v1",
        "git --hard",
        "sed --exp s/a/b/ f",
        "npm --save ls",
        "grep --in-pl x f",
    ] {
        let given = effects(line);
        if !given.is_empty() {
            wrong.push(format!("{line}: given {given:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
