//! Hooks in the clients' own files: put in, taken out, nothing else touched; and the shims, run by a real Node.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::*;

/// Configurations as people have them, one or more of every client that has one.
const SAMPLES: &[(&str, &str)] = &[
    (
        ".claude/settings.json",
        "{\n  // mine\n  \"model\": \"x\",\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"./check.sh\"}]},\n    ],\n  },\n}\n",
    ),
    (".claude/commands/deploy.md", "Deploy it.\n"),
    (".codex/hooks.json", "{\"hooks\":{}}"),
    (".codex/config.toml", "model = \"x\" # mine\n"),
    (".gemini/settings.json", "{\r\n\t\"theme\": \"dark\",\r\n\t\"hooks\": { \"BeforeTool\": [] }\r\n}"),
    ("config/opencode/opencode.json", "{}\n"),
    (".copilot/hooks/mine.json", "{\"version\":1,\"hooks\":{}}\n"),
    (".qwen/settings.json", "{ \"a\": 1 }"),
    (".cline/data.json", "{}"),
    (".pi/agent/settings.json", "{}"),
    (".factory/settings.json", "{\n}\n"),
    (".hermes/config.yaml", "# mine\nmodel: x\nhooks: {}  # none\nlast: y"),
    (
        ".cursor/hooks.json",
        "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [{ \"command\": \"./bell\" }]\n  }\n}\n",
    ),
    ("config/crush/crush.json", "{\"$schema\": \"https://example.org/crush.json\"}\n"),
    ("config/goose/config.yaml", "x: 1\n"),
    (".kimi-code/config.toml", "# mine\ndefault_model = \"m\"\n\n[models.m] # my own\nprovider = \"p\""),
];

