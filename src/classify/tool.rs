//! Structured tool calls of agents: what they write, told by their names and the usual fields of their input.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Classifier;
use super::context::{Context, resolve};
use super::expand::{Arg, Shell};
use super::found::{FoundEffect, Site, place, settle};
use super::verdict::Understanding;
use crate::model::effect::Class;
use crate::model::text::shell_word;

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

/// The kind of tool that a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolKind {
    Write,
    Delete,
    Move,
    Read,
    Shell,
    Network,
    Unknown,
}

const WRITES: [&str; 34] = [
    "write",
    "edit",
    "multiedit",
    "notebookedit",
    "writefile",
    "createfile",
    "editfile",
    "replace",
    "strreplace",
    "strreplaceeditor",
    "strreplacebasededittool",
    "applypatch",
    "patch",
    "applydiff",
    "inserteditintofile",
    "insertcontent",
    "searchandreplace",
    "searchreplace",
    "writetofile",
    "replaceinfile",
    "replacestringinfile",
    "multireplacestringinfile",
    "createorupdatefile",
    "savefile",
    "appendfile",
    "updatefile",
    "modifyfile",
    "overwritefile",
    "editnotebook",
    "newfile",
    "editnotebookfile",
    "createandrunfile",
    "replacefilecontent",
    "applyedit",
];
const DELETES: [&str; 10] = [
    "deletefile",
    "delete",
    "removefile",
    "remove",
    "deletefiles",
    "rm",
    "deletepath",
    "deletedirectory",
    "unlink",
    "removedirectory",
];
const MOVES: [&str; 9] =
    ["movefile", "move", "rename", "renamefile", "mv", "movepath", "renamepath", "copyfile", "renamesymbol"];
const READS: [&str; 56] = [
    "read",
    "readfile",
    "readmanyfiles",
    "readfiles",
    "view",
    "viewfile",
    "openfile",
    "grep",
    "glob",
    "search",
    "searchfiles",
    "searchtext",
    "codebasesearch",
    "grepsearch",
    "filesearch",
    "list",
    "listdir",
    "listdirectory",
    "listfiles",
    "ls",
    "cat",
    "find",
    "findfiles",
    "tree",
    "todowrite",
    "todoread",
    "updateplan",
    "todo",
    "webfetch",
    "websearch",
    "fetch",
    "think",
    "task",
    "agent",
    "bashoutput",
    "exitplanmode",
    "enterplanmode",
    "askuserquestion",
    "askfollowupquestion",
    "attemptcompletion",
    "listcodedefinitionnames",
    "getdiagnostics",
    "diagnostics",
    "problems",
    "notebookread",
    "viewimage",
    "semanticsearch",
    "readlints",
    "listmcpresources",
    "readmcpresource",
    "stat",
    "getfileinfo",
    "readtextfile",
    "lsp",
    "skill",
    "googlewebsearch",
];
const SHELLS: [&str; 24] = [
    "bash",
    "shell",
    "sh",
    "zsh",
    "runcommand",
    "runshellcommand",
    "terminal",
    "execute",
    "executecommand",
    "exec",
    "execcommand",
    "runterminalcmd",
    "runterminalcommand",
    "runinterminal",
    "localshell",
    "shellcommand",
    "powershell",
    "cmd",
    "command",
    "executebash",
    "localshellcall",
    "containerexec",
    "runbash",
    "bashtool",
];
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
const LIST_FIELDS: [&str; 5] = ["paths", "files", "file_paths", "filePaths", "edits"];
const PATCH_FIELDS: [&str; 5] = ["patch", "input", "diff", "patchText", "content"];

fn kind_of(tool: &str) -> ToolKind {
    let name = tool.rsplit(['/', ':', '.']).next().unwrap_or(tool);
    let name = name.rsplit("__").next().unwrap_or(name);
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    let plain = plain.as_str();
    let tables: [(&[&str], ToolKind); 5] = [
        (&SHELLS, ToolKind::Shell),
        (&WRITES, ToolKind::Write),
        (&DELETES, ToolKind::Delete),
        (&MOVES, ToolKind::Move),
        (&READS, ToolKind::Read),
    ];
    if let Some((_, kind)) = tables.iter().find(|(names, _)| names.contains(&plain)) {
        return *kind;
    }
    let led = |verbs: &[&str]| verbs.iter().any(|verb| leads(name, verb));
    if led(&["get", "list", "read", "search", "find", "show", "describe", "view", "query"]) {
        return ToolKind::Read;
    }
    if led(&["send", "post", "publish", "upload"]) { ToolKind::Network } else { ToolKind::Unknown }
}

/// `read_x`, `readX`, `read-x`: a verb in front of something.
fn leads(name: &str, verb: &str) -> bool {
    let head = name.get(..verb.len()).is_some_and(|head| head.eq_ignore_ascii_case(verb));
    head && name[verb.len()..].starts_with(|next: char| next == '_' || next == '-' || next.is_ascii_uppercase())
}

/// Returns the effects of a tool call.
pub(super) fn effects(
    classifier: &Classifier,
    call: &ToolCall<'_>,
    context: &Context,
) -> (Vec<FoundEffect>, Understanding) {
    let (mut found, understanding) = acts(classifier, call, context);
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

/// Returns the command line of a shell tool: a string, or an argument vector.
fn command_line(input: &Value) -> Option<String> {
    let value = ["command", "cmd", "script", "commands", "CommandLine"].iter().find_map(|name| input.get(name))?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

fn files(call: &ToolCall<'_>, context: &Context, class: Class) -> (Vec<FoundEffect>, Understanding) {
    let patches = PATCH_FIELDS.iter().filter_map(|name| call.input.get(name)?.as_str()).chain(call.input.as_str());
    let patched: Vec<(String, Class)> = patches.flat_map(patched).collect();
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
        paths.iter().filter_map(|(path, class)| file(call.tool, path, *class, context)).collect()
    };
    (found, Understanding::default())
}

fn file(tool: &str, path: &str, class: Class, context: &Context) -> Option<FoundEffect> {
    let shell = Shell { variables: HashMap::new(), cwd: Some(context.cwd.clone()) };
    let placed = place(&Arg::literal(path, (0, 0)), &shell, &Site::default(), context);
    let mut found = FoundEffect::new(class, tool, "tool", (0, 0));
    found.target = Some(path.to_owned());
    (found.path, found.near) = (placed.path, placed.near);
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
            ("*** Add File: ", Class::FileOverwrite),
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
