//! The shell lines of tasks: scripts of a `package.json`, recipes of a Makefile and of a justfile.
//!
//! Read as far as they are plain: a value that only the runner can tell becomes a variable that nobody knows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Most lines that one task gives.
const MAX_LINES: usize = 256;

/// Most bytes that the values in one task's lines give.
const MAX_BYTES: usize = 64 << 10;

/// Deepest nesting of values in values.
const MAX_DEPTH: usize = 8;

/// Stands for a value that only the runner can tell. The shell would refuse it unset, so that it is never an empty word.
const UNKNOWN: &str = "${unknown:?}";

/// Returns what `npm run NAME` and its likes run: the script, with those that stand before and behind it.
pub(super) fn of_package(text: &str, program: &str, words: &[&str]) -> Vec<String> {
    let Ok(package) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let script = |name: &str| package["scripts"][name].as_str().map(str::to_owned);
    // Another package's scripts are in another file.
    if words.iter().any(|word| ["-w", "--workspace", "--filter", "-F", "-r"].contains(word)) {
        return Vec::new();
    }
    let mut operands = words.iter().enumerate().filter(|(_, word)| !word.starts_with('-'));
    let Some((mut at, mut name)) = operands.next() else { return Vec::new() };
    if matches!(*name, "run" | "run-script" | "rum" | "urn") {
        let Some((next, task)) = operands.next() else { return Vec::new() };
        (at, name) = (next, task);
    } else if matches!(*name, "t" | "tst") {
        name = &"test";
    }
    let Some(line) = script(name) else { return Vec::new() };
    let behind = words[at + 1..].iter();
    let given: Vec<&&str> = match program {
        "npm" => behind.skip_while(|word| **word != "--").skip(1).collect(),
        _ => behind.filter(|word| **word != "--").collect(),
    };
    let quoted = given.into_iter().map(|word| format!(" '{}'", word.replace('\'', "'\\''")));
    let line = std::iter::once(line).chain(quoted).collect();
    [script(&format!("pre{name}")), Some(line), script(&format!("post{name}"))].into_iter().flatten().collect()
}

/// A rule of a Makefile, or a recipe of a justfile.
#[derive(Default)]
struct Recipe {
    needs: Vec<String>,
    lines: Vec<String>,
    /// The parameters of a justfile's recipe, with their defaults.
    parameters: Vec<(String, Option<String>)>,
}

/// The values and recipes of a file.
#[derive(Default)]
struct Recipes {
    values: BTreeMap<String, Option<String>>,
    recipes: BTreeMap<String, Recipe>,
    first: Option<String>,
}

impl Recipes {
    /// Notes a value. One that has another already may be either.
    fn value(&mut self, name: &str, value: Option<&str>) {
        let value = value.map(str::to_owned);
        let known = self.values.entry(name.to_owned()).or_insert_with(|| value.clone());
        if *known != value {
            *known = None;
        }
    }

    /// Lists recipes in the order in which they run: what one needs comes before it.
    fn order<'r>(&'r self, goals: &[&'r str]) -> Vec<&'r str> {
        let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
        let mut pending: Vec<(&str, bool)> = goals.iter().rev().map(|goal| (*goal, false)).collect();
        while let Some((name, is_ready)) = pending.pop() {
            if is_ready {
                order.push(name);
            } else if seen.insert(name)
                && let Some(recipe) = self.recipes.get(name)
            {
                pending.push((name, true));
                pending.extend(recipe.needs.iter().rev().map(|need| (need.as_str(), false)));
            }
        }
        order
    }
}

/// Returns the lines of the recipes that `make` runs.
pub(super) fn of_makefile(text: &str, words: &[&str]) -> Vec<String> {
    let mut file = makefile(text);
    let mut goals = Vec::new();
    for word in operands(words, &["-C", "-f", "-j", "-l", "-o", "-W", "--directory", "--file", "--makefile", "--jobs"])
    {
        match word.split_once('=') {
            Some((name, value)) => {
                _ = file.values.insert(name.trim_end_matches(':').to_owned(), Some(value.to_owned()));
            }
            None => goals.push(word),
        }
    }
    let first = file.first.clone();
    if goals.is_empty() {
        goals.extend(first.as_deref());
    }
    let (mut out, mut left) = (Vec::new(), MAX_BYTES);
    for name in file.order(&goals) {
        for line in &file.recipes[name].lines {
            let line = line.trim_start_matches(['@', '-', '+', ' ', '\t']);
            let Some(line) = make_expanded(&file, line, name, (0, &mut left)) else { return out };
            if !line.is_empty() {
                out.push(line);
            }
            if out.len() >= MAX_LINES {
                return out;
            }
        }
    }
    out
}

fn operands<'w>(words: &[&'w str], valued: &[&str]) -> Vec<&'w str> {
    let (mut found, mut is_value) = (Vec::new(), false);
    for word in words {
        if !std::mem::take(&mut is_value) && !word.starts_with('-') {
            found.push(*word);
        }
        is_value = valued.contains(word);
    }
    found
}

