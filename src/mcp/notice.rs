//! Tells a client's person something that the server did not say. It is one log message, if the server has announced
//! that it logs: a client may take an unannounced message for an error.

use serde_json::{Value, json};

/// Returns true if this line is the answer by which a server says that it sends log messages.
pub fn announces_logging(line: &[u8]) -> bool {
    // Most lines are none, and need not be read.
    let names_it = line.windows(9).any(|window| window == b"\"logging\"");
    let answer = names_it.then(|| serde_json::from_slice::<Value>(line).ok()).flatten();
    answer.is_some_and(|answer| answer.pointer("/result/capabilities/logging").is_some_and(Value::is_object))
}

/// Returns a log message of piton's, with its newline.
pub fn log_message(text: &str) -> Vec<u8> {
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/message",
        "params": { "level": "alert", "logger": "piton", "data": text } });
    format!("{message}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_logs_is_joined() {
        let answer = |capabilities: Value| {
            json!({ "jsonrpc": "2.0", "id": 0, "result": { "capabilities": capabilities } }).to_string()
        };
        assert!(announces_logging(answer(json!({ "logging": {}, "tools": {} })).as_bytes()));
        for other in [
            answer(json!({ "tools": { "logging": {} } })),
            answer(json!({ "logging": null })),
            "{\"logging\"".to_owned(),
            "{\"method\":\"logging\"}".to_owned(),
            String::new(),
        ] {
            assert!(!announces_logging(other.as_bytes()), "{other}");
        }
        let line = log_message("näh\n");
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}
