//! The places of things, judged by their names alone.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::{Glob, GlobMatcher};

use crate::model::effect::Scope;

/// The surroundings that the classifier may know. Every path is absolute; nothing is ever looked up here.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The directory the action starts in.
    pub cwd: PathBuf,
    /// The root of the workspace.
    pub workspace: PathBuf,
    /// Paths that lead into the workspace through symbolic links, and where they lead.
    pub aliases: Vec<(PathBuf, PathBuf)>,
    /// Symbolic links that lead to piton's own files or to a directory around them, and where they lead.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Directories, and the top of the repository that git finds from there.
    pub tops: Vec<(PathBuf, PathBuf)>,
    /// Files of the workspace that the action runs, with their texts; `None` for one that is not there, or is no short text.
    pub files: Vec<(PathBuf, Option<Arc<str>>)>,
    /// Files that stand where the action would make one.
    pub existing: Vec<PathBuf>,
    /// Directories in which git is told to check out a commit, its name as it was given, and the files that git would replace
    /// without asking: ignored here, and tracked there.
    pub checkouts: Vec<(PathBuf, String, Vec<PathBuf>)>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Directories of temporary files, whose loss does not matter.
    pub temp_dirs: Vec<PathBuf>,
    /// The directories of piton's store and of the user's settings.
    pub piton: Vec<PathBuf>,
}

/// A place, finer than a [`Scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    Plain(Scope),
    /// Inside a `.git` of the workspace.
    Repository,
    /// The workspace lies inside it.
    AboveWorkspace,
    /// The home directory itself, or a dotfile in it.
    HomeSettings,
    /// Piton's own store or settings, or something that contains them and is not above the workspace.
    Piton,
}

/// The position of a path towards piton's own files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearPiton {
    /// It is the store or the directory of the user's settings, or in one of them.
    Inside,
    /// It contains one of them.
    Around,
}

impl Context {
    /// Returns a path that leads into the workspace, by its name there.
    pub fn own_name(&self, path: PathBuf) -> PathBuf {
        let mut found = self.aliases.iter().filter_map(|(alias, real)| Some((real, path.strip_prefix(alias).ok()?)));
        let own = found.next().map(|(real, rest)| real.components().chain(rest.components()).collect());
        own.unwrap_or(path)
    }

    /// Returns true if something below a path outside of the workspace leads into it.
    pub fn leads_below(&self, path: &Path) -> bool {
        self.aliases.iter().any(|(alias, _)| alias.starts_with(path))
    }

    /// Returns where a path or pattern below a known link leads, if that is near piton's own files. The link itself counts only if it
    /// `enters`.
    pub fn led_to_piton(&self, path: &Path, enters: bool) -> Option<PathBuf> {
        self.links.iter().find_map(|(link, leads)| self.link_to_piton(path, link, leads, enters))
    }

    /// Does the same for one link.
    pub(super) fn link_to_piton(&self, path: &Path, link: &Path, leads: &Path, enters: bool) -> Option<PathBuf> {
        let mut parts = path.components();
        let is_below =
            link.components().all(|name| parts.next().is_some_and(|part| may_be(part.as_os_str(), name.as_os_str())));
        let rest = parts.as_path();
        let led = if rest.as_os_str().is_empty() { leads.to_owned() } else { leads.join(rest) };
        let counts = is_below && (enters || !rest.as_os_str().is_empty());
        Some(led).filter(|led| counts && self.near_piton(led).is_some())
    }

    /// Returns the position of an absolute path towards piton's own files; `None` for one that is apart from them. The path may be a
    /// pattern of a shell.
    pub fn near_piton(&self, path: &Path) -> Option<NearPiton> {
        // Both are rare: a path is resolved, and few patterns are for directories of any depth.
        if path.as_os_str().as_encoded_bytes().windows(2).any(|pair| matches!(pair, b".." | b"**")) {
            return self.near_by_parts(path);
        }
        let depth = path.components().count();
        let reaches = |own: &&PathBuf| {
            let mut parts = path.components();
            let mut last = OsStr::new("");
            let is_near = own.components().zip(&mut parts).all(|(name, part)| {
                last = part.as_os_str();
                may_be(last, name.as_os_str())
            });
            // A pattern for one directory of many reaches only what may be in this one.
            let next = parts.next().filter(|_| has_wildcard(last));
            is_near && next.is_none_or(|next| OWN_NAMES.iter().any(|name| may_be(next.as_os_str(), OsStr::new(name))))
        };
        let own = self.piton.iter().find(reaches)?;
        Some(if depth < own.components().count() { NearPiton::Around } else { NearPiton::Inside })
    }

