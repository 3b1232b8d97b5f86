//! Requests of a person to piton from inside a session: `/rollback`, `/undo`.

/// Begins the part of a custom command's text that is for a model, in case the hook did not answer it.
pub const NOTE: &str = "(piton answers this command";

/// A question that is answered without a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `/rollback`: which checkpoints there are.
    List,
    /// `/rollback N`, `/rollback N FILE…`.
    To {
        /// The selector as it was typed.
        checkpoint: String,
        /// The file to bring back, without its quotes; `None` means the whole tree.
        file: Option<String>,
        /// The same words as several files.
        files: Vec<String>,
    },
    /// `/rollback diff N`.
    Diff {
        /// The selector as it was typed.
        checkpoint: String,
    },
    /// `/undo`, `/rollback undo`.
    Undo,
    /// `/redo`, `/rollback redo`.
    Redo,
    /// `/turns`, `/rollback turns`.
    Turns,
}

impl Ask {
    /// Reads a prompt: the line that was typed, or what a client made of it with the text of the custom command. Any other
    /// prompt is the model's, also one that only begins like a command.
    pub fn parse(prompt: &str) -> Option<Ask> {
        let prompt = prompt.trim();
        // `opencode run` puts what it was given in several words in quotes.
        let quoted = prompt.strip_prefix("\"/").and_then(|inner| inner.strip_suffix('"'));
        let prompt = if quoted.is_some_and(|inner| !inner.contains('"')) { prompt.trim_matches('"') } else { prompt };
        let (line, rest) = prompt.split_once('\n').unwrap_or((prompt, ""));
        if !rest.trim().is_empty() && !rest.trim_start().starts_with(NOTE) {
            return None;
        }
        let (name, arguments) = split(line.trim());
        match (name, arguments) {
            ("/undo", "") => Some(Ask::Undo),
            ("/redo", "") => Some(Ask::Redo),
            ("/turns", "") => Some(Ask::Turns),
            ("/rollback", arguments) => Some(Ask::rollback(arguments)),
            _ => None,
        }
    }

    fn rollback(arguments: &str) -> Ask {
        match split(arguments) {
            ("", _) => Ask::List,
            ("undo", "") => Ask::Undo,
            ("redo", "") => Ask::Redo,
            ("turns", "") => Ask::Turns,
            ("diff", checkpoint) if !checkpoint.is_empty() => Ask::Diff { checkpoint: checkpoint.to_owned() },
            (checkpoint, text) => {
                let quoted = |mark| text.strip_prefix(mark).and_then(|text: &str| text.strip_suffix(mark));
                let file = quoted('"').or(quoted('\'')).unwrap_or(text);
                let file = (!file.is_empty()).then(|| file.to_owned());
                Ask::To { checkpoint: checkpoint.to_owned(), file, files: words(text) }
            }
        }
    }
}

/// Returns words between spaces, some of them in quotes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), text.trim());
    while let Some(first) = rest.chars().next() {
        let inner = rest.get(1..).filter(|_| first == '"' || first == '\'');
        // A quote that nothing closes is a character of the name.
        let (word, after) = match inner.and_then(|inner| inner.split_once(first)) {
            Some((word, after)) => (word, after.trim_start()),
            None => split(rest),
        };
        words.push(word.to_owned());
        rest = after;
    }
    words
}

/// Returns the first word and what follows it.
fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts() {
        let to = |checkpoint: &str, file: Option<&str>| {
            let files = match file {
                None => Vec::new(),
                Some("src/a b.rs") => vec!["src/a".to_owned(), "b.rs".to_owned()],
                Some("a 'b c' d") => vec!["a".to_owned(), "b c".to_owned(), "d".to_owned()],
                Some(file) => vec![file.to_owned()],
            };
            Some(Ask::To { checkpoint: checkpoint.into(), file: file.map(Into::into), files })
        };
        let table = [
            ("/rollback", Some(Ask::List)),
            (" /rollback \n", Some(Ask::List)),
            ("/rollback 12", to("12", None)),
            ("/rollback 12 src/a b.rs", to("12", Some("src/a b.rs"))),
            ("/rollback 12 a 'b c' d", to("12", Some("a 'b c' d"))),
            ("/rollback 12 'a b'", to("12", Some("a b"))),
            ("/rollback redo", Some(Ask::Redo)),
            ("/redo", Some(Ask::Redo)),
            ("/rollback turns", Some(Ask::Turns)),
            ("/rollback 12 '", to("12", Some("'"))),
            ("/rollback diff 12", Some(Ask::Diff { checkpoint: "12".into() })),
            ("/rollback diff", to("diff", None)),
            ("/rollback undo", Some(Ask::Undo)),
            ("/undo", Some(Ask::Undo)),
            ("\"/rollback undo\"", Some(Ask::Undo)),
            ("\"/rollback\" is a word", None),
            ("\"/rollback\" or \"/undo\"", None),
            ("\"say /rollback\"", None),
            ("/undo everything you did", None),
            ("/rollback 3\n\n(piton answers this command itself.)", to("3", None)),
            ("/rollback 3\nand then run the tests", None),
            ("please /rollback 3", None),
            ("/rollbacks", None),
            ("clean the build dir", None),
            ("", None),
        ];
        for (prompt, expected) in table {
            assert_eq!(Ask::parse(prompt), expected, "{prompt:?}");
        }
    }
}
