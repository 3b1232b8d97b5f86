//! The streams of the clients, one constant each. Frames of tools, sessions and turns are those of the versions named, measured on
//! the real clients, but where it is said; the types that are of no use are from documentation too.

use serde_json::Value;

use super::super::event::Outcome;
use super::super::payload::Payload;
use super::super::shape::{CLAUDE, Shape};
use super::super::{Client, cline, codex, copilot_cli, gemini_cli, opencode, pi, qwen_code};
use super::{Means, Stream, told_error};

/// The stream of a client, if it has one that is known.
pub fn stream(client: Client) -> Option<&'static Stream> {
    match client {
        Client::ClaudeCode => Some(&CLAUDE_CODE),
        Client::Codex => Some(&CODEX),
        Client::GeminiCli => Some(&GEMINI_CLI),
        Client::Opencode => Some(&OPENCODE),
        Client::CopilotCli => Some(&COPILOT_CLI),
        Client::QwenCode => Some(&QWEN_CODE),
        Client::Cline => Some(&CLINE),
        Client::Pi => Some(&PI),
        Client::Droid | Client::HermesAgent | Client::Cursor | Client::Crush | Client::Goose => None,
    }
}

/// Messages with parts. A turn begins where the client says that it is ready for it.
const CLAUDE_FRAMES: &[(&str, Means)] = &[
    ("system.init", Means::InTurn),
    ("system", Means::Unused),
    ("assistant/tool_use", Means::Before),
    ("user/tool_result", Means::After),
    ("assistant", Means::Parts("/message/content")),
    ("user", Means::Parts("/message/content")),
    ("result", Means::TurnEnd),
    ("stream_event", Means::Unused),
    ("control_request", Means::Unused),
    ("control_response", Means::Unused),
    ("control_cancel_request", Means::Unused),
    ("keep_alive", Means::Unused),
    ("rate_limit_event", Means::Unused),
    ("tool_progress", Means::Unused),
    ("tool_use_summary", Means::Unused),
    ("auth_status", Means::Unused),
    ("prompt_suggestion", Means::Unused),
];

const CLAUDE_SHAPE: Shape = Shape {
    tool: &["/name"],
    input: &["/input"],
    action: &["/id", "/tool_use_id"],
    turn: &[],
    outcome: told_error,
    ..CLAUDE
};

/// `claude -p … --output-format stream-json --verbose` (2.1.329).
const CLAUDE_CODE: Stream =
    Stream { name: &["/type", "/subtype"], frames: CLAUDE_FRAMES, shape: CLAUDE_SHAPE, paths: &[] };

/// `qwen -p … -o stream-json` (0.24.4).
const QWEN_CODE: Stream = Stream {
    name: &["/type", "/subtype"],
    frames: CLAUDE_FRAMES,
    shape: Shape { shells: qwen_code::DOOR.shape.shells, ..CLAUDE_SHAPE },
    paths: &[],
};

/// `codex exec --json …` (0.169.0). What Codex itself refuses has no frame.
const CODEX: Stream = Stream {
    name: &["/type", "/item/type"],
    frames: &[
        ("thread.started", Means::Session),
        ("turn.started", Means::Turn),
        ("turn.completed", Means::TurnEnd),
        ("turn.failed", Means::TurnEnd),
        ("item.started.command_execution", Means::Before),
        ("item.started.file_change", Means::Before),
        ("item.started.mcp_tool_call", Means::Before),
        ("item.completed.command_execution", Means::After),
        ("item.completed.file_change", Means::After),
        ("item.completed.mcp_tool_call", Means::After),
        ("item.started", Means::Unused),
        ("item.updated", Means::Unused),
        ("item.completed", Means::Unused),
        ("error", Means::Unused),
    ],
    shape: Shape {
        session: &["/thread_id"],
        turn: &[],
        tool: &["/item/tool", "/item/type"],
        input: &["/item/arguments", "/item"],
        action: &["/item/id"],
        shells: &["command_execution"],
        writers: &["file_change"],
        outcome: codex_outcome,
        ..codex::DOOR.shape
    },
    paths: &[("/item/changes", "path")],
};

fn codex_outcome(frame: &Payload) -> Outcome {
    let exit = frame.at(&["/item/exit_code"]).and_then(Value::as_i64);
    let status = frame.at(&["/item/status"]).and_then(Value::as_str).map(|status| status == "completed");
    Outcome { ok: exit.map(|exit| exit == 0).or(status), exit }
}

/// `gemini -p … -o stream-json` (0.61.0).
const GEMINI_CLI: Stream = Stream {
    name: &["/type", "/role"],
    frames: &[
        ("init", Means::Session),
        ("message.user", Means::Turn),
        ("message", Means::Unused),
        ("tool_use", Means::Before),
        ("tool_result", Means::After),
        ("result", Means::TurnEnd),
        ("error", Means::Unused),
    ],
    shape: Shape {
        input: &["/parameters"],
        action: &["/tool_id"],
        outcome: |frame| {
            let status = frame.at(&["/status"]).and_then(Value::as_str);
            Outcome { ok: status.map(|status| status == "success"), exit: None }
        },
        ..gemini_cli::DOOR.shape
    },
    paths: &[],
};

