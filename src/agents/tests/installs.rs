//! The files of each client, as an installation writes them.

use serde_json::Value;

use super::install::command;
use super::presence::{HookCall, Presence};
use super::*;
use crate::error::Code;

fn all() -> impl Iterator<Item = (Client, HookFile)> {
    Client::ALL.into_iter().flat_map(|client| {
        let both = client.files(false).iter().chain(client.files(true));
        both.map(move |file| (client, *file)).collect::<Vec<_>>()
    })
}

const PROGRAM: &str = "/opt/p i/piton";

#[test]
fn absent_files_come_and_go() {
    for (client, file) in all() {
        for text in [None, Some(""), Some(" \n")] {
            let merged = file.merge(client, PROGRAM, text).unwrap();
            assert!(merged.ends_with('\n') && merged.contains("piton"), "{} {:?}", client.name(), file.spot);
            assert_eq!(file.merge(client, PROGRAM, Some(&merged)).unwrap(), merged, "twice is once");
            assert_eq!(file.remove(client, &merged).unwrap(), None, "{} {merged}", client.name());
            // Another place of the program, and back.
            let moved = file.merge(client, "/usr/bin/piton", Some(&merged)).unwrap();
            assert_eq!(file.merge(client, PROGRAM, Some(&moved)).unwrap(), merged);
        }
    }
}

/// Every hooked event is one that is read, and the client's time for it is longer than twice piton's own deadline.
#[test]
fn hooks_are_events() {
    for (client, file) in all() {
        match file.content {
            FileContent::Json(hooks) | FileContent::Yaml(hooks) | FileContent::Toml(hooks) => {
                for hook in hooks.hooks {
                    let step = profile(client).shape.step(hook.event);
                    assert!(step.is_some_and(|step| step != Moment::Unused), "{} {}", client.name(), hook.event);
                    assert_eq!(client.patience(hook.event).as_secs(), hook.seconds);
                    assert!(hook.seconds >= 6 || step == Some(Moment::SessionEnd), "{} {}", client.name(), hook.event);
                }
            }
            FileContent::Script { event } => assert!(profile(client).shape.step(event).is_some()),
            FileContent::Whole(_) | FileContent::Shim(_) => {}
        }
    }
}

/// Returns true for a command that calls piton, and notes where that cannot be started.
fn is_noted(command: &str, call: &str) -> bool {
    let noted = command.strip_prefix(call).and_then(|rest| rest.strip_prefix(" || sh -c '"));
    noted.is_some_and(|rest| rest.ends_with("' || :") && rest.matches('\'').count() == 1 && rest.contains("unstarted"))
}

