//! The streams of the clients, one constant each. Frames of tools, sessions and turns are those of the versions named, measured on
//! the real clients, but where it is said; the types that are of no use are from documentation too.

use serde_json::Value;

use super::{FrameMeaning, StreamFormat, told_error};
use crate::agents::client::Client;
use crate::agents::clients::{cline, codex, copilot_cli, gemini_cli, opencode, pi, qwen_code};
use crate::agents::event::ActionOutcome;
use crate::agents::payload::Payload;
use crate::agents::shape::{CLAUDE, Shape};

/// Returns the stream of a client, if it has one that is known.
pub(super) fn stream(client: Client) -> Option<&'static StreamFormat> {
    match client {
        Client::ClaudeCode => Some(&CLAUDE_CODE),
        Client::Codex => Some(&CODEX),
        Client::GeminiCli => Some(&GEMINI_CLI),
        Client::Opencode => Some(&OPENCODE),
        Client::CopilotCli => Some(&COPILOT_CLI),
        Client::QwenCode => Some(&QWEN_CODE),
        Client::Cline => Some(&CLINE),
        Client::Pi => Some(&PI),
        Client::Droid | Client::HermesAgent | Client::Cursor | Client::Crush | Client::Goose | Client::KimiCode => None,
    }
}

/// Messages with parts. A turn begins where the client says that it is ready for it.
const CLAUDE_FRAMES: &[(&str, FrameMeaning)] = &[
    ("system.init", FrameMeaning::InTurn),
    ("system", FrameMeaning::Unused),
    ("assistant/tool_use", FrameMeaning::Before),
    ("user/tool_result", FrameMeaning::After),
    ("assistant", FrameMeaning::Parts("/message/content")),
    ("user", FrameMeaning::Parts("/message/content")),
    ("result", FrameMeaning::TurnEnd),
    ("stream_event", FrameMeaning::Unused),
    ("control_request", FrameMeaning::Unused),
    ("control_response", FrameMeaning::Unused),
    ("control_cancel_request", FrameMeaning::Unused),
    ("keep_alive", FrameMeaning::Unused),
    ("rate_limit_event", FrameMeaning::Unused),
    ("tool_progress", FrameMeaning::Unused),
    ("tool_use_summary", FrameMeaning::Unused),
    ("auth_status", FrameMeaning::Unused),
    ("prompt_suggestion", FrameMeaning::Unused),
    ("conversation_reset", FrameMeaning::Unused),
    ("command_lifecycle", FrameMeaning::Unused),
    ("session_notice", FrameMeaning::Unused),
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
const CLAUDE_CODE: StreamFormat =
    StreamFormat { name: &["/type", "/subtype"], frames: CLAUDE_FRAMES, shape: CLAUDE_SHAPE, paths: &[] };

/// `qwen -p … -o stream-json` (0.24.4).
const QWEN_CODE: StreamFormat = StreamFormat {
    name: &["/type", "/subtype"],
    frames: CLAUDE_FRAMES,
    shape: Shape { shells: qwen_code::PROFILE.shape.shells, ..CLAUDE_SHAPE },
    paths: &[],
};

/// `codex exec --json …` (0.169.0). An action that Codex itself refuses has no frame.
const CODEX: StreamFormat = StreamFormat {
    name: &["/type", "/item/type"],
    frames: &[
        ("thread.started", FrameMeaning::Session),
        ("turn.started", FrameMeaning::Turn),
        ("turn.completed", FrameMeaning::TurnEnd),
        ("turn.failed", FrameMeaning::TurnEnd),
        ("item.started.command_execution", FrameMeaning::Before),
        ("item.started.file_change", FrameMeaning::Before),
        ("item.started.mcp_tool_call", FrameMeaning::Before),
        ("item.completed.command_execution", FrameMeaning::After),
        ("item.completed.file_change", FrameMeaning::After),
        ("item.completed.mcp_tool_call", FrameMeaning::After),
        ("item.started", FrameMeaning::Unused),
        ("item.updated", FrameMeaning::Unused),
        ("item.completed", FrameMeaning::Unused),
        ("error", FrameMeaning::Unused),
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
        ..codex::PROFILE.shape
    },
    paths: &[("/item/changes", "path")],
};

fn codex_outcome(frame: &Payload) -> ActionOutcome {
    let exit = frame.at(&["/item/exit_code"]).and_then(Value::as_i64);
    let status = frame.at(&["/item/status"]).and_then(Value::as_str).map(|status| status == "completed");
    ActionOutcome { ok: exit.map(|exit| exit == 0).or(status), exit }
}

/// `gemini -p … -o stream-json` (0.61.0).
const GEMINI_CLI: StreamFormat = StreamFormat {
    name: &["/type", "/role"],
    frames: &[
        ("init", FrameMeaning::Session),
        ("message.user", FrameMeaning::Turn),
        ("message", FrameMeaning::Unused),
        ("tool_use", FrameMeaning::Before),
        ("tool_result", FrameMeaning::After),
        ("result", FrameMeaning::TurnEnd),
        ("error", FrameMeaning::Unused),
    ],
    shape: Shape {
        prompt: &["/content"],
        input: &["/parameters"],
        action: &["/tool_id"],
        outcome: |frame| {
            let status = frame.at(&["/status"]).and_then(Value::as_str);
            ActionOutcome { ok: status.map(|status| status == "success"), exit: None }
        },
        ..gemini_cli::PROFILE.shape
    },
    paths: &[],
};

/// `opencode run --format json …` (1.18.33): tells of a tool only when it is over, and of one turn as steps.
const OPENCODE: StreamFormat = StreamFormat {
    name: &["/type", "/part/reason"],
    frames: &[
        ("step_start", FrameMeaning::InTurn),
        ("tool_use", FrameMeaning::Done),
        ("step_finish.stop", FrameMeaning::TurnEnd),
        ("step_finish", FrameMeaning::Unused),
        ("text", FrameMeaning::Unused),
        ("reasoning", FrameMeaning::Unused),
        ("error", FrameMeaning::Unused),
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
            ActionOutcome { ok: exit.map(|exit| exit == 0).or(status.map(|status| status == "completed")), exit }
        },
        ..opencode::PROFILE.shape
    },
    paths: &[],
};

