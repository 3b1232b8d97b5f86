//! Texts of diffs, previews, restores and undos: one rendering for the terminal and for a prompt in an agent client.
//!
//! Every text is made from a reply of the protocol, because that is all a hook has; the verbs of the terminal render
//! the very same replies. Only [`Words`] differs: the commands that the reader of the text has.

use super::print::{self, stat_text};
use crate::agents::Client;
use crate::checkpoint::history::undo::Direction;
use crate::model::id::short_selector;
use crate::model::line_counts::LineCounts;
use crate::model::number::Number;
use crate::model::text::{count, printable, shell_word};
use crate::protocol::{
    ChangedLists, LeftChanges, List, PreviewReply, RestoreReply, ShareCounts, StepBlock, TurnItem, WarningBlock,
};
use crate::worktree::restore::KeepReason;

/// Paths of one list that are shown before it is cut.
const SHOWN: usize = 20;

/// The width of the words for what happens to a path.
const WORD: usize = 8;

/// The most paths that the line about changes that were left names.
const LEFT_SHOWN: usize = 5;

/// The word for a restore that was done.
pub(super) const RESTORED: &str = "Restored";

/// The word for an undo that was done.
pub(super) const UNDID: &str = "Undid";

/// The word for an undo of some paths of a turn.
pub(super) const UNDID_PART: &str = "Undid part of";

/// The word for a redo that was done.
pub(super) const REDID: &str = "Redid";

/// Says that a restore or undo would change no file.
pub(super) const NOTHING: &str = "Nothing to do.\n";

/// The commands that a text may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) restore: &'static str,
    pub(super) file: &'static str,
    pub(super) diff: &'static str,
    pub(super) undo: &'static str,
    pub(super) redo: &'static str,
    /// True in an agent client: no `--help` explains the commands there.
    pub(super) in_client: bool,
}

impl Words {
    /// Names the verbs of the terminal.
    pub(super) const TERMINAL: Words = Words {
        restore: "piton restore N",
        file: "piton restore N FILE",
        diff: "piton diff N",
        undo: "piton undo",
        redo: "piton redo",
        in_client: false,
    };

    /// Names the verbs for files outside every workspace, which go back only by their names.
    pub(super) const OUTSIDE: Words = Words {
        restore: "",
        file: "piton restore --outside N PATH",
        diff: "piton show --outside N",
        undo: "piton undo --outside",
        redo: "piton redo --outside",
        in_client: false,
    };

    /// Names the commands that an installation gives this client, else the verbs of the terminal.
    pub(super) fn of(client: Client) -> Words {
        let has = |command: &str| client.commands().contains(&command);
        let undo = match (has("undo"), has("rollback")) {
            (true, _) => "/undo",
            (false, true) => "/rollback undo",
            (false, false) => Words::TERMINAL.undo,
        };
        if !has("rollback") {
            return Words { undo, in_client: true, ..Words::TERMINAL };
        }
        Words {
            restore: "/rollback N",
            file: "/rollback N FILE",
            diff: "/rollback diff N",
            undo,
            redo: "/rollback redo",
            in_client: true,
        }
    }
}

/// Says of an effect that no restore undoes it.
fn not_undone(warning: &WarningBlock) -> Option<String> {
    warning.class.as_ref()?;
    let past = warning.past.as_ref();
    let action = past.and_then(|past| past.action.as_ref()).map(|action| format!(" [{}]", printable(action)));
    let when = past.map(|past| format!(" ({})", print::local_time(&past.time))).unwrap_or_default();
    Some(format!("  piton cannot undo: {}{}{when}", printable(&warning.message), action.unwrap_or_default()))
}

/// Says what is no effect.
fn note(warning: &WarningBlock) -> Option<String> {
    warning.class.is_none().then(|| format!("  note: {}", printable(&warning.message)))
}

/// Names the turn or operation that is undone or redone; `word` is `Undo` or `Redo`.
pub(super) fn step(word: &str, over: &StepBlock) -> String {
    let (operation, kind) = (printable(&over.operation), printable(&over.kind.text()));
    if let Some(turn) = &over.turn {
        let client = turn.client.as_deref().map(|client| format!("{}, ", printable(client))).unwrap_or_default();
        let open = if turn.open { ", still open" } else { "" };
        return format!(
            "{word} turn {} ({operation}, {client}run {}, {}{open}): {}\n",
            turn_name(&turn.turn, turn.prompt.as_deref()),
            printable(&turn.run),
            print::local_time(&over.time),
            shares(&turn.shares)
        );
    }
    let moves = over.run.as_ref().map(|run| format!("; this also moves run {}", printable(run))).unwrap_or_default();
    format!("{word} the {kind} of {} ({operation}){moves}\n", print::local_time(&over.time))
}

