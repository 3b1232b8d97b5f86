//! The programs that a command line starts without naming them, where they are really there: the hooks of a git repository and its
//! filters for contents, and the scripts that installing a package runs. They may change any file.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::classify::commands;
use crate::git::line::{GitLine, unwrapped, within};
use crate::sys::libgit2::{filter_commands, hooks_path_in_force};
use crate::worktree::repository_state::RepositoryPlace;

/// The hooks of verbs that make a commit.
const OF_COMMITS: &[&str] = &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];

/// The hooks of all verbs that write the index or move refs.
const OF_WRITERS: &[&str] = &["post-index-change", "reference-transaction"];

/// The verbs that write the index or move refs, with their hooks beside those of commits. Source: githooks(5).
const OF_VERBS: &[(&str, &[&str])] = &[
    ("add", &[]),
    ("branch", &[]),
    ("fetch", &[]),
    ("mv", &[]),
    ("reset", &[]),
    ("restore", &[]),
    ("rm", &[]),
    ("stash", &[]),
    ("tag", &[]),
    ("am", &["applypatch-msg", "pre-applypatch", "post-applypatch"]),
    ("checkout", &["post-checkout"]),
    ("cherry-pick", OF_COMMITS),
    ("commit", &["post-rewrite"]),
    ("merge", &["pre-merge-commit", "post-merge"]),
    ("pull", &["pre-merge-commit", "post-merge", "pre-rebase", "post-rewrite", "post-checkout"]),
    ("push", &["pre-push"]),
    ("rebase", &["pre-rebase", "post-rewrite", "post-checkout"]),
    ("revert", OF_COMMITS),
    ("switch", &["post-checkout"]),
    ("worktree", &["post-checkout"]),
];

/// The verbs that start the hooks of commits.
const COMMITTING: &[&str] = &["cherry-pick", "commit", "merge", "pull", "rebase", "revert"];

/// The directory of the hooks that `piton install git` has moved aside.
const MOVED_ASIDE: &str = "piton-next";

/// The most bytes of a hook that are read.
const MOST_READ: u64 = 1 << 20;

/// The most bytes of a file of attributes or of a package that are read.
const MOST_TEXT: u64 = 1 << 20;

/// The most filters for contents that are looked up.
const MOST_FILTERS: usize = 64;

/// The programs that install packages of JavaScript, and their verbs that run scripts of the package in the directory. Source: the
/// manuals of these programs.
const NODE_INSTALLERS: &[&str] = &["npm", "pnpm", "yarn", "bun"];

/// Their verbs.
const INSTALLING: &[&str] = &[
    "add",
    "ci",
    "clean-install",
    "i",
    "install",
    "link",
    "pack",
    "publish",
    "rebuild",
    "remove",
    "uninstall",
    "version",
];

/// The scripts of a package that these verbs run.
const LIFECYCLE: &[&str] = &[
    "preinstall",
    "install",
    "postinstall",
    "prepublish",
    "preprepare",
    "prepare",
    "postprepare",
    "prepack",
    "postpack",
    "prepublishOnly",
    "publish",
    "postpublish",
    "preversion",
    "version",
    "postversion",
];

/// Returns true if a command line in the directory `cwd` starts such a program. Hooks of piton do not count.
pub(super) fn starts_others(command: &str, cwd: &Path) -> bool {
    // The text of a line is not parsed unless it names one of these programs.
    if !["git", "npm", "yarn", "bun", "pip", "composer"].iter().any(|name| command.contains(name)) {
        return false;
    }
    let mut dir = cwd.to_owned();
    commands(command).iter().any(|words| match words.as_slice() {
        [change, to, ..] if change == "cd" || change == "pushd" => {
            dir = step_into(&dir, to);
            false
        }
        words => match within(words) {
            Some(line) => starts(&line, &dir),
            None => runs_scripts(words, &dir),
        },
    })
}

/// Returns the directory that a word names, as the shell does.
fn step_into(dir: &Path, to: &str) -> PathBuf {
    let below_home = to.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (below_home, std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => dir.join(to),
    }
}

