//! Configuration: layers of YAML, environment and flags, resolved into plain policy values (rank 1).
//!
//! Lowest first: `config/default.yaml` (embedded by `build.rs`, the only source of defaults), the user's file, the workspace's
//! `.piton.yaml` (which can only widen until the user trusts it), the environment, flags. Every value tells its origin.
//!
//! *Invariant:* a mistake disarms nothing. It costs its own key, or part of a list or map. That keeps the value of the layers
//! below, or in a running process the value that was in force. The mistake is told, with file, line and column ([`Mistake`]).

mod classes;
mod defaults;
mod keys;
pub mod marks;
mod mistake;
pub mod trust;
mod yaml;

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Code, Error, Result};
use crate::model::policy::Policy;
use keys::{KEYS, Key};
pub use mistake::Mistake;
use mistake::Wrong;
use yaml::{Leaf, Spot};

/// The workspace's own file.
pub const WORKSPACE_FILE: &str = ".piton.yaml";

/// Configuration files above this many bytes are refused.
const MAX_BYTES: u64 = 1 << 20;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// The defaults that come with piton (`config/default.yaml`).
    Default,
    /// A file and the 1-based line.
    File(PathBuf, u64),
    /// An environment variable.
    Environment(String),
    /// A flag of the command line.
    Flag,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Default => f.write_str("default"),
            SettingOrigin::File(path, line) => write!(f, "{}:{line}", path.display()),
            SettingOrigin::Environment(name) => write!(f, "${name}"),
            SettingOrigin::Flag => f.write_str("flag"),
        }
    }
}

/// One effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key with its sections: `limits.file_mb`.
    pub key: String,
    /// The value as JSON, in the form that the file would have it.
    pub value: Value,
    /// The layer that the value was taken from.
    pub origin: SettingOrigin,
}

/// The texts that settings are resolved from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The user's file: its path and text; `None` if there is none.
    pub user: Option<(PathBuf, String)>,
    /// A user's file that cannot be read, and why.
    pub unread: Option<(PathBuf, String)>,
    /// The workspace's file: its path and text; `None` if there is none.
    pub workspace: Option<(PathBuf, String)>,
    /// True if the user trusts this very content of the workspace's file.
    pub workspace_trusted: bool,
    /// Environment variables; only `PITON_…` ones that name a key count.
    pub environment: Vec<(String, String)>,
    /// `key`, `value` pairs.
    pub flags: Vec<(String, String)>,
    /// Holds the settings in force of a running process. They stay where the file has a mistake now.
    pub in_force: Vec<Setting>,
}

/// The result: values in force, where they came from, and what was left aside.
#[derive(Clone, Debug)]
pub struct Effective {
    /// The values that are in force.
    pub policy: Policy,
    /// The values one by one with their origins; each key at most once.
    pub settings: Vec<Setting>,
    /// Lists the settings of the workspace's file that were left aside, and those that take the effect of another one away.
    pub warnings: Vec<String>,
    /// The mistakes in the user's file, the environment and flags.
    pub mistakes: Vec<Mistake>,
    /// The place of the user's rules.
    rules: Spot,
    is_running: bool,
}

impl Effective {
    /// Returns where the value of a key came from.
    pub fn origin(&self, key: &str) -> String {
        let found = self.settings.iter().find(|setting| setting.key == key);
        found.map_or_else(|| key.to_owned(), |setting| setting.origin.to_string())
    }

    /// Returns all that is wrong, as sentences.
    pub fn faults(&self) -> Vec<String> {
        self.mistakes.iter().map(Mistake::text).chain(self.warnings.iter().cloned()).collect()
    }

    /// Notes that a part of the user's rules cannot be, and whether the one that was in force stays. `path` leads to it.
    pub fn drop_rule(&mut self, path: &[String], why: String, stays: bool) {
        let setting = self.settings.iter().find(|setting| setting.key == "rules");
        let origin = setting.map_or(SettingOrigin::Default, |setting| setting.origin.clone());
        let spot = self.rules.at(path.iter().map(String::as_str));
        let origin = match origin {
            SettingOrigin::File(path, line) => SettingOrigin::File(path, if spot.line > 0 { spot.line } else { line }),
            other => other,
        };
        let wrong = Wrong { key: "rules".to_owned(), meant: None, why, line: spot.line, column: spot.column };
        let mut mistake = Mistake { column: spot.column, ..Mistake::outside(origin, wrong) };
        mistake.hint = Some("docs/CLASSIFY.md describes the dialect");
        mistake.instead = if stays { "the one that was in force stays" } else { "it is passed over" }.to_owned();
        self.mistakes.push(mistake);
    }

