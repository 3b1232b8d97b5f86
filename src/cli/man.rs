//! `piton man`: the manual pages, for those who package piton.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;

use super::exit::Exit;
use super::help;
use super::page;
use super::print;
use crate::error::{IoContext, Result};
use crate::sys::clock::{now_ms, rfc3339};

/// The length of a date without its time.
const DAY: usize = "2026-11-30".len();

/// The arguments of `piton man`.
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// The directory to write the pages to
    #[arg(value_name = "DIR", required_unless_present = "page")]
    pub dir: Option<PathBuf>,
    /// Print one page that describes all commands (docs/CLI.md)
    #[arg(long, conflicts_with = "dir")]
    pub page: bool,
}

/// Writes `piton.1` and one page for each verb in view.
///
/// # Errors
/// When the directory cannot be made or written.
pub(super) fn man(args: &ManArgs) -> Result<Exit> {
    let mut command = help::command().disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        print::data(&page::page(&command))?;
        return Ok(Exit::Done);
    };
    std::fs::create_dir_all(dir).at("making", dir)?;
    let date = rfc3339(now_ms());
    write_pages(&command, &date[..DAY], dir)?;
    print::data(&format!("Wrote the manual pages to {}.\n", print::path(dir)))?;
    Ok(Exit::Done)
}

/// Writes the page of a command and those of the commands below it.
fn write_pages(command: &Command, date: &str, dir: &Path) -> Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, date, dir)?;
    }
    let page = Man::new(command.clone()).date(date).source("piton").manual("piton manual");
    let file = dir.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text).at("rendering", &file)?;
    std::fs::write(&file, without_idle_breaks(&String::from_utf8_lossy(&text))).at("writing", &file)
}

/// Removes line breaks next to an empty line, which have no effect and are warned of by `mandoc -T lint`.
fn without_idle_breaks(page: &str) -> String {
    let lines: Vec<&str> = page.lines().collect();
    let is_empty = |at: Option<usize>| at.and_then(|at| lines.get(at)).is_some_and(|line| line.is_empty());
    let is_idle = |at: usize| lines[at] == ".br" && (is_empty(at.checked_sub(1)) || is_empty(Some(at + 1)));
    (0..lines.len()).filter(|at| !is_idle(*at)).map(|at| format!("{}\n", lines[at])).collect()
}
