//! `piton off` and `piton on`: the switch of a workspace.

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::person;
use super::print;
use crate::checkpoint::records::state::WorkspaceState;
use crate::engine::workspace::why_off;
use crate::error::{Code, Error, Result};
use crate::model::policy::Guard;
use crate::model::text::printable;
use crate::protocol::{OffDocument, OnDocument};
use crate::sys::clock::{local_minute, now_ms, rfc3339};

/// The longest time for which an agent may switch the guard off, if no end of its turn is reported before.
const AGENTS_MS: i64 = 3_600_000;

/// The arguments of `piton off`.
#[derive(Debug, Args)]
pub(super) struct OffArgs {
    /// Switch off only for this long: 30m, 1h, 2 days
    #[arg(long = "for", value_name = "TIME")]
    pub span: Option<String>,
}

/// Switches the guard off.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn off(context: &mut Context, args: &OffArgs) -> Result<Exit> {
    let now = now_ms();
    let span = args.span.as_deref().map(|text| span_ms(text, "for")).transpose()?;
    let is_agents = person::is_agents();
    if context.named_workspace().is_some() {
        person::require("an agent can switch off only the guard of its own directory")?;
    }
    let span = if is_agents { Some(span.unwrap_or(AGENTS_MS).min(AGENTS_MS)) } else { span };
    let until = span.map_or(i64::MAX, |span| now.saturating_add(span));
    let mut timeline = context.timeline()?;
    let state = timeline.catalog().state();
    if is_agents && state.is_off(now) && !state.off_by_agent {
        print::say("The guard is already off; a person switched it off. Nothing was changed.");
        return Ok(Exit::Nothing);
    }
    timeline.change_state(|state| {
        state.off_until = Some(until);
        state.off_since = span.map(|_| now);
        state.off_by_agent = is_agents;
    })?;
    let how_long = match until {
        i64::MAX => "until `piton on`".to_owned(),
        until if is_agents => format!(
            "for the rest of this turn, at most until {}, because this is an agent's session. The user sees a notice",
            local_minute(until)
        ),
        until => format!("until {}, or until `piton on`", local_minute(until)),
    };
    if context.json {
        let until = span.map(|_| rfc3339(until));
        let workspace = timeline.workspace().path.to_string_lossy().into_owned();
        print::json(&OffDocument { workspace, guard: Guard::Off.into(), until })?;
        return Ok(Exit::Done);
    }
    print::data(&format!(
        "The guard of {} is off {how_long}. Its checkpoints are kept.\n",
        print::path(&timeline.workspace().path)
    ))?;
    Ok(Exit::Done)
}

/// Reads a length of time, in milliseconds. `field` is what an error names.
///
/// # Errors
/// `bad-request`.
pub(super) fn span_ms(text: &str, field: &str) -> Result<i64> {
    let bad = || {
        Error::new(Code::BadRequest, format!("`{}` is not a duration", printable(text)))
            .field(field)
            .hint("for example 30m, 1h, 2 days")
    };
    let span: jiff::Span = text.parse().map_err(|_| bad())?;
    let ms = span.total((jiff::Unit::Millisecond, jiff::SpanRelativeTo::days_are_24_hours())).map_err(|_| bad())?;
    if ms > 0.0 && ms < 1e14 { Ok(ms as i64) } else { Err(bad()) }
}

/// Switches the guard on again.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn on(context: &mut Context) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    timeline.change_state(WorkspaceState::switch_on)?;
    let (root, settings) = (print::path(&timeline.workspace().path), context.settings()?);
    if context.json {
        let guard_off = why_off(settings.policy.guard, &timeline.workspace().dir, &settings.origin("guard"));
        let workspace = timeline.workspace().path.to_string_lossy().into_owned();
        print::json(&OnDocument { workspace, guard: settings.policy.guard.into(), guard_off })?;
        return Ok(if settings.policy.guard == Guard::Off { Exit::Part } else { Exit::Done });
    }
    if settings.policy.guard == Guard::Off {
        let place = printable(&settings.origin("guard"));
        print::data(&format!(
            "The guard of {root} is switched on, but the settings contain `guard: off` ({place}), so nothing is guarded.\n\
             Change that to `guard: turn`, or remove it; `piton status` then shows `turn`.\n"
        ))?;
        return Ok(Exit::Part);
    }
    print::data(&format!("The guard of {root} is on.\n"))?;
    Ok(Exit::Done)
}
