//! Tests of bounds: bytes that are read into memory, and steps from pack to pack.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::super::index::PackEntry;
use super::super::{loose, pack};
use super::*;

/// Writes a pack of one object, which is a delta on another one that the pack does not hold.
/// It says that it makes as many bytes as `size` spells.
fn delta(store: &Store, name: &str, base: (ObjectId, usize), content: &[u8], size: &[u8]) -> ObjectId {
    let (base, base_length) = base;
    let delta = [&[base_length as u8], size, &[content.len() as u8], content].concat();
    assert!(base_length < 128 && delta.len() < 16, "so that each number takes one byte");
    let mut entry = vec![7 << 4 | delta.len() as u8];
    entry.extend_from_slice(base.as_bytes());
    let mut encoder = ZlibEncoder::new(&mut entry, Compression::new(1));
    encoder.write_all(&delta).unwrap();
    encoder.finish().unwrap();
    let mut bytes = [b"PACK\0\0\0\x02\0\0\0\x01", &entry[..]].concat();
    let checksum = hash::checksum(&bytes);
    bytes.extend_from_slice(&checksum);
    let id = ObjectId::of(ObjectKind::Blob, content).unwrap();
    let index = pack::index_bytes(&[PackEntry { id, crc: crc32fast::hash(&entry), offset: 12 }], &checksum);
    let stem = store.git_dir().join("objects/pack").join(format!("pack-{name}"));
    std::fs::write(stem.with_extension("pack"), bytes).unwrap();
    std::fs::write(stem.with_extension("idx"), index).unwrap();
    id
}

/// Makes a chain of deltas, each in a pack of its own, or in two.
fn chain(store: &Store, base: ObjectId, length: usize, copies: usize) -> ObjectId {
    let mut last = (base, 5);
    for n in 0..length {
        let content = format!("n {n:06}\n");
        let size = [content.len() as u8];
        let made = (0..copies).map(|copy| delta(store, &format!("{n:04}-{copy}"), last, content.as_bytes(), &size));
        last = (made.last().unwrap(), content.len());
    }
    last.0
}

#[test]
fn deltas_on_other_packs_are_followed_so_far_and_no_further() {
    let missing = ObjectId::of(ObjectKind::Blob, b"gone\n").unwrap();
    for (length, copies, is_there, reads) in
        [(1, 1, true, true), (30, 1, true, true), (30, 2, true, true), (500, 1, true, false), (500, 2, false, false)]
    {
        let (_home, store) = store();
        let batch = store.batch().unwrap();
        let base = blob(&batch, b"base\n");
        batch.finish().unwrap();
        let last = chain(&store, if is_there { base } else { missing }, length, copies);
        let case = format!("{length} packs, {copies} of each");
        match reads {
            true => assert_eq!(store.read_blob(&last).unwrap(), format!("n {:06}\n", length - 1).as_bytes(), "{case}"),
            false => assert_eq!(store.read_blob(&last).unwrap_err().code(), Code::StoreDamaged, "{case}"),
        }
        assert_eq!(store.kind_of(&last).unwrap().is_some(), reads, "{case}");
    }
}

#[test]
fn a_too_large_object_is_not_unpacked() {
    let (_home, store) = store();
    let message = format!("{}\n", "much ".repeat(1 << 20));
    let (tree, parents, time_ms) = (ObjectId::EMPTY_TREE, &[][..], 1_700_000_000_000);
    let batch = store.batch().unwrap();
    let commit = batch.put_commit(&NewCommit { tree, parents, message: &message, time_ms }).unwrap();
    let file = blob(&batch, &vec![b'x'; 100_000]);
    batch.finish().unwrap();
    assert_eq!(store.read_commit(&commit).unwrap_err().code(), Code::TooLarge, "a loose one");
    let refused = store.read_blob_within(&file, 99_999).unwrap_err();
    assert_eq!(refused.code(), Code::TooLarge);
    assert!(refused.text().contains(&file.short()), "{}", refused.text());
    assert_eq!(store.read_blob_within(&file, 100_000).unwrap().len(), 100_000);
    // The stated size counts first: a file that claims to be large is not read.
    let path = loose::path_of(store.git_dir(), &commit);
    let mut claim = ZlibEncoder::new(Vec::new(), Compression::new(1));
    claim.write_all(format!("commit {}\0tree ", 1_u64 << 40).as_bytes()).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, claim.finish().unwrap()).unwrap();
    assert_eq!(store.read_commit(&commit).unwrap_err().code(), Code::TooLarge);
    // The next writer does not take it for damaged.
    assert!(!store.git_dir().join("piton-damaged").exists());
}

#[test]
fn a_too_large_object_in_a_pack_is_not_unpacked_either() {
    let (home, store) = store();
    let batch = store.batch().unwrap();
    let lines: String = (0..200_000).map(|n| format!("line {n} of many\n")).collect();
    let files: Vec<ObjectId> = (0..3).map(|n| blob(&batch, format!("{lines}{n}\n").as_bytes())).collect();
    let entry = |(n, id): (usize, &ObjectId)| TreeEntry { name: n.to_string().into(), mode: TreeMode::File, id: *id };
    let bytes = encode(files.iter().enumerate().map(entry).collect());
    let tree = ObjectId::of(ObjectKind::Tree, &bytes).unwrap();
    batch.write(ObjectKind::Tree, tree, &bytes).unwrap();
    let message = format!("{}\n", "much ".repeat(1 << 20));
    let commit = NewCommit { tree, parents: &[], message: &message, time_ms: 1_700_000_000_000 };
    let commit = batch.put_commit(&commit).unwrap();
    batch.finish().unwrap();
    store.update_ref("refs/heads/w/r", None, commit).unwrap();
    if git(&store, &["repack", "-adfq", "--depth=20"]).is_none() {
        return;
    }
    let fresh = Store::open(home.path()).unwrap();
    assert_eq!(fresh.read_commit(&commit).unwrap_err().code(), Code::TooLarge);
    for id in &files {
        let size = fresh.blob_size(id).unwrap();
        assert_eq!(fresh.read_blob_within(id, size - 1).unwrap_err().code(), Code::TooLarge);
        assert_eq!(fresh.read_blob_within(id, size).unwrap().len() as u64, size);
    }
}

#[test]
fn another_copy_is_read_where_one_says_that_it_is_too_large() {
    let (_home, store) = store();
    let batch = store.batch().unwrap();
    let (base, small) = (blob(&batch, b"base\n"), blob(&batch, b"s\n"));
    batch.finish().unwrap();
    // A terabyte.
    assert_eq!(delta(&store, "lie", (base, 5), b"s\n", &[0x80, 0x80, 0x80, 0x80, 0x80, 0x20]), small);
    assert_eq!(store.read_blob_within(&small, 1 << 30).unwrap(), b"s\n");
    std::fs::remove_file(loose::path_of(store.git_dir(), &small)).unwrap();
    assert_eq!(store.read_blob_within(&small, 1 << 30).unwrap_err().code(), Code::TooLarge);
    // Read by its deltas, it is found to be damaged.
    assert_eq!(store.copy_blob(&small, &mut Vec::new()).unwrap_err().code(), Code::StoreDamaged);
}
