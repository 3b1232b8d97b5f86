//! Texts of lists, diffs, previews, restores and undos: one rendering for the terminal and for a prompt in an agent client.
//!
//! Every text is made from a reply of the protocol, because that is all a hook has; the verbs of the terminal render
//! the very same replies. Only [`Words`] differs: the commands that the reader of the text has.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::print::{self, stat_text};
use crate::agents::Client;
use crate::checkpoint::catalog::diff::Stat;
use crate::error::{Code, Error, Result};
use crate::model::coverage::{self, Weight};
use crate::model::text::printable;

/// Paths of one list that are shown before it is cut.
const SHOWN: usize = 20;

/// Says that a restore or undo would change no file.
pub(super) const NOTHING: &str = "Nothing to do.\n";

/// The commands that a text may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    restore: &'static str,
    file: &'static str,
    diff: &'static str,
    undo: &'static str,
    /// True if a restore asks before it changes anything.
    asks: bool,
}

impl Words {
    /// Names the verbs of the terminal.
    pub(super) const TERMINAL: Words = Words {
        restore: "piton restore N",
        file: "piton restore N FILE",
        diff: "piton diff N",
        undo: "piton undo",
        asks: true,
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
            return Words { undo, ..Words::TERMINAL };
        }
        Words { restore: "/rollback N", file: "/rollback N FILE", diff: "/rollback diff N", undo, asks: false }
    }

    /// The command that takes a restore back.
    pub(super) fn undo(&self) -> &'static str {
        self.undo
    }
}

/// A path of a list, and why it is there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListedPath {
    path: String,
    why: Option<String>,
}

/// A list that may be cut.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Paths {
    total: usize,
    items: Vec<ListedPath>,
}

impl Paths {
    /// The first path, if there is one.
    pub(super) fn first(&self) -> Option<&str> {
        self.items.first().map(|item| item.path.as_str())
    }
}

/// The checkpoint that a restore goes back to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RestoreTarget {
    pub n: u64,
    time: String,
    reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RestorePlan {
    digest: Option<String>,
    create: Paths,
    replace: Paths,
    delete: Paths,
    keep: Paths,
    conflict: Paths,
}

/// Files and lines.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Lines {
    pub files: u64,
    plus: u64,
    minus: u64,
    cut: bool,
}

impl Lines {
    fn text(self) -> String {
        stat_text(&Stat { files: self.files, plus: self.plus, minus: self.minus, cut: self.cut })
    }
}

/// Something that the reader should know; with a class it is an effect that no restore undoes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Warning {
    class: Option<String>,
    message: String,
    /// The action that had the effect.
    action: Option<String>,
    time: Option<String>,
}

impl Warning {
    fn not_undone(&self) -> Option<String> {
        self.class.as_ref()?;
        let action = self.action.as_ref().map(|action| format!(" [{}]", printable(action))).unwrap_or_default();
        let when = self.time.as_ref().map(|time| format!(" ({})", print::local_time(time))).unwrap_or_default();
        Some(format!("  NOT UNDONE: {}{action}{when}", printable(&self.message)))
    }

    fn note(&self) -> Option<String> {
        self.class.is_none().then(|| format!("  note: {}", printable(&self.message)))
    }
}

/// The operation that an undo or redo steps over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Over {
    pub operation: String,
    kind: String,
    time: String,
    /// The run that moves with it.
    run: Option<String>,
}

/// The reply to a preview.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Preview {
    pub target: RestoreTarget,
    plan: RestorePlan,
    stat: Lines,
    warnings: Vec<Warning>,
    pub unheld: Paths,
    /// `None` where there is nothing to step over.
    pub over: Option<Over>,
    /// Holds the sentence for a reply without a plan.
    pub message: Option<String>,
}

impl Preview {
    /// The name of the plan, by which exactly this plan is asked for.
    pub(super) fn digest(&self) -> Option<&str> {
        self.plan.digest.as_deref()
    }

    /// True if going on would change no file.
    pub(super) fn changes_nothing(&self) -> bool {
        [&self.plan.create, &self.plan.replace, &self.plan.delete].iter().all(|list| list.total == 0)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChangedPaths {
    created: Paths,
    replaced: Paths,
    deleted: Paths,
    kept: Paths,
    failed: Paths,
    not_agreed: Paths,
}

/// The reply to a restore, a rollback, an undo or a redo.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RestoreReply {
    /// `None`: nothing was changed.
    pub operation: Option<String>,
    target: Option<RestoreTarget>,
    done: ChangedPaths,
    warnings: Vec<Warning>,
}

/// One checkpoint of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListedCheckpoint {
    n: u64,
    id: String,
    time: String,
    reason: String,
    stat: Lines,
    flags: Vec<String>,
    not_held: Vec<NotHeld>,
    external: Vec<String>,
    pinned: bool,
}

