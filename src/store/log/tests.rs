use proptest::prelude::*;

use super::*;
use crate::model::id::ObjectKind;
use crate::model::sink::ObjectSink;
use crate::store::{Landing, NewCommit};

fn id(n: u8) -> ObjectId {
    ObjectId::from_bytes([n; 20])
}

fn record(name: &str, old: Option<u8>, new: u8, objects: &[&[u8]]) -> Record {
    let objects = objects.iter().zip(1..).map(|(bytes, n)| (id(n), bytes.to_vec())).collect();
    Record { name: name.to_owned(), old: old.map(id), new: id(new), objects }
}

#[test]
fn a_torn_or_changed_record_ends_the_log() {
    let records = [
        record("refs/piton/w/auto/1", None, 9, &[b"one", b""]),
        record("refs/heads/w/r", Some(3), 4, &[]),
        record("refs/piton/w/auto/2", None, 5, &[b"two"]),
    ];
    let all: Vec<u8> = records.iter().flat_map(Record::encode).collect();
    assert_eq!(decode(&all), (records.to_vec(), all.len()));
    let first = records[0].encode().len();
    for cut in 0..all.len() {
        let (found, whole) = decode(&all[..cut]);
        assert_eq!(found, records[..found.len()], "cut at {cut}");
        assert!(whole <= cut && (found.is_empty() || whole >= first));
    }
    for at in first..all.len() {
        let mut changed = all.clone();
        changed[at] ^= 0x10;
        let (found, _) = decode(&changed);
        assert!(found.len() < 3 && found == records[..found.len()], "changed at {at}");
    }
    for name in ["HEAD", "refs/../x", "refs//x", "refs/a/.b", "refs/x\0"] {
        assert_eq!(decode(&record(name, None, 1, &[]).encode()).1, 0, "{name}");
    }
}

#[test]
fn a_torn_tail_is_cut_off_and_a_withdrawn_record_is_gone() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("log");
    let (one, two) = (record("refs/piton/w/auto/1", None, 1, &[b"x"]), record("refs/piton/w/auto/2", None, 2, &[b"y"]));
    let mut log = Log::open(&path).unwrap();
    log.append(&one, true).unwrap();
    let begin = log.append(&two, false).unwrap();
    log.cut(begin).unwrap();
    assert_eq!(decode(&std::fs::read(&path).unwrap()).0, std::slice::from_ref(&one));
    let mut torn = std::fs::read(&path).unwrap();
    torn.extend(&two.encode()[..20]);
    std::fs::write(&path, &torn).unwrap();
    assert!(!log.is_current());
    let mut log = Log::open(&path).unwrap();
    log.append(&two, true).unwrap();
    assert_eq!(decode(&std::fs::read(&path).unwrap()).0, [one, two]);
}

/// Fills a store with two workspaces, each with checkpoints that only the logs make durable. Returns their refs and
/// commits.
fn answered(store: &Store, home: &Path) -> Vec<(String, ObjectId, ObjectId)> {
    let mut all = Vec::new();
    let mut tip = None;
    for (n, workspace) in ["one", "two", "one", "one", "two"].iter().enumerate() {
        let dir = home.join("workspaces").join(workspace);
        std::fs::create_dir_all(&dir).unwrap();
        let mut log = Log::open(&dir.join("log")).unwrap();
        let batch = store.batch().unwrap();
        // The second workspace relies on what the first has written.
        let content = format!("content {}", n / 2);
        let blob = ObjectId::of(ObjectKind::Blob, content.as_bytes()).unwrap();
        if !batch.contains(&blob).unwrap() {
            batch.write(ObjectKind::Blob, blob, content.as_bytes()).unwrap();
        }
        let entry =
            crate::model::tree::TreeEntry { name: b"f".to_vec(), mode: crate::model::tree::Mode::File, id: blob };
        let bytes = crate::model::tree::encode(vec![entry]);
        let tree = ObjectId::of(ObjectKind::Tree, &bytes).unwrap();
        if !batch.contains(&tree).unwrap() {
            batch.write(ObjectKind::Tree, tree, &bytes).unwrap();
        }
        let typed = *workspace == "one";
        let parents: Vec<ObjectId> = tip.filter(|_| typed).into_iter().collect();
        let message = format!("{n}\n");
        let new = batch
            .put_commit(&NewCommit { tree, parents: &parents, message: &message, time_ms: 1_700_000_000_000 })
            .unwrap();
        let name = if typed { "refs/heads/one/run".to_owned() } else { format!("refs/piton/two/auto/{n}") };
        let expect = tip.filter(|_| typed);
        batch.land(store, Landing { log: &mut log, name: &name, expect, new, synced: true }).unwrap();
        if typed {
            tip = Some(new);
        }
        all.push((name, new, blob));
    }
    all
}

