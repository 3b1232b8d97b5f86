//! Structured tool calls of agents: what they write, told by their names and the usual fields of their input.

mod names;
mod payload;

use std::collections::HashSet;

use serde_json::Value;

use super::Classifier;
use super::context::{Context, NearPiton, resolve};
use super::expand::{Arg, Shell};
use super::found::{FoundEffect, Site, place, settle};
use super::verdict::Understanding;
use crate::model::effect::{Class, Severity};

use names::{ToolKind, kind_of, writes_elsewhere, writes_whole};
use payload::{code, command_line, queries, wrapped};

/// The line of a patch that writes a file anew, one that is there too.
const ADDED: &str = "*** Add File: ";

/// Deepest nesting of calls within calls.
const MAX_DEPTH: usize = 3;

/// A tool call as its client describes it.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    /// The client's name of the tool.
    pub tool: &'a str,
    /// The call's arguments as they were sent.
    pub input: &'a Value,
    /// Paths the client says are concerned.
    pub paths: &'a [String],
    /// True if the client says that it writes.
    pub writes: Option<bool>,
    /// True if the client says that it reaches beyond this machine's files.
    pub external: Option<bool>,
}

const PATH_FIELDS: [&str; 26] = [
    "path",
    "file_path",
    "filePath",
    "filepath",
    "filename",
    "file_name",
    "file",
    "notebook_path",
    "notebookPath",
    "target_file",
    "targetFile",
    "old_path",
    "oldPath",
    "new_path",
    "newPath",
    "source",
    "source_path",
    "destination",
    "destination_path",
    "dest",
    "from",
    "to",
    "old_file",
    "new_file",
    "relative_workspace_path",
    "uri",
];
/// Fields that name a new place.
const DESTINATIONS: [&str; 7] = ["destination", "destination_path", "dest", "to", "new_path", "newPath", "new_file"];
const LIST_FIELDS: [&str; 5] = ["paths", "files", "file_paths", "filePaths", "edits"];
const PATCH_FIELDS: [&str; 5] = ["patch", "input", "diff", "patchText", "content"];

/// Returns the effects of a tool call.
pub(super) fn effects(
    classifier: &Classifier,
    call: &ToolCall<'_>,
    context: &Context,
) -> (Vec<FoundEffect>, Understanding) {
    judged(classifier, call, context, 0)
}

fn judged(
    classifier: &Classifier,
    call: &ToolCall<'_>,
    context: &Context,
    depth: usize,
) -> (Vec<FoundEffect>, Understanding) {
    let calls = if depth < MAX_DEPTH { wrapped(call.tool, call.input) } else { Vec::new() };
    let (mut found, understanding) =
        if calls.is_empty() { acts(classifier, call, context) } else { carried(classifier, &calls, context, depth) };
    if call.external == Some(true) && !found.iter().any(|found| found.class == Class::NetworkWrite) {
        found.push(FoundEffect::new(Class::NetworkWrite, call.tool, "open-world", (0, 0)));
    }
    (found, understanding)
}

fn acts(classifier: &Classifier, call: &ToolCall<'_>, context: &Context) -> (Vec<FoundEffect>, Understanding) {
    let kind = kind_of(call.tool);
    if let Some(command) = command_line(call.input)
        && (kind == ToolKind::Shell || kind == ToolKind::Unknown && call.writes != Some(false))
    {
        return in_directory(classifier, &command, call.input, context);
    }
    if let Some(line) = code(call.tool, call.input).filter(|_| !matches!(kind, ToolKind::Write)) {
        return in_directory(classifier, &line, call.input, context);
    }
    let queries = queries(call.tool, call.input);
    if !queries.is_empty() && !matches!(kind, ToolKind::Write | ToolKind::Delete | ToolKind::Move) {
        return (queried(call.tool, &queries), Understanding::default());
    }
    match kind {
        ToolKind::Write if call.input.get("command").and_then(Value::as_str) == Some("view") => Default::default(),
        ToolKind::Write => files(call, context, Class::FileOverwrite),
        ToolKind::Delete => files(call, context, Class::FileDelete),
        ToolKind::Move => files(call, context, Class::FileMove),
        ToolKind::Read if call.writes != Some(true) => Default::default(),
        ToolKind::Network => {
            let mut found = vec![FoundEffect::new(Class::NetworkWrite, call.tool, "tool", (0, 0))];
            if call.writes == Some(true) {
                found.extend(unknown(call, context).0);
            }
            (found, Understanding::default())
        }
        ToolKind::Read | ToolKind::Shell | ToolKind::Unknown => unknown(call, context),
    }
}

