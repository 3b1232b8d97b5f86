//! The exit code and the fields of `--json` of every verb, as recorded in `tests/data/golden/fields.txt`.
//!
//! A program that calls piton depends on both. A later version may add fields; it may not remove, rename or retype one.
//! The steps of the file:
//!
//! - `! SCRIPT` runs a script in the workspace. Its output does not count.
//! - `% EVENT PAYLOAD` sends a hook event of Claude Code without a daemon; `{W}` in the payload is the workspace.
//! - `$ COMMAND` runs a shell command in the workspace, in which `piton` is the built binary. Recorded are its exit code, the form of
//!   its output (`json`, `text` or `nothing`), and each field of a document with its types.
//!
//! `PITON_RECORD=1` writes the file again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::support::Lab;

/// Fields whose types differ between two runs: fixes depend on the machine, and a command of git may not have ended yet.
const VARYING: [&str; 4] = [".rows[].mend", ".doctor.rows[].mend", ".operations[].ended", ".operation.ended"];

/// Maps the path of each field to its types.
type Fields = BTreeMap<String, BTreeSet<&'static str>>;

fn add_fields(fields: &mut Fields, path: &str, value: &Value) {
    if VARYING.contains(&path) {
        return;
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    fields.entry(path.to_owned()).or_default().insert(kind);
    match value {
        Value::Array(items) => items.iter().for_each(|item| add_fields(fields, &format!("{path}[]"), item)),
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| add_fields(fields, &format!("{path}.{key}"), value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the lines that describe a command's outcome: the exit code with the form of its output, then the fields.
fn outcome(code: i32, stdout: &str) -> Vec<String> {
    let documents: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(stdout).into_iter::<Value>().collect();
    let mut fields = Fields::new();
    let form = match documents {
        Ok(documents) if documents.is_empty() => "nothing",
        Ok(documents) => {
            documents.iter().for_each(|document| add_fields(&mut fields, "", document));
            "json"
        }
        Err(_) => "text",
    };
    let line = |(path, kinds): (&String, &BTreeSet<&str>)| {
        let kinds: Vec<&str> = kinds.iter().copied().collect();
        format!("{path}: {}", kinds.join("|"))
    };
    let own = fields.iter().filter(|field| !field.0.is_empty()).map(line);
    std::iter::once(format!("exit {code}, {form}")).chain(own).collect()
}

/// A workspace in which a transcript is played.
struct Session {
    lab: Lab,
    path: String,
}

impl Session {
    fn new() -> Session {
        let lab = Lab::new();
        let bin = lab.bin();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        Session { lab, path }
    }

    fn run(&self, command: &str) -> Vec<String> {
        let mut shell = self.lab.command("/bin/sh", &self.lab.work);
        let output = shell.env("PATH", &self.path).args(["-c", command]).output().unwrap();
        outcome(output.status.code().unwrap_or(-1), &String::from_utf8_lossy(&output.stdout))
    }

    fn hook(&self, event: &str, payload: &str) {
        let payload = payload.replace("{W}", self.lab.work.to_str().unwrap());
        std::fs::write(self.lab.root().join("payload"), payload).unwrap();
        self.run(&format!("piton hook claude-code {event} --no-daemon < ../payload"));
    }

    /// Plays one step, and returns the outcome of a command.
    fn step(&self, line: &str) -> Vec<String> {
        match line.split_at_checked(2) {
            Some(("! ", script)) => self.lab.sh(script),
            Some(("% ", hook)) => {
                let (event, payload) = hook.split_once(' ').unwrap();
                self.hook(event, payload);
            }
            Some(("$ ", command)) => return self.run(command),
            _ => panic!("`{line}` is not a step"),
        }
        Vec::new()
    }
}

/// A step of a transcript with its recorded outcome.
struct Step<'t> {
    line: &'t str,
    outcome: Vec<&'t str>,
}

fn steps(transcript: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for line in transcript.lines() {
        match line.strip_prefix("  ") {
            Some(recorded) => steps.last_mut().unwrap().outcome.push(recorded),
            None => steps.push(Step { line, outcome: Vec::new() }),
        }
    }
    steps
}

#[test]
fn every_verb_keeps_its_exit_codes_and_fields() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden/fields.txt");
    let transcript = std::fs::read_to_string(&file).unwrap();
    let session = Session::new();
    let (mut played, mut missing) = (String::new(), Vec::new());
    for step in steps(&transcript) {
        let outcome = session.step(step.line);
        let gone = step.outcome.iter().filter(|recorded| !outcome.iter().any(|line| line == *recorded));
        let gone: Vec<&str> = gone.copied().collect();
        if !gone.is_empty() {
            missing.push(format!("{}\n   was {}\n   is  {}", step.line, gone.join("; "), outcome.join("; ")));
        }
        played.push_str(&format!("{}\n", step.line));
        outcome.iter().for_each(|line| played.push_str(&format!("  {line}\n")));
    }
    if std::env::var_os("PITON_RECORD").is_some() {
        std::fs::write(&file, played).unwrap();
        return;
    }
    assert!(missing.is_empty(), "outcomes differ; PITON_RECORD=1 records them again:\n{}", missing.join("\n"));
}
