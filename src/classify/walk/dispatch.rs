//! One command: which of the tables knows it, and what that says.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::outputs::Familiarity;
use super::search::is_recursive;
use super::{Stream, Walk};
use crate::classify::expand::{Arg, Shell, TextOrigin};
use crate::classify::found::FoundEffect;
use crate::classify::names;
use crate::classify::rules::args::Parsed;
use crate::classify::rules::{Hit, Run};
use crate::classify::shell::Span;
use crate::model::effect::{Certainty, Class, Programs, Severity};
use crate::model::words::{LINE_SHELLS, READERS, WRITERS};

/// A command about to be judged.
#[derive(Clone)]
pub(crate) struct Invocation<'c> {
    pub program: &'c str,
    /// The arguments behind the program.
    pub args: &'c [Arg],
    pub span: Span,
    pub input: Stream,
}

/// Scripts that a project carries to call a build tool of that name: the tables know what they do.
const WRAPPERS: [&str; 2] = ["gradlew", "mvnw"];

impl Walk<'_> {
    /// Judges a command; what it prints.
    pub(crate) fn dispatch(&mut self, args: &[Arg], span: Span, input: Stream, shell: &mut Shell) -> Stream {
        let Some(first) = args.first() else { return input };
        if self.bounds.overflow || !self.bounds.enter() {
            return Stream::Opaque;
        }
        args[1..].iter().for_each(|arg| _ = self.mention(arg, shell));
        self.programs = self.programs.max(kind_of(args));
        let outer = std::mem::take(&mut self.opaque);
        let output = match first.exact() {
            Some(text) if !text.is_empty() => {
                let program = names::program(text);
                let args = own_arguments(&program, &args[1..]);
                // Git takes its own options by their whole names alone; those of its verbs are read with the verb.
                let args = match program.as_str() {
                    "git" => Cow::Borrowed(&*args),
                    _ => self.rules.spelled_out(&program, &args, &[]),
                };
                let call = Invocation { program: &program, args: &args, span, input };
                self.call(call, first, shell)
            }
            Some(_) => Stream::Nothing,
            None => self.unknown_program(first, args, span, shell),
        };
        if self.opaque {
            self.blind_in(shell);
        }
        self.opaque |= outer;
        self.bounds.leave();
        output
    }

    fn unknown_program(&mut self, first: &Arg, args: &[Arg], span: Span, shell: &mut Shell) -> Stream {
        match first.origin {
            TextOrigin::Remote | TextOrigin::Decoded => self.fetched("shell", span),
            TextOrigin::Plain | TextOrigin::Temporary | TextOrigin::Setup => {
                let name = names::program(&first.text);
                // `$BIN/rm`, `./node_modules/*/rimraf`: the name is certain though its directory is not.
                if first.text.contains('/') && !name.contains(['$', '*', '(', '{', '?']) && self.rules.knows(&name) {
                    let call = Invocation { program: &name, args: &args[1..], span, input: Stream::Nothing };
                    return self.call(call, first, shell);
                }
                self.opaque = true;
                self.handed_on(&args[1..], span, shell);
            }
        }
        Stream::Opaque
    }

    fn call(&mut self, call: Invocation<'_>, first: &Arg, shell: &mut Shell) -> Stream {
        let (program, args) = (call.program, call.args);
        let output = self.by_name(call, first, shell);
        // `./test` may be a script of the workspace, whatever a program of that name does elsewhere.
        if first.text.contains('/') && !WRAPPERS.contains(&program) {
            self.in_case(|walk| walk.own_script(first, args, shell));
        }
        output
    }

    /// Reads a script in case that a program with a name which the tables know is one. If it does something, no more can be
    /// said than of any script.
    pub(super) fn in_case(&mut self, read: impl FnOnce(&mut Self)) {
        if self.opaque {
            return;
        }
        let before = self.found.len();
        read(self);
        self.opaque |= self.found.len() > before;
    }

    /// Judges a command by the name of its program.
    fn by_name(&mut self, call: Invocation<'_>, first: &Arg, shell: &mut Shell) -> Stream {
        if let Some(output) =
            Some(&call).filter(|_| !first.text.contains('/')).and_then(|call| self.invoke(call, shell))
        {
            return output;
        }
        if self.builtin(&call, shell) {
            return super::output::made_by(&call);
        }
        if let Some(code) = self.aliases.get(call.program).cloned() {
            return self.alias(code, &call, shell);
        }
        if let ("pwd", Some(cwd), false) = (call.program, &shell.cwd, self.site.elsewhere) {
            return Stream::Text(cwd.to_string_lossy().into_owned() + "\n");
        }
        self.passes_on(&call);
        if call.program == "piton" {
            // Its `push` and `fetch` run git on the way to a server.
            self.git_environment(&Parsed::default(), call.span, &mut shell.clone());
        }
        if self.aimed_at_piton(&call) {
            return Stream::Opaque;
        }
        if call.program == "git" {
            return self.git(&call, shell);
        }
        let before = self.found.len();
        let output = match self.directed(&call, shell) {
            Some(mut there) => self.tabled(&call, first, &mut there),
            None => self.tabled(&call, first, shell),
        };
        self.makes_link(&call, shell);
        self.tar_removes(&call, shell);
        let output = self.prints_names(&call, shell).unwrap_or(output);
        if !self.found[before.min(self.found.len())..].iter().any(|found| found.near_piton.is_some()) {
            self.touches_piton(&call, shell);
            self.links_to_piton(&call, shell);
        }
        output
    }

    /// Judges a program by the tables.
    fn tabled(&mut self, call: &Invocation<'_>, first: &Arg, shell: &mut Shell) -> Stream {
        let acts = |arg: &Arg| matches!(arg.text.as_str(), "start" | "stop" | "restart" | "reload" | "force-reload");
        if first.text.starts_with("/etc/init.d/") && call.args.first().is_some_and(acts) {
            self.found.push(FoundEffect::new(Class::System, call.program, "init-script", call.span));
            return Stream::Opaque;
        }
        let rules = self.rules;
        if let Some(output) = self.carried(call, shell) {
            return output;
        }
        if let Some(output) = self.embedded_code(call, shell) {
            return output;
        }
        if let Some(hit) = rules.find_verb(call.program, call.args, Run { input: call.input.flows(), root: self.root })
        {
            self.hit(&hit, call, shell);
            if hit.rule.class.is_none() {
                self.outputs(call, Familiarity::Known, shell);
            }
            if self.opaque {
                self.task(call, shell);
            }
            self.remember_download(&hit, call, shell);
            return super::output::made_by(call);
        }
        if let Some(output) = self.interpreter(call, shell) {
            return output;
        }
        let familiarity = if rules.knows(call.program) { Familiarity::Known } else { Familiarity::Unknown };
        if familiarity == Familiarity::Unknown {
            self.unfamiliar(call, first, shell);
        } else if rules.judges(call.program) && !is_question(call) && !rules.understands(call.program, call.args) {
            // A subcommand that no rule names may do anything.
            self.opaque = true;
        }
        self.outputs(call, familiarity, shell);
        super::output::made_by(call)
    }

    /// Programs that carry a command or a query. Code comes after the rules: `perl -i` is an editor first.
    fn carried(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        self.wrapped(call, shell)
            .or_else(|| self.special(call, shell))
            .or_else(|| self.remote(call, shell))
            .or_else(|| self.database(call, shell))
    }

    /// Returns an alias of the same line; it does not call itself.
    fn alias(&mut self, mut code: Arg, call: &Invocation<'_>, shell: &mut Shell) -> Stream {
        let own = self.aliases.remove_entry(call.program);
        for arg in call.args {
            code.text.push(' ');
            code.text.push_str(&arg.text);
        }
        let output = self.payload(&code, call.input.clone(), shell);
        self.aliases.extend(own);
        output
    }

    /// Something no table knows: a script of the workspace, or a program.
    fn unfamiliar(&mut self, call: &Invocation<'_>, first: &Arg, shell: &mut Shell) {
        if !first.text.contains('/') && asks_for_help(call) {
            return;
        }
        self.opaque = true;
        self.handed_on(call.args, call.span, shell);
        // `deploy.sh --help`: an alarming name that is only asked.
        let is_asked = is_question(call);
        if !first.text.contains('/') {
            if names::alarming(call.program) && !is_asked {
                self.hidden(call.program, Some(call.program), call.span);
            }
            return;
        }
        match self.content(first, shell) {
            Stream::Text(text) => {
                let code = Arg { text, span: call.span, ..first.clone() };
                self.hidden(call.program, None, call.span);
                self.payload(&code, Stream::Nothing, &mut shell.clone());
            }
            Stream::Remote | Stream::Decoded => self.fetched(call.program, call.span),
            Stream::Nothing | Stream::Files | Stream::Setup | Stream::Opaque => {
                if !["/usr/", "/bin/", "/sbin/", "/opt/"].iter().any(|prefix| first.text.starts_with(prefix)) {
                    let name = names::script(&first.text);
                    self.hidden(call.program, Some(name).filter(|_| !is_asked), call.span);
                    self.own_script(first, call.args, shell);
                }
            }
        }
    }

    /// A program that nobody knows may run what stands behind its name, as `retry python3 -c …` does.
    fn handed_on(&mut self, args: &[Arg], span: Span, shell: &Shell) {
        let is_between = |arg: &&Arg| matches!(arg.text.as_str(), "exec" | "run" | "--");
        let behind = &args[args.iter().take_while(is_between).count()..];
        let Some(name) = behind.first().and_then(Arg::exact).map(names::program) else { return };
        if self.rules.runs_code(&name) || behind.len() > 1 && CERTAIN.contains(&name.as_str()) {
            self.dispatch(behind, span, Stream::Nothing, &mut shell.clone());
        }
    }

    /// Records what a rule says.
    pub(crate) fn hit(&mut self, hit: &Hit<'_>, call: &Invocation<'_>, shell: &Shell) {
        let rule = hit.rule;
        if rule.opaque || hit.is_unknown() && !self.rules.understands(call.program, call.args) {
            self.opaque = true;
        }
        if rule.named {
            self.named(hit, call);
        }
        let severity = match rule.severity {
            _ if rule.address && self.stays_here(call) => Some(Severity::Info),
            severity => severity,
        };
        let placed = self.placed(hit, call, shell);
        let first = self.found.len();
        for class in rule.class.iter().chain(rule.and.iter()) {
            let found = FoundEffect {
                severity,
                reversible: rule.reversible,
                checkpoint: rule.checkpoint,
                warn: rule.warn,
                answer: rule.answer,
                replaces: rule.replaces,
                say: rule.say.as_ref().map(|say| say.replace("{verb}", &hit.verb)),
                ..FoundEffect::new(*class, hit.verb.as_str(), &*rule.id, call.span)
            };
            let uncertain = Certainty::Likely;
            if hit.targets.is_empty() {
                let scripts = call.args.iter().filter(|arg| arg.text.contains(char::is_whitespace));
                let points = scripts.filter(|arg| self.mention_within(&arg.text, shell)).count();
                self.report(FoundEffect { anywhere: points > 0, ..found.clone() }, None, shell);
            }
            for (at, target) in hit.targets.iter().enumerate() {
                let is_last = at + 1 == hit.targets.len();
                let found = FoundEffect { placed: placed.clone().filter(|_| is_last), ..found.clone() };
                let found = if target.is_exact() { found } else { found.certainty(uncertain) };
                self.report(found, Some(target), shell);
            }
        }
        if rule.class == Some(Class::FilePerm) && !is_recursive(call.args) {
            self.spare_piton(first);
        }
    }

    /// Task runners: the names of what they run say whether it is more than a build.
    fn named(&mut self, hit: &Hit<'_>, call: &Invocation<'_>) {
        self.opaque = true;
        if let Some(name) = hit.operands.iter().find(|arg| names::alarming(&arg.text)) {
            self.hidden(&hit.verb, Some(&name.text), call.span);
        }
    }

    /// Returns whether every address among the arguments is this machine's own.
    fn stays_here(&self, call: &Invocation<'_>) -> bool {
        let is_near = |text: &str| host(text).map(|host| is_loopback(host) || is_service(text, host));
        let mut addresses = call.args.iter().filter_map(|arg| is_near(&arg.text)).peekable();
        !self.site.elsewhere && addresses.peek().is_some() && addresses.all(|is_near| is_near)
    }

    fn remember_download(&mut self, hit: &Hit<'_>, call: &Invocation<'_>, shell: &Shell) {
        let fetches = matches!(call.program, "curl" | "wget" | "aria2c");
        if fetches && hit.rule.class.is_some_and(|class| matches!(class, Class::FileOverwrite | Class::FileWrite)) {
            let address = call.args.iter().rev().find(|arg| arg.text.contains("://"));
            let by_name = address.and_then(|arg| arg.text.rsplit('/').next().map(|name| Arg::literal(name, arg.span)));
            for file in hit.targets.iter().cloned().chain(by_name) {
                self.wrote(&file, Stream::Remote, shell);
            }
        }
    }
}

