//! Reads `config/rules.yaml` and prints it as Rust (`src/classify/rules/embedded.rs` includes that), because reading it when a
//! program starts takes longer than all else a hook does. The dialect is the one that users' rules are read in.

use std::error::Error;
use std::fmt::{Debug, Write as _};
use std::path::Path;
use std::{env, fs};

#[allow(dead_code, reason = "the build reads and prints; what finds is the program's")]
#[path = "src/classify/rules/dialect.rs"]
mod dialect;
#[allow(dead_code, reason = "the build reads and prints; what finds is the program's")]
#[path = "src/classify/rules/index.rs"]
mod index;
#[allow(dead_code, reason = "the build reads and prints; what finds is the program's")]
#[path = "src/model"]
mod model {
    pub mod effect;
}
#[path = "src/classify/rules/text.rs"]
mod text;

const TABLE: &str = "config/rules.yaml";
const READERS: [&str; 4] = [
    "src/classify/rules/dialect.rs",
    "src/classify/rules/index.rs",
    "src/classify/rules/text.rs",
    "src/model/effect.rs",
];

fn main() -> Result<(), Box<dyn Error>> {
    for file in READERS.iter().chain([&TABLE, &"build.rs"]) {
        println!("cargo:rerun-if-changed={file}");
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
    Ok(())
}

fn list<T: Debug>(out: &mut String, name: &str, of: &str, items: &[T]) -> std::fmt::Result {
    writeln!(out, "static {name}: [{of}; {}] = {items:?};", items.len())
}
