//! The answer to effects: one table of classes and places, and the user's changes to it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::found::{FoundEffect, is_file_class};
use super::losses::of_files;
use crate::model::effect::{
    Certainty, Class, Confidence, Effect, Needs, Programs, Scope, Severity, Stance, Takes, Verdict, Warning,
};
use crate::model::loss::{Loss, RepositoryFiles};
use crate::model::policy::{ClassRule, Opaque, Policy};

/// Most effects that an answer lists; what they call for counts beyond it.
const MAX_EFFECTS: usize = 1000;
/// The most paths outside of the workspace that are listed, to be looked at for links.
const MAX_OUTSIDE: usize = 200;

/// The most paths that an action creates or appends to and that are listed.
const MAX_WRITTEN: usize = 1000;

/// The degree to which a line was understood.
#[derive(Clone, Debug, Default)]
pub(super) struct Understanding {
    pub opaque: bool,
    pub assumed: bool,
    /// Not shell, or past the limits.
    pub broken: bool,
    /// The programs that can run.
    pub programs: Programs,
    /// Directories in which something runs that could not be seen into.
    pub blind: Vec<PathBuf>,
    /// Paths outside of the workspace that words name.
    pub mentioned: Vec<PathBuf>,
    /// Directories from which git is asked for the top of its repository.
    pub tops: Vec<PathBuf>,
    /// Directories in which git checks out a commit, with the name of that.
    pub checkouts: Vec<(PathBuf, String)>,
    /// Files of the workspace whose texts would say more.
    pub scripts: Vec<PathBuf>,
    /// The uncommitted work that commands of git take away.
    pub losses: Vec<Loss>,
    /// The files of repositories that commands of git replace or remove.
    pub repositories: Vec<RepositoryFiles>,
}

impl Understanding {
    /// Adds that of another part.
    pub(super) fn add(&mut self, other: Understanding) {
        self.opaque |= other.opaque;
        self.assumed |= other.assumed;
        self.broken |= other.broken;
        self.programs = self.programs.max(other.programs);
        self.blind.extend(other.blind);
        self.mentioned.extend(other.mentioned);
        self.tops.extend(other.tops);
        self.checkouts.extend(other.checkouts);
        self.scripts.extend(other.scripts);
        self.losses.extend(other.losses);
        self.repositories.extend(other.repositories);
    }
}

/// Returns what an effect calls for, before the user's changes: (checkpoint, warning).
///
/// This is the one place where "recorded only" is decided: test and build runs that cannot be seen into call for nothing here
/// (the engine adds a checkpoint for [`Confidence::Opaque`] where the policy says so).
fn calls_for(found: &FoundEffect, severity: Severity) -> (bool, bool) {
    if severity == Severity::Info {
        return (false, false);
    }
    let here = matches!(found.scope, Scope::Workspace | Scope::OtherWorkspace | Scope::Unknown);
    match found.class {
        Class::FileDelete | Class::FileOverwrite | Class::FileMove | Class::FilePerm => {
            (here, found.scope == Scope::Home)
        }
        Class::VcsDiscard => (here, matches!(found.scope, Scope::Home | Scope::System)),
        Class::VcsHistory => (true, true),
        Class::FileWrite => (false, false),
        Class::Database => (found.path.is_some() && found.scope == Scope::Workspace, found.scope != Scope::Temp),
        Class::ExecRemote => (true, true),
        Class::System => (found.above_workspace, true),
        Class::VcsRemote
        | Class::NetworkWrite
        | Class::Container
        | Class::Cloud
        | Class::Publish
        | Class::Process
        | Class::RemoteShell => (false, true),
        Class::ExecOpaque => (false, found.certainty == Certainty::Named),
        Class::Piton => (true, true),
        Class::Unknown => (true, false),
    }
}