/// Damages every unsynced file, as a power cut may do.
fn cut_power(store: &Store, ruin: impl Fn(usize, &Path)) {
    let mut files = Vec::new();
    let mut pending = vec![store.git_dir().join("objects"), store.git_dir().join("refs")];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            if entry.path().is_dir() { pending.push(entry.path()) } else { files.push(entry.path()) }
        }
    }
    assert!(files.len() > 5);
    files.sort();
    files.iter().enumerate().for_each(|(n, file)| ruin(n, file));
}

/// The damage that is done to a file.
type Ruin = fn(usize, &Path);

#[test]
fn answered_checkpoints_are_there_after_a_power_cut() {
    let torn: [(&str, Ruin); 4] = [
        ("everything is gone", |_, file| std::fs::remove_file(file).unwrap()),
        ("everything is empty", |_, file| {
            std::fs::remove_file(file).unwrap();
            std::fs::write(file, "").unwrap();
        }),
        ("some of it is gone, some is cut", |n, file| match n % 3 {
            0 => std::fs::remove_file(file).unwrap(),
            1 => {
                let bytes = std::fs::read(file).unwrap();
                std::fs::remove_file(file).unwrap();
                std::fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
            }
            _ => {}
        }),
        ("nothing is missing", |_, _| {}),
    ];
    for (what, ruin) in torn {
        let temp = tempfile::tempdir().unwrap();
        let store = Store::open(temp.path()).unwrap();
        store.recover(&temp.path().join("workspaces"), "boot-1").unwrap();
        let all = answered(&store, temp.path());
        cut_power(&store, ruin);
        drop(store);
        let store = Store::open(temp.path()).unwrap();
        store.recover(&temp.path().join("workspaces"), "boot-2").unwrap();
        for (name, commit, blob) in &all {
            store.read_commit(commit).unwrap_or_else(|error| panic!("{what}: {error}"));
            store.read_blob(blob).unwrap_or_else(|error| panic!("{what}: {error}"));
            let last = all.iter().rev().find(|(other, ..)| other == name).unwrap();
            assert_eq!(store.target(name), Ok(Some(last.1)), "{what}: {name}");
        }
        for workspace in ["one", "two"] {
            let log = temp.path().join("workspaces").join(workspace).join("log");
            assert_eq!(std::fs::metadata(log).unwrap().len(), 0);
        }
        let fsck =
            std::process::Command::new("git").arg("--git-dir").arg(store.git_dir()).args(["fsck", "--strict"]).output();
        if let Ok(fsck) = fsck {
            assert!(fsck.status.success(), "{what}: {}", String::from_utf8_lossy(&fsck.stderr));
        }
        // The same boot again: nothing is looked at.
        std::fs::remove_file(store.git_dir().join(&all[1].0)).unwrap();
        store.recover(&temp.path().join("workspaces"), "boot-2").unwrap();
        assert_eq!(store.target(&all[1].0), Ok(None));
    }
}

#[test]
fn unsynced_checkpoints_are_lost_as_a_whole_and_harm_no_others() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(temp.path()).unwrap();
    let workspaces = temp.path().join("workspaces");
    store.recover(&workspaces, "boot-1").unwrap();
    let shared = ObjectId::of(ObjectKind::Blob, b"shared").unwrap();
    let land = |workspace: &str, synced: bool, extra: &str| {
        std::fs::create_dir_all(workspaces.join(workspace)).unwrap();
        let mut log = Log::open(&workspaces.join(workspace).join("log")).unwrap();
        let batch = store.batch().unwrap();
        if !batch.contains(&shared).unwrap() {
            batch.write(ObjectKind::Blob, shared, b"shared").unwrap();
        }
        let own = ObjectId::of(ObjectKind::Blob, extra.as_bytes()).unwrap();
        batch.write(ObjectKind::Blob, own, extra.as_bytes()).unwrap();
        let commit = NewCommit { tree: ObjectId::EMPTY_TREE, parents: &[], message: extra, time_ms: 0 };
        let new = batch.put_commit(&commit).unwrap();
        let name = format!("refs/piton/{workspace}/auto/{extra}");
        batch.land(&store, Landing { log: &mut log, name: &name, expect: None, new, synced }).unwrap();
        (own, name)
    };
    let (lazy, _) = land("lazy", false, "first");
    let (firm, name) = land("firm", true, "second");
    // The log of the one that did not wait is durable up to here, because the other one relies on it.
    let (lost, lost_name) = land("lazy", false, "third");
    let torn = std::fs::read(workspaces.join("lazy/log")).unwrap();
    let kept = decode(&torn).0[0].encode().len();
    std::fs::write(workspaces.join("lazy/log"), &torn[..kept + 30]).unwrap();
    cut_power(&store, |n, file| {
        let bytes = std::fs::read(file).unwrap();
        std::fs::remove_file(file).unwrap();
        std::fs::write(file, &bytes[..if n % 2 == 0 { 0 } else { bytes.len() / 2 }]).unwrap();
    });
    let store = Store::open(temp.path()).unwrap();
    store.recover(&workspaces, "boot-2").unwrap();
    for id in [shared, lazy, firm] {
        store.read_blob(&id).unwrap();
    }
    assert!(store.target(&name).unwrap().is_some());
    assert!(!store.has(&lost).unwrap(), "a torn object is not taken for one");
    assert_eq!(store.target(&lost_name), Ok(None));
    assert!(lazy::marked(&temp.path().join("lazy")).unwrap().is_empty());
}

