//! The kind of a path's file system: on some kinds the kernel does not see every change.

use std::path::Path;

use crate::error::{IoContext, Result};

/// File systems whose files can change without this kernel, or that report changes unreliably.
const FOREIGN: &[(u32, &str)] = &[
    (0x6969, "nfs"),
    (0x517B, "smb"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb2"),
    (0x6573_5546, "fuse"), // sshfs and the like; virtiofs too
    (0x0102_1997, "9p"),   // WSL's /mnt/c, many sandboxes
    (0x00C3_6400, "ceph"),
    (0x5346_414F, "afs"),
    (0x6B41_4653, "kafs"),
    (0x7375_7245, "coda"),
    (0x564C, "ncp"),
    (0x0BD0_0BD0, "lustre"),
    (0x0BD0_0BD3, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x0116_1970, "gfs2"),
    (0x7461_636F, "ocfs2"),
    (0x19AC_0202, "hmdfs"),
    (0x786F_4256, "vboxsf"),
    (0xBACB_ACBC, "vmhgfs"),
    (0x0000_9FA0, "proc"),
    (0x6265_6572, "sysfs"),
];

/// Returns the name of the file system under `path`, if it is one whose changes this kernel does not all see.
///
/// # Errors
/// When it cannot be asked.
pub fn foreign(path: &Path) -> Result<Option<&'static str>> {
    let kind = kind(path)?;
    Ok(FOREIGN.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the numbers have 32 bits")]
fn kind(path: &Path) -> Result<u32> {
    Ok(rustix::fs::statfs(path).at("asking for the file system at", path)?.f_type as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_told_apart() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(foreign(temp.path()).unwrap(), None);
        assert_eq!(foreign(Path::new("/proc")).unwrap(), Some("proc"));
        assert!(foreign(&temp.path().join("none")).is_err());
    }
}
