//! The verb `mcp-proxy`. Without a place for checkpoints the server is still reached, unguarded and with a line on
//! stderr, unless a policy forbids that.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use super::context::{GlobalArgs, flags, named};
use crate::checkpoint::Home;
use crate::checkpoint::records::workspace::root_for;
use crate::doors::mcp::{self, Guarding, Proxied};
use crate::error::{Error, Result};
use crate::model::effect::Stance;
use crate::model::policy::{OnFailure, Policy};
use crate::settings;

/// The arguments of `piton mcp-proxy`.
#[derive(Debug, Args)]
pub(super) struct McpProxyArgs {
    /// The command that starts the MCP server, and its arguments
    #[arg(last = true, required = true, value_name = "SERVER")]
    pub command: Vec<OsString>,
}

/// Runs it; the exit code is the server's own.
pub(super) fn proxy(global: &GlobalArgs, args: &McpProxyArgs) -> Result<ExitCode> {
    // Without a working directory a workspace has to be named: the code that needs one says so.
    let cwd = std::env::current_dir().ok();
    let (flags, workspace) = (flags(global)?, named(global, cwd.as_deref()));
    let guarding = match Home::locate() {
        Ok(home) => Guarding::By(home),
        Err(error) => {
            let root = workspace.clone().or_else(|| Some(root_for(cwd.as_deref()?, &[])));
            match holds_without_home(root.as_deref(), &flags) {
                Some(why) => return Err(refusal(error, why)),
                None => Guarding::Nobody(error.text()),
            }
        }
    };
    let code = mcp::proxy(Proxied { guarding, workspace, flags, command: args.command.clone() })?;
    Ok(ExitCode::from(code))
}

/// Returns the setting by which nothing may pass unguarded, where piton's own directory cannot be used.
pub(super) fn holds_without_home(root: Option<&Path>, flags: &[(String, String)]) -> Option<&'static str> {
    // Without a home nothing is trusted, and so a workspace's file cannot have weakened it.
    let known = settings::load(root, "/nonexistent".as_ref(), flags);
    known.ok().and_then(|known| holds(&known.policy))
}

/// Returns the setting by which nothing may pass unguarded.
pub(super) fn holds(policy: &Policy) -> Option<&'static str> {
    let refuses = policy.collision >= Stance::Ask
        || policy.classes.iter().any(|rule| rule.answer.is_some_and(|answer| answer >= Stance::Ask));
    match policy.on_failure {
        OnFailure::Hold => Some("on_failure"),
        OnFailure::Proceed => refuses.then_some("policy"),
    }
}

fn refusal(error: Error, why: &str) -> Error {
    error.context(format!("the MCP server was not started, because the setting `{why}` does not allow unguarded calls"))
}
