//! Checkpoints without the content that is to be forgotten: new trees, new records, new commits.
//!
//! A file that goes is recorded as skipped, so that its absence is never restored. Where a name itself is secret, a
//! pattern is recorded in its place, among the configured excludes. A commit that has nothing to hide but comes from
//! one that had is written anew with its new parent. Everything else keeps its id.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::pace::go_on;
use crate::checkpoint::catalog::bounds::tree_bound;
use crate::error::{Code, Error, Result};
use crate::model::build::{self, MAX_DEPTH};
use crate::model::checkpoint::Record;
use crate::model::coverage::{Coverage, Extent, SkipReason};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::manifest::{EntryKind, Manifest};
use crate::model::name::{RESERVED_ROOT, from_stored, to_stored};
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::sought::{SecretPattern, SecretSearch};
use crate::model::tree::{self, Mode};
use crate::store::{Commit, NewCommit, Store};
use crate::sys::interrupt::Interrupt;
use crate::sys::progress::{Amount, Stage};

/// The content that is to go.
pub(super) enum Victims {
    /// Content, names and texts that hold a secret.
    Secret(SecretPattern),
    /// Paths of one workspace, each with all below it.
    Paths(Vec<RelPath>),
    /// Contents of files, as an interrupted forget has noted them.
    Contents(HashSet<ObjectId>),
}

/// Takes each new object.
pub(super) type EmitObject<'e> = dyn FnMut(ObjectKind, ObjectId, &[u8]) -> Result<()> + 'e;

/// A checkpoint that was written anew.
#[derive(Clone, Debug)]
pub struct RewrittenCheckpoint {
    /// Its id before.
    pub old: ObjectId,
    /// Its new id.
    pub new: ObjectId,
    /// Its new record; `None` for a commit that is not piton's.
    pub record: Option<Record>,
    /// The paths that went. Where a name is secret, a pattern of it.
    pub paths: Vec<String>,
    /// True if its own content or its texts changed, and not only its parent.
    pub is_own: bool,
}

/// The place of a tree in a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TreePlace {
    Root,
    Inside,
    /// Among piton's own records.
    Records,
}

/// A tree that was written anew.
struct NewTree {
    id: ObjectId,
    files: u64,
    bytes: u64,
    skipped: u64,
    is_partial: bool,
    /// The paths that went, as they may be shown.
    paths: Vec<String>,
}

/// Writes checkpoints anew, and remembers each tree and content that it has looked at.
pub(super) struct Rewriter<'c> {
    pub store: Store,
    /// The store of private files, if there is one.
    pub local: Option<Store>,
    /// True while the checkpoints of that one are at work.
    is_local: bool,
    control: Interrupt<'c>,
    pub victims: Victims,
    memory: u64,
    contents: HashMap<ObjectId, bool>,
    touched: HashMap<(ObjectId, TreePlace), bool>,
    trees: HashMap<ObjectId, Option<std::rc::Rc<NewTree>>>,
    /// Each commit that was looked at, and the one that takes its place: itself, if it stays.
    pub commits: HashMap<ObjectId, ObjectId>,
    /// The workspace and the number of each new checkpoint.
    pub numbers: HashMap<ObjectId, (String, Number)>,
    /// The checkpoints that change, parents first.
    pub changed: Vec<RewrittenCheckpoint>,
    /// Contents of files that went, with their bytes.
    pub gone: HashMap<ObjectId, u64>,
    /// Paths in the workspace that went, for a look at the files that are there now.
    pub paths: BTreeSet<RelPath>,
    /// Sentences on what could not be read.
    pub faults: BTreeSet<String>,
}

impl<'c> Rewriter<'c> {
    /// Makes one over a store. No list of a stored tree's paths takes more than `memory` bytes. `control` may stop it.
    pub(super) fn new(store: Store, victims: Victims, memory: u64, control: Interrupt<'c>) -> Rewriter<'c> {
        Rewriter {
            store,
            local: None,
            is_local: false,
            control,
            victims,
            memory,
            contents: HashMap::new(),
            touched: HashMap::new(),
            trees: HashMap::new(),
            commits: HashMap::new(),
            numbers: HashMap::new(),
            changed: Vec::new(),
            gone: HashMap::new(),
            paths: BTreeSet::new(),
            faults: BTreeSet::new(),
        }
    }

    /// Has the store of private files rewritten too.
    pub(super) fn with_local(self, local: Option<Store>) -> Rewriter<'c> {
        Rewriter { local, ..self }
    }

