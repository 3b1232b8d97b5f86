//! Configuration: layers of YAML, environment and flags, resolved into plain policy values (rank 1).
//!
//! Lowest first: `config/default.yaml` (embedded, the only source of defaults), the user's file, the workspace's
//! `.piton.yaml` (which can only widen until the user trusts it), the environment, flags. Every value tells its origin.
//! A broken user file is an error with line and column; a broken workspace file is a warning and disarms nothing.

mod keys;
pub mod marks;
pub mod trust;
mod yaml;

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Code, Error, Result};
use crate::model::policy::Policy;
use keys::{KEYS, Key};
use yaml::Leaf;

/// The embedded defaults.
pub const DEFAULTS: &str = include_str!("../../config/default.yaml");

/// The workspace's own file.
pub const WORKSPACE_FILE: &str = ".piton.yaml";

/// Configuration files above this many bytes are refused.
const MAX_BYTES: u64 = 1 << 20;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// A file and the 1-based line.
    File(PathBuf, u64),
    /// An environment variable.
    Environment(String),
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path, line) => write!(f, "{}:{line}", path.display()),
            Origin::Environment(name) => write!(f, "${name}"),
            Origin::Flag => f.write_str("flag"),
        }
    }
}

/// One effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub key: String,
    pub value: Value,
    pub origin: Origin,
}

/// The texts that settings are resolved from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub user: Option<(PathBuf, String)>,
    pub workspace: Option<(PathBuf, String)>,
    /// Whether the user trusts this very content of the workspace's file.
    pub workspace_trusted: bool,
    /// Environment variables; only `PITON_…` ones that name a key count.
    pub environment: Vec<(String, String)>,
    /// `key`, `value` pairs.
    pub flags: Vec<(String, String)>,
}

/// The result: values in force, where they came from, and what was left aside.
#[derive(Clone, Debug)]
pub struct Effective {
    pub policy: Policy,
    pub settings: Vec<Setting>,
    pub warnings: Vec<String>,
}

impl Effective {
    /// Where the value of a key came from.
    pub fn origin(&self, key: &str) -> String {
        let found = self.settings.iter().find(|setting| setting.key == key);
        found.map_or_else(|| key.to_owned(), |setting| setting.origin.to_string())
    }
}

/// Resolves the layers. Pure.
///
/// # Errors
/// `bad-request` naming file, line, column and key for a broken user file, environment variable or flag.
pub fn resolve(sources: &Sources) -> Result<Effective> {
    let mut effective = defaults()?;
    if let Some((path, text)) = &sources.user {
        for leaf in yaml::leaves(text).map_err(|error| error.in_file(path))? {
            set(&mut effective, &leaf, Origin::File(path.clone(), leaf.line))
                .map_err(|why| bad(path, text, &leaf, &why))?;
        }
        effective.policy.sources.push(path.clone());
    }
    if let Some((path, text)) = &sources.workspace {
        widen(&mut effective, path, text, sources.workspace_trusted);
    }
    let environment = sources.environment.iter().filter_map(|(name, value)| {
        let key = KEYS.iter().find(|key| key.environment().as_deref() == Some(name))?;
        Some((key.name, value, Origin::Environment(name.clone())))
    });
    let flags = sources.flags.iter().map(|(key, value)| (key.as_str(), value, Origin::Flag));
    for (key, value, origin) in environment.chain(flags) {
        let leaf = Leaf { key: key.to_owned(), value: scalar(value), line: 0, column: 0 };
        set(&mut effective, &leaf, origin.clone()).map_err(|why| {
            Error::new(Code::BadRequest, format!("{origin}: `{key}` {why}")).field(key).hint("see docs/CONFIG.md")
        })?;
    }
    Ok(effective)
}

/// Reads the files and the environment, and resolves them. `home` is piton's own directory.
///
/// # Errors
/// As [`resolve`]; also for a user file that cannot be read.
pub fn load(workspace: Option<&Path>, home: &Path, flags: &[(String, String)]) -> Result<Effective> {
    let mut sources = Sources { flags: flags.to_vec(), environment: environment(), ..Sources::default() };
    if let Some(path) = user_file() {
        sources.user = read(&path)?.map(|text| (path, text));
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

/// The user's file: `$XDG_CONFIG_HOME/piton/config.yaml`, else `~/.config/piton/config.yaml`.
pub fn user_file() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".config")))?;
    Some(base.join("piton/config.yaml"))
}

