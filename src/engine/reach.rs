//! Finds where paths of an event lie.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::checkouts;
use super::named_paths::may_write_by_git;
use crate::checkpoint::records::workspace::is_system;
use crate::classify::{Classifier, Context};
use crate::model::effect::Verdict;
use crate::model::path::RelPath;
use crate::model::policy::Policy;
use crate::model::redact::{holds_secret, redact};
use crate::worktree::{Target, is_linked_worktree, read_regular};

/// Returns true if `cwd` belongs to the workspace rooted at `session`: inside it, and not in a linked worktree of its
/// own.
pub fn belongs(session: &Path, cwd: &Path) -> bool {
    if !cwd.starts_with(session) {
        return false;
    }
    let between = cwd.ancestors().take_while(|dir| *dir != session);
    !between.into_iter().any(is_linked_worktree)
}

/// The most looks at the disk for one action: each may reveal a further path to look at.
const MAX_LOOKS: usize = 4;

/// The largest script that is read, in bytes.
const MAX_SCRIPT: u64 = 64 << 10;

/// Judges an action, and judges it again if the disk adds something to the context. The disk tells which outside paths
/// lead into the workspace through links, and which links lead to piton's own files. It tells where the repository begins in which
/// git works, what scripts do, and which files stand where it makes one.
pub fn judged(mut context: Context, judge: impl Fn(&Context) -> Verdict) -> Verdict {
    let mut verdict = judge(&context);
    for _ in 0..MAX_LOOKS {
        let count = |context: &Context| {
            let facts = [context.tops.len(), context.existing.len(), context.checkouts.len()];
            (context.aliases.len(), context.links.len(), context.files.len(), facts)
        };
        let known = count(&context);
        learn(&mut context, &verdict);
        if count(&context) == known {
            break;
        }
        verdict = judge(&context);
    }
    verdict
}

/// Judges a command line as [`judged`] does, together with what the gits that it runs may write.
pub fn judged_line(context: Context, classifier: &Classifier, command: &str, policy: &Policy) -> Verdict {
    let verdict = judged(context, |context| classifier.shell(command, context, policy));
    Verdict { writes_unnamed: verdict.writes_unnamed || may_write_by_git(command), ..verdict }
}

/// Looks up the facts that a verdict asks for.
fn learn(context: &mut Context, verdict: &Verdict) {
    let is_outside = |pattern: &&String| !Path::new(pattern).starts_with(&context.workspace);
    let patterns: Vec<String> = verdict.patterns.iter().filter(is_outside).cloned().collect();
    let matches = expanded(&patterns);
    // Paths in one directory lead to the same place, but for links: one look is enough.
    let mut seen = HashSet::new();
    let matches = matches.iter().filter(|path| path.is_symlink() || seen.insert(path.parent()));
    let paths = verdict.outside.iter().map(Path::new).chain(matches.map(PathBuf::as_path));
    let leads: Vec<_> = paths.filter_map(|path| leads_into(&context.workspace, path)).collect();
    for (alias, real) in leads {
        if !context.aliases.iter().any(|(known, _)| *known == alias) {
            context.aliases.push((alias, real));
        }
    }
    learn_links(context, verdict);
    for dir in verdict.tops.iter().map(PathBuf::from) {
        let is_top = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
        let top = dir.canonicalize().ok().and_then(|dir| dir.ancestors().find(is_top).map(Path::to_owned));
        context.tops.extend(top.map(|top| (dir, top)));
    }
    let made =
        verdict.made.iter().map(PathBuf::from).filter(|path| path.symlink_metadata().is_ok_and(|file| !file.is_dir()));
    context.existing.extend(made);
    for (dir, rev) in &verdict.checkouts {
        let dir = PathBuf::from(dir);
        let replaced = checkouts::replaced(&dir, rev);
        context.checkouts.push((dir, rev.clone(), replaced));
    }
    for file in verdict.scripts.iter().map(PathBuf::from) {
        if !context.files.iter().any(|(known, _)| *known == file) {
            let text = short_text(&file);
            context.files.push((file, text));
        }
    }
}

