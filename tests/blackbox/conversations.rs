//! Each client's own conversation: a file written, a file edited, a command that destroys. The shapes are those of captured
//! payloads, with less in them; those of Cursor, Crush and goose are from documentation.

/// An event's name, the payload, and what is read from it. The workspace is `/w`.
pub(super) type Conversation = &'static [(&'static str, &'static str, &'static str)];

/// By the clients' names.
pub(super) const ALL: &[(&str, Conversation)] = &[
    ("claude-code", CLAUDE_CODE),
    ("codex", CODEX),
    ("gemini-cli", GEMINI_CLI),
    ("opencode", OPENCODE),
    ("copilot-cli", COPILOT_CLI),
    ("cline", CLINE),
    ("pi", PI),
    ("droid", DROID),
    ("hermes-agent", HERMES_AGENT),
    ("qwen-code", QWEN_CODE),
    ("cursor", CURSOR),
    ("crush", CRUSH),
    ("goose", GOOSE),
    ("kimi-code", KIMI_CODE),
];

const CLAUDE_CODE: Conversation = &[
    (
        "SessionStart",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"SessionStart","source":"startup"}"#,
        "s - /w: session",
    ),
    (
        "UserPromptSubmit",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"p","hook_event_name":"UserPromptSubmit","prompt":"tidy up"}"#,
        "s p /w: turn \"tidy up\"",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"p","effort":{"level":"low"},"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"/w/a","content":"x\n"},"tool_use_id":"u1"}"#,
        "s p /w: tool u1 Write []",
    ),
    (
        "PostToolUse",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"p","hook_event_name":"PostToolUse","tool_name":"Write","tool_input":{},"tool_response":{"type":"create"},"tool_use_id":"u1","duration_ms":3}"#,
        "s p /w: ok u1",
    ),
    (
        "PostToolBatch",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"p","hook_event_name":"PostToolBatch","tool_calls":[]}"#,
        "s p /w: unused",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"p","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf out","description":"d"},"tool_use_id":"u2"}"#,
        "s p /w: shell u2 [\"rm -rf out\"]",
    ),
    (
        "PostToolUseFailure",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"p","hook_event_name":"PostToolUseFailure","tool_name":"Bash","tool_use_id":"u2"}"#,
        "s p /w: failed u2",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"p","agent_id":"a1","agent_type":"Explore","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"u3"}"#,
        "s p /w: shell u3 [\"ls\"] by a1 Explore",
    ),
    (
        "SubagentStop",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"p","agent_id":"a1","agent_type":"Explore","hook_event_name":"SubagentStop","stop_hook_active":false,"agent_transcript_path":"/t"}"#,
        "s p /w: agent over by a1 Explore",
    ),
    (
        "UserPromptSubmit",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"q","hook_event_name":"UserPromptSubmit","prompt":"/rollback 3"}"#,
        "s q /w: ask To { checkpoint: \"3\", file: None, files: [] }",
    ),
    (
        "Stop",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"p","hook_event_name":"Stop","stop_hook_active":false}"#,
        "s p /w: turn over",
    ),
    (
        "SessionEnd",
        r#"{"session_id":"s","cwd":"/w","prompt_id":"p","hook_event_name":"SessionEnd","reason":"other"}"#,
        "s p /w: session over",
    ),
    ("MessageDisplay", r#"{"session_id":"s"}"#, "s - -: unused"),
];

