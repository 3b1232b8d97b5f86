//! `piton store status` and `piton store list`.

use std::collections::BTreeMap;

use crate::checkpoint::upkeep::standing::Standing;
use crate::checkpoint::upkeep::survey::{Survey, SurveyedWorkspace};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::print;
use crate::doors::replies;
use crate::error::Result;
use crate::model::policy::Policy;
use crate::model::text::{bytes, count, padded, printable, shell_word, width};
use crate::protocol::{StoreDocument, StoreListDocument, StoredWorkspace};
use crate::sys::clock::rfc3339;
use crate::sys::fs::space::bytes_on_disk;

/// The workspaces that `status` shows.
const SHOWN: usize = 10;

/// Shows the store as a whole, and the workspaces that were touched last.
///
/// # Errors
/// When workspaces or packed refs cannot be read.
pub(super) fn status(context: &Context, policy: &Policy) -> Result<Exit> {
    let survey = Survey::of(&context.home, policy)?;
    if context.json {
        print::json_as_declared(&document(context, policy, &survey))?;
        return Ok(Exit::Done);
    }
    print::data(&text(context, policy, &survey))?;
    Ok(Exit::Done)
}

/// Lists all workspaces.
///
/// # Errors
/// When workspaces or packed refs cannot be read.
pub(super) fn list(context: &Context, policy: &Policy) -> Result<Exit> {
    let survey = Survey::of(&context.home, policy)?;
    if context.json {
        print::json_as_declared(&StoreListDocument { workspaces: items(&survey) })?;
    } else if survey.workspaces.is_empty() {
        print::data("piton has no history of any directory.\n")?;
    } else {
        print::data(&rows(&survey, survey.workspaces.len()))?;
    }
    Ok(if survey.workspaces.is_empty() { Exit::Nothing } else { Exit::Done })
}

fn text(context: &Context, policy: &Policy, survey: &Survey) -> String {
    let (mut text, census) = (String::new(), &survey.census);
    let checkpoints: u64 = survey.workspaces.iter().map(|one| one.checkpoints).sum();
    let of = count(survey.workspaces.len() as u64, "workspace");
    let cap = policy.retention.total_bytes;
    let takes = match &survey.usage {
        Some(usage) => {
            let at = print::local_time(&rfc3339(usage.at));
            format!(
                "{}; the limit is {}; several workspaces share {} (counted on {at})",
                bytes(usage.stored),
                bytes(cap),
                bytes(usage.shared)
            )
        }
        None => {
            let shared = census.pack_bytes + census.loose_bytes;
            format!("{} without private files; the limit is {}", bytes(shared), bytes(cap))
        }
    };
    let mut by_standing: BTreeMap<&str, u64> = BTreeMap::new();
    survey.workspaces.iter().for_each(|one| *by_standing.entry(one.judged.standing.word()).or_default() += 1);
    let standing: Vec<String> = by_standing.iter().map(|(word, n)| format!("{n} {word}")).collect();
    for (name, value) in [
        ("store", print::path(context.home.path())),
        ("checkpoints", format!("{checkpoints} of {of}")),
        ("on disk", bytes(bytes_on_disk(context.home.path()))),
        ("checkpoints take", takes),
        ("packs", format!("{}, {}", count(census.packs, "pack"), bytes(census.pack_bytes))),
        ("loose", format!("{}, {}", count(census.loose, "object"), bytes(census.loose_bytes))),
        ("directories", if standing.is_empty() { "none".to_owned() } else { standing.join(", ") }),
    ] {
        add_line!(text, "{name:<16} {value}");
    }
    if let Some(cap) = replies::unmet_cap(&context.home, cap) {
        add_line!(text, "{:<16} {cap}", "limit");
    }
    if !survey.workspaces.is_empty() {
        add_line!(text, "\n{}", rows(survey, SHOWN).trim_end());
    }
    let left = survey.workspaces.len().saturating_sub(SHOWN);
    if left > 0 {
        add_line!(text, "and {} more; to list all, run `piton store list`", left);
    }
    text
}