/// The most symbolic links to piton's own files that are known of one action.
const MAX_LINKS: usize = 16;

/// The most directory entries that the patterns of one action are compared with.
const MAX_MATCHED: usize = 256;

/// Adds the symbolic links above the paths of an action, or at them, that lead to piton's own files or to a directory around them.
fn learn_links(context: &mut Context, verdict: &Verdict) {
    let named = [
        &verdict.targets,
        &verdict.patterns,
        &verdict.outside,
        &verdict.made,
        &verdict.written,
        &verdict.dirs,
        &verdict.tops,
    ];
    let mut seen = HashSet::new();
    // The workspace has a real name: neither it nor a directory above it is a link.
    let workspace = context.workspace.clone();
    let below = |path: &&Path| !is_at_or_above(&workspace, path);
    let above = named.into_iter().flatten().flat_map(|path| Path::new(path).ancestors().take_while(below));
    let named_links = above.filter(|path| seen.insert(path.as_os_str())).filter(|path| path.is_symlink());
    let mut links: Vec<PathBuf> = named_links.map(Path::to_owned).collect();
    let mut left = MAX_MATCHED;
    verdict.patterns.iter().for_each(|pattern| links_in_pattern(Path::new(pattern), &mut left, &mut links));
    for link in links {
        let is_new = !context.links.iter().any(|(known, _)| *known == link);
        if let Some(leads) = leads_to_piton(&context.piton, &link).filter(|_| is_new && context.links.len() < MAX_LINKS)
        {
            context.links.push((link, leads));
        }
    }
}

/// Adds the symbolic links that a pattern may match with one of its parts. `left` is the number of directory entries that may still be read.
fn links_in_pattern(pattern: &Path, left: &mut usize, links: &mut Vec<PathBuf>) {
    let has_wildcard = |part: &Component<'_>| part.as_os_str().as_bytes().iter().any(|byte| b"*?[".contains(byte));
    let mut dir = PathBuf::new();
    let mut parts = pattern.components();
    while let Some(part) = parts.next() {
        if !has_wildcard(&part) {
            dir.push(part);
            continue;
        }
        if dir.is_symlink() {
            break;
        }
        // A directory that cannot be read has no links to follow.
        let entries: Vec<_> = std::fs::read_dir(&dir).into_iter().flatten().flatten().take(*left).collect();
        *left -= entries.len();
        for entry in entries {
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => links.push(entry.path()),
                Ok(kind) if kind.is_dir() => links_in_pattern(&entry.path().join(parts.as_path()), left, links),
                _ => {}
            }
        }
        return;
    }
    links.extend(Some(dir).filter(|dir| dir.is_symlink()));
}

/// Returns true if a directory is the workspace or above it, by its bytes: each path of an action is compared.
fn is_at_or_above(workspace: &Path, dir: &Path) -> bool {
    let (workspace, dir) = (workspace.as_os_str().as_bytes(), dir.as_os_str().as_bytes());
    workspace.starts_with(dir) && (dir == b"/" || matches!(workspace.get(dir.len()), None | Some(b'/')))
}

/// Returns where a link leads, by the name of piton's directory that is there or below. The directories above piton's own are no
/// links to them.
fn leads_to_piton(piton: &[PathBuf], link: &Path) -> Option<PathBuf> {
    // A link that leads nowhere leads to nothing of piton's.
    let real = link.canonicalize().ok()?;
    let leads = |own: &PathBuf| {
        let is = |dir: &&Path| dir.canonicalize().is_ok_and(|dir| dir == real);
        let inside = || Some(own.join(real.strip_prefix(own.canonicalize().ok()?).ok()?));
        own.ancestors().find(is).map(Path::to_owned).or_else(inside)
    };
    piton.iter().filter(|own| !own.starts_with(link)).find_map(leads)
}

/// Returns the text of a short file; `None` for anything else, which stays unseen.
fn short_text(path: &Path) -> Option<Arc<str>> {
    let content = read_regular(path, MAX_SCRIPT).ok()??;
    Some(String::from_utf8(content).ok()?.into())
}

