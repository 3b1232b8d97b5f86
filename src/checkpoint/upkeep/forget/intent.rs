//! The note of a forget at work, `forget.json` in piton's home, so that one that was killed is completed.
//!
//! It has the ids of checkpoints and contents, and the paths of a forget of paths. *Invariant:* it never has the secret,
//! nor anything that the secret could be found from faster than by guessing whole contents.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::rewrite::{Rewriter, Victims};
use crate::checkpoint::records::home::Home;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::model::meta::{quote, unquote};
use crate::model::path::RelPath;
use crate::sys::clock::local_minute;
use crate::sys::fs::durable::{replace_file, sync_dir};

/// The content that a forget at work takes out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum IntentKind {
    /// Files that hold a secret, by the ids of their contents.
    Secret {
        /// These ids.
        contents: Vec<ObjectId>,
    },
    /// Paths of a workspace.
    Paths {
        /// Percent-quoted.
        paths: Vec<String>,
    },
    /// Everything of a workspace.
    Workspace,
}

impl IntentKind {
    /// Returns what a rewriter takes out.
    pub(super) fn of(rewriter: &Rewriter<'_>) -> IntentKind {
        match &rewriter.victims {
            Victims::Paths(paths) => {
                IntentKind::Paths { paths: paths.iter().map(|path| quote(path.as_bytes())).collect() }
            }
            Victims::Secret(_) | Victims::Contents(_) => {
                IntentKind::Secret { contents: rewriter.gone.keys().copied().collect() }
            }
        }
    }

    /// Returns true for a kept repository that goes. Where no checkpoint holds any of the paths, only those go that they name.
    pub(super) fn takes(&self, kept: &RelPath, is_nothing_held: bool) -> bool {
        let IntentKind::Paths { paths } = self else { return true };
        let is_named = |path: RelPath| kept.starts_with(&path) || path.starts_with(kept);
        let mut paths = paths.iter().filter_map(|path| RelPath::parse(&unquote(path).ok()?).ok());
        !is_nothing_held || paths.any(is_named)
    }
}

/// The note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ForgetIntent {
    /// Milliseconds since 1970.
    pub at: i64,
    /// The content that goes.
    pub kind: IntentKind,
    /// The id of the one workspace that it is about; `None` for all.
    pub workspace: Option<String>,
    /// The commits that are replaced, each with the new one.
    pub map: Vec<(ObjectId, ObjectId)>,
    /// True once all refs and ids are done. Only texts may be left then, which need the secret.
    pub has_moved: bool,
}

fn file(home: &Home) -> PathBuf {
    home.path().join("forget.json")
}

impl ForgetIntent {
    /// Reads the note; `None` without one.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub(super) fn load(home: &Home) -> Result<Option<ForgetIntent>> {
        let path = file(home);
        match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            read => serde_json::from_slice(&read.at("reading", &path)?).map(Some).map_err(|error| {
                Error::new(Code::StoreDamaged, "cannot read the note of a killed `piton forget`")
                    .path(&path)
                    .hint("remove it and run `piton forget` again")
                    .caused_by(error)
            }),
        }
    }

    /// Writes it durably.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(super) fn save(&self, home: &Home) -> Result<()> {
        let text = serde_json::to_vec(self)
            .map_err(|error| Error::new(Code::Internal, "writing the note of a forget").caused_by(error))?;
        replace_file(&file(home), &text)
    }

    /// Removes the note.
    ///
    /// # Errors
    /// `permission`.
    pub(super) fn remove(home: &Home) -> Result<()> {
        match std::fs::remove_file(file(home)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(error, "removing", &file(home)))
            }
            _ => sync_dir(home.path()),
        }
    }
}

/// Returns the new commits of a forget at work, which nothing else may name yet.
pub(in crate::checkpoint::upkeep) fn pending(home: &Home) -> Result<Vec<ObjectId>> {
    Ok(ForgetIntent::load(home)?.map_or_else(Vec::new, |intent| intent.map.into_iter().map(|(_, new)| new).collect()))
}

/// Says that a forget was not finished, and how to finish it; `None` if none is open.
pub fn unfinished(home: &Home) -> Option<String> {
    let intent = match ForgetIntent::load(home) {
        Ok(intent) => intent?,
        Err(error) => return Some(error.text()),
    };
    let time = local_minute(intent.at);
    Some(match (&intent.kind, intent.has_moved) {
        (IntentKind::Secret { .. }, true) => format!(
            "`piton forget --secret` of {time} was killed. No checkpoint contains the secret now, but records and logs \
             might. Run the same command again"
        ),
        (IntentKind::Secret { .. }, false) => {
            format!("`piton forget --secret` of {time} is not finished; run the same command again")
        }
        _ => format!("`piton forget` of {time} is not finished; to finish it, run `piton forget --continue`"),
    })
}