    /// Does the same for a pattern with a `..` behind a wildcard, or with a `**` for directories of any depth.
    fn near_by_parts(&self, path: &Path) -> Option<NearPiton> {
        let path = resolve(Path::new("/"), &path.to_string_lossy());
        let mut parts: Vec<&OsStr> = path.components().map(Component::as_os_str).collect();
        parts.dedup_by(|next, before| *next == "**" && *before == "**");
        let found = self.piton.iter().filter_map(|own| {
            let names: Vec<&OsStr> = own.components().map(Component::as_os_str).collect();
            reached(&parts, &names, false)
        });
        found.max_by_key(|near| *near == NearPiton::Inside)
    }

    /// Returns true if a pathspec of git, whose `*` matches a `/` too, may select something of piton's own files.
    pub fn may_select_piton(&self, pattern: &Path) -> bool {
        if self.near_piton(pattern).is_some() {
            return true;
        }
        let Some(Ok(pattern)) = pattern.to_str().map(Glob::new) else { return true };
        let pattern = pattern.compile_matcher();
        let is_selected = |own: &PathBuf| OWN_NAMES.iter().any(|name| pattern.is_match(own.join(name)));
        self.piton.iter().any(|own| pattern.is_match(own) || is_selected(own))
    }

    /// Returns true if a pattern of names may be one of piton's own files, or of the directories above them.
    pub fn may_name_piton(&self, names: &str) -> bool {
        let Some(names) = NamePattern::parse(names) else { return true };
        let above = self.piton.iter().flat_map(|own| own.components()).map(Component::as_os_str);
        above.chain(OWN_NAMES.iter().map(OsStr::new)).any(|name| names.is_match(name))
    }

    /// Returns the place of an absolute path.
    pub fn whereabouts(&self, path: &Path) -> Whereabouts {
        if is_device(path) {
            return Whereabouts::Plain(Scope::Device);
        }
        if self.piton.iter().any(|own| path.starts_with(own)) {
            return Whereabouts::Piton;
        }
        if path.starts_with(&self.workspace) {
            return self.inside_workspace(path);
        }
        if self.workspace.starts_with(path) {
            return Whereabouts::AboveWorkspace;
        }
        if self.piton.iter().any(|own| own.starts_with(path)) {
            return Whereabouts::Piton;
        }
        if self.temp_dirs.iter().any(|temp| path.starts_with(temp)) {
            return Whereabouts::Plain(Scope::Temp);
        }
        match self.home.as_deref().map(|home| path.strip_prefix(home)) {
            Some(Ok(rest)) => home_place(rest),
            Some(Err(_)) | None => Whereabouts::Plain(Scope::System),
        }
    }

    fn inside_workspace(&self, path: &Path) -> Whereabouts {
        let inside = path.strip_prefix(&self.workspace).unwrap_or(path);
        let mut parts = inside.components().map(Component::as_os_str).skip_while(|part| *part != ".git").skip(1);
        let in_git = inside.components().any(|part| part.as_os_str() == ".git");
        let harmless = parts.next().is_some_and(|part| part == "hooks" || part == "info");
        if in_git && !harmless { Whereabouts::Repository } else { Whereabouts::Plain(Scope::Workspace) }
    }

    /// Returns a temporary directory, for `mktemp`.
    pub fn temp_dir(&self) -> PathBuf {
        self.temp_dirs.first().cloned().unwrap_or_else(|| PathBuf::from("/tmp"))
    }
}

/// Names in piton's own directories.
const OWN_NAMES: [&str; 12] = [
    "store.git",
    "local.git",
    "workspaces",
    "config.yaml",
    "objects",
    "pack",
    "pack-0.pack",
    "pack-0.idx",
    "refs",
    "packed-refs",
    "HEAD",
    "journal",
];

fn has_wildcard(part: &OsStr) -> bool {
    part.as_encoded_bytes().iter().any(|byte| b"*?[{(".contains(byte))
}

/// Returns the position of a pattern's parts towards a directory with these names. `is_loose` says that a wildcard matched the last
/// part: then only known names are below the directory.
fn reached(parts: &[&OsStr], names: &[&OsStr], is_loose: bool) -> Option<NearPiton> {
    match (parts, names) {
        ([], []) => Some(NearPiton::Inside),
        ([], _) => Some(NearPiton::Around),
        ([first, rest @ ..], _) if *first == "**" => {
            let found = (0..=names.len()).filter_map(|at| reached(rest, &names[at..], true));
            found.max_by_key(|near| *near == NearPiton::Inside)
        }
        ([part, ..], []) => {
            let is_own = !is_loose || OWN_NAMES.iter().any(|name| may_be(part, OsStr::new(name)));
            is_own.then_some(NearPiton::Inside)
        }
        ([part, rest @ ..], [name, more @ ..]) if may_be(part, name) => reached(rest, more, has_wildcard(part)),
        _ => None,
    }
}

