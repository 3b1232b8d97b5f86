//! Checks that everything that names a checkpoint finds it: refs of all workspaces, state, journals and logs. Finds the
//! names that can be made again from the store.
//!
//! Pins are part of checkpoints: a pinned checkpoint exists as long as its ref does. *Invariant:* a check changes
//! nothing; a repair puts a ref where none can be read, and deletes nothing. *Invariant:* where two answers are
//! possible there is no repair.

mod derive;
mod records;

pub(crate) use records::{gone_from, of_listed};

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use super::home::Home;
use super::lock::WorkspaceLock;
use super::workspace::Workspace;
use crate::checkpoint::catalog::lazy_record::LazyRecord;
use crate::checkpoint::catalog::ref_name::is_ref_name;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::id::ObjectId;
use crate::model::number::Number;
use crate::store::health::{Ailment, ProvenObjects};
use crate::store::{Holes, RefEntry, Store};

/// The longest wait for a process at work in a workspace.
const PATIENCE: Duration = Duration::from_secs(10);

/// The beginnings of all names that piton gives to refs.
const PREFIXES: [&str; 3] = ["refs/heads/", "refs/piton/", "refs/piton-remotes/"];

/// A damage that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The ref cannot be read.
    TornRef {
        /// The ref's full name.
        name: String,
        /// The reason, as the end of a sentence.
        why: String,
    },
    /// The ref names an object that is missing, or is no commit.
    NoCommit {
        /// The ref's full name.
        name: String,
        /// The object that it names.
        id: ObjectId,
    },
    /// The ref names a commit that is no checkpoint, or not the one that the name says.
    NotAsNamed {
        /// The ref's full name.
        name: String,
        /// The contradiction, as a sentence without a full stop.
        why: String,
    },
    /// An ancestor of a checkpoint is missing.
    Gap {
        /// The full name of the ref from which the history was followed.
        name: String,
        /// The commit that cannot be read.
        id: ObjectId,
    },
    /// The name is none that piton gives.
    OddName {
        /// The full name, as it stands there.
        name: String,
    },
    /// Refs of a workspace that has no record any more.
    Orphans {
        /// The number of such refs.
        refs: u64,
    },
    /// State file or journal name a checkpoint that is not in the store.
    Lost {
        /// The record that names it, as the subject of a sentence: `the next undo`.
        what: String,
        /// The checkpoint's id.
        id: ObjectId,
    },
    /// State file, journal or a checkpoint name one that is there, and that no ref names.
    Unnamed {
        /// The record that names it, as the subject of a sentence: `checkpoint 12`.
        what: String,
        /// The checkpoint's id.
        id: ObjectId,
    },
    /// The log moved a ref that is not there.
    NotFromLog {
        /// The ref's full name.
        name: String,
        /// The commit to which the log's last record of it moved it.
        id: ObjectId,
    },
    /// The last record of the log has not moved its ref: its writer was killed. The next checkpoint moves it.
    Unmoved {
        /// The ref's full name.
        name: String,
        /// The commit to which it will be moved.
        id: ObjectId,
    },
    /// Two checkpoints have one number.
    Twice {
        /// The number.
        number: Number,
    },
    /// A file of the workspace's records cannot be read whole.
    Records {
        /// The whole sentence.
        what: String,
    },
    /// A part of a checkpoint's content is missing.
    Hole {
        /// The checkpoint's number.
        number: Number,
        /// The first path or object that is missing, with the reason.
        what: String,
    },
    /// A pack, an index or an object is damaged, or half of a pack is gone.
    Pack {
        /// The whole sentence.
        what: String,
    },
    /// Another process is at work, so this was not looked at.
    Busy,
}

impl Damage {
    /// Returns true if something is lost, or will be missing; other findings are only for information.
    pub fn is_harm(&self) -> bool {
        !matches!(self, Damage::Orphans { .. } | Damage::OddName { .. } | Damage::Unmoved { .. } | Damage::Busy)
    }