/// Returns the path, or the directory above it, that a link leads into the workspace; and where it leads.
fn leads_into(workspace: &Path, path: &Path) -> Option<(PathBuf, PathBuf)> {
    let inside = |dir: &Path| dir.canonicalize().ok().filter(|real| real.starts_with(workspace));
    path.ancestors().find_map(|dir| Some((dir.to_owned(), inside(dir)?)))
}

/// Names the paths of a workspace that an action may destroy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionReach {
    /// Paths that are captured whatever the rules say.
    pub targets: Vec<Target>,
    /// True if the action may reach more than `targets`.
    pub is_everything: bool,
    /// Paths beside the workspace that the action destroys.
    pub outside: Vec<OutsidePath>,
}

/// Names a path outside of an action's workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutsidePath {
    /// The absolute path, as the action will follow it.
    pub path: PathBuf,
    /// True if everything there is removed.
    pub is_wiped: bool,
    /// True if a pattern matched it, and no word names it.
    pub is_match: bool,
    /// True if a link leads there: the words of the action name another place.
    pub is_led: bool,
}

impl OutsidePath {
    /// Returns a path that is named and does not go as a whole.
    pub fn named(path: &Path) -> OutsidePath {
        OutsidePath { path: path.to_owned(), is_wiped: false, is_match: false, is_led: false }
    }
}

/// The way in which an action comes to a path.
struct PathOrigin {
    /// True if everything there is removed.
    is_wiped: bool,
    /// True if a pattern matched it, and no word names it.
    is_match: bool,
}

impl ActionReach {
    /// Adds the file to which a link leads that the action may write through; of a link to a directory that is `entered`, the directory.
    fn add_behind(&mut self, workspace: &Path, link: &Path, entered: bool, found: PathOrigin) {
        let real = || link.canonicalize().ok().filter(|real| real.is_file() || (entered && real.is_dir()));
        let Some(real) = Some(link).filter(|link| link.is_symlink()).and_then(|_| real()) else { return };
        // A directory around the workspace has it in it.
        self.is_everything |= workspace.starts_with(&real);
        self.targets.extend(target(workspace, &real, found.is_wiped));
        if !real.starts_with(workspace) {
            let PathOrigin { is_wiped, is_match } = found;
            self.outside.push(OutsidePath { path: real, is_wiped, is_match, is_led: true });
        }
    }

    /// Returns true if the action reaches nothing in the workspace.
    pub fn is_nothing(&self) -> bool {
        self.targets.is_empty() && !self.is_everything
    }
}

