//! The command line's grammar.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The checkpoint sidecar for coding agents
///
/// Takes a checkpoint before anything is destroyed, warns of what no checkpoint can undo, and brings back exactly what
/// you want back. Without a verb: whether this directory is protected.
#[derive(Debug, Parser)]
#[command(name = "piton", version, disable_help_subcommand = true)]
pub struct Cli {
    /// The workspace [default: found from the working directory]
    #[arg(long, short = 'w', global = true, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Print data as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Override a setting, as KEY=VALUE (repeatable)
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Guard an agent: read its events on stdin, answer on stdout (docs/PROTOCOL.md)
    Sidecar(SidecarArgs),
    /// Stand between an MCP client and its server: hold calls that write until their checkpoint is there
    McpProxy(McpProxyArgs),
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
    /// Bring files back
    Restore(RestoreArgs),
    /// Roll a run back: bring files back, and have the run go on from there
    Rollback(RollbackArgs),
    /// List runs, with their timelines
    Runs(RunsArgs),
    /// Undo the last restore
    Undo(StepArgs),
    /// Redo what was undone
    Redo(StepArgs),
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
    /// Put piton's hooks into agent clients (docs/AGENTS.md)
    Install(InstallArgs),
    /// Take piton's hooks out of agent clients
    Uninstall(InstallArgs),
    /// The daemon that keeps hooks fast; the first hook starts it
    Daemon(DaemonArgs),
    /// Answer one hook of an agent client: what `piton install` puts into its configuration
    #[command(disable_help_flag = true)]
    Hook(HookArgs),
    /// Measure checkpoints of a copy of this tree, beside plain git
    Bench(BenchArgs),
    /// Stream a realistic agent session through the sidecar and bring its losses back
    Demo(DemoArgs),
}

#[derive(Debug, Args)]
pub struct SidecarArgs {
    /// How long pending work may take once the input has ended
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub grace: u64,
    /// Keep nothing of whoever started this but the standard streams
    #[arg(long, hide = true)]
    pub detached: bool,
    /// Read this client's own JSON stream instead of the protocol
    #[arg(long, value_name = "CLIENT")]
    pub from: Option<String>,
    /// Pass the stream on: stdout is stdin, byte for byte, and what there is to be said is said on stderr
    #[arg(long, requires = "from")]
    pub tee: bool,
}

#[derive(Debug, Args)]
pub struct DaemonArgs {
    #[command(subcommand)]
    pub verb: DaemonVerb,
}

#[derive(Debug, Subcommand)]
pub enum DaemonVerb {
    /// Serve until nobody was connected for a while
    Run {
        /// How long that is
        #[arg(long, default_value_t = 600, value_name = "SECONDS")]
        idle: u64,
        /// Leave the terminal first
        #[arg(long)]
        detached: bool,
    },
    /// Start it, if it does not run
    Start,
    /// Have it finish what it has begun, and end
    Stop,
    /// Say whether it runs
    Status,
}

#[derive(Debug, Args)]
pub struct HookArgs {
    /// Client and event, as `piton install` writes them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub rest: Vec<String>,
}

#[derive(Debug, Args)]
pub struct GitArgs {
    /// A verb of git and its arguments; `--unsafe` before it lets any pass
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "[--unsafe] VERB")]
    pub rest: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Look instead whether every checkpoint that refs, state, journals and logs name is there
    #[arg(long)]
    pub refs: bool,
    /// Put refs back that can be derived; nothing is deleted
    #[arg(long, requires = "refs")]
    pub repair: bool,
}

#[derive(Debug, Args)]
pub struct PushArgs {
    /// An address or a path
    pub remote: OsString,
    /// Only those of a run
    #[arg(long)]
    pub run: Option<String>,
    /// Checkpoints that hold secrets too
    #[arg(long)]
    pub with_secrets: bool,
    /// Only say what would be sent
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct FetchArgs {
    /// An address or a path
    pub remote: OsString,
}

#[derive(Debug, Args)]
pub struct EnvArgs {
    /// The shell that reads it
    #[arg(long, value_enum, default_value_t = Shell::Sh)]
    pub shell: Shell,
}

/// Whose words are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Shell {
    /// Any shell after Bourne's
    #[value(alias = "bash", alias = "zsh")]
    Sh,
    Fish,
}

