//! What a client is told back. A hook's exit code is always 0: every client blocks by what is replied, and to some a
//! failing hook is a veto.

use serde_json::{Value, json};

use super::shape::Step;

/// What is to be told, whatever the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Policy says no, and why. Ignored by events that come before nothing.
    pub deny: Option<String>,
    /// For the model: warnings, and what was rolled back.
    pub context: Vec<String>,
    /// For the person: what went wrong in piton itself.
    pub message: Option<String>,
    /// The answer to [`super::Kind::Ask`]; the prompt does not reach the model.
    pub answer: Option<String>,
}

impl Decision {
    /// All that is for the model, as one text.
    pub fn notes(&self) -> Option<String> {
        (!self.context.is_empty()).then(|| self.context.join("\n"))
    }
}

/// Puts together an object of what is there; nothing if nothing is.
pub fn object(fields: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Option<Value> {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let map: serde_json::Map<String, Value> = fields.collect();
    (!map.is_empty()).then_some(Value::Object(map))
}

/// The reply of Claude Code, which several clients understand.
pub fn claude(event: &str, step: Step, decision: &Decision) -> Option<Value> {
    let before = step == Step::Before;
    let hears = matches!(step, Step::Before | Step::After | Step::Failed | Step::TurnStart | Step::SessionStart);
    let deny = decision.deny.as_ref().filter(|_| before);
    let answer = decision.answer.as_ref().filter(|_| step == Step::TurnStart);
    let specific = object([
        ("permissionDecision", deny.map(|_| json!("deny"))),
        ("permissionDecisionReason", deny.map(|reason| json!(reason))),
        ("additionalContext", decision.notes().filter(|_| hears && answer.is_none()).map(Value::String)),
    ]);
    let specific = specific.map(|mut specific| {
        specific["hookEventName"] = json!(event);
        specific
    });
    object([
        ("decision", answer.map(|_| json!("block"))),
        ("reason", answer.map(|answer| json!(answer))),
        ("hookSpecificOutput", specific),
        ("systemMessage", decision.message.as_ref().map(|message| json!(message))),
    ])
}

/// Where a shim can put a note for the model.
pub fn hears_shim(step: Step) -> bool {
    matches!(step, Step::After | Step::TurnStart)
}

/// The reply to a shim of piton's own, which knows no client's words.
pub fn shim(_event: &str, step: Step, decision: &Decision) -> Option<Value> {
    let text = |text: &Option<String>| text.clone().map(Value::String);
    object([
        ("deny", text(&decision.deny).filter(|_| step == Step::Before)),
        ("context", decision.notes().filter(|_| hears_shim(step)).map(Value::String)),
        ("message", text(&decision.message)),
        ("answer", text(&decision.answer).filter(|_| matches!(step, Step::TurnStart | Step::Ask))),
    ])
}
