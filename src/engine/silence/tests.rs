use std::cell::RefCell;
use std::fs;

use super::*;
use crate::model::run::run_id;
use crate::sys::clock::rfc3339;

type PlaceOf = fn(&Scenery) -> String;

/// A home with sessions of clients, and a workspace.
struct Scenery {
    dir: tempfile::TempDir,
    home: Home,
    root: PathBuf,
}

impl Scenery {
    fn new() -> Scenery {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("project.one");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("part")).unwrap();
        fs::write(root.join("a"), "a").unwrap();
        Scenery { home: Home::at(&base.join("piton")).unwrap(), root, dir }
    }

    fn user(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("user")
    }

    fn put(&self, path: &str, lines: &[String]) {
        let path = self.user().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, lines.concat()).unwrap();
    }

    fn look(&self) -> Vec<(Client, i64)> {
        let scene = Scene { home: &self.home, root: &self.root, workspace: None };
        look_with(&scene, &self.user(), &|_| None).into_iter().map(|one| (one.client, one.since)).collect()
    }

    fn dashed(&self) -> String {
        let text = self.root.to_string_lossy().into_owned();
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
    }

    fn claude(cwd: &Path, at: &[i64]) -> Vec<String> {
        let line = |at: &i64| {
            format!(
                "{{\"type\":\"assistant\",\"cwd\":{},\"timestamp\":\"{}\",\"message\":{{\"content\":[{{\"type\":\"tool_use\",\"name\":\"Bash\"}}]}}}}\n",
                serde_json::to_string(cwd).unwrap(),
                rfc3339(*at)
            )
        };
        at.iter().map(line).collect()
    }
}

#[test]
fn acts_in_the_sessions_of_a_workspace_are_found_and_others_are_not() {
    let scenery = Scenery::new();
    assert_eq!(scenery.look(), []);
    let first = now_ms() - 60_000;
    let times = [first, first + 5000];
    fs::write(scenery.root.join("a"), "b").unwrap();
    let (place, root) = (format!(".claude/projects/{}", scenery.dashed()), scenery.root.clone());
    // A session of a neighbour whose name begins the same, and one in a project within this one.
    fs::create_dir_all(root.join("inner/.git")).unwrap();
    scenery.put(&format!("{place}-two/s.jsonl"), &Scenery::claude(&root.with_file_name("project.one.two"), &times));
    scenery.put(&format!("{place}-inner/s.jsonl"), &Scenery::claude(&root.join("inner"), &times));
    assert_eq!(scenery.look(), []);
    scenery.put(&format!("{place}-part/s.jsonl"), &Scenery::claude(&root.join("part"), &times));
    assert_eq!(scenery.look(), [(Client::ClaudeCode, first)]);
    // A long session is read from its end alone.
    let long = "x".repeat(300_000) + "\n";
    scenery.put(&format!("{place}-part/s.jsonl"), &[vec![long], Scenery::claude(&root, &times)].concat());
    assert_eq!(scenery.look(), [(Client::ClaudeCode, first)]);
    // Since the file that holds the hooks was written, nothing was missed.
    scenery.put(".claude/settings.json", &["{}".to_owned()]);
    assert_eq!(scenery.look(), []);
}

