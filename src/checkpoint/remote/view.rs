//! A workspace as a git repository of its own, for `piton git` and `piton env`.
//!
//! `view.git` in the workspace's records has no objects: its alternates are the store's. Its refs are this workspace's:
//! runs as branches, every other checkpoint as `refs/piton/<kind>/<number>`, other machines' below `refs/remotes`.
//! HEAD is detached where the workspace stands. It is derived: each call updates it where something differs, under a
//! lock of its own.
//!
//! *Invariant:* all refs are one file, replaced by rename: a reader sees the refs of one moment, even if the writer is
//! killed. *Invariant:* no ref names an object that the store does not have.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::{AllCheckpoints, Catalog};
use crate::checkpoint::catalog::ref_name::is_ref_name;
use crate::checkpoint::history::journal::{Journal, Line, OperationStart};
use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::error::{Error, IoContext, Result};
use crate::git::{self, GitReach};
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::id::ObjectId;
use crate::sys::fs::aside::is_aside;
use crate::sys::fs::durable::{create_private_dir, replace_cache, unique_suffix};
use crate::sys::fs::lock::{FileLock, Mode};

/// The beginning of the names of indexes that are being made.
const INDEX_ASIDE: &str = "index.piton-";

/// The first line of a configuration that this version writes.
const MARK: &str = "# piton view 1\n";

/// Attributes that switch off every conversion, whatever the workspace's `.gitattributes` say: stored content is as it
/// was on the disk.
const ATTRIBUTES: &[u8] = b"* -text -eol -crlf -ident -filter -working-tree-encoding -export-ignore -export-subst\n";

/// The place of a workspace without checkpoints.
const UNBORN: &str = "ref: refs/heads/local\n";

/// A view that is up to date.
#[derive(Debug)]
pub struct View {
    /// The repository of its own that git is given (`view.git`).
    pub git_dir: PathBuf,
    /// The workspace's directory, which may be gone.
    pub work_tree: PathBuf,
    /// The checkpoint at which the workspace stands.
    pub head: Option<Checkpoint>,
    /// Refs that are not shown, and why.
    pub faults: Vec<String>,
}

impl View {
    /// Returns an ordinary git on it.
    pub fn command(&self, reach: GitReach) -> Command {
        // For a connection to a server no work tree is set: git would change to its root, and relative paths would be
        // wrong.
        let work_tree = Some(self.work_tree.as_path()).filter(|dir| reach == GitReach::Here && dir.is_dir());
        git::command(&self.git_dir, work_tree, reach, &[])
    }

    /// Returns true if the private index holds what HEAD holds.
    pub fn has_index(&self) -> bool {
        let tree = self.head.as_ref().map_or(ObjectId::EMPTY_TREE, |head| head.tree).to_string();
        let noted = std::fs::read_to_string(self.git_dir.join("index-of"));
        self.git_dir.join("index").is_file() && noted.is_ok_and(|known| known == tree)
    }

    /// Makes the private index equal to HEAD, so that `status` and `diff` show the changes since.
    ///
    /// # Errors
    /// When there is no git, or it fails.
    pub fn prepare_index(&self) -> Result<()> {
        let index = self.git_dir.join("index");
        let noted = self.git_dir.join("index-of");
        let tree = self.head.as_ref().map_or(ObjectId::EMPTY_TREE, |head| head.tree).to_string();
        let _lock = lock(&self.git_dir)?;
        if index.is_file() && std::fs::read_to_string(&noted).is_ok_and(|known| known == tree) {
            return Ok(());
        }
        sweep_indexes(&self.git_dir)?;
        // A name of its own: the git of a killed piton may still hold the lock of another.
        let aside = self.git_dir.join(format!("{INDEX_ASIDE}{}", unique_suffix()));
        let git = |args: &[&str]| {
            let mut command = self.command(GitReach::Here);
            command.env("GIT_INDEX_FILE", &aside).args(args).current_dir(&self.git_dir);
            command
        };
        // The stat data of unchanged files is kept, where there is a readable index.
        let merged = std::fs::copy(&index, &aside).is_ok()
            && git::run(git(&["read-tree", "-m", "-i", &tree]).stderr(std::process::Stdio::null()), None)?.1;
        if !merged {
            gone(&aside)?;
            git::printed(&mut git(&["read-tree", &tree]), None)?;
        }
        // piton's own entry is in no work tree: without this it would look deleted.
        let own = git::printed(&mut git(&["ls-files", "-z", "--", ":(top).piton"]), None)?;
        if !own.is_empty() {
            git::printed(&mut git(&["update-index", "-z", "--skip-worktree", "--stdin"]), Some(&own))?;
        }
        std::fs::rename(&aside, &index).at("renaming", &aside)?;
        replace_cache(&noted, tree.as_bytes())
    }
}

