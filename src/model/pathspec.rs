//! The magic before the paths that a command of git names (gitglossary, "pathspec"). Pure.

/// The magic of one word, and the path behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathspecMagic<'w> {
    /// The path or the pattern.
    pub path: &'w str,
    /// True if it counts from the top of the work tree.
    pub is_from_top: bool,
    /// True if it spares paths that others name.
    pub is_excluding: bool,
    /// True if no letter of it is a sign of patterns.
    pub is_literal: bool,
    /// True if `*` stops before a `/`.
    pub is_glob: bool,
    /// True if small and capital letters are the same.
    pub folds_case: bool,
    /// True if it has further conditions, as on attributes: it names a part of what it seems to name.
    pub has_more: bool,
}

impl PathspecMagic<'_> {
    /// Reads a word; `None` for magic that git knows not, or that is not read here.
    pub fn of(word: &str) -> Option<PathspecMagic<'_>> {
        let Some(rest) = word.strip_prefix(':') else {
            return Some(PathspecMagic { path: word, ..PathspecMagic::default() });
        };
        let mut magic = PathspecMagic::default();
        if let Some(long) = rest.strip_prefix('(') {
            let (words, path) = long.split_once(')')?;
            magic.path = path;
            for word in words.split(',') {
                match word {
                    "" => {}
                    "top" => magic.is_from_top = true,
                    "exclude" => magic.is_excluding = true,
                    "literal" => magic.is_literal = true,
                    "glob" => magic.is_glob = true,
                    "icase" => magic.folds_case = true,
                    _ if word.starts_with("attr:") => magic.has_more = true,
                    _ => return None,
                }
            }
            return Some(magic);
        }
        // A lone `:` stands for no path at all.
        magic.is_from_top = rest.is_empty();
        let is_sign = |letter: char| letter.is_ascii_punctuation() && !"$()*+.?[\\^{|}".contains(letter);
        let mut path = rest;
        while let Some(letter) = path.chars().next().filter(|letter| *letter == '^' || is_sign(*letter)) {
            path = &path[1..];
            match letter {
                '/' => magic.is_from_top = true,
                '!' | '^' => magic.is_excluding = true,
                ':' => break,
                _ => return None,
            }
        }
        Some(PathspecMagic { path, ..magic })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_is_read_in_both_forms() {
        let shown = |word: &str| {
            PathspecMagic::of(word).map(|magic| {
                let marks = [
                    (magic.is_from_top, '/'),
                    (magic.is_excluding, '!'),
                    (magic.is_literal, '='),
                    (magic.is_glob, '*'),
                    (magic.folds_case, 'i'),
                    (magic.has_more, '+'),
                ];
                let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
                format!("{marks} {}", magic.path)
            })
        };
        for (word, expected) in [
            ("a", Some(" a")),
            (":", Some("/ ")),
            (":/", Some("/ ")),
            (":/a", Some("/ a")),
            (":!a", Some("! a")),
            (":^a", Some("! a")),
            (":/!a", Some("/! a")),
            (":!/a", Some("/! a")),
            (":!:/a", Some("! /a")),
            (":*.rs", Some(" *.rs")),
            (":.x", Some(" .x")),
            (":(top)a", Some("/ a")),
            (":(exclude)a", Some("! a")),
            (":(top,exclude,icase)a", Some("/!i a")),
            (":(glob)**/a", Some("* **/a")),
            (":(literal)*", Some("= *")),
            (":()a", Some(" a")),
            (":(attr:x)a", Some("+ a")),
            (":(new)a", None),
            (":(top", None),
            (":%a", None),
        ] {
            assert_eq!(shown(word).as_deref(), expected, "{word}");
        }
    }
}
