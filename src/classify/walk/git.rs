//! Git as it reads its line: where it works, aliases given on the line, and options that run a program.
//!
//! Git takes a long option by any beginning of its name, so what rules and tables ask for is spelled out first.

use std::path::{Path, PathBuf};

use super::dispatch::Invocation;
use super::git_settings as settings;
use super::{Stream, Walk};
use crate::classify::context::resolve;
use crate::classify::expand::{Arg, Shell, TextOrigin};
use crate::classify::found::FoundEffect;
use crate::classify::rules::Run;
use crate::classify::rules::args::{Grammar, parse};
use crate::model::effect::{Class, Takes};

/// Options of git itself that take the next word as their value; `--exec-path` takes none but behind `=`.
const VALUES: [&str; 7] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--attr-source", "--config-env"];

/// Options whose value is a command that git hands to a shell, by the verbs that have them.
const RUNNING: &[(&str, &[&str])] = &[
    ("archive", &["--exec"]),
    ("clone", &["-u", "--upload-pack"]),
    ("difftool", &["-x", "--extcmd"]),
    ("fetch pull", &["--upload-pack"]),
    ("fetch-pack ls-remote", &["--upload-pack", "--exec"]),
    (
        "filter-branch",
        &[
            "--commit-filter",
            "--env-filter",
            "--index-filter",
            "--msg-filter",
            "--parent-filter",
            "--setup",
            "--tag-name-filter",
            "--tree-filter",
        ],
    ),
    ("grep", &["-O", "--open-files-in-pager"]),
    ("push send-pack", &["--receive-pack", "--exec"]),
    ("rebase", &["-x", "--exec"]),
    ("send-email", &["--cc-cmd", "--header-cmd", "--sendmail-cmd", "--to-cmd"]),
];

/// Options whose value names a file that is written, as the rules know them.
const WRITING: &[(&str, &[&str])] = &[
    ("archive", &["--output"]),
    ("bugreport diagnose", &["--output-directory"]),
    ("config", &["--file"]),
    ("interpret-trailers", &["--in-place"]),
];

/// Options that no rule asks for, and that decide on the work that a verb takes away (`git_losses`).
const TAKING: &[(&str, &[&str])] = &[
    ("checkout-index", &["--all", "--force"]),
    ("rebase", &["--abort", "--skip"]),
    ("read-tree", &["--reset"]),
    ("reset", &["--hard", "--merge"]),
    ("rm worktree clean", &["--force"]),
    ("checkout", &["--force", "--theirs", "--ours"]),
    ("switch", &["--force", "--discard-changes"]),
    ("restore", &["--source", "--staged", "--worktree"]),
    ("stash", &["--all", "--include-untracked", "--staged"]),
];

/// Options by which a verb takes less. A beginning that one above has too stands for that.
const SPARING: &[(&str, &[&str])] = &[
    ("checkout", &["--track", "--detach", "--orphan", "--patch", "--pathspec-from-file"]),
    ("clean", &["--dry-run", "--interactive", "--exclude"]),
    ("restore", &["--patch"]),
    ("rm", &["--cached", "--dry-run"]),
    ("stash", &["--keep-index", "--patch", "--pathspec-from-file"]),
];

/// Verbs that put the files of a commit in the place of those of another.
const CHECKING_OUT: [&str; 6] = ["checkout", "switch", "merge", "cherry-pick", "read-tree", "pull"];

/// Most directories of one line from which git is asked for the top of its repository.
const MAX_TOPS: usize = 8;

fn is_force(name: &str) -> bool {
    matches!(name, "-f" | "--force")
}

