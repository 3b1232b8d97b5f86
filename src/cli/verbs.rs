//! The verbs in view, in groups, and examples of each.

/// Verbs that `piton --help` lists under one title.
pub(super) struct VerbGroup {
    pub title: &'static str,
    pub verbs: &'static [&'static str],
}

/// The verbs in view, in the order in which a person meets them. All other verbs are hidden.
pub(super) const GROUPS: [VerbGroup; 5] = [
    VerbGroup { title: "Everyday", verbs: &["list", "show", "diff", "restore", "undo", "redo", "find", "checkpoint"] },
    VerbGroup {
        title: "Guard",
        verbs: &["init", "install", "uninstall", "run", "watch", "on", "off", "status", "doctor"],
    },
    VerbGroup { title: "Looking closer", verbs: &["classify", "demo"] },
    VerbGroup { title: "Housekeeping", verbs: &["store", "config", "forget", "pin"] },
    VerbGroup { title: "Sharing", verbs: &["git", "push", "fetch"] },
];

/// Command lines that show how a verb is used. A test runs each of them.
struct Examples {
    verb: &'static str,
    lines: &'static [&'static str],
}

const EXAMPLES: [Examples; 26] = [
    Examples {
        verb: "list",
        lines: &["piton list", "piton list --turns", "piton list --git", "piton list -n 5 -- src"],
    },
    Examples { verb: "show", lines: &["piton show", "piton show 1", "piton show 1:src/main.rs"] },
    Examples { verb: "diff", lines: &["piton diff 1", "piton diff 1 2 --stat", "piton diff --turn"] },
    Examples {
        verb: "restore",
        lines: &[
            "piton restore 1 --preview",
            "piton restore 1 src",
            "piton restore 1 'src/**/*.rs' --except '*_test.rs'",
            "piton restore src/main.rs",
            "piton restore --run local --to last-success",
        ],
    },
    Examples {
        verb: "undo",
        lines: &["piton undo", "piton undo --preview", "piton undo src/main.rs", "piton undo --git --preview"],
    },
    Examples { verb: "redo", lines: &["piton redo", "piton redo --preview"] },
    Examples { verb: "find", lines: &["piton find src/main.rs", "piton find '*.rs' --since 2h"] },
    Examples { verb: "checkpoint", lines: &["piton checkpoint", "piton checkpoint 'before the move' --pin"] },
    Examples { verb: "init", lines: &["piton init --yes", "piton init bash"] },
    Examples {
        verb: "install",
        lines: &["piton install --all --dry-run", "piton install claude-code bash", "piton install git --yes"],
    },
    Examples {
        verb: "uninstall",
        lines: &["piton uninstall claude-code --dry-run", "piton uninstall --all --dry-run"],
    },
    Examples { verb: "run", lines: &["piton run -- aider", "piton run --name tidy-up -- aider --yes"] },
    Examples { verb: "watch", lines: &["piton watch", "piton watch ~/notes ~/drafts"] },
    Examples { verb: "on", lines: &["piton on", "piton on --workspace ."] },
    Examples { verb: "off", lines: &["piton off --for 1h", "piton off"] },
    Examples { verb: "status", lines: &["piton status", "piton status --json"] },
    Examples { verb: "doctor", lines: &["piton doctor", "piton doctor --refs"] },
    Examples {
        verb: "classify",
        lines: &["piton classify 'rm -rf build'", "echo 'git push --force' | piton classify --stdin"],
    },
    Examples { verb: "demo", lines: &["piton demo", "piton demo --keep"] },
    Examples { verb: "store", lines: &["piton store status", "piton store prune --dry-run", "piton store delete 1"] },
    Examples {
        verb: "config",
        lines: &["piton config show", "piton config explain retention.days", "piton config set guard action"],
    },
    Examples { verb: "forget", lines: &["piton forget .env --dry-run", "piton forget --continue"] },
    Examples { verb: "pin", lines: &["piton pin 1", "piton pin --remove 1"] },
    Examples { verb: "git", lines: &["piton git log --all", "piton git show --stat"] },
    Examples { verb: "push", lines: &["piton push ../piton.git --dry-run", "piton push ../piton.git"] },
    Examples { verb: "fetch", lines: &["piton fetch ../piton.git", "piton list --remote"] },
];

/// Returns the command lines that show how a verb is used.
pub(super) fn example_lines(verb: &str) -> Option<&'static [&'static str]> {
    EXAMPLES.iter().find(|examples| examples.verb == verb).map(|found| found.lines)
}
