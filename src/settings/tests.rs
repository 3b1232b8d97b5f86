use super::keys::Key;
use super::*;
use crate::model::effect::{Class, Severity, Stance};
use crate::model::policy::{Guard, Secrets};

fn user(text: &str) -> Sources {
    Sources { user: Some(("u.yaml".into(), text.to_owned())), ..Sources::default() }
}

fn workspace(user: &str, text: &str, trusted: bool) -> Effective {
    let workspace = Some(("/w/.piton.yaml".into(), text.to_owned()));
    resolve(&Sources { workspace, workspace_trusted: trusted, ..self::user(user) }).unwrap()
}

#[test]
fn defaults_set_every_key() {
    let effective = resolve(&Sources::default()).unwrap();
    for key in KEYS {
        assert!(effective.settings.iter().any(|setting| setting.key == key.name), "{} has no default", key.name);
    }
    let policy = effective.policy;
    assert_eq!((policy.guard, policy.limits.file_bytes, policy.limits.files), (Guard::Turn, 10_000_000, 1_000_000));
    assert_eq!((policy.retention.auto_per_run, policy.retention.per_workspace), (20, 50));
    assert_eq!(
        (policy.retention.days, policy.retention.runs_days, policy.retention.orphans),
        (Some(7), Some(90), Some(7))
    );
    assert_eq!(policy.retention.total_bytes, 2_048_000_000);
    assert_eq!(policy.read_only, ["read_only_data_source/"]);
}

#[test]
fn every_key_is_documented() {
    let page = include_str!("../../docs/CONFIG.md");
    for name in KEYS.iter().map(|key| key.name) {
        assert!(page.contains(&format!("`{name}`")), "docs/CONFIG.md does not speak of `{name}`");
    }
}

#[test]
fn keys_of_other_tools_are_refused_with_ours() {
    let page = include_str!("../../docs/CONFIG.md");
    for key in foreign::FOREIGN {
        let row = page.lines().find(|line| line.starts_with(&format!("| {} ", key.tool)) && line.contains(key.name));
        let row = row.unwrap_or_else(|| panic!("docs/CONFIG.md has no row for {} of {}", key.name, key.tool));
        assert!(row.contains(&format!("`{}`", key.ours)), "{row}");
        assert!(KEYS.iter().any(|known| known.name == key.ours), "{}", key.ours);
    }
    for (text, told) in [
        (
            "checkpoints:\n  max_snapshots: 50\n",
            "`checkpoints.max_snapshots` is a key of Hermes; piton's key is `retention.per_workspace`",
        ),
        ("checkpoints:\n  enabled: true\n", "`checkpoints.enabled` is a key of Hermes; piton's key is `guard`"),
        ("trackedFiles: ['*.py']\n", "`trackedFiles` is a key of Hankweave; piton's key is `tracked_files`"),
        ("retention_days: 7\n", "`retention_days` is a key of Hermes; piton's key is `retention.days`"),
        ("checkpoints: true\n", "`checkpoints` is a key of Hermes; piton's key is `guard`"),
        (
            "checkpoint_max_snapshots: 5\n",
            "`checkpoint_max_snapshots` is a key of Hermes; piton's key is `retention.per_workspace`",
        ),
        (
            "retention: {max_total_size_mb: 500}\n",
            "`retention.max_total_size_mb` is a key of Hermes; piton's key is `retention.total_mb`",
        ),
    ] {
        let effective = resolve(&user(text)).unwrap();
        let mistakes: Vec<String> = effective.mistakes.iter().map(Mistake::text).collect();
        assert!(mistakes.iter().any(|mistake| mistake.contains(told)), "{text}: {mistakes:?}");
    }
}

