//! Command lines of git that certainly destroy nothing. Pure, without the standard library and without an allocation: the small
//! program that git calls as its hook (`hooks/git/hook.rs`) includes this file.

/// Options before the verb that a value follows as the next word.
const VALUED: &[&str] = &[
    "-C",
    "-c",
    "--attr-source",
    "--config-env",
    "--git-dir",
    "--list-cmds",
    "--namespace",
    "--shallow-file",
    "--super-prefix",
    "--work-tree",
];

/// Further verbs that change no file of the work tree, and move refs to nothing but what they make, with any options.
const QUIET: &[&str] =
    &["add", "clone", "fetch-pack", "init", "remote-https", "send-pack", "update-index", "upload-pack", "write-tree"];

/// Verbs that change nothing but a file to which their output may go, and what git keeps about the files in the index.
const READING: &[&str] = &[
    "annotate",
    "archive",
    "blame",
    "cat-file",
    "check-ignore",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "show",
    "status",
];

/// Returns true for a verb that moves no ref and changes no work tree.
pub(super) fn is_reading(verb: &str) -> bool {
    READING.contains(&verb)
}

/// Returns the verb in the words of a process (empty where there is none, as in `git --version`) and the words behind it; `None` if it
/// is no git. `option` gets each option before the verb, with the next word if that is its value.
pub(super) fn parts<'a, W: Iterator<Item = &'a str> + Clone>(
    mut words: W,
    mut option: impl FnMut(&'a str, Option<&'a str>),
) -> Option<(&'a str, W)> {
    let name = words.next()?.rsplit('/').next().unwrap_or_default();
    if let Some(verb) = name.strip_prefix("git-") {
        return Some((verb, words));
    }
    if name != "git" {
        return None;
    }
    while let Some(word) = words.next() {
        if VALUED.contains(&word) {
            option(word, words.next());
        } else if word.starts_with('-') {
            option(word, None);
        } else {
            return Some((word, words));
        }
    }
    Some(("", words))
}

/// Returns true if a verb with these words behind it certainly destroys nothing: neither files nor what a ref names. The refs that
/// `fetch` moves are also for the configuration to say: [`moves_by_settings`].
pub(super) fn is_quiet<'a>(verb: &str, arguments: impl Iterator<Item = &'a str> + Clone) -> bool {
    // git takes an option by any beginning of its name that is no other's.
    let amends = |word: &str| word.starts_with("--am") && "--amend".starts_with(word);
    match verb {
        "commit" => !arguments.clone().any(amends),
        "branch" => makes_branch(&[], arguments),
        "checkout" => makes_branch(&["-b"], arguments),
        "switch" => makes_branch(&["-c", "--create"], arguments),
        "fetch" => !fetches_over(arguments),
        "push" => !pushes_here(arguments),
        verb => (is_reading(verb) || QUIET.contains(&verb)) && !writes_file(verb, arguments),
    }
}

/// Returns true if the output may go to a file that is named, which is written over.
fn writes_file<'a>(verb: &str, mut arguments: impl Iterator<Item = &'a str>) -> bool {
    arguments.any(|word| word.starts_with("--out") || verb == "archive" && word.starts_with("-o"))
}

/// Returns true for a verb of which the configuration says too which refs it moves.
pub(super) fn moves_by_settings(verb: &str) -> bool {
    verb == "fetch"
}

/// Returns true if one branch is made where HEAD is, and nothing else. git refuses a name that is there. `makes` are the options of
/// which one asks for it.
fn makes_branch<'a>(makes: &[&str], arguments: impl Iterator<Item = &'a str> + Clone) -> bool {
    let names = arguments.clone().filter(|word| !word.starts_with('-')).count();
    let mut options = arguments.filter(|word| word.starts_with('-'));
    let is_asked = makes.is_empty() || options.clone().any(|word| makes.contains(&word));
    names == 1 && is_asked && options.all(|word| makes.contains(&word) || matches!(word, "-q" | "--quiet"))
}

/// Returns true if a fetch may move or drop refs other than those of a remote: it names them, or it replaces or clears tags.
fn fetches_over<'a>(mut arguments: impl Iterator<Item = &'a str> + Clone) -> bool {
    let options = arguments.clone().filter(|word| word.starts_with('-'));
    let has = |letter: char, name: &str, shortest: usize| {
        options.clone().any(|word| match word.strip_prefix("--") {
            Some(long) => long.len() >= shortest && name.starts_with(long),
            None => word.contains(letter),
        })
    };
    let is_given = |name: &str| options.clone().any(|word| word.starts_with(name));
    // `tag NAME` is `refs/tags/NAME:refs/tags/NAME`.
    arguments.any(|word| word.contains(':') || word == "tag")
        || has('P', "prune-tags", "prune-".len())
        || has('f', "force", 1) && has('t', "tags", 1)
        || is_given("--refm")
        || is_given("--std")
}

/// Returns true if a push may go into a repository of this machine, as `push . +main:mine` into its own.
fn pushes_here<'a>(mut arguments: impl Iterator<Item = &'a str> + Clone) -> bool {
    arguments.any(|word| word.starts_with(['.', '/', '~']) || word.starts_with("file:") || word.starts_with("--rep"))
}
