//! Finds the specs of a document that are about a program: a hash table that `build.rs` makes for the embedded document.

use std::collections::BTreeMap;

use super::dialect::Document;
use super::text::{List, Text};

/// A list of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Quiet,
    Beginnings,
    Grammars,
    Wrappers,
    Remotes,
    Databases,
    Interpreters,
    Rules,
}

/// A spec: its list, and its place there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpecEntry {
    pub section: Section,
    pub item: u16,
}

/// A program and what is said of it, each list in its order.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub text: Text,
    pub entries: List<SpecEntry>,
}

/// The beginning of programs' names, from a rule for `name*`.
#[derive(Clone, Debug)]
pub(crate) struct Prefix {
    pub text: Text,
    pub item: u16,
}

/// All names of a document.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub names: List<Name>,
    pub prefixes: List<Prefix>,
    /// For the hash of a name, where it is in `names`, plus one; 0 is a free slot. A power of two, never full.
    pub slots: List<u16>,
}

impl Index {
    /// Reads the names of a document's specs.
    pub(crate) fn new(document: &Document) -> Index {
        let mut names: BTreeMap<String, Vec<SpecEntry>> = BTreeMap::new();
        let mut prefixes = Vec::new();
        let mut add = |section: Section, item: usize, programs: &str| {
            let item = u16::try_from(item).unwrap_or(u16::MAX);
            for program in programs.split_whitespace().map(str::to_ascii_lowercase) {
                match program.strip_suffix('*') {
                    Some(prefix) if section == Section::Rules => {
                        prefixes.push(Prefix { text: prefix.to_owned().into(), item });
                    }
                    _ => names.entry(program).or_default().push(SpecEntry { section, item }),
                }
            }
        };
        add(Section::Quiet, 0, &document.quiet);
        add(Section::Beginnings, 0, &document.beginnings);
        document.programs.iter().enumerate().for_each(|(item, spec)| add(Section::Grammars, item, &spec.program));
        document.wrappers.iter().enumerate().for_each(|(item, spec)| add(Section::Wrappers, item, &spec.program));
        document.remotes.iter().enumerate().for_each(|(item, spec)| add(Section::Remotes, item, &spec.program));
        document.databases.iter().enumerate().for_each(|(item, spec)| add(Section::Databases, item, &spec.program));
        document.interpreters.iter().enumerate().for_each(|(item, spec)| {
            add(Section::Interpreters, item, &spec.program);
        });
        document.rules.iter().enumerate().for_each(|(item, spec)| add(Section::Rules, item, &spec.value.program));
        let names = names.into_iter().map(|(text, entries)| Name { text: text.into(), entries: entries.into() });
        let names: Vec<Name> = names.take(usize::from(u16::MAX) / 2).collect();
        let slots = slots(&names);
        Index { names: names.into(), prefixes: prefixes.into(), slots: slots.into() }
    }

    /// Returns what is said of a program.
    pub(crate) fn find(&self, program: &str) -> &[SpecEntry] {
        let mut slot = hash(program);
        while !self.slots.is_empty() {
            match self.slots[slot & (self.slots.len() - 1)] {
                0 => break,
                at => {
                    let name = &self.names[usize::from(at) - 1];
                    if *name.text == *program {
                        return &name.entries;
                    }
                }
            }
            slot += 1;
        }
        &[]
    }

    /// Returns the rules for programs that begin like this one.
    pub(crate) fn prefixed(&self, program: &str) -> impl Iterator<Item = u16> {
        self.prefixes.iter().filter(|prefix| program.starts_with(&*prefix.text)).map(|prefix| prefix.item)
    }
}

/// Twice as many slots as names: a search ends at the first free one.
fn slots(names: &[Name]) -> Vec<u16> {
    let mut slots = vec![0; (names.len() * 2 + 1).next_power_of_two()];
    let last = slots.len() - 1;
    for (at, name) in names.iter().enumerate() {
        let mut slot = hash(&name.text);
        while slots[slot & last] != 0 {
            slot += 1;
        }
        slots[slot & last] = u16::try_from(at + 1).unwrap_or(u16::MAX);
    }
    slots
}

/// FNV-1a. Names of users' rules may collide at will: there are few of them, and they are the user's own.
fn hash(text: &str) -> usize {
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 15)) as usize
}
