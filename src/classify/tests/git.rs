//! Tests of files and programs that lines of git name in options, settings and environment.

use super::evaluation::{context, policy};
use super::shared;
use crate::model::effect::{Class, Needs};

/// Line, class and the name that it hits; what it names is what the real git wrote or ran.
const EFFECTS: &[(&str, &str, &str)] = &[
    ("git stash show --output=F", "file-overwrite", "F"),
    ("git stash show -p --output F stash@{0}", "file-overwrite", "F"),
    ("git stash list -p --output=F", "file-overwrite", "F"),
    ("git reflog --output=F", "file-overwrite", "F"),
    ("git reflog show main --output F", "file-overwrite", "F"),
    ("git blame --output=F a", "file-overwrite", "F"),
    ("git annotate --output F a", "file-overwrite", "F"),
    ("git shortlog --output=F HEAD", "file-overwrite", "F"),
    ("git difftool --output=F", "file-overwrite", "F"),
    ("git fast-export --output=F HEAD", "file-overwrite", "F"),
    ("git fast-export --export-marks=F HEAD", "file-overwrite", "F"),
    ("git fast-export --export-marks F HEAD", "file-overwrite", "F"),
    ("git fast-import --export-marks=F < dump", "file-overwrite", "F"),
    ("git interpret-trailers --in-place --trailer a=b F", "file-overwrite", "F"),
    ("git interpret-trailers --in-pl --trailer a=b F", "file-overwrite", "F"),
    ("git archive --outpu=F HEAD", "file-overwrite", "F"),
    ("git archive -oF HEAD", "file-overwrite", "F"),
    ("git bundle create F --all", "file-overwrite", "F"),
    ("git format-patch -o F main", "file-overwrite", "F"),
    ("git read-tree --index-output=F HEAD", "file-overwrite", "F"),
    ("git apply --check --build-fake-ancestor=F x.patch", "file-overwrite", "F"),
    ("git merge-file F base theirs", "file-overwrite", "F"),
    ("git config -f F a.b c", "file-overwrite", "F"),
    ("GIT_TRACE=/home/dev/proj/F git status", "file-write", "/home/dev/proj/F"),
    ("git -c clean.requireForce=false clean -d", "vcs-discard", ""),
    ("git -c Clean.RequireForce=0 clean -dx", "vcs-discard", ""),
    ("git -c core.worktree=/home/dev/proj/sub clean -fd", "vcs-discard", ""),
    ("git -c gc.pruneExpire=now gc", "vcs-history", ""),
    ("GIT_SSH_COMMAND='rm -rf src;' piton push ssh://h/x", "file-delete", "src"),
    ("git difftool -y -x 'rm -rf src' HEAD~1", "file-delete", "src"),
    ("git difftool --extcmd='rm -rf src' HEAD~1", "file-delete", "src"),
    ("git difftool --extcmd 'rm -rf src' HEAD~1", "file-delete", "src"),
    ("git difftool -yx 'rm -rf src' HEAD~1", "file-delete", "src"),
    ("git fetch --upload-pack='rm -rf src;' . main", "file-delete", "src"),
    ("git fetch --upload-p 'rm -rf src;' . main", "file-delete", "src"),
    ("git pull --upload-pack 'rm -rf src;' . main", "file-delete", "src"),
    ("git clone -u 'rm -rf src;' . x", "file-delete", "src"),
    ("git clone --upl='rm -rf src;' . x", "file-delete", "src"),
    ("git clone -c core.fsmonitor='rm -rf src' . x", "file-delete", "src"),
    ("git clone --config core.fsmonitor='rm -rf src' . x", "file-delete", "src"),
    ("git ls-remote --upload-pack='rm -rf src;' .", "file-delete", "src"),
    ("git ls-remote --exec='rm -rf src;' .", "file-delete", "src"),
    ("git ls-remote 'ext::rm -rf src'", "file-delete", "src"),
    ("git push --receive-pack='rm -rf src;' . main", "file-delete", "src"),
    ("git push --exec 'rm -rf src;' . main", "file-delete", "src"),
    ("git archive --remote=. --exec='rm -rf src;' HEAD", "file-delete", "src"),
    ("git grep -O'rm -rf src' foo", "file-delete", "src"),
    ("git grep --open='rm -rf src' foo", "file-delete", "src"),
    ("git rebase -x 'rm -rf src' main", "file-delete", "src"),
    ("git rebase --exec='rm -rf src' main", "file-delete", "src"),
    ("git rebase -i --exe 'rm -rf src' main", "file-delete", "src"),
    ("git filter-branch --tree-filter 'rm -rf src' HEAD", "file-delete", "src"),
    ("git filter-branch -f --index-filter='rm -rf src' HEAD", "file-delete", "src"),
    ("git send-email --sendmail-cmd='rm -rf src' -1", "file-delete", "src"),
    ("git bisect run rm -rf src", "file-delete", "src"),
    ("git bisect run sh -c 'rm -rf src'", "file-delete", "src"),
    ("git submodule foreach --recursive 'rm -rf src'", "file-delete", "src"),
    ("git merge-index -o rm src", "file-delete", "src"),
    ("git for-each-repo --config=a.b clean -fdx", "vcs-discard", ""),
    ("git -c alias.x='!rm -rf src' x", "file-delete", "src"),
    ("git -c Alias.X='!rm -rf src' x", "file-delete", "src"),
    ("git -c core.fsmonitor='rm -rf src' status", "file-delete", "src"),
    ("git -c diff.external='rm -rf src' diff", "file-delete", "src"),
    ("git -c diff.x.textconv='rm -rf src' log -p", "file-delete", "src"),
    ("git -c core.pager='rm -rf src' log", "file-delete", "src"),
    ("git -c pager.log='rm -rf src' log", "file-delete", "src"),
    ("git -c core.sshCommand='rm -rf src' fetch", "file-delete", "src"),
    ("git -c CORE.SSHCOMMAND='rm -rf src' fetch", "file-delete", "src"),
    ("git -c core.editor='rm -rf src' commit --amend", "file-delete", "src"),
    ("git -c sequence.editor='rm -rf src' rebase -i main", "file-delete", "src"),
    ("git -c credential.helper='!rm -rf src' fetch", "file-delete", "src"),
    ("git -c credential.https://x.y.helper='!rm -rf src' fetch", "file-delete", "src"),
    ("git -c filter.x.clean='rm -rf src' add .", "file-delete", "src"),
    ("git -c filter.x.smudge='rm -rf src' checkout main", "file-delete", "src"),
    ("git -c difftool.x.cmd='rm -rf src' difftool -t x", "file-delete", "src"),
    ("git -c merge.x.driver='rm -rf src' merge y", "file-delete", "src"),
    ("git -c gpg.program='rm -rf src' log --show-signature", "file-delete", "src"),
    ("git -c tar.x.command='rm -rf src' archive --format=x HEAD", "file-delete", "src"),
    ("git -c trailer.x.command='rm -rf src' interpret-trailers --trailer x=y", "file-delete", "src"),
    ("git config core.fsmonitor 'rm -rf src'", "file-delete", "src"),
    ("GIT_EXTERNAL_DIFF='rm -rf src' git diff", "file-delete", "src"),
    ("env GIT_EXTERNAL_DIFF='rm -rf src' git diff", "file-delete", "src"),
    ("export GIT_EXTERNAL_DIFF='rm -rf src'; git diff", "file-delete", "src"),
    ("GIT_SSH_COMMAND='rm -rf src;' git fetch", "file-delete", "src"),
    ("GIT_EDITOR='rm -rf src' git commit", "file-delete", "src"),
    ("GIT_SEQUENCE_EDITOR='rm -rf src' git rebase -i main", "file-delete", "src"),
    ("GIT_PAGER='rm -rf src' git log", "file-delete", "src"),
    (
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='rm -rf src' git status",
        "file-delete",
        "src",
    ),
    ("X='rm -rf src' git --config-env=core.fsmonitor=X status", "file-delete", "src"),
    ("git --exec-path=./bin log", "exec-opaque", ""),
    ("GIT_EXEC_PATH=./bin git log", "exec-opaque", ""),
    ("git -c core.hooksPath=./hooks commit -m x", "exec-opaque", ""),
    ("git -c include.path=../evil status", "exec-opaque", ""),
    ("GIT_CONFIG_GLOBAL=./evil git status", "exec-opaque", ""),
    ("git -c core.fsmonitor=./evil status", "exec-opaque", ""),
    ("git difftool -x ./evil", "exec-opaque", ""),
    ("git hook run pre-commit", "exec-opaque", ""),
    ("GIT_EXTERNAL_DIFF=\"$TOOL\" git diff", "exec-opaque", ""),
];

