//! The walk over a scanned line: expands what is constant, follows wrappers and payloads, and collects effects.
//!
//! It shares one set of limits with the scanner: nesting (payloads included), words, payload depth, and produced bytes.

mod builtin;
mod carry;
mod client_files;
mod code;
mod dispatch;
mod editor;
mod elsewhere;
mod function;
mod git;
mod git_aliases;
mod git_losses;
mod git_settings;
mod links;
mod mentioned;
mod output;
mod outputs;
mod piton;
mod placed;
mod printed;
mod query;
mod report;
mod script;
mod search;
mod store;
mod tasks;
mod words;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::context::Context;
use super::expand::{Arg, Shell, TextOrigin, Value};
use super::found::{FoundEffect, Site, place};
use super::rules::RuleSet;
use super::shell::{
    Bounds, Compound, CompoundKind, Part, Pipeline, PipelineStage, Redirect, RedirectKind, Script, Simple, Span,
    TextPlace, Word, assignment, scan,
};
use crate::model::effect::{Class, Programs, Severity};
use crate::model::loss::{Loss, RepositoryFiles};
use function::{Function, breeds};
use output::OutputPlace;
use search::Search;

/// Deepest nesting of payloads (`bash -c "bash -c …"`).
const MAX_PAYLOADS: usize = 8;
/// Bytes that expansion may produce for one line.
const MAX_PRODUCED: usize = 2 << 20;
/// Values that loops of one line are walked through one by one; past them, all at once.
const MAX_ROUNDS: usize = 64;

/// Builtins whose words may be arrays.
const DECLARES: [&str; 5] = ["declare", "local", "readonly", "typeset", "export"];

/// The directory of the names that stand for process substitutions.
pub(super) const PROCESS: &str = "/dev/fd/p";

/// The bytes that flow into a command, or out of it.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) enum Stream {
    /// Nothing that anyone sent.
    #[default]
    Nothing,
    /// This text.
    Text(String),
    /// The content of files.
    Files,
    /// Something fetched from the network.
    Remote,
    /// Something decoded.
    Decoded,
    /// A set-up script that a known program prints.
    Setup,
    /// Something else.
    Opaque,
}

impl Stream {
    /// Returns whether anything flows.
    pub(super) fn flows(&self) -> bool {
        *self != Stream::Nothing
    }

    /// Returns what can be said of text that came this way.
    pub(super) fn origin(&self) -> TextOrigin {
        match self {
            Stream::Remote => TextOrigin::Remote,
            Stream::Decoded => TextOrigin::Decoded,
            Stream::Setup => TextOrigin::Setup,
            Stream::Nothing | Stream::Text(_) | Stream::Files | Stream::Opaque => TextOrigin::Plain,
        }
    }
}

/// The state of one walk.
pub(super) struct Walk<'a> {
    pub rules: &'a RuleSet,
    pub context: &'a Context,
    pub bounds: Bounds,
    pub found: Vec<FoundEffect>,
    /// Something could not be seen into.
    pub opaque: bool,
    /// Some words were unknown.
    pub assumed: bool,
    /// The programs that can run.
    pub programs: Programs,
    /// Directories in which something runs that could not be seen into.
    pub blind: Vec<PathBuf>,
    /// Paths outside of the workspace that words name, whatever the commands do with them; at most [`MAX_MENTIONED`].
    pub mentioned: Vec<PathBuf>,
    /// Directories from which git is asked for the top of its repository.
    pub tops: Vec<PathBuf>,
    /// Directories in which git checks out a commit, with the name of that.
    pub checkouts: Vec<(PathBuf, String)>,
    /// Files of the workspace that it would read, if somebody looked at the disk.
    pub scripts: Vec<PathBuf>,
    /// The uncommitted work that commands of git take away.
    pub losses: Vec<Loss>,
    /// The files of repositories that commands of git replace or remove.
    pub repositories: Vec<RepositoryFiles>,
    /// True within such a file.
    is_script: bool,
    /// True for code within an application (`rails runner`).
    is_within: bool,
    /// The directory of that file.
    script_dir: Option<String>,
    site: Site,
    /// Behind `sudo`.
    root: bool,
    /// The line looked for piton's processes.
    sought_piton: bool,
    /// A program ran that runs its line apart from this session.
    leaves: bool,
    /// True if a script of it has piton delete saved content.
    deletes_saved: bool,
    /// The whole line.
    span: Span,
    functions: Vec<Function>,
    /// Calls of functions so far.
    calls: usize,
    /// Aliases and symbolic links that the line makes.
    aliases: HashMap<String, Arg>,
    links: Vec<links::MadeLink>,
    /// Times a loop's body was walked once more for one of its values.
    rounds: usize,
    /// Process substitutions so far.
    processes: usize,
    /// The content of files that this very line writes.
    written: HashMap<PathBuf, Stream>,
    /// The search of the last `find`, and the search that was piped into the present stage.
    search: Option<Search>,
    fed: Option<Search>,
    traps: Vec<(Arg, usize)>,
    payloads: usize,
    produced: usize,
}