/// Returns what the closed lists say about a command's program. For `bash -lc 'ls'` the walk checks the line `ls` itself.
fn kind_of(args: &[Arg]) -> Programs {
    let Some(text) = args.first().and_then(Arg::exact) else { return Programs::Any };
    let name = text.strip_prefix("/usr/bin/").or_else(|| text.strip_prefix("/bin/")).unwrap_or(text);
    // A shell for people (`-i`) reads files of its own first.
    let is_line = |option: &str| {
        let letters = option.strip_prefix('-').and_then(|letters| letters.strip_suffix('c'));
        letters.is_some_and(|letters| letters.chars().all(|letter| "lexu".contains(letter)))
    };
    let listed = name.as_bytes().first().and_then(|first| LISTED.get(usize::from(*first)));
    if let Some((_, kind)) = listed.and_then(|names| names.iter().find(|(known, _)| *known == name)) {
        return if args[1..].iter().any(|arg| does_more(name, &arg.text)) { Programs::Any } else { *kind };
    }
    match args {
        // zsh runs commands in more kinds of expansions.
        [_, option, _line] if LINE_SHELLS.contains(&name) && name != "zsh" && option.exact().is_some_and(is_line) => {
            Programs::Readers
        }
        _ => Programs::Any,
    }
}

/// Returns true if an argument makes a listed program do more than the lists say. `cp` and `mv` may write a backup of the file that they
/// replace, and `printf` may set a variable, as `wait -p` does. `test` runs the commands in the index of a variable.
fn does_more(program: &str, arg: &str) -> bool {
    let has_letter = |letters: &[char]| arg.starts_with('-') && !arg.starts_with("--") && arg.contains(letters);
    match program {
        "cp" | "mv" => has_letter(&['b', 'S']) || arg.starts_with("--b") || arg.starts_with("--su"),
        "printf" => arg.starts_with("-v"),
        "wait" => has_letter(&['p']),
        "test" | "[" => may_index(arg),
        _ => false,
    }
}