/// Removes indexes, and locks on them, that killed processes have left. A git that is still at work on one fails; nobody waits
/// for it.
fn sweep_indexes(git_dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(git_dir).at("listing", git_dir)? {
        let entry = entry.at("listing", git_dir)?;
        if entry.file_name().to_string_lossy().starts_with(INDEX_ASIDE) {
            gone(&entry.path())?;
        }
    }
    Ok(())
}

fn lock(git_dir: &Path) -> Result<FileLock> {
    FileLock::acquire(&git_dir.with_extension("lock"), Mode::Exclusive, "making the view", LOCK_WAIT)
}

/// Removes leftovers of killed writers, and refs that a `--unsafe` call put before piton's.
fn tidy_view(git_dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(git_dir).at("listing", git_dir)? {
        let entry = entry.at("listing", git_dir)?;
        if is_aside(&entry.file_name().to_string_lossy()) {
            gone(&entry.path())?;
        }
    }
    let mut pending = vec![git_dir.join("refs")];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).at("listing", &dir)? {
            let entry = entry.at("listing", &dir)?;
            if entry.file_type().at("checking", entry.path())?.is_dir() {
                pending.push(entry.path());
            } else {
                gone(&entry.path())?;
            }
        }
    }
    Ok(())
}

fn gone(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(error, "removing", path)),
        _ => Ok(()),
    }
}

impl Catalog {
    /// Makes the view of this workspace, or brings it up to date.
    ///
    /// # Errors
    /// Returns the errors of listing refs and of writing.
    pub fn view(&self) -> Result<View> {
        let git_dir = self.workspace.dir.join("view.git");
        // Taken before the refs are listed, so that a later writer has newer refs.
        let _lock = lock(&git_dir)?;
        let (refs, faults) = self.view_refs()?;
        let head = self.stands_at()?;
        for dir in ["objects/info", "objects/pack", "refs/heads", "info"] {
            create_private_dir(&git_dir.join(dir))?;
        }
        tidy_view(&git_dir)?;
        // The way from `workspaces/<id>/view.git/objects`, so that no name has to be quoted.
        put(&git_dir.join("objects/info/alternates"), b"../../../../store.git/objects\n")?;
        put(&git_dir.join("info/attributes"), ATTRIBUTES)?;
        let config = git_dir.join("config");
        put(&config, &self.view_config())?;
        let mut packed = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
        refs.iter().for_each(|(name, id)| packed.push_str(&format!("{id} {name}\n")));
        put(&git_dir.join("packed-refs"), packed.as_bytes())?;
        let stands = head.as_ref().map_or_else(|| UNBORN.to_owned(), |head| format!("{}\n", head.id));
        put(&git_dir.join("HEAD"), stands.as_bytes())?;
        Ok(View { git_dir, work_tree: self.workspace.path.clone(), head, faults })
    }

    fn view_config(&self) -> Vec<u8> {
        let mut text =
            format!("{MARK}[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tworktree = ")
                .into_bytes();
        text.extend(git::config_value(self.workspace.path.as_os_str()));
        text.extend(b"\n\tlogAllRefUpdates = false\n\thooksPath = /dev/null\n\tattributesFile = /dev/null\n");
        text.extend(
            b"\texcludesFile = /dev/null\n\tfsmonitor = false\n\tautocrlf = false\n[commit]\n\tgpgSign = false\n",
        );
        text.extend(b"[tag]\n\tgpgSign = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n");
        text.extend(b"[advice]\n\tdetachedHead = false\n");
        text
    }

