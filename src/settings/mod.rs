//! Configuration: layers of YAML, environment and flags, resolved into plain policy values (rank 1).
//!
//! Lowest first: `config/default.yaml` (embedded by `build.rs`, the only source of defaults), the user's file, the workspace's
//! `.piton.yaml` (which can only widen until the user trusts it), the environment, flags. Every value tells its origin.
//!
//! *Invariant:* a change of the user's file that guards or keeps less is in force only after `piton config trust` (`narrowing`).
//!
//! *Invariant:* a mistake disarms nothing. It costs its own key, or part of a list or map. That keeps the value of the layers
//! below, or in a running process the value that was in force. The mistake is told, with file, line and column ([`Mistake`]).

mod apply;
pub mod change;
mod classes;
mod defaults;
mod edit;
mod effective;
mod foreign;
mod keys;
pub mod lookup;
pub mod marks;
mod measure;
mod mistake;
mod narrowing;
pub mod session;
pub mod trust;
mod yaml;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Code, Error, Result};
use apply::{apply, defaults_in_force, find, misspelt, set};
pub use effective::{Effective, Setting, SettingOrigin};
use keys::KEYS;
use mistake::Wrong;
pub use mistake::{Mistake, Waiting};
pub use narrowing::narrower;
use trust::UserRecord;
use yaml::{Leaf, Spot};

/// The workspace's own file.
pub const WORKSPACE_FILE: &str = ".piton.yaml";

/// Configuration files above this many bytes are refused.
const MAX_BYTES: u64 = 1 << 20;

/// The texts that settings are resolved from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The user's file: its path and text; `None` if there is none.
    pub user: Option<(PathBuf, String)>,
    /// A user's file that cannot be read, and why.
    pub unread: Option<(PathBuf, String)>,
    /// The place of the user's file, and the record of what was in force by it; `None` where nothing was recorded yet.
    pub recorded: Option<(PathBuf, String)>,
    /// The workspace's file: its path and text; `None` if there is none.
    pub workspace: Option<(PathBuf, String)>,
    /// True if the user trusts this very content of the workspace's file.
    pub workspace_trusted: bool,
    /// Environment variables; only `PITON_…` ones that name a key count.
    pub environment: Vec<(String, String)>,
    /// Returns true in a session of an agent: variables that guard or keep less do not count there.
    pub is_agents: Option<fn() -> bool>,
    /// `key`, `value` pairs.
    pub flags: Vec<(String, String)>,
    /// Holds the settings in force of a running process. They stay where the file has a mistake now.
    pub in_force: Vec<Setting>,
}

/// Resolves the layers. Pure.
///
/// # Errors
/// `bad-request` when the embedded defaults are broken; mistakes of the layers are part of the result.
pub fn resolve(sources: &Sources) -> Result<Effective> {
    let mut effective = defaults_in_force()?;
    effective.is_running = !sources.in_force.is_empty();
    if let Some((path, text)) = &sources.user {
        own_layer(&mut effective, path, text, &sources.in_force);
        effective.policy.sources.push(path.clone());
    }
    if let Some((path, why)) = &sources.unread {
        effective.mistakes.push(Mistake::unread(path, why.clone()));
        stay(&mut effective, path, &sources.in_force, |_| true);
    }
    effective.is_sound = effective.mistakes.is_empty();
    let user = sources.user.as_ref().or(sources.unread.as_ref()).or(sources.recorded.as_ref()).map(|(path, _)| path);
    if let Some(path) = user {
        if let Some((_, record)) = &sources.recorded {
            narrowing::keep_recorded(&mut effective, path, record)?;
        }
        effective.by_user = narrowing::record(&effective.settings, path);
    }
    if let Some((path, text)) = &sources.workspace {
        widen(&mut effective, (path, text), sources);
    }
    // A variable that is empty counts as unset.
    let set_variables = || sources.environment.iter().filter(|(_, value)| !value.is_empty());
    let environment = set_variables().filter_map(|(name, value)| {
        let key = KEYS.iter().find(|key| key.environment().as_deref() == Some(name))?;
        Some((key.name, value, SettingOrigin::Environment(name.clone())))
    });
    let flags = sources.flags.iter().map(|(key, value)| (key.as_str(), value, SettingOrigin::Flag));
    for (key, value, origin) in environment.chain(flags) {
        let leaf = Leaf { key: key.to_owned(), value: scalar(value), spot: Spot::default() };
        if let Some(is_agents) = sources.is_agents.filter(|_| matches!(origin, SettingOrigin::Environment(_))) {
            let mut tried = effective.clone();
            apply(&mut tried, &leaf, &origin, None);
            if let Ok(key) = find(key)
                && !key.keeps(&effective.policy, &tried.policy)
                && is_agents()
            {
                let why = "would guard or keep less";
                effective.mistakes.push(narrowing::waiting(origin, key, why, Waiting::OutsideSessions));
                continue;
            }
        }
        let wrong = apply(&mut effective, &leaf, &origin, None);
        effective.mistakes.extend(wrong.into_iter().map(|wrong| Mistake::outside(origin.clone(), wrong)));
    }
    let misspelt = set_variables().filter_map(|(name, _)| misspelt(name));
    effective.mistakes.extend(misspelt);
    let mut mistakes = std::mem::take(&mut effective.mistakes);
    mistakes.iter_mut().for_each(|mistake| mistake.settle(&effective, effective.is_running));
    effective.mistakes = mistakes;
    let without = classes::without_collisions(&effective.policy);
    effective.warnings.extend(without);
    Ok(effective)
}