#[test]
fn a_key_of_another_tool_has_the_line_to_write_instead() {
    for (text, told) in [
        ("checkpoints: true\n", "write `guard: turn` instead"),
        ("checkpoints: {enabled: false}\n", "write `guard: \"off\"` instead"),
        ("checkpoints:\n  max_snapshots: 50\n", "write `retention: {per_workspace: 50}` instead"),
        ("retention: {max_total_size_mb: 500}\n", "write `retention: {total_mb: 500}` instead"),
        ("checkpoint_max_snapshots: many\n", "write `retention.per_workspace` instead"),
        ("trackedFiles: ['*.py']\n", "write `tracked_files: [\"*.py\"]` instead"),
    ] {
        let effective = resolve(&user(text)).unwrap();
        let [mistake] = effective.mistakes.as_slice() else { panic!("{text}: {:?}", effective.mistakes) };
        assert_eq!(mistake.error().hint_text(), Some(told), "{text}");
    }
    for name in ["enabled", "limits.enabled", "snapshots", "retention.snapshots"] {
        assert!(foreign::foreign(name).is_none(), "{name}");
    }
}

#[test]
fn layers_and_origins() {
    let sources = Sources {
        environment: vec![("PITON_DEADLINE_MS".into(), "700".into()), ("PITON_HOME".into(), "/x".into())],
        flags: vec![("guard".into(), "action".into())],
        ..user("guard: 'off'\ndeadline_ms: 500\nlimits:\n  file_mb: 20\n")
    };
    let effective = resolve(&sources).unwrap();
    let origin = |key: &str| effective.settings.iter().find(|s| s.key == key).unwrap().origin.to_string();
    assert_eq!(effective.policy.guard, Guard::Action);
    assert_eq!(effective.policy.deadline.as_millis(), 700);
    assert_eq!(origin("guard"), "flag");
    assert_eq!(origin("deadline_ms"), "$PITON_DEADLINE_MS");
    assert_eq!(origin("limits.file_mb"), "u.yaml:4");
    assert_eq!(origin("secrets"), "default");
}

#[test]
fn mistakes_of_the_user_have_a_place_and_a_way_out() {
    let table = [
        ("gaurd: turn\n", "u.yaml:1:8: `gaurd` is not a key; did you mean `guard`?"),
        ("limits:\n  file_mb: ten\n", "u.yaml:2:12: `limits.file_mb` wants a whole number from 1 to 1000000"),
        ("deadline_ms: 0\n", "`deadline_ms` wants a whole number from 1 to 600000"),
        ("guard: sometimes\n", "`guard` wants `turn` or `action` or `off`"),
        (
            "retention:\n  days: 0\n",
            "u.yaml:2:9: `retention.days` wants a whole number of days from 1 to 100000, or `never`",
        ),
        ("watcher: maybe\n", "`watcher` wants `recommended` or `poll` or `none`"),
        ("retention:\n  enabled: yes\n", "`retention.enabled` wants true or false"),
        ("exclude: build\n", "`exclude` wants a list of patterns"),
        ("- a\n- b\n", "must contain keys and values"),
        ("exclude:\n  - *.rs\n", "quote patterns that begin with `*`"),
        ("guard: turn\nguard: off\n", "u.yaml"),
        ("policy:\n  file-delte: {warn: true}\n", "`file-delte`, which is not an effect class"),
        ("a: [1\n", "u.yaml"),
    ];
    for (text, expected) in table {
        let effective = resolve(&user(text)).unwrap();
        let [mistake] = effective.mistakes.as_slice() else { panic!("{text:?}: {:?}", effective.mistakes) };
        assert!(mistake.error().text().contains(expected), "{text:?}: {}", mistake.error().text());
        assert_eq!(mistake.error().code(), Code::BadRequest);
        // Nothing but the key is lost: what it has by default holds.
        let defaults = resolve(&Sources::default()).unwrap().policy;
        assert_eq!((effective.policy.guard, effective.policy.limits), (defaults.guard, defaults.limits), "{text:?}");
    }
}

