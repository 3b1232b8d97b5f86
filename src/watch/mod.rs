//! What changed since: the watcher of one workspace.
//!
//! It knows paths and events, and nothing of captures, stores and ignore rules.
#![expect(dead_code, reason = "the watcher that uses the marks comes next")]

mod marks;
