//! The surroundings of a verb: home, workspace, settings.

use std::path::{Path, PathBuf};

use clap::Args;

use super::print::ColourUse;
use super::{progress, stop};
use crate::checkpoint::records::repositories;
use crate::checkpoint::records::workspace::{real_path, root_for};
use crate::checkpoint::{Home, Timeline, Workspace};
use crate::doors::stdio::inside;
use crate::engine::parts::OUTSIDE;
use crate::engine::reach::normalise;
use crate::error::{Code, Error, Result};
use crate::model::path::RelPath;
use crate::model::policy::OnFailure;
use crate::model::text::shell_word;
use crate::settings::{self, Effective};
use crate::sys::process::deleted_working_dir;
use crate::sys::progress::{Progress, WorkControl};
use crate::worktree::repository_state::RepositoryPlace;

/// The heading of the options that every verb has.
pub(super) const COMMON: &str = "Common options";

/// The options that every verb has.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct GlobalArgs {
    /// The workspace [default: found from the working directory]
    #[arg(long, short = 'w', global = true, value_name = "DIR", help_heading = COMMON)]
    pub workspace: Option<PathBuf>,
    /// Use the files outside every workspace; the same as --workspace /
    #[arg(long, global = true, conflicts_with = "workspace", help_heading = COMMON)]
    pub outside: bool,
    /// Print data as JSON
    #[arg(long, global = true, help_heading = COMMON)]
    pub json: bool,
    /// Override a setting, as KEY=VALUE (repeatable)
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", help_heading = COMMON)]
    pub set: Vec<String>,
    /// Print no progress and no notes, only results, warnings and errors
    #[arg(long, short = 'q', global = true, help_heading = COMMON)]
    pub quiet: bool,
    /// Print colours: auto is on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t, hide_default_value = true, help_heading = COMMON)]
    pub color: ColourUse,
}

/// The surroundings of a verb.
pub(super) struct Context {
    pub home: Home,
    pub json: bool,
    pub flags: Vec<(String, String)>,
    /// The sink to which long work reports; a person watches if it has counters.
    pub progress: Progress,
    /// True if a person may stop the work with Ctrl-C.
    is_attended: bool,
    named: Option<PathBuf>,
    /// The place at which it was if it was deleted; `None` when that is not known.
    cwd: Option<PathBuf>,
}

impl Context {
    /// From the command line and the environment.
    ///
    /// # Errors
    /// When piton's own directory cannot be made.
    pub(super) fn new(global: &GlobalArgs) -> Result<Context> {
        // A verb that needs it reports that there is none.
        let cwd = std::env::current_dir().ok().or_else(deleted_working_dir);
        let (home, flags) = (Home::locate()?, flags(global)?);
        let named = named(global, cwd.as_deref()).map(|dir| match is_saved_outside(&home, &dir) {
            true => PathBuf::from(OUTSIDE),
            false => dir,
        });
        let (json, progress) = (global.json, Progress::NONE);
        Ok(Context { home, json, flags, progress, is_attended: false, named, cwd })
    }

    /// Begins long work: shows its progress on a terminal unless that is not wanted, and has Ctrl-C stop it.
    pub(super) fn attend(&mut self, is_quiet: bool) {
        stop::arm();
        self.is_attended = true;
        if !self.json && !is_quiet {
            self.progress = progress::watch();
        }
    }

