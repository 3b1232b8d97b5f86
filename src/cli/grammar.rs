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
use super::man::ManArgs;
use super::mcp_proxy::McpProxyArgs;
use super::on_demand::OnDemand;
use super::pin::{DeleteArgs, PinArgs, UnpinArgs};
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
use super::undo_args::{RedoArgs, UndoArgs};
use super::watch::WatchArgs;

/// The checkpoint sidecar for coding agents
///
/// Takes a checkpoint before anything is destroyed, warns of effects that no checkpoint can undo, and restores exactly
/// the files that you name. Without a command, piton shows whether this directory is protected.
#[derive(Debug, Parser)]
#[command(name = "piton", version = env!("PITON_VERSION"))]
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
    #[command(hide = true)]
    Sidecar(OnDemand<SidecarArgs>),
    /// Relay messages between an MCP client and its server; delay calls that write until their checkpoint is taken
    #[command(hide = true)]
    McpProxy(OnDemand<McpProxyArgs>),
    /// Run an agent that has no hooks, guarded as its own run
    Run(OnDemand<RunArgs>),
    /// Watch a directory and save all changes in it, without an agent
    Watch(OnDemand<WatchArgs>),
    /// Take a checkpoint now
    Checkpoint(OnDemand<CheckpointArgs>),
    /// List checkpoints, newest first; or list runs, turns or git commands
    #[command(aliases = ["ls", "log"])]
    List(OnDemand<ListArgs>),
    /// Show a checkpoint, a directory or a file in it
    Show(OnDemand<ShowArgs>),
    /// Show what changed since a checkpoint, or between two
    Diff(OnDemand<DiffArgs>),
    /// Find the versions of a path in all checkpoints
    Find(OnDemand<FindArgs>),
    /// Run git on a view of this workspace's checkpoints: git log, show, diff, grep, …
    #[command(disable_help_flag = true)]
    Git(OnDemand<GitArgs>),
    /// Print variables that let ordinary git commands read this workspace's checkpoints: eval "$(piton env)"
    #[command(hide = true)]
    Env(OnDemand<EnvArgs>),
    /// Send this workspace's runs and checkpoints to a git server
    Push(OnDemand<PushArgs>),
    /// Fetch the runs and checkpoints of other machines
    Fetch(OnDemand<FetchArgs>),
    /// Restore the newest version of a path that differs from the one on disk
    #[command(hide = true)]
    Recover(OnDemand<RecoverArgs>),
    /// Restore files from a checkpoint, restore the newest different version of a path, or roll back a run
    Restore(OnDemand<RestoreArgs>),
    /// Roll back a run: restore files, and let the run continue from there
    #[command(hide = true)]
    Rollback(OnDemand<RollbackArgs>),
    /// List runs, with their timelines
    #[command(hide = true)]
    Runs(OnDemand<RunsArgs>),
    /// List the turns of agents that changed files
    #[command(hide = true)]
    Turns(OnDemand<TurnsArgs>),
    /// Undo the newest turn, restore or rollback; or a given turn, its changes to some paths, or a git command
    Undo(OnDemand<UndoArgs>),
    /// Redo what was undone
    Redo(OnDemand<RedoArgs>),
    /// Undo what a git command did to refs, the index, the stash and files
    #[command(hide = true)]
    GitUndo(OnDemand<GitUndoArgs>),
    /// Pin checkpoints so that retention never drops them, or unpin checkpoints
    Pin(OnDemand<PinArgs>),
    /// Unpin checkpoints
    #[command(hide = true)]
    Unpin(OnDemand<UnpinArgs>),
    /// Delete checkpoints
    #[command(hide = true)]
    Delete(OnDemand<DeleteArgs>),
    /// Drop the checkpoints that retention no longer keeps, in all workspaces, and free the space
    #[command(hide = true)]
    Prune(OnDemand<PruneArgs>),
    /// Show, prune, clear or move the store of all workspaces; delete checkpoints, adopt histories
    Store(OnDemand<StoreArgs>),
    /// Attach the history of a moved directory to its new location
    #[command(hide = true)]
    Adopt(OnDemand<AdoptArgs>),
    /// Remove chosen content from every checkpoint, and prove that its bytes are deleted
    Forget(OnDemand<ForgetArgs>),
    /// Show the state of this workspace's protection
    #[command(alias = "st")]
    Status,
    /// Check every integration from end to end, and show how to fix problems
    Doctor(OnDemand<DoctorArgs>),
    /// Show what a shell command would do
    Classify(OnDemand<ClassifyArgs>),
    /// Show, explain, change, check or trust settings
    Config(OnDemand<ConfigArgs>),
    /// Switch the guard off for this workspace
    Off(OnDemand<OffArgs>),
    /// Switch the guard on again
    On,
    /// Set up piton for clients and shells, and take a first checkpoint; or print the script for a shell
    Init(OnDemand<InitArgs>),
    /// Install piton's hooks into agent clients, shells and git
    Install(OnDemand<InstallArgs>),
    /// Remove piton's hooks; with --all, remove all of piton except its store
    Uninstall(OnDemand<InstallArgs>),
    /// Manage the daemon that keeps hooks fast; the first hook starts it
    #[command(hide = true)]
    Daemon(OnDemand<DaemonArgs>),
    /// Answer one hook of an agent client; `piton install` adds this command to the client's configuration
    #[command(hide = true)]
    Hook(OnDemand<HookArgs>),
    /// Run a realistic agent session through the sidecar, and restore the files that it lost
    Demo(OnDemand<DemoArgs>),
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man(OnDemand<ManArgs>),
}
