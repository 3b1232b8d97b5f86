//! Damaged packs and indexes, in the process of the test: a crash would end it.

use super::*;
use crate::store::deflate::Effort;
use crate::store::index::Index;
use crate::store::inventory::Inventory;
use crate::store::pack::PackWriter;
use crate::sys::fs::durable::replace_cache;
use crate::sys::fs::mark::FileMark;

pub(super) fn only(store: &Store, kind: &str) -> PathBuf {
    let found = std::fs::read_dir(store.git_dir().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<PathBuf> = found.filter(|path| path.extension().is_some_and(|is| is == kind)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// Reads everything that a commit names, and returns true if all of it is whole.
pub(super) fn is_whole(store: &Store, id: &ObjectId) -> bool {
    let Ok(commit) = store.read_commit(id) else { return false };
    let Ok(entries) = store.read_tree(&commit.tree) else { return false };
    entries.iter().all(|entry| {
        let mut out = Vec::new();
        // The delivered bytes are the stored ones.
        store.copy_blob(&entry.id, &mut out).is_ok_and(|_| ObjectId::of(ObjectKind::Blob, &out).unwrap() == entry.id)
    })
}

pub(super) fn writing(store: &mut Store) {
    let _shared = store.lock_shared("writing", Duration::from_mins(1)).unwrap();
    store.renew().unwrap();
}

/// Makes a store with one pack of 80 files, which a writer has noted; with the pack's commit.
fn with_pack() -> (tempfile::TempDir, Store, ObjectId) {
    let (home, mut store) = store();
    let id = fill(&store, 80);
    writing(&mut store);
    (home, store, id)
}

/// As [`with_pack`], with a ref that names the commit.
pub(super) fn with_pack_and_ref() -> (tempfile::TempDir, Store, ObjectId) {
    let (home, store, id) = with_pack();
    store.update_ref("refs/heads/w/r", None, id).unwrap();
    (home, store, id)
}

#[test]
fn flipped_bits_of_an_index_do_no_harm_and_are_repaired() {
    let (home, store, id) = with_pack();
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
        assert!(is_whole(&fresh, &id), "bit {bit}");
        assert!(is_whole(&store, &id), "bit {bit}, to one that knew it");
        writing(&mut fresh);
        assert!(std::fs::read(&index).unwrap() == whole, "bit {bit}");
        assert_eq!(fresh.epoch().unwrap(), epoch, "nothing was lost");
        rounds += 1;
    }
    println!("damage: {rounds} flipped bits of an index in one process");
}

#[test]
fn flipped_bits_of_a_pack_are_found_and_stored_again() {
    let (home, store, id) = with_pack();
    let path = only(&store, "pack");
    let whole = std::fs::read(&path).unwrap();
    for bit in (0..whole.len() * 8).step_by(whole.len() * 8 / 60) {
        let mut wrong = whole.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        replace_cache(&path, &wrong).unwrap();
        // Neither a store that has the old file open nor a new one delivers wrong bytes.
        is_whole(&store, &id);
        let mut fresh = Store::open(home.path()).unwrap();
        let was_whole = is_whole(&fresh, &id);
        writing(&mut fresh);
        let said = fresh.pack_ailments().unwrap();
        assert!(was_whole || matches!(&said[..], [health::Ailment::TornPack(..)]), "bit {bit}: {said:?}");
        // A damaged object counts as missing, and is stored again.
        let again = fill(&fresh, 80);
        assert!(again == id && is_whole(&fresh, &id), "bit {bit}");
        assert!(is_whole(&Store::open(home.path()).unwrap(), &id), "bit {bit}");
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

/// Returns the blobs of a commit that [`fill`] wrote, and the id of its tree.
fn content_of(store: &Store, id: &ObjectId) -> (Vec<ObjectId>, ObjectId) {
    let tree = store.read_commit(id).unwrap().tree;
    (store.read_tree(&tree).unwrap().iter().map(|entry| entry.id).collect(), tree)
}

fn index_at(path: &Path) -> Index {
    Index::verified(std::fs::read(path).unwrap()).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Flips a bit in the entry of an object.
fn flip_in_entry(pack: &Path, at: u64) {
    let mut bytes = std::fs::read(pack).unwrap();
    bytes[at as usize + 12] ^= 4;
    replace_cache(pack, &bytes).unwrap();
}

#[test]
fn a_missing_loose_object_is_noted_when_it_is_read_and_stored_anew() {
    let (home, mut store) = store();
    let id = fill(&store, 20);
    writing(&mut store);
    let (blobs, tree) = content_of(&store, &id);
    for lost in [blobs[3], tree, blobs[3]] {
        let epoch = store.epoch().unwrap();
        std::fs::remove_file(loose::path_of(store.git_dir(), &lost)).unwrap();
        writing(&mut store);
        assert_eq!(store.epoch().unwrap(), epoch, "nobody has missed it");
        assert!(!is_whole(&store, &id) && store.is_suspect());
        writing(&mut store);
        let second = store.epoch().unwrap();
        assert_ne!(second, epoch, "what is remembered is looked up again");
        // A missing object is noted once.
        assert!(!is_whole(&store, &id) && !is_whole(&Store::open(home.path()).unwrap(), &id));
        writing(&mut store);
        writing(&mut Store::open(home.path()).unwrap());
        assert_eq!(store.epoch().unwrap(), second);
        assert_eq!(fill(&store, 20), id);
        assert!(is_whole(&store, &id));
        writing(&mut store);
    }
    // An object that never existed is not missing.
    let epoch = store.epoch().unwrap();
    assert_eq!(store.kind_of(&ObjectId::from_bytes([9; 20])).unwrap(), None);
    assert!(store.read_commit(&ObjectId::from_bytes([9; 20])).is_err());
    writing(&mut store);
    assert_eq!(store.epoch().unwrap(), epoch);
    // A restore looks an object up before it reads it, and a look for holes looks up names.
    for asks in [
        |store: &Store, id: &ObjectId| store.reader().unwrap().has(id).unwrap(),
        |store: &Store, id: &ObjectId| {
            let tree = store.commits().unwrap().iter().find_map(|id| store.read_commit(id).ok()).unwrap().tree;
            store.has(id).unwrap() || store.holes().below(tree).unwrap().is_none()
        },
    ] {
        let epoch = store.epoch().unwrap();
        std::fs::remove_file(loose::path_of(store.git_dir(), &blobs[5])).unwrap();
        assert!(!asks(&store, &blobs[5]));
        writing(&mut store);
        assert_ne!(store.epoch().unwrap(), epoch);
        assert_eq!(fill(&store, 20), id);
        writing(&mut store);
    }
}

#[test]
fn an_index_that_rots_unnoticed_costs_no_object() {
    let (home, store, id) = with_pack();
    let (index, epoch) = (only(&store, "idx"), store.epoch().unwrap());
    let whole = std::fs::read(&index).unwrap();
    let count = index_at(&index).len();
    // Flips bits of ids and of offsets.
    let places =
        [1032 + 20 * (count / 2), 1032 + 20 * 7 + 4, 1032 + 24 * count + 4 * 9 + 3, 1032 + 24 * count + 4 * 30 + 2];
    for at in places {
        for is_read in [true, false] {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            replace_cache(&index, &wrong).unwrap();
            // The inventory gets the new times, as if the file had not changed.
            let mut known = Inventory::load(store.git_dir()).unwrap();
            known.packs.values_mut().next().unwrap().idx = FileMark::behind(&index).unwrap().unwrap();
            known.save(store.git_dir()).unwrap();
            let mut fresh = Store::open(home.path()).unwrap();
            if is_read {
                assert!(is_whole(&fresh, &id), "byte {at}");
            } else {
                // Another process noted the object and has not read it since.
                let (blobs, tree) = content_of(&store, &id);
                let text: String = blobs.iter().chain([&tree]).map(|id| format!("{id}\n")).collect();
                std::fs::write(store.git_dir().join("piton-damaged"), text).unwrap();
            }
            writing(&mut fresh);
            assert!(std::fs::read(&index).unwrap() == whole, "byte {at}: it is written anew");
            let known = Inventory::load(store.git_dir()).unwrap();
            assert!(known.packs.values().all(|known| known.bad.is_empty()) && known.lost.is_empty(), "byte {at}");
            assert_eq!(fresh.epoch().unwrap(), epoch, "byte {at}: nothing is lost");
        }
    }
}

#[test]
fn a_damaged_index_beside_a_damaged_object_is_written_once_and_the_store_is_whole_again() {
    let (home, store, id) = with_pack_and_ref();
    let (index, pack) = (only(&store, "idx"), only(&store, "pack"));
    let (blobs, _) = content_of(&store, &id);
    let (whole, found) = (std::fs::read(&index).unwrap(), index_at(&index));
    flip_in_entry(&pack, found.find(&blobs[40]).unwrap());
    let mut wrong = whole.clone();
    wrong[1032 + 20 * 11 + 19] ^= 1;
    replace_cache(&index, &wrong).unwrap();
    writing(&mut Store::open(home.path()).unwrap());
    assert!(std::fs::read(&index).unwrap() == whole, "with the entry that the damaged object had");
    let fresh = Store::open(home.path()).unwrap();
    let set = fresh.objects.set().unwrap();
    assert!(set.packs[0].derived.is_none() && set.packs[0].bad.iter().eq([&blobs[40]]));
    assert!(matches!(&fresh.ailments().unwrap()[..], [health::Ailment::TornPack(_, 1), health::Ailment::Hole(..)]));
    assert!(fresh.is_suspect());
    // An object that is stored anew is not missing.
    assert!(fill(&fresh, 80) == id && is_whole(&fresh, &id));
    assert_eq!(fresh.pack_ailments().unwrap(), []);
    assert!(fresh.is_suspect(), "until everything was looked at");
    assert_eq!(fresh.ailments().unwrap(), []);
    assert!(!fresh.is_suspect() && !Store::open(home.path()).unwrap().is_suspect());
    // A missing index is derived with the whole objects before the damage.
    std::fs::remove_file(&index).unwrap();
    // A pack whose index may still come is left alone for a second.
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !index.exists() {
        assert!(std::time::Instant::now() < deadline, "the index is never written anew");
        writing(&mut Store::open(home.path()).unwrap());
    }
    let set = Store::open(home.path()).unwrap().objects.set().unwrap();
    assert!(set.packs.iter().all(|pack| pack.derived.is_none()));
}

#[test]
fn a_pack_that_is_whole_again_gives_back_what_its_index_lacks() {
    let (home, store, id) = with_pack();
    let (index, pack) = (only(&store, "idx"), only(&store, "pack"));
    let whole = std::fs::read(&pack).unwrap();
    replace_cache(&pack, &whole[..whole.len() / 2]).unwrap();
    replace_cache(&index, b"").unwrap();
    writing(&mut Store::open(home.path()).unwrap());
    assert!(index_at(&index).len() < 80, "it names what is left");
    replace_cache(&pack, &whole).unwrap();
    assert!(is_whole(&Store::open(home.path()).unwrap(), &id));
}

#[test]
fn another_copy_is_taken_where_one_is_damaged_or_cannot_be_read() {
    let (home, mut store) = store();
    for content in [b"small\n".repeat(40), (0..3_u32 << 18).flat_map(u32::to_le_bytes).collect()] {
        let id = ObjectId::of(ObjectKind::Blob, &content).unwrap();
        let batch = store.batch().unwrap();
        batch.write_stream(content.len() as u64, &mut content.as_slice()).unwrap();
        batch.finish().unwrap();
        let mut writer = PackWriter::create(store.git_dir(), pack::DENSE).unwrap();
        writer.append(&pack::compress(ObjectKind::Blob, id, &content, Effort::Fast).unwrap()).unwrap();
        let packed = store.git_dir().join("objects/pack").join(writer.finish().unwrap()).with_extension("pack");
        writing(&mut store);
        let loose = loose::path_of(store.git_dir(), &id);
        let copied = |store: &Store| {
            let mut out = Vec::new();
            let copied = store.copy_blob(&id, &mut out);
            assert!(copied.is_err() || out == content);
            copied.is_ok() && store.read_blob(&id).unwrap() == content
        };
        let spoiled = |path: &Path| {
            let whole = std::fs::read(path).unwrap();
            let mut wrong = whole.clone();
            let middle = wrong.len() / 2;
            wrong[middle] ^= 1;
            replace_cache(path, &wrong).unwrap();
            whole
        };
        // Stores that have listed the packs and opened none.
        let stores: Vec<Store> = (0..5).map(|_| Store::open(home.path()).unwrap()).collect();
        stores.iter().for_each(|store| assert!(store.has(&id).unwrap()));
        let whole = spoiled(&packed);
        assert!(copied(&stores[0]), "the pack is damaged");
        replace_cache(&packed, &whole).unwrap();
        let whole = spoiled(&loose);
        assert!(copied(&stores[1]), "the file is damaged");
        spoiled(&packed);
        assert!(!copied(&stores[2]), "both are");
        replace_cache(&loose, &whole).unwrap();
        // A directory can be opened and cannot be read.
        std::fs::remove_file(&packed).unwrap();
        std::fs::create_dir(&packed).unwrap();
        assert!(copied(&stores[3]), "the pack cannot be read");
        std::fs::remove_file(&loose).unwrap();
        let _ = std::fs::remove_file(store.git_dir().join("piton-damaged"));
        // Other stores of this process share the pack, and have opened the file that was there.
        stores[4].close();
        let error = stores[4].read_blob(&id).unwrap_err();
        assert_ne!(error.code(), Code::StoreDamaged, "that is not known: {error}");
        assert!(!store.git_dir().join("piton-damaged").exists(), "nor noted");
        std::fs::remove_dir(&packed).unwrap();
        std::fs::remove_file(packed.with_extension("idx")).unwrap();
        writing(&mut store);
    }
}

#[test]
fn a_fetched_pack_replaces_a_torn_one() {
    let (home, store, id) = with_pack_and_ref();
    let (index, pack) = (only(&store, "idx"), only(&store, "pack"));
    let (whole, named) = (std::fs::read(&pack).unwrap(), std::fs::read(&index).unwrap());
    // A borrowed object that cannot be read is noted in the store that it is borrowed from.
    let mut borrowing = store.quarantine(&home.path().join("workspaces/w/fetch.git"), &[]).unwrap();
    assert!(borrowing.store().unwrap().read_blob(&ObjectId::from_bytes([8; 20])).is_err());
    assert!(store.git_dir().join("piton-damaged").exists());
    drop(borrowing);
    let flipped = |at: usize| [&whole[..at], &[whole[at] ^ 1], &whole[at + 1..]].concat();
    for (round, torn) in [whole[..whole.len() / 3].to_vec(), Vec::new(), flipped(whole.len() / 2)].iter().enumerate() {
        replace_cache(&pack, torn).unwrap();
        let mut fresh = Store::open(home.path()).unwrap();
        assert!(!is_whole(&fresh, &id));
        writing(&mut fresh);
        assert!(fresh.is_suspect());
        let aside = home.path().join(format!("workspaces/w/fetch-{round}.git"));
        let quarantine = fresh.quarantine(&aside, &[]).unwrap();
        for (path, bytes) in [(&pack, &whole), (&index, &named)] {
            std::fs::write(aside.join("objects/pack").join(path.file_name().unwrap()), bytes).unwrap();
        }
        fresh.adopt(&quarantine, &[]).unwrap();
        assert!(is_whole(&fresh, &id) && is_whole(&Store::open(home.path()).unwrap(), &id), "round {round}");
        assert_eq!(fresh.ailments().unwrap(), []);
        assert!(!fresh.is_suspect());
    }
}

#[test]
fn loose_files_that_hold_no_object_of_piton() {
    use std::io::Write;
    let (_home, store) = store();
    let named = |n: u8, content: &[u8]| {
        let id = ObjectId::from_bytes([n; 20]);
        let path = loose::path_of(store.git_dir(), &id);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        (id, path)
    };
    let deflated = |plain: &[u8]| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(1));
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    };
    // The file's bytes, `true` if it counts as present, and `true` if it is put aside.
    let table: [(&str, Vec<u8>, bool, bool); 5] = [
        ("nothing", vec![], false, true),
        ("no compressed bytes", b"no object".to_vec(), true, true),
        ("a header that is none", deflated(b"bleb 1\0x"), true, true),
        ("another object", deflated(b"blob 1\0x"), true, true),
        ("a tag", deflated(b"tag 1\0x"), true, false),
    ];
    for (n, (what, content, is_there, is_damaged)) in (1..).zip(table) {
        let (id, path) = named(n, &content);
        assert_eq!(store.has(&id).unwrap(), is_there, "{what}");
        assert_eq!(loose::is_damaged(&path, &id), is_damaged, "{what}");
        assert_eq!(store.read_blob(&id).unwrap_err().code(), Code::StoreDamaged, "{what}");
        assert_eq!(store.missing(&mut [id].into_iter()).unwrap().is_empty(), is_there, "{what}");
    }
}
