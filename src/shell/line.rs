//! The line in a startup file by which a shell asks piton: found, put in, taken out. Bytes in, bytes out.
//!
//! piton adds its line at the end, where other tools have set `PATH` and prompts already. The form of the added text tells what was
//! there before, so that taking it out gives back the very bytes. Only a line that stands alone, as piton writes it, is taken out or
//! renewed: a line in another form is its author's.

use super::HookedShell;

/// The comment behind a line that was put after a last line without an end.
const JOINED: &str = " # the line above had no end before";

/// The comment behind a line in a file with line ends of two bytes. Without it, the shell would take the first byte for an argument.
const APART: &str = " #";

/// A line that asks piton.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupLine {
    /// Its number in the file, from 1.
    pub number: usize,
    /// The program that it calls, as it is spelled there without quotes.
    pub program: String,
    /// True if it stands alone, as piton writes it, so that it can be taken out.
    pub is_own: bool,
}

/// Returns the line of a shell. `program` is quoted for it.
pub fn setup_line(shell: HookedShell, program: &str) -> String {
    match shell {
        HookedShell::Bash | HookedShell::Zsh => format!("eval \"$({program} init {})\"", shell.name()),
        HookedShell::Fish => format!("{program} init fish | source"),
    }
}

/// Returns the lines that ask piton in a startup file of a shell, in any form.
pub fn setup_lines(shell: HookedShell, text: &[u8]) -> Vec<SetupLine> {
    let mut found = Vec::new();
    let mut before = "";
    for (number, line) in lines(text).enumerate() {
        let Ok(line) = std::str::from_utf8(line) else {
            before = "";
            continue;
        };
        if let Some(program) = called(shell, line) {
            let is_own = own_program(shell, line).is_some() && !goes_on(before);
            found.push(SetupLine { number: number + 1, program, is_own });
        }
        if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            before = line;
        }
    }
    found
}

/// Returns the file's text with the line: as it is if some line asks piton already. One of piton's own that calls a program for which
/// `is_gone` is true is renewed.
pub fn with_line(shell: HookedShell, program: &str, text: &[u8], is_gone: &dyn Fn(&str) -> bool) -> Vec<u8> {
    let there = setup_lines(shell, text);
    if there.is_empty() {
        return appended(shell, program, text);
    }
    let is_stale = |number: usize| there.iter().any(|one| one.number == number && one.is_own && is_gone(&one.program));
    let renewed = |(at, line): (usize, &[u8])| -> Vec<u8> {
        let (body, end) = line.split_at(body_length(line));
        match std::str::from_utf8(body).ok().filter(|_| is_stale(at + 1)).and_then(|body| own_program(shell, body)) {
            // Its comment tells what was there before.
            Some((_, comment)) => [setup_line(shell, program).as_bytes(), comment.as_bytes(), end].concat(),
            None => line.to_vec(),
        }
    };
    lines_with_ends(text).enumerate().flat_map(renewed).collect()
}

/// Returns the file's text without piton's own lines.
pub fn without_line(shell: HookedShell, text: &[u8]) -> Vec<u8> {
    let own: Vec<usize> = setup_lines(shell, text).iter().filter(|line| line.is_own).map(|line| line.number).collect();
    let mut left: Vec<u8> = Vec::with_capacity(text.len());
    // The length of the line end that was added in front of the line.
    let mut added = 0;
    for (at, line) in lines_with_ends(text).enumerate() {
        if own.contains(&(at + 1)) {
            let is_joined = line[..body_length(line)].ends_with(JOINED.as_bytes());
            added = if is_joined { end_length(line) } else { 0 };
        } else {
            // Text behind it needs the end of the line above.
            added = 0;
            left.extend(line);
        }
    }
    left.truncate(left.len().saturating_sub(added));
    left
}

fn appended(shell: HookedShell, program: &str, text: &[u8]) -> Vec<u8> {
    let last_end = text.iter().rposition(|byte| *byte == b'\n').map(|at| end_length(&text[..=at]));
    let newline = if last_end == Some(2) { "\r\n" } else { "\n" };
    let is_joined = !text.is_empty() && !text.ends_with(b"\n");
    let (before, comment) = match (is_joined, newline) {
        (true, _) => (newline, JOINED),
        (false, "\r\n") => ("", APART),
        (false, _) => ("", ""),
    };
    [text, before.as_bytes(), setup_line(shell, program).as_bytes(), comment.as_bytes(), newline.as_bytes()].concat()
}

fn lines_with_ends(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines_with_ends(text).map(|line| &line[..body_length(line)])
}

fn body_length(line: &[u8]) -> usize {
    line.len() - end_length(line)
}

