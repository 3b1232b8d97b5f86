//! The refs and logs that have changed while a round keeps the store up, and the marks of what they reach.

use std::path::Path;

use super::log::LogMarks;
use super::mark::{MarkedRoot, Marks};
use super::refs::{RefEntry, RefMarks};
use super::repository::Store;
use crate::error::{Code, Error, Result};
use crate::sys::fs::mark::FileMark;
use crate::sys::interrupt::Interrupt;

/// The owner of roots that came while the store was kept up.
const NEWCOMER: u32 = u32::MAX;

/// The refs and logs as they were marked from.
pub(super) struct SeenRefs {
    pub(super) refs: RefMarks,
    logs: LogMarks,
}

impl SeenRefs {
    /// Returns true if certainly nothing changed since.
    pub(super) fn stands(&self) -> bool {
        let is_same = |path: &Path, known| FileMark::at(path).is_ok_and(|now| now == known);
        self.refs.stand_surely() && self.logs.iter().all(|(path, known)| is_same(path, *known))
    }
}

/// Marks what refs and logs reach that have changed since `before`, and returns how they are now.
///
/// # Errors
/// `shutting-down` when `control` stopped it; `store-damaged` for a ref that cannot be read; those of [`Marks::add`].
pub(super) fn mark_newcomers(
    store: &Store,
    marks: &mut Marks,
    before: Option<&SeenRefs>,
    control: Interrupt<'_>,
) -> Result<SeenRefs> {
    // A record's ref moves after it was appended: a log that is emptied meanwhile has left a ref.
    let (records, logs) = store.logged()?;
    let (entries, refs) = match before {
        Some(before) => store.refs_since(&before.refs)?,
        None => store.refs_marked("refs/")?,
    };
    marks.add_logged(store, records, NEWCOMER, control)?;
    let mut roots = Vec::new();
    for RefEntry { name, target } in entries {
        let commit = target.map_err(|why| {
            Error::new(Code::StoreDamaged, format!("the ref `{name}` cannot be read: {why}"))
                .hint("run `piton doctor --refs`; until that is fixed, nothing is deleted")
        })?;
        roots.extend(Some(MarkedRoot { commit, owner: NEWCOMER }).filter(|root| !marks.contains(&root.commit)));
    }
    if !roots.is_empty() {
        marks.add(store, roots, control)?;
    }
    Ok(SeenRefs { refs, logs })
}
