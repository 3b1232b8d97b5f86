//! Paths and patterns on a command line. A word that is the path of something is that path, whatever characters are in it; any other
//! word with `*`, `?`, `[` or `{` is a pattern.

use std::path::{Path, PathBuf};

use super::context::Context;
use super::named::{is_known, unknown_path};
use crate::checkpoint::{Checkpoint, Timeline, Workspace};
use crate::error::{Code, Error, Result};
use crate::filter::{PathLimits, PathPatterns};
use crate::model::path::RelPath;
use crate::model::text::printable;

/// The characters that make a pattern of a word.
const PATTERN: [char; 4] = ['*', '?', '[', '{'];

/// The paths and limits that a command line names.
pub(super) struct TypedPaths {
    /// Paths by name.
    pub paths: Vec<RelPath>,
    /// Patterns, and what they except.
    pub limits: PathLimits,
}

/// Returns true for a word that is a pattern where it is not the path of something.
pub(super) fn is_pattern(word: &str) -> bool {
    word.contains(PATTERN)
}

/// Reads the words of paths, and those of `--except`. Paths exist on the disk or in one of `checkpoints`.
///
/// # Errors
/// `bad-path` for a path or pattern that lies outside of the workspace; `bad-request` for what is not a pattern; `no-such-path` for an
/// excepted path that exists nowhere; `store-damaged`.
pub(super) fn read(
    context: &Context,
    timeline: &Timeline,
    typed: &[PathBuf],
    except: &[PathBuf],
    checkpoints: &[Checkpoint],
) -> Result<TypedPaths> {
    let named = split(context, timeline, typed, checkpoints)?;
    let excepted = split(context, timeline, except, checkpoints)?;
    for path in &excepted.paths {
        if path.is_root() {
            let text = "`--except` matches the whole workspace, so there is nothing left to do";
            return Err(Error::new(Code::BadRequest, text).field("except"));
        }
        if !is_known(timeline, path, checkpoints)? {
            return Err(unknown_path(path, "the path in `--except` exists neither here nor in the checkpoint"));
        }
    }
    let limits = PathLimits {
        patterns: PathPatterns::new(named.patterns)?,
        except_paths: excepted.paths,
        except: PathPatterns::new(excepted.patterns)?,
    };
    Ok(TypedPaths { paths: named.paths, limits })
}

/// Words, apart by their kind.
struct SplitWords {
    paths: Vec<RelPath>,
    /// Relative to the workspace's root.
    patterns: Vec<String>,
}

fn split(context: &Context, timeline: &Timeline, words: &[PathBuf], checkpoints: &[Checkpoint]) -> Result<SplitWords> {
    let workspace = timeline.workspace();
    let mut found = SplitWords { paths: Vec::new(), patterns: Vec::new() };
    for word in words {
        let path = context.path(workspace, word);
        let text = word.to_str().filter(|text| is_pattern(text));
        match (text, path) {
            (Some(text), path) => {
                let existing = match path {
                    Ok(path) if is_known(timeline, &path, checkpoints)? => Some(path),
                    // A pattern may lead out of the workspace, which is reported in its own words.
                    Ok(_) | Err(_) => None,
                };
                match existing {
                    Some(path) => found.paths.push(path),
                    None => found.patterns.push(anchored(context, workspace, text)?),
                }
            }
            (None, path) => found.paths.push(path?),
        }
    }
    Ok(found)
}

/// Returns a pattern relative to the workspace's root. One without a slash matches in all directories below the working directory.
///
/// # Errors
/// `bad-path` for an absolute pattern, and for one that leaves the workspace; `bad-request` outside every workspace.
fn anchored(context: &Context, workspace: &Workspace, text: &str) -> Result<String> {
    if context.is_outside() {
        let message = "patterns do not work for files outside every workspace; give each path";
        return Err(Error::new(Code::BadRequest, message).hint("to find the paths, run `piton find --outside PATTERN`"));
    }
    let here = context.path(workspace, Path::new("."))?;
    let here = std::str::from_utf8(here.as_bytes()).map_err(|_| {
        Error::new(Code::BadPath, "the path of the working directory is not UTF-8, so patterns do not work there")
            .hint("run the command in another directory of the workspace")
    })?;
    joined(here, text).map_err(|why| {
        Error::new(Code::BadPath, format!("the pattern `{}` {why}", printable(text)))
            .hint("write it relative to the working directory, for example 'src/**/*.rs'")
    })
}

/// Joins a pattern to a directory, or says why that is not possible.
fn joined(here: &str, text: &str) -> Result<String, &'static str> {
    if text.starts_with('/') {
        return Err("is absolute");
    }
    let mut parts: Vec<String> = here.split('/').filter(|part| !part.is_empty()).map(globset::escape).collect();
    // The parts that `..` can take away: names, not patterns.
    let mut names = parts.len();
    if !text.contains('/') {
        parts.push("**".to_owned());
    }
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if names == parts.len() && names > 0 => {
                parts.pop();
                names -= 1;
            }
            ".." => return Err("leaves the workspace"),
            part => {
                names += usize::from(names == parts.len() && !is_pattern(part));
                parts.push(part.to_owned());
            }
        }
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_count_from_the_working_directory() {
        for (here, text, expected) in [
            ("", "src/**/*.rs", Ok("src/**/*.rs")),
            ("", "*.rs", Ok("**/*.rs")),
            ("sub", "*.rs", Ok("sub/**/*.rs")),
            ("a[1]/b", "./x/*.rs", Ok("a[[]1[]]/b/x/*.rs")),
            ("sub/deep", "../../src/*", Ok("src/*")),
            ("sub", "x/../*.rs", Ok("sub/*.rs")),
            ("", "a//b*/", Ok("a/b*")),
            ("", "../*.rs", Err("leaves the workspace")),
            ("sub", "../../*.rs", Err("leaves the workspace")),
            ("sub", "*/../x", Err("leaves the workspace")),
            ("", "/etc/*", Err("is absolute")),
        ] {
            assert_eq!(joined(here, text).as_deref(), expected.as_ref().map(|text| *text), "{here} {text}");
        }
    }
}
