//! The reserved root entry `.piton`: what tree objects cannot hold.
//!
//! ```text
//! .piton/info              extent, targets, caps, patterns from outside of the tree, usual permissions, files that never held still,
//!                          the repositories below the root
//! .piton/tree/meta         records of the root's entries
//! .piton/tree/d-src/meta   records of the entries of `src`
//! ```
//! The mirror is sharded, one small blob per directory and only where something deviates, so that one change rewrites
//! one shard. Both formats are lines of words; names are percent-encoded. Read back as untrusted input: unknown words
//! are refused, not guessed.

use super::coverage::{Coverage, Defaults, Extent, MOST_OF_POINTER, Pattern, SkipReason, Weight};
use super::id::ObjectId;
use super::manifest::{EntryKind, Manifest, ManifestEntry};
use super::name::{self, is_dot_git};
use super::path::RelPath;
use super::tree::{Mode, TreeEntry};
use super::weight::{self, Meter};
use crate::error::{Code, Error, Result};

use super::build::{MAX_DEPTH, ReadBlob, ReadTree};
use std::collections::BTreeMap;

const SHARD: &[u8] = b"meta";
const DIR_PREFIX: &[u8] = b"d-";
/// Behind a skip reason: the size is the least that there is.
const MORE: &str = "+";

/// Directories with records after which all of them are weighed: reading shared ones would take long before it took much memory.
const MANY: usize = 2000;

/// Bytes of memory that a record takes beside its names.
const A_RECORD: usize = 96;

/// A path below the checkpoint's root, as stored names, and the blob that stands there.
pub type StoredBlob = (Vec<Vec<u8>>, Vec<u8>);

/// Returns all blobs of `.piton`; empty when there is nothing to hold.
pub fn encode(manifest: &Manifest, coverage: &Coverage) -> Vec<StoredBlob> {
    let mut shards: BTreeMap<RelPath, Vec<String>> = BTreeMap::new();
    let mut add = |path: &RelPath, record: String| {
        let dir = path.parent().unwrap_or_default();
        shards.entry(dir).or_default().push(record);
    };
    for (path, entry) in manifest.iter() {
        if let Some(line) = mode_line(path.name(), entry, &coverage.defaults) {
            add(path, line);
        }
    }
    for (path, reason) in &coverage.skipped {
        add(path, skip_line(path.name(), *reason));
    }
    let mut blobs: Vec<StoredBlob> =
        shards.into_iter().map(|(dir, lines)| (shard_names(&dir), lines_of(&lines))).collect();
    blobs.extend(info(coverage).map(|content| (info_names(), content)));
    blobs
}