/// Returns true if `[[ … ]]` with these words may run commands: in an index, or in a value that is compared as a number.
pub(super) fn evaluates(words: &[Arg]) -> bool {
    let is_number = |word: &Arg| matches!(word.text.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
    words.iter().any(|word| may_index(&word.text)) || words.iter().any(is_number) && words.iter().any(|word| word.glob)
}

/// Returns true for a path of an open file descriptor (`/dev/fd/3`) that is not an output of the session.
pub(super) fn is_open_file(path: &str) -> bool {
    let number = path.strip_prefix("/dev/fd/").filter(|number| !matches!(*number, "1" | "2"));
    path == "/dev/stdin" || number.is_some() || path.starts_with("/proc/")
}

/// Returns true if a text may be a variable with an index that runs commands.
pub(super) fn may_index(text: &str) -> bool {
    text.contains(['`', '$']) && text.contains('[')
}

/// The programs of the closed lists, by the first bytes of their names: each command is looked up.
static LISTED: LazyLock<Vec<Vec<(&'static str, Programs)>>> = LazyLock::new(|| {
    let mut listed = vec![Vec::new(); usize::from(u8::MAX)];
    for (list, kind) in [(READERS, Programs::Readers), (WRITERS, Programs::Writers)] {
        for name in list {
            let first = name.as_bytes().first().copied().unwrap_or_default();
            listed[usize::from(first)].push((*name, kind));
        }
    }
    listed
});

