//! Makes the small program that git calls as a hook (`hooks/git/hook.rs`). Reads `config/rules.yaml`, `config/words.yaml`, `config/default.yaml` and `config/directions.yaml` and prints them as Rust, because reading them when a
//! program starts takes longer than all else a hook does. `src/classify/rules/embedded.rs`, `src/model/words.rs` and
//! `src/settings/defaults.rs` include the output. The dialect of the rules is the one in which users write theirs.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fmt::{Debug, Write as _};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

#[allow(dead_code, unreachable_pub, reason = "the build reads and prints; what finds is the program's")]
#[path = "src/classify/rules/dialect.rs"]
mod dialect;
#[allow(dead_code, unreachable_pub, reason = "the build reads and prints; what finds is the program's")]
#[path = "src/classify/rules/index.rs"]
mod index;
#[allow(dead_code, unreachable_pub, reason = "the build reads and prints; what finds is the program's")]
#[path = "src/model"]
mod model {
    pub(crate) mod effect;
    pub(crate) mod loss;
}
#[allow(unreachable_pub, reason = "other crates reach it in the program")]
#[path = "src/classify/rules/text.rs"]
mod text;

const TABLE: &str = "config/rules.yaml";
const WORDS: &str = "config/words.yaml";
const DEFAULTS: &str = "config/default.yaml";
const DIRECTIONS: &str = "config/directions.yaml";
const READERS: [&str; 4] = [
    "src/classify/rules/dialect.rs",
    "src/classify/rules/index.rs",
    "src/classify/rules/text.rs",
    "src/model/effect.rs",
];

/// The small program that git calls as a hook, and what it includes.
const GIT_HOOK: [&str; 3] = ["hooks/git/hook.rs", "hooks/git/system.rs", "src/git/quiet.rs"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rustc-env=PITON_VERSION={}", version());
    for file in READERS.iter().chain(&GIT_HOOK).chain([&TABLE, &WORDS, &DEFAULTS, &DIRECTIONS, &"build.rs"]) {
        println!("cargo:rerun-if-changed={file}");
    }
    if env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|system| system == "linux") {
        // At a place of its own choice, the loader would write 38,000 addresses before the first line of it runs.
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    let yaml = fs::read_to_string(TABLE)?;
    let document: dialect::Document =
        serde_saphyr::from_str(&yaml).map_err(|error| format!("{TABLE}: {}", error.without_snippet()))?;
    let index = index::Index::new(&document);
    if !document.disable.is_empty() {
        return Err(format!("{TABLE}: only users disable rules").into());
    }
    let mut rules: Vec<dialect::RuleSpec> = document.rules.into_iter().map(|rule| rule.value).collect();
    for rule in &mut rules {
        // Examples are for the tests, which read the document itself.
        (rule.matches, rule.misses) = Default::default();
    }
    let calls: Vec<dialect::CallSpec> = document.calls.into_iter().map(|call| call.value).collect();
    let mut out = String::new();
    list(&mut out, "PROGRAMS", "ProgramSpec", &document.programs)?;
    list(&mut out, "WRAPPERS", "WrapperSpec", &document.wrappers)?;
    list(&mut out, "REMOTES", "RemoteSpec", &document.remotes)?;
    list(&mut out, "DATABASES", "DatabaseSpec", &document.databases)?;
    list(&mut out, "INTERPRETERS", "InterpreterSpec", &document.interpreters)?;
    list(&mut out, "CALLS", "CallSpec", &calls)?;
    list(&mut out, "RULES", "RuleSpec", &rules)?;
    list(&mut out, "NAMES", "Name", &index.names)?;
    list(&mut out, "PREFIXES", "Prefix", &index.prefixes)?;
    list(&mut out, "SLOTS", "u16", &index.slots)?;
    let dir = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(Path::new(&dir).join("rules.rs"), out)?;
    fs::write(Path::new(&dir).join("words.rs"), words()?)?;
    fs::write(Path::new(&dir).join("defaults.rs"), defaults()?)?;
    git_hook(&Path::new(&dir).join("git-hook"))
}

/// Returns the version, in a release build from a git checkout with the commit and its date. A debug build has the version alone:
/// otherwise each commit would compile the whole program again.
fn version() -> String {
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    match is_release.then(commit).flatten() {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    }
}

/// Returns the id and the date of the commit that is checked out here; `None` where this directory is not the top of a repository.
fn commit() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let here = fs::canonicalize(env::var_os("CARGO_MANIFEST_DIR")?).ok()?;
    if fs::canonicalize(top).ok()? != here {
        return None;
    }
    let head = git(&["rev-parse", "--git-path", "HEAD"])?;
    let branch = git(&["symbolic-ref", "-q", "HEAD"]).and_then(|name| git(&["rev-parse", "--git-path", &name]));
    let packed = git(&["rev-parse", "--git-path", "packed-refs"]);
    // cargo would run the build each time for a file that does not exist.
    for file in [Some(head), branch, packed].into_iter().flatten().filter(|file| Path::new(file).exists()) {
        println!("cargo:rerun-if-changed={file}");
    }
    git(&["log", "-1", "--abbrev=10", "--format=%h %cs"])
}

