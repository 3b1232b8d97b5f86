//! `restore --to DIR`: a checkpoint's files into a directory of their own.

use std::collections::BTreeMap;
use std::path::Path;

use super::apply::apply;
use super::outcome::{BlobSource, Outcome, Saved};
use super::plan::{Agreement, PlanInput, plan};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::manifest::Manifest;
use crate::model::path::RelPath;
use crate::sys::progress::WorkControl;

/// Writes the selected part of `target` into `dir`, which must be absent (it and its parents are created) or empty.
/// `control` may stop it, as it stops [`apply`].
///
/// # Errors
/// `conflict` when `dir` holds something; those of [`apply`].
pub fn export(
    dir: &Path,
    target: &Manifest,
    select: &[RelPath],
    blobs: &dyn BlobSource,
    control: WorkControl<'_>,
) -> Result<Outcome> {
    if !prepare(dir)? {
        return Err(Error::new(Code::Conflict, "the directory is not empty")
            .path(dir)
            .hint("give a directory that does not exist or is empty"));
    }
    let nothing = Manifest::new();
    let plan = plan(&PlanInput {
        target,
        present: &nothing,
        present_skipped: &BTreeMap::new(),
        select,
        keep_new: false,
        covered: &|_, _| Ok(()),
        target_skipped: &|_| false,
        stays: &|_, _| None,
        agreed: &|_, _, _| Agreement::Given,
    });
    let saved = Saved { present: &nothing, known: &|_| None };
    let mut outcome = apply(dir, &plan, &saved, blobs, control)?;
    let refused = plan.conflict.into_iter().map(|(path, reason)| (path, reason.to_string()));
    outcome.failed.extend(refused);
    outcome.failed.sort_unstable();
    Ok(outcome)
}

/// Creates the directory where it is absent; `false` when there is something in it.
fn prepare(dir: &Path) -> Result<bool> {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::fs::create_dir_all(dir).at("creating the directory", dir)?;
            Ok(true)
        }
        Err(error) => Err(Error::io(error, "reading the directory", dir)),
    }
}
