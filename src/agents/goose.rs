//! goose. **From documentation alone.** Its hooks are a plugin; only a refusal is heard, and anything else on stdout counts as a
//! broken hook.

use serde_json::{Value, json};

use super::Door;
use super::install::{Content, File, Hook, Hooks, Spot, Style, Unit};
use super::reply::{Decision, object};
use super::shape::{CLAUDE, Shape, Step};

const HOOKS: Content = Content::Json(Hooks {
    style: Style::Groups,
    unit: Unit::Seconds,
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
const MANIFEST: Content = Content::Whole(include_str!("../../hooks/goose-plugin.json"));

pub const DOOR: Door = Door {
    name: "goose",
    title: "goose",
    captured: false,
    program: "goose",
    place: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "goose" },
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
    hears: |_| false,
    user: &[
        File { spot: Spot { env: None, dir: ".agents", path: "plugins/piton/plugin.json" }, content: MANIFEST },
        File { spot: Spot { env: None, dir: ".agents", path: "plugins/piton/hooks/hooks.json" }, content: HOOKS },
    ],
    project: &[
        File { spot: Spot { env: None, dir: ".agents", path: "plugins/piton/plugin.json" }, content: MANIFEST },
        File { spot: Spot { env: None, dir: ".agents", path: "plugins/piton/hooks/hooks.json" }, content: HOOKS },
    ],
    commands: &[],
    advice: None,
};

fn reply(_event: &str, step: Step, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Step::Before);
    object([("decision", deny.map(|_| json!("block"))), ("reason", deny.map(|reason| json!(reason)))])
}
