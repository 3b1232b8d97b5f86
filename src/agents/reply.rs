//! The reply to a client. A hook's exit code is always 0: every client blocks by what is replied, and to some a
//! failing hook is a veto.

use serde_json::{Value, json};

use super::shape::Moment;

/// An answer to an event, whatever the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Policy says no, and why. Ignored by events that come before nothing.
    pub deny: Option<String>,
    /// For the model: warnings, and what was rolled back.
    pub context: Vec<String>,
    /// For the person: what went wrong in piton itself.
    pub message: Option<String>,
    /// The answer to [`EventKind::Ask`](super::event::EventKind::Ask); the prompt does not reach the model.
    pub answer: Option<String>,
    /// True if piton wants to know of the end of a person's line.
    pub awaits_end: bool,
    /// Variables for a command of the client, where it asks for some.
    pub variables: Vec<(String, String)>,
}

impl Decision {
    /// Returns all that is for the model, as one text.
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

/// Returns whether the envelope of Claude Code carries a note to the model.
pub fn claude_reaches_model(step: Moment) -> bool {
    matches!(step, Moment::Before | Moment::After | Moment::Failed | Moment::TurnStart | Moment::SessionStart)
}

/// Returns the reply of Claude Code.
pub fn claude(event: &str, step: Moment, decision: &Decision) -> Option<Value> {
    envelope(event, step, decision, claude_reaches_model(step))
}

/// Returns the reply of Claude Code as several clients understand it, with notes if they reach the model at this event.
pub fn envelope(event: &str, step: Moment, decision: &Decision, reaches_model: bool) -> Option<Value> {
    let before = step == Moment::Before;
    let deny = decision.deny.as_ref().filter(|_| before);
    let answer = decision.answer.as_ref().filter(|_| step == Moment::TurnStart);
    let specific = object([
        ("permissionDecision", deny.map(|_| json!("deny"))),
        ("permissionDecisionReason", deny.map(|reason| json!(reason))),
        ("additionalContext", decision.notes().filter(|_| reaches_model && answer.is_none()).map(Value::String)),
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

/// Returns whether a shim can put a note for the model.
pub fn shim_reaches_model(step: Moment) -> bool {
    matches!(step, Moment::After | Moment::TurnStart)
}

/// Returns the reply to a shim of piton's own, which knows no client's words.
pub fn shim(_event: &str, step: Moment, decision: &Decision) -> Option<Value> {
    let text = |text: &Option<String>| text.clone().map(Value::String);
    let variables = decision.variables.iter().map(|(name, text)| (name.clone(), json!(text)));
    object([
        ("deny", text(&decision.deny).filter(|_| matches!(step, Moment::Before | Moment::Line))),
        ("context", decision.notes().filter(|_| shim_reaches_model(step)).map(Value::String)),
        ("message", text(&decision.message)),
        ("answer", text(&decision.answer).filter(|_| matches!(step, Moment::TurnStart | Moment::Ask))),
        ("end", decision.awaits_end.then_some(json!(true))),
        ("env", (!decision.variables.is_empty()).then(|| Value::Object(variables.collect()))),
    ])
}