    /// Returns the control of long work: Ctrl-C stops it, and it reports to the terminal.
    pub(super) fn work(&self) -> WorkControl<'_> {
        WorkControl { interrupt: &stop::flow, progress: &self.progress }
    }

    /// Returns the same surroundings, with another workspace.
    pub(super) fn at(&self, workspace: PathBuf) -> Context {
        let Context { home, json, flags, progress, is_attended, named: _, cwd } = self;
        Context {
            home: home.clone(),
            json: *json,
            flags: flags.clone(),
            progress: progress.clone(),
            is_attended: *is_attended,
            named: Some(workspace),
            cwd: cwd.clone(),
        }
    }

    /// Takes the workspace around the working directory, whatever was named.
    pub(super) fn use_surrounding_workspace(&mut self) {
        self.named = None;
    }

    /// Returns the directory named with `--workspace`.
    pub(super) fn named_workspace(&self) -> Option<PathBuf> {
        self.named.clone()
    }

    /// Takes the workspace of the repository around the working directory, where none is named: git's commands act on the whole of
    /// that, from each of its directories.
    pub(super) fn work_at_repository(&mut self) {
        let top = self.cwd.as_deref().and_then(RepositoryPlace::around).map(|place| place.top);
        if let (None, Some(top)) = (&self.named, top)
            && let Ok(known) = Workspace::known(&self.home)
        {
            self.named = Some(root_for(&top, &known));
        }
    }

    fn cwd(&self) -> Result<&Path> {
        self.cwd.as_deref().ok_or_else(|| {
            Error::new(Code::WorkspaceGone, "the working directory no longer exists")
                .hint("choose one with --workspace")
        })
    }

    /// Returns the root of the workspace in question.
    ///
    /// # Errors
    /// When the known workspaces cannot be listed; `workspace-gone` when the working directory is gone and none is named.
    pub(super) fn root(&self) -> Result<PathBuf> {
        match &self.named {
            Some(named) => Ok(named.clone()),
            None => Ok(root_for(self.cwd()?, &Workspace::known(&self.home)?)),
        }
    }

    /// Returns true if the workspace in question is that of files outside of all others.
    pub(super) fn is_outside(&self) -> bool {
        // A root that cannot be told is an error of the verb itself.
        self.root().is_ok_and(|root| root == Path::new(OUTSIDE))
    }

    /// Returns the option that a further command needs for the same workspace, after a space; none where the working directory is in it.
    pub(super) fn option(&self) -> String {
        if self.is_outside() {
            return " --outside".to_owned();
        }
        let Some(named) = &self.named else { return String::new() };
        // Where the workspaces cannot be listed, the option is right in any case.
        let here = self.cwd().ok().and_then(|cwd| Some(root_for(cwd, &Workspace::known(&self.home).ok()?)));
        match here.is_some_and(|here| here == real_path(named)) {
            true => String::new(),
            false => format!(" --workspace {}", shell_word(&named.to_string_lossy())),
        }
    }

    /// Returns the beginning of a path as a person reads it: a slash where paths are absolute.
    pub(super) fn leading(&self) -> &'static str {
        if self.is_outside() { OUTSIDE } else { "" }
    }

    /// Returns a path as a person names it: absolute outside every workspace.
    pub(super) fn place(&self, path: &RelPath) -> PathBuf {
        Path::new(self.leading()).join(path.to_path())
    }

    /// Returns the workspace, if it is known already; nothing is made.
    ///
    /// # Errors
    /// When the known workspaces cannot be listed.
    pub(super) fn known_workspace(&self) -> Result<Option<Workspace>> {
        Workspace::at(&self.home, &normalise(&self.root()?))
    }

    /// Returns the workspace; one that was deleted is found by its path among the known ones.
    ///
    /// # Errors
    /// `workspace-gone` for an unknown directory that does not exist; `workspace-refused`, `bad-path`.
    pub(super) fn workspace(&self) -> Result<Workspace> {
        Workspace::open(&self.home, &self.root()?)
    }

    /// Returns true if the working directory is above a path.
    pub(super) fn is_above(&self, path: &Path) -> bool {
        self.cwd.as_deref().is_some_and(|cwd| path.starts_with(real_path(cwd)))
    }

    /// Returns the settings in force.
    ///
    /// # Errors
    /// Mistakes on the command line. Those of files and of the environment are part of what is returned: a net that could not
    /// be read would be no net.
    pub(super) fn settings(&self) -> Result<Effective> {
        self.settings_of(&self.root()?)
    }

    /// Returns the setting `on_failure`: that of a root, or the user's own.
    ///
    /// # Errors
    /// Mistakes on the command line.
    pub(super) fn on_failure(&self, root: Option<&Path>) -> Result<OnFailure> {
        Ok(settings::load(root, self.home.path(), &self.flags)?.policy.on_failure)
    }

    /// Returns the settings in force for a root that is known already.
    ///
    /// # Errors
    /// As [`Context::settings`].
    pub(super) fn settings_of(&self, root: &Path) -> Result<Effective> {
        let mut effective = settings::load(Some(root), self.home.path(), &self.flags)?;
        // This adds the mistakes in the user's rules to the list.
        crate::engine::rules::classifier(&mut effective, None);
        match effective.mistakes.iter().find(|mistake| mistake.is_typed()) {
            Some(typed) => Err(typed.error()),
            None => Ok(effective),
        }
    }

    /// Returns the timeline of the workspace.
    ///
    /// # Errors
    /// As [`Context::workspace`] and [`Context::settings`], and those of the store.
    pub(super) fn timeline(&self) -> Result<Timeline> {
        self.timeline_of(self.workspace()?)
    }

    /// As [`Context::timeline`], for a verb that only reads: it makes no workspace of a directory that is none.
    ///
    /// # Errors
    /// As [`Context::timeline`].
    pub(super) fn timeline_to_read(&self) -> Result<Timeline> {
        self.timeline_of(Workspace::open_to_read(&self.home, &self.root()?)?)
    }

    fn timeline_of(&self, workspace: Workspace) -> Result<Timeline> {
        let effective = self.settings()?;
        effective.faults().iter().for_each(|fault| super::print::warning(fault));
        let mut timeline = Timeline::open(&self.home, workspace, effective.policy)?;
        if self.is_attended {
            timeline.attend(&self.progress);
        }
        super::unguarded::bring_in(&self.home, timeline.workspace());
        // Every verb says it; those that would restore refuse on top of it.
        if let Err(interrupted) = timeline.catalog().refuse_interrupted() {
            super::print::warning(&interrupted.text());
        }
        Ok(timeline)
    }

    /// Done with a timeline that was only looked at: the process ends, and thousands of checkpoints need not be taken apart
    /// first.
    pub(super) fn leave(timeline: Timeline) {
        std::mem::forget(timeline);
    }

    /// Returns a path as it was typed, from the working directory on.
    pub(super) fn below_cwd(&self, typed: &Path) -> PathBuf {
        self.cwd.as_deref().unwrap_or(Path::new("/")).join(typed)
    }

    /// Paths as they were typed, relative to the working directory, as paths of the workspace.
    ///
    /// # Errors
    /// `bad-path` for one that lies outside.
    pub(super) fn paths(&self, workspace: &Workspace, typed: &[PathBuf]) -> Result<Vec<RelPath>> {
        typed.iter().map(|path| self.path(workspace, path)).collect()
    }

    /// One path.
    ///
    /// # Errors
    /// As [`Context::paths`].
    pub(super) fn path(&self, workspace: &Workspace, typed: &Path) -> Result<RelPath> {
        let cwd = self.cwd.as_ref().map(|cwd| real_path(cwd));
        let base = cwd.filter(|cwd| cwd.starts_with(&workspace.path)).unwrap_or_else(|| workspace.path.clone());
        let full = normalise(&base.join(typed));
        inside(&workspace.path, &full, typed)
    }
}