/// Returns the host of an address, if an argument looks like one.
fn host(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let bare =
        scheme.is_empty() && !rest.starts_with(['-', '{', '[', '@', '.', '/', '$']) && !rest.contains(['=', ' ', '"']);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let name =
        if host.starts_with('[') { host.split(']').next()?.trim_start_matches('[') } else { host.split(':').next()? };
    let dotted = name.contains('.') || name == "localhost" || host.starts_with('[') || (rest.starts_with(':') && bare);
    let explicit = !scheme.is_empty();
    if name.is_empty() && rest.starts_with(':') && bare {
        return Some("localhost");
    }
    (explicit || bare && dotted && !name.ends_with(".json")).then_some(name)
}

/// Returns true for a service beside this one: `http://api:8000`.
fn is_service(address: &str, host: &str) -> bool {
    let is_name = host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    address.starts_with("http://") && is_name
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.starts_with("127.")
        || host == "::1"
        || host == "0.0.0.0"
}

/// Programs whose names are no verbs, so that behind an unknown program they stand for themselves.
const CERTAIN: [&str; 14] = [
    "rm",
    "git",
    "find",
    "sed",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "terraform",
    "aws",
    "gcloud",
    "npm",
    "cargo",
    "make",
];

/// Arguments with which programs only tell what they would do.
pub(super) const ASKS: [&str; 9] = ["--help", "-h", "help", "--version", "-V", "version", "--dry-run", "-n", "--usage"];

