//! Effects of database clients on this machine: files that they write (`\o`, `.output`, `-o`) and commands that they run (`\!`, `.system`).

use std::sync::LazyLock;

use regex::Regex;

use super::dispatch::Invocation;
use super::{Stream, Walk};
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::FoundEffect;
use crate::classify::rules::args::Parsed;
use crate::classify::rules::dialect::SqlDialect;
use crate::model::effect::Class;

/// Something that a client does on this machine.
enum Local {
    File(String),
    Command(String),
}

/// Options whose value is a file that the client writes.
const OUTPUT: [&str; 5] = ["-o", "--output", "-L", "--log-file", "--tee"];

/// The commands of `psql`, also behind a query in the same line. Source: its manual page, "Meta-Commands".
static META: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\\(!|out|o|write|w|gx|g|copy|s)(?:[ \t]+([^\n\\]*)|[ \t]*(?:\n|$))").ok());

/// `COPY … TO 'FILE'` of duckdb, `INTO OUTFILE 'FILE'` of clickhouse.
static COPIES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?is-u)\b(?:copy\b(?u:.*?)\bto|export(?u:\s)+database|into(?u:\s)+outfile)(?u:\s)+'((?u:[^']+))'").ok()
});

impl Walk<'_> {
    /// Records what a client does on this machine besides its queries.
    pub(super) fn client_files(
        &mut self,
        call: &Invocation<'_>,
        dialect: SqlDialect,
        (parsed, texts): (&Parsed, &[String]),
        shell: &Shell,
    ) {
        for file in parsed.flags.iter().filter(|flag| OUTPUT.contains(&flag.name.as_str())) {
            if let Some(file) = &file.value {
                self.client_file(call, file, shell);
            }
        }
        let is_archive = |arg: &Arg| arg.text.starts_with("-A") && call.program.starts_with("sqlite");
        if call.args.iter().any(is_archive) {
            self.report(FoundEffect::new(Class::FileOverwrite, call.program, "client-archive", call.span), None, shell);
        }
        for text in texts {
            let locals = match dialect {
                SqlDialect::Postgres => meta(text),
                SqlDialect::Sqlite => dots(text),
                SqlDialect::Duckdb => dots(text).into_iter().chain(copies(text)).collect(),
                SqlDialect::Clickhouse => copies(text),
                _ => Vec::new(),
            };
            for local in locals {
                match local {
                    Local::File(file) => self.client_file(call, &Arg::literal(file, call.span), shell),
                    Local::Command(line) => {
                        self.payload(&Arg::literal(line, call.span), Stream::Nothing, &mut shell.clone());
                    }
                }
            }
        }
    }

    fn client_file(&mut self, call: &Invocation<'_>, file: &Arg, shell: &Shell) {
        let found = FoundEffect::new(Class::FileOverwrite, call.program, "client-file", call.span);
        self.report(found, Some(file), shell);
    }
}

fn meta(text: &str) -> Vec<Local> {
    let Some(pattern) = META.as_ref() else { return Vec::new() };
    let local = |found: regex::Captures<'_>| {
        let rest = found.get(2).map_or("", |rest| rest.as_str()).trim();
        match &found[1] {
            "!" => (!rest.is_empty()).then(|| Local::Command(rest.to_owned())),
            "copy" => {
                let at = rest.to_ascii_lowercase().rfind(" to ")?;
                let to = rest[at + " to ".len()..].trim_start();
                match to.get(.."program".len()).filter(|word| word.eq_ignore_ascii_case("program")) {
                    Some(_) => Some(Local::Command(first_word(&to["program".len()..])?)),
                    None => first_word(to)
                        .filter(|file| !["stdout", "pstdout"].contains(&file.to_ascii_lowercase().as_str()))
                        .map(Local::File),
                }
            }
            _ => output(rest),
        }
    };
    pattern.captures_iter(text).filter_map(local).collect()
}

/// Commands of sqlite's and duckdb's shells: a line that begins with a dot.
fn dots(text: &str) -> Vec<Local> {
    let local = |line: &str| {
        let (command, rest) = line.trim().split_once(char::is_whitespace)?;
        let rest = rest.trim();
        match command {
            ".system" | ".shell" => Some(Local::Command(rest.to_owned())),
            ".output" | ".once" | ".log" => {
                output(rest.trim_start_matches(['-', 'e', 'x', 'b']).trim_start_matches("om").trim())
            }
            ".save" | ".backup" | ".clone" => {
                let last = rest.split_whitespace().last()?;
                Some(Local::File(last.trim_matches(['\'', '"']).to_owned()))
            }
            _ => None,
        }
    };
    text.lines().filter(|line| line.trim_start().starts_with('.')).filter_map(local).collect()
}

fn copies(text: &str) -> Vec<Local> {
    let files = COPIES.as_ref().into_iter().flat_map(|pattern| pattern.captures_iter(text));
    files.map(|found| Local::File(found[1].to_owned())).collect()
}

/// Returns the file or the command that output goes to; `None` for the terminal.
fn output(rest: &str) -> Option<Local> {
    if let Some(line) = rest.strip_prefix('|') {
        return Some(Local::Command(line.trim().trim_end_matches(';').to_owned()));
    }
    let file = first_word(rest)?;
    let is_terminal = ["stdout", "stderr", "off"].contains(&file.as_str()) || file.starts_with(['(', ';']);
    (!is_terminal).then_some(Local::File(file))
}

/// Returns the first word, without its quotes.
fn first_word(text: &str) -> Option<String> {
    let text = text.trim_start();
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.split(quote).next());
    let word = quoted('\'').or_else(|| quoted('"')).or_else(|| text.split_whitespace().next())?;
    (!word.is_empty()).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(locals: Vec<Local>) -> Vec<String> {
        let show = |local| match local {
            Local::File(file) => file,
            Local::Command(line) => format!("! {line}"),
        };
        locals.into_iter().map(show).collect()
    }

    #[test]
    fn commands_of_psql() {
        for (text, wanted) in [
            ("\\! rm -rf x", vec!["! rm -rf x"]),
            ("\\o out.txt\nselect 1", vec!["out.txt"]),
            ("\\o", vec![]),
            ("select 1 \\g out.txt", vec!["out.txt"]),
            ("select 1 \\g", vec![]),
            ("select 1 \\g |rm x", vec!["! rm x"]),
            ("\\copy t to 'a.csv' csv", vec!["a.csv"]),
            ("\\copy (select 1) TO PROGRAM 'gzip > a'", vec!["! gzip > a"]),
            ("\\copy t to stdout", vec![]),
            ("\\copy t from 'a.csv'", vec![]),
            ("\\dt", vec![]),
            ("\\watch 1", vec![]),
        ] {
            assert_eq!(shown(meta(text)), wanted, "{text}");
        }
    }

    #[test]
    fn commands_of_sqlite() {
        for (text, wanted) in [
            (".output a.txt\nselect 1;", vec!["a.txt"]),
            (".output stdout", vec![]),
            (".once -x", vec![]),
            (".system rm -rf x", vec!["! rm -rf x"]),
            (".backup main b.db", vec!["b.db"]),
            (".tables", vec![]),
            (".mode csv", vec![]),
        ] {
            assert_eq!(shown(dots(text)), wanted, "{text}");
        }
        assert_eq!(shown(copies("COPY (SELECT 1) TO 'o.parquet' (FORMAT parquet)")), ["o.parquet"]);
    }
}
