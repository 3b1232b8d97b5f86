//! Owner, ACL and extended attributes: carried over from the file that is replaced, where the system allows.

use std::fs::File;

use rustix::fs::{Gid, Uid, XattrFlags, fchown, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;

use crate::sys::fs::dir::Dir;
use crate::sys::fs::stat::Stat;

/// Attributes that belong to the content, not to the file: copying them would mark the new content as verified.
const OF_CONTENT: [&[u8]; 2] = [b"security.ima", b"security.evm"];

/// Gives `new` the owner and attributes of `name`, which `old` describes; returns what could not be kept.
///
/// To be called before the permission bits are set: changing the owner clears setuid, an ACL brings its own mask.
pub(super) fn carry_over(dir: &Dir, name: &[u8], old: &Stat, new: &File, staged: &Stat) -> Vec<String> {
    let mut lost = Vec::new();
    if (old.uid, old.gid) != (staged.uid, staged.gid) && !give_to(new, old) {
        lost.push(format!("owner {}:{} could not be kept", old.uid, old.gid));
    }
    match dir.open_file(name) {
        Ok(old) => lost.extend(copy_attributes(&old, new)),
        Err(error) => lost.push(format!("extended attributes could not be read: {}", error.message())),
    }
    lost
}

fn give_to(file: &File, old: &Stat) -> bool {
    let (uid, gid) = (Uid::from_raw(old.uid), Gid::from_raw(old.gid));
    // Without privileges the group alone may still be allowed; then the owner is reported.
    fchown(file, Some(uid), Some(gid)).is_ok() || (fchown(file, None, Some(gid)).is_ok() && is_owner(file, old.uid))
}

fn is_owner(file: &File, uid: u32) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_uid == uid)
}

fn copy_attributes(old: &File, new: &File) -> Vec<String> {
    let names = match grow(|buffer| flistxattr(old, buffer)) {
        Ok(names) => names,
        Err(Errno::NOTSUP) => return Vec::new(),
        Err(errno) => return vec![format!("extended attributes could not be listed: {errno}")],
    };
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.filter_map(|name| copy_attribute(old, new, name).err()).collect()
}

fn copy_attribute(old: &File, new: &File, name: &[u8]) -> Result<(), String> {
    if OF_CONTENT.contains(&name) {
        return Ok(());
    }
    let lost = |errno: Errno| format!("attribute {} could not be kept: {errno}", String::from_utf8_lossy(name));
    let value = match grow(|buffer| fgetxattr(old, name, buffer)) {
        Err(Errno::NODATA) => return Ok(()),
        other => other.map_err(lost)?,
    };
    if grow(|buffer| fgetxattr(new, name, buffer)).is_ok_and(|there| there == value) {
        return Ok(());
    }
    fsetxattr(new, name, &value, XattrFlags::empty()).map_err(lost)
}

/// Reads into a buffer that is made larger until the answer fits; 64 KiB is the kernel's own limit.
fn grow(read: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0u8; 1024];
    loop {
        match read(&mut buffer) {
            Ok(n) => {
                buffer.truncate(n);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < 1 << 17 => buffer.resize(buffer.len() * 8, 0),
            Err(errno) => return Err(errno),
        }
    }
}
