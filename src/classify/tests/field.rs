//! Lines and calls from the field (`tests/data/field/`): labelled before the rules that they measure were written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::evaluation::{Line, Report, context, count, policy, print};
use super::shared;
use crate::classify::context::resolve;
use crate::model::effect::{Confidence, Verdict};

#[derive(Deserialize)]
struct FieldLine {
    id: u32,
    cmd: String,
}

#[derive(Clone, Deserialize)]
struct Label {
    id: u32,
    effects: Vec<String>,
    act: String,
    opaque: bool,
}

#[derive(Deserialize)]
struct Call {
    id: u32,
    lang: String,
    code: String,
    effects: Vec<CallEffect>,
}

#[derive(Deserialize)]
struct CallEffect {
    class: String,
    /// `None` where the code has no literal for it.
    target: Option<String>,
}

fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

/// Returns the labels of all lines: those on which both labellers agree, and the decided ones.
fn labels() -> BTreeMap<u32, Label> {
    let of = |text| read::<Label>(text).into_iter().map(|label| (label.id, label));
    let mut labels: BTreeMap<u32, Label> = of(include_str!("../../../tests/data/field/labels-a.jsonl")).collect();
    labels.extend(of(include_str!("../../../tests/data/field/decided.jsonl")));
    labels
}

/// Returns an effect in the words of piton: the class of a change of files outside is that of its place, and code that nobody sees
/// is said by the verdict as a whole.
fn in_own_words(effects: &[String], verdict: &Verdict) -> Vec<String> {
    let has = |class: &str| verdict.effects.iter().any(|found| found.class.as_str() == class);
    let own = |class: &String| match class.as_str() {
        "exec-opaque" if verdict.confidence == Confidence::Opaque => None,
        "file-delete" | "file-overwrite" | "file-move" | "file-perm" | "file-write" if !has(class) && has("system") => {
            Some("system".to_owned())
        }
        _ => Some(class.clone()),
    };
    let mut own: Vec<String> = effects.iter().filter_map(own).collect();
    own.sort();
    own.dedup();
    own
}

#[test]
fn lines_of_the_field() {
    let (labels, mut report, mut own, mut opaque) = (labels(), Report::default(), Report::default(), [0_u32; 3]);
    let lines: Vec<FieldLine> = read(include_str!("../../../tests/data/field/lines.jsonl"));
    assert!(lines.len() >= 1000);
    for line in &lines {
        let label = labels[&line.id].clone();
        let mut verdict = shared().shell(&line.cmd, &context(), &policy());
        match (label.opaque, verdict.confidence == Confidence::Opaque) {
            (true, true) => opaque[0] += 1,
            (true, false) => opaque[1] += 1,
            (false, true) => opaque[2] += 1,
            (false, false) => {}
        }
        let line = Line { cmd: line.cmd.clone(), effects: label.effects, act: label.act };
        count(&line, &verdict, &mut report);
        let line = Line { effects: in_own_words(&line.effects, &verdict), ..line };
        verdict.effects.retain(|found| found.class.as_str() != "exec-opaque");
        count(&line, &verdict, &mut own);
    }
    let classes = print("lines of the field, in piton's words for places and code", &own);
    println!("classes in piton's words: precision {:.3}, recall {:.3}", classes.precision(), classes.recall());
    assert!(classes.precision() >= 0.94 && classes.recall() >= 0.86, "classes in piton's words");
    let classes = print("lines of the field", &report);
    println!("opaque: {} found, {} not, {} without need", opaque[0], opaque[1], opaque[2]);
    // Floors at what is reached, so that nothing of it gets lost; the goal is 0.98 (`tests/data/field/README.md`).
    assert!(report.checkpoint.precision() >= 0.95 && report.checkpoint.recall() >= 0.96, "checkpoint");
    assert!(report.warn.precision() >= 0.95 && report.warn.recall() >= 0.96, "warn");
    assert!(classes.precision() >= 0.84 && classes.recall() >= 0.74, "classes");
    assert!(opaque[0] >= 99 && opaque[1] <= 11, "opaque");
}

/// Returns the command line that runs a piece of code.
fn command(call: &Call) -> String {
    let program = match call.lang.as_str() {
        "python" => "python3 -c",
        "node" => "node -e",
        "ruby" => "ruby -e",
        "perl" => "perl -e",
        "php" => "php -r",
        other => panic!("{other}"),
    };
    format!("{program} '{}'", call.code.replace('\'', r"'\''"))
}

/// Returns where the target of an effect lies: in the directory of the line, or in one that the code has gone to.
fn place(target: &str, verdict: &Verdict) -> PathBuf {
    let behind = |path: &&String| Path::new(path).ends_with(target);
    let known = verdict.targets.iter().filter(|path| path.starts_with('/')).find(behind);
    known.map_or_else(|| resolve(&context().cwd, target), PathBuf::from)
}

#[test]
fn calls_of_the_field() {
    let calls: Vec<Call> = read(include_str!("../../../tests/data/field/calls.jsonl"));
    assert!(calls.len() >= 300);
    // All effects on files, and overwrites alone: right, wrong, without a target.
    let (mut all, mut overwrites) = ([0_u32; 3], [0_u32; 3]);
    for call in &calls {
        let verdict = shared().shell(&command(call), &context(), &policy());
        let given: BTreeSet<(&str, Option<PathBuf>)> = verdict
            .effects
            .iter()
            .map(|found| (found.class.as_str(), found.target.as_deref().map(|target| place(target, &verdict))))
            .collect();
        for effect in &call.effects {
            let Some(target) = &effect.target else { continue };
            // A target outside, or in a repository, has the class of its place.
            let is_class = |class: &str| class == effect.class || matches!(class, "system" | "vcs-history" | "piton");
            let of_class = || given.iter().filter(|(class, _)| is_class(class));
            let place = match () {
                () if of_class().any(|(_, given)| given.as_deref() == Some(Path::new(target))) => 0,
                () if of_class().any(|(_, given)| given.is_some()) => 1,
                () => 2,
            };
            all[place] += 1;
            overwrites[place] += u32::from(effect.class == "file-overwrite");
            if place > 0 {
                println!(
                    "{} {} {:?}: wanted {} {target}, given {given:?}",
                    call.id, call.lang, call.code, effect.class
                );
            }
        }
    }
    println!("right, wrong, missing: all {all:?}, overwrites {overwrites:?}");
    let share = |counts: [u32; 3]| f64::from(counts[0]) / f64::from(counts.iter().sum::<u32>());
    assert!(share(overwrites) >= 0.98, "overwrites");
    assert!(share(all) >= 0.98, "all");
}