#[test]
fn a_mistake_costs_its_own_key_and_no_other() {
    let text = "guard: offf\ndeadline_ms: 500\nlimits: {file_mb: big, files: 7}\nexclude: [a, 5, b]\npolicy:\n  cloud: dney\n  \
                database: {severity: hihg, answer: deny}\n  nonsense: ask\n  container: ask\n";
    let effective = resolve(&user(text)).unwrap();
    let policy = &effective.policy;
    assert_eq!((policy.guard, policy.deadline.as_millis()), (Guard::Turn, 500));
    assert_eq!((policy.limits.file_bytes, policy.limits.files), (10_000_000, 7));
    assert_eq!(policy.exclude, ["a", "b"]);
    let answers: Vec<(Class, Option<Stance>)> = policy.classes.iter().map(|rule| (rule.class, rule.answer)).collect();
    assert_eq!(answers, [(Class::Container, Some(Stance::Ask)), (Class::Database, Some(Stance::Deny))]);
    let told: Vec<String> = effective.mistakes.iter().map(Mistake::text).collect();
    for (at, expected) in [
        "u.yaml:1:8: `guard` wants `turn` or `action` or `off`, not \"offf\"; `guard` is `turn` (default)",
        "u.yaml:3:19: `limits.file_mb` wants",
        "u.yaml:4:14: `exclude.1` wants a list of patterns, not 5; this part is ignored, the rest of `exclude` is in force",
        "u.yaml:6:10: `policy.cloud` wants",
        "u.yaml:7:24: `policy.database.severity` wants",
        "u.yaml:8:13: `policy.nonsense` has `nonsense`, which is not an effect class",
    ]
    .iter()
    .enumerate()
    {
        assert!(told[at].starts_with(expected), "{expected}\n{told:#?}");
    }
}

#[test]
fn in_a_process_that_runs_what_was_in_force_stays() {
    let good = "guard: action\ndeadline_ms: 500\nexclude: [x]\npolicy: {cloud: ask, database: deny}\n";
    let before = resolve(&user(good)).unwrap();
    let again = |text: &str| resolve(&Sources { in_force: before.settings.clone(), ..user(text) }).unwrap();
    for (text, guard, deadline) in [
        ("guard: of\ndeadline_ms: 600\n", Guard::Action, 600),
        // The value was for the guard; keys without a line have their defaults again.
        ("gaurd: action\n", Guard::Action, 3000),
        ("gaurd: action\nguard: turn\n", Guard::Turn, 3000),
        ("guard: [\n", Guard::Action, 500),
        ("guard: turn\nguard: off\n", Guard::Action, 500),
    ] {
        let effective = again(text);
        assert_eq!((effective.policy.guard, effective.policy.deadline.as_millis()), (guard, deadline), "{text}");
        assert_eq!(effective.mistakes.len(), 1, "{text}");
    }
    let classes = again("policy: {cloud: aks, container: warn}\n").policy.classes;
    let answers: Vec<(Class, Option<Stance>)> = classes.iter().map(|rule| (rule.class, rule.answer)).collect();
    assert_eq!(answers, [(Class::Cloud, Some(Stance::Ask)), (Class::Container, Some(Stance::Warn))]);
    let unread = Sources { unread: Some(("u.yaml".into(), "is no file".into())), ..Sources::default() };
    assert_eq!(
        resolve(&Sources { in_force: before.settings.clone(), ..unread.clone() }).unwrap().policy.guard,
        Guard::Action
    );
    assert_eq!(resolve(&unread).unwrap().policy.guard, Guard::Turn);
}

#[test]
fn mistakes_in_the_environment_disarm_nothing() {
    let environment =
        [("PITON_GUARD", "offf"), ("PITON_DEADLINE_MS", "9"), ("PITON_GAURD", "off"), ("PITON_OTHER", "1")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let effective = resolve(&Sources { environment, ..user("guard: action\n") }).unwrap();
    assert_eq!((effective.policy.guard, effective.policy.deadline.as_millis()), (Guard::Action, 9));
    let told: Vec<String> = effective.mistakes.iter().map(Mistake::text).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("$PITON_GUARD: `guard` wants") && told[1].contains("did you mean `PITON_GUARD`"));
    assert!(effective.mistakes.iter().all(|mistake| !mistake.is_typed()));
}

