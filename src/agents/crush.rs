//! Crush. **From documentation alone.** It has one event that is of use, before a tool of the top-level agent; sub-agents' tools
//! are not told, and neither are turns.

use serde_json::{Value, json};

use super::Door;
use super::install::{Content, File, Hook, Hooks, Spot, Style, Unit};
use super::reply::{Decision, object};
use super::shape::{CLAUDE, Shape, Step};

const SETTINGS: Content = Content::Json(Hooks {
    style: Style::Flat,
    unit: Unit::Seconds,
    hooks: &[Hook { event: "PreToolUse", seconds: 10 }],
});

pub const DOOR: Door = Door {
    name: "crush",
    title: "Crush",
    captured: false,
    program: "crush",
    place: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "crush" },
    shape: Shape {
        steps: &[("PreToolUse", Step::Before), ("PreCompact", Step::Unused)],
        echo: &["/event"],
        turn: &[],
        prompt: &[],
        action: &[],
        shells: &["bash"],
        answers: false,
        ..CLAUDE
    },
    reply,
    hears: |step| step == Step::Before,
    user: &[File {
        spot: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "crush/crush.json" },
        content: SETTINGS,
    }],
    project: &[File { spot: Spot { env: None, dir: "", path: "crush.json" }, content: SETTINGS }],
    commands: &[],
    advice: None,
};

/// Without `decision`, which would approve what the person was to be asked.
fn reply(_event: &str, step: Step, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Step::Before);
    let said = object([
        ("decision", deny.map(|_| json!("deny"))),
        ("reason", deny.map(|reason| json!(reason))),
        ("context", decision.notes().filter(|_| step == Step::Before).map(Value::String)),
    ]);
    said.map(|mut said| {
        said["version"] = json!(1);
        said
    })
}