    /// Takes what is sound of the user's rules for what was set.
    pub fn keep_rules(&mut self, sound: String) {
        if let Some(setting) = self.settings.iter_mut().find(|setting| setting.key == "rules") {
            setting.value = serde_json::from_str(&sound).unwrap_or_default();
        }
        self.policy.rules_yaml = sound;
    }
}

/// Resolves the layers. Pure.
///
/// # Errors
/// `bad-request` when the embedded defaults are broken; mistakes of the layers are part of the result.
pub fn resolve(sources: &Sources) -> Result<Effective> {
    let mut effective = defaults()?;
    effective.is_running = !sources.in_force.is_empty();
    if let Some((path, text)) = &sources.user {
        own_layer(&mut effective, path, text, &sources.in_force);
        effective.policy.sources.push(path.clone());
    }
    if let Some((path, why)) = &sources.unread {
        effective.mistakes.push(Mistake::unread(path, why.clone()));
        stay(&mut effective, path, &sources.in_force, |_| true);
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

/// As [`load`], in a process that runs: what was in force stays where a mistake stands now.
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
    if let Some(path) = user_file() {
        match read(&path) {
            Ok(text) => sources.user = text.map(|text| (path, text)),
            Err(error) => sources.unread = Some((path, error.message().to_owned())),
        }
    }
    let mut warnings = Vec::new();
    if let Some(path) = workspace.map(|dir| dir.join(WORKSPACE_FILE)) {
        match workspace_text(&path) {
            Ok(Some(text)) => {
                sources.workspace_trusted = trust::is_trusted(home, &path, text.as_bytes());
                sources.workspace = Some((path, text));
            }
            Ok(None) => {}
            Err(error) => warnings.push(format!("{} is left aside: {}", path.display(), error.text())),
        }
    }
    let mut effective = resolve(&sources)?;
    effective.warnings.extend(warnings);
    Ok(effective)
}

/// Returns the first key by which the second of two settings guards or keeps less than the first.
pub fn narrower(kept: &Effective, other: &Effective) -> Option<&'static str> {
    let number = |of: &Effective, key: &Key| of.settings.iter().find(|set| set.key == key.name)?.value.as_f64();
    let is_limit = |key: &Key| {
        let sections = ["limits.", "ignored."];
        key.name == "retention.total_mb" || sections.iter().any(|section| key.name.starts_with(section))
    };
    // A workspace's file may not raise a limit of the whole machine, but a larger one takes nothing away.
    let is_less = |key: &&Key| match number(kept, key).zip(number(other, key)).filter(|_| is_limit(key)) {
        Some((old, new)) => new < old,
        None => key.name != "backup" && !(key.widens)(&kept.policy, &other.policy),
    };
    KEYS.iter().find(is_less).map(|key| key.name)
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
            Err(Error::new(Code::BadRequest, "it is a symbolic link").hint("put a real file in its place"))
        }
        _ => read(path),
    }
}

fn defaults() -> Result<Effective> {
    let mut effective = Effective {
        policy: keys::blank_policy(),
        settings: Vec::new(),
        warnings: Vec::new(),
        mistakes: Vec::new(),
        rules: Spot::default(),
        is_running: false,
    };
    for (key, value) in defaults::DEFAULTS {
        let value = serde_json::from_str(value)
            .map_err(|error| Error::new(Code::Internal, "reading piton's own defaults").caused_by(error))?;
        let leaf = Leaf { key: (*key).to_owned(), value, spot: Spot::default() };
        if let Some(wrong) = apply(&mut effective, &leaf, &SettingOrigin::Default, None).into_iter().next() {
            return Err(Mistake::outside(SettingOrigin::Default, wrong).error());
        }
    }
    Ok(effective)
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

/// Applies one value as far as it is sound; returns what is wrong with the rest. `before` is the layer's value that was in force.
fn apply(effective: &mut Effective, leaf: &Leaf, origin: &SettingOrigin, before: Option<&Value>) -> Vec<Wrong> {
    let key = match find(&leaf.key) {
        Ok(key) => key,
        Err((why, meant)) => return vec![Wrong::at(leaf, &[], leaf.key.clone(), meant, why)],
    };
    if key.name == "rules" {
        effective.rules = leaf.spot.clone();
    }
    let Err(why) = set(effective, key, &leaf.value, origin) else { return Vec::new() };
    if key.in_parts() {
        let (value, wrong) = mistake::sound(key, leaf, before);
        if !wrong.is_empty() && set(effective, key, &value, origin).is_ok() {
            return wrong;
        }
    }
    vec![Wrong::at(leaf, &[], leaf.key.clone(), Some(key.name), why)]
}

/// Sets one value; the error says what is wrong with it, and nothing has changed then.
fn set(effective: &mut Effective, key: &Key, value: &Value, origin: &SettingOrigin) -> Result<(), String> {
    (key.apply)(&mut effective.policy, value)?;
    let setting = Setting { key: key.name.to_owned(), value: value.clone(), origin: origin.clone() };
    match effective.settings.iter_mut().find(|known| known.key == key.name) {
        Some(known) => *known = setting,
        None => effective.settings.push(setting),
    }
    Ok(())
}

/// Returns the key of that name, or what is wrong with the name and which key may be meant.
fn find(name: &str) -> Result<&'static Key, (String, Option<&'static str>)> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Ok(key);
    }
    if KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))) {
        return Err(("holds keys of its own, and no value".to_owned(), None));
    }
    if let Some(foreign) = keys::foreign(name) {
        let (tool, ours) = (foreign.tool, foreign.ours);
        return Err((format!("is a key of {tool}; ours is `{ours}`"), Some(ours)));
    }
    match nearest(name, KEYS.iter().map(|key| key.name)) {
        Some(near) => Err((format!("is not a key; did you mean `{near}`?"), Some(near))),
        None => Err(("is not a key".to_owned(), None)),
    }
}

