//! Files with several names: a restore changes the name that it was asked for, and no other.

use std::fs::{hard_link, read, symlink_metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::json;

use crate::support::{Lab, Sidecar};

fn inode(path: &Path) -> u64 {
    symlink_metadata(path).unwrap().ino()
}

fn perm(path: &Path) -> u32 {
    symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn permissions_of_one_name_are_not_those_of_the_others() {
    let lab = Lab::new();
    lab.write("a", "same bytes");
    lab.write("b", "same bytes");
    lab.write("alone", "x");
    lab.sh("chmod 600 a; chmod 644 b; chmod 640 alone");
    let n = lab.take("start");
    let outside = lab.root().join("outside");
    hard_link(lab.work.join("b"), &outside).unwrap();
    lab.sh("rm a; ln b a; chmod 600 alone");
    let (shared, alone) = (inode(&outside), inode(&lab.work.join("alone")));
    let done = lab.restore(n, &[]);
    assert_eq!(
        (&done["done"]["failed"]["total"], &done["done"]["replaced"]["total"]),
        (&json!(0), &json!(2)),
        "{done}"
    );
    let perms = ["a", "b", "alone"].map(|name| perm(&lab.work.join(name)));
    assert_eq!(perms, [0o600, 0o644, 0o640], "{done}");
    assert_eq!((perm(&outside), inode(&lab.work.join("b"))), (0o644, shared), "the other names are as they were");
    assert_ne!(inode(&lab.work.join("a")), shared, "the name has a file of its own");
    assert_eq!(inode(&lab.work.join("alone")), alone, "what has one name is changed in place");
}

#[test]
fn undo_and_rollback_do_not_reach_other_names_either() {
    let lab = Lab::new();
    lab.write("a", "bytes");
    lab.sh("chmod 644 a");
    let n = lab.take("start");
    lab.sh("chmod 600 a");
    lab.restore(n, &[]);
    // The undo makes it 0600 again; meanwhile it has got another name.
    let outside = lab.root().join("outside");
    hard_link(lab.work.join("a"), &outside).unwrap();
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!((perm(&lab.work.join("a")), perm(&outside)), (0o600, 0o644));
    let again = lab.root().join("again");
    hard_link(lab.work.join("a"), &again).unwrap();
    let mut sidecar = Sidecar::start(&lab, &[]);
    let rolled = sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": n.to_string()}));
    assert_eq!(rolled["done"]["replaced"]["total"], 1, "{rolled}");
    assert_eq!((perm(&lab.work.join("a")), perm(&again)), (0o644, 0o600));
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_hundred_names_of_one_file_are_all_replaced() {
    let lab = Lab::new();
    for i in 0..100 {
        lab.write(&format!("name{i}"), format!("own content {i}"));
    }
    let n = lab.take("start");
    let outside = lab.root().join("outside");
    let content = vec![b'x'; 300_000];
    std::fs::write(&outside, &content).unwrap();
    for i in 0..100 {
        let name = lab.work.join(format!("name{i}"));
        std::fs::remove_file(&name).unwrap();
        hard_link(&outside, &name).unwrap();
    }
    let done = lab.restore(n, &[]);
    assert_eq!(
        (&done["done"]["failed"]["total"], &done["done"]["replaced"]["total"]),
        (&json!(0), &json!(100)),
        "{done}"
    );
    for i in 0..100 {
        assert_eq!(lab.read(&format!("name{i}")), format!("own content {i}"));
    }
    assert!(read(&outside).unwrap() == content, "what is outside is as it was");
    assert_eq!(symlink_metadata(&outside).unwrap().nlink(), 1);
}