/// A path that an action named and its checkpoint does not hold.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NotHeld {
    path: String,
    bytes: Option<u64>,
    at_least: bool,
}

/// The reply to a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CheckpointList {
    total: usize,
    checkpoints: Vec<ListedCheckpoint>,
}

impl CheckpointList {
    /// True if no checkpoint is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.checkpoints.is_empty()
    }
}

/// Reads a reply, wherever it comes from.
///
/// # Errors
/// `internal` for what is no such reply.
pub(super) fn read<T: DeserializeOwned>(reply: &impl Serialize) -> Result<T> {
    let value = serde_json::to_value(reply).and_then(serde_json::from_value);
    value.map_err(|error| Error::new(Code::Internal, "a reply of piton's own cannot be read").caused_by(error))
}

/// Names the operation that an undo or redo steps over; `word` is `Undo` or `Redo`.
pub(super) fn step(word: &str, over: &Over) -> String {
    let (operation, kind) = (printable(&over.operation), printable(&over.kind));
    let moves = over.run.as_ref().map(|run| format!("; run {} moves with it", printable(run))).unwrap_or_default();
    format!("{word} of operation {operation} ({kind}, {}){moves}\n", print::local_time(&over.time))
}

/// Renders a preview.
pub(super) fn preview(preview: &Preview) -> String {
    let (target, plan) = (&preview.target, &preview.plan);
    let mut text = print::bold(&format!(
        "Back to checkpoint {} ({}, {})",
        target.n,
        print::local_time(&target.time),
        printable(&target.reason)
    ));
    text.push('\n');
    section(&mut text, "bring back", &plan.create);
    section(&mut text, "change", &plan.replace);
    section(&mut text, "delete (created since; undo brings them back)", &plan.delete);
    section(&mut text, "keep", &plan.keep);
    section(&mut text, "in conflict, left as it is", &plan.conflict);
    if preview.stat.files > 0 {
        add_line!(text, "  {}", preview.stat.text());
    }
    for line in preview.warnings.iter().filter_map(Warning::not_undone) {
        add_line!(text, "{line}");
    }
    for line in preview.warnings.iter().filter_map(Warning::note) {
        add_line!(text, "{line}");
    }
    text
}

fn section(text: &mut String, title: &str, paths: &Paths) {
    if paths.total == 0 {
        return;
    }
    add_line!(text, "  {title}:");
    for item in paths.items.iter().take(SHOWN) {
        let why = item.why.as_ref().map(|why| format!("  ({})", printable(why))).unwrap_or_default();
        add_line!(text, "    {}{why}", shown(&item.path));
    }
    if paths.total > SHOWN {
        add_line!(text, "    … and {} more", paths.total - SHOWN);
    }
}

fn shown(path: &str) -> String {
    if path.is_empty() { ".".to_owned() } else { printable(path) }
}

/// Renders the result of a restore. `verb` is `Restored`, `Undone` and the like; `back` is the command that takes it back.
pub(super) fn outcome(outcome: &RestoreReply, verb: &str, back: &str) -> String {
    let done = &outcome.done;
    let mut text = format!(
        "{verb}: checkpoint {}. {} brought back, {} changed, {} deleted, {} kept.\n",
        outcome.target.as_ref().map_or(0, |target| target.n),
        done.created.total,
        done.replaced.total,
        done.deleted.total,
        done.kept.total
    );
    for item in &done.failed.items {
        let why = item.why.as_deref().unwrap_or_default();
        add_line!(text, "  not changed: {}  ({})", shown(&item.path), printable(why));
    }
    section(&mut text, "left as it is", &done.not_agreed);
    for line in outcome.warnings.iter().filter_map(Warning::not_undone) {
        add_line!(text, "{line}");
    }
    if outcome.operation.is_some() {
        add_line!(text, "`{back}` takes this back.");
    }
    text
}

/// Renders the answer to a prompt: the preview, the result, and later warnings.
pub(super) fn answer(before: &Preview, after: &RestoreReply, verb: &str, back: &str) -> String {
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
    for line in after.warnings.iter().filter_map(Warning::note) {
        if !text.lines().any(|said| said == line) {
            add_line!(text, "{line}");
        }
    }
    text
}