/// Returns a variable whose name is almost one of piton's; others may belong to other programs.
fn misspelt(name: &str) -> Option<Mistake> {
    let names = || KEYS.iter().filter_map(|key| Some((key, key.environment()?)));
    if names().any(|(_, known)| known == name) {
        return None;
    }
    // All of them begin alike: what is misspelt is what follows.
    let rest = name.strip_prefix("PITON_")?;
    let known: Vec<(&str, String)> =
        names().filter_map(|(key, known)| Some((key.name, known.strip_prefix("PITON_")?.to_owned()))).collect();
    let near = nearest(rest, known.iter().map(|(_, known)| known.as_str()))?;
    let key = known.iter().find(|(_, known)| known == near).map(|(key, _)| *key);
    let why = format!("is not read; did you mean `PITON_{near}`?");
    let wrong = Wrong { key: name.to_owned(), meant: key, why, line: 0, column: 0 };
    Some(Mistake::outside(SettingOrigin::Environment(name.to_owned()), wrong))
}

/// Reads the workspace's layer. Settings that widen the protection count; those that narrow it count only if trusted;
/// mistakes are reported.
fn widen(effective: &mut Effective, (path, text): (&Path, &str), sources: &Sources) {
    let (trusted, in_force) = (sources.workspace_trusted, &sources.in_force);
    let leaves = match yaml::leaves(text) {
        Ok(leaves) => leaves,
        Err(error) => {
            effective.warnings.push(format!("left aside: {}", error.in_file(path).text()));
            let mut tried = effective.clone();
            stay(&mut tried, path, in_force, |_| true);
            if KEYS.iter().all(|key| (key.widens)(&effective.policy, &tried.policy)) {
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
            let Wrong { key, why, line, column, .. } = wrong;
            format!("{}:{line}:{column}: `{key}` {why}; left aside", path.display())
        });
        effective.warnings.extend(told);
        tried.warnings.clone_from(&effective.warnings);
        let place = format!("{}:{}:{}", path.display(), leaf.spot.line, leaf.spot.column);
        match find(&leaf.key) {
            Ok(key) if trusted || (key.widens)(&effective.policy, &tried.policy) => *effective = tried,
            Ok(_) => effective.warnings.push(format!(
                "{place}: `{}` would weaken the protection and counts only after `piton config trust`",
                leaf.key
            )),
            Err(_) => {}
        }
    }
    effective.policy.sources.push(path.to_owned());
}

/// Returns a value of the environment or a flag: YAML scalars and flow lists.
fn scalar(text: &str) -> Value {
    yaml::value(text).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Returns the word that is probably meant: few of its letters differ, measured by its length.
fn nearest<'w>(name: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let most = |word: &str| ((word.len().max(name.len()) + 2) / 4).min(3);
    // Words are at least as many edits apart as their lengths differ.
    let near =
        words.filter(|word| word.len().abs_diff(name.len()) <= most(word)).map(|word| (distance(word, name), word));
    near.filter(|(distance, word)| *distance <= most(word)).min().map(|(_, word)| word)
}

/// Edit distance of two short words; two letters that changed places are one edit.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // The row before the last one, the last one, and the one that is made.
    let (mut older, mut last) = (Vec::new(), (0..=b.len()).collect::<Vec<usize>>());
    for i in 1..=a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i);
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(older[j - 2] + 1);
            }
            row.push(least);
        }
        older = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests;