/// Returns the shard of one directory, from its entries and its skipped names, each in byte order; `None` when nothing
/// deviates.
pub fn shard<'a>(
    entries: impl Iterator<Item = (&'a [u8], ManifestEntry)>,
    skipped: impl Iterator<Item = (&'a [u8], SkipReason)>,
    defaults: &Defaults,
) -> Option<Vec<u8>> {
    let modes = entries.filter_map(|(name, entry)| mode_line(name, &entry, defaults));
    let lines: Vec<String> = modes.chain(skipped.map(|(name, reason)| skip_line(name, reason))).collect();
    (!lines.is_empty()).then(|| lines_of(&lines))
}

/// Returns what is said of the whole checkpoint; `None` when it is what every checkpoint has.
pub fn info(coverage: &Coverage) -> Option<Vec<u8>> {
    let lines = info_lines(coverage);
    (!lines.is_empty()).then(|| lines_of(&lines))
}

fn mode_line(name: &[u8], entry: &ManifestEntry, defaults: &Defaults) -> Option<String> {
    let deviates = entry.kind != EntryKind::Link && entry.perm != usual(entry, defaults);
    deviates.then(|| format!("mode {:04o} {}", entry.perm, quote(name)))
}

fn skip_line(name: &[u8], reason: SkipReason) -> String {
    let weight = reason.weight().unwrap_or_default();
    let more = if weight.is_least { MORE } else { "" };
    format!("skip {}{more} {} {}", reason.as_str(), weight.bytes, quote(name))
}

/// Returns where [`info`] stands.
pub fn info_names() -> Vec<Vec<u8>> {
    vec![name::RESERVED_ROOT.to_vec(), b"info".to_vec()]
}

/// Returns the permission bits an entry has when nothing is recorded.
fn usual(entry: &ManifestEntry, defaults: &Defaults) -> u16 {
    match entry.mode() {
        Mode::File => defaults.file,
        Mode::Executable => defaults.executable,
        Mode::Dir => defaults.dir,
        Mode::Link => 0o777,
    }
}

/// Returns where the [`shard`] of a directory stands.
pub fn shard_names(dir: &RelPath) -> Vec<Vec<u8>> {
    let mut names = vec![name::RESERVED_ROOT.to_vec(), b"tree".to_vec()];
    for (i, component) in dir.components().enumerate() {
        names.push([DIR_PREFIX, &name::to_stored(component, i == 0)].concat());
    }
    names.push(SHARD.to_vec());
    names
}

fn lines_of(lines: &[String]) -> Vec<u8> {
    let mut text = lines.join("\n");
    text.push('\n');
    text.into_bytes()
}

fn info_lines(coverage: &Coverage) -> Vec<String> {
    let standard = Coverage::default();
    let mut lines = Vec::new();
    if let Extent::Paths(paths) = &coverage.extent {
        lines.push("extent paths".to_owned());
        lines.extend(paths.iter().map(|path| format!("path {}", quote(path.as_bytes()))));
    }
    if coverage.file_cap != standard.file_cap {
        lines.push(format!("file-cap {}", coverage.file_cap));
    }
    if coverage.secrets {
        lines.push("secrets captured".to_owned());
    }
    for pattern in &coverage.excludes {
        lines.push(format!("exclude {} {}", quote(pattern.base.as_bytes()), quote(pattern.text.as_bytes())));
    }
    lines.extend(coverage.configured.iter().map(|text| format!("configured {}", quote(text.as_bytes()))));
    lines.extend(coverage.tracked.iter().map(|text| format!("tracked {}", quote(text.as_bytes()))));
    lines.extend(coverage.read_only.iter().map(|text| format!("read-only {}", quote(text.as_bytes()))));
    for (path, content) in &coverage.repositories {
        let content = if content.is_empty() { String::new() } else { format!(" {}", quote(content)) };
        lines.push(format!("repository {}{content}", quote(path.as_bytes())));
    }
    lines.extend(coverage.targeted.iter().map(|path| format!("targeted {}", quote(path.as_bytes()))));
    lines.extend(coverage.changed.iter().map(|(path, time)| format!("changed {time} {}", quote(path.as_bytes()))));
    lines.extend(coverage.unstable.iter().map(|path| format!("unstable {}", quote(path.as_bytes()))));
    if coverage.defaults != standard.defaults {
        let Defaults { file, executable, dir } = coverage.defaults;
        lines.push(format!("defaults {file:04o} {executable:04o} {dir:04o}"));
    }
    lines
}

/// Reads `.piton` back, applying recorded permissions to `manifest`.
///
/// # Errors
/// `store-damaged` for records piton would not have written; `too-large` for more of them than `memory`.
pub fn load(
    own: &TreeEntry,
    manifest: &mut Manifest,
    memory: u64,
    (read_tree, read_blob): (ReadTree<'_>, ReadBlob<'_>),
) -> Result<Coverage> {
    let mut coverage = Coverage::default();
    if own.mode != Mode::Dir {
        return Err(damaged("is not a directory"));
    }
    let entries = read_tree(&own.id)?;
    if let Some(info) = entries.iter().find(|entry| entry.name == b"info") {
        decode_info(&read_blob(&info.id)?, &mut coverage)?;
    }
    apply_defaults(manifest, &coverage.defaults);
    if let Some(tree) = entries.iter().find(|entry| entry.name == b"tree" && entry.mode == Mode::Dir) {
        load_shards(tree.id, manifest, &mut coverage, memory, (read_tree, read_blob))?;
    }
    Ok(coverage)
}

fn apply_defaults(manifest: &mut Manifest, defaults: &Defaults) {
    if *defaults == Defaults::STANDARD {
        return;
    }
    let changed: Vec<_> = manifest.iter().map(|(path, entry)| (path.clone(), *entry)).collect();
    for (path, mut entry) in changed {
        entry.perm = usual(&entry, defaults);
        manifest.insert(path, entry);
    }
}

fn load_shards(
    root: ObjectId,
    manifest: &mut Manifest,
    coverage: &mut Coverage,
    memory: u64,
    (read_tree, read_blob): (ReadTree<'_>, ReadBlob<'_>),
) -> Result<()> {
    // Shards may be shared as trees are: each is counted as often as it is read.
    let mut meter = Meter::new(memory);
    let mut visited = 0;
    let mut pending = vec![(RelPath::root(), root, 0usize)];
    while let Some((dir, id, depth)) = pending.pop() {
        if depth > MAX_DEPTH {
            return Err(weight::too_deep(&root));
        }
        visited += 1;
        if visited == MANY {
            weight::check(&root, memory, read_tree)?;
        }
        for entry in read_tree(&id)? {
            if entry.name == SHARD {
                let shard = read_blob(&entry.id)?;
                meter.take(shard.len(), &root, memory)?;
                decode_shard(&dir, &shard, manifest, coverage, &mut |length| meter.take(length, &root, memory))?;
            } else if let Some(stored) = entry.name.strip_prefix(DIR_PREFIX).filter(|stored| !stored.is_empty()) {
                let child = name::from_stored(stored, dir.is_root());
                meter.take(A_RECORD + dir.as_bytes().len(), &root, memory)?;
                pending.push((dir.join(checked_name(&child)?), entry.id, depth + 1));
            } else {
                return Err(damaged("has an entry with an unknown name"));
            }
        }
    }
    Ok(())
}

fn decode_shard(
    dir: &RelPath,
    bytes: &[u8],
    manifest: &mut Manifest,
    coverage: &mut Coverage,
    count: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<()> {
    for line in text(bytes)?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["mode", perm, name] => {
                let perm = octal(perm)?;
                let path = dir.join(checked_name(&unquote(name)?)?);
                if let Some(entry) = manifest.get(&path).copied().filter(|entry| entry.kind != EntryKind::Link) {
                    manifest.insert(path, ManifestEntry { perm, ..entry });
                }
            }
            ["skip", word, size, name] => {
                let bytes = size.parse().map_err(|_| damaged("has a bad size"))?;
                let weight = Weight { bytes, is_least: word.ends_with(MORE) };
                let reason = SkipReason::parse(word.trim_end_matches(MORE), weight)
                    .ok_or_else(|| damaged("has an unknown skip reason"))?;
                count(A_RECORD + dir.as_bytes().len())?;
                coverage.skipped.insert(dir.join(checked_name(&unquote(name)?)?), reason);
            }
            _ => return Err(damaged("has an unknown record")),
        }
    }
    Ok(())
}