/// Counts the paths of a turn by its share in them: `3 paths: 2 sure, 1 touched`; `3 paths` where all are sure.
pub(super) fn shares(counts: &ShareCounts) -> String {
    let ShareCounts { sure, likely, touched, shared, unknown, missed } = *counts;
    let named = [(sure, "sure"), (likely, "likely"), (touched, "touched"), (shared, "shared"), (unknown, "unknown")];
    let total: usize = named.iter().map(|(number, _)| number).sum();
    let parts: Vec<String> =
        named.iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}")).collect();
    let mut all = Vec::new();
    if total > 0 || missed == 0 {
        let parts = if sure == total { String::new() } else { format!(": {}", parts.join(", ")) };
        all.push(format!("{}{parts}", count(total as u64, "path")));
    }
    all.extend((missed > 0).then(|| format!("{} not saved", count(missed as u64, "changed path"))));
    all.join("; ")
}

/// Returns the name of a turn in a sentence: the first words of its prompt in quotes, or else the client's name.
pub(super) fn turn_name(turn: &str, prompt: Option<&str>) -> String {
    prompt.map_or_else(|| format!("`{}`", printable(turn)), |prompt| format!("\"{}\"", printable(prompt)))
}

/// Returns the line of one turn.
pub(super) fn turn_title(turn: &TurnItem) -> String {
    let client = turn.client.as_deref().map(|client| format!("{}, ", printable(client))).unwrap_or_default();
    format!(
        "Turn {} ({}, {client}run {}, {}): {}\n",
        turn_name(&turn.turn, turn.prompt.as_deref()),
        printable(&turn.operation),
        printable(&turn.run),
        print::local_time(&turn.ended),
        shares(&turn.shares)
    )
}

/// Renders a preview: a line for each path with what happens to it, then the number of lines, then what files cannot undo.
pub(super) fn preview(preview: &PreviewReply) -> String {
    let (target, plan) = (&preview.target, &preview.plan);
    let mut text = String::new();
    // Of a turn only its own changes are undone, whatever else the checkpoint contains.
    if preview.over.as_ref().is_none_or(|over| over.turn.is_none()) {
        let (time, reason) = (print::local_time(&target.time), printable(&target.reason));
        add_line!(text, "{}", print::bold(&format!("Restore checkpoint {} ({time}, {reason})", target.n)));
    }
    section(&mut text, "restore", &plan.create);
    section(&mut text, "replace", &plan.replace);
    section(&mut text, "delete", &plan.delete);
    section(&mut text, "keep", &plan.keep);
    section(&mut text, "conflict", &plan.conflict);
    if preview.stat.files > 0 {
        add_line!(text, "  {}", stat_text(&preview.stat));
    }
    if plan.delete.total > 0 {
        let back = if preview.over.as_ref().is_some_and(|over| over.kind.text() != "undo") { "redo" } else { "undo" };
        let kept = if preview.over.is_none() { ". To keep them, use `--keep-new`" } else { "" };
        add_line!(text, "  Deleted paths were created later; {back} restores them{kept}.");
    }
    text.push_str(&left(&preview.left));
    text.push_str(&older_version(preview));
    section(&mut text, "edited by others", &preview.outside_edits);
    for line in preview.warnings.iter().filter_map(not_undone) {
        add_line!(text, "{line}");
    }
    for line in preview.warnings.iter().filter_map(note) {
        add_line!(text, "{line}");
    }
    text
}

/// Says that a step would change nothing, and how to go on.
pub(super) fn nothing(preview: &PreviewReply, direction: Direction) -> String {
    let mut text = NOTHING.to_owned();
    if direction == Direction::Redo {
        if preview.over.as_ref().is_some_and(|over| over.turn.is_some()) {
            text.push_str(
                "To redo another turn, find its name with `piton list --turns`, then run `piton redo --turn TURN`.\n",
            );
        }
        return text;
    }
    let Some(turn) = preview.over.as_ref().and_then(|over| over.turn.as_ref()) else { return text };
    let ShareCounts { touched, shared, unknown, .. } = turn.shares;
    if touched + shared + unknown > 0 {
        let operation = preview.over.as_ref().map(|over| printable(&over.operation)).unwrap_or_default();
        add_line!(
            text,
            "Changes that might not be the turn's own are kept. To undo them too, run \
             `piton undo --turn {operation} --include touched,shared,unknown`."
        );
    }
    text.push_str(
        "The next `piton undo` undoes an older turn. To choose a turn listed by `piton list --turns`, run `piton undo --turn TURN`.\n",
    );
    text
}

