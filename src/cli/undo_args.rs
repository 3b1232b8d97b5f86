//! The arguments of `piton undo` and `piton redo`, and the words that name a turn, the newest operation, or paths.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::context::Context;
use super::named::is_path;
use super::path_words::is_pattern;
use super::stop;
use crate::checkpoint::Timeline;
use crate::checkpoint::catalog::words::{is_operation, is_turn};
use crate::checkpoint::history::group::Stepping;
use crate::checkpoint::history::step_choice::StepChoice;
use crate::checkpoint::history::undo::Direction;
use crate::error::{Code, Error, Result};
use crate::model::text::{printable, shell_word};
use crate::model::turn::Attribution;

/// The shares in changes that an undo of a turn takes back only if asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Included {
    /// Changed while the turn ran a command that can change any file
    Likely,
    /// Written again after the turn's action, before the turn ended
    Touched,
    /// Changed by several runs, or by a run and a person
    Shared,
    /// Changed by an unknown action
    Unknown,
}

impl Included {
    /// Returns the share.
    pub(super) fn share(self) -> Attribution {
        match self {
            Included::Likely => Attribution::Likely,
            Included::Touched => Attribution::Touched,
            Included::Shared => Attribution::Shared,
            Included::Unknown => Attribution::Unknown,
        }
    }
}

/// The arguments of `piton undo`.
#[derive(Debug, Args)]
pub(super) struct UndoArgs {
    /// A turn (t-3), the newest operation (o-2), a git command (g-7), or paths or patterns, which are undone in the newest turn that
    /// changed them [default: the newest turn or operation]
    #[arg(value_name = "TURN|PATH")]
    pub what: Vec<String>,
    /// Keep the turn's changes to this path, or to paths that match this pattern (repeatable)
    #[arg(long, value_name = "PATTERN")]
    pub except: Vec<PathBuf>,
    /// Undo this turn; give its name in `piton list --turns`, or the client's name for it
    #[arg(long, value_name = "TURN")]
    pub turn: Option<String>,
    /// Undo all turns of this run, newest first; with --turn, undo only that turn of the run
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Also undo changes of these kinds, which might be someone else's
    #[arg(long, value_name = "SHARE", value_delimiter = ',')]
    pub include: Vec<Included>,
    /// Undo the newest git command: refs, the index, the stash and files; `piton list --git` lists the commands
    #[arg(long, conflicts_with_all = ["what", "turn", "run", "include", "hunk", "paths", "interactive"])]
    pub git: bool,
    /// With --git: restore the repository, but not the files, as it was at this checkpoint
    #[arg(long, value_name = "CHECKPOINT", requires = "git")]
    pub to: Option<String>,
    /// Choose files and hunks interactively in the terminal
    #[arg(long, short = 'i', conflicts_with_all = ["yes", "json", "preview", "hunk"])]
    pub interactive: bool,
    /// Choose among the hunks of the turn by answering a question for each hunk
    #[arg(long, conflicts_with_all = ["yes", "json"])]
    pub hunk: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
    /// Undo only these paths, in the newest turn that changed them
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// The arguments of `piton redo`.
#[derive(Debug, Args)]
pub(super) struct RedoArgs {
    /// The undone turn to redo (t-3) [default: what was undone last]
    #[arg(value_name = "TURN", conflicts_with = "turn")]
    pub what: Option<String>,
    /// Redo this undone turn; give its name in `piton list --turns`, or the client's name for it
    #[arg(long, value_name = "TURN")]
    pub turn: Option<String>,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
}

/// The turn and the paths that the words name.
pub(super) struct UndoWords {
    /// The turn; `None` for the newest, or the newest operation.
    pub turn: Option<String>,
    /// The paths, from the working directory; all if empty.
    pub paths: Vec<PathBuf>,
}

/// Parses the words. Those after the first are paths, and so is each word after `--` or with `--turn`.
///
/// # Errors
/// `bad-request` for a checkpoint, `no-such-turn` for a word that names nothing, `stale-selection` for an operation that is not the next
/// one to undo, `ambiguous-checkpoint` for a word that names a turn and a path.
pub(super) fn read(context: &Context, timeline: &mut Timeline, args: &UndoArgs) -> Result<UndoWords> {
    let mut paths: Vec<PathBuf> = args.what.iter().map(PathBuf::from).collect();
    paths.extend(args.paths.iter().cloned());
    let first = args.what.first().filter(|_| args.turn.is_none());
    let Some(word) = first else { return Ok(UndoWords { turn: args.turn.clone(), paths }) };
    if is_operation(word) {
        require_next(timeline, word)?;
        return Ok(UndoWords { turn: None, paths: paths.split_off(1) });
    }
    if is_turn(word) {
        return Ok(UndoWords { turn: Some(word.clone()), paths: paths.split_off(1) });
    }
    let all = timeline.catalog().all()?;
    let is_path = is_path(context, timeline, word, &all.checkpoints)?;
    let is_turn = timeline.catalog().turn_named(word, None).is_ok();
    let shown = printable(word);
    match (is_path, is_turn) {
        (true, false) => Ok(UndoWords { turn: None, paths }),
        (false, true) => Ok(UndoWords { turn: Some(word.clone()), paths: paths.split_off(1) }),
        (true, true) => {
            let word = shell_word(word);
            Err(Error::new(Code::AmbiguousCheckpoint, format!("`{shown}` is both a turn and a path")).hint(format!(
                "for the turn, run `piton undo --turn {word}`; for the path, run `piton undo -- {word}`"
            )))
        }
        (false, false) if is_pattern(word) => Ok(UndoWords { turn: None, paths }),
        (false, false) => match timeline.catalog().resolve(word) {
            Ok(found) => {
                let text =
                    format!("`{shown}` is a checkpoint, but undo accepts only a turn, the newest operation, or paths");
                let hint = format!("to restore the files as they were then, run `piton restore {}`", found.shown());
                Err(Error::new(Code::BadRequest, text).hint(hint))
            }
            Err(_) => Err(Error::new(Code::NoSuchTurn, format!("`{shown}` is neither a turn nor a path here"))
                .hint("`piton list --turns` lists the turns")),
        },
    }
}

/// Refuses an operation that is not the one that undo takes next.
fn require_next(timeline: &mut Timeline, word: &str) -> Result<()> {
    let next = Stepping::choose(timeline, Direction::Undo, &StepChoice::default(), "local", &stop::flow)?;
    let next = next.map(|next| next.step.op.clone());
    if next.as_deref() == Some(word) {
        return Ok(());
    }
    let text = format!("`{}` is not the newest operation that can be undone", printable(word));
    Err(Error::new(Code::StaleSelection, text).hint(match next {
        Some(next) => format!("`piton undo` undoes {next} first"),
        None => "there is nothing left to undo".to_owned(),
    }))
}
