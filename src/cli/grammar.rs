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
/// the files that you name. Without a verb: whether this directory is protected.
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
    /// Stand between an MCP client and its server: hold calls that write until their checkpoint is there
    #[command(hide = true)]
    McpProxy(OnDemand<McpProxyArgs>),
    /// Run an agent that has no hooks, guarded as a run of its own
    Run(OnDemand<RunArgs>),
    /// Save all changes in a directory, without any agent
    Watch(OnDemand<WatchArgs>),
    /// Take a checkpoint now
    Checkpoint(OnDemand<CheckpointArgs>),
    /// List checkpoints, newest first; or runs, turns or commands of git
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
    /// Print variables with which an ordinary git works on that view: eval "$(piton env)"
    #[command(hide = true)]
    Env(OnDemand<EnvArgs>),
    /// Send this workspace's runs and checkpoints to a git server
    Push(OnDemand<PushArgs>),
    /// Fetch the runs and checkpoints of other machines
    Fetch(OnDemand<FetchArgs>),
    /// Bring back the newest version of a path that is not the one on the disk
    #[command(hide = true)]
    Recover(OnDemand<RecoverArgs>),
    /// Restore files from a checkpoint, or the newest other version of a path; or roll a run back
    Restore(OnDemand<RestoreArgs>),
    /// Roll a run back: restore files, and let the run continue from there
    #[command(hide = true)]
    Rollback(OnDemand<RollbackArgs>),
    /// List runs, with their timelines
    #[command(hide = true)]
    Runs(OnDemand<RunsArgs>),
    /// List the turns of agents that changed files
    #[command(hide = true)]
    Turns(OnDemand<TurnsArgs>),
    /// Undo the newest turn, restore or rollback; or one turn, its changes of some paths, or a command of git
    Undo(OnDemand<UndoArgs>),
    /// Redo what was undone
    Redo(OnDemand<RedoArgs>),
    /// Take back what a command of git did to refs, the index, the stash and files
    #[command(hide = true)]
    GitUndo(OnDemand<GitUndoArgs>),
    /// Pin checkpoints, so that retention never drops them; or unpin them
    Pin(OnDemand<PinArgs>),
    /// Unpin checkpoints
    #[command(hide = true)]
    Unpin(OnDemand<UnpinArgs>),
    /// Delete checkpoints
    #[command(hide = true)]
    Delete(OnDemand<DeleteArgs>),
    /// Drop what retention does not keep, in all workspaces, and free the space
    #[command(hide = true)]
    Prune(OnDemand<PruneArgs>),
    /// Show, prune, clear or move the store of all workspaces; delete checkpoints, adopt histories
    Store(OnDemand<StoreArgs>),
    /// Give the history of a moved directory to the directory that it is now
    #[command(hide = true)]
    Adopt(OnDemand<AdoptArgs>),
    /// Remove content from every checkpoint on purpose, and prove that its bytes are deleted
    Forget(OnDemand<ForgetArgs>),
    /// Show the state of this workspace's protection
    #[command(alias = "st")]
    Status,
    /// Check every integration from end to end, and say how to fix what is wrong
    Doctor(OnDemand<DoctorArgs>),
    /// Say what a shell command would do
    Classify(OnDemand<ClassifyArgs>),
    /// Show, explain, change, check or trust settings
    Config(OnDemand<ConfigArgs>),
    /// Switch the guard off for this workspace
    Off(OnDemand<OffArgs>),
    /// Switch the guard on again
    On,
    /// Set piton up: clients, shells, a first checkpoint; or print the script of a shell
    Init(OnDemand<InitArgs>),
    /// Install piton's hooks into agent clients, shells and git
    Install(OnDemand<InstallArgs>),
    /// Remove these hooks; with --all, all of piton except its store
    Uninstall(OnDemand<InstallArgs>),
    /// The daemon that keeps hooks fast; the first hook starts it
    #[command(hide = true)]
    Daemon(OnDemand<DaemonArgs>),
    /// Answer one hook of an agent client: what `piton install` puts into its configuration
    #[command(hide = true)]
    Hook(OnDemand<HookArgs>),
    /// Stream a realistic agent session through the sidecar, and restore its losses
    Demo(OnDemand<DemoArgs>),
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man(OnDemand<ManArgs>),
}
