//! Texts of inline code: escapes, and the places where a language fills values in.

use crate::classify::rules::dialect::CodeLanguage;

/// The pieces of a text: what stands there, and values that the language fills in.
pub(super) type Pieces = Vec<Piece>;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Plain(String),
    /// The value of a variable, by its name as the code has it (`$x`); `None` for anything else.
    Filled(Option<String>),
}

/// Returns a text without holes.
pub(super) fn plain(text: impl Into<String>) -> Pieces {
    vec![Piece::Plain(text.into())]
}

/// Returns the character that closes what another one opens.
pub(super) fn closer(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '<' => '>',
        other => other,
    }
}

/// Returns where a text that `open` has begun ends; brackets inside are counted.
pub(super) fn closed(inside: &str, open: char) -> usize {
    let close = closer(open);
    let (mut depth, mut skips) = (0_usize, false);
    for (at, one) in inside.char_indices() {
        match one {
            _ if std::mem::take(&mut skips) => {}
            '\\' => skips = true,
            _ if one == close && depth == 0 => return at,
            _ if one == close => depth -= 1,
            _ if one == open => depth += 1,
            _ => {}
        }
    }
    inside.len()
}

/// Returns the pieces of a text into which the language fills values; escapes are decoded.
pub(super) fn filled(body: &str, language: CodeLanguage) -> Pieces {
    let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(one) = body[at..].chars().next() {
        if one == '\\' {
            at += 1 + body[at + 1..].chars().next().map_or(0, char::len_utf8);
            continue;
        }
        let rest = &body[at..];
        let hole = match language {
            CodeLanguage::Python if rest.starts_with("{{") || rest.starts_with("}}") => {
                pieces.push(Piece::Plain(unescaped(&body[start..=at])));
                at += 2;
                start = at;
                continue;
            }
            CodeLanguage::Python => bracketed(rest, "{"),
            CodeLanguage::Javascript => bracketed(rest, "${"),
            CodeLanguage::Ruby => bracketed(rest, "#{"),
            CodeLanguage::Php => bracketed(rest, "{$")
                .map(|(name, to)| (name.map(|name| format!("${name}")), to))
                .or_else(|| sigil(rest)),
            _ => sigil(rest),
        };
        match hole {
            Some((name, length)) => {
                if start < at {
                    pieces.push(Piece::Plain(unescaped(&body[start..at])));
                }
                pieces.push(Piece::Filled(name));
                at += length;
                start = at;
            }
            None => at += one.len_utf8(),
        }
    }
    if start < body.len() || pieces.is_empty() {
        pieces.push(Piece::Plain(unescaped(&body[start..])));
    }
    pieces
}

/// Reads `{name}` with what opens it: the name, if it is no more than that, and the length.
fn bracketed(rest: &str, open: &str) -> Option<(Option<String>, usize)> {
    let inside = rest.strip_prefix(open)?;
    let end = closed(inside, '{');
    let name = inside[..end].trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    Some((is_name.then(|| name.to_owned()), (open.len() + end + 1).min(rest.len())))
}

/// Reads `$name`, `${name}` or `@name`: the name with its sigil, if nothing belongs to it, and the length.
fn sigil(rest: &str) -> Option<(Option<String>, usize)> {
    let sign = rest.chars().next().filter(|sign| matches!(sign, '$' | '@'))?;
    let behind = &rest[1..];
    if behind.starts_with('{') {
        let (name, length) = bracketed(behind, "{")?;
        return Some((name.map(|name| format!("{sign}{name}")), length + 1));
    }
    let length = behind.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(behind.len());
    if length == 0 || behind.starts_with(|c: char| c.is_ascii_digit()) {
        // `$$`, `$1` and their likes; a sign alone is itself.
        return behind
            .starts_with(['$', '&', '!', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
            .then_some((None, 2));
    }
    let is_more = behind[length..].starts_with(['[', '{'])
        || behind[length..].starts_with("->")
        || behind[length..].starts_with("::");
    let name = (sign == '$' && !is_more).then(|| format!("${}", &behind[..length]));
    Some((name, 1 + length))
}

/// Returns a text with its escapes resolved.
pub(super) fn unescaped(body: &str) -> String {
    if !body.contains('\\') {
        return body.to_owned();
    }
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let Some(one) = behind.chars().next() else { return out };
        let coded = match one {
            'x' => code(&behind[1..], 2),
            'u' => code(&behind[1..], 4),
            _ => None,
        };
        if let Some((decoded, length)) = coded {
            out.push(decoded);
            rest = &behind[1 + length..];
            continue;
        }
        match one {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            '0' => out.push('\0'),
            '\n' => {}
            other => out.push(other),
        }
        rest = &behind[one.len_utf8()..];
    }
    out.push_str(rest);
    out
}

/// Reads the code of a character in so many hex digits, or in braces.
fn code(rest: &str, digits: usize) -> Option<(char, usize)> {
    let (hex, length) = match rest.strip_prefix('{') {
        Some(inside) => inside.find('}').map(|end| (&inside[..end], end + 2))?,
        None => (rest.get(..digits)?, digits),
    };
    Some((char::from_u32(u32::from_str_radix(hex, 16).ok()?)?, length))
}
