//! What is done for the warm tree when nobody waits: beginning to trust what is heard, and looking whether anything was missed.

use std::collections::BTreeSet;
use std::mem;

use super::super::seen::Before;
use super::super::take::Take;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, Result};
use crate::model::change::{Changes, Dirty, Reach};
use crate::model::path::RelPath;
use crate::sys::clock::file_clock;
use crate::sys::interrupt::Flow;
use crate::worktree::{Differences, Warm};

/// Files whose content an audit reads again, the next one behind them; and as many of those that were written a moment ago.
const SAMPLE: usize = 256;

/// How long before the last audit is a moment ago: a store through a mapping moves no time until the kernel has written the page
/// back, which takes some 35 s.
const MOMENT: i64 = 120_000_000_000;

/// What a listener has found out by looking, not by hearing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Paths that had changed and nobody had told of.
    pub missed: usize,
}

impl Timeline {
    /// In idle time: has the trees of a warm tree ready, and begins to trust what is heard, once a look has shown what
    /// changed before. `control` may stop it; what it has not come to is done the next time.
    ///
    /// # Errors
    /// `shutting-down` when it was stopped; those of looking. Captures scan then, as before.
    pub fn warm_up(&mut self, control: &dyn Fn() -> Flow) -> Result<()> {
        let Some(mut tree) = self.warm.take() else { return Ok(()) };
        let outcome = self.prepare(&mut tree, control);
        // Whatever was built stays right.
        self.warm = Some(tree);
        if let Some(dirty) = outcome? {
            self.dirty = dirty;
            self.heed(&BTreeSet::new(), BTreeSet::new());
        }
        Ok(())
    }

    fn prepare(&self, tree: &mut Warm, control: &dyn Fn() -> Flow) -> Result<Option<Changes>> {
        // Only what the store has counts as built: a capture with targets has other trees than the workspace without them.
        let stored = tree.build(&mut |_, id, _| match self.store.has(&id)? {
            true => Ok(()),
            false => Err(Error::new(Code::Conflict, "not stored yet")),
        });
        if let Err(error) = stored
            && error.code() != Code::Conflict
        {
            return Err(error);
        }
        let Some(source) = &self.source else { return Ok(None) };
        let admits = |dir: &RelPath| tree.admits(&self.workspace.path, dir);
        let settle = || {
            while source.borrow_mut().place_watches(&admits) {
                if control() == Flow::Stop {
                    return Err(Error::new(Code::ShuttingDown, "a job came before everything was watched"));
                }
            }
            Ok(())
        };
        settle()?;
        if !matches!(self.dirty, Changes::Everything(_)) {
            return Ok(None);
        }
        let (plain, nothing, never) = (Take::any(), Before::nothing(), [self.home.path().to_owned()]);
        let request = self.request(&plain, &nothing, &never);
        if !tree.serves(&request) {
            return Ok(None);
        }
        if !self.source_follows {
            source.borrow_mut().watch(&RelPath::root(), &admits);
            settle()?;
        }
        // From here on changes are told; what came before is seen.
        self.sync(tree);
        let Differences { changed, doubtful } = tree.differences(&request, control)?;
        Ok(Some(Changes::Paths(changed).and(Changes::Paths(doubtful))))
    }

    /// In idle time: looks at everything and counts what had changed without anybody telling.
    ///
    /// # Errors
    /// As [`Timeline::warm_up`].
    pub fn audit(&mut self, control: &dyn Fn() -> Flow) -> Result<Audit> {
        let Some(mut tree) = self.warm.take_if(|_| self.source.is_some() && matches!(self.dirty, Changes::Paths(_)))
        else {
            return Ok(Audit::default());
        };
        let (plain, nothing, never) = (Take::any(), Before::nothing(), [self.home.path().to_owned()]);
        let request = self.request(&plain, &nothing, &never);
        let (from, now) = (self.audited, file_clock());
        let since = self.audited_at.map_or(i64::MIN, |at| at.saturating_sub(MOMENT));
        let found = tree.differences(&request, control).and_then(|found| {
            let rewritten = tree.recheck(&request, (since, from, SAMPLE), control)?;
            let rewritten = Dirty::new(rewritten.into_iter().map(|path| (path, Reach::Entry)));
            Ok((Changes::Paths(found.changed).and(Changes::Paths(rewritten)), found.doubtful))
        });
        let heard = self.sync(&tree);
        // Whatever was found out about single files stays right.
        self.warm = Some(tree);
        let told = mem::replace(&mut self.dirty, Changes::none()).and(heard);
        let untold = |path: &RelPath| !told.covers(path) && !self.again.contains(path);
        let (missed, dirty) = match found {
            Ok((Changes::Paths(found), doubtful)) => {
                let missed = found.iter().filter(|(path, _)| untold(path)).count();
                (Ok(missed), Changes::Paths(found).and(Changes::Paths(doubtful)))
            }
            Ok((everything, _)) => (Ok(0), everything),
            Err(error) => (Err(error), Changes::none()),
        };
        self.dirty = told.and(dirty);
        if missed.is_ok() {
            (self.audited, self.audited_at) = (self.audited + SAMPLE as u64, Some(now));
        }
        missed.map(|missed| Audit { missed })
    }
}