pub(crate) fn lab() -> Lab {
    let lab = Lab::new();
    for (path, text) in SAMPLES {
        let path = lab.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    lab
}

/// Everything in the home but piton's own: names, modes, link targets, bytes.
fn picture(lab: &Lab) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![lab.home.clone()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let facts = path.symlink_metadata().unwrap();
            let content = if facts.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if facts.is_file() {
                std::fs::read(&path).unwrap()
            } else if path == lab.home.join("piton") {
                continue;
            } else {
                open.push(path.clone());
                Vec::new()
            };
            found.push((path, facts.permissions().mode(), content));
        }
    }
    found.sort();
    found
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn all_clients_there_and_back() {
    let lab = lab();
    let settings = lab.home.join(".claude/settings.json");
    std::fs::set_permissions(&settings, PermissionsExt::from_mode(0o640)).unwrap();
    // As those have it who keep their configuration in a repository.
    let kept = lab.home.join("dotfiles/gemini.json");
    std::fs::create_dir(lab.home.join("dotfiles")).unwrap();
    std::fs::rename(lab.home.join(".gemini/settings.json"), &kept).unwrap();
    symlink("../dotfiles/gemini.json", lab.home.join(".gemini/settings.json")).unwrap();

    let before = picture(&lab);
    let dry = lab.piton(&["install", "--all", "--dry-run"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    assert!(dry.stdout.contains("+          \"command\": ") && dry.stdout.contains("hook codex PreToolUse"), "{dry:?}");
    assert_eq!(picture(&lab), before, "a dry run changes nothing");

    let done = lab.piton(&["install", "--all", "--json"]).json();
    let files = done["files"].as_array().unwrap();
    let clients: std::collections::BTreeSet<&str> = files.iter().map(|row| row["client"].as_str().unwrap()).collect();
    assert_eq!(clients.len(), 14, "{clients:?}");
    for path in
        [".claude/settings.json", "dotfiles/gemini.json", ".hermes/config.yaml", "config/opencode/plugin/piton.js"]
    {
        let text = std::fs::read_to_string(lab.home.join(path)).unwrap();
        assert!(text.contains(env!("CARGO_BIN_EXE_piton")), "{path}: {text}");
    }
    assert!(lab.home.join(".gemini/settings.json").is_symlink());
    assert_eq!((mode(&settings), mode(&lab.home.join(".cline/hooks/PreToolUse"))), (0o640, 0o700));
    let installed = picture(&lab);

    let again = lab.piton(&["install", "--all", "--json"]).json();
    assert!(again["files"].as_array().unwrap().iter().all(|row| row["done"] == "unchanged"), "{again}");
    assert_eq!(picture(&lab), installed);

    let listed = lab.piton(&["install", "--json"]);
    assert_eq!(listed.code, 3);
    assert!(listed.json()["clients"].as_array().unwrap().iter().all(|row| row["hooks"] == true), "{listed:?}");

    let gone = lab.piton(&["uninstall", "--all"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    assert_eq!(picture(&lab), before);
    assert_eq!(lab.piton(&["uninstall", "--all"]).code, 0);
    assert_eq!(picture(&lab), before);
    let backups = std::fs::read_dir(lab.home.join("piton/backups")).unwrap().count();
    assert!(backups > 0, "what was changed is backed up");
}

/// Installs the hooks of a program; every line of shell in them, with its client's name.
fn lines(lab: &Lab, program: &Path) -> Vec<(String, String)> {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) if text.contains(" hook ") => found.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| walk(field, found)),
            _ => {}
        }
    }
    let done = lab.command(program.to_str().unwrap(), &lab.work).args(["install", "--all", "--json"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let files: Value = serde_json::from_slice(&done.stdout).unwrap();
    let mut all = Vec::new();
    for file in files["files"].as_array().unwrap() {
        let text = std::fs::read_to_string(file["path"].as_str().unwrap()).unwrap();
        let mut found = Vec::new();
        match serde_json::from_str(&text) {
            Ok(value) => walk(&value, &mut found),
            Err(_) => found.extend(text.lines().filter(|line| line.contains(" hook ")).filter_map(|line| {
                let literal = |value: &str| value.strip_prefix("\"\"\"")?.strip_suffix("\"\"\"").map(str::to_owned);
                let value = |text: &str| literal(text).unwrap_or_else(|| serde_json::from_str(text).unwrap());
                let toml = line.strip_prefix("command = ").map(value);
                toml.or_else(|| line.ends_with(" || :").then(|| line.to_owned()))
            })),
        }
        all.extend(found.into_iter().map(|line| (file["client"].as_str().unwrap().to_owned(), line)));
    }
    all
}

/// To some clients a hook that fails is a veto. So a binary that went away must not fail, and a denial must still deny.
#[test]
fn a_binary_that_went_away_stops_nobody() {
    let lab = Lab::new();
    for dir in [
        ".claude",
        ".gemini",
        ".copilot",
        ".qwen",
        ".cline",
        ".factory",
        ".cursor",
        "config/crush",
        ".kimi-code",
        "config/goose",
    ] {
        std::fs::create_dir_all(lab.home.join(dir)).unwrap();
    }
    let old = lab.root().join("bin/piton");
    std::fs::create_dir(old.parent().unwrap()).unwrap();
    // Copied by another process: while this one writes a program, a child of another test may hold it open, and it cannot be run.
    lab.sh(&format!("cp '{}' '{}'", env!("CARGO_BIN_EXE_piton"), old.display()));
    lab.set("policy: { file-delete: deny }\n");
    lab.write("a", "old");
    let all = lines(&lab, &old);
    assert!(all.len() > 40, "{all:?}");
    let before = all.iter().find(|(_, line)| line.contains("hook claude-code PreToolUse")).unwrap();
    let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": lab.work,
        "tool_name": "Bash", "tool_input": { "command": "rm a" } });
    lab.write("payload", payload.to_string());
    lab.sh(&format!("{{ {}; }} < payload > said", before.1.replace("PreToolUse ||", "PreToolUse --no-daemon ||")));
    assert!(lab.read("said").contains("\"permissionDecision\":\"deny\""), "{}", lab.read("said"));
    std::fs::remove_file(&old).unwrap();
    for (client, line) in &all {
        let mut shell = lab.command("/bin/sh", &lab.work);
        let done = shell.arg("-c").arg(line).stdin(std::process::Stdio::null()).output().unwrap();
        assert!(done.status.success() && done.stdout.is_empty(), "{client}: {line}: {done:?}");
    }
}

