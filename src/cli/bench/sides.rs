//! The sides that are compared.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::scratch::{Scratch, Sidecar};
use super::timed;
use crate::error::{Code, Error, Result};

/// How long the sidecar may take until it hears of changes.
const PATIENCE: Duration = Duration::from_secs(600);

/// What an agent takes at least between a prompt and its first action: what the sidecar does for itself then is not waited for.
const PAUSE: Duration = Duration::from_millis(150);

/// # Errors
/// When there is no git.
pub fn require_git() -> Result<()> {
    let found = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    if found {
        return Ok(());
    }
    Err(Error::new(Code::BadRequest, "there is no git to compare with").hint("install git, and run it again"))
}

/// A commit of the work tree by git itself: index kept, `add -A`, `write-tree`, `commit-tree`, `update-ref`.
pub struct Git {
    dir: PathBuf,
    tree: PathBuf,
    tip: Option<(String, String)>,
}

impl Git {
    /// An empty repository beside the tree, which stays without one.
    ///
    /// # Errors
    /// Returns the errors of git.
    pub fn create(scratch: &Scratch) -> Result<Git> {
        let git = Git { dir: scratch.dir().join("git"), tree: scratch.workspace(), tip: None };
        git.run(&["init", "-q"])?;
        git.run(&["config", "gc.auto", "0"])?;
        Ok(git)
    }

    fn run(&self, args: &[&str]) -> Result<(f64, String)> {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
            command.env_remove(name);
        }
        command.env("GIT_DIR", &self.dir).env("GIT_WORK_TREE", &self.tree).current_dir(&self.tree);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "bench").env(format!("GIT_{who}_EMAIL"), "bench@localhost");
        }
        let (ms, output) = timed(command.args(args))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Error::new(Code::Internal, format!("`git {}` failed: {}", args[0], said.trim())));
        }
        Ok((ms, String::from_utf8_lossy(&output.stdout).trim().to_owned()))
    }

    /// Milliseconds for one commit; where nothing changed, git is asked no more than that.
    ///
    /// # Errors
    /// Returns the errors of git.
    pub fn take(&mut self) -> Result<f64> {
        let (added, _) = self.run(&["add", "-A"])?;
        let (written, tree) = self.run(&["write-tree"])?;
        let mut ms = added + written;
        if self.tip.as_ref().is_none_or(|(_, known)| *known != tree) {
            let mut args = vec!["commit-tree", &tree, "-m", "checkpoint"];
            if let Some((tip, _)) = &self.tip {
                args.extend(["-p", tip]);
            }
            let (committed, commit) = self.run(&args)?;
            let (moved, _) = self.run(&["update-ref", "refs/heads/bench", &commit])?;
            ms += committed + moved;
            self.tip = Some((commit, tree));
        }
        Ok(ms)
    }
}

/// `piton checkpoint`, a process of its own, which scans.
pub struct Process<'s> {
    scratch: &'s Scratch,
    home: PathBuf,
}

impl Process<'_> {
    /// With a store of its own.
    pub fn new(scratch: &Scratch) -> Process<'_> {
        Process { scratch, home: scratch.dir().join("process") }
    }

    /// Milliseconds for one checkpoint.
    ///
    /// # Errors
    /// When it fails, or is not what it should be.
    pub fn take(&self, expected: &str) -> Result<f64> {
        let mut command = self.scratch.command(&["checkpoint", "--json"])?;
        let (ms, output) = timed(command.env("PITON_HOME", &self.home))?;
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        answered(&reply, expected).map(|()| ms)
    }
}

/// A sidecar that hears of changes.
pub struct Running {
    sidecar: Sidecar,
    asked: u64,
    turn: u64,
}

impl Running {
    /// Starts it and waits until it hears of changes, where the system lets it.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(scratch: &Scratch) -> Result<Running> {
        let mut running = Running { sidecar: Sidecar::start(scratch.command(&["sidecar"])?)?, asked: 0, turn: 0 };
        running.ask(json!({ "type": "hello", "client": "bench" }))?;
        // The first of a run is always recorded.
        running.begin_turn()?;
        running.before("taken")?;
        Ok(running)
    }

    fn ask(&mut self, mut body: Value) -> Result<Value> {
        self.asked += 1;
        body["id"] = self.asked.into();
        let reply = self.sidecar.exchange(&body.to_string(), &body["id"])?;
        reply.ok_or_else(|| Error::new(Code::Internal, "the sidecar gave no reply"))
    }

    /// Waits until its base capture is done and it hears of changes (or will not).
    fn settle(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.ask(json!({ "type": "status" }))?;
            if status["baseline"] == "ready" && status["watcher"] != "cold" {
                std::thread::sleep(PAUSE);
                return Ok(());
            }
            if Instant::now() > until {
                return Err(Error::new(Code::Internal, "the sidecar never came to know the tree"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Opens a turn, and gives it the time until its first action.
    ///
    /// # Errors
    /// When the sidecar ended.
    pub fn begin_turn(&mut self) -> Result<()> {
        self.turn += 1;
        self.ask(json!({ "type": "turn.start", "turn": format!("t{}", self.turn) }))?;
        self.settle()
    }

    /// Milliseconds from a destructive action's announcement to the answer.
    ///
    /// # Errors
    /// When the checkpoint is not what it should be.
    pub fn before(&mut self, expected: &str) -> Result<f64> {
        let started = Instant::now();
        let reply = self.ask(json!({ "type": "shell.before", "command": "make clean" }))?;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        answered(&reply, expected).map(|()| ms)
    }

    /// Ends it.
    ///
    /// # Errors
    /// When it ended badly.
    pub fn finish(self) -> Result<()> {
        self.sidecar.finish()
    }
}

/// A figure counts only for what was meant to be measured.
fn answered(reply: &Value, expected: &str) -> Result<()> {
    let status = reply["checkpoint"]["status"].as_str().unwrap_or_default();
    if status == expected {
        return Ok(());
    }
    let said = if status.is_empty() { reply.to_string() } else { status.to_owned() };
    Err(Error::new(Code::Internal, format!("the checkpoint was {said} where {expected} is right; nothing is measured")))
}
