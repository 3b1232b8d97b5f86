//! The command line of a git process: its verb, and the words behind that. Pure.

use super::quiet;

/// Verbs that write into the work tree or the index, and that a person may want to take back as a whole.
const REWRITES: &[&str] =
    &["am", "cherry-pick", "merge", "pull", "rebase", "reset", "restore", "revert", "rm", "stash"];

/// Options of `status` that decide on nothing but its form.
const PLAIN: &[&str] = &[
    "--ahead-behind",
    "--branch",
    "--column",
    "--long",
    "--no-ahead-behind",
    "--no-column",
    "--no-renames",
    "--null",
    "--renames",
    "--short",
    "--show-stash",
    "--verbose",
    "-b",
    "-s",
    "-sb",
    "-v",
    "-vv",
    "-z",
];

/// Further verbs that run other gits.
const PARTED: &[&str] = &["bisect", "filter-branch", "subtree"];

/// Verbs that write into the repository, and never into the work tree.
const KEEPS_FILES: &[&str] =
    &["", "add", "config", "hash-object", "help", "init", "ls-remote", "remote", "stage", "var"];

/// The files that a command writes into the work tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesWritten {
    /// It writes and removes none.
    None,
    /// It may write and remove some. Each one that the index then has is as git has written or seen it, and it makes no other one.
    AsIndexed,
    /// As [`FilesWritten::AsIndexed`], if it leaves no operation in progress (a conflict).
    AsIndexedOnceDone,
    /// It may write any.
    Any,
}

/// The command line of a git.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitLine {
    /// The verb; empty where there is none (`--version`).
    pub verb: String,
    /// The words behind the verb.
    pub arguments: Vec<String>,
    /// The values of `-C`, in their order.
    pub dirs: Vec<String>,
    /// True if it has settings of its own (`-c`, `--config-env`).
    pub has_settings: bool,
    /// The values of `-c`, in their order.
    pub settings: Vec<String>,
    /// The value of `--git-dir`.
    pub git_dir: Option<String>,
}

/// Reads the words of a process; `None` if it is no git.
pub fn read(words: &[String]) -> Option<GitLine> {
    let mut line = GitLine::default();
    let (verb, arguments) = quiet::parts(words.iter().map(String::as_str), |option, value| {
        let (option, value) = match option.split_once('=') {
            Some((option, "")) => (option, None),
            Some((option, value)) => (option, Some(value)),
            None => (option, value),
        };
        line.has_settings |= matches!(option, "-c" | "--config-env");
        match (option, value.map(str::to_owned)) {
            ("-C", value) => line.dirs.extend(value),
            ("-c", value) => line.settings.extend(value),
            ("--git-dir", value) => line.git_dir = value,
            _ => {}
        }
    })?;
    (line.verb, line.arguments) = (verb.to_owned(), arguments.map(str::to_owned).collect());
    Some(line)
}

/// Programs that run the command that follows them.
const WRAPPERS: &[&str] = &[
    "builtin", "command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo", "time",
    "timeout", "xargs",
];

/// Reads the words of a command that may run a git by another program (`sudo git push`); `None` if it runs none.
pub fn within(words: &[String]) -> Option<GitLine> {
    read(unwrapped(words, &|word| read(std::slice::from_ref(word)).is_some())?)
}

/// Returns the words of a command from its program on, which another program may start (`sudo npm ci`). `is_program` says which words
/// are names of the program; `None` if there is no such word behind a program that starts others.
pub fn unwrapped<'w>(words: &'w [String], is_program: &dyn Fn(&String) -> bool) -> Option<&'w [String]> {
    let first = words.first()?.rsplit('/').next().unwrap_or_default();
    let at = if WRAPPERS.contains(&first) { words.iter().position(is_program)? } else { 0 };
    Some(&words[at..])
}

impl GitLine {
    /// Returns true if it certainly destroys nothing: neither files nor what a ref names.
    pub fn is_quiet(&self) -> bool {
        quiet::is_quiet(&self.verb, self.arguments.iter().map(String::as_str))
    }

    /// Returns true if, quiet as it is, the configuration says too which refs it moves.
    pub fn moves_by_settings(&self) -> bool {
        quiet::moves_by_settings(&self.verb)
    }

