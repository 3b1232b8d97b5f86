//! `piton classify`: what a command would do, for people and for programs.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::checkpoint::records::workspace::root_for;
use crate::checkpoint::{Home, Workspace};
use crate::classify::{self, Classifier};
use crate::doors::replies::classified;
use crate::engine::reach::judged_line;
use crate::error::{IoContext, Result};
use crate::model::effect::{Certainty, Class, Confidence, Effect, Scope, Verdict};
use crate::model::policy::{Opaque, Policy};
use crate::model::text::printable;
use crate::protocol::{ClassifyDocument, spelling};
use crate::settings::{self, Effective};

/// The arguments of `piton classify`.
#[derive(Debug, Args)]
pub(super) struct ClassifyArgs {
    /// The command, as one word or several
    #[arg(required_unless_present = "stdin", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// Read commands from stdin, one per line, plain or as a JSON string; print one JSON object per line
    #[arg(long, conflicts_with = "command")]
    pub stdin: bool,
}

/// The parts that judging needs.
pub(super) struct CommandJudge {
    classifier: Classifier,
    surroundings: classify::Context,
    pub policy: Policy,
}

impl CommandJudge {
    fn new(context: &Context) -> Result<CommandJudge> {
        let root = context.root()?;
        let effective = context.settings_of(&root)?;
        effective.faults().iter().for_each(|fault| print::warning(fault));
        Ok(CommandJudge::of(context.home.own_dirs(), root, effective))
    }

    /// Makes a judge that says nothing of mistakes in the settings.
    ///
    /// # Errors
    /// When the settings or the known workspaces cannot be read.
    pub(super) fn quiet(context: &Context) -> Result<CommandJudge> {
        let root = context.root()?;
        let effective = context.settings_of(&root)?;
        Ok(CommandJudge::of(context.home.own_dirs(), root, effective))
    }

    /// Makes a judge for a directory that may be gone, which needs no home of piton's: where none can be read, nothing is
    /// known of workspaces.
    ///
    /// # Errors
    /// When the settings cannot be resolved.
    pub(super) fn anywhere(cwd: PathBuf) -> Result<CommandJudge> {
        // A verb that needs the home itself says what is wrong with it. The policy of the user's settings holds without it.
        let home = Home::locate().ok();
        let known = home.as_ref().and_then(|home| Workspace::known(home).ok()).unwrap_or_default();
        let here = cwd.ancestors().find(|dir| dir.is_dir()).unwrap_or(&cwd);
        let root = root_for(here, &known);
        // Without piton's directory no settings of a workspace are trusted, and nothing is recorded.
        let trusting = home.as_ref().map_or(Path::new("/nonexistent"), Home::path);
        let effective = settings::load(Some(&root), trusting, &[])?;
        let own = home.as_ref().map(Home::own_dirs).unwrap_or_default();
        let mut judge = CommandJudge::of(own, root, effective);
        judge.surroundings.cwd = cwd;
        Ok(judge)
    }

    fn of(piton: Vec<PathBuf>, root: PathBuf, mut effective: Effective) -> CommandJudge {
        CommandJudge {
            classifier: crate::engine::rules::classifier(&mut effective, None),
            surroundings: classify::Context {
                cwd: std::env::current_dir().unwrap_or_default(),
                aliases: Vec::new(),
                links: Vec::new(),
                tops: Vec::new(),
                files: Vec::new(),
                existing: Vec::new(),
                checkouts: Vec::new(),
                workspace: root.canonicalize().unwrap_or(root),
                home: std::env::home_dir(),
                temp_dirs: crate::engine::reach::temp_dirs(),
                piton,
            },
            policy: effective.policy,
        }
    }

    /// Judges a command line.
    pub(super) fn verdict(&self, command: &str) -> Verdict {
        judged_line(self.surroundings.clone(), &self.classifier, command, &self.policy)
    }
}

/// `piton classify COMMAND…` and `piton classify --stdin`.
///
/// # Errors
/// When settings cannot be read, or stdin or stdout fail.
pub(super) fn classify(context: &mut Context, args: &ClassifyArgs) -> Result<Exit> {
    let judge = CommandJudge::new(context)?;
    if args.stdin {
        return many(&judge);
    }
    let command = args.command.join(" ");
    let verdict = judge.verdict(&command);
    if context.json {
        print::json(&answer(&command, &verdict))?;
    } else {
        print::data(&explained(&command, &verdict, judge.policy.opaque))?;
    }
    Ok(Exit::Done)
}

/// One answer a line, in the order of the commands; a line that is a JSON string stands for its text.
fn many(judge: &CommandJudge) -> Result<Exit> {
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).at("reading", "stdin")? > 0 {
        let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned();
        // Most lines are plain text: for them this is no mistake.
        let command = serde_json::from_str::<String>(&text).unwrap_or(text);
        // As a value: its fields come in the order of the alphabet, as everywhere.
        print::line(&serde_json::to_value(answer(&command, &judge.verdict(&command))).unwrap_or_default())?;
        line.clear();
    }
    Ok(Exit::Done)
}

fn answer(command: &str, verdict: &Verdict) -> ClassifyDocument {
    let (command, hold) = (command.to_owned(), verdict.hold.clone());
    ClassifyDocument { command, verdict: classified(verdict), hold }
}

fn explained(command: &str, verdict: &Verdict, opaque: Opaque) -> String {
    let mut text = marked(command, &verdict.effects);
    add_line!(text, "\n{}", response(verdict, opaque));
    for effect in &verdict.effects {
        add_line!(text, "  {}", sentence(effect));
    }
    for warning in &verdict.warnings {
        add_line!(text, "  warning: {}", printable(&warning.message));
    }
    if let Some(reason) = &verdict.hold {
        add_line!(text, "  blocked: {}", printable(reason));
    }
    text
}