/// Returns the length of the line end at the end of a text.
fn end_length(text: &[u8]) -> usize {
    match text {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n'] => 1,
        _ => 0,
    }
}

/// Returns the program of a line that is as piton writes it, as it is spelled with quotes, and the comment behind it.
fn own_program(shell: HookedShell, line: &str) -> Option<(&str, &str)> {
    let comment = [JOINED, APART].into_iter().find(|comment| line.ends_with(comment)).unwrap_or_default();
    let body = line.strip_suffix(comment)?;
    let name = shell.name();
    let program = match shell {
        HookedShell::Bash | HookedShell::Zsh => {
            body.strip_prefix("eval \"$(")?.strip_suffix(&format!(" init {name})\""))?
        }
        HookedShell::Fish => body.strip_suffix(" init fish | source")?,
    };
    // Exactly one word, which nothing expands.
    let is_plain = !program.contains(['$', '`', '"']) && words(program).len() == 1;
    is_plain.then_some((program, comment))
}

/// Returns true if a line cannot end where the next one is missing: taking that one out would break the file.
fn goes_on(line: &str) -> bool {
    let line = line.trim_end();
    let last = line.rsplit([' ', '\t', ';']).next().unwrap_or_default();
    line.ends_with(['\\', '{', '(', '|', '&']) || matches!(last, "then" | "do" | "else" | "!")
}

/// Returns the program by which a line asks piton, without its quotes; `None` for every other line.
fn called(shell: HookedShell, line: &str) -> Option<String> {
    let words = words(line);
    let asks = |three: &&[Option<String>]| {
        let [Some(program), Some(verb), Some(name)] = three else { return false };
        let file = program.rsplit('/').next().unwrap_or_default();
        // A name that the shell works out is its own.
        file.starts_with("piton") && verb == "init" && (name == shell.name() || name.starts_with('$'))
    };
    words.windows(3).find(asks).and_then(|three| three[0].clone())
}