/// Resolves what an action may destroy in the workspace. `cwd` is a real name.
///
/// The workspace's root is a target only where everything in it goes, ignored files too; otherwise what the rules capture is all
/// that the action reaches.
pub fn reach(workspace: &Path, cwd: &Path, verdict: &Verdict) -> ActionReach {
    let wiped: Vec<PathBuf> = verdict.wiped.iter().map(|path| resolved(&cwd.join(path))).collect();
    let is_wiping = |pattern: &&String| verdict.wiped_patterns.contains(pattern);
    let (wiping, others): (Vec<String>, Vec<String>) =
        verdict.patterns.iter().cloned().partition(|pattern| is_wiping(&pattern));
    let (wiping, others) = (expanded(&wiping), expanded(&others));
    let is_unclear = |path: &String| {
        let full = cwd.join(path);
        let has_place = || full.parent().is_none_or(Path::is_dir);
        // If `cd` fails, the path is relative to the directory in which the action begins.
        let rest =
            || std::iter::successors(Some(full.as_path()), |path| path.strip_prefix(path.components().next()?).ok());
        let is_here =
            || rest().skip(1).any(|rest| !rest.as_os_str().is_empty() && cwd.join(rest).symlink_metadata().is_ok());
        let may_mislead = has_magic(path) || (!has_place() && is_here());
        may_mislead && full.symlink_metadata().is_err()
    };
    // A word that names nothing on the disk may have another meaning: a pathspec, a range, a path below a directory
    // that `cd` did not reach.
    let is_everything = verdict.reaches_all || verdict.targets.iter().any(is_unclear);
    let mut reach = ActionReach { is_everything, ..ActionReach::default() };
    let named = verdict.targets.iter().map(|path| (Path::new(path), false, false));
    let wiping = wiping.iter().map(|path| (path.as_path(), true, true));
    let others = others.iter().map(|path| (path.as_path(), true, false));
    let followed = |path: &Path| {
        // A path with a slash behind it equals the one without.
        let mut through = verdict.through.iter().filter(|through| Path::new(through) == path).peekable();
        (through.peek().is_some(), through.any(|through| through.ends_with('/')))
    };
    for (path, is_match, wipes) in named.chain(wiping).chain(others) {
        let full = resolved(&cwd.join(path));
        let (all, is_wiped) = (workspace.starts_with(&full), wipes || wiped.contains(&full));
        let (is_followed, is_entered) = if is_match { (!wipes, false) } else { followed(path) };
        if is_followed {
            reach.add_behind(workspace, &full, is_entered, PathOrigin { is_wiped, is_match });
        }
        reach.is_everything |= all;
        reach.targets.extend(target(workspace, &full, is_wiped));
        // A directory above the workspace holds more than the workspace.
        if full != workspace && !full.starts_with(workspace) {
            let is_led = full != normalise(&cwd.join(path));
            reach.outside.push(OutsidePath { path: full, is_wiped, is_match, is_led });
        }
    }
    reach.targets.sort_by(|a, b| a.path.cmp(&b.path));
    reach.targets.dedup();
    reach.outside.sort();
    reach.outside.dedup();
    reach
}

/// Adds the files outside of a workspace that words of a line name through a link. The line starts a program that is on no list, which may
/// delete what a word names.
pub(super) fn add_named_behind_links(reach: &mut ActionReach, workspace: &Path, cwd: &Path, command: &str) {
    /// The most words that are looked at.
    const MOST: usize = 256;
    let is_between = |c: char| c.is_whitespace() || "'\"`;&|()<>=,{}".contains(c);
    let words = command.split(is_between).filter(|word| !word.is_empty() && word.len() < 4096).take(MOST);
    // `-oFILE`
    let words = words.flat_map(|word| [Some(word), word.strip_prefix('-').and_then(|rest| rest.get(1..))]).flatten();
    for word in words {
        let full = normalise(&cwd.join(word));
        let real = resolved(&full);
        let is_led_out = full.starts_with(workspace) && !real.starts_with(workspace);
        let through = |path: &Path| path.is_symlink().then(|| path.canonicalize().ok()).flatten(); // a dead link leads nowhere
        let place = if is_led_out { Some(real) } else { through(&real).filter(|place| !place.starts_with(workspace)) };
        if let Some(path) = place.filter(|path| full.starts_with(workspace) && path.is_file()) {
            reach.outside.push(OutsidePath { is_led: true, ..OutsidePath::named(&path) });
        }
    }
    reach.outside.sort();
    reach.outside.dedup();
}

/// Returns a path as a target in a workspace: its root only where everything in it goes.
pub fn target(workspace: &Path, full: &Path, is_wiped: bool) -> Option<Target> {
    if is_wiped && workspace.starts_with(full) {
        return Some(Target { path: RelPath::root(), recursive: true });
    }
    inside(workspace, full)
}

/// Returns true if a program could take a path for a pattern or a pathspec of its own.
pub(super) fn has_magic(path: &str) -> bool {
    path.contains(['*', '?', '[', '{']) || path.split('/').any(|name| name.starts_with([':', '^']))
}

/// Returns a path as the action will follow it: through links up to its last directory.
pub fn resolved(path: &Path) -> PathBuf {
    let normal = normalise(path);
    let parent = normal.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, normal.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => normal,
    }
}

