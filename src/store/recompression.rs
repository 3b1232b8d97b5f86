//! One light pack that is being compressed, over several slices of idle time.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use super::deflate::{self, Effort};
use super::index::PackEntry;
use super::pack::{self, PackWriter};
use super::pack_files::{self, PackFile};
use super::{hash, header};
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectKind;
use crate::sys::fs::lock::FileLock;
use crate::sys::interrupt::{Flow, Interrupt};

/// The pause between two checks of the interrupt while a pack is being synced.
const PAUSE: Duration = Duration::from_millis(5);

/// One light pack at work.
pub(super) struct Recompression {
    /// The pack that is taken apart.
    pub(super) light: PackFile,
    /// The same pack, open for reading.
    pub(super) file: File,
    /// The entries that no dense pack holds, each with its end.
    pub(super) todo: VecDeque<(PackEntry, u64)>,
    /// The dense pack that is being written; `None` between two of them.
    pub(super) writer: Option<PackWriter>,
    /// A pack that is being synced, by a thread of its own: a disk may take long.
    pub(super) finishing: Option<Receiver<Result<String>>>,
    /// True if an object could not be read. The others are compressed all the same, and the light pack stays.
    pub(super) damaged: bool,
    /// Keeps others from consolidating packs meanwhile.
    pub(super) _consolidating: FileLock,
    /// Keeps the packs that are being read from being removed.
    pub(super) _shared: FileLock,
}

impl Drop for Recompression {
    fn drop(&mut self) {
        if let Some(finishing) = self.finishing.take() {
            // Waited for, because a pack without its index would stay for ever. Its result is not needed any more.
            let _ = finishing.recv();
        }
    }
}

impl Recompression {
    /// Works until everything is done (`true`), `left` is used up, or `control` interrupts it.
    pub(super) fn work(&mut self, pack: u64, left: &mut u64, control: Interrupt<'_>) -> Result<bool> {
        while let Some((entry, end)) = self.todo.front() {
            if *left == 0 || control() == Flow::Stop {
                return Ok(false);
            }
            let Some((packed, size)) = self.dense(entry, *end)? else {
                tracing::warn!(id = %entry.id, pack = self.light.name(), "an object is damaged");
                self.damaged = true;
                self.todo.pop_front();
                continue;
            };
            let writer = match &mut self.writer {
                Some(writer) => writer,
                None => self.writer.insert(PackWriter::create(&self.git_dir(), pack::DENSE)?),
            };
            writer.append(&packed)?;
            let full = writer.length() >= pack;
            self.todo.pop_front();
            *left = left.saturating_sub(size);
            if full {
                if !self.wait(control)? {
                    return Ok(false);
                }
                self.finish()?;
            }
        }
        if !self.wait(control)? {
            return Ok(false);
        }
        self.finish()?;
        self.wait(control)
    }

    /// Returns the directory of the repository.
    pub(super) fn git_dir(&self) -> PathBuf {
        self.light.path.ancestors().nth(3).unwrap_or(&self.light.path).to_owned()
    }

    /// Puts the unfinished pack in its place, on another thread.
    pub(super) fn finish(&mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let (sender, receiver) = channel();
        let finishing = move || {
            // Without a receiver the result is not needed.
            let _ = sender.send(writer.finish());
        };
        let started = Builder::new().name("sync".to_owned()).spawn(finishing);
        started.map_err(|error| Error::new(Code::Internal, "cannot start a thread").caused_by(error))?;
        self.finishing = Some(receiver);
        Ok(())
    }

    /// Waits for the pack that is being finished; `false` when `control` interrupts it before.
    pub(super) fn wait(&mut self, control: Interrupt<'_>) -> Result<bool> {
        while let Some(finishing) = &self.finishing {
            match finishing.recv_timeout(PAUSE) {
                Ok(outcome) => {
                    self.finishing = None;
                    outcome?;
                }
                Err(RecvTimeoutError::Timeout) if control() == Flow::Continue => {}
                Err(RecvTimeoutError::Timeout) => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => {
                    self.finishing = None;
                    return Err(Error::new(Code::Internal, "a pack was not finished"));
                }
            }
        }
        Ok(true)
    }

    /// Returns an entry, proved and compressed, and the bytes of its content; `None` when it is damaged.
    pub(super) fn dense(&self, entry: &PackEntry, end: u64) -> Result<Option<(pack::Packed, u64)>> {
        let Some(bytes) = pack_files::read(&self.file, entry, end, &self.light.file("pack"))? else {
            return Ok(None);
        };
        let content = |(kind, size, at): (ObjectKind, u64, usize)| {
            let content = deflate::inflate(&bytes[at..], usize::try_from(size).ok()?)?;
            Some((kind, content)).filter(|(kind, content)| hash::plain_id(*kind, content) == entry.id)
        };
        let Some((kind, content)) = header::entry_of(&bytes).and_then(content) else {
            return Ok(None);
        };
        let size = content.len() as u64;
        Ok(Some((pack::compress(kind, entry.id, &content, Effort::Small)?, size)))
    }
}