    /// Returns the store that is at work.
    fn at_work(&self) -> &Store {
        self.local.as_ref().filter(|_| self.is_local).unwrap_or(&self.store)
    }

    /// Returns true if one of the stores has an object.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        [Some(&self.store), self.local.as_ref()].into_iter().flatten().any(|store| store.has(id).is_ok_and(|has| has))
    }

    /// As [`Rewriter::rewrite`], of private layers.
    ///
    /// # Errors
    /// As [`Rewriter::rewrite`].
    pub(super) fn rewrite_local(&mut self, roots: Vec<ObjectId>, emit: &mut EmitObject<'_>) -> Result<()> {
        self.is_local = true;
        let done = self.rewrite(roots, emit);
        self.is_local = false;
        done
    }

    /// Begins again, with the commits of `map` done, and with what is known of contents.
    pub(super) fn restart(&mut self, map: impl IntoIterator<Item = (ObjectId, ObjectId)>) {
        (self.commits, self.trees) = (map.into_iter().collect(), HashMap::new());
        self.changed.clear();
    }

    /// Reads the numbers of new checkpoints that an earlier process has written.
    pub(super) fn note_numbers(&mut self) {
        for (_, new) in self.replaced() {
            // One that is not piton's has no number.
            let mut of = [Some(&self.store), self.local.as_ref()].into_iter().flatten();
            let read = of.find_map(|store| store.read_commit(&new).ok());
            if let Some(record) = read.and_then(|commit| Record::parse(&commit.message)) {
                self.numbers.insert(new, (record.workspace, record.number));
            }
        }
    }

    /// Returns the pattern of a secret, where that is what goes.
    pub(super) fn pattern(&self) -> Option<&SecretPattern> {
        match &self.victims {
            Victims::Secret(pattern) => Some(pattern),
            Victims::Paths(_) | Victims::Contents(_) => None,
        }
    }

    /// Returns the commits whose ids change.
    pub(super) fn replaced(&self) -> Vec<(ObjectId, ObjectId)> {
        let mut replaced: Vec<_> = self.commits.iter().map(|(old, new)| (*old, *new)).collect();
        replaced.retain(|(old, new)| old != new);
        replaced.sort_unstable();
        replaced
    }

    /// Writes the history of each root anew, as far as it holds what is to go.
    ///
    /// # Errors
    /// Returns the errors of reading and of `emit`; `shutting-down` when it was stopped. A commit that is missing or damaged is a fault and stays as it is.
    pub(super) fn rewrite(&mut self, roots: Vec<ObjectId>, emit: &mut EmitObject<'_>) -> Result<()> {
        self.store.progress().begin(Stage::Searching, Amount::UNKNOWN);
        let mut open = roots;
        while let Some(id) = open.pop() {
            go_on(self.control)?;
            self.store.progress().add(1, 0);
            if self.commits.contains_key(&id) {
                continue;
            }
            let commit = match self.at_work().read_commit(&id) {
                Ok(commit) => commit,
                Err(error) if error.code() == Code::Internal => return Err(error),
                Err(error) => {
                    self.faults.insert(format!("checkpoint {}: {}", id.short(), error.fact()));
                    self.commits.insert(id, id);
                    continue;
                }
            };
            let before: Vec<ObjectId> =
                commit.parents.iter().filter(|parent| !self.commits.contains_key(parent)).copied().collect();
            if before.is_empty() {
                self.commit(id, &commit, emit)?;
            } else {
                open.push(id);
                open.extend(before);
            }
        }
        Ok(())
    }

    /// Writes a commit anew whose parents are done, if it changes.
    fn commit(&mut self, id: ObjectId, commit: &Commit, emit: &mut EmitObject<'_>) -> Result<()> {
        let record = Record::parse(&commit.message);
        let name = record.as_ref().map_or_else(|| id.short(), |record| record.number.to_string());
        let tree = self.tree(commit.tree, emit).map_err(|error| error.context(format!("checkpoint {name}")))?;
        let parents: Vec<ObjectId> = commit.parents.iter().map(|parent| self.commits[parent]).collect();
        let pattern = self.pattern();
        let is_told = pattern.is_some_and(|pattern| pattern.is_in(commit.message.as_bytes()));
        let is_own = tree.is_some() || is_told;
        if !is_own && parents == commit.parents {
            self.commits.insert(id, id);
            return Ok(());
        }
        let record = record.map(|record| match is_own {
            true => renewed(record, tree.as_deref(), pattern),
            false => record,
        });
        let message = match (&record, is_own, pattern) {
            (Some(record), true, _) => record.message(),
            (None, true, Some(pattern)) => pattern.redacted(&commit.message).unwrap_or(commit.message.clone()),
            _ => commit.message.clone(),
        };
        if pattern.is_some_and(|pattern| pattern.is_in(message.as_bytes())) {
            self.faults.insert(format!("checkpoint {name}: the name of its run or workspace contains the secret"));
        }
        let root = tree.as_ref().map_or(commit.tree, |tree| tree.id);
        let content = NewCommit { tree: root, parents: &parents, message: &message, time_ms: commit.time_ms }.encode();
        let new = ObjectId::of(ObjectKind::Commit, &content)?;
        emit(ObjectKind::Commit, new, &content)?;
        if let Some(record) = &record {
            self.numbers.insert(new, (record.workspace.clone(), record.number));
        }
        let paths = tree.map(|tree| tree.paths.clone()).unwrap_or_default();
        self.commits.extend([(id, new), (new, new)]);
        self.changed.push(RewrittenCheckpoint { old: id, new, record, paths, is_own });
        Ok(())
    }

    /// Writes a checkpoint's tree anew; `None` if it stays.
    fn tree(&mut self, root: ObjectId, emit: &mut EmitObject<'_>) -> Result<Option<std::rc::Rc<NewTree>>> {
        if let Some(known) = self.trees.get(&root) {
            return Ok(known.clone());
        }
        let is_touched = match &self.victims {
            Victims::Paths(paths) => {
                let mut held = false;
                for path in paths {
                    held |= self.holds(root, path)?;
                }
                held
            }
            Victims::Secret(_) | Victims::Contents(_) => self.touches(root, TreePlace::Root, 0)?,
        };
        let new = if is_touched { Some(std::rc::Rc::new(self.new_tree(root, emit)?)) } else { None };
        self.trees.insert(root, new.clone());
        Ok(new)
    }

    /// Returns true if a tree has an entry at a path.
    fn holds(&self, root: ObjectId, path: &RelPath) -> Result<bool> {
        let mut current = (Mode::Dir, root);
        for (depth, name) in path.components().enumerate() {
            let stored = to_stored(name, depth == 0);
            if current.0 != Mode::Dir {
                return Ok(false);
            }
            let entries = self.at_work().read_tree_within(&current.1, tree_bound(self.memory))?;
            match entries.into_iter().find(|entry| entry.name == stored) {
                Some(entry) => current = (entry.mode, entry.id),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Returns true if something in a tree is to go.
    fn touches(&mut self, id: ObjectId, place: TreePlace, depth: usize) -> Result<bool> {
        if let Some(known) = self.touched.get(&(id, place)) {
            return Ok(*known);
        }
        go_on(self.control)?;
        self.store.progress().add(1, 0);
        if depth > MAX_DEPTH {
            return Err(crate::model::weight::too_deep(&id));
        }
        let mut is_touched = false;
        for entry in self.at_work().read_tree_within(&id, tree_bound(self.memory))? {
            let is_records = place == TreePlace::Records || (place == TreePlace::Root && entry.name == RESERVED_ROOT);
            is_touched = self.pattern().is_some_and(|pattern| is_named(pattern, &entry.name, place))
                || match (entry.mode, is_records) {
                    (Mode::Dir, true) => self.touches(entry.id, TreePlace::Records, depth + 1)?,
                    (Mode::Dir, false) => self.touches(entry.id, TreePlace::Inside, depth + 1)?,
                    (_, true) => self.is_record_of_victims(&entry.id)?,
                    (_, false) => self.is_victim(entry.id)?,
                };
            if is_touched {
                break;
            }
        }
        self.touched.insert((id, place), is_touched);
        Ok(is_touched)
    }

    /// Returns true if one of piton's own records in a tree holds the secret.
    fn is_record_of_victims(&self, id: &ObjectId) -> Result<bool> {
        match self.pattern() {
            Some(pattern) => Ok(pattern.is_in_record(&self.at_work().read_blob_within(id, self.memory)?)),
            None => Ok(false),
        }
    }

    /// Returns true if a file's content is to go. One that cannot be read is a fault, and stays.
    fn is_victim(&mut self, id: ObjectId) -> Result<bool> {
        if let Some(known) = self.contents.get(&id) {
            return Ok(*known);
        }
        go_on(self.control)?;
        let is_victim = match &self.victims {
            Victims::Paths(_) => false,
            Victims::Contents(ids) => ids.contains(&id),
            Victims::Secret(pattern) => {
                let mut search = SecretSearch::new(pattern);
                match self.at_work().copy_blob(&id, &mut search) {
                    Ok(bytes) => {
                        self.store.progress().add(1, bytes);
                        search.finish()
                    }
                    Err(error) if error.code() == Code::StoreDamaged => {
                        self.faults.insert(error.fact());
                        false
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        self.contents.insert(id, is_victim);
        Ok(is_victim)
    }

    /// Writes a tree anew that holds what is to go.
    fn new_tree(&mut self, root: ObjectId, emit: &mut EmitObject<'_>) -> Result<NewTree> {
        let memory = self.memory;
        let read_tree = |id: &ObjectId| self.at_work().read_tree_within(id, tree_bound(memory));
        let read_blob = |id: &ObjectId| self.at_work().read_blob_within(id, memory);
        let (mut manifest, mut coverage) = build::load(&root, &|_| true, memory, &read_tree, &read_blob)?;
        let (mut going, mut patterns) = (Vec::new(), BTreeSet::new());
        let entries: Vec<(RelPath, EntryKind, ObjectId)> =
            manifest.iter().map(|(path, entry)| (path.clone(), entry.kind, entry.id)).collect();
        for (path, kind, id) in entries {
            let glob = self.pattern().and_then(|pattern| pattern.glob(path.as_bytes()));
            let goes = match &self.victims {
                Victims::Paths(paths) => paths.iter().any(|victim| path.starts_with(victim)),
                Victims::Secret(_) | Victims::Contents(_) => {
                    glob.is_some() || (kind != EntryKind::Dir && self.is_victim(id)?)
                }
            };
            if goes {
                going.push((path, kind, id));
                patterns.extend(glob);
            }
        }
        let mut new = NewTree { id: root, files: 0, bytes: 0, skipped: 0, is_partial: false, paths: Vec::new() };
        let removed: BTreeSet<RelPath> = going.iter().map(|(path, ..)| path.clone()).collect();
        if let Victims::Paths(paths) = &self.victims {
            coverage.repositories.retain(|path, _| !paths.iter().any(|victim| path.starts_with(victim)));
        }
        coverage.targeted.retain(|path| !removed.contains(path));
        coverage.unstable.retain(|path| !removed.contains(path));
        for (path, kind, id) in going {
            manifest.remove(&path);
            if kind != EntryKind::Dir {
                // The size of content that cannot be read is not known.
                let size = self.at_work().blob_size(&id).unwrap_or_default();
                self.gone.insert(id, size);
                (new.files, new.bytes) = (new.files + 1, new.bytes + size);
            }
            let is_named = self.pattern().is_some_and(|pattern| pattern.glob(path.as_bytes()).is_some());
            if !is_named && !above(&coverage, &path) {
                coverage.skipped.insert(path.clone(), SkipReason::Forgotten);
                new.paths.push(path.display());
            }
        }
        self.paths.extend(removed);
        new.paths.extend(patterns.iter().cloned());
        self.redact(&mut coverage, patterns);
        (new.skipped, new.is_partial) = (coverage.skipped.len() as u64, coverage.is_partial());
        new.id = self.build(&manifest, &coverage, emit)?;
        Ok(new)
    }

    /// Takes the secret out of the texts of a coverage, and adds patterns for the names that went.
    fn redact(&self, coverage: &mut Coverage, mut patterns: BTreeSet<String>) {
        let Some(pattern) = self.pattern() else { return };
        let is_secret = |path: &RelPath| pattern.is_in_record(path.as_bytes());
        patterns.extend(coverage.skipped.keys().filter_map(|path| pattern.glob(path.as_bytes())));
        coverage.skipped.retain(|path, _| !is_secret(path));
        coverage.repositories.retain(|path, content| !is_secret(path) && !pattern.is_in_record(content));
        coverage.targeted.retain(|path| !is_secret(path));
        coverage.unstable.retain(|path| !is_secret(path));
        if let Extent::Paths(paths) = &mut coverage.extent {
            paths.retain(|path| !is_secret(path));
        }
        coverage.excludes.retain(|exclude| !is_secret(&exclude.base));
        let texts = coverage.excludes.iter_mut().map(|exclude| &mut exclude.text);
        let lists = [&mut coverage.configured, &mut coverage.tracked, &mut coverage.read_only];
        for text in texts.chain(lists.into_iter().flatten()) {
            *text = pattern.redacted(text).unwrap_or(std::mem::take(text));
        }
        coverage.configured.extend(patterns);
    }

    /// Builds the objects of a tree, and makes sure that none of them holds what is to go.
    fn build(&self, manifest: &Manifest, coverage: &Coverage, emit: &mut EmitObject<'_>) -> Result<ObjectId> {
        build::build(manifest, coverage, &mut |kind, id, content| {
            go_on(self.control)?;
            let holds = |pattern: &SecretPattern| match kind {
                ObjectKind::Blob => Ok(pattern.is_in_record(content)),
                _ => tree::decode(content).map(|all| all.iter().any(|entry| pattern.is_in(&entry.name))),
            };
            if self.pattern().map_or(Ok(false), holds)? {
                return Err(Error::new(
                    Code::Internal,
                    "could not remove the secret from the list of paths that contained it",
                )
                .hint("to forget the whole workspace, run `piton forget --workspace DIR`"));
            }
            emit(kind, id, content)
        })
    }
}

/// Returns true if a stored name holds the secret, as it is stored or as the file is called.
fn is_named(pattern: &SecretPattern, stored: &[u8], place: TreePlace) -> bool {
    let own = || from_stored(stored, place == TreePlace::Root && stored != RESERVED_ROOT);
    pattern.is_in(stored) || (place != TreePlace::Records && pattern.is_in(&own()))
}

/// Returns true if a directory above a path is recorded as forgotten already.
fn above(coverage: &Coverage, path: &RelPath) -> bool {
    path.parent().and_then(|above| coverage.skip_of(&above)) == Some(SkipReason::Forgotten)
}

/// Returns a record as it is after something went.
fn renewed(record: Record, tree: Option<&NewTree>, pattern: Option<&SecretPattern>) -> Record {
    let text = |text: String| pattern.and_then(|pattern| pattern.redacted(&text)).unwrap_or(text);
    let mut record = Record {
        reason: text(record.reason),
        turn: record.turn.map(text),
        codon_id: record.codon_id.map(text),
        codon_name: record.codon_name.map(text),
        ..record
    };
    if let Some(tree) = tree {
        record.files = record.files.saturating_sub(tree.files);
        record.bytes = record.bytes.saturating_sub(tree.bytes);
        record.skipped = tree.skipped;
        if tree.is_partial && !record.flags.iter().any(|flag| flag == "partial") {
            record.flags.insert(0, "partial".to_owned());
        }
    }
    record
}