#[test]
fn one_project() {
    let lab = lab();
    lab.write(".git/HEAD", "ref: refs/heads/main\n");
    lab.write(".claude/settings.json", "{\n  \"a\": 1\n}\n");
    let before = picture(&lab);
    let done = lab.piton(&["install", "--project", "claude-code", "cline"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(lab.read(".claude/settings.json").contains("hook claude-code PreToolUse"));
    assert_eq!(mode(&lab.work.join(".clinerules/hooks/PreToolUse")), 0o755);
    assert_eq!(picture(&lab), before, "the user's own are not touched");
    assert_eq!(lab.piton(&["install", "--project", "hermes-agent"]).code, 2, "it has no hooks of projects");
    assert_eq!(lab.piton(&["uninstall", "--project", "--all"]).code, 0);
    assert_eq!(lab.read(".claude/settings.json"), "{\n  \"a\": 1\n}\n");
    assert!(!lab.work.join(".clinerules").exists() && !lab.work.join(".claude/commands").exists());
}

#[test]
fn what_is_not_understood_is_left() {
    let lab = lab();
    let broken = lab.home.join(".claude/settings.json");
    std::fs::write(&broken, "{\n  \"a\": \n").unwrap();
    std::fs::write(lab.home.join(".hermes/config.yaml"), "hooks: {pre_tool_call: []}\n").unwrap();
    let script = lab.home.join(".cline/hooks/PreToolUse");
    std::fs::create_dir(lab.home.join(".cline/hooks")).unwrap();
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    std::fs::remove_file(lab.home.join(".qwen/settings.json")).unwrap();
    symlink("nowhere", lab.home.join(".qwen/settings.json")).unwrap();
    let before = picture(&lab);
    let table = [
        ("claude-code", "bad-json", "line 3"),
        ("hermes-agent", "conflict", "hooks:\n"),
        ("cline", "conflict", "another program"),
        ("qwen-code", "bad-path", "leads nowhere"),
        ("no-such", "bad-request", "claude-code, codex"),
    ];
    for (client, code, part) in table {
        let output = lab.piton(&["install", client, "--json"]);
        assert_ne!(output.code, 0, "{output:?}");
        let told = output.json();
        let found = told["error"]["code"].as_str().or(told["files"][0]["code"].as_str()).unwrap();
        assert_eq!(found, code, "{told}");
        assert!(told.to_string().contains(&part.replace('\n', "\\n")), "{told}");
        assert_eq!(picture(&lab), before, "nothing of {client} was written");
    }
    let some = lab.piton(&["install", "codex", "claude-code"]);
    assert_eq!(some.code, 4, "{some:?}");
    assert!(std::fs::read_to_string(lab.home.join(".codex/hooks.json")).unwrap().contains("piton"));
    assert_eq!(std::fs::read_to_string(&broken).unwrap(), "{\n  \"a\": \n");
}

/// Runs a shim with a stand-in for piton that answers what the test wrote, and notes what it was given.
fn with_node(lab: &Lab, script: &str) -> Option<String> {
    let version = lab.command("node", &lab.work).arg("--version").output();
    if version.is_err() {
        lacking("node");
        return None;
    }
    lab.write("test.mjs", script);
    let output = lab.command("node", &lab.work).arg("test.mjs").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The stand-in: appends its arguments and its payload to `asked`, prints `answer`.
fn stand_in(lab: &Lab) {
    let script =
        "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n{ echo \"$@\"; cat; echo; } >> asked\ncat answer 2>/dev/null\nexit 0\n";
    lab.write("piton", script);
    std::fs::set_permissions(lab.work.join("piton"), PermissionsExt::from_mode(0o755)).unwrap();
}

fn shim(lab: &Lab, name: &str, program: &Path) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks").join(name);
    let text = std::fs::read_to_string(source).unwrap().replace("@NOTE@", "echo noted >> noted");
    text.replace("@PITON@", program.to_str().unwrap()).replace(
        "PATIENCE_MS = 10_000",
        // Long enough for a stand-in, short enough for one that hangs.
        if program == lab.work.join("hang") { "PATIENCE_MS = 50" } else { "PATIENCE_MS = 10_000" },
    )
}

#[test]
fn the_plugin_of_opencode() {
    let lab = Lab::new();
    stand_in(&lab);
    lab.write("plugin.mjs", shim(&lab, "opencode.js", &lab.work.join("piton")));
    lab.write("hang", "#!/bin/sh\nexec sleep 60\n");
    std::fs::set_permissions(lab.work.join("hang"), PermissionsExt::from_mode(0o755)).unwrap();
    lab.write("hanging.mjs", shim(&lab, "opencode.js", &lab.work.join("hang")));
    lab.write("absent.mjs", shim(&lab, "opencode.js", &lab.work.join("absent")));
    let script = r#"
        import { writeFileSync } from "node:fs"
        const answer = (value) => writeFileSync("answer", typeof value === "string" ? value : JSON.stringify(value))
        const open = async (file) => (await import(file)).Piton({ directory: process.cwd(), client: {} })
        const input = { tool: "bash", sessionID: "s", callID: "c" }
        const before = async (hooks) => {
          try { await hooks["tool.execute.before"](input, { args: { command: "rm x" } }); return "goes on" }
          catch (error) { return `stopped: ${error.message}` }
        }
        const hooks = await open("./plugin.mjs")
        for (const value of [{}, { deny: "no ünicode" }, "no json", "", { context: "note" }]) {
          answer(value)
          console.log(await before(hooks))
        }
        console.log(await before(await open("./hanging.mjs")), await before(await open("./absent.mjs")))
        const output = { output: "done", metadata: { exit: 1 } }
        await hooks["tool.execute.after"](input, output)
        console.log(JSON.stringify(output.output))
        const parts = [{ type: "text", text: "tidy up" }]
        await hooks["chat.message"]({ sessionID: "s" }, { message: { id: "m" }, parts })
        console.log(JSON.stringify(parts[0].text))
        answer({ answer: "3 checkpoints" })
        await hooks["command.execute.before"]({ command: "rollback", sessionID: "s", arguments: "3" }, { parts: [] })
          .catch((error) => console.log(`answered: ${error.message}`))
        await hooks["command.execute.before"]({ command: "other", sessionID: "s", arguments: "" }, { parts: [] })
        answer({ env: { GIT_CONFIG_COUNT: "1" } })
        const shell = { env: { A: "b" } }
        await hooks["shell.env"]({ cwd: process.cwd(), sessionID: "s" }, shell)
        console.log(JSON.stringify(shell.env))
        answer({})
        await hooks["shell.env"]({ cwd: process.cwd() }, shell)
        await hooks["shell.env"]({ cwd: "/nowhere" }, shell)
        const created = (id, parentID) => ({ type: "session.created", properties: { sessionID: id, info: { id, parentID } } })
        await hooks.event({ event: created("b", "s") })
        await hooks.event({ event: created("c", "b") })
        await hooks["tool.execute.before"]({ ...input, sessionID: "c" }, { args: { command: "rm x" } })
        await hooks.event({ event: { type: "session.idle", properties: { sessionID: "b" } } })
        await hooks.event({ event: { type: "session.deleted", properties: { info: { id: "b", parentID: "s" } } } })
        await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s" } } })
    "#;
    let Some(printed) = with_node(&lab, script) else { return };
    let expected = "goes on\nstopped: no ünicode\ngoes on\ngoes on\ngoes on\ngoes on goes on\n\"done\\n\\nnote\"\n\
                    \"tidy up\\n\\nnote\"\nanswered: 3 checkpoints\n\
                    {\"A\":\"b\",\"GIT_CONFIG_COUNT\":\"1\"}\n";
    assert_eq!(printed, expected);
    // Once, before the tool of the program that is absent.
    assert_eq!(lab.read("noted"), "noted\n");
    read_by_piton(
        "opencode",
        &lab.read("asked"),
        "tool.execute.before chat.message command.execute.before event.session.idle",
    );
    // The session of a sub-agent, and one of a sub-agent below it, belong to the agent at the top.
    let asked = lab.read("asked");
    let pairs = asked.lines().zip(asked.lines().skip(1)).step_by(2);
    let read = pairs.map(|(call, payload)| {
        let event = call.rsplit(' ').next().unwrap();
        piton::agents::Client::Opencode.parse(event, payload.as_bytes()).unwrap()
    });
    let below: Vec<(String, String)> = read.filter_map(|event| Some((event.session?, event.agent?.id))).collect();
    assert_eq!(below, ["b", "c", "c", "b", "b"].map(|id| ("s".to_owned(), id.to_owned())));
}

#[test]
fn the_extension_of_pi() {
    let lab = Lab::new();
    stand_in(&lab);
    // Node of this age does not read types; what is written has only these.
    let source = shim(&lab, "pi.ts", &lab.work.join("piton"));
    let untyped = source.replace(": string | undefined", "").replace(": Promise<any>", "").replace(": any", "");
    let untyped = untyped.replace(": string", "").replace(": number", "");
    lab.write("extension.mjs", untyped);
    let script = r#"
        import { writeFileSync } from "node:fs"
        const answer = (value) => writeFileSync("answer", JSON.stringify(value))
        const handlers = {}, commands = {}, told = []
        const ctx = { cwd: process.cwd(), ui: { notify: (text) => told.push(text) }, sessionManager: { getSessionId: () => "s" } }
        const pi = { on: (name, run) => (handlers[name] = run), registerCommand: (name, command) => (commands[name] = command) }
        const { default: extension } = await import("./extension.mjs")
        extension(pi)
        const print = (value) => console.log(JSON.stringify(value ?? null))
        const call = { toolCallId: "c", toolName: "bash", input: { command: "rm x" } }
        answer({})
        await handlers.session_start({}, ctx)
        print(await handlers.tool_call(call, ctx))
        answer({ deny: "no" })
        print(await handlers.tool_call(call, ctx))
        answer({ context: "note", message: "late" })
        print(await handlers.tool_result({ ...call, isError: false, content: [{ type: "text", text: "done" }] }, ctx))
        print(await handlers.before_agent_start({ prompt: "tidy up" }, ctx))
        answer({ answer: "3 checkpoints" })
        await commands.rollback.handler("3", ctx)
        print(told)
        answer({ end: true })
        const line = { command: "rm x", excludeFromContext: false, cwd: process.cwd() }
        print(await handlers.user_bash(line, ctx))
        answer({})
        print(await handlers.tool_call(call, ctx))
        answer({ deny: "no" })
        print(await handlers.user_bash(line, ctx))
        answer({})
        await handlers.agent_end({}, { get cwd() { return process.cwd() } })
    "#;
    let Some(printed) = with_node(&lab, script) else { return };
    let expected = "null\n{\"block\":true,\"reason\":\"no\"}\n\
        {\"content\":[{\"type\":\"text\",\"text\":\"done\"},{\"type\":\"text\",\"text\":\"note\"}]}\n\
        {\"message\":{\"customType\":\"piton\",\"content\":\"note\",\"display\":true}}\n[\"late\",\"late\",\"3 checkpoints\"]\n\
        null\nnull\n{\"result\":{\"output\":\"no\",\"exitCode\":126,\"cancelled\":false,\"truncated\":false}}\n";
    assert_eq!(printed, expected);
    let asked = lab.read("asked");
    let events = "session_start tool_call tool_result before_agent_start input agent_end user_bash user_bash_end";
    read_by_piton("pi", &asked, events);
    assert_eq!(asked.matches("user_bash_end\n").count(), 1, "only a line that piton wants to know of has an end");
}

/// Piton reads everything that a shim sent: no event of it is unknown or refused.
fn read_by_piton(client: &str, asked: &str, expected: &str) {
    let client = piton::agents::Client::named(client).unwrap();
    let mut seen = Vec::new();
    let mut lines = asked.lines();
    while let (Some(call), Some(payload)) = (lines.next(), lines.next()) {
        let event = call.rsplit(' ').next().unwrap();
        assert_eq!(call, format!("hook {} {event}", client.name()));
        let read = client.parse(event, payload.as_bytes()).unwrap();
        // It is answered, and tells nothing.
        let is_asked = event == "shell.env";
        assert!(is_asked || !matches!(read.kind, piton::agents::EventKind::Unused(_)), "{read:?}");
        assert!(read.cwd.is_some(), "{read:?}");
        seen.push(event);
    }
    for event in expected.split(' ') {
        assert!(seen.contains(&event), "{event}: {seen:?}");
    }
}
