//! Marks the objects that checkpoints reach: nothing marked is ever deleted. A mark also tells which checkpoint an
//! object is charged to, and at which path it was met first.
//!
//! The roots come in the order of their worth, and an object is charged to the first root that reaches it. So the
//! charges of the first roots add up to what keeping exactly those costs, and dropping roots from the end frees exactly
//! their charges. An object that roots of two owners reach is shared, and charged to nobody.
//!
//! *Invariant:* marking takes no lock and changes nothing. *Invariant:* where an object cannot be read, the objects
//! behind it are not known; the marks say so, and nothing may be deleted by them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::commit::Commit;
use super::log::Record;
use super::loose;
use super::repository::Store;
use crate::error::{Code, Error, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::progress::{Amount, Stage};

/// The most bytes of a tree object that is read. A directory of a million files has some 40 MB.
const LARGEST_TREE: u64 = 1 << 30;

/// A checkpoint to mark from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkedRoot {
    /// Its commit.
    pub commit: ObjectId,
    /// The workspace that it belongs to, as the caller numbers them.
    pub owner: u32,
}

/// The facts of a marked object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// The place in the list of roots of the first one that reaches it.
    root: u32,
    /// The path at which it was met first.
    path: PathNumber,
    /// True if roots of several owners reach it.
    is_shared: bool,
    /// True if it is a tree or a commit, which name further objects.
    is_inner: bool,
}

/// A path, by its number among those that were met.
type PathNumber = u32;

/// The paths that were met: each is a name below another one.
struct Paths {
    numbers: HashMap<(PathNumber, Arc<[u8]>), PathNumber>,
    /// Each path as the one above it and its name there, by its number.
    each: Vec<(PathNumber, Arc<[u8]>)>,
}

impl Paths {
    /// The path of every commit.
    const COMMITS: PathNumber = 0;
    /// The root directory.
    const TOP: PathNumber = 1;

    fn new() -> Paths {
        let none: Arc<[u8]> = Arc::new([]);
        Paths { numbers: HashMap::new(), each: vec![(Paths::TOP, Arc::clone(&none)), (Paths::TOP, none)] }
    }

    fn below(&mut self, dir: PathNumber, name: &[u8]) -> PathNumber {
        let (next, key) = (self.each.len() as PathNumber, (dir, Arc::from(name)));
        let number = *self.numbers.entry(key.clone()).or_insert(next);
        if number == next {
            self.each.push(key);
        }
        number
    }

    /// Returns the bytes of a path.
    fn text(&self, mut path: PathNumber) -> Vec<u8> {
        let mut names: Vec<&[u8]> = Vec::new();
        while path > Paths::TOP {
            let (dir, name) = &self.each[path as usize];
            names.push(name);
            path = *dir;
        }
        names.reverse();
        names.join(&b'/')
    }

    /// Returns the rank of each path, by its number: a directory comes before what is below it, and directories stay
    /// together.
    fn ranks(&self) -> Vec<u32> {
        let mut below: BTreeMap<(PathNumber, &[u8]), PathNumber> = BTreeMap::new();
        below.extend(self.numbers.iter().map(|((dir, name), number)| ((*dir, &**name), *number)));
        let mut ranks = vec![0; self.each.len()];
        let (mut next, mut open) = (0, vec![Paths::TOP, Paths::COMMITS]);
        while let Some(path) = open.pop() {
            ranks[path as usize] = next;
            next += 1;
            let all = below.range((path, &b""[..])..).take_while(|((dir, _), _)| *dir == path);
            let from = open.len();
            open.extend(all.map(|(_, number)| *number));
            // The last one is taken first.
            open[from..].reverse();
        }
        ranks
    }
}

/// The objects that some roots reach.
pub struct Marks {
    roots: Vec<MarkedRoot>,
    of: HashMap<ObjectId, Mark>,
    paths: Paths,
    /// Objects that a root reaches and that cannot be read, each with the reason.
    unread: BTreeMap<ObjectId, String>,
    /// Shared objects that an owner reaches, and that another one reached first: where its way to them begins.
    met: HashSet<(u32, ObjectId)>,
    /// The objects that each shared tree names.
    below: HashMap<ObjectId, Vec<ObjectId>>,
    /// Objects that a log holds, each as its loose file does: a power cut brings them back.
    logged: HashMap<ObjectId, Vec<u8>>,
}

/// The bytes that the marked objects take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges {
    /// The bytes of each root, in their order.
    pub of: Vec<u64>,
    /// The bytes of shared objects.
    pub shared: u64,
}

