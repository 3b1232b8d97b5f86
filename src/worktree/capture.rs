//! Capturing a workspace: walk, compare with stamps, read what may have changed, hand its content to a sink.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::read::{self, Read};
use super::walk::{self, Found, Seen};
use crate::error::Result;
use crate::model::coverage::{Coverage, Defaults, Extent, SkipReason};
use crate::model::manifest::{Entry, EntryKind, Manifest};
use crate::model::path::RelPath;
use crate::model::policy::{Limits, Secrets};
use crate::model::sink::ObjectSink;
use crate::model::stamp::Known;
use crate::sys::dir::Dir;

/// Whether a long operation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

/// A path that is captured whatever the rules say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub path: RelPath,
    /// With everything below it, if it is a directory.
    pub recursive: bool,
}

/// What to capture, and under which rules.
pub struct Request<'a> {
    pub root: &'a Path,
    /// What the last capture knew; its paths stay captured while they exist.
    pub known: &'a BTreeMap<RelPath, Known>,
    /// Paths captured before of which no stamp is known.
    pub sticky: &'a BTreeSet<RelPath>,
    pub targets: &'a [Target],
    /// Targets have no budget: everything a restore may replace must be saved.
    pub unlimited_targets: bool,
    pub extent: Extent,
    pub limits: Limits,
    pub secrets: Secrets,
    /// Configured excludes, `.gitignore` dialect, relative to the root.
    pub exclude: &'a [String],
    /// Directories that are never captured, wherever they appear (piton's own).
    pub never: &'a [PathBuf],
    /// Usual permissions of the last checkpoint; kept, so that records do not flap.
    pub defaults: Option<Defaults>,
}

/// Counts and durations of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub dirs: u64,
    pub files: u64,
    pub bytes: u64,
    /// Files whose stamp proved their content.
    pub reused: u64,
    pub hashed: u64,
    pub hashed_bytes: u64,
    /// Files captured only because they were targets.
    pub targeted: u64,
    pub walk_us: u64,
    pub hash_us: u64,
}

/// What a capture saw.
#[derive(Clone, Debug)]
pub struct Capture {
    pub manifest: Manifest,
    pub coverage: Coverage,
    /// For the next capture. Paths captured only as targets are not among them.
    pub known: BTreeMap<RelPath, Known>,
    pub stats: Stats,
    pub warnings: Vec<String>,
}

/// Captures. `control` is called often from the calling thread.
///
/// # Errors
/// `workspace-gone`; `shutting-down` when `control` stopped it; errors of the sink. What goes wrong with single files of
/// the user is part of the coverage.
pub fn capture(request: &Request<'_>, sink: &dyn ObjectSink, control: &dyn Fn() -> Flow) -> Result<Capture> {
    let started = Instant::now();
    let root = Dir::open_root(request.root)?;
    let mut seen = walk::walk(request, &root, control)?;
    guard_count(&mut seen, request);
    let walk_us = started.elapsed().as_micros() as u64;
    let (jobs, mut builder) = Builder::start(request, seen);
    let read_started = Instant::now();
    let outcomes = read::read_all(&root, &jobs, request.limits.file_bytes, (sink, control))?;
    for (found, outcome) in jobs.into_iter().zip(outcomes) {
        builder.add(found, outcome);
    }
    let mut capture = builder.finish(request);
    capture.stats.walk_us = walk_us;
    capture.stats.hash_us = read_started.elapsed().as_micros() as u64;
    Ok(capture)
}

/// Keeps `limits.files` files at most: those captured before, then those git tracks, then by path.
fn guard_count(seen: &mut Seen, request: &Request<'_>) {
    let limit = usize::try_from(request.limits.files).unwrap_or(usize::MAX);
    if seen.files.len() <= limit {
        return;
    }
    let rank = |found: &Found| {
        let before = request.known.contains_key(&found.path) || request.sticky.contains(&found.path);
        if found.targeted {
            0u8
        } else if before {
            1
        } else if seen.tracked.contains(&found.path) {
            2
        } else {
            3
        }
    };
    let mut ranked: Vec<(u8, Found)> = std::mem::take(&mut seen.files).into_iter().map(|f| (rank(&f), f)).collect();
    ranked.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.path.cmp(&y.path)));
    let over = ranked.split_off(limit);
    seen.files = ranked.into_iter().map(|(_, found)| found).collect();
    seen.files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut holding: HashSet<RelPath> = HashSet::new();
    for found in &seen.files {
        let mut dir = found.path.parent();
        while let Some(ancestor) = dir.filter(|ancestor| holding.insert(ancestor.clone())) {
            dir = ancestor.parent();
        }
    }
    for (_, found) in over {
        // The highest directory that holds nothing captured stands for all that is in it.
        let mut listed = found.path;
        while let Some(parent) = listed.parent().filter(|parent| !parent.is_root() && !holding.contains(parent)) {
            listed = parent;
        }
        seen.skipped.insert(listed, SkipReason::OverCount);
    }
}

