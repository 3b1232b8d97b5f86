//! Databases that a process has open: a restore says so before it replaces or deletes them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{Asking, Lab, Sidecar, id_of};

/// A process that has a file open until its input ends.
struct Holder(Child);

impl Holder {
    fn of(lab: &Lab, path: &str) -> Holder {
        let mut shell = lab.command("sh", &lab.work);
        shell.args(["-c", &format!("exec 3<>{path}; echo open; read word")]);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "open\n");
        Holder(shell)
    }

    /// The sentence about the process.
    fn sentence(&self, path: &str) -> String {
        let (command, pid) = (format!("sh -c exec 3<>{path}; echo open; read word"), self.0.id());
        format!("`{path}` is open in `{command}` (pid {pid}); stop it first, or it might write into the old file")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn messages(reply: &Value) -> Vec<&str> {
    let warnings = reply["warnings"].as_array().into_iter().flatten();
    warnings.map(|warning| warning["message"].as_str().unwrap_or("?")).filter(|text| text.contains("open in")).collect()
}

#[test]
fn a_database_that_is_open_is_said_before_it_is_replaced_or_deleted() {
    let lab = Lab::new();
    lab.write("dev.sqlite", "first\n");
    lab.write("notes.txt", "first\n");
    let n = lab.take("first");
    let sha = id_of(&lab, n);
    for path in ["dev.sqlite", "new.db", "notes.txt"] {
        lab.write(path, "second\n");
    }
    let held = ["dev.sqlite", "new.db"].map(|path| Holder::of(&lab, path));
    let _text = Holder::of(&lab, "notes.txt");
    let said: Vec<String> = ["dev.sqlite", "new.db"].iter().zip(&held).map(|(path, one)| one.sentence(path)).collect();
    let all = |text: &str| said.iter().all(|sentence| text.contains(sentence.as_str()));
    let number = n.to_string();
    let preview = lab.piton(&["restore", &number, "--preview"]).stdout;
    assert!(all(&preview) && !preview.contains("`notes.txt` is open"), "{preview}");
    // Named paths alone count.
    let other = lab.piton(&["restore", &number, "notes.txt", "--preview"]).stdout;
    assert!(!other.contains("open in"), "{other}");
    let mut sidecar = Sidecar::start(&lab, &[]);
    for request in ["rollback.preview", "restore"] {
        let (mut found, reply) = (said.clone(), sidecar.ask(json!({"type": request, "sha": sha})));
        found.sort();
        let mut told = messages(&reply);
        told.sort_unstable();
        assert_eq!(told, found, "{request}: {reply}");
    }
    assert_eq!((lab.read("dev.sqlite").as_str(), lab.work.join("new.db").exists()), ("first\n", false));
    // The processes still have the old files, which have no name any more: the new ones are in nobody's hands.
    let undo = json!({"type": "undo", "preview": true});
    assert_eq!(messages(&sidecar.ask(undo.clone())), Vec::<&str>::new());
    let again = Holder::of(&lab, "dev.sqlite");
    assert_eq!(messages(&sidecar.ask(undo)), [again.sentence("dev.sqlite")]);
    assert_eq!(sidecar.finish(), 0);
    let asked = Asking::start(&lab, &["undo"]).answer("y");
    let shown = asked.stdout.replace('\n', " ");
    assert_eq!(shown.matches(&again.sentence("dev.sqlite")).count(), 1, "{asked:?}");
    assert!(!asked.stderr.contains("open in"), "it was said before: {asked:?}");
    let preview = lab.piton(&["redo", "--preview"]).stdout;
    assert!(!preview.contains("open in"), "{preview}");
    let held = Holder::of(&lab, "new.db");
    let preview = lab.piton(&["redo", "--preview"]).stdout;
    assert!(preview.contains(&held.sentence("new.db")), "{preview}");
    drop(held);
    assert!(!lab.piton(&["redo", "--preview"]).stdout.contains("open in"));
}