    /// Returns a word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Damage::TornRef { .. } => "torn-ref",
            Damage::NoCommit { .. } => "no-commit",
            Damage::NotAsNamed { .. } => "not-as-named",
            Damage::Gap { .. } => "gap",
            Damage::OddName { .. } => "odd-name",
            Damage::Orphans { .. } => "orphans",
            Damage::Lost { .. } => "lost",
            Damage::Unnamed { .. } => "unnamed",
            Damage::NotFromLog { .. } => "not-from-log",
            Damage::Unmoved { .. } => "unmoved",
            Damage::Twice { .. } => "twice",
            Damage::Records { .. } => "records",
            Damage::Hole { .. } => "hole",
            Damage::Pack { .. } => "pack",
            Damage::Busy => "busy",
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::TornRef { name, why } => write!(f, "the ref `{name}` cannot be read: {why}"),
            Damage::NoCommit { name, id } => {
                write!(f, "the ref `{name}` points to {}, which is not a commit in the store", id.short())
            }
            Damage::NotAsNamed { name, why } => write!(f, "the ref `{name}`: {why}"),
            Damage::Gap { name, id } => {
                write!(f, "the ref `{name}` comes from {}, which cannot be read", id.short())
            }
            Damage::OddName { name } => write!(f, "piton did not create the ref `{name}`"),
            Damage::Orphans { refs } => {
                write!(f, "{refs} refs of a workspace whose record is gone; they are kept")
            }
            Damage::Lost { what, id } => write!(f, "{what} refers to checkpoint {}, which is lost", id.short()),
            Damage::Unnamed { what, id } => {
                write!(f, "{what} refers to checkpoint {}, which exists but has no ref", id.short())
            }
            Damage::NotFromLog { name, id } => {
                write!(f, "the log has `{name}` at {}, but the ref is missing", id.short())
            }
            Damage::Unmoved { name, id } => {
                write!(f, "piton was killed before it moved `{name}` to {}; the next checkpoint moves it", id.short())
            }
            Damage::Twice { number } => write!(f, "two checkpoints have the number {number}"),
            Damage::Records { what } => write!(f, "{what}"),
            Damage::Hole { number, what } => write!(f, "checkpoint {number} is damaged: {what}"),
            Damage::Pack { what } => f.write_str(what),
            Damage::Busy => write!(f, "another process is active there: not checked"),
        }
    }
}

/// A ref that is set to the place that can be derived for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The ref's full name.
    pub name: String,
    /// The commit that it is to name.
    pub to: ObjectId,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "put `{}` at {}", self.name, self.to.short())
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The workspace's id; empty for what belongs to none.
    pub workspace: String,
    /// The damage itself.
    pub damage: Damage,
    /// The proposal to mend it; `None` where nothing can be derived.
    pub repair: Option<Repair>,
}

/// Looks at every workspace of a home. `proven` has the objects that were read before.
///
/// # Errors
/// When refs or records cannot be listed.
pub fn check(home: &Home, store: &Store, proven: &ProvenObjects) -> Result<Vec<Finding>> {
    let refs = store.refs("refs/")?;
    let known: BTreeSet<String> = Workspace::known(home)?.into_iter().map(|workspace| workspace.id).collect();
    let (mut by_workspace, mut findings) = (BTreeMap::<String, Vec<RefEntry>>::new(), Vec::new());
    for entry in refs {
        match owner(&entry.name) {
            Some(owner) => by_workspace.entry(owner.to_owned()).or_default().push(entry),
            None => findings.push(Finding {
                workspace: String::new(),
                damage: Damage::OddName { name: entry.name.to_string() },
                repair: None,
            }),
        }
    }
    for (id, refs) in by_workspace.iter().filter(|(id, _)| !known.contains(*id)) {
        let damage = Damage::Orphans { refs: refs.len() as u64 };
        findings.push(Finding { workspace: id.clone(), damage, repair: None });
    }
    let pack = |ailment: Ailment| Damage::Pack { what: ailment.to_string() };
    let (mut every, mut holes) = (derive::StoredCommits::default(), store.holes());
    let packs = store.pack_ailments()?.into_iter().map(pack);
    let packs = packs.chain(proven.sentence().map(|what| Damage::Pack { what }));
    findings.extend(packs.map(|damage| Finding { workspace: String::new(), damage, repair: None }));
    for id in known {
        let dir = home.workspaces().join(&id);
        let lock = WorkspaceLock::acquire(&dir, "looking for damage", PATIENCE);
        let _lock = match lock {
            Ok(lock) => lock,
            Err(error) if error.code() == Code::StoreLocked => {
                findings.push(Finding { workspace: id, damage: Damage::Busy, repair: None });
                continue;
            }
            Err(error) => return Err(error),
        };
        // A listing from before the lock was held may be stale.
        let mut look = WorkspaceCheck::new(store, &id);
        for prefix in PREFIXES {
            store.refs(&format!("{prefix}{id}/"))?.iter().for_each(|entry| look.at_ref(entry));
        }
        look.at_parents();
        look.at_contents(&mut holes)?;
        look.at_log(&dir)?;
        look.at_state(&dir)?;
        look.at_journal(&dir)?;
        let found = look.finish();
        let broken: BTreeSet<String> = found.iter().filter_map(|(_, name)| name.clone()).collect();
        for (damage, _) in found {
            let repair = every.repair(store, &id, &damage, &broken)?;
            findings.push(Finding { workspace: id.clone(), damage, repair });
        }
    }
    // Everything was looked at, so status and lists need not look for holes any more.
    if !findings.iter().any(|finding| finding.damage.is_harm() || finding.damage == Damage::Busy) {
        holes.trust();
    }
    Ok(findings)
}