/// `opencode run --format json …` (1.18.33): tells of a tool only when it is over, and of one turn as steps.
const OPENCODE: Stream = Stream {
    name: &["/type", "/part/reason"],
    frames: &[
        ("step_start", Means::InTurn),
        ("tool_use", Means::Done),
        ("step_finish.stop", Means::TurnEnd),
        ("step_finish", Means::Unused),
        ("text", Means::Unused),
        ("reasoning", Means::Unused),
        ("error", Means::Unused),
    ],
    shape: Shape {
        session: &["/sessionID", "/part/sessionID"],
        turn: &[],
        cwd: &[],
        tool: &["/part/tool"],
        input: &["/part/state/input"],
        action: &["/part/callID"],
        outcome: |frame| {
            let exit = frame.at(&["/part/state/metadata/exit"]).and_then(Value::as_i64);
            let status = frame.at(&["/part/state/status"]).and_then(Value::as_str);
            Outcome { ok: exit.map(|exit| exit == 0).or(status.map(|status| status == "completed")), exit }
        },
        ..opencode::DOOR.shape
    },
    paths: &[],
};

/// `copilot -p … --output-format json` (1.0.102). A turn of Copilot's own is one call of the model.
const COPILOT_CLI: Stream = Stream {
    name: &["/type"],
    frames: &[
        ("session.start", Means::Session),
        ("session.resume", Means::Session),
        ("session", Means::Unused),
        ("user.message", Means::Turn),
        ("user", Means::Unused),
        ("assistant", Means::Unused),
        ("tool.execution_start", Means::Before),
        ("tool.execution_complete", Means::After),
        ("tool", Means::Unused),
        ("result", Means::TurnEnd),
        ("hook", Means::Unused),
        ("permission", Means::Unused),
        ("subagent", Means::Unused),
        ("skill", Means::Unused),
        ("system", Means::Unused),
        ("abort", Means::Unused),
        ("error", Means::Unused),
    ],
    shape: Shape {
        session: &["/data/sessionId", "/sessionId"],
        turn: &["/data/interactionId"],
        cwd: &["/data/context/cwd"],
        tool: &["/data/toolName"],
        input: &["/data/arguments"],
        action: &["/data/toolCallId"],
        outcome: |frame| Outcome { ok: frame.at(&["/data/success"]).and_then(Value::as_bool), exit: None },
        ..copilot_cli::DOOR.shape
    },
    paths: &[],
};

/// `pi --mode json …` (0.74.2). A turn of pi's own is one call of the model.
const PI: Stream = Stream {
    name: &["/type"],
    frames: &[
        ("session", Means::Session),
        ("agent_start", Means::Turn),
        ("agent_end", Means::TurnEnd),
        ("tool_execution_start", Means::Before),
        ("tool_execution_end", Means::After),
        ("tool_execution_update", Means::Unused),
        ("turn_start", Means::Unused),
        ("turn_end", Means::Unused),
        ("message_start", Means::Unused),
        ("message_update", Means::Unused),
        ("message_end", Means::Unused),
        ("queue_update", Means::Unused),
        ("compaction_start", Means::Unused),
        ("compaction_end", Means::Unused),
        ("auto_retry_start", Means::Unused),
        ("auto_retry_end", Means::Unused),
    ],
    shape: Shape { session: &["/id"], input: &["/args"], outcome: told_error, ..pi::DOOR.shape },
    paths: &[],
};

/// `cline --json …` (3.0.65). Measured are the frames of tools; where a turn begins and ends is from the client's code.
const CLINE: Stream = Stream {
    name: &["/type", "/event/type", "/event/contentType"],
    frames: &[
        ("agent_event.iteration_start", Means::InTurn),
        ("agent_event.content_start.tool", Means::Before),
        ("agent_event.content_end.tool", Means::After),
        // Before any tool comes what the model says.
        ("agent_event.content_start", Means::InTurn),
        ("agent_event.done", Means::TurnEnd),
        ("agent_event", Means::Unused),
        ("run_start", Means::InTurn),
        ("run_result", Means::TurnEnd),
        ("hook_event", Means::Session),
        ("team_event", Means::Unused),
        ("error", Means::Unused),
    ],
    shape: Shape {
        session: &["/taskId", "/event/taskId"],
        cwd: &["/workspaceRoots/0"],
        tool: &["/event/toolName"],
        input: &["/event/input"],
        action: &["/event/toolCallId"],
        outcome: |frame| Outcome { ok: Some(frame.at(&["/event/error"]).is_none()), exit: None },
        ..cline::DOOR.shape
    },
    paths: &[],
};
