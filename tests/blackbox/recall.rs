//! What an action destroys is in a checkpoint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Lab, Sidecar, tree};

fn status(reply: &Value) -> &str {
    reply["checkpoint"]["status"].as_str().unwrap_or("?")
}

/// What a checkpoint holds at a path.
fn held(lab: &Lab, checkpoint: &str, path: &str) -> String {
    lab.piton(&["show", &format!("{checkpoint}:{path}")]).stdout
}

#[test]
fn what_is_taken_beside_another_job_waits_for_the_lock_of_the_workspace() {
    let lab = Lab::new();
    lab.write("victim", "x");
    let n = lab.take("first");
    let workspaces = std::fs::read_dir(lab.home.join("piton/workspaces")).unwrap();
    let records: Vec<PathBuf> = workspaces.map(|entry| entry.unwrap().path()).collect();
    let record = records.iter().find(|dir| dir.join("lock").exists()).unwrap();
    let mut sidecar = Sidecar::start(&lab, &[]);
    let hello = sidecar.ask(json!({"type": "hello"}));
    assert_eq!(hello["ok"], true);
    sidecar.ask(json!({"type": "checkpoint.create", "label": "everything is read"}));
    // Much that was never read, so that comparing with it takes its time. That job needs no lock.
    for n in 0..40 {
        let file = std::fs::File::create(lab.work.join(format!("big{n}"))).unwrap();
        file.set_len(9_000_000).unwrap();
        std::io::Write::write_all(&mut &file, format!("{n}").as_bytes()).unwrap();
    }
    lab.write("victim", "changed");
    let lock = std::fs::File::options().read(true).write(true).open(record.join("lock")).unwrap();
    lock.lock().unwrap();
    let written = || (files(&lab.store().join("refs")), std::fs::read(record.join("log")).unwrap_or_default());
    let before = written();
    let diff = json!({"type": "checkpoint.diff", "id": "diff", "from": n.to_string()});
    let action = json!({"type": "shell.before", "id": "action", "command": "rm victim", "deadline_ms": 2500});
    sidecar.send_raw(format!("{diff}\n{action}\n").as_bytes());
    let late = sidecar.reply("action");
    let after = written();
    lock.unlock().unwrap();
    assert_eq!((status(&late), &late["checkpoint"]["id"]), ("late", &Value::Null), "{late}");
    assert!(before == after, "nothing was written while somebody else held the lock");
    let settled = sidecar.notice(|notice| notice["notice"] == "checkpoint.settled");
    let taken = settled["checkpoint"]["id"].as_str().unwrap().to_owned();
    assert_eq!(held(&lab, &taken, "victim"), "changed");
    let compared = sidecar.reply("diff");
    assert_eq!(compared["ok"], true, "{compared}");
    assert_eq!(sidecar.finish(), 0);
}

/// All files below a directory, with what they hold.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    tree(dir).into_iter().filter(|(_, (kind, ..))| *kind == 'f').map(|(path, (.., bytes))| (path, bytes)).collect()
}