impl<'a> Walk<'a> {
    /// Begins a walk with the rules and the surroundings.
    pub(super) fn new(rules: &'a RuleSet, context: &'a Context) -> Self {
        Walk {
            rules,
            context,
            bounds: Bounds::default(),
            found: Vec::new(),
            opaque: false,
            assumed: false,
            programs: Programs::Readers,
            blind: Vec::new(),
            mentioned: Vec::new(),
            tops: Vec::new(),
            checkouts: Vec::new(),
            scripts: Vec::new(),
            losses: Vec::new(),
            repositories: Vec::new(),
            is_script: false,
            is_within: false,
            script_dir: None,
            site: Site::default(),
            root: false,
            sought_piton: false,
            leaves: false,
            deletes_saved: false,
            span: (0, 0),
            functions: Vec::new(),
            calls: 0,
            aliases: HashMap::new(),
            links: Vec::new(),
            rounds: 0,
            processes: 0,
            written: HashMap::new(),
            search: None,
            fed: None,
            traps: Vec::new(),
            payloads: 0,
            produced: 0,
        }
    }

    /// Walks a whole line, and then what it left for its end.
    pub(super) fn line(&mut self, source: &str) {
        self.span = (0, source.len());
        self.downloads_code(source, self.span);
        let script = scan(source, TextPlace::At(0), &mut self.bounds);
        let mut shell = self.shell();
        self.script(&script, Stream::Nothing, &mut shell);
        self.run_traps(0, &mut shell);
        self.uncalled(0, &shell);
        self.deletes_from_afar(source);
        self.hides_near_piton(source, &script);
    }

    /// Runs text as the code of a shell of its own, and then its traps.
    pub(super) fn own_shell(&mut self, code: &Arg, mut shell: Shell) -> Stream {
        let outer = self.traps.len();
        let output = self.payload(code, Stream::Nothing, &mut shell);
        self.run_traps(outer, &mut shell);
        output
    }

    fn run_traps(&mut self, from: usize, shell: &mut Shell) {
        let payloads = self.payloads;
        for (payload, depth) in self.traps.split_off(from.min(self.traps.len())) {
            self.payloads = depth;
            self.payload(&payload, Stream::Nothing, shell);
        }
        self.payloads = payloads;
    }

    /// Returns the shell a line starts in.
    pub(super) fn shell(&self) -> Shell {
        let mut shell = Shell { cwd: Some(self.context.cwd.clone()), ..Shell::default() };
        if let Some(home) = &self.context.home {
            shell.set("HOME", Value::Known(vec![home.to_string_lossy().into_owned()]));
        }
        shell.set("TMPDIR", Value::Known(vec![self.context.temp_dir().to_string_lossy().into_owned()]));
        shell.set("IFS", Value::Known(vec![" \t\n".to_owned()]));
        shell
    }

    /// Walks a list; only its first pipeline reads the input.
    pub(super) fn script(&mut self, script: &Script, input: Stream, shell: &mut Shell) -> Stream {
        let mut input = input;
        let (mut output, mut or) = (Stream::Nothing, false);
        for pipeline in &script.pipelines {
            let made = self.pipeline(pipeline, std::mem::take(&mut input), shell);
            // A command with known output did not fail.
            if !(or && matches!(output, Stream::Text(_))) {
                output = output::join(output, made);
            }
            or = pipeline.or;
        }
        output
    }

    fn pipeline(&mut self, pipeline: &Pipeline, input: Stream, shell: &mut Shell) -> Stream {
        let mut stream = input;
        let single = pipeline.stages.len() == 1;
        self.search = None;
        for stage in &pipeline.stages {
            if self.bounds.overflow || !self.bounds.enter() {
                return Stream::Opaque;
            }
            self.fed = self.search.take();
            stream = if single {
                self.command(stage, stream, shell)
            } else {
                self.command(stage, stream, &mut shell.clone())
            };
            self.bounds.leave();
        }
        stream
    }