/// Settings from the command line.
///
/// # Errors
/// `bad-request` for what is not `KEY=VALUE`.
pub(super) fn flags(global: &GlobalArgs) -> Result<Vec<(String, String)>> {
    global.set.iter().map(|text| pair(text)).collect()
}

/// Returns the directory named with `--workspace`.
pub(super) fn named(global: &GlobalArgs, cwd: Option<&Path>) -> Option<PathBuf> {
    let outside = global.outside.then(|| PathBuf::from(OUTSIDE));
    outside.or_else(|| global.workspace.as_ref().map(|path| cwd.unwrap_or(Path::new("")).join(path)))
}

/// Returns true if a directory is deleted, was not a workspace, and its repository is saved with the files outside every workspace. That is
/// the case for a worktree after `git worktree remove`.
fn is_saved_outside(home: &Home, dir: &Path) -> bool {
    if dir.symlink_metadata().is_ok() {
        return false;
    }
    // Where the workspaces cannot be listed, the verb itself says so.
    let known = |path: &Path| Workspace::at(home, path).ok().flatten();
    let repository = normalise(&dir.join(".git"));
    let is_kept = |outside: Workspace| {
        repositories::of(&outside.dir).iter().any(|kept| kept.path.under(Path::new(OUTSIDE)) == repository)
    };
    known(dir).is_none() && known(Path::new(OUTSIDE)).is_some_and(is_kept)
}

fn pair(text: &str) -> Result<(String, String)> {
    text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())).ok_or_else(|| {
        Error::new(Code::BadRequest, format!("`--set {text}` is not KEY=VALUE")).hint("for example --set guard=action")
    })
}
