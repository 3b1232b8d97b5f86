//! `piton store move`: the store goes to another directory.

use std::path::Path;

use crate::checkpoint::upkeep::relocate::Relocation;
use crate::cli::confirm::agreed;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::person;
use crate::cli::print;
use crate::doors::socket::{Probe, probe};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::text::bytes;
use crate::protocol::MoveDocument;

/// Moves piton's home.
///
/// # Errors
/// `conflict` where it would not be safe, or the daemon runs; those of [`Relocation`].
pub(super) fn relocate(context: &Context, to: &Path, yes: bool) -> Result<Exit> {
    if matches!(probe(&context.home)?, Probe::Daemon(_) | Probe::Silent) {
        let text = "the daemon is running, and would keep using the old directory";
        return Err(Error::new(Code::Conflict, text).hint("to stop the daemon, run `piton daemon stop`"));
    }
    let plan = Relocation::plan(&context.home, &std::path::absolute(to).at("resolving", to)?)?;
    let document = |moved| MoveDocument {
        from: plan.from.to_string_lossy().into_owned(),
        to: plan.to.to_string_lossy().into_owned(),
        bytes: plan.bytes,
        copy: plan.is_copy,
        moved,
    };
    let (from, new) = (print::path(&plan.from), print::path(&plan.to));
    if !context.json {
        let how = if plan.is_copy { "copied to another file system" } else { "renamed" };
        print::data(&format!(
            "{from} ({}) will be {how}: {new}\nA link will remain in its place.\n",
            bytes(plan.bytes)
        ))?;
    }
    if !yes && context.json {
        print::json_as_declared(&document(false))?;
        return Ok(Exit::Refused);
    }
    person::require("only a person can move the store")?;
    if let Some(exit) = (!yes).then(|| agreed("Move")).flatten() {
        return Ok(exit);
    }
    plan.carry_out(&context.home, context.work())?;
    match context.json {
        true => print::json_as_declared(&document(true))?,
        false => {
            print::data(&format!("Moved. {from} is now a link to {new}, so you need not change anything else.\n"))?;
        }
    }
    Ok(Exit::Done)
}
