//! The requests that an ordinary git may get on a view: verbs that only read, `push` and `bundle`. Pure.
//!
//! The verbs stand in a list, and so do the options of theirs that write or run a program; everything else needs `--unsafe`. git
//! takes an option by any beginning of its name: so does this.
//!
//! *Invariant:* a word counts as harmless for its place only where that is certain. Behind an option that may take a value, `--` may be
//! that value, and does not end the options.

use std::ffi::OsString;

use crate::model::words::{
    GIT_HARMLESS_OPTIONS, GIT_LISTING_OPTIONS, GIT_PLAIN_OPTIONS, GIT_READS, GIT_SELECTING_OPTIONS,
};

/// Verbs that look at the work tree, and so at an index.
const WITH_INDEX: &[&str] = &[
    "annotate",
    "blame",
    "check-attr",
    "check-ignore",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "grep",
    "ls-files",
    "status",
];

/// Options of a verb (`*`: of all) that write a file or run a program, and what to do instead.
const BARRED: &[(&str, &str, &str)] = &[
    ("*", "--output", "redirect the output to a file with `>`"),
    ("*", "--ext-diff", "`piton git diff A B` shows the difference"),
    ("*", "--show-signature", "checkpoints carry no signatures"),
    ("diff", "--no-index", "it compares files, not checkpoints; to compare checkpoints, use `diff A B`"),
    ("grep", "--no-index", "it searches files, not checkpoints; to search files, use `grep -r`"),
    ("archive", "--remote", "to archive this workspace, use `archive` without `--remote`"),
    ("archive", "--exec", "to archive this workspace, use `archive` without `--remote`"),
    ("cat-file", "--batch-all-objects", "`git rev-list --all --objects` lists the objects of this workspace"),
    ("grep", "--open-files-in-pager", "open the output yourself"),
    ("push", "--receive-pack", "to send checkpoints to a server, use `piton push REMOTE`"),
    ("push", "--exec", "to send checkpoints to a server, use `piton push REMOTE`"),
    ("push", "--recurse-submodules", "checkpoints contain no submodules"),
    ("push", "--signed", "to send checkpoints to a server, use `piton push REMOTE`"),
];

/// Options that are a beginning of a barred one, and a harmless one of their own.
const WHOLE: &[(&str, &str)] = &[("cat-file", "--batch")];

/// Short options that certainly take a value, attached or as the next word.
const TAKING: &[(&str, &str)] = &[
    ("diff", "SG"),
    ("diff-files", "SG"),
    ("diff-index", "SG"),
    ("diff-tree", "SG"),
    ("grep", "efABCm"),
    ("log", "SG"),
    ("show", "SG"),
    ("whatchanged", "SG"),
];

/// Short options of `grep` that take no value.
const GREP_PLAIN: &str = "aIEFGPivwhHlLcnopWqrz0123456789";

/// A line that may be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The verb; empty when there is none (`--version`).
    pub verb: String,
    /// True if it sends away what the view holds.
    pub sends: bool,
}

/// A line that is not run, and what to use instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLine {
    /// The part of the line that is not run, as a phrase: "`git push`".
    pub what: String,
    /// A sentence on the verb or the way to use instead.
    pub instead: String,
}

/// Returns whether a verb looks at the work tree.
pub fn needs_index(verb: &str) -> bool {
    WITH_INDEX.contains(&verb)
}

/// Judges the words after `piton git`.
///
/// # Errors
/// Why it is refused.
pub fn judge(args: &[OsString]) -> Result<Asked, RefusedLine> {
    let words: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let at = words.iter().position(|word| !word.starts_with('-')).unwrap_or(words.len());
    if let Some(option) = words[..at].iter().find(|word| !GIT_HARMLESS_OPTIONS.contains(&word.as_str())) {
        let name = option.split('=').next().unwrap_or_default();
        let instead = "it can run programs or lead to another repository".to_owned();
        return Err(RefusedLine { what: format!("the option `{name}` before the verb"), instead });
    }
    let Some(verb) = words.get(at).cloned() else {
        return Ok(Asked { verb: String::new(), sends: false });
    };
    if !GIT_READS.contains(&verb.as_str()) {
        return Err(RefusedLine { what: format!("`git {verb}`"), instead: instead_of(&verb).to_owned() });
    }
    let rest: Vec<&str> = words[at + 1..].iter().map(String::as_str).collect();
    only_reads(&verb, &rest)?;
    match verb.as_str() {
        "branch" => only_lists(&rest)?,
        "bundle" => only_makes(&rest)?,
        "push" => only_to_servers(&rest)?,
        _ => {}
    }
    let sends = matches!(verb.as_str(), "push" | "archive") || (verb == "bundle" && rest.contains(&"create"));
    Ok(Asked { verb, sends })
}

