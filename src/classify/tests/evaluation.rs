use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use crate::classify::{Classifier, Context};
use crate::model::effect::Verdict;
use crate::model::policy::Policy;

#[derive(Deserialize)]
pub(super) struct Line {
    pub(super) cmd: String,
    pub(super) effects: Vec<String>,
    pub(super) act: String,
}

#[derive(Default)]
pub(super) struct Counts {
    hit: f64,
    missed: f64,
    wrong: f64,
}

impl Counts {
    fn add(&mut self, wanted: bool, given: bool) {
        match (wanted, given) {
            (true, true) => self.hit += 1.0,
            (true, false) => self.missed += 1.0,
            (false, true) => self.wrong += 1.0,
            (false, false) => {}
        }
    }

    pub(super) fn precision(&self) -> f64 {
        self.hit / (self.hit + self.wrong).max(1.0)
    }

    pub(super) fn recall(&self) -> f64 {
        self.hit / (self.hit + self.missed).max(1.0)
    }
}

pub(crate) fn context() -> Context {
    Context {
        cwd: PathBuf::from("/home/dev/proj"),
        workspace: PathBuf::from("/home/dev/proj"),
        aliases: Vec::new(),
        links: Vec::new(),
        tops: Vec::new(),
        files: Vec::new(),
        existing: Vec::new(),
        checkouts: Vec::new(),
        home: Some(PathBuf::from("/home/dev")),
        temp_dirs: vec![PathBuf::from("/tmp"), PathBuf::from("/var/tmp")],
        piton: vec![PathBuf::from("/home/dev/.local/share/piton"), PathBuf::from("/home/dev/.config/piton")],
    }
}

pub(crate) fn policy() -> Policy {
    use crate::model::policy::{Guard, Ignored, Limits, OnFailure, Opaque, Retention, Secrets};
    Policy {
        guard: Guard::Turn,
        on_failure: OnFailure::Proceed,
        opaque: Opaque::Checkpoint,
        watching: crate::model::policy::Watching::None,
        git_answers: crate::model::policy::GitAnswers::All,
        durability: crate::model::policy::Durability::Power,
        backup: crate::model::policy::Backup::Skip,
        deadline: std::time::Duration::from_secs(3),
        secrets: Secrets::OnTarget,
        records_prompts: true,
        exclude: Vec::new(),
        tracked_files: Vec::new(),
        tracked_override: false,
        read_only: Vec::new(),
        limits: Limits {
            file_bytes: 1 << 20,
            files: 1000,
            line_bytes: 1 << 23,
            memory: 192_000_000,
            git_copy: 0,
            told_tokens: 0,
            ignored: Ignored::NONE,
        },
        retention: Retention {
            enabled: true,
            auto_per_run: 50,
            per_workspace: 500,
            labelled: 500,
            days: None,
            runs_days: None,
            total_bytes: 1 << 30,
            orphans: None,
            interval_hours: 24,
        },
        rules_yaml: String::new(),
        collision: crate::model::effect::Stance::Warn,
        classes: Vec::new(),
        sources: Vec::new(),
    }
}

#[derive(Default)]
pub(super) struct Report {
    pub(super) checkpoint: Counts,
    pub(super) warn: Counts,
    classes: BTreeMap<String, Counts>,
}

fn measure(data: &str) -> Report {
    let classifier = Classifier::embedded();
    let mut report = Report::default();
    for text in data.lines().filter(|line| !line.trim().is_empty()) {
        let line: Line = serde_json::from_str(text).expect("a labelled line");
        let verdict = classifier.shell(&line.cmd, &context(), &policy());
        count(&line, &verdict, &mut report);
    }
    report
}

pub(super) fn count(line: &Line, verdict: &Verdict, report: &mut Report) {
    let negative = line.act == "none";
    let (saves, warns) =
        (matches!(line.act.as_str(), "checkpoint" | "both"), matches!(line.act.as_str(), "warn" | "both"));
    if saves || negative {
        report.checkpoint.add(saves, verdict.needs.checkpoint());
    }
    if warns || negative {
        report.warn.add(warns, verdict.needs.warn());
    }
    let given: BTreeSet<&str> = verdict.effects.iter().map(|effect| effect.class.as_str()).collect();
    let wanted: BTreeSet<&str> = line.effects.iter().map(String::as_str).collect();
    for class in given.union(&wanted) {
        let counts = report.classes.entry((*class).to_owned()).or_default();
        counts.add(wanted.contains(class), given.contains(class));
    }
    let agrees = saves == verdict.needs.checkpoint() && warns == verdict.needs.warn();
    if !agrees || given != wanted {
        println!(
            "{} {:?}\n    wanted {} {:?}, given {:?} {:?}",
            if agrees { "classes" } else { "ACT" },
            line.cmd,
            line.act,
            wanted,
            verdict.needs,
            given
        );
    }
}

pub(super) fn print(title: &str, report: &Report) -> Counts {
    let mut all = Counts::default();
    println!("{title}\n{:16} {:>5} {:>5} {:>5}  {:>6} {:>6}", "view", "hit", "miss", "wrong", "P", "R");
    let line = |name: &str, counts: &Counts| {
        let Counts { hit, missed, wrong } = counts;
        println!("{name:16} {hit:5} {missed:5} {wrong:5}  {:6.3} {:6.3}", counts.precision(), counts.recall());
    };
    line("checkpoint", &report.checkpoint);
    line("warn", &report.warn);
    for (class, counts) in &report.classes {
        line(class, counts);
        all.hit += counts.hit;
        all.missed += counts.missed;
        all.wrong += counts.wrong;
    }
    line("all classes", &all);
    all
}

#[test]
fn labelled_commands() {
    let report = measure(include_str!("../../../tests/data/commands.jsonl"));
    let classes = print("commands", &report);
    assert!(report.checkpoint.precision() >= 0.99 && report.checkpoint.recall() >= 0.99, "checkpoint");
    assert!(report.warn.precision() >= 0.99 && report.warn.recall() >= 0.99, "warn");
    assert!(classes.precision() >= 0.97 && classes.recall() >= 0.98, "classes");
}

#[test]
fn labelled_idioms() {
    let report = measure(include_str!("../../../tests/data/idioms.jsonl"));
    print("idioms", &report);
    assert!(report.checkpoint.precision() >= 0.90 && report.checkpoint.recall() >= 0.90, "checkpoint");
    assert!(report.warn.precision() >= 0.90 && report.warn.recall() >= 0.90, "warn");
}