/// Does what a finding proposes, if it is still called for.
///
/// # Errors
/// `conflict` when the ref can be read meanwhile; those of locks and of writing.
pub fn repair(home: &Home, store: &Store, finding: &Finding) -> Result<()> {
    let Some(repair) = &finding.repair else { return Ok(()) };
    let dir = home.workspaces().join(&finding.workspace);
    let _lock = WorkspaceLock::acquire(&dir, "repairing", PATIENCE)?;
    let _shared = store.lock_shared("repairing", PATIENCE)?;
    let stands = store.refs(&repair.name)?.into_iter().find(|entry| *entry.name == *repair.name);
    let is_whole = stands.and_then(|entry| entry.target.ok()).is_some_and(|id| store.read_commit(&id).is_ok());
    if is_whole {
        return Err(
            Error::new(Code::Conflict, format!("`{}` can be read in the meantime", repair.name)).hint("look again")
        );
    }
    store.read_commit(&repair.to)?;
    store.put_ref(&repair.name, repair.to)
}

/// Returns the workspace in a ref's name; `None` for names that are not piton's.
fn owner(name: &str) -> Option<&str> {
    let rest = PREFIXES.iter().find_map(|start| name.strip_prefix(start))?;
    let (id, rest) = rest.split_once('/')?;
    let is_id = id.len() == 16 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_id && !rest.is_empty()).then_some(id)
}

/// A checkpoint that some ref names.
struct NamedCheckpoint {
    record: LazyRecord,
    parents: Vec<ObjectId>,
}

/// A look at one workspace.
struct WorkspaceCheck<'s> {
    store: &'s Store,
    /// The workspace's id.
    id: &'s str,
    /// Each with the ref that it is about.
    found: Vec<(Damage, Option<String>)>,
    /// The checkpoints that some ref names, itself or by what comes from it.
    named: HashMap<ObjectId, NamedCheckpoint>,
    /// The first checkpoint that was found at each place of the sequence.
    places: HashMap<u64, ObjectId>,
    /// The same with each number.
    numbers: HashMap<Number, ObjectId>,
}

