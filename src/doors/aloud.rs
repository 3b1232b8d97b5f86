//! Decisions and notices in sentences for people, for doors whose stdout carries foreign data.

use std::path::Path;
use std::sync::Arc;

use super::output::Output;
use crate::checkpoint::catalog::gaps::Gap;
use crate::engine::decision::{Decision, Notice, Protection};
use crate::engine::session::Tell;
use crate::model::coverage::not_held;
use crate::model::text::printable;

/// The most paths that a sentence names.
const MOST: usize = 100;

/// Returns what says notices on an output for people.
pub(super) fn teller(output: &Arc<Output>) -> Tell {
    let output = Arc::clone(output);
    Box::new(move |notice| speak(&output, of_notice(&notice)))
}

/// Writes sentences for people, a line each.
pub(super) fn speak(output: &Output, sentences: Vec<String>) {
    for sentence in sentences {
        output.send(format!("piton: {}\n", printable(&sentence)).into_bytes());
    }
}

/// Returns what a person is to know of a decision; nothing, of most.
pub(super) fn of_decision(decision: &Decision) -> Vec<String> {
    match decision {
        Decision::Opened(facts) => facts.faults.clone(),
        Decision::Turn(turn) => turn.protection.iter().filter_map(of_protection).collect(),
        Decision::Action(action) => {
            let warnings = action.warnings.iter().map(|warning| warning.message.clone());
            let reason = action.stance.reason().map(str::to_owned);
            let own = of_protection(&action.protection).into_iter().chain(of_gaps(None, &action.not_held));
            let others = action.others.iter().flat_map(|other| {
                let named = |text| format!("{}: {text}", other.root.display());
                of_protection(&other.protection)
                    .map(named)
                    .into_iter()
                    .chain(of_gaps(Some(&other.root), &other.not_held))
            });
            warnings.chain(reason).chain(own).chain(others).collect()
        }
        Decision::TurnEnded { notices, .. } => notices.clone(),
        Decision::After { .. } => Vec::new(),
    }
}

/// Returns what a person is to know of a notice; nothing, of most.
pub(super) fn of_notice(notice: &Notice) -> Vec<String> {
    match notice {
        Notice::Fault(error) => vec![error.text()],
        Notice::JobFailed { reason, .. } => vec![format!("a checkpoint failed: {reason}")],
        Notice::RestoreInterrupted(_) => {
            vec!["a restore was interrupted; run `piton restore --continue` or `piton restore --abort`".to_owned()]
        }
        Notice::Settled(settled) => match &settled.protection {
            Protection::Failed(reason) => vec![format!("a checkpoint failed: {reason}")],
            // Its paths are absolute, so that they tell the workspace.
            _ => of_gaps(settled.root.as_deref(), &settled.not_held).into_iter().collect(),
        },
        Notice::WatcherDegraded { reason } => vec![reason.clone()],
        Notice::ConfigReloaded { .. } | Notice::Autosaved(_) | Notice::LowDisk { .. } | Notice::StoreCap(_) => {
            Vec::new()
        }
    }
}

fn of_protection(protection: &Protection) -> Option<String> {
    match protection {
        Protection::Failed(why) => Some(format!("no checkpoint: {why}")),
        other => other.fault().map(str::to_owned),
    }
}

fn of_gaps(root: Option<&Path>, gaps: &[Gap]) -> Option<String> {
    let sentence = not_held(gaps.iter().take(MOST).map(|gap| {
        let path = root.map_or_else(|| gap.path.display(), |root| gap.path.under(root).display().to_string());
        (if path.is_empty() { ".".to_owned() } else { path }, gap.weight)
    }))?;
    Some(format!("{sentence}; if this action deletes that, no checkpoint can restore it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::decision::{ActionDecision, LATE, Settled, Stance, TurnDecision};
    use crate::error::{Code, Error};
    use crate::model::coverage::{SkipReason, Weight};
    use crate::model::effect::{Class, Needs, Severity, Warning};
    use crate::model::path::RelPath;

    fn action() -> ActionDecision {
        ActionDecision { needs: Needs::Nothing, ..ActionDecision::of_part() }
    }

    fn gap(path: &str, weight: Option<Weight>) -> Gap {
        Gap { path: RelPath::parse(path.as_bytes()).unwrap(), weight, why: SkipReason::LinkedWorktree }
    }

    #[test]
    fn what_matters_is_said_and_nothing_else() {
        let act = |action: ActionDecision| of_decision(&Decision::Action(Box::new(action))).join("|");
        let message = "`psql` might change a database".to_owned();
        let warning = Warning {
            code: "external-database".into(),
            class: Class::Database,
            message,
            severity: Severity::High,
            on_files: None,
        };
        let denied = Stance::Deny("the policy denies it".to_owned());
        assert_eq!(act(action()), "");
        assert_eq!(
            act(ActionDecision { stance: denied, warnings: vec![warning], ..action() }),
            "`psql` might change a database|the policy denies it"
        );
        let heavy = Some(Weight { bytes: 2000, is_least: true });
        assert_eq!(
            act(ActionDecision { not_held: vec![gap("vendor/.git", heavy)], ..action() }),
            "not saved: vendor/.git (2.0 kB or more); if this action deletes that, no checkpoint can restore it"
        );
        let turn = |protection| {
            let turn = TurnDecision { turn: "t".into(), notices: Vec::new(), protection: Some(protection) };
            of_decision(&Decision::Turn(turn)).join("|")
        };
        assert_eq!(turn(Protection::NotNeeded(None)), "");
        assert_eq!(turn(Protection::Failed("full".into())), "no checkpoint: full");
        assert_eq!(turn(Protection::Late { ticket: 1, named: None }), LATE);
        let settled = |protection, not_held| {
            let settled = Settled { ticket: 1, root: None, protection, touched: Vec::new(), not_held };
            of_notice(&Notice::Settled(Box::new(settled))).join("|")
        };
        assert_eq!(settled(Protection::NotNeeded(None), Vec::new()), "");
        assert_eq!(settled(Protection::Failed("full".into()), Vec::new()), "a checkpoint failed: full");
        assert_eq!(
            settled(Protection::NotNeeded(None), vec![gap("a", None)]),
            "not saved: a; if this action deletes that, no checkpoint can restore it"
        );
        let failed = Notice::JobFailed { reason: "full".into(), kind: None };
        assert_eq!(of_notice(&failed), ["a checkpoint failed: full"]);
        assert_eq!(of_notice(&Notice::Fault(Error::new(Code::Internal, "no"))), ["no"]);
        assert!(of_notice(&Notice::LowDisk { reason: "full".into() }).is_empty());
    }
}
