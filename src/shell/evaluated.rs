//! The line that an agent client has a shell run by `eval`, behind set-up commands of its own: `source FILE && … && eval 'LINE' && …`.

/// The characters that end a word outside of quotes.
const ENDS: &[char] = &[' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>'];

/// Returns the first argument of the last `eval` of a command, without its quotes. `None` if there is none, or if the shell would
/// expand something in it.
pub fn evaluated_line(command: &str) -> Option<String> {
    let (mut rest, mut found, mut is_next) = (command, None, false);
    while let Some(start) = rest.find(|c| !ENDS.contains(&c)) {
        // An operator between the two is no argument.
        let is_argument = std::mem::take(&mut is_next) && rest[..start].chars().all(char::is_whitespace);
        let word = read_word(&rest[start..]);
        if is_argument {
            found = word.text.filter(|_| word.is_whole);
        } else if rest[start..].starts_with("eval") && word.length == "eval".len() {
            is_next = true;
        }
        rest = &rest[start + word.length..];
    }
    found
}

/// A word of a command line.
struct ShellWord {
    /// The text without quotes; `None` if the shell would expand something in it.
    text: Option<String>,
    /// The number of bytes that it takes, with its quotes.
    length: usize,
    /// True if each quote is closed.
    is_whole: bool,
}

/// Reads the word at the beginning of a text.
fn read_word(source: &str) -> ShellWord {
    let (mut text, mut is_plain, mut quote) = (String::new(), true, None);
    let mut chars = source.char_indices();
    let mut length = source.len();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (None, c) if ENDS.contains(&c) => {
                length = at;
                break;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => match chars.next() {
                Some((_, '\n')) | None => {}
                Some((_, c)) if quote.is_none() || matches!(c, '"' | '\\' | '$' | '`') => text.push(c),
                Some((_, c)) => text.extend(['\\', c]),
            },
            (None | Some('"'), '$' | '`') => is_plain = false,
            (_, c) => text.push(c),
        }
    }
    ShellWord { text: is_plain.then_some(text), length, is_whole: quote.is_none() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found_behind_a_clients_own_commands() {
        let before = "source /s/snapshot.sh 2>/dev/null || true && export A='eval b'\neval \"$(tool)\"\n: && \\builtin shopt -u extglob \
                      2>/dev/null || true && ";
        let after = " < /dev/null && pwd -P >| /tmp/claude-1-cwd";
        for (quoted, line) in [
            ("'rm mine.txt'", "rm mine.txt"),
            (r#"'echo '"'"'a b'"'"' "c" $HOME # it'"'"'s'"#, r#"echo 'a b' "c" $HOME # it's"#),
            (r#""echo \"a\" \$HOME \n""#, r#"echo "a" $HOME \n"#),
            (r"rm\ a", "rm a"),
            ("'eval '\"'\"'rm a'\"'\"", "eval 'rm a'"),
            ("'one\ntwo'", "one\ntwo"),
            ("ls", "ls"),
        ] {
            assert_eq!(evaluated_line(&format!("{before}eval {quoted}{after}")).as_deref(), Some(line), "{quoted}");
        }
    }

    #[test]
    fn without_a_plain_line_there_is_none() {
        for command in
            ["", "ls", "eval", "eval; ls", "eval && 'a'", "eval \"$x\"", "eval 'a", "xeval a", "'eval' b", "eval `a`"]
        {
            assert_eq!(evaluated_line(command), None, "{command}");
        }
    }
}