impl Marks {
    /// Marks what `roots` reach, the most worthy first. Asks `control` for each commit and tree.
    ///
    /// # Errors
    /// `shutting-down` when `control` stopped it; when packs cannot be listed. An object that cannot be read is
    /// remembered and no error.
    pub fn of(store: &Store, roots: Vec<MarkedRoot>, control: Interrupt<'_>) -> Result<Marks> {
        let (of, unread, logged) = (HashMap::new(), BTreeMap::new(), HashMap::new());
        let (met, below) = (HashSet::new(), HashMap::new());
        let mut marks = Marks { roots: Vec::new(), of, paths: Paths::new(), unread, met, below, logged };
        marks.add(store, roots, control)?;
        Ok(marks)
    }

    /// Marks what the records of logs reach. A record whose process was killed moves its ref after a power cut, so that
    /// its checkpoint must be whole then.
    ///
    /// # Errors
    /// As [`Marks::of`].
    pub(super) fn add_logged(
        &mut self,
        store: &Store,
        records: Vec<Record>,
        owner: u32,
        control: Interrupt<'_>,
    ) -> Result<()> {
        let new = records.iter().map(|record| record.new).filter(|new| !self.contains(new));
        let roots: Vec<MarkedRoot> = new.map(|commit| MarkedRoot { commit, owner }).collect();
        if roots.is_empty() {
            return Ok(());
        }
        self.logged.extend(records.into_iter().flat_map(|record| record.objects));
        self.add(store, roots, control)
    }

    /// Marks what further roots reach and no earlier one does.
    ///
    /// # Errors
    /// As [`Marks::of`].
    pub fn add(&mut self, store: &Store, roots: Vec<MarkedRoot>, control: Interrupt<'_>) -> Result<()> {
        let first = self.roots.len();
        self.roots.extend(roots);
        store.progress().begin(Stage::Marking, Amount::UNKNOWN);
        let mut behind = Vec::new();
        for at in first..self.roots.len() {
            self.commit(store, self.roots[at].commit, at as u32, control, &mut behind)?;
        }
        // A parent that is a root itself is charged to itself: parents come after all roots.
        while let Some((parent, root)) = behind.pop() {
            self.commit(store, parent, root, control, &mut behind)?;
        }
        Ok(())
    }