    fn command(&mut self, command: &PipelineStage, input: Stream, shell: &mut Shell) -> Stream {
        match command {
            PipelineStage::Simple(simple) => self.simple(simple, input, shell),
            PipelineStage::Compound(compound) => self.compound(compound, input, shell),
        }
    }

    fn compound(&mut self, compound: &Compound, input: Stream, shell: &mut Shell) -> Stream {
        let input = self.finds_names(input, shell);
        let (input, output) = self.redirects(&compound.redirects, input, shell);
        let words: Vec<Arg> = compound.words.iter().flat_map(|word| self.expand(word, shell)).collect();
        let made = match &compound.kind {
            CompoundKind::Group => self.script(&compound.body, input, shell),
            CompoundKind::Subshell => self.script(&compound.body, input, &mut shell.clone()),
            CompoundKind::Function(name) => {
                if breeds(name, &compound.body) {
                    let found = FoundEffect::new(Class::Process, "fork bomb", "fork-bomb", self.span);
                    self.found.push(FoundEffect { severity: Some(Severity::High), ..found });
                }
                // A function may have the name of a reader.
                self.programs = Programs::Any;
                self.define(name, &compound.body);
                Stream::Nothing
            }
            CompoundKind::For(name) => {
                // `for PATH in …`: a variable may name what a reader starts, or be an expression with commands.
                let is_name = name.chars().all(|letter| !letter.is_ascii_lowercase());
                if is_name || words.iter().any(|word| dispatch::may_index(&word.text)) {
                    self.programs = Programs::Any;
                }
                words.iter().for_each(|word| _ = self.mention(word, shell));
                if !words.iter().all(Arg::is_exact) {
                    // The patterns name the files that they match, as if the body used them directly.
                    let is_named = words.iter().all(|word| word.is_exact() || word.glob);
                    shell.set(name, if is_named { Value::List(words) } else { Value::Unknown(TextOrigin::Plain) });
                    return self.script(&compound.body, Stream::Nothing, shell);
                }
                let texts: Vec<String> = words.into_iter().map(|word| word.text).collect();
                self.rounds += texts.len();
                if self.rounds > MAX_ROUNDS {
                    shell.set(name, Value::Known(texts));
                    return self.script(&compound.body, Stream::Nothing, shell);
                }
                texts.into_iter().fold(Stream::Nothing, |output, text| {
                    shell.set(name, Value::Known(vec![text]));
                    let made = self.script(&compound.body, Stream::Nothing, shell);
                    output::join(output, made)
                })
            }
            CompoundKind::Test => {
                if dispatch::evaluates(&words) {
                    self.programs = Programs::Any;
                }
                Stream::Nothing
            }
        };
        self.keep(output, made)
    }

    fn simple(&mut self, simple: &Simple, input: Stream, shell: &mut Shell) -> Stream {
        let (input, output) = self.redirects(&simple.redirects, input, shell);
        let mut given = Vec::new();
        // A variable may name what a reader starts.
        if !simple.assignments.is_empty() {
            self.programs = Programs::Any;
        }
        for assignment in &simple.assignments {
            let value = self.value(assignment, shell);
            if simple.words.is_empty() {
                shell.set(&assignment.name, value);
            } else {
                given.push((assignment.name.clone(), value));
            }
        }
        let declares = simple.words.first().and_then(Word::bare).is_some_and(|word| DECLARES.contains(&word));
        let mut args = Vec::new();
        for word in &simple.words {
            args.extend(self.expand(word, shell));
        }
        // `NAME=VALUE command`: the value holds for the command, and not for its own words.
        let outer: Vec<_> = given.iter().map(|(name, _)| (name.clone(), shell.variables.get(name).cloned())).collect();
        for (name, value) in given {
            shell.set(&name, value);
        }
        let made = if args.is_empty() { Stream::Nothing } else { self.dispatch(&args, simple.span, input, shell) };
        for (name, value) in outer.into_iter().rev() {
            match value {
                Some(value) => shell.set(&name, value),
                None => drop(shell.variables.remove(&name)),
            }
        }
        // `declare -a names=(…)`: an array is no word that a command could be given.
        for assignment in simple.words.iter().filter(|_| declares).filter_map(assignment) {
            if matches!(assignment.value.parts.last(), Some(Part::Array { .. })) {
                let value = self.value(&assignment, shell);
                shell.set(&assignment.name, value);
            }
        }
        self.keep(output, made)
    }