/// Returns what git prints; `None` without git, or if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    // Without git, the version has no commit.
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Makes the small program that git calls as a hook. Where it cannot be made, the file is empty, and a script does its work.
fn git_hook(out: &Path) -> Result<(), Box<dyn Error>> {
    fs::write(out, "")?;
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") != "linux" || !matches!(target("ARCH").as_str(), "x86_64" | "aarch64") {
        return Ok(());
    }
    let mut compiler = Command::new(env::var_os("RUSTC").ok_or("cargo sets RUSTC")?);
    compiler.args(["--edition=2024", "--crate-type=bin", "--crate-name=git_hook", GIT_HOOK[0], "-o"]).arg(out);
    compiler.args(["--target", &env::var("TARGET")?, "-Copt-level=s", "-Cpanic=abort", "-Cstrip=symbols"]);
    compiler.args(["-Crelocation-model=static", "-Clink-args=-nostartfiles -nostdlib -static -no-pie"]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("-Clinker=");
        option.push(linker);
        compiler.arg(option);
    }
    let made = compiler.output()?;
    if !made.status.success() {
        fs::write(out, "")?;
        let says = String::from_utf8_lossy(&made.stderr).into_owned();
        println!(
            "cargo:warning=git's hooks will be scripts, which are slower: {}",
            says.lines().next().unwrap_or_default()
        );
    }
    Ok(())
}

/// A list of `config/words.yaml`: words, or rows.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    about: String,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    rows: Vec<(String, String, String)>,
}

/// Prints the lists of words as constants.
fn words() -> Result<String, Box<dyn Error>> {
    let yaml = fs::read_to_string(WORDS)?;
    let lists: BTreeMap<String, List> =
        serde_saphyr::from_str(&yaml).map_err(|error| format!("{WORDS}: {}", error.without_snippet()))?;
    let mut out = String::new();
    for (name, list) in lists {
        let (name, about) = (name.to_uppercase(), list.about);
        let words: Vec<&str> = list.words.iter().flat_map(|line| line.split_whitespace()).collect();
        match (words.is_empty(), list.rows.is_empty()) {
            (false, true) => writeln!(out, "/// {about}\npub const {name}: &[&str] = &{words:?};")?,
            (true, false) => writeln!(out, "/// {about}\npub const {name}: &[(&str, &str, &str)] = &{:?};", list.rows)?,
            _ => return Err(format!("{WORDS}: {name} has words or rows, and one of both").into()),
        }
    }
    Ok(out)
}

/// A section of `config/default.yaml`, in the order of the file.
struct Section(Vec<(String, Setting)>);

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Setting {
    Section(Section),
    Value(Value),
}

struct SectionVisitor;

impl<'de> Visitor<'de> for SectionVisitor {
    type Value = Section;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a section of settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Section, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<String>()? {
            // Its value is a map and no section.
            let setting = if key == "policy" { Setting::Value(access.next_value()?) } else { access.next_value()? };
            entries.push((key, setting));
        }
        Ok(Section(entries))
    }
}

impl<'de> Deserialize<'de> for Section {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Section, D::Error> {
        deserializer.deserialize_map(SectionVisitor)
    }
}

impl Section {
    /// Adds the settings with their dotted keys, and their values as JSON.
    fn print(&self, prefix: &str, out: &mut Vec<(String, String)>) {
        for (key, setting) in &self.0 {
            match setting {
                Setting::Section(section) => section.print(&format!("{prefix}{key}."), out),
                Setting::Value(value) => out.push((format!("{prefix}{key}"), value.to_string())),
            }
        }
    }
}

/// Reads dotted keys and their values as JSON.
fn settings(file: &str) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let yaml = fs::read_to_string(file)?;
    let sections: Section =
        serde_saphyr::from_str(&yaml).map_err(|error| format!("{file}: {}", error.without_snippet()))?;
    let mut settings = Vec::new();
    sections.print("", &mut settings);
    Ok(settings)
}

/// Prints the default settings and the directions of their keys as constants.
fn defaults() -> Result<String, Box<dyn Error>> {
    let mut out = format!("pub(super) const DEFAULTS: &[(&str, &str)] = &{:?};\n", settings(DEFAULTS)?);
    out.push_str("pub(super) const DIRECTIONS: &[KeyDirection] = &[");
    for (key, direction) in settings(DIRECTIONS)? {
        let direction = match direction.as_str() {
            "\"more\"" => "More",
            "\"less\"" => "Less",
            "\"free\"" => "Free",
            other => return Err(format!("{DIRECTIONS}: `{key}` wants more, less or free, not {other}").into()),
        };
        write!(out, "KeyDirection {{ key: {key:?}, direction: ValueDirection::{direction} }}, ")?;
    }
    out.push_str("];\n");
    Ok(out)
}

fn list<T: Debug>(out: &mut String, name: &str, of: &str, items: &[T]) -> std::fmt::Result {
    writeln!(out, "static {name}: [{of}; {}] = {items:?};", items.len())
}