/// Adds a line for each path of a list: the word for what happens to it, the path, the lines that change in it, and the reason if
/// there is one.
fn section(text: &mut String, word: &str, paths: &List) {
    for item in paths.items.iter().take(SHOWN) {
        let why = item.why.as_ref().map(|why| format!("  ({})", printable(why))).unwrap_or_default();
        let lines = item.lines.map(changed_lines).unwrap_or_default();
        add_line!(text, "  {word:WORD$}  {}{lines}{why}", item.shown());
    }
    if paths.total > SHOWN {
        add_line!(text, "  {word:WORD$}  … and {} more", paths.total - SHOWN);
    }
}

/// Returns the lines of a file that change after two blanks: `  +3 -1`; nothing where no line does.
fn changed_lines(lines: LineCounts) -> String {
    match (lines.plus, lines.minus) {
        (0, 0) => String::new(),
        (plus, 0) => format!("  +{plus}"),
        (0, minus) => format!("  -{minus}"),
        (plus, minus) => format!("  +{plus} -{minus}"),
    }
}

/// Names the changes that an undo leaves, and the command that undoes them too.
pub(super) fn left(left: &LeftChanges) -> String {
    let Some(first) = left.items.first() else { return String::new() };
    let (paths, more) = (left.items.iter().take(LEFT_SHOWN), left.total.saturating_sub(LEFT_SHOWN));
    let names: Vec<String> = paths.map(|item| printable(&item.path)).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "Kept {} that the turn might have changed: {}{more}. To undo them too, run `{}`\n",
        count(left.total as u64, "path"),
        names.join(", "),
        printable(&first.command)
    )
}

/// Names the command for the older version of a file that an undo of a turn keeps because it has changed since.
fn older_version(preview: &PreviewReply) -> String {
    let over = preview.over.as_ref().filter(|over| over.turn.is_some() && over.kind.text() != "undo");
    let since = KeepReason::ChangedSince.to_string();
    let kept = preview.plan.keep.items.iter().find(|item| item.why.as_ref() == Some(&since));
    let Some(kept) = over.and(kept) else { return String::new() };
    let target = &preview.target;
    let checkpoint = if target.n == Number::NONE { short_selector(&target.id) } else { target.n.to_string() };
    let outside = if kept.path.starts_with('/') { " --outside" } else { "" };
    let command = format!("piton restore{outside} {checkpoint} {}", shell_word(&kept.path));
    format!("To restore such a file as it was before the turn, run `{}`\n", printable(&command))
}

/// Counts the files and directories of a list.
fn counted(paths: &List) -> String {
    let files = paths.total - paths.directories.min(paths.total);
    let directories = match paths.directories {
        1 => "1 directory".to_owned(),
        many => format!("{many} directories"),
    };
    match (files, paths.directories) {
        (_, 0) => count(files as u64, "file"),
        (0, _) => directories,
        _ => format!("{} and {directories}", count(files as u64, "file")),
    }
}

/// Lists what a restore has done: `restored 3 files, replaced 1 file`; empty if nothing.
fn changed(done: &ChangedLists) -> String {
    let lists =
        [("restored", &done.created), ("replaced", &done.replaced), ("deleted", &done.deleted), ("kept", &done.kept)];
    let some = lists.iter().filter(|(_, list)| list.total > 0);
    some.map(|(what, list)| format!("{what} {}", counted(list))).collect::<Vec<_>>().join(", ")
}

/// Renders the result of a restore. `verb` is `Restored`, `Undid` and the like; `back` is the command that takes it back.
pub(super) fn outcome(outcome: &RestoreReply, verb: &str, back: &str) -> String {
    let done = &outcome.done;
    let over = outcome.over.as_ref();
    let number = outcome.target.as_ref().map_or(Number::NONE, |target| target.n);
    let what = match (over, over.and_then(|over| over.turn.as_ref())) {
        (_, Some(turn)) => format!("turn {}", turn_name(&turn.turn, turn.prompt.as_deref())),
        (Some(over), None) => format!("the {} of {}", printable(&over.kind.text()), print::local_time(&over.time)),
        // In another workspace of the turn: the line above names it.
        (None, None) if [UNDID, UNDID_PART, REDID].contains(&verb) => "there".to_owned(),
        (None, None) => format!("checkpoint {number}"),
    };
    let did_something = [&done.created, &done.replaced, &done.deleted].iter().any(|list| list.total > 0);
    let only_restored = [&done.replaced, &done.deleted, &done.kept].iter().all(|list| list.total == 0);
    let mut text = match (did_something, done.failed.total) {
        (true, _) if over.is_none() && only_restored && verb == RESTORED => {
            format!("Restored {} from {what}.\n", counted(&done.created))
        }
        (true, _) => format!("{verb} {what}: {}.\n", changed(done)),
        (false, 0) if done.kept.total == 0 => format!("{verb} {what}: no file was changed.\n"),
        (false, 0) => format!("{verb} {what}: no file was changed, {}.\n", changed(done)),
        (false, _) => format!("No file was changed: {what}.\n"),
    };
    text.push_str(&left(&outcome.left));
    for item in done.failed.items.iter().take(SHOWN) {
        let why = item.why.as_deref().unwrap_or_default();
        add_line!(text, "  not changed: {}  ({})", item.shown(), printable(why));
    }
    if done.failed.total > SHOWN {
        add_line!(text, "  … and {} more that were not changed", done.failed.total - SHOWN);
    }
    section(&mut text, "skipped", &done.not_agreed);
    for line in outcome.warnings.iter().filter_map(not_undone) {
        add_line!(text, "{line}");
    }
    if outcome.operation.is_some() && did_something {
        add_line!(text, "To reverse this: `{back}`");
    }
    text
}

