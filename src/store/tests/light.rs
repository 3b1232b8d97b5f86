//! Light packs, which are stored uncompressed and compressed in idle time.

use super::*;

/// Makes a store with a light pack: 70 files and a tree, from a batch that was announced as very large.
fn light_store() -> (tempfile::TempDir, Store, ObjectId) {
    let (home, store) = store();
    let batch = store.batch().unwrap();
    batch.expect(2000, LIGHT_FROM).unwrap();
    let entries = (0..300).map(|i| {
        let id = blob(&batch, &format!("line {i} of many\n").repeat(400 + i).into_bytes());
        TreeEntry { name: format!("f{i:03}").into(), mode: TreeMode::File, id }
    });
    let bytes = encode(entries.collect());
    let tree = ObjectId::of(ObjectKind::Tree, &bytes).unwrap();
    batch.write(ObjectKind::Tree, tree, &bytes).unwrap();
    let commit = NewCommit { tree, parents: &[], message: "light\n", time_ms: 1_700_000_000_123 };
    let id = batch.put_commit(&commit).unwrap();
    batch.finish().unwrap();
    store.update_ref("refs/heads/w/r", None, id).unwrap();
    (home, store, id)
}

fn light(store: &Store) -> Vec<PathBuf> {
    let found = std::fs::read_dir(store.git_dir().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let is_light = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(pack::LIGHT);
    found.filter(|path| is_light(path) && path.extension().is_some_and(|kind| kind == "pack")).collect()
}

fn stored_bytes(store: &Store) -> u64 {
    let found = std::fs::read_dir(store.git_dir().join("objects/pack")).unwrap();
    found.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Compresses to the end.
fn recompressed(store: &mut Store, slice: Slice) {
    again_until(store, |store| {
        store.recompress(slice, &|| Flow::Continue).unwrap();
        light(store).is_empty()
    });
}

const AT_ONCE: Slice = Slice { age: Duration::ZERO, bytes: 300_000, pack: 200_000, goes_on: false };

#[test]
fn a_long_lived_process_puts_off_more() {
    for (goes_on, bytes, expected) in [
        (false, LIGHT_SOON, 0),
        (false, LIGHT_FROM - 1, 0),
        (false, LIGHT_FROM, 1),
        (true, LIGHT_SOON - 1, 0),
        (true, LIGHT_SOON, 1),
    ] {
        let (_home, mut store) = store();
        if goes_on {
            store.puts_off();
        }
        let batch = store.batch().unwrap();
        batch.expect(100, bytes).unwrap();
        for i in 0..100 {
            blob(&batch, format!("file {i}").as_bytes());
        }
        batch.finish().unwrap();
        assert_eq!(light(&store).len(), expected, "{goes_on} {bytes}");
    }
}

#[test]
fn a_light_pack_becomes_dense_ones_and_no_reader_notices() {
    let (home, mut store, commit) = light_store();
    let stale = Store::open(home.path()).unwrap();
    assert!(stale.has(&commit).unwrap());
    all_is_there(&store, &[commit]);
    assert_eq!((light(&store).len(), packs(&store), temporaries(&store)), (1, 1, 0));
    // To git it is a pack like others, and no temporary files are left.
    if let Some((clean, text)) = git(&store, &["count-objects", "-v"]) {
        assert!(clean && text.contains("garbage: 0") && text.contains("in-pack: 302"), "{text}");
    }
    let before = stored_bytes(&store);
    // Consolidation leaves light packs alone, and a command leaves new ones to a sidecar.
    assert!(!store.consolidate(Bounds { packs: 0, ..FEW }, &|| Flow::Continue).unwrap());
    assert!(!store.recompress(COMMAND, &|| Flow::Continue).unwrap());
    // One object at a time, with a check of the interrupt before each.
    let left = std::cell::Cell::new(0);
    let mut calls = 0;
    while !light(&store).is_empty() {
        left.set(10);
        let go_on = || if left.replace(left.get() - 1) > 0 { Flow::Continue } else { Flow::Stop };
        store.recompress(Slice { pack: 20_000, ..IDLE }, &go_on).unwrap();
        all_is_there(&stale, &[commit]);
        calls += 1;
        assert!(calls < 10_000, "it never ends");
    }
    assert!(calls > 20, "{calls}");
    assert!(packs(&store) > 1 && temporaries(&store) == 0);
    assert!(stored_bytes(&store) * 5 < before, "{} of {before}", stored_bytes(&store));
    all_is_there(&store, &[commit]);
    all_is_there(&stale, &[commit]);
    assert!(!store.recompress(IDLE, &|| Flow::Continue).unwrap());
}

#[test]
fn compressed_objects_are_not_compressed_again_and_a_writer_is_not_disturbed() {
    let (home, mut store, commit) = light_store();
    store.recompress(AT_ONCE, &|| Flow::Continue).unwrap();
    assert!(light(&store).len() == 1 && packs(&store) >= 2, "a part of it");
    let some = stored_bytes(&store);
    drop(store);
    // The unfinished pack of a process that ends disappears with it, and no other process is blocked.
    let mut store = Store::open(home.path()).unwrap();
    again_until(&mut store, |store| {
        let count = std::cell::Cell::new(0);
        store
            .recompress(IDLE, &|| if count.replace(count.get() + 1) < 20 { Flow::Continue } else { Flow::Stop })
            .unwrap();
        temporaries(store) == 1
    });
    drop(store);
    let mut store = Store::open(home.path()).unwrap();
    assert_eq!((temporaries(&store), stored_bytes(&store)), (0, some));
    // During a write the light pack stays beside the dense ones.
    let writer = store.lock_shared("writing", Duration::ZERO).unwrap();
    again_until(&mut store, |store| {
        assert!(!store.recompress(IDLE, &|| Flow::Continue).unwrap());
        stored_bytes(store) > some
    });
    let both = stored_bytes(&store);
    assert!(!store.recompress(IDLE, &|| Flow::Continue).unwrap());
    assert_eq!((light(&store).len(), stored_bytes(&store)), (1, both));
    all_is_there(&store, &[commit]);
    drop(writer);
    recompressed(&mut store, IDLE);
    all_is_there(&store, &[commit]);
}

#[test]
fn a_damaged_light_pack_stays_and_the_rest_of_it_is_compressed() {
    let (home, mut store, commit) = light_store();
    let [path] = light(&store).try_into().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(store.recompress(IDLE, &|| Flow::Continue).unwrap_err().code(), Code::StoreDamaged);
    // Said once.
    assert!(!store.recompress(IDLE, &|| Flow::Continue).unwrap());
    assert_eq!((std::fs::read(&path).unwrap(), packs(&store)), (bytes, 2));
    std::fs::remove_file(&path).unwrap();
    let store = Store::open(home.path()).unwrap();
    let tree = store.read_commit(&commit).unwrap().tree;
    let lost = |entry: &TreeEntry| store.copy_blob(&entry.id, &mut Vec::new()).is_err();
    assert_eq!(store.read_tree(&tree).unwrap().iter().filter(|entry| lost(entry)).count(), 1);
}

#[test]
fn objects_of_a_torn_pack_count_as_missing() {
    let (home, mut store, commit) = light_store();
    store.recompress(AT_ONCE, &|| Flow::Continue).unwrap();
    let dir = std::fs::read_dir(store.git_dir().join("objects/pack")).unwrap();
    let dense = dir.map(|entry| entry.unwrap().path()).find(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.ends_with(".pack") && !name.starts_with(pack::LIGHT)
    });
    let dense = dense.unwrap();
    let bytes = std::fs::read(&dense).unwrap();
    std::fs::remove_file(&dense).unwrap();
    std::fs::write(&dense, &bytes[..bytes.len() - 100]).unwrap();
    // Everything is in the light pack; it is removed only when whole packs hold all of it.
    recompressed(&mut store, IDLE);
    let index = dense.with_extension("idx");
    std::fs::remove_file(&dense).unwrap();
    std::fs::remove_file(&index).unwrap();
    drop(store);
    let store = Store::open(home.path()).unwrap();
    all_is_there(&store, &[commit]);
    // The same for a batch that lists the present objects at once.
    let [path] = <[PathBuf; 1]>::try_from(
        std::fs::read_dir(store.git_dir().join("objects/pack"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|kind| kind == "pack"))
            .collect::<Vec<_>>(),
    )
    .unwrap();
    let contains = |store: &Store| {
        let batch = store.batch().unwrap();
        batch.expect(5000, 0).unwrap();
        batch.contains(&commit).unwrap()
    };
    assert!(contains(&store));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
    assert!(!contains(&Store::open(home.path()).unwrap()));
}

#[test]
fn a_light_pack_is_removed_only_when_objects_damaged_elsewhere_are_compressed_again() {
    let (home, mut store, commit) = light_store();
    let [path] = light(&store).try_into().unwrap();
    let id = ObjectId::of(ObjectKind::Blob, "line 7 of many\n".repeat(407).as_bytes()).unwrap();
    let at = store.objects.refresh().unwrap().packs[0].find(&id).unwrap() as usize;
    let copy = path.with_file_name(format!("pack-{}", "a".repeat(40)));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at + 40] ^= 1;
    std::fs::write(copy.with_extension("pack"), bytes).unwrap();
    std::fs::copy(path.with_extension("idx"), copy.with_extension("idx")).unwrap();
    store.objects.note(&id);
    store.renew().unwrap();
    recompressed(&mut store, AT_ONCE);
    for store in [&store, &Store::open(home.path()).unwrap()] {
        let entries = store.read_tree(&store.read_commit(&commit).unwrap().tree).unwrap();
        assert!(entries.iter().all(|entry| store.copy_blob(&entry.id, &mut Vec::new()).is_ok()));
    }
}