const CODEX: Conversation = &[
    (
        "SessionStart",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"SessionStart","model":"m","source":"startup"}"#,
        "s - /w: session",
    ),
    (
        "UserPromptSubmit",
        r#"{"session_id":"s","turn_id":"t","cwd":"/w","hook_event_name":"UserPromptSubmit","prompt":"tidy up"}"#,
        "s t /w: turn \"tidy up\"",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","turn_id":"t","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Delete File: d/b\n*** End Patch\n"},"tool_use_id":"c1"}"#,
        "s t /w: tool c1 apply_patch [\"a\", \"d/b\"]",
    ),
    (
        "PostToolUse",
        r#"{"session_id":"s","turn_id":"t","cwd":"/w","hook_event_name":"PostToolUse","tool_name":"apply_patch","tool_input":{},"tool_response":"Exit code: 0\nWall time: 0 seconds\n","tool_use_id":"c1"}"#,
        "s t /w: ok c1 exit 0",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","turn_id":"t","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -r out"},"tool_use_id":"c2"}"#,
        "s t /w: shell c2 [\"rm -r out\"] somewhere",
    ),
    (
        "PostToolUse",
        r#"{"session_id":"s","turn_id":"t","cwd":"/w","hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":"Exit code: 2\n","tool_use_id":"c2"}"#,
        "s t /w: failed c2 exit 2",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","turn_id":"own","agent_id":"a1","agent_type":"default","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c3"}"#,
        "s own /w: shell c3 [\"ls\"] somewhere by a1 default",
    ),
    (
        "SubagentStop",
        r#"{"session_id":"s","turn_id":"own","agent_id":"a1","agent_type":"default","cwd":"/w","hook_event_name":"SubagentStop","stop_hook_active":false,"agent_transcript_path":"/t"}"#,
        "s own /w: agent over by a1 default",
    ),
    ("Stop", r#"{"session_id":"s","turn_id":"t","cwd":"/w","hook_event_name":"Stop"}"#, "s t /w: turn over"),
    (
        "SessionEnd",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"SessionEnd","reason":"other"}"#,
        "s - /w: session over",
    ),
];

const GEMINI_CLI: Conversation = &[
    (
        "SessionStart",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"SessionStart","timestamp":"2026-01-01T00:00:00Z","source":"startup"}"#,
        "s - /w: session",
    ),
    (
        "BeforeAgent",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"BeforeAgent","prompt":"tidy up"}"#,
        "s - /w: turn \"tidy up\"",
    ),
    (
        "BeforeTool",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"BeforeTool","tool_name":"replace","tool_input":{"file_path":"/w/a"}}"#,
        "s - /w: tool replace []",
    ),
    (
        "AfterTool",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"AfterTool","tool_name":"replace","tool_response":{"llmContent":"done"}}"#,
        "s - /w: ok",
    ),
    (
        "BeforeTool",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":{"command":"rm -rf out","dir_path":"sub","is_background":false}}"#,
        "s - /w: shell [\"rm -rf out\"] in sub",
    ),
    (
        "AfterTool",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"AfterTool","tool_name":"run_shell_command","tool_response":{"error":{"message":"no"}}}"#,
        "s - /w: failed",
    ),
    ("PreCompress", r#"{"session_id":"s","cwd":"/w","hook_event_name":"PreCompress"}"#, "s - /w: unused"),
    (
        "BeforeAgent",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"BeforeAgent","prompt":"/undo\n\n(piton answers this command itself.)"}"#,
        "s - /w: ask Undo",
    ),
    (
        "AfterAgent",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"AfterAgent","prompt":"tidy up"}"#,
        "s - /w: turn over",
    ),
    (
        "SessionEnd",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"SessionEnd","reason":"exit"}"#,
        "s - /w: session over",
    ),
];

