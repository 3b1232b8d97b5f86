//! goose. **From documentation alone.** Its hooks are a plugin. It only understands a refusal; anything else on stdout
//! counts as a broken hook.

use serde_json::{Value, json};

use crate::agents::edit::json::Style;
use crate::agents::install::{FileContent, Hook, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply::{Decision, object};
use crate::agents::shape::{CLAUDE, Moment, Shape};

const HOOKS: FileContent = FileContent::Json(Hooks {
    style: Style::Groups,
    unit: Unit::Seconds,
    runner: Runner::Shell,
    hooks: &[
        Hook { event: "SessionStart", seconds: 10 },
        Hook { event: "UserPromptSubmit", seconds: 10 },
        Hook { event: "PreToolUse", seconds: 10 },
        Hook { event: "PostToolUse", seconds: 10 },
        Hook { event: "PostToolUseFailure", seconds: 10 },
        Hook { event: "Stop", seconds: 10 },
        Hook { event: "SessionEnd", seconds: 10 },
    ],
});
const MANIFEST: FileContent = FileContent::Whole(include_str!("../../../hooks/goose-plugin.json"));

/// The client's profile.
pub(super) const PROFILE: Profile = Profile {
    captured: false,
    ends: ReportedEnds::Always,
    program: "goose",
    marks: &["GOOSE_TERMINAL"],
    directory: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "goose" },
    shape: Shape {
        echo: &["/event"],
        turn: &[],
        cwd: &["/working_dir"],
        prompt: &["/message"],
        action: &["/tool_call_id"],
        shells: &["developer__shell"],
        answers: false,
        ..CLAUDE
    },
    reply,
    reaches_model: |_| false,
    user: &[
        HookFile { spot: Spot { env: None, dir: ".agents", path: "plugins/piton/plugin.json" }, content: MANIFEST },
        HookFile { spot: Spot { env: None, dir: ".agents", path: "plugins/piton/hooks/hooks.json" }, content: HOOKS },
    ],
    project: &[
        HookFile { spot: Spot { env: None, dir: ".agents", path: "plugins/piton/plugin.json" }, content: MANIFEST },
        HookFile { spot: Spot { env: None, dir: ".agents", path: "plugins/piton/hooks/hooks.json" }, content: HOOKS },
    ],
    commands: &[],
    rewind: None,
    advice: None,
};

fn reply(_event: &str, step: Moment, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Moment::Before);
    object([("decision", deny.map(|_| json!("block"))), ("reason", deny.map(|reason| json!(reason)))])
}
