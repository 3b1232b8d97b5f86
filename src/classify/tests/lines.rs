//! `tests/data/lines.txt`: what lines call for, `needs|command`, one a line.

use super::evaluation::{context, policy};
use super::shared;
use crate::model::effect::Needs;

#[test]
fn lines_call_for_what_they_should() {
    let mut wrong = Vec::new();
    for line in include_str!("../../../tests/data/lines.txt").lines() {
        let (wanted, command) = line.split_once('|').expect("needs|command");
        let verdict = shared().shell(command, &context(), &policy());
        let given = match verdict.needs {
            Needs::Nothing => "none",
            Needs::Checkpoint => "checkpoint",
            Needs::Warn => "warn",
            Needs::Both => "both",
        };
        if given != wanted {
            wrong.push(format!("{command}: wanted {wanted}, given {given}: {:?}", verdict.effects));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Nothing blows up: a bound that a debug build on a machine that stands still now and then keeps all the same. The
/// costs of a line are counted in instructions (`benches/instructions`).
#[test]
fn lines_are_quick() {
    let lines: Vec<&str> = include_str!("../../../tests/data/lines.txt").lines().collect();
    shared();
    let started = std::time::Instant::now();
    for line in &lines {
        shared().shell(line, &context(), &policy());
    }
    let each = started.elapsed() / u32::try_from(lines.len()).expect("a short list");
    println!("{each:?} a line");
    assert!(each < std::time::Duration::from_millis(100), "{each:?}");
}
