//! `piton demo`: the main job on real input.
//!
//! Streams `examples/session.jsonl` through a real sidecar process over a scratch copy of `examples/workspace/`. The
//! announced actions are really done there, between their `before` and `after` events. Then the losses are listed,
//! compared and undone, and the result is checked byte by byte. A person reads it in three acts;
//! `--protocol` shows the events and replies instead.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stdout};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;

use serde::Deserialize;
use serde_json::Value;

use super::exit::Exit;
use super::print;
use super::scratch::{Scratch, Sidecar};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::text::count;
use crate::protocol::{
    BeforeReply, Body, CheckpointBlock, CheckpointStatus, EmptyReply, ListReply, RunEndReply, parse, spelling,
};

/// The arguments of `piton demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Keep the scratch directory
    #[arg(long)]
    pub keep: bool,
    /// Show the protocol: each event of the session, and the reply
    #[arg(long)]
    pub protocol: bool,
}

const SESSION: &str = include_str!("../../examples/session.jsonl");

/// The pause after each step of the agent on a terminal, so that a person can follow.
const PAUSE: Duration = Duration::from_millis(700);

/// The turn of the session in which files are lost.
const LOSSES: &str = "t2";

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
    headline(1, "An agent works")?;
    print::data(&format!("\nIn a scratch copy of examples/workspace: {}\n", print::path(&scratch.workspace())))?;
    let mut before_loss = Tree::new();
    let mut sidecar = Sidecar::start(scratch.command(&["sidecar"])?)?;
    for text in SESSION.lines() {
        let line = text.replace("$WORKSPACE", &scratch.workspace().to_string_lossy());
        let event = parse(line.as_bytes(), 0).map_err(|failure| failure.error)?;
        if matches!(&event.body, Body::TurnStart(turn) if turn.turn == LOSSES) {
            before_loss = tree_of(&scratch.workspace())?;
        }
        let said = if args.protocol { format!("\n> {}\n", described(&event.body)) } else { narrated(&event.body) };
        print::data(&said)?;
        match event.id {
            Some(_) => print::data(&ask(&mut sidecar, &event.body, args.protocol)?)?,
            None => sidecar.client.tell(&event.body)?,
        }
        act(&line, &event.body, &scratch.workspace())?;
        if !said.is_empty() && stdout().is_terminal() {
            std::thread::sleep(PAUSE);
        }
    }
    sidecar.finish()?;
    let after_loss = tree_of(&scratch.workspace())?;
    take_back(&scratch, &before_loss, &after_loss)
}

/// Prints the headline of an act.
fn headline(act: usize, text: &str) -> Result<()> {
    print::data(&format!("\n{}\n", print::bold(&format!("{act}. {text}"))))
}

/// Lists, diffs, undoes and restores with the verbs a person would use, and checks the result.
fn take_back(scratch: &Scratch, before: &Tree, after: &Tree) -> Result<Exit> {
    headline(2, "Files are missing: what did the agent do?")?;
    scratch.piton(&["list"])?;
    let number = before_loss(scratch)?;
    scratch.piton(&["diff", "--turn", "--stat"])?;
    headline(3, "One command restores them")?;
    scratch.piton(&["undo", "--yes"])?;
    let undone = tree_of(&scratch.workspace())? == *before;
    print::data("\nAn undo can be redone, and any checkpoint can be restored:\n")?;
    scratch.piton(&["redo", "--yes"])?;
    let redone = tree_of(&scratch.workspace())? == *after;
    scratch.piton(&["restore", &number, "--yes"])?;
    let restored = tree_of(&scratch.workspace())? == *before;
    let word = |good: bool| if good { "byte for byte, permissions included" } else { "NOT as it was" };
    print::data(&format!(
        "\nAfter the undo the workspace is as it was before the loss: {}.\n\
         After the redo it is as the agent left it: {}.\nAfter the restore it is whole again: {}.\n",
        word(undone),
        word(redone),
        word(restored)
    ))?;
    Ok(if undone && redone && restored { Exit::Done } else { Exit::Failed })
}

/// Returns an event as a person sees it; empty for one that a person does not see.
fn narrated(event: &Body) -> String {
    match event {
        Body::TurnStart(turn) => format!("\nYou: {}\n", turn.prompt.as_deref().unwrap_or_default()),
        Body::ShellBefore(shell) => format!("  agent  $ {}\n", shell.command),
        Body::ToolBefore(call) => {
            format!("  agent  {} {}\n", call.tool, call.input["path"].as_str().unwrap_or_default())
        }
        _ => String::new(),
    }
}

