//! The store and the records of workspaces: packs, refs, logs, interrupted restores, what hooks wrote down.

use std::path::Path;

use super::ground::private;
use super::report::{DoctorReport, Surroundings, quoted_path};
use crate::checkpoint::records::unguarded;
use crate::checkpoint::records::validate::{Damage, Finding, check as check_refs};
use crate::checkpoint::upkeep::forget::unfinished;
use crate::checkpoint::upkeep::relocate;
use crate::checkpoint::upkeep::usage::{UNMET_STEP, Usage};
use crate::checkpoint::{Home, records::health, records::mishaps};
use crate::cli::context::Context;
use crate::cli::print::{mishap, path};
use crate::cli::protection::{CANNOT_WRITE, unwritable};
use crate::cli::stop;
use crate::cli::unguarded::{bring_in, removal};
use crate::doors::protection as words;
use crate::error::Code;
use crate::model::text::{bytes, count};
use crate::settings;
use crate::store::Store;
use crate::store::health::Ailment;

/// The most refs and packs that are listed one by one.
const SHOWN: usize = 20;

/// The step after a loss of content.
const BRING_BACK: &str =
    "restore the store from a backup, or take a checkpoint to save again what the workspace still contains";

/// The most mishaps that are listed.
const NEWEST: usize = 3;

/// Looks at the store.
pub(super) fn check(at: &Surroundings<'_>, report: &mut DoctorReport) {
    let home = &at.context.home;
    let dir = home.path().join("store.git");
    // Errors of finding the workspace are told elsewhere.
    let workspace = at.root.as_ref().and_then(|_| at.context.known_workspace().ok().flatten());
    let unwritable = unwritable(at.context, workspace.as_ref());
    if let Some(error) = &unwritable {
        report.open("store", format!("not guarded: {}", words::unwritable(error)), CANNOT_WRITE);
    }
    if dir.symlink_metadata().is_err() {
        report.note("store", "there is none yet; the first checkpoint creates it");
    } else if private(&dir, 0o700, "store", report) {
        examine(at.context, report, unwritable.is_some());
    }
    records(home, report);
    caps(at.context, report);
    if let Some(left) = unfinished(home) {
        report.open("forget", left, "run that command; until then some of the content might still be there");
    }
    if let Some(to) = relocate::unfinished(home) {
        unfinished_move(home, &to, report);
    }
    unguarded(at.context, report);
    let told = mishaps::newest(home);
    for line in told.iter().rev().take(NEWEST).rev() {
        report.note("mishap", mishap(line));
    }
    if !told.is_empty() {
        let text = format!("{} of hooks recorded", count(told.len() as u64, "error"));
        let command = format!("rm {}", quoted_path(&home.path().join("mishaps")));
        report.wrong("mishaps", format!("{text}; after you have reviewed them, remove the record"), command);
    }
}

/// Names the actions of the workspace that ran without a checkpoint.
fn unguarded(context: &Context, report: &mut DoctorReport) {
    // Where the workspace cannot be found, another check says so.
    let Some(workspace) = context.known_workspace().ok().flatten() else { return };
    bring_in(&context.home, &workspace);
    let number = unguarded::list(&workspace).len();
    if number > 0 {
        let text = format!("{} ran without a checkpoint; `piton status` lists them", count(number as u64, "action"));
        report.wrong(
            "unguarded",
            format!("{text}; after you have reviewed them, remove the record"),
            removal(&workspace),
        );
    }
}

/// Says of a move that was killed what it has left, and which command takes that away.
fn unfinished_move(home: &Home, to: &Path, report: &mut DoctorReport) {
    if home.path() == to {
        return report.wrong(
            "move",
            "the store was moved, but the content at its old place still exists",
            "piton store status",
        );
    }
    let text = format!("a move of the store to {} was interrupted; its copy might still be there", path(to));
    report.wrong("move", text, format!("piton store move {}", quoted_path(to)));
}

/// Tells whether a power cut has left logs that are not applied yet.
pub(super) fn waits(home: &Home) -> bool {
    health::records(home).is_ok_and(|records| !records.unapplied.is_empty())
}

