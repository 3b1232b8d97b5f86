//! `piton prune`: drops what retention does not keep, in all workspaces, and frees the space.

use std::time::Duration;

use clap::Args;

use super::confirm::agreed;
use super::context::Context;
use super::exit::Exit;
use super::forget::complete_first;
use super::person;
use super::print;
use super::stop;
use crate::checkpoint::Workspace;
use crate::checkpoint::catalog::retention::DropReason;
use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::checkpoint::upkeep::prune::{PruneLine, PrunePlan, PruneWish, Pruned, keep_up};
use crate::checkpoint::upkeep::rounds::{UpkeepLock, looks_of_person, policy_of};
use crate::checkpoint::upkeep::schedule::Looks;
use crate::error::{Code, Result};
use crate::model::policy::Retention;
use crate::model::text::{bytes, count, cut, padded, printable};
use crate::protocol::{PruneDocument, PruneItem};
use crate::settings;
use crate::store::Upkept;
use crate::sys::clock::{ms_of, now_ms};

/// The number of times that the store is tried again while another process is at work on it.
const TRIES: u32 = 20;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(500);

/// Characters of a reason that a row of the table shows.
const SHOWN: usize = 40;

/// The arguments of `piton prune`.
#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Days to keep checkpoints; does not apply to labelled checkpoints and checkpoints of codons
    #[arg(long, value_name = "N")]
    pub retention_days: Option<u32>,
    /// Size limit of all workspaces together, in megabytes of 1,000,000 bytes
    #[arg(long, value_name = "N")]
    pub max_size_mb: Option<u32>,
    /// Keep the checkpoints of deleted directories
    #[arg(long)]
    pub keep_orphans: bool,
    /// Do nothing unless the plan has this digest (--json shows it)
    #[arg(long, value_name = "DIGEST")]
    pub plan: Option<String>,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
}

impl PruneArgs {
    /// Refuses limits below those of the settings to a session of an agent.
    fn require_person(&self, kept: &Retention) -> Result<()> {
        let is_sooner = |days: u32| !kept.enabled || kept.days.is_none_or(|kept| days < kept);
        let is_smaller = |megabytes: u32| !kept.enabled || u64::from(megabytes) * 1_000_000 < kept.total_bytes;
        match self.retention_days.is_some_and(is_sooner) || self.max_size_mb.is_some_and(is_smaller) {
            true => person::require("only a person can set limits below those in the settings"),
            false => Ok(()),
        }
    }
}

/// Prunes.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn prune(context: &mut Context, args: &PruneArgs) -> Result<Exit> {
    // The settings of this workspace are not those of all.
    let common = settings::load(None, context.home.path(), &context.flags)?;
    if let Some(typed) = common.mistakes.iter().find(|mistake| mistake.is_typed()) {
        return Err(typed.error());
    }
    common.faults().iter().for_each(|fault| print::warning(fault));
    let wish = PruneWish {
        days: args.retention_days,
        total_bytes: args.max_size_mb.map(|megabytes| u64::from(megabytes) * 1_000_000),
        keep_orphans: args.keep_orphans,
    };
    let policy = |workspace: &Workspace| policy_of(context.home.path(), &context.flags, &common, workspace);
    let total = common.policy.retention.total_bytes;
    let make = |looks: &mut Looks| PrunePlan::make(&context.home, &policy, (wish, total), looks, context.work());
    let mut looks = looks_of_person(&context.home);
    let is_look = args.dry_run || args.plan.is_some() || (context.json && !args.yes);
    complete_first(context, !is_look);
    let mut plan = make(&mut looks)?;
    let is_by_size = plan.over > 0 || plan.lines.iter().any(|line| line.reason == DropReason::TotalMb);
    let mut packed = Upkept::default();
    if is_by_size && !is_look {
        // No checkpoint goes for room that packing makes too.
        let _lock = upkeep_lock(context)?;
        packed = keep_up(&context.home, None, context.work())?;
        looks = looks_of_person(&context.home);
        plan = make(&mut looks)?;
    }
    if let Some(digest) = &args.plan {
        plan.require(digest)?;
    }
    plan.faults.iter().for_each(|fault| print::warning(&format!("no checkpoint is deleted here: {fault}")));
    if !context.json {
        print::data(&table(&plan))?;
    }
    // Where nothing goes there is nothing to agree to.
    let may = !args.dry_run && (args.yes || plan.is_empty());
    if !may && (args.dry_run || context.json) {
        if context.json {
            print::json_as_declared(&document(&plan, args.dry_run, None)?)?;
        }
        return Ok(match (args.dry_run, plan.is_empty()) {
            (true, true) => Exit::Nothing,
            (true, false) => Exit::Done,
            (false, _) => Exit::Refused,
        });
    }
    args.require_person(&common.policy.retention)?;
    if let Some(exit) = (!may).then(|| agreed("Drop them")).flatten() {
        return Ok(exit);
    }
    let lock = upkeep_lock(context)?;
    let mut pruned = plan.carry_out(&context.home, LOCK_WAIT, context.work())?;
    for _ in 0..TRIES {
        if !pruned.upkept.is_interrupted || stop::is_asked() {
            break;
        }
        print::warning(&format!("{}; trying again", pruned.upkept.left.as_deref().unwrap_or_default()));
        std::thread::sleep(PAUSE);
        let Upkept { freed, written, .. } = pruned.upkept;
        pruned.upkept = keep_up(&context.home, Some((&plan, &pruned.gone)), context.work())?;
        pruned.upkept.freed += freed;
        pruned.upkept.written += written;
    }
    lock.ended(&context.home, looks)?;
    pruned.upkept.freed += packed.freed;
    pruned.upkept.written += packed.written;
    if context.json {
        print::json_as_declared(&document(&plan, false, Some(&pruned))?)?;
    } else {
        print::data(&outcome(&plan, &pruned))?;
    }
    let is_part = pruned.gone.len() < plan.lines.len() || pruned.upkept.left.is_some() || !plan.faults.is_empty();
    let is_nothing = plan.is_empty() && pruned.upkept.freed <= pruned.upkept.written;
    Ok(match (is_part, is_nothing) {
        (true, _) => Exit::Part,
        (false, true) => Exit::Nothing,
        (false, false) => Exit::Done,
    })
}