/// Returns the number of the checkpoint that was taken before `rm -rf`.
fn before_loss(scratch: &Scratch) -> Result<String> {
    let output = scratch.command(&["list", "--json"])?.output().at("running", "piton")?;
    let list: ListReply = serde_json::from_slice(&output.stdout)
        .map_err(|error| Error::new(Code::Internal, "the list is not JSON").caused_by(error))?;
    let row = list.checkpoints.iter().find(|row| row.reason.contains("rm -rf"));
    row.map(|row| row.n.to_string())
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
fn act(line: &str, event: &Body, workspace: &Path) -> Result<()> {
    // A field of this session's own, which piton ignores.
    if let Ok(NotRun { demo: Some(why) }) = serde_json::from_str(line) {
        return print::data(&format!("         ({why})\n"));
    }
    match event {
        Body::ShellBefore(shell) => {
            let mut program = Command::new("sh");
            let ran = program.arg("-c").arg(&shell.command).current_dir(workspace).stdout(Stdio::null()).status();
            ran.map(drop).at("running", "sh")
        }
        Body::ToolBefore(call) => tool(&call.input, workspace),
        _ => Ok(()),
    }
}

/// The reason why the demo does not do what an event announces.
#[derive(Deserialize)]
struct NotRun {
    demo: Option<String>,
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

/// Returns an event in a few words.
fn described(event: &Body) -> String {
    let detail = match event {
        Body::Hello(hello) => hello.client.clone(),
        Body::RunStart(run) => run.goal.clone(),
        Body::TurnStart(turn) => turn.prompt.clone(),
        Body::ShellBefore(shell) => Some(shell.command.clone()),
        Body::ToolBefore(call) => Some(format!("{} {}", call.tool, call.input["path"].as_str().unwrap_or(""))),
        _ => None,
    };
    format!("{}  {}", event.name(), detail.unwrap_or_default())
}

/// Sends an event to the sidecar, and returns its reply in a few lines: for a person, or as the protocol has it.
fn ask(sidecar: &mut Sidecar, event: &Body, protocol: bool) -> Result<String> {
    let id = sidecar.client.send(event)?;
    let ok = || if protocol { "< ok\n".to_owned() } else { String::new() };
    let before = if protocol { before } else { narrated_reply };
    let end =
        |end: RunEndReply| end.checkpoint.as_ref().filter(|_| protocol).map(|block| format!("< {}", taken(block)));
    let answer = match event {
        Body::ToolBefore(_) | Body::ShellBefore(_) => sidecar.client.reply(id).map(|reply| reply.map(before)),
        Body::RunEnd(_) => sidecar.client.reply(id).map(|reply| reply.map(|reply| end(reply).unwrap_or_else(ok))),
        _ => sidecar.client.reply(id).map(|reply| reply.map(|EmptyReply {}| ok())),
    };
    match answer {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(Error::new(Code::Internal, "the sidecar gave no reply")),
        Err(refused) if refused.is(Code::ShuttingDown) => Err(refused.into()),
        Err(refused) => Ok(format!("< {}: {}\n", refused.code.text(), refused.message)),
    }
}

/// Returns what piton does before an action, as a person sees it.
fn narrated_reply(reply: BeforeReply) -> String {
    let mut text = String::new();
    let block = &reply.checkpoint;
    if let (CheckpointStatus::Taken, Some(n), Some(files)) = (block.status, block.n, block.files) {
        let took = block.ms.map(|ms| format!(" in {ms} ms")).unwrap_or_default();
        text.push_str(&format!("         piton saved {} first{took}: checkpoint {n}\n", count(files, "file")));
    }
    for warning in reply.warnings {
        text.push_str(&format!("         piton warns: {}\n", warning.message));
    }
    text
}

/// Returns the reply to an event before an action.
fn before(reply: BeforeReply) -> String {
    let mut text = format!("< needs {}; {}", reply.needs.text(), taken(&reply.checkpoint));
    for warning in reply.warnings {
        text.push_str(&format!("  warning: {}\n", warning.message));
    }
    text
}

/// Returns a checkpoint on one line.
fn taken(block: &CheckpointBlock) -> String {
    let mut text = format!("checkpoint {}", spelling(&block.status));
    if let (Some(n), Some(id)) = (block.n, &block.id) {
        text.push_str(&format!(": {n} ({})", &id[..7]));
    }
    if let (Some(files), Some(ms)) = (block.files, block.ms) {
        text.push_str(&format!(", {files} files, {ms} ms"));
    }
    text.push('\n');
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