fn starts(line: &GitLine, cwd: &Path) -> bool {
    let verb = line.verb.as_str();
    let dir = line.dirs.iter().fold(cwd.to_owned(), |dir, next| step_into(&dir, next));
    let place = match line.git_dir.as_ref().map(|named| dir.join(named)) {
        Some(named) => RepositoryPlace::around(named.parent().unwrap_or(&dir))
            .filter(|place| place.dir == named)
            .unwrap_or(RepositoryPlace { top: dir.clone(), dir: named.clone(), common: named }),
        None => match RepositoryPlace::around(&dir) {
            Some(place) => place,
            None => return false,
        },
    };
    let of_verb = OF_VERBS.iter().find(|(known, _)| *known == verb);
    let of_commits = OF_COMMITS.iter().filter(|_| COMMITTING.contains(&verb));
    let mut names = of_verb.into_iter().flat_map(|(_, own)| own.iter().chain(OF_WRITERS)).chain(of_commits);
    let is_key = |setting: &&String| setting.to_ascii_lowercase().starts_with("core.hookspath=");
    let own = line.settings.iter().rfind(is_key).and_then(|setting| setting.split_once('=')).map(|(_, dir)| dir.into());
    let hooks = match own.or_else(|| hooks_path_in_force(&place.common)) {
        Some(named) => place.top.join(named),
        None => place.common.join("hooks"),
    };
    names.any(|name| is_foreign(&hooks, name))
        || ((of_verb.is_some() || matches!(verb, "status" | "diff")) && has_filter(&place))
}

/// Returns true if the contents of a repository go through a program of the user. That of git-lfs is known, and does not count. Only
/// the attributes at the top are read.
fn has_filter(place: &RepositoryPlace) -> bool {
    let files = [place.top.join(".gitattributes"), place.common.join("info/attributes")];
    let texts: Vec<SmallText> = files.iter().map(|file| SmallText::of(file)).collect();
    let words = texts.iter().flat_map(|text| text.text().lines()).filter(|line| !line.starts_with('#'));
    let names: BTreeSet<&str> =
        words.flat_map(str::split_ascii_whitespace).filter_map(|word| word.strip_prefix("filter=")).collect();
    let is_others = |command: &String| !command.starts_with("git-lfs ") && !command.starts_with("git lfs ");
    // In doubt one is the user's.
    texts.contains(&SmallText::TooLarge)
        || names.len() > MOST_FILTERS
        || (!names.is_empty() && filter_commands(&place.common, &names).iter().any(is_others))
}

/// The text of a file that is read only if it is small.
#[derive(PartialEq, Eq)]
enum SmallText {
    /// There is none, or it cannot be read.
    Missing,
    TooLarge,
    Text(String),
}