#[test]
fn what_is_written() {
    let settings = Client::GeminiCli.files(false)[0].merge(Client::GeminiCli, PROGRAM, None).unwrap();
    let value: Value = serde_json::from_str(&settings).unwrap();
    let hook = &value["hooks"]["BeforeTool"][0]["hooks"][0];
    assert!(is_noted(hook["command"].as_str().unwrap(), "'/opt/p i/piton' hook gemini-cli BeforeTool"), "{hook}");
    let after = &value["hooks"]["AfterTool"][0]["hooks"][0];
    assert_eq!(after["command"], "'/opt/p i/piton' hook gemini-cli AfterTool || :");
    assert_eq!(hook["timeout"], 10_000);
    let hooks = Client::CopilotCli.files(false)[0].merge(Client::CopilotCli, PROGRAM, None).unwrap();
    let value: Value = serde_json::from_str(&hooks).unwrap();
    assert_eq!((&value["version"], &value["hooks"]["preToolUse"][0]["timeoutSec"]), (&1.into(), &10.into()));
    let plugin = Client::Opencode.files(false)[0].merge(Client::Opencode, "/a\"b/piton", None).unwrap();
    assert!(plugin.contains(r#"const PITON = "/a\"b/piton""#));
    assert!(plugin.contains("opencode tool.execute.before $(pwd)") && !plugin.contains("@NOTE@"), "{plugin}");
    let script = Client::Cline.files(false)[3].merge(Client::Cline, PROGRAM, None).unwrap();
    assert!(is_noted(script.lines().last().unwrap(), "'/opt/p i/piton' hook cline PreToolUse"), "{script}");
    assert_eq!(command("/it's/piton", Client::Pi, "input"), "'/it'\\''s/piton' hook pi input");
}

/// Clients that run a command by a shell get one that ends well without piton. Codex and Hermes Agent go on by themselves, and would ask
/// the person again about a changed command.
#[test]
fn a_missing_piton_ends_well() {
    for (client, file) in all() {
        let merged = file.merge(client, PROGRAM, None).unwrap();
        let plain = merged.matches(&format!(" hook {} ", client.name())).count();
        let wanted = match client {
            Client::Codex | Client::HermesAgent => 0,
            _ => plain,
        };
        assert_eq!(merged.matches(" || :").count(), wanted, "{} {merged}", client.name());
    }
}

/// Claude Code takes a failing hook before an action for a veto, if the action is to wait when piton fails. No other hook and no other
/// client does.
#[test]
fn a_failing_hook_holds_where_that_is_wanted() {
    for (client, file) in all() {
        let (plain, held) = (file, file.holding());
        let (before, after) = (plain.merge(client, PROGRAM, None).unwrap(), held.merge(client, PROGRAM, None).unwrap());
        let is_able = client == Client::ClaudeCode && matches!(file.content, FileContent::Json(_));
        assert_eq!(before != after, is_able, "{}", client.name());
        // Each form becomes the other one, and goes without a trace.
        assert_eq!(held.merge(client, PROGRAM, Some(&before)).unwrap(), after);
        assert_eq!(plain.merge(client, PROGRAM, Some(&after)).unwrap(), before);
        assert_eq!((held.remove(client, &before).unwrap(), plain.remove(client, &after).unwrap()), (None, None));
        if !is_able {
            continue;
        }
        let value: Value = serde_json::from_str(&after).unwrap();
        for (event, groups) in value["hooks"].as_object().unwrap() {
            let hook = &groups[0]["hooks"][0];
            let ends_well = hook["command"].as_str().unwrap().ends_with(" || :");
            let holds = (hook["onFailure"] == "block").then(|| assert!(!ends_well, "{event}")).is_some();
            assert_eq!((holds, ends_well), (event == "PreToolUse", event != "PreToolUse"), "{event}");
        }
    }
}

/// An installation of before the commands ended well is found, renewed, and taken out byte for byte.
#[test]
fn an_older_installation_is_renewed() {
    let theirs = "{\n  // mine\n  \"a\": 1,\n}\n";
    for (client, file) in all() {
        let before = match file.content {
            FileContent::Json(_) => Some(theirs),
            FileContent::Toml(_) => Some("# mine\na = 1"),
            _ => None,
        };
        let new = file.merge(client, PROGRAM, before).unwrap();
        // Commands before an action have had the plain end, too.
        let plain = new.split(" || sh -c '").map(|part| match part.split_once("' || :") {
            Some((note, rest)) if note.starts_with("for d in") => format!(" || :{rest}"),
            _ => part.to_owned(),
        });
        let plain = plain.collect::<String>();
        if plain != new {
            assert!(
                matches!(file.presence(client, PROGRAM, Some(&plain)).unwrap(), Presence::Stale(_)),
                "{}",
                client.name()
            );
            assert_eq!(file.merge(client, PROGRAM, Some(&plain)).unwrap(), new, "{}", client.name());
        }
        let mut old = plain.replace(" || :", "");
        if let FileContent::Script { .. } = file.content {
            old = old.replace("\n'/opt", "\nexec '/opt");
        }
        if old == new {
            continue;
        }
        let calls = |text: &str| match file.presence(client, PROGRAM, Some(text)).unwrap() {
            Presence::None => panic!("{} {text}", client.name()),
            Presence::Current(calls) => (true, calls),
            Presence::Stale(calls) => (false, calls),
        };
        let ((is_current, told), (is_old_current, older)) = (calls(&new), calls(&old));
        assert!(is_current && !is_old_current, "{}", client.name());
        let called = |calls: &[HookCall]| -> Vec<_> {
            calls.iter().map(|call| (call.program.clone(), call.event.clone())).collect()
        };
        assert_eq!(called(&told), called(&older), "{}", client.name());
        assert!(!told.is_empty() && told.iter().all(|call| call.program == PROGRAM), "{told:?}");
        assert_eq!(file.merge(client, PROGRAM, Some(&old)).unwrap(), new, "{}", client.name());
        assert_eq!(file.remove(client, &old).unwrap().as_deref(), before, "{}", client.name());
        assert_eq!(file.remove(client, &new).unwrap().as_deref(), before, "{}", client.name());
    }
}

#[test]
fn a_file_of_somebody_else_is_left() {
    let file = Client::Cline.files(false)[0];
    let theirs = "#!/bin/sh\necho mine\n";
    let error = file.merge(Client::Cline, PROGRAM, Some(theirs)).unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
    assert_eq!(file.remove(Client::Cline, theirs).unwrap().as_deref(), Some(theirs));
}

/// A text must name no command that the client does not have: the data agrees with the files that are installed.
#[test]
fn commands_are_those_that_are_installed() {
    for client in Client::ALL {
        let mut installed = Vec::new();
        for file in client.files(false) {
            let name = file.spot.path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
            match file.content {
                FileContent::Whole(_) if ["rollback", "undo"].contains(&name) => installed.push(name),
                FileContent::Shim(text) if text.contains("registerCommand") => {
                    installed.extend(["rollback", "undo"].iter().filter(|name| text.contains(&format!("\"{name}\""))));
                }
                _ => {}
            }
        }
        assert_eq!(client.commands(), installed, "{}", client.name());
    }
}
