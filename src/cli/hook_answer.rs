//! `/rollback` and `/undo`, typed into an agent client and answered without its model.

use serde_json::{Value, json};

use super::hook::Exchange;
use crate::agents::Ask;
use crate::error::Result;
use crate::model::text::{count, cut, printable};

/// Checkpoints that are listed.
const LISTED: u64 = 15;

/// Longest patch that is shown, in characters.
const MAX_PATCH: usize = 8_000;

/// The text for the person.
pub fn answer(talk: &mut Exchange<'_>, ask: &Ask) -> Result<String> {
    match ask {
        Ask::List => {
            let reply = talk.ask(json!({ "type": "checkpoint.list", "limit": LISTED }))?;
            Ok(listed(&reply))
        }
        Ask::Diff { checkpoint } => {
            let reply = talk.ask(json!({ "type": "checkpoint.diff", "from": checkpoint }))?;
            let stat = &reply["stat"];
            let patch = reply["patch"].as_str().unwrap_or_default();
            let files = count(stat["files"].as_u64().unwrap_or(0), "file");
            Ok(format!("Since checkpoint {checkpoint}: {files} changed.\n{}", cut(patch, MAX_PATCH)))
        }
        Ask::To { checkpoint, file } => {
            let paths = file.as_ref().map(|file| {
                let path = talk.cwd().map_or_else(|| file.into(), |cwd| cwd.join(file));
                vec![path.to_string_lossy().into_owned()]
            });
            let reply = talk.ask(json!({ "type": "restore", "sha": checkpoint, "paths": paths }))?;
            Ok(done(&format!("Restored to checkpoint {checkpoint}"), &reply))
        }
        Ask::Undo => {
            let reply = talk.ask(json!({ "type": "undo" }))?;
            if reply["operation"].is_null() {
                return Ok("There is nothing to undo.".to_owned());
            }
            Ok(done("Undone", &reply))
        }
    }
}

fn listed(reply: &Value) -> String {
    let rows: Vec<&Value> = reply["checkpoints"].as_array().into_iter().flatten().collect();
    if rows.is_empty() {
        return "piton has no checkpoint of this directory yet.".to_owned();
    }
    let mut text = String::from(
        "Checkpoints, newest first. `/rollback N` goes back to one, `/rollback diff N` shows what changed since.\n",
    );
    for row in rows {
        let word = |name: &str| printable(row[name].as_str().unwrap_or_default());
        add_line!(text, "  {:>4}  {}  {}", row["n"], word("time"), word("reason"));
    }
    text
}

fn done(what: &str, reply: &Value) -> String {
    let total = |name: &str| reply["done"][name]["total"].as_u64().unwrap_or(0);
    let changed = total("created") + total("replaced") + total("deleted");
    let mut text = format!("{what}: {} changed.", count(changed, "path"));
    for (name, sentence) in [("failed", "could not be changed"), ("kept", "stayed as they are")] {
        if total(name) > 0 {
            add!(text, " {} {sentence}.", count(total(name), "path"));
        }
    }
    for warning in reply["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        add!(text, "\n{}", printable(warning));
    }
    text.push_str("\n`/undo`, or `piton undo`, takes this back.");
    text
}
