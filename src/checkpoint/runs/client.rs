//! The client of a run, as its events tell, and its process: a run ends with it, also where no event tells of the end.
//!
//! Each run that goes on has a small file. It is not synced: a power cut costs what an event of the run tells again. The end of the run
//! takes its content into the run's own file, and removes it.

use std::cmp::Reverse;
use std::fs::{read, read_dir, remove_file};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::run::{Run, dir};
use crate::checkpoint::records::home::Home;
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::fs::durable::{create_private_dir, replace_cache};
use crate::sys::processes::ProcessId;

/// The client of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunClient {
    /// The name by which the client calls itself.
    pub client: Option<String>,
    /// The client's own name of the run, where that is no id of ours.
    pub named: Option<String>,
    /// The id of the run that it is a part of.
    pub parent: Option<String>,
    /// The purpose of the run, for people.
    pub goal: Option<String>,
    /// The process of the client.
    pub process: Option<ProcessId>,
}

impl RunClient {
    /// Reads the file of a run; `None` when there is none, or none that can be read.
    pub(crate) fn load(workspace: &Path, run: &str) -> Option<RunClient> {
        serde_json::from_slice(&read(file(workspace, run)).ok()?).ok()
    }

    /// Writes it, if it tells anything new. A field that it leaves out stays as it was.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn keep(&self, workspace: &Path, run: &str) -> Result<()> {
        let known = RunClient::load(workspace, run);
        let old = known.clone().unwrap_or_default();
        let told = RunClient {
            client: self.client.clone().or(old.client),
            named: self.named.clone().or(old.named),
            parent: self.parent.clone().or(old.parent),
            goal: self.goal.clone().or(old.goal),
            process: self.process.clone().or(old.process),
        };
        if known.as_ref() == Some(&told) {
            return Ok(());
        }
        create_private_dir(&dir(workspace))?;
        let text = serde_json::to_vec(&told)
            .map_err(|error| Error::new(Code::Internal, "writing a run's client").caused_by(error))?;
        replace_cache(&file(workspace, run), &text)
    }

    /// Returns true if the client's process runs, `None` where that cannot be told.
    pub(crate) fn is_alive(&self) -> Option<bool> {
        self.process.as_ref()?.is_alive()
    }

    /// Fills in what the file of the run does not tell.
    pub(super) fn fill(&self, run: &mut Run) {
        let fill = |known: &mut Option<String>, told: &Option<String>| {
            if known.is_none() {
                known.clone_from(told);
            }
        };
        fill(&mut run.client, &self.client);
        fill(&mut run.named, &self.named);
        fill(&mut run.parent, &self.parent);
        fill(&mut run.goal, &self.goal);
    }

    /// Removes the file of a run; none is fine too.
    pub(super) fn remove(workspace: &Path, run: &str) -> Result<()> {
        let path = file(workspace, run);
        match remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(error, "removing", &path)),
            _ => Ok(()),
        }
    }
}

/// Returns the file of a run's client. No run's id begins with a dot.
fn file(workspace: &Path, run: &str) -> PathBuf {
    dir(workspace).join(format!(".{run}.client"))
}

/// Returns the run of whose client a file tells, by its name.
pub(super) fn client_of_file(name: &str) -> Option<&str> {
    name.strip_prefix('.')?.strip_suffix(".client")
}

/// Returns the run whose client is the nearest of some processes, which are given by their numbers, the nearest first. Of several
/// runs of one client it is the one that was at work last. Runs of the client `but` are passed over.
pub fn run_of(home: &Home, workspace: &Path, but: &str, pids: &[u32]) -> Option<String> {
    let listing = read_dir(dir(workspace)).ok()?;
    // A run whose session is not kept here counts as the oldest.
    let worked = |run: &str| home.path().join("sessions").join(run).metadata().and_then(|facts| facts.modified()).ok();
    let found = listing.flatten().filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let run = client_of_file(&name)?.to_owned();
        let known = RunClient::load(workspace, &run).filter(|known| known.client.as_deref() != Some(but))?;
        let process = known.process?;
        let distance = pids.iter().position(|pid| *pid == process.pid)?;
        (process.is_alive() == Some(true)).then(|| (Reverse(distance), worked(&run), run))
    });
    found.max().map(|(_, _, run)| run)
}