fn makefile(text: &str) -> Recipes {
    let mut file = Recipes::default();
    for (name, value) in [("RM", "rm -f"), ("MAKE", "make"), ("CURDIR", "."), ("SHELL", "/bin/sh")] {
        file.value(name, Some(value));
    }
    let (mut targets, mut is_defining): (Vec<String>, bool) = (Vec::new(), false);
    for line in joined(text) {
        let words = line.split_ascii_whitespace().next().unwrap_or_default();
        if is_defining || words == "define" {
            is_defining = words != "endef";
        } else if let Some(command) = line.strip_prefix('\t').filter(|_| !targets.is_empty()) {
            for target in &targets {
                file.recipes.entry(target.clone()).or_default().lines.push(command.to_owned());
            }
        } else if let Some((name, value)) = make_value(&line) {
            targets.clear();
            file.value(name, value);
        } else if let Some((names, rest)) = uncommented(&line).split_once(':') {
            let rest = rest.trim_start_matches(':');
            // A value for one target alone, and patterns, are left out.
            if rest.contains('=') || names.contains('%') {
                targets.clear();
                continue;
            }
            let (needs, command) = rest.split_once(';').map_or((rest, None), |(needs, command)| (needs, Some(command)));
            targets = names.split_ascii_whitespace().map(str::to_owned).collect();
            for target in &targets {
                if file.first.is_none() && !target.starts_with('.') {
                    file.first = Some(target.clone());
                }
                let recipe = file.recipes.entry(target.clone()).or_default();
                let needs = needs.split_ascii_whitespace().filter(|need| *need != "|").map(str::to_owned);
                recipe.needs.extend(needs);
                recipe.lines.extend(command.map(|command| command.trim().to_owned()));
            }
        }
    }
    file
}

/// Returns the lines of a Makefile; those that end with a backslash are joined with the next.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let (body, more) = line.strip_suffix('\\').map_or((line, false), |body| (body, true));
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => {
                last.push(' ');
                last.push_str(body.trim_start());
            }
            None => lines.push(body.to_owned()),
        }
        goes_on = more;
    }
    lines
}

fn uncommented(line: &str) -> &str {
    line.split('#').next().unwrap_or_default()
}

/// Reads `NAME = value`. The value is `None` if only make can tell it.
fn make_value(line: &str) -> Option<(&str, Option<&str>)> {
    let line = uncommented(line).trim_start();
    let line = ["export ", "override "].iter().fold(line, |line, word| line.strip_prefix(word).unwrap_or(line));
    let (name, value) = line.split_once('=')?;
    let plain = name.trim_end_matches([':', '?', '+', '!', ' ', '\t']);
    let is_name = !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let is_known = !name.trim_end().ends_with(['+', '!']);
    is_name.then_some((plain, is_known.then_some(value.trim())))
}

/// Puts values in the place of `$(NAME)`; `None` once they give too many bytes.
fn make_expanded(file: &Recipes, text: &str, target: &str, (depth, left): (usize, &mut usize)) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let (name, length) = match behind.chars().next() {
            Some(open @ ('(' | '{')) => match closing(behind, open) {
                Some(end) => (&behind[1..end], end + 1),
                None => return Some(out + UNKNOWN),
            },
            Some(one) => (&behind[..one.len_utf8()], one.len_utf8()),
            None => break,
        };
        let value = match name {
            "$" => Some("$".to_owned()),
            "@" => Some(target.to_owned()),
            "<" => file.recipes.get(target).and_then(|recipe| recipe.needs.first()).cloned(),
            "^" => file.recipes.get(target).map(|recipe| recipe.needs.join(" ")),
            _ if depth >= MAX_DEPTH => None,
            // make takes it from the environment, as the shell does.
            "HOME" if !file.values.contains_key(name) => Some("${HOME}".to_owned()),
            name => match file.values.get(name) {
                Some(Some(value)) => Some(make_expanded(file, value, target, (depth + 1, left))?),
                _ => None,
            },
        };
        let value = value.as_deref().unwrap_or(UNKNOWN);
        *left = left.checked_sub(value.len())?;
        out.push_str(value);
        rest = &behind[length..];
    }
    out.push_str(rest);
    *left = left.checked_sub(rest.len())?;
    Some(out)
}