fn examine(context: &Context, report: &mut DoctorReport, cannot_write: bool) {
    let home = &context.home;
    let mut store = match Store::open(home.path()) {
        Ok(store) => store,
        Err(error) => {
            report.damaged |= error.code() == Code::StoreDamaged;
            return report.open("store", error.text(), "fix what the message reports; nothing was changed");
        }
    };
    store.report_to(&context.progress);
    let looked = store.read_everything(&stop::flow).and_then(|proven| {
        let (ailments, findings) = (store.ailments()?, check_refs(home, &store, &proven)?);
        Ok((proven, ailments, findings))
    });
    let (proven, ailments, findings) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            report.damaged |= error.code() == Code::StoreDamaged;
            return report.open("store", error.text(), "fix what the message reports, then try again");
        }
    };
    let (rotten, harms) = (proven.sentence(), findings.iter().filter(|finding| is_own(&finding.damage)));
    let harms: Vec<&Finding> = harms.collect();
    let is_whole = ailments.is_empty() && rotten.is_none() && harms.is_empty();
    report.damaged |= !is_whole;
    if let Some(text) = rotten {
        report.open("store", text, BRING_BACK);
    }
    for finding in harms.iter().take(SHOWN) {
        let text = format!("workspace {}: {}", finding.workspace, finding.damage);
        match &finding.repair {
            Some(_) => report.wrong("store", text, "piton doctor --refs --repair"),
            None => report.open("store", text, "see `piton doctor --refs` (docs/FAULTS.md)"),
        }
    }
    let is_of_ref = |ailment: &Ailment| matches!(ailment, Ailment::BrokenRef(..) | Ailment::Hole(..));
    let lacks_packs = !ailments.iter().all(is_of_ref);
    for ailment in ailments.iter().take(SHOWN) {
        let text = ailment.to_string();
        match ailment {
            Ailment::PackWithoutIndex(pack) => {
                report.wrong("store", text, format!("git index-pack {}", quoted_path(pack)));
            }
            // With the pack its checkpoint may come back.
            Ailment::BrokenRef(..) if lacks_packs => report.open("store", text, "fix the packs first"),
            Ailment::IndexWithoutPack(file) | Ailment::BrokenRef(file, _) => {
                report.wrong("store", text, format!("rm {}", quoted_path(file)));
            }
            Ailment::DamagedIndex(..) => report.wrong("store", text, "piton checkpoint"),
            Ailment::TornPack(..) | Ailment::Hole(..) => {
                report.open("store", text, BRING_BACK);
            }
        }
    }
    if ailments.len() > SHOWN {
        report.note("store", format!("and {} more", ailments.len() - SHOWN));
    }
    if is_whole && !cannot_write {
        let read = count(proven.objects, "object");
        report.well("store", format!("{}: {read} read and intact; the store is writable", path(store.git_dir())));
    }
}

/// Looks whether the cap of the store can be met.
fn caps(context: &Context, report: &mut DoctorReport) {
    // Mistakes in settings are told in their own place.
    let Ok(settings) = settings::load(None, context.home.path(), &context.flags) else { return };
    let Some(usage) = Usage::read(&context.home) else { return };
    match usage.unmet_cap(settings.policy.retention.total_bytes) {
        Some(unmet) => report.open("cap", unmet.to_string(), UNMET_STEP),
        None => {
            report.well("cap", format!("all checkpoints used {} at the last maintenance run", bytes(usage.stored)));
        }
    }
}

/// True for what no ailment of the store tells.
fn is_own(damage: &Damage) -> bool {
    let is_told = matches!(
        damage,
        Damage::TornRef { .. }
            | Damage::NoCommit { .. }
            | Damage::Gap { .. }
            | Damage::Hole { .. }
            | Damage::Pack { .. }
    );
    damage.is_harm() && !is_told
}

fn records(home: &Home, report: &mut DoctorReport) {
    let records = match health::records(home) {
        Ok(records) => records,
        Err(error) => return report.open("workspaces", error.text(), "fix what the message reports, then try again"),
    };
    for dir in &records.unreadable {
        let text = format!(
            "cannot read the record {}, so its owner is unknown; its checkpoints are kept in the store",
            dir.display()
        );
        let id = dir.file_name().unwrap_or_default().to_string_lossy();
        let content = format!("{{\"id\":\"{id}\",\"path\":\"/THE/WORKSPACE\"}}");
        let step =
            format!("to assign it to a workspace, write {content} into {}", dir.join("workspace.json").display());
        report.open("workspaces", text, step);
    }
    for (workspace, begin) in &records.interrupted {
        let text = format!("the restore {} of {} was interrupted", begin.op, workspace.path.display());
        let command = format!("piton --workspace {} restore --continue", quoted_path(&workspace.path));
        report.wrong("restore", format!("{text} (to give it up, use `--abort` instead of `--continue`)"), command);
    }
    if !records.unapplied.is_empty() {
        let text = format!(
            "{} from before the last system start not applied yet",
            count(records.unapplied.len() as u64, "log")
        );
        report.wrong("logs", text, "piton status");
    }
    if records.unreadable.is_empty() && records.interrupted.is_empty() && records.unapplied.is_empty() {
        report.well("workspaces", format!("{} known", count(records.known.len() as u64, "workspace")));
    }
}
