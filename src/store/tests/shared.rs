//! Tests of a store that several writers and processes share: its inventory, its packs, and the damage that one of them finds.

use super::damage::{is_whole, only, with_pack_and_ref, writing};
use super::*;
use crate::store::inventory::Inventory;
use crate::sys::fs::durable::replace_cache;
use crate::sys::fs::mark::FileMark;

#[test]
fn without_an_inventory_everything_is_looked_at_once() {
    let (home, mut store, _) = with_pack_and_ref();
    assert!(!store.is_suspect());
    std::fs::remove_file(store.git_dir().join("piton-packs")).unwrap();
    writing(&mut store);
    assert!(store.is_suspect() && Store::open(home.path()).unwrap().is_suspect());
    // A look that began before a loss proves nothing.
    let holes = store.holes();
    layout::change_epoch(store.git_dir()).unwrap();
    holes.trust();
    assert!(store.is_suspect());
    assert_eq!(store.ailments().unwrap(), []);
    assert!(!store.is_suspect());
}

#[test]
fn writers_of_the_inventory_lose_nothing_of_each_other() {
    let (_home, store) = store();
    let dir = store.git_dir();
    let known = inventory::KnownPack { idx: FileMark::NONE, pack: FileMark::NONE, objects: 1, bad: Vec::new() };
    let change = |change: &dyn Fn(&mut Inventory)| {
        let _lock = Inventory::lock(dir).unwrap();
        let mut inventory = Inventory::load(dir).unwrap();
        change(&mut inventory);
        inventory.save(dir).unwrap();
    };
    let old: Vec<String> = (0..150).map(|n| format!("pack-old-{n}")).collect();
    change(&|inventory| old.iter().for_each(|name| _ = inventory.packs.insert(name.clone(), known.clone())));
    std::thread::scope(|scope| {
        scope.spawn(|| old.iter().for_each(|name| Inventory::forget(dir, &[name]).unwrap()));
        for n in 0..150 {
            change(&|inventory| _ = inventory.packs.insert(format!("pack-new-{n}"), known.clone()));
        }
    });
    let names: Vec<String> = Inventory::load(dir).unwrap().packs.into_keys().collect();
    assert!(names.len() == 150 && names.iter().all(|name| name.starts_with("pack-new-")), "{names:?}");
}

#[test]
fn a_process_keeps_one_copy_of_an_index_and_closes_packs_in_idle_time() {
    let (home, store) = store();
    let tree = fill(&store, 100);
    let other = Store::open(home.path()).unwrap();
    let packs = [store.objects.refresh().unwrap(), other.objects.refresh().unwrap()];
    assert_eq!(packs[0].packs.len(), 1);
    assert!(std::sync::Arc::ptr_eq(&packs[0].packs[0], &packs[1].packs[0]));
    let pack = only(&store, "pack");
    let is_open = || {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fd.ok()?.path().read_link().ok());
        open.into_iter().any(|file| {
            file.starts_with(home.path().canonicalize().unwrap()) && file.ends_with(pack.file_name().unwrap())
        })
    };
    other.read_commit(&tree).unwrap();
    assert!(is_open());
    other.close();
    assert!(!is_open());
    assert!(store.read_commit(&tree).is_ok(), "it is opened again");
}

#[test]
fn a_pack_that_cannot_be_read_is_passed_over() {
    let (home, store) = store();
    let commit = fill(&store, 100);
    let stem = store.git_dir().join("objects/pack/pack-aaaa");
    std::fs::write(stem.with_extension("pack"), b"PACK").unwrap();
    // A directory cannot be read as a file, not even by the superuser.
    std::fs::create_dir(stem.with_extension("idx")).unwrap();
    let mut fresh = Store::open(home.path()).unwrap();
    assert_eq!(fresh.objects.refresh().unwrap().packs.len(), 1);
    assert!(is_whole(&fresh, &commit));
    writing(&mut fresh);
}

#[test]
fn damage_that_one_process_found_counts_for_others_that_are_warm() {
    let (home, store) = store();
    fill(&store, 100);
    let pack = only(&store, "pack");
    let id = ObjectId::of(ObjectKind::Blob, "content of file 7\n".repeat(20).as_bytes()).unwrap();
    let at = store.objects.refresh().unwrap().packs[0].find(&id).unwrap() as usize;
    let mut bytes = std::fs::read(&pack).unwrap();
    bytes[at + 5] ^= 1;
    replace_cache(&pack, &bytes).unwrap();
    // Without an inventory the earlier state of the pack is unknown: its objects are not checked until they are read.
    _ = std::fs::remove_file(store.git_dir().join("piton-packs"));
    // A directory that has just changed is listed again anyway.
    let earlier = std::time::SystemTime::now() - Duration::from_hours(1);
    let times = std::fs::FileTimes::new().set_modified(earlier);
    std::fs::File::open(pack.parent().unwrap()).unwrap().set_times(times).unwrap();
    let mut warm = [Store::open(home.path()).unwrap(), Store::open(home.path()).unwrap()];
    for store in &mut warm {
        store.renew().unwrap();
        assert!(store.has(&id).unwrap());
    }
    assert_eq!(warm[0].read_blob(&id).unwrap_err().code(), Code::StoreDamaged);
    warm[0].renew().unwrap();
    for store in &mut warm {
        store.renew().unwrap();
        assert!(!store.has(&id).unwrap(), "it is stored again by whoever writes next");
    }
}
