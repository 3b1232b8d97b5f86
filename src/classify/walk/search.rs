//! `find`: what its tests let through, and what is done to that.

use std::path::{Path, PathBuf};

use super::dispatch::Invocation;
use super::{Stream, Walk};
use crate::classify::context::{Context, NearPiton};
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::{FoundEffect, place};
use crate::classify::rules::condition::glob;
use crate::model::effect::{Certainty, Class, Takes};

/// The search of a `find`, as the next stage of a pipe gets it.
#[derive(Clone)]
pub(super) struct Search {
    sought: Sought,
    /// Words that stand for the names it finds.
    pub matched: Vec<Arg>,
    /// The same, inside longer words.
    pub inside: Vec<Arg>,
    /// The directories that it searches.
    roots: Vec<PathBuf>,
    /// The only names that it lets through, as one pattern.
    names: Option<String>,
    /// True if only empty files and directories are found.
    is_empty: bool,
    /// True if only symbolic links are found.
    is_of_links: bool,
    /// The directory in which it ran: its names are relative to that.
    cwd: Option<PathBuf>,
}

impl Search {
    /// Returns true if its names are none of piton's own files.
    pub(super) fn is_apart(&self, context: &Context) -> bool {
        self.names.as_ref().is_some_and(|names| !context.may_name_piton(names))
    }
}

impl Walk<'_> {
    /// Judges `find` and its actions.
    pub(super) fn find(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Stream {
        let options = call.args.iter().take_while(|arg| matches!(arg.text.as_str(), "-L" | "-H" | "-P")).count();
        let args = &call.args[options..];
        let roots: Vec<&Arg> = args.iter().take_while(|arg| !arg.text.starts_with(['-', '(', '!'])).collect();
        let here = Arg::literal(".", call.span);
        let tests = &args[roots.len()..];
        let roots: Vec<&Arg> = if roots.is_empty() { vec![&here] } else { roots };
        let sought = Sought::of(args);
        // The removed paths lie somewhere below: the directory stands for them, with the names that a shell's pattern
        // would not match.
        let (matched, inside): (Vec<Arg>, Vec<Arg>) = if sought == Sought::Repositories {
            roots.iter().map(|root| (joined(root, ".git"), joined(root, ".git"))).unzip()
        } else {
            roots.iter().map(|root| ((*root).clone(), below(root))).unzip()
        };
        let follows_links = call.args[..options].iter().any(|arg| arg.text == "-L");
        // A slash behind the name of a link follows it.
        let enters_roots = call.args[..options].last().is_some_and(|arg| arg.text != "-P");
        let matched = if enters_roots { matched.iter().map(|root| joined(root, "")).collect() } else { matched };
        let search = Search {
            sought,
            names: names(tests).filter(|names| !follows_links && !roots.iter().any(|root| is_among(root, names))),
            is_empty: is_empty(tests),
            is_of_links: !follows_links && is_of_links(tests),
            roots: roots.iter().filter_map(|root| place(root, shell, &self.site, self.context).path).collect(),
            cwd: shell.cwd.clone(),
            matched,
            inside,
        };
        let mut index = 0;
        while let Some(arg) = args.get(index) {
            index += 1;
            let first = self.found.len();
            match arg.text.as_str() {
                "-delete" => {
                    for target in &search.matched {
                        self.report(
                            FoundEffect::new(Class::FileDelete, "find -delete", "find-delete", call.span),
                            Some(target),
                            shell,
                        );
                    }
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let end = args[index..].iter().position(|arg| matches!(arg.text.as_str(), ";" | "+"));
                    let end = end.map_or(args.len(), |end| index + end);
                    let mut inner = args[index..end].to_vec();
                    super::carry::replace(&mut inner, "{}", (&search.matched, &search.inside));
                    self.dispatch(&inner, call.span, Stream::Nothing, &mut shell.clone());
                    self.searched(first, &search, &args[index..end]);
                    index = end;
                    continue;
                }
                "-fprint" | "-fprintf" | "-fls" | "-fprint0" => {
                    self.report(
                        FoundEffect::new(Class::FileOverwrite, "find", "find-print", call.span),
                        args.get(index),
                        shell,
                    );
                }
                _ => {}
            }
            self.searched(first, &search, &[]);
        }
        // A run command, or output in a form of its own, may be anything.
        let is_plain =
            !tests.iter().any(|arg| is_action(&arg.text) && !matches!(arg.text.as_str(), "-print" | "-print0"));
        self.search = Some(search).filter(|_| is_plain || sought == Sought::Repositories);
        Stream::Opaque
    }

    /// Hands on what a `find` found, through programs that leave lines out or change their order.
    pub(super) fn passes_on(&mut self, call: &Invocation<'_>) {
        let first = call.args.first().map_or("", |arg| arg.text.as_str());
        let passes = match call.program {
            "sort" | "tac" => true,
            "head" | "tail" | "uniq" => !first.starts_with("-c"),
            "grep" | "egrep" | "fgrep" => matches!(first, "-v" | "-E" | "-F" | "-vE" | "-Ev" | "-vF"),
            _ => false,
        };
        if passes {
            self.search = self.fed.take();
        }
    }

    /// Takes what a `find` handed to this stage, if its names are read from where it ran.
    pub(super) fn handed(&mut self, shell: &Shell) -> Option<Search> {
        self.fed.take().filter(|search| search.cwd == shell.cwd)
    }

    /// Says of what a search led to where it is, and which repositories it takes along. `words` are those that the command has itself.
    pub(super) fn searched(&mut self, first: usize, search: &Search, words: &[Arg]) {
        self.assumed |= self.found.len() > first;
        // piton makes no links. A link stays one only for what removes it by its own name.
        let is_unlinked = words.first().is_none_or(|program| matches!(program.text.as_str(), "rm" | "unlink"))
            && !is_recursive(words)
            && !words.iter().any(|word| word.text.contains('/'));
        if search.is_apart(self.context) || (search.is_of_links && is_unlinked) {
            self.spare_piton(first);
        } else {
            self.reaches_below(first, search);
        }
        let names_root = words.iter().any(|word| search.matched.iter().any(|root| root.text == word.text));
        for found in &mut self.found[first..] {
            found.certainty = found.certainty.max(Certainty::Likely);
            let removes = found.removes || matches!(found.class, Class::FileDelete | Class::FileMove);
            // A directory of a name that is sought goes with its repository.
            let goes_whole = removes && search.names.is_some() && is_recursive(words);
            let takes_all = search.sought != Sought::Named || goes_whole;
            found.takes = Some(if takes_all { Takes::Repositories } else { Takes::Nothing });
            if search.sought == Sought::Repositories && found.class == Class::VcsHistory {
                // Those further below go too.
                found.path = found.path.take().and_then(|path| path.parent().map(Path::to_owned));
            }
            let is_file =
                matches!(found.class, Class::FileDelete | Class::FileMove | Class::FileOverwrite | Class::FilePerm);
            let is_inside = |path: &&PathBuf| path.starts_with(&self.context.workspace) && search.roots.contains(path);
            let Some(path) = found.path.as_ref().filter(is_inside).filter(|_| is_file && !names_root) else { continue };
            if search.is_empty {
                // There is nothing in it to bring back.
                (found.path, found.near) = (None, None);
            } else if let Some(names) = &search.names {
                found.pattern = Some(path.join("**").join(names));
                (found.path, found.takes) = (None, None);
            }
        }
    }
}

