//! The directory of zsh's startup files, where a `.zshenv` sets it: read as text, because running it is not piton's to do.

/// The variable that names the directory.
pub const ZDOTDIR: &str = "ZDOTDIR";

/// Returns the value that the last assignment in a `.zshenv` gives the directory, with the variables in it replaced; `None` without an
/// assignment.
///
/// # Errors
/// Returns the text of a value that only zsh can work out.
pub fn assigned(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>, String> {
    let value = text.lines().rev().find_map(|line| {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        let word = if matches!(first, "export" | "typeset" | "declare") {
            words.find(|word| !word.starts_with('-'))?
        } else {
            first
        };
        let at = line.find(word)? + word.find('=')?;
        (word.split('=').next() == Some(ZDOTDIR)).then(|| &line[at + 1..])
    });
    value.map(|value| expanded(value, variable).ok_or_else(|| value.trim().to_owned())).transpose()
}

/// Returns a word with its quotes removed and its variables replaced; `None` for one with other expansions.
fn expanded(word: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut value = String::new();
    let mut rest = word;
    let mut quote = None;
    if let Some(below) = rest.strip_prefix('~') {
        if !below.is_empty() && !below.starts_with(['/', ' ', '\t', ';', '#']) {
            return None;
        }
        value.push_str(&variable("HOME")?);
        rest = below;
    }
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            (' ' | '\t' | ';' | '&' | '\r', None) => break,
            ('$', None | Some('"')) => {
                let (part, left) = variable_value(after, variable)?;
                value.push_str(&part);
                rest = left;
                continue;
            }
            ('`' | '\\', None | Some('"')) | ('*' | '?' | '(' | '<', None) => return None,
            (letter, _) => value.push(letter),
        }
        rest = after;
    }
    (quote.is_none() && !value.is_empty()).then_some(value)
}

/// Returns the value of the variable behind a `$`, and the text after it: `NAME`, `{NAME}`, or `{NAME:-WORD}`.
fn variable_value<'t>(text: &'t str, variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, &'t str)> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let Some(braced) = text.strip_prefix('{') else {
        let end = text.find(|letter| !is_name(letter)).unwrap_or(text.len());
        return (end > 0).then(|| variable(&text[..end])).flatten().map(|value| (value, &text[end..]));
    };
    let mut depth = 1;
    let close = braced.find(|letter| {
        depth += match letter {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth == 0
    })?;
    let (inner, rest) = (&braced[..close], &braced[close + 1..]);
    let end = inner.find(|letter| !is_name(letter)).unwrap_or(inner.len());
    let value = variable(&inner[..end]).filter(|value| !value.is_empty());
    let default = inner[end..].strip_prefix(":-").or(inner[end..].strip_prefix('-'));
    match (value, default) {
        _ if end == 0 => None,
        (Some(value), Some(_)) => Some((value, rest)),
        (None, Some(word)) => expanded(word, variable).map(|value| (value, rest)),
        (value, None) => value.filter(|_| end == inner.len()).map(|value| (value, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_that_a_zshenv_sets() {
        let variable = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        let table: [(&str, Result<Option<&str>, &str>); 15] = [
            ("", Ok(None)),
            ("# ZDOTDIR=/x\nexport PATH=/y", Ok(None)),
            ("ZDOTDIR=/a", Ok(Some("/a"))),
            ("export ZDOTDIR=$HOME/.config/zsh\n", Ok(Some("/h/.config/zsh"))),
            ("export ZDOTDIR=\"${HOME}/z s\" # mine", Ok(Some("/h/z s"))),
            ("  typeset -gx ZDOTDIR=~/.zsh; x=1", Ok(Some("/h/.zsh"))),
            ("ZDOTDIR='$HOME'", Ok(Some("$HOME"))),
            ("ZDOTDIR=${XDG_CONFIG_HOME:-$HOME/.config}/zsh", Ok(Some("/h/.config/zsh"))),
            ("ZDOTDIR=${XDG_CONFIG_HOME:-${HOME}/.config}/zsh\r", Ok(Some("/h/.config/zsh"))),
            ("ZDOTDIR=/a\nZDOTDIR=/b", Ok(Some("/b"))),
            ("ZDOTDIR=$(pwd)", Err("$(pwd)")),
            ("ZDOTDIR=~other/x", Err("~other/x")),
            ("ZDOTDIR=$NONE/x", Err("$NONE/x")),
            ("ZDOTDIR=${HOME%/*}", Err("${HOME%/*}")),
            ("OLD_ZDOTDIR=/a", Ok(None)),
        ];
        for (text, wanted) in table {
            let wanted = wanted.map(|value| value.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(assigned(text, &variable), wanted, "{text}");
        }
    }
}