#[test]
fn an_empty_variable_is_unset() {
    let environment = KEYS.iter().filter_map(Key::environment).chain(["PITON_GAURD".to_owned()]);
    let environment = environment.map(|name| (name, String::new())).collect();
    let effective = resolve(&Sources { environment, ..user("guard: action\n") }).unwrap();
    assert_eq!((effective.policy.guard, effective.mistakes.len()), (Guard::Action, 0), "{:?}", effective.mistakes);
}

#[test]
fn only_what_is_near_is_proposed() {
    for (name, meant) in [
        ("gaurd", Some("guard")),
        ("gard", Some("guard")),
        ("exlcude", Some("exclude")),
        ("limits.file_bm", Some("limits.file_mb")),
        ("deadline", Some("deadline_ms")),
        ("retention.auto_per_runs", Some("retention.auto_per_run")),
        ("pool", None),
        ("mode", None),
        ("tools", None),
        ("user", None),
        ("cards", None),
        ("x", None),
    ] {
        let found = find(name).err().and_then(|(_, meant)| meant);
        assert_eq!(found, meant, "{name}");
    }
    for (name, is_told) in
        [("PITON_GAURD", true), ("PITON_DEADLINE", true), ("PITON_HOME", false), ("PITON_ROLES", false)]
    {
        assert_eq!(misspelt(name).is_some(), is_told, "{name}");
    }
}

#[test]
fn a_workspace_can_only_widen_until_it_is_trusted() {
    let widening =
        "guard: action\ntracked_files: [src]\nretention: {per_workspace: 90}\npolicy: {database: {severity: high}}\n";
    let effective = workspace("tracked_files: [docs]", widening, false);
    assert_eq!(effective.warnings, Vec::<String>::new());
    assert_eq!((effective.policy.guard, effective.policy.retention.per_workspace), (Guard::Action, 90));
    assert_eq!(effective.policy.classes[0].severity, Some(Severity::High));
    let narrowing = "guard: 'off'\nexclude: ['*.rs']\nsecrets: never\nopaque: ignore\nread_only: [src/]\nlimits: {file_mb: 1}\n\
                     retention: {auto_per_run: 1}\npolicy: {file-delete: {checkpoint: false}}\nrules: [{}]\ntracked_files: ['!src']\n";
    let effective = workspace("", narrowing, false);
    assert_eq!(effective.warnings.len(), 10, "{:#?}", effective.warnings);
    assert!(effective.warnings.iter().all(|warning| warning.contains("piton config trust")));
    assert_eq!(effective.policy.classes, []);
    assert_eq!((effective.policy.guard, effective.policy.secrets), (Guard::Turn, Secrets::Local));
    let trusted = workspace("", narrowing, true);
    assert_eq!(trusted.warnings, Vec::<String>::new());
    assert_eq!((trusted.policy.guard, trusted.policy.classes[0].class), (Guard::Off, Class::FileDelete));
    assert_eq!(trusted.policy.read_only, ["read_only_data_source/", "src/"]);
}

#[test]
fn a_class_without_checkpoints_takes_the_answer_to_collisions_away_and_says_so() {
    for (text, told) in [
        ("policy: {file-delete: {checkpoint: false}}", false),
        ("policy: {collision: deny}", false),
        ("policy: {collision: deny, database: {checkpoint: false}}", false),
        ("policy: {collision: deny, file-delete: {checkpoint: false}}", true),
        ("policy: {collision: ask, vcs-discard: {checkpoint: false}}", true),
    ] {
        let effective = workspace(text, "", false);
        assert_eq!(effective.warnings.iter().any(|text| text.contains("does not apply to")), told, "{text}");
        assert!(effective.mistakes.is_empty(), "{text}");
    }
}

#[test]
fn a_broken_workspace_file_disarms_nothing() {
    for text in ["guard: [", "nonsense: 1\nguard: action\n", "limits: {file_mb: -1}\n"] {
        let effective = workspace("", text, false);
        assert_eq!(effective.warnings.len(), 1, "{text}");
    }
    let capped = workspace("limits: {file_mb: 30}", "limits: {file_mb: 20}", false);
    assert_eq!(capped.policy.limits.file_bytes, 20_000_000);
    let over = workspace("", "limits: {file_mb: 20}", false);
    assert_eq!((over.policy.limits.file_bytes, over.warnings.len()), (10_000_000, 1));
}