/// Returns the effects of queries that change something.
fn queried(tool: &str, queries: &[&str]) -> Vec<FoundEffect> {
    let of = |query: &&str| FoundEffect {
        target: Some((*query).to_owned()),
        ..FoundEffect::new(Class::Database, tool, "query", (0, 0))
    };
    queries.iter().filter(|query| crate::classify::sql::changes(query)).map(of).collect()
}

/// Returns what the calls do that a call carries.
fn carried(
    classifier: &Classifier,
    calls: &[(String, Value)],
    context: &Context,
    depth: usize,
) -> (Vec<FoundEffect>, Understanding) {
    let (mut found, mut all) = (Vec::new(), Understanding::default());
    for (tool, input) in calls {
        let call = ToolCall { tool, input, paths: &[], writes: None, external: None };
        let (inner, understanding) = judged(classifier, &call, context, depth + 1);
        found.extend(inner);
        all.add(understanding);
    }
    (found, all)
}

/// Judges an unknown tool: its hints count, and without any it may do anything to files.
fn unknown(call: &ToolCall<'_>, context: &Context) -> (Vec<FoundEffect>, Understanding) {
    match call.writes {
        Some(false) => Default::default(),
        Some(true) => {
            let (mut found, understanding) = files(call, context, Class::FileOverwrite);
            // Fields that look like paths need not be all that it writes.
            if call.paths.is_empty() && found.iter().all(|found| found.target.is_some()) {
                found.push(FoundEffect::new(Class::FileOverwrite, call.tool, "tool", (0, 0)));
            }
            (found, understanding)
        }
        None => {
            let opaque = FoundEffect {
                checkpoint: Some(true),
                ..FoundEffect::new(Class::ExecOpaque, call.tool, "unknown-tool", (0, 0))
            };
            let mut found = vec![opaque];
            if writes_elsewhere(call.tool) && call.paths.is_empty() {
                let remote = FoundEffect::new(Class::NetworkWrite, call.tool, "verb-of-writing", (0, 0));
                found.push(FoundEffect { severity: Some(Severity::Low), ..remote });
            }
            if !call.paths.is_empty() {
                found.extend(files(call, context, Class::FileOverwrite).0);
            }
            (found, Understanding { opaque: true, ..Understanding::default() })
        }
    }
}

fn in_directory(
    classifier: &Classifier,
    command: &str,
    input: &Value,
    context: &Context,
) -> (Vec<FoundEffect>, Understanding) {
    let input = input.get("action").filter(|action| action.is_object()).unwrap_or(input);
    let directory =
        ["cwd", "workdir", "working_directory", "directory", "dir"].iter().find_map(|name| input.get(name)?.as_str());
    match directory.filter(|text| !text.is_empty()) {
        Some(directory) => {
            let context = Context { cwd: resolve(&context.cwd, directory), ..context.clone() };
            classifier.walk(command, &context)
        }
        None => classifier.walk(command, context),
    }
}

