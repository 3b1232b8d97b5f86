//! `tests/data/families.txt` and `agents.txt`: commands by family, what they call for and the class of their effect.

use super::evaluation::{context, policy};
use super::shared;
use crate::model::effect::Needs;

#[test]
fn families_of_commands() {
    let count = hold(include_str!("../../../tests/data/families.txt"));
    assert!(count > 3000, "{count} lines");
}

#[test]
fn lines_of_agents() {
    let count = hold(include_str!("../../../tests/data/agents.txt"));
    assert!(count > 300, "{count} lines");
}

/// Checks every line of a set; how many there are.
fn hold(set: &str) -> usize {
    let (mut needs, mut class, mut wrong, mut count) = ("", "", Vec::new(), 0);
    for line in set.lines() {
        if let Some(head) = line.strip_prefix("## ") {
            (needs, class) = head.split_once(' ').unwrap_or((head, ""));
            continue;
        }
        if needs.is_empty() {
            continue;
        }
        let unfolded = line.replace("\\n", "\n").replace("\\t", "\t");
        let line = if line.contains("<<") { unfolded.as_str() } else { line };
        let verdict = shared().shell(line, &context(), &policy());
        let given = match verdict.needs {
            Needs::Nothing => "none",
            Needs::Checkpoint => "checkpoint",
            Needs::Warn => "warn",
            Needs::Both => "both",
        };
        count += 1;
        let has = class.is_empty() || verdict.effects.iter().any(|effect| effect.class.as_str() == class);
        if given != needs || !has {
            wrong.push(format!("{line:?}: wanted {needs} {class}, given {given}: {:?}", verdict.effects));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    count
}
