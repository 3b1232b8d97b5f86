//! Texts of lists of checkpoints and turns: for each entry a line, and below it the lines of its facts.
//!
//! A terminal and a prompt in an agent client show the same entries, made from a reply of the protocol.

use std::collections::BTreeSet;

use super::print;
use super::report::{Words, shares};
use super::screen::{age, facts, line};
use super::unguarded;
use crate::engine::parts::OUTSIDE;
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage;
use crate::model::effect::Class;
use crate::model::number::Number;
use crate::model::text::{count, cut, fitted, padded, printable, width};
use crate::protocol::{ActionItem, ListItem, ListReply, NotHeld, TurnItem, TurnListReply, Word};

/// The columns of a text in an agent client.
pub(super) const OF_CLIENT: usize = 80;

/// The commands that a line names.
const SHOWN_COMMANDS: usize = 3;

/// Longest such command, in characters.
const SHOWN_COMMAND: usize = 60;

/// The beginning of the record of a command.
const SHELL: &str = "shell: ";

/// Longest part of a prompt, in columns.
const SHOWN_PROMPT: usize = 60;

/// The layout of a list, and the commands that it may name.
pub(super) struct ListLayout {
    pub words: Words,
    /// The columns of the screen; `None` where the output has no width.
    pub columns: Option<usize>,
    /// True if restores, undos and redos in a row share an entry.
    pub folds: bool,
}

/// One entry of a list.
struct ListEntry {
    label: String,
    time: String,
    text: String,
    facts: Vec<String>,
}

impl ListLayout {
    /// Returns the layout in an agent client.
    pub(super) fn of_client(words: Words) -> ListLayout {
        ListLayout { words, columns: Some(OF_CLIENT), folds: true }
    }

    fn entries(&self, entries: &[ListEntry]) -> String {
        let widest = |of: &dyn Fn(&ListEntry) -> usize| entries.iter().map(of).max().unwrap_or(0);
        let labels = widest(&|entry| width(&entry.label));
        let times = widest(&|entry| width(&entry.time));
        let mut text = String::new();
        for entry in entries {
            let label = format!("{}{}", " ".repeat(labels.saturating_sub(width(&entry.label))), entry.label);
            let time = padded(&entry.time, times);
            // Colours take no columns: the text is cut without them.
            let indent = 2 + labels + 2;
            let room = self.columns.map(|columns| columns.saturating_sub(indent + times + 2).max(1));
            add_line!(text, "  {}  {}  {}", print::bold(&label), print::faint(&time), line(&entry.text, room));
            for fact in facts(&entry.facts, indent, self.columns) {
                add_line!(text, "{}", print::faint(&fact));
            }
        }
        text
    }
}

/// Returns a list of checkpoints below a title.
pub(super) fn list(title: &str, listing: &ListReply, layout: &ListLayout) -> String {
    let (rows, total, words) = (&listing.checkpoints, listing.total, &layout.words);
    let mut entries: Vec<ListEntry> = Vec::new();
    let mut folded: Vec<Number> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let is_restore = |row: &ListItem| row.kind.known() == Some(CheckpointKind::PreRestore) && !row.pinned;
        let follows = at.checked_sub(1).and_then(|before| rows.get(before)).is_some_and(is_restore);
        if layout.folds && is_restore(row) && follows {
            folded.push(row.n);
            continue;
        }
        unfold(&mut entries, &mut folded);
        entries.push(checkpoint(row));
    }
    unfold(&mut entries, &mut folded);
    let mut text = format!("{}{}\n\n", unguarded::section(&listing.unguarded), print::bold(title));
    text.push_str(&layout.entries(&entries));
    if rows.len() < total {
        add_line!(text, "  … and {} older ones; to list them, run `piton list -n {total}`", total - rows.len());
    }
    if *words == Words::OUTSIDE {
        add_line!(text, "\n  {:<32}show the contents of checkpoint N", words.diff);
        add_line!(text, "  {:<32}restore a file or a directory", words.file);
    }
    if !words.in_client {
        return text;
    }
    text.push('\n');
    add_line!(text, "  {:<25}restore checkpoint N (`{}` undoes that)", words.restore, words.undo);
    add_line!(text, "  {:<25}show what changed since checkpoint N", words.diff);
    add_line!(text, "  {:<25}restore one file", words.file);
    text
}

