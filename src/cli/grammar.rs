//! The command line's grammar.

use clap::{Parser, Subcommand};

use super::adopt::AdoptArgs;
use super::checkpoint::CheckpointArgs;
use super::classify::ClassifyArgs;
use super::config::ConfigArgs;
use super::context::GlobalArgs;
use super::daemon::DaemonArgs;
use super::demo::DemoArgs;
use super::diff::DiffArgs;
use super::doctor::DoctorArgs;
use super::env::EnvArgs;
use super::fetch::FetchArgs;
use super::find::FindArgs;
use super::forget::ForgetArgs;
use super::git::GitArgs;
use super::git_undo::GitUndoArgs;
use super::hook::HookArgs;
use super::init::InitArgs;
use super::install::InstallArgs;
use super::list::ListArgs;
use super::mcp_proxy::McpProxyArgs;
use super::pin::{DeleteArgs, PinArgs};
use super::prune::PruneArgs;
use super::push::PushArgs;
use super::recover::RecoverArgs;
use super::restore::RestoreArgs;
use super::rollback::RollbackArgs;
use super::run::RunArgs;
use super::runs::RunsArgs;
use super::show::ShowArgs;
use super::sidecar::SidecarArgs;
use super::store::StoreArgs;
use super::switch::OffArgs;
use super::turns::TurnsArgs;
use super::undo::{RedoArgs, UndoArgs};
use super::watch::WatchArgs;

/// The checkpoint sidecar for coding agents
///
/// Takes a checkpoint before anything is destroyed, warns of what no checkpoint can undo, and brings back exactly what
/// you want back. Without a verb: whether this directory is protected.
#[derive(Debug, Parser)]
#[command(name = "piton", version, disable_help_subcommand = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Guard an agent: read its events on stdin, answer on stdout (docs/PROTOCOL.md)
    Sidecar(SidecarArgs),
    /// Stand between an MCP client and its server: hold calls that write until their checkpoint is there
    McpProxy(McpProxyArgs),
    /// Run an agent that has no hooks, guarded as a run of its own
    Run(RunArgs),
    /// Save what changes in a directory, whoever changes it
    Watch(WatchArgs),
    /// Take a checkpoint now
    Checkpoint(CheckpointArgs),
    /// List checkpoints, newest first
    List(ListArgs),
    /// Show a checkpoint, a directory or a file in it
    Show(ShowArgs),
    /// Show what changed since a checkpoint, or between two
    Diff(DiffArgs),
    /// Find the versions of a path in all checkpoints
    Find(FindArgs),
    /// Run git on a view of this workspace's checkpoints: git log, show, diff, grep, … (docs/CLI.md)
    #[command(disable_help_flag = true)]
    Git(GitArgs),
    /// Print variables with which an ordinary git works on that view: eval "$(piton env)"
    Env(EnvArgs),
    /// Send this workspace's runs and checkpoints to a git server
    Push(PushArgs),
    /// Bring other machines' runs and checkpoints in, to look at and to restore from
    Fetch(FetchArgs),
    /// Bring back the newest version of a path that is not the one on the disk
    Recover(RecoverArgs),
    /// Bring files back
    Restore(RestoreArgs),
    /// Roll a run back: bring files back, and have the run go on from there
    Rollback(RollbackArgs),
    /// List runs, with their timelines
    Runs(RunsArgs),
    /// List the turns of agents that changed files
    Turns(TurnsArgs),
    /// Undo the newest turn, restore or rollback; or one turn, or its changes of some paths
    Undo(UndoArgs),
    /// Redo what was undone
    Redo(RedoArgs),
    /// Take back what a command of git did to refs, the index, the stash and files
    GitUndo(GitUndoArgs),
    /// Pin checkpoints: retention never drops them
    Pin(PinArgs),
    /// Unpin checkpoints
    Unpin(PinArgs),
    /// Delete checkpoints
    Delete(DeleteArgs),
    /// Drop what retention does not keep, in all workspaces, and free the space
    Prune(PruneArgs),
    /// Look at the store of all workspaces, clear it, or move it
    Store(StoreArgs),
    /// Give the history of a moved directory to the directory that it is now
    Adopt(AdoptArgs),
    /// Take content out of every checkpoint on purpose, and prove that its bytes are gone
    Forget(ForgetArgs),
    /// Show the state of this workspace's protection
    Status,
    /// Look at each door from end to end, and say how to mend what is wrong
    Doctor(DoctorArgs),
    /// Say what a shell command would do
    Classify(ClassifyArgs),
    /// Show, check or trust configuration
    Config(ConfigArgs),
    /// Switch the guard off for this workspace
    Off(OffArgs),
    /// Switch the guard on again
    On,
    /// Set piton up here: clients, shells, a first checkpoint; or print the script of a shell (docs/SHELLS.md)
    Init(InitArgs),
    /// Put piton's hooks into agent clients (docs/AGENTS.md), its line into startup files of shells, its door into git (docs/GIT.md)
    Install(InstallArgs),
    /// Take hooks and lines out again; with --all, everything of piton but its store
    Uninstall(InstallArgs),
    /// The daemon that keeps hooks fast; the first hook starts it
    Daemon(DaemonArgs),
    /// Answer one hook of an agent client: what `piton install` puts into its configuration
    Hook(HookArgs),
    /// Stream a realistic agent session through the sidecar and bring its losses back
    Demo(DemoArgs),
}
