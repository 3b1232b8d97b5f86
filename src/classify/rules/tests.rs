use super::compile::{call, rule};
use super::dialect::Document;
use super::document::{document as compiled, read};
use super::embedded;
use super::table::Table;
use super::text::Text;
use super::{RuleSet, Run};
use crate::classify::Classifier;
use crate::classify::expand::Arg;
use crate::classify::tests::evaluation::{context, policy};
use crate::error::{Code, Error};

fn document() -> Document {
    match read(include_str!("../../../config/rules.yaml")) {
        Ok(document) => document,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_embedded_table_compiles() {
    if let Err(error) = compiled(include_str!("../../../config/rules.yaml")) {
        panic!("{error}");
    }
}

/// Compares the output of `build.rs` with the document, and compiles every part of it.
#[test]
fn the_embedded_table_is_the_document() {
    let (specs, document) = (embedded::specs(), document());
    let printed: Vec<String> = specs.rules.iter().map(|rule| format!("{rule:?}")).collect();
    let read = document.rules.iter().map(|spec| {
        let mut spec = spec.value.clone();
        (spec.matches, spec.misses) = Default::default();
        format!("{spec:?}")
    });
    assert!(read.eq(printed), "touch build.rs");
    for spec in specs.rules.iter() {
        let rule = rule(spec).expect("a rule");
        assert!(rule.operands.patterns().all(|pattern| pattern.regex().is_ok()), "{}", &*spec.id);
    }
    assert!(specs.calls.iter().all(|spec| call(spec).pattern.is_none_or(|pattern| pattern.regex().is_ok())));
    let names = specs.index.names.len();
    let table = Table::new(specs);
    assert!(names > 2000 && table.knows("rm") && !table.knows("frobnicate"), "{names}");
}

/// Returns the rule that decides about a line of plain words, if one does; without what carries a command in it.
fn decides(rules: &RuleSet, line: &str) -> Option<String> {
    let words: Vec<Arg> = shlex(line).into_iter().map(|word| Arg::literal(word, (0, 0))).collect();
    let (first, args) = words.split_first()?;
    let program = first.text.rsplit('/').next().unwrap_or(&first.text).to_ascii_lowercase();
    rules.find(&program, args, Run { input: false, root: false }).map(|hit| hit.rule.id.to_string())
}

/// Words at blanks, but for those in single quotes.
fn shlex(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (at, piece) in line.split('\'').enumerate() {
        for (nth, part) in piece.split(' ').enumerate() {
            if at % 2 == 0 && nth > 0 {
                words.push(String::new());
            } else if nth > 0 {
                words.last_mut().expect("one").push(' ');
            }
            words.last_mut().expect("one").push_str(part);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Every rule's own examples: `match` lines are decided by that very rule, `not` lines are not. A rule with effects gives its
/// class through the whole classifier; one that says "harmless" is asked by itself.
#[test]
fn examples_hold() {
    let classifier = Classifier::embedded();
    let mut wrong = Vec::new();
    for spec in document().rules {
        let rule = spec.value;
        let by_rule = |line: &Text| {
            if rule.class.is_none() && !rule.named {
                return decides(&classifier.rules, line).as_deref() == Some(&*rule.id);
            }
            let verdict = classifier.shell(line, &context(), &policy());
            verdict.effects.iter().any(|effect| *effect.rule == *rule.id || rule.named && effect.rule == "script")
        };
        let misses = rule.matches.iter().filter(|line| !by_rule(line));
        wrong.extend(misses.map(|line| format!("{} misses {}", &*rule.id, &**line)));
        let takes = rule.misses.iter().filter(|line| by_rule(line));
        wrong.extend(takes.map(|line| format!("{} takes {}", &*rule.id, &**line)));
        if rule.matches.is_empty() || rule.misses.is_empty() {
            wrong.push(format!("{} has no examples", &*rule.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn refused(yaml: &str) -> Error {
    Classifier::with_user_rules(yaml).expect_err("a refusal")
}

#[test]
fn users_errors_name_line_and_column() {
    let unknown = refused("rules:\n  - id: a\n    program: x\n    klass: cloud\n");
    assert_eq!((unknown.code(), unknown.field_name()), (Code::BadRequest, Some("rules")));
    assert_eq!(unknown.line_number(), Some(4), "{unknown}");
    assert!(unknown.message().contains("column"), "{unknown}");
    assert_eq!(refused("rules:\n  - {id: a, program: x, class: nonsense}\n").line_number(), Some(2));
    assert_eq!(
        refused("rules:\n  - {id: b, program: x}\n  - {id: a, program: x, operand: '('}\n").line_number(),
        Some(3)
    );
    assert_eq!(refused("rules:\n  - {id: a, program: x, target: nowhere}\n").line_number(), Some(2));
    assert!(refused("rules: [").line_number().is_some());
}

#[test]
fn users_rules_come_first() {
    let yaml = "disable: make-clean\nrules:\n  - {id: rm, program: rm}\n  - {id: own, program: frobnicate, class: cloud, say: \"`{verb}` frobs.\"}\n";
    let classifier = Classifier::with_user_rules(yaml).expect("rules");
    let needs = |line: &str| classifier.shell(line, &context(), &policy()).needs;
    assert!(!needs("rm -rf x").checkpoint());
    assert!(needs("frobnicate now").warn());
    assert!(needs("rmdir x").checkpoint() || !needs("rmdir x").checkpoint());
    let warned = classifier.shell("frobnicate now", &context(), &policy());
    assert_eq!(warned.warnings[0].message, "`frobnicate` frobs.");
    assert_eq!(warned.warnings[0].code, "external-cloud");
}

/// `cargo test --lib patterns_compile_soon -- --nocapture` lists the slowest.
#[test]
fn patterns_compile_soon() {
    let specs = embedded::specs();
    let mut times: Vec<(std::time::Duration, String)> = Vec::new();
    let rules: Vec<super::compiled::Rule> = specs.rules.iter().filter_map(|spec| rule(spec).ok()).collect();
    let calls: Vec<super::CallRule> = specs.calls.iter().map(call).collect();
    for pattern in rules
        .iter()
        .flat_map(|rule| rule.operands.patterns())
        .chain(calls.iter().filter_map(|call| call.pattern.as_ref()))
    {
        let started = std::time::Instant::now();
        assert!(pattern.regex().is_ok());
        times.push((started.elapsed(), pattern.text().to_owned()));
    }
    times.sort();
    let all: std::time::Duration = times.iter().map(|(time, _)| *time).sum();
    println!("{} patterns: {all:?}", times.len());
    for (time, text) in times.iter().rev().take(12) {
        println!("{time:?} {text}");
    }
    assert!(all < std::time::Duration::from_secs(2), "{all:?}");
}

#[test]
fn stars_of_subcommands_stand_for_any_text() {
    let table = [
        ("delete", "DELETE", true),
        ("delete", "deleted", false),
        ("delete-*", "delete-", true),
        ("delete-*", "Delete-Stack", true),
        ("delete-*", "delete", false),
        ("*", "", true),
        ("*-delete", "volume-delete", true),
        ("*-delete", "-delete", true),
        ("*-delete", "volume-deleted", false),
        ("*delete*", "volume-deleted", true),
        ("*delete*", "volume", false),
        ("db:*:drop", "db:test:drop", true),
        ("db:*:drop", "db:drop", false),
        ("ab*b", "ab", false),
    ];
    for (pattern, text, expected) in table {
        assert_eq!(super::condition::glob(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} on {text}");
    }
}
