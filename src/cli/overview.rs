//! `piton` alone: the state of the protection in a few lines.

use std::time::{Duration, UNIX_EPOCH};

use super::context::Context;
use super::doctor::clients::{self, HookedClients};
use super::exit::Exit;
use super::print;
use crate::checkpoint::capture::request::listed_skips;
use crate::checkpoint::records::marks::{AtWork, at_work, guard_mark};
use crate::checkpoint::records::workspace::{Scope, scope_of};
use crate::checkpoint::{Checkpoint, Timeline, Workspace};
use crate::doors::replies;
use crate::engine::workspace::why_off;
use crate::error::{Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::text::{count, printable};
use crate::sys::clock::local_minute;

/// The time for which the last sidecar or daemon is told of after it has begun.
const LATELY: Duration = Duration::from_hours(24);

/// The step where nothing guards.
const INSTALL: &str = "  piton install --all                   guard the agent clients of this machine\n";

/// Says what is done in a directory that is too broad to be captured as a whole.
const BROAD: &str = "It is too broad for whole checkpoints: one holds only the files that an action is about to destroy, or \
                     that you name (`piton checkpoint LABEL -- PATH`). In a project below it checkpoints are whole.\n";

/// `piton` alone: a few lines.
pub(super) fn overview(context: &mut Context) -> Result<Exit> {
    if context.json {
        return super::status::status(context);
    }
    let Some(workspace) = context.known_workspace()? else {
        return unknown(context);
    };
    let timeline = context.timeline()?;
    let known = timeline.catalog().all()?;
    let mut broken = timeline.catalog().broken(&known)?;
    for damage in timeline.catalog().look_for_damages()?.found {
        if !broken.contains(&damage) {
            broken.push(damage);
        }
    }
    let shown: Vec<_> =
        known.checkpoints.iter().filter(|checkpoint| checkpoint.record.kind != CheckpointKind::Turn).collect();
    let unwritable = timeline.catalog().try_writing().err();
    let mut text = state(context, &workspace, unwritable.as_ref())?;
    let listed = shown.iter().filter(|checkpoint| checkpoint.record.kind().is_listed()).count();
    match shown.last() {
        None => text.push_str("No checkpoint yet.\n"),
        Some(last) => text.push_str(&newest(&timeline, last, listed)),
    }
    if let Err(error) = timeline.catalog().refuse_interrupted() {
        add_line!(text, "{}", error.text());
    }
    broken.iter().for_each(|fault| print::warning(&format!("the store is damaged: {fault}")));
    if let Some(cap) = replies::unmet_cap(&context.home, timeline.policy().retention.total_bytes) {
        add_line!(text, "{}.", cap);
    }
    text.push_str("\n  piton list · piton diff N · piton restore N · piton undo\n");
    print::data(&text)?;
    Ok(match (broken.is_empty(), unwritable) {
        (false, _) => Exit::Damaged,
        (true, Some(_)) => Exit::Failed,
        (true, None) => Exit::Done,
    })
}

fn unknown(context: &Context) -> Result<Exit> {
    let root = context.root()?;
    context.settings()?.faults().iter().for_each(|fault| print::warning(fault));
    let (shown, clients) = (print::path(&root), clients::hooked(context, &root));
    let is_broad = scope_of(&root) == Scope::TargetsOnly;
    let mut text = match clients.guarding.as_slice() {
        [] => format!(
            "{shown} is not protected: {}, and no checkpoint was taken.\n",
            why_no_hooks(&clients, "no agent client has hooks of piton's")
        ),
        clients => format!(
            "{shown} is guarded by the hooks of {} from their first action here on; no checkpoint was taken yet.\n",
            clients.join(", ")
        ),
    };
    if is_broad {
        text.push_str(BROAD);
    }
    if clients.guarding.is_empty() {
        add!(text, "\n{}", next_step(&clients));
    }
    if !is_broad {
        text.push_str("  piton checkpoint \"before the agent\"   take one now\n");
    }
    text.push_str("  piton demo                            see it at work\n");
    print::data(&text)?;
    Ok(Exit::Nothing)
}

/// Says why no agent client's hooks guard; `none` where no client has any.
fn why_no_hooks(clients: &HookedClients, none: &str) -> String {
    let idle: Vec<&str> = clients.idle.iter().map(|(client, _)| *client).collect();
    match idle.as_slice() {
        [] => none.to_owned(),
        idle => format!("the hooks of {} do not run", idle.join(", ")),
    }
}

/// Returns a line for each client whose hooks do not run.
fn idle_lines(clients: &HookedClients) -> String {
    let mut text = String::new();
    for (client, cause) in &clients.idle {
        add_line!(text, "  {client}: {cause}");
    }
    text
}

/// Returns the next step where no hooks guard.
fn next_step(clients: &HookedClients) -> String {
    if clients.idle.is_empty() { INSTALL.to_owned() } else { idle_lines(clients) }
}

/// Says whether the workspace is protected, and by whom.
fn state(context: &Context, workspace: &Workspace, unwritable: Option<&Error>) -> Result<String> {
    let settings = context.settings()?;
    let off = why_off(settings.policy.guard, &workspace.dir, &settings.origin("guard"));
    let off = off.or_else(|| unwritable.map(|error| format!("the store cannot be written: {}", error.text())));
    let clients = clients::hooked(context, &workspace.path);
    let root = print::bold(&print::path(&workspace.path));
    let since = print::local_time(&workspace.since);
    let mut text = match (off, clients.guarding.as_slice(), at_work(&guard_mark(&workspace.dir))) {
        (Some(why), _, _) => format!(
            "{root} is known since {since}, but NOT protected now.\n\
             No checkpoint is taken before a loss: {}.\n",
            printable(&why)
        ),
        (None, [], AtWork::Now) => format!(
            "{root} is protected, known since {since}: a sidecar, proxy or daemon of piton's is at work here.\n"
        ),
        (None, [], AtWork::Since(time)) if time.elapsed().is_ok_and(|since| since < LATELY) => {
            let ms = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
            format!(
                "{root} is known since {since}. The last sidecar or daemon of piton's began work here on {}, and has \
                 ended: nothing guards it now.\n{}",
                local_minute(ms as i64),
                idle_lines(&clients)
            )
        }
        (None, [], AtWork::Since(_) | AtWork::Never) => format!(
            "{root} is known since {since}, but NOT protected now: {}, and no sidecar is at work.\n{}",
            why_no_hooks(&clients, "no agent client has working hooks of piton's"),
            next_step(&clients)
        ),
        (None, clients, _) => {
            format!("{root} is protected, known since {since}: the hooks of {}.\n", clients.join(", "))
        }
    };
    if workspace.scope == Scope::TargetsOnly {
        text.push_str(BROAD);
    }
    for mistake in &settings.mistakes {
        add_line!(text, "Settings: {}.", printable(&mistake.text()));
    }
    Ok(text)
}

fn newest(timeline: &Timeline, last: &Checkpoint, number: usize) -> String {
    let mut text = String::new();
    add_line!(
        text,
        "{}; the last: {} ({}, {}).",
        count(number as u64, "checkpoint"),
        last.record.number,
        print::local_time(&last.record.time),
        printable(&last.record.reason)
    );
    // A damaged one is told among the damages.
    let contents = timeline.catalog().contents(last);
    let skips = contents.map(|(_, coverage)| listed_skips(&coverage)).unwrap_or_default();
    if !skips.is_empty() {
        let names: Vec<String> =
            skips.iter().take(3).map(|(path, why)| format!("{} ({why})", path.display())).collect();
        let more = if skips.len() > 3 { ", …" } else { "" };
        add_line!(text, "Left out: {}: {}{more}", count(skips.len() as u64, "path"), names.join(", "));
    }
    text
}