/// Renders the answer to a prompt: the preview, the result, and later warnings.
pub(super) fn answer(before: &PreviewReply, after: &RestoreReply, verb: &str, back: &str) -> String {
    let mut text = preview(before);
    if after.operation.is_none() && before.changes_nothing() {
        text.push_str(NOTHING);
        return text;
    }
    let done = outcome(after, verb, back);
    // Lines of the preview are not repeated.
    for line in done.lines().filter(|line| !text.lines().any(|said| said == *line)).collect::<Vec<_>>() {
        add_line!(text, "{line}");
    }
    for line in after.warnings.iter().filter_map(note) {
        if !text.lines().any(|said| said == line) {
            add_line!(text, "{line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::lists::{self, ListLayout};
    use crate::model::effect::{Class, Severity};
    use crate::protocol::{ListReply, PastEffect, PathItem, PlanLists, StatBlock, TargetBlock};

    #[test]
    fn only_commands_that_a_client_has_are_named() {
        for client in Client::ALL {
            let (words, commands) = (Words::of(client), client.commands());
            let named = [words.restore, words.file, words.diff, words.undo, words.redo];
            for word in named.iter().filter_map(|word| word.strip_prefix('/')) {
                let command = word.split(' ').next().unwrap_or_default();
                assert!(commands.contains(&command), "{}: /{word}", client.name());
            }
            let text = lists::list("Checkpoints", &ListReply::default(), &ListLayout::of_client(words));
            assert_eq!(text.contains("/undo`"), commands.contains(&"undo"), "{}: {text}", client.name());
        }
    }

    #[test]
    fn an_answer_says_everything_once_and_offers_an_undo_only_where_something_was_done() {
        let time = || "2026-01-01T00:00:00.000Z".to_owned();
        let effect = WarningBlock {
            class: Some(Class::Database.into()),
            severity: Severity::High.into(),
            past: Some(PastEffect { action: Some("shell: psql -c x".into()), time: time() }),
            ..WarningBlock::plain("external-database", "`psql` might change a database".into())
        };
        let plain = |text: &str| WarningBlock::plain("incomplete", text.to_owned());
        let target = TargetBlock { n: Number::of(5), time: time(), reason: "r".into(), ..TargetBlock::default() };
        let some =
            List { total: 1, directories: 0, items: vec![PathItem { path: "a\u{1b}".into(), ..PathItem::default() }] };
        let before = PreviewReply {
            target: target.clone(),
            plan: PlanLists { create: some.clone(), ..PlanLists::default() },
            stat: StatBlock { files: 1, plus: 2, minus: 0, cut: false },
            warnings: vec![effect.clone(), plain("left out")],
            ..PreviewReply::default()
        };
        let after = RestoreReply {
            operation: Some("o-1".into()),
            target: Some(target.clone()),
            done: ChangedLists { created: some.clone(), ..ChangedLists::default() },
            warnings: vec![effect, plain("left out"), plain("late")],
            ..RestoreReply::default()
        };
        let said = answer(&before, &after, RESTORED, "/undo");
        for line in ["  restore   \"a\\033\"\n", "  1 file, +2/-0\n", "[shell: psql -c x]", "left out", "note: late"] {
            assert_eq!(said.matches(line).count(), 1, "{line}: {said}");
        }
        assert!(said.contains("Restored 1 file from checkpoint 5.\n") && said.contains("To reverse this: `/undo`\n"));
        let plan = PlanLists { keep: some, ..PlanLists::default() };
        let nothing = PreviewReply { target, plan, ..PreviewReply::default() };
        let said = answer(&nothing, &RestoreReply::default(), RESTORED, "/undo");
        assert!(said.ends_with("Nothing to do.\n") && !said.contains("undo"), "{said}");
    }
}
