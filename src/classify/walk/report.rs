//! Effects as the walk records them: placed, and with what an unknown path may reach.

use super::Walk;
use crate::classify::context::{NearPiton, Whereabouts};
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::{FoundEffect, is_file_class, pattern, pattern_at, place, settle};
use crate::classify::names;
use crate::classify::shell::Span;
use crate::model::effect::{Certainty, Class, Scope, Severity};

impl Walk<'_> {
    /// Records an effect, placed by its target.
    pub(super) fn report(&mut self, mut found: FoundEffect, target: Option<&Arg>, shell: &Shell) {
        let files = is_file_class(found.class);
        if let Some(arg) = target {
            if files && arg.exact() == Some("-") {
                return;
            }
            found.target = Some(arg.text.clone());
            if !arg.is_exact() {
                self.assumed = true;
                found.certainty = found.certainty.max(Certainty::Likely);
            }
        }
        if !files {
            self.found.push(found);
            return;
        }
        if let Some(reach) = target.filter(|_| is_of_paths(found.class)).and_then(|arg| wide_reach(arg, shell)) {
            self.found.push(FoundEffect {
                severity: Some(Severity::High),
                target: found.target.clone(),
                say: Some(format!("`{}` {reach}", found.verb)),
                ..FoundEffect::new(Class::System, found.verb.as_str(), "wide-reach", found.span)
            });
        }
        let here = Arg::literal(".", found.span);
        let mut placed = place(target.unwrap_or(&here), shell, &self.site, self.context);
        found.pattern = target.and_then(|target| pattern(target, shell, &self.site, self.context));
        self.follow_links(&mut placed, &mut found);
        found.path = placed.path.filter(|_| target.is_some());
        if placed.whereabouts == Whereabouts::Plain(Scope::Unknown) && found.pattern.is_none() {
            found.anywhere = true;
            self.mention(&here, shell);
        }
        found.near = placed.near;
        // A file that is put into a directory around them takes nothing else of it.
        let takes_all =
            matches!(found.class, Class::FileDelete | Class::FileMove | Class::FilePerm) && found.placed.is_none();
        // In a container, a pattern may name what a mount brings there.
        let mounted = target.filter(|_| self.site.elsewhere && !self.site.mounts.is_empty());
        let mounted = mounted.and_then(|target| pattern_at(target, shell, &self.site, self.context));
        found.near_piton = (found.path.as_ref().or(found.pattern.as_ref()).or(mounted.as_ref()))
            .and_then(|path| self.context.near_piton(path))
            .filter(|near| takes_all || *near == NearPiton::Inside);
        if found.replaces && found.path.as_ref().is_some_and(|path| self.context.existing.contains(path)) {
            found.class = Class::FileOverwrite;
        }
        let whereabouts = match (placed.whereabouts, found.near_piton) {
            (Whereabouts::Piton, None) if target.is_some() => Whereabouts::HomeSettings,
            (whereabouts, _) => whereabouts,
        };
        // A directory around piton's own files has more in it than them.
        if whereabouts == Whereabouts::Piton && found.path.is_some() && found.near_piton == Some(NearPiton::Around) {
            self.found.extend(settle(found.clone(), Whereabouts::HomeSettings));
        }
        self.found.extend(settle(found, whereabouts));
    }

    /// Notes the path outside of the workspace that a word names, and returns true if there is one.
    pub(super) fn mention(&mut self, word: &Arg, shell: &Shell) -> bool {
        let text = word.text.as_str();
        if !(text.starts_with('/') || text.contains("..") || text == ".") {
            return false;
        }
        let near = place(word, shell, &self.site, self.context).near;
        let Some(path) = near.filter(|path| !path.starts_with(&self.context.workspace)) else { return false };
        if self.mentioned.len() < MAX_MENTIONED && !self.mentioned.contains(&path) {
            self.mentioned.push(path);
        }
        true
    }

    /// Notes the paths outside of the workspace that stand in code, and returns true if there are any.
    pub(super) fn mention_within(&mut self, code: &str, shell: &Shell) -> bool {
        let mut points = false;
        for piece in code.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '(' | ')' | ',' | ';')) {
            // Of a pattern, the directory counts.
            let certain = piece.find(['*', '?', '[', '{', '$']).map_or(piece, |at| {
                let dir = &piece[..at];
                &dir[..dir.rfind('/').map_or(0, |slash| slash + 1)]
            });
            if certain.starts_with('/') || certain.starts_with("..") {
                points |= self.mention(&Arg::literal(certain, (0, 0)), shell);
            }
        }
        points
    }

    /// Records that something was run that cannot be seen into.
    pub(super) fn hidden(&mut self, verb: &str, script: Option<&str>, span: Span) {
        self.opaque = true;
        let alarming = script.is_some_and(names::alarming);
        let certainty = if alarming { Certainty::Named } else { Certainty::Likely };
        let mut found = FoundEffect::new(Class::ExecOpaque, verb, "script", span).certainty(certainty);
        found.target = script.map(str::to_owned);
        self.found.push(found);
    }

    /// Records code from elsewhere that is run here.
    pub(super) fn fetched(&mut self, verb: &str, span: Span) {
        self.opaque = true;
        self.found.push(FoundEffect::new(Class::ExecRemote, verb, "fetched-code", span));
    }
}

