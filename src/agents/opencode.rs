//! opencode (1.18.33, payloads captured): what the plugin `hooks/opencode.js` sends, which is what the client gave it.

use serde_json::Value;

use super::Door;
use super::event::Outcome;
use super::install::{Content, File, Spot};
use super::payload::Payload;
use super::shape::{Shape, Step};

const PLUGIN: Content = Content::Shim(include_str!("../../hooks/opencode.js"));
const ROLLBACK: Content = Content::Whole(include_str!("../../hooks/rollback.md"));

pub const DOOR: Door = Door {
    name: "opencode",
    title: "opencode",
    captured: true,
    program: "opencode",
    place: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "opencode" },
    shape: Shape {
        steps: &[
            ("event.session.created", Step::SessionStart),
            ("event.session.deleted", Step::SessionEnd),
            ("command.execute.before", Step::Ask),
            ("chat.message", Step::TurnStart),
            ("event.session.idle", Step::TurnEnd),
            ("tool.execute.before", Step::Before),
            ("tool.execute.after", Step::After),
            ("event.file.edited", Step::Unused),
            ("event.file.watcher.updated", Step::Unused),
            ("shell.env", Step::Unused),
            ("dispose", Step::Unused),
        ],
        echo: &["/hook"],
        session: &["/input/sessionID", "/input/properties/sessionID", "/input/properties/info/id"],
        turn: &["/output/message/id"],
        cwd: &["/directory", "/input/properties/info/directory"],
        // The shim joins the parts of a prompt.
        prompt: &["/prompt", "/output/parts/0/text"],
        tool: &["/input/tool"],
        input: &["/output/args", "/input/args"],
        action: &["/input/callID"],
        command: &[],
        shells: &["bash"],
        writers: &[],
        cwd_told: true,
        answers: true,
        outcome,
    },
    reply: super::reply::shim,
    hears: super::reply::hears_shim,
    user: &[
        File {
            spot: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "opencode/plugin/piton.js" },
            content: PLUGIN,
        },
        File {
            spot: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "opencode/command/rollback.md" },
            content: ROLLBACK,
        },
    ],
    project: &[
        File { spot: Spot { env: None, dir: ".opencode", path: "plugin/piton.js" }, content: PLUGIN },
        File { spot: Spot { env: None, dir: ".opencode", path: "command/rollback.md" }, content: ROLLBACK },
    ],
    commands: &["rollback"],
    advice: None,
};

fn outcome(payload: &Payload) -> Outcome {
    let exit = payload.at(&["/output/metadata/exit"]).and_then(Value::as_i64);
    Outcome { ok: exit.map(|exit| exit == 0).or(Some(true)), exit }
}
