//! `piton watch`: saves what changes in workspaces, whoever changes it.
//!
//! The daemon does the work. This process holds one connection for each directory, and connects again when the daemon ended.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::at_work::WorkNote;
use super::context::Context;
use super::exit::Exit;
use super::print;
use super::saved::{Again, SavedLink, refuse_settings};
use crate::checkpoint::Home;
use crate::engine::saves::{LATEST, QUIET};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::door::Door;
use crate::model::policy::Guard;
use crate::model::text::count;
use crate::protocol::{Hello, NoticeBody, NoticeLine, WatchLine};

/// The longest sleep without a notice; the process then only sleeps again.
const REST: Duration = Duration::from_hours(24);

/// The arguments of `piton watch`.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// Directories whose workspaces to watch [default: this workspace]
    #[arg(value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
}

/// Watches until it is told to end.
///
/// # Errors
/// Returns the error of the first directory that cannot be watched.
pub(super) fn watch(context: &Context, args: &WatchArgs) -> Result<Exit> {
    refuse_settings(&context.flags, "watch")?;
    let mut dirs = Vec::new();
    for dir in &args.dirs {
        let real = dir.canonicalize().at("looking for the directory", dir)?;
        if !real.is_dir() {
            return Err(Error::new(Code::BadPath, "only a directory can be watched").path(dir));
        }
        dirs.push(real);
    }
    if dirs.is_empty() {
        dirs.push(context.root()?);
    }
    let mut watches = Vec::new();
    for dir in dirs {
        let watch = Watch::begin(&context.home, &dir, context.json)?;
        if !watches.iter().any(|known: &Watch| known.root == watch.root) {
            watches.push(watch);
        }
    }
    let _note = WorkNote::write(&context.home, "watch");
    let told: Vec<&str> = watches.iter().map(|watch| watch.root.as_str()).collect();
    print::note(&format!(
        "piton: watching {}. Changes are saved {} s after the last one, and at most {} s after the first. Press Ctrl-C to stop.",
        told.join(", "),
        QUIET.as_secs(),
        LATEST.as_secs()
    ));
    let started: Vec<_> = watches.into_iter().map(|watch| thread::spawn(move || watch.follow())).collect();
    for thread in started {
        let ended =
            thread.join().unwrap_or_else(|_| Err(Error::new(Code::Internal, "an internal error ended the watch")));
        ended?;
    }
    Ok(Exit::Done)
}

/// The watch of one workspace.
struct Watch {
    /// The root of the workspace, for people.
    root: String,
    as_json: bool,
    saved: SavedLink,
}

impl Watch {
    fn begin(home: &Home, dir: &Path, as_json: bool) -> Result<Watch> {
        let hello = Hello {
            client: Some("piton watch".to_owned()),
            pid: Some(std::process::id().into()),
            cwd: Some(dir.to_owned()),
            door: Some(Door::Watch.into()),
            ..Hello::default()
        };
        let (saved, reply) = SavedLink::open(home, hello)?;
        if !reply.autosave {
            let why = reply.faults.first().cloned().unwrap_or_else(|| "changes are not saved here".to_owned());
            return Err(Error::new(Code::WorkspaceRefused, why).path(dir).hint("give a project directory"));
        }
        if reply.guard.known() == Some(Guard::Off) {
            let root = &reply.workspace.path;
            print::say(&format!(
                "piton: the guard is off in {root}, so nothing is saved; to see why, run `piton status`"
            ));
        }
        Ok(Watch { root: reply.workspace.path, as_json, saved })
    }

    /// Tells of saves for as long as the process lives.
    fn follow(mut self) -> Result<()> {
        let mut is_broken = false;
        loop {
            if !is_broken && let Ok(notices) = self.saved.link.notices(Instant::now() + REST) {
                notices.iter().try_for_each(|notice| self.tell(notice))?;
                continue;
            }
            if let Some(pause) = self.saved.pause() {
                thread::sleep(pause);
            }
            let was_broken = std::mem::replace(&mut is_broken, true);
            match self.saved.again() {
                Again::Connected => {
                    is_broken = false;
                    if was_broken {
                        print::note(&format!("piton: {} is watched again", self.root));
                    }
                }
                Again::Broken(why) => print::say(&format!("piton: {} is not watched: {why}; trying again", self.root)),
                Again::StillBroken => {}
            }
        }
    }

    fn tell(&self, notice: &NoticeLine) -> Result<()> {
        match &notice.body {
            body if self.as_json => {
                let line = WatchLine { workspace: self.root.clone(), body: body.clone() };
                print::line(&line)
            }
            NoticeBody::Autosaved(saved) => {
                let block = &saved.checkpoint;
                let number = block.n.as_ref().map(ToString::to_string).unwrap_or_default();
                let changed = block.changed.filter(|changed| *changed > 0);
                let changed = changed.map(|changed| format!(", {} changed", count(changed, "file")));
                print::data(&format!("{}: checkpoint {number}{}\n", self.root, changed.unwrap_or_default()))
            }
            NoticeBody::Failed(failed) => {
                let reason = failed.reason.as_deref().unwrap_or("no reason is known");
                let is_save =
                    failed.kind.as_ref().and_then(crate::protocol::Word::known) == Some(CheckpointKind::Autosave);
                let what = if is_save { "changes could not be saved; trying again" } else { "a checkpoint failed" };
                print::say(&format!("piton: {}: {what}: {reason}", self.root));
                Ok(())
            }
            NoticeBody::LowDisk(low) => {
                print::say(&format!("piton: {}", low.reason));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
