//! Work for the memory in idle time: it begins to trust the source of changes, and checks that the source missed none.

use std::mem;

use super::capturer::Capturer;
use super::observe::PlainRequest;
use super::warm::NewReach;
use super::warmth::Warmth;
use crate::checkpoint::catalog::open::Catalog;
use crate::error::{Code, Error, Result};
use crate::model::change::{Changes, Dirty, Reach};
use crate::model::path::RelPath;
use crate::sys::clock::file_clock;
use crate::sys::interrupt::Flow;
use crate::worktree::{Differences, Warm};

/// The number of files whose content an audit reads again, each audit the next ones; and as many of those that were
/// written lately.
const SAMPLE: usize = 256;

/// The span before the last audit that counts as lately: a write through a mapping changes no time until the kernel has
/// written the page back, which takes some 35 s.
const MOMENT: i64 = 120_000_000_000;

/// The result of an audit: changes that a scan found and the watcher did not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Changed paths that the watcher had not reported.
    pub missed: usize,
}

impl Capturer {
    /// Builds the trees of a warm tree. Begins to trust the source of changes, once a look has found the earlier ones.
    /// `control` may stop it; the next call does the rest.
    pub(crate) fn warm_up(&mut self, catalog: &Catalog, control: &dyn Fn() -> Flow) -> Result<()> {
        let Some(tree) = self.warmth.tree_mut() else { return Ok(()) };
        // The trees built so far stay right, also after an error.
        store_trees(catalog, &mut tree.warm)?;
        self.place_watches(catalog, control)?;
        if let Some(dirty) = self.look_since_scan(catalog, control)?
            && let Warmth::Scanned(tree, _) = mem::take(&mut self.warmth)
        {
            self.trust(catalog, tree, dirty, NewReach::default());
        }
        Ok(())
    }

    /// Places watches for as long as `control` allows.
    fn place_watches(&mut self, catalog: &Catalog, control: &dyn Fn() -> Flow) -> Result<()> {
        let (Some(source), Some(tree)) = (&mut self.source, self.warmth.tree()) else { return Ok(()) };
        while source.place_watches(&catalog.workspace.path, &tree.warm) {
            if control() == Flow::Stop {
                return Err(Error::new(Code::ShuttingDown, "a job came before everything was watched"));
            }
        }
        Ok(())
    }

    /// Places watches for the tree of a scan, and returns the changes since that scan. `None` where there is nothing to
    /// begin: there is no source, it is trusted already, or other rules hold now.
    fn look_since_scan(&mut self, catalog: &Catalog, control: &dyn Fn() -> Flow) -> Result<Option<Dirty>> {
        let (Some(source), Warmth::Scanned(tree, _)) = (&mut self.source, &self.warmth) else { return Ok(None) };
        let (root, plain) = (&catalog.workspace.path, PlainRequest::new(catalog));
        if !tree.warm.serves(&plain.on_workspace()) {
            return Ok(None);
        }
        if !source.follows_tree {
            source.watch(&RelPath::root(), root, &tree.warm);
            self.place_watches(catalog, control)?;
        }
        let (Some(source), Warmth::Scanned(tree, _)) = (&mut self.source, &self.warmth) else { return Ok(None) };
        // From here on the source reports changes; the look below finds the earlier ones.
        source.sync(root, &tree.warm, &mut self.seen);
        let Differences { changed, doubtful, .. } = tree.warm.differences(&plain.on_workspace(), control)?;
        Ok(Some(changed.and(doubtful)))
    }

    /// Looks at everything and counts the changes that the source had not reported.
    pub(crate) fn audit(&mut self, catalog: &Catalog, control: &dyn Fn() -> Flow) -> Result<Audit> {
        let (Some(source), Warmth::Live(tree, pending)) = (&mut self.source, &mut self.warmth) else {
            return Ok(Audit::default());
        };
        let plain = PlainRequest::new(catalog);
        let request = plain.on_workspace();
        let (from, now) = (self.audits.files, file_clock());
        let since = self.audits.began.map_or(i64::MIN, |at| at.saturating_sub(MOMENT));
        let found = tree.warm.differences(&request, control).and_then(|found| {
            let rewritten = tree.warm.recheck(&request, (since, from, SAMPLE), control)?;
            let rewritten = Dirty::new(rewritten.into_iter().map(|path| (path, Reach::Entry)));
            Ok((found, rewritten))
        });
        // Facts found about single files stay right, also after an error.
        let told = source.sync(&catalog.workspace.path, &tree.warm, &mut self.seen);
        let told = Changes::Paths(pending.dirty.clone()).and(told);
        let missed = match &found {
            Ok((found, rewritten)) => {
                let is_told = |path: &RelPath| told.covers(path) || pending.again.contains(path);
                // No event reports a file's further name under its first one. A capture finds it through the new name.
                let untold = |path: &RelPath| !is_told(path) && !found.other_names(path).any(is_told);
                let mut missed = rewritten.iter().filter(|(path, _)| untold(path)).count();
                for (path, _) in found.changed.iter().filter(|(path, _)| untold(path)) {
                    // A further name that rules leave out only moves a time.
                    missed += usize::from(tree.warm.has_changed(request.root, path, control).unwrap_or(true)); // in doubt, missed
                }
                missed
            }
            Err(_) => 0,
        };
        self.warmth.add(told);
        let (Differences { changed, doubtful, .. }, rewritten) = found?;
        self.warmth.add(Changes::Paths(changed.and(doubtful).and(rewritten)));
        self.audits.files += SAMPLE as u64;
        self.audits.began = Some(now);
        Ok(Audit { missed })
    }
}

/// Builds the trees of a warm tree as far as the store has them. Only what the store has counts as built: a capture with targets has
/// other trees than the workspace without them.
fn store_trees(catalog: &Catalog, tree: &mut Warm) -> Result<()> {
    let stored = tree.build(&mut |_, id, _| match catalog.store.has(&id)? {
        true => Ok(()),
        false => Err(Error::new(Code::Conflict, "not stored yet")),
    });
    match stored {
        Err(error) if error.code() != Code::Conflict => Err(error),
        // The tree is built when the next capture stores it.
        Err(_) | Ok(_) => Ok(()),
    }
}