impl<'s> WorkspaceCheck<'s> {
    /// Begins a check that knows nothing yet.
    fn new(store: &'s Store, id: &'s str) -> WorkspaceCheck<'s> {
        let (named, places, numbers) = (HashMap::new(), HashMap::new(), HashMap::new());
        WorkspaceCheck { store, id, found: Vec::new(), named, places, numbers }
    }

    fn say(&mut self, damage: Damage, name: Option<&str>) {
        self.found.push((damage, name.map(str::to_owned)));
    }

    fn at_ref(&mut self, entry: &RefEntry) {
        let name = &*entry.name;
        if !is_ref_name(name) {
            return self.say(Damage::OddName { name: name.to_owned() }, None);
        }
        let id = match &entry.target {
            Ok(id) => *id,
            Err(why) => {
                return self.say(Damage::TornRef { name: name.to_owned(), why: why.clone() }, Some(name));
            }
        };
        let Ok(commit) = self.store.read_commit(&id) else {
            return self.say(Damage::NoCommit { name: name.to_owned(), id }, Some(name));
        };
        let Some(record) = Record::parse(&commit.message) else {
            let why = format!("{} is no checkpoint", id.short());
            return self.say(Damage::NotAsNamed { name: name.to_owned(), why }, None);
        };
        if let Err(why) = fits(name, &record) {
            self.say(Damage::NotAsNamed { name: name.to_owned(), why }, None);
        }
        self.walk(name, id);
    }

    /// Notes the checkpoint that a ref names, and all its ancestors along the run.
    fn walk(&mut self, name: &str, tip: ObjectId) {
        let is_branch = name.starts_with("refs/heads/") || name.contains("/heads/");
        let mut next = Some(tip);
        while let Some(id) = next.filter(|id| !self.named.contains_key(id)) {
            let Ok(commit) = self.store.read_commit(&id) else {
                return self.say(Damage::Gap { name: name.to_owned(), id }, None);
            };
            let Some(record) = Record::parse(&commit.message) else { return };
            next = commit.parents.first().copied().filter(|_| is_branch);
            self.know(id, NamedCheckpoint { record: record.into(), parents: commit.parents });
        }
    }

    fn know(&mut self, id: ObjectId, named: NamedCheckpoint) {
        let (ordinal, number) = (named.record.ordinal, named.record.number);
        if named.record.workspace == self.id {
            let is_other = |other: Option<ObjectId>| other.is_some_and(|other| other != id);
            let by_place = is_other(self.places.insert(ordinal, id));
            let by_number = !number.is_none() && is_other(self.numbers.insert(number, id));
            if by_place || by_number {
                self.say(Damage::Twice { number }, None);
            }
        }
        self.named.insert(id, named);
    }

    /// Checks the parents of leaves: a branch must name each. Fetched leaves may come without their branch.
    fn at_parents(&mut self) {
        let is_leaf = |record: &Record| record.workspace == self.id && !record.kind.is_typed();
        let leaves = self.named.values().filter(|named| is_leaf(&named.record));
        let parents = leaves.flat_map(|leaf| leaf.parents.iter().map(|id| (*id, leaf.record.number)));
        let unnamed: BTreeMap<ObjectId, Number> = parents.filter(|(id, _)| !self.named.contains_key(id)).collect();
        for (id, number) in unnamed {
            self.must_be(&format!("checkpoint {number}"), id);
        }
    }

    /// Checks everything that the trees of named checkpoints name.
    fn at_contents(&mut self, holes: &mut Holes<'_>) -> Result<()> {
        let mut named: Vec<(u64, Number, ObjectId)> =
            self.named.iter().map(|(id, named)| (named.record.ordinal, named.record.number, *id)).collect();
        named.sort_unstable();
        for (_, number, id) in named {
            let Ok(commit) = self.store.read_commit(&id) else { continue };
            if let Some(what) = holes.below(commit.tree)? {
                self.say(Damage::Hole { number, what }, None);
            }
        }
        Ok(())
    }

    fn must_be(&mut self, what: &str, id: ObjectId) {
        if self.named.contains_key(&id) {
            return;
        }
        let what = what.to_owned();
        let there = self.store.read_commit(&id).is_ok();
        self.say(if there { Damage::Unnamed { what, id } } else { Damage::Lost { what, id } }, None);
    }

    fn finish(self) -> Vec<(Damage, Option<String>)> {
        self.found
    }
}

/// Checks that a name and the checkpoint it names say the same.
fn fits(name: &str, record: &Record) -> Result<(), String> {
    let (parts, foreign): (Vec<&str>, bool) = match name.strip_prefix("refs/piton-remotes/") {
        Some(rest) => (rest.split('/').skip(1).collect(), true),
        None => (name.split('/').skip(2).collect(), false),
    };
    let is_branch = if foreign { parts.get(1) == Some(&"heads") } else { name.starts_with("refs/heads/") };
    if parts.first() != Some(&record.workspace.as_str()) {
        return Err("its checkpoint belongs to another workspace".to_owned());
    }
    match (is_branch, record.kind.is_typed(), parts.as_slice()) {
        (true, true, _) => Ok(()),
        (true, false, _) => Err("a branch has a checkpoint that belongs to no run".to_owned()),
        (false, _, [_, kind, number])
            if CheckpointKind::parse(kind) == Some(record.kind) && *number == record.ordinal.to_string() =>
        {
            Ok(())
        }
        (false, ..) => Err(format!("its checkpoint says {}/{}", record.kind.as_str(), record.ordinal)),
    }
}

#[cfg(test)]
mod tests;