#[derive(Debug, Args)]
pub struct McpProxyArgs {
    /// The server and its arguments
    #[arg(last = true, required = true, value_name = "SERVER")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct CheckpointArgs {
    /// A label to find it by
    pub label: Option<String>,
    /// The label, as git calls it
    #[arg(short, long, value_name = "LABEL", conflicts_with = "label")]
    pub message: Option<String>,
    /// Never drop it
    #[arg(long)]
    pub pin: bool,
    /// Only these paths
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Most checkpoints to list
    #[arg(long, short = 'n', default_value_t = 50)]
    pub limit: usize,
    /// Only those of a run
    #[arg(long)]
    pub run: Option<String>,
    /// Only those of a kind: auto, manual, pre-restore, exit, …
    #[arg(long)]
    pub kind: Option<String>,
    /// Base captures too
    #[arg(long)]
    pub all: bool,
    /// Those that were fetched from other machines instead
    #[arg(long)]
    pub remote: bool,
    /// Only checkpoints after which this path changed
    #[arg(last = true, value_name = "PATH")]
    pub path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A checkpoint (number, id, @{0}, label), or CHECKPOINT:PATH [default: the newest]
    pub what: Option<String>,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A checkpoint
    pub from: String,
    /// Another one [default: the files as they are now]
    pub to: Option<String>,
    /// Only the summary
    #[arg(long)]
    pub stat: bool,
    /// Only these paths
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct FindArgs {
    /// A file or directory
    pub path: PathBuf,
}

#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// A checkpoint (number, id, @{0}, label)
    #[arg(required_unless_present_any = ["go_on", "abort"])]
    pub checkpoint: Option<String>,
    /// Only these paths, with all below them
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Into another, absent or empty directory
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Keep files created since
    #[arg(long)]
    pub keep_new: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
    /// Finish an interrupted restore
    #[arg(long = "continue", conflicts_with_all = ["checkpoint", "abort", "to"])]
    pub go_on: bool,
    /// Give an interrupted restore up: back to how it was before
    #[arg(long, conflicts_with_all = ["checkpoint", "to"])]
    pub abort: bool,
}

#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// `last-success`, `codon ID [TYPE]` (start, end, rig-setup, completed, error, skipped), or a checkpoint (number, id, @{0},
    /// RUN:CODON:TYPE, label)
    #[arg(required = true, num_args = 1..=3, value_name = "TARGET")]
    pub target: Vec<String>,
    /// The run [default: the one that recorded a codon last]
    #[arg(long)]
    pub run: Option<String>,
    /// Keep files created since
    #[arg(long)]
    pub keep_new: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
}

#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Show sub-agents' runs, forks and timelines below what they come from
    #[arg(long)]
    pub tree: bool,
    /// Most runs to list, the newest of them
    #[arg(long, short = 'n', default_value_t = 50)]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub struct StepArgs {
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
}

#[derive(Debug, Args)]
pub struct ClassifyArgs {
    /// The command, as one word or several
    #[arg(required_unless_present = "stdin", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// Commands from stdin, one a line or one JSON string a line; one JSON object a line comes back
    #[arg(long, conflicts_with = "command")]
    pub stdin: bool,
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub action: ConfigAction,
}

#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Print every value with its origin
    Show,
    /// Read all layers and report mistakes; list what patterns of tracked files match, and outputs that they miss
    Check {
        /// The run whose patterns are meant [default: the one that recorded a codon last]
        #[arg(long)]
        run: Option<String>,
    },
    /// Trust this workspace's `.piton.yaml` as it is now
    Trust,
}

#[derive(Debug, Args)]
pub struct OffArgs {
    /// Only for this long: 30m, 1h, 2 days
    #[arg(long = "for", value_name = "TIME")]
    pub span: Option<String>,
}

#[derive(Debug, Args)]
pub struct InstallArgs {
    /// Clients by name [default: list them]
    #[arg(value_name = "CLIENT")]
    pub clients: Vec<String>,
    /// All clients that are found
    #[arg(long, conflicts_with = "clients")]
    pub all: bool,
    /// For this project alone
    #[arg(long, conflicts_with = "user")]
    pub project: bool,
    /// For the user [default]
    #[arg(long)]
    pub user: bool,
    /// Only show what would be changed
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Rounds of each step
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = at_least_one)]
    pub reps: usize,
    /// How many files to change, a step each
    #[arg(long, value_delimiter = ',', default_value = "1,10,1000", value_name = "N,…")]
    pub changes: Vec<usize>,
    /// Where the copy is made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a number from 1 on".to_owned()),
        Ok(number) => Ok(number),
    }
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the scratch directory
    #[arg(long)]
    pub keep: bool,
}
