//! Additions to the grammar for `--help`: groups of verbs, examples, and one heading for the options of every verb.

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::context::COMMON;
use super::grammar::Cli;

/// Verbs that `piton --help` lists under one title.
pub(super) struct VerbGroup {
    pub title: &'static str,
    pub verbs: &'static [&'static str],
}

/// The verbs in view, in the order in which a person meets them. All other verbs are hidden.
pub(super) const GROUPS: [VerbGroup; 5] = [
    VerbGroup {
        title: "Everyday",
        verbs: &["list", "show", "diff", "restore", "undo", "redo", "git-undo", "rollback", "find", "checkpoint"],
    },
    VerbGroup {
        title: "Guard",
        verbs: &["init", "install", "uninstall", "run", "watch", "on", "off", "status", "doctor"],
    },
    VerbGroup { title: "Looking closer", verbs: &["classify", "demo"] },
    VerbGroup { title: "Housekeeping", verbs: &["store", "config", "forget", "pin"] },
    VerbGroup { title: "Sharing", verbs: &["git", "push", "fetch"] },
];

/// Returns the grammar with everything that `--help` shows.
pub(super) fn command() -> Command {
    let mut command = Cli::command().disable_help_flag(true).arg(help_flag());
    add_help_flags(&mut command);
    for verb in command.get_subcommands_mut() {
        if let Some(text) = examples(verb.get_name()) {
            *verb = std::mem::take(verb).after_help(text);
        }
    }
    let verbs = grouped(&command);
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}{COMMON}:\n{{options}}");
    command.help_template(template)
}

/// Adds the help flag to all verbs but `git`, which passes it on.
fn add_help_flags(command: &mut Command) {
    for verb in command.get_subcommands_mut().filter(|verb| verb.get_name() != "git") {
        *verb = std::mem::take(verb).arg(help_flag());
        add_help_flags(verb);
    }
}

fn help_flag() -> Arg {
    Arg::new("help").short('h').long("help").action(ArgAction::Help).help("Print help").help_heading(COMMON)
}

/// Returns the list of verbs in their groups.
fn grouped(command: &Command) -> String {
    let names = GROUPS.iter().flat_map(|group| group.verbs);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for group in &GROUPS {
        add_line!(text, "{}:", group.title);
        for name in group.verbs {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            add_line!(text, "  {name:width$}  {}", about.map(ToString::to_string).unwrap_or_default());
        }
        text.push('\n');
    }
    add_line!(text, "`piton help VERB` shows the options of a verb, with examples.\n");
    text
}

/// Returns the examples of a verb as `--help` shows them.
fn examples(verb: &str) -> Option<String> {
    let found = EXAMPLES.iter().find(|examples| examples.verb == verb)?;
    let lines: String = found.lines.iter().map(|line| format!("\n  {line}")).collect();
    Some(format!("Examples:{lines}"))
}

/// Command lines that show how a verb is used. A test runs each of them.
struct Examples {
    verb: &'static str,
    lines: &'static [&'static str],
}

const EXAMPLES: [Examples; 28] = [
    Examples { verb: "list", lines: &["piton list", "piton list --turns", "piton list -n 5 -- src"] },
    Examples { verb: "show", lines: &["piton show", "piton show 1", "piton show 1:src/main.rs"] },
    Examples { verb: "diff", lines: &["piton diff 1", "piton diff 1 2 --stat", "piton diff --turn"] },
    Examples {
        verb: "restore",
        lines: &["piton restore 1 --preview", "piton restore 1 src", "piton restore src/main.rs"],
    },
    Examples { verb: "undo", lines: &["piton undo", "piton undo --preview", "piton undo src/main.rs"] },
    Examples { verb: "redo", lines: &["piton redo", "piton redo --preview"] },
    Examples { verb: "git-undo", lines: &["piton git-undo --list", "piton git-undo --preview"] },
    Examples { verb: "rollback", lines: &["piton rollback 1 --preview", "piton rollback last-success"] },
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
    Examples { verb: "config", lines: &["piton config show", "piton config check"] },
    Examples { verb: "forget", lines: &["piton forget .env --dry-run", "piton forget --continue"] },
    Examples { verb: "pin", lines: &["piton pin 1", "piton pin --remove 1"] },
    Examples { verb: "git", lines: &["piton git log --all", "piton git show --stat"] },
    Examples { verb: "push", lines: &["piton push ../piton.git --dry-run", "piton push ../piton.git"] },
    Examples { verb: "fetch", lines: &["piton fetch ../piton.git", "piton list --remote"] },
];
