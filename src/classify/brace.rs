//! Brace expansion, `{a,b}`; within bounds, and only of what was written unquoted.

use super::expand::{Chunk, MAX_ALTERNATIVES};

/// Longest word in which braces are looked for, in atoms.
const MAX_ATOMS: usize = 1024;
const MAX_NESTING: usize = 8;

#[derive(Clone)]
enum Atom {
    Char(char),
    Fixed(Chunk),
}

/// Returns the words that one word's braces make, in order.
pub(super) fn expand(chunks: Vec<Chunk>) -> Vec<Vec<Chunk>> {
    let plain = |chunk: &Chunk| !chunk.quoted && !chunk.splits && chunk.known;
    if !chunks.iter().any(|chunk| plain(chunk) && chunk.text.contains('{')) {
        return vec![chunks];
    }
    let mut atoms = Vec::new();
    for chunk in &chunks {
        if plain(chunk) {
            atoms.extend(chunk.text.chars().map(Atom::Char));
        } else {
            atoms.push(Atom::Fixed(chunk.clone()));
        }
        if atoms.len() > MAX_ATOMS {
            return vec![chunks];
        }
    }
    alternatives(&atoms, 0).into_iter().map(|atoms| join(&atoms)).collect()
}

fn join(atoms: &[Atom]) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut open = false;
    for atom in atoms {
        match atom {
            Atom::Fixed(chunk) => {
                chunks.push(chunk.clone());
                open = false;
            }
            Atom::Char(letter) => {
                if !open {
                    chunks.push(Chunk::text("", false));
                }
                open = true;
                if let Some(last) = chunks.last_mut() {
                    last.text.push(*letter);
                }
            }
        }
    }
    chunks
}

fn alternatives(atoms: &[Atom], nesting: usize) -> Vec<Vec<Atom>> {
    let Some(group) = first_group(atoms).filter(|_| nesting < MAX_NESTING) else {
        return vec![atoms.to_vec()];
    };
    let suffixes = alternatives(&atoms[group.close + 1..], nesting + 1);
    let mut results = Vec::new();
    let mut start = group.open + 1;
    for end in group.commas.iter().copied().chain([group.close]) {
        for middle in alternatives(&atoms[start..end], nesting + 1) {
            for suffix in &suffixes {
                if results.len() < MAX_ALTERNATIVES {
                    results.push([&atoms[..group.open], &middle, suffix].concat());
                }
            }
        }
        start = end + 1;
    }
    results
}

struct Group {
    open: usize,
    close: usize,
    commas: Vec<usize>,
}

/// Returns the leftmost brace pair with a comma of its own.
fn first_group(atoms: &[Atom]) -> Option<Group> {
    let mut stack: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut best: Option<Group> = None;
    for (index, atom) in atoms.iter().enumerate() {
        let Atom::Char(letter) = atom else { continue };
        match letter {
            '{' => stack.push((index, Vec::new())),
            ',' => {
                if let Some((_, commas)) = stack.last_mut() {
                    commas.push(index);
                }
            }
            '}' => {
                if let Some((open, commas)) = stack.pop()
                    && !commas.is_empty()
                    && best.as_ref().is_none_or(|best| open < best.open)
                {
                    best = Some(Group { open, close: index, commas });
                }
            }
            _ => {}
        }
    }
    best
}