#[test]
fn a_ref_that_a_killed_writer_did_not_move_is_moved_and_no_other() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(temp.path()).unwrap();
    let path = temp.path().join("log");
    let land = |name: &str, text: &str, expect: Option<ObjectId>| {
        let (mut log, batch) = (Log::open(&path).unwrap(), store.batch().unwrap());
        let commit = NewCommit { tree: ObjectId::EMPTY_TREE, parents: &[], message: text, time_ms: 0 };
        let new = batch.put_commit(&commit).unwrap();
        batch.land(&store, Landing { log: &mut log, name, expect, new, synced: true }).unwrap();
        new
    };
    store.complete(&path).unwrap();
    let (leaf, branch) = ("refs/piton/w/auto/1", "refs/heads/w/r");
    let one = land(leaf, "one", None);
    let two = land(branch, "two", None);
    let three = land(branch, "three", Some(two));
    let is_at = |name: &str, id| assert_eq!(store.target(name), Ok(id));
    // Killed before the branch was moved, and before the objects were written.
    store.put_ref(branch, two).unwrap();
    std::fs::remove_file(loose::path_of(store.git_dir(), &three)).unwrap();
    // That of an earlier record was removed by somebody, which is not for a writer to judge.
    store.delete_ref(leaf, one).unwrap();
    store.complete(&path).unwrap();
    is_at(branch, Some(three));
    is_at(leaf, None);
    assert!(store.read_commit(&three).is_ok());
    // Moved on since, or damaged: it stays.
    store.put_ref(branch, one).unwrap();
    store.complete(&path).unwrap();
    is_at(branch, Some(one));
    std::fs::write(store.git_dir().join(branch), "").unwrap();
    store.complete(&path).unwrap();
    assert!(store.target(branch).is_err());
    // A torn tail is none.
    let four = land(leaf, "four", None);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    store.delete_ref(leaf, four).unwrap();
    store.complete(&path).unwrap();
    is_at(leaf, None);
}

#[test]
fn refs_that_others_have_moved_since_stay() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(temp.path()).unwrap();
    store.recover(&temp.path().join("workspaces"), "boot-1").unwrap();
    let all = answered(&store, temp.path());
    let elsewhere = all[1].1;
    let (name, tip, _) = &all[3];
    store.update_ref(name, Some(*tip), elsewhere).unwrap();
    store.recover(&temp.path().join("workspaces"), "boot-2").unwrap();
    assert_eq!(store.target(name), Ok(Some(elsewhere)));
}

#[test]
fn flushed_records_do_not_come_back() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(temp.path()).unwrap();
    store.recover(&temp.path().join("workspaces"), "boot-1").unwrap();
    let all = answered(&store, temp.path());
    let mut log = Log::open(&temp.path().join("workspaces/two/log")).unwrap();
    store.flush(&mut log).unwrap();
    assert!(log.is_empty());
    store.delete_ref(&all[1].0, all[1].1).unwrap();
    store.recover(&temp.path().join("workspaces"), "boot-2").unwrap();
    assert_eq!(store.target(&all[1].0), Ok(None));
}

proptest! {
    #[test]
    fn any_record_comes_back(name in "[a-z0-9]{1,9}", old in any::<Option<[u8; 20]>>(), new in any::<[u8; 20]>(),
        objects in proptest::collection::vec((any::<[u8; 20]>(), proptest::collection::vec(any::<u8>(), 0..50)), 0..5)) {
        let record = Record {
            name: format!("refs/piton/{name}"),
            old: old.filter(|old| *old != [0; 20]).map(ObjectId::from_bytes),
            new: ObjectId::from_bytes(new),
            objects: objects.into_iter().map(|(id, bytes)| (ObjectId::from_bytes(id), bytes)).collect(),
        };
        prop_assert_eq!(decode(&record.encode()).0, vec![record]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (_, whole) = decode(&bytes);
        prop_assert!(whole <= bytes.len());
        let framed = [&MAGIC[..], &(bytes.len() as u32).to_le_bytes(), &crc32fast::hash(&bytes).to_le_bytes(), &bytes].concat();
        decode(&framed);
    }
}
