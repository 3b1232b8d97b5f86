//! Aliases of git from the configuration of the repository and of the user, as `git-config(1)` describes the format.
//!
//! The walk names the files (`Walk::scripts`); whoever may look hands their texts over. Files that they include are not read.

use std::path::PathBuf;

use super::Walk;
use crate::classify::expand::Shell;

impl Walk<'_> {
    /// Returns the alias of a name that is no command of git; the repository's own is before the user's.
    pub(super) fn configured_alias(&mut self, name: &str, shell: &Shell) -> Option<String> {
        if self.site.elsewhere {
            return None;
        }
        let workspace = &self.context.workspace;
        let here = shell.cwd.as_ref().filter(|cwd| cwd.starts_with(workspace) && *cwd != workspace);
        let repositories = here.into_iter().chain([workspace]).map(|dir| dir.join(".git/config"));
        let home = self.context.home.iter();
        let user = home.flat_map(|home| [".gitconfig", ".config/git/config"].map(|file| home.join(file)));
        let files: Vec<PathBuf> = repositories.chain(user).collect();
        // All are asked for at once.
        let texts: Vec<_> = files.into_iter().filter_map(|file| self.file_text(file)).collect();
        texts.iter().find_map(|text| alias(text, name))
    }
}

/// Returns the last value of `alias.NAME` in a configuration.
fn alias(text: &str, name: &str) -> Option<String> {
    let (mut is_alias, mut found) = (false, None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim().to_owned();
        while line.ends_with('\\') && !line.ends_with("\\\\") {
            line.pop();
            let Some(next) = lines.next() else { break };
            line.push_str(next.trim_end());
        }
        if let Some(section) = line.strip_prefix('[') {
            let (head, rest) = section.split_once(']').unwrap_or((section, ""));
            // `[alias "NAME"]` has its command in `command`.
            is_alias = head.trim().eq_ignore_ascii_case("alias");
            line = rest.trim().to_owned();
        }
        let Some((key, value)) = line.split_once('=').filter(|_| is_alias) else { continue };
        if key.trim().eq_ignore_ascii_case(name) {
            found = Some(unquoted(value.trim()));
        }
    }
    found.filter(|value| !value.is_empty())
}

/// Returns a value without its quotes, escapes and comment.
fn unquoted(value: &str) -> String {
    let (mut out, mut is_quoted, mut chars) = (String::new(), false, value.chars());
    while let Some(one) = chars.next() {
        match one {
            '"' => is_quoted = !is_quoted,
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            '#' | ';' if !is_quoted => break,
            other => out.push(other),
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_git_reads_them() {
        let text = "# x\n[core]\n\tco = no\n[alias]\n\tCO = checkout # comment\n\tnuke = \"!git reset --hard; rm -rf \\\"a b\\\"\"\n\
                    \tlong = !echo \\\n  a\n\tempty =\n[user] name = x\n[alias] st = status\n\tco = checkout -f\n\
                    [alias \"sub\"]\n\tcommand = reset\n";
        for (name, expected) in [
            ("co", Some("checkout -f")),
            ("nuke", Some("!git reset --hard; rm -rf \"a b\"")),
            ("long", Some("!echo   a")),
            ("st", Some("status")),
            ("empty", None),
            ("name", None),
            ("command", None),
            ("x", None),
        ] {
            assert_eq!(alias(text, name).as_deref(), expected, "{name}");
        }
    }
}