/// Returns true for a call that asks for the program's help or version and for nothing else.
fn asks_for_help(call: &Invocation<'_>) -> bool {
    let is = |arg: &Arg, words: &[&str]| arg.exact().is_some_and(|text| words.contains(&text));
    match call.args {
        [only] => is(only, &["--help", "-h", "help", "--version", "-V", "version", "-version", "-help", "--usage"]),
        [.., last] => is(last, &["--help"]),
        [] => false,
    }
}

/// Returns true for a call that only asks what the program would do.
pub(super) fn is_question(call: &Invocation<'_>) -> bool {
    call.args.iter().any(|arg| ASKS.contains(&arg.text.as_str()))
}

/// Programs of Windows whose options begin with a slash.
const SLASHED: [&str; 13] = [
    "del", "erase", "rd", "rmdir", "copy", "xcopy", "robocopy", "move", "ren", "attrib", "icacls", "takeown", "format",
];

/// Returns the arguments without what is no operand though it looks like one: `cargo +nightly`, `del /s /q`.
fn own_arguments<'a>(program: &str, args: &'a [Arg]) -> Cow<'a, [Arg]> {
    let toolchain = matches!(program, "cargo" | "rustc" | "rustfmt" | "rustdoc" | "clippy-driver");
    if toolchain && args.first().is_some_and(|arg| arg.text.starts_with('+')) {
        return Cow::Borrowed(&args[1..]);
    }
    if !SLASHED.contains(&program) {
        return Cow::Borrowed(args);
    }
    let switch = |arg: &Arg| {
        let letters = arg.text.strip_prefix('/').unwrap_or_default();
        let length = if program == "rmdir" { 1 } else { 3 };
        (1..=length).contains(&letters.len()) && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
            || letters.contains(':') && letters.find(':').is_some_and(|at| at <= length)
    };
    args.iter().filter(|arg| !switch(arg)).cloned().collect()
}