/// Puts a capture together.
struct Builder {
    manifest: Manifest,
    coverage: Coverage,
    known: BTreeMap<RelPath, Known>,
    stats: Stats,
    warnings: Vec<String>,
    dir_perms: BTreeMap<RelPath, u16>,
    targets: HashSet<RelPath>,
}

impl Builder {
    /// Takes what needs no reading; gives the files that do.
    fn start(request: &Request<'_>, seen: Seen) -> (Vec<Found>, Builder) {
        let mut builder = Builder {
            manifest: Manifest::new(),
            coverage: Coverage {
                extent: request.extent.clone(),
                file_cap: request.limits.file_bytes,
                secrets: request.secrets == Secrets::Always,
                excludes: seen.excludes,
                configured: request.exclude.to_vec(),
                skipped: seen.skipped,
                ..Coverage::default()
            },
            known: BTreeMap::new(),
            stats: Stats { dirs: seen.dirs.len() as u64, ..Stats::default() },
            warnings: seen.warnings,
            dir_perms: seen.passed.into_iter().collect(),
            targets: request.targets.iter().map(|target| target.path.clone()).collect(),
        };
        for (path, perm) in seen.dirs {
            builder.manifest.insert(path.clone(), Entry::dir(perm));
            builder.dir_perms.insert(path, perm);
        }
        let mut jobs = Vec::new();
        for found in seen.files {
            let proven =
                request.known.get(&found.path).filter(|known| known.proven && known.stamp == found.status.stamp);
            match proven {
                Some(known) => {
                    builder.stats.reused += 1;
                    builder.keep(&found, known.id, found.status.perm(), *known);
                }
                None => jobs.push(found),
            }
        }
        (jobs, builder)
    }

    fn add(&mut self, found: Found, outcome: Read) {
        match outcome {
            Read::Content { known, perm, unstable } => {
                self.stats.hashed += 1;
                self.stats.hashed_bytes += known.stamp.size;
                if unstable {
                    self.coverage.unstable.push(found.path.clone());
                }
                self.keep(&found, known.id, perm, known);
            }
            Read::Skip(SkipReason::Vanished) if !self.targets.contains(&found.path) => {}
            Read::Skip(reason) => _ = self.coverage.skipped.insert(found.path, reason),
        }
    }

    fn keep(&mut self, found: &Found, id: crate::model::id::ObjectId, perm: u16, known: Known) {
        let (kind, perm) = if found.is_link() { (EntryKind::Link, 0o777) } else { (EntryKind::File, perm) };
        self.stats.files += 1;
        self.stats.bytes += known.stamp.size;
        self.manifest.insert(found.path.clone(), Entry { kind, perm, id, size: known.stamp.size });
        if found.targeted {
            self.stats.targeted += 1;
            self.coverage.targeted.push(found.path.clone());
        } else {
            self.known.insert(found.path.clone(), known);
        }
        self.keep_parents(&found.path);
    }

    /// Directories that were only passed through are captured when something in them is.
    fn keep_parents(&mut self, path: &RelPath) {
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|dir| !dir.is_root() && !self.manifest.contains(dir)) {
            parent = dir.parent();
            let perm = self.dir_perms.get(&dir).copied().unwrap_or(0o755);
            self.manifest.insert(dir, Entry::dir(perm));
        }
    }

    fn finish(mut self, request: &Request<'_>) -> Capture {
        self.coverage.defaults = request.defaults.unwrap_or_else(|| usual_permissions(&self.manifest));
        Capture {
            manifest: self.manifest,
            coverage: self.coverage,
            known: self.known,
            stats: self.stats,
            warnings: self.warnings,
        }
    }
}

/// The most frequent permission bits of files, executables and directories.
fn usual_permissions(manifest: &Manifest) -> Defaults {
    use crate::model::tree::Mode;
    let majority = |mode: Mode, standard: u16| {
        let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
        for (_, entry) in manifest.iter().filter(|(_, entry)| entry.mode() == mode) {
            *counts.entry(entry.perm).or_default() += 1;
        }
        let best = counts.iter().max_by_key(|(perm, count)| (**count, **perm == standard));
        best.map_or(standard, |(perm, _)| *perm)
    };
    let standard = Defaults::STANDARD;
    Defaults {
        file: majority(Mode::File, standard.file),
        executable: majority(Mode::Executable, standard.executable),
        dir: majority(Mode::Dir, standard.dir),
    }
}

#[cfg(test)]
mod tests;
