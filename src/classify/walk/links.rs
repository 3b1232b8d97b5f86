//! Symbolic links that a line makes itself: a path below one lies where the link leads.

use std::path::{Path, PathBuf};

use super::Walk;
use super::dispatch::Invocation;
use crate::classify::context::{NearPiton, behind_link, resolve};
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::{FoundEffect, Placed};
use crate::classify::rules::args::{Grammar, parse};
use crate::model::effect::Class;

/// Most links of one line that are followed.
const MAX_LINKS: usize = 16;

/// A link that a line makes, and the place where it leads.
pub(super) struct MadeLink {
    path: PathBuf,
    leads: PathBuf,
}

impl Walk<'_> {
    /// Notes the link that `ln -s` makes, if its names are certain.
    pub(super) fn makes_link(&mut self, call: &Invocation<'_>, shell: &Shell) {
        if call.program != "ln" || self.site.elsewhere || self.links.len() >= MAX_LINKS {
            return;
        }
        let parsed = parse(call.args, &Grammar::default(), false);
        let (target, name) = match parsed.operands.as_slice() {
            [target] => (target.exact(), Some(".")),
            [target, name] => (target.exact(), name.exact()),
            _ => return,
        };
        let (Some(cwd), Some(target), Some(name)) = (&shell.cwd, target, name) else { return };
        let is_inside = name.ends_with('/') || matches!(name, "." | "..");
        let inside = Path::new(target).file_name().filter(|_| is_inside);
        let path = inside.map_or_else(|| resolve(cwd, name), |file| resolve(cwd, name).join(file));
        let leads = path.parent().map(|dir| resolve(dir, target));
        if inside.is_some() {
            // The rule names the directory alone.
            let made = Arg::literal(path.to_string_lossy(), call.span);
            self.report(FoundEffect::new(Class::FileWrite, "ln", "ln", call.span), Some(&made), shell);
        }
        if let (true, Some(leads)) = (parsed.has(&["-s", "--symbolic"]), leads) {
            self.links.push(MadeLink { path, leads });
        }
    }

    /// Places the target of an effect behind the links that the line has made, and those that lead to piton's own files.
    pub(super) fn follow_links(&self, placed: &mut Placed, found: &mut FoundEffect) {
        if !self.has_links() {
            return;
        }
        let is_here = matches!(found.target.as_deref(), Some("." | "./"));
        let enters = is_here || found.enters_link() || (found.is_written() && found.program() != "ln");
        if let Some(path) = placed.path.as_deref().and_then(|path| self.led(path, enters)) {
            placed.whereabouts = self.context.whereabouts(&path);
            (placed.near, placed.path) = (Some(path.clone()), Some(path));
        }
        if let Some(path) = found.pattern.as_deref().and_then(|path| self.led(path, enters)) {
            placed.near = path.parent().map(Path::to_owned);
            placed.whereabouts = self.context.whereabouts(placed.near.as_deref().unwrap_or(&path));
            found.pattern = Some(path);
        }
    }

    /// Returns the position of a path towards piton's own files, behind the links that are known.
    pub(super) fn near_piton(&self, path: &Path) -> Option<NearPiton> {
        let led = if self.has_links() { self.led(path, true) } else { None };
        self.context.near_piton(led.as_deref().unwrap_or(path))
    }

    fn has_links(&self) -> bool {
        !self.links.is_empty() || !self.context.links.is_empty()
    }

    /// Returns the place of a path below a link; `None` if there is no such link. The last one of a name counts. The link itself
    /// counts only if the path `enters` it.
    fn led(&self, path: &Path, enters: bool) -> Option<PathBuf> {
        let mut found: Option<PathBuf> = None;
        for _ in 0..MAX_LINKS {
            let at = found.as_deref().unwrap_or(path);
            let below = |link: &MadeLink| behind_link(at, &link.path, &link.leads, enters);
            match self.links.iter().rev().find_map(below) {
                Some(next) => found = Some(next),
                None => break,
            }
        }
        let at = found.as_deref().unwrap_or(path);
        let to_piton = |link: &MadeLink| self.context.link_to_piton(at, &link.path, &link.leads, enters);
        self.context.led_to_piton(at, enters).or_else(|| self.links.iter().find_map(to_piton)).or(found)
    }
}