const OPENCODE: Conversation = &[
    (
        "event.session.created",
        r#"{"hook":"event.session.created","input":{"id":"e","type":"session.created","properties":{"sessionID":"s","info":{"id":"s","directory":"/w"}}}}"#,
        "s - /w: session",
    ),
    (
        "chat.message",
        r#"{"hook":"chat.message","directory":"/w","input":{"sessionID":"s"},"output":{"message":{"id":"m","role":"user"},"parts":[{"type":"text","text":"tidy up"}]}}"#,
        "s m /w: turn \"tidy up\"",
    ),
    (
        "tool.execute.before",
        r#"{"hook":"tool.execute.before","directory":"/w","input":{"tool":"write","sessionID":"s","callID":"c1"},"output":{"args":{"filePath":"/w/a","content":"x"}}}"#,
        "s - /w: tool c1 write []",
    ),
    (
        "event.file.edited",
        r#"{"hook":"event.file.edited","input":{"id":"e","type":"file.edited","properties":{"file":"/w/a"}}}"#,
        "- - -: unused",
    ),
    (
        "tool.execute.after",
        r#"{"hook":"tool.execute.after","directory":"/w","input":{"tool":"write","sessionID":"s","callID":"c1","args":{}},"output":{"metadata":{}}}"#,
        "s - /w: ok c1",
    ),
    (
        "tool.execute.before",
        r#"{"hook":"tool.execute.before","directory":"/w","input":{"tool":"bash","sessionID":"s","callID":"c2"},"output":{"args":{"command":"rm -rf out","workdir":"/w/sub"}}}"#,
        "s - /w: shell c2 [\"rm -rf out\"] in /w/sub",
    ),
    ("shell.env", r#"{"hook":"shell.env","input":{"cwd":"/w","sessionID":"s","callID":"c2"}}"#, "s - -: unused"),
    (
        "event.session.created",
        r#"{"hook":"event.session.created","top":"s","input":{"id":"e","type":"session.created","properties":{"sessionID":"b","info":{"id":"b","parentID":"s","directory":"/w"}}}}"#,
        "s - /w: session by b -",
    ),
    (
        "chat.message",
        r#"{"hook":"chat.message","directory":"/w","top":"s","input":{"sessionID":"b","agent":"general"},"output":{"message":{"id":"n","role":"user"},"parts":[{"type":"text","text":"a part"}]}}"#,
        "s n /w: unused by b -",
    ),
    (
        "tool.execute.before",
        r#"{"hook":"tool.execute.before","directory":"/w","top":"s","input":{"tool":"bash","sessionID":"b","callID":"c3"},"output":{"args":{"command":"rm -r out"}}}"#,
        "s - /w: shell c3 [\"rm -r out\"] by b -",
    ),
    (
        "event.session.idle",
        r#"{"hook":"event.session.idle","directory":"/w","top":"s","input":{"type":"session.idle","properties":{"sessionID":"b"}}}"#,
        "s - /w: agent over by b -",
    ),
    (
        "tool.execute.after",
        r#"{"hook":"tool.execute.after","directory":"/w","input":{"tool":"bash","sessionID":"s","callID":"c2"},"output":{"metadata":{"exit":1}}}"#,
        "s - /w: failed c2 exit 1",
    ),
    (
        "command.execute.before",
        r#"{"hook":"command.execute.before","directory":"/w","prompt":"/rollback diff 3","input":{"command":"rollback","sessionID":"s","arguments":"diff 3"}}"#,
        "s - /w: ask Diff { checkpoint: \"3\" }",
    ),
    (
        "event.session.idle",
        r#"{"hook":"event.session.idle","directory":"/w","input":{"type":"session.idle","properties":{"sessionID":"s"}}}"#,
        "s - /w: turn over",
    ),
    ("dispose", r#"{"hook":"dispose","input":{}}"#, "- - -: unused"),
];

const COPILOT_CLI: Conversation = &[
    (
        "sessionStart",
        r#"{"sessionId":"s","timestamp":1790000000000,"cwd":"/w","source":"new","initialPrompt":"tidy up"}"#,
        "s - /w: session",
    ),
    (
        "userPromptSubmitted",
        r#"{"sessionId":"s","timestamp":1790000000001,"cwd":"/w","prompt":"tidy up"}"#,
        "s - /w: turn \"tidy up\"",
    ),
    (
        "preToolUse",
        r#"{"sessionId":"s","timestamp":1790000000002,"cwd":"/w","toolName":"create","toolArgs":{"path":"/w/a","file_text":"x"}}"#,
        "s - /w: tool create [] writes",
    ),
    (
        "permissionRequest",
        r#"{"hookName":"permissionRequest","sessionId":"s","cwd":"/w","toolName":"create","toolInput":{}}"#,
        "s - /w: unused",
    ),
    (
        "postToolUse",
        r#"{"sessionId":"s","cwd":"/w","toolName":"create","toolArgs":{},"toolResult":{"resultType":"success"}}"#,
        "s - /w: ok",
    ),
    (
        "userPromptSubmitted",
        r#"{"sessionId":"b","timestamp":1790000000003,"cwd":"/w","prompt":"a part","agentId":"b","agentType":"general-purpose","parentAgentId":"s"}"#,
        "s - /w: unused by b general-purpose",
    ),
    (
        "preToolUse",
        r#"{"sessionId":"b","cwd":"/w","toolName":"bash","toolArgs":{"command":"rm a"},"agentId":"b","agentType":"general-purpose","parentAgentId":"s"}"#,
        "s - /w: shell [\"rm a\"] by b general-purpose",
    ),
    (
        "agentStop",
        r#"{"sessionId":"b","cwd":"/w","stopReason":"end_turn","agentId":"b","agentType":"general-purpose","parentAgentId":"s"}"#,
        "s - /w: agent over by b general-purpose",
    ),
    (
        "preToolUse",
        r#"{"sessionId":"s","cwd":"/w","toolName":"bash","toolArgs":{"command":"rm -rf out","description":"d"}}"#,
        "s - /w: shell [\"rm -rf out\"]",
    ),
    (
        "postToolUse",
        r#"{"sessionId":"s","cwd":"/w","toolName":"bash","toolResult":{"resultType":"failure"}}"#,
        "s - /w: failed",
    ),
    // Nobody but a model could answer it there.
    ("userPromptSubmitted", r#"{"sessionId":"s","cwd":"/w","prompt":"/rollback 3"}"#, "s - /w: turn \"/rollback 3\""),
    ("agentStop", r#"{"sessionId":"s","cwd":"/w","stopReason":"end_turn"}"#, "s - /w: turn over"),
    ("sessionEnd", r#"{"sessionId":"s","cwd":"/w","reason":"complete"}"#, "s - /w: session over"),
];

const CLINE: Conversation = &[
    (
        "TaskStart",
        r#"{"taskId":"conv_1","sessionContext":{"rootSessionId":"1_a"},"workspaceRoots":["/w"],"workspaceInfo":{"rootPath":"/w"},"agent_id":"agent_1","parent_agent_id":null,"hookName":"agent_start","taskStart":{"taskMetadata":{}}}"#,
        "agent_1 - /w: turn \"\"",
    ),
    // A sub-agent has a task of its own.
    (
        "TaskStart",
        r#"{"taskId":"conv_2","sessionContext":{"rootSessionId":"1_a"},"workspaceRoots":["/w"],"agent_id":"agent_2","parent_agent_id":"agent_1","hookName":"agent_start","taskStart":{"taskMetadata":{}}}"#,
        "agent_1 - /w: unused by agent_2 -",
    ),
    (
        "PreToolUse",
        r#"{"taskId":"conv_2","workspaceRoots":["/w"],"agent_id":"agent_2","parent_agent_id":"agent_1","hookName":"tool_call","iteration":1,"tool_call":{"id":"c3","name":"run_commands","input":{"commands":["ls"]}}}"#,
        "agent_1 - /w: shell c3 [\"ls\"] somewhere by agent_2 -",
    ),
    (
        "TaskComplete",
        r#"{"taskId":"conv_2","workspaceRoots":["/w"],"agent_id":"agent_2","parent_agent_id":"agent_1","hookName":"agent_end","taskComplete":{"taskMetadata":{}}}"#,
        "agent_1 - /w: agent over by agent_2 -",
    ),
    (
        "TaskComplete",
        r#"{"taskId":"conv_1","workspaceRoots":["/w"],"agent_id":"agent_1","parent_agent_id":null,"hookName":"agent_end","taskComplete":{"taskMetadata":{}}}"#,
        "agent_1 - /w: turn over",
    ),
    // Of an older version, without the agents.
    (
        "TaskStart",
        r#"{"taskId":"s","workspaceRoots":["/w"],"workspaceInfo":{"rootPath":"/w"},"hookName":"agent_start","taskStart":{"taskMetadata":{}}}"#,
        "s - /w: turn \"\"",
    ),
    (
        "PreToolUse",
        r#"{"taskId":"s","workspaceRoots":["/w"],"hookName":"tool_call","iteration":1,"tool_call":{"id":"c1","name":"editor","input":{"path":"/w/a","new_text":"x"}},"preToolUse":{"toolName":"editor","parameters":{"path":"/w/a","new_text":"x"}}}"#,
        "s - /w: tool c1 editor [] writes",
    ),
    (
        "PostToolUse",
        r#"{"taskId":"s","workspaceRoots":["/w"],"hookName":"tool_result","tool_result":{"id":"c1","name":"editor"},"postToolUse":{"toolName":"editor","success":true}}"#,
        "s - /w: ok c1",
    ),
    (
        "PreToolUse",
        r#"{"taskId":"s","workspaceRoots":["/w"],"tool_call":{"id":"c2","name":"run_commands","input":{"commands":["cd sub","rm -rf out"]}}}"#,
        "s - /w: shell c2 [\"cd sub\", \"rm -rf out\"] somewhere",
    ),
    // Of an older version: one form only, with the array as text.
    (
        "PreToolUse",
        r#"{"taskId":"s","workspaceRoots":["/w"],"preToolUse":{"toolName":"run_commands","parameters":{"commands":"[\"rm -rf out\"]"}}}"#,
        "s - /w: shell [\"rm -rf out\"] somewhere",
    ),
    (
        "PreToolUse",
        r#"{"taskId":"s","workspaceRoots":["/w"],"preToolUse":{"toolName":"execute_command","parameters":{"command":"[ -d out ] && rm -r out"}}}"#,
        "s - /w: shell [\"[ -d out ] && rm -r out\"] somewhere",
    ),
    (
        "PostToolUse",
        r#"{"taskId":"s","workspaceRoots":["/w"],"tool_result":{"id":"c2"},"postToolUse":{"success":false}}"#,
        "s - /w: failed c2",
    ),
    (
        "UserPromptSubmit",
        r#"{"taskId":"s","workspaceRoots":["/w"],"userPromptSubmit":{"prompt":"/undo"}}"#,
        "s - /w: ask Undo",
    ),
    ("TaskComplete", r#"{"taskId":"s","workspaceRoots":["/w"],"hookName":"agent_end"}"#, "s - /w: turn over"),
];

const PI: Conversation = &[
    ("session_start", r#"{"type":"session_start","session":"s","cwd":"/w","reason":"startup"}"#, "s - /w: session"),
    ("input", r#"{"type":"input","session":"s","cwd":"/w","text":"tidy up","source":"interactive"}"#, "s - /w: unused"),
    (
        "before_agent_start",
        r#"{"type":"before_agent_start","session":"s","cwd":"/w","prompt":"tidy up"}"#,
        "s - /w: turn \"tidy up\"",
    ),
    ("agent_start", r#"{"type":"agent_start"}"#, "- - -: unused"),
    ("turn_start", r#"{"type":"turn_start","turnIndex":0}"#, "- - -: unused"),
    (
        "tool_execution_start",
        r#"{"type":"tool_execution_start","toolCallId":"c1","toolName":"write","args":{}}"#,
        "- - -: unused",
    ),
    (
        "tool_call",
        r#"{"type":"tool_call","session":"s","cwd":"/w","toolName":"edit","toolCallId":"c1","input":{"path":"/w/a","edits":[]}}"#,
        "s - /w: tool c1 edit []",
    ),
    (
        "tool_result",
        r#"{"type":"tool_result","session":"s","cwd":"/w","toolName":"edit","toolCallId":"c1","isError":false}"#,
        "s - /w: ok c1",
    ),
    ("tool_execution_end", r#"{"type":"tool_execution_end","toolCallId":"c1","isError":false}"#, "- - -: unused"),
    ("turn_end", r#"{"type":"turn_end","turnIndex":0}"#, "- - -: unused"),
    (
        "tool_call",
        r#"{"type":"tool_call","session":"s","cwd":"/w","toolName":"bash","toolCallId":"c2","input":{"command":"rm -rf out"}}"#,
        "s - /w: shell c2 [\"rm -rf out\"]",
    ),
    (
        "tool_result",
        r#"{"type":"tool_result","session":"s","cwd":"/w","toolName":"bash","toolCallId":"c2","isError":true}"#,
        "s - /w: failed c2",
    ),
    ("input", r#"{"type":"input","session":"s","cwd":"/w","text":"/rollback"}"#, "s - /w: ask List"),
    (
        "user_bash",
        r#"{"type":"user_bash","session":"s","cwd":"/w","command":"git status","line":1}"#,
        "s - /w: line 1 \"git status\"",
    ),
    ("user_bash_end", r#"{"type":"user_bash_end","session":"s","cwd":"/w","line":1}"#, "s - /w: line 1 over"),
    ("agent_end", r#"{"type":"agent_end","session":"s","cwd":"/w"}"#, "s - /w: turn over"),
    (
        "session_shutdown",
        r#"{"type":"session_shutdown","session":"s","cwd":"/w","reason":"quit"}"#,
        "s - /w: session over",
    ),
];

const DROID: Conversation = &[
    (
        "SessionStart",
        r#"{"session_id":"s","cwd":"/w","permission_mode":"off","hook_event_name":"SessionStart","source":"startup","CLAUDE_ENV_FILE":"/e"}"#,
        "s - /w: session",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","cwd":"/w","permission_mode":"auto-high","hook_event_name":"PreToolUse","tool_name":"Create","tool_input":{"file_path":"/w/a","content":"x"}}"#,
        "s - /w: tool Create [] writes",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Execute","tool_input":{"command":"rm -rf out","summary":"a step","riskLevel":{"value":"low","reason":"none"},"timeout":60}}"#,
        "s - /w: shell [\"rm -rf out\"]",
    ),
    (
        "PostToolUse",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"PostToolUse","tool_name":"Execute","tool_input":{"command":"rm -rf out"},"tool_response":"Command completed successfully\n\n[Process exited with code 0]"}"#,
        "s - /w: over",
    ),
    (
        "Stop",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"Stop","message_id":"m","stop_hook_active":false,"tool_execution_count":0,"elapsed_time":361}"#,
        "s - /w: turn over",
    ),
    (
        "SessionEnd",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"SessionEnd","reason":"other","session_duration_ms":1894.7,"message_count":9}"#,
        "s - /w: session over",
    ),
];

const HERMES_AGENT: Conversation = &[
    (
        "on_session_start",
        r#"{"hook_event_name":"on_session_start","tool_name":null,"tool_input":null,"session_id":"s","cwd":"/w","extra":{"model":"m"}}"#,
        "s - /w: session",
    ),
    (
        "pre_llm_call",
        r#"{"hook_event_name":"pre_llm_call","session_id":"s","cwd":"/w","extra":{"turn_id":"t","user_message":"tidy up"}}"#,
        "s t /w: turn \"tidy up\"",
    ),
    (
        "pre_tool_call",
        r#"{"hook_event_name":"pre_tool_call","tool_name":"patch","tool_input":{"path":"/w/a","mode":"replace"},"session_id":"s","cwd":"/w","extra":{"task_id":"s","tool_call_id":"c1","turn_id":"t"}}"#,
        "s t /w: tool c1 patch []",
    ),
    (
        "post_tool_call",
        r#"{"hook_event_name":"post_tool_call","tool_name":"patch","session_id":"s","cwd":"/w","extra":{"result":"{\"success\": true}","tool_call_id":"c1","turn_id":"t","status":"ok"}}"#,
        "s t /w: ok c1",
    ),
    (
        "pre_tool_call",
        r#"{"hook_event_name":"pre_tool_call","tool_name":"terminal","tool_input":{"command":"rm -rf out","workdir":"/w"},"session_id":"s","cwd":"/w","extra":{"tool_call_id":"c2","turn_id":"t"}}"#,
        "s t /w: shell c2 [\"rm -rf out\"] in /w",
    ),
    (
        "post_tool_call",
        r#"{"hook_event_name":"post_tool_call","tool_name":"terminal","session_id":"s","cwd":"/w","extra":{"result":"{\"output\": \"\", \"exit_code\": 1}","tool_call_id":"c2","turn_id":"t","status":"ok"}}"#,
        "s t /w: failed c2 exit 1",
    ),
    (
        "subagent_start",
        r#"{"hook_event_name":"subagent_start","tool_name":null,"tool_input":null,"session_id":"s","cwd":"/w","extra":{"parent_turn_id":"t","parent_subagent_id":null,"child_session_id":"s2","child_subagent_id":"sa-0-1","child_role":"leaf","child_goal":"g"}}"#,
        "s2 - /w: session below s",
    ),
    (
        "subagent_stop",
        r#"{"hook_event_name":"subagent_stop","tool_name":null,"tool_input":null,"session_id":"s","cwd":"/w","extra":{"parent_turn_id":"t","child_session_id":"s2","child_status":"completed"}}"#,
        "s2 - /w: session over below s",
    ),
    (
        "on_session_end",
        r#"{"hook_event_name":"on_session_end","tool_name":null,"session_id":"s","cwd":"/w","extra":{"turn_id":"t","completed":true}}"#,
        "s t /w: turn over",
    ),
    (
        "on_session_finalize",
        r#"{"hook_event_name":"on_session_finalize","tool_name":null,"session_id":"s","cwd":"/w","extra":{"reason":"shutdown"}}"#,
        "s - /w: session over",
    ),
];

const QWEN_CODE: Conversation = &[
    (
        "SessionStart",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"SessionStart","source":"startup"}"#,
        "s - /w: session",
    ),
    (
        "Notification",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"Notification","message":"m"}"#,
        "s - /w: unused",
    ),
    (
        "UserPromptSubmit",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"UserPromptSubmit","prompt_id":"s####0","prompt":"tidy up"}"#,
        "s s####0 /w: turn \"tidy up\"",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","prompt_id":"s####0","tool_name":"edit","tool_input":{"file_path":"/w/a"},"tool_use_id":"u1","tool_call_id":"c1"}"#,
        "s s####0 /w: tool u1 edit []",
    ),
    (
        "PostToolUse",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"PostToolUse","prompt_id":"s####0","tool_name":"edit","tool_use_id":"u1","tool_call_id":"c1"}"#,
        "s s####0 /w: ok u1",
    ),
    (
        "UserPromptSubmit",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"UserPromptSubmit","prompt_id":"s####0","prompt":""}"#,
        "s s####0 /w: unused",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","prompt_id":"s####0","tool_name":"run_shell_command","tool_input":{"command":"rm -rf out","is_background":false},"tool_use_id":"u2","tool_call_id":"c2"}"#,
        "s s####0 /w: shell u2 [\"rm -rf out\"]",
    ),
    (
        "UserPromptSubmit",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"UserPromptSubmit","prompt_id":"s####0","prompt":""}"#,
        "s s####0 /w: unused",
    ),
    // A custom command: what was typed stands beside the text that it became.
    (
        "UserPromptSubmit",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"UserPromptSubmit","prompt_id":"s####0","prompt":"/rollback $ARGUMENTS\n\n(a note)\n\n/rollback diff 1","submitted_prompt":"/rollback diff 1"}"#,
        "s s####0 /w: ask Diff { checkpoint: \"1\" }",
    ),
    (
        "PreToolUse",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","permission_mode":"yolo","agent_id":"general-purpose-c1","prompt_id":"s####0","tool_name":"run_shell_command","tool_input":{"command":"ls"},"tool_use_id":"u3","tool_call_id":"c3"}"#,
        "s s####0 /w: shell u3 [\"ls\"] by general-purpose-c1 -",
    ),
    (
        "SubagentStop",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"SubagentStop","stop_hook_active":false,"agent_id":"general-purpose-c1","agent_type":"general-purpose","agent_transcript_path":"/t"}"#,
        "s - /w: agent over by general-purpose-c1 general-purpose",
    ),
    (
        "Stop",
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"Stop","prompt_id":"s####0","context_usage":5e-05}"#,
        "s s####0 /w: turn over",
    ),
];

const CURSOR: Conversation = &[
    (
        "beforeSubmitPrompt",
        r#"{"conversation_id":"s","generation_id":"t","hook_event_name":"beforeSubmitPrompt","workspace_roots":["/w"],"prompt":"tidy up"}"#,
        "s t /w: turn \"tidy up\"",
    ),
    (
        "beforeShellExecution",
        r#"{"conversation_id":"s","generation_id":"t","hook_event_name":"beforeShellExecution","workspace_roots":["/w"],"command":"rm -rf out","cwd":"/w/sub"}"#,
        "s t /w/sub: shell [\"rm -rf out\"]",
    ),
    (
        "preToolUse",
        r#"{"conversation_id":"s","generation_id":"t","hook_event_name":"preToolUse","workspace_roots":["/w"],"tool_name":"Shell","tool_input":{"command":"rm -rf out","working_directory":"/w/sub"},"tool_use_id":"u"}"#,
        "s t /w: shell u [\"rm -rf out\"] in /w/sub",
    ),
    (
        "postToolUse",
        r#"{"conversation_id":"s","generation_id":"t","hook_event_name":"postToolUse","workspace_roots":["/w"],"tool_name":"Write","tool_use_id":"u"}"#,
        "s t /w: ok u",
    ),
    (
        "stop",
        r#"{"conversation_id":"s","generation_id":"t","hook_event_name":"stop","workspace_roots":["/w"],"status":"completed"}"#,
        "s t /w: turn over",
    ),
];

const CRUSH: Conversation = &[
    (
        "PreToolUse",
        r#"{"event":"PreToolUse","session_id":"s","cwd":"/w","tool_name":"bash","tool_input":{"command":"rm -rf out"}}"#,
        "s - /w: shell [\"rm -rf out\"]",
    ),
    (
        "PreToolUse",
        r#"{"event":"PreToolUse","session_id":"s","cwd":"/w","tool_name":"multiedit","tool_input":{"file_path":"a"}}"#,
        "s - /w: tool multiedit []",
    ),
];

const GOOSE: Conversation = &[
    (
        "UserPromptSubmit",
        r#"{"event":"UserPromptSubmit","session_id":"s","matcher_context":"tidy up","message":"tidy up"}"#,
        "s - -: turn \"tidy up\"",
    ),
    (
        "PreToolUse",
        r#"{"event":"PreToolUse","session_id":"s","tool_name":"developer__shell","tool_input":{"command":"rm -rf out"},"working_dir":"/w","tool_call_id":"c"}"#,
        "s - /w: shell c [\"rm -rf out\"]",
    ),
    (
        "PostToolUseFailure",
        r#"{"event":"PostToolUseFailure","session_id":"s","tool_name":"developer__shell","working_dir":"/w","tool_call_id":"c"}"#,
        "s - /w: failed c",
    ),
];

const KIMI_CODE: Conversation = &[
    (
        "SessionStart",
        r#"{"hook_event_name":"SessionStart","session_id":"session_1","cwd":"/w","client_type":"kimi_code_cli","source":"startup","model":"m","profile":"agent"}"#,
        "session_1 - /w: session",
    ),
    (
        "UserPromptSubmit",
        r#"{"hook_event_name":"UserPromptSubmit","session_id":"session_1","cwd":"/w","client_type":"kimi_code_cli","prompt":[{"type":"text","text":"tidy up"}],"is_steer":false}"#,
        "session_1 - /w: turn \"tidy up\"",
    ),
    (
        "TurnStarted",
        r#"{"hook_event_name":"TurnStarted","session_id":"session_1","cwd":"/w","turn_id":0,"origin_kind":"user","prompt":"tidy up"}"#,
        "session_1 - /w: unused",
    ),
    (
        "PreToolUse",
        r#"{"hook_event_name":"PreToolUse","session_id":"session_1","cwd":"/w","client_type":"kimi_code_cli","tool_name":"Write","tool_input":{"path":"a","content":"new"},"tool_call_id":"call_1"}"#,
        "session_1 - /w: tool call_1 Write []",
    ),
    (
        "PostToolUse",
        r#"{"hook_event_name":"PostToolUse","session_id":"session_1","cwd":"/w","tool_name":"Write","tool_input":{"path":"a"},"tool_call_id":"call_1","tool_output":"Wrote 3 bytes to a"}"#,
        "session_1 - /w: ok call_1",
    ),
    (
        "PreToolUse",
        r#"{"hook_event_name":"PreToolUse","session_id":"session_1","cwd":"/w","tool_name":"Bash","tool_input":{"command":"rm -rf out","cwd":"/w/sub"},"tool_call_id":"call_2"}"#,
        "session_1 - /w: shell call_2 [\"rm -rf out\"] in /w/sub",
    ),
    (
        "PostToolUseFailure",
        r#"{"hook_event_name":"PostToolUseFailure","session_id":"session_1","cwd":"/w","tool_name":"Bash","tool_call_id":"call_2","error":{"code":"internal","message":"Command failed with exit code: 2.","retryable":false}}"#,
        "session_1 - /w: failed call_2",
    ),
    (
        "UserPromptSubmit",
        r#"{"hook_event_name":"UserPromptSubmit","session_id":"session_1","cwd":"/w","prompt":[{"type":"image","url":"x"}]}"#,
        "session_1 - /w: turn \"\"",
    ),
    (
        "UserPromptSubmit",
        r#"{"hook_event_name":"UserPromptSubmit","session_id":"session_1","cwd":"/w","prompt":[{"type":"text","text":"/undo"}]}"#,
        "session_1 - /w: ask Undo",
    ),
    (
        "Stop",
        r#"{"hook_event_name":"Stop","session_id":"session_1","cwd":"/w","stop_hook_active":false}"#,
        "session_1 - /w: unused",
    ),
    (
        "Interrupt",
        r#"{"hook_event_name":"Interrupt","session_id":"session_1","cwd":"/w","turn_id":0,"reason":"cancelled"}"#,
        "session_1 - /w: turn over",
    ),
];
