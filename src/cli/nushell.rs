//! Completions for Nushell, which the engine of completions does not know: a completer for commands of the system, as
//! Nushell's configuration has one (`completions.external.completer`).

use std::ffi::OsString;
use std::io::{Error, Result, Write};
use std::path::Path;

use clap::Command;
use clap_complete::engine;
use clap_complete::env::EnvCompleter;
use serde_json::json;

/// Completes lines of Nushell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nushell;

impl EnvCompleter for Nushell {
    fn name(&self) -> &'static str {
        "nushell"
    }

    fn is(&self, name: &str) -> bool {
        name == "nushell" || name == "nu"
    }

    /// Writes the script. It keeps the completer that was set before it for all other commands.
    fn write_registration(
        &self,
        var: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> Result<()> {
        let (bin, completer) = (quoted(bin), quoted(completer));
        writeln!(
            buf,
            "let piton_completer_before = $env.config?.completions?.external?.completer?\n\
             $env.config.completions.external.enable = true\n\
             $env.config.completions.external.completer = {{|spans|\n    \
                 if $spans.0 == {bin} {{\n        \
                     with-env {{ {var}: \"nushell\" }} {{ run-external {completer} \"--\" ...$spans }} | from json\n    \
                 }} else if $piton_completer_before != null {{\n        \
                     do $piton_completer_before $spans\n    \
                 }}\n\
             }}"
        )
    }

    /// Writes a JSON list of candidates, with what a shell shows next to each.
    fn write_complete(
        &self,
        cmd: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<()> {
        let last = args.len().checked_sub(1).ok_or_else(|| Error::other("no words"))?;
        let candidates = engine::complete(cmd, args, last, current_dir)?;
        let listed = candidates.iter().map(|candidate| {
            let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
            let description = help.lines().next().unwrap_or_default();
            json!({ "value": candidate.get_value().to_string_lossy(), "description": description })
        });
        writeln!(buf, "{}", serde_json::Value::Array(listed.collect()))
    }
}

/// Returns a text as a literal of Nushell.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
