//! `piton demo`: the main job on real input.
//!
//! Streams `examples/session.jsonl` through a real sidecar process over a scratch copy of `examples/workspace/`. The
//! announced actions are really done there, between their `before` and `after` events. Then the losses are listed,
//! compared and brought back, and the result is checked byte by byte.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use serde_json::Value;

use super::exit::Exit;
use super::print;
use super::scratch::{Scratch, Sidecar};
use crate::error::{Code, Error, IoContext, Result};

/// The arguments of `piton demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Keep the scratch directory
    #[arg(long)]
    pub keep: bool,
}

const SESSION: &str = include_str!("../../examples/session.jsonl");

/// The workspace: path, permissions, content.
const WORKSPACE: &[(&str, u32, &[u8])] = &[
    ("README.md", 0o644, include_bytes!("../../examples/workspace/README.md")),
    ("config.toml", 0o644, include_bytes!("../../examples/workspace/config.toml")),
    ("docs/ideas.txt", 0o644, include_bytes!("../../examples/workspace/docs/ideas.txt")),
    ("migrations/001_notes.sql", 0o644, include_bytes!("../../examples/workspace/migrations/001_notes.sql")),
    ("migrations/002_created.sql", 0o644, include_bytes!("../../examples/workspace/migrations/002_created.sql")),
    ("run.sh", 0o755, include_bytes!("../../examples/workspace/run.sh")),
    ("src/app.py", 0o644, include_bytes!("../../examples/workspace/src/app.py")),
    ("src/render.py", 0o644, include_bytes!("../../examples/workspace/src/render.py")),
];

/// The content of a directory, for comparing: permissions and content by path.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Runs the demo.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn demo(args: &DemoArgs) -> Result<Exit> {
    let scratch = Scratch::create(&std::env::temp_dir(), "piton-demo", "notes", args.keep)?;
    lay_out(&scratch.workspace())?;
    print::data(&format!("A scratch copy of examples/workspace is in {}\n", scratch.workspace().display()))?;
    let mut before_loss = Tree::new();
    let mut sidecar = Sidecar::start(scratch.command(&["sidecar"])?)?;
    for text in SESSION.lines() {
        let line = text.replace("$WORKSPACE", &scratch.workspace().to_string_lossy());
        let event: Value = serde_json::from_str(&line)
            .map_err(|error| Error::new(Code::Internal, "the session is not JSON").caused_by(error))?;
        if event["id"] == 7 {
            before_loss = tree_of(&scratch.workspace())?;
        }
        print::data(&format!("\n> {}\n", described(&event)))?;
        if let Some(reply) = sidecar.exchange(&line, &event["id"])? {
            print::data(&replied(&reply))?;
        }
        act(&event, &scratch.workspace())?;
    }
    sidecar.finish()?;
    let after_loss = tree_of(&scratch.workspace())?;
    bring_back(&scratch, &before_loss, &after_loss)
}

/// Lists, diffs and restores with the verbs a person would use, and checks the result.
fn bring_back(scratch: &Scratch, before: &Tree, after: &Tree) -> Result<Exit> {
    scratch.piton(&["list"])?;
    let number = before_loss(scratch)?;
    scratch.piton(&["diff", &number])?;
    scratch.piton(&["restore", &number, "--yes"])?;
    let exact = tree_of(&scratch.workspace())? == *before;
    scratch.piton(&["undo", "--yes"])?;
    let undone = tree_of(&scratch.workspace())? == *after;
    scratch.piton(&["redo", "--yes"])?;
    let redone = tree_of(&scratch.workspace())? == *before;
    let word = |good: bool| if good { "byte for byte, permissions included" } else { "NOT as it was" };
    print::data(&format!(
        "\nAfter the restore the workspace is as it was before the loss: {}.\n\
         After the undo it is as the agent left it: {}.\nAfter the redo it is whole again: {}.\n",
        word(exact),
        word(undone),
        word(redone)
    ))?;
    Ok(if exact && undone && redone { Exit::Done } else { Exit::Failed })
}

