//! A command line as this process judges it, before the engine is asked.

use std::path::PathBuf;
use std::time::Duration;

use super::classify::CommandJudge;
use super::context::{Context, GlobalArgs};
use crate::engine::parts::OUTSIDE;
use crate::error::Result;
use crate::model::effect::Verdict;
use crate::model::policy::{OnFailure, Opaque, Policy};

/// A line as this process judges it, and the settings that matter for it.
pub(super) struct JudgedLine {
    pub verdict: Verdict,
    /// The wish of the settings where piton fails.
    pub on_failure: OnFailure,
    /// The wish of the settings for what cannot be seen into.
    pub opaque: Opaque,
    /// The longest wait of a line for its checkpoint.
    pub deadline: Duration,
}

impl JudgedLine {
    /// Judges a line that runs in the working directory. `place` is the path of that, should it be gone.
    ///
    /// # Errors
    /// When the settings cannot be resolved.
    pub(super) fn of(place: Option<PathBuf>, command: &str) -> Result<JudgedLine> {
        let own = Context::new(&GlobalArgs::default()).and_then(|context| CommandJudge::quiet(&context));
        // A policy holds also where piton's directory or the working directory cannot be used.
        let judge = own.or_else(|_| CommandJudge::anywhere(place.unwrap_or_else(|| PathBuf::from(OUTSIDE))))?;
        Ok(JudgedLine::by(judge, command))
    }

    /// Judges a line that runs in another directory.
    ///
    /// # Errors
    /// When the settings cannot be resolved.
    pub(super) fn in_dir(dir: PathBuf, command: &str) -> Result<JudgedLine> {
        Ok(JudgedLine::by(CommandJudge::anywhere(dir)?, command))
    }

    fn by(judge: CommandJudge, command: &str) -> JudgedLine {
        let Policy { on_failure, opaque, deadline, .. } = judge.policy;
        JudgedLine { verdict: judge.verdict(command), on_failure, opaque, deadline }
    }
}