fn environment() -> Vec<(String, String)> {
    let pairs =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    pairs.filter(|(name, _)| name.starts_with("PITON_")).collect()
}

/// The text of a configuration file; `None` when there is none.
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

/// A workspace's file counts only when it is a real file of that workspace: a link could name somebody else's.
fn workspace_text(path: &Path) -> Result<Option<String>> {
    match path.symlink_metadata() {
        Ok(facts) if facts.file_type().is_symlink() => {
            Err(Error::new(Code::BadRequest, "it is a symbolic link").hint("put a real file in its place"))
        }
        _ => read(path),
    }
}

fn defaults() -> Result<Effective> {
    let mut effective = Effective { policy: keys::blank_policy(), settings: Vec::new(), warnings: Vec::new() };
    let path = Path::new("config/default.yaml");
    for leaf in yaml::leaves(DEFAULTS).map_err(|error| error.in_file(path))? {
        set(&mut effective, &leaf, Origin::Default).map_err(|why| bad(path, DEFAULTS, &leaf, &why))?;
    }
    Ok(effective)
}

/// Applies one value; the error says what is wrong with it.
fn set(effective: &mut Effective, leaf: &Leaf, origin: Origin) -> Result<(), String> {
    let key = find(&leaf.key)?;
    (key.apply)(&mut effective.policy, &leaf.value)?;
    let setting = Setting { key: key.name.to_owned(), value: leaf.value.clone(), origin };
    match effective.settings.iter_mut().find(|known| known.key == key.name) {
        Some(known) => *known = setting,
        None => effective.settings.push(setting),
    }
    Ok(())
}

fn find(name: &str) -> Result<&'static Key, String> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Ok(key);
    }
    if keys::LATER.contains(&name) {
        return Err("is not in this version yet: store maintenance will bring it".to_owned());
    }
    if KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))) {
        return Err("holds keys of its own, and no value".to_owned());
    }
    let near = KEYS.iter().map(|key| (strsim(key.name, name), key.name)).min();
    match near.filter(|(distance, _)| *distance <= 3) {
        Some((_, near)) => Err(format!("is not a key; did you mean `{near}`?")),
        None => Err("is not a key".to_owned()),
    }
}

/// The workspace's layer: what widens counts, what narrows counts only when trusted, what is wrong is told.
fn widen(effective: &mut Effective, path: &Path, text: &str, trusted: bool) {
    let leaves = match yaml::leaves(text) {
        Ok(leaves) => leaves,
        Err(error) => {
            return effective.warnings.push(format!("left aside: {}", error.in_file(path).text()));
        }
    };
    for mut leaf in leaves {
        let mut tried = effective.clone();
        let applied = find(&leaf.key).and_then(|key| {
            leaf.value = key.joined(&effective.policy, &leaf.value);
            set(&mut tried, &leaf, Origin::File(path.to_owned(), leaf.line)).map(|()| key)
        });
        let place = format!("{}:{}:{}", path.display(), leaf.line, leaf.column);
        match applied {
            Err(why) => effective.warnings.push(format!("{place}: `{}` {why}; left aside", leaf.key)),
            Ok(key) if trusted || (key.widens)(&effective.policy, &tried.policy) => *effective = tried,
            Ok(_) => effective.warnings.push(format!(
                "{place}: `{}` would weaken the protection and counts only after `piton config trust`",
                leaf.key
            )),
        }
    }
    effective.policy.sources.push(path.to_owned());
}

/// A value of the environment or a flag: YAML scalars and flow lists.
fn scalar(text: &str) -> Value {
    yaml::value(text).unwrap_or_else(|| Value::String(text.to_owned()))
}

fn bad(path: &Path, text: &str, leaf: &Leaf, why: &str) -> Error {
    let excerpt = yaml::excerpt(text, leaf.line, leaf.column);
    let message = format!("{}:{}:{}: `{}` {why}\n{excerpt}", path.display(), leaf.line, leaf.column, leaf.key);
    Error::new(Code::BadRequest, message.trim_end()).field(leaf.key.clone()).line(leaf.line)
}

/// Edit distance of two short words.
fn strsim(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
