//! What was measured, as a table.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::{IoContext, Result};

/// One step, with the milliseconds of each side.
pub struct Row {
    pub step: String,
    pub git: Vec<f64>,
    pub process: Vec<f64>,
    pub sidecar: Vec<f64>,
}

impl Row {
    pub fn new(step: &str) -> Row {
        Row { step: step.to_owned(), git: Vec::new(), process: Vec::new(), sidecar: Vec::new() }
    }
}

/// All of it.
pub struct Table {
    pub rows: Vec<Row>,
    files: usize,
    bytes: u64,
    left_out: u64,
    reps: usize,
    cores: usize,
}

impl Table {
    /// An empty one for a tree.
    ///
    /// # Errors
    /// When a file of it cannot be looked at.
    pub fn new(files: &[PathBuf], left_out: u64, reps: usize) -> Result<Table> {
        let mut bytes = 0;
        for file in files {
            bytes += file.metadata().at("looking at", file)?.len();
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Table { rows: Vec::new(), files: files.len(), bytes, left_out, reps, cores })
    }

    pub fn to_json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(|row| {
            json!({ "step": row.step, "git_ms": median(&row.git), "process_ms": median(&row.process), "sidecar_ms": median(&row.sidecar) })
        }).collect();
        json!({ "files": self.files, "bytes": self.bytes, "left_out": self.left_out, "reps": self.reps, "cores": self.cores, "rows": rows })
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        add_line!(
            text,
            "{} files, {:.1} MB, {} cores; milliseconds, medians of {}",
            self.files,
            self.bytes as f64 / 1e6,
            self.cores,
            self.reps
        );
        if self.left_out > 0 {
            add_line!(text, "({} paths that a checkpoint leaves out were not copied)", self.left_out);
        }
        add_line!(text, "\n{:26} {:>10} {:>18} {:>18}", "", "git", "piton checkpoint", "piton sidecar");
        for row in &self.rows {
            let git = median(&row.git);
            add_line!(
                text,
                "{:26} {:>10} {:>18} {:>18}",
                row.step,
                git.map_or("-".to_owned(), |ms| format!("{ms:.2}")),
                beside(median(&row.process), git),
                beside(median(&row.sidecar), git)
            );
        }
        add_line!(
            text,
            "\nIn brackets: how many times faster than git. `piton checkpoint` is a process that looks at the whole tree; the sidecar is\n\
             what an agent's action waits for. piton's checkpoints survive a power cut when they are answered; git's do not."
        );
        text
    }
}

fn beside(ms: Option<f64>, git: Option<f64>) -> String {
    match (ms, git) {
        (None, _) => "-".to_owned(),
        (Some(ms), None) => format!("{ms:.2}"),
        (Some(ms), Some(git)) => format!("{ms:.2} ({:.1}x)", git / ms),
    }
}

/// The median of some figures; `None` when there are none.
fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0]), Some(5.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn a_side_is_told_beside_git() {
        assert_eq!(beside(Some(2.0), Some(5.0)), "2.00 (2.5x)");
        assert_eq!(beside(Some(0.125), None), "0.12");
        assert_eq!(beside(None, Some(5.0)), "-");
    }
}
