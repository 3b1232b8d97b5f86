//! Everything that bash accepts is understood, and quoting a line into `bash -c` changes nothing that it does.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use super::evaluation::{context, policy};
use super::shared;
use crate::model::effect::{Class, Verdict};

fn verdict(line: &str) -> Verdict {
    shared().shell(line, &context(), &policy())
}

pub(super) fn labelled() -> Vec<String> {
    let sets = [include_str!("../../../tests/data/commands.jsonl"), include_str!("../../../tests/data/idioms.jsonl")];
    let command = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        value["cmd"].as_str().expect("a command").to_owned()
    };
    let plain = include_str!("../../../tests/data/lines.txt").lines().filter_map(|line| Some(line.split_once('|')?.1));
    sets.iter().flat_map(|set| set.lines()).map(command).chain(plain.map(str::to_owned)).collect()
}

/// As `printf %q` does it.
fn quoted(line: &str) -> String {
    let mut text = String::new();
    for letter in line.chars() {
        match letter {
            '\n' => text.push_str("$'\\n'"),
            '\t' => text.push_str("$'\\t'"),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '/' | '.' | ':' => text.push(letter),
            other if !other.is_ascii() => text.push(other),
            other => {
                text.push('\\');
                text.push(other);
            }
        }
    }
    text
}

fn effects(verdict: &Verdict) -> BTreeSet<(&'static str, Option<String>, String)> {
    let effect = |effect: &crate::model::effect::Effect| {
        (effect.class.as_str(), effect.target.clone(), format!("{:?}", effect.scope))
    };
    verdict.effects.iter().map(effect).collect()
}

#[test]
fn quoted_lines_have_the_same_effects() {
    let mut wrong = Vec::new();
    for line in labelled() {
        let (bare, inside) = (verdict(&line), verdict(&format!("bash -c {}", quoted(&line))));
        let single = verdict(&format!("sh -c '{}'", line.replace('\'', "'\\''")));
        if effects(&bare) != effects(&inside) || effects(&bare) != effects(&single) || bare.needs != inside.needs {
            wrong.push(format!("{line:?}: {:?}, inside {:?}", effects(&bare), effects(&inside)));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// Without bash on the machine there is nothing to agree with.
#[test]
fn what_bash_accepts_is_understood() {
    let accepts = |line: &str| {
        let mut bash = Command::new("bash");
        bash.args(["-n", "-O", "extglob", "-c", line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        bash.status().map(|status| status.success())
    };
    if accepts("true").is_err() {
        return;
    }
    let (mut wrong, mut both) = (Vec::new(), 0);
    for line in labelled() {
        let understood = !verdict(&line).effects.iter().any(|effect| effect.class == Class::Unknown);
        match (accepts(&line).unwrap_or(false), understood) {
            (true, false) => wrong.push(line),
            (true, true) => both += 1,
            // PowerShell lines and broken ones: reading more than bash does is no mistake.
            (false, _) => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(both > 1000, "{both} lines");
}
