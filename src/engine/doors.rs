//! The door of a session: each event is noted among the records of its workspace, so that others see which doors work.

use std::path::Path;

use crate::checkpoint::records::doors::DoorMark;
use crate::error::{IoContext, Result};
use crate::model::door::Door;

/// The door that a session's client comes through.
#[derive(Default)]
pub(super) struct SessionDoor {
    /// The kind of door; `None` for the line protocol.
    kind: Option<Door>,
    mark: Option<OpenMark>,
}

/// The mark of the door in the records of one workspace.
struct OpenMark {
    workspace: String,
    client: Option<String>,
    mark: DoorMark,
}

impl SessionDoor {
    /// Notes the kind of door that a client names.
    pub(super) fn is_through(&mut self, kind: Option<Door>) {
        if kind.is_some() && kind != self.kind {
            *self = SessionDoor { kind, mark: None };
        }
    }

    /// Notes an event of a client in a workspace, whose records are in `dir`.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(super) fn note(&mut self, workspace: &str, dir: &Path, client: Option<&str>) -> Result<()> {
        let is_open = |open: &OpenMark| open.workspace == workspace && open.client.as_deref() == client;
        if !self.mark.as_ref().is_some_and(is_open) {
            let mark = DoorMark::open(dir, self.kind.unwrap_or(Door::Sidecar), client)?;
            self.mark = Some(OpenMark { workspace: workspace.to_owned(), client: client.map(str::to_owned), mark });
        }
        let noted = self.mark.as_mut().map_or(Ok(()), |open| open.mark.note());
        noted.at("setting the mark of a door among", dir)
    }
}