impl SmallText {
    fn of(file: &Path) -> SmallText {
        match file.metadata() {
            Ok(facts) if facts.is_file() && facts.len() > MOST_TEXT => SmallText::TooLarge,
            Ok(facts) if facts.is_file() => std::fs::read(file).map_or(SmallText::Missing, |bytes| {
                let text = String::from_utf8_lossy(&bytes);
                SmallText::Text(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
            }),
            _ => SmallText::Missing,
        }
    }

    fn text(&self) -> &str {
        match self {
            SmallText::Text(text) => text,
            SmallText::Missing | SmallText::TooLarge => "",
        }
    }
}

/// Returns true if a command installs the package of a directory, and that package has scripts for it.
fn runs_scripts(words: &[String], cwd: &Path) -> bool {
    let base = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let is_known = |word: &String| {
        let name = base(word);
        NODE_INSTALLERS.contains(&name.as_str()) || name == "composer" || name.starts_with("pip") || name == "uv"
    };
    let python = |words: &[String]| words.first().is_some_and(|first| base(first).starts_with("python"));
    let words = match unwrapped(words, &is_known) {
        // `python3 -m pip install`
        Some(words) if python(words) && words.get(1).is_some_and(|option| option == "-m") => &words[2..],
        Some(words) => words,
        None => return false,
    };
    let Some((program, rest)) = words.split_first() else { return false };
    let program = base(program);
    // The directory that an option names is no verb.
    let is_value = |at: usize| at > 0 && DIRECTORIES.contains(&rest[at - 1].as_str());
    let verbs =
        || rest.iter().enumerate().filter(|(at, word)| !word.starts_with('-') && !is_value(*at)).map(|(_, word)| word);
    let verb = verbs().next().map_or("", String::as_str);
    match program.as_str() {
        name if NODE_INSTALLERS.contains(&name) => {
            let may = INSTALLING.contains(&verb) || (name == "yarn" && verb.is_empty());
            may && !rest.iter().any(|word| word == "--ignore-scripts") && has_lifecycle(&start(rest, cwd))
        }
        "composer" => {
            matches!(verb, "install" | "update" | "require" | "remove")
                && !rest.iter().any(|word| word == "--no-scripts")
                && has_script(&start(rest, cwd).join("composer.json"), &|name| {
                    name.starts_with("pre-") || name.starts_with("post-")
                })
        }
        name if name.starts_with("pip") || name == "uv" => {
            rest.iter().any(|word| word == "install") && verbs().any(|word| cwd.join(word).join("setup.py").is_file())
        }
        _ => false,
    }
}

/// The options that name the directory in which an installer starts.
const DIRECTORIES: &[&str] = &["--prefix", "-C", "--dir", "--cwd", "--working-dir", "-d"];

/// Returns the directory in which an installer starts (`npm --prefix web ci`).
fn start(words: &[String], cwd: &Path) -> PathBuf {
    let (mut words, mut dir) = (words.iter(), cwd.to_owned());
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some((option, named)) if DIRECTORIES.contains(&option) => dir = cwd.join(named),
            None if DIRECTORIES.contains(&word.as_str()) => {
                dir = words.next().map_or(dir, |named| cwd.join(named));
            }
            _ => {}
        }
    }
    dir
}

/// Returns true if the nearest package of JavaScript has a script that an installer runs.
fn has_lifecycle(dir: &Path) -> bool {
    let package = dir.ancestors().map(|dir| dir.join("package.json")).find(|file| file.is_file());
    package.is_some_and(|file| has_script(&file, &|name| LIFECYCLE.contains(&name)))
}

/// Returns true if a package's description has a script with such a name. One that is too large may have any.
fn has_script(file: &Path, is_one: &dyn Fn(&str) -> bool) -> bool {
    match SmallText::of(file) {
        SmallText::Missing => false,
        SmallText::TooLarge => true,
        SmallText::Text(text) => {
            // The installer refuses what is no JSON too.
            let package: Value = serde_json::from_str(&text).unwrap_or_default();
            package["scripts"].as_object().is_some_and(|scripts| scripts.keys().any(|name| is_one(name)))
        }
    }
}

/// Returns true if a directory of hooks has one of this name that is not piton's.
fn is_foreign(hooks: &Path, name: &str) -> bool {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0);
    let hook = hooks.join(name);
    is_program(&hook) && (!is_pitons(&hook) || is_program(&hooks.join(MOVED_ASIDE).join(name)))
}