/// Adds the numbers of the folded restores to the last entry.
fn unfold(entries: &mut [ListEntry], folded: &mut Vec<Number>) {
    if let (Some(entry), [_, ..]) = (entries.last_mut(), folded.as_slice()) {
        let numbers: Vec<String> = folded.iter().map(Number::to_string).collect();
        entry.facts.push(format!("and {} before it: {}", count(numbers.len() as u64, "restore"), numbers.join(", ")));
    }
    folded.clear();
}

fn checkpoint(row: &ListItem) -> ListEntry {
    let mut facts = Vec::new();
    if row.n == Number::NONE {
        facts.push(printable(row.id.get(..7).unwrap_or(&row.id)));
    }
    facts.extend(losses(&row.actions));
    facts.extend((row.stat.files > 0).then(|| format!("after it {}", print::stat_text(&row.stat))));
    facts.extend(who(row.client.as_deref(), row.prompt.as_deref()));
    facts.extend((row.steps > 0).then(|| count(row.steps as u64, "step")));
    facts.extend(row.pinned.then(|| "pinned".to_owned()));
    // Missing paths are listed below, and every action has targets.
    let is_news = |flag: &&String| match flag.as_str() {
        "not-held" => row.not_held.is_empty(),
        "targeted" => false,
        _ => true,
    };
    facts.extend(row.flags.iter().filter(is_news).map(|flag| printable(flag)));
    facts.extend(not_held(&row.not_held));
    // The line of the reason is there already: of its effects, the class is named.
    let others: Vec<&ActionItem> = row.actions.iter().filter(|action| !row.reason.ends_with(&action.command)).collect();
    let is_named = |class: &&Word<Class>| others.iter().any(|action| action.effects.contains(class));
    let unnamed = row.external.iter().filter(|class| !is_named(class)).map(|class| printable(&class.text()));
    facts.extend(unnamed.map(|class| format!("then {class} (piton cannot undo this)")));
    facts.extend(not_undone(others.iter().copied()));
    ListEntry { label: row.n.to_string(), time: age(&row.time), text: reason(row), facts }
}

/// Names a client and the first words of a prompt.
fn who(client: Option<&str>, prompt: Option<&str>) -> Option<String> {
    let prompt = prompt.map(|prompt| format!("\"{}\"", fitted(&printable(prompt), SHOWN_PROMPT)));
    let parts: Vec<String> = client.map(printable).into_iter().chain(prompt).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Says what sort of loss some actions cause: `deletes, overwrites`.
fn losses(actions: &[ActionItem]) -> Option<String> {
    let classes = actions.iter().flat_map(|action| &action.effects).filter_map(Word::known);
    let words: BTreeSet<(Class, &str)> = classes.filter_map(|class| Some((class, loss(class)?))).collect();
    let words: Vec<&str> = words.into_iter().map(|(_, word)| word).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Says in a word what an effect does to files; `None` for one that takes nothing away.
fn loss(class: Class) -> Option<&'static str> {
    match class {
        Class::FileDelete => Some("deletes"),
        Class::FileOverwrite => Some("overwrites"),
        Class::FileMove => Some("moves"),
        Class::FilePerm => Some("changes modes"),
        Class::VcsDiscard => Some("discards changes"),
        Class::VcsHistory => Some("changes git's history"),
        Class::ExecOpaque => Some("runs a program"),
        _ => None,
    }
}

/// Returns the reason of a checkpoint, and the commands after it that destroyed files: `before npm test; then rm -rf src`.
fn reason(row: &ListItem) -> String {
    let mut text = printable(&row.reason.replacen(SHELL, "", 1));
    // Edits by a client's own tools are the work itself.
    let lossy = row.actions.iter().filter(|action| action.lost.is_none_or(|lost| lost > 0));
    let is_new = |action: &&ActionItem| action.command.starts_with(SHELL) && !row.reason.ends_with(&action.command);
    let commands = commands(lossy.filter(is_new));
    if !commands.is_empty() {
        text.push_str(&format!("; then {commands}"));
    }
    text
}

/// Names the commands of some actions, each once.
fn commands<'a>(actions: impl Iterator<Item = &'a ActionItem>) -> String {
    let mut named: Vec<String> = Vec::new();
    for action in actions {
        let command = action.command.strip_prefix(SHELL).unwrap_or(&action.command);
        let command = cut(&printable(command), SHOWN_COMMAND);
        if !named.contains(&command) {
            named.push(command);
        }
    }
    let more = named.len().saturating_sub(SHOWN_COMMANDS);
    named.truncate(SHOWN_COMMANDS);
    named.extend((more > 0).then(|| format!("and {more} more")));
    named.join("; ")
}