fn usual_severity(class: Class, scope: Scope, certainty: Certainty) -> Severity {
    match class {
        Class::ExecOpaque if certainty == Certainty::Named => Severity::Medium,
        Class::FileWrite | Class::ExecOpaque => Severity::Info,
        Class::FilePerm | Class::FileMove | Class::Unknown => Severity::Low,
        Class::FileDelete | Class::FileOverwrite if scope == Scope::Temp => Severity::Info,
        Class::FileDelete | Class::FileOverwrite | Class::VcsDiscard | Class::Process | Class::NetworkWrite => {
            Severity::Medium
        }
        Class::VcsRemote | Class::Container | Class::RemoteShell | Class::VcsHistory => Severity::Medium,
        Class::Database | Class::Cloud | Class::Publish | Class::System | Class::ExecRemote | Class::Piton => {
            Severity::High
        }
    }
}

fn reversible(class: Class, scope: Scope) -> bool {
    match class {
        Class::FileDelete | Class::FileOverwrite | Class::FileWrite | Class::FileMove => scope != Scope::Remote,
        Class::FilePerm | Class::VcsDiscard | Class::ExecOpaque | Class::Unknown => true,
        Class::VcsHistory
        | Class::VcsRemote
        | Class::Database
        | Class::NetworkWrite
        | Class::Container
        | Class::Cloud
        | Class::Publish
        | Class::Process
        | Class::System
        | Class::RemoteShell
        | Class::ExecRemote
        | Class::Piton => false,
    }
}

/// Returns the sentence for people when a rule has none of its own.
fn sentence(class: Class, scope: Scope, verb: &str) -> String {
    let undo = "restoring files does not undo that";
    match class {
        Class::Database => format!("`{verb}` might change a database; {undo}."),
        Class::NetworkWrite => format!("`{verb}` sends data over the network; {undo}."),
        Class::VcsRemote => format!("`{verb}` changes a remote repository or its forge; {undo}."),
        Class::VcsHistory => {
            format!("`{verb}` changes git history (refs, stashes, unreachable commits); {undo}.")
        }
        Class::Container => format!("`{verb}` changes containers or their volumes; {undo}."),
        Class::Cloud => format!("`{verb}` changes infrastructure; {undo}."),
        Class::Publish => format!("`{verb}` publishes something that others can fetch; {undo}."),
        Class::Process => format!("`{verb}` ends running processes; {undo}."),
        Class::System => format!("`{verb}` changes the machine outside the workspace; {undo}."),
        Class::RemoteShell => format!("`{verb}` acts on another machine; {undo}."),
        Class::ExecRemote => format!(
            "`{verb}` runs code that was just downloaded or decoded, and can do anything; restoring files only undoes its changes in the workspace."
        ),
        Class::ExecOpaque => format!(
            "`{verb}` runs a script that seems to do more than build. Its effects outside the workspace cannot be undone."
        ),
        Class::Piton => format!("`{verb}` changes piton's own data. Removed checkpoints cannot be recovered."),
        Class::FileDelete
        | Class::FileOverwrite
        | Class::FileWrite
        | Class::FileMove
        | Class::FilePerm
        | Class::VcsDiscard => match scope {
            Scope::Workspace => format!("`{verb}` changes or removes files of the workspace."),
            Scope::OtherWorkspace
            | Scope::Home
            | Scope::System
            | Scope::Temp
            | Scope::Device
            | Scope::Remote
            | Scope::Unknown => format!("`{verb}` changes files outside the workspace."),
        },
        Class::Unknown => format!("piton could not parse `{verb}`."),
    }
}