impl Walk<'_> {
    /// Marks what changes each file that a search finds below a directory around piton's own files. Modes and times of single files do
    /// not count.
    fn reaches_below(&mut self, first: usize, search: &Search) {
        let context = self.context;
        let is_root = |path: &PathBuf| search.roots.contains(path) && context.near_piton(path).is_some();
        for found in self.found[first..].iter_mut().filter(|found| found.near_piton.is_none() && found.placed.is_none())
        {
            let is_content = !matches!(found.program(), "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "touch");
            if is_content && found.path.as_ref().is_some_and(is_root) {
                found.near_piton = Some(NearPiton::Around);
            }
        }
    }
}

/// The names that the tests of a `find` let through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    /// Anything at all.
    Anything,
    /// Only certain names, or nothing in a `.git`.
    Named,
    /// Every `.git`.
    Repositories,
}

impl Sought {
    fn of(args: &[Arg]) -> Sought {
        let text = |at: usize| args.get(at).map_or("", |arg| arg.text.as_str());
        let has = |option: &str, value: &str| (1..args.len()).any(|at| text(at - 1) == option && text(at) == value);
        let mut sought = Sought::Anything;
        if has("-maxdepth", "1") && has("-type", "f") {
            sought = Sought::Named;
        }
        for at in 0..args.len() {
            let (test, pattern) = (text(at), text(at + 1));
            let is_not = at > 0 && matches!(text(at - 1), "!" | "-not");
            let prune = (at..at + 5).find(|at| text(*at) == "-prune");
            let is_pruned = prune.is_some_and(|at| matches!(text(at + 1), "-o" | "-or" | ")"));
            let is_named = match test {
                "-name" | "-iname" if pattern == ".git" && !is_not && !is_pruned => return Sought::Repositories,
                "-name" | "-iname" => glob(pattern.as_bytes(), b".git") == is_pruned && !is_not,
                "-path" | "-ipath" | "-wholename" | "-iwholename" | "-regex" | "-iregex" => {
                    let is_git = pattern.split('/').any(|name| matches!(name, ".git" | ".git*" | "\\.git"));
                    is_git == (is_not || is_pruned)
                }
                "-empty" => !is_not,
                _ => false,
            };
            if is_named {
                sought = Sought::Named;
            }
        }
        sought
    }
}