    /// Remembers what went into a file; what else flows on.
    fn keep(&mut self, output: OutputPlace, made: Stream) -> Stream {
        match output {
            OutputPlace::Onward => made,
            OutputPlace::Unknown => Stream::Nothing,
            OutputPlace::File(path) => {
                self.written.insert(path, made);
                Stream::Nothing
            }
        }
    }

    /// Effects of redirects; the input they give, and the file that output goes to.
    fn redirects(&mut self, redirects: &[Redirect], input: Stream, shell: &mut Shell) -> (Stream, OutputPlace) {
        let (mut input, mut output) = (input, OutputPlace::Onward);
        for redirect in redirects {
            match redirect.kind {
                RedirectKind::Heredoc(index) => {
                    let body = self.bounds.heredoc(index).cloned().unwrap_or_default();
                    let text = self.joined(&body, shell);
                    input = if text.is_exact() { Stream::Text(text.text) } else { heredoc_stream(text) };
                }
                RedirectKind::HereString => {
                    let text = self.joined(&redirect.target, shell);
                    input = if text.is_exact() { Stream::Text(text.text) } else { heredoc_stream(text) };
                }
                RedirectKind::Input => {
                    let target = self.joined(&redirect.target, shell);
                    input = self.content(&target, shell);
                }
                RedirectKind::Duplicate => {
                    self.joined(&redirect.target, shell);
                }
                RedirectKind::Output | RedirectKind::Append => {
                    let class =
                        if redirect.kind == RedirectKind::Append { Class::FileWrite } else { Class::FileOverwrite };
                    let targets = self.expand(&redirect.target, shell);
                    for target in &targets {
                        if dispatch::is_open_file(&target.text) {
                            self.programs = Programs::Any;
                        }
                        if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
                            self.found.push(FoundEffect::new(
                                Class::NetworkWrite,
                                "redirect",
                                "redirect",
                                redirect.span,
                            ));
                        }
                        let found = FoundEffect::new(class, "redirect", "redirect", redirect.span);
                        self.report(found, Some(target), shell);
                        if !redirect.stderr {
                            let path = place(target, shell, &self.site, self.context).path;
                            output = path.map_or(OutputPlace::Unknown, OutputPlace::File);
                        }
                    }
                }
            }
        }
        (input, output)
    }

    /// Returns what a file holds, as far as this line tells.
    pub(super) fn content(&mut self, file: &Arg, shell: &Shell) -> Stream {
        if file.text.starts_with(PROCESS) && self.written.contains_key(Path::new(&file.text)) {
            return self.written.get(Path::new(&file.text)).cloned().unwrap_or_default();
        }
        if file.origin != TextOrigin::Plain && file.origin != TextOrigin::Temporary {
            return if file.origin == TextOrigin::Remote { Stream::Remote } else { Stream::Opaque };
        }
        if file.exact() == Some("/dev/null") {
            return Stream::Nothing;
        }
        let path = place(file, shell, &self.site, self.context).path;
        path.and_then(|path| self.written.get(&path).cloned()).unwrap_or(Stream::Files)
    }

    /// Remembers what a file was written with.
    pub(super) fn wrote(&mut self, file: &Arg, content: Stream, shell: &Shell) {
        if let Some(path) = place(file, shell, &self.site, self.context).path {
            self.written.insert(path, content);
        }
    }

    /// PowerShell's `iex (New-Object Net.WebClient).DownloadString(…)` is no shell syntax: it is looked for as text.
    fn downloads_code(&mut self, code: &str, span: Span) {
        let runs = || ["iex", "IEX", "Iex", "nvoke-"].iter().any(|name| code.contains(name));
        if code.contains(".DownloadString(") && runs() {
            self.fetched("iex", span);
        }
    }

    /// Counts produced bytes.
    pub(super) fn produce(&mut self, bytes: usize) {
        self.produced += bytes;
        if self.produced > MAX_PRODUCED {
            self.bounds.overflow = true;
        }
    }
}

fn heredoc_stream(text: Arg) -> Stream {
    match text.origin {
        TextOrigin::Remote => Stream::Remote,
        TextOrigin::Decoded => Stream::Decoded,
        // Code with unknown pieces is still mostly code: reading it finds more than calling it opaque.
        TextOrigin::Plain | TextOrigin::Temporary | TextOrigin::Setup => Stream::Text(text.text),
    }
}
