//! Settings: mistakes, what waits to be trusted, guards that are off.

use super::report::{DoctorReport, Surroundings, quoted_path};
use crate::checkpoint::records::state::WorkspaceState;
use crate::model::policy::Guard;
use crate::settings::Waiting;
use crate::sys::clock::now_ms;

/// The mark of a warning that only waits for the user's trust.
const TRUST: &str = "piton config trust";

/// Looks at the settings.
pub(super) fn check(at: &Surroundings<'_>, report: &mut DoctorReport) {
    let context = at.context;
    let effective = match context.settings() {
        Ok(effective) => effective,
        Err(error) => {
            return report.open("settings", error.text(), "fix the line that the message shows (docs/CONFIG.md)");
        }
    };
    for mistake in &effective.mistakes {
        match mistake.waiting {
            Some(Waiting::ForTrust) => report.wrong("settings", mistake.text(), TRUST),
            Some(Waiting::OutsideSessions) => {
                report.open("settings", mistake.text(), "set it in your own settings file");
            }
            None => {
                report.open("settings", mistake.error().text(), "fix the line that the message shows (docs/CONFIG.md)");
            }
        }
    }
    let workspace = at.root.as_deref().map(quoted_path);
    for warning in &effective.warnings {
        match workspace.as_ref().filter(|_| warning.contains(TRUST)) {
            Some(root) => report.wrong("settings", warning, format!("piton --workspace {root} config trust")),
            None => report.open("settings", warning, "fix the line that the message shows (docs/CONFIG.md)"),
        }
    }
    if effective.policy.guard == Guard::Off {
        let place = effective.origin("guard");
        report.open(
            "guard",
            format!("`guard: off` is set ({place}), so nothing is saved before a loss"),
            "remove that setting",
        );
    }
    let known = context.known_workspace().ok().flatten();
    if let Some(known) = known.filter(|known| WorkspaceState::load(&known.dir).is_off(now_ms())) {
        let text = format!("the guard of {} is switched off", known.path.display());
        report.wrong("guard", text, format!("piton --workspace {} on", quoted_path(&known.path)));
    }
    if effective.faults().is_empty() {
        let sources = effective.policy.sources.len();
        report.well("settings", if sources == 0 { "using defaults".to_owned() } else { files(sources) });
    }
}

fn files(number: usize) -> String {
    format!("read from {}", crate::model::text::count(number as u64, "file"))
}
