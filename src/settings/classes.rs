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
        let change =
            change.as_object().ok_or_else(|| format!("wants severity, checkpoint, warn or answer under `{name}`"))?;
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
            "`policy.collision` does not hold for `{classes}`: `checkpoint: false` takes the checkpoint away by which piton \
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

/// Returns true if a policy protects at least as much as another one.
///
/// Only a higher severity and more checkpoints and warnings widen; against a class without a rule, only `true` does.
pub(super) fn classes_widen(old: &Policy, new: &Policy) -> bool {
    let is_stricter = new.collision >= old.collision;
    is_stricter
        && new.classes.iter().all(|rule| {
            let before = old.classes.iter().find(|known| known.class == rule.class);
            if before == Some(rule) {
                return true;
            }
            let never_off = rule.checkpoint != Some(false) && rule.warn != Some(false);
            let asked = before.and_then(|rule| rule.answer);
            let not_laxer =
                rule.answer.map_or(asked.is_none(), |answer| answer > Stance::Allow && Some(answer) >= asked);
            let not_lower = rule.severity.is_none_or(|severity| {
                severity == Severity::High
                    || before.and_then(|rule| rule.severity).is_some_and(|before| severity >= before)
            });
            never_off && not_lower && not_laxer
        })
}