/// Reads the files and the environment, and resolves them. `home` is piton's own directory.
///
/// # Errors
/// As [`resolve`].
pub fn load(workspace: Option<&Path>, home: &Path, flags: &[(String, String)]) -> Result<Effective> {
    load_over(workspace, home, flags, &[])
}

/// As [`load`], in a process that runs: the previous settings stay in force where a mistake stands now.
///
/// # Errors
/// As [`resolve`].
pub fn load_over(
    workspace: Option<&Path>,
    home: &Path,
    flags: &[(String, String)],
    in_force: &[Setting],
) -> Result<Effective> {
    let (flags, in_force) = (flags.to_vec(), in_force.to_vec());
    let mut sources = Sources { flags, in_force, environment: environment(), ..Sources::default() };
    sources.is_agents = Some(|| session::since().is_some());
    let user = user_file();
    if let Some(path) = user.clone() {
        match read(&path) {
            Ok(text) => sources.user = text.map(|text| (path, text)),
            Err(error) => sources.unread = Some((path, error.message().to_owned())),
        }
    }
    let recorded = trust::recorded(home);
    // In a process that runs, the file was read before an agent wrote it.
    let known = recorded.as_ref().map(|known| known.values.clone()).or_else(|| {
        let path = user.as_ref().filter(|_| !sources.in_force.is_empty())?;
        Some(narrowing::record(&sources.in_force, path))
    });
    sources.recorded = user.clone().and_then(|path| match &known {
        Some(record) => Some((path, record.clone())),
        // At first sight the file is in force as it is, unless an agent may have written it in this session.
        None if sources.user.is_none() => None,
        None => {
            session::since().filter(|since| !trust::is_older(&path, *since)).map(|_| (path, trust::NOTHING.to_owned()))
        }
    });
    let mut warnings = Vec::new();
    if let Some(path) = workspace.map(|dir| dir.join(WORKSPACE_FILE)) {
        match workspace_text(&path) {
            Ok(Some(text)) => {
                sources.workspace_trusted = trust::is_trusted(home, &path, text.as_bytes());
                sources.workspace = Some((path, text));
            }
            Ok(None) => {}
            Err(error) => warnings.push(format!("{} is ignored:  {}", path.display(), error.text())),
        }
    }
    let mut effective = resolve(&sources)?;
    effective.warnings.extend(warnings);
    // Another file (another `XDG_CONFIG_HOME`) is compared with the record too, and does not replace it. Nor does one that is gone,
    // perhaps for a moment.
    let is_of_file = |known: &UserRecord| {
        Some(&known.file) == user.as_ref() && (sources.user.is_some() || known.values == trust::NOTHING)
    };
    let may_record = effective.is_sound && recorded.as_ref().is_none_or(is_of_file);
    if let Some(file) = user.filter(|_| may_record) {
        let record = UserRecord { values: effective.by_user.clone(), file };
        if recorded.as_ref() != Some(&record) {
            trust::record(home, recorded.as_ref(), &record);
        }
    }
    Ok(effective)
}

/// Returns true if a process that outlives this one, and whose parent is another one soon, has to be marked as one of this agent's
/// session: it has variables of settings. Records the settings at first sight.
pub fn must_mark(home: &Path) -> bool {
    if trust::recorded(home).is_none() {
        // Loading records them. Without them, that process reports what is wrong.
        let _ = load(None, home, &[]);
    }
    let is_set = |name: String| std::env::var_os(name).is_some();
    KEYS.iter().filter_map(keys::Key::environment).any(is_set) && session::since().is_some()
}

/// Returns the record of the user's file as it is written, with the changes that wait.
///
/// # Errors
/// `bad-request` for a file with a mistake: the record would lack what is in force in its place.
pub fn as_written() -> Result<String> {
    let Some(path) = user_file() else { return Ok(trust::NOTHING.to_owned()) };
    let effective = resolve(&Sources { user: read(&path)?.map(|text| (path, text)), ..Sources::default() })?;
    let is_harmful = |mistake: &&Mistake| mistake.key.is_none() || KEYS.iter().any(|key| mistake.may_concern(key.name));
    match effective.mistakes.iter().find(is_harmful) {
        Some(mistake) => Err(mistake.error()),
        None => Ok(effective.by_user),
    }
}

/// Returns the user's file: `$XDG_CONFIG_HOME/piton/config.yaml`, else `~/.config/piton/config.yaml`.
pub fn user_file() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".config")))?;
    Some(base.join("piton/config.yaml"))
}