/// Takes the right to maintain piton's home. Where another process has it, that is said, and waited for.
fn upkeep_lock(context: &Context) -> Result<UpkeepLock> {
    match UpkeepLock::take(&context.home, "prune", Duration::ZERO) {
        Err(error) if error.code() == Code::StoreLocked => {
            print::warning("another process is running maintenance on the store; waiting for it to finish");
            UpkeepLock::take(&context.home, "prune", LOCK_WAIT)
        }
        lock => lock,
    }
}

/// Renders the plan.
fn table(plan: &PrunePlan) -> String {
    let (mut text, now, mut last) = (String::new(), now_ms(), None);
    let width = plan.lines.iter().map(|line| line.checkpoint.record.number.to_string().len()).max().unwrap_or(1);
    for line in &plan.lines {
        if last.replace(line.workspace) != Some(line.workspace) {
            add_line!(text, "{}", print::bold(&print::path(&plan.workspaces[line.workspace].workspace.path)));
        }
        let record = &line.checkpoint.record;
        let age = ms_of(&record.time).map_or_else(String::new, |time| age(now.saturating_sub(time)));
        add_line!(
            text,
            "  {:>width$}  {}  {}  {}  {:>8}  {}",
            record.number,
            padded(&age, 9),
            padded(record.kind.as_str(), 11),
            padded(&cut(&printable(&record.reason), SHOWN), SHOWN + 1),
            bytes(line.bytes),
            line.reason.rule(),
        );
    }
    let workspaces = plan.workspaces.len() as u64;
    match plan.lines.len() as u64 {
        0 => add_line!(
            text,
            "No checkpoints to delete in {} ({} in all).",
            count(workspaces, "workspace"),
            bytes(plan.stored)
        ),
        lines => {
            let freed = bytes(plan.lines.iter().map(|line| line.bytes).sum());
            add_line!(
                text,
                "{} to delete in {}: about {freed} of {}.",
                count(lines, "checkpoint"),
                count(workspaces, "workspace"),
                bytes(plan.stored)
            );
        }
    }
    if !plan.layers.names.is_empty() {
        add_line!(
            text,
            "Also to delete: {} of ignored files and secrets ({}). Each is older than 7 days, or over the limit \
             `ignored.total_mb` or `retention.total_mb`.",
            count(plan.layers.names.len() as u64, "private layer"),
            bytes(plan.layers.bytes)
        );
    }
    if plan.over > 0 {
        add_line!(text, "The checkpoints that are always kept exceed the limit by {}.", bytes(plan.over));
    }
    text
}

/// Says what was done.
fn outcome(plan: &PrunePlan, pruned: &Pruned) -> String {
    let (mut text, upkept) = (String::new(), &pruned.upkept);
    if !plan.lines.is_empty() {
        add_line!(text, "Dropped {}.", count(pruned.gone.len() as u64, "checkpoint"));
    }
    for line in plan.lines.iter().filter(|line| !pruned.gone.contains(&line.checkpoint.id)) {
        add_line!(text, "  not dropped, because it is now needed or was already deleted: {}", named(plan, line));
    }
    match upkept.freed.checked_sub(upkept.written) {
        Some(0) | None => add_line!(text, "There was no more space to free."),
        Some(freed) => add_line!(text, "Freed {}.", bytes(freed)),
    }
    if let Some(left) = &upkept.left {
        add_line!(text, "Some work is left for the next maintenance: {left}.");
    }
    text
}

fn named(plan: &PrunePlan, line: &PruneLine) -> String {
    let path = print::path(&plan.workspaces[line.workspace].workspace.path);
    format!("checkpoint {} of {path}", line.checkpoint.record.number)
}

/// Returns an age in its largest unit.
fn age(ms: i64) -> String {
    let minutes = u64::try_from(ms).unwrap_or(0) / 60_000;
    match minutes {
        0..120 => count(minutes, "minute"),
        120..2880 => count(minutes / 60, "hour"),
        _ => count(minutes / 1440, "day"),
    }
}

fn document(plan: &PrunePlan, dry_run: bool, pruned: Option<&Pruned>) -> Result<PruneDocument> {
    let item = |line: &PruneLine| {
        let record = &line.checkpoint.record;
        PruneItem {
            workspace: plan.workspaces[line.workspace].workspace.path.to_string_lossy().into_owned(),
            n: record.number,
            id: line.checkpoint.id.to_string(),
            kind: record.kind.into(),
            time: record.time.clone(),
            reason: record.reason.clone(),
            bytes: line.bytes,
            rule: line.reason.rule().to_owned(),
        }
    };
    Ok(PruneDocument {
        dry_run,
        digest: plan.digest()?,
        checkpoints: plan.lines.iter().map(item).collect(),
        dropped: pruned.map_or(0, |pruned| pruned.gone.len() as u64),
        private_captures: plan.layers.names.len() as u64,
        private_bytes: plan.layers.bytes,
        stored: plan.stored,
        over: plan.over,
        freed: pruned.map_or(0, |pruned| pruned.upkept.freed.saturating_sub(pruned.upkept.written)),
        left: pruned.and_then(|pruned| pruned.upkept.left.clone()),
        faults: plan.faults.clone(),
    })
}
