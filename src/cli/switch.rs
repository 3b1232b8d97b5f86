//! `piton off` and `piton on`: the switch of a workspace.

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::engine::workspace::why_off;
use crate::error::{Code, Error, Result};
use crate::model::policy::Guard;
use crate::model::text::printable;
use crate::protocol::{OffDocument, OnDocument};
use crate::sys::clock::{local_minute, now_ms, rfc3339};

/// The arguments of `piton off`.
#[derive(Debug, Args)]
pub(super) struct OffArgs {
    /// Only for this long: 30m, 1h, 2 days
    #[arg(long = "for", value_name = "TIME")]
    pub span: Option<String>,
}

/// Switches the guard off.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn off(context: &mut Context, args: &OffArgs) -> Result<Exit> {
    let now = now_ms();
    let until = match &args.span {
        None => i64::MAX,
        Some(text) => now.saturating_add(span_ms(text, "for")?),
    };
    let mut timeline = context.timeline()?;
    timeline.change_state(|state| {
        state.off_until = Some(until);
        state.off_since = args.span.as_ref().map(|_| now);
    })?;
    let how_long = match until {
        i64::MAX => "until `piton on`".to_owned(),
        until => format!("until {}, or until `piton on`", local_minute(until)),
    };
    if context.json {
        let until = args.span.as_ref().map(|_| rfc3339(until));
        let workspace = timeline.workspace().path.to_string_lossy().into_owned();
        print::json(&OffDocument { workspace, guard: Guard::Off.into(), until })?;
        return Ok(Exit::Done);
    }
    print::data(&format!(
        "The guard of {} is off {how_long}. Its checkpoints stay.\n",
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
        Error::new(Code::BadRequest, format!("`{}` is not a length of time", printable(text)))
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
    timeline.change_state(|state| {
        state.off_until = None;
        state.off_since = None;
    })?;
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
            "The switch of {root} is on, but nothing is guarded: the settings say `guard: off` ({place}).\n\
             Change that to `guard: turn`, or take it out; `piton status` then says `turn`.\n"
        ))?;
        return Ok(Exit::Part);
    }
    print::data(&format!("The guard of {root} is on.\n"))?;
    Ok(Exit::Done)
}
