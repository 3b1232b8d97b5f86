//! `piton store clear`: whole histories go.

use std::collections::HashSet;
use std::time::Duration;

use crate::checkpoint::Workspace;
use crate::checkpoint::records::leftovers::sweep_removed;
use crate::checkpoint::upkeep::clear::{clear as clear_history, refuse_at_work};
use crate::checkpoint::upkeep::prune::{PrunePlan, PruneWish, keep_up};
use crate::checkpoint::upkeep::rounds::{UpkeepLock, looks_of_person, policy_of};
use crate::checkpoint::upkeep::survey::{Survey, SurveyedWorkspace};
use crate::cli::confirm::agreed;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::person;
use crate::cli::print;
use crate::error::{Code, Error, Result};
use crate::model::policy::Policy;
use crate::model::text::{bytes, count};
use crate::protocol::{ClearDocument, ClearItem};
use crate::settings;
use crate::store::Upkept;

/// The longest wait for a round of maintenance.
const PATIENCE: Duration = Duration::from_mins(1);

/// Removes the history of the named workspace, or all.
///
/// # Errors
/// `conflict` if somebody is at work in one of them; `workspace-gone` if there is no such history.
pub(super) fn clear(context: &Context, policy: &Policy, yes: bool) -> Result<Exit> {
    sweep_removed(context.home.path())?;
    let survey = Survey::of(&context.home, policy)?;
    let chosen = chosen(context, &survey)?;
    if chosen.is_empty() {
        match context.json {
            true => print::json_as_declared(&ClearDocument::default())?,
            false => print::data("There is no history to clear.\n")?,
        }
        return Ok(Exit::Nothing);
    }
    chosen.iter().try_for_each(|one| refuse_at_work(&one.workspace))?;
    if !context.json {
        print::data(&preview(&chosen))?;
    }
    if !yes && context.json {
        print::json_as_declared(&document(&chosen, 0, None))?;
        return Ok(Exit::Refused);
    }
    person::require("a cleared history cannot be restored")?;
    if let Some(exit) = (!yes).then(|| agreed("Clear")).flatten() {
        return Ok(exit);
    }
    let _upkeep = UpkeepLock::take(&context.home, "clearing", PATIENCE)?;
    let mut checkpoints = 0;
    for one in &chosen {
        checkpoints += clear_history(&context.home, &one.workspace, policy)?;
    }
    let upkept = count_anew(context)?;
    if context.json {
        print::json_as_declared(&document(&chosen, chosen.len(), Some(&upkept)))?;
    } else {
        let freed = bytes(upkept.freed.saturating_sub(upkept.written));
        print::data(&format!("Cleared {}. Freed {freed}.\n", count(checkpoints, "checkpoint")))?;
        if let Some(left) = &upkept.left {
            print::data(&format!("Some work is left for the next maintenance: {left}.\n"))?;
        }
    }
    Ok(if upkept.left.is_some() { Exit::Part } else { Exit::Done })
}

/// Has the store delete what nothing reaches, and writes down what the workspaces that are left take. The plan tells what
/// stays in any case; nothing of it is dropped here.
fn count_anew(context: &Context) -> Result<Upkept> {
    let common = settings::load(None, context.home.path(), &context.flags)?;
    let policy = |workspace: &Workspace| policy_of(context.home.path(), &context.flags, &common, workspace);
    let (wish, total) = (PruneWish::default(), common.policy.retention.total_bytes);
    let mut looks = looks_of_person(&context.home);
    let none = HashSet::new();
    match PrunePlan::make(&context.home, &policy, (wish, total), &mut looks, context.work()) {
        Ok(plan) => keep_up(&context.home, Some((&plan, &none)), context.work()),
        Err(error) => {
            print::warning(&format!("could not count the remaining data: {}", error.text()));
            keep_up(&context.home, None, context.work())
        }
    }
}

fn chosen<'s>(context: &Context, survey: &'s Survey) -> Result<Vec<&'s SurveyedWorkspace>> {
    if context.named_workspace().is_none() {
        return Ok(survey.workspaces.iter().collect());
    }
    let unknown = || {
        Error::new(Code::WorkspaceGone, "piton has no history of this directory")
            .hint("`piton store list` lists all histories")
    };
    let named = context.known_workspace()?.ok_or_else(unknown)?;
    Ok(survey.workspaces.iter().filter(|one| one.workspace.id == named.id).collect())
}

fn preview(chosen: &[&SurveyedWorkspace]) -> String {
    let mut text =
        "Once cleared, these histories cannot be restored. The files in the workspaces are not changed:\n".to_owned();
    for one in chosen {
        let own = one.own.map(|own| format!(", {}", bytes(own))).unwrap_or_default();
        let path = print::path(&one.workspace.path);
        add_line!(text, "  {path}: {}{own}", count(one.checkpoints, "checkpoint"));
    }
    text
}

fn document(chosen: &[&SurveyedWorkspace], cleared: usize, upkept: Option<&Upkept>) -> ClearDocument {
    let item = |(at, one): (usize, &&SurveyedWorkspace)| ClearItem {
        path: one.workspace.path.to_string_lossy().into_owned(),
        checkpoints: one.checkpoints,
        own: one.own,
        cleared: at < cleared,
    };
    ClearDocument {
        workspaces: chosen.iter().enumerate().map(item).collect(),
        freed: upkept.map_or(0, |upkept| upkept.freed.saturating_sub(upkept.written)),
        left: upkept.and_then(|upkept| upkept.left.clone()),
    }
}