/// Names the paths that a checkpoint does not have: `not saved: cache (30 MB), vendor/.git`.
fn not_held(gaps: &[NotHeld]) -> Option<String> {
    coverage::not_held(gaps.iter().map(|gap| (gap.item.shown(), gap.weight())))
}

/// Returns a list of turns.
pub(super) fn turns(listing: &TurnListReply, layout: &ListLayout) -> String {
    let (unguarded, words) = (unguarded::section(&listing.unguarded), &layout.words);
    if listing.turns.is_empty() {
        return format!("{unguarded}No agent's turn has changed files here since piton began to record turns.\n");
    }
    let mut text = format!("{unguarded}{}\n\n", print::bold("Turns that changed files, newest first"));
    let entries: Vec<ListEntry> = listing.turns.iter().map(turn).collect();
    text.push_str(&layout.entries(&entries));
    if words.in_client {
        add_line!(text, "\n  {:<25}undo the newest turn (`{}` redoes it)", words.undo, words.redo);
        add_line!(text, "  {:<25}show what a turn changed (in a terminal)", "piton diff --turn TURN");
    }
    text
}

fn turn(turn: &TurnItem) -> ListEntry {
    let name = match &turn.prompt {
        Some(prompt) => format!("\"{}\"", printable(prompt)),
        None => printable(&turn.turn),
    };
    let destroys = |action: &&ActionItem| action.lost.is_none_or(|lost| lost > 0);
    let ran = commands(turn.actions.iter().filter(destroys));
    let mut facts: Vec<String> = (!ran.is_empty()).then_some(ran).into_iter().collect();
    facts.push(shares(&turn.shares));
    facts.extend(losses(&turn.actions));
    facts.push(match &turn.client {
        Some(client) => format!("{}, run {}", printable(client), printable(&turn.run)),
        None => format!("run {}", printable(&turn.run)),
    });
    facts.extend(turn.open.then(|| "open".to_owned()));
    facts.extend(turn.interrupted.then(|| "interrupted".to_owned()));
    facts.extend(turn.undone.then(|| match turn.stayed {
        0 => "undone".to_owned(),
        stayed => format!("undone, except {stayed}"),
    }));
    let place = |root: &String| match root.as_str() {
        OUTSIDE => "outside every workspace".to_owned(),
        root => format!("in {}", printable(root)),
    };
    let others: Vec<String> = turn.others.iter().map(place).collect();
    facts.extend((!others.is_empty()).then(|| format!("also {}", others.join(", "))));
    facts.extend(not_undone(turn.actions.iter()));
    ListEntry { label: printable(&turn.operation), time: age(&turn.ended), text: name, facts }
}

