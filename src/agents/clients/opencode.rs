//! opencode (1.18.33, payloads captured): what the plugin `hooks/opencode.js` sends, which is what the client gave it.

use serde_json::Value;

use super::commands::ROLLBACK;
use crate::agents::event::ActionOutcome;
use crate::agents::install::{FileContent, HookFile, Spot};
use crate::agents::payload::Payload;
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply;
use crate::agents::shape::{Moment, Shape};

const PLUGIN: FileContent = FileContent::Shim(include_str!("../../../hooks/opencode.js"));

/// The client's profile.
pub(crate) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::OnSuccess,
    program: "opencode",
    marks: &["OPENCODE"],
    directory: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "opencode" },
    shape: Shape {
        steps: &[
            ("event.session.created", Moment::SessionStart),
            ("event.session.deleted", Moment::SessionEnd),
            ("command.execute.before", Moment::Ask),
            ("chat.message", Moment::TurnStart),
            ("event.session.idle", Moment::TurnEnd),
            ("tool.execute.before", Moment::Before),
            ("tool.execute.after", Moment::After),
            ("event.file.edited", Moment::Unused),
            ("event.file.watcher.updated", Moment::Unused),
            ("shell.env", Moment::Unused),
            ("dispose", Moment::Unused),
        ],
        echo: &["/hook"],
        // A sub-agent has a session of its own. The shim names the one at the top.
        session: &["/top", "/input/sessionID", "/input/properties/sessionID", "/input/properties/info/id"],
        parent: &[],
        agent: &["/input/sessionID", "/input/properties/sessionID", "/input/properties/info/id"],
        agent_kind: &[],
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
        is_background: |_| false,
    },
    reply: reply::shim,
    reaches_model: reply::shim_reaches_model,
    user: &[
        HookFile {
            spot: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "opencode/plugin/piton.js" },
            content: PLUGIN,
        },
        HookFile {
            spot: Spot { env: Some("XDG_CONFIG_HOME"), dir: ".config", path: "opencode/command/rollback.md" },
            content: ROLLBACK,
        },
    ],
    project: &[
        HookFile { spot: Spot { env: None, dir: ".opencode", path: "plugin/piton.js" }, content: PLUGIN },
        HookFile { spot: Spot { env: None, dir: ".opencode", path: "command/rollback.md" }, content: ROLLBACK },
    ],
    commands: &["rollback"],
    rewind: None,
    advice: None,
};

fn outcome(payload: &Payload) -> ActionOutcome {
    let exit = payload.at(&["/output/metadata/exit"]).and_then(Value::as_i64);
    ActionOutcome { ok: exit.map(|exit| exit == 0).or(Some(true)), exit }
}