/// The most paths outside of the workspace that are noted for one line.
const MAX_MENTIONED: usize = 20;

/// Returns true for what may destroy a tree.
fn is_of_paths(class: Class) -> bool {
    matches!(class, Class::FileDelete | Class::FileMove | Class::FilePerm)
}

/// Directories at the top of a system that a person would miss.
const TOPS: [&str; 18] = [
    "",
    "*",
    ".*",
    "usr",
    "etc",
    "bin",
    "sbin",
    "boot",
    "lib",
    "lib64",
    "home",
    "root",
    "var",
    "opt",
    "srv",
    "Users",
    "Library",
    "Applications",
];

/// Names of everything in the working directory.
const EVERYTHING: [&str; 8] = ["*", ".", "./", "./*", ".*", "./.*", "..", "{*,.*}"];

/// Returns what a path may be that is not known: one of the whole system if a variable is empty (`$X/*`, `/$X`, `"$X"/usr`), or one
/// of another user (`~user/x`). A variable that the line itself sets is not empty.
fn wide_reach(path: &Arg, shell: &Shell) -> Option<String> {
    let text = path.text.as_str();
    if let Some(name) = shell.adrift.as_ref().filter(|_| EVERYTHING.contains(&text)) {
        return Some(format!("acts on your own directory, or on this one, if `${name}` is empty or unset."));
    }
    if path.is_exact() {
        return None;
    }
    if text.strip_prefix('~').is_some_and(|user| user.starts_with(|c: char| c.is_alphabetic() || c == '_')) {
        return Some(format!("acts on another user's directory (`{text}`)."));
    }
    let is_below_root = text.starts_with("/$");
    let (name, behind) = unset_variable(path, shell)?;
    let is_bare = behind.is_empty() && is_below_root;
    let below = behind.strip_prefix('/').map(|below| below.trim_start_matches('/'));
    let top = below.map(|below| below.strip_suffix("/*").unwrap_or(below).trim_end_matches('/'));
    let is_top = is_bare || top.is_some_and(|top| TOPS.contains(&top));
    is_top.then(|| format!("acts on the whole system if `${name}` is empty or unset."))
}

/// Returns the variable that a path begins with and that the line does not set, and the text behind it.
pub(super) fn unset_variable<'a>(path: &'a Arg, shell: &Shell) -> Option<(&'a str, &'a str)> {
    let text = path.text.as_str();
    let rest = text.strip_prefix('/').filter(|rest| rest.starts_with('$')).unwrap_or(text).strip_prefix('$')?;
    let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let (name, behind) = rest.split_at(length);
    (!path.is_exact() && !name.is_empty() && !shell.variables.contains_key(name)).then_some((name, behind))
}
