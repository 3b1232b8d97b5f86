//! `piton doctor`: looks at each door from end to end, and says of what is wrong how to mend it. It mends nothing itself.

pub(super) mod clients;
mod daemon;
pub(super) mod git;
mod git_answers;
mod ground;
mod protection;
mod refs;
mod report;
mod settings;
pub(super) mod shells;
mod store;
mod trial;

use std::path::PathBuf;

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::print;
use super::stop;
use crate::error::{Code, Error, Result};
use crate::protocol::{DoctorDocument, DoctorRow, MendBlock, RowState};
use report::{CheckRow, CheckState, DoctorReport, Mend, Surroundings};

/// The arguments of `piton doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Also list the checks that passed
    #[arg(long, conflicts_with = "refs")]
    pub all: bool,
    /// Only check that every checkpoint named by refs, state, journals and logs exists
    #[arg(long)]
    pub refs: bool,
    /// Restore missing refs that can be derived; nothing is deleted
    #[arg(long, requires = "refs")]
    pub repair: bool,
}

/// The checks in their order: a check comes after those that it depends on.
const CHECKS: &[(&str, Check)] = &[
    ("ground", ground::check),
    ("store", store::check),
    ("settings", settings::check),
    ("daemon", daemon::check),
    ("clients", clients::check),
    ("shells", shells::check),
    ("git", git::check),
    ("protection", protection::check),
];

type Check = fn(&Surroundings<'_>, &mut DoctorReport);

/// Looks at every integration, and says how to mend it.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn doctor(context: &Context, args: &DoctorArgs) -> Result<Exit> {
    if args.refs {
        return refs::doctor(context, args.repair);
    }
    let report = examine(context);
    if stop::is_asked() {
        return Err(Error::new(Code::ShuttingDown, "the checks were stopped"));
    }
    if context.json {
        print::json(&document(&report))?;
    } else {
        print::data(&text(&report, args.all))?;
    }
    Ok(match (report.is_well(), report.damaged) {
        (_, true) => Exit::Damaged,
        (true, false) => Exit::Done,
        (false, false) => Exit::Failed,
    })
}

/// Looks at every integration.
pub(super) fn examine(context: &Context) -> DoctorReport {
    let mut report = DoctorReport::default();
    let is_there = |root: PathBuf| match root.is_dir() {
        true => Ok(root),
        false => Err(Error::new(Code::WorkspaceGone, "the directory was deleted").path(root)),
    };
    let root = match context.root().and_then(is_there) {
        Ok(root) => Some(root),
        Err(error) => {
            report.check = "ground";
            let text = format!("{error}; no workspace was checked");
            report.open("workspace", text, "change to a project directory, or choose one with --workspace");
            None
        }
    };
    let surroundings = Surroundings { context, root };
    for (name, check) in CHECKS {
        if stop::is_asked() {
            break;
        }
        report.check = name;
        check(&surroundings, &mut report);
    }
    report
}

/// Returns the findings as a document.
pub(super) fn document(report: &DoctorReport) -> DoctorDocument {
    let row = |row: &CheckRow| {
        let (state, mend) = match &row.state {
            CheckState::Well => (RowState::Well, None),
            CheckState::Note => (RowState::Note, None),
            CheckState::Wrong(Mend::Command(command)) => (RowState::Wrong, Some(MendBlock::Command(command.clone()))),
            CheckState::Wrong(Mend::Step(step)) => (RowState::Wrong, Some(MendBlock::Step(step.clone()))),
        };
        DoctorRow { check: row.check.to_owned(), about: row.about.clone(), state, text: row.text.clone(), mend }
    };
    DoctorDocument {
        well: report.is_well(),
        build: crate::sys::process::build(),
        rows: report.rows.iter().map(row).collect(),
    }
}

/// Returns the findings for people, the checks that passed only `with_all`.
pub(super) fn text(report: &DoctorReport, with_all: bool) -> String {
    use crate::model::text::{count, padded, printable, width};
    let mut text = String::new();
    let columns = report.rows.iter().map(|row| width(&row.about)).max().unwrap_or(0).min(30);
    // Failures first; what is in order is counted, but for the answer to whether this directory is protected.
    let shown = |row: &&CheckRow| with_all || row.state != CheckState::Well || row.about == "protection";
    let rank = |row: &&CheckRow| match row.state {
        CheckState::Wrong(_) => 0,
        CheckState::Note => 1,
        CheckState::Well => 2,
    };
    let mut rows: Vec<&CheckRow> = report.rows.iter().filter(shown).collect();
    rows.sort_by_key(rank);
    for row in rows {
        let (word, fix) = match &row.state {
            CheckState::Well => ("ok  ", None),
            CheckState::Note => ("warn", None),
            CheckState::Wrong(Mend::Command(command)) => ("FAIL", Some(format!("fix:  {}", printable(command)))),
            CheckState::Wrong(Mend::Step(step)) => ("FAIL", Some(format!("to do:  {}", printable(step)))),
        };
        add_line!(text, "{word}  {}  {}", padded(&printable(&row.about), columns), printable(&row.text));
        if let Some(fix) = fix {
            add_line!(text, "      {:<columns$}  {}", "", print::bold(&fix));
        }
    }
    let wrong = report.rows.iter().filter(|row| matches!(row.state, CheckState::Wrong(_))).count();
    let well = report.rows.iter().filter(|row| row.state == CheckState::Well).count();
    let summary = match wrong {
        0 => "Nothing is wrong".to_owned(),
        _ => format!("{} to fix", count(wrong as u64, "fault")),
    };
    let all = if with_all || well == 0 { "" } else { "; `piton doctor --all` lists them" };
    add_line!(text, "\n{summary}. {} passed{all}.", count(well as u64, "check"));
    text
}