fn environment() -> Vec<(String, String)> {
    // A value that is no text is a mistake, and is to be told as one.
    let pairs = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
    pairs.filter(|(name, _)| name.starts_with("PITON_")).collect()
}

/// Returns the text of a configuration file; `None` when there is none.
fn read(path: &Path) -> Result<Option<String>> {
    let facts = match path.metadata() {
        Ok(facts) => facts,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(Error::io(error, "reading the status of", path)),
    };
    let refuse = |why: &str| Err(Error::new(Code::BadRequest, format!("the configuration file {why}")).path(path));
    if !facts.is_file() {
        return refuse("is not a file");
    }
    if facts.len() > MAX_BYTES {
        return refuse("is larger than 1 MiB");
    }
    match std::fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(Some(text)),
        Ok(Err(_)) => refuse("is not UTF-8"),
        Err(error) => Err(Error::io(error, "reading", path)),
    }
}

/// Reads a workspace's file, if it is a real file of that workspace: a link could lead to a foreign one.
fn workspace_text(path: &Path) -> Result<Option<String>> {
    match path.symlink_metadata() {
        Ok(facts) if facts.file_type().is_symlink() => {
            Err(Error::new(Code::BadRequest, "the file is a symbolic link")
                .hint("replace the link with a regular file"))
        }
        _ => read(path),
    }
}

/// The user's layer: what is sound counts; where a mistake stands, what was in force does.
fn own_layer(effective: &mut Effective, path: &Path, text: &str, in_force: &[Setting]) {
    let leaves = match yaml::leaves(text) {
        Ok(leaves) => leaves,
        Err(broken) => {
            effective.mistakes.push(Mistake::broken(path, broken));
            return stay(effective, path, in_force, |_| true);
        }
    };
    let mut wrong = Vec::new();
    for leaf in leaves {
        let before = mistake::in_force(in_force, &leaf.key, path).map(|setting| &setting.value);
        wrong.extend(apply(effective, &leaf, &SettingOrigin::File(path.to_owned(), leaf.spot.line), before));
    }
    let is_set = |effective: &Effective, key: &str| mistake::in_force(&effective.settings, key, path).is_some();
    let lost: Vec<&str> = wrong.iter().filter_map(|wrong| wrong.meant).filter(|key| !is_set(effective, key)).collect();
    stay(effective, path, in_force, |key| lost.contains(&key));
    effective.mistakes.extend(wrong.into_iter().map(|wrong| Mistake::in_file(path, text, wrong)));
}

/// Applies what was in force by this file.
fn stay(effective: &mut Effective, path: &Path, in_force: &[Setting], counts: impl Fn(&str) -> bool) {
    for key in KEYS.iter().filter(|key| counts(key.name)) {
        if let Some(setting) = mistake::in_force(in_force, key.name, path) {
            // It was applied before, and still can be.
            let _ = set(effective, key, &setting.value, &setting.origin);
        }
    }
}

/// Reads the workspace's layer. Settings that widen the protection count; those that narrow it count only if trusted;
/// mistakes are reported.
fn widen(effective: &mut Effective, (path, text): (&Path, &str), sources: &Sources) {
    let (trusted, in_force) = (sources.workspace_trusted, &sources.in_force);
    let leaves = match yaml::leaves(text) {
        Ok(leaves) => leaves,
        Err(error) => {
            effective.warnings.push(format!("ignored: {}", error.in_file(path).text()));
            let mut tried = effective.clone();
            stay(&mut tried, path, in_force, |_| true);
            if KEYS.iter().all(|key| key.is_workspaces(&effective.policy, &tried.policy)) {
                *effective = tried;
            }
            return;
        }
    };
    for mut leaf in leaves {
        let mut tried = effective.clone();
        if let Ok(key) = find(&leaf.key) {
            leaf.value = key.joined(&effective.policy, &leaf.value);
        }
        let wrong = apply(&mut tried, &leaf, &SettingOrigin::File(path.to_owned(), leaf.spot.line), None);
        let told = wrong.iter().map(|wrong| {
            let Wrong { key, why, line, column, hint, .. } = wrong;
            let hint = hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
            format!("{}:{line}:{column}: `{key}` {why}{hint}; ignored", path.display())
        });
        effective.warnings.extend(told);
        tried.warnings.clone_from(&effective.warnings);
        let place = format!("{}:{}:{}", path.display(), leaf.spot.line, leaf.spot.column);
        match find(&leaf.key) {
            Ok(key) if trusted || key.is_workspaces(&effective.policy, &tried.policy) => *effective = tried,
            Ok(_) => {
                effective.warnings.push(format!(
                    "{place}: `{}` would weaken the protection; it takes effect only after `piton config trust`",
                    leaf.key
                ));
                effective.waiting.push(leaf.key);
            }
            Err(_) => {}
        }
    }
    effective.policy.sources.push(path.to_owned());
}

/// Returns a value of the environment or a flag: YAML scalars and flow lists.
fn scalar(text: &str) -> Value {
    yaml::value(text).unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests;
