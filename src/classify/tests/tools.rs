//! Structured tool calls.

use serde_json::{Value, json};

use super::evaluation::{context, policy};
use super::shared;
use crate::classify::ToolCall;
use crate::model::effect::{Class, Confidence, Needs, Verdict};

fn judged(tool: &str, input: &Value, paths: &[&str], writes: Option<bool>) -> Verdict {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    shared().tool(&ToolCall { tool, input, paths: &paths, writes, external: None }, &context(), &policy())
}

#[test]
fn tools_that_write_name_their_targets() {
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** Delete File: c.txt\n*** End Patch";
    let table: &[(&str, Value, &[&str])] = &[
        ("Write", json!({"file_path": "/home/dev/proj/a.txt", "content": "x"}), &["a.txt"]),
        ("Edit", json!({"file_path": "a.txt", "old_string": "x"}), &["a.txt"]),
        ("MultiEdit", json!({"file_path": "a.txt", "edits": [{"old_string": "x"}]}), &["a.txt"]),
        ("NotebookEdit", json!({"notebook_path": "n.ipynb"}), &["n.ipynb"]),
        ("write_file", json!({"path": "a.txt"}), &["a.txt"]),
        ("str_replace_based_edit_tool", json!({"command": "create", "path": "a.txt"}), &["a.txt"]),
        ("replace", json!({"filePath": "a.txt"}), &["a.txt"]),
        ("apply_patch", json!({"input": patch}), &["a.txt", "c.txt"]),
        ("apply_patch", json!(patch), &["a.txt", "c.txt"]),
        ("delete_file", json!({"target_file": "a.txt"}), &["a.txt"]),
        ("move_file", json!({"source": "a.txt", "destination": "b.txt"}), &["a.txt", "b.txt"]),
        ("mcp__fs__write_file", json!({"path": "a.txt"}), &["a.txt"]),
    ];
    for (tool, input, targets) in table {
        let verdict = judged(tool, input, &[], None);
        let targets: Vec<String> = targets.iter().map(|path| format!("/home/dev/proj/{path}")).collect();
        assert_eq!((verdict.needs, &verdict.targets), (Needs::Checkpoint, &targets), "{tool} {input}");
    }
    assert_eq!(judged("custom", &json!({}), &["x"], Some(true)).targets, ["/home/dev/proj/x"]);
    assert_eq!(judged("Write", &json!({"file_path": "/tmp/x"}), &[], None).needs, Needs::Nothing);
    assert!(judged("Write", &json!({"file_path": "/home/dev/.bashrc"}), &[], None).needs.warn());
}

#[test]
fn what_a_patch_deletes_is_a_deletion_with_and_without_paths() {
    let codex = "*** Begin Patch\n*** Delete File: c.txt\n*** Update File: a.txt\n@@\n-a\n+b\n*** End Patch";
    let unified = "--- a/c.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n";
    for patch in [codex, unified] {
        for paths in [&[][..], &["c.txt", "a.txt"], &["a.txt", "c.txt"], &["c.txt"]] {
            let verdict = judged("apply_patch", &json!({ "patch": patch }), paths, None);
            let class = |name: &str| {
                let of = |effect: &&crate::model::effect::Effect| effect.target.as_deref() == Some(name);
                verdict.effects.iter().find(of).map(|effect| effect.class)
            };
            assert_eq!(class("c.txt"), Some(Class::FileDelete), "{paths:?} {patch}");
            assert_eq!(class("a.txt"), Some(Class::FileOverwrite), "{paths:?} {patch}");
            assert_eq!(verdict.effects.len(), 2, "{:?}", verdict.effects);
        }
    }
}

#[test]
fn tools_that_read_are_silent() {
    for tool in
        ["Read", "read_file", "Grep", "glob", "list_directory", "LS", "web_search", "TodoWrite", "mcp__x__get_issue"]
    {
        let verdict = judged(tool, &json!({"path": "a.txt"}), &[], None);
        assert_eq!((verdict.needs, verdict.effects.len()), (Needs::Nothing, 0), "{tool}");
    }
    assert_eq!(
        judged("str_replace_based_edit_tool", &json!({"command": "view", "path": "a"}), &[], None).needs,
        Needs::Nothing
    );
    assert_eq!(judged("anything", &json!({}), &[], Some(false)).needs, Needs::Nothing);
}

#[test]
fn shell_tools_are_read_as_shell() {
    for (tool, input) in [
        ("Bash", json!({"command": "rm -rf a"})),
        ("run_shell_command", json!({"command": "rm -rf a"})),
        ("shell", json!({"command": ["bash", "-lc", "rm -rf a"]})),
        ("local_shell", json!({"cmd": ["rm", "-rf", "a"]})),
        ("execute_command", json!({"command": "rm -rf a", "cwd": "/home/dev/proj"})),
    ] {
        let verdict = judged(tool, &input, &[], None);
        assert_eq!(
            (verdict.needs, verdict.targets),
            (Needs::Checkpoint, vec!["/home/dev/proj/a".to_owned()]),
            "{tool}"
        );
    }
    assert_eq!(judged("bash", &json!({"command": "ls"}), &[], None).needs, Needs::Nothing);
    assert_eq!(judged("bash", &json!({"command": "rm a", "workdir": "/tmp"}), &[], None).needs, Needs::Nothing);
}