fn files(call: &ToolCall<'_>, context: &Context, class: Class) -> (Vec<FoundEffect>, Understanding) {
    let patched: Vec<(String, Class)> = patches_of(call).flat_map(patched).collect();
    // The patch says more of a path than the tool's arguments do.
    let said = |path: &String| patched.iter().find(|(named, _)| named == path).map_or(class, |(_, class)| *class);
    let mut paths: Vec<(String, Class)> = call.paths.iter().map(|path| (path.clone(), said(path))).collect();
    let mut known: HashSet<String> = call.paths.iter().cloned().collect();
    let mut add = |path: &str, class: Class| {
        let path = path.strip_prefix("file://").unwrap_or(path);
        if !path.is_empty() && known.insert(path.to_owned()) {
            paths.push((path.to_owned(), class));
        }
    };
    for name in PATH_FIELDS {
        if let Some(path) = call.input.get(name).and_then(Value::as_str) {
            add(path, class);
        }
    }
    for item in LIST_FIELDS.iter().filter_map(|name| call.input.get(name)?.as_array()).flatten() {
        let inner = PATH_FIELDS.iter().find_map(|name| item.get(name)?.as_str());
        if let Some(path) = item.as_str().or(inner) {
            add(path, class);
        }
    }
    for (path, class) in &patched {
        add(path, *class);
    }
    let found = if paths.is_empty() {
        vec![FoundEffect::new(class, call.tool, "tool", (0, 0))]
    } else {
        let is_whole = writes_whole(call.tool, call.input);
        let is_added =
            |path: &str| patches_of(call).any(|patch| patch.lines().any(|line| line.strip_prefix(ADDED) == Some(path)));
        let is_new = |path: &String| DESTINATIONS.iter().any(|name| call.input[*name].as_str() == Some(path));
        let of_path = |(path, class): &(String, Class)| {
            let mut found = file(call.tool, path, *class, context)?;
            // A file that is put into a directory around piton's own files takes nothing else of it.
            let takes_all = matches!(class, Class::FileDelete | Class::FileMove) && !is_new(path);
            found.near_piton = found.near_piton.filter(|near| takes_all || *near == NearPiton::Inside);
            Some(FoundEffect { is_whole: is_whole || is_added(path), ..found })
        };
        paths.iter().filter_map(of_path).collect()
    };
    (found, Understanding::default())
}

/// Returns the texts of a call that may be patches.
fn patches_of<'a>(call: &ToolCall<'a>) -> impl Iterator<Item = &'a str> {
    PATCH_FIELDS.iter().filter_map(|name| call.input.get(name)?.as_str()).chain(call.input.as_str())
}

fn file(tool: &str, path: &str, class: Class, context: &Context) -> Option<FoundEffect> {
    // Tools that know `~` write there; for others there is no such directory.
    let at_home = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let at_home = at_home.zip(context.home.as_deref());
    let path = &*at_home.map_or(path.to_owned(), |(rest, home)| format!("{}{rest}", home.to_string_lossy()));
    let shell = Shell { cwd: Some(context.cwd.clone()), ..Shell::default() };
    let mut placed = place(&Arg::literal(path, (0, 0)), &shell, &Site::default(), context);
    let mut found = FoundEffect::new(class, tool, "tool", (0, 0));
    found.target = Some(path.to_owned());
    let enters = found.enters_link() || found.is_written();
    if let Some(led) = placed.path.as_ref().and_then(|path| context.led_to_piton(path, enters)) {
        placed.whereabouts = context.whereabouts(&led);
        (placed.near, placed.path) = (Some(led.clone()), Some(led));
    }
    (found.path, found.near) = (placed.path, placed.near);
    found.near_piton = found.path.as_ref().and_then(|path| context.near_piton(path));
    settle(found, placed.whereabouts)
}

/// Files named by a patch: `*** Update File: x`, `+++ b/x`.
pub fn patched(patch: &str) -> Vec<(String, Class)> {
    let mut files = Vec::new();
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        let line = line.trim_end();
        let goes = lines.peek().is_some_and(|next| next.trim_end() == "+++ /dev/null");
        let named = [
            ("*** Update File: ", Class::FileOverwrite),
            (ADDED, Class::FileOverwrite),
            ("*** Delete File: ", Class::FileDelete),
            ("*** Move to: ", Class::FileMove),
            ("--- a/", if goes { Class::FileDelete } else { Class::FileOverwrite }),
            ("+++ b/", Class::FileOverwrite),
        ];
        for (prefix, class) in named {
            if let Some(path) = line.strip_prefix(prefix) {
                let path = path.split('\t').next().unwrap_or(path).to_owned();
                if !files.contains(&(path.clone(), class)) {
                    files.push((path, class));
                }
            }
        }
    }
    files
}
