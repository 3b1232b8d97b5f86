use super::dialect::Document;
use super::{compile, read};
use crate::classify::Classifier;
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
    if let Err(error) = compile(vec![document()]) {
        panic!("{error}");
    }
}

/// Every rule's own examples: `match` lines give its class by that very rule, `not` lines do not.
#[test]
fn examples_hold() {
    let classifier = Classifier::embedded();
    let mut wrong = Vec::new();
    for rule in document().rules {
        let rule = rule.value;
        let by_rule = |line: &String| {
            let verdict = classifier.shell(line, &context(), &policy());
            verdict.effects.iter().any(|effect| effect.rule == rule.id || rule.named && effect.rule == "script")
        };
        if rule.class.is_some() {
            wrong.extend(
                rule.matches.iter().filter(|line| !by_rule(line)).map(|line| format!("{} misses {line}", rule.id)),
            );
        }
        wrong.extend(
            rule.misses
                .iter()
                .filter(|line| rule.class.is_some() && by_rule(line))
                .map(|line| format!("{} takes {line}", rule.id)),
        );
        if rule.class.is_some()
            && (rule.matches.is_empty() || rule.misses.is_empty())
            && rule.severity != Some(crate::model::effect::Severity::Info)
        {
            wrong.push(format!("{} has no examples", rule.id));
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