/// Returns an absolute path as a target of the workspace that contains it; `None` for the root, and for git's own lock files.
pub(super) fn inside(workspace: &Path, full: &Path) -> Option<Target> {
    let relative = full.strip_prefix(workspace).ok()?;
    let path = RelPath::parse(relative.as_os_str().as_bytes()).ok()?;
    // Nothing is captured in a `.git`, but losses there are reported. Git's own locks are left out: they come and go.
    let is_lock = path.name().ends_with(b".lock") && path.components().any(|name| name == b".git");
    (!path.is_root() && !is_lock).then_some(Target { path, recursive: true })
}

/// Returns a test of a path that says whether it would give away a secret of the command.
pub fn gives_secret_away(command: &str) -> impl Fn(&str) -> bool {
    // Most actions name nothing, and then nothing has to be looked at.
    let shown = LazyCell::new(move || redact(command));
    move |word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        holds_secret(word) || (command.contains(name) && !shown.contains(name))
    }
}

/// Lists the nested repositories in which an action destroys files that cannot be named in advance.
pub fn repositories(workspace: &Path, cwd: &Path, verdict: &Verdict) -> Vec<RelPath> {
    let dirs = std::iter::once(cwd.to_owned()).chain(verdict.dirs.iter().map(|dir| resolved(&cwd.join(dir))));
    let around = |dir: &Path| {
        let within = dir.ancestors().take_while(|dir| *dir != workspace);
        let top =
            within.filter(|dir| dir.starts_with(workspace)).find(|dir| dir.join(".git").symlink_metadata().is_ok());
        top.and_then(|top| RelPath::parse(top.strip_prefix(workspace).ok()?.as_os_str().as_bytes()).ok())
    };
    let mut found: Vec<RelPath> = dirs.filter_map(|dir| around(&dir)).collect();
    found.sort();
    found.dedup();
    found
}

/// The most paths that the patterns of one action stand for. Further ones are protected only as far as the rules
/// capture them.
const MAX_MATCHES: usize = 20_000;

/// The most directories that are searched for the names of a `find`, the nearest first.
const MAX_SEARCHED: usize = 50_000;

/// Returns what patterns match on the disk, as a shell would expand them: names that begin with a dot only where the
/// pattern does. `**` stands for every directory below, as `find` goes through them: what is behind it matches any
/// name.
pub fn expanded(patterns: &[String]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for pattern in patterns {
        let (mut places, mut is_search) = (vec![PathBuf::from("/")], false);
        for part in Path::new(pattern).components() {
            let Component::Normal(part) = part else { continue };
            if part == "**" {
                (places, is_search) = (all_below(places), true);
                continue;
            }
            let is_pattern = |part: &&str| part.contains(['*', '?', '[']) || (is_search && part.contains('{'));
            places = match part.to_str().filter(is_pattern) {
                Some(glob) => places.iter().flat_map(|dir| matching(dir, glob, is_search)).take(MAX_MATCHES).collect(),
                None => places.into_iter().map(|dir| dir.join(part)).collect(),
            };
        }
        found.extend(places.into_iter().filter(|path| path.symlink_metadata().is_ok()));
    }
    found.truncate(MAX_MATCHES);
    found
}

/// Returns some directories and all below them. Links are not followed.
fn all_below(mut dirs: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut next = 0;
    while next < dirs.len() && dirs.len() < MAX_SEARCHED {
        let entries = std::fs::read_dir(&dirs[next]).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
        dirs.extend(below);
        next += 1;
    }
    dirs
}

/// Returns the names in a directory that one part of a pattern matches.
fn matching(dir: &Path, part: &str, is_search: bool) -> Vec<PathBuf> {
    // The shell takes a word literally if it is no valid pattern. Such a name is rare, and the rules see it anyway.
    let Ok(glob) = globset::Glob::new(part) else { return Vec::new() };
    let matcher = glob.compile_matcher();
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let shown = |name: &std::ffi::OsString| is_search || part.starts_with('.') || !name.as_bytes().starts_with(b".");
    names.filter(|name| shown(name) && matcher.is_match(Path::new(name))).map(|name| dir.join(name)).collect()
}

