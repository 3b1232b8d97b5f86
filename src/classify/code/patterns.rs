//! Calls that patterns find in code, where the reader knows none.

use super::found::{CodeCall, Directory, Known};
use crate::classify::rules::RuleSet;
use crate::classify::rules::dialect::CodeLanguage;
use crate::model::effect::Class;

/// Longest string that stays readable when code is blanked: long enough for the mode of `open`.
const SHORT: usize = 6;

/// Languages of which the reader knows nothing: the first string behind a call is its argument.
const UNREAD: [CodeLanguage; 4] = [CodeLanguage::Awk, CodeLanguage::Powershell, CodeLanguage::Lisp, CodeLanguage::Vim];

/// Adds the calls that patterns find and that are not `known` already; `within` is true for code within an application.
pub(super) fn find(
    rules: &RuleSet,
    language: CodeLanguage,
    code: &str,
    (known, within): (&Known, bool),
    found: &mut Vec<CodeCall>,
) {
    let blanked = blank(code, language);
    for call in rules.calls(language).filter(|call| within || !call.within) {
        let Some(pattern) = call.pattern.as_ref().and_then(|pattern| pattern.get()) else { continue };
        for hit in pattern.find_iter(blanked.as_bytes()).take(16) {
            // An import is known with its calls.
            let is_import =
                blanked[hit.start()..].trim_start().starts_with(['f', 'i']) && known.classes.contains(&call.class);
            let is_inside = |(from, to): &(usize, usize)| {
                (*from..*to).contains(&hit.start()) || (hit.start()..hit.end()).contains(from)
            };
            // Code that nobody sees is worse than the call that runs it.
            let is_unseen = matches!(call.class, Some(Class::ExecRemote | Class::ExecOpaque));
            let is_known = !is_unseen && !call.within && known.places.iter().any(is_inside);
            if known.is_no_code(hit.start(), hit.end()) || is_import || is_known {
                continue;
            }
            let from = hit.end().saturating_sub(1);
            let argument = match call.class {
                None => command_at(code, from).or_else(|| command_at(code, hit.start())),
                Some(Class::ExecOpaque) => None,
                Some(Class::Database) => string_at(code, from).or_else(|| string_at(code, hit.start())),
                Some(_) if UNREAD.contains(&language) => string_at(code, from).or_else(|| string_at(code, hit.start())),
                Some(_) => None,
            };
            let is_query = call.class == Some(Class::Database) && !call.no_query;
            if is_query && !argument.as_deref().is_some_and(crate::classify::sql::changes) {
                continue;
            }
            found.push(CodeCall { class: call.class, severity: call.severity, argument, dir: Directory::First });
        }
    }
}

/// Returns the command line a call is given: one string, a list of strings, or a program and a list.
fn command_at(code: &str, from: usize) -> Option<String> {
    let rest = code.get(from..)?.trim_start_matches(['(', ' ', '\n']);
    let first = string_at(rest, 0)?;
    let after =
        rest.find(first.as_str()).map_or("", |at| rest[at + first.len()..].trim_start_matches(['\'', '"', '`', ' ']));
    let list = match after.strip_prefix(',').map(str::trim_start) {
        _ if rest.starts_with('[') => after,
        Some(list) if list.starts_with('[') => list,
        _ => return Some(first),
    };
    let mut line = first;
    for (index, word) in list[..list.find(']').unwrap_or(list.len())].split(['\'', '"', '`']).enumerate() {
        if index % 2 == 1 {
            line.push_str(" '");
            line.push_str(word);
            line.push('\'');
        }
    }
    Some(line)
}

/// Returns the string that begins at or shortly after a place.
fn string_at(code: &str, from: usize) -> Option<String> {
    let rest = code.get(from..)?;
    let opening = rest.find(['\'', '"', '`', ')', ';', '\n'])?;
    let quote = rest[opening..].chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
    let inside = &rest[opening + 1..];
    let end = inside.find(quote)?;
    let text = inside[..end].trim_start_matches(['>', '<', '+', ' ']);
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the code with comments and the inside of long strings blanked; every other byte stays in its place.
fn blank(code: &str, language: CodeLanguage) -> String {
    let bytes = code.as_bytes();
    let mut blanked = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (end, keep) = match bytes[at] {
            b';' if language == CodeLanguage::Lisp => (line_end(bytes, at), 0),
            // Quotes begin forms in Lisp, and comments in Vim.
            b'\'' if language == CodeLanguage::Lisp => {
                at += 1;
                continue;
            }
            b'#' if hash_comments(language) && starts_comment(bytes, at) => (line_end(bytes, at), 0),
            b'/' if bytes.get(at + 1) == Some(&b'/')
                && language == CodeLanguage::Javascript
                && starts_comment(bytes, at) =>
            {
                (line_end(bytes, at), 0)
            }
            quote @ (b'\'' | b'"') => string_end(bytes, at, quote),
            b'`' if language == CodeLanguage::Javascript => string_end(bytes, at, b'`'),
            _ => {
                at += 1;
                continue;
            }
        };
        let from = if keep > 0 { at + keep } else { at };
        for byte in blanked.iter_mut().take(end.saturating_sub(usize::from(keep > 0))).skip(from) {
            *byte = b' ';
        }
        at = end.max(at + 1);
    }
    String::from_utf8(blanked).unwrap_or_else(|_| code.to_owned())
}

fn hash_comments(language: CodeLanguage) -> bool {
    !matches!(language, CodeLanguage::Javascript | CodeLanguage::Lisp | CodeLanguage::Vim)
}

fn starts_comment(bytes: &[u8], at: usize) -> bool {
    at == 0 || bytes[at - 1].is_ascii_whitespace() || bytes[at - 1] == b';'
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// Returns where a string ends (after its quote), and how many bytes from its start stay readable.
fn string_end(bytes: &[u8], at: usize, quote: u8) -> (usize, usize) {
    let triple = bytes[at..].starts_with(&[quote, quote, quote]);
    let mut end = at + if triple { 3 } else { 1 };
    while end < bytes.len() {
        if bytes[end] == b'\\' {
            end += 2;
            continue;
        }
        if bytes[end] == quote && (!triple || bytes[end..].starts_with(&[quote, quote, quote])) {
            end += if triple { 3 } else { 1 };
            break;
        }
        if bytes[end] == b'\n' && !triple && quote != b'`' {
            break;
        }
        end += 1;
    }
    let end = end.min(bytes.len());
    let length = end.saturating_sub(at + 2);
    let mode = matches!(bytes.get(at + 1), Some(b'>' | b'+' | b'|'));
    let keep = if length <= SHORT {
        end - at
    } else if mode {
        3
    } else {
        1
    };
    (end, keep)
}
