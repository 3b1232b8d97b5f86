//! The findings of the walk, before policy is applied.

use std::path::{Component, Path, PathBuf};

use super::context::{Context, NearPiton, Whereabouts, resolve};
use super::expand::{Arg, Shell, TextOrigin};
use crate::model::effect::{Certainty, Class, Scope, Severity, Stance, Takes};
use crate::model::loss::PlacedName;

use super::shell::Span;

/// An effect with everything that policy needs.
#[derive(Clone, Debug)]
pub(super) struct FoundEffect {
    pub class: Class,
    pub verb: String,
    pub target: Option<String>,
    /// The target as an absolute path, if it is one and is certain.
    pub path: Option<PathBuf>,
    /// The target as an absolute pattern, where the shell will put the names that match it.
    pub pattern: Option<PathBuf>,
    /// The position of the target towards piton's own files.
    pub near_piton: Option<NearPiton>,
    /// The part of the target that is certain; without a target, the directory in which it happens.
    pub near: Option<PathBuf>,
    /// True if it deletes or moves what stands there, although its place makes it one of another class.
    pub removes: bool,
    /// True if it deletes what stands there, although its place makes it one of another class.
    pub deletes: bool,
    /// True if it makes a file, and replaces one that stands there.
    pub replaces: bool,
    /// True if it writes the file anew as a whole, which its rule does not tell.
    pub is_whole: bool,
    /// The names that it gives to files in the target, if that is a directory; `None` for an effect that places nothing there.
    pub placed: Option<Vec<PlacedName>>,
    /// True if no word tells where it happens: maybe where other words of the line point.
    pub anywhere: bool,
    /// The `.git` directories that go with the target, where the class does not say it.
    pub takes: Option<Takes>,
    pub scope: Scope,
    /// The workspace itself is inside what is hit.
    pub above_workspace: bool,
    pub certainty: Certainty,
    pub severity: Option<Severity>,
    pub reversible: Option<bool>,
    pub checkpoint: Option<bool>,
    pub warn: Option<bool>,
    pub answer: Option<Stance>,
    pub say: Option<String>,
    pub rule: String,
    pub span: Span,
}

impl FoundEffect {
    /// Returns an effect without a target.
    pub(super) fn new(class: Class, verb: impl Into<String>, rule: impl Into<String>, span: Span) -> FoundEffect {
        FoundEffect {
            class,
            verb: verb.into(),
            target: None,
            path: None,
            pattern: None,
            near_piton: None,
            near: None,
            removes: false,
            deletes: false,
            replaces: false,
            is_whole: false,
            placed: None,
            anywhere: false,
            takes: None,
            scope: if class.is_external() { Scope::Remote } else { Scope::Workspace },
            above_workspace: false,
            certainty: Certainty::Proven,
            severity: None,
            reversible: None,
            checkpoint: None,
            warn: None,
            answer: None,
            say: None,
            rule: rule.into(),
            span,
        }
    }

    /// Sets how sure it is.
    pub(super) fn certainty(mut self, certainty: Certainty) -> FoundEffect {
        self.certainty = certainty;
        self
    }

    /// Returns true if a link at the path may be followed: the file that it leads to is changed, and not the link.
    pub(super) fn is_written(&self) -> bool {
        let replaces =
            matches!(self.class, Class::FileDelete | Class::FileMove | Class::VcsDiscard | Class::VcsHistory);
        (!replaces && !self.removes) || OVERWRITING.contains(&self.program())
    }

    /// Returns true if a link to a directory is followed at the path: a slash behind its name does that, and `rsync` without one.
    pub(super) fn enters_link(&self) -> bool {
        let text = self.target.as_deref().unwrap_or_default();
        text.ends_with('/') || text.ends_with("/.") || self.program() == "rsync"
    }

    /// Returns the program of an effect.
    pub(super) fn program(&self) -> &str {
        self.verb.split_whitespace().next().unwrap_or_default()
    }
}

/// Programs that write into a file before they remove it.
const OVERWRITING: [&str; 3] = ["shred", "wipe", "srm"];

/// The machine on which a line runs: this one, or one whose files are not ours.
#[derive(Clone, Debug, Default)]
pub(super) struct Site {
    pub elsewhere: bool,
    /// Local directories as seen from there.
    pub mounts: Vec<(PathBuf, PathBuf)>,
}

/// Returns whether a class is about files, so that its target is a path.
pub(super) fn is_file_class(class: Class) -> bool {
    matches!(
        class,
        Class::FileDelete
            | Class::FileOverwrite
            | Class::FileWrite
            | Class::FileMove
            | Class::FilePerm
            | Class::VcsDiscard
    )
}

/// Describes where an argument lies.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    /// As a path; `None` for what is not here, or not known word by word.
    pub path: Option<PathBuf>,
    /// The part of the path that is certain.
    pub near: Option<PathBuf>,
    pub whereabouts: Whereabouts,
}

impl Placed {
    fn unknown(scope: Scope) -> Placed {
        Placed { path: None, near: None, whereabouts: Whereabouts::Plain(scope) }
    }
}