    /// Returns true if an object must stay.
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.of.contains_key(id)
    }

    /// Counts the marked objects.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Returns true if nothing is marked.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Returns an object that could not be read, with the reason. While there is one, nothing may be deleted.
    pub fn unread(&self) -> Option<(&ObjectId, &str)> {
        self.unread.iter().next().map(|(id, why)| (id, why.as_str()))
    }

    /// Returns the marked objects, each with the rank of its path. Objects of one path have one rank, and ranks of one
    /// directory follow each other.
    pub fn ranked(&self) -> HashMap<ObjectId, u32> {
        let ranks = self.paths.ranks();
        self.of.iter().map(|(id, mark)| (*id, ranks[mark.path as usize])).collect()
    }

    /// Returns the path at which an object was met first; empty for a commit, and for one that is not marked.
    pub(super) fn path(&self, id: &ObjectId) -> Vec<u8> {
        self.of.get(id).map_or_else(Vec::new, |mark| self.paths.text(mark.path))
    }

    /// Adds up what the marked objects take. `size` gives the stored bytes of an object.
    pub fn charges(&self, size: &dyn Fn(&ObjectId) -> u64) -> Charges {
        let mut charges = Charges { of: vec![0; self.roots.len()], shared: 0 };
        for (id, mark) in &self.of {
            let charged = if mark.is_shared { &mut charges.shared } else { &mut charges.of[mark.root as usize] };
            *charged += size(id);
        }
        charges
    }

    /// Adds up what each owner reaches of the shared objects. `size` gives the stored bytes of an object.
    pub fn shares(&self, size: &dyn Fn(&ObjectId) -> u64) -> HashMap<u32, u64> {
        let mut open: HashMap<u32, Vec<ObjectId>> = HashMap::new();
        let mut shares: HashMap<u32, u64> = HashMap::new();
        let first = |mark: &Mark| self.roots[mark.root as usize].owner;
        for (id, mark) in self.of.iter().filter(|(_, mark)| mark.is_shared) {
            *shares.entry(first(mark)).or_default() += size(id);
        }
        self.met.iter().for_each(|(owner, id)| open.entry(*owner).or_default().push(*id));
        for (owner, mut open) in open {
            let mut seen = HashSet::new();
            while let Some(id) = open.pop() {
                let is_first = self.of.get(&id).is_some_and(|mark| first(mark) == owner);
                if !is_first && seen.insert(id) {
                    *shares.entry(owner).or_default() += size(&id);
                    open.extend(self.below.get(&id).into_iter().flatten());
                }
            }
        }
        shares
    }

    /// Marks a commit and its tree; its parents go to `behind`.
    fn commit(
        &mut self,
        store: &Store,
        id: ObjectId,
        root: u32,
        control: Interrupt<'_>,
        behind: &mut Vec<(ObjectId, u32)>,
    ) -> Result<()> {
        let mark = Mark { root, path: Paths::COMMITS, is_shared: false, is_inner: true };
        if !self.put(id, mark) {
            return Ok(());
        }
        store.progress().add(1, 0);
        let Some(content) = self.read(store, &id, ObjectKind::Commit)? else { return Ok(()) };
        let Some(commit) = Commit::decode(&content) else {
            self.unread.insert(id, "it is not a valid git commit".into());
            return Ok(());
        };
        behind.extend(commit.parents.iter().map(|parent| (*parent, root)));
        self.tree(store, commit.tree, root, control)
    }

    /// Marks a tree and everything below it.
    fn tree(&mut self, store: &Store, id: ObjectId, root: u32, control: Interrupt<'_>) -> Result<()> {
        let mut open = vec![(id, Paths::TOP)];
        while let Some((id, path)) = open.pop() {
            let mark = Mark { root, path, is_shared: false, is_inner: true };
            if !self.put(id, mark) || id == ObjectId::EMPTY_TREE {
                continue;
            }
            if control() == Flow::Stop {
                return Err(Error::new(Code::ShuttingDown, "the search for unneeded objects was stopped"));
            }
            store.progress().add(1, 0);
            let Some(content) = self.read(store, &id, ObjectKind::Tree)? else { continue };
            let mut rest = &content[..];
            let mut below = Vec::new();
            while !rest.is_empty() {
                let Some((entry, after)) = entry(rest) else {
                    self.unread.insert(id, "it is not a valid git tree".into());
                    break;
                };
                rest = after;
                below.push(entry.id);
                let path = self.paths.below(path, entry.name);
                match entry.mode {
                    b"40000" => open.push((entry.id, path)),
                    // Another repository's commit, which is not in this one.
                    b"160000" => {}
                    _ => drop(self.put(entry.id, Mark { root, path, is_shared: false, is_inner: false })),
                }
            }
            if self.of.get(&id).is_some_and(|mark| mark.is_shared) {
                self.below.insert(id, below);
            }
        }
        Ok(())
    }

    /// Marks one object. Returns true if the objects that it names have to be marked: it is new, or it is shared now.
    fn put(&mut self, id: ObjectId, mark: Mark) -> bool {
        let owner = |root: u32| self.roots[root as usize].owner;
        let Some(known) = self.of.get_mut(&id) else {
            self.of.insert(id, mark);
            return mark.is_inner;
        };
        let is_others = owner(known.root) != owner(mark.root);
        if is_others {
            self.met.insert((owner(mark.root), id));
        }
        // Met as a blob first and as a tree later: only a broken tree names an object as both.
        if mark.is_inner && !known.is_inner {
            known.is_inner = true;
            return true;
        }
        let is_news = is_others && !known.is_shared;
        known.is_shared |= is_news;
        is_news && mark.is_inner
    }

    /// Reads an object of a kind; `None` if that is not possible, which is remembered.
    fn read(&mut self, store: &Store, id: &ObjectId, kind: ObjectKind) -> Result<Option<Vec<u8>>> {
        let logged = self.logged.get(id).and_then(|bytes| loose::decode(bytes, id, LARGEST_TREE));
        if let Some((_, content)) = logged.filter(|(found, _)| *found == kind) {
            return Ok(Some(content));
        }
        let why = match store.objects.read(id, LARGEST_TREE) {
            Ok((found, content)) if found == Some(kind) => return Ok(Some(content)),
            Ok((found, _)) => format!("it is a {}", found.map_or("tag", ObjectKind::as_str)),
            // Neither damaged nor missing: the store cannot be read now.
            Err(error) if !matches!(error.code(), Code::StoreDamaged | Code::TooLarge) => return Err(error),
            Err(error) => error.text(),
        };
        self.unread.insert(*id, why);
        Ok(None)
    }
}

/// An entry of a tree from anywhere.
pub(super) struct Entry<'t> {
    /// Octal.
    mode: &'t [u8],
    pub(super) name: &'t [u8],
    pub(super) id: ObjectId,
}

/// Returns the first entry of a tree's content, and the content after it.
pub(super) fn entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    let (mode, rest) = (&bytes[..space], &bytes[space + 1..]);
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (id, after) = rest[end + 1..].split_first_chunk::<20>()?;
    let is_octal = (5..=6).contains(&mode.len()) && mode.iter().all(|digit| (b'0'..=b'7').contains(digit));
    is_octal.then_some((Entry { mode, name: &rest[..end], id: ObjectId::from_bytes(*id) }, after))
}