    /// Returns true if its verb moves no ref and changes no work tree.
    pub fn is_reading(&self) -> bool {
        quiet::is_reading(&self.verb)
    }

    /// Returns true if git certainly looks for untracked files in the whole work tree, in the way that its cache of them knows.
    pub fn looks_everywhere(&self) -> bool {
        let is_plain = |word: &String| {
            word.starts_with("--porcelain") || word.starts_with("--find-renames") || PLAIN.contains(&word.as_str())
        };
        self.verb == "status" && !self.has_settings && self.arguments.iter().all(is_plain)
    }

    /// Returns true if it writes into the work tree in a way that is worth a checkpoint, also where nothing is lost by it.
    pub fn rewrites(&self) -> bool {
        let lists = self.verb == "stash" && matches!(self.arguments.first().map(String::as_str), Some("list" | "show"));
        REWRITES.contains(&self.verb.as_str()) && !lists
    }

    /// Returns what it writes into the work tree. Programs that it runs on the way (hooks) are not counted.
    pub fn writes(&self) -> FilesWritten {
        let has = |names: &[&str]| {
            // git takes an option by any beginning of its name that is no other's.
            let is_one = |word: &String| word.len() > 2 && names.iter().any(|name| name.starts_with(word.as_str()));
            self.arguments.iter().any(|word| is_one(word) || (word.len() == 2 && names.contains(&word.as_str())))
        };
        let first = self.arguments.first().map_or("", String::as_str);
        match self.verb.as_str() {
            "branch" | "commit" | "fetch" | "gc" | "notes" | "pack-refs" | "prune" | "push" | "reflog" | "replace"
            | "symbolic-ref" | "tag" | "update-ref" => FilesWritten::None,
            "stash" if matches!(first, "clear" | "create" | "drop" | "list" | "show" | "store") => FilesWritten::None,
            "stash" if first.is_empty() || first.starts_with('-') || matches!(first, "push" | "save") => {
                FilesWritten::AsIndexed
            }
            "reset" if has(&["-p", "--patch"]) => FilesWritten::Any,
            "reset" if has(&["--hard", "--keep", "--merge"]) => FilesWritten::AsIndexed,
            "reset" => FilesWritten::None,
            "clean" => FilesWritten::AsIndexed,
            "am" | "cherry-pick" | "merge" | "pull" | "rebase" | "revert" => FilesWritten::AsIndexedOnceDone,
            "checkout" | "switch" if !has(&["-m", "--merge", "-p", "--patch", "--conflict"]) => FilesWritten::AsIndexed,
            _ => FilesWritten::Any,
        }
    }

    /// Returns true if it may write or remove files of the work tree.
    pub fn may_write_files(&self) -> bool {
        !self.is_reading() && !KEEPS_FILES.contains(&self.verb.as_str()) && self.writes() != FilesWritten::None
    }

    /// Returns true if other gits that it runs are parts of it: what they do is told and taken back as one.
    pub fn has_parts(&self) -> bool {
        self.rewrites() || PARTED.contains(&self.verb.as_str())
    }

    /// Returns true for one whose gits act in a work tree that it has just made.
    pub fn makes_work_tree(&self) -> bool {
        self.verb == "worktree"
    }

