//! Variables of which one value is not known.

use std::collections::{HashMap, HashSet};

use super::lex::{Token, TokenKind};
use super::words::WORDS;
use crate::classify::rules::dialect::CodeLanguage;

/// Returns the variables that are assigned several times, one of them where not every run comes by: what they hold is not known.
pub(super) fn unsure<'c>(tokens: &'c [Token<'c>], language: CodeLanguage) -> HashSet<&'c str> {
    let is_indented_language = matches!(language, CodeLanguage::Python | CodeLanguage::Ruby);
    let (mut counts, mut unsure): (HashMap<&str, usize>, HashSet<&str>) = (HashMap::new(), HashSet::new());
    let (mut depth, mut is_plain_line) = (0_usize, true);
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &tokens[before].kind);
        if matches!(before, None | Some(TokenKind::Line)) {
            let is_word = matches!(token.kind, TokenKind::Name(name) if WORDS.contains(&name) || ["for", "foreach"].contains(&name));
            let starts = at == 0 || tokens[at - 1].to == token.from;
            is_plain_line = !is_word && (starts || !is_indented_language);
            // A condition may stand in the line before.
            let behind = at.checked_sub(2).map(|behind| &tokens[behind].kind);
            is_plain_line &= match behind {
                Some(TokenKind::Sign(")")) => is_indented_language || !closes_condition(&tokens[..at - 1]),
                Some(TokenKind::Name("else")) => false,
                _ => true,
            };
        }
        match token.kind {
            TokenKind::Sign("{") => depth += 1,
            TokenKind::Sign("}") => depth = depth.saturating_sub(1),
            TokenKind::Name(name) => {
                let assigns = tokens.get(at + 1).is_some_and(|next| matches!(next.kind, TokenKind::Sign("=" | ":=")));
                if !assigns {
                    continue;
                }
                *counts.entry(name).or_default() += 1;
                let is_begun = match before {
                    None | Some(TokenKind::Line | TokenKind::Sign(";" | "}" | ",")) => true,
                    Some(TokenKind::Name(word)) => ["const", "let", "var", "my", "our", "local"].contains(word),
                    _ => false,
                };
                // `p = 'b' if c`.
                let line =
                    tokens[at..].iter().take_while(|next| !matches!(next.kind, TokenKind::Line | TokenKind::Sign(";")));
                let is_conditional = line
                    .take(64)
                    .any(|next| matches!(next.kind, TokenKind::Name("if" | "unless" | "while" | "until" | "for")));
                if depth > 0 || !is_begun || !is_plain_line || is_conditional {
                    unsure.insert(name);
                }
            }
            _ => {}
        }
    }
    unsure.retain(|name| counts.get(name).is_some_and(|count| *count > 1));
    unsure
}

/// Returns true for tokens that end with the bracket of a condition: `if (x)`.
fn closes_condition(tokens: &[Token<'_>]) -> bool {
    let mut open = 0_usize;
    for at in (0..tokens.len()).rev().take(400) {
        match tokens[at].kind {
            TokenKind::Sign(")") => open += 1,
            TokenKind::Sign("(") => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            let word = at.checked_sub(1).map(|before| &tokens[before].kind);
            return matches!(
                word,
                Some(TokenKind::Name("if" | "elsif" | "elseif" | "unless" | "while" | "until" | "for" | "foreach"))
            );
        }
    }
    true
}
