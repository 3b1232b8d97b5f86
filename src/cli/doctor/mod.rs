//! `piton doctor`: looks at each door from end to end, and says of what is wrong how to mend it. It mends nothing itself.

mod clients;
mod daemon;
mod ground;
mod settings;
mod store;
mod trial;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Context, Exit, print};
use crate::error::Result;
use crate::model::text::shell_word;

/// The checks, in the order in which they are made: what rests on what stands behind it.
const CHECKS: &[(&str, Check)] = &[
    ("ground", ground::check),
    ("store", store::check),
    ("settings", settings::check),
    ("daemon", daemon::check),
    ("clients", clients::check),
];

type Check = fn(&Surroundings<'_>, &mut Report);

/// What every check starts from.
struct Surroundings<'c> {
    context: &'c Context,
    /// The root of the workspace in question, if it is known where that is.
    root: Option<PathBuf>,
}

/// How one thing is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Well,
    /// Worth knowing, and nothing wrong.
    Note,
    Wrong(Mend),
}

/// What puts it right.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mend {
    /// One line for a shell.
    Command(String),
    /// What a person has to do.
    Step(String),
}

/// One thing that was looked at.
struct Row {
    check: &'static str,
    about: String,
    state: State,
    text: String,
}

/// All that was found.
#[derive(Default)]
struct Report {
    check: &'static str,
    rows: Vec<Row>,
    damaged: bool,
}

impl Report {
    fn row(&mut self, about: impl Into<String>, state: State, text: impl Into<String>) {
        self.rows.push(Row { check: self.check, about: about.into(), state, text: text.into() });
    }

    fn well(&mut self, about: impl Into<String>, text: impl Into<String>) {
        self.row(about, State::Well, text);
    }

    fn note(&mut self, about: impl Into<String>, text: impl Into<String>) {
        self.row(about, State::Note, text);
    }

    /// Wrong, and a command mends it.
    fn wrong(&mut self, about: impl Into<String>, text: impl Into<String>, command: impl Into<String>) {
        self.row(about, State::Wrong(Mend::Command(command.into())), text);
    }

    /// Wrong, and a person has to see to it.
    fn open(&mut self, about: impl Into<String>, text: impl Into<String>, step: impl Into<String>) {
        self.row(about, State::Wrong(Mend::Step(step.into())), text);
    }

    fn is_well(&self) -> bool {
        !self.rows.iter().any(|row| matches!(row.state, State::Wrong(_)))
    }
}

fn quoted_path(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}

pub fn doctor(context: &Context) -> Result<Exit> {
    let mut report = Report::default();
    let root = match context.root() {
        Ok(root) => Some(root),
        Err(error) => {
            report.check = "ground";
            let text = format!("{error}; what concerns a workspace was not looked at");
            report.open("workspace", text, "change into a project, or name one with --workspace");
            None
        }
    };
    let surroundings = Surroundings { context, root };
    for (name, check) in CHECKS {
        report.check = name;
        check(&surroundings, &mut report);
    }
    if context.json {
        print::json(&value(&report))?;
    } else {
        print::data(&text(&report))?;
    }
    Ok(match (report.is_well(), report.damaged) {
        (_, true) => Exit::Damaged,
        (true, false) => Exit::Done,
        (false, false) => Exit::Failed,
    })
}

fn value(report: &Report) -> Value {
    let row = |row: &Row| {
        let (state, mend) = match &row.state {
            State::Well => ("well", Value::Null),
            State::Note => ("note", Value::Null),
            State::Wrong(Mend::Command(command)) => ("wrong", json!({ "command": command })),
            State::Wrong(Mend::Step(step)) => ("wrong", json!({ "step": step })),
        };
        json!({ "check": row.check, "about": row.about, "state": state, "text": row.text, "mend": mend })
    };
    json!({ "well": report.is_well(), "build": crate::sys::process::build(),
        "rows": report.rows.iter().map(row).collect::<Vec<_>>() })
}

fn text(report: &Report) -> String {
    use crate::model::text::printable;
    let mut text = String::new();
    let width = report.rows.iter().map(|row| row.about.chars().count()).max().unwrap_or(0).min(30);
    for row in &report.rows {
        let (word, mend) = match &row.state {
            State::Well => ("well ", None),
            State::Note => ("note ", None),
            State::Wrong(Mend::Command(command)) => ("WRONG", Some(format!("mend it:  {}", printable(command)))),
            State::Wrong(Mend::Step(step)) => ("WRONG", Some(format!("to do:  {}", printable(step)))),
        };
        add_line!(text, "{word}  {:<width$}  {}", printable(&row.about), printable(&row.text));
        if let Some(mend) = mend {
            add_line!(text, "       {:<width$}  {}", "", print::bold(&mend));
        }
    }
    let wrong = report.rows.iter().filter(|row| matches!(row.state, State::Wrong(_))).count();
    let summary = match wrong {
        0 => "All is well.".to_owned(),
        _ => format!("{} to be mended.", crate::model::text::count(wrong as u64, "thing")),
    };
    add_line!(text, "\n{summary}");
    text
}
