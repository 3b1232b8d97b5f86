//! Additions to the grammar for `--help`: groups of verbs, examples, and one heading for the options of every verb.

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::context::COMMON;
use super::grammar::Cli;
use super::on_demand::make_whole;
use super::verbs::{GROUPS, example_lines};

/// Returns the grammar with everything that `--help` shows.
pub(super) fn command() -> Command {
    make_whole();
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
    let lines: String = example_lines(verb)?.iter().map(|line| format!("\n  {line}")).collect();
    Some(format!("Examples:{lines}"))
}