/// `copilot -p … --output-format json` (1.0.102). A turn of Copilot's own is one call of the model.
const COPILOT_CLI: StreamFormat = StreamFormat {
    name: &["/type"],
    frames: &[
        ("session.start", FrameMeaning::Session),
        ("session.resume", FrameMeaning::Session),
        ("session", FrameMeaning::Unused),
        ("user.message", FrameMeaning::Turn),
        ("user", FrameMeaning::Unused),
        ("assistant", FrameMeaning::Unused),
        ("tool.execution_start", FrameMeaning::Before),
        ("tool.execution_complete", FrameMeaning::After),
        ("tool", FrameMeaning::Unused),
        ("result", FrameMeaning::TurnEnd),
        ("hook", FrameMeaning::Unused),
        ("permission", FrameMeaning::Unused),
        ("subagent", FrameMeaning::Unused),
        ("skill", FrameMeaning::Unused),
        ("system", FrameMeaning::Unused),
        ("abort", FrameMeaning::Unused),
        ("error", FrameMeaning::Unused),
        // The calls of the model, the questions to the person, and what a client can be told of besides.
        ("model", FrameMeaning::Unused),
        ("user_input", FrameMeaning::Unused),
        ("elicitation", FrameMeaning::Unused),
        ("sampling", FrameMeaning::Unused),
        ("exit_plan_mode", FrameMeaning::Unused),
        ("auto_mode_switch", FrameMeaning::Unused),
        ("external_tool", FrameMeaning::Unused),
        ("command", FrameMeaning::Unused),
        ("commands", FrameMeaning::Unused),
        ("capabilities", FrameMeaning::Unused),
        ("pending_messages", FrameMeaning::Unused),
        ("extensions", FrameMeaning::Unused),
        ("custom_agent", FrameMeaning::Unused),
        ("mcp", FrameMeaning::Unused),
        ("mcp_app", FrameMeaning::Unused),
    ],
    shape: Shape {
        session: &["/data/sessionId", "/sessionId"],
        turn: &["/data/interactionId"],
        prompt: &["/data/content"],
        cwd: &["/data/context/cwd"],
        tool: &["/data/toolName"],
        input: &["/data/arguments"],
        action: &["/data/toolCallId"],
        outcome: |frame| ActionOutcome { ok: frame.at(&["/data/success"]).and_then(Value::as_bool), exit: None },
        ..copilot_cli::PROFILE.shape
    },
    paths: &[],
};

/// `pi --mode json …` (0.74.2). A turn of pi's own is one call of the model.
const PI: StreamFormat = StreamFormat {
    name: &["/type"],
    frames: &[
        ("session", FrameMeaning::Session),
        ("agent_start", FrameMeaning::Turn),
        ("agent_end", FrameMeaning::TurnEnd),
        ("tool_execution_start", FrameMeaning::Before),
        ("tool_execution_end", FrameMeaning::After),
        ("tool_execution_update", FrameMeaning::Unused),
        ("turn_start", FrameMeaning::Unused),
        ("turn_end", FrameMeaning::Unused),
        ("message_start", FrameMeaning::Unused),
        ("message_update", FrameMeaning::Unused),
        ("message_end", FrameMeaning::Unused),
        ("queue_update", FrameMeaning::Unused),
        ("compaction_start", FrameMeaning::Unused),
        ("compaction_end", FrameMeaning::Unused),
        ("auto_retry_start", FrameMeaning::Unused),
        ("auto_retry_end", FrameMeaning::Unused),
    ],
    shape: Shape { session: &["/id"], input: &["/args"], outcome: told_error, ..pi::PROFILE.shape },
    paths: &[],
};

/// `cline --json …` (3.0.65). Measured are the frames of tools; where a turn begins and ends is from the client's code.
const CLINE: StreamFormat = StreamFormat {
    name: &["/type", "/event/type", "/event/contentType"],
    frames: &[
        ("agent_event.iteration_start", FrameMeaning::InTurn),
        ("agent_event.content_start.tool", FrameMeaning::Before),
        ("agent_event.content_end.tool", FrameMeaning::After),
        // Before any tool comes what the model says.
        ("agent_event.content_start", FrameMeaning::InTurn),
        ("agent_event.done", FrameMeaning::TurnEnd),
        ("agent_event", FrameMeaning::Unused),
        ("run_start", FrameMeaning::InTurn),
        ("run_result", FrameMeaning::TurnEnd),
        ("hook_event", FrameMeaning::Session),
        ("team_event", FrameMeaning::Unused),
        ("error", FrameMeaning::Unused),
    ],
    shape: Shape {
        session: &["/parentAgentId", "/agentId", "/taskId", "/event/taskId"],
        cwd: &["/workspaceRoots/0"],
        tool: &["/event/toolName"],
        input: &["/event/input"],
        action: &["/event/toolCallId"],
        outcome: |frame| ActionOutcome { ok: Some(frame.at(&["/event/error"]).is_none()), exit: None },
        ..cline::PROFILE.shape
    },
    paths: &[],
};