/// Resolves `.` and `..` without a look at the disk.
pub fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Returns true if a path outside every workspace is the system's, or of files that no one misses.
pub(super) fn is_passed_over(path: &Path) -> bool {
    is_system(path) || temp_dirs().iter().any(|temp| path.starts_with(temp))
}

/// Returns the directories of temporary files, whose loss does not matter.
pub fn temp_dirs() -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = ["/tmp", "/var/tmp"].map(PathBuf::from).to_vec();
    dirs.extend(std::env::var_os("TMPDIR").map(PathBuf::from).filter(|dir| dir.is_absolute()));
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_resolved_as_the_action_will() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("w/src/deep")).unwrap();
        std::os::unix::fs::symlink(root.join("w/src"), root.join("w/link")).unwrap();
        let workspace = root.join("w");
        let aimed = |cwd: &str, path: &str, wiped: bool| {
            let targets = vec![path.to_owned()];
            let wiped = if wiped { targets.clone() } else { Vec::new() };
            reach(&workspace, &root.join(cwd), &Verdict { targets, wiped, ..Verdict::default() })
        };
        let found = |cwd: &str, path: &str| aimed(cwd, path, false).targets.first().map(|target| target.path.display());
        assert_eq!(found("w", "a.txt"), Some("a.txt".into()));
        assert_eq!(found("w/src", "../b"), Some("b".into()));
        assert_eq!(found("w", "link/c"), Some("src/c".into()));
        assert_eq!(found("w", "link"), Some("link".into()));
        assert_eq!(found("w", "../outside"), None);
        assert_eq!(found("w", "/etc/passwd"), None);
        assert_eq!(found("w", "src/.git/config"), Some("src/.git/config".into()));
        assert_eq!(found("w", ".git/index.lock"), None);
        assert_eq!(found("w", "."), None);
        let all = ActionReach { is_everything: true, ..ActionReach::default() };
        assert_eq!(aimed("w", ".", false), all, "what the rules capture");
        for above in ["w", "w/src", "w/link"].iter().zip([".", "..", "../../w"]) {
            let wiped = aimed(above.0, above.1, true);
            assert!(wiped.is_everything && wiped.targets[0].path.is_root(), "{above:?}: {wiped:?}");
        }
        assert!(aimed("w", "..", false).is_everything);
        // A path that does not exist may mean another place.
        std::fs::create_dir(root.join("other")).unwrap();
        let beside = aimed("w", "../other", true);
        assert!(beside.is_nothing());
        assert_eq!(
            beside.outside,
            [OutsidePath { path: root.join("other"), is_wiped: true, is_match: false, is_led: false }]
        );
        for path in ["none/src", ":/", "sub/:x", "*.txt", "{a..c}"] {
            assert!(aimed("w", path, false).is_everything, "{path}");
        }
        assert!(aimed("w", "none/src/deep", true).is_everything && !aimed("w", "none/new", true).is_everything);
        assert!(!aimed("w", "gone", true).is_everything && !aimed("w", "new", false).is_everything);
    }

    #[test]
    fn links_to_pitons_own_files_are_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let (workspace, own) = (root.join("w"), root.join("home/share/piton"));
        std::fs::create_dir_all(workspace.join("build")).unwrap();
        std::fs::create_dir_all(own.join("store.git")).unwrap();
        let link = |to: PathBuf, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        link(own.clone(), "w/own");
        link(root.join("home/share"), "w/share");
        link(own.join("store.git"), "beside");
        link(root.join("w/own"), "w/twice");
        link(root.join("gone"), "w/dead");
        link(workspace.join("build"), "w/out");
        // A directory above piton's own that has a second name.
        link(root.join("home"), "alias");
        let classifier = Classifier::embedded();
        let policy = crate::settings::resolve(&crate::settings::Sources::default()).unwrap().policy;
        let hold = |line: &str, own: &Path| {
            let (cwd, piton) = (workspace.clone(), vec![own.to_owned()]);
            let context = Context { cwd, workspace: workspace.clone(), piton, ..Context::default() };
            judged_line(context, &classifier, line, &policy).hold
        };
        for line in [
            "rm -rf own/",
            "rm -rf own/*",
            "rm -rf own/store.git",
            "find own/ -delete",
            "rsync -a --delete build/ own/",
            "cd own && rm -rf ./*",
            "cd own && find . -delete",
            "rm -rf share/piton",
            "rm -rf share/*",
            "rm -rf ../beside/*",
            "rm -rf twice/",
            "echo x >> own/config.yaml",
            "rm -rf \"$(readlink own)\"",
            "rm -rf \"$(readlink -f twice)\"/store.git",
            "git -C own/store.git for-each-ref | git -C own/store.git update-ref --stdin",
            "cd own/store.git && git update-ref -d refs/x",
            "tar -C own --remove-files -cf x.tar store.git",
        ] {
            assert!(hold(line, &own).is_some(), "{line}");
            assert!(hold(line, &root.join("alias/share/piton")).is_some(), "{line}, by the second name");
        }
        for line in [
            "rm own",
            "readlink own",
            "git -C out gc",
            "rm -rf own",
            "rm -rf dead",
            "rm -rf out/*",
            "rm -rf build/*",
            "rm -rf share/other",
            "ls own/",
        ] {
            assert_eq!(hold(line, &own), None, "{line}");
        }
    }

    #[test]
    fn what_would_be_made_is_replaced_where_it_stands() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let workspace = root.join("w");
        std::fs::create_dir(&workspace).unwrap();
        let classifier = Classifier::embedded();
        let policy = crate::settings::resolve(&crate::settings::Sources::default()).unwrap().policy;
        let needs = |line: &str| {
            let context = Context { cwd: workspace.clone(), workspace: workspace.clone(), ..Context::default() };
            let verdict = judged(context, |context| classifier.shell(line, context, &policy));
            let targets = reach(&workspace, &workspace, &verdict).targets;
            (
                verdict.needs.checkpoint(),
                targets.iter().map(|target| target.path.display()).collect::<Vec<_>>().join(" "),
            )
        };
        for (line, file) in [
            ("tar cf made.tar src", "made.tar"),
            ("tar -czf made.tgz src", "made.tgz"),
            ("tar --create --file=made2.tar src", "made2.tar"),
            ("tar acf auto.tgz src", "auto.tgz"),
            ("tar Af join.tar b.tar", "join.tar"),
            ("zip -r made.zip src", "made.zip"),
            ("zip -r bare src", "bare.zip"),
            ("7z a seven src", "seven.7z"),
            ("jar cf made.jar src", "made.jar"),
            ("ls | cpio -o -F made.cpio", "made.cpio"),
            ("script -c ls log.txt", "log.txt"),
            ("script", "typescript"),
            ("terraform plan -out=my.plan", "my.plan"),
            ("mongodump --archive=dump.gz", "dump.gz"),
            ("cargo add serde", "Cargo.toml"),
            ("npm install left-pad", "package.json"),
        ] {
            assert_eq!(needs(line), (false, String::new()), "{line}: nothing is there");
            std::fs::write(workspace.join(file), "precious").unwrap();
            assert_eq!(needs(line), (true, file.to_owned()), "{line}");
            std::fs::remove_file(workspace.join(file)).unwrap();
        }
        std::fs::create_dir(workspace.join("d")).unwrap();
        assert_eq!(needs("tar cf d src"), (false, String::new()), "no archive replaces a directory");
        std::fs::write(workspace.join("log"), "precious").unwrap();
        assert!(!needs("script -a log").0, "it is appended to");
        assert!(!needs("cpio -t -F log").0, "it is only read");
    }

    #[test]
    fn a_slash_behind_a_link_and_a_program_that_overwrites_follow_it() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let workspace = root.join("w");
        std::fs::create_dir_all(workspace.join("x")).unwrap();
        std::fs::create_dir(root.join("far")).unwrap();
        std::fs::write(root.join("file"), "precious").unwrap();
        for (name, to) in [("dir", "../far"), ("file", "../file")] {
            std::os::unix::fs::symlink(to, workspace.join(name)).unwrap();
        }
        let policy = crate::settings::resolve(&crate::settings::Sources::default()).unwrap().policy;
        let classifier = Classifier::embedded();
        for (line, behind) in [
            ("rm -rf dir/", "far"),
            ("rm -rf ./dir/.", "far"),
            ("rm -rf dir", ""),
            ("rm dir", ""),
            ("mv dir old", ""),
            ("ln -sfn ../other dir", ""),
            ("find dir/ -delete", "far"),
            ("find dir -delete", ""),
            ("find -L dir -delete", "far"),
            ("find -H dir -type f -delete", "far"),
            ("rsync -a --delete x/ dir/", "far"),
            ("rsync -a --delete x/ dir", "far"),
            ("chmod -R 0 dir/", "far"),
            ("shred -u file", "file"),
            ("shred file", "file"),
            ("truncate -s0 file", "file"),
            ("rm file", ""),
            ("mv file other", ""),
        ] {
            let context = Context { cwd: workspace.clone(), workspace: workspace.clone(), ..Context::default() };
            let verdict = judged(context, |context| classifier.shell(line, context, &policy));
            let outside = reach(&workspace, &workspace, &verdict).outside;
            let shown: Vec<_> = outside.iter().map(|outside| outside.path.strip_prefix(&root).unwrap()).collect();
            assert_eq!(
                shown,
                Path::new(behind).components().map(|part| Path::new(part.as_os_str())).collect::<Vec<_>>(),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_written_through_a_link_is_a_target_beside_the_link() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let workspace = root.join("w");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(root.join("beside"), "precious").unwrap();
        std::fs::write(workspace.join("a"), "a").unwrap();
        for (name, to) in [("far", "../beside"), ("near", "a"), ("hop", "far"), ("dangling", "none"), ("dir", "..")] {
            std::os::unix::fs::symlink(to, workspace.join(name)).unwrap();
        }
        let found = |path: &str, through: bool| {
            let targets = vec![path.to_owned()];
            let through = if through { targets.clone() } else { Vec::new() };
            let reach = reach(&workspace, &workspace, &Verdict { targets, through, ..Verdict::default() });
            let inside = reach.targets.iter().map(|target| target.path.display());
            let beside = reach.outside.iter().map(|outside| outside.path.display().to_string());
            inside.chain(beside).collect::<Vec<_>>().join(" ").replace(&format!("{}/", root.display()), "../")
        };
        for (path, written, replaced) in [
            ("far", "far ../beside", "far"),
            ("near", "a near", "near"),
            ("hop", "hop ../beside", "hop"),
            ("dangling", "dangling", "dangling"),
            ("dir", "dir", "dir"),
            ("a", "a", "a"),
        ] {
            assert_eq!((found(path, true).as_str(), found(path, false).as_str()), (written, replaced), "{path}");
        }
    }

    #[test]
    fn patterns_are_expanded_as_a_shell_does() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for name in ["a.log", "b.log", ".c.log", "d/x.o", "e/y.o", "e/z.c", "[odd]"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "x").unwrap();
        }
        let no_text = root.join(std::ffi::OsStr::from_bytes(b"no\xe9"));
        std::fs::write(&no_text, "x").unwrap();
        for pattern in ["no*", "no?"] {
            assert_eq!(
                expanded(&[root.join(pattern).to_str().unwrap().to_owned()]),
                std::slice::from_ref(&no_text),
                "{pattern}"
            );
        }
        for (pattern, expected) in [
            ("*.log", "a.log b.log"),
            (".*.log", ".c.log"),
            ("?/*.o", "d/x.o e/y.o"),
            ("e/[yz].?", "e/y.o e/z.c"),
            ("none*", ""),
            ("*/none", ""),
        ] {
            let mut found = expanded(&[root.join(pattern).to_string_lossy().into_owned()]);
            found.sort();
            let names: Vec<&str> =
                found.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap()).collect();
            assert_eq!(names.join(" "), expected, "{pattern}");
        }
    }
}