/// The number of the checkpoint that was taken before `rm -rf`.
fn before_loss(scratch: &Scratch) -> Result<String> {
    let output = scratch.command(&["list", "--json"])?.output().at("running", "piton")?;
    let list: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Error::new(Code::Internal, "the list is not JSON").caused_by(error))?;
    let rows = list["checkpoints"].as_array().cloned().unwrap_or_default();
    let row = rows.iter().find(|row| row["reason"].as_str().is_some_and(|reason| reason.contains("rm -rf")));
    row.map(|row| row["n"].to_string())
        .ok_or_else(|| Error::new(Code::NoSuchCheckpoint, "no checkpoint was taken before `rm -rf`"))
}

fn lay_out(workspace: &Path) -> Result<()> {
    for (name, perm, content) in WORKSPACE {
        let file = workspace.join(name);
        let parent = file.parent().unwrap_or(workspace);
        std::fs::create_dir_all(parent).at("creating", parent)?;
        std::fs::write(&file, content).at("writing", &file)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(*perm))
            .at("setting the permissions of", &file)?;
    }
    Ok(())
}

/// Does what the event announces.
fn act(event: &Value, workspace: &Path) -> Result<()> {
    if let Some(why) = event["demo"].as_str() {
        return print::data(&format!("  ({why})\n"));
    }
    match event["type"].as_str() {
        Some("shell.before") => {
            let command = event["command"].as_str().unwrap_or_default();
            let mut shell = Command::new("sh");
            let ran = shell.arg("-c").arg(command).current_dir(workspace).stdout(Stdio::null()).status();
            ran.map(drop).at("running", "sh")
        }
        Some("tool.before") => tool(&event["input"], workspace),
        _ => Ok(()),
    }
}

/// A file tool: writes `content`, or replaces `old_string` by `new_string`.
fn tool(input: &Value, workspace: &Path) -> Result<()> {
    let file = workspace.join(input["path"].as_str().unwrap_or_default());
    if let Some(content) = input["content"].as_str() {
        return std::fs::write(&file, content).at("writing", &file);
    }
    if let (Some(old), Some(new)) = (input["old_string"].as_str(), input["new_string"].as_str()) {
        let content = std::fs::read_to_string(&file).at("reading", &file)?;
        return std::fs::write(&file, content.replacen(old, new, 1)).at("writing", &file);
    }
    Ok(())
}

/// An event in a few words.
fn described(event: &Value) -> String {
    let kind = event["type"].as_str().unwrap_or_default();
    let detail = ["command", "prompt", "goal", "client"].iter().find_map(|key| event[*key].as_str());
    let tool = event["tool"].as_str().map(|tool| format!("{tool} {}", event["input"]["path"].as_str().unwrap_or("")));
    format!("{kind}  {}", tool.as_deref().or(detail).unwrap_or_default())
}

/// A reply in a few lines.
fn replied(reply: &Value) -> String {
    let mut text = String::new();
    if reply["ok"] != true {
        return format!("< {reply}\n");
    }
    let checkpoint = &reply["checkpoint"];
    if let Some(status) = checkpoint["status"].as_str() {
        let needs = reply["needs"].as_str().unwrap_or_default();
        text.push_str(&format!("< needs {needs}; checkpoint {status}"));
        if let (Some(n), Some(id)) = (checkpoint["n"].as_u64(), checkpoint["id"].as_str()) {
            text.push_str(&format!(": {n} ({})", &id[..7]));
        }
        if let Some(ms) = checkpoint["ms"].as_f64() {
            text.push_str(&format!(", {} files, {ms} ms", checkpoint["files"]));
        }
        text.push('\n');
    } else {
        text.push_str("< ok\n");
    }
    for warning in reply["warnings"].as_array().into_iter().flatten().filter_map(|warning| warning["message"].as_str())
    {
        text.push_str(&format!("  warning: {warning}\n"));
    }
    text
}

fn tree_of(root: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).at("listing", &dir)? {
            let path = entry.at("listing", &dir)?.path();
            let facts = path.symlink_metadata().at("reading the status of", &path)?;
            let content = if facts.is_file() { std::fs::read(&path).at("reading", &path)? } else { Vec::new() };
            if facts.is_dir() {
                pending.push(path.clone());
            }
            tree.insert(path, (facts.permissions().mode(), content));
        }
    }
    Ok(tree)
}
