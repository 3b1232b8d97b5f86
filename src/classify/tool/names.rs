//! Names of tools, and what they mean.

use serde_json::Value;

/// The kind of tool that a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolKind {
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
/// The ones among them that write whole files.
const WHOLE_WRITES: [&str; 9] = [
    "write",
    "writefile",
    "createfile",
    "writetofile",
    "savefile",
    "createorupdatefile",
    "overwritefile",
    "newfile",
    "createandrunfile",
];
/// Fields of a call that changes a part of a file.
const PARTS: [&str; 6] = ["old_string", "old_str", "oldString", "edits", "append", "insert_line"];
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
/// Verbs of tools that change something elsewhere: at the beginning or at the end of a name.
const REMOTE_VERBS: [&str; 52] = [
    "delete",
    "remove",
    "drop",
    "destroy",
    "create",
    "update",
    "apply",
    "deploy",
    "merge",
    "send",
    "post",
    "publish",
    "push",
    "refund",
    "cancel",
    "reset",
    "restore",
    "pause",
    "resume",
    "revoke",
    "disable",
    "enable",
    "transfer",
    "invite",
    "grant",
    "approve",
    "close",
    "archive",
    "purge",
    "rollback",
    "migrate",
    "terminate",
    "stop",
    "restart",
    "reboot",
    "scale",
    "rotate",
    "unpublish",
    "submit",
    "assign",
    "charge",
    "pay",
    "ban",
    "kick",
    "truncate",
    "insert",
    "upsert",
    "promote",
    "detach",
    "reject",
    "start",
    "set",
];

/// Things of an agent's own: what it does to them changes nothing elsewhere.
const OWN_THINGS: [&str; 27] = [
    "plan",
    "plans",
    "todo",
    "todos",
    "memory",
    "memories",
    "task",
    "tasks",
    "thought",
    "thoughts",
    "goal",
    "goals",
    "session",
    "browser",
    "tab",
    "window",
    "note",
    "notes",
    "mode",
    "agent",
    "agents",
    "team",
    "cron",
    "entity",
    "entities",
    "checklist",
    "context",
];

/// Words of names of tools that take queries.
const QUERY_WORDS: [&str; 18] = [
    "sql",
    "postgres",
    "postgresql",
    "pg",
    "mysql",
    "sqlite",
    "mariadb",
    "database",
    "db",
    "query",
    "supabase",
    "neon",
    "bigquery",
    "snowflake",
    "duckdb",
    "clickhouse",
    "redshift",
    "mssql",
];

/// Words of names of tools that run code.
const CODE_WORDS: [&str; 13] = [
    "execute",
    "exec",
    "run",
    "eval",
    "evaluate",
    "python",
    "code",
    "notebook",
    "repl",
    "jupyter",
    "cell",
    "interpreter",
    "javascript",
];

/// Returns the kind that the name of a tool means; of `server__tool`, `server/tool` and `server.tool` that of the last part.
pub(super) fn kind_of(tool: &str) -> ToolKind {
    let (name, plain) = (own_name(tool), plain(tool));
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

/// Returns the letters and digits of a tool's own name, in lower case.
fn plain(tool: &str) -> String {
    let name = own_name(tool).chars().filter(char::is_ascii_alphanumeric);
    name.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Returns true if a tool writes a file anew as a whole, and does not change a part of it.
pub(super) fn writes_whole(tool: &str, input: &Value) -> bool {
    let command = input.get("command").and_then(Value::as_str);
    match plain(tool).as_str() {
        name if WHOLE_WRITES.contains(&name) => !PARTS.iter().any(|field| input.get(field).is_some()),
        // One tool with several commands.
        name => WRITES.contains(&name) && command == Some("create"),
    }
}

/// `read_x`, `readX`, `read-x`: a verb in front of something.
fn leads(name: &str, verb: &str) -> bool {
    let head = name.get(..verb.len()).is_some_and(|head| head.eq_ignore_ascii_case(verb));
    head && name[verb.len()..].starts_with(|next: char| next == '_' || next == '-' || next.is_ascii_uppercase())
}

/// Returns the words of a name in lower case: `volume-delete`, `createRefund`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut is_lower = false;
    for letter in name.chars() {
        let is_word = letter.is_alphanumeric();
        if (!is_word || letter.is_uppercase() && is_lower) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        is_lower = letter.is_lowercase() || letter.is_numeric();
        if is_word && let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the own name of a tool, without its server.
fn own_name(tool: &str) -> &str {
    let name = tool.rsplit(['/', ':', '.']).next().unwrap_or(tool);
    name.rsplit("__").next().unwrap_or(name)
}

/// Returns true if the name has a verb of writing, for something that is not the agent's own.
pub(super) fn writes_elsewhere(tool: &str) -> bool {
    let words = words(own_name(tool));
    let is_verb = |word: Option<&String>| word.is_some_and(|word| REMOTE_VERBS.contains(&word.as_str()));
    words.len() > 1
        && (is_verb(words.first()) || is_verb(words.last()))
        && !words.iter().any(|word| OWN_THINGS.contains(&word.as_str()))
}

/// Returns true if the tool, or its server, is named after a database.
pub(super) fn takes_queries(tool: &str) -> bool {
    words(tool).iter().any(|word| QUERY_WORDS.contains(&word.as_str()))
}

/// Returns true if the name says that the tool runs code.
pub(super) fn runs_code(tool: &str) -> bool {
    words(own_name(tool)).iter().any(|word| CODE_WORDS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        for (name, expected) in [
            ("volume-delete", &["volume", "delete"][..]),
            ("createRefund", &["create", "refund"]),
            ("mcp__github__delete_branch", &["mcp", "github", "delete", "branch"]),
            ("TodoWrite", &["todo", "write"]),
            ("x2y", &["x2y"]),
            ("", &[]),
        ] {
            assert_eq!(words(name), expected, "{name}");
        }
    }
}