/// Returns true if a hook is piton's alone: it asks piton, and is no script of the user with that in it.
fn is_pitons(hook: &Path) -> bool {
    // A hook that is too large, or cannot be read, counts as the user's.
    let is_small = hook.metadata().is_ok_and(|facts| facts.len() <= MOST_READ);
    let Some(text) = is_small.then(|| std::fs::read(hook).ok()).flatten() else { return false };
    let has = |words: &[u8]| text.windows(words.len()).any(|window| window == words);
    has(b"git-door") && !has(b"# piton begin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_starts_the_hooks_of_its_verb_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let write = |path: &str, text: &str, mode: u32| {
            let path = top.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write(".git/HEAD", "ref: refs/heads/main\n", 0o644);
        let found = || {
            let lines = ["git commit -m x", "git checkout b", "git push", "git merge b", "git status", "ls"];
            lines.into_iter().filter(|line| starts_others(line, &top)).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(found(), "", "none is there");
        write(".git/hooks/pre-commit.sample", "#!/bin/sh\n", 0o755);
        write(".git/hooks/pre-commit", "#!/bin/sh\n", 0o644);
        assert_eq!(found(), "", "none can be run");
        write(".git/hooks/pre-commit", "#!/bin/sh\n", 0o755);
        assert_eq!(found(), "git commit -m x, git merge b");
        let elsewhere =
            [format!("git -C {0} commit -m x", top.display()), format!("cd {0} && git commit", top.display())];
        elsewhere.iter().for_each(|line| assert!(starts_others(line, Path::new("/")), "{line}"));
        write(".git/hooks/pre-push", "#!/bin/sh\npiton git-door pre-push\n", 0o755);
        assert_eq!(found(), "git commit -m x, git merge b", "piton's own");
        write(".git/hooks/piton-next/pre-push", "#!/bin/sh\n", 0o755);
        assert_eq!(found(), "git commit -m x, git push, git merge b");
        let by_option = format!("git --git-dir={0}/.git --work-tree={0} commit -m x", top.display());
        assert!(starts_others(&by_option, Path::new("/")), "{by_option}");
        write("other/pre-commit", "#!/bin/sh\n", 0o755);
        std::fs::remove_file(top.join(".git/hooks/pre-commit")).unwrap();
        assert!(starts_others("git -c core.hooksPath=other commit -m x", &top));
        assert!(!starts_others("git commit -m x", &top));
        // husky and others name another directory.
        write(".git/config", "[core]\n\thooksPath = .husky\n", 0o644);
        assert_eq!(found(), "");
        write(".husky/post-checkout", "#!/bin/sh\n", 0o755);
        assert_eq!(found(), "git checkout b");
    }
    #[test]
    fn filters_and_scripts_of_packages_count_where_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let write = |path: &str, text: &str| {
            let path = top.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
        };
        let starts = |line: &str| starts_others(line, &top);
        write(".git/HEAD", "ref: refs/heads/main\n");
        write(".gitattributes", "*.bin filter=lfs\n*.c filter=indent\n");
        assert!(!starts("git add a.c"), "no filter is set up");
        write(".git/config", "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process\n");
        assert!(!starts("git add a.c"), "git-lfs is known");
        write(".git/config", "[filter \"indent\"]\n\tclean = indent\n");
        assert!(starts("git add a.c") && starts("git status") && !starts("git log"));

        let installs =
            ["npm ci", "sudo npm install", "npm --prefix web i", "yarn", "pnpm add x", "cd web && bun install"];
        write("package.json", r#"{"scripts": {"build": "tsc"}}"#);
        installs.iter().for_each(|line| assert!(!starts(line), "{line}"));
        write("package.json", r#"{"scripts": {"prepare": "husky"}}"#);
        installs.iter().for_each(|line| assert!(starts(line), "{line}"));
        write("package.json", "\u{feff}{\"scripts\": {\"prepare\": \"husky\"}}");
        assert!(starts("npm ci"), "npm skips the mark");
        write("package.json", &format!("{{{}}}", " ".repeat(1 << 20)));
        assert!(starts("npm ci"), "too large to be read");
        write("package.json", r#"{"scripts": {"prepare": "husky"}}"#);
        for line in ["npm ci --ignore-scripts", "npm view x", "yarn why x", "npm help"] {
            assert!(!starts(line), "{line}");
        }
        assert!(!starts("pip install -e .") && !starts("composer install"));
        write("setup.py", "");
        write("composer.json", r#"{"scripts": {"post-install-cmd": "x"}}"#);
        for line in ["pip install -e .", "python3 -m pip install .", "uv pip install -e .", "composer install"] {
            assert!(starts(line), "{line}");
        }
        assert!(!starts("pip install requests") && !starts("composer install --no-scripts"));
    }
}