/// Returns where the bracket at the start is closed.
fn closing(text: &str, open: char) -> Option<usize> {
    let close = if open == '(' { ')' } else { '}' };
    let mut depth = 0_usize;
    for (at, one) in text.char_indices() {
        if one == open {
            depth += 1;
        } else if one == close {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// Returns the lines of the recipes that `just` runs.
pub(super) fn of_justfile(text: &str, words: &[&str]) -> Vec<String> {
    let file = justfile(text);
    let words = operands(words, &["-f", "--justfile", "-d", "--working-directory", "--set", "--shell"]);
    let goal = words.first().copied().or(file.first.as_deref());
    let given = words.get(1..).unwrap_or_default();
    let (mut out, mut left) = (Vec::new(), MAX_BYTES);
    for name in goal.map(|goal| file.order(&[goal])).unwrap_or_default() {
        let recipe = &file.recipes[name];
        // A body of another language has its interpreter in the first line.
        let is_other = recipe.lines.first().is_some_and(|line| line.starts_with("#!") && !line.contains("sh"));
        let given = if Some(name) == goal { given } else { &[] };
        for line in recipe.lines.iter().filter(|line| !is_other && !line.starts_with('#')) {
            let line = line.trim_start_matches(['@', '-', ' ', '\t']);
            let Some(line) = just_expanded(&file, recipe, line, (given, &mut left)) else { return out };
            out.push(line);
            if out.len() >= MAX_LINES {
                return out;
            }
        }
    }
    out
}

fn justfile(text: &str) -> Recipes {
    let (mut file, mut current): (Recipes, Option<String>) = (Recipes::default(), None);
    for line in joined(text) {
        if line.starts_with([' ', '\t']) {
            let recipe = current.as_ref().and_then(|name| file.recipes.get_mut(name));
            recipe.into_iter().for_each(|recipe| recipe.lines.push(line.trim().to_owned()));
        } else if let Some((name, value)) = line.split_once(":=") {
            current = None;
            let name = name.trim();
            if let Some(other) = name.strip_prefix("alias ") {
                let recipe = Recipe { needs: vec![value.trim().to_owned()], ..Recipe::default() };
                file.recipes.insert(other.trim().to_owned(), recipe);
            } else {
                file.value(name.strip_prefix("export ").unwrap_or(name), just_text(value.trim()));
            }
        } else if let Some((head, needs)) = line.split_once(':').filter(|_| !line.starts_with(['#', '['])) {
            let mut words = head.trim_start_matches('@').split_ascii_whitespace();
            let Some(name) = words.next() else { continue };
            let parameters = words.map(|word| {
                let word = word.trim_start_matches(['+', '*', '$']);
                word.split_once('=').map_or((word.to_owned(), None), |(name, value)| {
                    (name.to_owned(), Some(just_text(value).unwrap_or(UNKNOWN).to_owned()))
                })
            });
            let needs = needs.split(['(', ')', ' ', '\t']).filter(|need| !need.is_empty() && *need != "&&");
            let recipe = Recipe {
                needs: needs.map(str::to_owned).collect(),
                lines: Vec::new(),
                parameters: parameters.collect(),
            };
            file.first.get_or_insert_with(|| name.to_owned());
            current = Some(name.to_owned());
            file.recipes.insert(name.to_owned(), recipe);
        }
    }
    file
}

/// Returns the text in quotes; `None` for an expression.
fn just_text(value: &str) -> Option<&str> {
    ['\'', '"'].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
}

fn just_expanded(file: &Recipes, recipe: &Recipe, line: &str, (given, left): (&[&str], &mut usize)) -> Option<String> {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((name, after)) = behind.split_once("}}") else { break };
        let name = name.trim();
        let at = recipe.parameters.iter().position(|(parameter, _)| parameter == name);
        let value = match at {
            Some(at) => given.get(at).copied().or(recipe.parameters[at].1.as_deref()),
            None => file.values.get(name).and_then(Option::as_deref).or_else(|| just_text(name)),
        };
        out.push_str(before);
        out.push_str(value.unwrap_or(UNKNOWN));
        *left = left.checked_sub(out.len().min(MAX_BYTES))?;
        rest = after;
    }
    out.push_str(rest);
    *left = left.checked_sub(rest.len())?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_a_package() {
        let text = r#"{"scripts": {"preclean": "echo a", "clean": "rimraf dist", "test": "jest"}}"#;
        let lines = |program, words: &[&str]| of_package(text, program, words);
        assert_eq!(lines("npm", &["run", "clean", "x", "--", "it's"]), ["echo a", r"rimraf dist 'it'\''s'"]);
        assert_eq!(lines("yarn", &["clean", "b"]), ["echo a", "rimraf dist 'b'"]);
        assert_eq!(lines("npm", &["t"]), ["jest"]);
        for words in [&["run"][..], &["run", "none"], &[], &["-w", "x", "run", "clean"]] {
            assert!(lines("npm", words).is_empty(), "{words:?}");
        }
        assert!(of_package("{", "npm", &["test"]).is_empty());
    }

    #[test]
    fn recipes_of_a_makefile() {
        let text = "OUT ?= build\nDEEP := $(OUT)/x # y\nTWICE = a\nTWICE = b\n.PHONY: clean all\nall: clean lib\n\t@echo $$HOME\n\
                    clean: | first\n\trm -rf $(DEEP) \\\n\t  ${OUT}\n\t-$(RM) $@ $(TWICE) $(shell date)\nfirst: ; touch $@\n%.o: %.c\n\tcc $<\n\
                    lib: a b\n\tcp $^ $<\n";
        let lines = |words: &[&str]| of_makefile(text, words);
        let clean = ["touch first", "rm -rf build/x  build", "rm -f clean ${unknown:?} ${unknown:?}"];
        assert_eq!(lines(&["clean"]), clean);
        assert_eq!(lines(&["-j", "4", "OUT=o", "clean"])[1], "rm -rf o/x  o");
        assert_eq!(lines(&[]), [&clean[..], &["cp a b a", "echo $HOME"]].concat());
        assert!(lines(&["none"]).is_empty());
    }

    #[test]
    fn recipes_of_a_justfile() {
        let text = "out := \"build\"\nwhen := `date`\nalias c := clean\n\n# all\nbuild: clean\n    @echo {{when}}\n\
                    clean dir=\"x\": (prepare)\n    rm -rf {{out}}/{{ dir }} {{none}}\nprepare:\n  touch p\npy:\n  #!/usr/bin/python\n  x\n";
        let lines = |words: &[&str]| of_justfile(text, words);
        assert_eq!(lines(&["clean", "y"]), ["touch p", "rm -rf build/y ${unknown:?}"]);
        assert_eq!(lines(&["c"]), ["touch p", "rm -rf build/x ${unknown:?}"]);
        assert_eq!(lines(&[])[2], "echo ${unknown:?}");
        assert!(lines(&["py"]).is_empty());
    }

    #[test]
    fn hostile_files_are_bounded() {
        let doubled: String = (0..60).map(|n| format!("A{n} = $(A{}) $(A{})\n", n + 1, n + 1)).collect();
        let text = format!("{doubled}A60 = {}\nall: all\n\t$(A0)\n", "x".repeat(1000));
        assert!(of_makefile(&text, &[]).iter().map(String::len).sum::<usize>() <= MAX_BYTES);
        let chain: String = (0..5000).map(|n| format!("t{n}: t{}\n\techo {n}\n", n + 1)).collect();
        assert_eq!(of_makefile(&chain, &[]).len(), MAX_LINES);
        for text in ["a: b\n\t$(", "a:\n\t$", ":\n\tx", "=\n", "a: \\", "define x\n\trm"] {
            of_makefile(text, &["a"]);
            of_justfile(text, &["a"]);
        }
    }
}
