//! The parts of an undo or redo in the other workspaces of its turn, as text.

use std::path::Path;

use super::print;
use super::report;
use crate::engine::parts::OUTSIDE;
use crate::model::text::printable;
use crate::protocol::{PreviewReply, RestoreReply, StepFault};

/// Returns the line above what a step does in another workspace.
pub(super) fn heading(workspace: &str) -> String {
    match workspace {
        OUTSIDE => "Outside of all workspaces:".to_owned(),
        root => format!("In {}:", print::path(Path::new(root))),
    }
}

/// Returns what a step would do in the other workspaces.
pub(super) fn others_before(reply: &PreviewReply) -> String {
    let mut text = String::new();
    for other in &reply.others {
        add_line!(text, "{}", heading(&other.workspace));
        match &other.preview {
            Some(preview) => text.push_str(&report::preview(&shown_preview(&other.workspace, preview))),
            None => text.push_str(&fault("not possible there", other.error.as_ref())),
        }
    }
    text
}

/// Returns what a step did in the other workspaces.
pub(super) fn others_after(reply: &RestoreReply, verb: &str, back: &str) -> String {
    let mut text = String::new();
    for other in &reply.others {
        add_line!(text, "{}", heading(&other.workspace));
        match &other.done {
            Some(done) => text.push_str(&report::outcome(&shown_result(&other.workspace, done), verb, back)),
            None => text.push_str(&fault("not done there", other.error.as_ref())),
        }
    }
    text
}

/// Returns what a step would do and did in the other workspaces, for a prompt in an agent client.
pub(super) fn others_answer(before: &PreviewReply, after: &RestoreReply, verb: &str, back: &str) -> String {
    let mut text = String::new();
    for other in &after.others {
        let same = before.others.iter().find(|known| known.workspace == other.workspace);
        let preview = same.and_then(|known| known.preview.as_deref());
        add_line!(text, "{}", heading(&other.workspace));
        match (preview, &other.done) {
            (Some(preview), Some(done)) => {
                let (preview, done) = (shown_preview(&other.workspace, preview), shown_result(&other.workspace, done));
                text.push_str(&report::answer(&preview, &done, verb, back));
            }
            (None, Some(done)) => text.push_str(&report::outcome(&shown_result(&other.workspace, done), verb, back)),
            (_, None) => text.push_str(&fault("not done there", other.error.as_ref())),
        }
    }
    text
}

/// Returns a preview with the paths that a person reads: absolute ones outside every workspace.
fn shown_preview(workspace: &str, preview: &PreviewReply) -> PreviewReply {
    let mut shown = preview.clone();
    if workspace == OUTSIDE {
        make_preview_absolute(&mut shown);
    }
    shown
}

/// Returns a result with the paths that a person reads.
fn shown_result(workspace: &str, done: &RestoreReply) -> RestoreReply {
    let mut shown = done.clone();
    if workspace == OUTSIDE {
        make_result_absolute(&mut shown);
    }
    shown
}

/// Makes all paths of a preview absolute, where the workspace is the root of the file system.
pub(super) fn make_preview_absolute(preview: &mut PreviewReply) {
    preview.plan.make_absolute();
    preview.left.make_absolute();
}

/// Makes all paths of a result absolute, where the workspace is the root of the file system.
pub(super) fn make_result_absolute(done: &mut RestoreReply) {
    done.done.make_absolute();
    done.left.make_absolute();
}

fn fault(what: &str, error: Option<&StepFault>) -> String {
    let why = error.map(|error| error.message.as_str()).unwrap_or_default();
    format!("  {what}: {}\n", printable(why))
}
