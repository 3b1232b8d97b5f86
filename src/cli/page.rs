//! The page of all verbs (`docs/CLI.md`), made from the grammar as `--help` and the manual pages are.

use clap::{Arg, Command};

use super::context::COMMON;
use super::verbs::{GROUPS, example_lines};

/// The text above the verbs.
const HEAD: &str = "# Every verb

This page is generated from `piton --help`. For one verb, run `piton help VERB`. If you want something back, the table in
[I lost something](LOST.md) shows which verb and id to use.
";

/// Returns the page: each group of verbs, each verb with its usage, options and examples, then the options of all verbs. `command` is the built grammar with all that `--help` shows.
pub(super) fn page(command: &Command) -> String {
    let mut text = HEAD.to_owned();
    for group in &GROUPS {
        add_line!(text, "\n## {}", group.title);
        for verb in group.verbs.iter().filter_map(|name| command.find_subcommand(name)) {
            add_verb(&mut text, verb, "###");
        }
    }
    add_line!(text, "\n## {COMMON}\n\n```sh");
    let common = command.get_arguments().filter(|arg| !arg.is_hide_set() && is_common(arg));
    common.for_each(|arg| add_line!(text, "  {}", option(arg)));
    text.push_str("```\n");
    text
}

/// Adds a verb, then the verbs below it that are in view.
fn add_verb(text: &mut String, verb: &Command, heading: &str) {
    let name = verb.get_bin_name().unwrap_or_else(|| verb.get_name());
    add_line!(text, "\n{heading} {name}\n");
    add_line!(text, "{}.\n", verb.get_about().map(ToString::to_string).unwrap_or_default());
    let usage = verb.clone().render_usage().to_string();
    add_line!(text, "```sh\n{}", usage.trim_start_matches("Usage:").trim());
    let own = verb.get_arguments().filter(|arg| !arg.is_hide_set() && !is_common(arg));
    own.for_each(|arg| add_line!(text, "  {}", option(arg)));
    if let Some(examples) = example_lines(verb.get_name()).filter(|_| heading == "###") {
        add_line!(text, "\n{}", examples.join("\n"));
    }
    text.push_str("```\n");
    for below in verb.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_verb(text, below, "####");
    }
}

/// Returns true for an option of every verb.
fn is_common(arg: &Arg) -> bool {
    arg.get_help_heading() == Some(COMMON) || arg.is_global_set()
}

/// Returns the line of an argument: `-y, --yes  Do not ask`.
fn option(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    let takes_value = arg.get_action().takes_values();
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let flags = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let shown = match (flags.is_empty(), takes_value) {
        (true, _) => value,
        (false, true) => format!("{flags} {value}"),
        (false, false) => flags,
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let hides = arg.is_hide_possible_values_set();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| takes_value && !hides)
        .map(|value| value.get_name().to_owned())
        .collect();
    let values = if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) };
    format!("{shown}  {}{values}", help.replace('\n', " "))
}