fn decode_info(bytes: &[u8], coverage: &mut Coverage) -> Result<()> {
    for line in text(bytes)?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["extent", "paths"] => coverage.extent = Extent::Paths(Vec::new()),
            ["path", path] => match &mut coverage.extent {
                Extent::Paths(paths) => paths.push(quoted_path(path)?),
                Extent::Tree => return Err(damaged("has a path without an extent")),
            },
            ["file-cap", cap] => coverage.file_cap = cap.parse().map_err(|_| damaged("has a bad limit"))?,
            ["secrets", "captured"] => coverage.secrets = true,
            ["exclude", base, pattern] => {
                coverage.excludes.push(Pattern { base: quoted_path(base)?, text: quoted_text(pattern)? });
            }
            ["configured", pattern] => coverage.configured.push(quoted_text(pattern)?),
            ["tracked", pattern] => coverage.tracked.push(quoted_text(pattern)?),
            ["read-only", pattern] => coverage.read_only.push(quoted_text(pattern)?),
            ["repository", path] => _ = coverage.repositories.insert(git_path(path)?, Vec::new()),
            ["repository", path, content] => {
                let content = unquote(content)?;
                let is_pointer = content.starts_with(b"gitdir:") && content.len() <= MOST_OF_POINTER;
                let content = is_pointer.then_some(content).ok_or_else(|| damaged("has an impossible `.git` file"))?;
                coverage.repositories.insert(git_path(path)?, content);
            }
            ["targeted", path] => coverage.targeted.push(quoted_path(path)?),
            ["changed", time, path] => {
                let time = time.parse().map_err(|_| damaged("has a bad time"))?;
                coverage.changed.insert(quoted_path(path)?, time);
            }
            ["unstable", path] => coverage.unstable.push(quoted_path(path)?),
            ["defaults", file, executable, dir] => {
                coverage.defaults = Defaults { file: octal(file)?, executable: octal(executable)?, dir: octal(dir)? };
            }
            _ => return Err(damaged("has an unknown line in `info`")),
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| damaged("is not UTF-8"))
}

fn octal(word: &str) -> Result<u16> {
    u16::from_str_radix(word, 8).ok().filter(|perm| *perm <= 0o7777).ok_or_else(|| damaged("has bad permission bits"))
}

fn checked_name(name: &[u8]) -> Result<&[u8]> {
    let bad = name.is_empty() || name.contains(&b'/') || name.contains(&0) || name == b"." || name == b"..";
    if bad { Err(damaged("has an impossible name")) } else { Ok(name) }
}

/// Reads the path of the `.git` of a repository below the root, which is in no other `.git`.
fn git_path(word: &str) -> Result<RelPath> {
    let path = quoted_path(word)?;
    let is_inner = path.components().filter(|name| is_dot_git(name)).count() == 1;
    let is_git = path.name() == b".git" && path.parent().is_some_and(|dir| !dir.is_root()) && is_inner;
    if is_git { Ok(path) } else { Err(damaged("has an impossible repository")) }
}

fn quoted_path(word: &str) -> Result<RelPath> {
    RelPath::parse(&unquote(word)?).map_err(|_| damaged("has an impossible path"))
}

fn quoted_text(word: &str) -> Result<String> {
    String::from_utf8(unquote(word)?).map_err(|_| damaged("has a pattern that is not UTF-8"))
}

/// Percent-encodes everything but plain characters; the empty text becomes `%`.
pub fn quote(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "%".to_owned();
    }
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'!'..=b'$' | b'&'..=b'~' => out.push(*byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Returns the inverse of [`quote`].
///
/// # Errors
/// `store-damaged` for text [`quote`] would not have made.
pub fn unquote(word: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(word.len());
    let mut bytes = word.bytes();
    if word == "%" {
        return Ok(out);
    }
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| (byte as char).to_digit(16));
        let (Some(high), Some(low)) = (digit(bytes.next()), digit(bytes.next())) else {
            return Err(damaged("has a badly quoted name"));
        };
        out.push((high << 4 | low) as u8);
    }
    Ok(out)
}

fn damaged(what: &str) -> Error {
    Error::new(Code::StoreDamaged, format!("a checkpoint's `.piton` record {what}"))
}
