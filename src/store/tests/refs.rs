//! Packed refs: what readers, writers and an ordinary git make of them.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const PREFIX: &str = "refs/piton/w/";

fn named(store: &Store) -> Vec<(String, ObjectId)> {
    store.refs("refs/").unwrap().into_iter().map(|entry| (entry.name.to_string(), entry.target.unwrap())).collect()
}

/// Makes a store with refs, of which every second one is packed.
fn half_packed(count: usize) -> (tempfile::TempDir, Store, ObjectId) {
    let (home, store) = store();
    let id = fill(&store, 1);
    for n in 0..count {
        store.update_ref(&format!("{PREFIX}auto/{n}"), None, id).unwrap();
        if n % 2 == 0 {
            assert_eq!(store.pack_refs(&[PREFIX.to_owned()], 100).unwrap(), if n == 0 { 1 } else { 2 });
        }
    }
    (home, store, id)
}

#[test]
fn packed_refs_are_read_moved_and_deleted_as_loose_ones() {
    let (_home, store, id) = half_packed(6);
    store.update_ref("refs/heads/w/r", None, id).unwrap();
    let all = named(&store);
    assert_eq!((all.len(), store.packed_names().unwrap().len(), store.loose_refs(PREFIX, 100)), (7, 5, 1));
    if let Some((_, text)) = git(&store, &["for-each-ref", "--format=%(refname)"]) {
        assert_eq!(text.lines().collect::<Vec<_>>(), all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
    }
    // A number that is taken stays taken.
    assert_eq!(store.update_ref(&format!("{PREFIX}auto/0"), None, id).unwrap_err().code(), Code::Conflict);
    let other = fill_with(&store, 1, "other");
    store.update_ref(&format!("{PREFIX}auto/0"), Some(id), other).unwrap();
    assert_eq!(named(&store)[1], (format!("{PREFIX}auto/0"), other), "the loose one wins");
    let gone: Vec<_> = all[1..].iter().map(|(name, id)| (name.clone(), *id)).collect();
    // One was moved meanwhile.
    assert_eq!(store.delete_refs(&gone).unwrap().len(), 5);
    assert_eq!(named(&store).len(), 2);
    store.delete_ref(&format!("{PREFIX}auto/0"), other).unwrap();
    assert_eq!(named(&store), [("refs/heads/w/r".to_owned(), id)]);
}

#[test]
fn a_lock_of_a_killed_process_is_removed_and_a_torn_ref_stays() {
    let (_home, store, id) = half_packed(2);
    std::fs::write(store.git_dir().join("packed-refs.lock"), "half").unwrap();
    std::fs::write(store.git_dir().join(PREFIX).join("auto/7"), "torn").unwrap();
    assert_eq!(store.pack_refs(&[PREFIX.to_owned()], 100).unwrap(), 1);
    let refs = store.refs(PREFIX).unwrap();
    assert_eq!((refs.len(), refs.iter().filter(|entry| entry.target == Ok(id)).count()), (3, 2));
    assert_eq!(store.loose_refs(PREFIX, 100), 1);
}

#[test]
fn no_reader_misses_a_ref_while_it_is_packed() {
    let (home, store, id) = half_packed(1);
    for n in 1..200 {
        store.update_ref(&format!("{PREFIX}auto/{n}"), None, id).unwrap();
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = || {
            let other = Store::open(home.path()).unwrap();
            let mut seen = other.refs_marked("refs/").unwrap().1;
            while !is_done.load(Ordering::Relaxed) {
                assert_eq!(other.refs(PREFIX).unwrap().len(), 200);
                assert_eq!(other.target(&format!("{PREFIX}auto/117")), Ok(Some(id)));
                seen = other.refs_since(&seen).unwrap().1;
            }
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        while store.pack_refs(&[PREFIX.to_owned()], 10).unwrap() > 0 {}
        is_done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    assert_eq!(store.packed_names().unwrap().len(), 200);
}
