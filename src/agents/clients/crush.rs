//! Crush. **From documentation alone.** It has one event that is of use, before a tool of the top-level agent; sub-agents' tools
//! are not told, and neither are turns.

use serde_json::{Value, json};

use crate::agents::edit::json::Style;
use crate::agents::install::{FileContent, Hook, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply::{Decision, object};
use crate::agents::shape::{CLAUDE, Moment, Shape};

const SETTINGS: FileContent = FileContent::Json(Hooks {
    style: Style::Flat,
    unit: Unit::Seconds,
    runner: Runner::Shell,
    hooks: &[Hook { event: "PreToolUse", seconds: 10 }],
});

/// The client's profile.
pub(super) const PROFILE: Profile = Profile {
    captured: false,
    ends: ReportedEnds::Never,
    program: "crush",
    marks: &["CRUSH"],
    directory: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "crush" },
    shape: Shape {
        steps: &[("PreToolUse", Moment::Before), ("PreCompact", Moment::Unused)],
        echo: &["/event"],
        turn: &[],
        prompt: &[],
        action: &[],
        shells: &["bash"],
        answers: false,
        ..CLAUDE
    },
    reply,
    reaches_model: |step| step == Moment::Before,
    user: &[HookFile {
        spot: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "crush/crush.json" },
        content: SETTINGS,
    }],
    project: &[HookFile { spot: Spot { env: None, dir: "", path: "crush.json" }, content: SETTINGS }],
    commands: &[],
    rewind: None,
    advice: None,
};

/// Without `decision`, which would approve what the person was to be asked.
fn reply(_event: &str, step: Moment, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Moment::Before);
    let said = object([
        ("decision", deny.map(|_| json!("deny"))),
        ("reason", deny.map(|reason| json!(reason))),
        ("context", decision.notes().filter(|_| step == Moment::Before).map(Value::String)),
    ]);
    said.map(|mut said| {
        said["version"] = json!(1);
        said
    })
}