/// A list of checkpoints below a title.
pub(super) fn list(title: &str, listing: &CheckpointList, words: &Words) -> String {
    let (rows, total) = (&listing.checkpoints, listing.total);
    let mut text = format!("{}\n\n", print::bold(title));
    let width = rows.iter().map(|row| row.n.to_string().len()).max().unwrap_or(1);
    for row in rows {
        let mut notes = Vec::new();
        if row.stat.files > 0 {
            notes.push(format!("({})", row.stat.text()));
        }
        // Paths that are not held are named below, so the flag adds nothing.
        let told = |flag: &&String| *flag != "not-held" || row.not_held.is_empty();
        notes.extend(row.flags.iter().filter(told).map(|flag| format!("[{}]", printable(flag))));
        notes.extend(not_held(&row.not_held));
        notes.extend(row.pinned.then(|| "[pinned]".to_owned()));
        notes.extend(row.external.iter().map(|class| format!("[then {}, not undone by files]", printable(class))));
        add_line!(
            text,
            "  {:>width$}  {}  {}  {}  {}",
            row.n,
            printable(row.id.get(..7).unwrap_or(&row.id)),
            print::faint(&print::local_time(&row.time)),
            printable(&row.reason),
            notes.join(" "),
        );
    }
    if rows.len() < total {
        add_line!(text, "  … and {} older ones: `piton list -n {total}`", total - rows.len());
    }
    text.push_str("\n  The numbers in brackets say what happened after a checkpoint, up to the next one.\n\n");
    let asks = if words.asks { "asks first; " } else { "" };
    add_line!(text, "  {:<25}go back to checkpoint N ({asks}`{}` takes it back)", words.restore, words.undo);
    add_line!(text, "  {:<25}what changed since checkpoint N", words.diff);
    add_line!(text, "  {:<25}bring one file back", words.file);
    text
}

/// "[not held: cache (30 MB), vendor/.git]"; `None` where everything is held.
fn not_held(gaps: &[NotHeld]) -> Option<String> {
    let weight = |gap: &NotHeld| gap.bytes.map(|bytes| Weight { bytes, is_least: gap.at_least });
    let sentence = coverage::not_held(gaps.iter().map(|gap| (printable(&gap.path), weight(gap))))?;
    Some(format!("[{sentence}]"))
}

/// Files and lines that a diff counted.
pub(super) fn lines(stat: Lines) -> String {
    stat.text()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_commands_that_a_client_has_are_named() {
        for client in Client::ALL {
            let (words, commands) = (Words::of(client), client.commands());
            let named = [words.restore, words.file, words.diff, words.undo];
            for word in named.iter().filter_map(|word| word.strip_prefix('/')) {
                let command = word.split(' ').next().unwrap_or_default();
                assert!(commands.contains(&command), "{}: /{word}", client.name());
            }
            let text = list("Checkpoints", &CheckpointList::default(), &words);
            assert_eq!(text.contains("/undo`"), commands.contains(&"undo"), "{}: {text}", client.name());
        }
    }

    #[test]
    fn an_answer_says_everything_once_and_offers_an_undo_only_where_something_was_done() {
        let effect = json!({"class": "database", "message": "`psql` may change a database", "action": "shell: psql -c x",
            "time": "2026-01-01T00:00:00.000Z"});
        let target = json!({"n": 5, "time": "2026-01-01T00:00:00.000Z", "reason": "r"});
        let some = json!({"total": 1, "items": [{"path": "a\u{1b}"}]});
        let before = json!({"target": target, "plan": {"create": some}, "stat": {"files": 1, "plus": 2, "minus": 0},
            "warnings": [effect, {"message": "left out"}]});
        let after = json!({"operation": "o-1", "target": target, "done": {"created": some},
            "warnings": [effect, {"message": "left out"}, {"message": "late"}]});
        let said = answer(&read(&before).unwrap(), &read(&after).unwrap(), "Restored", "/undo");
        for line in ["    a\\u{1b}\n", "  1 file, +2/-0\n", "[shell: psql -c x]", "left out", "note: late"] {
            assert_eq!(said.matches(line).count(), 1, "{line}: {said}");
        }
        assert!(said.contains("Restored: checkpoint 5. 1 brought back, 0 changed") && said.contains("`/undo` takes"));
        let nothing = json!({"target": target, "plan": {"keep": some}});
        let said = answer(&read(&nothing).unwrap(), &RestoreReply::default(), "Restored", "/undo");
        assert!(said.ends_with("Nothing to do.\n") && !said.contains("undo"), "{said}");
    }
}