/// Says what piton does before the command runs.
fn response(verdict: &Verdict, opaque: Opaque) -> &'static str {
    let is_opaque = verdict.confidence == Confidence::Opaque;
    match opaque {
        _ if verdict.needs.checkpoint() => "piton takes a checkpoint first.",
        Opaque::Checkpoint if is_opaque => "piton cannot see what this does, so it takes a checkpoint first.",
        Opaque::Ignore if is_opaque => {
            "piton cannot see what this does. `opaque: ignore` is set, so it saves only what changed since the last checkpoint."
        }
        _ if verdict.only_reads() => "This only reads files, so piton does nothing.",
        _ => "This names no file that it would destroy, so piton saves only what changed since the last checkpoint.",
    }
}

/// Returns the command as it is printed, with a line of `^` below the places of the effects.
fn marked(command: &str, effects: &[Effect]) -> String {
    let mut text = String::new();
    let mut start = 0;
    for line in command.split('\n') {
        let (mut shown, mut marks) = (String::new(), String::new());
        for (at, letter) in line.char_indices() {
            let place = start + at;
            let hit = effects.iter().any(|effect| effect.span.0 <= place && place < effect.span.1);
            let seen = printable(letter.encode_utf8(&mut [0; 4]));
            marks.extend(seen.chars().map(|_| if hit { '^' } else { ' ' }));
            shown.push_str(&seen);
        }
        add_line!(text, "  {shown}");
        if marks.contains('^') {
            add_line!(text, "  {}", marks.trim_end());
        }
        start += line.len() + 1;
    }
    text
}

fn sentence(effect: &Effect) -> String {
    let target = match &effect.target {
        Some(target) => format!("`{}`", printable(target)),
        None => "something that the command does not name".to_owned(),
    };
    let does = match effect.class {
        Class::FileDelete => format!("deletes {target}"),
        Class::FileOverwrite => format!("replaces the content of {target}"),
        Class::FileWrite => format!("creates or appends to {target}"),
        Class::FileMove => format!("moves {target}"),
        Class::FilePerm => format!("changes the mode or owner of {target}"),
        Class::VcsDiscard => "discards uncommitted work".to_owned(),
        Class::VcsHistory => "changes branches, tags, stashes or commits".to_owned(),
        Class::VcsRemote => "changes a remote repository or its forge".to_owned(),
        Class::Database => "might change a database".to_owned(),
        Class::NetworkWrite => "sends data over the network".to_owned(),
        Class::Container => "changes containers, images or volumes".to_owned(),
        Class::Cloud => "changes infrastructure".to_owned(),
        Class::Publish => "publishes".to_owned(),
        Class::Process => "ends running processes".to_owned(),
        Class::System => format!("changes the system: {target}"),
        Class::RemoteShell => "acts on another machine".to_owned(),
        Class::ExecRemote => "runs code that was just downloaded or decoded".to_owned(),
        Class::ExecOpaque => format!("runs {target}, and piton cannot see what that does"),
        Class::Piton => "changes piton's own data".to_owned(),
        Class::Unknown => "is not understood".to_owned(),
    };
    let sure = match effect.certainty {
        Certainty::Proven => "",
        Certainty::Likely => ", as far as piton can see",
        Certainty::Named => ", and its name suggests more than a build",
    };
    let place = match effect.scope {
        Scope::Workspace | Scope::Remote | Scope::Unknown => String::new(),
        scope => format!(", {}", spelling(&scope)),
    };
    let undone = if effect.reversible { "" } else { ", which restoring files does not undo" };
    format!(
        "`{}` {does}{sure}{undone}.  [{}, rule {}{place}]",
        printable(&effect.verb),
        effect.class.as_str(),
        effect.rule
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::effect::{Needs, Programs};

    fn effect(span: (usize, usize)) -> Effect {
        Effect {
            class: Class::FileDelete,
            verb: "rm".into(),
            target: Some("é\u{1b}".into()),
            scope: Scope::Home,
            certainty: Certainty::Likely,
            reversible: true,
            severity: crate::model::effect::Severity::Medium,
            rule: "rm".into(),
            span,
        }
    }

    #[test]
    fn places_are_marked_below_the_line() {
        let shown = marked("ls; rm é\u{1b} && ls\nrm b", &[effect((4, 10)), effect((17, 21))]);
        assert_eq!(shown, "  ls; rm é\\u{1b} && ls\n      ^^^^^^^^^^\n  rm b\n  ^^^^\n");
    }

    #[test]
    fn the_response_is_what_a_session_does() {
        let of = |needs, confidence, programs| Verdict { needs, confidence, programs, ..Verdict::default() };
        let table = [
            (of(Needs::Checkpoint, Confidence::Exact, Programs::Writers), Opaque::Checkpoint, "takes a checkpoint"),
            (of(Needs::Nothing, Confidence::Opaque, Programs::Any), Opaque::Checkpoint, "cannot see"),
            (of(Needs::Nothing, Confidence::Opaque, Programs::Any), Opaque::Ignore, "`opaque: ignore`"),
            (of(Needs::Nothing, Confidence::Exact, Programs::Readers), Opaque::Checkpoint, "only reads"),
            (of(Needs::Warn, Confidence::Assumed, Programs::Any), Opaque::Checkpoint, "names no file"),
        ];
        for (verdict, opaque, text) in table {
            assert!(response(&verdict, opaque).contains(text), "{text}: {}", response(&verdict, opaque));
        }
    }

    #[test]
    fn effects_are_sentences() {
        assert_eq!(
            sentence(&effect((0, 1))),
            "`rm` deletes `é\\u{1b}`, as far as piton can see.  [file-delete, rule rm, home]"
        );
    }
}