#[test]
fn unknown_tools_are_opaque() {
    let verdict = judged("frobnicate", &json!({"x": 1}), &[], None);
    assert_eq!((verdict.needs, verdict.confidence), (Needs::Checkpoint, Confidence::Opaque));
    assert_eq!(verdict.effects[0].class, Class::ExecOpaque);
}

#[test]
fn a_tool_that_is_said_to_write_or_to_reach_out_does() {
    let judge = |tool: &str, input: Value, writes, external| {
        let call = ToolCall { tool, input: &input, paths: &[], writes, external };
        let verdict = shared().tool(&call, &context(), &policy());
        (verdict.needs, verdict.warnings.len())
    };
    // A path outside of the workspace in a usual field does not mean that nothing else is written.
    let outside = json!({"source": "/tmp/template", "name": "x"});
    assert_eq!(judge("scaffold", outside.clone(), Some(true), None), (Needs::Checkpoint, 0));
    assert_eq!(judge("read_it", outside.clone(), Some(true), None), (Needs::Checkpoint, 0));
    assert_eq!(judge("send_it", outside.clone(), Some(true), None), (Needs::Both, 1));
    assert_eq!(judge("send_it", outside.clone(), None, Some(true)), (Needs::Warn, 1));
    assert_eq!(judge("scaffold", outside.clone(), Some(true), Some(true)), (Needs::Both, 1));
    assert_eq!(judge("scaffold", outside, Some(false), Some(true)), (Needs::Warn, 1));
}

/// Class, if it warns, and a line of what tools carry; `None` stands for nothing at all.
#[test]
fn what_tools_carry_is_read() {
    let table: &[(&str, Value, Option<Class>)] = &[
        ("mcp__postgres__query", json!({"query": "DROP TABLE users"}), Some(Class::Database)),
        ("mcp__postgres__query", json!({"query": "select * from users where name = 'delete'"}), None),
        ("execute_sql", json!({"project_id": "x", "sql": "delete from a"}), Some(Class::Database)),
        ("run", json!({"sql": ["select 1", "truncate a"]}), Some(Class::Database)),
        ("web_search", json!({"query": "delete from git history"}), None),
        ("search_docs", json!({"query": "drop table users"}), None),
        ("mcp__ide__executeCode", json!({"code": "import os; os.remove('a.txt')"}), Some(Class::FileDelete)),
        ("run_code", json!({"language": "javascript", "code": "require('fs').rmSync('a')"}), Some(Class::FileDelete)),
        ("mcp__ide__executeCode", json!({"code": "print(1 + 1)"}), None),
        ("custom_terminal_x", json!({"cmd": "rm -rf src"}), Some(Class::FileDelete)),
        ("local_shell", json!({"action": {"type": "exec", "command": ["rm", "-rf", "src"]}}), Some(Class::FileDelete)),
        ("local_shell", json!({"action": {"type": "exec", "command": ["ls", "-la"]}}), None),
        (
            "use_mcp_tool",
            json!({"server_name": "postgres", "tool_name": "query", "arguments": "{\"query\": \"drop table a\"}"}),
            Some(Class::Database),
        ),
        (
            "multi_tool_use.parallel",
            json!({"tool_uses": [
                {"recipient_name": "functions.read_file", "parameters": {"path": "a"}},
                {"recipient_name": "functions.shell", "parameters": {"command": ["git", "push", "-f"]}},
            ]}),
            Some(Class::VcsRemote),
        ),
        (
            "multi_tool_use.parallel",
            json!({"tool_uses": [{"recipient_name": "functions.read_file", "parameters": {"path": "a"}}]}),
            None,
        ),
    ];
    for (tool, input, class) in table {
        let verdict = judged(tool, input, &[], None);
        let classes: Vec<Class> = verdict.effects.iter().map(|effect| effect.class).collect();
        match class {
            Some(class) => assert!(classes.contains(class), "{tool} {input}: {verdict:?}"),
            None => assert_eq!((classes, verdict.needs), (vec![], Needs::Nothing), "{tool} {input}: {verdict:?}"),
        }
    }
}

#[test]
fn verbs_of_writing_in_a_tools_name_warn() {
    let low = [
        "mcp__github__delete_branch",
        "delete_branch",
        "create_refund",
        "volume-delete",
        "mcp__supabase__apply_migration",
        "github/mergePullRequest",
    ];
    for tool in low {
        let verdict = judged(tool, &json!({"id": "x"}), &[], None);
        assert!(verdict.needs.warn(), "{tool}: {verdict:?}");
        assert_eq!(verdict.warnings[0].severity, crate::model::effect::Severity::Low, "{tool}");
    }
    for tool in
        ["get_branch", "list_refunds", "update_plan", "TaskCreate", "create_memory", "deleted_items_view", "ping"]
    {
        assert!(!judged(tool, &json!({"id": "x"}), &[], None).needs.warn(), "{tool}");
    }
    assert!(judged("Write", &json!({"file_path": "~/.bashrc"}), &[], None).needs.warn());
    assert!(!judged("Write", &json!({"file_path": "~/proj/a"}), &[], None).needs.warn());
}