impl Walk<'_> {
    /// Judges a git command.
    pub(crate) fn git(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Stream {
        let grammar = Grammar { values: VALUES.map(str::to_owned).into_iter().collect(), ..Grammar::default() };
        let options = parse(call.args, &grammar, true);
        let rest = &call.args[options.rest.min(call.args.len())..];
        let mut shell = shell.clone();
        for flag in &options.flags {
            if let ("-C" | "--work-tree", Some(value)) = (flag.name.as_str(), &flag.value) {
                shell.cwd = value.exact().and_then(|text| Some(resolve(shell.cwd.as_deref()?, text)));
            }
        }
        let Some(sub) = rest.first() else {
            return Stream::Nothing;
        };
        self.configures_alias(rest);
        let configured = self.aliases.get(&format!("git {}", sub.text)).map(|code| code.text.clone());
        let settings = settings::given(&options, &shell);
        let alias = settings.iter().rev().find_map(|(key, value)| {
            let (section, name) = key.split_once('.')?;
            let is_it = section.eq_ignore_ascii_case("alias") && name.eq_ignore_ascii_case(&sub.text);
            is_it.then(|| value.text.clone())
        });
        self.git_environment(&options, call.span, &mut shell);
        for (key, value) in &settings {
            if key.eq_ignore_ascii_case("core.worktree") {
                shell.cwd = value.exact().and_then(|text| Some(resolve(shell.cwd.as_deref()?, text)));
            }
            self.git_setting(key, value, &shell);
        }
        if let Some(alias) = alias.or(configured) {
            return self.git_alias(&alias, rest, call, &mut shell);
        }
        self.works_on_store(&options, rest, &shell);
        let mut rest = self.rules.spelled_out("git", rest, &own_options(&sub.text)).into_owned();
        let forces = parse(&rest, &Grammar::default(), false).flags.iter().filter(|flag| is_force(&flag.name)).count();
        for (key, value) in &settings {
            // A force that a setting stands for is one more than git needs where the line has one.
            if let Some(option) =
                settings::option_of(&sub.text, key, value).filter(|option| forces == 0 || !is_force(option))
            {
                rest.insert(1, Arg::literal(option, call.span));
            }
        }
        let inner = Invocation { program: "git", args: &rest, span: call.span, input: call.input.clone() };
        if self.git_carries(&inner, &mut shell) {
            return Stream::Opaque;
        }
        if sub.text == "rev-parse" && rest.get(1).is_some_and(|arg| arg.text == "--show-toplevel") {
            return self.top(&shell);
        }
        self.git_runs(&inner, &shell);
        self.git_loses(&rest, &shell);
        self.git_sweeps(&rest, &shell);
        let first = self.found.len();
        if let Some(hit) = self.rules.find("git", &rest, Run { input: inner.input.flows(), root: self.root }) {
            let alias = (&*hit.rule.id == "git-unknown").then(|| self.configured_alias(&sub.text, &shell)).flatten();
            if let Some(alias) = alias {
                return self.git_alias(&alias, &rest, call, &mut shell);
            }
            self.hit(&hit, &inner, &shell);
        }
        if sub.text == "clean" && forces > 1 {
            self.cleans_repositories(first, &shell);
        }
        self.git_reaches(first, &rest, &shell);
        if CHECKING_OUT.contains(&sub.text.as_str()) {
            self.checks_out(&inner, &shell);
        }
        Stream::Opaque
    }

    /// Git keeps what is changed or untracked when it checks a commit out, but it replaces ignored files without a word.
    fn checks_out(&mut self, call: &Invocation<'_>, shell: &Shell) {
        let Some(cwd) = shell.cwd.as_ref().filter(|_| !self.site.elsewhere) else { return };
        let is_commit = |arg: &&Arg| arg.is_exact() && (arg.text == "-" || !arg.text.starts_with('-'));
        for rev in call.args.iter().skip(1).take_while(|arg| arg.text != "--").filter(is_commit) {
            let known = self.context.checkouts.iter().find(|(dir, name, _)| dir == cwd && *name == rev.text);
            let Some((_, _, replaced)) = known else {
                if self.checkouts.len() < MAX_TOPS && !self.checkouts.contains(&(cwd.clone(), rev.text.clone())) {
                    self.checkouts.push((cwd.clone(), rev.text.clone()));
                }
                continue;
            };
            for path in replaced {
                let target = Arg::literal(path.to_string_lossy(), call.span);
                let verb = format!("git {}", call.args[0].text);
                let found = FoundEffect::new(Class::FileOverwrite, verb, "git-replaces-ignored", call.span);
                self.report(found, Some(&target), shell);
            }
        }
    }

    /// `git clean -ff` removes untracked repositories whole.
    fn cleans_repositories(&mut self, first: usize, shell: &Shell) {
        let bare = self.found[first..].iter().any(|found| found.target.is_none());
        let whole = if bare { self.found.drain(first..).next() } else { None };
        if let Some(found) = whole {
            let here = Arg::literal(".", found.span);
            self.report(found, Some(&here), shell);
        }
        self.found[first..].iter_mut().for_each(|found| found.takes = Some(Takes::Nested));
    }

    /// `git rev-parse --show-toplevel`: where somebody has looked, it is known.
    fn top(&mut self, shell: &Shell) -> Stream {
        let Some(cwd) = shell.cwd.as_ref().filter(|_| !self.site.elsewhere) else { return Stream::Opaque };
        self.top_of(cwd).map_or(Stream::Opaque, |top| Stream::Text(top.to_string_lossy().into_owned() + "\n"))
    }

    /// Returns the top of the repository of a directory, and asks for it if it is not known yet.
    pub(super) fn top_of(&mut self, dir: &Path) -> Option<PathBuf> {
        let known = self.context.tops.iter().find(|(known, _)| known == dir);
        if known.is_none() && self.tops.len() < MAX_TOPS && !self.tops.iter().any(|asked| asked == dir) {
            self.tops.push(dir.to_owned());
        }
        known.map(|(_, top)| top.clone())
    }

    /// Judges the commands that options of a verb hand to a shell, and those in addresses (`ext::COMMAND`).
    fn git_runs(&mut self, call: &Invocation<'_>, shell: &Shell) {
        let sub = call.args[0].text.as_str();
        for (names, code) in settings::on_the_line(call.args) {
            self.git_setting(&names, &code, shell);
        }
        for arg in call.args.iter().filter(|arg| arg.text.starts_with("ext::")) {
            self.git_command(&arg.skip("ext::".len()), shell);
        }
        let Some((_, options)) = RUNNING.iter().find(|(verbs, _)| verbs.split(' ').any(|verb| verb == sub)) else {
            return;
        };
        let mut grammar = self.rules.grammar("git", Some(sub)).clone();
        // The pager of `grep` is only ever attached.
        let values = options.iter().filter(|_| sub != "grep").map(|option| (*option).to_owned());
        grammar.values.extend(values);
        for flag in parse(&call.args[1..], &grammar, false).flags {
            if let Some(code) = flag.value.filter(|_| options.contains(&flag.name.as_str())) {
                self.git_command(&code, shell);
            }
        }
    }

    /// `git config alias.x '!rm a'`: a later `git x` of the line runs it.
    fn configures_alias(&mut self, rest: &[Arg]) {
        if let [config, .., name, code] = rest
            && config.text == "config"
            && let (Some(name), Some(code)) = (name.text.strip_prefix("alias."), code.exact())
            && self.aliases.len() < 64
        {
            self.aliases.insert(format!("git {name}"), Arg::literal(code, config.span));
        }
    }

    fn git_alias(&mut self, alias: &str, rest: &[Arg], call: &Invocation<'_>, shell: &mut Shell) -> Stream {
        let text = match alias.strip_prefix('!') {
            Some(command) => command.to_owned(),
            None => format!("git {alias}"),
        };
        let mut code = Arg::literal(text, call.span);
        for arg in &rest[1..] {
            code.text.push(' ');
            code.text.push_str(&arg.text);
        }
        self.payload(&code, call.input.clone(), shell)
    }

    /// `bisect run`, `submodule foreach` and their like: commands behind the verb.
    fn git_carries(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> bool {
        let words: Vec<&str> = call.args.iter().take(2).map(|arg| arg.text.as_str()).collect();
        let skip = match words.as_slice() {
            ["bisect", "run"] => 2,
            ["submodule", "foreach"] => 2,
            ["merge-index", ..] => 1,
            ["for-each-repo", ..] => return self.git_everywhere(call, shell),
            _ => return false,
        };
        let inner: Vec<Arg> = call.args[skip..].iter().skip_while(|arg| arg.text.starts_with('-')).cloned().collect();
        if let [code] = inner.as_slice() {
            self.payload(code, Stream::Nothing, &mut shell.clone());
        } else {
            self.dispatch(&inner, call.span, Stream::Nothing, &mut shell.clone());
        }
        true
    }

    /// `for-each-repo --config=KEY VERB …` runs git in each repository that a setting names.
    fn git_everywhere(&mut self, call: &Invocation<'_>, shell: &Shell) -> bool {
        let values = ["--config"].map(str::to_owned).into_iter().collect();
        let parsed = parse(&call.args[1..], &Grammar { values, ..Grammar::default() }, true);
        let mut inner = vec![Arg::literal("git", call.span)];
        inner.extend_from_slice(call.args.get(1 + parsed.rest..).unwrap_or_default());
        let mut shell = Shell { cwd: None, ..shell.clone() };
        self.dispatch(&inner, call.span, Stream::Nothing, &mut shell);
        true
    }

    /// Judges what git hands to a shell.
    pub(crate) fn git_command(&mut self, code: &Arg, shell: &Shell) {
        // The command does not start with what was set for this one: a git in it would be judged without end.
        let mut shell = shell.clone();
        shell.variables.retain(|name, _| !settings::is_of_git(name));
        match code.origin {
            TextOrigin::Remote | TextOrigin::Decoded => self.fetched("git", code.span),
            TextOrigin::Plain | TextOrigin::Temporary | TextOrigin::Setup if code.is_unseen() => {
                self.hidden("git", None, code.span);
            }
            TextOrigin::Plain | TextOrigin::Temporary | TextOrigin::Setup => {
                self.payload(code, Stream::Nothing, &mut shell);
            }
        }
    }
}

/// Returns the options of a verb that this module and its neighbours ask for.
fn own_options(verb: &str) -> Vec<&'static str> {
    let tables = RUNNING.iter().chain(WRITING).chain(TAKING).chain(SPARING);
    let own = tables.filter(|(verbs, _)| verbs.split(' ').any(|one| one == verb));
    own.flat_map(|(_, options)| options.iter().copied()).collect()
}
