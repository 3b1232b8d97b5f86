//! `piton bench`: what a checkpoint costs on this very tree, beside plain git, both sides in one run.
//!
//! The tree is only read: what a checkpoint would hold of it is copied aside, and there files are edited and all sides
//! measured after the same edits, in an order that turns. Three sides: the four git processes that make a commit of a
//! work tree, `piton checkpoint` as a process of its own, and a running sidecar, whose answer an agent waits for.

mod sides;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use serde_json::Value;

use self::sides::{Git, Process, Running};
use self::table::{Row, Table};
use super::context::Context;
use super::exit::Exit;
use super::print;
use super::scratch::Scratch;
use crate::error::{Code, Error, IoContext, Result};

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Rounds of each step
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = at_least_one)]
    pub reps: usize,
    /// How many files to change, a step each
    #[arg(long, value_delimiter = ',', default_value = "1,10,1000", value_name = "N,…")]
    pub changes: Vec<usize>,
    /// Where the copy is made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Edits are the same in every run.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

pub fn bench(context: &Context, args: &BenchArgs) -> Result<Exit> {
    let source = context.root()?.canonicalize().at("resolving", &context.root()?)?;
    sides::require_git()?;
    let above = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = Scratch::create(&above, "piton-bench", "tree", false)?;
    print::say(&format!(
        "Copying what a checkpoint holds of {} to {}; the original is only read.",
        source.display(),
        scratch.workspace().display()
    ));
    let left_out = copy(&scratch, &source)?;
    let files = listing(&scratch.workspace())?;
    if files.is_empty() {
        return Err(Error::new(Code::BadRequest, "there is no file to be edited").path(&source));
    }
    let mut table = Table::new(&files, left_out, args.reps)?;
    measure(&scratch, &files, args, &mut table)?;
    if context.json {
        print::json(&table.to_json())?;
    } else {
        print::data(&table.to_text())?;
    }
    Ok(Exit::Done)
}

/// Copies the tree by taking a checkpoint and writing it elsewhere; gives the number of paths that were left out.
fn copy(scratch: &Scratch, source: &Path) -> Result<u64> {
    let home = scratch.dir().join("copying");
    let piton = |args: &[&str]| -> Result<Value> {
        let mut command = scratch.command_in(scratch.dir(), args)?;
        let output = command.env("PITON_HOME", &home).arg("-w").arg(source).output().at("running", "piton")?;
        if output.status.success() {
            return Ok(serde_json::from_slice(&output.stdout).unwrap_or_default());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Error::new(Code::Internal, format!("the tree could not be copied: {}", said.trim())).path(source))
    };
    let taken = piton(&["checkpoint", "--json"])?;
    let id = taken["checkpoint"]["id"].as_str().unwrap_or_default().to_owned();
    let to = scratch.workspace();
    piton(&["restore", &id, "--yes", "--to", &to.to_string_lossy()])?;
    std::fs::remove_dir_all(&home).at("removing", &home)?;
    Ok(taken["checkpoint"]["skipped"]["total"].as_u64().unwrap_or(0))
}

/// Regular files, sorted.
fn listing(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut pending) = (Vec::new(), vec![root.to_owned()]);
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).at("listing", &dir)? {
            let entry = entry.at("listing", &dir)?;
            let kind = entry.file_type().at("looking at", entry.path())?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn measure(scratch: &Scratch, files: &[PathBuf], args: &BenchArgs, table: &mut Table) -> Result<()> {
    let mut git = Git::create(scratch)?;
    let process = Process::new(scratch);
    let mut row = Row::new("first checkpoint");
    row.git.push(git.take()?);
    row.process.push(process.take("taken")?);
    table.rows.push(row);
    let mut running = Running::start(scratch)?;
    for count in args.changes.iter().filter(|count| **count > files.len()) {
        print::say(&format!("{count} files cannot be changed, there are only {}: that step is left out.", files.len()));
    }
    let mut counts = vec![0];
    counts.extend(args.changes.iter().copied().filter(|count| *count > 0 && *count <= files.len()));
    let mut held = Row::new("a later action of the turn");
    let mut dice = SEED;
    for count in counts {
        let mut row = match count {
            0 => Row::new("nothing changed"),
            1 => Row::new("1 file changed"),
            _ => Row::new(&format!("{count} files changed")),
        };
        let expected = if count == 0 { "unchanged" } else { "taken" };
        for rep in 0..args.reps {
            print::say(&format!("{}: {} of {}", row.step, rep + 1, args.reps));
            running.begin_turn()?;
            edit(files, count, &mut dice)?;
            for side in 0..3 {
                match (side + rep) % 3 {
                    0 => row.git.push(git.take()?),
                    1 => row.process.push(process.take(expected)?),
                    _ => {
                        row.sidecar.push(running.before(expected)?);
                        held.sidecar.push(running.before("held")?);
                    }
                }
            }
        }
        table.rows.push(row);
    }
    table.rows.push(held);
    running.finish()
}

/// Inserts a line near the middle of some files: each round others, but the same ones in every run.
fn edit(files: &[PathBuf], count: usize, dice: &mut u64) -> Result<()> {
    let mut chosen = std::collections::BTreeSet::new();
    while chosen.len() < count {
        // xorshift64, by Marsaglia.
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        chosen.insert((*dice % files.len() as u64) as usize);
    }
    for at in chosen {
        let file = &files[at];
        let content = std::fs::read(file).at("reading", file)?;
        let half = content.len() / 2;
        let line = content[half..].iter().position(|byte| *byte == b'\n').map_or(content.len(), |end| half + end + 1);
        let edited = [&content[..line], format!("edit {dice}\n").as_bytes(), &content[line..]].concat();
        std::fs::write(file, edited).at("writing", file)?;
    }
    Ok(())
}

/// Runs a process; gives the milliseconds it took, and what it said.
fn timed(command: &mut Command) -> Result<(f64, std::process::Output)> {
    let started = std::time::Instant::now();
    let output = command.output().at("running", "a measured process")?;
    Ok((started.elapsed().as_secs_f64() * 1000.0, output))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a number from 1 on".to_owned()),
        Ok(number) => Ok(number),
    }
}
