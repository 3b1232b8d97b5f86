//! The limits of inotify.

/// The directory in which the kernel tells how much of inotify one user may have.
pub const LIMITS: &str = "/proc/sys/fs/inotify";
