//! The door of a session: each event is noted among the records of its workspace, so that others see which doors work.
//!
//! One thread of the process writes the notes. A session waits for it for a moment only: a disk that stands still stops no answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::checkpoint::records::doors::DoorMark;
use crate::error::{IoContext, Result};
use crate::model::door::Door;

/// The longest wait of a session for its note.
const PATIENCE: Duration = Duration::from_millis(50);

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
    /// Locked while a note is written.
    mark: Arc<Mutex<Option<DoorMark>>>,
}

impl SessionDoor {
    /// Notes the kind of door that a client names.
    pub(super) fn is_through(&mut self, kind: Option<Door>) {
        if kind.is_some() && kind != self.kind {
            *self = SessionDoor { kind, mark: None };
        }
    }

    /// Returns true if the client comes through a kind of door.
    pub(super) fn is(&self, kind: Door) -> bool {
        self.kind == Some(kind)
    }

    /// Notes an event of a client in a workspace, whose records are in `dir`.
    pub(super) fn note(&mut self, workspace: &str, dir: &Path, client: Option<&str>) {
        let is_open = |open: &OpenMark| open.workspace == workspace && open.client.as_deref() == client;
        if !self.mark.as_ref().is_some_and(is_open) {
            let (workspace, client) = (workspace.to_owned(), client.map(str::to_owned));
            self.mark = Some(OpenMark { workspace, client, mark: Arc::default() });
        }
        let Some(open) = &self.mark else { return };
        // A note that is still being written counts for this event too.
        let is_fresh = open.mark.try_lock().map_or(true, |mark| mark.as_ref().is_some_and(DoorMark::is_fresh));
        if is_fresh {
            return;
        }
        let (mark, client) = (Arc::clone(&open.mark), open.client.clone());
        let (kind, dir) = (self.kind.unwrap_or(Door::Sidecar), dir.to_owned());
        let (told, done) = channel();
        let work = move || {
            if let Err(error) = write(&mark, kind, client.as_deref(), &dir) {
                tracing::debug!(%error, "could not record which integration sent an event");
            }
            // The session may have gone on.
            let _ = told.send(());
        };
        if writer().is_some_and(|writer| writer.send(Box::new(work)).is_ok()) {
            // On a disk that stands still, the note comes later.
            let _ = done.recv_timeout(PATIENCE);
        }
    }
}

fn write(mark: &Mutex<Option<DoorMark>>, kind: Door, client: Option<&str>, dir: &Path) -> Result<()> {
    let mut mark = mark.lock().unwrap_or_else(PoisonError::into_inner);
    if mark.is_none() {
        *mark = Some(DoorMark::open(dir, kind, client)?);
    }
    mark.as_mut().map_or(Ok(()), DoorMark::note).at("recording the integration in", dir)
}

type Work = Box<dyn FnOnce() + Send>;

/// Returns the way to the thread that writes; `None` where the system has no thread left.
fn writer() -> Option<&'static Sender<Work>> {
    static WRITER: OnceLock<Option<Sender<Work>>> = OnceLock::new();
    let start = || {
        let (sender, works) = channel::<Work>();
        // A bug costs one note, and not those behind it.
        let serve = move || works.into_iter().for_each(|work| drop(catch_unwind(AssertUnwindSafe(work))));
        std::thread::Builder::new().name("doors".to_owned()).spawn(serve).ok().map(|_| sender)
    };
    WRITER.get_or_init(start).as_ref()
}
