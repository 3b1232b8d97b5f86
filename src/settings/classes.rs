//! The key `policy`: the user's wishes about effect classes, and about the uncommitted work of others.

use serde_json::{Value, json};

use super::keys::{wants, word};
use crate::model::effect::{Class, Severity, Stance};
use crate::model::policy::{ClassRule, Policy};

/// The name in `policy` of the answer to a collision, beside those of effect classes.
const COLLISION: &str = "collision";

/// Applies the key `policy`: rules of effect classes, and the answer to a collision.
pub(super) fn classes(policy: &mut Policy, value: &Value) -> Result<(), String> {
    let map = value.as_object().ok_or_else(|| wants("a map of effect classes", value))?;
    let mut read = Vec::new();
    let mut collision = policy.collision;
    for (name, change) in map {
        if name == COLLISION {
            collision = stance(change)?;
            continue;
        }
        let class: Class = serde_json::from_value(Value::String(name.clone())).map_err(|_| {
            format!("has `{name}`, which is not an effect class (docs/CLASSIFY.md lists them) and not `collision`")
        })?;
        let mut rule = ClassRule { class, severity: None, checkpoint: None, warn: None, answer: None };
        let answer = json!({ "answer": change });
        let change = if change.is_string() { &answer } else { change };
        let change = change
            .as_object()
            .ok_or_else(|| format!("accepts only severity, checkpoint, warn or answer under `{name}`"))?;
        for (key, value) in change {
            match key.as_str() {
                "severity" => rule.severity = Some(severity(value)?),
                "checkpoint" => rule.checkpoint = Some(value.as_bool().ok_or_else(|| wants("true or false", value))?),
                "answer" => rule.answer = Some(stance(value)?),
                "warn" => rule.warn = Some(value.as_bool().ok_or_else(|| wants("true or false", value))?),
                other => {
                    return Err(format!("has `{name}.{other}`, which is not severity, checkpoint, warn or answer"));
                }
            }
        }
        read.push(rule);
    }
    policy.collision = collision;
    for rule in read {
        policy.classes.retain(|known| known.class != rule.class);
        policy.classes.push(rule);
    }
    Ok(())
}

/// Classes whose actions take work away.
const LOSING: [Class; 4] = [Class::FileDelete, Class::FileOverwrite, Class::FileMove, Class::VcsDiscard];

/// Says for which classes the answer to a collision cannot hold. Whose work an action takes is found by its checkpoint.
pub(super) fn without_collisions(policy: &Policy) -> Option<String> {
    let is_without =
        |class: &Class| policy.classes.iter().any(|rule| rule.class == *class && rule.checkpoint == Some(false));
    let classes: Vec<&str> = LOSING.iter().filter(|class| is_without(class)).map(|class| class.as_str()).collect();
    (policy.collision > Stance::Warn && !classes.is_empty()).then(|| {
        let classes = classes.join("`, `");
        format!(
            "`policy.collision` does not apply to `{classes}`: `checkpoint: false` removes the checkpoint with which piton \
             finds whose work is at stake"
        )
    })
}

fn stance(value: &Value) -> Result<Stance, String> {
    let words = [("allow", Stance::Allow), ("warn", Stance::Warn), ("ask", Stance::Ask), ("deny", Stance::Deny)];
    word(value, &words)
}

fn severity(value: &Value) -> Result<Severity, String> {
    let words =
        [("info", Severity::Info), ("low", Severity::Low), ("medium", Severity::Medium), ("high", Severity::High)];
    word(value, &words)
}

/// Returns true if the second policy guards at least as much as the first.
pub(super) fn classes_widen(old: &Policy, new: &Policy) -> bool {
    let classes = old.classes.iter().chain(&new.classes).map(|rule| rule.class);
    let rule = |policy: &Policy, class: Class| policy.classes.iter().find(|rule| rule.class == class).cloned();
    let blank = |class| ClassRule { class, severity: None, checkpoint: None, warn: None, answer: None };
    new.collision >= old.collision
        && classes.into_iter().all(|class| {
            let [old, new] = [old, new].map(|policy| rule(policy, class).unwrap_or_else(|| blank(class)));
            rule_widens(&old, &new)
        })
}

/// Returns true if the second rule of a class guards at least as much as the first. The value that holds where a rule has none is
/// unknown: only the strictest one is surely as strict, and only the laxest one surely not stricter.
fn rule_widens(old: &ClassRule, new: &ClassRule) -> bool {
    let is_on = |old: Option<bool>, new: Option<bool>| old == new || new == Some(true) || old == Some(false);
    let is_severe = match (old.severity, new.severity) {
        (Some(old), Some(new)) => new >= old,
        (Some(old), None) => old == Severity::Info,
        (None, Some(new)) => new == Severity::High,
        (None, None) => true,
    };
    let is_strict = match (old.answer, new.answer) {
        (Some(old), Some(new)) => new >= old,
        (Some(old), None) => old == Stance::Allow,
        (None, Some(new)) => new > Stance::Allow,
        (None, None) => true,
    };
    is_on(old.checkpoint, new.checkpoint) && is_on(old.warn, new.warn) && is_severe && is_strict
}
