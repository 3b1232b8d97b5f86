//! The messages between an MCP client and a server, as far as the guard cares (rank 2). Pure: messages in, decisions out.
//!
//! A message is never changed. A message that is not understood passes and makes no tool a reader: a tool counts as one
//! that writes until the server itself has said otherwise.

pub mod notice;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

use crate::model::json;

/// Most tools that are remembered; those beyond count as writing.
const MAX_TOOLS: usize = 10_000;

/// Most lists that may be on their way.
const MAX_ASKED: usize = 100;

/// Most calls that may be on their way.
const MAX_CALLS: usize = 1000;

/// A call that is to wait for its checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Absent where the client wants no answer.
    pub id: Option<Value>,
    /// The name of the server's tool, as the client sent it.
    pub tool: String,
    /// The call's arguments; `null` where it has none.
    pub arguments: Value,
    /// True if the server says that it reaches beyond this machine's files.
    pub external: bool,
    /// True if the message could not be read exactly.
    pub doubt: bool,
}

/// The hints of a server on a tool.
#[derive(Clone, Copy, Debug, Default)]
struct Hints {
    read_only: bool,
    open_world: bool,
}

/// The knowledge of a server's tools.
#[derive(Debug, Default)]
pub struct Tools {
    known: HashMap<String, Hints>,
    /// Requests for lists that are not answered yet: the id as JSON, and whether it is the first page.
    asked: VecDeque<(String, bool)>,
    /// Calls that write and are not answered yet: the ids as JSON.
    calls: VecDeque<String>,
}

/// Returns the name of a call by its id, as JSON.
fn name_of(id: &Value) -> String {
    id.to_string()
}

impl Call {
    /// Returns the name by which the end of the call is known; `None` where the client wants no answer.
    pub fn name(&self) -> Option<String> {
        self.id.as_ref().map(name_of)
    }
}

impl Tools {
    /// Reads a line of the client: the calls in it that write. A batch may have several.
    pub fn from_client(&mut self, line: &[u8]) -> Vec<Call> {
        // Of what is torn, what could be read counts: the server may read more into it.
        let read = json::read(line);
        let doubt = read.is_doubtful || read.fault.is_some();
        messages_of(read.value).iter().filter_map(|message| self.request(message, doubt)).collect()
    }

    fn request(&mut self, message: &Map<String, Value>, doubt: bool) -> Option<Call> {
        let params = message.get("params");
        let id = message.get("id").filter(|id| !id.is_null());
        match message.get("method").and_then(Value::as_str)? {
            "tools/list" => {
                let first = params.and_then(|params| params.get("cursor")).is_none_or(Value::is_null);
                if self.asked.len() >= MAX_ASKED {
                    self.asked.pop_front();
                }
                self.asked.extend(id.map(|id| (id.to_string(), first)));
                None
            }
            "tools/call" => {
                let tool =
                    params.and_then(|params| params.get("name")).and_then(Value::as_str).unwrap_or("?").to_owned();
                let hints = self.known.get(&tool).copied().unwrap_or_default();
                let arguments = params.and_then(|params| params.get("arguments")).cloned().unwrap_or(Value::Null);
                let call = Call { id: id.cloned(), tool, arguments, external: hints.open_world, doubt };
                if hints.read_only {
                    return None;
                }
                if self.calls.len() >= MAX_CALLS {
                    self.calls.pop_front();
                }
                self.calls.extend(call.name());
                Some(call)
            }
            _ => None,
        }
    }

    /// Reads a line of the server: what it says of its tools. Returns the names of the calls that it answers.
    pub fn from_server(&mut self, line: &[u8]) -> Vec<String> {
        let mut answered = Vec::new();
        // Nothing of use can be in it, which is true of most.
        if self.asked.is_empty() && self.known.is_empty() && self.calls.is_empty() {
            return answered;
        }
        for message in messages(line) {
            if message.get("method").and_then(Value::as_str) == Some("notifications/tools/list_changed") {
                self.known.clear();
                self.asked.clear();
            }
            let Some(id) = message.get("id").filter(|_| !message.contains_key("method")).map(name_of) else {
                continue;
            };
            if let Some(at) = self.calls.iter().position(|call| *call == id) {
                answered.extend(self.calls.remove(at));
            }
            if let Some(at) = self.asked.iter().position(|(asked, _)| *asked == id) {
                let first = self.asked.remove(at).is_some_and(|(_, first)| first);
                self.listed(message.get("result"), first);
            }
        }
        answered
    }

    fn listed(&mut self, result: Option<&Value>, first: bool) {
        let Some(tools) = result.and_then(|result| result.get("tools")).and_then(Value::as_array) else {
            return;
        };
        if first {
            self.known.clear();
        }
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let hint =
                |name: &str| tool.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool) == Some(true);
            // One that is said to destroy is no reader, whatever else is said of it.
            let read_only = hint("readOnlyHint") && !hint("destructiveHint");
            let hints = Hints { read_only, open_world: hint("openWorldHint") };
            if self.known.len() < MAX_TOOLS || self.known.contains_key(name) {
                self.known.insert(name.to_owned(), hints);
            }
        }
    }
}

/// Returns the messages of a line: one, or those of a batch; none of what is no JSON.
fn messages(line: &[u8]) -> Vec<Map<String, Value>> {
    let read = json::read(line);
    if read.fault.is_none() { messages_of(read.value) } else { Vec::new() }
}

fn messages_of(value: Value) -> Vec<Map<String, Value>> {
    match value {
        Value::Object(message) => vec![message],
        Value::Array(batch) => {
            let maps =
                batch.into_iter().filter_map(|item| if let Value::Object(map) = item { Some(map) } else { None });
            maps.collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the answer to a line of the client that is not passed on: as a tool's own failure, so that the model reads
/// the reason. `None` where the client wants none.
pub fn refusal(line: &[u8], reason: &str) -> Option<Vec<u8>> {
    let value = json::read(line).value;
    let is_batch = value.is_array();
    let answers: Vec<Value> = messages_of(value)
        .iter()
        .filter(|message| message.contains_key("method"))
        .filter_map(|message| {
            let id = message.get("id").filter(|id| !id.is_null())?;
            let is_call = message.get("method").and_then(Value::as_str) == Some("tools/call");
            Some(if is_call {
                let content = [json!({ "type": "text", "text": reason })];
                json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content, "isError": true } })
            } else {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": reason } })
            })
        })
        .collect();
    let answer = match (answers.len(), is_batch) {
        (0, _) => return None,
        (_, true) => Value::Array(answers),
        (_, false) => answers.into_iter().next()?,
    };
    let mut bytes = answer.to_string().into_bytes();
    bytes.push(b'\n');
    Some(bytes)
}
