//! Black-box tests on the built binary.

#[path = "blackbox/restore.rs"]
mod restore;
#[path = "blackbox/support.rs"]
mod support;
