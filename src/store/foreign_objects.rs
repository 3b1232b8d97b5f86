//! Files of a foreign object store: does one hold what its name says? Read, and never written.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::index::Index;
use super::{hash, loose};
use crate::model::id::ObjectId;

/// The length of a checksum at the end of a pack and of its index.
const SUM: u64 = 20;

/// Returns false for a file of an object store that is empty, or does not hold what its name says. A file that
/// another hash than SHA-1 names is only known not to be empty.
pub fn is_whole(path: &Path) -> bool {
    let Ok(facts) = path.symlink_metadata() else { return false };
    let (name, kind) = (path.file_stem().unwrap_or_default().to_string_lossy(), path.extension().unwrap_or_default());
    if facts.len() == 0 {
        return false;
    }
    match (name.strip_prefix("pack-"), kind.to_str()) {
        (Some(id), Some("pack")) if id.len() == 40 => is_whole_pack(path, facts.len()).unwrap_or(false),
        (Some(id), Some("idx")) if id.len() == 40 => {
            std::fs::read(path).is_ok_and(|bytes| Index::verified(bytes).is_ok())
        }
        (Some(_), _) => true,
        (None, _) => {
            let fan = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            // A longer name is of another hash.
            format!("{fan}{name}").parse::<ObjectId>().map_or(true, |id| !loose::is_damaged(path, &id))
        }
    }
}

fn is_whole_pack(path: &Path, length: u64) -> std::io::Result<bool> {
    let file = File::open(path)?;
    let mut sum = [0; SUM as usize];
    let Some(at) = length.checked_sub(SUM) else { return Ok(false) };
    file.read_exact_at(&mut sum, at)?;
    Ok(hash::checksum_of(&mut file.take(at))? == sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_if_it_holds_what_its_name_says() {
        let dir = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init(dir.path()).unwrap();
        let odb = repository.odb().unwrap();
        let ids: Vec<_> = (0..9).map(|n| odb.write(git2::ObjectType::Blob, &[n; 5000]).unwrap()).collect();
        let hex = ids[0].to_string();
        let objects = repository.path().join("objects");
        let mut builder = repository.packbuilder().unwrap();
        ids.iter().for_each(|id| builder.insert_object(*id, None).unwrap());
        builder.write(&objects.join("pack"), 0o644).unwrap();
        let mut files: Vec<_> = objects.join("pack").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        files.push(objects.join(&hex[..2]).join(&hex[2..]));
        assert_eq!(files.len(), 3, "{files:?}");
        for file in files {
            assert!(is_whole(&file), "{file:?}");
            let bytes = std::fs::read(&file).unwrap();
            let mut flipped = bytes.clone();
            flipped[bytes.len() / 2] ^= 0x10;
            for wrong in [&flipped[..], &[], &[0; 5000], &bytes[..bytes.len() - 1]] {
                std::fs::remove_file(&file).unwrap();
                std::fs::write(&file, wrong).unwrap();
                assert!(!is_whole(&file), "{file:?} with {} bytes", wrong.len());
            }
        }
    }
}