    /// Lists the refs of the view, by name, and what is wrong with those that are left out.
    fn view_refs(&self) -> Result<(BTreeMap<String, ObjectId>, Vec<String>)> {
        let (leaves, branches) = (self.leaf_prefix(), self.branch_prefix());
        let known = self.all()?;
        let (all, mut faults) = (known.checkpoints.as_slice(), known.broken.clone());
        let mut refs = BTreeMap::new();
        let mut add = |name: String, id: ObjectId| match is_ref_name(&name) {
            true => _ = refs.insert(name, id),
            false => faults.push(format!("{name}: git does not accept this name of a ref")),
        };
        for leaf in all.iter().filter(|checkpoint| !checkpoint.record.kind.is_typed()) {
            if let Some(rest) = leaf.name.strip_prefix(&leaves) {
                let (kind, number) = (leaf.record.kind.as_str(), leaf.record.number);
                let rest = if number.is_none() { rest.to_owned() } else { format!("{kind}/{number}") };
                add(format!("refs/piton/{rest}"), leaf.id);
            }
        }
        for branch in self.refs(&branches)? {
            // A tip that cannot be read is among the faults already.
            if let (Ok(tip), Some(run)) = (branch.target, branch.name.strip_prefix(&branches))
                && all.iter().any(|checkpoint| checkpoint.id == tip)
            {
                add(format!("refs/heads/{run}"), tip);
            }
        }
        let prefix = self.foreign_prefix();
        let AllCheckpoints { checkpoints: fetched, broken, .. } = self.foreign()?;
        faults.extend(broken);
        for entry in self.refs(&prefix)? {
            let rest = entry.name.strip_prefix(&prefix).and_then(|rest| rest.split_once('/'));
            if let (Ok(id), Some((workspace, rest))) = (entry.target, rest)
                && fetched.iter().any(|checkpoint| checkpoint.id == id)
            {
                let name = rest.strip_prefix("heads/").map_or_else(
                    || format!("refs/piton-remotes/{workspace}/{rest}"),
                    |run| format!("refs/remotes/{workspace}/{run}"),
                );
                refs.insert(name, id);
            }
        }
        Ok((refs, faults))
    }

    /// Returns the checkpoint at which the workspace stands: the newest one that looked at all of it, even if patterns
    /// narrowed it, or the target of a later whole restore.
    ///
    /// # Errors
    /// Returns the errors of reading refs and journal.
    pub fn stands_at(&self) -> Result<Option<Checkpoint>> {
        let known = self.all()?;
        let all = known.checkpoints.as_slice();
        let is_shown = |record: &Record| record.kind != CheckpointKind::Turn && record.looked_everywhere();
        let mut shown = all.iter().rev().filter(|checkpoint| is_shown(&checkpoint.record));
        let newest = shown.clone().next();
        let lines = Journal::in_dir(&self.workspace.dir).read()?.lines;
        let mut begun = None;
        let mut last = None;
        for line in lines {
            match line {
                Line::Restoring(begin) => begun = Some(begin),
                Line::Restored(end) => {
                    if let Some(begin) = begun.take_if(|begin| begin.op == end.op && begin.is_of_whole_tree()) {
                        last = Some((begin, end.ordinal));
                    }
                }
                Line::Aborted { .. } | Line::External(_) | Line::Turn(_) => {}
            }
        }
        let ordinal = newest.map_or(0, |newest| newest.record.ordinal);
        // An undo or redo changes some paths only: all others are as in its target if nothing was recorded between the
        // two.
        let mut is_whole = |begin: &OperationStart| {
            let before = shown.by_ref().skip_while(|checkpoint| checkpoint.id != begin.pre_restore).nth(1);
            begin.only.is_none() || before.is_some_and(|before| before.id == begin.target)
        };
        let target = last.filter(|(begin, after)| ordinal <= *after && is_whole(begin)).map(|(begin, _)| begin.target);
        let fetched = if target.is_some() { self.foreign()?.checkpoints } else { Vec::new() };
        let mut known = all.iter().chain(&fetched);
        let restored = target.and_then(|target| known.find(|checkpoint| checkpoint.id == target));
        Ok(restored.or(newest).or(all.last()).cloned())
    }
}

/// Writes a file of the view if it differs.
fn put(path: &Path, content: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|known| known == content) {
        return Ok(());
    }
    replace_cache(path, content)
}

/// Returns the variables with which an ordinary git works on a view, in the order in which they are set.
pub fn variables(view: &View) -> Vec<(&'static str, &OsStr)> {
    vec![
        ("GIT_DIR", view.git_dir.as_os_str()),
        ("GIT_WORK_TREE", view.work_tree.as_os_str()),
        ("GIT_CONFIG_NOSYSTEM", OsStr::new("1")),
        ("GIT_CONFIG_GLOBAL", OsStr::new("/dev/null")),
    ]
}