/// Names the commands with effects that no restore of files undoes.
fn not_undone<'a>(actions: impl Iterator<Item = &'a ActionItem>) -> Option<String> {
    let is_external = |class: &Word<Class>| class.known().is_some_and(Class::is_external);
    let commands = commands(actions.filter(|action| action.effects.iter().any(is_external)));
    (!commands.is_empty()).then(|| format!("then {commands} (piton cannot undo this)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::StatBlock;

    fn action(command: &str, effects: &[Class], lost: usize) -> ActionItem {
        let effects = effects.iter().map(|class| Word::Known(*class)).collect();
        ActionItem { command: command.to_owned(), effects, lost: Some(lost), ..ActionItem::default() }
    }

    fn row(n: u64, kind: CheckpointKind, reason: &str) -> ListItem {
        ListItem { n: Number::of(n), kind: kind.into(), reason: reason.to_owned(), ..ListItem::default() }
    }

    #[test]
    fn a_list_fits_the_screen() {
        let mut removal = row(3, CheckpointKind::Auto, "before shell: npm test");
        removal.actions = vec![
            action("shell: rm -rf src", &[Class::FileDelete], 3),
            action("tool: Edit a", &[Class::FileOverwrite], 1),
        ];
        removal.stat = StatBlock { files: 3, plus: 0, minus: 150, cut: false };
        removal.client = Some("claude-code".to_owned());
        removal.prompt = Some("Tidy the sources up \u{1b}[2J".to_owned());
        removal.external = vec![Word::Known(Class::Database)];
        let restore = |n| row(n, CheckpointKind::PreRestore, "before restore to checkpoint 3");
        let listing = ListReply {
            total: 9,
            checkpoints: vec![restore(6), restore(5), restore(4), removal, row(2, CheckpointKind::Manual, "日本語")],
            ..ListReply::default()
        };
        for columns in [60, 80, 120] {
            let layout = ListLayout { words: Words::TERMINAL, columns: Some(columns), folds: true };
            let text = list("Checkpoints", &listing, &layout);
            assert!(text.lines().all(|line| width(line) <= columns), "{columns}: {text}");
            let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for words in [
                "before npm test; then rm -rf",
                "deletes, overwrites · after it 3 files, +0/-150",
                "claude-code \"Tidy the sources up",
                "then database (piton cannot undo this)",
                "and 2 restores before it: 5, 4",
                "and 4 older ones",
            ] {
                assert!(said.contains(words), "{columns}: {words}: {text}");
            }
            assert!(!text.contains('\u{1b}') && !said.contains("then tool"), "{text}");
        }
        let layout = ListLayout { words: Words::TERMINAL, columns: None, folds: false };
        assert_eq!(list("Checkpoints", &listing, &layout).matches("before restore to").count(), 3);
    }

    #[test]
    fn a_row_names_the_line_with_an_effect_unless_it_is_that_of_its_reason() {
        let mut one = row(1, CheckpointKind::Auto, "before shell: rm a; psql -c x");
        one.actions = vec![
            action("shell: rm a; psql -c x", &[Class::FileDelete, Class::Database], 1),
            action("shell: git push -f", &[Class::VcsRemote], 0),
        ];
        one.external = vec![Word::Known(Class::Database), Word::Known(Class::VcsRemote)];
        let facts = checkpoint(&one).facts;
        let warned: Vec<&String> = facts.iter().filter(|fact| fact.contains("cannot undo")).collect();
        let expected = ["then database (piton cannot undo this)", "then git push -f (piton cannot undo this)"];
        assert_eq!(warned, expected);
    }

    #[test]
    fn a_turn_names_its_commands_and_what_files_cannot_undo() {
        let one = TurnItem {
            operation: "t-1".to_owned(),
            turn: "p".to_owned(),
            client: Some("codex".to_owned()),
            run: "r".to_owned(),
            actions: vec![
                action("shell: rm a", &[Class::FileDelete], 1),
                action("shell: ls", &[], 0),
                action("shell: psql -c x", &[Class::Database], 0),
            ],
            ..TurnItem::default()
        };
        let listing = TurnListReply { turns: vec![one], unguarded: Vec::new() };
        let text = turns(&listing, &ListLayout { words: Words::TERMINAL, columns: None, folds: true });
        let expected = "rm a · 0 paths · deletes · codex, run r · then psql -c x (piton cannot undo this)\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