#[test]
fn what_a_line_of_git_writes_or_runs_is_an_effect_of_its_own() {
    let mut wrong = Vec::new();
    for (line, class, target) in EFFECTS {
        let verdict = shared().shell(line, &context(), &policy());
        let fits = verdict.effects.iter().any(|effect| {
            effect.class.as_str() == *class
                && (target.is_empty() || effect.target.as_deref().is_some_and(|named| named.starts_with(target)))
        });
        if !fits {
            wrong.push(format!("{line}: wanted {class} {target}, given {:?}", verdict.effects));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same options where they mean nothing of the kind, and programs that do nothing.
#[test]
fn their_harmless_twins_call_for_nothing() {
    let mut wrong = Vec::new();
    for line in [
        "git stash show -p",
        "git stash list --oneline",
        "git reflog -n 5",
        "git blame -L 1,5 a",
        "git fast-export --all | head",
        "git interpret-trailers --parse msg",
        "git merge-file -p a b c",
        "git log --grep --output",
        "git clean -n",
        "git -c clean.requireForce=true clean -d",
        "git fetch -u origin",
        "git ls-remote --exit-code origin",
        "git fetch --upload-pack=git-upload-pack origin",
        "git clone -c core.autocrlf=false . x",
        "git grep -n -e -O foo",
        "git -c core.pager=cat log",
        "git -c pager.log=false log",
        "git -c core.fsmonitor=false status",
        "git -c core.fsmonitor= status",
        "git -c core.hooksPath=/dev/null commit -m x",
        "git -c core.editor=true commit",
        "git -c core.quotePath=false status",
        "git -c credential.helper= fetch",
        "git -c credential.helper=store fetch",
        "git -c user.name=x -c user.email='rm@x' commit -m 'rm -rf src'",
        "GIT_EDITOR=true git merge --continue",
        "GIT_EDITOR=: git commit",
        "EDITOR=vim git commit",
        "GIT_EDITOR=\"sed -i s/a/b/\" git commit",
        "GIT_PAGER=cat git log",
        "PAGER= git diff",
        "GIT_CONFIG_GLOBAL=/dev/null git status",
        "GIT_TRACE=1 git status",
        "GIT_SSH_COMMAND='ssh -i key -o IdentitiesOnly=yes' git fetch",
        "git --exec-path",
        "git submodule foreach git status",
        "git bisect log",
        "git -c gc.pruneExpire=never gc",
        "git config --global credential.helper '!gh auth git-credential'",
        "git config core.hooksPath .githooks",
        "git config --global core.pager 'less -F'",
        "git config --get core.editor",
        "git rev-parse --git-dir",
    ] {
        let verdict = shared().shell(line, &context(), &policy());
        let bad =
            verdict.needs != Needs::Nothing || verdict.effects.iter().any(|effect| effect.class == Class::Unknown);
        if bad {
            wrong.push(format!("{line}: {:?} {:?}", verdict.needs, verdict.effects));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