/// Returns the runs whose client's process has ended, though no event told of it.
pub(crate) fn left_runs(workspace: &Path) -> Result<Vec<String>> {
    let path = dir(workspace);
    let listing = match read_dir(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing.at("listing", &path)?,
    };
    let mut left = Vec::new();
    for entry in listing {
        let name = entry.at("listing", &path)?.file_name().to_string_lossy().into_owned();
        let run = client_of_file(&name);
        let has_ended = |run: &&str| RunClient::load(workspace, run).is_some_and(|it| it.is_alive() == Some(false));
        left.extend(run.filter(has_ended).map(str::to_owned));
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::checkpoint::capture::request::Take;
    use crate::checkpoint::history::actions::NewAction;
    use crate::checkpoint::history::turn_end::TurnName;
    use crate::checkpoint::runs::run::RunEnding;
    use crate::checkpoint::{Home, Timeline, Workspace};
    use crate::model::checkpoint::CheckpointKind;
    use crate::sys::interrupt::Flow;

    /// Makes a timeline with a checkpoint of each run.
    fn timeline(dir: &Path, runs: &[&str]) -> Timeline {
        let root = dir.canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        let home = Home::at(&dir.join("home")).unwrap();
        let policy = crate::settings::load(None, home.path(), &[]).unwrap().policy;
        let mut timeline = Timeline::open(&home, Workspace::open(&home, &root).unwrap(), policy).unwrap();
        for run in runs {
            std::fs::write(root.join("a"), run).unwrap();
            timeline.take(&Take::of(CheckpointKind::Auto, run, "work"), &|| Flow::Continue).unwrap();
        }
        timeline
    }

    fn client() -> (Child, RunClient) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = ProcessId::of(child.id());
        let named = Some("Its Own".to_owned());
        (
            child,
            RunClient {
                client: Some("codex".to_owned()),
                named,
                parent: Some("above".to_owned()),
                goal: None,
                process,
            },
        )
    }

    fn listed(timeline: &Timeline, run: &str) -> (Run, Option<RunEnding>) {
        let rows = timeline.runs().unwrap().0;
        let row = rows.into_iter().find(|row| row.run == run).unwrap();
        (row.state, row.ending)
    }

    #[test]
    fn a_run_ends_with_its_clients_process() {
        let dir = tempfile::tempdir().unwrap();
        let mut timeline = timeline(dir.path(), &["r"]);
        let workspace = timeline.workspace().dir.clone();
        let (mut child, told) = client();
        told.keep(&workspace, "r").unwrap();
        // A door that knows nothing of the process takes nothing away.
        RunClient { client: Some("codex".to_owned()), ..RunClient::default() }.keep(&workspace, "r").unwrap();
        assert_eq!(RunClient::load(&workspace, "r"), Some(told.clone()));
        timeline.end_left_runs(&|| Flow::Continue).unwrap();
        let (state, ending) = listed(&timeline, "r");
        assert_eq!((ending, state.client.as_deref(), state.parent.as_deref()), (None, Some("codex"), Some("above")));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(listed(&timeline, "r").1, Some(RunEnding::Exit), "nobody has tidied yet");
        timeline.end_left_runs(&|| Flow::Continue).unwrap();
        let (state, ending) = listed(&timeline, "r");
        assert_eq!((ending, state.status, state.ended), (Some(RunEnding::Exit), Some(RunEnding::Exit), None));
        assert_eq!((state.named, state.parent), (told.named.clone(), told.parent.clone()));
        assert_eq!(RunClient::load(&workspace, "r"), None);
        // It goes on with another process, until an event tells of its end.
        let (mut child, again) = client();
        again.keep(&workspace, "r").unwrap();
        assert_eq!(listed(&timeline, "r").1, None);
        timeline.end_run("r", RunEnding::Completed, &|| Flow::Continue).unwrap();
        assert_eq!((listed(&timeline, "r").1, RunClient::load(&workspace, "r")), (Some(RunEnding::Completed), None));
        child.kill().unwrap();
        child.wait().unwrap();
        timeline.end_left_runs(&|| Flow::Continue).unwrap();
        assert_eq!(listed(&timeline, "r").1, Some(RunEnding::Completed));
    }

    #[test]
    fn an_open_turn_ends_with_its_run() {
        let dir = tempfile::tempdir().unwrap();
        let mut timeline = timeline(dir.path(), &["r"]);
        let workspace = timeline.workspace().dir.clone();
        let name = |key: &str, run: &str| TurnName {
            key: key.to_owned(),
            run: run.to_owned(),
            actor: run.to_owned(),
            turn: "t".to_owned(),
            prompt: None,
            client: None,
            is_agents: false,
            places: Vec::new(),
            held_by: None,
        };
        for turn in [name("k", "r"), name("of another", "s")] {
            let action = NewAction { actor: turn.actor.clone(), and_others: true, ..NewAction::default() };
            timeline.begin_action(Some(&turn), &action, &|| Flow::Continue).unwrap();
        }
        let (mut child, told) = client();
        told.keep(&workspace, "r").unwrap();
        timeline.end_left_runs(&|| Flow::Continue).unwrap();
        let open = |timeline: &Timeline| {
            let mut log = timeline.catalog().windows.borrow_mut();
            log.windows().unwrap().turns.iter().map(|turn| turn.key.clone()).collect::<Vec<_>>()
        };
        assert_eq!(open(&timeline), ["k", "of another"]);
        child.kill().unwrap();
        child.wait().unwrap();
        timeline.end_left_runs(&|| Flow::Continue).unwrap();
        assert_eq!(open(&timeline), ["of another"]);
    }

    #[test]
    fn a_run_without_a_checkpoint_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut timeline = timeline(dir.path(), &[]);
        let workspace = timeline.workspace().dir.clone();
        let (mut child, told) = client();
        RunClient { parent: None, ..told }.keep(&workspace, "r").unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        timeline.end_left_runs(&|| Flow::Continue).unwrap();
        assert!(timeline.runs().unwrap().0.is_empty());
        assert!(RunClient::load(&workspace, "r").is_none() && Run::load(&workspace, "r").unwrap().is_none());
    }
}
