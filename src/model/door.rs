//! The kinds of doors through which clients tell of their work.

use serde::{Deserialize, Serialize};

/// A kind of door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Door {
    /// A client's hook: a process for each event.
    Hook,
    /// The line protocol, which the client speaks itself.
    Sidecar,
    /// A client's own stream, which piton reads.
    Stream,
    /// The proxy before an MCP server.
    McpProxy,
    /// An agent that runs under `piton run`.
    Run,
    /// `piton watch`, which saves changes whoever makes them.
    Watch,
    /// A shell, with the lines that a person types.
    Shell,
    /// git itself, which tells of its own commands, whoever runs them.
    Git,
}

impl Door {
    /// All of them.
    pub const ALL: [Door; 8] =
        [Door::Hook, Door::Sidecar, Door::Stream, Door::McpProxy, Door::Run, Door::Watch, Door::Shell, Door::Git];

    /// Returns the word of the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Door::Hook => "hook",
            Door::Sidecar => "sidecar",
            Door::Stream => "stream",
            Door::McpProxy => "mcp-proxy",
            Door::Run => "run",
            Door::Watch => "watch",
            Door::Shell => "shell",
            Door::Git => "git",
        }
    }
}
