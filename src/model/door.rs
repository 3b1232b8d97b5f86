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
}

impl Door {
    /// All of them.
    pub const ALL: [Door; 4] = [Door::Hook, Door::Sidecar, Door::Stream, Door::McpProxy];

    /// Returns the word of the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Door::Hook => "hook",
            Door::Sidecar => "sidecar",
            Door::Stream => "stream",
            Door::McpProxy => "mcp-proxy",
        }
    }
}