/// Renders the first workspaces as a table, and what to do about those that moved.
fn rows(survey: &Survey, most: usize) -> String {
    let shown: Vec<&SurveyedWorkspace> = survey.workspaces.iter().take(most).collect();
    let path = |one: &SurveyedWorkspace| print::path(&one.workspace.path);
    let columns = shown.iter().map(|one| width(&path(one))).max().unwrap_or(0);
    let mut text = String::new();
    let head = padded("workspace", columns);
    add_line!(
        text,
        "{head}  {:<9}  {:>14}  {:>9}{:<11}  {:<16}  runs",
        "state",
        "saved",
        "own size",
        " + shared",
        "last used"
    );
    for one in &shown {
        let touched = one.touched.map_or_else(|| "never".to_owned(), |time| print::local_time(&rfc3339(time)));
        let own = one.own.map_or_else(|| "unknown".to_owned(), bytes);
        let shared = one.shared.filter(|shared| *shared > 0).map(|shared| format!(" + {}", bytes(shared)));
        let clients = one.clients.iter().map(|client| printable(client)).collect::<Vec<_>>().join(", ");
        let line = format!(
            "{}  {}  {:>14}  {:>9}{}  {touched}  {}  {clients}",
            padded(&path(one), columns),
            padded(one.judged.standing.word(), 9),
            count(one.checkpoints, "checkpoint"),
            own,
            padded(&shared.unwrap_or_default(), 11),
            count(one.runs, "run"),
        );
        add_line!(text, "{}", line.trim_end());
    }
    for one in &shown {
        let from = path(one);
        match &one.judged.standing {
            Standing::Moved(to) => {
                let words = [&one.workspace.path, to].map(|path| shell_word(&path.to_string_lossy()));
                add_line!(
                    text,
                    "{from} is now {}; to move its history there, run `piton store adopt {}`",
                    print::path(to),
                    words.join(" ")
                );
            }
            Standing::Unknown | Standing::Unmounted => add_line!(text, "{from}: {}", printable(&one.judged.reason)),
            Standing::Live | Standing::Orphan => {}
        }
        if let Some(above) = above(survey, one) {
            add_line!(text, "{from} is part of {}", printable(&above));
        }
    }
    text
}

/// Returns the directory of the workspace that one is a part of.
fn above(survey: &Survey, one: &SurveyedWorkspace) -> Option<String> {
    let id = one.workspace.part_of.as_ref()?;
    let above = survey.workspaces.iter().find(|other| other.workspace.id == *id)?;
    Some(above.workspace.path.to_string_lossy().into_owned())
}

fn items(survey: &Survey) -> Vec<StoredWorkspace> {
    let item = |one: &SurveyedWorkspace| StoredWorkspace {
        id: one.workspace.id.clone(),
        path: one.workspace.path.to_string_lossy().into_owned(),
        since: one.workspace.since.clone(),
        clients: one.clients.clone(),
        runs: one.runs,
        checkpoints: one.checkpoints,
        fetched: one.fetched,
        own: one.own,
        shared: one.shared,
        touched: one.touched.map(rfc3339),
        guarded: one.is_guarded,
        standing: one.judged.standing.word().to_owned(),
        reason: one.judged.reason.clone(),
        moved_to: match &one.judged.standing {
            Standing::Moved(to) => Some(to.to_string_lossy().into_owned()),
            _ => None,
        },
        was: one.workspace.was.as_ref().map(|path| path.to_string_lossy().into_owned()),
        part_of: above(survey, one),
    };
    survey.workspaces.iter().map(item).collect()
}

fn document(context: &Context, policy: &Policy, survey: &Survey) -> StoreDocument {
    let (usage, census) = (survey.usage.as_ref(), &survey.census);
    StoreDocument {
        home: context.home.path().to_string_lossy().into_owned(),
        stored: usage.map(|usage| usage.stored),
        shared: usage.map(|usage| usage.shared),
        counted: usage.map(|usage| rfc3339(usage.at)),
        cap: policy.retention.total_bytes,
        over: usage.and_then(|usage| usage.unmet_cap(policy.retention.total_bytes)).map_or(0, |cap| cap.over),
        packs: census.packs,
        pack_bytes: census.pack_bytes,
        loose: census.loose,
        loose_bytes: census.loose_bytes,
        workspaces: items(survey),
    }
}