#[test]
fn each_client_keeps_its_sessions_in_its_own_place() {
    let first = now_ms() - 60_000;
    let time = rfc3339(first);
    let act = |root: &str, client: Client| -> Vec<String> {
        let head = match client {
            Client::Codex => format!(r#"{{"type":"session_meta","payload":{{"cwd":"{root}"}}}}"#),
            Client::CopilotCli => format!(r#"{{"type":"session.start","data":{{"context":{{"cwd":"{root}"}}}}}}"#),
            Client::Pi => format!(r#"{{"type":"session","cwd":"{root}"}}"#),
            _ => r#"{"type":"start"}"#.to_owned(),
        };
        let line = match client {
            Client::Codex => {
                format!(
                    r#"{{"timestamp":"{time}","type":"response_item","payload":{{"type":"function_call","name":"exec_command"}}}}"#
                )
            }
            Client::CopilotCli => {
                format!(r#"{{"type":"tool.execution_start","timestamp":"{time}","data":{{"toolName":"bash"}}}}"#)
            }
            Client::GeminiCli => {
                format!(r#"{{"type":"gemini","timestamp":"{time}","toolCalls":[{{"name":"write_file"}}]}}"#)
            }
            Client::QwenCode => {
                format!(r#"{{"timestamp":"{time}","message":{{"parts":[{{"functionCall":{{"name":"edit"}}}}]}}}}"#)
            }
            Client::Pi => {
                format!(r#"{{"timestamp":"{time}","message":{{"content":[{{"type":"toolCall","name":"bash"}}]}}}}"#)
            }
            _ => format!(r#"{{"timestamp":"{time}","message":{{"content":[{{"type":"tool_use","name":"Edit"}}]}}}}"#),
        };
        vec![head + "\n", line + "\n"]
    };
    let places: [(Client, PlaceOf); 7] = [
        (Client::Codex, |_| ".codex/sessions/2026/11/27/rollout-1.jsonl".to_owned()),
        (Client::CopilotCli, |_| ".copilot/session-state/1f/events.jsonl".to_owned()),
        (Client::GeminiCli, |_| ".gemini/tmp/project-one/chats/session-1.jsonl".to_owned()),
        (Client::QwenCode, |scenery| format!(".qwen/projects/{}/chats/1.jsonl", scenery.dashed())),
        (Client::Droid, |scenery| format!(".factory/sessions/{}/1.jsonl", scenery.dashed())),
        (Client::ClaudeCode, |scenery| format!(".claude/projects/{}/1.jsonl", scenery.dashed())),
        (Client::Pi, |scenery| {
            format!(".pi/agent/sessions/--{}--/1.jsonl", scenery.root.to_string_lossy()[1..].replace('/', "-"))
        }),
    ];
    for (client, place) in places {
        let scenery = Scenery::new();
        let root = scenery.root.to_string_lossy().into_owned();
        scenery.put(&place(&scenery), &act(&root, client));
        if client == Client::GeminiCli {
            assert_eq!(scenery.look(), [], "its place alone does not tell the project");
            scenery.put(".gemini/tmp/project-one/.project_root", &[root]);
        }
        assert_eq!(scenery.look(), [(client, first)], "{client:?}");
    }
}

#[test]
fn a_large_tree_and_a_missing_one_are_no_trouble() {
    let scenery = Scenery::new();
    let missing = scenery.root.join("missing");
    assert_eq!(changed_since(None, &missing, 0).unwrap(), [0; 0]);
    let now = now_ms();
    assert_eq!(changed_since(None, &scenery.root, now + 60_000).unwrap(), [0; 0]);
    assert!(!changed_since(None, &scenery.root, now - 60_000).unwrap().is_empty());
    for n in 0..600 {
        fs::write(scenery.root.join(format!("f{n}")), "").unwrap();
    }
    assert!(changed_since(None, &scenery.root, now - 60_000).unwrap().len() <= 256);
    // Sessions without end are looked at in part.
    let looked = RefCell::new(0);
    let belongs = |_: &Path| {
        *looked.borrow_mut() += 1;
        true
    };
    let times: Vec<i64> = (0..50).map(|n| now - 60_000 + n).collect();
    for n in 0..40 {
        let place = format!(".claude/projects/{}/{n}.jsonl", scenery.dashed());
        scenery.put(&place, &Scenery::claude(&scenery.root, &times));
    }
    let place = Place { home: &scenery.user(), root: &scenery.root, belongs: &belongs, variable: &|_| None };
    assert_eq!(place.acts(Client::ClaudeCode, now - 3_600_000).len(), 16 * 50);
    assert_eq!(run_id("claude-code.s"), "claude-code.s", "an open action is found by the beginning of its run's id");
}
