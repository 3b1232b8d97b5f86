//! One file for each client: its payloads, its replies, and the files of its installation.

mod claude_code;
pub(super) mod cline;
pub(super) mod codex;
mod commands;
pub(super) mod copilot_cli;
mod crush;
mod cursor;
mod droid;
pub(super) mod gemini_cli;
mod goose;
mod hermes_agent;
mod kimi_code;
pub(super) mod opencode;
pub(super) mod pi;
pub(super) mod qwen_code;

use super::client::Client;
use super::profile::Profile;

/// Returns all that is particular to a client.
pub(super) fn profile(client: Client) -> &'static Profile {
    match client {
        Client::ClaudeCode => &claude_code::PROFILE,
        Client::Codex => &codex::PROFILE,
        Client::GeminiCli => &gemini_cli::PROFILE,
        Client::Opencode => &opencode::PROFILE,
        Client::CopilotCli => &copilot_cli::PROFILE,
        Client::QwenCode => &qwen_code::PROFILE,
        Client::Cline => &cline::PROFILE,
        Client::Pi => &pi::PROFILE,
        Client::Droid => &droid::PROFILE,
        Client::HermesAgent => &hermes_agent::PROFILE,
        Client::Cursor => &cursor::PROFILE,
        Client::Crush => &crush::PROFILE,
        Client::Goose => &goose::PROFILE,
        Client::KimiCode => &kimi_code::PROFILE,
    }
}