#[test]
fn trust_is_of_a_path_and_a_content() {
    let home = tempfile::tempdir().unwrap();
    let file = Path::new("/w/.piton.yaml");
    assert!(!trust::is_trusted(home.path(), file, b"a"));
    trust::trust(home.path(), file, b"a").unwrap();
    assert!(trust::is_trusted(home.path(), file, b"a"));
    assert!(!trust::is_trusted(home.path(), file, b"b"));
    assert!(!trust::is_trusted(home.path(), Path::new("/v/.piton.yaml"), b"a"));
    trust::trust(home.path(), file, b"b").unwrap();
    assert!(!trust::is_trusted(home.path(), file, b"a"));
}

#[test]
fn a_workspace_file_can_only_keep_more() {
    let keeps = |text: &str| {
        let workspace = Some((PathBuf::from("/w/.piton.yaml"), format!("retention: {text}\n")));
        let effective = resolve(&Sources { workspace, ..Sources::default() }).unwrap();
        effective.policy.retention != resolve(&Sources::default()).unwrap().policy.retention
    };
    for text in ["{days: 8}", "{days: never}", "{runs_days: 91}", "{labelled: 500}", "{orphans: never}"] {
        assert!(keeps(text), "{text}");
    }
    let less = ["{days: 6}", "{runs_days: 1}", "{labelled: 1}", "{orphans: 1}"];
    let of_all = ["{total_mb: 9000}", "{total_mb: 1}", "{interval_hours: 1}", "{interval_hours: 99}"];
    for text in less.into_iter().chain(of_all) {
        assert!(!keeps(text), "{text}");
    }
    // Nothing is longer than for ever.
    let sources = Sources {
        workspace: Some(("/w/.piton.yaml".into(), "retention: {days: 99999}\n".into())),
        ..user("retention: {days: never}\n")
    };
    assert_eq!(resolve(&sources).unwrap().policy.retention.days, None);
}

#[test]
fn every_key_has_a_direction_and_the_page_names_it() {
    let page = include_str!("../../docs/CONFIG.md");
    let of = |key: &str| defaults::DIRECTIONS.iter().filter(|known| known.key == key).collect::<Vec<_>>();
    for key in KEYS {
        let [known] = of(key.name)[..] else { panic!("{} has no direction in config/directions.yaml", key.name) };
        let word = format!("{:?}", known.direction).to_lowercase();
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", key.name))).unwrap_or_default();
        let told = row.trim_end_matches(" |").rsplit_once("| ").map(|(_, cell)| cell);
        assert_eq!(told, Some(word.as_str()), "docs/CONFIG.md, {}: {row}", key.name);
    }
    assert_eq!(defaults::DIRECTIONS.len(), KEYS.len(), "a direction of no key");
}

/// Settings of a user's file of which this was in force before.
fn after(record: &str, text: &str) -> Effective {
    let recorded = Some(("u.yaml".into(), record.to_owned()));
    resolve(&Sources { recorded, ..user(text) }).unwrap()
}

