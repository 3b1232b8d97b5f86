//! Going back: plans and outcomes, in the words of the protocol.

use crate::checkpoint::Checkpoint;
use crate::checkpoint::catalog::diff::Stat;
use crate::checkpoint::history::journal::External;
use crate::checkpoint::history::request::{Preview, Restored};
use crate::checkpoint::runs::rollback::RolledBack;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;
use crate::model::turn::Attribution;
use crate::protocol::{
    ChangedLists, LeftChanges, List, PastEffect, PathItem, PlanLists, PreviewReply, RestoreReply, StatBlock,
    TargetBlock, WarningBlock,
};

/// Returns the target of a restore.
pub fn target(checkpoint: &Checkpoint) -> TargetBlock {
    TargetBlock {
        id: checkpoint.id.to_string(),
        n: checkpoint.record.number,
        kind: checkpoint.record.kind.into(),
        time: checkpoint.record.time.clone(),
        reason: checkpoint.record.reason.clone(),
        run: checkpoint.record.run.clone(),
        codon_id: checkpoint.record.codon_id.clone(),
        codon_name: checkpoint.record.codon_name.clone(),
    }
}

/// Returns files and lines, as replies carry them.
pub fn stat(stat: &Stat) -> StatBlock {
    StatBlock { files: stat.files, plus: stat.plus, minus: stat.minus, cut: stat.cut }
}

/// Returns texts and external effects, as replies carry warnings.
fn warnings(texts: &[String], externals: &[External]) -> Vec<WarningBlock> {
    let texts = texts.iter().map(|text| WarningBlock::plain("incomplete", text.clone()));
    let externals = externals.iter().map(|external| WarningBlock {
        code: format!("external-{}", external.class.as_str()),
        class: Some(external.class.into()),
        message: external.message.clone(),
        severity: external.severity.into(),
        past: Some(PastEffect { action: external.action.clone(), time: external.time.clone() }),
    });
    texts.chain(externals).collect()
}

/// Returns a preview's body.
pub fn preview(preview: &Preview) -> PreviewReply {
    let plan = &preview.plan;
    // A path that an action of the turn named needs no mark.
    let share = |path: &RelPath| {
        let marked = preview.shares.get(path).filter(|share| **share != Attribution::Sure);
        marked.map(|share| share.as_str().to_owned())
    };
    let item = |path, entry: &ManifestEntry| {
        let (dir, lines) = (entry.kind == EntryKind::Dir, preview.lines.get(path).copied());
        PathItem { dir, lines, ..PathItem::new(path, share(path)) }
    };
    let edits = preview.outside_edits.iter();
    PreviewReply {
        target: target(&preview.target),
        plan: PlanLists {
            digest: preview.digest.clone(),
            create: List::of_items(plan.create.iter().map(|(path, entry)| item(path, entry))),
            replace: List::of_items(plan.replace.iter().map(|(path, _, entry)| item(path, entry))),
            delete: List::of_items(plan.delete.iter().map(|(path, entry)| item(path, entry))),
            keep: List::of_reasons(plan.keep.iter().map(|(path, why)| (path, why.to_string()))),
            conflict: List::of_reasons(plan.conflict.iter().map(|(path, why)| (path, why.to_string()))),
        },
        stat: stat(&preview.stat),
        outside_edits: List::of_reasons(edits.map(|edit| (&edit.path, edit.whose.clone()))),
        warnings: warnings(&preview.warnings, &preview.externals),
        unheld: List::default(),
        left: LeftChanges::default(),
        over: None,
        others: Vec::new(),
    }
}

/// Returns a restore's body.
pub fn restored(restored: &Restored) -> RestoreReply {
    let outcome = &restored.outcome;
    let entries =
        |paths: &[RelPath]| List::of_entries(paths.iter().map(|path| (path, restored.directories.contains(path))));
    let failed = outcome.failed.iter().chain(&restored.conflicts);
    let lost = outcome.warnings.iter().map(|(path, why)| format!("{}: {why}", path.display()));
    let texts: Vec<String> = restored.warnings.iter().cloned().chain(lost).collect();
    let pre_restore = restored.pre_restore.as_ref().map(|checkpoint| checkpoint.id.to_string());
    RestoreReply {
        operation: restored.operation.clone(),
        from: pre_restore.clone(),
        to: Some(restored.target.id.to_string()),
        target: Some(target(&restored.target)),
        pre_restore,
        done: ChangedLists {
            created: entries(&outcome.created),
            replaced: entries(&outcome.replaced),
            deleted: entries(&outcome.deleted),
            kept: List::of_reasons(outcome.kept.iter().map(|(path, why)| (path, why.clone()))),
            failed: List::of_reasons(failed.map(|(path, why)| (path, why.clone()))),
            not_agreed: List::of_paths(restored.not_agreed.iter()),
        },
        warnings: warnings(&texts, &restored.externals),
        message: restored.operation.is_none().then(|| match (outcome.kept.is_empty(), restored.conflicts.is_empty()) {
            (true, true) => "nothing to do: the files are the same as in the checkpoint".to_owned(),
            _ => "nothing was changed: every path that would have changed was kept, for the reasons above".to_owned(),
        }),
        ..RestoreReply::default()
    }
}

/// Returns a rollback's body.
pub fn rolled_back(rolled: &RolledBack) -> RestoreReply {
    RestoreReply {
        detached: true,
        next_branch: Some(rolled.next_branch.clone()),
        run: Some(rolled.run.clone()),
        ..restored(&rolled.restored)
    }
}
