//! What the protocol says, in sentences for people: for where stdout belongs to somebody else.

use std::io::Write;

use serde_json::Value;

use crate::model::text::printable;
use crate::protocol::not_held_sentence;

/// A writer of the protocol's lines that writes what matters of each.
pub struct Aloud<W> {
    out: W,
}

impl<W: Write> Aloud<W> {
    /// Says it on `out`.
    pub fn new(out: W) -> Aloud<W> {
        Aloud { out }
    }
}

impl<W: Write> Write for Aloud<W> {
    /// Takes whole lines, as the output's thread writes them.
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        for sentence in sentences(&serde_json::from_slice(line).unwrap_or_default()) {
            writeln!(self.out, "piton: {}", printable(&sentence))?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// Says one sentence on stderr.
pub fn say(sentence: &str) {
    // Without anybody to be told, there is nothing to be done.
    let _ = writeln!(std::io::stderr().lock(), "piton: {}", printable(sentence));
}

/// What a person is to know of a line; nothing, of most.
pub fn sentences(line: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match (line["type"].as_str(), line["notice"].as_str()) {
        (Some("error"), _) => text(&line["error"]["message"]).into_iter().collect(),
        (_, Some("checkpoint.failed")) => {
            let reason =
                line["reason"].as_str().or(line["checkpoint"]["reason"].as_str()).unwrap_or("no reason was told");
            vec![format!("a checkpoint failed: {reason}")]
        }
        (_, Some("restore.interrupted")) => {
            vec!["a restore was interrupted: `piton restore --continue`, or `piton restore --abort`".to_owned()]
        }
        (_, Some("checkpoint.settled")) => not_held_sentence(line).into_iter().collect(),
        (_, Some("stream.ended")) => ended(line),
        (_, Some(_)) => Vec::new(),
        _ => {
            let warnings =
                line["warnings"].as_array().into_iter().flatten().filter_map(|warning| text(&warning["message"]));
            let status = &line["checkpoint"]["status"];
            let why = line["checkpoint"]["reason"].as_str().unwrap_or("no reason was told");
            let checkpoint = match status.as_str() {
                Some("failed") => Some(format!("no checkpoint: {why}")),
                Some("late") => Some(why.to_owned()),
                _ => None,
            };
            let faults = line["faults"].as_array().into_iter().flatten().filter_map(text);
            let not_held = not_held_sentence(line);
            warnings.chain(text(&line["reason"])).chain(checkpoint).chain(not_held).chain(faults).collect()
        }
    }
}

fn ended(line: &Value) -> Vec<String> {
    let skipped = line["skipped"].as_object().into_iter().flatten().map(|(sort, count)| format!("{count} {sort}"));
    let skipped: Vec<String> = skipped.collect();
    let (lines, turns, actions) = (&line["lines"], &line["turns"], &line["actions"]);
    if turns == 0 && actions == 0 && *lines != 0 {
        return vec![format!("in {lines} lines of the stream there was no turn and no action: nothing was guarded")];
    }
    let any = !skipped.is_empty();
    any.then(|| format!("of {lines} lines of the stream some were passed over: {}", skipped.join(", ")))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_matters_is_said_and_nothing_else() {
        let warning = json!({"message": "`psql` may change a database"});
        let table = [
            (json!({"type": "shell.before", "checkpoint": {"status": "held", "reason": null}}), ""),
            (json!({"type": "turn.start", "checkpoint": {"status": "taken"}}), ""),
            (
                json!({"type": "tool.before", "warnings": [warning], "reason": "the policy denies it"}),
                "`psql` may change a database|the policy denies it",
            ),
            (
                json!({"type": "turn.start", "checkpoint": {"status": "failed", "reason": "full"}}),
                "no checkpoint: full",
            ),
            (json!({"type": "turn.start", "checkpoint": {"status": "late", "reason": "goes on"}}), "goes on"),
            (json!({"type": "error", "error": {"message": "no"}}), "no"),
            (json!({"type": "hello", "faults": ["a", "b"]}), "a|b"),
            (
                json!({"type": "shell.before", "not_held": [{"path": "vendor/.git", "bytes": 2000, "at_least": true, "why": "x"}]}),
                "not held: vendor/.git (2.0 kB or more); if this action deletes that, no checkpoint can bring it back",
            ),
            (json!({"type": "notice", "notice": "checkpoint.failed", "reason": "full"}), "a checkpoint failed: full"),
            (json!({"type": "notice", "notice": "checkpoint.settled", "reason": "x"}), ""),
            (
                json!({"type": "notice", "notice": "checkpoint.settled", "not_held": [{"path": "a", "bytes": null}]}),
                "not held: a; if this action deletes that, no checkpoint can bring it back",
            ),
            (
                json!({"type": "notice", "notice": "stream.ended", "lines": 3, "turns": 1, "actions": 0, "skipped": {}}),
                "",
            ),
            (
                json!({"type": "notice", "notice": "stream.ended", "lines": 0, "turns": 0, "actions": 0, "skipped": {}}),
                "",
            ),
            (
                json!({"type": "notice", "notice": "stream.ended", "lines": 3, "turns": 1, "actions": 0, "skipped": {"foreign": 2}}),
                "of 3 lines of the stream some were passed over: 2 foreign",
            ),
            (
                json!({"type": "notice", "notice": "stream.ended", "lines": 3, "turns": 0, "actions": 0, "skipped": {}}),
                "in 3 lines of the stream there was no turn and no action: nothing was guarded",
            ),
            (json!("no object"), ""),
        ];
        for (line, expected) in table {
            assert_eq!(sentences(&line).join("|"), expected, "{line}");
        }
        let mut out = Aloud::new(Vec::new());
        out.write_all(b"{\"type\":\"error\",\"error\":{\"message\":\"a\\u001bb\"}}\n").unwrap();
        out.write_all(b"not JSON").unwrap();
        assert_eq!(String::from_utf8(out.out).unwrap(), "piton: a\\u{1b}b\n");
    }
}