/// Tells how git reads the word behind an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Taken as the word that it is.
    Itself,
    /// As the value of the option before it.
    Value,
    /// As one or the other.
    Either,
}

/// Refuses a line with an option that writes or runs something, as git reads it.
fn only_reads(verb: &str, words: &[&str]) -> Result<(), RefusedLine> {
    let mut next = Next::Itself;
    for word in words {
        let is_option = word.starts_with('-') && *word != "-";
        match next {
            Next::Itself if *word == "--" => return Ok(()),
            Next::Value => {
                next = Next::Itself;
                continue;
            }
            Next::Itself | Next::Either => {}
        }
        if !is_option {
            next = Next::Itself;
            continue;
        }
        barred(verb, word)?;
        next = match (takes(verb, word), next) {
            // A word that may itself be a value takes none.
            (Next::Value, Next::Either) => Next::Either,
            (takes, _) => takes,
        };
    }
    Ok(())
}

/// Tells if an option takes the next word.
fn takes(verb: &str, option: &str) -> Next {
    if option.starts_with("--") {
        let is_plain = option.contains('=') || GIT_PLAIN_OPTIONS.contains(&option);
        return if is_plain { Next::Itself } else { Next::Either };
    }
    let taking = TAKING.iter().find(|(of, _)| *of == verb).map_or("", |(_, letters)| letters);
    let letters = &option[1..];
    match letters.find(|letter| taking.contains(letter)) {
        // The last letter takes the next word as its value, any other the letters after it. The letters before must be
        // known.
        Some(at) if letters[..at].chars().all(|letter| verb == "grep" && GREP_PLAIN.contains(letter)) => {
            if at + 1 == letters.len() { Next::Value } else { Next::Itself }
        }
        None if verb == "grep" && letters.chars().all(|letter| GREP_PLAIN.contains(letter)) => Next::Itself,
        Some(_) | None => Next::Either,
    }
}

fn barred(verb: &str, option: &str) -> Result<(), RefusedLine> {
    let name = option.split('=').next().unwrap_or_default();
    let refuse = |name: &str, instead: &str| {
        Err(RefusedLine { what: format!("the option `{name}` of `git {verb}`"), instead: instead.to_owned() })
    };
    if name.starts_with("--") {
        let found = BARRED
            .iter()
            .filter(|_| !WHOLE.contains(&(verb, name)))
            .find(|(of, whole, _)| (*of == "*" || *of == verb) && name.len() > "--".len() && whole.starts_with(name));
        return found.map_or(Ok(()), |(_, whole, instead)| refuse(whole, instead));
    }
    let letters = option.strip_prefix('-').unwrap_or_default();
    match verb {
        // Behind an option that takes a value stands the value.
        "grep" if letters.chars().take_while(|c| !"efABCm".contains(*c)).any(|c| c == 'O') => {
            refuse("-O", "open the output yourself")
        }
        "archive" if letters.contains('o') => refuse("-o", "redirect the output to a file with `>`"),
        _ => Ok(()),
    }
}

fn only_lists(options: &[&str]) -> Result<(), RefusedLine> {
    let refuse = |what: String| {
        let instead =
            "each branch is a run of this workspace and only piton moves it; `git branch --list` lists the branches"
                .to_owned();
        Err(RefusedLine { what, instead })
    };
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    // Names behind `--` are names of branches too.
    let options: Vec<&str> = options.iter().copied().filter(|option| *option != "--").collect();
    for option in options.iter().filter(|option| option.starts_with('-')) {
        let letters = option.strip_prefix('-').unwrap_or_default();
        let short = !letters.starts_with('-') && !letters.is_empty() && letters.chars().all(|c| "arvlqi".contains(c));
        if !short && !GIT_LISTING_OPTIONS.contains(&name(option).as_str()) {
            return refuse(format!("the option `{}` of `git branch`", name(option)));
        }
    }
    let lists = options.iter().any(|option| {
        let short = option.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains('l'));
        short || GIT_SELECTING_OPTIONS.contains(&name(option).as_str())
    });
    let makes = options.iter().any(|option| !option.starts_with('-'));
    if makes && !lists {
        return refuse("`git branch` with a name".to_owned());
    }
    Ok(())
}