/// Returns where a path leads that is below a link. The link itself counts only if the path `enters` it.
pub(super) fn behind_link(path: &Path, link: &Path, leads: &Path, enters: bool) -> Option<PathBuf> {
    let rest = path.strip_prefix(link).ok()?;
    match rest.as_os_str().is_empty() {
        true => enters.then(|| leads.to_owned()),
        false => Some(leads.join(rest)),
    }
}

/// Returns a part of a pattern with a `*` for each extended group of bash: `!(x)`, `@(x|y)`, `+(x)`, `?(x)`, `*(x)`.
fn without_groups(part: &str) -> Cow<'_, str> {
    if !part.contains('(') {
        return Cow::Borrowed(part);
    }
    let (mut plain, mut depth) = (String::with_capacity(part.len()), 0_usize);
    for letter in part.chars() {
        match letter {
            '(' if depth > 0 => depth += 1,
            '(' if plain.ends_with(['!', '@', '+', '?', '*']) => {
                plain.pop();
                plain.push('*');
                depth = 1;
            }
            ')' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            letter => plain.push(letter),
        }
    }
    Cow::Owned(plain)
}

/// A pattern for the name of a file.
enum NamePattern<'p> {
    /// `*` is its only special character. Matching it directly costs a thousandth of compiling it.
    Stars(&'p str),
    /// Any other pattern.
    Compiled(GlobMatcher),
}

impl<'p> NamePattern<'p> {
    /// Parses a pattern; `None` if it is invalid.
    fn parse(pattern: &'p str) -> Option<NamePattern<'p>> {
        if pattern.contains(['?', '[', ']', '{', '}', '\\', '!']) {
            return Some(NamePattern::Compiled(Glob::new(pattern).ok()?.compile_matcher())); // an invalid pattern has no matcher
        }
        Some(NamePattern::Stars(pattern))
    }

    fn is_match(&self, name: &OsStr) -> bool {
        match self {
            NamePattern::Stars(pattern) => fits_stars(pattern, &name.to_string_lossy()),
            NamePattern::Compiled(pattern) => pattern.is_match(Path::new(name)),
        }
    }
}

/// Returns true if a name matches a pattern whose only special character is `*`.
fn fits_stars(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut name) = name.strip_prefix(head).and_then(|name| name.strip_suffix(tail)) else { return false };
    middle.split('*').all(|part| match name.find(part) {
        Some(at) => {
            name = &name[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Returns true if a part of a pattern may stand for a name. A lone `*` may stand for hidden names too.
fn may_be(part: &OsStr, name: &OsStr) -> bool {
    part == name
        || part == "*"
        || has_wildcard(part)
            && part.to_str().is_some_and(|part| {
                // A text that is no pattern is a name.
                NamePattern::parse(&without_groups(part)).is_some_and(|pattern| pattern.is_match(name))
            })
}

fn home_place(rest: &Path) -> Whereabouts {
    match rest.components().next() {
        None => Whereabouts::HomeSettings,
        Some(first) if first.as_os_str().as_encoded_bytes().starts_with(b".") => Whereabouts::HomeSettings,
        Some(_) => Whereabouts::Plain(Scope::Home),
    }
}

/// Devices that hold nothing.
fn is_device(path: &Path) -> bool {
    const HARMLESS: [&str; 11] = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/tty",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/random",
        "/dev/urandom",
        "/dev/ptmx",
        "/dev/console",
    ];
    // The first directory alone rules out nearly every path; comparing with each device is slow.
    if !path.components().nth(1).is_some_and(|top| top.as_os_str() == "dev" || top.as_os_str() == "proc") {
        return false;
    }
    HARMLESS.iter().any(|device| path == Path::new(device))
        || ["/dev/fd", "/dev/pts", "/dev/shm", "/dev/tcp", "/dev/udp"]
            .iter()
            .any(|directory| path.starts_with(directory))
        || path.starts_with("/proc/self/fd")
}

/// Joins and removes `.` and `..` by name.
pub(super) fn resolve(cwd: &Path, text: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in cwd.join(text).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(part),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stars_fit_as_in_a_compiled_pattern(pattern in "[ab.*]{0,8}", name in "[ab.]{0,8}") {
            prop_assert!(matches!(NamePattern::parse(&pattern), Some(NamePattern::Stars(_))));
            let compiled = Glob::new(&pattern).unwrap().compile_matcher();
            prop_assert_eq!(fits_stars(&pattern, &name), compiled.is_match(&name), "{} {}", pattern, name);
        }
    }
}