/// Returns true if a command takes directories with all that is in them.
pub(super) fn is_recursive(words: &[Arg]) -> bool {
    let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R']);
    words.iter().any(|word| word.text == "--recursive" || word.text == "mv" || is_short(&word.text))
}

/// Returns true for what a `find` does, as opposed to what it asks.
fn is_action(word: &str) -> bool {
    let is_print = word.starts_with("-print") || word.starts_with("-fprint") || matches!(word, "-ls" | "-fls");
    is_print || matches!(word, "-delete" | "-exec" | "-execdir" | "-ok" | "-okdir")
}

/// Returns the only names that the tests of a `find` let through to what it does, as one pattern; `None` if others may
/// come through.
///
/// Each side of an `-o` must name one before it does something. Tests that are not plain are left alone.
fn names(tests: &[Arg]) -> Option<String> {
    let (mut names, mut sides) = (Vec::new(), 1);
    let (mut is_named, mut acts, mut index) = (false, false, 0);
    while let Some(test) = tests.get(index) {
        let is_not = index > 0 && matches!(tests[index - 1].text.as_str(), "!" | "-not");
        match test.text.as_str() {
            "," => return None,
            "(" if is_not => return None,
            "-name" | "-iname" if !is_not => {
                let pattern = tests.get(index + 1)?.exact()?;
                let has_escape = pattern.contains(['/', '{', '}', ',', '\\']) || pattern.contains("[[");
                let is_any_case = test.text == "-iname";
                if has_escape || (is_any_case && pattern.contains('[')) {
                    return None;
                }
                if !acts {
                    names.push(if is_any_case { in_any_case(pattern) } else { pattern.to_owned() });
                    is_named = true;
                }
                index += 1;
            }
            "-o" | "-or" if is_named => (is_named, acts, sides) = (false, false, sides + 1),
            "-o" | "-or" => return None,
            word if is_action(word) => {
                if !is_named {
                    return None;
                }
                acts = true;
                if word.starts_with("-exec") || word.starts_with("-ok") {
                    let end = tests[index..].iter().position(|arg| matches!(arg.text.as_str(), ";" | "+"));
                    index += end.unwrap_or(tests.len());
                }
            }
            _ => {}
        }
        index += 1;
    }
    match names.as_slice() {
        [only] if is_named && sides == 1 => Some(only.clone()),
        [_, ..] if is_named => Some(format!("{{{}}}", names.join(","))),
        _ => None,
    }
}

/// Returns true if the tests let through only what is empty.
fn is_empty(tests: &[Arg]) -> bool {
    let text = |at: usize| tests.get(at).map_or("", |arg| arg.text.as_str());
    let acts = tests.iter().position(|arg| is_action(&arg.text)).unwrap_or(tests.len());
    let is_asked = (0..acts).any(|at| text(at) == "-empty" && (at == 0 || !matches!(text(at - 1), "!" | "-not")));
    is_asked && !tests.iter().any(|arg| matches!(arg.text.as_str(), "(" | "," | "-o" | "-or"))
}

/// Returns true if the tests let through only symbolic links.
fn is_of_links(tests: &[Arg]) -> bool {
    let text = |at: usize| tests.get(at).map_or("", |arg| arg.text.as_str());
    let acts = tests.iter().position(|arg| is_action(&arg.text)).unwrap_or(tests.len());
    let is_not = |at: usize| at > 0 && matches!(text(at - 1), "!" | "-not");
    let is_asked = (0..acts).any(|at| matches!(text(at), "-type" | "-xtype") && text(at + 1) == "l" && !is_not(at));
    is_asked && !tests.iter().any(|arg| matches!(arg.text.as_str(), "(" | "," | "-o" | "-or"))
}

/// Returns a pattern for the names that are the same but for their case.
fn in_any_case(pattern: &str) -> String {
    let letter = |c: char| match c.is_ascii_alphabetic() {
        true => format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
        false => c.to_string(),
    };
    pattern.chars().map(letter).collect()
}

/// Returns true if the names may be that of the directory itself.
fn is_among(root: &Arg, names: &str) -> bool {
    let name = root.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    globset::Glob::new(names).map_or(true, |names| names.compile_matcher().is_match(name))
}

/// Returns a name in a directory.
fn joined(root: &Arg, name: &str) -> Arg {
    let text = format!("{}/{name}", root.text.trim_end_matches('/'));
    let known = if root.is_exact() { text.len() } else { root.known };
    Arg { text, known, ..root.clone() }
}

/// Something below a directory.
fn below(root: &Arg) -> Arg {
    let text = format!("{}/*", root.text.trim_end_matches('/'));
    let known = if root.is_exact() { text.len() - 1 } else { root.known };
    Arg { text, known, glob: true, ..root.clone() }
}