    /// Returns its verb and the words behind it, for people.
    pub fn shown(&self) -> String {
        std::iter::once(self.verb.as_str())
            .chain(self.arguments.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<GitLine> {
        read(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_verb_is_found_behind_options() {
        for (text, shown, dirs) in [
            ("git reset --hard HEAD~1", "reset --hard HEAD~1", &[][..]),
            ("/usr/lib/git-core/git -C a -c x.y=z -C b --no-pager checkout -f", "checkout -f", &["a", "b"]),
            ("git --git-dir /x/.git --work-tree=/x clean -fdx", "clean -fdx", &[]),
            ("/usr/lib/git-core/git-stash drop", "stash drop", &[]),
            ("git --version", "", &[]),
        ] {
            let line = line(text).unwrap();
            assert_eq!(
                (line.shown().as_str(), line.dirs.as_slice()),
                (shown, dirs.iter().map(|dir| (*dir).to_owned()).collect::<Vec<_>>().as_slice())
            );
        }
        assert_eq!((line("vim -c reset"), line("gitk --all")), (None, None));
    }

    #[test]
    fn a_git_that_another_program_runs_is_found() {
        for (text, verb) in [
            ("git push", Some("push")),
            ("sudo -u x git stash pop", Some("stash")),
            ("/usr/bin/env A=b git -C x push", Some("push")),
            ("timeout 5 git-stash", Some("stash")),
            ("echo git push", None),
            ("sudo make", None),
        ] {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(within(&words).map(|line| line.verb).as_deref(), verb, "{text}");
        }
    }

    #[test]
    fn the_verb_and_its_options_tell_which_files_are_written() {
        for (text, expected) in [
            ("git branch -D x", FilesWritten::None),
            ("git commit --amend", FilesWritten::None),
            ("git reset --soft HEAD~1", FilesWritten::None),
            ("git reset HEAD~1", FilesWritten::None),
            ("git stash drop", FilesWritten::None),
            ("git reset --hard", FilesWritten::AsIndexed),
            ("git reset --ha", FilesWritten::AsIndexed),
            ("git checkout -f", FilesWritten::AsIndexed),
            ("git stash", FilesWritten::AsIndexed),
            ("git stash -u", FilesWritten::AsIndexed),
            ("git clean -fdx", FilesWritten::AsIndexed),
            ("git reset -p", FilesWritten::Any),
            ("git checkout -m other", FilesWritten::Any),
            ("git stash pop", FilesWritten::Any),
            ("git merge x", FilesWritten::AsIndexedOnceDone),
            ("git restore -s HEAD~1 f", FilesWritten::Any),
        ] {
            assert_eq!(line(text).unwrap().writes(), expected, "{text}");
        }
    }

    #[test]
    fn quiet_lines_destroy_nothing() {
        for text in [
            "git status -s",
            "git commit -m x",
            "git add -A",
            "git fetch -p",
            "git commit --am-i-an-option",
            "git fetch",
            "git fetch origin main",
            "git fetch --all --prune --tags",
            "git fetch -f",
            "git fetch --force origin",
            "git push",
            "git push origin main",
            "git push -f origin +main:other",
        ] {
            assert!(line(text).unwrap().is_quiet(), "{text}");
        }
        for text in ["git checkout -q -b x", "git switch -c x", "git switch --create x -q", "git branch x"] {
            assert!(line(text).unwrap().is_quiet(), "{text}");
        }
        for text in [
            "git commit --amend",
            "git diff --output=src/main.rs",
            "git archive -osrc.tar HEAD",
            "git commit -q --ame -m x",
            "git reset",
            "git stash",
            "git unheard-of",
            "git",
            "git checkout x",
            "git checkout -b x HEAD~1",
            "git checkout -f -b x",
            "git checkout -B x",
            "git checkout -b x --",
            "git switch x",
            "git switch -C x",
            "git branch -D x",
            "git branch -f x",
            "git branch x y",
            "git branch -C x y",
            "git branch --copy --force x y",
            "git fetch . +main:mine",
            "git fetch -f origin tag v1",
            "git fetch . main:mine",
            "git fetch --force x main:mine",
            "git fetch --prune . refs/heads/*:refs/heads/*",
            "git fetch --refmap=+a:b x",
            "git fetch --refmap +a x",
            "git fetch -pP",
            "git fetch --prune --prune-tags",
            "git fetch --prune-t",
            "git fetch --tags --forc",
            "git fetch -ft",
            "git fetch --stdin origin",
            "git push . +main:mine",
            "git push -f ../other HEAD:main",
            "git push --repo=. main",
            "git pull --rebase",
        ] {
            assert!(!line(text).unwrap().is_quiet(), "{text}");
        }
        for (text, looks) in [
            ("git status", true),
            ("git -C x status --porcelain=v2 -z -b", true),
            ("git status .", false),
            ("git status -uno", false),
            ("git status --ignored", false),
            ("git -c status.showUntrackedFiles=no status", false),
            ("git --config-env=a=b status", false),
            ("git add -A", false),
        ] {
            assert_eq!(line(text).unwrap().looks_everywhere(), looks, "{text}");
        }
        assert!(line("git rebase main").unwrap().rewrites() && line("git stash").unwrap().rewrites());
        assert!(!line("git stash list").unwrap().rewrites() && !line("git checkout main").unwrap().rewrites());
    }
}
