//! A payload as a client would send it, made from what is known of its shape: for trying an installed hook.

use serde_json::{Map, Value, json};

use super::client::Client;
use super::clients;
use super::shape::Moment;

/// An event before an action, and what the hook reads on stdin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixture {
    /// The client's name of the event, as `piton hook` gets it.
    pub event: &'static str,
    /// The JSON text on the hook's stdin.
    pub payload: String,
}

impl Client {
    /// Returns what the client sends before it runs `command` in `cwd`, in the session `session`.
    pub fn fixture(self, session: &str, cwd: &str, command: &str) -> Option<Fixture> {
        let shape = &clients::profile(self).shape;
        let event = shape.steps.iter().find(|(_, step)| *step == Moment::Before).map(|(event, _)| *event)?;
        let mut payload = Value::Object(Map::new());
        let fields = [
            (shape.echo, json!(event)),
            (shape.session, json!(session)),
            (shape.turn, json!(session)),
            (shape.cwd, json!(cwd)),
            (shape.tool, json!(shape.shells.first()?)),
            (shape.input, json!({ "command": command })),
            (shape.action, json!("piton-doctor")),
        ];
        for (places, value) in fields {
            if let Some(place) = places.first() {
                put(&mut payload, place, value);
            }
        }
        Some(Fixture { event, payload: payload.to_string() })
    }
}

/// Puts a value where a JSON pointer points to, making what is missing: a number is a place in a list.
fn put(root: &mut Value, pointer: &str, value: Value) {
    let mut at = root;
    for part in pointer.split('/').skip(1) {
        match part.parse::<usize>() {
            Ok(_) => {
                if !at.is_array() {
                    *at = json!([null]);
                }
                at = &mut at[0];
            }
            Err(_) => {
                if !at.is_object() {
                    *at = json!({});
                }
                at = &mut at[part];
            }
        }
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use super::super::event::{Act, EventKind};
    use super::super::install::FileContent;
    use super::*;

    #[test]
    fn what_is_made_is_what_the_client_is_read_as() {
        for client in Client::ALL {
            let made = client.fixture("s", "/w", "rm a").unwrap();
            let event = client.parse(made.event, made.payload.as_bytes()).unwrap();
            assert_eq!(event.cwd.as_deref(), Some(std::path::Path::new("/w")), "{}", client.name());
            match &event.kind {
                EventKind::Before { act: Act::Shell { commands, .. }, .. } => assert_eq!(commands, &["rm a"]),
                other => panic!("{}: {other:?}", client.name()),
            }
            let hooked = client.files(false).iter().any(|file| match file.content {
                FileContent::Json(hooks) | FileContent::Yaml(hooks) | FileContent::Toml(hooks) => {
                    hooks.hooks.iter().any(|hook| hook.event == made.event)
                }
                FileContent::Script { event } => event == made.event,
                FileContent::Shim(text) => text.contains(made.event),
                FileContent::Whole(_) => false,
            });
            assert!(hooked, "{}: {} is not installed", client.name(), made.event);
        }
    }
}