/// Returns the words of a line, without quotes, up to a comment; `None` where one command ends and another begins.
fn words(line: &str) -> Vec<Option<String>> {
    let mut found: Vec<Option<String>> = Vec::new();
    let mut word: Option<String> = None;
    // For each open `$(`, whether a double quote is open in it.
    let mut quoted = vec![false];
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_quoted = quoted.last().copied().unwrap_or_default();
        match letter {
            '\'' if !is_quoted => {
                let inner: String = letters.by_ref().take_while(|letter| *letter != '\'').collect();
                word.get_or_insert_default().push_str(&inner);
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            '"' => {
                if let Some(open) = quoted.last_mut() {
                    *open = !*open;
                }
            }
            '$' if letters.peek() == Some(&'(') => {
                letters.next();
                // Its output is a word, or a part of one.
                word.get_or_insert_default().push('$');
                found.extend([word.take().map(Some), Some(None)].into_iter().flatten());
                quoted.push(false);
            }
            ')' if !is_quoted => {
                found.extend([word.take().map(Some), Some(None)].into_iter().flatten());
                if quoted.len() > 1 {
                    quoted.pop();
                }
            }
            '#' if !is_quoted && word.is_none() => break,
            ' ' | '\t' if !is_quoted => found.extend(word.take().map(Some)),
            ';' | '|' | '&' | '<' | '>' | '(' | '`' if !is_quoted => {
                found.extend([word.take().map(Some), Some(None)].into_iter().flatten());
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    found.extend(word.map(Some));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: &dyn Fn(&str) -> bool = &|_| false;

    #[test]
    fn the_very_bytes_come_back() {
        let texts: [&[u8]; 14] = [
            b"",
            b"\n",
            b"alias a=b\n",
            b"alias a=b",
            b"a\r\nb\r\n",
            b"a\r\nb",
            b"a\r",
            b"a\nb\r\n",
            b"a\r\nb\n",
            b"\xff\xfe caf\xe9\n",
            b"caf\xe9",
            b"if true; then\n  x\nfi\n\n\n",
            b"# eval \"$(piton init bash)\"\n",
            b"\xef\xbb\xbfa\n",
        ];
        for shell in HookedShell::ALL {
            for program in ["piton", "'/opt/it'\\''s here/piton'"] {
                for text in texts {
                    let with = with_line(shell, program, text, NOWHERE);
                    let shown = String::from_utf8_lossy(&with).into_owned();
                    assert!(with.len() > text.len() && with.starts_with(text), "{shown}");
                    assert!(shown.contains(&setup_line(shell, program)) && shown.ends_with('\n'), "{shown}");
                    assert_eq!(with_line(shell, program, &with, NOWHERE), with, "twice is once");
                    assert_eq!(without_line(shell, &with), text, "{shown}");
                    assert_eq!(without_line(shell, text), text, "{shown}");
                    // Text that another tool adds afterwards stays, and so does its line above.
                    let later = [&with[..], b"export B=c\n"].concat();
                    let ended = if text.is_empty() || text.ends_with(b"\n") { 0 } else { end_length(&with) };
                    let left = without_line(shell, &later);
                    assert_eq!(left.len(), text.len() + ended + 11, "{shown}");
                    assert!(left.starts_with(text) && left.ends_with(b"\nexport B=c\n") || text.is_empty(), "{shown}");
                }
            }
        }
    }

    #[test]
    fn a_line_in_another_form_is_recognised_and_left() {
        let table: [(HookedShell, &str, &str); 17] = [
            (HookedShell::Bash, "command -v piton >/dev/null && eval \"$(piton init bash)\"", "piton"),
            (HookedShell::Bash, "  eval \"$(piton init bash)\"", "piton"),
            (HookedShell::Bash, "eval \"$(piton init bash)\" # mine", "piton"),
            (HookedShell::Bash, "source <(piton init bash)", "piton"),
            (HookedShell::Bash, ". <(command piton init bash)", "piton"),
            (HookedShell::Bash, "eval `piton init bash`", "piton"),
            (HookedShell::Bash, "eval \"$($HOME/.cargo/bin/piton init bash)\"", "$HOME/.cargo/bin/piton"),
            (HookedShell::Bash, "eval \"$(\"/a b/piton\" init bash)\"", "/a b/piton"),
            (HookedShell::Bash, "eval \"$(piton init \"$(basename \"$SHELL\")\")\"", "piton"),
            (HookedShell::Bash, "eval \"$(piton init ${SHELL##*/})\"", "piton"),
            (HookedShell::Bash, "if hash piton; then eval \"$('/a b/piton' init bash)\"; fi", "/a b/piton"),
            (HookedShell::Zsh, "(( $+commands[piton] )) && eval \"$(piton init zsh)\"", "piton"),
            (HookedShell::Zsh, "_evalcache piton init zsh", "piton"),
            (HookedShell::Zsh, "eval \"$(~/bin/piton init 'zsh')\"", "~/bin/piton"),
            (HookedShell::Fish, "type -q piton; and piton init fish | source", "piton"),
            (HookedShell::Fish, "source (piton init fish | psub)", "piton"),
            (HookedShell::Fish, "eval (piton init fish)", "piton"),
        ];
        for (shell, line, program) in table {
            for text in [format!("{line}\n"), format!("a\n{line}"), format!("{line}\r\n")] {
                let found = setup_lines(shell, text.as_bytes());
                assert!(found.len() == 1 && found[0].program == program && !found[0].is_own, "{text}: {found:?}");
                assert_eq!(with_line(shell, "piton", text.as_bytes(), &|_| true), text.as_bytes(), "{text}");
                assert_eq!(without_line(shell, text.as_bytes()), text.as_bytes());
            }
        }
    }

    #[test]
    fn other_lines_are_not_taken_for_it() {
        for line in [
            "# eval \"$(piton init bash)\"",
            "x=1 # piton init bash",
            "eval \"$(piton init zsh)\"",
            "echo piton; init bash",
            "piton checkpoint init",
            "eval \"$(starship init bash)\"",
            "piton init",
            "alias p='piton init bash'",
        ] {
            assert!(setup_lines(HookedShell::Bash, line.as_bytes()).is_empty(), "{line}");
        }
    }

    #[test]
    fn a_line_that_a_block_needs_is_left() {
        let line = "eval \"$(piton init bash)\"\n";
        for before in ["if true; then\n", "if x\nthen\n\n# why\n", "x &&\n", "x || \\\n", "f() {\n", "while x; do\n"] {
            let text = format!("{before}{line}fi\n");
            assert!(!setup_lines(HookedShell::Bash, text.as_bytes())[0].is_own, "{text}");
        }
        let text = format!("if x; then\n  y\nfi\n{line}{line}z\n");
        assert_eq!(without_line(HookedShell::Bash, text.as_bytes()), b"if x; then\n  y\nfi\nz\n");
    }

    #[test]
    fn a_line_that_calls_a_lost_program_is_renewed() {
        let old = "a\neval \"$('/old place/piton' init zsh)\" # the line above had no end before\nb\n";
        let is_gone = |program: &str| program == "/old place/piton";
        let new = with_line(HookedShell::Zsh, "piton", old.as_bytes(), &is_gone);
        assert_eq!(new, old.replace("'/old place/piton'", "piton").as_bytes());
        assert_eq!(with_line(HookedShell::Zsh, "piton", &new, &is_gone), new);
        assert_eq!(without_line(HookedShell::Zsh, &new), b"a\nb\n");
    }
}