/// Finds where an argument lies as a path.
pub(super) fn place(arg: &Arg, shell: &Shell, site: &Site, context: &Context) -> Placed {
    if arg.origin == TextOrigin::Temporary {
        return Placed::unknown(Scope::Temp);
    }
    let known = &arg.text[..arg.known.min(arg.text.len())];
    let certain = if arg.is_exact() { known } else { known.rfind('/').map_or("", |slash| &known[..=slash]) };
    if certain.is_empty() && !arg.is_exact() && !arg.glob && arg.known == 0 {
        return Placed::unknown(if site.elsewhere { Scope::Remote } else { Scope::Unknown });
    }
    let Some((path, left)) = locate(certain, shell, site, context) else {
        let device = context.whereabouts(Path::new(certain)) == Whereabouts::Plain(Scope::Device);
        let scope = match site.elsewhere {
            true if device => Scope::Device,
            true => Scope::Remote,
            false => Scope::Unknown,
        };
        return Placed::unknown(scope);
    };
    let path = context.own_name(path);
    let above = context.workspace.starts_with(&path) && context.workspace != path;
    let unclear = above && !arg.text[arg.known..].starts_with('*') || context.leads_below(&path);
    let whereabouts =
        if !arg.is_exact() && unclear { Whereabouts::Plain(Scope::Unknown) } else { context.whereabouts(&path) };
    let near = left.filter(|_| arg.is_exact()).unwrap_or_else(|| path.clone());
    Placed { path: arg.is_exact().then_some(path), near: Some(near), whereabouts }
}

/// Returns an argument as a pattern that the shell will expand here: certain but for its wildcards, which stand behind
/// a directory.
pub(super) fn pattern(arg: &Arg, shell: &Shell, site: &Site, context: &Context) -> Option<PathBuf> {
    if site.elsewhere { None } else { pattern_at(arg, shell, site, context) }
}

/// Returns an argument as a pattern that a shell here or over there will expand, if its directory is one of this machine.
pub(super) fn pattern_at(arg: &Arg, shell: &Shell, site: &Site, context: &Context) -> Option<PathBuf> {
    if !arg.glob || arg.origin == TextOrigin::Temporary {
        return None;
    }
    let known = &arg.text[..arg.known.min(arg.text.len())];
    let (dir, rest) = arg.text.split_at(known.rfind('/').map_or(0, |slash| slash + 1));
    Some(context.own_name(locate(dir, shell, site, context)?.0).join(rest))
}

/// Returns a path, and the directory outside of the workspace that a `..` in it leaves: only the disk knows whether
/// that is a link.
fn locate(text: &str, shell: &Shell, site: &Site, context: &Context) -> Option<(PathBuf, Option<PathBuf>)> {
    if !text.starts_with('/') {
        let cwd = shell.cwd.as_deref()?;
        return Some(if site.elsewhere { (resolve(cwd, text), None) } else { followed(cwd, text, context) });
    }
    if !site.elsewhere {
        return Some(followed(Path::new("/"), text, context));
    }
    let inner = resolve(Path::new("/"), text);
    site.mounts.iter().find_map(|(local, there)| Some((local.join(inner.strip_prefix(there).ok()?), None)))
}

/// Follows a path as a program does: a `..` leaves the directory that a link leads to, and not the one that holds the link.
fn followed(cwd: &Path, text: &str, context: &Context) -> (PathBuf, Option<PathBuf>) {
    let (mut path, mut left) = (context.own_name(cwd.to_owned()), None);
    let mut is_entered = true;
    for part in Path::new(text).components() {
        match part {
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            Component::ParentDir => {
                path = context.own_name(path);
                if is_entered && left.is_none() && !path.starts_with(&context.workspace) {
                    left = Some(path.clone());
                }
                is_entered = false;
                path.pop();
            }
            Component::Normal(_) => {
                path.push(part);
                is_entered = true;
            }
        }
    }
    (path, left)
}

/// Applies a place to an effect; `None` when there is no effect at all.
pub(super) fn settle(mut found: FoundEffect, place: Whereabouts) -> Option<FoundEffect> {
    found.scope = match place {
        Whereabouts::Plain(Scope::Device) => return None,
        Whereabouts::Plain(scope) => scope,
        Whereabouts::Repository => {
            if matches!(found.class, Class::FileDelete | Class::FileOverwrite | Class::FileMove) {
                found.class = Class::VcsHistory;
            }
            Scope::Workspace
        }
        Whereabouts::AboveWorkspace => {
            found.above_workspace = true;
            Scope::System
        }
        Whereabouts::HomeSettings => Scope::Home,
        Whereabouts::Piton => {
            found.class = Class::Piton;
            Scope::Home
        }
    };
    let settings = matches!(place, Whereabouts::HomeSettings | Whereabouts::AboveWorkspace);
    if is_file_class(found.class) && found.class != Class::VcsDiscard && (found.scope == Scope::System || settings) {
        found.removes = matches!(found.class, Class::FileDelete | Class::FileMove);
        found.deletes = found.class == Class::FileDelete;
        found.class = Class::System;
    }
    Some(found)
}
