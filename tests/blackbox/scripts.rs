//! Scripts of the workspace that an action runs.

use serde_json::json;

use crate::support::{Lab, Sidecar};

#[test]
fn what_a_script_destroys_can_be_had_back() {
    let lab = Lab::new();
    lab.write(".gitignore", "cache/\n");
    lab.write("cache/a", "kept nowhere else");
    lab.write("f", "1");
    lab.write("scripts/reset.sh", "#!/bin/bash\nset -e\nrm -rf \"$1\"\npsql app -c 'DROP TABLE users'\n");
    lab.write("package.json", r#"{"scripts": {"reset": "rm -rf cache"}}"#);
    lab.write("Makefile", "OUT = cache\nreset:\n\t-rm -rf $(OUT)\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "s"}));
    for (turn, line) in ["bash scripts/reset.sh cache", "npm run reset", "make reset"].into_iter().enumerate() {
        let reply = sidecar.ask(json!({"type": "shell.before", "command": line, "turn": format!("t{turn}")}));
        let effects = reply["effects"].as_array().unwrap();
        assert!(
            effects.iter().any(|effect| effect["class"] == "file-delete" && effect["target"] == "cache"),
            "{reply}"
        );
        assert_eq!(reply["confidence"], "opaque", "{reply}");
        let warned = reply["warnings"].as_array().unwrap().iter().any(|warning| warning["class"] == "database");
        assert_eq!(warned, turn == 0, "{reply}");
        std::fs::remove_dir_all(lab.work.join("cache")).unwrap();
        let n = reply["checkpoint"]["n"].as_u64().unwrap_or_else(|| panic!("{reply}"));
        lab.restore(n, &["cache"]);
        assert_eq!(lab.read("cache/a"), "kept nowhere else");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn files_that_are_no_short_text_stay_unseen() {
    let lab = Lab::new();
    lab.sh("mkfifo pipe.sh && mkdir dir.sh && ln -s loop.sh loop.sh && printf 'rm x\\n\\377' > binary.sh");
    lab.write("large.sh", format!("rm x\n{}", "#".repeat(64 << 10)));
    lab.write("later.sh", "rm x\n");
    for name in ["pipe.sh", "dir.sh", "loop.sh", "binary.sh", "large.sh", "none.sh"] {
        let verdict = lab.piton(&["classify", "--json", &format!("sh {name}")]).json();
        let classes: Vec<&str> =
            verdict["effects"].as_array().unwrap().iter().filter_map(|e| e["class"].as_str()).collect();
        assert_eq!((classes.as_slice(), &verdict["confidence"]), (&["exec-opaque"][..], &json!("opaque")), "{name}");
    }
    let verdict = lab.piton(&["classify", "--json", "sh later.sh"]).json();
    assert_eq!(verdict["effects"].as_array().unwrap().len(), 2, "{verdict}");
}