/// Returns the verdict over everything that was found.
pub(super) fn judge(found: Vec<FoundEffect>, understanding: Understanding, policy: &Policy) -> Verdict {
    let (mut checkpoint, mut warn, mut targets, mut held) = (false, false, HashSet::new(), Stance::Allow);
    let mut verdict = Verdict {
        needs: Needs::Nothing,
        confidence: Confidence::Exact,
        effects: Vec::new(),
        warnings: Vec::new(),
        targets: Vec::new(),
        patterns: Vec::new(),
        reaches_all: understanding.broken || (understanding.opaque && policy.opaque == Opaque::Checkpoint),
        wiped: Vec::new(),
        through: Vec::new(),
        made: Vec::new(),
        written: Vec::new(),
        writes_unnamed: understanding.broken || understanding.opaque,
        wiped_patterns: Vec::new(),
        hold: None,
        denied: false,
        outside: Vec::new(),
        dirs: understanding.blind.iter().map(|dir| text(dir)).collect(),
        abroad: Vec::new(),
        repositories: understanding.repositories.clone(),
        tops: understanding.tops.iter().map(|dir| text(dir)).collect(),
        checkouts: understanding.checkouts.iter().map(|(dir, rev)| (text(dir), rev.clone())).collect(),
        scripts: understanding.scripts.iter().map(|file| text(file)).collect(),
        takes: Takes::Nothing,
        in_place: understanding.broken || understanding.opaque,
        programs: understanding.programs,
        losses: understanding.losses.iter().cloned().chain(of_files(&found)).collect(),
    };
    if found.iter().any(|found| found.anywhere && is_file_class(found.class) && is_destroyed(found)) {
        verdict.abroad.extend(understanding.mentioned.iter().map(|path| text(path)));
    }
    for found in found {
        let rule = policy.classes.iter().rev().find(|rule| rule.class == found.class);
        let severity = rule.and_then(|rule| rule.severity).or(found.severity);
        let severity = severity.unwrap_or_else(|| usual_severity(found.class, found.scope, found.certainty));
        let (saves, mut warns) = wanted(&found, severity, rule);
        // An effect that calls for nothing is never held: a temporary file, a request to this machine.
        let wish = found.answer.or(rule.and_then(|rule| rule.answer));
        let answer = wish.or(by_default(&found));
        if let Some(answer) = answer.filter(|_| saves || warns) {
            warns = answer > Stance::Allow;
            if answer > held.max(Stance::Warn) {
                held = answer;
                verdict.hold = Some(if wish.is_some() { holding(answer, &found) } else { keeping(&found) });
                verdict.denied = answer == Stance::Deny;
            }
        }
        checkpoint |= saves;
        warn |= warns;
        verdict.reaches_all |= saves && (found.path.is_none() || found.above_workspace);
        if warns {
            add_warning(&mut verdict.warnings, &found, severity);
        }
        verdict.writes_unnamed |= writes_unnamed(&found);
        locate(&mut verdict, &found);
        if let Some(path) = found.path.as_deref().filter(|_| is_destroyed(&found)).map(text) {
            let is_entered = found.enters_link();
            let through = if is_entered { format!("{path}/") } else { path.clone() };
            let is_followed = is_entered || found.is_written();
            if is_followed && !verdict.through.contains(&through) && verdict.through.len() < MAX_OUTSIDE {
                verdict.through.push(through);
            }
            if targets.insert(path.clone()) {
                verdict.targets.push(path);
            }
        }
        add_effect(&mut verdict.effects, found, severity);
    }
    verdict.needs = Needs::of(checkpoint || understanding.broken, warn);
    verdict.confidence = match understanding {
        Understanding { opaque: true, .. } | Understanding { broken: true, .. } => Confidence::Opaque,
        // A program of no closed list may start others.
        Understanding { assumed: true, .. } | Understanding { programs: Programs::Any, .. } => Confidence::Assumed,
        Understanding { .. } => Confidence::Exact,
    };
    verdict
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Tells the engine where an effect lands, for what only a look at the disk can say.
fn locate(verdict: &mut Verdict, found: &FoundEffect) {
    verdict.in_place |= writes_in_place(found);
    verdict.takes = verdict.takes.max(found.takes.unwrap_or_else(|| takes(found)));
    let is_outside = |_: &&PathBuf| found.scope != Scope::Workspace;
    for near in found.near.iter().chain(found.path.as_ref().filter(is_outside)).map(|path| text(path)) {
        let (list, wanted) = if found.scope == Scope::Workspace {
            // Without a target it may destroy whatever belongs to the directory.
            (&mut verdict.dirs, found.path.is_none() && found.pattern.is_none())
        } else {
            (&mut verdict.outside, true)
        };
        if wanted && list.len() < MAX_OUTSIDE && !list.contains(&near) {
            list.push(near);
        }
    }
    let is_unnamed = found.path.is_none() && found.pattern.is_none() && found.scope != Scope::Workspace;
    let dir = found.near.as_deref().filter(|_| is_unnamed && is_file_class(found.class) && is_destroyed(found));
    if let Some(dir) = dir.map(text).filter(|dir| verdict.abroad.len() < MAX_OUTSIDE && !verdict.abroad.contains(dir)) {
        verdict.abroad.push(dir);
    }
    if let Some(path) = found.path.as_deref().filter(|_| is_wiped(found) && verdict.wiped.len() < MAX_OUTSIDE) {
        verdict.wiped.push(text(path));
    }
    let made = found.path.as_deref().filter(|_| found.replaces && found.class == Class::FileWrite);
    verdict.made.extend(made.filter(|_| verdict.made.len() < MAX_OUTSIDE).map(text));
    if let Some(path) = found.path.as_deref().filter(|_| found.class == Class::FileWrite) {
        match verdict.written.len() < MAX_WRITTEN {
            true => verdict.written.push(text(path)),
            false => verdict.writes_unnamed = true,
        }
    }
    let pattern = found.pattern.as_deref().filter(|_| is_destroyed(found) && verdict.patterns.len() < MAX_OUTSIDE);
    verdict.patterns.extend(pattern.map(text));
    verdict.wiped_patterns.extend(pattern.filter(|_| is_wiped(found)).map(text));
}

/// Programs that install packages into directories that tools made, which no checkpoint holds: `.venv`, `node_modules`.
const INSTALLERS: &[&str] = &["bun", "conda", "gem", "mamba", "npm", "pip", "pip3", "pipx", "pnpm", "uv", "yarn"];

/// Returns true if an effect may change local files whose paths are not known: it has no target, or a pattern that creates files.
fn writes_unnamed(found: &FoundEffect) -> bool {
    let is_here = !matches!(found.scope, Scope::Temp | Scope::Device | Scope::Remote);
    let is_named = found.path.is_some() || (found.pattern.is_some() && is_destroyed(found));
    let program = found.verb.split_whitespace().next().unwrap_or_default();
    let installs = found.class == Class::FileWrite && INSTALLERS.contains(&program);
    match found.class {
        Class::ExecRemote | Class::ExecOpaque | Class::Unknown => true,
        class => is_file_class(class) && is_here && !installs && (!is_named || found.above_workspace),
    }
}

/// Returns the `.git` directories that go, where the command itself does not say it.
fn takes(found: &FoundEffect) -> Takes {
    let is_named = || found.path.iter().flat_map(|path| path.components()).any(|part| part.as_os_str() == ".git");
    match found.class {
        Class::FileDelete | Class::FileMove | Class::VcsHistory | Class::System => Takes::Repositories,
        _ if is_named() || found.rule == "git-worktree" => Takes::Repositories,
        _ => Takes::Nothing,
    }
}

/// Commands that remove and move files of a `.git`, and write into none that is there.
const UNLINKING: [&str; 11] = ["git", "rm", "grm", "rmdir", "unlink", "mv", "gmv", "find", "fd", "trash", "trash-put"];

/// Returns true if an effect may change the content or the facts of a file in a `.git` under its present name.
fn writes_in_place(found: &FoundEffect) -> bool {
    let is_in_git = |path: &PathBuf| path.components().any(|part| part.as_os_str() == ".git");
    let command = found.verb.split_whitespace().next().unwrap_or_default();
    match found.class {
        _ if matches!(found.scope, Scope::Temp | Scope::Device | Scope::Remote) => false,
        Class::FileWrite | Class::FileOverwrite => found.path.as_ref().is_none_or(is_in_git),
        Class::FileDelete | Class::FileMove | Class::VcsHistory => !UNLINKING.contains(&command),
        Class::VcsDiscard
        | Class::VcsRemote
        | Class::Database
        | Class::NetworkWrite
        | Class::Cloud
        | Class::Publish
        | Class::Process
        | Class::RemoteShell => false,
        // A directory above the workspace makes a deletion one of the system.
        Class::System => !UNLINKING.contains(&command),
        Class::FilePerm | Class::Container | Class::ExecRemote | Class::ExecOpaque | Class::Piton | Class::Unknown => {
            true
        }
    }
}

fn holding(answer: Stance, found: &FoundEffect) -> String {
    let does = if answer == Stance::Deny { "denies" } else { "asks before" };
    format!("the policy {does} `{}` ({}, rule {})", found.verb, found.class.as_str(), found.rule)
}

/// Returns the answer to an effect on piton's own files, if neither a policy nor a rule has one.
fn by_default(found: &FoundEffect) -> Option<Stance> {
    found.near_piton.map(|_| Stance::Ask)
}

/// Says why an effect on piton's own files is held, and what moves them safely.
fn keeping(found: &FoundEffect) -> String {
    let verb = &found.verb;
    format!(
        "`{verb}` would reach piton's own files, and nothing could be restored without them: `piton store move DIR` moves \
         the store, and PITON_HOME names another"
    )
}

fn wanted(found: &FoundEffect, severity: Severity, rule: Option<&ClassRule>) -> (bool, bool) {
    let (saves, warns) = calls_for(found, severity);
    let own = (found.checkpoint.unwrap_or(saves), found.warn.unwrap_or(warns));
    match rule {
        Some(rule) => (rule.checkpoint.unwrap_or(own.0), rule.warn.unwrap_or(own.1)),
        None => own,
    }
}

fn add_warning(warnings: &mut Vec<Warning>, found: &FoundEffect, severity: Severity) {
    let message = found.say.clone().unwrap_or_else(|| sentence(found.class, found.scope, &found.verb));
    let code = if found.class == Class::Piton {
        "piton-aimed-at".to_owned()
    } else {
        format!("external-{}", found.class.as_str())
    };
    let is_on_files = found.class == Class::System && (found.path.is_some() || found.pattern.is_some());
    let on_files = is_on_files.then(|| sentence(Class::FileWrite, found.scope, &found.verb));
    match warnings.iter_mut().find(|warning| warning.code == code && warning.message == message) {
        Some(warning) => {
            warning.severity = warning.severity.max(severity);
            warning.on_files = warning.on_files.take().filter(|_| is_on_files);
        }
        None => warnings.push(Warning { code, class: found.class, message, severity, on_files }),
    }
}

/// Tells whether an effect destroys the file at its path, and the loss would matter.
fn is_destroyed(found: &FoundEffect) -> bool {
    found.scope != Scope::Temp && found.class != Class::FileWrite
}

/// Returns true if all that stands at the path goes, ignored files too. `git checkout .` replaces tracked files alone.
fn is_wiped(found: &FoundEffect) -> bool {
    match found.class {
        Class::FileDelete | Class::FileMove => true,
        // A directory above the workspace takes it along.
        Class::System => found.above_workspace || found.removes,
        Class::VcsDiscard => {
            found.rule.starts_with("git-clean-ignored")
                || matches!(found.rule.as_str(), "git-stash-all" | "git-worktree")
                || found.takes == Some(Takes::Nested)
        }
        // Searched for by `find`: its path is the directory below which every `.git` goes.
        Class::VcsHistory => found.takes == Some(Takes::Repositories),
        _ => false,
    }
}

fn add_effect(effects: &mut Vec<Effect>, found: FoundEffect, severity: Severity) {
    let reversible = found.reversible.unwrap_or_else(|| reversible(found.class, found.scope));
    let FoundEffect { class, verb, target, scope, certainty, rule, span, .. } = found;
    let effect = Effect { class, verb, target, scope, certainty, reversible, severity, rule, span };
    if effects.len() < MAX_EFFECTS && !effects.contains(&effect) {
        effects.push(effect);
    }
}