#[test]
fn a_change_that_keeps_less_waits_and_all_else_counts_at_once() {
    for (record, text, waits) in [
        ("{}", "guard: 'off'\n", "guard"),
        ("{}", "retention: {auto_per_run: 1}\n", "retention.auto_per_run"),
        ("{}", "retention: {days: 6}\n", "retention.days"),
        (r#"{"retention.days":"never"}"#, "retention: {days: 99999}\n", "retention.days"),
        ("{}", "exclude: ['*.rs']\n", "exclude"),
        (r#"{"exclude":["*.bin","!keep.bin"]}"#, "exclude: ['*.bin']\n", "exclude"),
        (r#"{"exclude":["/data/*","!/data/src/"]}"#, "exclude: ['!/data/src/', '/data/*']\n", "exclude"),
        (r#"{"tracked_files":["docs","src"]}"#, "tracked_files: [docs, src, './!src']\n", "tracked_files"),
        (r#"{"policy":{"cloud":"ask"}}"#, "policy: {cloud: ask, collision: allow}\n", "policy"),
        ("{}", "read_only: [read_only_data_source/, src/]\n", "read_only"),
        ("{}", "tracked_files: [docs]\n", "tracked_files"),
        ("{}", "secrets: never\n", "secrets"),
        ("{}", "limits: {file_mb: 1}\n", "limits.file_mb"),
        ("{}", "retention: {total_mb: 1}\n", "retention.total_mb"),
        ("{}", "rules: [{}]\n", "rules"),
        ("{}", "policy: {file-delete: {checkpoint: false}}\n", "policy"),
        ("{}", "policy: {collision: allow}\n", "policy"),
        // A line that is taken out, and a file that is gone or empty.
        (r#"{"guard":"action"}"#, "deadline_ms: 3000\n", "guard"),
        (r#"{"policy":{"cloud":"deny"}}"#, "", "policy"),
        (
            r#"{"policy":{"cloud":{"checkpoint":true,"severity":"high"}}}"#,
            "policy: {cloud: {severity: high}}\n",
            "policy",
        ),
        (r#"{"retention.enabled":false}"#, "", "retention.enabled"),
    ] {
        let effective = after(record, text);
        let waiting: Vec<_> =
            effective.mistakes.iter().map(|mistake| (mistake.key.as_deref(), mistake.waiting)).collect();
        assert_eq!(waiting, [(Some(waits), Some(Waiting::ForTrust))], "{record} {text}");
        assert!(effective.mistakes[0].text().contains("piton config trust"), "{}", effective.mistakes[0].text());
        let values: serde_json::Map<String, Value> = serde_json::from_str(record).unwrap();
        let kept = effective.settings.iter().find(|setting| setting.key == waits).unwrap();
        let default = resolve(&Sources::default()).unwrap();
        let default = default.settings.iter().find(|setting| setting.key == waits).unwrap().value.clone();
        assert_eq!(kept.value, values.get(waits).cloned().unwrap_or(default), "{record} {text}");
        if waits == "policy" {
            let own = resolve(&user(record)).unwrap().policy;
            assert_eq!(effective.policy.classes, own.classes, "{record} {text}");
            assert_eq!(effective.policy.collision, own.collision, "{record} {text}");
        }
    }
    for (record, text) in [
        ("{}", ""),
        ("{}", "guard: action\nretention: {days: never, auto_per_run: 90, enabled: false}\nwatcher: none\n"),
        (r#"{"guard":"off","exclude":["a"]}"#, ""),
        (r#"{"guard":"off","exclude":["a","b"]}"#, "guard: 'off'\nexclude: [b]\n"),
        ("{}", "policy: {cloud: deny, database: {severity: high}}\n"),
        (r#"{"policy":{"cloud":{"checkpoint":false,"answer":"allow"}}}"#, "policy: {cloud: {checkpoint: true}}\n"),
        ("{}", "backup: include\nrecord: {prompts: 'off'}\n"),
        ("not JSON", "guard: action\n"),
        (r#"{"a_key_of_another_version":1}"#, "guard: action\n"),
    ] {
        let effective = after(record, text);
        assert!(effective.mistakes.is_empty(), "{record} {text}: {:?}", effective.mistakes);
        let own = resolve(&user(text)).unwrap();
        assert_eq!(effective.settings, own.settings, "{record} {text}");
    }
}

#[test]
fn what_is_in_force_is_the_record_of_the_next_change() {
    let text = "guard: action\nretention: {auto_per_run: 1}\nexclude: [x]\n";
    let effective = after(r#"{"exclude":["x"]}"#, text);
    assert_eq!(effective.by_user, r#"{"exclude":["x"],"guard":"action"}"#);
    // A change that was in force at once is compared with from now on.
    let back = after(&effective.by_user, "exclude: [x]\n");
    assert_eq!(back.mistakes[0].key.as_deref(), Some("guard"));
    assert!(back.mistakes[0].text().contains("`guard` is `action` (in force before)"), "{}", back.mistakes[0].text());
}

#[test]
fn a_mistake_keeps_what_guards_more_and_is_reported_as_one() {
    let record = r#"{"guard":"action","retention.days":30}"#;
    let unread = Sources {
        unread: Some(("u.yaml".into(), "is no file".into())),
        recorded: Some(("u.yaml".into(), record.to_owned())),
        ..Sources::default()
    };
    let texts = ["guard: offf\nretention: {days: 30}\n", "guard: [\n"].map(|text| after(record, text));
    for effective in texts.into_iter().chain([resolve(&unread).unwrap()]) {
        assert_eq!((effective.policy.guard, effective.policy.retention.days), (Guard::Action, Some(30)));
        assert!(!effective.is_sound && effective.mistakes.len() == 1, "{:?}", effective.mistakes);
        assert!(effective.mistakes[0].waiting.is_none());
    }
}

#[test]
fn a_variable_that_keeps_less_counts_outside_of_agents_sessions() {
    let environment = [("PITON_GUARD", "off"), ("PITON_RETENTION_DAYS", "90"), ("PITON_DEADLINE_MS", "1")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let sources = Sources { environment, ..user("guard: action\n") };
    let of_a_person = resolve(&Sources { is_agents: Some(|| false), ..sources.clone() }).unwrap();
    assert_eq!((of_a_person.policy.guard, of_a_person.policy.deadline.as_millis()), (Guard::Off, 1));
    let of_an_agent = resolve(&Sources { is_agents: Some(|| true), ..sources }).unwrap();
    let policy = &of_an_agent.policy;
    assert_eq!((policy.guard, policy.deadline.as_millis(), policy.retention.days), (Guard::Action, 3000, Some(90)));
    let waiting: Vec<_> = of_an_agent.mistakes.iter().map(|mistake| mistake.waiting).collect();
    assert_eq!(waiting, [Some(Waiting::OutsideSessions); 2], "{:?}", of_an_agent.mistakes);
}

#[test]
fn the_record_is_beside_the_trusted_files_and_only_the_known_one_is_replaced() {
    let home = tempfile::tempdir().unwrap();
    trust::trust(home.path(), Path::new("/w/.piton.yaml"), b"a").unwrap();
    assert_eq!(trust::recorded(home.path()), None);
    let of = |values: &str| UserRecord { values: values.to_owned(), file: PathBuf::from("/home/x y/config.yaml") };
    let (off, none) = (of("{\"guard\":\"off\"}"), of("{}"));
    trust::record(home.path(), None, &off);
    trust::record(home.path(), None, &none);
    assert_eq!(trust::recorded(home.path()).as_ref(), Some(&off), "another process was first");
    trust::record(home.path(), Some(&off), &none);
    assert_eq!(trust::recorded(home.path()).as_ref(), Some(&none));
    assert!(trust::is_trusted(home.path(), Path::new("/w/.piton.yaml"), b"a"));
    trust::trust(home.path(), Path::new("/v/.piton.yaml"), b"b").unwrap();
    assert_eq!(trust::recorded(home.path()).as_ref(), Some(&none));
    trust::record(&home.path().join("none"), None, &none);
    assert!(!home.path().join("none").exists());
}

#[test]
fn waiting_rules_are_searched_for_mistakes_where_they_are_written() {
    let mut effective = after(r#"{"rules":[{"id":"a"}]}"#, "guard: turn\nrules: [{id: b}]\n");
    assert_eq!(effective.waiting_rules(), Some(r#"[{"id":"b"}]"#));
    assert_eq!(effective.policy.rules_yaml, r#"[{"id":"a"}]"#);
    effective.drop_rule(&["0".to_owned()], "is wrong".to_owned(), true);
    assert!(effective.mistakes[1].text().starts_with("u.yaml:2:9: `rules` is wrong"), "{:?}", effective.mistakes);
    effective.drop_waiting_rules();
    assert_eq!(effective.mistakes.len(), 1);
}
