//! The protection of the workspace as a whole: which door guards it, and when that was seen last.

use super::report::{DoctorReport, Surroundings};
use crate::cli::protection::protection_of;
use crate::doors::protection::{AGENTS, NOBODY, further, summary};
use crate::protocol::ProtectionState;

/// Says whether the workspace is protected. Faults of clients and of the store have their own rows, with the mend.
pub(super) fn check(at: &Surroundings<'_>, report: &mut DoctorReport) {
    let Some(root) = &at.root else { return };
    // Errors of these are told by other checks.
    let (Ok(workspace), Ok(settings)) = (at.context.known_workspace(), at.context.settings()) else { return };
    let protection = protection_of(at.context, (root, workspace.as_ref()), &settings, None);
    for silent in &protection.silent {
        report.open(&*silent.client, format!("not guarded: {}", silent.text), &*silent.mend);
    }
    let text = summary(&protection);
    match protection.state {
        // Without a store that can be written, no door helps.
        _ if report.rows.iter().any(|row| row.is_wrong_of("store")) => {}
        ProtectionState::Protected => report.well("protection", text),
        ProtectionState::Unseen => report.note("protection", text),
        // Each client at work without events has its row.
        ProtectionState::NotGuarded if !protection.silent.is_empty() => {}
        ProtectionState::NotGuarded if protection.reasons.iter().any(|reason| reason.text == NOBODY) => {
            report.note("protection", text);
        }
        // The reason is no client's: a switch or a setting.
        _ if protection.reasons.iter().any(|reason| reason.client.is_none()) => {
            report.open("protection", text, "switch the guard on again; the reason says how");
        }
        _ => report.note("protection", text),
    }
    let is_news = |line: &String| line.starts_with("not seen") || line.starts_with(AGENTS);
    for line in further(&protection).into_iter().filter(is_news) {
        report.note("protection", line);
    }
}