fn only_makes(options: &[&str]) -> Result<(), RefusedLine> {
    match options.iter().find(|option| !option.starts_with('-')) {
        Some(&"create" | &"verify" | &"list-heads") | None => Ok(()),
        Some(other) => Err(RefusedLine {
            what: format!("`git bundle {other}`"),
            instead: "to unpack a bundle, use `git clone FILE DIR`; to get what `piton push` sent, use `piton fetch`"
                .to_owned(),
        }),
    }
}

/// Refuses an address that is a command (`ext::PROGRAM …`).
fn only_to_servers(words: &[&str]) -> Result<(), RefusedLine> {
    match words.iter().any(|word| word.starts_with("ext::") || word.contains("=ext::")) {
        true => Err(RefusedLine {
            what: "an address that runs a program (`ext::`)".to_owned(),
            instead: "to send checkpoints to a server, use `piton push REMOTE`".to_owned(),
        }),
        false => Ok(()),
    }
}

fn instead_of(verb: &str) -> &'static str {
    match verb {
        "add" | "commit" | "commit-tree" | "stash" | "write-tree" | "hash-object" => {
            "`piton checkpoint [LABEL]` records the workspace"
        }
        "checkout" | "checkout-index" | "clean" | "mv" | "read-tree" | "reset" | "restore" | "revert" | "rm"
        | "switch" | "apply" | "am" | "cherry-pick" | "merge" | "rebase" => {
            "`piton restore N [PATH…]` shows a preview and restores files; `piton undo` reverts that"
        }
        "worktree" | "clone" | "submodule" => "`piton restore N --to DIR` writes a checkpoint elsewhere",
        "tag" | "update-ref" | "symbolic-ref" | "notes" | "replace" => {
            "`piton checkpoint LABEL --pin` gives a checkpoint a permanent name"
        }
        "fetch" | "pull" | "remote" | "fetch-pack" => "`piton fetch REMOTE` brings in another machine's runs",
        "send-pack" => "`piton push REMOTE` sends this workspace's runs",
        "gc" | "maintenance" | "prune" | "prune-packed" | "repack" | "pack-refs" | "pack-objects"
        | "unpack-objects" | "index-pack" | "commit-graph" | "multi-pack-index" => {
            "piton cleans up its store itself; `retention` in the settings controls what is kept"
        }
        "reflog" => "`piton list` shows what was recorded; refs of checkpoints never move",
        "config" => "`piton config show` shows piton's settings; git's settings are not used here",
        "difftool" | "mergetool" => "`piton git diff A B` shows the difference",
        "filter-branch" | "fast-import" | "fast-export" => "a checkpoint's id never changes",
        "fsck" => {
            "it would report all workspaces; use `git --git-dir STORE fsck --full`, and `piton doctor --refs` for the names"
        }
        "help" => "`git help VERB` without piton",
        _ => "only commands that read are allowed: log, show, diff, ls-tree, cat-file, grep, blame, archive, status, …",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(line: &str) -> bool {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        judge(&args).is_err()
    }

    #[test]
    fn what_reads_passes() {
        for line in [
            "log --oneline --all",
            "log --all --graph --oneline",
            "--no-pager log --all --follow -- path",
            "-p log",
            "diff a b -- --output=x",
            "show id:path",
            "ls-tree --name-only id",
            "log --output-indicator-new=x",
            "grep -n -eTODO",
            "grep -neO",
            "grep --or x",
            "grep -e -O",
            "grep -ne -Osh",
            "grep -n -- -Ofast",
            "grep -e foo -- -Odir",
            "grep -A 3 -- -O2",
            "grep --cached -i x -- --output=y",
            "log -S --output=x",
            "log --author me -- --output=x",
            "log --oneline -- --output=x",
            "show -Gx HEAD",
            "cat-file --batch",
            "cat-file --batch-check",
            "branch",
            "branch -av",
            "branch --list",
            "branch --list run*",
            "branch -l x",
            "branch --contains abc run*",
            "branch --sort=-committerdate",
            "bundle create out.bundle --all",
            "bundle verify x",
            "push origin",
            "archive HEAD",
            "archive --format=tar -9 HEAD",
            "status --porcelain",
            "--version",
        ] {
            assert!(!is_refused(line), "{line}");
        }
    }

    #[test]
    fn what_writes_or_runs_something_does_not() {
        for line in [
            "-c core.pager=x log",
            "-c alias.x=!sh x",
            "--exec-path=/tmp log",
            "--git-dir=/x log",
            "--work-tree=/x status",
            "-C /x log",
            "--config-env=a=b log",
            "--namespace=x log",
            "--attr-source=x log",
            "log --output=x",
            "log --outp x",
            "diff --output x",
            "archive -o x HEAD",
            "archive -vo x HEAD",
            "archive --out=x HEAD",
            "archive --remote=ssh://x --exec=sh HEAD",
            "grep -e -- -Osh",
            "grep -e -- --open=sh",
            "grep -ne -- -Osh x",
            "grep -A -- -Osh x",
            "grep --max-depth -- -Osh x",
            "grep --max-depth -e -Osh x",
            "grep --threads -- -lOsh x",
            "grep -lOsh x",
            "grep -lnOsh x",
            "grep --no-index x /etc",
            "diff --no-index -S -- --output=x",
            "diff --no-ind a b",
            "diff -S -- --output=x",
            "diff -G -- --outp=x",
            "diff --src-prefix -- --output=x a b",
            "diff --output-indicator-new -- --output=x",
            "log -n -- --output=x",
            "log --author -S --output=x",
            "log --author -- --output=x",
            "log --format -- --output x",
            "show --ext-diff",
            "blame --output=x a",
            "annotate --output x a",
            "shortlog --output=x HEAD",
            "range-diff --output=x a...b",
            "rev-list --output=x --all",
            "diff-tree -p --output=x a b",
            "whatchanged --output x",
            "log --show-signature",
            "push --recurse-submodules=on-demand x",
            "push ext::shx",
            "push --repo=ext::x",
            "stash show --output=x",
            "reflog --output=x",
            "fast-export --export-marks=x HEAD",
            "interpret-trailers --in-place x",
            "difftool -x sh",
            "fetch --upload-pack=sh x",
            "clone -u sh x y",
            "ls-remote --upload-pack=sh x",
            "bisect run sh",
            "rebase -x sh a",
            "submodule foreach sh",
            "filter-branch --tree-filter sh HEAD",
            "format-patch -o x a",
            "merge-file a b c",
            "hook run x",
            "for-each-repo --config=x status",
            "-c diff.external=x diff",
            "-c core.fsmonitor=x status",
            "-ccore.fsmonitor=x status",
            "-c clean.requireForce=false clean -d",
            "--exec-path x log",
            "--list-cmds=main",
            "rev-list --all --since -- --output=x",
            "shortlog --group -- --output=x",
            "archive --prefix -- -ox HEAD",
            "archive --prefix -- --remote=x HEAD",
            "blame --contents -- --output=x",
            "push --repo -- --exec=sh x",
            "push --signed x",
            "branch -- new",
            "branch --format -- new",
            "bundle -- unbundle x",
            "grep -Osh x",
            "grep -nOsh x",
            "grep --open=sh x",
            "grep --open-files-in-pager=sh x",
            "fsck",
            "cat-file --batch-check --batch-all",
            "push --receive-pack=sh x",
            "push --rec sh x",
            "branch new",
            "branch -d x",
            "branch -D x",
            "branch -vd x",
            "branch -m a b",
            "branch --list -d x",
            "branch --sort=x new",
            "branch --sort x new",
            "branch --edit-description",
            "branch -f a b",
            "branch -u x",
            "bundle unbundle x",
            "difftool",
            "help -w log",
            "an-alias",
            "var GIT_EDITOR",
        ] {
            assert!(is_refused(line), "{line}");
        }
        for verb in "gc prune update-ref reflog repack commit checkout reset tag fetch config worktree".split(' ') {
            assert!(is_refused(verb), "{verb}");
        }
    }
}
