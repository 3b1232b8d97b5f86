//! `piton config`: reading, explaining and changing one key, and the settings file in an editor.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Lab, Output};

/// Runs piton with further variables.
fn with(lab: &Lab, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.args(args).envs(variables.iter().copied()).output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Returns the value in force of a key.
fn value(lab: &Lab, key: &str) -> Value {
    lab.piton(&["config", "get", key, "--json"]).json()["value"].clone()
}

/// A lab in which the settings in force are recorded, as after the first checkpoint of a person.
fn used_lab() -> Lab {
    let lab = Lab::new();
    lab.write("a.txt", "a\n");
    lab.take("first");
    lab
}

fn user_text(lab: &Lab) -> String {
    std::fs::read_to_string(lab.user_file()).unwrap()
}

/// Makes an editor of a shell script, which gets the file as `$1`.
fn editor(lab: &Lab, script: &str) -> String {
    let path = lab.root().join("editor");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    // Run by its shell: a script that was just written may still be open in a child of another test.
    format!("/bin/sh '{}'", path.display())
}

#[test]
fn get_prints_one_value_and_names_the_key_that_was_meant() {
    let lab = Lab::new();
    let plain = |args: &[&str]| lab.piton(args).stdout;
    assert_eq!(plain(&["config", "get", "guard"]), "turn\n");
    assert_eq!(plain(&["config", "get", "retention.days"]), "7\n");
    assert_eq!(plain(&["config", "get", "read_only"]), "[\"read_only_data_source/\"]\n");
    assert_eq!(plain(&["config", "get", "policy.collision"]), "warn\n");
    let all = lab.piton(&["config", "get", "deadline_ms", "--json"]).json();
    let origin = format!("{}:1", lab.user_file().display());
    assert_eq!(all, json!({ "key": "deadline_ms", "value": 60000, "origin": origin }));
    for (key, code, told) in [
        ("gaurd", 2, "did you mean `guard`?"),
        ("days", 2, "`retention.days`"),
        ("limits", 2, "`limits.file_mb`"),
        ("checkpoints.max_snapshots", 2, "piton's key is `retention.per_workspace`"),
        ("policy.cloud", 3, "`policy.cloud` is not set"),
    ] {
        let refused = lab.piton(&["config", "get", key]);
        assert!(refused.code == code && refused.stderr.contains(told) && refused.stdout.is_empty(), "{refused:?}");
    }
    assert_eq!(lab.piton(&["config", "get", "gaurd", "--json"]).error(), "bad-request");
    // It is the value in force, wherever that comes from.
    assert_eq!(with(&lab, &["config", "get", "guard"], &[("PITON_GUARD", "action")]).stdout, "action\n");
    assert_eq!(plain(&["config", "get", "guard", "--set", "guard=action"]), "action\n");
}

#[test]
fn explain_says_what_a_key_does_and_where_it_is_set() {
    let lab = Lab::new();
    let text = lab.piton(&["config", "explain", "retention.days"]);
    for told in ["Days to keep checkpoints", "7  (default)", "or `never`", "PITON_RETENTION_DAYS", "config trust"] {
        assert!(text.code == 0 && text.stdout.contains(told), "{told}: {text:?}");
    }
    lab.set("guard: action\n");
    let guard = lab.piton(&["config", "explain", "guard", "--json"]).json();
    assert_eq!(
        (&guard["value"], &guard["default"], &guard["direction"]),
        (&json!("action"), &json!("turn"), &json!("more"))
    );
    assert_eq!(guard["accepts"], "`turn` or `action` or `off`");
    assert_eq!(guard["origin"], format!("{}:2", lab.user_file().display()));
    let exclude = lab.piton(&["config", "explain", "exclude", "--json"]).json();
    assert_eq!((&exclude["variable"], &exclude["direction"]), (&Value::Null, &json!("less")));
    let unknown = lab.piton(&["config", "explain", "gaurd"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("did you mean `guard`?"), "{unknown:?}");
}

#[test]
fn path_prints_the_files_that_are_read() {
    let lab = Lab::new();
    let user = lab.user_file().display().to_string();
    assert_eq!(lab.piton(&["config", "path"]).stdout, format!("{user}\n"));
    lab.write(".piton.yaml", "guard: action\n");
    let own = lab.work.join(".piton.yaml").display().to_string();
    let found = lab.piton(&["config", "path", "--json"]).json();
    assert_eq!(found, json!({ "sources": [user, own], "user": user, "workspace": own }));
    std::fs::remove_file(lab.user_file()).unwrap();
    std::fs::remove_file(lab.work.join(".piton.yaml")).unwrap();
    let none = lab.piton(&["config", "path"]);
    assert!(none.code == 3 && none.stdout.is_empty() && none.stderr.contains(&user), "{none:?}");
}

#[test]
fn set_changes_one_value_and_keeps_the_rest_of_the_file() {
    let lab = used_lab();
    let text = "# mine\ndeadline_ms: 60000   # long\n\nretention:\n  # a week\n  days: 7\n\n# last\nexclude:\n  - '*.bin' # large\n";
    std::fs::write(lab.user_file(), text).unwrap();
    assert_eq!(lab.piton(&["config", "trust"]).code, 0);
    std::fs::set_permissions(lab.user_file(), std::fs::Permissions::from_mode(0o640)).unwrap();
    let set = lab.piton(&["config", "set", "retention.days", "30"]);
    assert_eq!((set.code, set.stderr.as_str()), (0, ""), "{set:?}");
    assert!(set.stdout.starts_with("Changed `retention.days` from 7 to 30 in "), "{set:?}");
    assert_eq!(user_text(&lab), text.replace("days: 7", "days: 30"));
    assert_eq!(value(&lab, "retention.days"), 30);
    let set = lab.piton(&["config", "set", "retention.runs_days", "never"]);
    assert!(set.code == 0 && set.stdout.starts_with("Set `retention.runs_days` to never in "), "{set:?}");
    assert_eq!(user_text(&lab), text.replace("  days: 7\n", "  days: 30\n  runs_days: never\n"));
    assert_eq!(lab.piton(&["config", "set", "policy.collision", "deny"]).code, 0);
    assert!(user_text(&lab).ends_with("  - '*.bin' # large\npolicy:\n  collision: deny\n"), "{}", user_text(&lab));
    assert_eq!(value(&lab, "policy.collision"), "deny");
    assert_eq!(lab.piton(&["config", "set", "exclude", "[]"]).code, 0);
    assert_eq!(value(&lab, "exclude"), json!([]));
    assert_eq!(std::fs::metadata(lab.user_file()).unwrap().permissions().mode() & 0o777, 0o640);
    let again = lab.piton(&["config", "set", "retention.days", "30"]);
    assert!(again.code == 3 && again.stdout.contains("already"), "{again:?}");
    // A new file in a new directory.
    std::fs::remove_dir_all(lab.user_file().parent().unwrap()).unwrap();
    let done = lab.piton(&["config", "set", "on_failure", "hold", "--json"]);
    let told = done.json();
    assert_eq!((&told["changed"], &told["value"], &told["in_force"]), (&json!(true), &json!("hold"), &json!("hold")));
    assert_eq!(user_text(&lab), "on_failure: hold\n");
}

#[test]
fn set_refuses_what_would_be_a_mistake_and_writes_nothing() {
    let lab = used_lab();
    let before = user_text(&lab);
    for (key, value, told) in [
        ("gaurd", "turn", "did you mean `guard`?"),
        ("guard", "sometimes", "`guard` wants `turn` or `action` or `off`, not \"sometimes\""),
        ("deadline_ms", "0", "`deadline_ms` wants a whole number from 1 to 600000, not 0"),
        ("exclude", "*.bin", "`exclude` wants a list of patterns"),
        ("policy.clod", "ask", "`clod`"),
        ("rules", "{nonsense: {a: 1}}", "rules"),
        ("checkpoints", "true", "piton's key is `guard`"),
        ("limits", "5", "`limits.file_mb`"),
    ] {
        let refused = lab.piton(&["config", "set", key, value]);
        assert!(refused.code == 2 && refused.stderr.contains(told) && refused.stdout.is_empty(), "{key}: {refused:?}");
        assert_eq!(user_text(&lab), before, "{key}");
    }
    // A broken file is not made worse.
    std::fs::write(lab.user_file(), "guard: [\n").unwrap();
    let broken = lab.piton(&["config", "set", "guard", "turn"]);
    assert!(broken.code == 2 && broken.stderr.contains("config.yaml:"), "{broken:?}");
    // Nor is one whose form is not understood.
    std::fs::write(lab.user_file(), "guard: |-\n  turn\n").unwrap();
    let odd = lab.piton(&["config", "set", "guard", "action"]);
    assert!(odd.code == 5 && odd.stderr.contains("`piton config edit`"), "{odd:?}");
    assert_eq!(user_text(&lab), "guard: |-\n  turn\n");
}

#[test]
fn a_value_that_keeps_less_waits_for_trust_and_is_refused_to_agents() {
    let lab = used_lab();
    let agents = [("PITON_SESSION", "1")];
    let before = user_text(&lab);
    for less in [["guard", "off"], ["retention.days", "1"], ["exclude", "['*.rs']"], ["rules", "[]"]] {
        let refused = with(&lab, &["config", "set", less[0], less[1]], &agents);
        match less[0] {
            // It is the default, so nothing would keep less.
            "rules" => assert_eq!(refused.code, 0, "{refused:?}"),
            key => {
                assert!(refused.code == 5 && refused.stderr.contains(&format!("`{key}`")), "{refused:?}");
                assert_eq!(user_text(&lab), before);
            }
        }
    }
    let edit = with(&lab, &["config", "edit"], &[agents[0], ("EDITOR", "true")]);
    assert_eq!(edit.code, 5, "{edit:?}");
    assert_eq!(with(&lab, &["config", "set", "guard", "action"], &agents).code, 0, "it guards more");
    assert_eq!(value(&lab, "guard"), "action");
    let waits = lab.piton(&["config", "set", "guard", "off"]);
    assert!(waits.code == 4 && waits.stdout.contains("`piton config trust`"), "{waits:?}");
    assert_eq!(value(&lab, "guard"), "action");
    assert_eq!(lab.piton(&["config", "set", "guard", "off", "--json"]).json()["waits"], true);
    assert_eq!(lab.piton(&["config", "trust"]).code, 0);
    assert_eq!(value(&lab, "guard"), "off");
}

#[test]
fn a_value_that_another_layer_overrules_is_said() {
    let lab = used_lab();
    let set = with(&lab, &["config", "set", "guard", "action"], &[("PITON_GUARD", "turn")]);
    assert!(set.code == 0 && set.stderr.contains("`guard` is still turn ($PITON_GUARD)"), "{set:?}");
    assert_eq!(value(&lab, "guard"), "action");
}

#[test]
fn set_writes_the_file_of_a_workspace() {
    let lab = used_lab();
    let own = lab.work.join(".piton.yaml");
    std::fs::create_dir(lab.work.join("sub")).unwrap();
    let before = user_text(&lab);
    let set = lab.piton_in(&lab.work.join("sub"), &["config", "set", "guard", "action", "--workspace"]);
    assert_eq!(set.code, 0, "{set:?}");
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "guard: action\n");
    assert_eq!(std::fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o644);
    // The option may name the workspace, also before the verb.
    let work = lab.work.display().to_string();
    let elsewhere = lab.piton_in(&lab.home, &["-w", &work, "config", "set", "retention.days", "90"]);
    assert_eq!(elsewhere.code, 0, "{elsewhere:?}");
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "guard: action\nretention:\n  days: 90\n");
    assert_eq!((value(&lab, "guard"), value(&lab, "retention.days")), (json!("action"), json!(90)));
    let waits = lab.piton(&["config", "set", "exclude", "['*.log']", "--workspace"]);
    assert!(waits.code == 4 && waits.stdout.contains("`piton config trust`"), "{waits:?}");
    assert_eq!(value(&lab, "exclude"), json!([]));
    let refused = with(&lab, &["config", "set", "guard", "off", "--workspace"], &[("PITON_SESSION", "1")]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert_eq!(user_text(&lab), before);
    let missing = lab.piton(&["config", "set", "guard", "turn", "--workspace", "nowhere"]);
    assert!(missing.code == 2 && missing.stderr.contains("nowhere"), "{missing:?}");
    // A link could lead to a foreign file.
    std::fs::remove_file(&own).unwrap();
    symlink(lab.user_file(), &own).unwrap();
    let link = lab.piton(&["config", "set", "guard", "turn", "--workspace"]);
    assert!(link.code == 2 && link.stderr.contains("symbolic link"), "{link:?}");
    assert_eq!(user_text(&lab), before);
}

#[test]
fn a_link_to_the_users_file_stays_a_link() {
    let lab = used_lab();
    let real = lab.home.join("dotfiles.yaml");
    std::fs::rename(lab.user_file(), &real).unwrap();
    symlink(&real, lab.user_file()).unwrap();
    assert_eq!(lab.piton(&["config", "set", "guard", "action"]).code, 0);
    assert!(lab.user_file().is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().ends_with("guard: action\n"));
}

#[test]
fn edit_opens_the_file_and_reports_mistakes() {
    let lab = used_lab();
    let edit = |script: &str| {
        let editor = editor(&lab, script);
        with(&lab, &["config", "edit"], &[("VISUAL", &editor), ("EDITOR", "false")])
    };
    let good = edit("echo 'guard: action' >> \"$1\"");
    assert!(good.code == 0 && good.stdout.contains("config.yaml"), "{good:?}");
    assert_eq!(value(&lab, "guard"), "action");
    let wrong = edit("echo 'gaurd: off' >> \"$1\"");
    assert!(
        wrong.code == 2 && wrong.stderr.contains("config.yaml:3:8: `gaurd` is not a key; did you mean `guard`?"),
        "{wrong:?}"
    );
    let less = edit("echo 'guard: off' > \"$1\"");
    assert!(less.code == 4 && less.stderr.contains("piton config trust"), "{less:?}");
    let failed = edit("exit 3");
    assert!(failed.code == 1 && failed.stderr.contains("failed"), "{failed:?}");
    let program = |name: &str| with(&lab, &["config", "edit"], &[("EDITOR", name)]);
    assert!(program("/no/such/editor").stderr.contains("set VISUAL or EDITOR"));
}

#[test]
fn edit_makes_a_new_file_of_the_commented_defaults() {
    let lab = used_lab();
    std::fs::remove_file(lab.user_file()).unwrap();
    assert_eq!(lab.piton(&["config", "trust"]).code, 0);
    let seen: PathBuf = lab.root().join("seen");
    let edit = |script: &str, more: &[&str]| {
        let editor = editor(&lab, script);
        let args = [&["config", "edit"], more].concat();
        with(&lab, &args, &[("EDITOR", &editor)])
    };
    let looked = edit(&format!("cp \"$1\" '{}'", seen.display()), &[]);
    assert!(looked.code == 3 && !lab.user_file().exists(), "{looked:?}");
    let text = std::fs::read_to_string(&seen).unwrap();
    for line in ["#guard: turn", "#  file_mb: 10", "#exclude: []"] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
    let changed = edit("sed -i 's/^#guard: turn/guard: action/' \"$1\"", &[]);
    assert_eq!(changed.code, 0, "{changed:?}");
    assert_eq!(value(&lab, "guard"), "action");
    // Setting a key keeps the comments.
    assert_eq!(lab.piton(&["config", "set", "guard", "turn"]).code, 4);
    assert_eq!(user_text(&lab), text.replace("#guard: turn", "guard: turn"));
    let own = edit("echo 'guard: action' >> \"$1\"", &["--workspace"]);
    assert_eq!(own.code, 4, "the user's guard still waits: {own:?}");
    assert!(std::fs::read_to_string(lab.work.join(".piton.yaml")).unwrap().ends_with("guard: action\n"));
}

#[test]
fn a_key_of_another_tool_is_answered_with_the_line_to_write() {
    let lab = used_lab();
    for (text, told) in [
        ("checkpoints: true\n", "write `guard: turn` instead"),
        ("checkpoints:\n  max_snapshots: 30\n", "write `retention: {per_workspace: 30}` instead"),
        ("checkpoint_max_snapshots: 30\n", "write `retention: {per_workspace: 30}` instead"),
        ("retention: {max_total_size_mb: 500}\n", "write `retention: {total_mb: 500}` instead"),
    ] {
        std::fs::write(lab.user_file(), text).unwrap();
        let check = lab.piton(&["config", "check"]);
        assert!(check.code == 2 && check.stderr.contains(told), "{text}: {check:?}");
    }
}
