//! Damaged packs and indexes, in this very process: whatever crashed would end the test.

use super::*;
use crate::sys::durable::replace_cache;

fn only(store: &Store, kind: &str) -> PathBuf {
    let found = std::fs::read_dir(store.git_dir().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<PathBuf> = found.filter(|path| path.extension().is_some_and(|is| is == kind)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// Everything that a commit names is read; whether all of it came.
fn comes_whole(store: &Store, id: &ObjectId) -> bool {
    let Ok(commit) = store.read_commit(id) else { return false };
    let Ok(entries) = store.read_tree(&commit.tree) else { return false };
    entries.iter().all(|entry| {
        let mut out = Vec::new();
        // What is delivered is what was stored.
        store.copy_blob(&entry.id, &mut out).is_ok_and(|_| ObjectId::of(ObjectKind::Blob, &out).unwrap() == entry.id)
    })
}

fn writing(store: &mut Store) {
    let _shared = store.lock_shared("writing", Duration::from_secs(60)).unwrap();
    store.renew().unwrap();
}

#[test]
fn flipped_bits_of_an_index_hurt_nobody_and_are_mended() {
    let (home, mut store) = store();
    let id = fill(&store, 80);
    writing(&mut store);
    let (index, epoch) = (only(&store, "idx"), store.epoch().unwrap());
    let whole = std::fs::read(&index).unwrap();
    let is_full = std::env::var_os("PITON_ROUNDS").is_some_and(|rounds| rounds == "full");
    let step = whole.len() * 8 / if is_full { 5730 } else { 150 };
    let mut rounds = 0;
    for bit in (0..whole.len() * 8).step_by(step.max(1)) {
        let mut wrong = whole.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        replace_cache(&index, &wrong).unwrap();
        let mut fresh = Store::open(home.path()).unwrap();
        let said = fresh.pack_ailments().unwrap();
        assert!(matches!(&said[..], [health::Ailment::DamagedIndex(path, _)] if *path == index), "{bit}: {said:?}");
        assert!(comes_whole(&fresh, &id), "bit {bit}");
        assert!(comes_whole(&store, &id), "bit {bit}, to one that knew it");
        writing(&mut fresh);
        assert!(std::fs::read(&index).unwrap() == whole, "bit {bit}");
        assert_eq!(fresh.epoch().unwrap(), epoch, "nothing was lost");
        rounds += 1;
    }
    println!("damage: {rounds} flipped bits of an index in one process");
}

#[test]
fn flipped_bits_of_a_pack_are_found_and_stored_again() {
    let (home, mut store) = store();
    let id = fill(&store, 80);
    writing(&mut store);
    let path = only(&store, "pack");
    let whole = std::fs::read(&path).unwrap();
    for bit in (0..whole.len() * 8).step_by(whole.len() * 8 / 60) {
        let mut wrong = whole.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        replace_cache(&path, &wrong).unwrap();
        // Neither one that has the old file open nor a new one delivers wrong bytes.
        comes_whole(&store, &id);
        let mut fresh = Store::open(home.path()).unwrap();
        let was_whole = comes_whole(&fresh, &id);
        writing(&mut fresh);
        let said = fresh.pack_ailments().unwrap();
        assert!(was_whole || matches!(&said[..], [health::Ailment::TornPack(..)]), "bit {bit}: {said:?}");
        // What is damaged counts as not there, and is stored again.
        let again = fill(&fresh, 80);
        assert!(again == id && comes_whole(&fresh, &id), "bit {bit}");
        assert!(comes_whole(&Store::open(home.path()).unwrap(), &id), "bit {bit}");
        for loose in loose::list(store.git_dir()).unwrap() {
            std::fs::remove_file(loose::path_of(store.git_dir(), &loose)).unwrap();
        }
        for other in std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()) {
            if other.file_stem() != path.file_stem() {
                std::fs::remove_file(other).unwrap();
            }
        }
        replace_cache(&path, &whole).unwrap();
        writing(&mut Store::open(home.path()).unwrap());
    }
}

#[test]
fn packs_of_git_with_deltas_are_read_and_their_indexes_derived() {
    let (home, store) = store();
    let lines: String = (0..300).map(|n| format!("line {n} of a file that changes little\n")).collect();
    let mut ids = Vec::new();
    let batch = store.batch().unwrap();
    let mut entries = Vec::new();
    for n in 0..120 {
        let content = format!("{lines}{n}\n").repeat(1 + n % 3);
        let id = blob(&batch, content.as_bytes());
        entries.push(TreeEntry { name: format!("f{n:03}").into(), mode: TreeMode::File, id });
        ids.push((id, content));
    }
    let bytes = encode(entries);
    let tree = ObjectId::of(ObjectKind::Tree, &bytes).unwrap();
    batch.write(ObjectKind::Tree, tree, &bytes).unwrap();
    let commit = NewCommit { tree, parents: &[], message: "deltas\n", time_ms: 1_700_000_000_000 };
    let commit = batch.put_commit(&commit).unwrap();
    batch.finish().unwrap();
    store.update_ref("refs/heads/w/r", None, commit).unwrap();
    if git(&store, &["repack", "-adfq", "--depth=20"]).is_none() {
        return;
    }
    let index = only(&store, "idx");
    let whole = std::fs::read(&index).unwrap();
    assert!(only(&store, "pack").metadata().unwrap().len() < 40_000, "there are deltas in it");
    for wrong in [whole.clone(), vec![], whole[..500].to_vec()] {
        replace_cache(&index, &wrong).unwrap();
        let mut fresh = Store::open(home.path()).unwrap();
        for (id, content) in &ids {
            assert_eq!(fresh.blob_size(id).unwrap(), content.len() as u64);
            assert!(fresh.read_blob(id).unwrap() == content.as_bytes());
            let mut out = Vec::new();
            fresh.copy_blob(id, &mut out).unwrap();
            assert!(out == content.as_bytes());
        }
        assert_eq!(fresh.read_commit(&commit).unwrap().message, "deltas\n");
        writing(&mut fresh);
        assert!(std::fs::read(&index).unwrap() == whole, "as git wrote it");
    }
}

#[test]
fn a_loss_changes_the_epoch_and_a_consolidation_does_not() {
    let (home, mut store) = store();
    let commits: Vec<ObjectId> = (0..7).map(|n| fill_with(&store, 70, &format!("pack {n}"))).collect();
    writing(&mut store);
    let epoch = store.epoch().unwrap();
    consolidated(&mut store, FEW);
    writing(&mut Store::open(home.path()).unwrap());
    assert_eq!(store.epoch().unwrap(), epoch);
    all_is_there(&store, &commits);
    let packs = store.git_dir().join("objects/pack");
    for pack in std::fs::read_dir(&packs).unwrap().map(|entry| entry.unwrap().path()) {
        std::fs::remove_file(pack).unwrap();
    }
    let mut cold = Store::open(home.path()).unwrap();
    assert!(cold.is_suspect());
    writing(&mut cold);
    let second = cold.epoch().unwrap();
    assert_ne!(second, epoch);
    writing(&mut store);
    assert!(!store.has(&commits[0]).unwrap(), "nor does one that knew the packs take them for there");
    writing(&mut Store::open(home.path()).unwrap());
    assert!(cold.is_suspect(), "until everything was looked at");
}
