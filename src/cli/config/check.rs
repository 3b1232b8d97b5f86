//! `piton config check`: mistakes in all layers, and the files that patterns of tracked files match.

use super::super::context::Context;
use super::super::exit::Exit;
use super::super::print;
use crate::checkpoint::Timeline;
use crate::checkpoint::runs::narrow::TrackedNow;
use crate::error::Result;
use crate::model::path::RelPath;
use crate::model::run::run_id;
use crate::model::text::{count, printable};
use crate::protocol::{CheckedDocument, List, TrackedBlock};
use crate::settings::{Effective, Mistake, user_file};
use crate::sys::interrupt::Flow;

/// Paths of a list that are shown.
const SHOWN: usize = 20;

/// Reads all layers, and reports mistakes and the effect of patterns of tracked files.
///
/// # Errors
/// The last mistake, and those of reading.
pub(super) fn check(context: &Context, run: Option<&str>) -> Result<Exit> {
    let effective = context.settings()?;
    let (waiting, mistakes): (Vec<&Mistake>, Vec<&Mistake>) =
        effective.mistakes.iter().partition(|mistake| mistake.waiting.is_some());
    if let [others @ .., last] = mistakes.as_slice() {
        others.iter().for_each(|mistake| print::say(&format!("piton: {}", mistake.error().text())));
        return Err(last.error());
    }
    let warnings: Vec<String> =
        waiting.into_iter().map(Mistake::text).chain(effective.warnings.iter().cloned()).collect();
    let tracked = tracked(context, &effective, run)?;
    let missed = tracked.as_ref().is_some_and(|(_, now)| !now.missed.is_empty());
    if context.json {
        let sources: Vec<String> = effective.policy.sources.iter().map(|path| path.display().to_string()).collect();
        let tracked = tracked.map(|(run, now)| TrackedBlock {
            run,
            matched: List::of_paths(now.matched.iter()),
            missed: List::of_paths(now.missed.iter()),
            patterns: now.patterns,
        });
        print::json(&CheckedDocument { sources, warnings: warnings.clone(), tracked })?;
    } else {
        warnings.iter().for_each(|warning| print::warning(warning));
        let mut text = String::new();
        if effective.policy.sources.is_empty() {
            let place =
                user_file().map_or_else(String::new, |path| format!("; your own file would be {}", print::path(&path)));
            add_line!(text, "No settings files, so the defaults apply{place}.");
        }
        for source in &effective.policy.sources {
            add_line!(text, "read {}", print::path(source));
        }
        if let Some((run, now)) = &tracked {
            add_line!(text, "typed checkpoints of run {run} record {}:", printable(&now.patterns.join("  ")));
            add_line!(text, "  {}", some_of(&now.matched));
        }
        print::data(&text)?;
        if let Some((run, now)) = tracked.filter(|_| missed) {
            let what = count(now.missed.len() as u64, "file");
            let paths = some_of(&now.missed);
            print::warning(&format!(
                "{what} created in run {run} that no pattern matches and no typed checkpoint contains: {paths}"
            ));
        }
    }
    Ok(if warnings.is_empty() && !missed { Exit::Done } else { Exit::Part })
}

/// Returns what patterns come to, where there are any, in a workspace that is known.
fn tracked(context: &Context, effective: &Effective, run: Option<&str>) -> Result<Option<(String, TrackedNow)>> {
    let Some(workspace) = context.known_workspace()? else { return Ok(None) };
    let mut timeline = Timeline::open(&context.home, workspace, effective.policy.clone())?;
    let run = match run {
        Some(run) => run_id(run),
        None => timeline.catalog().newest_run()?.unwrap_or_else(|| "local".to_owned()),
    };
    Ok(timeline.tracked_now(&run, &|| Flow::Continue)?.map(|now| (run, now)))
}

/// Returns the first of some paths, and how many there are.
fn some_of(paths: &[RelPath]) -> String {
    let first: Vec<String> = paths.iter().take(SHOWN).map(RelPath::display).collect();
    let more = if paths.len() > SHOWN { format!(", and {} more", paths.len() - SHOWN) } else { String::new() };
    let none = if paths.is_empty() { "no file" } else { "" };
    format!("{none}{}{more}", first.join(", "))
}
