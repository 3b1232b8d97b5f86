//! Every seed of the fuzzers, with any toolchain: what once failed stays mended.

#[allow(unreachable_pub, reason = "the fuzzers reach it")]
#[path = "../fuzz/targets.rs"]
mod targets;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn seeds(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Each seed as it is, and each cut short.
#[test]
fn every_seed_passes() {
    let mut failed = Vec::new();
    for (name, target) in targets::ALL {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for (path, bytes) in seeds {
            let run = || (0..=4).for_each(|quarter| target(&bytes[..bytes.len() * quarter / 4]));
            if std::panic::catch_unwind(run).is_err() {
                failed.push(path);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// A target is a body, a fuzzer and a directory of seeds, or it is forgotten somewhere.
#[test]
fn targets_are_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let listed = |dir: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(root.join(dir)).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
    };
    let names: BTreeSet<String> = targets::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(listed("fuzz_targets"), names);
    assert_eq!(listed("seeds"), names);
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in fuzz/Cargo.toml");
    }
}
